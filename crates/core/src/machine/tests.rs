//! Tables over one Machine's life. Each test names the behaviour that it holds.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use machinist_api::{Machine, MachineAddress, MachineStatus, condition};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    Action, CloudKnowledge, MachineDecision, Observed, Policy, decide,
    decide::wants_launch,
    observed::{client_token, may_have_instance},
    outcome,
};
use crate::{
    cloud::{CloudFailure, ErrorClass, Instance, InstanceId, InstanceState},
    nodelink::{NodeMatch, node_of},
};

const UID: &str = "uid-1";

fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

fn seconds_ago(seconds: i64) -> Timestamp {
    Timestamp::from_second(now().as_second() - seconds).unwrap()
}

/// A Machine as the API server would store it, with overrides merged in.
fn machine(overrides: Value) -> Machine {
    let mut base = json!({
        "apiVersion": "machine.openshift.io/v1beta1",
        "kind": "Machine",
        "metadata": {
            "name": "worker-1", "namespace": "ns", "uid": UID, "resourceVersion": "7",
            "generation": 1, "finalizers": ["machine.machine.openshift.io"],
            "labels": {"machine.openshift.io/cluster-api-cluster": "demo"},
            "creationTimestamp": "2026-01-01T11:00:00Z",
        },
        "spec": {"providerSpec": {"value": {"kind": "AWSMachineProviderConfig"}}},
    });
    merge(&mut base, overrides);
    serde_json::from_value(base).unwrap()
}

fn merge(target: &mut Value, patch: Value) {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => {
            for (key, value) in patch {
                if value.is_null() {
                    target.remove(&key);
                } else {
                    merge(target.entry(key).or_insert(Value::Null), value);
                }
            }
        }
        (target, patch) => *target = patch,
    }
}

fn instance(state: InstanceState) -> Instance {
    Instance {
        id: InstanceId("i-1".into()),
        provider_id: "aws:///us-east-1a/i-1".into(),
        state,
        state_reason: String::new(),
        region: "us-east-1".into(),
        zone: "us-east-1a".into(),
        instance_type: "m5.large".into(),
        launched_at: None,
        client_token: Some(client_token(UID, 1)),
        interruptible: false,
        tags: BTreeMap::from([
            ("machinist.dev/machine-uid".into(), UID.into()),
            ("kubernetes.io/cluster/demo".into(), "owned".into()),
        ]),
        addresses: vec![MachineAddress { address: "10.0.0.1".into(), type_: "InternalIP".into() }],
    }
}

fn observed(machine: &Machine, cloud: CloudKnowledge) -> Observed<'_> {
    Observed {
        machine,
        cloud,
        node: NodeMatch::None,
        owner_is_deleting: false,
        launch_check: Some(Ok(())),
    }
}

fn decided(machine: &Machine, instances: Vec<Instance>) -> MachineDecision {
    decide(&observed(machine, CloudKnowledge::Known(instances)), &Policy::default(), now())
}

fn names(decision: &MachineDecision) -> Vec<&'static str> {
    decision.actions.iter().map(Action::name).collect()
}

fn condition_of<'a>(status: &'a MachineStatus, type_: &str) -> (&'a str, &'a str, &'a str) {
    let found = condition::find(&status.conditions, type_).expect("condition is set");
    (
        found.status.as_str(),
        found.reason.as_deref().unwrap_or_default(),
        found.message.as_deref().unwrap_or_default(),
    )
}

fn failure(class: ErrorClass) -> CloudFailure {
    CloudFailure { class, message: "the cloud's words".into() }
}

fn intent(attempt: u32, since: Timestamp) -> Value {
    json!({"attempt": attempt, "clientToken": client_token(UID, attempt), "since": since.to_string()})
}

