//! How a request to another controller is made from a template.

use k8s_openapi::api::core::v1::ObjectReference;
use machinist_api::{Machine, names::annotation};
use serde_json::{Map, Value, json};

use crate::decision::FieldError;

const SUFFIX: &str = "Template";

/// The template of a check, found to be whole. Its namespace is that of the check, whatever the
/// reference says: nobody can point at another tenant's objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateReference {
    pub api_version: String,
    pub kind: String,
    pub name: String,
}

impl TemplateReference {
    pub fn read(reference: &ObjectReference) -> Result<Self, FieldError> {
        let part = |field: &str, value: &Option<String>| {
            let value = value.clone().filter(|value| !value.is_empty());
            let path = format!("spec.remediationTemplate.{field}");
            value.ok_or_else(|| FieldError::new(path, "Required value"))
        };
        let kind = part("kind", &reference.kind)?;
        if kind.strip_suffix(SUFFIX).is_none_or(str::is_empty) {
            return Err(FieldError::new(
                "spec.remediationTemplate.kind",
                format!("Invalid value: {kind:?}: must end with {SUFFIX}"),
            ));
        }
        Ok(Self {
            api_version: part("apiVersion", &reference.api_version)?,
            name: part("name", &reference.name)?,
            kind,
        })
    }

    /// The kind of the requests.
    pub fn request_kind(&self) -> &str {
        self.kind.strip_suffix(SUFFIX).unwrap_or(&self.kind)
    }

    fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }
}

/// Makes the request for one machine; the error says what is wrong with the template.
pub fn new_request(
    reference: &TemplateReference,
    template: &Value,
    machine: &Machine,
) -> Result<Value, String> {
    let content =
        template.pointer("/spec/template").and_then(Value::as_object).ok_or_else(|| {
            format!("{} {}: spec.template: Required value", reference.kind, reference.name)
        })?;
    let mut request = content.clone();
    // Only what a template can mean is kept of its metadata.
    let of_template = |part: &str| {
        let known = content.get("metadata").and_then(|metadata| metadata.get(part));
        known.and_then(Value::as_object).cloned().unwrap_or_default()
    };
    let mut annotations = of_template("annotations");
    annotations.insert(annotation::CLONED_FROM_NAME.to_owned(), json!(reference.name));
    annotations.insert(annotation::CLONED_FROM_GROUP_KIND.to_owned(), json!(group_kind(reference)));
    let mut metadata = Map::new();
    let labels = of_template("labels");
    if !labels.is_empty() {
        metadata.insert("labels".to_owned(), Value::Object(labels));
    }
    metadata.insert("annotations".to_owned(), Value::Object(annotations));
    metadata.insert("name".to_owned(), json!(machine.metadata.name));
    metadata.insert("namespace".to_owned(), json!(machine.metadata.namespace));
    metadata.insert(
        "ownerReferences".to_owned(),
        json!([{
            "apiVersion": "machine.openshift.io/v1beta1",
            "kind": "Machine",
            "name": machine.metadata.name,
            "uid": machine.metadata.uid,
        }]),
    );
    request.insert("apiVersion".to_owned(), json!(reference.api_version));
    request.insert("kind".to_owned(), json!(reference.request_kind()));
    request.insert("metadata".to_owned(), Value::Object(metadata));
    Ok(Value::Object(request))
}

/// `Kind.group`, as Go prints it.
fn group_kind(reference: &TemplateReference) -> String {
    match reference.group() {
        "" => reference.kind.clone(),
        group => format!("{}.{group}", reference.kind),
    }
}
