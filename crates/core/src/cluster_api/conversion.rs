//! How does an object of Cluster API's version before (v1beta1) read in the one that is stored (v1beta2), and back?
//!
//! `fields` says which field of one is which of the other; here objects are carried over, and nothing is lost on the way. What
//! the older version cannot say is remembered in an annotation of it, as Cluster API itself does.

mod fields;
#[cfg(test)]
mod tests;

use machinist_api::cluster_api::{GROUP, names::annotation};
use serde_json::{Map, Value, json};

use self::fields::{Form, Moved};
use super::contract::GroupKind;
use crate::merge_patch;

/// A version of Cluster API's own objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    V1Beta1,
    V1Beta2,
}

impl Version {
    fn of(api_version: &str) -> Option<Self> {
        match api_version.strip_prefix(GROUP)? {
            "/v1beta1" => Some(Self::V1Beta1),
            "/v1beta2" => Some(Self::V1Beta2),
            _ => None,
        }
    }

    fn api_version(self) -> String {
        match self {
            Self::V1Beta1 => format!("{GROUP}/v1beta1"),
            Self::V1Beta2 => format!("{GROUP}/v1beta2"),
        }
    }
}

/// Why an object cannot be carried over.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConversionError {
    #[error("{0:?} is no version of Cluster API that is known here")]
    UnknownVersion(String),
    #[error("{0:?} is no kind of Cluster API that is known here")]
    UnknownKind(String),
}

/// The version of a provider's kind that references of the older version name.
pub type Served<'a> = &'a dyn Fn(&GroupKind) -> Option<String>;

/// Carries an object over to the version that is asked for, such as `cluster.x-k8s.io/v1beta2`.
pub fn convert(object: &Value, wanted: &str, served: Served<'_>) -> Result<Value, ConversionError> {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let unknown = |version: &str| ConversionError::UnknownVersion(version.to_owned());
    let from = Version::of(text("apiVersion")).ok_or_else(|| unknown(text("apiVersion")))?;
    let to = Version::of(wanted).ok_or_else(|| unknown(wanted))?;
    let moved = fields::of_kind(text("kind"))
        .ok_or_else(|| ConversionError::UnknownKind(text("kind").to_owned()))?;
    Ok(match (from, to) {
        (Version::V1Beta2, Version::V1Beta1) => remembering(object, &moved, served),
        (Version::V1Beta1, Version::V1Beta2) => restored(object, &moved, served),
        _ => object.clone(),
    })
}

/// Down to the older version, with everything of the newer one in an annotation.
fn remembering(object: &Value, moved: &[Moved], served: Served<'_>) -> Value {
    let mut older = carried(object, moved, Version::V1Beta1, served);
    let said = |field: &str| object.get(field).cloned();
    let mut all = Map::new();
    for field in ["spec", "status"] {
        all.extend(said(field).map(|value| (field.to_owned(), value)));
    }
    let text = Value::Object(all).to_string();
    put(&mut older, &["metadata", "annotations", annotation::CONVERSION_DATA], json!(text));
    older
}

/// Up to the newer version. What was changed in the older one is changed; what that cannot say is as it was.
fn restored(object: &Value, moved: &[Moved], served: Served<'_>) -> Value {
    let mut older = object.clone();
    let path = ["metadata", "annotations", annotation::CONVERSION_DATA];
    let remembered = take(&mut older, &path);
    let is_bare = older.pointer("/metadata/annotations").is_some_and(|all| *all == json!({}));
    if remembered.is_some() && is_bare {
        take(&mut older, &["metadata", "annotations"]);
    }
    let newer = carried(&older, moved, Version::V1Beta2, served);
    let remembered = remembered.and_then(|text| serde_json::from_str::<Value>(text.as_str()?).ok());
    let Some(Value::Object(before)) = remembered else { return newer };
    // What the newer version was, and how it would have come back unchanged.
    let mut known = newer.clone();
    for field in ["spec", "status"] {
        take(&mut known, &[field]);
        if let Some(value) = before.get(field) {
            put(&mut known, &[field], value.clone());
        }
    }
    let there = carried(&known, moved, Version::V1Beta1, served);
    let and_back = carried(&there, moved, Version::V1Beta2, served);
    if let Some(change) = merge_patch::between(&and_back, &newer) {
        apply(&mut known, &change);
    }
    known
}

