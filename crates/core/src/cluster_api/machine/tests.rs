mod deletion;
mod draining;
mod living;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::core::DynamicObject;
use machinist_api::cluster_api::{Cluster, Machine, MachineDeployment, MachineSet, condition};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{
    Action, Connection, MachineDecision, Observed, Reference, decide,
    draining::Draining,
    observed::{NodeLookup, Policy},
    volumes::Volumes,
};
use crate::cluster_api::contract::Contract;

pub(super) fn at(time: &str) -> Timestamp {
    format!("2026-01-01T{time}Z").parse().unwrap()
}

pub(super) fn now() -> Timestamp {
    at("12:00:00")
}

pub(super) fn read<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).unwrap()
}

/// Everything that one Machine has, which a test changes.
pub(super) struct World {
    pub machine: Machine,
    pub cluster: Cluster,
    pub set: Option<MachineSet>,
    pub deployment: Option<MachineDeployment>,
    pub infrastructure: Sight,
    pub bootstrap: Sight,
    pub node: Option<Node>,
    pub down: Option<&'static str>,
    pub namesakes: Vec<(String, bool)>,
    pub policy: Policy,
    pub has_active_control_plane: bool,
    /// A second Node has the providerID.
    pub has_twin: bool,
    pub unread: Option<&'static str>,
}

pub(super) enum Sight {
    NotDefined,
    Unreadable(&'static str),
    Missing,
    Found(Box<DynamicObject>),
}

impl Sight {
    fn reference(&self) -> Reference<'_> {
        match self {
            Self::NotDefined => Reference::NotDefined,
            Self::Unreadable(why) => Reference::Unreadable(why),
            Self::Missing => Reference::Missing,
            Self::Found(object) => Reference::Found { object, contract: Contract::V1Beta2 },
        }
    }

    pub fn object(value: Value) -> Self {
        Self::Found(Box::new(read(value)))
    }
}

pub(super) fn infrastructure(status: Value) -> Value {
    json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1", "kind": "FooMachine",
        "metadata": {
            "name": "m", "namespace": "ns", "uid": "uid-i",
            "labels": { "cluster.x-k8s.io/cluster-name": "c" },
            "ownerReferences": [{
                "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": "m", "uid": "uid-m",
                "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": { "providerID": "foo://m" }, "status": status,
    })
}

pub(super) fn provisioned() -> Value {
    infrastructure(json!({ "initialization": { "provisioned": true } }))
}

pub(super) fn healthy_node() -> Node {
    read(json!({
        "metadata": { "name": "n", "uid": "uid-n", "resourceVersion": "5" },
        "spec": { "providerID": "foo://m" },
        "status": {
            "conditions": [
                { "type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T11:00:00Z" },
                { "type": "MemoryPressure", "status": "False" },
                { "type": "DiskPressure", "status": "False" },
                { "type": "PIDPressure", "status": "False" },
            ],
        },
    }))
}

impl World {
    /// A Machine that was just made, with a fixed Secret; its cluster is up.
    pub fn new() -> Self {
        Self {
            machine: read(json!({
                "metadata": {
                    "name": "m", "namespace": "ns", "uid": "uid-m", "generation": 1, "resourceVersion": "1",
                    "finalizers": ["machine.cluster.x-k8s.io"],
                    "labels": {
                        "cluster.x-k8s.io/cluster-name": "c", "cluster.x-k8s.io/set-name": "s",
                    },
                },
                "spec": {
                    "clusterName": "c", "version": "v1.34.0", "bootstrap": { "dataSecretName": "x" },
                    "infrastructureRef": {
                        "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "FooMachine", "name": "m",
                    },
                },
            })),
            cluster: read(json!({
                "metadata": { "name": "c", "namespace": "ns", "uid": "uid-c" }, "spec": {},
                "status": {
                    "initialization": { "infrastructureProvisioned": true },
                    "conditions": [{
                        "type": "ControlPlaneInitialized", "status": "True", "reason": "Initialized",
                        "message": "", "lastTransitionTime": "2026-01-01T10:00:00Z",
                    }],
                },
            })),
            set: None,
            deployment: None,
            infrastructure: Sight::object(infrastructure(json!({}))),
            bootstrap: Sight::NotDefined,
            node: None,
            down: None,
            namesakes: Vec::new(),
            policy: Policy::default(),
            has_active_control_plane: true,
            has_twin: false,
            unread: None,
        }
    }

    /// The same, running on a Node, with the status that a pass left.
    pub fn running() -> Self {
        let mut world = Self::new();
        world.infrastructure = Sight::object(provisioned());
        world.node = Some(healthy_node());
        world.machine.spec.provider_id = Some("foo://m".to_owned());
        world.settle();
        world
    }

    /// Stores what a pass says, and what it changes of the Node.
    pub fn settle(&mut self) {
        let decision = self.decide();
        for action in &decision.actions {
            if let Action::PatchNode { patch, .. } = action {
                let mut node = serde_json::to_value(self.node.as_ref().unwrap()).unwrap();
                for part in ["annotations", "labels"] {
                    if let Some(new) = patch["metadata"][part].as_object() {
                        for (key, value) in new {
                            node["metadata"][part][key] = value.clone();
                        }
                    }
                }
                self.node = Some(read(node));
            }
        }
        self.machine.status = Some(decision.status);
    }

    pub fn delete(&mut self, at: Timestamp) {
        self.machine.metadata.deletion_timestamp =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at));
    }

    pub fn decide(&self) -> MachineDecision {
        self.decide_with(None, None, now())
    }

    pub fn decide_with(
        &self,
        draining: Option<Draining<'_>>,
        volumes: Option<Volumes<'_>>,
        now: Timestamp,
    ) -> MachineDecision {
        self.observed(draining, volumes, now, |observed| decide(observed, &self.policy, now))
    }

    pub fn observed<R>(
        &self,
        draining: Option<Draining<'_>>,
        volumes: Option<Volumes<'_>>,
        now: Timestamp,
        look: impl FnOnce(&Observed<'_>) -> R,
    ) -> R {
        let connection = match (self.down, &self.node) {
            (Some(why), _) => {
                Connection::Down { why, last_success: Some(at("11:59:00")), failures: 9 }
            }
            (None, Some(_)) if self.has_twin => {
                let nodes = NodeLookup::Ambiguous(vec!["n", "twin"]);
                Connection::Up { nodes, last_success: now }
            }
            (None, Some(node)) => {
                Connection::Up { nodes: NodeLookup::Found(node), last_success: now }
            }
            (None, None) => Connection::Up { nodes: NodeLookup::NotFound, last_success: now },
        };
        let observed = Observed {
            machine: &self.machine,
            cluster: &self.cluster,
            set: self.set.as_ref(),
            deployment: self.deployment.as_ref(),
            missing_owner: None,
            bootstrap: self.bootstrap.reference(),
            infrastructure: self.infrastructure.reference(),
            control_plane: Reference::NotDefined,
            has_active_control_plane: self.has_active_control_plane,
            connection,
            namesakes: self.namesakes.clone(),
            draining,
            volumes,
            unread: self.unread,
        };
        look(&observed)
    }
}

/// Status, reason and message of a condition.
pub(super) fn said(decision: &MachineDecision, type_: &str) -> (String, String, String) {
    let found = condition::find(&decision.status.conditions, type_).unwrap();
    (found.status.clone(), found.reason.clone(), found.message.clone())
}

pub(super) fn reason(decision: &MachineDecision, type_: &str) -> String {
    let (status, reason, _) = said(decision, type_);
    format!("{status} {reason}")
}
