//! What does the server do with signing requests that it does not do with others? It says who asked,
//! keeps what was asked for as it is, and lets each subresource change its own part of the status.

use serde_json::{Map, Value, json};

use super::{
    failure::Cause,
    identity::Identity,
    kinds::Kind,
    object::{as_object, object_at, text_at, value_at},
    request::Subresource,
};

/// Conditions that stay once they are there, with the status that they must have.
const VERDICTS: [&str; 3] = ["Approved", "Denied", "Failed"];
const APPROVALS: [&str; 2] = ["Approved", "Denied"];

const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

/// Says who asks, whatever the request itself says, and that nothing is decided.
pub(super) fn prepare_create(kind: &Kind, client: &str, value: &mut Value) {
    if !kind.has_approval {
        return;
    }
    let Identity { username, groups } = Identity::of(client);
    let spec = object_at(value, "spec");
    for field in ["uid", "extra"] {
        spec.remove(field);
    }
    spec.insert("username".to_owned(), Value::from(username));
    spec.insert("groups".to_owned(), Value::from(groups));
    as_object(value).insert("status".to_owned(), json!({}));
}

/// Keeps what this part of the object may not change.
pub(super) fn settle_update(
    kind: &Kind,
    subresource: Subresource,
    now: &Value,
    old: &Value,
    new: &mut Value,
) {
    if !kind.has_approval {
        return;
    }
    if let Some(spec) = old.get("spec") {
        as_object(new).insert("spec".to_owned(), spec.clone());
    }
    match subresource {
        Subresource::Approval => {
            let conditions = value_at(new, "/status/conditions").cloned();
            let mut status = old.get("status").cloned().unwrap_or_default();
            let fields = as_object(&mut status);
            match conditions {
                Some(conditions) => fields.insert("conditions".to_owned(), conditions),
                None => fields.remove("conditions"),
            };
            as_object(new).insert("status".to_owned(), status);
        }
        Subresource::Status => keep_approvals(old, new),
        _ => return,
    }
    stamp_conditions(now, old, new);
}

/// Approvals are kept as they were, unless there are more or fewer, which is then refused.
fn keep_approvals(old: &Value, new: &mut Value) {
    for type_ in APPROVALS {
        let known = conditions_of(old, type_);
        if known.len() != conditions_of(new, type_).len() {
            continue;
        }
        let mut known = known.into_iter().cloned().collect::<Vec<_>>().into_iter();
        for condition in conditions_mut(new).filter(|one| text_at(one, "/type") == type_) {
            if let Some(known) = known.next() {
                *condition = known;
            }
        }
    }
}

/// Times that are not said are those of now, or of when it first said so.
fn stamp_conditions(now: &Value, old: &Value, new: &mut Value) {
    for condition in conditions_mut(new) {
        let (type_, status) = (text_at(condition, "/type"), text_at(condition, "/status"));
        let before = conditions_of(old, type_)
            .into_iter()
            .find(|one| text_at(one, "/status") == status)
            .and_then(|one| one.get("lastTransitionTime"))
            .cloned();
        let fields = as_object(condition);
        stamp(fields, "lastUpdateTime", now.clone());
        stamp(fields, "lastTransitionTime", before.unwrap_or_else(|| now.clone()));
    }
}

fn stamp(fields: &mut Map<String, Value>, field: &str, time: Value) {
    if fields.get(field).is_none_or(Value::is_null) {
        fields.insert(field.to_owned(), time);
    }
}

