//! Does one refused action leave the others alone, and is a failure told for as long as it lasts?

use http::Method;
use serde_json::{Value, json};

use super::*;
use crate::{
    engine::testing::Fault,
    testing::{MACHINE_SETS, MACHINES, World, machine, pool, read},
};

fn world(replicas: i32, machines: &[Value]) -> World {
    let world = World::new();
    put_pool(&world, pool(replicas));
    for machine in machines {
        world.server.put(MACHINES, machine.clone());
        world.context.stores.machines.apply_written(read(machine.clone()));
    }
    world
}

fn put_pool(world: &World, pool: Value) {
    world.server.put(MACHINE_SETS, pool.clone());
    world.context.stores.machine_sets.apply_written(read(pool));
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

/// The watch shows the pool as it was; the API server knows better, and is asked.
#[tokio::test(start_paused = true)]
async fn no_machine_is_made_for_a_pool_that_a_late_view_shows() {
    let deleted = json!({
        "generation": 2, "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["foreground"],
    });
    for change in [deleted, json!({ "uid": "of-another" }), Value::Null] {
        let (world, memory) = (world(3, &[]), Memory::default());
        let mut stored = pool(3);
        match change.as_object() {
            Some(change) => {
                stored["metadata"]["resourceVersion"] = json!("20");
                stored["metadata"].as_object_mut().unwrap().extend(change.clone());
                world.server.put(MACHINE_SETS, stored);
            }
            None => world.server.delete(MACHINE_SETS, "pool"),
        }
        pass(&world, &memory).await;
        assert_eq!(world.requests("POST"), [""; 0], "{change}");
        assert_eq!(error_reason(&memory), None);
    }
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

const SETS: &str = "/apis/machine.openshift.io/v1beta1/namespaces/ns/machinesets";

/// A second pool that wants the same.
fn other_pool(replicas: i32) -> Value {
    let mut other = pool(replicas);
    other["metadata"]["name"] = json!("other");
    other["metadata"]["uid"] = json!("uid-other");
    other["spec"]["selector"]["matchLabels"]["pool"] = json!("other");
    other["spec"]["template"]["metadata"]["labels"]["pool"] = json!("other");
    other
}

#[tokio::test(start_paused = true)]
async fn a_hundred_thousand_machines_are_refused_on_the_set_and_nothing_goes() {
    let (world, memory) = (world(100_000, &three()), Memory::default());
    world.server.put(SETS, pool(100_000));
    for _ in 0..3 {
        assert!(matches!(pass(&world, &memory).await, Outcome::Settled));
    }
    assert_eq!((world.requests("POST"), world.requests("DELETE")), (vec![], vec![]));
    assert_eq!(world.requests("PATCH"), [format!("{SETS}/pool/status")], "said once");
    let key = ObjectKey::new("ns", "pool");
    let status = world.context.stores.machine_sets.get(&key).unwrap().status.clone().unwrap();
    assert_eq!(status.replicas, Some(3));
    let words = status.error_message.unwrap();
    assert!(words.starts_with("spec.replicas: Invalid value: 100000"), "{words}");
    assert_eq!(world.into_event_count().await, 1);
}

/// Both look at the same room before either has made a Machine.
#[tokio::test(start_paused = true)]
async fn two_pools_side_by_side_never_pass_the_ceiling_of_all() {
    let world = world(40, &[]);
    put_pool(&world, other_pool(40));
    let memory = Memory::new(Ceilings { of_one_set: 100, of_all: 50 });
    for _ in 0..5 {
        let keys = ["pool", "other"].map(|name| ObjectKey::new("ns", name));
        let passes = keys.map(|key| reconcile(&world.context, &memory, key));
        futures::future::join_all(passes).await;
    }
    assert_eq!(world.requests("POST").len(), 50);
    assert_eq!(world.context.stores.machines.len(), 50);
}

#[tokio::test(start_paused = true)]
async fn what_runs_away_is_slowed_down() {
    let world = world(1800, &[]);
    let memory = Memory::default();
    let made = || world.context.stores.machines.len();
    let mut last = Outcome::Settled;
    for _ in 0..40 {
        last = pass(&world, &memory).await;
    }
    // The reserve, and what the rate gave meanwhile: no time has passed.
    assert_eq!(made(), 500);
    let Outcome::RecheckAfter(pause) = last else { panic!("{last:?}") };
    tokio::time::sleep(pause).await;
    pass(&world, &memory).await;
    assert!((520..560).contains(&made()), "{}", made());
}
