//! What do maintenance, the gate and the page see of the machines of Cluster API?
//!
//! What core makes of them (`machinist_core::cluster_api::maintained`): the same types as those of the OpenShift API, so that
//! one planner and one gate are enough. `write` changes the objects that are meant, `wake` tells maintenance of changes.

#[cfg(test)]
mod tests;
pub mod wake;
pub mod write;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, OnceLock},
};

use anyhow::Context as _;
use k8s_openapi::{api::core::v1::Node, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::Client;
use machinist_api::{
    Machine as Seen, MachineSet as SeenPool,
    cluster_api::{API_VERSION, Cluster, Machine, MachineDeployment, MachineSet, names::kind},
};
use machinist_core::{
    cluster_api::{
        health::Gate,
        identity::controller,
        maintained::{self, Owners},
    },
    disruption,
    maintenance::surge::without_surplus,
};

use super::{
    context::{NodeLook, Nodes, Stores},
    index,
};
use crate::engine::{
    events::EventTarget,
    leadership::Leadership,
    store::{ObjectKey, Store},
    watch::Watched,
};

/// Where the machines of Cluster API are found; nowhere, unless they are looked after.
#[derive(Clone, Default)]
pub struct Handle(Arc<OnceLock<Maintained>>);

impl Handle {
    pub fn get(&self) -> Option<&Maintained> {
        self.0.get()
    }

    /// Says where; once in the life of a process.
    pub fn put(&self, maintained: Maintained) {
        // A second one would be the same.
        let _ = self.0.set(maintained);
    }
}

/// The machines of Cluster API.
#[derive(Clone)]
pub struct Maintained {
    pub stores: Arc<Stores>,
    pub nodes: Arc<dyn Nodes>,
    /// Of Cluster API's own lease: without it nothing is done to these machines.
    pub leadership: Leadership,
}

/// The owners of one Machine, held for as long as they are looked at.
#[derive(Default)]
struct Held {
    cluster: Option<Arc<Cluster>>,
    set: Option<Arc<MachineSet>>,
    deployment: Option<Arc<MachineDeployment>>,
    siblings: Vec<Arc<MachineSet>>,
}

impl Held {
    fn owners(&self) -> Owners<'_> {
        Owners {
            cluster: self.cluster.as_deref(),
            set: self.set.as_deref(),
            deployment: self.deployment.as_deref(),
            siblings: self.siblings.iter().map(AsRef::as_ref).collect(),
        }
    }
}

/// Which pool is meant.
pub enum Pool {
    Deployment(Arc<MachineDeployment>),
    Set(Arc<MachineSet>),
}

impl Maintained {
    /// Whether all kinds that are shown were read.
    pub fn is_listed(&self) -> bool {
        let stores = &self.stores;
        stores.clusters.is_synced()
            && stores.machines.is_synced()
            && stores.machine_sets.is_synced()
            && stores.deployments.is_synced()
    }

    /// Where there are machines or pools.
    pub fn namespaces(&self) -> BTreeSet<String> {
        fn of<K: Watched>(store: &Store<K>) -> impl Iterator<Item = String> {
            store.list().into_iter().filter_map(|one| one.meta().namespace.clone())
        }
        let stores = &self.stores;
        let pools = of(&stores.deployments).chain(of(&stores.machine_sets));
        of(&stores.machines).chain(pools).collect()
    }

    /// All of them, in the order of their names.
    pub fn machines(&self) -> Vec<Arc<Seen>> {
        self.stores.machines.list().iter().map(|machine| self.seen(machine)).collect()
    }

    /// The one of this name, which has its namespace in it.
    pub fn machine(&self, name: &str) -> Option<Arc<Seen>> {
        Some(self.seen(&*self.object(name)?))
    }

    pub fn object(&self, name: &str) -> Option<Arc<Machine>> {
        self.stores.machines.get(&key(name)?)
    }

    /// All pools: deployments, and sets that have none.
    pub fn pools(&self) -> Vec<Arc<SeenPool>> {
        let deployments = self.stores.deployments.list().into_iter().map(Pool::Deployment);
        let sets = self.stores.machine_sets.list().into_iter();
        let alone = sets.filter(|set| self.deployment_of(set).is_none()).map(Pool::Set);
        let mut pools: Vec<_> = deployments.chain(alone).map(|pool| seen_pool(&pool)).collect();
        pools.sort_by(|left, right| left.metadata.name.cmp(&right.metadata.name));
        pools
    }

    pub fn pool(&self, name: &str) -> Option<Arc<SeenPool>> {
        Some(seen_pool(&self.pool_object(name)?))
    }

