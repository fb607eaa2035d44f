//! Tables over one check and its machines.

mod counting;
mod external_requests;
mod gate;
mod properties;
mod reading;
mod telling;
mod verdicts;

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use machinist_api::{Machine, MachineHealthCheck, MachineSet};
use serde_json::{Value, json};

use super::{
    Action, HealthDecision, Memory, Observed, Target, decide,
    observed::{ExternalRequest, Template},
};
use crate::disruption::Pool;

const NOW: &str = "2026-01-01T12:00:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

/// So many seconds before now.
fn ago(seconds: i64) -> String {
    Timestamp::from_second(now().as_second() - seconds).unwrap().to_string()
}

/// A JSON merge patch: a null removes.
fn merged(base: Value, changes: &Value) -> Value {
    let (Value::Object(mut base), Value::Object(changes)) = (base, changes) else {
        return changes.clone();
    };
    for (key, value) in changes {
        if value.is_null() {
            base.remove(key);
        } else {
            let known = base.remove(key).unwrap_or_else(|| json!({}));
            base.insert(key.clone(), merged(known, value));
        }
    }
    Value::Object(base)
}

fn check(spec: Value) -> MachineHealthCheck {
    check_with(spec, json!({}))
}

fn check_with(spec: Value, metadata: Value) -> MachineHealthCheck {
    let spec = merged(
        json!({
            "selector": {"matchLabels": {"pool": "a"}},
            "maxUnhealthy": "40%",
            "nodeStartupTimeout": "10m",
            "unhealthyConditions": [
                {"type": "Ready", "status": "False", "timeout": "300s"},
                {"type": "Ready", "status": "Unknown", "timeout": "300s"},
            ],
        }),
        &spec,
    );
    let metadata = merged(
        json!({"name": "check", "namespace": "ns", "uid": "check", "generation": 1}),
        &metadata,
    );
    serde_json::from_value(json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineHealthCheck",
        "metadata": metadata, "spec": spec,
    }))
    .unwrap()
}

/// A machine of pool `a`, an hour old, that runs and is linked to the Node of its name.
fn machine_with(name: &str, changes: &Value) -> Machine {
    let base = json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
        "metadata": {
            "name": name, "namespace": "ns", "uid": format!("uid-{name}"), "resourceVersion": "7",
            "labels": {"pool": "a"}, "creationTimestamp": ago(3600),
            "ownerReferences": [{
                "apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet", "name": "a",
                "uid": "set-a", "controller": true,
            }],
        },
        "spec": {"providerSpec": {}},
        "status": {"phase": "Running", "nodeRef": {"kind": "Node", "name": name}},
    });
    serde_json::from_value(merged(base, changes)).unwrap()
}

fn machine(name: &str) -> Machine {
    machine_with(name, &json!({}))
}

/// A Node whose Ready condition has this status for so many seconds.
fn node(name: &str, ready: &str, seconds: i64) -> Node {
    node_with(name, json!([{"type": "Ready", "status": ready, "lastTransitionTime": ago(seconds)}]))
}

fn node_with(name: &str, conditions: Value) -> Node {
    serde_json::from_value(json!({
        "metadata": {"name": name, "uid": format!("node-{name}"), "creationTimestamp": ago(3600)},
        "status": {"conditions": conditions},
    }))
    .unwrap()
}

/// Everything that a decision is made of, owned.
struct Scene {
    check: MachineHealthCheck,
    machines: Vec<Machine>,
    nodes: Vec<Node>,
    set: MachineSet,
    template: Template,
    requests: Option<BTreeMap<String, ExternalRequest>>,
    request_failure: Option<&'static str>,
    memory: Memory,
    written_at: Option<Timestamp>,
    doubt: Option<&'static str>,
}

impl Scene {
    fn new(check: MachineHealthCheck) -> Self {
        Self {
            check,
            machines: Vec::new(),
            nodes: Vec::new(),
            set: set(0, json!({})),
            template: Template::NotAsked,
            requests: None,
            request_failure: None,
            memory: Memory::default(),
            written_at: None,
            doubt: None,
        }
    }

    /// A pool of `total` of which the first `broken` are not Ready for so many seconds.
    fn pool(check: MachineHealthCheck, total: usize, broken: usize, seconds: i64) -> Self {
        let mut scene = Self::new(check);
        for index in 0..total {
            let name = format!("m-{index:03}");
            scene.machines.push(machine(&name));
            scene.nodes.push(if index < broken {
                node(&name, "False", seconds)
            } else {
                node(&name, "True", 3000)
            });
        }
        scene.set = set(total, json!({}));
        scene
    }

    fn with(mut self, machine: Machine, node: Option<Node>) -> Self {
        self.machines.push(machine);
        self.nodes.extend(node);
        self.set.spec.replicas = Some(i32::try_from(self.machines.len()).unwrap());
        self
    }

    fn decide(&self) -> HealthDecision {
        self.decide_at(now())
    }

    fn decide_at(&self, at: Timestamp) -> HealthDecision {
        let targets: Vec<Target<'_>> = self
            .machines
            .iter()
            .map(|machine| {
                let reference = machine.status.as_ref().and_then(|status| status.node_ref.as_ref());
                let name = reference.and_then(|reference| reference.name.as_ref());
                let node = self.nodes.iter().find(|node| node.metadata.name.as_ref() == name);
                Target::of(machine, node.filter(|_| name.is_some()))
            })
            .collect();
        let members = targets.iter().filter(|target| {
            let owners = target.machine.metadata.owner_references.iter().flatten();
            owners.into_iter().any(|owner| owner.uid == "set-a")
        });
        let pool = Pool::of(&self.set, members.map(|one| (one.machine, one.linked_node())), "");
        let pools = BTreeMap::from([("set-a".to_owned(), pool)]);
        decide(
            &Observed {
                check: &self.check,
                machines: targets,
                pools: &pools,
                template: self.template.clone(),
                requests: self.requests.as_ref(),
                request_failure: self.request_failure,
                memory: &self.memory,
                status_written_at: self.written_at,
                doubt: self.doubt,
            },
            at,
        )
    }

    /// Publishes a decision as the operator would, without carrying out its actions.
    fn publish(&mut self, answer: HealthDecision) {
        self.check.status = Some(answer.decision.status);
        self.memory = answer.memory;
    }
}

fn set(replicas: usize, annotations: Value) -> MachineSet {
    serde_json::from_value(json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet",
        "metadata": {"name": "a", "namespace": "ns", "uid": "set-a", "annotations": annotations},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"pool": "a"}}, "template": {}},
    }))
    .unwrap()
}

fn deleted(answer: &HealthDecision) -> Vec<&str> {
    let names = answer.decision.actions.iter().filter_map(|action| match action {
        Action::DeleteMachine { name, .. } => Some(name.as_str()),
        _ => None,
    });
    names.collect()
}

fn allowed(answer: &HealthDecision) -> &machinist_api::Condition {
    machinist_api::condition::find(&answer.decision.status.conditions, "RemediationAllowed")
        .unwrap()
}
