//! Which Clusters are looked at again?

use std::sync::Arc;

use machinist_api::cluster_api::{Cluster, ContractRef, Machine};
use machinist_core::cluster_api::{contract::GroupKind, machine::observed::is_control_plane};

use crate::{
    cluster_api::{
        context::Context,
        workloads::{News, Workloads},
    },
    engine::{
        queue::Queue,
        store::{Change, ObjectKey},
    },
};

pub fn connect(context: &Arc<Context>, workloads: &Workloads, queue: &Queue<ObjectKey>) {
    let to = queue.clone();
    context.stores.clusters.on_change(move |change| to.add(change.key.clone()));
    let to = queue.clone();
    context.stores.machines.on_change(move |change| {
        if machine_matters(change)
            && let Some(machine) = change.after.as_ref().or(change.before.as_ref())
        {
            to.add(ObjectKey::new(&change.key.namespace, &machine.spec.cluster_name));
        }
    });
    let (to, stores) = (queue.clone(), Arc::downgrade(&context.stores));
    context.stores.machine_sets.on_change(move |change| {
        if let (None, Some(set)) = (&change.after, &change.before) {
            to.add(ObjectKey::new(&change.key.namespace, &set.spec.cluster_name));
        }
    });
    let to = queue.clone();
    context.stores.deployments.on_change(move |change| {
        if let (None, Some(one)) = (&change.after, &change.before) {
            to.add(ObjectKey::new(&change.key.namespace, &one.spec.cluster_name));
        }
    });
    let to = queue.clone();
    context.externals.listen(move |kind, change| {
        let Some(stores) = stores.upgrade() else { return };
        for cluster in stores.clusters.list_in(&change.key.namespace) {
            if names(&cluster, kind, &change.key.name) {
                to.add(ObjectKey::of(&*cluster));
            }
        }
    });
    let to = queue.clone();
    workloads.listen(move |cluster, news| {
        if matches!(news, News::Reach) {
            to.add(cluster.clone());
        }
    });
}

/// A control-plane Machine with a Node, and the end of any Machine.
fn machine_matters(change: &Change<Machine>) -> bool {
    let node = |one: &Option<Arc<Machine>>| {
        let status = one.as_ref().and_then(|one| one.status.as_ref());
        status.is_some_and(|status| status.node_ref.is_some())
    };
    match &change.after {
        None => true,
        Some(machine) => is_control_plane(machine) && node(&change.before) != node(&change.after),
    }
}

fn names(cluster: &Cluster, kind: &GroupKind, name: &str) -> bool {
    let is = |reference: &Option<ContractRef>| {
        reference.as_ref().is_some_and(|one| {
            one.api_group == kind.group && one.kind == kind.kind && one.name == name
        })
    };
    is(&cluster.spec.infrastructure_ref) || is(&cluster.spec.control_plane_ref)
}