fn recorded(state: &str) -> Value {
    json!({
        "spec": {"providerID": "aws:///us-east-1a/i-1"},
        "status": {
            "phase": "Running",
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            "providerStatus": {
                "instanceId": "i-1", "instanceState": state, "launch": intent(1, seconds_ago(3600)),
            },
        },
    })
}

fn deleting(mut overrides: Value) -> Machine {
    merge(
        &mut overrides,
        json!({
            "metadata": {"deletionTimestamp": seconds_ago(1).to_string()},
            "status": {
                "phase": "Deleting",
                "conditions": [{
                    "type": "Drained", "status": "True",
                    "lastTransitionTime": "2026-01-01T11:59:00Z",
                }],
            },
        }),
    );
    machine(overrides)
}

// Launch.

#[test]
fn finalizer_comes_before_everything() {
    let decision = decided(&machine(json!({"metadata": {"finalizers": null}})), vec![]);
    assert_eq!(names(&decision), ["AddFinalizer"]);
}

#[test]
fn intent_is_stored_before_the_launch() {
    let decision = decided(&machine(json!({})), vec![]);
    assert_eq!(names(&decision), ["StoreIntent", "Launch"]);
    let Action::StoreIntent(status) = &decision.actions[0] else { panic!() };
    assert_eq!(status.phase.as_deref(), Some("Provisioning"));
    let stored: Value = status.provider_status.as_ref().unwrap().parse().unwrap();
    assert_eq!(stored["launch"]["clientToken"], "uid-1-1");
    let Action::Launch { client_token } = &decision.actions[1] else { panic!() };
    assert_eq!(client_token, "uid-1-1");
}

#[test]
fn a_stored_intent_is_repeated_with_the_same_token() {
    let overrides = json!({"status": {"providerStatus": {"launch": intent(1, seconds_ago(5))}}});
    let decision = decided(&machine(overrides), vec![]);
    assert_eq!(names(&decision), ["Launch"]);
}

#[test]
fn a_launch_whose_answer_was_lost_is_found_by_its_uid() {
    let overrides = json!({"status": {"providerStatus": {"launch": intent(1, seconds_ago(5))}}});
    let decision = decided(&machine(overrides), vec![instance(InstanceState::Running)]);
    assert!(!names(&decision).contains(&"Launch"));
    let status: Value = decision.status.provider_status.unwrap().parse().unwrap();
    assert_eq!(status["instanceId"], "i-1");
}

#[test]
fn nothing_is_launched_while_the_cloud_is_unknown_or_the_owner_goes() {
    let machine = machine(json!({}));
    for cloud in [CloudKnowledge::Loading, CloudKnowledge::Unknown(failure(ErrorClass::Throttled))]
    {
        let decision = decide(&observed(&machine, cloud), &Policy::default(), now());
        assert!(decision.actions.is_empty());
        assert!(!decision.waiting.is_empty(), "every wait says why");
    }
    let mut orphan = observed(&machine, CloudKnowledge::Known(vec![]));
    orphan.owner_is_deleting = true;
    assert!(decide(&orphan, &Policy::default(), now()).actions.is_empty());
    assert!(!wants_launch(&orphan, &Policy::default(), now()));
}

#[test]
fn a_refused_check_says_why_and_stores_no_intent() {
    let machine = machine(json!({}));
    let mut observed = observed(&machine, CloudKnowledge::Known(vec![]));
    observed.launch_check = Some(Err(CloudFailure {
        class: ErrorClass::InvalidConfiguration,
        message: "providerSpec.subnet: no such subnet".into(),
    }));
    let decision = decide(&observed, &Policy::default(), now());
    assert!(decision.actions.is_empty());
    assert_eq!(decision.status.phase.as_deref(), Some("Failed"));
    assert_eq!(decision.status.error_reason.as_deref(), Some("InvalidConfiguration"));
    assert!(decision.announcements[0].message.contains("providerSpec.subnet"));
    assert!(decision.status.provider_status.unwrap().as_json().contains("refusedGeneration"));
}