    pub fn pool_object(&self, name: &str) -> Option<Pool> {
        let key = key(name)?;
        let deployment = self.stores.deployments.get(&key).map(Pool::Deployment);
        deployment.or_else(|| self.stores.machine_sets.get(&key).map(Pool::Set))
    }

    /// The pool that controls a machine. A deployment and a set may have one name, so kind and uid are asked for.
    fn pool_of(&self, machine: &Seen) -> Option<Pool> {
        let owner = controller(&machine.metadata)?;
        let key = key(&owner.name)?;
        let is_it = |metadata: &ObjectMeta| metadata.uid.as_ref() == Some(&owner.uid);
        match owner.kind.as_str() {
            kind::MACHINE_DEPLOYMENT => {
                let found = self.stores.deployments.get(&key);
                found.filter(|found| is_it(&found.metadata)).map(Pool::Deployment)
            }
            kind::MACHINE_SET => {
                let found = self.stores.machine_sets.get(&key);
                found.filter(|found| is_it(&found.metadata)).map(Pool::Set)
            }
            _ => None,
        }
    }

    /// The machines of the pool of this name.
    pub fn members(&self, pool: &str) -> Vec<Arc<Seen>> {
        self.pool_object(pool).map(|pool| self.members_of(&pool)).unwrap_or_default()
    }

    fn members_of(&self, pool: &Pool) -> Vec<Arc<Seen>> {
        let sets = match pool {
            Pool::Deployment(deployment) => self.sets_of(deployment),
            Pool::Set(set) => vec![Arc::clone(set)],
        };
        let of = |set: &Arc<MachineSet>| {
            let uid = set.metadata.uid.as_deref().unwrap_or_default();
            self.stores.machines.by_index(index::MACHINE_BY_OWNER, uid)
        };
        let mut members: Vec<_> =
            sets.iter().flat_map(of).map(|machine| self.seen(&machine)).collect();
        members.sort_by(|left, right| left.metadata.name.cmp(&right.metadata.name));
        members
    }

    /// The Node of a machine, in its own cluster.
    pub fn node(&self, name: &str) -> Option<Arc<Node>> {
        self.node_of(&*self.object(name)?)
    }

    fn node_of(&self, machine: &Machine) -> Option<Arc<Node>> {
        match self.look(machine)? {
            NodeLook::Present(node) => Some(node),
            NodeLook::Gone | NodeLook::Unknown => None,
        }
    }

    fn look(&self, machine: &Machine) -> Option<NodeLook> {
        let node = machine.status.as_ref()?.node_ref.as_ref()?;
        Some(self.nodes.look(&cluster_of(machine), &node.name))
    }

    /// The workload cluster of a machine, or where that is gone, of its pool, and how it is asked.
    ///
    /// # Errors
    /// Fails while it does not answer.
    pub fn reach(&self, machine: &str, pool: Option<&str>) -> anyhow::Result<(ObjectKey, Client)> {
        let of_machine = self.object(machine).map(|machine| cluster_of(&machine));
        let cluster = of_machine.or_else(|| self.cluster_of_pool(pool?));
        let cluster = cluster.with_context(|| format!("the Cluster of {machine} is not known"))?;
        let reached = self.nodes.reached(&cluster);
        let (client, _) = reached.with_context(|| format!("Cluster {cluster} does not answer"))?;
        Ok((cluster, client))
    }

    /// The Cluster that a pool belongs to.
    fn cluster_of_pool(&self, pool: &str) -> Option<ObjectKey> {
        let name = match self.pool_object(pool)? {
            Pool::Deployment(deployment) => deployment.spec.cluster_name.clone(),
            Pool::Set(set) => set.spec.cluster_name.clone(),
        };
        Some(ObjectKey::new(key(pool)?.namespace, name))
    }

    /// Why nothing may be done to a machine now, whatever was begun.
    pub fn doubt(&self, name: &str, now: tokio::time::Instant) -> Option<String> {
        if !self.leadership.is_held() {
            return Some("the lease of Cluster API's core manager is not ours".to_owned());
        }
        if !self.stores.machines.is_current(now) {
            return Some("the watch of Cluster API's machines is interrupted".to_owned());
        }
        let machine = self.object(name)?;
        let has_node = machine.status.as_ref().is_some_and(|status| status.node_ref.is_some());
        if let Some(why) = has_node.then(|| self.nodes.doubt(&cluster_of(&machine))).flatten() {
            return Some(why);
        }
        maintained::standstill(&machine, &self.held(&machine).owners())
    }

