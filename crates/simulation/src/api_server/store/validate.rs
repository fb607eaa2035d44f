//! Is the object one that the server takes?

use serde_json::{Value, json};

use super::Store;
use crate::api_server::{
    built_in,
    failure::{Cause, Failure},
    kinds::{KindRef, Scope},
    object::{as_object, finalizers_of, metadata_of, object_at, text_at},
    signing_request,
};

/// Where a body that is being read came from: the refusals differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Body,
    Patch,
}

impl Store {
    /// Reads an object: unknown fields go, defaults come.
    pub(super) fn decode(
        &self,
        kind: KindRef,
        mut value: Value,
        source: Source,
    ) -> Result<Value, Failure> {
        let unreadable = |why: &str| match source {
            Source::Body => Failure::bad_request(format!(
                "{} in version \"{}\" cannot be handled as a {}: {why}",
                kind.kind.kind, kind.kind.version, kind.kind.kind
            )),
            Source::Patch => {
                let cause = Cause::invalid("patch", &Value::Null, why);
                Failure::invalid_of("", "", "", &[cause])
            }
        };
        if !value.is_object() {
            return Err(unreadable("json: cannot unmarshal into Go value"));
        }
        check_type(kind, &value)?;
        if kind.kind.shows.is_some() {
            value = built_in::store_event(value);
        }
        metadata_of(&mut value).remove("managedFields");
        if !kind.kind.is_custom() {
            return built_in::normalise(kind.kind, value).map_err(|why| unreadable(&why));
        }
        let fields = as_object(&mut value);
        fields.insert("kind".to_owned(), Value::from(kind.kind.kind));
        fields.insert("apiVersion".to_owned(), Value::from(kind.kind.api_version()));
        read_metadata(&mut value).map_err(|why| unreadable(&why))?;
        if let Some(schema) = self.collection(kind).and_then(|own| own.schema) {
            schema.prune(&mut value);
            schema.fill(&mut value);
        }
        Ok(value)
    }

    /// What is wrong with an object that is new (`old` is none) or changed.
    pub(super) fn check_object(
        &self,
        kind: KindRef,
        old: Option<&Value>,
        value: &Value,
    ) -> Vec<Cause> {
        let mut causes = check_metadata(kind, value);
        if let Some(old) = old {
            causes.extend(check_metadata_update(old, value));
        }
        if let Some(schema) = self.collection(kind).and_then(|own| own.schema) {
            causes.extend(schema.check(old, value));
        }
        if !kind.kind.is_custom() {
            causes.extend(check_domains(kind, value));
            causes.extend(built_in::check(kind.kind, value));
            causes.extend(signing_request::check(kind.kind, value));
        }
        causes
    }
}

/// The kind and apiVersion in the data, where they are given, must be those of the path.
fn check_type(kind: KindRef, value: &Value) -> Result<(), Failure> {
    let (api_version, name) = (text_at(value, "/apiVersion"), text_at(value, "/kind"));
    if kind.kind.is_custom() && (name.is_empty() || api_version.is_empty()) {
        let field = if name.is_empty() { "Kind" } else { "apiVersion" };
        return Err(Failure::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): Object '{field}' is missing",
            kind.kind.kind
        )));
    }
    if !api_version.is_empty() && api_version != kind.kind.api_version() {
        return Err(Failure::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version \
             ({})",
            kind.kind.api_version()
        )));
    }
    if !name.is_empty() && name != kind.kind.kind && kind.kind.is_custom() {
        let detail = format!("must be {}", kind.kind.kind);
        let cause = Cause::invalid("kind", &json!(name), &detail);
        let object = text_at(value, "/metadata/name");
        return Err(Failure::invalid_of(kind.kind.group, name, object, &[cause]));
    }
    if !name.is_empty() && name != kind.kind.kind {
        return Err(Failure::bad_request(format!(
            "{name} in version \"{}\" cannot be handled as a {}",
            kind.kind.version, kind.kind.kind
        )));
    }
    Ok(())
}

/// Reads the metadata through its type, which drops unknown fields and refuses wrong types.
fn read_metadata(value: &mut Value) -> Result<(), String> {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    let metadata = Value::Object(std::mem::take(metadata_of(value)));
    let typed: ObjectMeta = serde_json::from_value(metadata).map_err(|error| error.to_string())?;
    let mut metadata = serde_json::to_value(typed).map_err(|error| error.to_string())?;
    as_object(&mut metadata).retain(|_, field| match field {
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Null => false,
        Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    });
    as_object(value).insert("metadata".to_owned(), metadata);
    Ok(())
}

/// The namespace in the data must be that of the path; it is filled in where it is missing.
pub(super) fn settle_namespace(
    kind: KindRef,
    namespace: &str,
    value: &mut Value,
) -> Result<(), Failure> {
    let given = text_at(value, "/metadata/namespace");
    match kind.kind.scope {
        Scope::Cluster => {
            object_at(value, "metadata").remove("namespace");
            Ok(())
        }
        Scope::Namespaced if given.is_empty() || given == namespace => {
            metadata_of(value).insert("namespace".to_owned(), Value::from(namespace));
            Ok(())
        }
        Scope::Namespaced => Err(Failure::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        )),
    }
}

