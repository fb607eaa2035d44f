//! Rules that hold on every cloud: hooks, finalizers, selectors, and faults that are stored already.

use super::*;

fn deleting(overrides: &Value) -> Value {
    let base = json!({
        "metadata": {
            "deletionTimestamp": "2026-01-01T00:00:00Z",
            "finalizers": ["machine.machine.openshift.io"],
        },
        "spec": {"lifecycleHooks": {
            "preDrain": [{"name": "kept", "owner": "me"}, {"name": "drain", "owner": "etcd"}],
            "preTerminate": [{"name": "end", "owner": "storage"}],
        }},
    });
    with(with(machine(whole_spec()), &base), overrides)
}

#[test]
fn hooks_may_only_go_while_the_machine_goes() {
    let hooks = |pre_drain: Value, pre_terminate: Value| {
        deleting(
            &json!({"spec": {"lifecycleHooks": {"preDrain": pre_drain, "preTerminate": pre_terminate}}}),
        )
    };
    let old = deleting(&json!({}));
    let drain = "spec.lifecycleHooks.preDrain: Forbidden: pre-drain hooks are immutable when machine is marked for deletion: the following hooks are new or changed: ";
    let terminate = "spec.lifecycleHooks.preTerminate: Forbidden: pre-terminate hooks are immutable when machine is marked for deletion: the following hooks are new or changed: ";
    let rows: Vec<(Value, Vec<String>)> = vec![
        (old.clone(), vec![]),
        (hooks(json!([]), json!([])), vec![]),
        (deleting(&json!({"spec": {"lifecycleHooks": null}})), vec![]),
        (hooks(json!([{"name": "drain", "owner": "etcd"}]), json!(null)), vec![]),
        (
            hooks(json!([{"name": "drain", "owner": "somebody"}]), json!([])),
            vec![format!("{drain}drain (owner somebody)")],
        ),
        (
            hooks(
                json!([{"name": "new", "owner": "me"}]),
                json!([{"name": "end", "owner": "storage"}, {"name": "late", "owner": "me"}]),
            ),
            vec![format!("{drain}new (owner me)"), format!("{terminate}late (owner me)")],
        ),
    ];
    for (object, expected) in rows {
        assert_eq!(faults(&verdict(Kind::Machine, &object, Some(&old))), expected);
    }
}

#[test]
fn hooks_may_come_while_the_machine_lives() {
    let old = machine(whole_spec());
    let new = with(
        old.clone(),
        &json!({"spec": {"lifecycleHooks": {"preDrain": [{"name": "new", "owner": "me"}]}}}),
    );
    assert_eq!(verdict(Kind::Machine, &new, Some(&old)), Verdict::default());
}

#[test]
fn finalizers_may_go_whatever_is_wrong() {
    for kind in [Kind::Machine, Kind::MachineSet] {
        let old = json!({
            "metadata": {
                "deletionTimestamp": "2026-01-01T00:00:00Z",
                "finalizers": ["a", "b"], "managedFields": [{"manager": "x"}], "generation": 1,
            },
            "spec": {"lifecycleHooks": {"preDrain": "no list"}, "selector": 7},
        });
        for finalizers in [json!([]), json!(["b"]), Value::Null] {
            let mut new = old.clone();
            new["metadata"]["finalizers"] = finalizers;
            new["metadata"]["managedFields"] = json!([]);
            assert_eq!(verdict(kind, &new, Some(&old)), Verdict::default());
        }
    }
}

#[test]
fn finalizers_that_go_excuse_nothing_else() {
    let old = deleting(&json!({}));
    let new = deleting(&json!({
        "metadata": {"finalizers": null},
        "spec": {"providerSpec": {"value": {"ami": null}}},
    }));
    assert_eq!(verdict(Kind::Machine, &new, Some(&old)).faults.len(), 1);
    let living = machine(with(whole_spec(), &json!({"ami": null})));
    assert_eq!(verdict(Kind::Machine, &living, None).faults.len(), 1);
}

