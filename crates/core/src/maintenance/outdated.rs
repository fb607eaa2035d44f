//! In what a Machine differs from its pool's template.
//!
//! A field that the template leaves out may have been filled in when the Machine was made, so it is
//! no difference.

use machinist_api::{Machine, MachineSet};
use serde_json::Value;

/// The paths that differ, sorted; at most [`NAMED_MAX`] of them.
pub fn differences(machine: &Machine, set: &MachineSet) -> Vec<String> {
    let template = &set.spec.template.spec;
    let mut differing = Vec::new();
    match (&template.provider_spec.value, &machine.spec.provider_spec.value) {
        (Some(wanted), Some(actual)) if wanted.as_json() != actual.as_json() => {
            match (wanted.parse::<Value>(), actual.parse::<Value>()) {
                (Ok(wanted), Ok(actual)) => {
                    compare("providerSpec", &wanted, &actual, &mut differing);
                }
                _ => differing.push("providerSpec".to_owned()),
            }
        }
        (Some(_), Some(_)) | (None, _) => {}
        (Some(_), None) => differing.push("providerSpec".to_owned()),
    }
    let taints = template.taints.as_deref().unwrap_or_default();
    let has = |taint| machine.spec.taints.as_deref().unwrap_or_default().contains(taint);
    if !taints.iter().all(has) {
        differing.push("taints".to_owned());
    }
    if let Some(metadata) = &template.metadata {
        let actual = machine.spec.metadata.as_ref();
        let has = |(key, value): (&String, &String)| {
            actual.and_then(|metadata| metadata.labels.get(key)) == Some(value)
        };
        if !metadata.labels.iter().all(has) {
            differing.push("metadata.labels".to_owned());
        }
    }
    differing.sort();
    differing.truncate(NAMED_MAX);
    differing
}

/// More would not make anything clearer.
pub const NAMED_MAX: usize = 10;

fn compare(path: &str, wanted: &Value, actual: &Value, differing: &mut Vec<String>) {
    match (wanted, actual) {
        (Value::Object(wanted), Value::Object(actual)) => {
            for (key, value) in wanted {
                let path = format!("{path}.{key}");
                match actual.get(key) {
                    Some(actual) => compare(&path, value, actual, differing),
                    None if is_empty(value) => {}
                    None => differing.push(path),
                }
            }
        }
        _ if wanted == actual => {}
        _ if is_empty(wanted) && is_empty(actual) => {}
        _ => differing.push(path.to_owned()),
    }
}

/// Absent, null and empty mean the same in a providerSpec.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_empty),
        Value::Bool(_) | Value::Number(_) => false,
    }
}