fn check_metadata(kind: KindRef, value: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let name = text_at(value, "/metadata/name");
    if name.is_empty() {
        causes.push(Cause::required("metadata.name", "name or generateName is required"));
    } else if let Some(detail) = wrong_with_name(kind, name) {
        causes.push(Cause::invalid("metadata.name", &json!(name), detail));
    }
    let labels = value.pointer("/metadata/labels").and_then(Value::as_object);
    for (key, label) in labels.into_iter().flatten() {
        if !is_qualified_name(key) {
            causes.push(Cause::invalid("metadata.labels", &json!(key), "name part is invalid"));
        }
        if !is_label_value(label.as_str().unwrap_or_default()) {
            causes.push(Cause::invalid("metadata.labels", label, LABEL_VALUE_WORDS));
        }
    }
    for finalizer in finalizers_of(value) {
        if !is_qualified_name(&finalizer) {
            causes.push(Cause::invalid("metadata.finalizers", &json!(finalizer), NAME_PART_WORDS));
        }
    }
    let owners = value.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    for owner in owners.into_iter().flatten() {
        for field in ["apiVersion", "kind", "name", "uid"] {
            if owner.get(field).and_then(Value::as_str).unwrap_or_default().is_empty() {
                let field = format!("metadata.ownerReferences.{field}");
                causes.push(Cause::invalid(field, &json!(""), "must not be empty"));
            }
        }
    }
    causes
}

/// The oldest kinds ask for a domain in the names of finalizers.
fn check_domains(kind: KindRef, value: &Value) -> Vec<Cause> {
    if !kind.kind.group.is_empty() {
        return Vec::new();
    }
    let mut causes = Vec::new();
    for (index, finalizer) in finalizers_of(value).into_iter().enumerate() {
        let standard = matches!(finalizer.as_str(), "kubernetes" | "orphan" | "foregroundDeletion");
        if !standard && !finalizer.contains('/') {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            let field = format!("metadata.finalizers[{index}]");
            causes.push(Cause::invalid(field, &json!(finalizer), detail));
        }
    }
    causes
}

/// What may not change in the metadata.
fn check_metadata_update(old: &Value, new: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    if old.pointer("/metadata/deletionTimestamp").is_some() {
        let known = finalizers_of(old);
        let fresh: Vec<String> =
            finalizers_of(new).into_iter().filter(|one| !known.contains(one)).collect();
        if !fresh.is_empty() {
            let quoted: Vec<String> = fresh.iter().map(|one| format!("\"{one}\"")).collect();
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new \
                 finalizers []string{{{}}}",
                quoted.join(", ")
            );
            causes.push(Cause::forbidden("metadata.finalizers", &detail));
        }
    }
    for field in ["name", "namespace", "uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let pointer = format!("/metadata/{field}");
        if old.pointer(&pointer) != new.pointer(&pointer) {
            let value = new.pointer(&pointer).unwrap_or(&Value::Null);
            causes.push(Cause::invalid(format!("metadata.{field}"), value, "field is immutable"));
        }
    }
    causes
}

const SUBDOMAIN_WORDS: &str = "a lowercase RFC 1123 subdomain must consist of lower case \
    alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character \
    (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL_WORDS: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric \
    characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or \
    '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

const LABEL_VALUE_WORDS: &str = "a valid label must be an empty string or consist of alphanumeric \
    characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. \
    'MyValue',  or 'my_value',  or '12345', regex used for validation is \
    '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

const NAME_PART_WORDS: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', \
    and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or \
    '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

fn wrong_with_name(kind: KindRef, name: &str) -> Option<&'static str> {
    match kind.kind.plural {
        "namespaces" => (!is_dns_label(name)).then_some(LABEL_WORDS),
        // Any part of a path is a name for them.
        "poddisruptionbudgets" | "certificatesigningrequests" => None,
        _ => (!is_dns_subdomain(name)).then_some(SUBDOMAIN_WORDS),
    }
}

fn is_dns_label_text(text: &str) -> bool {
    let edge =
        |one: Option<char>| one.is_some_and(|one| one.is_ascii_digit() || one.is_ascii_lowercase());
    edge(text.chars().next())
        && edge(text.chars().last())
        && text.chars().all(|one| one.is_ascii_digit() || one.is_ascii_lowercase() || one == '-')
}

fn is_dns_label(text: &str) -> bool {
    text.len() <= 63 && is_dns_label_text(text)
}

fn is_dns_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_dns_label_text)
}

/// The part of a qualified name after its prefix, or a label's value.
fn is_name_part(text: &str) -> bool {
    let edge = |one: Option<char>| one.is_some_and(|one| one.is_ascii_alphanumeric());
    text.len() <= 63
        && edge(text.chars().next())
        && edge(text.chars().last())
        && text.chars().all(|one| one.is_ascii_alphanumeric() || "-_.".contains(one))
}

fn is_label_value(text: &str) -> bool {
    text.is_empty() || is_name_part(text)
}

fn is_qualified_name(text: &str) -> bool {
    match text.split_once('/') {
        Some((prefix, name)) => is_dns_subdomain(prefix) && is_name_part(name),
        None => is_name_part(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_rules_of_kubernetes() {
        let table = [
            ("a", true, true, true),
            ("a-b.c", true, true, true),
            ("A", false, true, true),
            ("-a", false, false, false),
            ("a.-b", false, true, true),
            ("x.io/a_b", false, false, true),
            ("x.io/", false, false, false),
            ("", false, true, false),
        ];
        for (text, subdomain, label, qualified) in table {
            assert_eq!(is_dns_subdomain(text), subdomain, "{text}");
            assert_eq!(is_label_value(text), label, "{text}");
            assert_eq!(is_qualified_name(text), qualified, "{text}");
        }
        assert!(!is_dns_label("a.b"));
    }
}
