//! How is an object changed at a person's request? One merge patch, for the object that was looked at
//! and no other of its name.

use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use machinist_api::{Machine, MachineMaintenance, MachineSet, MaintenancePolicy, cluster_api};
use machinist_core::overview::wish::{Object, Write};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// What `kubectl get -o yaml --show-managed-fields` shows as the writer.
const FIELD_MANAGER: &str = "machinist-cli";

/// Whether anything is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Real,
    /// The API server checks it and stores nothing.
    DryRun,
}

impl Effect {
    pub fn of(dry_run: bool) -> Self {
        if dry_run { Self::DryRun } else { Self::Real }
    }
}

/// Sends what a person wants written to the object that it is about.
pub async fn send(client: &Client, write: &Write, effect: Effect) -> Result<(), kube::Error> {
    let client = client.clone();
    let (namespace, name) = (&write.namespace, &write.name);
    match write.on {
        Object::Maintenance => {
            let api = Api::<MachineMaintenance>::namespaced(client, namespace);
            patch(&api, name, &write.patch, effect).await
        }
        Object::Machine => {
            let api = Api::<Machine>::namespaced(client, namespace);
            patch(&api, name, &write.patch, effect).await
        }
        Object::Pool => {
            let api = Api::<MachineSet>::namespaced(client, namespace);
            patch(&api, name, &write.patch, effect).await
        }
        Object::ClusterApiMachine => {
            let api = Api::<cluster_api::Machine>::namespaced(client, namespace);
            patch(&api, name, &write.patch, effect).await
        }
        Object::ClusterApiSet => {
            let api = Api::<cluster_api::MachineSet>::namespaced(client, namespace);
            patch(&api, name, &write.patch, effect).await
        }
        Object::ClusterApiDeployment => {
            let api = Api::<cluster_api::MachineDeployment>::namespaced(client, namespace);
            patch(&api, name, &write.patch, effect).await
        }
        Object::Policy => {
            let api = Api::<MaintenancePolicy>::all(client);
            patch(&api, name, &write.patch, effect).await
        }
        Object::Namespace => {
            patch(&Api::<Namespace>::all(client), name, &write.patch, effect).await
        }
    }
}

/// Sends a merge patch.
async fn patch<K>(
    api: &Api<K>,
    name: &str,
    patch: &Value,
    effect: Effect,
) -> Result<(), kube::Error>
where
    K: Clone + DeserializeOwned + std::fmt::Debug,
{
    let parameters = PatchParams {
        dry_run: effect == Effect::DryRun,
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    };
    api.patch(name, &parameters, &Patch::Merge(patch)).await.map(|_| ())
}
