use std::collections::{BTreeMap, BTreeSet};

use super::{
    super::{
        deleting::{NodeSteps, node_steps},
        node,
    },
    *,
};
use crate::{drain, drain::Attempts};

fn going() -> World {
    let mut world = World::running();
    world.delete(at("11:59:50"));
    world
}

fn cordoned(world: &mut World) {
    world.node.as_mut().unwrap().spec.as_mut().unwrap().unschedulable = Some(true);
}

fn empty<'a>(
    node: &'a Node,
    attempts: &'a Attempts,
    namespaces: &'a BTreeMap<String, BTreeMap<String, String>>,
) -> Draining<'a> {
    Draining {
        node,
        pods: Vec::new(),
        missing_daemon_sets: BTreeSet::new(),
        budgets: Vec::new(),
        attempts,
        rules: Vec::new(),
        namespaces,
    }
}

/// What a pass decides when nothing is on the Node and nothing attached.
fn decide_empty(world: &World) -> MachineDecision {
    let (attempts, namespaces) = (Attempts::default(), BTreeMap::new());
    let node = world.node.as_ref().unwrap();
    let volumes = Volumes { node, attachments: Vec::new(), volumes: Vec::new() };
    world.decide_with(Some(empty(node, &attempts, &namespaces)), Some(volumes), now())
}

#[test]
fn the_steps_come_in_order() {
    let mut world = going();
    let decision = decide_empty(&world);
    // That it begins is stored before anything is touched.
    assert_eq!((decision.actions.as_slice(), decision.recheck), ([].as_slice(), Some(now())));
    assert_eq!(reason(&decision, "Deleting"), "True DrainingNode");
    world.machine.status = Some(decision.status);

    let decision = decide_empty(&world);
    let [Action::Drain(steps)] = decision.actions.as_slice() else { panic!("{decision:?}") };
    assert!(matches!(steps[..], [drain::Action::Cordon { .. }]));
    assert_eq!(reason(&decision, "Deleting"), "True DrainingNode");
    assert_eq!(decision.status.phase.as_deref(), Some("Deleting"));
    world.machine.status = Some(decision.status);

    cordoned(&mut world);
    let decision = decide_empty(&world);
    assert_eq!(decision.actions, [Action::DeleteExternal(super::super::Which::Infrastructure)]);
    assert_eq!(reason(&decision, "Deleting"), "True WaitingForInfrastructureDeletion");
    let told: Vec<_> = decision.announcements.iter().map(|one| one.reason).collect();
    assert_eq!(told, ["SuccessfulDrainNode", "NodeVolumesDetached"]);
    world.machine.status = Some(decision.status);

    world.infrastructure = Sight::Missing;
    let decision = world.decide();
    assert!(
        matches!(
            decision.actions.as_slice(),
            [Action::DeleteNode { node, .. }, Action::RemoveFinalizer] if node == "n"
        ),
        "{decision:?}"
    );
    assert_eq!(reason(&decision, "InfrastructureReady"), "False ObjectDeleted");
    // It is only read where one of the two fails.
    assert_eq!(reason(&decision, "Deleting"), "True DeletingNode");
}

#[test]
fn hooks_hold_by_their_prefix_and_are_named() {
    let mut world = going();
    let hook = "pre-drain.delete.hook.machine.cluster.x-k8s.io/db".to_owned();
    world.machine.metadata.annotations = Some([(hook, "x".to_owned())].into());
    let decision = decide_empty(&world);
    assert_eq!((decision.actions.len(), decision.recheck.is_some()), (0, true));
    let (_, why, message) = said(&decision, "Deleting");
    assert_eq!(why, "WaitingForPreDrainHook");
    assert!(message.ends_with("(hooks: pre-drain.delete.hook.machine.cluster.x-k8s.io/db)"));

    // A hook before the end holds also without a Node, and afterwards nothing is drained any more.
    let mut world = going();
    cordoned(&mut world);
    let hook = "pre-terminate.delete.hook.machine.cluster.x-k8s.io".to_owned();
    world.machine.metadata.annotations = Some([(hook, String::new())].into());
    let decision = decide_empty(&world);
    assert_eq!(reason(&decision, "Deleting"), "True WaitingForPreTerminateHook");
    world.machine.status = Some(decision.status);
    world.machine.metadata.annotations = None;
    world.node.as_mut().unwrap().spec.as_mut().unwrap().unschedulable = None;
    let decision = decide_empty(&world);
    assert_eq!(decision.actions, [Action::DeleteExternal(super::super::Which::Infrastructure)]);
}

#[test]
fn the_node_is_left_alone_when_cluster_or_control_plane_go() {
    let mut of_cluster = going();
    of_cluster.cluster.metadata.deletion_timestamp =
        of_cluster.machine.metadata.deletion_timestamp.clone();
    let mut last = going();
    last.has_active_control_plane = false;
    let mut shared = going();
    shared.namesakes = vec![("first".to_owned(), true)];
    for mut world in [of_cluster, last, shared] {
        let decision = decide_empty(&world);
        assert_eq!(decision.actions, [Action::DeleteExternal(super::super::Which::Infrastructure)]);
        world.infrastructure = Sight::Missing;
        assert_eq!(world.decide().actions, [Action::RemoveFinalizer]);
    }
}

