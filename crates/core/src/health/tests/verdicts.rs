//! Is each machine judged as the spec says?

use serde_json::json;

use super::*;
use crate::health::{
    Policy,
    verdict::{Cause, Verdict, judge},
};

fn judged(spec: Value, machine: &Machine, node: Option<&Node>) -> Verdict {
    let policy = Policy::read(&check(spec)).unwrap();
    judge(&Target::of(machine, node), &policy, &Memory::default(), now())
}

fn at(seconds_ago: i64) -> Timestamp {
    ago(seconds_ago).parse().unwrap()
}

#[test]
fn the_first_that_applies_wins() {
    let ready = node("m", "True", 3000);
    let broken = node("m", "False", 400);
    let fresh = node("m", "Unknown", 100);
    let failed = json!({"status": {"phase": "Failed", "nodeRef": null}});
    let deleting = json!({"metadata": {"deletionTimestamp": ago(5), "finalizers": ["f"]}});
    let marked = json!({"metadata": {"annotations": {"host.metal3.io/external-remediation": ""}}});
    let unready = |status: &str, seconds| Cause::NodeCondition {
        type_: "Ready".to_owned(),
        status: status.to_owned(),
        since: at(seconds),
    };
    let none = json!({});
    let table = [
        ("ready", &none, Some(&ready), Verdict::Healthy),
        ("failed", &failed, None, Verdict::Unhealthy(Cause::Failed)),
        ("not ready for long", &none, Some(&broken), Verdict::Unhealthy(unready("False", 400))),
        (
            "not ready for a moment",
            &none,
            Some(&fresh),
            Verdict::Suspect { cause: unready("Unknown", 100), until: at(-201) },
        ),
        ("deleting", &deleting, Some(&broken), Verdict::Deleting),
        ("in repair", &marked, Some(&ready), Verdict::InRepair),
        ("in repair and broken", &marked, Some(&broken), Verdict::Unhealthy(unready("False", 400))),
    ];
    for (name, changes, node, expected) in table {
        assert_eq!(judged(json!({}), &machine_with("m", changes), node), expected, "{name}");
    }
    let failed_and_deleting = merged(failed, &deleting);
    assert_eq!(
        judged(json!({}), &machine_with("m", &failed_and_deleting), None),
        Verdict::Deleting
    );
}

#[test]
fn any_condition_is_enough_and_the_earliest_timeout_is_waited_for() {
    let spec = json!({"unhealthyConditions": [
        {"type": "Ready", "status": "False", "timeout": "10m"},
        {"type": "Disk", "status": "True", "timeout": "5m"},
        {"type": "Net", "status": "True", "timeout": "1m"},
    ]});
    let with = |ready: (&str, i64), disk: (&str, i64), net: (&str, i64)| {
        let one = |type_: &str, (status, seconds): (&str, i64)| json!({"type": type_, "status": status, "lastTransitionTime": ago(seconds)});
        let node = node_with("m", json!([one("Ready", ready), one("Disk", disk), one("Net", net)]));
        judged(spec.clone(), &machine("m"), Some(&node))
    };
    assert_eq!(with(("True", 900), ("False", 900), ("Unknown", 900)), Verdict::Healthy);
    // Ready lasts till in five minutes, Disk till in four.
    let verdict = with(("False", 300), ("True", 60), ("False", 900));
    let Verdict::Suspect { cause: Cause::NodeCondition { type_, .. }, until } = verdict else {
        panic!("{verdict:?}")
    };
    assert_eq!((type_.as_str(), until), ("Disk", at(-241)));
    // One that has lasted wins over one that comes first.
    let verdict = with(("False", 300), ("True", 301), ("True", 10));
    let Verdict::Unhealthy(Cause::NodeCondition { type_, .. }) = verdict else {
        panic!("{verdict:?}")
    };
    assert_eq!(type_, "Disk");
}

#[test]
fn the_timeout_itself_is_not_over_yet() {
    for (seconds, is_unhealthy) in [(299, false), (300, false), (301, true)] {
        let verdict = judged(json!({}), &machine("m"), Some(&node("m", "False", seconds)));
        assert_eq!(matches!(verdict, Verdict::Unhealthy(_)), is_unhealthy, "{seconds}");
    }
}