/// What is wrong with a request.
pub(super) fn check(kind: &Kind, value: &Value) -> Vec<Cause> {
    if !kind.has_approval {
        return Vec::new();
    }
    let mut causes = Vec::new();
    let request = text_at(value, "/spec/request");
    if request.is_empty() {
        let detail = "PEM block type must be CERTIFICATE REQUEST";
        causes.push(Cause::invalid("spec.request", &json!(request), detail));
    }
    let usages = value_at(value, "/spec/usages").and_then(Value::as_array);
    let usages: Vec<&str> = usages.into_iter().flatten().filter_map(Value::as_str).collect();
    if usages.is_empty() {
        causes.push(Cause::required("spec.usages", ""));
    }
    for (index, usage) in usages.iter().enumerate() {
        let field = format!("spec.usages[{index}]");
        if !USAGES.contains(usage) {
            let known: Vec<String> = USAGES.iter().map(|known| format!("{known:?}")).collect();
            causes.push(not_supported(field, usage, &known.join(", ")));
        } else if usages.iter().take(index).any(|before| before == usage) {
            causes.push(duplicate(field, usage));
        }
    }
    if text_at(value, "/spec/signerName").is_empty() {
        causes.push(Cause::required("spec.signerName", ""));
    }
    causes.extend(check_conditions(value));
    causes
}

fn check_conditions(value: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    for (index, condition) in conditions(value).iter().enumerate() {
        let (type_, status) = (text_at(condition, "/type"), text_at(condition, "/status"));
        let here = format!("status.conditions[{index}]");
        if type_.is_empty() {
            causes.push(Cause::required(format!("{here}.type"), ""));
        }
        let is_verdict = VERDICTS.contains(&type_);
        let is_known = if is_verdict {
            status == "True"
        } else {
            matches!(status, "True" | "False" | "Unknown")
        };
        if status.is_empty() {
            causes.push(Cause::required(format!("{here}.status"), ""));
        } else if !is_known {
            let known = if is_verdict { "\"True\"" } else { "\"False\", \"True\", \"Unknown\"" };
            causes.push(not_supported(format!("{here}.status"), status, known));
        }
        let opposite = match type_ {
            "Approved" => "Denied",
            "Denied" => "Approved",
            _ => "",
        };
        if !opposite.is_empty() && seen.contains(&opposite) {
            let detail = "Approved and Denied conditions are mutually exclusive";
            causes.push(Cause::invalid("status.conditions", &json!(type_), detail));
        }
        if seen.contains(&type_) {
            causes.push(duplicate(format!("{here}.type"), type_));
        }
        seen.push(type_);
    }
    causes
}

/// What may not change by this subresource.
pub(super) fn check_update(
    kind: &Kind,
    subresource: Subresource,
    old: &Value,
    new: &Value,
) -> Vec<Cause> {
    if !kind.has_approval {
        return Vec::new();
    }
    let mut causes = Vec::new();
    let forbidden = |words: String| Cause::forbidden("status.conditions", &words);
    for type_ in VERDICTS {
        let (before, after) = (conditions_of(old, type_), conditions_of(new, type_));
        if after.len() < before.len() {
            causes.push(forbidden(format!("updates may not remove a condition of type {type_:?}")));
        } else if subresource != Subresource::Approval
            && APPROVALS.contains(&type_)
            && after.len() > before.len()
        {
            causes.push(forbidden(format!("updates may not add a condition of type {type_:?}")));
        }
    }
    let certificate = |value: &Value| text_at(value, "/status/certificate").to_owned();
    if certificate(old) != certificate(new) && !certificate(old).is_empty() {
        let detail = "updates may not modify existing certificate content";
        causes.push(Cause::forbidden("status.certificate", detail));
    }
    causes
}

fn not_supported(field: String, value: &str, known: &str) -> Cause {
    Cause {
        reason: "FieldValueNotSupported",
        field,
        message: format!("Unsupported value: {value:?}: supported values: {known}"),
    }
}

fn duplicate(field: String, value: &str) -> Cause {
    Cause { reason: "FieldValueDuplicate", field, message: format!("Duplicate value: {value:?}") }
}

fn conditions(value: &Value) -> &[Value] {
    value_at(value, "/status/conditions").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn conditions_of<'a>(value: &'a Value, type_: &str) -> Vec<&'a Value> {
    conditions(value).iter().filter(|one| text_at(one, "/type") == type_).collect()
}

fn conditions_mut(value: &mut Value) -> impl Iterator<Item = &mut Value> {
    let list = value.get_mut("status").and_then(|status| status.get_mut("conditions"));
    list.and_then(Value::as_array_mut).into_iter().flatten()
}
