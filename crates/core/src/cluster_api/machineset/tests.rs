//! How many Machines, which ones, and what is said?

mod deleting;
mod growing;
mod marks;
mod remediation;
mod shrinking;

use jiff::{SignedDuration, Timestamp};
use machinist_api::cluster_api::{Cluster, Machine, MachineDeployment, MachineSet, condition};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{
    Action, MachineSetDecision, Observed, Part, Template, decide,
    observed::{ControlPlane, Found, Provided},
    propagate,
};
use crate::{
    cluster_api::contract::GroupKind,
    machineset::{Bounds, Ceilings},
};

fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

fn read<K: DeserializeOwned>(object: Value) -> K {
    serde_json::from_value(object).unwrap()
}

/// A set that is complete: finalizer, owner, labels.
fn set(replicas: i32) -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineSet",
        "metadata": {
            "name": "ms", "namespace": "ns", "uid": "uid-ms", "resourceVersion": "9", "generation": 1,
            "finalizers": ["cluster.x-k8s.io/machineset"],
            "labels": { "cluster.x-k8s.io/cluster-name": "c1" },
            "annotations": {
                (propagate::GIVEN): "labels=cluster.x-k8s.io/cluster-name,pool;annotations=",
            },
            "ownerReferences": [{
                "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "c1", "uid": "uid-c1",
            }],
        },
        "spec": {
            "clusterName": "c1", "replicas": replicas,
            "selector": { "matchLabels": { "pool": "a", "cluster.x-k8s.io/cluster-name": "c1" } },
            "template": {
                "metadata": { "labels": { "pool": "a", "cluster.x-k8s.io/cluster-name": "c1" } },
                "spec": {
                    "clusterName": "c1", "version": "v1.34.0",
                    "bootstrap": { "dataSecretName": "data" },
                    "infrastructureRef": {
                        "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "FooMachineTemplate",
                        "name": "foo",
                    },
                },
            },
        },
    })
}

/// A Machine of the set as the set would have made it, healthy and with a Node.
fn machine(name: &str) -> Value {
    let conditions = ["Ready", "Available", "NodeHealthy", "UpToDate"].map(|type_| {
        json!({
            "type": type_, "status": "True", "reason": "R", "message": "",
            "lastTransitionTime": "2026-01-01T11:00:00Z",
        })
    });
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
        "metadata": {
            "name": name, "namespace": "ns", "uid": format!("uid-{name}"), "resourceVersion": "1",
            "generation": 1, "creationTimestamp": "2026-01-01T10:00:00Z",
            "finalizers": ["machine.cluster.x-k8s.io"],
            "labels": {
                "pool": "a", "cluster.x-k8s.io/cluster-name": "c1", "cluster.x-k8s.io/set-name": "ms",
            },
            "ownerReferences": [{
                "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineSet", "name": "ms",
                "uid": "uid-ms", "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": {
            "clusterName": "c1", "version": "v1.34.0", "bootstrap": { "dataSecretName": "data" },
            "infrastructureRef": {
                "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "FooMachine", "name": name,
            },
        },
        "status": {
            "nodeRef": { "name": format!("node-{name}") },
            "conditions": conditions,
        },
    })
}

fn with_condition(mut machine: Value, type_: &str, status: &str) -> Value {
    let conditions = machine["status"]["conditions"].as_array_mut().unwrap();
    conditions.retain(|known| known["type"] != type_);
    conditions.push(json!({
        "type": type_, "status": status, "reason": "R", "message": "words",
        "lastTransitionTime": "2026-01-01T11:00:00Z",
    }));
    machine
}

fn going(mut machine: Value) -> Value {
    machine["metadata"]["deletionTimestamp"] = json!("2026-01-01T11:59:00Z");
    machine
}

fn template() -> Value {
    json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "FooMachineTemplate",
        "metadata": {
            "name": "foo", "namespace": "ns", "uid": "uid-foo", "resourceVersion": "3",
            "labels": { "cluster.x-k8s.io/cluster-name": "c1" },
            "ownerReferences": [{
                "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "c1", "uid": "uid-c1",
            }],
        },
        "spec": { "template": { "spec": { "size": 3 } } },
    })
}

