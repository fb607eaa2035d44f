//! Are exactly the missing Machines made, of the right shape, and none when something is in the way?

use super::*;

#[test]
fn the_missing_machines_are_made_with_their_objects() {
    let decision = World::new(set(3), vec![machine("a")]).decide();
    assert_eq!(created(&decision), ["ms-00000", "ms-00001"]);
    let Action::Create(new) = &decision.actions[0] else { panic!("{decision:?}") };
    let made = &new.machine;
    assert_eq!(made.metadata.finalizers.as_deref().unwrap(), ["machine.cluster.x-k8s.io"]);
    let labels = made.metadata.labels.as_ref().unwrap();
    assert_eq!(labels["cluster.x-k8s.io/set-name"], "ms");
    assert_eq!(labels["cluster.x-k8s.io/cluster-name"], "c1");
    assert_eq!(made.metadata.owner_references.as_ref().unwrap()[0].controller, Some(true));
    assert_eq!(made.spec.infrastructure_ref.kind, "FooMachine");
    assert_eq!(made.spec.infrastructure_ref.name, "ms-00000");
    assert_eq!(made.spec.bootstrap.data_secret_name.as_deref(), Some("data"));
    let [part] = new.parts.as_slice() else { panic!("{new:?}") };
    assert_eq!(part.object["kind"], "FooMachine");
    assert_eq!(part.object["spec"]["size"], 3);
    let metadata = &part.object["metadata"];
    assert_eq!(metadata["name"], "ms-00000");
    assert_eq!(metadata["annotations"]["cluster.x-k8s.io/cloned-from-name"], "foo");
    assert_eq!(
        metadata["annotations"]["cluster.x-k8s.io/cloned-from-groupkind"],
        "FooMachineTemplate.infrastructure.cluster.x-k8s.io"
    );
    assert_eq!(metadata["ownerReferences"][0]["kind"], "MachineSet");
    assert_eq!(
        metadata["ownerReferences"][0]["controller"],
        Value::Null,
        "providers wait for the Machine"
    );
    let (status, reason, message) = said(&decision, "ScalingUp");
    assert_eq!((status.as_str(), reason.as_str()), ("True", "ScalingUp"));
    assert_eq!(message, "Scaling up from 1 to 3 replicas");
}

#[test]
fn fields_of_a_later_version_reach_the_machine() {
    let mut later = set(1);
    later["spec"]["template"]["spec"]["newField"] = json!({ "deep": [1] });
    let decision = World::new(later, vec![]).decide();
    let Action::Create(new) = &decision.actions[0] else { panic!("{decision:?}") };
    let made = serde_json::to_value(&new.machine).unwrap();
    assert_eq!(made["spec"]["newField"], json!({ "deep": [1] }));
}

/// A Machine whose labels were changed is still an instance: its owner reference counts, so that no second is made in its
/// place for ever (Cluster API's issue 14217).
#[test]
fn runaway_creation_is_impossible_when_labels_drift() {
    let mut drifted = machine("a");
    drifted["metadata"]["labels"] = json!({});
    let decision = World::new(set(1), vec![drifted]).decide();
    assert_eq!((created(&decision).len(), deleted(&decision).len()), (0, 0));
    let [Action::AmendMachine { patch, .. }] = decision.actions.as_slice() else {
        panic!("{decision:?}")
    };
    assert_eq!(patch["metadata"]["labels"]["pool"], "a", "the labels come back");
}

#[test]
fn machines_that_cannot_be_read_fill_their_places() {
    let mut world = World::new(set(2), vec![machine("a")]);
    world.unreadable = 1;
    assert_eq!(created(&world.decide()).len(), 0);
}

/// Machines of a restored backup have lost their owner; they are taken back, and none is made in their place (Cluster
/// API's issue 9629).
#[test]
fn after_a_restore_machines_are_adopted_and_not_made_again() {
    let mut orphan = machine("a");
    orphan["metadata"]["ownerReferences"] = json!([]);
    let decision = World::new(set(1), vec![orphan]).decide();
    let [Action::Adopt { machine, patch }] = decision.actions.as_slice() else {
        panic!("{decision:?}")
    };
    assert_eq!(machine.name, "a");
    assert_eq!(patch["metadata"]["ownerReferences"][0]["uid"], "uid-ms");
}

#[test]
fn a_machine_that_is_going_still_counts() {
    let decision = World::new(set(2), vec![machine("a"), going(machine("b"))]).decide();
    assert_eq!(created(&decision).len(), 0);
    assert_eq!(decision.status.replicas, Some(2));
}

