//! Is a LabelSelector written as Kubernetes wants it?

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use crate::decision::FieldError;

const NAME_MAX: usize = 63;
const PREFIX_MAX: usize = 253;

pub(super) fn check(path: &str, selector: &LabelSelector) -> Result<(), FieldError> {
    for (key, value) in selector.match_labels.iter().flatten() {
        let path = format!("{path}.matchLabels");
        check_key(&path, key)?;
        check_value(&path, value)?;
    }
    let requirements = selector.match_expressions.iter().flatten().enumerate();
    for (index, requirement) in requirements {
        check_requirement(&format!("{path}.matchExpressions[{index}]"), requirement)?;
    }
    Ok(())
}

fn check_requirement(path: &str, requirement: &LabelSelectorRequirement) -> Result<(), FieldError> {
    check_key(&format!("{path}.key"), &requirement.key)?;
    let path_of_values = format!("{path}.values");
    let values = requirement.values.as_deref().unwrap_or_default();
    match requirement.operator.as_str() {
        "In" | "NotIn" if values.is_empty() => Err(FieldError::new(
            path_of_values,
            "Required value: must be specified when `operator` is 'In' or 'NotIn'",
        )),
        "In" | "NotIn" => values.iter().try_for_each(|value| check_value(&path_of_values, value)),
        "Exists" | "DoesNotExist" if !values.is_empty() => Err(FieldError::new(
            path_of_values,
            "Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        )),
        "Exists" | "DoesNotExist" => Ok(()),
        other => Err(FieldError::new(
            format!("{path}.operator"),
            format!("Invalid value: {other:?}: not a valid selector operator"),
        )),
    }
}

pub(crate) fn check_key(path: &str, key: &str) -> Result<(), FieldError> {
    is_qualified_name(key).then_some(()).ok_or_else(|| {
        FieldError::new(path, format!("Invalid value: {key:?}: must be a valid label key"))
    })
}

pub(crate) fn check_value(path: &str, value: &str) -> Result<(), FieldError> {
    let is_right = value.is_empty() || is_name(value);
    is_right.then_some(()).ok_or_else(|| {
        FieldError::new(path, format!("Invalid value: {value:?}: must be a valid label value"))
    })
}

/// A name, after a DNS subdomain and a slash or alone.
pub(crate) fn is_qualified_name(key: &str) -> bool {
    let (prefix, name) =
        key.rsplit_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    is_name(name) && prefix.is_none_or(is_subdomain)
}

fn is_name(name: &str) -> bool {
    let is_edge = |byte: &u8| byte.is_ascii_alphanumeric();
    let is_inner = |byte: &u8| is_edge(byte) || matches!(byte, b'-' | b'_' | b'.');
    let bytes = name.as_bytes();
    name.len() <= NAME_MAX
        && bytes.first().is_some_and(is_edge)
        && bytes.last().is_some_and(is_edge)
        && bytes.iter().all(is_inner)
}

/// Names of objects are such as well.
pub(crate) fn is_subdomain(prefix: &str) -> bool {
    let is_edge = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_label = |label: &str| {
        let bytes = label.as_bytes();
        bytes.first().is_some_and(is_edge)
            && bytes.last().is_some_and(is_edge)
            && bytes.iter().all(|byte| is_edge(byte) || *byte == b'-')
    };
    prefix.len() <= PREFIX_MAX && prefix.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn problem(selector: Value) -> Option<String> {
        check("s", &serde_json::from_value(selector).unwrap()).err().map(|error| error.to_string())
    }

    #[test]
    fn each_fault_names_its_field() {
        let one = |key: &str, operator: &str, values: Value| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
        let long = "a".repeat(64);
        let cases = [
            (json!({"matchLabels": {"": "x"}}), Some("s.matchLabels: Invalid value: \"\"")),
            (json!({"matchLabels": {"a b": "x"}}), Some("s.matchLabels: Invalid value: \"a b\"")),
            (json!({"matchLabels": {"/a": "x"}}), Some("s.matchLabels: Invalid value: \"/a\"")),
            (json!({"matchLabels": {"A.b/a": "x"}}), Some("s.matchLabels: Invalid value")),
            (json!({"matchLabels": {"a": "-x"}}), Some("s.matchLabels: Invalid value: \"-x\"")),
            (json!({"matchLabels": {"a": long}}), Some("s.matchLabels: Invalid value")),
            (one("a", "In", json!([])), Some("s.matchExpressions[0].values: Required value")),
            (one("a", "NotIn", Value::Null), Some("s.matchExpressions[0].values: Required value")),
            (one("a", "In", json!(["x,y"])), Some("s.matchExpressions[0].values: Invalid value")),
            (one("a", "Exists", json!(["x"])), Some("s.matchExpressions[0].values: Forbidden")),
            (one("a", "Like", json!(["x"])), Some("s.matchExpressions[0].operator: Invalid value")),
            (one("a!", "Exists", json!([])), Some("s.matchExpressions[0].key: Invalid value")),
            (one("a.b-1/C_d.e", "NotIn", json!(["", "X"])), None),
            (one("a", "DoesNotExist", Value::Null), None),
            (json!({}), None),
        ];
        for (selector, expected) in cases {
            let found = problem(selector.clone());
            match expected {
                Some(start) => {
                    assert!(
                        found.as_ref().is_some_and(|found| found.starts_with(start)),
                        "{found:?}"
                    );
                }
                None => assert_eq!(found, None, "{selector}"),
            }
        }
    }
}
