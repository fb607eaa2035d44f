//! How is an object made of a template?

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::{Map, Value, json};

use super::GroupKind;

/// What the object is called and whose it is.
pub struct Clone<'a> {
    pub name: &'a str,
    pub namespace: &'a str,
    pub cluster: &'a str,
    pub owner: Option<&'a OwnerReference>,
    pub labels: &'a BTreeMap<String, String>,
    pub annotations: &'a BTreeMap<String, String>,
}

/// The kind of what is made of a template: the template's own without its ending.
pub fn cloned_kind(template: &GroupKind) -> GroupKind {
    let kind = template.kind.strip_suffix("Template").unwrap_or(&template.kind);
    GroupKind::new(&template.group, kind)
}

/// Makes the object out of the template as the API server gave it, whole. `source` is the template's kind.
pub fn clone_from(template: &Value, source: &GroupKind, wanted: &Clone<'_>) -> Value {
    let embedded = template.pointer("/spec/template").cloned();
    let mut object = match embedded {
        Some(Value::Object(object)) => object,
        _ => Map::new(),
    };
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let api_version = text(object.get("apiVersion")).or_else(|| text(template.get("apiVersion")));
    let kind = text(object.get("kind")).unwrap_or_else(|| cloned_kind(source).kind);
    let name = template.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();

    let mut metadata = match object.remove("metadata") {
        Some(Value::Object(metadata)) => metadata,
        _ => Map::new(),
    };
    for field in ["resourceVersion", "finalizers", "uid", "selfLink", "ownerReferences"] {
        metadata.remove(field);
    }
    let mut annotations = wanted.annotations.clone();
    annotations.insert("cluster.x-k8s.io/cloned-from-name".to_owned(), name.to_owned());
    annotations.insert("cluster.x-k8s.io/cloned-from-groupkind".to_owned(), source.to_string());
    let mut labels = wanted.labels.clone();
    labels.insert("cluster.x-k8s.io/cluster-name".to_owned(), wanted.cluster.to_owned());
    extend(&mut metadata, "annotations", annotations);
    extend(&mut metadata, "labels", labels);
    metadata.insert("name".to_owned(), json!(wanted.name));
    metadata.insert("namespace".to_owned(), json!(wanted.namespace));
    if let Some(owner) = wanted.owner {
        metadata.insert("ownerReferences".to_owned(), json!([owner]));
    }
    object.insert("apiVersion".to_owned(), json!(api_version.unwrap_or_default()));
    object.insert("kind".to_owned(), json!(kind));
    object.insert("metadata".to_owned(), Value::Object(metadata));
    Value::Object(object)
}

fn extend(metadata: &mut Map<String, Value>, field: &str, more: BTreeMap<String, String>) {
    let mut all = match metadata.remove(field) {
        Some(Value::Object(all)) => all,
        _ => Map::new(),
    };
    all.extend(more.into_iter().map(|(key, value)| (key, Value::String(value))));
    metadata.insert(field.to_owned(), Value::Object(all));
}
