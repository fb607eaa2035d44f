//! What every controller of Cluster API's objects is given.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Node;
use kube::Client;
use machinist_api::cluster_api::{
    Cluster, Machine, MachineDeployment, MachineDrainRule, MachineHealthCheck, MachineSet,
};

use super::{externals::Externals, index};
use crate::{
    context::SharedContext,
    engine::store::{ObjectKey, Store},
};

/// One of each kind that is watched in the management cluster.
#[derive(Clone)]
pub struct Stores {
    pub clusters: Store<Cluster>,
    pub machines: Store<Machine>,
    pub machine_sets: Store<MachineSet>,
    pub deployments: Store<MachineDeployment>,
    pub health_checks: Store<MachineHealthCheck>,
    pub drain_rules: Store<MachineDrainRule>,
}

impl Default for Stores {
    fn default() -> Self {
        Self {
            clusters: Store::builder().prune(index::prune).build(),
            machines: Store::builder()
                .prune(index::prune)
                .index(index::MACHINE_BY_OWNER, index::owner_of)
                .index(index::BY_CLUSTER, index::cluster_of_machine)
                .index(index::MACHINE_BY_PROVIDER_ID, index::provider_id_of_machine)
                .index(index::MACHINE_BY_NODE, index::node_of_machine)
                .index(index::MACHINE_BY_REFERENCE, index::references_of_machine)
                .build(),
            machine_sets: Store::builder()
                .prune(index::prune)
                .index(index::MACHINE_BY_OWNER, index::owner_of)
                .index(index::BY_CLUSTER, index::cluster_of_set)
                .build(),
            deployments: Store::builder()
                .prune(index::prune)
                .index(index::BY_CLUSTER, index::cluster_of_deployment)
                .build(),
            health_checks: Store::builder()
                .prune(index::prune)
                .index(index::BY_CLUSTER, index::cluster_of_check)
                .build(),
            drain_rules: Store::builder().prune(index::prune).build(),
        }
    }
}

impl Stores {
    /// Waits until all kinds are listed: nothing is decided on half a picture (R6).
    pub async fn synced(&self) {
        let Self { clusters, machines, machine_sets, deployments, health_checks, drain_rules } =
            self;
        clusters.synced().await;
        machines.synced().await;
        machine_sets.synced().await;
        deployments.synced().await;
        health_checks.synced().await;
        drain_rules.synced().await;
    }

    /// The Cluster of this name in the namespace.
    pub fn cluster(&self, namespace: &str, name: &str) -> Option<Arc<Cluster>> {
        self.clusters.get(&ObjectKey::new(namespace, name))
    }
}

/// What is known of a Node of a workload cluster.
pub enum NodeLook {
    Present(Arc<Node>),
    /// The cluster answers, and there is none of that name.
    Gone,
    /// The cluster does not answer.
    Unknown,
}

/// Looks at Nodes of workload clusters.
pub trait Nodes: Send + Sync {
    /// What was last heard of it.
    fn look(&self, cluster: &ObjectKey, name: &str) -> NodeLook;

    /// Why what was last heard of the Nodes of a cluster may be the past, if so.
    fn doubt(&self, cluster: &ObjectKey) -> Option<String>;

    /// How a cluster is written to, and where what was written is put; `None` while it does not answer.
    fn reached(&self, cluster: &ObjectKey) -> Option<(Client, Store<Node>)>;
}

/// Shared by the controllers of Cluster API's objects.
pub struct Context {
    /// What all controllers of the process share.
    pub base: SharedContext,
    pub stores: Arc<Stores>,
    pub externals: Externals,
    pub nodes: Arc<dyn Nodes>,
}
