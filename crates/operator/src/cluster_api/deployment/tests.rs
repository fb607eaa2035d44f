//! Is there one set for a template, whatever is seen of it?

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::{
    cluster_api::testing::{DEPLOYMENTS, Fleet, SETS, deployment},
    testing::read,
};

fn fleet(deployment: Value) -> Fleet {
    let fleet = Fleet::new();
    fleet.server.put(DEPLOYMENTS, deployment.clone());
    fleet.context.stores.deployments.apply_written(read(deployment));
    fleet
}

async fn pass(fleet: &Fleet, memory: &Memory) -> Outcome {
    reconcile(&fleet.context, memory, ObjectKey::new("ns", "md")).await
}

#[tokio::test(start_paused = true)]
async fn one_set_is_made_and_a_settled_deployment_writes_nothing() {
    let (fleet, memory) = (fleet(deployment(3)), Memory::default());
    for _ in 0..4 {
        pass(&fleet, &memory).await;
    }
    assert_eq!(fleet.names(SETS).len(), 1);
    let writes = fleet.requests("PATCH").len();
    for _ in 0..3 {
        pass(&fleet, &memory).await;
    }
    assert_eq!(fleet.requests("PATCH").len(), writes);
    assert_eq!(fleet.requests("POST"), [SETS]);
}

/// A process that was just started sees the deployment and not its set. It finds the set by asking.
#[tokio::test(start_paused = true)]
async fn duplicate_sets_are_impossible_on_a_late_view() {
    let (fleet, memory) = (fleet(deployment(3)), Memory::default());
    pass(&fleet, &memory).await;
    let made = fleet.names(SETS);
    let stored = fleet.server.lock().objects[&(SETS.to_owned(), made[0].clone())].clone();
    let uid = stored["metadata"]["uid"].as_str().unwrap().to_owned();
    fleet.context.stores.machine_sets.forget_written(&ObjectKey::new("ns", &made[0]), &uid);
    for _ in 0..3 {
        pass(&fleet, &memory).await;
    }
    assert_eq!(fleet.names(SETS), made);
}

/// Somebody gave the set another size since: what was decided on the older one is decided on anew.
#[tokio::test(start_paused = true)]
async fn what_somebody_else_wrote_since_is_decided_on_anew() {
    let (fleet, memory) = (fleet(deployment(3)), Memory::default());
    for _ in 0..4 {
        pass(&fleet, &memory).await;
    }
    let stores = &fleet.context.stores;
    let mut larger = (*stores.deployments.get(&ObjectKey::new("ns", "md")).unwrap()).clone();
    larger.spec.replicas = Some(5);
    let observation = observe::observe(&fleet.context, &memory, &Arc::new(larger)).await;
    let decision = decide(&observation.observed(), fleet.context.base.env.now());
    assert!(!decision.actions.is_empty());
    let name = fleet.names(SETS).remove(0);
    let stored = fleet.server.lock().objects[&(SETS.to_owned(), name.clone())].clone();
    fleet.server.put(SETS, stored);
    let stored = fleet.server.lock().objects[&(SETS.to_owned(), name)].clone();
    stores.machine_sets.apply_written(read(stored));
    let writes = fleet.requests("PATCH").len();
    let executed = execute::execute(&fleet.context, &observation, &decision.actions).await;
    assert!(batches::is_superseded(&executed.unwrap_err()));
    assert_eq!(fleet.requests("PATCH").len(), writes);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_deployment_waits_for_its_sets() {
    let (fleet, memory) = (fleet(deployment(3)), Memory::default());
    for _ in 0..3 {
        pass(&fleet, &memory).await;
    }
    let mut stored =
        fleet.server.lock().objects[&(DEPLOYMENTS.to_owned(), "md".to_owned())].clone();
    stored["metadata"]["deletionTimestamp"] = json!("2026-01-01T12:00:00Z");
    fleet.server.put(DEPLOYMENTS, stored);
    let stored = fleet.server.lock().objects[&(DEPLOYMENTS.to_owned(), "md".to_owned())].clone();
    fleet.context.stores.deployments.apply_written(read(stored));
    pass(&fleet, &memory).await;
    assert_eq!(fleet.requests("DELETE").len(), 1);
    pass(&fleet, &memory).await;
    let left = fleet.server.lock().objects[&(DEPLOYMENTS.to_owned(), "md".to_owned())].clone();
    assert_eq!(left["metadata"]["finalizers"], json!([]));
}
