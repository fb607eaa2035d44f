//! What a providerSpec for AWS is given.

use super::*;

/// Only what a user must say (W-1).
fn minimal_spec() -> Value {
    with(
        whole_spec(),
        &json!({
            "instanceType": null, "placement": {"region": null},
            "userDataSecret": null, "credentialsSecret": null,
        }),
    )
}

fn mutated(object: &Value, context: &Context) -> Value {
    let defaulted = mutate(Kind::Machine, object, context).unwrap();
    assert_eq!(patched(object.clone(), &defaulted.patch), defaulted.object);
    defaulted.object
}

fn spec_of(machine: &Value) -> &Value {
    &machine["spec"]["providerSpec"]["value"]
}

#[test]
fn a_minimal_machine_gets_every_default_and_is_admitted() {
    let defaulted = mutated(&machine(minimal_spec()), &openshift());
    let expected = with(whole_spec(), &json!({"instanceType": "m5.large"}));
    assert_eq!(spec_of(&defaulted), &expected);
    assert_eq!(verdict(Kind::Machine, &defaulted, None), Verdict::default());
}

#[test]
fn a_minimal_set_gets_every_default_in_its_template_and_no_label() {
    let set = machine_set(minimal_spec());
    let defaulted = mutate(Kind::MachineSet, &set, &openshift()).unwrap();
    assert_eq!(patched(set, &defaulted.patch), defaulted.object);
    let expected = machine_set(with(whole_spec(), &json!({"instanceType": "m5.large"})));
    assert_eq!(defaulted.object, expected);
    assert_eq!(verdict(Kind::MachineSet, &defaulted.object, None), Verdict::default());
}

#[test]
fn a_whole_machine_is_left_as_it_is() {
    let machine = machine(whole_spec());
    assert_eq!(mutate(Kind::Machine, &machine, &openshift()).unwrap().patch, []);
}

#[test]
fn the_instance_type_follows_the_architecture() {
    for (name, expected) in [
        ("x86_64", "m5.large"),
        ("amd64", "m5.large"),
        ("aarch64", "m6g.large"),
        ("arm64", "m6g.large"),
        ("s390x", "m5.large"),
    ] {
        let context = Context { architecture: Architecture::of_name(name), ..openshift() };
        let defaulted = mutated(&machine(minimal_spec()), &context);
        assert_eq!(spec_of(&defaulted)["instanceType"], expected, "{name}");
    }
}

#[test]
fn empty_texts_are_filled_in_and_the_rest_is_kept() {
    let spec = with(
        whole_spec(),
        &json!({
            "instanceType": "", "placement": {"region": ""},
            "userDataSecret": {"name": ""}, "credentialsSecret": {"name": ""}, "typo": [1],
        }),
    );
    let defaulted = mutated(&machine(spec), &openshift());
    let expected = with(
        whole_spec(),
        &json!({"instanceType": "m5.large", "credentialsSecret": {"name": ""}, "typo": [1]}),
    );
    assert_eq!(spec_of(&defaulted), &expected);
}

#[test]
fn the_cluster_label_is_set_where_absent_and_never_replaced() {
    let key = "machine.openshift.io/cluster-api-cluster";
    for (labels, expected) in [
        (Value::Null, "cluster-x7k2p"),
        (json!({}), "cluster-x7k2p"),
        (json!({key: "another"}), "another"),
        (json!({key: ""}), ""),
    ] {
        let mut machine = machine(whole_spec());
        machine["metadata"]["labels"] = labels.clone();
        assert_eq!(
            mutated(&machine, &openshift())["metadata"]["labels"][key],
            expected,
            "{labels}"
        );
        machine["metadata"].as_object_mut().unwrap().remove("labels");
        assert_eq!(mutated(&machine, &openshift())["metadata"]["labels"][key], "cluster-x7k2p");
    }
}

#[test]
fn what_plain_kubernetes_does_not_know_is_not_filled_in() {
    let mut machine = machine(minimal_spec());
    machine["metadata"]["labels"] = json!({});
    let defaulted = mutated(&machine, &Context::default());
    assert_eq!(defaulted["metadata"]["labels"], json!({}));
    assert_eq!(spec_of(&defaulted)["placement"].get("region"), None);
    assert_eq!(spec_of(&defaulted)["userDataSecret"]["name"], "worker-user-data");
}

#[test]
fn what_cannot_be_completed_is_refused() {
    for (object, expected) in [
        (machine(Value::Null), "providerSpec.value: Required value: a value must be provided"),
        (machine(json!("text")), "providerSpec.value: Invalid value: \"text\": must be an object"),
        (
            machine(json!({"placement": "here"})),
            "providerSpec.placement: Invalid value: \"here\": must be an object",
        ),
        (json!({"spec": 7}), "spec: Invalid value: 7: must be an object"),
        (
            json!({"metadata": {"labels": {"a": 1}}}),
            "metadata.labels[a]: Invalid value: 1: must be a string",
        ),
    ] {
        let faults = mutate(Kind::Machine, &object, &openshift()).unwrap_err();
        assert_eq!(fault::message(&faults), expected);
    }
    let set = machine_set(Value::Null);
    let faults = mutate(Kind::MachineSet, &set, &openshift()).unwrap_err();
    assert_eq!(
        fault::message(&faults),
        "providerSpec.value: Required value: a value must be provided"
    );
}
