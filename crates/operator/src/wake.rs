//! Who is woken by what: from a change of one object to the keys that must be looked at. A change
//! that no decision reads wakes nobody.

mod certificates;
mod health;
pub mod maintenance;
mod openshift;

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::{
    api::core::v1::{Node, Pod},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::Resource;
use machinist_api::{Machine, MachineHealthCheck, MachineSet};
use machinist_core::{
    drain::decide::concerns, machine::observed::provider_status, machineset::validate, node,
};

use crate::{
    cloud::snapshot::News,
    context::Stores,
    drain,
    engine::{
        queue::Queue,
        store::{Change, ObjectKey},
    },
    index,
};

/// The queues of all controllers.
#[derive(Clone)]
pub struct Queues {
    pub machines: Queue<ObjectKey>,
    pub machine_sets: Queue<ObjectKey>,
    /// MachineSets too, for what is said on them of their capacity.
    pub capacities: Queue<ObjectKey>,
    pub nodes: Queue<ObjectKey>,
    pub drains: Queue<ObjectKey>,
    pub health_checks: Queue<ObjectKey>,
    /// Signing requests of certificates.
    pub requests: Queue<ObjectKey>,
    pub maintenances: Queue<ObjectKey>,
    /// One key: the plan of the whole fleet.
    pub plans: Queue<ObjectKey>,
}

/// Connects the stores to the queues. Weakly: what a store holds must not keep the store.
pub fn connect(stores: &Arc<Stores>, queues: &Queues, draining: &Arc<drain::Memory>) {
    let on = Arc::downgrade(stores);
    let with = move |wake: &dyn Fn(&Stores)| {
        if let Some(stores) = on.upgrade() {
            wake(&stores);
        }
    };
    let (on, to, memory) = (with.clone(), queues.clone(), Arc::clone(draining));
    stores
        .machines
        .on_change(move |change| on(&|stores| machine_changed(stores, &to, &memory, change)));
    let (on, to) = (with.clone(), queues.clone());
    stores.machine_sets.on_change(move |change| {
        to.machine_sets.add(change.key.clone());
        to.capacities.add(change.key.clone());
        on(&|stores| {
            wake_drifted(stores, &to.machines, change);
            health::set_changed(stores, &to.health_checks, change);
        });
    });
    let (on, to) = (with.clone(), queues.clone());
    stores.nodes.on_change(move |change| on(&|stores| node_changed(stores, &to, change)));
    let (on, to) = (with.clone(), queues.clone());
    stores.pods.on_change(move |change| on(&|stores| pod_changed(stores, &to, change)));
    let (to, memory) = (queues.clone(), Arc::clone(draining));
    stores.budgets.on_change(move |_| {
        for key in memory.under_way() {
            to.drains.add(key);
        }
    });
    let to = queues.health_checks.clone();
    stores.health_checks.on_change(move |change| {
        // A status is our own doing; it tells us nothing.
        if !is_own_status(change) {
            to.add(change.key.clone());
        }
    });
    let (on, to) = (with.clone(), queues.requests.clone());
    stores.requests.on_change(move |change| {
        to.add(change.key.clone());
        on(&|stores| certificates::request_ended(stores, &to, change));
    });
    openshift::connect(stores, queues);
    maintenance::connect(stores, queues);
    // Region, endpoint and tags of the whole cluster.
    let to = queues.clone();
    stores.infrastructures.on_change(move |_| {
        with(&|stores| {
            wake_all_machines(stores, &to.machines);
            for set in stores.machine_sets.list() {
                to.capacities.add(ObjectKey::of(&*set));
            }
        });
    });
}

/// Whether nothing but the status of a check changed.
fn is_own_status(change: &Change<MachineHealthCheck>) -> bool {
    let (Some(before), Some(after)) = (&change.before, &change.after) else { return false };
    before.spec == after.spec
        && before.metadata.uid == after.metadata.uid
        && before.metadata.annotations == after.metadata.annotations
        && before.metadata.deletion_timestamp == after.metadata.deletion_timestamp
}

/// A pool's annotations say what follows when an instance of its was stopped or terminated: those to
/// whom that happened look again.
fn wake_drifted(stores: &Stores, machines: &Queue<ObjectKey>, change: &Change<MachineSet>) {
    let Some(set) = &change.after else { return };
    let before = change.before.as_ref();
    let is_same = before.is_some_and(|before| {
        before.metadata.annotations == set.metadata.annotations
            && before.spec.replicas == set.spec.replicas
    });
    if is_same {
        return;
    }
    let owner = set.metadata.uid.as_deref().unwrap_or_default();
    for machine in stores.machines.by_index(index::MACHINE_BY_OWNER, owner) {
        if provider_status(&machine).drift.is_some() {
            machines.add(ObjectKey::of(&*machine));
        }
    }
}

/// Wakes the Machines and Nodes that a view has news for.
pub fn cloud_changed(stores: &Stores, queues: &Queues, news: &News) {
    let machines = &queues.machines;
    let changed = match news {
        News::ForEverybody => {
            for node in stores.nodes.list() {
                queues.nodes.add(ObjectKey::of(&*node));
            }
            maintenance::cloud_changed(stores, queues, &[]);
            return wake_all_machines(stores, machines);
        }
        News::About(changed) => changed,
    };
    for id in &changed.ids {
        for node in stores.nodes.by_index(index::NODE_BY_INSTANCE, &id.0) {
            queues.nodes.add(ObjectKey::of(&*node));
        }
    }
    let by_uid = changed.uids.iter().map(|uid| (index::MACHINE_BY_UID, uid.as_str()));
    let by_id = changed.ids.iter().map(|id| (index::MACHINE_BY_INSTANCE, id.0.as_str()));
    for (index, value) in by_uid.chain(by_id) {
        let concerned = stores.machines.by_index(index, value);
        maintenance::cloud_changed(stores, queues, &concerned);
        for machine in concerned {
            machines.add(ObjectKey::of(&*machine));
        }
    }
}

fn wake_all_machines(stores: &Stores, machines: &Queue<ObjectKey>) {
    for machine in stores.machines.list() {
        machines.add(ObjectKey::of(&*machine));
    }
}

fn machine_changed(
    stores: &Stores,
    queues: &Queues,
    draining: &drain::Memory,
    change: &Change<Machine>,
) {
    queues.machines.add(change.key.clone());
    let is_draining = change.after.as_deref().is_some_and(concerns);
    if is_draining || draining.contains(&change.key) {
        queues.drains.add(change.key.clone());
    }
    for machine in [&change.before, &change.after].into_iter().flatten() {
        for set in sets_of(stores, machine) {
            queues.machine_sets.add(set);
        }
    }
    for machine in [&change.before, &change.after].into_iter().flatten() {
        health::wake_checks_of(stores, &queues.health_checks, machine);
    }
    certificates::machine_changed(stores, &queues.requests, change);
    // They fill a place in their pool for as long as they exist.
    for set in change.unreadable.iter().filter_map(|object| owning_set(&object.metadata)) {
        queues.machine_sets.add(set);
    }
    let is_same_for_node =
        change.before.as_ref().zip(change.after.as_ref()).is_some_and(|(before, after)| {
            before.spec.metadata == after.spec.metadata
                && before.spec.taints == after.spec.taints
                && before.spec.provider_id == after.spec.provider_id
                && index::instance_of_machine(before) == index::instance_of_machine(after)
                && index::internal_ips_of_machine(before) == index::internal_ips_of_machine(after)
        });
    if is_same_for_node {
        return;
    }
    // A Node that two Machines claimed is the other one's as soon as the first lets go of it.
    for machine in [&change.before, &change.after].into_iter().flatten() {
        for node in nodes_of(stores, machine) {
            queues.nodes.add(node);
        }
    }
}

/// The pool that owns a Machine, or those that may adopt it.
fn sets_of(stores: &Stores, machine: &Machine) -> Vec<ObjectKey> {
    if let Some(owner) = owning_set(&machine.metadata) {
        return vec![owner];
    }
    let empty = BTreeMap::new();
    let labels = machine.metadata.labels.as_ref().unwrap_or(&empty);
    let may_adopt = |set: &MachineSet| validate(set).is_ok_and(|selector| selector.matches(labels));
    let sets =
        stores.machine_sets.list_in(machine.metadata.namespace.as_deref().unwrap_or_default());
    sets.iter().filter(|set| may_adopt(set)).map(|set| ObjectKey::of(&**set)).collect()
}

fn owning_set(metadata: &ObjectMeta) -> Option<ObjectKey> {
    let mut owners = metadata.owner_references.iter().flatten();
    let owner = owners.find(|owner| owner.controller == Some(true))?;
    Some(ObjectKey::new(metadata.namespace.as_deref().unwrap_or_default(), owner.name.as_str()))
}

fn nodes_of(stores: &Stores, machine: &Machine) -> Vec<ObjectKey> {
    let mut nodes = Vec::new();
    for instance in index::instance_of_machine(machine) {
        nodes.extend(stores.nodes.by_index(index::NODE_BY_INSTANCE, &instance));
    }
    for address in index::internal_ips_of_machine(machine) {
        nodes.extend(stores.nodes.by_index(index::NODE_BY_INTERNAL_IP, &address));
    }
    nodes.iter().map(|node| ObjectKey::of(&**node)).collect()
}

fn node_changed(stores: &Stores, queues: &Queues, change: &Change<Node>) {
    if let (Some(before), Some(after)) = (&change.before, &change.after)
        && is_heartbeat(before, after)
    {
        return;
    }
    queues.nodes.add(change.key.clone());
    certificates::wake_requests_for(stores, &queues.requests, &change.key.name);
    for machine in stores.machines.by_index(index::MACHINE_BY_NODE, &change.key.name) {
        health::wake_checks_of(stores, &queues.health_checks, &machine);
    }
    for node in [&change.before, &change.after].into_iter().flatten() {
        for machine in machines_of(stores, node) {
            let key = ObjectKey::of(&*machine);
            queues.machines.add(key.clone());
            if concerns(&machine) {
                queues.drains.add(key);
            }
            for set in sets_of(stores, &machine) {
                queues.machine_sets.add(set);
            }
        }
    }
    // A control-plane node that is free again lets the next one be drained.
    if change.after.as_deref().or(change.before.as_deref()).is_some_and(node::is_control_plane) {
        for machine in stores.machines.list().iter().filter(|machine| concerns(machine)) {
            queues.drains.add(ObjectKey::of(&**machine));
        }
    }
}

fn machines_of(stores: &Stores, node: &Node) -> Vec<Arc<Machine>> {
    let mut machines = stores.machines.by_index(index::MACHINE_BY_NODE, node::name(node));
    for instance in index::instance_of_node(node) {
        machines.extend(stores.machines.by_index(index::MACHINE_BY_INSTANCE, &instance));
    }
    for address in node::internal_ips(node) {
        machines.extend(stores.machines.by_index(index::MACHINE_BY_INTERNAL_IP, address));
    }
    machines
}

/// Whether nothing changed that a decision reads. The store keeps no heartbeat times, so most
/// heartbeats leave the pruned Node equal but for its resourceVersion.
pub fn is_heartbeat(before: &Node, after: &Node) -> bool {
    let strip = |node: &Node| {
        let mut node = node.clone();
        node.meta_mut().resource_version = None;
        node
    };
    strip(before) == strip(after)
}

fn pod_changed(stores: &Stores, queues: &Queues, change: &Change<Pod>) {
    let pod = change.after.as_deref().or(change.before.as_deref());
    let Some(node) = pod.and_then(|pod| index::node_of_pod(pod).into_iter().next()) else { return };
    for machine in stores.machines.by_index(index::MACHINE_BY_NODE, &node) {
        if concerns(&machine) {
            queues.drains.add(ObjectKey::of(&*machine));
        }
    }
}

#[cfg(test)]
mod tests;