#[test]
fn the_selector_of_a_set_stays() {
    let old = machine_set(whole_spec());
    let expected = "spec.selector: Forbidden: selector is immutable";
    for selector in [
        json!({"matchLabels": {"set": "other"}}),
        json!({"matchExpressions": [{"key": "set", "operator": "In", "values": ["worker"]}]}),
        json!({}),
    ] {
        let mut new = old.clone();
        new["spec"]["selector"] = selector;
        let found = faults(&verdict(Kind::MachineSet, &new, Some(&old)));
        assert!(found.iter().any(|fault| fault == expected), "{found:?}");
    }
    let mut same = old.clone();
    same["spec"]["selector"]["matchExpressions"] = json!([]);
    same["spec"]["replicas"] = json!(5);
    assert_eq!(verdict(Kind::MachineSet, &same, Some(&old)), Verdict::default());
}

#[test]
fn a_set_must_be_one_that_its_controller_can_keep() {
    let rows = [
        (
            json!({"template": {"metadata": {"labels": {"set": "other"}}}}),
            "spec.template.metadata.labels: Invalid value: `selector` does not match template `labels`: set=worker is wanted",
        ),
        (
            json!({"selector": {"matchLabels": null}}),
            "spec.selector: Required value: an empty selector matches nothing",
        ),
        (
            json!({"deletePolicy": "Cheapest"}),
            "spec.deletePolicy: Unsupported value: \"Cheapest\": supported values: \"Random\", \"Newest\", \"Oldest\"",
        ),
        (json!({"replicas": -1}), "spec.replicas: Invalid value: -1: must be zero or more"),
        (
            json!({"replicas": "two"}),
            "spec.replicas: Invalid value: \"two\": must be a whole number of 32 bits",
        ),
        (
            json!({"selector": {"matchLabels": {"set": 1}}}),
            "spec.selector.matchLabels[set]: Invalid value: 1: must be a string",
        ),
    ];
    for (overrides, expected) in rows {
        let set = with(machine_set(whole_spec()), &json!({"spec": overrides}));
        assert_eq!(faults(&verdict(Kind::MachineSet, &set, None)), [expected]);
    }
    let unreadable = json!({"matchExpressions": [{"key": "a", "operator": "Like"}]});
    let set = with(machine_set(whole_spec()), &json!({"spec": {"selector": unreadable}}));
    let found = faults(&verdict(Kind::MachineSet, &set, None));
    assert!(
        found.len() == 1
            && found[0].starts_with("spec.selector.matchExpressions[0].operator: Invalid value: "),
        "{found:?}"
    );
    for policy in ["Random", "Newest", "Oldest", ""] {
        let set = with(machine_set(whole_spec()), &json!({"spec": {"deletePolicy": policy}}));
        assert_eq!(verdict(Kind::MachineSet, &set, None), Verdict::default());
    }
}

#[test]
fn removing_what_is_required_is_refused() {
    for field in ["ami", "instanceType", "placement", "userDataSecret", "credentialsSecret"] {
        let spec = with(whole_spec(), &json!({field: null}));
        let (old, new) = (machine(whole_spec()), machine(spec.clone()));
        assert_eq!(verdict(Kind::Machine, &new, Some(&old)).faults.len(), 1, "{field}");
        let (old, new) = (machine_set(whole_spec()), machine_set(spec));
        assert_eq!(verdict(Kind::MachineSet, &new, Some(&old)).faults.len(), 1, "{field}");
    }
}

#[test]
fn a_fault_that_is_stored_already_is_a_warning() {
    let old = machine(with(whole_spec(), &json!({"ami": null})));
    let new = with(old.clone(), &json!({"metadata": {"annotations": {"a": "b"}}}));
    let verdict_of = |new: &Value| verdict(Kind::Machine, new, Some(&old));
    assert_eq!(faults(&verdict_of(&new)), Vec::<String>::new());
    assert_eq!(
        verdict_of(&new).warnings,
        [
            "providerSpec.ami: Required value: expected providerSpec.ami.id to be populated (the stored object has this fault already)"
        ]
    );
    let worse = machine(with(whole_spec(), &json!({"ami": null, "instanceType": null})));
    assert_eq!(
        faults(&verdict_of(&worse)),
        [
            "providerSpec.instanceType: Required value: expected providerSpec.instanceType to be populated"
        ]
    );
    assert_eq!(verdict_of(&machine(whole_spec())), Verdict::default());
}
