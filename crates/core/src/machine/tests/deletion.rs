//! A Machine that goes.

use super::*;
use crate::machine::observed::provider_status;

#[test]
fn nothing_is_terminated_before_the_drain_is_done() {
    let mut machine = deleting(recorded("running"));
    machine.status.as_mut().unwrap().conditions.clear();
    let decision = decided(&machine, vec![instance(InstanceState::Running)]);
    assert!(decision.actions.is_empty());
    assert_eq!(decision.status.phase.as_deref(), Some("Deleting"));
    assert!(!decision.waiting.is_empty());
}

#[test]
fn a_pre_terminate_hook_holds_the_termination() {
    let mut overrides = recorded("running");
    merge(
        &mut overrides,
        json!({"spec": {"lifecycleHooks": {"preTerminate": [{"name": "hook", "owner": "me!"}]}}}),
    );
    let decision = decided(&deleting(overrides), vec![instance(InstanceState::Running)]);
    assert!(decision.actions.is_empty());
    assert!(decision.waiting[0].message.contains("hook"));
}

#[test]
fn a_live_instance_is_terminated_and_waited_for() {
    let machine = deleting(recorded("running"));
    for state in [InstanceState::Pending, InstanceState::Running, InstanceState::Stopped] {
        assert_eq!(names(&decided(&machine, vec![instance(state)])), ["Terminate"], "{state:?}");
    }
    let decision = decided(&machine, vec![instance(InstanceState::ShuttingDown)]);
    assert!(decision.actions.is_empty());
    assert!(decision.waiting[0].message.contains("i-1"));
    let decision = decided(&machine, vec![instance(InstanceState::Terminated)]);
    assert_eq!(names(&decision), ["RemoveFinalizer"]);
}

#[test]
fn every_live_instance_of_the_uid_goes_before_the_finalizer() {
    let machine = deleting(recorded("running"));
    let mut second = instance(InstanceState::Running);
    second.id = InstanceId("i-2".into());
    let decision = decided(&machine, vec![instance(InstanceState::Terminated), second]);
    assert_eq!(
        decision.actions,
        [Action::Terminate { id: InstanceId("i-2".into()) }],
        "a terminated first element hides nothing (D6)"
    );
}

#[test]
fn an_instance_whose_launch_was_never_answered_is_drained_before_it_goes() {
    let mut lost = recorded("running");
    lost["status"]["providerStatus"]["instanceId"] = serde_json::Value::Null;
    lost["spec"]["providerID"] = serde_json::Value::Null;
    let machine = deleting(lost);
    assert!(condition::is_true(&machine.status.as_ref().unwrap().conditions, "Drained"));
    let decision = decided(&machine, vec![instance(InstanceState::Running)]);
    assert!(decision.actions.is_empty(), "{:?}", decision.actions);
    assert!(!condition::is_true(&decision.status.conditions, "Drained"), "drained anew");
    let mut found = machine.clone();
    found.status = Some(decision.status);
    assert_eq!(provider_status(&found).instance_id.as_deref(), Some("i-1"));
}

/// Between its drain and its termination lay a hook, and somebody let pods come again.
#[test]
fn a_node_that_was_uncordoned_after_its_drain_is_drained_again() {
    let node = |unschedulable: bool| {
        serde_json::from_value::<Node>(json!({
            "metadata": {"name": "node-1"}, "spec": {"unschedulable": unschedulable} }))
        .unwrap()
    };
    for (is_cordoned, drained, expected) in [
        (true, "Drain finished successfully", true),
        (false, "Node drain skipped", true),
        (false, "Drain finished successfully", false),
    ] {
        let mut machine = deleting(recorded("running"));
        let conditions = &mut machine.status.as_mut().unwrap().conditions;
        condition::set(conditions, Condition::holds("Drained", now()).with_message(drained));
        let node = node(is_cordoned);
        let known = CloudKnowledge::Known(vec![instance(InstanceState::Running)]);
        let observed = Observed { node: NodeMatch::One(&node), ..observed(&machine, known) };
        let decision = decide(&observed, &Policy::default(), now());
        let terminates = names(&decision).contains(&"Terminate");
        assert_eq!(terminates, expected, "{is_cordoned} {drained}: {:?}", decision.waiting);
        assert_eq!(condition::is_true(&decision.status.conditions, "Drained"), expected);
    }
}

#[test]
fn an_instance_of_another_machine_is_never_terminated() {
    let mut foreign = instance(InstanceState::Running);
    foreign.tags.insert("machinist.dev/machine-uid".into(), "uid-2".into());
    let decision = decided(&deleting(recorded("running")), vec![foreign]);
    assert_eq!(names(&decision), ["RemoveFinalizer"]);
}

