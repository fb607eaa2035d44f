//! Tables over one pool.

mod ceilings;
mod delete_order;
mod trouble;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Node;
use machinist_api::{Machine, MachineSet, condition};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    Action, Bounds, Ceilings, MachineSetDecision, Observed, decide,
    observed::{Member, ScalingFailure},
};

/// Nothing is in the way.
const FREE: Bounds = Bounds {
    ceilings: Ceilings { of_one_set: 100, of_all: 100 },
    machines_in_all: 0,
    permitted: 100,
    burst_after: SignedDuration::ZERO,
};

fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

fn set(spec: Value) -> MachineSet {
    let mut base = json!({
        "replicas": 3,
        "selector": {"matchLabels": {"pool": "a"}},
        "template": {
            "metadata": {"labels": {"pool": "a", "extra": "yes"}},
            "spec": {"providerSpec": {"value": {"kind": "AWSMachineProviderConfig", "zz": 1, "aa": 2}}},
        },
    });
    for (key, value) in spec.as_object().unwrap() {
        base[key] = value.clone();
    }
    serde_json::from_value(json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet",
        "metadata": {"name": "pool", "namespace": "ns", "uid": "set-uid", "generation": 4},
        "spec": base,
    }))
    .unwrap()
}

fn machine(name: &str, metadata: Value, status: Value) -> Machine {
    let mut base = json!({
        "name": name, "namespace": "ns", "uid": format!("uid-{name}"), "resourceVersion": "1",
        "labels": {"pool": "a", "extra": "yes"},
        "creationTimestamp": "2026-01-01T11:00:00Z",
        "ownerReferences": [{
            "apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet", "name": "pool",
            "uid": "set-uid", "controller": true,
        }],
    });
    for (key, value) in metadata.as_object().unwrap() {
        base[key] = value.clone();
    }
    serde_json::from_value(json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
        "metadata": base, "spec": {"providerSpec": {}}, "status": status,
    }))
    .unwrap()
}

fn plain(name: &str) -> Machine {
    machine(name, json!({}), json!({"nodeRef": {"name": name}}))
}

fn names() -> Vec<String> {
    (0..10).map(|index| format!("pool-new{index}")).collect()
}

fn decided(set: &MachineSet, machines: &[Machine]) -> MachineSetDecision {
    with_nodes(set, machines, &[])
}

fn with_nodes(set: &MachineSet, machines: &[Machine], nodes: &[Node]) -> MachineSetDecision {
    let fresh = names();
    let observed = Observed {
        set,
        machines: machines
            .iter()
            .map(|machine| Member {
                machine,
                node: nodes.iter().find(|node| node.metadata.name == machine.metadata.name),
            })
            .collect(),
        unreadable: 0,
        fresh_names: &fresh,
        bounds: FREE,
        status_written_at: None,
        last_failure: None,
    };
    decide(&observed, now())
}

fn deleted(decision: &MachineSetDecision) -> Vec<&str> {
    decision
        .actions
        .iter()
        .filter_map(|action| match action {
            Action::Delete { name, .. } => Some(name.as_str()),
            _ => None,
        })
        .collect()
}

#[test]
fn missing_machines_are_made_from_the_template_and_born_with_the_finalizer() {
    let set = set(json!({}));
    let decision = decided(&set, &[plain("one")]);
    let [Action::Create(first), Action::Create(_)] = decision.actions.as_slice() else {
        panic!("{:?}", decision.actions)
    };
    assert_eq!(first.metadata.name.as_deref(), Some("pool-new0"));
    assert_eq!(
        first.metadata.finalizers.as_deref(),
        Some(&["machine.machine.openshift.io".to_owned()][..])
    );
    let owner = &first.metadata.owner_references.as_ref().unwrap()[0];
    assert_eq!((owner.uid.as_str(), owner.block_owner_deletion), ("set-uid", Some(true)));
    assert_eq!(
        first.spec.provider_spec.value.as_ref().unwrap().as_json(),
        set.spec.template.spec.provider_spec.value.as_ref().unwrap().as_json(),
        "byte for byte"
    );
}

#[test]
fn a_machine_that_cannot_be_read_fills_its_place() {
    let set = set(json!({"replicas": 2}));
    let fresh = names();
    let one = plain("one");
    let observed = Observed {
        set: &set,
        machines: vec![Member { machine: &one, node: None }],
        unreadable: 1,
        fresh_names: &fresh,
        bounds: FREE,
        status_written_at: None,
        last_failure: None,
    };
    assert!(decide(&observed, now()).actions.is_empty());
}

