//! Which objects are there that the page shows: machines in each state, one maintenance, one policy, and
//! something secret in every field that might carry it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::{
    core::v1::{Namespace, Node, Pod},
    policy::v1::PodDisruptionBudget,
};
use machinist_api::{Machine, MachineMaintenance, MachineSet, MaintenancePolicy};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::overview::{
    fleet::{FleetView, fleet},
    machine::{MachineDetail, Sees, machine},
    objects::Objects,
    picture::{Picture, with_plan},
    row::{MachineRow, rows},
};

/// What must never be shown.
pub(super) const CANARY: &str = "canary-7d1f";

pub(super) fn of<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).unwrap()
}

pub(super) fn now() -> Timestamp {
    "2026-11-02T10:00:00Z".parse().unwrap()
}

/// Does to an object what the API server does with a merge patch.
pub(super) fn merge(object: &mut Value, patch: &Value) {
    let (Value::Object(fields), Value::Object(patch)) = (&mut *object, patch) else {
        *object = patch.clone();
        return;
    };
    for (key, value) in patch {
        if value.is_null() {
            fields.remove(key);
        } else {
            merge(fields.entry(key).or_insert_with(|| json!({})), value);
        }
    }
}

/// Some objects that there are.
#[derive(Clone)]
pub(super) struct World {
    pub machines: Vec<Machine>,
    pub sets: Vec<MachineSet>,
    pub nodes: Vec<Node>,
    pub pods: Vec<Pod>,
    pub budgets: Vec<PodDisruptionBudget>,
    pub maintenances: Vec<MachineMaintenance>,
    pub policies: Vec<MaintenancePolicy>,
    pub home: Namespace,
}

pub(super) fn machine_of(name: &str, extra: &Value) -> Machine {
    let mut value = json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
        "metadata": {
            "name": name, "namespace": "ns", "uid": format!("uid-{name}"), "resourceVersion": "1",
            "creationTimestamp": "2026-10-01T00:00:00Z",
            "labels": {
                "machine.openshift.io/zone": "eu-1a",
                "machine.openshift.io/cluster-api-machine-role": "worker",
                "machine.openshift.io/instance-type": "m6i.large",
            },
            "ownerReferences": [{
                "apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet",
                "name": "pool", "uid": "uid-pool", "controller": true,
            }],
        },
        "spec": {
            "providerID": format!("aws:///eu-1a/i-{name}"),
            "providerSpec": { "value": {
                "userDataSecret": { "name": CANARY }, "password": CANARY,
                "tags": [{ "name": "t", "value": CANARY }],
            } },
        },
        "status": {
            "phase": "Running",
            "nodeRef": { "kind": "Node", "name": format!("node-{name}"), "uid": format!("uid-node-{name}") },
            "addresses": [{ "type": "InternalIP", "address": "10.0.0.1" }],
            "providerStatus": { "instanceId": format!("i-{name}"), "instanceState": "running" },
            "conditions": [{
                "type": "InstanceExists", "status": "True", "lastTransitionTime": "2026-10-01T00:00:00Z",
            }],
        },
    });
    merge(&mut value, extra);
    of(value)
}

pub(super) fn node_of(name: &str, ready: &str) -> Node {
    of(json!({
        "metadata": {
            "name": format!("node-{name}"), "uid": format!("uid-node-{name}"),
            "labels": { "topology.kubernetes.io/zone": "eu-1a" },
        },
        "spec": { "providerID": format!("aws:///eu-1a/i-{name}") },
        "status": {
            "conditions": [{ "type": "Ready", "status": ready }],
            "addresses": [{ "type": "InternalIP", "address": "10.0.0.1" }],
        },
    }))
}