#[test]
fn only_invalid_configuration_is_terminal() {
    let machine = machine(json!({"status": {"providerStatus": {"launch": intent(1, now())}}}));
    for class in [
        ErrorClass::Transient,
        ErrorClass::Throttled,
        ErrorClass::NotFound,
        ErrorClass::QuotaExceeded,
        ErrorClass::InsufficientCapacity,
        ErrorClass::Unauthorized,
        ErrorClass::Unknown,
    ] {
        let after = outcome::launch_failed(&machine, &failure(class), true, now());
        assert_eq!(after.status.phase.as_deref(), Some("Provisioning"), "{class:?}");
        assert_eq!(after.status.error_message, None, "{class:?}");
    }
    let invalid = failure(ErrorClass::InvalidConfiguration);
    let after = outcome::launch_failed(&machine, &invalid, true, now());
    assert_eq!(after.status.phase.as_deref(), Some("Failed"));
}

#[test]
fn a_refusal_gets_a_new_token_after_a_pause() {
    let mut machine = machine(json!({"status": {"providerStatus": {"launch": intent(1, now())}}}));
    let quota = failure(ErrorClass::QuotaExceeded);
    let refused = outcome::launch_failed(&machine, &quota, true, now());
    machine.status = Some(refused.status);
    let held = decided(&machine, vec![]);
    assert!(held.actions.is_empty());
    assert!(held.waiting[0].message.contains("the cloud's words"), "{:?}", held.waiting);
    let later = held.recheck.expect("a time to try again");
    let known = observed(&machine, CloudKnowledge::Known(vec![]));
    let next = decide(&known, &Policy::default(), later);
    assert_eq!(names(&next), ["StoreIntent", "Launch"]);
    assert_eq!(next.actions[1], Action::Launch { client_token: "uid-1-2".into() });
}

#[test]
fn a_token_whose_first_answer_was_lost_is_never_given_up() {
    let mut machine = machine(json!({"status": {"providerStatus": {"launch": intent(1, now())}}}));
    // The first call had an effect and its answer was lost; the second is refused for good.
    for (class, only_call) in [(ErrorClass::Transient, true), (ErrorClass::Unauthorized, false)] {
        let after = outcome::launch_failed(&machine, &failure(class), only_call, now());
        machine.status = Some(after.status);
        let decision = decided(&machine, vec![]);
        assert_eq!(decision.actions, [Action::Launch { client_token: "uid-1-1".into() }]);
    }
}

#[test]
fn a_failed_machine_is_left_alone_until_its_spec_changes() {
    let failed = json!({
        "status": {
            "phase": "Failed", "errorReason": "InvalidConfiguration", "errorMessage": "bad",
            "providerStatus": {"refusedGeneration": 1},
        },
    });
    assert!(decided(&machine(failed.clone()), vec![]).actions.is_empty());
    let mut corrected = failed;
    merge(&mut corrected, json!({"metadata": {"generation": 2}}));
    let decision = decided(&machine(corrected), vec![]);
    assert_eq!(names(&decision), ["StoreIntent", "Launch"]);
    assert_eq!(decision.status.error_message, None);
    assert_eq!(decision.status.phase.as_deref(), Some("Provisioning"));
}

// A Machine that lives.

#[test]
fn a_pending_instance_costs_no_metadata_write() {
    let overrides = json!({"status": {"providerStatus": {"launch": intent(1, seconds_ago(1))}}});
    let decision = decided(&machine(overrides), vec![instance(InstanceState::Pending)]);
    assert!(decision.actions.is_empty());
    assert_eq!(decision.status.phase.as_deref(), Some("Provisioning"));
}

