//! What does a MaintenancePolicy say that a person wrote, and if it cannot be used, which field is wrong?
//!
//! The API server drops a field that it does not know, and a window with a typing error would be no
//! window: here an unknown field is an error.

use machinist_api::MaintenancePolicy;
use serde_json::Value;

use super::read;

/// One policy, or everything that is wrong with it.
pub fn read_manifest(object: &Value) -> Result<MaintenancePolicy, Vec<String>> {
    let text = |pointer: &str| {
        object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let (version, kind, name) = (text("/apiVersion"), text("/kind"), text("/metadata/name"));
    if kind != "MaintenancePolicy" || !version.starts_with("machinist.dev/") {
        let found = if kind.is_empty() { "an object without a kind" } else { &kind };
        return Err(vec![format!(
            "kind: Unsupported value: {found}: only MaintenancePolicy of machinist.dev/v1alpha1 is \
             tried"
        )]);
    }
    if name.is_empty() {
        return Err(vec!["metadata.name: Required value".to_owned()]);
    }
    let of = |problem: String| format!("maintenancepolicy/{name}: {problem}");
    let parsed: MaintenancePolicy = serde_path_to_error::deserialize(object)
        .map_err(|error| vec![of(format!("{}: Invalid value: {}", error.path(), error.inner()))])?;
    let mut problems = Vec::new();
    if let (Some(given), Ok(known)) = (object.get("spec"), serde_json::to_value(&parsed.spec)) {
        unknown_fields("spec", given, &known, &mut problems);
    }
    if let Err(faults) = read(&parsed) {
        problems.extend(faults.iter().map(ToString::to_string));
    }
    if problems.is_empty() { Ok(parsed) } else { Err(problems.into_iter().map(of).collect()) }
}

/// The fields that reading and writing lost: those that no version knows.
fn unknown_fields(path: &str, given: &Value, known: &Value, problems: &mut Vec<String>) {
    match (given, known) {
        (Value::Object(given), Value::Object(known)) => {
            for (key, value) in given {
                let path = format!("{path}.{key}");
                match known.get(key) {
                    Some(known) => unknown_fields(&path, value, known, problems),
                    None if is_empty(value) => {}
                    None => problems.push(format!("{path}: unknown field")),
                }
            }
        }
        (Value::Array(given), Value::Array(known)) => {
            for (index, (given, known)) in given.iter().zip(known).enumerate() {
                unknown_fields(&format!("{path}[{index}]"), given, known, problems);
            }
        }
        _ => {}
    }
}

/// What is left out when it is written again.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