pub(super) fn world() -> World {
    let stopped = json!({ "status": {
        "providerStatus": {
            "instanceId": "i-c", "instanceState": "stopped",
            "drift": { "class": "StoppedByUser", "since": "2026-11-02T09:50:00Z", "response": "it is started again" },
        },
        "conditions": [
            { "type": "InstanceExists", "status": "True", "lastTransitionTime": "2026-10-01T00:00:00Z" },
            { "type": "InstanceRunning", "status": "False", "reason": "StoppedByUser",
              "message": "instance i-c was stopped by a user", "lastTransitionTime": "2026-11-02T09:50:00Z" },
        ],
    } });
    let starting = json!({
        "spec": { "providerID": null },
        "status": { "phase": "Provisioning", "nodeRef": null, "providerStatus": null,
            "conditions": [{ "type": "InstanceExists", "status": "False", "reason": "InstanceNotCreated",
                "message": "the instance has not been created", "lastTransitionTime": "2026-11-02T09:59:00Z" }] },
    });
    let leaving = json!({ "metadata": {
        "deletionTimestamp": "2026-11-02T09:58:00Z", "finalizers": ["machine.machine.openshift.io"],
    } });
    World {
        machines: vec![
            machine_of("a", &json!({})),
            machine_of("b", &json!({})),
            machine_of("c", &stopped),
            machine_of("d", &starting),
            machine_of("e", &leaving),
            machine_of("f", &json!({})),
        ],
        sets: vec![of(json!({
            "metadata": { "name": "pool", "namespace": "ns", "uid": "uid-pool" },
            "spec": { "replicas": 6, "selector": {}, "template": {
                "metadata": { "labels": { "machine.openshift.io/cluster-api-machine-role": "worker" } },
                "spec": { "providerSpec": { "value": { "password": format!("{CANARY}-template") } } },
            } },
            "status": { "replicas": 6, "readyReplicas": 4 },
        }))],
        nodes: vec![
            node_of("a", "True"),
            node_of("b", "True"),
            node_of("c", "Unknown"),
            node_of("e", "True"),
            node_of("f", "False"),
        ],
        pods: vec![
            pod("web", "node-b", &json!({})),
            pod(
                "batch",
                "node-b",
                &json!({ "annotations": { "machinist.dev/do-not-disrupt": "true" } }),
            ),
            pod(
                "agent",
                "node-b",
                &json!({ "ownerReferences": [{ "apiVersion": "apps/v1",
                "kind": "DaemonSet", "name": "agent", "uid": "u", "controller": true }] }),
            ),
            pod("free", "node-b", &json!({})),
        ],
        budgets: vec![of(json!({
            "metadata": { "name": "web", "namespace": "apps" },
            "spec": { "selector": { "matchLabels": { "app": "web" } } },
            "status": { "disruptionsAllowed": 0, "currentHealthy": 2, "desiredHealthy": 2, "expectedPods": 3 },
        }))],
        maintenances: vec![of(json!({
            "metadata": { "name": "mm-b", "namespace": "ns", "uid": "uid-mm-b", "resourceVersion": "7",
                "annotations": { "machinist.dev/created-for-event": "" } },
            "spec": { "machinelink": "b" },
            "status": { "phase": "Pending", "machineUid": "uid-b", "reasons": [{
                "id": "event-1", "code": "instance-reboot", "kind": "Event", "state": "Active",
                "since": "2026-11-01T00:00:00Z", "notBefore": "2026-11-09T00:00:00Z", "sources": ["API"],
            }] },
        }))],
        policies: vec![of(json!({
            "metadata": { "name": "nights", "uid": "uid-nights" },
            "spec": {
                "approval": "Manual",
                "windows": [{ "name": "night", "cron": "0 22 * * *", "duration": "4h" }],
                "notifications": { "webhook": { "url": format!("https://hooks.example/{CANARY}") } },
            },
        }))],
        home: of(json!({ "metadata": { "name": "ns", "uid": "uid-ns" } })),
    }
}

fn pod(name: &str, node: &str, metadata: &Value) -> Pod {
    let mut value = json!({
        "metadata": { "name": name, "namespace": "apps", "labels": { "app": name } },
        "spec": { "nodeName": node, "containers": [] },
    });
    merge(&mut value, &json!({ "metadata": metadata }));
    of(value)
}

impl World {
    /// Without the pod that is not to be disrupted, which is waited for.
    pub fn with_nothing_in_the_way(mut self) -> Self {
        self.pods.retain(|pod| pod.metadata.name.as_deref() != Some("batch"));
        self
    }

    pub fn objects(&self) -> Objects<'_> {
        Objects {
            namespace: "ns",
            machines: self.machines.iter().collect(),
            sets: self.sets.iter().collect(),
            nodes: self.nodes.iter().collect(),
            pods: self.pods.iter().collect(),
            budgets: self.budgets.iter().collect(),
            maintenances: self.maintenances.iter().collect(),
            policies: self.policies.iter().collect(),
            home: Some(&self.home),
            ..Objects::default()
        }
    }

    pub fn look<R>(&self, look: impl FnOnce(&Picture<'_>) -> R) -> R {
        with_plan(&self.objects(), &[], now(), look)
    }

    pub fn rows(&self) -> BTreeMap<String, MachineRow> {
        self.look(rows)
    }

    pub fn fleet(&self) -> FleetView {
        self.look(|picture| fleet(picture, &rows(picture)))
    }

    pub fn detail(&self, name: &str, sees: Sees<'_>) -> MachineDetail {
        self.look(|picture| machine(name, rows(picture).get(name)?, picture, sees)).unwrap()
    }
}

pub(super) const ALL: Sees<'_> = Sees { no_node: None, no_pods: None };