#[test]
fn what_was_never_launched_needs_no_cloud_to_go() {
    let machine = deleting(json!({}));
    assert!(!may_have_instance(&machine));
    let unknown = CloudKnowledge::Unknown(failure(ErrorClass::Unauthorized));
    let decision = decide(&observed(&machine, unknown), &Policy::default(), now());
    assert_eq!(names(&decision), ["RemoveFinalizer"]);
}

#[test]
fn an_unresolved_launch_is_waited_for_before_letting_go() {
    let overrides = json!({"status": {"providerStatus": {"launch": intent(1, seconds_ago(2))}}});
    let machine = deleting(overrides);
    let held = decided(&machine, vec![]);
    assert!(held.actions.is_empty());
    let later = held.recheck.expect("a time to look again");
    let known = observed(&machine, CloudKnowledge::Known(vec![]));
    assert_eq!(names(&decide(&known, &Policy::default(), later)), ["RemoveFinalizer"]);
    let appeared = decided(&machine, vec![instance(InstanceState::Pending)]);
    assert_eq!(names(&appeared), ["Terminate"]);
}

#[test]
fn a_just_launched_instance_that_no_read_shows_yet_is_not_let_go_of() {
    let mut overrides = recorded("pending");
    merge(
        &mut overrides,
        json!({"status": {"providerStatus": {"launch": intent(1, seconds_ago(3))}}}),
    );
    let machine = deleting(overrides);
    let held = decided(&machine, vec![]);
    assert!(held.actions.is_empty(), "{:?}", held.actions);
    let later = held.recheck.expect("a time to look again");
    let known = observed(&machine, CloudKnowledge::Known(vec![]));
    assert_eq!(names(&decide(&known, &Policy::default(), later)), ["RemoveFinalizer"]);
}

#[test]
fn a_clock_that_was_set_makes_no_launch_older() {
    let mut overrides = recorded("pending");
    merge(
        &mut overrides,
        json!({"status": {"providerStatus": {"launch": intent(1, seconds_ago(600))}}}),
    );
    let machine = deleting(overrides.clone());
    assert_eq!(names(&decided(&machine, vec![])), ["RemoveFinalizer"]);

    let known = observed(&machine, CloudKnowledge::Known(vec![]));
    let policy = Policy { clock_set_at: Some(seconds_ago(20)), ..Policy::default() };
    let held = decide(&known, &policy, now());
    assert!(held.actions.is_empty(), "{:?}", held.actions);
    assert_eq!(held.recheck, Some(seconds_ago(-40)));

    let created = json!({"metadata": {"creationTimestamp": seconds_ago(30).to_string()}});
    merge(&mut overrides, created);
    let held = decided(&deleting(overrides), vec![]);
    assert!(held.actions.is_empty(), "the clock of who recorded the launch was behind");
}

#[test]
fn a_termination_that_came_to_nothing_is_asked_for_again() {
    let machine = deleting(recorded("running"));
    for state in [InstanceState::Running, InstanceState::ShuttingDown] {
        assert!(decided(&machine, vec![instance(state)]).recheck.is_some(), "{state:?}");
    }
}

#[test]
fn a_record_that_cannot_be_read_is_left_alone_and_reported() {
    let broken = json!({"status": {"providerStatus": {"instanceId": 7}}});
    for machine in [machine(broken.clone()), deleting(broken)] {
        let decision = decided(&machine, vec![]);
        assert!(decision.actions.is_empty(), "{:?}", decision.actions);
        let (_, _, message) = condition_of(&decision.status, "InstanceExists");
        assert!(message.starts_with("status.providerStatus"), "{message}");
        let before = machine.status.unwrap().provider_status.unwrap();
        assert_eq!(decision.status.provider_status.unwrap().as_json(), before.as_json());
    }
}

#[test]
fn the_node_goes_after_its_instance_and_before_the_finalizer() {
    let machine = deleting(recorded("running"));
    let node: Node = serde_json::from_value(json!({
        "metadata": {"name": "node-1", "uid": "node-uid"},
        "spec": {"providerID": "aws:///us-east-1a/i-1", "unschedulable": true},
    }))
    .unwrap();
    let mut gone =
        observed(&machine, CloudKnowledge::Known(vec![instance(InstanceState::Terminated)]));
    gone.node = node_of(&machine, [&node]);
    let decision = decide(&gone, &Policy::default(), now());
    assert_eq!(names(&decision), ["DeleteNode", "RemoveFinalizer"]);
    let mut live =
        observed(&machine, CloudKnowledge::Known(vec![instance(InstanceState::Running)]));
    live.node = node_of(&machine, [&node]);
    assert_eq!(names(&decide(&live, &Policy::default(), now())), ["Terminate"]);
}

#[test]
fn an_error_survives_the_deletion() {
    let mut overrides = recorded("running");
    merge(&mut overrides, json!({"status": {"errorMessage": "can't find created instance"}}));
    let decision = decided(&deleting(overrides), vec![instance(InstanceState::ShuttingDown)]);
    assert!(decision.status.error_message.is_some(), "D24");
}
