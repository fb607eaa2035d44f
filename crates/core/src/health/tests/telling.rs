//! Is everything told once, by the spec's names, and nothing written that did not change?

use serde_json::json;

use super::*;

#[test]
fn a_machine_that_turns_bad_is_told_once_and_deleted_when_it_lasts() {
    let mut scene = Scene::pool(check(json!({})), 5, 1, 10);
    let answer = scene.decide();
    let [told] = answer.machine_events.as_slice() else { panic!("{:?}", answer.machine_events) };
    assert_eq!((told.name.as_str(), told.announcement.reason), ("m-000", "DetectedUnhealthy"));
    assert!(told.announcement.message.contains("ns/check/m-000/m-000"));
    let recheck = answer.decision.recheck.unwrap();
    assert_eq!(recheck, "2026-01-01T12:04:51Z".parse().unwrap(), "its timeout and no earlier");
    scene.publish(answer);
    let again = scene.decide();
    assert_eq!(again.machine_events, []);
    assert_eq!(Some(&again.decision.status), scene.check.status.as_ref());

    let answer = scene.decide_at(recheck);
    let [action @ Action::DeleteMachine { uid, resource_version, absent_node: None, .. }] =
        answer.decision.actions.as_slice()
    else {
        panic!("{:?}", answer.decision.actions)
    };
    assert_eq!((uid.as_str(), resource_version.as_str()), ("uid-m-000", "7"));
    assert!(action.is_counted_remediation());
    assert_eq!(action.machine(), Some(("m-000", "uid-m-000")));
    let done = action.done().unwrap();
    assert_eq!(done.reason, "MachineDeleted");
    assert!(done.message.contains("condition Ready of its node is False"), "{}", done.message);
    assert_eq!(action.failed("gone").unwrap().reason, "MachineDeletionFailed");

    // It recovers, and turns bad again: that is news.
    scene.nodes[0] = node("m-000", "True", 1);
    let answer = scene.decide();
    scene.publish(answer);
    scene.nodes[0] = node("m-000", "False", 0);
    assert_eq!(scene.decide().machine_events.len(), 1);
}

#[test]
fn a_machine_that_starts_in_time_is_no_news() {
    let changes = json!({"metadata": {"creationTimestamp": ago(60)}, "status": {"nodeRef": null}});
    let scene = Scene::new(check(json!({}))).with(machine_with("m", &changes), None);
    let answer = scene.decide();
    assert_eq!(answer.machine_events, []);
    assert_eq!(answer.decision.recheck, Some("2026-01-01T12:09:01Z".parse().unwrap()));
}

#[test]
fn a_paused_or_deleted_check_does_nothing_and_says_nothing_new() {
    let paused = json!({"annotations": {"cluster.x-k8s.io/paused": ""}});
    let deleted = json!({"deletionTimestamp": ago(1), "finalizers": ["f"]});
    for metadata in [paused, deleted] {
        let mut scene = Scene::pool(check(json!({})), 5, 1, 400);
        let answer = scene.decide();
        scene.publish(answer);
        scene.check.metadata = check_with(json!({}), metadata).metadata;
        scene.nodes[3] = node("m-003", "False", 400);
        let answer = scene.decide();
        assert_eq!(answer.decision.actions, []);
        assert_eq!(Some(&answer.decision.status), scene.check.status.as_ref());
        assert_eq!((answer.gauges, answer.decision.recheck), (None, None));
    }
}

#[test]
fn an_observer_that_is_cut_off_remediates_nothing() {
    let mut scene = Scene::pool(check(json!({"maxUnhealthy": 5})), 5, 5, 400);
    scene.doubt = Some("the watch of nodes is cut off since 11:50");
    let answer = scene.decide();
    assert_eq!(answer.decision.actions, []);
    assert_eq!(answer.decision.waiting[0].reason, "ObservationDoubtful");
    assert!(answer.decision.recheck.is_some());
    scene.doubt = None;
    assert_eq!(deleted(&scene.decide()).len(), 5);
}

#[test]
fn mere_figures_are_spaced_out_and_news_is_not() {
    let mut scene = Scene::pool(check(json!({"maxUnhealthy": 2})), 5, 0, 0);
    let answer = scene.decide();
    scene.publish(answer);
    scene.written_at = Some(now());
    scene.nodes[0] = node("m-000", "False", 10);
    let answer = scene.decide();
    assert_eq!(Some(&answer.decision.status), scene.check.status.as_ref());
    assert_eq!(answer.decision.recheck, Some("2026-01-01T12:00:02Z".parse().unwrap()));
    let later = scene.decide_at("2026-01-01T12:00:02Z".parse().unwrap());
    assert_eq!(later.decision.status.current_healthy, Some(4));
    scene.nodes[1] = node("m-001", "False", 10);
    scene.nodes[2] = node("m-002", "False", 10);
    let answer = scene.decide();
    assert_eq!(allowed(&answer).status.as_str(), "False", "a restriction is news");
}

#[test]
fn the_next_look_is_at_most_an_hour_away() {
    let spec = json!({"unhealthyConditions": [
        {"type": "Ready", "status": "False", "timeout": "1000h"},
    ]});
    let answer = Scene::pool(check(spec), 5, 1, 10).decide();
    assert_eq!(answer.decision.recheck, Some("2026-01-01T13:00:00Z".parse().unwrap()));
}
