//! A Machine that has its instance, or had it.

use super::*;

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
    let linked = super::machine(json!({"spec": {"providerID": "aws:///us-east-1a/i-1"}}));
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
    let mut long_looked_for = recorded("running");
    let drift = json!({"class": "Vanished", "since": seconds_ago(300), "response": "Wait"});
    merge(&mut long_looked_for, json!({"status": {"providerStatus": {"drift": drift}}}));
    for (overrides, instances) in [
        (long_looked_for, vec![]),
        (recorded("running"), vec![instance(InstanceState::Terminated)]),
    ] {
        let decision = decided(&machine(overrides), instances);
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
fn the_migration_goes_by_the_status_and_begins_with_the_spec() {
    let wants = |api: &str| json!({"spec": {"authoritativeAPI": api}});
    let owned = |spec: Option<&str>, status: &str| {
        let spec = spec.map_or_else(|| json!({}), |api| json!({"authoritativeAPI": api}));
        json!({"spec": spec, "status": {"authoritativeAPI": status}})
    };
    // First the status takes over what the spec wants, and nothing else happens.
    for api in ["MachineAPI", "ClusterAPI"] {
        let decision = decided(&machine(wants(api)), vec![]);
        assert!(decision.actions.is_empty());
        assert_eq!(decision.status.authoritative_api.unwrap().as_str(), api);
        assert!(condition::find(&decision.status.conditions, "Paused").is_none());
    }
    // Then it says who acts, whatever the spec wants next.
    for (spec, status) in [
        (Some("MachineAPI"), "ClusterAPI"),
        (Some("MachineAPI"), "Migrating"),
        (None, "ClusterAPI"),
    ] {
        let decision = decided(&machine(owned(spec, status)), vec![]);
        assert!(decision.actions.is_empty(), "{spec:?} {status}");
        let words = format!("The AuthoritativeAPI status is set to '{status}'");
        let expected = ("True", "AuthoritativeAPINotMachineAPI", words.as_str());
        assert_eq!(condition_of(&decision.status, "Paused"), expected);
        assert_eq!(decision.waiting[0].reason, "AuthoritativeAPINotMachineAPI");
    }
    let ours = decided(&machine(owned(Some("ClusterAPI"), "MachineAPI")), vec![]);
    let words = "The AuthoritativeAPI status is set to 'MachineAPI'";
    let expected = ("False", "AuthoritativeAPIMachineAPI", words);
    assert_eq!(condition_of(&ours.status, "Paused"), expected);
    let severity = condition::find(&ours.status.conditions, "Paused").unwrap().severity;
    assert_eq!(severity, Some(machinist_api::ConditionSeverity::Info));
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