#[test]
fn a_running_instance_makes_the_machine_provisioned_then_running() {
    let machine = machine(json!({}));
    let decision = decided(&machine, vec![instance(InstanceState::Running)]);
    let [Action::ChangeMetadata(change)] = decision.actions.as_slice() else {
        panic!("{:?}", decision.actions)
    };
    assert_eq!(change.provider_id.as_deref(), Some("aws:///us-east-1a/i-1"));
    assert_eq!(change.labels["machine.openshift.io/zone"], "us-east-1a");
    assert_eq!(change.annotations["machine.openshift.io/instance-state"], "running");
    assert_eq!(decision.status.phase.as_deref(), Some("Provisioned"));
    assert_eq!(condition_of(&decision.status, "InstanceExists").0, "True");

    let node: Node = serde_json::from_value(json!({
        "metadata": {"name": "node-1", "uid": "node-uid"},
        "spec": {"providerID": "aws:///us-east-1a/i-1"},
    }))
    .unwrap();
    let linked = super::tests::machine(json!({"spec": {"providerID": "aws:///us-east-1a/i-1"}}));
    let mut observed =
        observed(&linked, CloudKnowledge::Known(vec![instance(InstanceState::Running)]));
    observed.node = node_of(&linked, [&node]);
    let decision = decide(&observed, &Policy::default(), now());
    assert_eq!(decision.status.phase.as_deref(), Some("Running"));
    assert_eq!(decision.status.node_ref.unwrap().uid.as_deref(), Some("node-uid"));
}

#[test]
fn node_reference_follows_the_uid_and_survives_the_node() {
    let overrides = json!({
        "spec": {"providerID": "aws:///us-east-1a/i-1"},
        "status": {"nodeRef": {"kind": "Node", "name": "node-1", "uid": "old"}},
    });
    let machine = machine(overrides);
    let node: Node = serde_json::from_value(json!({
        "metadata": {"name": "node-1", "uid": "new"},
        "spec": {"providerID": "aws:///us-east-1a/i-1"},
    }))
    .unwrap();
    let running = CloudKnowledge::Known(vec![instance(InstanceState::Running)]);
    let mut with_node = observed(&machine, running.clone());
    with_node.node = node_of(&machine, [&node]);
    let decision = decide(&with_node, &Policy::default(), now());
    assert_eq!(decision.status.node_ref.unwrap().uid.as_deref(), Some("new"));
    let decision = decide(&observed(&machine, running), &Policy::default(), now());
    assert_eq!(decision.status.node_ref.unwrap().uid.as_deref(), Some("old"));
}

#[test]
fn a_stopped_instance_still_exists() {
    let decision = decided(&machine(recorded("running")), vec![instance(InstanceState::Stopped)]);
    assert_eq!(condition_of(&decision.status, "InstanceExists").0, "True");
    let [Action::ChangeMetadata(change)] = decision.actions.as_slice() else {
        panic!("{:?}", decision.actions)
    };
    assert_eq!(change.annotations["machine.openshift.io/instance-state"], "stopped");
}

#[test]
fn a_gone_instance_fails_the_machine_and_launches_nothing() {
    for instances in [vec![], vec![instance(InstanceState::Terminated)]] {
        let decision = decided(&machine(recorded("running")), instances);
        assert_eq!(decision.status.phase.as_deref(), Some("Failed"));
        assert_eq!(decision.status.error_message.as_deref(), Some("can't find created instance"));
        let (status, reason, _) = condition_of(&decision.status, "InstanceExists");
        assert_eq!((status, reason), ("False", "InstanceMissing"));
        assert!(!names(&decision).contains(&"Launch"));
    }
}

#[test]
fn an_instance_that_may_not_be_visible_yet_is_waited_for() {
    let mut overrides = recorded("pending");
    merge(
        &mut overrides,
        json!({"status": {"providerStatus": {"launch": intent(1, seconds_ago(3))}}}),
    );
    let decision = decided(&machine(overrides), vec![]);
    assert!(decision.actions.is_empty());
    assert_ne!(decision.status.phase.as_deref(), Some("Failed"));
    assert!(decision.recheck.is_some());
}

