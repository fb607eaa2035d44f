//! How do maintenance, the gate and what is shown to people see the machines of this API?
//!
//! As they see those of the OpenShift API: as a Machine of a pool, with a Node. So there is one planner, one gate and one
//! table for both. A pool is a MachineDeployment, or a MachineSet that has none. What is seen is never written as it is:
//! the operator takes the object's own namespace and name out of the name, which has both and a slash between. No object of
//! the OpenShift API has a slash in its name, so the name alone tells the two apart.
//!
//! What differs follows from that: nothing can be done to an instance that a provider keeps, so a machine is replaced or left
//! alone; it is drained by its deletion; its owner's strategy says how many may be there above the size; and what Cluster API
//! says is paused is paused.

mod machine;
mod pool;
mod standstill;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use k8s_openapi::{api::core::v1::Node, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use machinist_api::{
    Machine as Seen, MachineSet as SeenPool,
    cluster_api::{
        Cluster, Machine, MachineDeployment, MachineSet,
        names::{kind, label},
    },
};

pub use machine::{machine, node, node_name, replacement};
pub use pool::{of_deployment, of_set};
pub use standstill::standstill;

use super::identity;

/// Why nothing is done to an instance in place.
pub const OUT_OF_REACH: &str = "its instance is kept by an infrastructure provider of Cluster API, which nobody else may stop or reboot";

/// Where what is seen of a Machine says why Cluster API lets nothing happen to it. On no object.
const STANDSTILL: &str = "machinist.dev/standstill";
/// Where what is seen of a MachineDeployment says how many machines its strategy allows above its size. On no object.
const OWNER_SURGE: &str = "machinist.dev/owner-surge";

/// Where what is seen of a machine or a pool says in which workload cluster it is. On no object.
const WORKLOAD_CLUSTER: &str = "machinist.dev/workload-cluster";

/// The workload cluster of a machine or a pool, with its namespace: `team-a/c1`; nothing for one of the OpenShift API.
pub fn cluster_of(seen: &ObjectMeta) -> Option<&str> {
    parts(seen.name.as_deref()?)?;
    identity::annotation(seen, WORKLOAD_CLUSTER)
}

/// Why Cluster API lets nothing happen to a machine; nothing for one of the OpenShift API.
pub fn standstill_of(machine: &Seen) -> Option<&str> {
    let annotations = machine.metadata.annotations.as_ref().filter(|_| is_of_cluster_api(machine));
    annotations?.get(STANDSTILL).map(String::as_str)
}

/// How many machines a pool's own strategy allows above its size; `None` for one that has none.
pub fn surge_of(pool: &SeenPool) -> Option<usize> {
    owner_surge(&pool.metadata)?.parse().ok()
}

/// Whether what is seen of a pool is a MachineDeployment.
pub fn is_deployment(metadata: &ObjectMeta) -> bool {
    owner_surge(metadata).is_some()
}

fn owner_surge(pool: &ObjectMeta) -> Option<&str> {
    parts(pool.name.as_deref()?)?;
    identity::annotation(pool, OWNER_SURGE)
}

/// By which an object of this API is known where both APIs are.
pub fn name(metadata: &ObjectMeta) -> String {
    join(
        metadata.namespace.as_deref().unwrap_or_default(),
        metadata.name.as_deref().unwrap_or_default(),
    )
}

/// The name of an object of this API where both APIs are.
pub fn join(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

/// The namespace and the name of an object of this API; `None` for one of the OpenShift API.
pub fn parts(name: &str) -> Option<(&str, &str)> {
    name.split_once('/')
}

/// Whether what is seen is a Machine of this API.
pub fn is_of_cluster_api(machine: &Seen) -> bool {
    machine.metadata.name.as_deref().is_some_and(|name| parts(name).is_some())
}

fn is_control_plane(machine: &Machine) -> bool {
    identity::label(&machine.metadata, label::CONTROL_PLANE).is_some()
}

/// Who owns a Machine, as far as it is one of the kinds that are looked after here.
#[derive(Clone, Debug, Default)]
pub struct Owners<'a> {
    pub cluster: Option<&'a Cluster>,
    /// The MachineSet that controls it.
    pub set: Option<&'a MachineSet>,
    /// The MachineDeployment that controls that.
    pub deployment: Option<&'a MachineDeployment>,
    /// All sets of that deployment.
    pub siblings: Vec<&'a MachineSet>,
}

/// The objects of this API at one instant.
#[derive(Clone, Debug, Default)]
pub struct Objects<'a> {
    pub clusters: Vec<&'a Cluster>,
    pub machines: Vec<&'a Machine>,
    pub sets: Vec<&'a MachineSet>,
    pub deployments: Vec<&'a MachineDeployment>,
}

