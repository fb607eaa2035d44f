//! Tables over pools of all sizes.

use machinist_api::names::annotation::{APPROVED_UNTIL, MAX_DISRUPTED};
use serde_json::json;

use super::*;

fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

fn set(replicas: i32, annotations: serde_json::Value) -> MachineSet {
    serde_json::from_value(json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet",
        "metadata": {"name": "pool", "namespace": "ns", "uid": "set", "annotations": annotations},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"pool": "a"}}, "template": {}},
    }))
    .unwrap()
}

fn machine(index: usize, status: serde_json::Value) -> Machine {
    serde_json::from_value(json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
        "metadata": {"name": format!("m-{index}"), "namespace": "ns", "uid": format!("uid-{index}")},
        "spec": {}, "status": status,
    }))
    .unwrap()
}

fn running() -> serde_json::Value {
    json!({"phase": "Running", "conditions": [{
        "type": "InstanceRunning", "status": "True", "lastTransitionTime": "2026-01-01T11:00:00Z",
    }]})
}

fn stopped(class: &str) -> serde_json::Value {
    json!({
        "phase": "Running",
        "conditions": [{
            "type": "InstanceRunning", "status": "False", "reason": class,
            "lastTransitionTime": "2026-01-01T11:00:00Z",
        }],
        "providerStatus": {"drift": {
            "class": class, "since": "2026-01-01T11:00:00Z", "response": "Wait",
        }},
    })
}

fn node(ready: &str) -> Node {
    serde_json::from_value(json!({
        "metadata": {"name": "n"},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }))
    .unwrap()
}

/// A pool of `desired` in which the first `broken` are as given, asked for by the first.
fn pool(desired: usize, broken: usize, status: &serde_json::Value, ready: &str) -> Pool {
    let set = set(i32::try_from(desired).unwrap(), json!({}));
    let (good, bad) = (node("True"), node(ready));
    let machines: Vec<_> = (0..desired)
        .map(|index| machine(index, if index < broken { status.clone() } else { running() }))
        .collect();
    let members = machines
        .iter()
        .enumerate()
        .map(|(index, one)| (one, Some(if index < broken { &bad } else { &good })));
    Pool::of(&set, members, "uid-0")
}

#[test]
fn at_most_two_fifths_of_a_pool_are_out_of_work_by_choice_and_always_one_may_be() {
    // (desired, broken with the one that asks, permitted)
    let table = [
        (1, 1, true),
        (2, 1, true),
        (2, 2, false),
        (4, 1, true),
        (4, 2, false),
        (5, 2, true),
        (20, 8, true),
        (20, 9, false),
        (20, 10, false),
    ];
    for (desired, broken, permitted) in table {
        let pool = pool(desired, broken, &stopped("StoppedByProvider"), "True");
        assert_eq!(pool.permit(None, now()).is_ok(), permitted, "{broken} of {desired}");
    }
}

#[test]
fn whatever_is_broken_counts_and_unknown_is_not_healthy() {
    let of = |status: serde_json::Value, ready: &str| pool(20, 10, &status, ready);
    let failed = json!({"phase": "Failed"});
    let provisioning = json!({"phase": "Provisioning"});
    for (name, pool) in [
        ("stopped", of(stopped("StoppedByUser"), "True")),
        ("not ready", of(running(), "False")),
        ("unreachable", of(running(), "Unknown")),
        ("failed", of(failed, "True")),
        ("new", of(provisioning, "True")),
    ] {
        let held = pool.permit(None, now()).unwrap_err();
        assert!(held.0.contains("10 of 20 machines of pool pool"), "{name}: {}", held.0);
    }
}

#[test]
fn what_maintenance_works_on_is_out_of_work() {
    let ready = node("True");
    let plain = machine(0, running());
    assert!(is_healthy(&plain, Some(&ready)));
    let mut held = plain.clone();
    let hold = (annotation::HOLD.to_owned(), "maintenance 0f1e".to_owned());
    held.metadata.annotations = Some([hold].into());
    assert!(!is_healthy(&held, Some(&ready)));
    let mut cordoned = ready.clone();
    let mark = (annotation::CORDONED_FOR.to_owned(), "0f1e".to_owned());
    cordoned.metadata.annotations = Some([mark].into());
    assert!(!is_healthy(&plain, Some(&cordoned)));
}

#[test]
fn missing_machines_are_out_of_work_too() {
    let set = set(20, json!({}));
    let ready = node("True");
    let machines: Vec<_> = (0..10).map(|index| machine(index, running())).collect();
    let pool = Pool::of(&set, machines.iter().map(|one| (one, Some(&ready))), "uid-0");
    assert_eq!(pool.healthy_others, 9);
    assert!(pool.permit(None, now()).is_err());
}

#[test]
fn a_policy_and_a_person_may_say_otherwise() {
    let with = |annotations| {
        let mut pool = pool(20, 10, &stopped("StoppedByUser"), "True");
        pool.annotations = serde_json::from_value(annotations).unwrap();
        pool
    };
    assert!(with(json!({ MAX_DISRUPTED: "50%" })).permit(None, now()).is_ok());
    assert!(with(json!({ MAX_DISRUPTED: "10" })).permit(None, now()).is_ok());
    assert!(with(json!({ MAX_DISRUPTED: "0" })).permit(None, now()).is_err());
    for bad in ["", "half", "101%", "-1", "4.5"] {
        let held = with(json!({ MAX_DISRUPTED: bad })).permit(None, now()).unwrap_err();
        assert!(held.0.contains(MAX_DISRUPTED), "{bad}: {}", held.0);
    }
    let (before, after) = ("2026-01-01T11:59:59Z", "2026-01-01T12:00:01Z");
    let pool = with(json!({ APPROVED_UNTIL: after }));
    assert!(pool.permit(Some(after.parse().unwrap()), now()).is_ok());
    assert!(pool.permit(Some(before.parse().unwrap()), now()).is_err(), "an approval ends");
}

#[test]
fn only_what_users_stopped_is_counted_as_such() {
    assert_eq!(pool(20, 5, &stopped("StoppedByUser"), "False").stopped_by_user, 4);
    assert_eq!(pool(20, 5, &stopped("StoppedByProvider"), "False").stopped_by_user, 0);
}
