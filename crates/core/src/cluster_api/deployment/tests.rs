//! Which set is current, how large is each, and what is said?

mod rolling;
mod sets;
mod simulated;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use machinist_api::cluster_api::{Cluster, Machine, MachineDeployment, MachineSet, condition};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Action, MachineDeploymentDecision, Observed, decide, validate};
use crate::cluster_api::{
    admission::{Kind, defaults::fill_in},
    machineset::{Part, Template, observed::Found},
};

fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

fn read<K: DeserializeOwned>(object: Value) -> K {
    serde_json::from_value(object).unwrap()
}

fn deployment(replicas: i32) -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDeployment",
        "metadata": {
            "name": "md", "namespace": "ns", "uid": "uid-md", "resourceVersion": "9", "generation": 1,
            "finalizers": ["cluster.x-k8s.io/machinedeployment"],
            "labels": { "cluster.x-k8s.io/cluster-name": "c1" },
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

struct World {
    deployment: Value,
    sets: Vec<MachineSet>,
    machines: Vec<Value>,
    has_template: bool,
    unreadable: usize,
    is_cluster_going: bool,
    now: Timestamp,
    /// How far the API server's clock, which dates what is made, is behind ours.
    server_behind: SignedDuration,
    /// Whether a webhook says of a set that says nothing which Machines go first, as some of Cluster API do.
    is_order_filled_in: bool,
}

impl World {
    fn new(deployment: Value) -> Self {
        Self {
            deployment,
            sets: Vec::new(),
            machines: Vec::new(),
            has_template: true,
            unreadable: 0,
            is_cluster_going: false,
            now: now(),
            server_behind: SignedDuration::ZERO,
            is_order_filled_in: false,
        }
    }

    fn decide(&self) -> MachineDeploymentDecision {
        let deployment: MachineDeployment = read(self.deployment.clone());
        let mut cluster: Cluster = read(json!({
            "metadata": { "name": "c1", "namespace": "ns", "uid": "uid-c1" }, "spec": {},
        }));
        let going = Time(self.now);
        cluster.metadata.deletion_timestamp = self.is_cluster_going.then_some(going);
        let machines: Vec<Machine> = self.machines.iter().cloned().map(read).collect();
        let object = json!({ "metadata": {}, "spec": { "template": {} } });
        let metadata = read(json!({
            "name": "foo", "labels": { "cluster.x-k8s.io/cluster-name": "c1" },
            "ownerReferences": [{
                "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "c1", "uid": "uid-c1",
            }],
        }));
        let found = match self.has_template {
            true => Found::Whole { metadata: &metadata, object: &object },
            false => Found::Missing,
        };
        let observed = Observed {
            deployment: &deployment,
            cluster: Some(&cluster),
            sets: self.sets.iter().collect(),
            unreadable: self.unreadable,
            machines: machines.iter().collect(),
            templates: vec![Template {
                part: Part::Infrastructure,
                reference: &deployment.spec.template.spec.infrastructure_ref,
                found,
            }],
            status_written_at: None,
            last_failure: None,
        };
        decide(&observed, self.now)
    }

    /// Carries a decision out as the API server would, and lets the set controller see every set at once.
    fn apply(&mut self, decision: &MachineDeploymentDecision) {
        for action in &decision.actions {
            match action {
                Action::Amend(patch) => merge(&mut self.deployment, patch),
                Action::CreateSet(set) => {
                    let mut set = (**set).clone();
                    let name = set.metadata.name.clone().unwrap();
                    assert!(self.sets.iter().all(|known| known.metadata.name != set.metadata.name));
                    set.metadata.uid = Some(format!("uid-{name}"));
                    set.metadata.generation = Some(1);
                    set.metadata.creation_timestamp = Some(self.dated());
                    self.sets.push(self.admitted(&set));
                }
                Action::AmendSet { set, patch } => {
                    let known =
                        self.sets.iter().find(|one| one.metadata.uid.as_ref() == Some(&set.uid));
                    let known = known.unwrap();
                    let mut value = serde_json::to_value(known).unwrap();
                    merge(&mut value, patch);
                    let amended: MachineSet = read(value);
                    let admitted = self.admitted(&amended);
                    let place =
                        self.sets.iter_mut().find(|one| one.metadata.uid == amended.metadata.uid);
                    *place.unwrap() = admitted;
                }
                Action::DeleteSet(set) => {
                    self.sets.retain(|one| one.metadata.uid.as_ref() != Some(&set.uid));
                }
                Action::AmendTemplate { .. } | Action::RemoveFinalizer(_) => {}
            }
        }
        self.now = self.now.checked_add(SignedDuration::from_secs(1)).unwrap();
    }

    /// A set as it is stored, with what webhooks fill in.
    fn admitted(&self, set: &MachineSet) -> MachineSet {
        let mut object = fill_in(Kind::MachineSet, &serde_json::to_value(set).unwrap(), None);
        if self.is_order_filled_in && object["spec"]["deletion"]["order"].is_null() {
            object["spec"]["deletion"]["order"] = json!("Random");
        }
        read(object)
    }

    /// The API server's time, in whole seconds as it writes it.
    fn dated(&self) -> Time {
        let now = self.now.checked_sub(self.server_behind).unwrap();
        Time(Timestamp::from_second(now.as_second()).unwrap())
    }
}

fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in patch {
        match value {
            Value::Null => {
                target.as_object_mut().unwrap().remove(key);
            }
            _ => merge(&mut target[key], value),
        }
    }
}

fn said(decision: &MachineDeploymentDecision, type_: &str) -> (String, String, String) {
    let known = condition::find(&decision.status.conditions, type_).expect(type_);
    (known.status.clone(), known.reason.clone(), known.message.clone())
}
