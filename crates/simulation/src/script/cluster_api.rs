//! What of Cluster API does a script begin with? One Cluster with a Machine of its control plane, and the sets and deployments
//! that are named here.

use std::{collections::BTreeMap, time::Duration};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    actors::ProviderSettings,
    template::{
        NAMESPACE,
        cluster_api::{CLUSTER, GROUP, deployment, set, single_machine},
    },
};

/// The fleet, and how fast its providers are.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ClusterApi {
    pub deployments: Vec<DeploymentSpec>,
    pub sets: Vec<SetSpec>,
    /// Machines that no set keeps, besides the first one of the control plane.
    pub machines: Vec<MachineSpec>,
    /// MachineHealthChecks: their specs without the Cluster, by name.
    pub health_checks: BTreeMap<String, Value>,
    pub provision_seconds: u64,
    /// From when a machine is provisioned until it joins as a Node.
    pub boot_seconds: u64,
    pub removal_seconds: u64,
}

impl Default for ClusterApi {
    fn default() -> Self {
        Self {
            deployments: Vec::new(),
            sets: Vec::new(),
            machines: Vec::new(),
            health_checks: BTreeMap::new(),
            provision_seconds: 10,
            boot_seconds: 20,
            removal_seconds: 5,
        }
    }
}

/// A MachineDeployment.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeploymentSpec {
    pub name: String,
    pub replicas: usize,
    #[serde(default = "one")]
    pub max_surge: Value,
    #[serde(default = "none")]
    pub max_unavailable: Value,
    /// Anything else, merged into the object.
    #[serde(default)]
    pub merge: Value,
}

/// A MachineSet that no deployment keeps.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SetSpec {
    pub name: String,
    pub replicas: usize,
    #[serde(default)]
    pub merge: Value,
}

/// A Machine that no set keeps.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MachineSpec {
    pub name: String,
    #[serde(default)]
    pub control_plane: bool,
    /// What the provider calls its machine, where that is known before.
    #[serde(default)]
    pub provider_id: Option<String>,
    #[serde(default)]
    pub merge: Value,
}

fn one() -> Value {
    json!(1)
}

fn none() -> Value {
    json!(0)
}

impl ClusterApi {
    pub(super) fn provider(&self) -> ProviderSettings {
        ProviderSettings {
            provision: Duration::from_secs(self.provision_seconds),
            boot: Duration::from_secs(self.boot_seconds),
            removal: Duration::from_secs(self.removal_seconds),
        }
    }

    /// Group, plural and object.
    pub(super) fn objects(&self) -> Vec<(&'static str, &'static str, Value)> {
        let deployments = self.deployments.iter().map(|one| {
            let made = deployment(&one.name, one.replicas, &one.max_surge, &one.max_unavailable);
            (GROUP, "machinedeployments", merged(made, &one.merge))
        });
        let sets = self
            .sets
            .iter()
            .map(|one| (GROUP, "machinesets", merged(set(&one.name, one.replicas), &one.merge)));
        let checks = self.health_checks.iter().map(|(name, spec)| {
            let mut object = json!({
                "metadata": { "name": name, "namespace": NAMESPACE },
                "spec": { "clusterName": CLUSTER },
            });
            json_patch::merge(&mut object, &json!({ "spec": spec }));
            (GROUP, "machinehealthchecks", object)
        });
        let machines = self.machines.iter().flat_map(|one| {
            let [(group, plural, provided), (of, machines, machine)] =
                single_machine(&one.name, one.control_plane);
            let known = json!({ "spec": { "providerID": one.provider_id } });
            [(group, plural, merged(provided, &known)), (of, machines, merged(machine, &one.merge))]
        });
        deployments.chain(sets).chain(checks).chain(machines).collect()
    }
}

fn merged(mut object: Value, more: &Value) -> Value {
    if !more.is_null() {
        json_patch::merge(&mut object, more);
    }
    object
}
