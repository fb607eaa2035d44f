//! Is each Machine made once whatever fails, and does a set stay until its Machines are gone?

use http::Method;
use serde_json::{Value, json};

use super::*;
use crate::{
    cluster_api::testing::{FOO_MACHINES, Fleet, MACHINES, SETS, machine, set},
    engine::testing::Fault,
    testing::read,
};

fn fleet(set: Value, machines: &[Value]) -> Fleet {
    let fleet = Fleet::new();
    fleet.server.put(SETS, set.clone());
    fleet.context.stores.machine_sets.apply_written(read(set));
    for machine in machines {
        fleet.server.put(MACHINES, machine.clone());
        fleet.context.stores.machines.apply_written(read(machine.clone()));
    }
    fleet
}

async fn pass(fleet: &Fleet, memory: &Memory) -> Outcome {
    reconcile(&fleet.context, memory, ObjectKey::new("ns", "ms")).await
}

fn deleted_set() -> Value {
    let mut deleted = set(1);
    deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    deleted
}

#[tokio::test(start_paused = true)]
async fn a_machine_is_three_writes_and_a_settled_set_none() {
    let (fleet, memory) = (fleet(set(3), &[]), Memory::default());
    pass(&fleet, &memory).await;
    assert_eq!(fleet.names(MACHINES), fleet.names(FOO_MACHINES), "they share their names");
    assert_eq!(fleet.names(MACHINES).len(), 3);
    assert_eq!(fleet.requests("POST").len(), 6);
    pass(&fleet, &memory).await;
    tokio::time::sleep(std::time::Duration::from_secs(15)).await;
    pass(&fleet, &memory).await;
    let writes = fleet.requests("PATCH").len() + fleet.requests("POST").len();
    for _ in 0..3 {
        pass(&fleet, &memory).await;
    }
    assert_eq!(fleet.requests("PATCH").len() + fleet.requests("POST").len(), writes);
}

/// An answer that is lost makes no second Machine, and no second object of the provider.
#[tokio::test(start_paused = true)]
async fn a_creation_that_broke_off_is_repeated_under_the_same_name() {
    let (fleet, memory) = (fleet(set(2), &[]), Memory::default());
    fleet.server.fail(|method, path| match *method {
        Method::POST if path == MACHINES => Fault::Code(500),
        _ => Fault::None,
    });
    assert!(matches!(pass(&fleet, &memory).await, Outcome::Failed(_)));
    assert_eq!((fleet.names(MACHINES).len(), fleet.names(FOO_MACHINES).len()), (0, 1));
    let first = fleet.names(FOO_MACHINES);
    fleet.server.fail(|_, _| Fault::None);
    pass(&fleet, &memory).await;
    assert_eq!(fleet.names(MACHINES).len(), 2);
    assert_eq!(fleet.names(MACHINES), fleet.names(FOO_MACHINES));
    assert!(fleet.names(MACHINES).contains(&first[0]));
}

/// Another process does not know the name any more: what was left behind goes.
#[tokio::test(start_paused = true)]
async fn an_object_that_no_machine_refers_to_is_deleted_after_a_restart() {
    let (fleet, memory) = (fleet(set(1), &[]), Memory::default());
    fleet.server.fail(|method, path| match *method {
        Method::POST if path == MACHINES => Fault::Code(500),
        _ => Fault::None,
    });
    pass(&fleet, &memory).await;
    let left = fleet.names(FOO_MACHINES);
    fleet.server.fail(|_, _| Fault::None);
    let restarted = Memory::default();
    for _ in 0..3 {
        pass(&fleet, &restarted).await;
    }
    assert_eq!(fleet.names(MACHINES).len(), 1);
    assert_eq!(fleet.names(FOO_MACHINES), fleet.names(MACHINES));
    assert!(!fleet.names(FOO_MACHINES).contains(&left[0]));
}