/// Everything that a decision is about, to be changed by a test.
struct World {
    set: Value,
    machines: Vec<Value>,
    cluster: Option<Value>,
    deployment: Option<Value>,
    template: Option<Value>,
    provided: Vec<(GroupKind, Value)>,
    control_plane: ControlPlane,
    names: Vec<String>,
    ceilings: Ceilings,
    unreadable: usize,
    written_at: Option<Timestamp>,
    failure: Option<String>,
}

impl World {
    fn new(set: Value, machines: Vec<Value>) -> Self {
        let cluster = json!({
            "metadata": { "name": "c1", "namespace": "ns", "uid": "uid-c1" }, "spec": {},
        });
        Self {
            set,
            machines,
            cluster: Some(cluster),
            deployment: None,
            template: Some(template()),
            provided: Vec::new(),
            control_plane: ControlPlane::default(),
            names: (0..100).map(|number| format!("ms-{number:05}")).collect(),
            ceilings: Ceilings::default(),
            unreadable: 0,
            written_at: None,
            failure: None,
        }
    }

    fn decide(&self) -> MachineSetDecision {
        self.decide_at(now())
    }

    fn decide_at(&self, now: Timestamp) -> MachineSetDecision {
        let set: MachineSet = read(self.set.clone());
        let machines: Vec<Machine> = self.machines.iter().cloned().map(read).collect();
        let cluster: Option<Cluster> = self.cluster.clone().map(read);
        let deployment: Option<MachineDeployment> = self.deployment.clone().map(read);
        let metadata = |object: &Value| read(object["metadata"].clone());
        let template_metadata = self.template.as_ref().map(metadata);
        let provided: Vec<_> =
            self.provided.iter().map(|(kind, object)| (kind.clone(), metadata(object))).collect();
        let found = match (&self.template, &template_metadata) {
            (Some(object), Some(metadata)) => Found::Whole { metadata, object },
            _ => Found::Missing,
        };
        let observed = Observed {
            set: &set,
            cluster: cluster.as_ref(),
            deployment: deployment.as_ref(),
            machines: machines.iter().collect(),
            unreadable: self.unreadable,
            templates: vec![Template {
                part: Part::Infrastructure,
                reference: &set.spec.template.spec.infrastructure_ref,
                found,
            }],
            control_plane: self.control_plane.clone(),
            provided: provided
                .iter()
                .map(|(kind, metadata)| Provided { kind: kind.clone(), metadata })
                .collect(),
            fresh_names: &self.names,
            bounds: Bounds {
                ceilings: self.ceilings,
                machines_in_all: machines.len(),
                permitted: 500,
                burst_after: SignedDuration::ZERO,
            },
            status_written_at: self.written_at,
            last_failure: self.failure.as_deref(),
        };
        decide(&observed, now)
    }
}

fn created(decision: &MachineSetDecision) -> Vec<String> {
    let actions = decision.actions.iter();
    actions
        .filter_map(|action| match action {
            Action::Create(new) => new.machine.metadata.name.clone(),
            _ => None,
        })
        .collect()
}

fn deleted(decision: &MachineSetDecision) -> Vec<&str> {
    let actions = decision.actions.iter();
    actions
        .filter_map(|action| match action {
            Action::Delete(machine) => Some(machine.name.as_str()),
            _ => None,
        })
        .collect()
}

fn said(decision: &MachineSetDecision, type_: &str) -> (String, String, String) {
    let known = condition::find(&decision.status.conditions, type_).expect(type_);
    (known.status.clone(), known.reason.clone(), known.message.clone())
}

