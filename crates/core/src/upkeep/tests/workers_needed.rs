//! When a new cluster has enough workers.

use machinist_api::{Machine, MachineSet};
use serde_json::json;

use super::super::workers::missing;

fn set(name: &str, replicas: Option<i32>) -> MachineSet {
    serde_json::from_value(json!({
        "metadata": { "name": name },
        "spec": {
            "replicas": replicas, "selector": { "matchLabels": { "set": name } },
            "template": { "metadata": { "labels": { "set": name } }, "spec": { "providerSpec": {} } },
        },
    }))
    .unwrap()
}

fn machine(name: &str, set: &str, phase: &str) -> Machine {
    serde_json::from_value(json!({
        "metadata": { "name": name, "labels": { "set": set } },
        "spec": { "providerSpec": {} }, "status": { "phase": phase },
    }))
    .unwrap()
}

fn check(sets: &[MachineSet], machines: &[Machine], expected: Option<&str>) {
    let sets: Vec<&MachineSet> = sets.iter().collect();
    let machines: Vec<&Machine> = machines.iter().collect();
    assert_eq!(missing(&sets, &machines).as_deref(), expected);
}

#[test]
fn two_workers_must_run_where_more_than_one_is_expected() {
    check(&[], &[], None);
    let one = set("a", Some(1));
    check(std::slice::from_ref(&one), &[machine("a1", "a", "Provisioning")], None);
    let running = machine("a1", "a", "Running");
    let slow = machine("b2", "b", "Provisioned");
    let slower = machine("b1", "b", "Provisioning");
    let sets = [one, set("b", Some(2))];
    check(
        &sets,
        &[running.clone(), slow, slower.clone()],
        Some(
            "minimum worker replica count (2) not yet met: current running replicas 1, waiting for \
             [b1 b2]",
        ),
    );
    check(&sets, &[running, machine("b2", "b", "Running"), slower], None);
}

#[test]
fn every_set_must_have_the_machines_that_it_is_to_have() {
    let words =
        "replicas not satisfied for MachineSet a: expected 2 replicas, got 1 current replicas";
    let running = machine("a1", "a", "Running");
    check(&[set("a", Some(2))], std::slice::from_ref(&running), Some(words));
    check(&[set("a", None)], std::slice::from_ref(&running), None);
    let words =
        "replicas not satisfied for MachineSet a: expected 0 replicas, got 1 current replicas";
    check(&[set("a", Some(0))], &[running], Some(words));
}
