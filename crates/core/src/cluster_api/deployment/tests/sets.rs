//! Is there exactly one set for each template, and does everything reach it that is to?

use super::*;

/// Decides and applies until nothing is left to do.
fn settle(world: &mut World) {
    for _ in 0..20 {
        let decision = world.decide();
        world.deployment["status"] = serde_json::to_value(&decision.status).unwrap();
        if decision.actions.is_empty() {
            return;
        }
        world.apply(&decision);
    }
    panic!("no end: {:?}", world.decide().actions);
}

#[test]
fn a_new_deployment_makes_one_set_with_everything_in_it() {
    let mut world = World::new(deployment(3));
    world.deployment["metadata"]["annotations"] = json!({
        "note": "x", "kubectl.kubernetes.io/last-applied-configuration": "{}",
    });
    let decision = world.decide();
    let [Action::CreateSet(set)] = decision.actions.as_slice() else { panic!("{decision:?}") };
    let name = set.metadata.name.clone().unwrap();
    assert!(name.starts_with("md-") && name.len() == 8, "{name}");
    assert_eq!(set.spec.replicas, Some(3));
    let labels = set.metadata.labels.as_ref().unwrap();
    let hash = &labels["machine-template-hash"];
    assert!(hash.ends_with(&name[3..]), "{hash}");
    assert_eq!(labels["cluster.x-k8s.io/deployment-name"], "md");
    assert_eq!(&set.spec.selector.match_labels.as_ref().unwrap()["machine-template-hash"], hash);
    assert_eq!(&set.spec.template.metadata.labels["machine-template-hash"], hash);
    let annotations = set.metadata.annotations.as_ref().unwrap();
    for (key, value) in [
        ("note", "x"),
        ("machinedeployment.clusters.x-k8s.io/revision", "1"),
        ("machinedeployment.clusters.x-k8s.io/desired-replicas", "3"),
        ("machinedeployment.clusters.x-k8s.io/max-replicas", "4"),
        ("cluster.x-k8s.io/disable-machine-create", "false"),
    ] {
        assert_eq!(annotations.get(key).map(String::as_str), Some(value), "{key}");
    }
    assert!(!annotations.contains_key("kubectl.kubernetes.io/last-applied-configuration"));
    settle(&mut world);
    assert_eq!(world.sets.len(), 1);
    let revision = &world.deployment["metadata"]["annotations"];
    assert_eq!(revision["machinedeployment.clusters.x-k8s.io/revision"], "1");
}