/// All of them as they are seen where both APIs are, in the order of their names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Maintained {
    pub machines: Vec<Seen>,
    pub pools: Vec<SeenPool>,
    /// The Nodes as far as the Machines tell of them.
    pub nodes: Vec<Node>,
}

/// Sees all of them.
pub fn all(objects: &Objects<'_>) -> Maintained {
    let index = Index::of(objects);
    let mut machines: Vec<Seen> =
        objects.machines.iter().map(|one| machine(one, &index.owners(one))).collect();
    let mut nodes: Vec<Node> = objects.machines.iter().filter_map(|one| node(one)).collect();
    let of_deployments = objects.deployments.iter().map(|one| of_deployment(one));
    let alone = objects.sets.iter().filter(|set| index.deployment_of(set).is_none());
    let mut pools: Vec<SeenPool> = of_deployments.chain(alone.map(|one| of_set(one))).collect();
    machines.sort_by(|left, right| left.metadata.name.cmp(&right.metadata.name));
    nodes.sort_by(|left, right| left.metadata.name.cmp(&right.metadata.name));
    pools.sort_by(|left, right| left.metadata.name.cmp(&right.metadata.name));
    Maintained { machines, pools, nodes }
}

/// Finds owners.
struct Index<'a> {
    clusters: BTreeMap<(&'a str, &'a str), &'a Cluster>,
    sets: BTreeMap<&'a str, &'a MachineSet>,
    deployments: BTreeMap<&'a str, &'a MachineDeployment>,
    /// By the uid of the deployment.
    siblings: BTreeMap<&'a str, Vec<&'a MachineSet>>,
}

impl<'a> Index<'a> {
    fn of(objects: &Objects<'a>) -> Self {
        let uid = |metadata: &'a ObjectMeta| metadata.uid.as_deref().unwrap_or_default();
        let mut siblings: BTreeMap<&str, Vec<&MachineSet>> = BTreeMap::new();
        for set in &objects.sets {
            if let Some(owner) = controlled_by(&set.metadata, kind::MACHINE_DEPLOYMENT) {
                siblings.entry(owner).or_default().push(set);
            }
        }
        Self {
            clusters: objects
                .clusters
                .iter()
                .map(|one| (place(&one.metadata, one.metadata.name.as_deref()), *one))
                .collect(),
            sets: objects.sets.iter().map(|one| (uid(&one.metadata), *one)).collect(),
            deployments: objects.deployments.iter().map(|one| (uid(&one.metadata), *one)).collect(),
            siblings,
        }
    }

    fn cluster(&self, metadata: &'a ObjectMeta, name: &'a str) -> Option<&'a Cluster> {
        self.clusters.get(&place(metadata, Some(name))).copied()
    }

    fn siblings(&self, deployment: &ObjectMeta) -> Vec<&'a MachineSet> {
        let uid = deployment.uid.as_deref().unwrap_or_default();
        self.siblings.get(uid).cloned().unwrap_or_default()
    }

    fn deployment_of(&self, set: &MachineSet) -> Option<&'a MachineDeployment> {
        let uid = controlled_by(&set.metadata, kind::MACHINE_DEPLOYMENT)?;
        self.deployments.get(uid).copied()
    }

    fn owners(&self, machine: &'a Machine) -> Owners<'a> {
        let set = controlled_by(&machine.metadata, kind::MACHINE_SET);
        let set = set.and_then(|uid| self.sets.get(uid).copied());
        let deployment = set.and_then(|set| self.deployment_of(set));
        let siblings = deployment.map(|one| self.siblings(&one.metadata)).unwrap_or_default();
        let cluster = self.cluster(&machine.metadata, &machine.spec.cluster_name);
        Owners { cluster, set, deployment, siblings }
    }
}

fn place<'a>(metadata: &'a ObjectMeta, name: Option<&'a str>) -> (&'a str, &'a str) {
    (metadata.namespace.as_deref().unwrap_or_default(), name.unwrap_or_default())
}

/// The uid of the controller, where it is of this kind.
fn controlled_by<'a>(metadata: &'a ObjectMeta, kind: &str) -> Option<&'a str> {
    identity::controller(metadata)
        .filter(|owner| owner.kind == kind)
        .map(|owner| owner.uid.as_str())
}