#[test]
fn deleting_machines_are_replaced_at_once() {
    let going = machine("going", json!({"deletionTimestamp": "2026-01-01T11:59:00Z"}), json!({}));
    let decision = decided(&set(json!({})), &[plain("one"), plain("two"), going]);
    assert_eq!(decision.actions.len(), 1);
    assert_eq!(decision.status.replicas, Some(2));
}

#[test]
fn what_no_longer_matches_is_released_and_what_matches_is_adopted() {
    let strayed = machine("strayed", json!({"labels": {"pool": "b"}}), json!({}));
    let orphan = machine("orphan", json!({"ownerReferences": []}), json!({}));
    let foreign = machine(
        "foreign",
        json!({"ownerReferences": [{
            "apiVersion": "x/v1", "kind": "Other", "name": "o", "uid": "o", "controller": true,
        }]}),
        json!({}),
    );
    let decision = decided(&set(json!({"replicas": 1})), &[strayed, orphan, foreign]);
    let kinds: Vec<_> = decision
        .actions
        .iter()
        .map(|action| match action {
            Action::Release { name, .. } => ("release", name.as_str()),
            Action::Adopt { name, .. } => ("adopt", name.as_str()),
            Action::Create(_) => ("create", ""),
            Action::Delete { name, .. } => ("delete", name.as_str()),
        })
        .collect();
    assert_eq!(kinds, [("release", "strayed"), ("adopt", "orphan")]);
}

#[test]
fn counts_are_of_what_is_kept() {
    let ready = |name: &str, since: &str| -> Node {
        serde_json::from_value(json!({
            "metadata": {"name": name},
            "status": {"conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": since},
            ]},
        }))
        .unwrap()
    };
    let nodes = [ready("one", "2026-01-01T11:00:00Z"), ready("two", "2026-01-01T11:59:50Z")];
    let stray = machine("three", json!({"labels": {"pool": "a"}}), json!({}));
    let machines = [plain("one"), plain("two"), stray];
    let decision = with_nodes(&set(json!({"minReadySeconds": 60})), &machines, &nodes);
    let status = &decision.status;
    assert_eq!(
        (
            status.replicas,
            status.fully_labeled_replicas,
            status.ready_replicas,
            status.available_replicas
        ),
        (Some(3), Some(2), Some(2), Some(1))
    );
    assert_eq!(status.label_selector.as_deref(), Some("pool=a"));
    assert_eq!(status.observed_generation, Some(4));
    assert_eq!(decision.recheck, Some("2026-01-01T12:00:50Z".parse().unwrap()));
}

#[test]
fn a_machine_whose_instance_does_not_run_is_not_ready_whatever_its_node_says() {
    let node: Node = serde_json::from_value(json!({
        "metadata": {"name": "one"},
        "status": {"conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T11:00:00Z"},
        ]},
    }))
    .unwrap();
    let cases = [
        ("InstanceRunning", "False", 0),
        ("InstanceRunning", "True", 1),
        // Unknown is neither healthy nor unhealthy (Rule 7): the Node has the word.
        ("InstanceRunning", "Unknown", 1),
        ("InstanceHealthy", "False", 1),
    ];
    for (type_, status, expected) in cases {
        let conditions = json!([
            {"type": type_, "status": status, "lastTransitionTime": "2026-01-01T11:59:00Z"},
        ]);
        let status = json!({"nodeRef": {"name": "one"}, "conditions": conditions});
        let machines = [machine("one", json!({}), status)];
        let spec = set(json!({"replicas": 1, "minReadySeconds": 7200}));
        let decision = with_nodes(&spec, &machines, std::slice::from_ref(&node));
        assert_eq!(decision.status.ready_replicas, Some(expected), "{conditions}");
        assert_eq!(decision.recheck.is_some(), expected == 1, "{conditions}");
        let spec = set(json!({"replicas": 1}));
        let decision = with_nodes(&spec, &machines, std::slice::from_ref(&node));
        assert_eq!(decision.status.available_replicas, Some(expected), "{conditions}");
        assert_eq!(decision.status.replicas, Some(1), "it keeps its place");
    }
}

