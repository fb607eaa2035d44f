use machinist_api::cluster_api::MachineSpec;
use serde_json::{Value, json};

use super::*;

fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

fn machine(name: &str, ready: Value) -> Machine {
    let mut machine = Machine::new(name, MachineSpec::default());
    let mut status = MachineStatus::default();
    if let Value::Object(mut ready) = ready {
        ready.insert("type".to_owned(), json!("Ready"));
        ready.insert("lastTransitionTime".to_owned(), json!("2026-01-01T11:00:00Z"));
        conditions_of(&mut status).push(serde_json::from_value(Value::Object(ready)).unwrap());
    }
    machine.status = Some(status);
    machine
}

/// `type=status reason message` of each.
fn told(conditions: &[Condition]) -> Vec<String> {
    let line = |one: &Condition| {
        let words = [&one.reason, &one.message].map(|part| part.as_deref().unwrap_or("-"));
        format!("{}={} {} {}", one.type_, one.status.as_str(), words[0], words[1])
    };
    conditions.iter().map(line).collect()
}

#[test]
fn a_set_says_how_far_it_is() {
    let ready = machine("a", json!({ "status": "True" }));
    let starting = machine(
        "b",
        json!({ "status": "False", "severity": "Info", "reason": "WaitingForInfrastructure" }),
    );
    let sick = machine(
        "c",
        json!({ "status": "False", "severity": "Warning", "reason": "UnhealthyNode" }),
    );
    let size = |current, desired, ready| Size { current, desired, ready };
    let failure = Some((Hindrance::Template, "T x does not exist"));
    let cases: [(&str, Size, Vec<&Machine>, _, [&str; 4]); 4] = [
        (
            "whole",
            size(1, 1, 1),
            vec![&ready],
            None,
            [
                "Ready=True - -",
                "MachinesCreated=True - -",
                "MachinesReady=True - -",
                "Resized=True - -",
            ],
        ),
        (
            "shrinks",
            size(1, 0, 1),
            vec![&ready],
            None,
            [
                "Ready=False ScalingDown Scaling down MachineSet to 0 replicas (actual 1)",
                "MachinesCreated=True - -",
                "MachinesReady=True - -",
                "Resized=False ScalingDown Scaling down MachineSet to 0 replicas (actual 1)",
            ],
        ),
        (
            "cannot grow",
            size(0, 1, 0),
            Vec::new(),
            failure,
            [
                "Ready=False InfrastructureTemplateCloningFailed T x does not exist",
                "MachinesCreated=False InfrastructureTemplateCloningFailed T x does not exist",
                "MachinesReady=True - -",
                "Resized=False ScalingUp Scaling up MachineSet to 1 replicas (actual 0)",
            ],
        ),
        (
            "the worst machine speaks",
            size(3, 2, 1),
            vec![&ready, &starting, &sick],
            None,
            [
                "Ready=False ScalingDown Scaling down MachineSet to 2 replicas (actual 3)",
                "MachinesCreated=True - -",
                "MachinesReady=False UnhealthyNode @ Machine/c 1 of 3 completed",
                "Resized=False ScalingDown Scaling down MachineSet to 2 replicas (actual 3)",
            ],
        ),
    ];
    for (name, size, members, hindrance, expected) in cases {
        let mut conditions = Vec::new();
        of_set(&mut conditions, size, &members, hindrance, now());
        assert_eq!(told(&conditions), expected, "{name}");
    }
}

#[test]
fn a_resize_is_over_when_all_are_ready() {
    let starting = machine("b", json!({ "status": "False", "severity": "Info", "reason": "X" }));
    let mut conditions = Vec::new();
    let mut size = Size { current: 0, desired: 1, ready: 0 };
    of_set(&mut conditions, size, &[], None, now());
    size.current = 1;
    of_set(&mut conditions, size, &[&starting], None, now());
    let resized = condition::find(&conditions, V1BETA1_RESIZED).unwrap();
    assert_eq!(resized.reason.as_deref(), Some(SCALING_UP));
    size.ready = 1;
    of_set(&mut conditions, size, &[&starting], None, now());
    assert!(condition::is_true(&conditions, V1BETA1_RESIZED));
}

#[test]
fn a_deployment_mirrors_its_set() {
    let mut set: MachineSet = serde_json::from_value(json!({
        "metadata": { "name": "s" },
        "spec": { "clusterName": "c", "selector": {}, "template": { "spec": {
            "clusterName": "c", "bootstrap": {},
            "infrastructureRef": { "apiGroup": "g", "kind": "K", "name": "n" },
        } } },
    }))
    .unwrap();
    let of = |available, set: Option<&MachineSet>| {
        let mut conditions = Vec::new();
        of_deployment(&mut conditions, available, 2, set, now());
        told(&conditions)
    };
    let few =
        "WaitingForAvailableMachines Minimum availability requires 2 replicas, current 1 available";
    assert_eq!(
        of(1, None),
        [
            format!("Ready=False {few}"),
            format!("Available=False {few}"),
            "MachineSetReady=False WaitingForMachineSet MachineSet not found".to_owned(),
        ]
    );
    assert_eq!(of(2, Some(&set))[2], "MachineSetReady=False WaitingForMachineSet -");
    let status = set.status.get_or_insert_default();
    let before = status.deprecated.get_or_insert_default().v1beta1.get_or_insert_default();
    before.conditions.push(Condition::holds(READY, now()));
    assert_eq!(
        of(2, Some(&set)),
        ["Ready=True - -", "Available=True - -", "MachineSetReady=True - -"]
    );
}

#[test]
fn a_check_speaks_the_words_of_the_version_before() {
    let words = "Health check failed:\n  * Node failed\n  * Condition bad";
    let cases = [
        (None, "HealthCheckSucceeded=True - -"),
        (
            Some((reason::UNHEALTHY_NODE, words)),
            "HealthCheckSucceeded=False UnhealthyNode Node failed; Condition bad",
        ),
        (Some((reason::NODE_DELETED, words)), "HealthCheckSucceeded=False NodeNotFound -"),
        (
            Some((reason::HAS_REMEDIATE_ANNOTATION, "")),
            "HealthCheckSucceeded=False HasRemediateMachineAnnotation Marked for remediation via \
             remediate-machine annotation",
        ),
    ];
    for (failed, expected) in cases {
        let mut status = MachineStatus::default();
        checked(&mut status, failed, now());
        assert_eq!(told(conditions_of(&mut status)), [expected]);
    }
}

#[test]
fn an_owner_waits_acts_and_takes_it_back() {
    let mut status = MachineStatus::default();
    owner_remediated(&mut status, Some(Some("too many")), now());
    let waits = "OwnerRemediated=False WaitingForRemediation too many";
    assert_eq!(told(conditions_of(&mut status)), [waits]);
    owner_remediated(&mut status, Some(None), now());
    assert_eq!(told(conditions_of(&mut status)), ["OwnerRemediated=True - -"]);
    owner_remediated(&mut status, None, now());
    assert!(conditions_of(&mut status).is_empty());
}

/// Found by the simulator: the check and the Machine's controller put each other's order right for ever.
#[test]
fn whoever_writes_keeps_the_order() {
    let mut status = MachineStatus::default();
    conditions_of(&mut status).push(Condition::holds(READY, now()));
    checked(&mut status, None, now());
    owner_remediated(&mut status, Some(None), now());
    let types: Vec<_> = conditions_of(&mut status).iter().map(|one| one.type_.as_str()).collect();
    assert_eq!(types, [READY, HEALTH_CHECK_SUCCEEDED, OWNER_REMEDIATED]);
}