#[test]
fn a_template_that_does_not_exist_is_said_and_looked_for_again() {
    let mut world = World::new(set(1), vec![]);
    world.template = None;
    let decision = world.decide();
    assert_eq!(created(&decision).len(), 0);
    let message = said(&decision, "ScalingUp").2;
    assert_eq!(
        message,
        "Scaling up from 0 to 1 replicas is blocked because:\n* FooMachineTemplate foo does not exist"
    );
    assert!(decision.recheck.is_some());
}

#[test]
fn creation_can_be_forbidden_by_annotation() {
    let mut forbidden = set(2);
    forbidden["metadata"]["annotations"]["cluster.x-k8s.io/disable-machine-create"] = json!("true");
    assert_eq!(created(&World::new(forbidden.clone(), vec![]).decide()).len(), 0);
    forbidden["metadata"]["annotations"]["cluster.x-k8s.io/disable-machine-create"] =
        json!("false");
    assert_eq!(created(&World::new(forbidden, vec![]).decide()).len(), 2);
}

#[test]
fn more_than_the_ceiling_is_never_made() {
    let mut world = World::new(set(100), vec![]);
    world.ceilings = Ceilings { of_one_set: 50, of_all: 50 };
    let decision = world.decide();
    assert_eq!(created(&decision).len(), 0);
    let message = said(&decision, "ScalingUp").2;
    assert!(message.contains("must be less than or equal to 50"), "{message}");
    world.set = set(40);
    world.machines = (0..30).map(|number| machine(&format!("m{number:02}"))).collect();
    world.ceilings = Ceilings { of_one_set: 100, of_all: 35 };
    assert_eq!(created(&world.decide()).len(), 5);
}

#[test]
fn preflight_checks_hold_new_machines_back() {
    let plane = |version: &str, running: Option<&str>| ControlPlane {
        what: Some("Plane ns/cp".to_owned()),
        version: Some(version.to_owned()),
        running_version: running.map(str::to_owned),
        ..ControlPlane::default()
    };
    let cases = [
        (plane("v1.34.0", Some("v1.34.0")), None),
        (plane("v1.34.0", None), Some("Plane ns/cp is provisioning (\"ControlPlaneIsStable\"")),
        (plane("v1.35.0", Some("v1.34.0")), Some("is upgrading from 1.34.0 to 1.35.0")),
        (
            plane("v1.33.0", Some("v1.33.0")),
            Some("MachineSet version is higher than ControlPlane version"),
        ),
        (plane("v1.38.0", Some("v1.38.0")), Some("more than 3 minor versions older")),
        (plane("v1.37.0", Some("v1.37.0")), None),
    ];
    for (plane, expected) in cases {
        let mut world = World::new(set(1), vec![]);
        world.control_plane = plane.clone();
        let decision = world.decide();
        assert_eq!(created(&decision).len(), usize::from(expected.is_none()), "{plane:?}");
        let message = said(&decision, "ScalingUp").2;
        assert!(message.contains(expected.unwrap_or("")), "{message}");
        world.set["metadata"]["annotations"]["machineset.cluster.x-k8s.io/skip-preflight-checks"] =
            json!("ControlPlaneIsStable, KubernetesVersionSkew");
        assert_eq!(created(&world.decide()).len(), 1, "skipped: {plane:?}");
    }
}

#[test]
fn kubeadm_joins_its_own_minor_version_only() {
    let mut world = World::new(set(1), vec![]);
    world.set["spec"]["template"]["spec"]["bootstrap"] = json!({ "configRef": {
        "apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfigTemplate", "name": "k",
    } });
    world.control_plane = ControlPlane {
        what: Some("Plane ns/cp".to_owned()),
        version: Some("v1.35.1".to_owned()),
        running_version: Some("v1.35.1".to_owned()),
        ..ControlPlane::default()
    };
    let message = said(&world.decide(), "ScalingUp").2;
    assert!(message.contains("kubeadm only supports joining"), "{message}");
}

#[test]
fn what_the_last_try_met_is_said_until_there_is_nothing_left_to_make() {
    let mut world = World::new(set(1), vec![]);
    world.failure = Some("failed to make machine ms-00000: refused".to_owned());
    assert!(
        said(&world.decide(), "ScalingUp")
            .2
            .ends_with("* failed to make machine ms-00000: refused")
    );
    world.machines = vec![machine("a")];
    assert_eq!(said(&world.decide(), "ScalingUp").2, "");
}

/// Cluster API's issue 9629: what is deleted with its Cluster was made again.
#[test]
fn nothing_is_made_while_the_cluster_is_deleted() {
    let mut world = World::new(set(2), vec![machine("a")]);
    world.cluster.as_mut().unwrap()["metadata"]["deletionTimestamp"] =
        json!("2026-01-01T11:59:00Z");
    let decision = world.decide();
    assert_eq!((created(&decision).len(), deleted(&decision).len()), (0, 0));
    assert!(said(&decision, "ScalingUp").2.ends_with("* Cluster c1 is being deleted"));
}