#[test]
fn each_fault_is_named_on_the_set_and_nothing_happens() {
    let cases = [
        (json!({"selector": {}}), "spec.selector"),
        (json!({"selector": {"matchLabels": {"pool": "b"}}}), "spec.template.metadata.labels"),
        (json!({"replicas": -1}), "spec.replicas"),
        (json!({"deletePolicy": "Tallest"}), "spec.deletePolicy"),
    ];
    for (spec, field) in cases {
        let decision = decided(&set(spec), &[plain("one")]);
        assert!(decision.actions.is_empty(), "{field}");
        let found = condition::find(&decision.status.conditions, "Scaling").unwrap();
        assert!(found.message.as_ref().unwrap().starts_with(field), "{found:?}");
        assert_eq!(decision.announcements[0].reason, "ReconcileError");
        assert_eq!(decision.status.error_reason.as_deref(), Some("InvalidConfiguration"));
    }
}

#[test]
fn a_failure_to_scale_is_said_by_its_kind_and_taken_back() {
    let identity = || ("one".to_owned(), "uid-one".to_owned(), "1".to_owned());
    let (name, uid, resource_version) = identity();
    let delete = Action::Delete { name, uid, resource_version };
    let (name, uid, resource_version) = identity();
    let adopt = Action::Adopt { name, uid, resource_version };
    let cases = [
        (Action::Create(Box::new(plain("one"))), "CreatingMachinesFailed", "CreateError"),
        (delete, "DeletingMachinesFailed", "DeleteError"),
        (adopt, "UpdatingMachinesFailed", "UpdateError"),
    ];
    for (action, reason, error_reason) in cases {
        let mut set = set(json!({}));
        let failure = ScalingFailure::of(&action, "quota exceeded".to_owned());
        let fresh = names();
        let failed = |set: &MachineSet, machines: &[Machine]| {
            let observed = Observed {
                set,
                machines: machines.iter().map(|machine| Member { machine, node: None }).collect(),
                unreadable: 0,
                fresh_names: &fresh,
                bounds: FREE,
                status_written_at: None,
                last_failure: Some(&failure),
            };
            decide(&observed, now()).status
        };
        let status = failed(&set, &[]);
        let condition = condition::find(&status.conditions, "Scaling").unwrap();
        assert_eq!(condition.reason.as_deref(), Some(reason));
        assert_eq!(status.error_reason.as_deref(), Some(error_reason));
        assert_eq!(status.error_message.as_deref(), Some("quota exceeded"));
        set.status = Some(status);
        // The pool has its size by other means: what failed once is over, even while remembered.
        let status = failed(&set, &[plain("one"), plain("two"), plain("three")]);
        assert!(condition::is_true(&status.conditions, "Scaling"), "{reason}");
        assert_eq!((status.error_reason, status.error_message), (None, None));
    }
}

#[test]
fn mere_counts_are_not_written_again_at_once() {
    let mut set = set(json!({}));
    set.status = Some(decided(&set, &[plain("one")]).status);
    let machines = [plain("one"), plain("two")];
    let observed = Observed {
        set: &set,
        machines: machines.iter().map(|machine| Member { machine, node: None }).collect(),
        unreadable: 0,
        fresh_names: &[],
        bounds: FREE,
        status_written_at: Some(now()),
        last_failure: None,
    };
    let decision = decide(&observed, now());
    assert_eq!(Some(&decision.status), set.status.as_ref());
    let later = decision.recheck.expect("written a moment later");
    assert_eq!(decide(&observed, later).status.replicas, Some(2));
}

proptest! {
    /// S19: carrying the decision out brings the pool to its size, and then nothing more happens.
    #[test]
    fn one_pass_reaches_the_size_and_stays(replicas in 0..9_i32, existing in 0..9_usize) {
        let set = set(json!({"replicas": replicas}));
        let mut machines: Vec<_> = (0..existing).map(|index| plain(&format!("m{index}"))).collect();
        let decision = decided(&set, &machines);
        for action in &decision.actions {
            match action {
                Action::Create(machine) => machines.push((**machine).clone()),
                Action::Delete { name, .. } => {
                    machines.retain(|machine| machine.metadata.name.as_ref() != Some(name));
                }
                Action::Adopt { .. } | Action::Release { .. } => {}
            }
        }
        prop_assert_eq!(machines.len(), usize::try_from(replicas).unwrap());
        prop_assert!(decided(&set, &machines).actions.is_empty());
    }
}
