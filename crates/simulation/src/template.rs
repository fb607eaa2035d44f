//! What do the objects of a simulated cluster look like? As an installer makes them.

pub mod cluster_api;

use base64::{Engine, engine::general_purpose::STANDARD};
use machinist_api::names::{self, annotation, label, secret_key};
use machinist_testbed::cloud::model::WorldIds;
use serde_json::{Value, json};

/// Where Machines, their secrets and the leases are.
pub const NAMESPACE: &str = names::DEFAULT_NAMESPACE;
pub const CREDENTIALS_SECRET: &str = "aws-cloud-credentials";
pub const USER_DATA_SECRET: &str = "worker-user-data";
/// The access key that the credentials hold.
pub const ACCESS_KEY: &str = "AKIASIMULATED";

/// Where the cluster keeps the certificates that sign those of kubelets, and what is there.
pub const AUTHORITIES_NAMESPACE: &str = "openshift-config-managed";
pub const KUBELET_AUTHORITIES: &str = "the authority of this cluster";

/// The ConfigMap with the certificates that sign those of kubelets.
#[must_use]
pub fn kubelet_authorities() -> Value {
    json!({
        "metadata": { "name": "csr-controller-ca", "namespace": AUTHORITIES_NAMESPACE },
        "data": { "ca-bundle.crt": KUBELET_AUTHORITIES },
    })
}

/// The secrets that every Machine refers to.
#[must_use]
pub fn secrets() -> Vec<Value> {
    let secret = |name: &str, key: &str, text: &str| {
        json!({
            "metadata": { "name": name, "namespace": NAMESPACE },
            "data": { key: STANDARD.encode(text) },
        })
    };
    vec![
        secret(CREDENTIALS_SECRET, secret_key::AWS_ACCESS_KEY_ID, ACCESS_KEY),
        secret(USER_DATA_SECRET, secret_key::USER_DATA, "boot"),
    ]
}

/// Gives the bootstrap secret other contents.
#[must_use]
pub fn user_data_patch(text: &str) -> Value {
    json!({ "data": { secret_key::USER_DATA: STANDARD.encode(text) } })
}

/// What a health check is to be.
#[derive(Clone, Debug, Default)]
pub struct HealthCheck {
    pub name: String,
    /// The pool whose Machines it watches; none means all there are.
    pub pool: Option<String>,
    /// A number or a share; none leaves it to the API server.
    pub max_unhealthy: Option<Value>,
    /// Type, status and for how long.
    pub conditions: Vec<(String, String, String)>,
    pub node_startup_timeout: Option<String>,
}

impl HealthCheck {
    #[must_use]
    pub fn object(&self) -> Value {
        let conditions: Vec<Value> = self
            .conditions
            .iter()
            .map(|(type_, status, timeout)| {
                json!({ "type": type_, "status": status, "timeout": timeout })
            })
            .collect();
        let mut spec = json!({ "selector": {}, "unhealthyConditions": conditions });
        if let Some(pool) = &self.pool {
            spec["selector"] = json!({ "matchLabels": { label::MACHINE_SET: pool } });
        }
        if let Some(most) = &self.max_unhealthy {
            spec["maxUnhealthy"] = most.clone();
        }
        if let Some(timeout) = &self.node_startup_timeout {
            spec["nodeStartupTimeout"] = json!(timeout);
        }
        json!({ "metadata": { "name": self.name, "namespace": NAMESPACE }, "spec": spec })
    }
}

/// What a webhook would have filled in, or refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    NoUserData,
    NoCredentials,
    NoRegion,
    NoClusterLabel,
    NoProviderSpec,
    /// A field of another type than it has.
    WrongType,
    UnknownKind,
}

impl Flaw {
    pub const ALL: [Self; 7] = [
        Self::NoUserData,
        Self::NoCredentials,
        Self::NoRegion,
        Self::NoClusterLabel,
        Self::NoProviderSpec,
        Self::WrongType,
        Self::UnknownKind,
    ];

    /// Puts the flaw into a Machine, or into the template of a pool.
    pub fn apply(self, machine: &mut Value) {
        let spec = |value: Value| json!({ "spec": { "providerSpec": { "value": value } } });
        let patch = match self {
            Self::NoUserData => spec(json!({ "userDataSecret": null })),
            Self::NoCredentials => spec(json!({ "credentialsSecret": null })),
            Self::NoRegion => spec(json!({ "placement": { "region": null } })),
            Self::NoClusterLabel => json!({ "metadata": { "labels": { label::CLUSTER: null } } }),
            Self::NoProviderSpec => json!({ "spec": { "providerSpec": null } }),
            Self::WrongType => spec(json!({ "placement": "here" })),
            Self::UnknownKind => spec(json!({ "kind": "NoSuchProviderConfig" })),
        };
        json_patch::merge(machine, &patch);
    }
}