/// A view that does not show the set yet asks for the same name again, and the API server refuses the second (Cluster
/// API's issues 12551 and 13649).
#[test]
fn duplicate_sets_are_impossible_on_a_late_view() {
    let world = World::new(deployment(3));
    let name = |decision: &MachineDeploymentDecision| match decision.actions.as_slice() {
        [Action::CreateSet(set)] => set.metadata.name.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(name(&world.decide()), name(&world.decide()));
}

#[test]
fn no_set_is_made_while_one_cannot_be_read() {
    let mut world = World::new(deployment(3));
    world.unreadable = 1;
    let decision = world.decide();
    assert_eq!(decision.actions, []);
    assert!(said(&decision, "ScalingUp").2.contains("cannot be read"));
}

#[test]
fn a_change_in_place_makes_no_new_set_and_reaches_the_old_one() {
    let mut world = World::new(deployment(3));
    settle(&mut world);
    let template = &mut world.deployment["spec"]["template"];
    template["metadata"]["labels"]["new"] = json!("x");
    template["spec"]["deletion"] = json!({ "nodeDrainTimeoutSeconds": 60 });
    settle(&mut world);
    let [set] = world.sets.as_slice() else { panic!("{:?}", world.sets.len()) };
    assert_eq!(set.spec.template.metadata.labels["new"], "x");
    assert_eq!(set.metadata.labels.as_ref().unwrap()["new"], "x");
    assert_eq!(set.spec.template.spec.deletion.node_drain_timeout_seconds, Some(60));
    // And away again.
    world.deployment["spec"]["template"]["metadata"]["labels"]
        .as_object_mut()
        .unwrap()
        .remove("new");
    settle(&mut world);
    assert!(!world.sets[0].spec.template.metadata.labels.contains_key("new"));
    assert!(!world.sets[0].metadata.labels.as_ref().unwrap().contains_key("new"));
}

/// What a webhook fills in is not taken away again, pass for pass.
#[test]
fn the_order_that_a_webhook_fills_in_is_left_alone() {
    let order = |world: &World| world.sets[0].spec.deletion.order.clone();
    for is_order_filled_in in [false, true] {
        let mut world = World::new(deployment(3));
        world.is_order_filled_in = is_order_filled_in;
        settle(&mut world);
        let usual = is_order_filled_in.then(|| "Random".to_owned());
        assert_eq!(order(&world), usual);
        world.deployment["spec"]["deletion"] = json!({ "order": "Newest" });
        settle(&mut world);
        assert_eq!(order(&world).as_deref(), Some("Newest"));
        world.deployment["spec"]["deletion"] = json!({});
        settle(&mut world);
        assert_eq!(order(&world), usual);
    }
}

#[test]
fn another_version_makes_another_set_of_the_next_revision() {
    let mut world = World::new(deployment(3));
    settle(&mut world);
    world.deployment["spec"]["template"]["spec"]["version"] = json!("v1.35.0");
    settle(&mut world);
    assert_eq!(world.sets.len(), 2);
    let revisions: Vec<_> =
        world.sets.iter().map(crate::cluster_api::deployment::desired::revision).collect();
    assert_eq!(revisions, [1, 2]);
    // Back to the first: the set is there already, and is the newest again.
    world.deployment["spec"]["template"]["spec"]["version"] = json!("v1.34.0");
    settle(&mut world);
    assert_eq!(world.sets.len(), 2);
    let first = crate::cluster_api::deployment::desired::revision(&world.sets[0]);
    assert_eq!(first, 3);
}

#[test]
fn a_rollout_by_time_makes_a_new_set_when_the_time_has_come() {
    let mut world = World::new(deployment(3));
    settle(&mut world);
    world.deployment["spec"]["rollout"] = json!({ "after": "2026-01-01T13:00:00Z" });
    let before = world.decide();
    assert_eq!(before.actions, []);
    assert_eq!(before.recheck, Some("2026-01-01T13:00:00Z".parse().unwrap()));
    world.now = "2026-01-01T13:00:00Z".parse().unwrap();
    settle(&mut world);
    assert_eq!(world.sets.len(), 2, "once, and not again with every pass");
}

/// The time has come by our clock, and the set is dated by another that is behind.
#[test]
fn a_set_made_for_a_rollout_by_time_is_current_whatever_it_is_dated() {
    for behind in [300, 5_000, -5_000] {
        let mut world = World::new(deployment(3));
        settle(&mut world);
        world.server_behind = SignedDuration::from_millis(behind);
        world.deployment["spec"]["rollout"] = json!({ "after": "2026-01-01T13:00:00Z" });
        world.now = "2026-01-01T13:00:00.1Z".parse().unwrap();
        settle(&mut world);
        assert_eq!(world.sets.len(), 2, "{behind}");
        assert_eq!(world.sets[1].spec.replicas, Some(1), "{behind}: it grows");
        // The next process has a clock that is behind: what was begun is not taken back.
        let before = world.sets.clone();
        world.now = "2026-01-01T12:59:59Z".parse().unwrap();
        settle(&mut world);
        assert_eq!(world.sets, before, "{behind}");
        // An earlier time needs no newer set, a later one does.
        for (after, wanted) in [("2026-01-01T12:59:00Z", 2), ("2026-01-01T14:00:00Z", 3)] {
            world.deployment["spec"]["rollout"] = json!({ "after": after });
            world.now = "2026-01-01T14:00:00Z".parse().unwrap();
            settle(&mut world);
            assert_eq!(world.sets.len(), wanted, "{behind} {after}");
        }
    }
}

/// Cluster API's own core manager marks nothing: its sets are judged by their date.
#[test]
fn a_set_without_a_mark_is_judged_by_its_date() {
    let mut world = World::new(deployment(3));
    settle(&mut world);
    world.deployment["spec"]["rollout"] = json!({ "after": "2026-01-01T13:00:00Z" });
    world.now = "2026-01-01T13:00:05Z".parse().unwrap();
    for (date, wanted) in [("2026-01-01T13:00:00Z", 1), ("2026-01-01T12:59:59Z", 2)] {
        world.sets[0].metadata.creation_timestamp = Some(read(json!(date)));
        settle(&mut world);
        assert_eq!(world.sets.len(), wanted, "{date}");
    }
}

#[test]
fn without_the_template_no_set_is_made_and_the_reason_is_said() {
    let mut world = World::new(deployment(3));
    world.has_template = false;
    let decision = world.decide();
    assert_eq!(decision.actions, []);
    let message = said(&decision, "ScalingUp").2;
    assert!(message.ends_with("* FooMachineTemplate foo does not exist"), "{message}");
    assert_eq!(said(&decision, "Available").1, "NotAvailable");
    assert_eq!(decision.status.phase.as_deref(), Some("ScalingUp"));
}

#[test]
fn an_orphaned_set_is_adopted() {
    let mut world = World::new(deployment(3));
    settle(&mut world);
    world.sets[0].metadata.owner_references = None;
    settle(&mut world);
    assert_eq!(world.sets.len(), 1);
    let owner = &world.sets[0].metadata.owner_references.as_ref().unwrap()[0];
    assert_eq!((owner.uid.as_str(), owner.controller), ("uid-md", Some(true)));
}

#[test]
fn while_paused_no_set_is_made_and_sizes_follow() {
    let mut world = World::new(deployment(3));
    settle(&mut world);
    world.deployment["spec"]["paused"] = json!(true);
    world.deployment["spec"]["template"]["spec"]["version"] = json!("v1.35.0");
    world.deployment["spec"]["replicas"] = json!(5);
    settle(&mut world);
    assert_eq!(world.sets.len(), 1);
    assert_eq!(world.sets[0].spec.replicas, Some(5));
}

#[test]
fn on_delete_closes_old_sets() {
    let mut world = World::new(deployment(3));
    settle(&mut world);
    world.deployment["spec"]["rollout"] = json!({ "strategy": { "type": "OnDelete" } });
    world.deployment["spec"]["template"]["spec"]["version"] = json!("v1.35.0");
    settle(&mut world);
    let closed = |set: &MachineSet| {
        set.metadata.annotations.as_ref().unwrap()["cluster.x-k8s.io/disable-machine-create"]
            .clone()
    };
    assert_eq!(world.sets.iter().map(closed).collect::<Vec<_>>(), ["true", "false"]);
}

/// After a move or a restore from a backup there is no status yet.
#[test]
fn on_delete_keeps_the_machines_of_an_old_set_without_a_status() {
    let mut world = World::new(deployment(3));
    settle(&mut world);
    world.deployment["spec"]["rollout"] = json!({ "strategy": { "type": "OnDelete" } });
    world.deployment["spec"]["template"]["spec"]["version"] = json!("v1.35.0");
    settle(&mut world);
    let sizes = |world: &World| -> Vec<_> {
        world.sets.iter().map(|set| set.spec.replicas.unwrap()).collect()
    };
    assert_eq!(sizes(&world), [3, 0]);
    // Its controller has counted: a person deleted one.
    world.sets[0].status =
        Some(read(json!({ "replicas": 2, "availableReplicas": 2, "observedGeneration": 1 })));
    settle(&mut world);
    assert_eq!(sizes(&world), [2, 1]);
    // What it says is older than what is seen.
    let uid = world.sets[0].metadata.uid.clone().unwrap();
    let owner =
        json!([{ "apiVersion": "", "kind": "", "name": "", "uid": uid, "controller": true }]);
    let machine = |name: &str| json!({ "metadata": { "name": name, "ownerReferences": owner }, "spec": { "clusterName": "c1" } });
    world.machines = ["a", "b"].map(machine).to_vec();
    world.sets[0].status = Some(read(json!({ "replicas": 1, "observedGeneration": 1 })));
    settle(&mut world);
    assert_eq!(sizes(&world), [2, 1]);
}

#[test]
fn a_deleted_deployment_takes_its_sets_with_it_and_goes_last() {
    let mut world = World::new(deployment(3));
    settle(&mut world);
    world.deployment["metadata"]["deletionTimestamp"] = json!("2026-01-01T12:00:00Z");
    let decision = world.decide();
    assert!(matches!(decision.actions.as_slice(), [Action::DeleteSet(_)]), "{decision:?}");
    assert_eq!(said(&decision, "Deleting").0, "True");
    world.sets.clear();
    world.unreadable = 1;
    assert_eq!(world.decide().actions, [], "a set that cannot be read is not gone");
    world.unreadable = 0;
    assert!(matches!(world.decide().actions.as_slice(), [Action::RemoveFinalizer(_)]));
}

#[test]
fn no_set_is_made_while_the_cluster_is_deleted() {
    let mut world = World::new(deployment(3));
    world.is_cluster_going = true;
    assert_eq!(world.decide().actions, []);
}