    /// The pool of a machine as the gate counts it for that one; `None` where none would make another. What a maintenance
    /// added is not counted.
    pub fn counted(&self, machine: &Seen) -> Option<disruption::Pool> {
        let pool = self.pool_of(machine)?;
        let members = self.members_of(&pool);
        let nodes: Vec<Option<Arc<Node>>> = members
            .iter()
            .map(|one| self.node(one.metadata.name.as_deref().unwrap_or_default()))
            .collect();
        let members = members.iter().zip(&nodes).map(|(one, node)| (&**one, node.as_deref()));
        let uid = machine.metadata.uid.as_deref().unwrap_or_default();
        Some(without_surplus(disruption::Pool::of(&seen_pool(&pool), members, uid)))
    }

    /// The pools of these Machines as the gate counts them.
    pub fn gate(&self, machines: &[Arc<Machine>]) -> Gate {
        let asked: Vec<Arc<Seen>> = machines.iter().map(|machine| self.seen(machine)).collect();
        let mut pools: BTreeMap<&str, Pool> = BTreeMap::new();
        for machine in &asked {
            if let Some(owner) = controller(&machine.metadata)
                && !pools.contains_key(owner.uid.as_str())
                && let Some(pool) = self.pool_of(machine)
            {
                pools.insert(&owner.uid, pool);
            }
        }
        let mut members: Vec<Arc<Seen>> =
            pools.values().flat_map(|pool| self.members_of(pool)).collect();
        members.extend(asked.iter().cloned());
        members.sort_by(|left, right| left.metadata.name.cmp(&right.metadata.name));
        members.dedup_by(|left, right| left.metadata.name == right.metadata.name);
        let nodes: Vec<Option<Arc<Node>>> = members
            .iter()
            .map(|one| self.node(one.metadata.name.as_deref().unwrap_or_default()))
            .collect();
        let members: Vec<(&Seen, Option<&Node>)> = members
            .iter()
            .zip(&nodes)
            .map(|(machine, node)| (&**machine, node.as_deref()))
            .collect();
        let pools: Vec<_> = pools.values().map(seen_pool).collect();
        Gate::count(pools.iter().map(AsRef::as_ref), &members)
    }

    fn seen(&self, machine: &Machine) -> Arc<Seen> {
        Arc::new(maintained::machine(machine, &self.held(machine).owners()))
    }

    fn held(&self, machine: &Machine) -> Held {
        let set = owned_by(&machine.metadata, kind::MACHINE_SET, &self.stores.machine_sets);
        let deployment = set.as_ref().and_then(|set| self.deployment_of(set));
        Held {
            cluster: self.stores.clusters.get(&cluster_of(machine)),
            siblings: deployment.as_ref().map(|one| self.sets_of(one)).unwrap_or_default(),
            set,
            deployment,
        }
    }

    fn deployment_of(&self, set: &MachineSet) -> Option<Arc<MachineDeployment>> {
        owned_by(&set.metadata, kind::MACHINE_DEPLOYMENT, &self.stores.deployments)
    }

    fn sets_of(&self, deployment: &MachineDeployment) -> Vec<Arc<MachineSet>> {
        let uid = deployment.metadata.uid.as_deref().unwrap_or_default();
        self.stores.machine_sets.by_index(index::MACHINE_BY_OWNER, uid)
    }
}

fn seen_pool(pool: &Pool) -> Arc<SeenPool> {
    Arc::new(match pool {
        Pool::Deployment(deployment) => maintained::of_deployment(deployment),
        Pool::Set(set) => maintained::of_set(set),
    })
}

/// The controller of an object, where it is of this kind and still the same.
fn owned_by<K: Watched>(metadata: &ObjectMeta, kind: &str, store: &Store<K>) -> Option<Arc<K>> {
    let owner = controller(metadata).filter(|owner| owner.kind == kind)?;
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    let found = store.get(&ObjectKey::new(namespace, owner.name.as_str()))?;
    (found.meta().uid.as_ref() == Some(&owner.uid)).then_some(found)
}

/// The Cluster of a Machine.
fn cluster_of(machine: &Machine) -> ObjectKey {
    let namespace = machine.metadata.namespace.as_deref().unwrap_or_default();
    ObjectKey::new(namespace, machine.spec.cluster_name.as_str())
}

/// The key of the object that a name with a namespace in it means.
fn key(name: &str) -> Option<ObjectKey> {
    maintained::parts(name).map(|(namespace, name)| ObjectKey::new(namespace, name))
}

/// Whom an Event is about that is told of a machine, of whichever API.
pub fn event_target(machine: &Seen) -> EventTarget {
    let target = EventTarget::of(machine);
    match maintained::parts(&target.name) {
        None => target,
        Some((namespace, name)) => EventTarget {
            api_version: API_VERSION.to_owned(),
            kind: kind::MACHINE.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            uid: target.uid.clone(),
        },
    }
}