#[test]
fn an_instance_of_another_controller_is_adopted_by_id() {
    let mut overrides = recorded("running");
    merge(&mut overrides, json!({"status": {"providerStatus": {"launch": null}}}));
    let mut untagged = instance(InstanceState::Running);
    untagged.tags.remove("machinist.dev/machine-uid");
    let decision = decided(&machine(overrides.clone()), vec![untagged.clone()]);
    assert!(names(&decision).contains(&"TagInstance"), "{:?}", decision.actions);
    assert!(!names(&decision).contains(&"Launch"));
    assert_eq!(decision.status.phase.as_deref(), Some("Provisioned"));

    untagged.tags.clear();
    let decision = decided(&machine(overrides.clone()), vec![untagged]);
    assert!(decision.actions.is_empty(), "not the cluster's: nothing is touched");
    let (_, _, message) = condition_of(&decision.status, "InstanceExists");
    assert!(message.contains("kubernetes.io/cluster/demo"), "{message}");

    let mut foreign = instance(InstanceState::Running);
    foreign.tags.insert("machinist.dev/machine-uid".into(), "uid-2".into());
    let decision = decided(&machine(overrides), vec![foreign]);
    assert!(decision.actions.is_empty(), "another machine's: nothing is touched");
}

#[test]
fn a_cloud_that_does_not_answer_says_nothing_about_the_instance() {
    let machine = machine(recorded("running"));
    let unknown = CloudKnowledge::Unknown(failure(ErrorClass::Transient));
    let decision = decide(&observed(&machine, unknown), &Policy::default(), now());
    assert_eq!(decision.status.phase.as_deref(), Some("Running"));
    assert!(decision.actions.is_empty());
    let (status, reason, message) = condition_of(&decision.status, "InstanceExists");
    assert_eq!((status, reason), ("Unknown", "ErrorCheckingProvider"));
    assert_eq!(message, "Failed to check if machine exists: the cloud's words");
}

#[test]
fn each_fault_of_the_object_is_named_on_it() {
    let cases = [
        (
            json!({"metadata": {"labels": null}}),
            "metadata.labels[machine.openshift.io/cluster-api-cluster]",
        ),
        (json!({"spec": {"providerSpec": {"value": null}}}), "spec.providerSpec.value"),
        (
            json!({"spec": {"providerSpec": {"value": {"kind": "Other"}}}}),
            "spec.providerSpec.value.kind",
        ),
    ];
    for (overrides, field) in cases {
        let decision = decided(&machine(overrides), vec![]);
        assert!(decision.actions.is_empty());
        let (_, reason, message) = condition_of(&decision.status, "InstanceExists");
        assert_eq!(reason, "InvalidConfiguration");
        assert!(message.starts_with(field), "{message}");
        assert_eq!(decision.announcements[0].reason, "FailedValidate");
    }
}

#[test]
fn a_machine_that_another_api_owns_is_left_alone() {
    let overrides = json!({
        "spec": {"authoritativeAPI": "ClusterAPI"},
        "status": {"authoritativeAPI": "ClusterAPI"},
    });
    let decision = decided(&machine(overrides), vec![]);
    assert!(decision.actions.is_empty());
    let (status, reason, message) = condition_of(&decision.status, "Paused");
    assert_eq!((status, reason), ("True", "AuthoritativeAPINotMachineAPI"));
    assert_eq!(message, "The AuthoritativeAPI status is set to 'ClusterAPI'");
}

#[test]
fn hooks_are_named_as_the_peer_names_them() {
    let overrides = json!({
        "spec": {"lifecycleHooks": {"preDrain": [{"name": "etcd", "owner": "clusteroperator/etcd"}]}},
    });
    let decision = decided(&machine(overrides), vec![]);
    assert_eq!(
        condition_of(&decision.status, "Drainable").2,
        "Drain operation currently blocked by: [{Name:etcd Owner:clusteroperator/etcd}]"
    );
    assert_eq!(condition_of(&decision.status, "Terminable").0, "True");
}

