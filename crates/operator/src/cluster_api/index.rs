//! By what the stores of Cluster API's objects are searched, and what of them is kept.

use kube::Resource;
use machinist_api::cluster_api::{
    Machine, MachineDeployment, MachineHealthCheck, MachineSet, names::annotation,
};
use machinist_core::cluster_api::identity;

pub use crate::index::NO_OWNER;

/// Machines and MachineSets by the uid of their controller.
pub const MACHINE_BY_OWNER: &str = "owner-uid";
/// By `namespace/cluster`.
pub const BY_CLUSTER: &str = "cluster";
/// Machines by `namespace/cluster/providerID`.
pub const MACHINE_BY_PROVIDER_ID: &str = "provider-id";
/// Machines by `namespace/cluster/node`.
pub const MACHINE_BY_NODE: &str = "node";

/// Machines by the objects of providers that they name: see [`reference`].
pub const MACHINE_BY_REFERENCE: &str = "reference";

/// The value of [`MACHINE_BY_REFERENCE`].
pub fn reference(namespace: &str, group: &str, kind: &str, name: &str) -> String {
    format!("{namespace}/{kind}.{group}/{name}")
}

pub fn references_of_machine(machine: &Machine) -> Vec<String> {
    let namespace = machine.metadata.namespace.as_deref().unwrap_or_default();
    let named =
        [Some(&machine.spec.infrastructure_ref), machine.spec.bootstrap.config_ref.as_ref()];
    let named = named.into_iter().flatten();
    named.map(|one| reference(namespace, &one.api_group, &one.kind, &one.name)).collect()
}

pub fn owner_of<K: Resource>(object: &K) -> Vec<String> {
    let owner = identity::controller(object.meta());
    vec![owner.map_or_else(|| NO_OWNER.to_owned(), |owner| owner.uid.clone())]
}

/// The value of [`BY_CLUSTER`].
pub fn cluster(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

fn cluster_of<K: Resource>(object: &K, name: &str) -> Vec<String> {
    vec![cluster(object.meta().namespace.as_deref().unwrap_or_default(), name)]
}

pub fn cluster_of_machine(machine: &Machine) -> Vec<String> {
    cluster_of(machine, &machine.spec.cluster_name)
}

pub fn cluster_of_set(set: &MachineSet) -> Vec<String> {
    cluster_of(set, &set.spec.cluster_name)
}

pub fn cluster_of_deployment(deployment: &MachineDeployment) -> Vec<String> {
    cluster_of(deployment, &deployment.spec.cluster_name)
}

pub fn cluster_of_check(check: &MachineHealthCheck) -> Vec<String> {
    cluster_of(check, &check.spec.cluster_name)
}

pub fn provider_id_of_machine(machine: &Machine) -> Vec<String> {
    let id = machine.spec.provider_id.as_ref();
    id.into_iter().flat_map(|id| within(machine, id)).collect()
}

pub fn node_of_machine(machine: &Machine) -> Vec<String> {
    let node = machine.status.as_ref().and_then(|status| status.node_ref.as_ref());
    node.into_iter().flat_map(|node| within(machine, &node.name)).collect()
}

fn within(machine: &Machine, what: &str) -> Vec<String> {
    cluster_of_machine(machine).into_iter().map(|cluster| format!("{cluster}/{what}")).collect()
}

/// Drops what no decision reads; memory is paid for each object.
pub fn prune<K: Resource>(object: &mut K) {
    let metadata = object.meta_mut();
    metadata.managed_fields = None;
    if let Some(annotations) = &mut metadata.annotations {
        annotations.remove(annotation::LAST_APPLIED);
    }
}
