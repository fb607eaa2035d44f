//! Does one refused action leave the others alone, and is a failure told for as long as it lasts?

use http::Method;
use serde_json::{Value, json};

use super::*;
use crate::{
    engine::testing::Fault,
    testing::{MACHINES, World, machine, pool, read},
};

fn world(replicas: i32, machines: &[Value]) -> World {
    let world = World::new();
    world.context.stores.machine_sets.apply_written(read(pool(replicas)));
    for machine in machines {
        world.server.put(MACHINES, machine.clone());
        world.context.stores.machines.apply_written(read(machine.clone()));
    }
    world
}

async fn pass(world: &World, memory: &Memory) -> Outcome {
    reconcile(&world.context, memory, ObjectKey::new("ns", "pool")).await
}

fn error_reason(memory: &Memory) -> Option<&'static str> {
    let failure = memory.of(&ObjectKey::new("ns", "pool")).last_failure;
    failure.map(|failure| failure.error_reason)
}

fn three() -> Vec<Value> {
    ["one", "two", "three"].map(|name| machine(name, json!({}))).to_vec()
}

#[tokio::test(start_paused = true)]
async fn a_release_that_is_refused_does_not_stop_scaling() {
    let stray = machine("stray", json!({ "labels": { "pool": "b" } }));
    let (world, memory) = (world(3, &[stray]), Memory::default());
    world.server.fail(|method, path| match *method {
        Method::PATCH if path.ends_with("/stray") => Fault::Code(403),
        _ => Fault::None,
    });
    assert!(matches!(pass(&world, &memory).await, Outcome::Failed(_)));
    assert_eq!(world.requests("POST"), [MACHINES; 3]);
    assert_eq!(error_reason(&memory), Some("UpdateError"));
}

#[tokio::test(start_paused = true)]
async fn a_template_that_is_refused_costs_one_request() {
    let (world, memory) = (world(3, &[]), Memory::default());
    world.server.fail(|method, path| match *method {
        Method::POST if path == MACHINES => Fault::Code(403),
        _ => Fault::None,
    });
    assert!(matches!(pass(&world, &memory).await, Outcome::Failed(_)));
    assert_eq!(world.requests("POST").len(), 1);
    assert_eq!(error_reason(&memory), Some("CreateError"));
}

#[tokio::test(start_paused = true)]
async fn every_deletion_is_tried_and_its_failure_is_forgotten_when_nothing_is_left_to_do() {
    let (world, memory) = (world(0, &three()), Memory::default());
    world.server.fail(|method, _| match *method {
        Method::DELETE => Fault::Code(403),
        _ => Fault::None,
    });
    assert!(matches!(pass(&world, &memory).await, Outcome::Failed(_)));
    assert_eq!(world.requests("DELETE").len(), 3);
    assert_eq!(error_reason(&memory), Some("DeleteError"));
    for name in ["one", "two", "three"] {
        let key = ObjectKey::new("ns", name);
        world.context.stores.machines.forget_written(&key, &format!("uid-{name}"));
    }
    pass(&world, &memory).await;
    assert_eq!(error_reason(&memory), None);
    assert_eq!(world.into_event_count().await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_came_too_late_is_no_failure() {
    let (world, memory) = (world(0, &three()), Memory::default());
    world.server.fail(|method, _| match *method {
        Method::DELETE => Fault::Code(409),
        _ => Fault::None,
    });
    assert!(matches!(pass(&world, &memory).await, Outcome::RecheckAfter(_)));
    assert_eq!(world.requests("DELETE").len(), 3);
    assert_eq!(error_reason(&memory), None);
    assert_eq!(world.into_event_count().await, 0);
}

#[tokio::test(start_paused = true)]
async fn members_are_the_owned_and_the_ownerless_that_match() {
    let nobody = json!([]);
    let other = json!([{
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet", "name": "other",
        "uid": "uid-other", "controller": true,
    }]);
    let world = world(
        1,
        &[
            machine("owned", json!({})),
            machine("owned-stray", json!({ "labels": { "pool": "b" } })),
            machine("orphan", json!({ "ownerReferences": nobody })),
            machine("orphan-stray", json!({ "ownerReferences": nobody, "labels": {} })),
            machine("foreign", json!({ "ownerReferences": other })),
            machine("elsewhere", json!({ "namespace": "other" })),
        ],
    );
    let set = world.context.stores.machine_sets.get(&ObjectKey::new("ns", "pool")).unwrap();
    let observation = observe::observe(&world.context, &Memory::default(), &set);
    let observed = observation.observed();
    let names: Vec<_> =
        observed.machines.iter().filter_map(|one| one.machine.metadata.name.as_deref()).collect();
    assert_eq!(names, ["owned", "owned-stray", "orphan"]);
}