#[test]
fn what_cannot_be_read_is_not_taken_for_gone() {
    let mut world = going();
    cordoned(&mut world);
    let hidden = decide_empty(&world);
    world.machine.status = Some(hidden.status);
    world.infrastructure = Sight::Unreadable("the API server does not answer");
    let decision = decide_empty(&world);
    assert!(!decision.actions.contains(&Action::RemoveFinalizer), "{decision:?}");
    let (_, why, message) = said(&decision, "Deleting");
    assert_eq!(why, "InternalError");
    assert_eq!(message, "Failed to delete FooMachine: the API server does not answer");
}

#[test]
fn an_unreachable_cluster_holds_the_drain_until_its_time_is_over() {
    let mut world = going();
    world.down = Some("no answer");
    let decision = world.decide();
    assert_eq!(decision.actions, []);
    let (_, why, message) = said(&decision, "Deleting");
    assert_eq!(why, "DrainingNode");
    assert!(
        message.contains("no answer") && message.contains("nodeDrainTimeoutSeconds"),
        "{message}"
    );

    world.machine.spec.deletion.node_drain_timeout_seconds = Some(60);
    world.machine.spec.deletion.node_volume_detach_timeout_seconds = Some(1);
    world.machine.status = Some(decision.status);
    let decision = world.decide();
    assert_eq!(decision.recheck, Some(at("12:01:00")));
    let decision = world.decide_with(None, None, at("12:01:00"));
    assert_eq!(reason(&decision, "Deleting"), "True WaitingForVolumeDetach");
    world.machine.status = Some(decision.status);
    let decision = world.decide_with(None, None, at("12:01:02"));
    assert_eq!(decision.actions, [Action::DeleteExternal(super::super::Which::Infrastructure)]);
}

#[test]
fn a_node_that_cannot_be_deleted_is_given_up_in_time() {
    let mut world = going();
    world.down = Some("no answer");
    world.infrastructure = Sight::Missing;
    world.machine.spec.deletion.node_deletion_timeout_seconds = Some(60);
    let decision = world.decide();
    assert_eq!(reason(&decision, "Deleting"), "True DeletingNode");
    assert_eq!(decision.recheck, Some(at("12:00:50")));
    let decision = world.decide_with(None, None, at("12:00:50"));
    assert_eq!(decision.actions, [Action::RemoveFinalizer]);
}

#[test]
fn attached_volumes_are_waited_for_and_named() {
    let mut world = going();
    cordoned(&mut world);
    let (attempts, namespaces) = (Attempts::default(), BTreeMap::new());
    let node = world.node.clone().unwrap();
    let attachment = read(json!({
        "metadata": { "name": "a" },
        "spec": { "attacher": "csi", "nodeName": "n", "source": { "persistentVolumeName": "pv" } },
        "status": { "attached": true },
    }));
    let volume = read(json!({
        "metadata": { "name": "pv" },
        "spec": { "claimRef": { "kind": "PersistentVolumeClaim", "namespace": "app", "name": "data" } },
    }));
    let volumes = Volumes { node: &node, attachments: vec![&attachment], volumes: vec![&volume] };
    let decision =
        world.decide_with(Some(empty(&node, &attempts, &namespaces)), Some(volumes), now());
    let (_, why, message) = said(&decision, "Deleting");
    assert_eq!(why, "WaitingForVolumeDetach");
    assert_eq!(
        message,
        "Waiting for Node volumes to be detached (started at 2026-01-01T12:00:00Z)\n\
         * PersistentVolumeClaims: app/data"
    );
    assert_eq!(decision.actions, []);
}

/// The provider gave the machine its id after the deletion had begun: it may still join, and its Node is found by that.
#[test]
fn the_provider_id_is_kept_though_the_infrastructure_goes() {
    let mut world = World::new();
    world.delete(at("11:59:50"));
    let mut object = provisioned();
    object["metadata"]["deletionTimestamp"] = json!("2026-01-01T11:59:55Z");
    world.infrastructure = Sight::object(object);
    let decision = world.decide();
    let [Action::PatchMachine(patch)] = decision.actions.as_slice() else { panic!("{decision:?}") };
    assert_eq!(patch["spec"]["providerID"], "foo://m");
    assert_eq!(reason(&decision, "Deleting"), "True WaitingForInfrastructureDeletion");
}

fn controlled_by(kind: &str, name: &str) -> Value {
    let mut object = provisioned();
    object["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": kind, "name": name, "uid": "uid-other",
        "controller": true,
    }]);
    object
}

