//! How is a machine of Cluster API, its pool or its Node changed for a maintenance? With the uid and the version that it was
//! decided on (Rule 3).

use anyhow::Context as _;
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Client,
    api::{DeleteParams, Preconditions},
};
use machinist_api::cluster_api::{Machine, MachineDeployment, MachineSet};
use machinist_core::maintenance::step::{MachineRef, NodeRef};
use serde_json::{Value, json};

use super::{Maintained, Pool, key};
use crate::{
    engine::store::ObjectKey,
    write::{self, WriteError},
};

impl Maintained {
    /// Asked right before anything is written: without Cluster API's own lease its core manager may be at work.
    fn require_leadership(&self) -> anyhow::Result<()> {
        anyhow::ensure!(
            self.leadership.is_held(),
            "the lease of Cluster API's core manager is not held any more"
        );
        Ok(())
    }

    /// Changes a pool, as long as it is the one that was seen.
    pub async fn patch_pool(
        &self,
        client: &Client,
        name: &str,
        (uid, version): (&str, &str),
        patch: Value,
    ) -> anyhow::Result<()> {
        self.require_leadership()?;
        let gone = || WriteError::Conflict { what: format!("pool {name}") };
        let place = key(name).ok_or_else(gone)?;
        let client = client.clone();
        match self.pool_object(name).ok_or_else(gone)? {
            Pool::Deployment(_) => {
                let api = Api::<MachineDeployment>::namespaced(client, &place.namespace);
                let written = write::at(&api, &place.name, uid, version, patch).await?;
                self.stores.deployments.apply_written(written);
            }
            Pool::Set(_) => {
                let api = Api::<MachineSet>::namespaced(client, &place.namespace);
                let written = write::at(&api, &place.name, uid, version, patch).await?;
                self.stores.machine_sets.apply_written(written);
            }
        }
        Ok(())
    }

    pub async fn annotate_machine(
        &self,
        client: &Client,
        machine: &MachineRef,
        annotations: Value,
    ) -> anyhow::Result<()> {
        self.require_leadership()?;
        let place = place(machine)?;
        let api = Api::<Machine>::namespaced(client.clone(), &place.namespace);
        let patch = json!({ "metadata": { "annotations": annotations } });
        let (uid, version) = (&machine.uid, &machine.resource_version);
        let written = write::at(&api, &place.name, uid, version, patch).await?;
        self.stores.machines.apply_written(written);
        Ok(())
    }

    pub async fn delete_machine(
        &self,
        client: &Client,
        machine: &MachineRef,
    ) -> anyhow::Result<()> {
        self.require_leadership()?;
        let place = place(machine)?;
        let api = Api::<Machine>::namespaced(client.clone(), &place.namespace);
        let preconditions = Preconditions {
            uid: Some(machine.uid.clone()),
            resource_version: Some(machine.resource_version.clone()),
        };
        let parameters =
            DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        match api.delete(&place.name, &parameters).await {
            Ok(answer) => {
                self.stores.machines.apply_deleted(&place, &machine.uid, answer.left());
                Ok(())
            }
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {
                Err(WriteError::Conflict { what: format!("Machine {place}") }.into())
            }
            Err(error) => Err(error).with_context(|| format!("failed to delete Machine {place}")),
        }
    }

    /// Changes a Node of the cluster that a pool belongs to.
    pub async fn patch_node(&self, pool: &str, node: &NodeRef, patch: Value) -> anyhow::Result<()> {
        self.require_leadership()?;
        // One that is gone takes its Nodes with it.
        let Some(cluster) = self.cluster_of_pool(pool) else { return Ok(()) };
        let (client, nodes) = self
            .nodes
            .reached(&cluster)
            .with_context(|| format!("Cluster {cluster} cannot be reached"))?;
        let api = Api::<Node>::all(client);
        let (uid, version) = (&node.uid, &node.resource_version);
        let written = write::at(&api, &node.name, uid, version, patch).await?;
        nodes.apply_written(written);
        Ok(())
    }
}

fn place(machine: &MachineRef) -> Result<ObjectKey, WriteError> {
    key(&machine.name)
        .ok_or_else(|| WriteError::Conflict { what: format!("Machine {}", machine.name) })
}