/// The watch has lost a Machine; the API server knows better, and is asked before another is made.
#[tokio::test(start_paused = true)]
async fn no_machine_is_made_for_one_that_a_late_view_does_not_show() {
    let (fleet, memory) = (fleet(set(1), &[]), Memory::default());
    fleet.server.put(MACHINES, machine("hidden"));
    pass(&fleet, &memory).await;
    pass(&fleet, &memory).await;
    assert_eq!(fleet.names(MACHINES), ["hidden"]);
    assert_eq!(fleet.requests("POST"), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn the_finalizer_is_kept_when_machines_cannot_be_listed() {
    let (fleet, memory) = (fleet(deleted_set(), &[]), Memory::default());
    let set = format!("{SETS}/ms");
    fleet.server.fail(|method, path| match *method {
        Method::GET if path == MACHINES => Fault::Code(500),
        _ => Fault::None,
    });
    assert!(matches!(pass(&fleet, &memory).await, Outcome::Failed(_)));
    assert!(!fleet.requests("PATCH").contains(&set));
    // The list comes back, and shows a Machine that the watch does not.
    fleet.server.fail(|_, _| Fault::None);
    fleet.server.put(MACHINES, machine("hidden"));
    pass(&fleet, &memory).await;
    assert!(!fleet.requests("PATCH").contains(&set));
    pass(&fleet, &memory).await;
    assert_eq!(fleet.requests("DELETE"), [format!("{MACHINES}/hidden")]);
}

#[tokio::test(start_paused = true)]
async fn a_template_that_is_refused_costs_one_request() {
    let (fleet, memory) = (fleet(set(5), &[]), Memory::default());
    fleet.server.fail(|method, path| match *method {
        Method::POST if path == FOO_MACHINES => Fault::Code(403),
        _ => Fault::None,
    });
    assert!(matches!(pass(&fleet, &memory).await, Outcome::Failed(_)));
    assert_eq!(fleet.requests("POST").len(), 1);
    // Words alone are told a moment later.
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    pass(&fleet, &memory).await;
    let set = fleet.context.stores.machine_sets.get(&ObjectKey::new("ns", "ms")).unwrap();
    let conditions = &set.status.as_ref().unwrap().conditions;
    let scaling = machinist_api::cluster_api::condition::find(conditions, "ScalingUp").unwrap();
    assert!(scaling.message.contains("failed to make FooMachine"), "{}", scaling.message);
}

/// What a set and its Machine are between a decision and its effects.
async fn decided(fleet: &Fleet, memory: &Memory) -> (observe::Observation, MachineSetDecision) {
    let set = fleet.context.stores.machine_sets.get(&ObjectKey::new("ns", "ms")).unwrap();
    let observation = observe::observe(&fleet.context, memory, &set).await;
    let decision = decide(&observation.observed(), fleet.context.base.env.now());
    (observation, decision)
}

/// Whoever wrote the Machine since may have said that it stays: what was decided on the older one is not done to the newer.
#[tokio::test(start_paused = true)]
async fn what_somebody_else_wrote_since_is_decided_on_anew() {
    let (fleet, memory) = (fleet(set(0), &[machine("a")]), Memory::default());
    let (observation, decision) = decided(&fleet, &memory).await;
    let mut newer = machine("a");
    newer["metadata"]["resourceVersion"] = json!("6");
    fleet.context.stores.machines.apply_written(read(newer));
    let executed = execute::execute(&fleet.context, &memory, &observation, &decision.actions).await;
    assert!(batches::is_superseded(&executed.unwrap_err()), "it is looked at again");
    assert_eq!(fleet.requests("DELETE"), [""; 0]);
    assert_eq!(memory.of(&ObjectKey::new("ns", "ms")).last_failure, None, "and nothing is told");
    pass(&fleet, &memory).await;
    assert_eq!(fleet.requests("DELETE"), [format!("{MACHINES}/a")]);
}

/// Amended, marked and deleted in one pass: each write goes by the version that the one before it made.
#[tokio::test(start_paused = true)]
async fn several_writes_of_one_machine_are_no_conflict() {
    let (fleet, memory) = (fleet(set(1), &[]), Memory::default());
    let mut sick = machine("a");
    sick["metadata"]["labels"] = json!({ "pool": "a" });
    sick["status"]["conditions"] = ["HealthCheckSucceeded", "OwnerRemediated"]
        .map(|type_| {
            json!({
                "type": type_, "status": "False", "reason": "R", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            })
        })
        .to_vec()
        .into();
    fleet.server.put(MACHINES, sick);
    let stored = fleet.server.lock().objects[&(MACHINES.to_owned(), "a".to_owned())].clone();
    fleet.context.stores.machines.apply_written(read(stored));
    let (observation, decision) = decided(&fleet, &memory).await;
    execute::execute(&fleet.context, &memory, &observation, &decision.actions).await.unwrap();
    let of_machines = |path: &String| path.starts_with(MACHINES);
    let patched: Vec<String> = fleet.requests("PATCH").into_iter().filter(of_machines).collect();
    assert_eq!(patched, [format!("{MACHINES}/a"), format!("{MACHINES}/a/status")]);
    assert_eq!(fleet.requests("DELETE"), [format!("{MACHINES}/a")]);
}

#[tokio::test(start_paused = true)]
async fn a_smaller_set_deletes_what_is_too_much() {
    let machines = ["a", "b", "c"].map(machine);
    let (fleet, memory) = (fleet(set(1), &machines), Memory::default());
    pass(&fleet, &memory).await;
    assert_eq!(fleet.names(MACHINES).len(), 1);
}
