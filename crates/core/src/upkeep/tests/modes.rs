//! Whose machines they are.

use machinist_api::openshift_config::Infrastructure;
use serde_json::{Value, json};

use super::super::mode::{Mode, mode};

#[test]
fn only_a_platform_with_a_provider_of_ours_is_managed() {
    let of = |status: Value| -> Infrastructure {
        let object = json!({ "metadata": { "name": "cluster" }, "spec": {}, "status": status });
        serde_json::from_value(object).unwrap()
    };
    assert_eq!(mode(None), Mode::Managed, "plain Kubernetes");
    let table = [
        (json!({ "platformStatus": { "type": "AWS" } }), Mode::Managed),
        (json!({ "platformStatus": { "aws": { "region": "r" } } }), Mode::Managed),
        (json!({ "platformStatus": { "type": "None" } }), Mode::NoOp),
        (json!({ "platformStatus": { "type": "External" } }), Mode::NoOp),
        (json!({ "platformStatus": { "type": "Azure" } }), Mode::NoOp),
        (json!({ "platformStatus": { "type": "NeverHeardOf" } }), Mode::NoOp),
        (json!({ "platformStatus": {} }), Mode::NoOp),
        (json!({}), Mode::NoOp),
    ];
    for (status, expected) in table {
        assert_eq!(mode(Some(&of(status.clone()))), expected, "{status}");
    }
}