/// A set that is as it should be, with its status stored, is left alone.
#[test]
fn at_a_fixpoint_nothing_is_done_and_nothing_new_is_said() {
    let mut world = World::new(set(2), vec![machine("a"), machine("b")]);
    let first = world.decide();
    assert_eq!(first.actions, []);
    let counts =
        (first.status.replicas, first.status.ready_replicas, first.status.available_replicas);
    assert_eq!(counts, (Some(2), Some(2), Some(2)));
    for (type_, status, reason) in [
        ("ScalingUp", "False", "NotScalingUp"),
        ("ScalingDown", "False", "NotScalingDown"),
        ("MachinesReady", "True", "Ready"),
        ("MachinesUpToDate", "True", "UpToDate"),
        ("Remediating", "False", "NotRemediating"),
        ("Deleting", "False", "NotDeleting"),
        ("Paused", "False", "NotPaused"),
    ] {
        let said = said(&first, type_);
        assert_eq!((said.0.as_str(), said.1.as_str()), (status, reason), "{type_}");
    }
    world.set["status"] = serde_json::to_value(&first.status).unwrap();
    let second = world.decide();
    assert_eq!((second.actions, second.status), (vec![], first.status));
}

#[test]
fn a_paused_set_says_so_and_does_nothing() {
    let mut of_cluster = World::new(set(3), vec![]);
    of_cluster.cluster.as_mut().unwrap()["spec"]["paused"] = json!(true);
    let mut own = World::new(set(3), vec![]);
    own.set["metadata"]["annotations"]["cluster.x-k8s.io/paused"] = json!("");
    for world in [of_cluster, own] {
        let decision = world.decide();
        assert_eq!(decision.actions, []);
        assert_eq!(said(&decision, "Paused").0, "True");
        assert_eq!(decision.waiting.len(), 1);
    }
}

#[test]
fn without_its_cluster_a_set_waits() {
    let mut world = World::new(set(3), vec![]);
    world.cluster = None;
    let decision = world.decide();
    assert_eq!((decision.actions.len(), decision.waiting[0].reason), (0, "ClusterNotFound"));
}

#[test]
fn a_new_set_first_gets_its_finalizer_owner_and_labels_in_one_write() {
    let mut bare = set(2);
    let kept = json!({ "name": "ms", "namespace": "ns", "uid": "uid-ms", "generation": 1 });
    bare["metadata"] = kept;
    bare["spec"]["selector"]["matchLabels"] = json!({ "pool": "a" });
    bare["spec"]["template"]["metadata"]["labels"] = json!({ "pool": "a" });
    let decision = World::new(bare, vec![]).decide();
    let [Action::Amend(patch)] = decision.actions.as_slice() else { panic!("{decision:?}") };
    assert_eq!(patch["metadata"]["finalizers"], json!(["cluster.x-k8s.io/machineset"]));
    assert_eq!(patch["metadata"]["ownerReferences"][0]["kind"], "Cluster");
    assert_eq!(patch["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"], "c1");
    let selected = &patch["spec"]["selector"]["matchLabels"];
    assert_eq!(selected["cluster.x-k8s.io/cluster-name"], "c1");
}

#[test]
fn a_set_of_a_deployment_is_not_tied_to_the_cluster() {
    let mut owned = set(1);
    owned["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDeployment", "name": "md",
        "uid": "uid-md", "controller": true,
    }]);
    let decision = World::new(owned, vec![machine("a")]).decide();
    assert_eq!(decision.actions, []);
}

/// Three hundred Machines that become ready one after another are a handful of writes.
#[test]
fn mere_counts_are_spaced_out() {
    let mut world = World::new(set(2), vec![machine("a"), machine("b")]);
    let first = world.decide();
    world.set["status"] = serde_json::to_value(&first.status).unwrap();
    world.machines[0] = with_condition(machine("a"), "Available", "False");
    world.written_at = Some(now());
    let held = world.decide();
    assert_eq!(held.status, first.status);
    let due = held.recheck.unwrap();
    assert_eq!(world.decide_at(due).status.available_replicas, Some(1));
}

#[test]
fn a_bad_selector_is_said_and_nothing_is_made() {
    let mut wrong = set(2);
    wrong["spec"]["selector"]["matchLabels"]["pool"] = json!("b");
    let decision = World::new(wrong, vec![]).decide();
    assert_eq!(decision.actions, []);
    let (status, reason, message) = said(&decision, "ScalingUp");
    assert_eq!((status.as_str(), reason.as_str()), ("Unknown", "InternalError"));
    assert!(message.starts_with("spec.template.metadata.labels: "), "{message}");
}
