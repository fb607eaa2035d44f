//! Does a set that is deleted take its Machines with it, and stay until they are gone?

use super::*;

fn deleted_set() -> Value {
    let mut gone = set(2);
    gone["metadata"]["deletionTimestamp"] = json!("2026-01-01T11:59:00Z");
    gone
}

#[test]
fn all_machines_go_and_the_set_waits_for_them() {
    let decision = World::new(deleted_set(), vec![machine("a"), going(machine("b"))]).decide();
    assert_eq!(deleted(&decision), ["a"]);
    assert_eq!(decision.actions.len(), 1);
    let (status, reason, message) = said(&decision, "Deleting");
    assert_eq!((status.as_str(), reason.as_str()), ("True", "Deleting"));
    assert_eq!(message, "Deleting 2 Machines");
}

/// A Machine that matches but is not the set's own is not taken along.
#[test]
fn what_was_never_adopted_stays() {
    let mut orphan = machine("a");
    orphan["metadata"]["ownerReferences"] = json!([]);
    let decision = World::new(deleted_set(), vec![orphan]).decide();
    assert_eq!(deleted(&decision), [""; 0]);
}

#[test]
fn the_finalizer_goes_last() {
    let decision = World::new(deleted_set(), vec![]).decide();
    let [Action::RemoveFinalizer(patch)] = decision.actions.as_slice() else {
        panic!("{decision:?}")
    };
    assert_eq!(patch["metadata"]["finalizers"], json!([]));
}

/// Machines that exist and cannot be read are not gone (finalizer dropped after a list error).
#[test]
fn the_finalizer_stays_while_a_machine_cannot_be_read() {
    let mut world = World::new(deleted_set(), vec![]);
    world.unreadable = 1;
    assert_eq!(world.decide().actions, []);
}

#[test]
fn objects_of_machines_that_were_never_made_go_too() {
    let kind = GroupKind::new("infrastructure.cluster.x-k8s.io", "FooMachine");
    let held = json!({ "metadata": {
        "name": "left", "uid": "u", "resourceVersion": "1",
        "ownerReferences": [{
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineSet", "name": "ms", "uid": "uid-ms",
        }],
    } });
    let mut world = World::new(set(0), vec![]);
    world.provided = vec![(kind.clone(), held.clone())];
    let decision = world.decide();
    let [Action::DeleteLeftover { object, .. }] = decision.actions.as_slice() else {
        panic!("{decision:?}")
    };
    assert_eq!(object.name, "left");
    // One that is about to be used again is left alone.
    world.names = vec!["left".to_owned()];
    assert_eq!(world.decide().actions, []);
    // One that a Machine controls is the Machine's.
    let mut taken = held;
    taken["metadata"]["ownerReferences"].as_array_mut().unwrap().push(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": "m", "uid": "um",
        "controller": true,
    }));
    world.names = vec![];
    world.provided = vec![(kind, taken)];
    assert_eq!(world.decide().actions, []);
}
