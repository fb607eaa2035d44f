//! Does the arithmetic restrict exactly when it should, and say so?

use machinist_api::ConditionSeverity;
use serde_json::json;

use super::*;
use crate::health::decide::Gauges;

#[test]
fn twenty_of_fifty_go_with_forty_percent_and_none_with_thirty_nine() {
    let all = Scene::pool(check(json!({"maxUnhealthy": "40%"})), 50, 20, 400).decide();
    let expected: Vec<String> = (0..20).map(|index| format!("m-{index:03}")).collect();
    assert_eq!(deleted(&all), expected);
    assert_eq!(all.decision.status.current_healthy, Some(30));
    assert_eq!(all.decision.status.expected_machines, Some(50));
    assert_eq!(all.decision.status.remediations_allowed, Some(0));
    assert_eq!(all.gauges, Some(Gauges { nodes_covered: 50, short_circuit: false }));
    assert_eq!(allowed(&all).status.as_str(), "True");

    let mut scene = Scene::pool(check(json!({"maxUnhealthy": "39%"})), 50, 20, 400);
    let none = scene.decide();
    assert_eq!(none.decision.actions, []);
    assert_eq!(none.gauges, Some(Gauges { nodes_covered: 50, short_circuit: true }));
    let condition = allowed(&none);
    assert_eq!(condition.status.as_str(), "False");
    assert_eq!(condition.severity, Some(ConditionSeverity::Warning));
    assert_eq!(condition.reason.as_deref(), Some("TooManyUnhealthy"));
    assert_eq!(
        condition.message.as_deref(),
        Some(
            "Remediation is not allowed, the number of not started or unhealthy machines exceeds \
             maxUnhealthy (total: 50, unhealthy: 20, maxUnhealthy: 39%)"
        )
    );
    let [told] = none.decision.announcements.as_slice() else { panic!() };
    assert_eq!(told.reason, "RemediationRestricted");
    assert!(
        told.message.starts_with(
            "Remediation restricted due to exceeded number of unhealthy machines (total: 50, "
        ),
        "{}",
        told.message
    );
    assert_eq!(none.decision.recheck, None, "only a change of a machine can change the answer");

    // Nothing changes: nothing is written, told or waited for, however often it is looked at.
    scene.publish(none);
    for _ in 0..3 {
        let again = scene.decide();
        assert_eq!(Some(&again.decision.status), scene.check.status.as_ref());
        assert_eq!(again.decision.announcements, []);
        assert_eq!(again.machine_events, []);
        assert_eq!(again.decision.recheck, None);
    }

    // One more breaks: the figures change, and are not told again.
    scene.nodes[20] = node("m-020", "False", 400);
    let answer = scene.decide();
    assert_eq!(answer.decision.announcements, []);
    assert!(allowed(&answer).message.as_ref().unwrap().contains("unhealthy: 21"));
    scene.publish(answer);

    // Enough recover: the rest is remediated.
    for index in 0..10 {
        let name = format!("m-{index:03}");
        scene.nodes[index] = node(&name, "True", 1);
    }
    let answer = scene.decide();
    assert_eq!(deleted(&answer).len(), 11);
    assert_eq!(allowed(&answer).status.as_str(), "True");
}

#[test]
fn what_is_bad_but_not_for_long_enough_counts_and_is_not_remediated() {
    let scene = Scene::pool(check(json!({"maxUnhealthy": 2})), 5, 2, 400);
    assert_eq!(deleted(&scene.decide()).len(), 2);
    let mut scene = scene;
    scene.nodes[4] = node("m-004", "False", 10);
    let answer = scene.decide();
    assert_eq!(answer.decision.actions, [], "three are not healthy");
    assert!(answer.decision.recheck.is_some());
}

#[test]
fn machines_in_time_to_start_are_left_out_and_all_others_without_health_count() {
    let starting = json!({
        "metadata": {"creationTimestamp": ago(60)}, "status": {"phase": "Provisioning", "nodeRef": null},
    });
    let late = json!({"status": {"phase": "Provisioned", "nodeRef": null}});
    let failed = json!({"status": {"phase": "Failed"}});
    let deleting = json!({"metadata": {"deletionTimestamp": ago(5), "finalizers": ["f"]}});
    let marked = json!({"metadata": {"annotations": {"host.metal3.io/external-remediation": ""}}});
    // (what five machines beside five healthy ones are, whether "50%" restricts)
    let table = [
        ("starting", &starting, "10m", 10, 5),
        ("late", &late, "10m", 10, 0),
        ("failed", &failed, "10m", 10, 0),
        ("deleting", &deleting, "10m", 10, 0),
        ("in repair", &marked, "10m", 10, 0),
        ("never timing out", &starting, "0", 10, 0),
    ];
    for (name, changes, timeout, expected, left_out) in table {
        let spec = json!({"maxUnhealthy": "50%", "nodeStartupTimeout": timeout});
        let mut scene = Scene::pool(check(spec), 5, 0, 0);
        for index in 0..5 {
            let name = format!("n-{index}");
            scene = scene.with(machine_with(&name, changes), Some(node(&name, "True", 3000)));
        }
        let answer = scene.decide();
        let status = &answer.decision.status;
        assert_eq!(status.expected_machines, Some(expected), "{name}");
        assert_eq!(status.current_healthy, Some(5), "{name}");
        // Half of those that count; the machines left out neither use it up nor enlarge it.
        let counted = 10 - left_out;
        let unhealthy = counted - 5;
        assert_eq!(status.remediations_allowed, Some(counted / 2 - unhealthy), "{name}");
        assert_eq!(allowed(&answer).status.as_str(), "True", "{name}");

        scene.nodes[0] = node("m-000", "False", 400);
        let answer = scene.decide();
        assert_eq!(deleted(&answer).contains(&"m-000"), left_out > 0, "{name}");
    }
}

#[test]
fn a_replacement_that_starts_frees_the_way_for_the_next() {
    let mut scene = Scene::pool(check(json!({"maxUnhealthy": 1})), 4, 2, 400);
    assert_eq!(scene.decide().decision.actions, []);
    // The first was replaced by hand; its successor starts.
    let changes = json!({
        "metadata": {"creationTimestamp": ago(60)}, "status": {"phase": "Provisioning", "nodeRef": null},
    });
    scene.machines[0] = machine_with("m-900", &changes);
    assert_eq!(deleted(&scene.decide()), ["m-001"]);
}

#[test]
fn zero_blocks_everything_once_anything_is_unhealthy() {
    for zero in [json!(0), json!("0%"), json!("0")] {
        let scene = Scene::pool(check(json!({ "maxUnhealthy": zero })), 5, 1, 400);
        assert_eq!(scene.decide().decision.actions, []);
        let scene = Scene::pool(check(json!({ "maxUnhealthy": zero })), 5, 0, 0);
        assert_eq!(allowed(&scene.decide()).status.as_str(), "True");
    }
}