/// What a pool is to be.
#[derive(Clone, Debug)]
pub struct Pool {
    pub name: String,
    pub replicas: usize,
    pub spot: bool,
    pub zone: usize,
    pub annotations: Vec<(&'static str, String)>,
    /// Names of hooks on each Machine before the drain and before the termination.
    pub pre_drain_hook: bool,
    pub pre_terminate_hook: bool,
}

impl Pool {
    #[must_use]
    pub fn new(name: &str, replicas: usize) -> Self {
        Self {
            name: name.to_owned(),
            replicas,
            spot: false,
            zone: 0,
            // Half an hour of virtual time has to suffice for everything.
            annotations: vec![(annotation::STOPPED_GRACE_PERIOD, "30s".to_owned())],
            pre_drain_hook: false,
            pre_terminate_hook: false,
        }
    }

    /// The MachineSet.
    #[must_use]
    pub fn object(&self, world: &WorldIds) -> Value {
        let mut labels = labels(world);
        labels[label::MACHINE_SET] = json!(self.name);
        let annotations: serde_json::Map<String, Value> = self
            .annotations
            .iter()
            .map(|(key, value)| ((*key).to_owned(), Value::from(value.clone())))
            .collect();
        json!({
            "metadata": {
                "name": self.name,
                "namespace": NAMESPACE,
                "labels": { label::CLUSTER: world.infrastructure_name },
                "annotations": annotations,
            },
            "spec": {
                "replicas": self.replicas,
                "selector": { "matchLabels": {
                    label::CLUSTER: world.infrastructure_name,
                    label::MACHINE_SET: self.name,
                } },
                "template": {
                    "metadata": { "labels": labels },
                    "spec": self.machine_spec(world),
                },
            },
        })
    }

    /// A Machine of the same kind that no pool keeps.
    #[must_use]
    pub fn single_machine(&self, world: &WorldIds, name: &str) -> Value {
        json!({
            "metadata": {
                "name": name,
                "namespace": NAMESPACE,
                "labels": labels(world),
                "annotations": { annotation::STOPPED_GRACE_PERIOD: "30s" },
            },
            "spec": self.machine_spec(world),
        })
    }

    fn machine_spec(&self, world: &WorldIds) -> Value {
        let mut spec =
            json!({ "providerSpec": { "value": provider_spec(world, self.zone, self.spot) } });
        let hook = |name: &str| json!([{ "name": name, "owner": "simulation" }]);
        if self.pre_drain_hook {
            spec["lifecycleHooks"]["preDrain"] = hook("Wait");
        }
        if self.pre_terminate_hook {
            spec["lifecycleHooks"]["preTerminate"] = hook("Save");
        }
        spec
    }
}

/// A Machine of the control plane, which no pool keeps.
#[must_use]
pub fn control_plane_machine(like: &Pool, world: &WorldIds, name: &str) -> Value {
    let mut machine = like.single_machine(world, name);
    json_patch::merge(&mut machine, &of_control_plane());
    machine
}

/// What makes a Machine one of the control plane, and its Node as well.
#[must_use]
pub fn of_control_plane() -> Value {
    json!({
        "metadata": { "labels": { label::MACHINE_ROLE: "master", label::MACHINE_TYPE: "master" } },
        "spec": { "metadata": { "labels": {
            label::NODE_MASTER: "",
            label::NODE_CONTROL_PLANE: "",
        } } },
    })
}

fn labels(world: &WorldIds) -> Value {
    json!({
        label::CLUSTER: world.infrastructure_name,
        label::MACHINE_ROLE: "worker",
        label::MACHINE_TYPE: "worker",
    })
}

/// What the provider is told of a machine, in the zone of this number.
#[must_use]
pub fn provider_spec(world: &WorldIds, zone: usize, spot: bool) -> Value {
    let zones = &world.availability_zones;
    let zone = zone.checked_rem(zones.len()).and_then(|index| zones.get(index));
    let zone = zone.cloned().unwrap_or_default();
    let mut spec = json!({
        "apiVersion": "machine.openshift.io/v1beta1",
        "kind": "AWSMachineProviderConfig",
        "ami": { "id": world.images.get("x86_64") },
        "instanceType": "m6i.large",
        "placement": { "region": world.region, "availabilityZone": zone },
        "securityGroups": [{ "id": world.worker_security_group }],
        "subnet": { "id": world.private_subnets.get(&zone) },
        "userDataSecret": { "name": USER_DATA_SECRET },
        "credentialsSecret": { "name": CREDENTIALS_SECRET },
    });
    if spot {
        spec["spotMarketOptions"] = json!({});
    }
    spec
}