/// Every field in its place in the other version.
fn carried(object: &Value, moved: &[Moved], to: Version, served: Served<'_>) -> Value {
    let mut object = object.clone();
    let namespace = object.pointer("/metadata/namespace").and_then(Value::as_str);
    let namespace = namespace.map(str::to_owned);
    // All are taken before any is put: one's place may be another's.
    let mut values = Vec::new();
    for one in moved {
        let (from, into) = match to {
            Version::V1Beta2 => (&one.older, &one.newer),
            Version::V1Beta1 => (&one.newer, &one.older),
        };
        let from: Vec<&str> = from.iter().map(String::as_str).collect();
        if let Some(value) = take(&mut object, &from) {
            values.push((into, one.form, value));
        }
    }
    for (into, form, value) in values {
        let into: Vec<&str> = into.iter().map(String::as_str).collect();
        put(&mut object, &into, reshaped(value, form, to, namespace.as_deref(), served));
    }
    put(&mut object, &["apiVersion"], json!(to.api_version()));
    object
}

/// `namespace` is the object's own, which all that it refers to is in.
fn reshaped(
    value: Value,
    form: Form,
    to: Version,
    namespace: Option<&str>,
    served: Served<'_>,
) -> Value {
    match (form, to) {
        (Form::Same, _) => value,
        (Form::Duration, Version::V1Beta2) => {
            let seconds = value.as_str().and_then(fields::seconds);
            seconds.map_or(value, |seconds| json!(seconds))
        }
        (Form::Duration, Version::V1Beta1) => {
            value.as_i64().map_or_else(|| value.clone(), |seconds| json!(fields::duration(seconds)))
        }
        (Form::Reference, Version::V1Beta2) => fields::by_group(&value),
        (Form::Reference, Version::V1Beta1) => {
            fields::within(fields::by_version(&value, served), namespace)
        }
        (Form::Template, Version::V1Beta2) => fields::within(value, None),
        (Form::Template, Version::V1Beta1) => fields::within(value, namespace),
        (Form::Domains, Version::V1Beta2) => fields::listed(value),
        (Form::Domains, Version::V1Beta1) => fields::by_name(value),
        (Form::Node, Version::V1Beta2) => json!({ "name": value["name"] }),
        (Form::Node, Version::V1Beta1) => {
            json!({ "apiVersion": "v1", "kind": "Node", "name": value["name"] })
        }
        (Form::Conditions, _) => each(value, |one| timed(one, to)),
    }
}

fn each(value: Value, change: impl Fn(Value) -> Value) -> Value {
    match value {
        Value::Array(all) => Value::Array(all.into_iter().map(change).collect()),
        other => other,
    }
}

/// An unhealthy condition: its timeout is a duration in one version and seconds in the other.
fn timed(mut condition: Value, to: Version) -> Value {
    let (from, into) = match to {
        Version::V1Beta2 => ("timeout", "timeoutSeconds"),
        Version::V1Beta1 => ("timeoutSeconds", "timeout"),
    };
    if let Some(value) = take(&mut condition, &[from]) {
        let value = reshaped(value, Form::Duration, to, None, &|_| None);
        put(&mut condition, &[into], value);
    }
    condition
}

/// Takes a field out, and the objects around it that are empty then.
fn take(object: &mut Value, path: &[&str]) -> Option<Value> {
    let (first, rest) = path.split_first()?;
    let map = object.as_object_mut()?;
    if rest.is_empty() {
        return map.remove(*first);
    }
    let inner = map.get_mut(*first)?;
    let value = take(inner, rest)?;
    if *inner == json!({}) {
        map.remove(*first);
    }
    Some(value)
}

/// Puts a field in, and makes the objects around it where they are absent.
fn put(object: &mut Value, path: &[&str], value: Value) {
    let Some((first, rest)) = path.split_first() else { return };
    if !object.is_object() {
        *object = json!({});
    }
    let Some(map) = object.as_object_mut() else { return };
    match rest {
        [] => {
            map.insert((*first).to_owned(), value);
        }
        _ => put(map.entry(*first).or_insert_with(|| json!({})), rest, value),
    }
}

/// Applies a merge patch.
fn apply(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let Some(map) = target.as_object_mut() else { return };
    for (key, value) in patch {
        match value {
            Value::Null => {
                map.remove(key);
            }
            _ => apply(map.entry(key.clone()).or_insert(Value::Null), value),
        }
    }
}
