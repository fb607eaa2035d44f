//! Which change wakes which set, deployment or check of Cluster API?
//!
//! A change that no decision reads wakes nobody.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::{api::core::v1::Node, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::Resource;
use machinist_api::cluster_api::{
    Cluster, Machine, MachineHealthCheck, MachineSet, condition,
    names::{condition_type, kind},
};
use machinist_core::cluster_api::{deployment, health::Policy, identity, machineset};

use super::{context::Stores, index, workloads::News};
use crate::engine::{
    queue::Queue,
    store::{Change, ObjectKey},
};

/// The queues of the controllers of sets, deployments and checks.
#[derive(Clone)]
pub struct Queues {
    pub machine_sets: Queue<ObjectKey>,
    pub deployments: Queue<ObjectKey>,
    pub health_checks: Queue<ObjectKey>,
}

/// Connects the stores to the queues. Weakly: what a store holds must not keep the store.
pub fn connect(stores: &Arc<Stores>, queues: &Queues) {
    let on = Arc::downgrade(stores);
    let with = move |wake: &dyn Fn(&Stores)| {
        if let Some(stores) = on.upgrade() {
            wake(&stores);
        }
    };
    let (on, to) = (with.clone(), queues.clone());
    stores.machines.on_change(move |change| on(&|stores| machine_changed(stores, &to, change)));
    let (on, to) = (with.clone(), queues.clone());
    stores.machine_sets.on_change(move |change| on(&|stores| set_changed(stores, &to, change)));
    let (on, to) = (with.clone(), queues.clone());
    stores.deployments.on_change(move |change| {
        to.deployments.add(change.key.clone());
        // Its revision and the limit of its remediations are read by its sets.
        on(&|stores| {
            let uid = change.after.as_ref().and_then(|one| one.metadata.uid.clone());
            for set in
                stores.machine_sets.by_index(index::MACHINE_BY_OWNER, &uid.unwrap_or_default())
            {
                to.machine_sets.add(ObjectKey::of(&*set));
            }
        });
    });
    let to = queues.health_checks.clone();
    stores.health_checks.on_change(move |change| {
        if !is_own_status(change) {
            to.add(change.key.clone());
        }
    });
    let to = queues.clone();
    stores.clusters.on_change(move |change| {
        with(&|stores| cluster_changed(stores, &to, change));
    });
}

/// A check looks again at the Nodes of a cluster: one of them came, went or says something else of itself, or the cluster
/// answers or no longer does.
pub fn workload_changed(stores: &Stores, queues: &Queues, cluster: &ObjectKey, news: &News<'_>) {
    if matches!(news, News::Node(change) if !is_read_of_node(change)) {
        return;
    }
    let of_cluster = index::cluster(&cluster.namespace, &cluster.name);
    for check in stores.health_checks.by_index(index::BY_CLUSTER, &of_cluster) {
        queues.health_checks.add(ObjectKey::of(&*check));
    }
}

/// Whether a Node came, went, or is judged anew. Kubelets write theirs all the time.
fn is_read_of_node(change: &Change<Node>) -> bool {
    let (Some(before), Some(after)) = (&change.before, &change.after) else { return true };
    let conditions = |node: &Node| {
        let all = node.status.as_ref().and_then(|status| status.conditions.clone());
        let told = all.into_iter().flatten();
        told.map(|one| (one.type_, one.status, one.last_transition_time)).collect::<Vec<_>>()
    };
    before.metadata.uid != after.metadata.uid || conditions(before) != conditions(after)
}

fn machine_changed(stores: &Stores, queues: &Queues, change: &Change<Machine>) {
    for machine in change.before.iter().chain(&change.after) {
        match identity::controller(&machine.metadata) {
            Some(owner) if owner.kind == kind::MACHINE_SET => {
                let key = ObjectKey::new(change.key.namespace.clone(), owner.name.clone());
                if let Some(set) = stores.machine_sets.get(&key) {
                    wake_owner(&set.metadata, &queues.deployments);
                }
                queues.machine_sets.add(key);
            }
            Some(_) => {}
            None => wake_adopters(stores, queues, machine),
        }
        let of_cluster = index::cluster(&change.key.namespace, &machine.spec.cluster_name);
        let empty = BTreeMap::new();
        let labels = machine.metadata.labels.as_ref().unwrap_or(&empty);
        for check in stores.health_checks.by_index(index::BY_CLUSTER, &of_cluster) {
            if Policy::read(&check).is_ok_and(|policy| policy.selector.matches(labels)) {
                queues.health_checks.add(ObjectKey::of(&*check));
            }
        }
    }
}

/// Sets that could adopt a Machine.
fn wake_adopters(stores: &Stores, queues: &Queues, machine: &Machine) {
    let namespace = machine.metadata.namespace.as_deref().unwrap_or_default();
    let of_cluster = index::cluster(namespace, &machine.spec.cluster_name);
    let empty = BTreeMap::new();
    let labels = machine.metadata.labels.as_ref().unwrap_or(&empty);
    for set in stores.machine_sets.by_index(index::BY_CLUSTER, &of_cluster) {
        if machineset::validate(&set).is_ok_and(|selector| selector.matches(labels)) {
            queues.machine_sets.add(ObjectKey::of(&*set));
        }
    }
}

