//! Which labels a LabelSelector matches, and how it reads as a string.

mod syntax;

pub(crate) use self::syntax::{check_key, check_value, is_qualified_name, is_subdomain};

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::{Selector, SelectorExt};

use crate::decision::FieldError;

/// A selector that was found valid and is not empty.
#[derive(Clone, Debug)]
pub struct MachineSelector(Selector);

impl MachineSelector {
    /// Reads a selector; the error names the field. A custom resource's selector has passed no check of
    /// the API server.
    pub fn read(path: &str, selector: &LabelSelector) -> Result<Self, FieldError> {
        syntax::check(path, selector)?;
        let parsed = Selector::try_from(selector.clone())
            .map_err(|error| FieldError::new(path, format!("Invalid value: {error}")))?;
        if parsed.selects_all() {
            return Err(FieldError::new(path, "Required value: an empty selector matches nothing"));
        }
        Ok(Self(parsed))
    }

    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.0.matches(labels)
    }

    /// The form that autoscalers read: requirements sorted by key, as Go prints them.
    pub fn canonical(&self) -> String {
        let mut requirements: Vec<String> =
            self.0.clone().into_iter().map(|expression| expression.to_string()).collect();
        // By key as in Go, and then by the whole, where Go leaves the order to chance.
        requirements
            .sort_by(|left, right| key_of(left).cmp(key_of(right)).then_with(|| left.cmp(right)));
        requirements.join(",")
    }
}

/// Whether a selector of another kind of object (a disruption budget) matches. A missing selector
/// matches nothing, an empty one everything, an unreadable one nothing.
pub fn matches(selector: Option<&LabelSelector>, labels: &BTreeMap<String, String>) -> bool {
    selector
        .and_then(|selector| Selector::try_from(selector.clone()).ok())
        .is_some_and(|selector| selector.matches(labels))
}

fn key_of(requirement: &str) -> &str {
    let requirement = requirement.trim_start_matches('!');
    requirement.split([' ', '=', '!']).next().unwrap_or(requirement)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(selector: serde_json::Value) -> Result<MachineSelector, FieldError> {
        MachineSelector::read("spec.selector", &serde_json::from_value(selector).unwrap())
    }

    #[test]
    fn canonical_form_is_sorted_by_key() {
        let selector = read(json!({
            "matchLabels": {"zone": "a", "app": "x"},
            "matchExpressions": [
                {"key": "gone", "operator": "DoesNotExist"},
                {"key": "tier", "operator": "In", "values": ["two", "one"]},
            ],
        }))
        .unwrap();
        assert_eq!(selector.canonical(), "app=x,!gone,tier in (one,two),zone=a");
    }

    /// What `labels.Selector.String()` of Kubernetes gives for the same selectors.
    #[test]
    fn canonical_forms_are_those_of_go() {
        let cases = [
            (json!({"matchLabels": {"a": ""}}), "a="),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "In", "values": ["x"]}]}),
                "a in (x)",
            ),
            (
                json!({"matchExpressions": [
                    {"key": "b/c", "operator": "NotIn", "values": ["y", "x", "y"]},
                    {"key": "B", "operator": "Exists"},
                ]}),
                "B,b/c notin (x,y)",
            ),
            (
                json!({"matchLabels": {"a": "x"}, "matchExpressions": [
                    {"key": "a", "operator": "Exists"},
                    {"key": "a", "operator": "DoesNotExist"},
                ]}),
                "!a,a,a=x",
            ),
        ];
        for (selector, expected) in cases {
            assert_eq!(read(selector).unwrap().canonical(), expected);
        }
    }

    #[test]
    fn an_empty_selector_is_refused_by_name() {
        let error = read(json!({})).unwrap_err();
        assert!(error.to_string().starts_with("spec.selector: "), "{error}");
    }

    #[test]
    fn an_unknown_operator_is_refused_by_name() {
        let error =
            read(json!({"matchExpressions": [{"key": "a", "operator": "Like"}]})).unwrap_err();
        assert!(
            error.to_string().starts_with("spec.selector.matchExpressions[0].operator: "),
            "{error}"
        );
    }
}