#[test]
fn a_condition_that_does_not_say_since_when_lasts_as_long_as_its_node() {
    let silent = node_with("m", json!([{"type": "Ready", "status": "False"}]));
    assert!(matches!(judged(json!({}), &machine("m"), Some(&silent)), Verdict::Unhealthy(_)));
    let long =
        json!({"unhealthyConditions": [{"type": "Ready", "status": "False", "timeout": "2h"}]});
    assert!(matches!(judged(long, &machine("m"), Some(&silent)), Verdict::Suspect { .. }));
}

#[test]
fn the_startup_timeout_counts_from_a_start_that_status_changes_do_not_move() {
    let starting = |metadata: Value, status: Value| {
        let base =
            json!({"status": {"phase": "Provisioned", "nodeRef": null, "lastUpdated": ago(1)}});
        let changes = merged(base, &json!({"metadata": metadata, "status": status}));
        judged(json!({}), &machine_with("m", &changes), None)
    };
    let exists = |status: &str, seconds| json!([{"type": "InstanceExists", "status": status, "lastTransitionTime": ago(seconds)}]);
    let in_time = |until: i64| Verdict::Starting { until: at(until) };
    let too_late = |since| Verdict::Unhealthy(Cause::NoNode { since: at(since) });
    let young = json!({"creationTimestamp": ago(600)});
    let table = [
        ("ten minutes old", young, json!({}), in_time(-1)),
        ("older", json!({"creationTimestamp": ago(601)}), json!({}), too_late(601)),
        (
            "launched late",
            json!({}),
            json!({"providerStatus": {"launchTime": ago(90)}}),
            in_time(-511),
        ),
        ("exists late", json!({}), json!({"conditions": exists("True", 90)}), in_time(-511)),
        ("does not exist", json!({}), json!({"conditions": exists("False", 90)}), too_late(3600)),
        (
            "restarted",
            json!({}),
            json!({"providerStatus": {"launchTime": ago(90)}, "conditions": exists("True", 3000)}),
            too_late(3000),
        ),
        (
            "unknown for a while",
            json!({}),
            json!({"providerStatus": {"launchTime": ago(3000)}, "conditions": exists("True", 90)}),
            too_late(3000),
        ),
        (
            "an instance from before the object",
            json!({"creationTimestamp": ago(60)}),
            json!({"providerStatus": {"launchTime": ago(9000)}}),
            in_time(-541),
        ),
    ];
    for (name, metadata, status, expected) in table {
        assert_eq!(starting(metadata, status), expected, "{name}");
    }
}

#[test]
fn a_startup_timeout_of_zero_never_ends() {
    let changes = json!({"status": {"nodeRef": null}});
    for zero in ["0", "0s", "0h0m"] {
        let spec = json!({"nodeStartupTimeout": zero});
        assert_eq!(judged(spec, &machine_with("m", &changes), None), Verdict::NeverTimesOut);
    }
    assert!(
        matches!(
            judged(json!({"nodeStartupTimeout": null}), &machine_with("m", &changes), None),
            Verdict::Unhealthy(Cause::NoNode { .. })
        ),
        "ten minutes where nothing is said"
    );
}

#[test]
fn a_linked_node_must_be_missing_for_a_while_and_is_asked_for_by_name() {
    let mut scene = Scene::pool(check(json!({})), 5, 0, 0);
    scene.nodes.remove(2);
    let answer = scene.decide();
    assert_eq!(deleted(&answer), [] as [&str; 0]);
    assert_eq!(answer.decision.status.current_healthy, Some(4));
    let recheck = answer.decision.recheck.unwrap();
    assert_eq!(recheck, at(-31));
    scene.publish(answer);

    let later = scene.decide_at(recheck);
    let [action @ Action::DeleteMachine { name, .. }] = later.decision.actions.as_slice() else {
        panic!("{:?}", later.decision.actions)
    };
    assert_eq!((name.as_str(), action.absent_node()), ("m-002", Some("m-002")));

    // Seen again in between: the next absence starts anew.
    let back = node("m-002", "True", 10);
    scene.nodes.push(back);
    let answer = scene.decide();
    assert_eq!(answer.memory, Memory::default());
    scene.publish(answer);
    scene.nodes.pop();
    assert_eq!(deleted(&scene.decide_at(recheck)), [] as [&str; 0]);
}