// Deletion.

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
        "spec": {"providerID": "aws:///us-east-1a/i-1"},
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

// Properties.

fn any_state() -> impl Strategy<Value = InstanceState> {
    prop_oneof![
        Just(InstanceState::Pending),
        Just(InstanceState::Running),
        Just(InstanceState::Stopping),
        Just(InstanceState::Stopped),
        Just(InstanceState::ShuttingDown),
        Just(InstanceState::Terminated),
    ]
}

fn any_machine() -> impl Strategy<Value = Machine> {
    let launch = prop_oneof![
        Just(json!({})),
        (1..4_u32, 0..200_i64).prop_map(|(attempt, ago)| {
            json!({"status": {"providerStatus": {"launch": intent(attempt, seconds_ago(ago))}}})
        }),
        Just(recorded("running")),
    ];
    (launch, any::<bool>(), any::<bool>()).prop_map(|(overrides, goes, has_finalizer)| {
        let mut machine = if goes { deleting(overrides) } else { machine(overrides) };
        if !has_finalizer {
            machine.metadata.finalizers = None;
        }
        machine
    })
}

proptest! {
    /// Publishing a decision and deciding again on the same facts changes nothing more.
    #[test]
    fn a_published_status_is_a_fixpoint(
        mut machine in any_machine(),
        states in proptest::collection::vec(any_state(), 0..2),
    ) {
        let instances: Vec<_> = states.into_iter().map(instance).collect();
        let first = decided(&machine, instances.clone());
        machine.status = Some(first.status.clone());
        let second = decided(&machine, instances);
        prop_assert_eq!(first.status, second.status);
    }

    /// The order of what the cloud lists decides nothing (Rule 2).
    #[test]
    fn the_order_of_instances_does_not_matter(
        machine in any_machine(),
        states in proptest::collection::vec(any_state(), 0..4),
    ) {
        let mut instances: Vec<_> = states
            .into_iter()
            .enumerate()
            .map(|(index, state)| {
                let mut one = instance(state);
                one.id = InstanceId(format!("i-{}", index + 1));
                one
            })
            .collect();
        let forward = decided(&machine, instances.clone());
        instances.reverse();
        let backward = decided(&machine, instances);
        prop_assert_eq!(forward, backward);
    }

    /// S3, S4, S6: no launch without a durable finalizer or for a deleting Machine, no terminate for
    /// a living one, no release while anything of the uid is live.
    #[test]
    fn effects_keep_their_preconditions(
        machine in any_machine(),
        states in proptest::collection::vec(any_state(), 0..3),
    ) {
        let instances: Vec<_> = states
            .into_iter()
            .enumerate()
            .map(|(index, state)| {
                let mut one = instance(state);
                one.id = InstanceId(format!("i-{}", index + 1));
                one
            })
            .collect();
        let decision = decided(&machine, instances.clone());
        let goes = machine.metadata.deletion_timestamp.is_some();
        let has_finalizer = machine.metadata.finalizers.is_some();
        let live = instances.iter().any(|one| one.state.is_live());
        for action in &decision.actions {
            match action {
                Action::Launch { .. } => prop_assert!(!goes && has_finalizer && !live),
                Action::Terminate { .. } => prop_assert!(goes && has_finalizer),
                Action::DeleteNode { .. } | Action::RemoveFinalizer => prop_assert!(goes && !live),
                Action::AddFinalizer => prop_assert!(!has_finalizer && !goes),
                Action::StoreIntent(_) | Action::TagInstance { .. } | Action::ChangeMetadata(_) => {}
            }
        }
        let effects = decision
            .actions
            .iter()
            .filter(|action| matches!(action, Action::Launch { .. } | Action::Terminate { .. }))
            .count();
        prop_assert!(effects <= 1, "one effect in a pass");
    }
}
