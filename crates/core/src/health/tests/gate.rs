//! Who may be remediated by whom, and when does the disruption gate say no?

use serde_json::json;

use super::*;

fn broken_pool(max: Value, total: usize, broken: usize) -> Scene {
    Scene::pool(check(json!({ "maxUnhealthy": max })), total, broken, 400)
}

#[test]
fn without_a_chosen_share_the_gates_own_holds() {
    // (maxUnhealthy, machines, broken, remediated)
    let table = [
        (json!("100%"), 20, 8, 8),
        (json!("100%"), 20, 9, 0),
        (json!(null), 20, 9, 0),
        (json!("99%"), 20, 9, 9),
        (json!(9), 20, 9, 9),
        (json!(2), 2, 2, 2),
        (json!("100%"), 1, 1, 1),
    ];
    for (max, total, broken, expected) in table {
        let answer = broken_pool(max.clone(), total, broken).decide();
        assert_eq!(deleted(&answer).len(), expected, "{max}: {broken} of {total}");
    }
}

#[test]
fn what_the_gate_holds_is_said_on_the_check_once_and_asked_again() {
    let mut scene = broken_pool(json!("100%"), 20, 9);
    let answer = scene.decide();
    let condition = allowed(&answer);
    assert_eq!(condition.reason.as_deref(), Some("DisruptionHeld"));
    let words = condition.message.clone().unwrap();
    assert!(words.contains("9 of 20 machines of pool a") && words.contains("8 more"), "{words}");
    assert_eq!(answer.decision.announcements[0].reason, "DisruptionHeld");
    assert!(!answer.gauges.unwrap().short_circuit, "nobody chose a limit");
    assert_eq!(answer.decision.status.remediations_allowed, Some(0));
    let recheck = answer.decision.recheck.unwrap();
    assert!(recheck > now());
    scene.publish(answer);
    let again = scene.decide_at(recheck);
    assert_eq!(Some(&again.decision.status), scene.check.status.as_ref());
    assert_eq!(again.decision.announcements, []);

    // A person says that it is meant.
    let until = json!({"machinist.dev/approved-until": "2026-01-01T12:30:00Z"});
    scene.set = set(20, until);
    assert_eq!(deleted(&scene.decide()).len(), 9);
    assert_eq!(deleted(&scene.decide_at("2026-01-01T12:30:01Z".parse().unwrap())).len(), 0);
}

#[test]
fn a_pools_own_share_holds_beside_the_checks() {
    let mut scene = broken_pool(json!("90%"), 10, 3);
    scene.set = set(10, json!({"machinist.dev/max-disrupted": "2"}));
    assert_eq!(deleted(&scene.decide()).len(), 0);
    scene.set = set(10, json!({"machinist.dev/max-disrupted": "3"}));
    assert_eq!(deleted(&scene.decide()).len(), 3);
    scene.set = set(10, json!({"machinist.dev/max-disrupted": "some"}));
    let answer = scene.decide();
    assert_eq!(deleted(&answer).len(), 0);
    assert!(allowed(&answer).message.as_ref().unwrap().contains("machinist.dev/max-disrupted"));
}

#[test]
fn machines_that_still_work_are_counted_one_after_another() {
    // Ready, but bad by a condition of somebody's own: the gate would count them all as working.
    let spec = json!({
        "maxUnhealthy": "100%",
        "unhealthyConditions": [{"type": "Custom", "status": "True", "timeout": "1s"}],
    });
    let mut scene = Scene::pool(check(spec), 10, 0, 0);
    for index in 0..6 {
        scene.nodes[index] = node_with(
            &format!("m-{index:03}"),
            json!([
                {"type": "Ready", "status": "True", "lastTransitionTime": ago(900)},
                {"type": "Custom", "status": "True", "lastTransitionTime": ago(900)},
            ]),
        );
    }
    let answer = scene.decide();
    assert_eq!(deleted(&answer), ["m-000", "m-001", "m-002", "m-003"], "four of ten at once");
    assert_eq!(allowed(&answer).reason.as_deref(), Some("DisruptionHeld"));
}

