use std::collections::{BTreeMap, BTreeSet};

use super::*;
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