/// A Machine that names another's object by mistake goes without it.
#[test]
fn the_object_of_another_machine_stays() {
    let mut world = going();
    world.infrastructure = Sight::object(controlled_by("Machine", "other"));
    let decision = decide_empty(&world);
    assert_eq!(decision.actions, [Action::RemoveFinalizer]);
    let words: Vec<_> = decision.waiting.iter().map(|wait| wait.message.as_str()).collect();
    assert_eq!(words, ["FooMachine m: it is controlled by Machine other already"]);
}

#[test]
fn what_is_on_the_node_and_cannot_be_read_is_said_and_read_again() {
    let mut world = going();
    world.unread = Some("its pods were not listed within 10 s");
    let decision = world.decide();
    let (_, why, message) = said(&decision, "Deleting");
    assert_eq!(why, "DrainingNode");
    assert!(message.ends_with("cannot be read: its pods were not listed within 10 s"), "{message}");
    assert_eq!(decision.recheck, Some(at("12:00:10")));

    let exclusion = "machine.cluster.x-k8s.io/exclude-node-draining".to_owned();
    world.machine.metadata.annotations = Some([(exclusion, String::new())].into());
    let decision = world.decide();
    let (_, why, message) = said(&decision, "Deleting");
    assert_eq!(why, "WaitingForVolumeDetach");
    assert!(message.ends_with("cannot be read: its pods were not listed within 10 s"), "{message}");
    assert_eq!(decision.recheck, Some(at("12:00:10")));
}

#[test]
fn two_nodes_with_one_provider_id_hold_the_drain_and_are_named() {
    let mut world = going();
    world.has_twin = true;
    world.machine.spec.deletion.node_drain_timeout_seconds = Some(60);
    let decision = world.decide();
    assert_eq!(decision.actions, []);
    let (_, why, message) = said(&decision, "Deleting");
    assert_eq!(why, "DrainingNode");
    assert!(message.contains("n, twin have its spec.providerID"), "{message}");
    world.machine.status = Some(decision.status);
    let decision = world.decide_with(None, None, at("12:01:00"));
    assert_eq!(decision.actions, [Action::DeleteExternal(super::super::Which::Infrastructure)]);
}

/// The Node that is named counts where the providerID finds none or several, unless it is another's.
#[test]
fn the_node_that_goes_with_its_machine() {
    let named = |name: &str| {
        let mut node = healthy_node();
        node.metadata.name = Some(name.to_owned());
        Box::new(node)
    };
    let by_id = |names: &[&str]| names.iter().map(|name| named(name)).collect::<Vec<_>>();
    for (with_id, linked, is_anothers, expected) in [
        (&[][..], None, false, &[][..]),
        (&["n"][..], None, false, &["n"][..]),
        (&["n"][..], Some("n"), false, &["n"][..]),
        (&["renamed"][..], Some("n"), false, &["renamed"][..]),
        (&[][..], Some("n"), false, &["n"][..]),
        (&[][..], Some("n"), true, &[][..]),
        (&["n", "twin"][..], Some("n"), false, &["n"][..]),
        (&["one", "two"][..], Some("n"), false, &["one", "two"][..]),
    ] {
        let found = node::to_take_down(by_id(with_id), linked.map(named), is_anothers);
        let found: Vec<_> = found.iter().map(|node| crate::node::name(node)).collect();
        assert_eq!(found, expected, "{with_id:?} {linked:?} {is_anothers}");
    }
}

/// What no step needs is not read; once the drain is over, the volumes are, whether the Node was cordoned or not.
#[test]
fn only_what_a_step_needs_is_read() {
    let steps = |world: &World, now| world.observed(None, None, now, |one| node_steps(one, now));
    let all = NodeSteps { drain: true, detach: true };
    let mut world = going();
    assert_eq!(steps(&world, now()), all);

    world.machine.spec.deletion.node_drain_timeout_seconds = Some(60);
    world.down = Some("no answer");
    world.machine.status = Some(world.decide().status);
    world.down = None;
    assert_eq!(steps(&world, at("12:00:59")), all);
    assert_eq!(steps(&world, at("12:01:00")), NodeSteps { drain: false, detach: true });

    let annotated = |keys: &[&str]| {
        let mut world = going();
        let keys = keys.iter().map(|key| ((*key).to_owned(), String::new()));
        world.machine.metadata.annotations = Some(keys.collect());
        steps(&world, now())
    };
    let [drain, detach] = [
        "machine.cluster.x-k8s.io/exclude-node-draining",
        "machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach",
    ];
    assert_eq!(annotated(&[drain]), NodeSteps { drain: false, detach: true });
    assert_eq!(annotated(&[detach]), NodeSteps { drain: true, detach: false });
    assert_eq!(annotated(&[drain, detach]), NodeSteps::default());
    let hook = "pre-drain.delete.hook.machine.cluster.x-k8s.io/db";
    assert_eq!(annotated(&[hook]), NodeSteps::default());

    let mut last = going();
    last.has_active_control_plane = false;
    assert_eq!(steps(&last, now()), NodeSteps::default());
}