#[test]
fn the_unavoidable_is_never_held() {
    let mut scene = broken_pool(json!("100%"), 4, 4);
    let gone = |class: &str| {
        json!({"status": {"phase": "Failed", "providerStatus": {"drift": {
            "class": class, "since": ago(60), "response": "Report",
        }}}})
    };
    let spot = json!({"metadata": {"labels": {"machine.openshift.io/interruptible-instance": ""}}});
    scene.machines[0] = machine_with("m-000", &gone("TerminatedByProvider"));
    scene.machines[1] = machine_with("m-001", &gone("Vanished"));
    scene.machines[2] = machine_with("m-002", &spot);
    let terminating = json!([
        {"type": "Ready", "status": "True", "lastTransitionTime": ago(900)},
        {"type": "Terminating", "status": "True", "lastTransitionTime": ago(1)},
    ]);
    scene.nodes[2] = node_with("m-002", terminating.clone());
    // Not a spot machine: anybody may have set it.
    scene.nodes[3] = node_with("m-003", terminating);
    scene.check.spec.unhealthy_conditions = serde_json::from_value(json!([
        {"type": "Terminating", "status": "True", "timeout": "0s"},
    ]))
    .unwrap();
    assert_eq!(deleted(&scene.decide()), ["m-000", "m-002"]);
}

#[test]
fn the_shipped_check_for_spot_machines_acts_at_once() {
    let check: MachineHealthCheck = serde_json::from_value(json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineHealthCheck",
        "metadata": {"name": "machine-api-termination-handler", "namespace": "ns"},
        "spec": {
            "selector": {"matchLabels": {"machine.openshift.io/interruptible-instance": ""}},
            "maxUnhealthy": "100%", "nodeStartupTimeout": "0",
            "unhealthyConditions": [{"type": "Terminating", "status": "True", "timeout": "0s"}],
        },
    }))
    .unwrap();
    let spot = json!({"metadata": {"labels": {"machine.openshift.io/interruptible-instance": ""}}});
    let starting = merged(spot.clone(), &json!({"status": {"nodeRef": null}}));
    let told = node_with(
        "m",
        json!([{"type": "Terminating", "status": "True", "lastTransitionTime": ago(0)}]),
    );
    let scene = Scene::new(check)
        .with(machine_with("m", &spot), Some(told))
        .with(machine_with("s", &starting), None);
    let at: Timestamp = "2026-01-01T12:00:00.3Z".parse().unwrap();
    assert_eq!(deleted(&scene.decide_at(at)), ["m"]);
}

#[test]
fn a_machine_without_a_controller_is_skipped_and_that_is_said_once() {
    let bare = json!({"metadata": {"ownerReferences": null}});
    let mut scene = Scene::pool(check(json!({})), 4, 0, 0)
        .with(machine_with("bare", &bare), Some(node("bare", "False", 400)));
    let answer = scene.decide();
    assert_eq!(answer.decision.actions, []);
    let [told] = answer.machine_events.as_slice() else { panic!("{:?}", answer.machine_events) };
    assert_eq!((told.name.as_str(), told.announcement.reason), ("bare", "SkippedNoController"));
    assert!(told.announcement.message.contains("ns/check/bare/bare"));
    scene.publish(answer);
    assert_eq!(scene.decide().machine_events, []);
}

#[test]
fn a_hold_a_migration_and_a_pool_that_goes_keep_the_machine() {
    let held = json!({"metadata": {"annotations": {"machinist.dev/hold": "being debugged"}}});
    let moved = json!({"status": {"authoritativeAPI": "ClusterAPI"}});
    for (changes, reason, words) in [
        (&held, "DisruptionHeld", "being debugged"),
        (&moved, "AuthoritativeAPINotMachineAPI", "ClusterAPI"),
    ] {
        let scene = Scene::pool(check(json!({})), 4, 0, 0)
            .with(machine_with("m", changes), Some(node("m", "False", 400)));
        let answer = scene.decide();
        assert_eq!(answer.decision.actions, []);
        let wait = &answer.decision.waiting[0];
        assert_eq!(wait.reason, reason);
        assert!(wait.message.contains(words), "{}", wait.message);
    }
    let mut scene = Scene::pool(check(json!({})), 5, 1, 400);
    assert_eq!(deleted(&scene.decide()).len(), 1);
    scene.set.metadata.deletion_timestamp = scene.nodes[0].metadata.creation_timestamp.clone();
    assert_eq!(scene.decide().decision.actions, []);
}