fn set_changed(stores: &Stores, queues: &Queues, change: &Change<MachineSet>) {
    queues.machine_sets.add(change.key.clone());
    for set in change.before.iter().chain(&change.after) {
        if identity::controller(&set.metadata).is_some() {
            wake_owner(&set.metadata, &queues.deployments);
            continue;
        }
        let of_cluster = index::cluster(&change.key.namespace, &set.spec.cluster_name);
        let empty = BTreeMap::new();
        let labels = set.metadata.labels.as_ref().unwrap_or(&empty);
        for one in stores.deployments.by_index(index::BY_CLUSTER, &of_cluster) {
            if deployment::validate(&one).is_ok_and(|policy| policy.selector.matches(labels)) {
                queues.deployments.add(ObjectKey::of(&*one));
            }
        }
    }
}

fn wake_owner(set: &ObjectMeta, deployments: &Queue<ObjectKey>) {
    if let Some(owner) = identity::controller(set)
        && owner.kind == kind::MACHINE_DEPLOYMENT
    {
        let namespace = set.namespace.clone().unwrap_or_default();
        deployments.add(ObjectKey::new(namespace, owner.name.clone()));
    }
}

/// What a Cluster says that its sets, deployments and checks read.
fn cluster_changed(stores: &Stores, queues: &Queues, change: &Change<Cluster>) {
    if !is_read(change) {
        return;
    }
    let of_cluster = index::cluster(&change.key.namespace, &change.key.name);
    for set in stores.machine_sets.by_index(index::BY_CLUSTER, &of_cluster) {
        queues.machine_sets.add(ObjectKey::of(&*set));
    }
    for one in stores.deployments.by_index(index::BY_CLUSTER, &of_cluster) {
        queues.deployments.add(ObjectKey::of(&*one));
    }
    for check in stores.health_checks.by_index(index::BY_CLUSTER, &of_cluster) {
        queues.health_checks.add(ObjectKey::of(&*check));
    }
}

fn is_read(change: &Change<Cluster>) -> bool {
    let (Some(before), Some(after)) = (&change.before, &change.after) else { return true };
    let conditions = |cluster: &Cluster| {
        let all = cluster.status.as_ref().map_or(&[][..], |status| &status.conditions);
        [condition_type::INFRASTRUCTURE_READY, condition_type::CONTROL_PLANE_INITIALIZED].map(
            |type_| {
                condition::find(all, type_)
                    .map(|known| (known.status.clone(), known.last_transition_time.clone()))
            },
        )
    };
    before.spec != after.spec
        || before.meta().uid != after.meta().uid
        || conditions(before) != conditions(after)
}

/// Whether nothing but the status of a check changed, which is our own doing.
fn is_own_status(change: &Change<MachineHealthCheck>) -> bool {
    let (Some(before), Some(after)) = (&change.before, &change.after) else { return false };
    before.spec == after.spec
        && before.metadata.uid == after.metadata.uid
        && before.metadata.annotations == after.metadata.annotations
        && before.metadata.labels == after.metadata.labels
        && before.metadata.owner_references == after.metadata.owner_references
        && before.metadata.deletion_timestamp == after.metadata.deletion_timestamp
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::read;

    fn node(uid: &str, heard: &str, ready: &str, since: &str) -> Option<Arc<Node>> {
        let object: Value = json!({
            "metadata": { "name": "n", "uid": uid, "resourceVersion": heard },
            "status": {
                "conditions": [{ "type": "Ready", "status": ready, "lastTransitionTime": since }],
                "nodeInfo": {
                    "architecture": "", "bootID": heard, "containerRuntimeVersion": "",
                    "kernelVersion": "", "kubeProxyVersion": "", "kubeletVersion": "", "machineID": "",
                    "operatingSystem": "", "osImage": "", "systemUUID": "",
                },
            },
        });
        Some(Arc::new(read(object)))
    }

    #[test]
    fn a_node_wakes_checks_when_it_comes_goes_or_feels_different() {
        let (early, late) = ("2026-01-01T11:00:00Z", "2026-01-01T12:00:00Z");
        let known = || node("u", "1", "True", early);
        for (before, after, wakes, case) in [
            (known(), node("u", "2", "True", early), false, "a heartbeat"),
            (known(), node("u", "2", "False", late), true, "it is not ready"),
            (known(), node("u", "2", "True", late), true, "it was not ready in between"),
            (known(), node("v", "2", "True", early), true, "another of its name"),
            (known(), None, true, "it went"),
            (None, known(), true, "it came"),
        ] {
            let key = ObjectKey::cluster_wide("n");
            let change = Change { key, before, after, unreadable: Vec::new() };
            assert_eq!(is_read_of_node(&change), wakes, "{case}");
        }
    }
}
