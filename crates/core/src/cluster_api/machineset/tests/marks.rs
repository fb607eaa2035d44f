//! Do changes of the template reach what is there already, and only those that may?

use super::*;

fn patch_of(set: Value, machine: Value) -> Option<Value> {
    propagate::to_machine(&read::<MachineSet>(set), &read::<Machine>(machine))
}

#[test]
fn what_may_change_in_place_is_carried_over_and_the_rest_is_not() {
    let mut changed = set(1);
    let template = &mut changed["spec"]["template"];
    template["metadata"]["labels"]["new"] = json!("x");
    template["metadata"]["annotations"] = json!({ "note": "y" });
    template["spec"]["minReadySeconds"] = json!(5);
    template["spec"]["deletion"] = json!({ "nodeDrainTimeoutSeconds": 60 });
    template["spec"]["version"] = json!("v1.35.0");
    template["spec"]["failureDomain"] = json!("elsewhere");
    template["spec"]["infrastructureRef"]["name"] = json!("other");
    let patch = patch_of(changed, machine("a")).unwrap();
    assert_eq!(
        patch,
        json!({
            "metadata": { "labels": { "new": "x" }, "annotations": { "note": "y" } },
            "spec": { "minReadySeconds": 5, "deletion": { "nodeDrainTimeoutSeconds": 60 } },
        })
    );
}

#[test]
fn a_machine_that_is_going_gets_its_timeouts_only() {
    let mut changed = set(1);
    changed["spec"]["template"]["metadata"]["labels"]["new"] = json!("x");
    changed["spec"]["template"]["spec"]["deletion"] = json!({ "nodeDrainTimeoutSeconds": 60 });
    let patch = patch_of(changed, going(machine("a"))).unwrap();
    assert_eq!(patch, json!({ "spec": { "deletion": { "nodeDrainTimeoutSeconds": 60 } } }));
}

/// The default that admission writes is no difference, or it would be taken away for ever.
#[test]
fn the_default_of_admission_is_left_alone() {
    let mut defaulted = machine("a");
    defaulted["spec"]["deletion"] = json!({ "nodeDeletionTimeoutSeconds": 10 });
    assert_eq!(patch_of(set(1), defaulted), None);
}

#[test]
fn foreign_marks_stay_and_what_the_template_lost_goes() {
    let mut marked = machine("a");
    marked["metadata"]["labels"]["mine"] = json!("1");
    marked["metadata"]["labels"]["old"] = json!("2");
    marked["metadata"]["annotations"] = json!({ "gone": "3", "kept": "4" });
    let mut lost = set(1);
    lost["metadata"]["annotations"][propagate::GIVEN] =
        json!("labels=cluster.x-k8s.io/cluster-name,old,pool;annotations=gone");
    let patch = patch_of(lost, marked).unwrap();
    assert_eq!(
        patch,
        json!({ "metadata": { "labels": { "old": null }, "annotations": { "gone": null } } })
    );
}

/// What is to be taken away one day is remembered before it is given.
#[test]
fn new_keys_are_remembered_before_they_are_given() {
    let mut changed = set(1);
    changed["spec"]["template"]["metadata"]["labels"]["new"] = json!("x");
    let decision = World::new(changed, vec![machine("a")]).decide();
    let [Action::Amend(patch)] = decision.actions.as_slice() else { panic!("{decision:?}") };
    assert_eq!(
        patch["metadata"]["annotations"][propagate::GIVEN],
        "labels=cluster.x-k8s.io/cluster-name,new,pool;annotations="
    );
}

#[test]
fn objects_of_providers_get_the_marks_too() {
    let kind = GroupKind::new("infrastructure.cluster.x-k8s.io", "FooMachine");
    let bare = json!({ "metadata": { "name": "a", "uid": "u", "resourceVersion": "1" } });
    let mut world = World::new(set(1), vec![machine("a")]);
    world.provided = vec![(kind, bare)];
    let decision = world.decide();
    let [Action::AmendProvided { patch, .. }] = decision.actions.as_slice() else {
        panic!("{decision:?}")
    };
    assert_eq!(patch["metadata"]["labels"]["pool"], "a");
}

#[test]
fn an_old_owner_reference_is_written_anew() {
    let mut old = machine("a");
    old["metadata"]["ownerReferences"][0]["apiVersion"] = json!("cluster.x-k8s.io/v1beta1");
    let patch = patch_of(set(1), old).unwrap();
    let owners = patch["metadata"]["ownerReferences"].as_array().unwrap();
    assert_eq!((owners.len(), &owners[0]["apiVersion"]), (1, &json!("cluster.x-k8s.io/v1beta2")));
}
