//! Are Machines that differ from their pool's template found, and only those?

use machinist_api::{Machine, MachineSet};

use super::*;
use crate::maintenance::outdated::differences;

fn differing(template: Value, machine: Value) -> Vec<String> {
    let set: MachineSet = serde_json::from_value(json!({
        "metadata": { "name": "a" },
        "spec": { "template": { "spec": template } },
    }))
    .unwrap();
    let machine: Machine =
        serde_json::from_value(json!({ "metadata": { "name": "a-0" }, "spec": machine })).unwrap();
    differences(&machine, &set)
}

fn provider(value: Value) -> Value {
    json!({ "providerSpec": { "value": value } })
}

#[test]
fn what_was_filled_in_is_no_difference() {
    let template = json!({ "ami": { "id": "ami-1" }, "subnet": {}, "tags": [] });
    let machine = json!({
        "ami": { "id": "ami-1" },
        "instanceType": "m5.large",
        "credentialsSecret": { "name": "x" },
    });
    assert_eq!(differing(provider(template), provider(machine)), Vec::<String>::new());
}

#[test]
fn what_differs_is_named() {
    let template = json!({
        "ami": { "id": "ami-2" },
        "instanceType": "m6i.large",
        "securityGroups": [{ "id": "sg-1" }],
    });
    let machine = json!({ "ami": { "id": "ami-1" }, "securityGroups": [{ "id": "sg-0" }] });
    assert_eq!(
        differing(provider(template), provider(machine)),
        ["providerSpec.ami.id", "providerSpec.instanceType", "providerSpec.securityGroups"]
    );
}

#[test]
fn taints_and_labels_of_the_node_count() {
    let template = json!({
        "metadata": { "labels": { "tier": "gold" } },
        "taints": [{ "key": "a", "effect": "NoSchedule" }],
    });
    assert_eq!(differing(template.clone(), json!({})), ["metadata.labels", "taints"]);
    assert_eq!(differing(template.clone(), template), Vec::<String>::new());
}