fn control_plane(states: [&str; 3]) -> Scene {
    let owned = json!({"metadata": {
        "labels": {"machine.openshift.io/cluster-api-machine-role": "master"},
        "ownerReferences": [{
            "apiVersion": "machine.openshift.io/v1", "kind": "ControlPlaneMachineSet", "name": "c",
            "uid": "cpms", "controller": true,
        }],
    }});
    let mut scene = Scene::new(check(json!({"maxUnhealthy": "100%"})));
    for (index, state) in states.into_iter().enumerate() {
        let name = format!("c-{index}");
        let changes = match state {
            "deleting" => merged(
                owned.clone(),
                &json!({"metadata": {"deletionTimestamp": ago(9), "finalizers": ["f"]}}),
            ),
            _ => owned.clone(),
        };
        let ready = if state == "broken" { "False" } else { "True" };
        scene = scene.with(machine_with(&name, &changes), Some(node(&name, ready, 400)));
    }
    scene
}

#[test]
fn the_control_plane_goes_one_at_a_time_and_keeps_its_quorum() {
    let table = [
        (["broken", "good", "good"], 1),
        (["broken", "broken", "good"], 0),
        (["broken", "good", "deleting"], 0),
        (["good", "good", "good"], 0),
    ];
    for (states, expected) in table {
        let answer = control_plane(states).decide();
        assert_eq!(deleted(&answer).len(), expected, "{states:?}");
        let is_held = allowed(&answer).reason.as_deref() == Some("DisruptionHeld");
        assert_eq!(is_held, expected == 0 && states.contains(&"broken"), "{states:?}");
    }
}

#[test]
fn two_control_plane_machines_are_never_granted_in_one_pass() {
    // Five of which two are bad by a condition of somebody's own, and all are Ready.
    let mut scene = control_plane(["good"; 3]);
    for name in ["c-3", "c-4"] {
        let changes = serde_json::to_value(&scene.machines[0]).unwrap();
        let own =
            json!({"metadata": {"name": name, "uid": name}, "status": {"nodeRef": {"name": name}}});
        scene = scene.with(serde_json::from_value(merged(changes, &own)).unwrap(), None);
        let bad = json!([
            {"type": "Ready", "status": "True", "lastTransitionTime": ago(900)},
            {"type": "Custom", "status": "True", "lastTransitionTime": ago(900)},
        ]);
        scene.nodes.push(node_with(name, bad));
    }
    scene.check.spec.unhealthy_conditions = serde_json::from_value(json!([
        {"type": "Custom", "status": "True", "timeout": "1s"},
    ]))
    .unwrap();
    assert_eq!(deleted(&scene.decide()), ["c-3"]);
}

#[test]
fn the_only_control_plane_machine_is_never_taken() {
    let mut scene = control_plane(["good"; 3]);
    scene.machines.truncate(1);
    let bad = json!([
        {"type": "Ready", "status": "True", "lastTransitionTime": ago(900)},
        {"type": "Custom", "status": "True", "lastTransitionTime": ago(900)},
    ]);
    scene.nodes[0] = node_with("c-0", bad);
    scene.check.spec.unhealthy_conditions =
        serde_json::from_value(json!([{"type": "Custom", "status": "True", "timeout": "1s"}]))
            .unwrap();
    let answer = scene.decide();
    assert_eq!(answer.decision.actions, []);
    assert_eq!(allowed(&answer).reason.as_deref(), Some("DisruptionHeld"));
}
