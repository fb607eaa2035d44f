//! What do the objects of a simulated cluster look like? As an installer makes them.

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

fn labels(world: &WorldIds) -> Value {
    json!({
        label::CLUSTER: world.infrastructure_name,
        label::MACHINE_ROLE: "worker",
        label::MACHINE_TYPE: "worker",
    })
}

fn provider_spec(world: &WorldIds, zone: usize, spot: bool) -> Value {
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
