//! Which Machines of Cluster API are looked at again, and when?

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::Node;
use kube::api::DynamicObject;
use machinist_api::cluster_api::{
    Cluster, MachineDeployment, MachineSet, condition,
    names::{annotation, condition_type, label},
};
use machinist_core::{
    cluster_api::contract::{GroupKind, reading},
    node,
};

use super::Parts;
use crate::{
    cluster_api::{
        context::{Context, Stores},
        index,
        workloads::News,
    },
    engine::{
        queue::Queue,
        store::{Change, ObjectKey},
    },
};

/// What only changes words (a provider's progress) is gathered for so long into one write.
const GATHER: Duration = Duration::from_secs(1);

/// Connects everything that a Machine's decision reads to its queue.
pub fn connect(context: &Arc<Context>, parts: &Arc<Parts>, queue: &Queue<ObjectKey>) {
    let stores = &context.stores;
    let (to, memory) = (queue.clone(), Arc::downgrade(parts));
    stores.machines.on_change(move |change| {
        let is_own = match (&change.after, memory.upgrade()) {
            (Some(machine), Some(parts)) => parts.memory.is_own(&change.key, machine),
            _ => false,
        };
        if !is_own {
            to.add(change.key.clone());
        }
    });
    let on = Arc::downgrade(stores);
    let with = move |wake: &dyn Fn(&Stores)| {
        if let Some(stores) = on.upgrade() {
            wake(&stores);
        }
    };
    let (on, to) = (with.clone(), queue.clone());
    stores.clusters.on_change(move |change| {
        if cluster_matters(change) {
            on(&|stores| wake_cluster(stores, &to, &change.key));
        }
    });
    let (on, to) = (with.clone(), queue.clone());
    stores.machine_sets.on_change(move |change| {
        if set_matters(change) {
            on(&|stores| wake_set(stores, &to, change.after.as_deref()));
        }
    });
    let (on, to) = (with.clone(), queue.clone());
    stores.deployments.on_change(move |change| {
        if deployment_matters(change) {
            on(&|stores| wake_deployment(stores, &to, change));
        }
    });
    let (on, to) = (with.clone(), queue.clone());
    stores.drain_rules.on_change(move |change| {
        on(&|stores| {
            let machines = stores.machines.list_in(&change.key.namespace);
            for machine in machines.iter().filter(|one| one.metadata.deletion_timestamp.is_some()) {
                to.add(ObjectKey::of(&**machine));
            }
        });
    });
    let (on, to) = (with.clone(), queue.clone());
    context.externals.listen(move |kind, change| {
        on(&|stores| wake_referrers(stores, &to, kind, change));
    });
    let (to, memory) = (queue.clone(), Arc::downgrade(parts));
    parts.workloads.listen(move |cluster, news| {
        with(&|stores| match news {
            News::Reach => {
                if let Some(parts) = memory.upgrade() {
                    parts.memory.emptying.forget_cluster(cluster);
                }
                wake_cluster(stores, &to, cluster);
            }
            News::Node(change) => wake_node(stores, &to, cluster, change),
        });
    });
}

fn wake_cluster(stores: &Stores, queue: &Queue<ObjectKey>, cluster: &ObjectKey) {
    let value = index::cluster(&cluster.namespace, &cluster.name);
    for machine in stores.machines.by_index(index::BY_CLUSTER, &value) {
        queue.add(ObjectKey::of(&*machine));
    }
}

fn cluster_matters(change: &Change<Cluster>) -> bool {
    let (Some(before), Some(after)) = (&change.before, &change.after) else { return true };
    let told = |cluster: &Cluster| {
        let status = cluster.status.clone().unwrap_or_default();
        let initialized =
            condition::is_true(&status.conditions, condition_type::CONTROL_PLANE_INITIALIZED);
        (status.initialization.infrastructure_provisioned, initialized)
    };
    told(before) != told(after)
        || before.spec.paused != after.spec.paused
        || before.spec.control_plane_ref != after.spec.control_plane_ref
        || before.metadata.deletion_timestamp != after.metadata.deletion_timestamp
        || before.metadata.labels != after.metadata.labels
}

fn set_matters(change: &Change<MachineSet>) -> bool {
    let (Some(before), Some(after)) = (&change.before, &change.after) else { return true };
    let revision = |set: &MachineSet| {
        let annotations = set.metadata.annotations.as_ref();
        annotations.and_then(|all| all.get(annotation::REVISION)).cloned()
    };
    before.spec.template.spec != after.spec.template.spec || revision(before) != revision(after)
}

fn wake_set(stores: &Stores, queue: &Queue<ObjectKey>, set: Option<&MachineSet>) {
    let Some(uid) = set.and_then(|set| set.metadata.uid.as_deref()) else { return };
    for machine in stores.machines.by_index(index::MACHINE_BY_OWNER, uid) {
        queue.add(ObjectKey::of(&*machine));
    }
}

fn deployment_matters(change: &Change<MachineDeployment>) -> bool {
    let (Some(before), Some(after)) = (&change.before, &change.after) else { return true };
    let revision = |one: &MachineDeployment| {
        let annotations = one.metadata.annotations.as_ref();
        annotations.and_then(|all| all.get(annotation::REVISION)).cloned()
    };
    before.spec.template.spec != after.spec.template.spec
        || before.spec.rollout.after != after.spec.rollout.after
        || revision(before) != revision(after)
}

fn wake_deployment(stores: &Stores, queue: &Queue<ObjectKey>, change: &Change<MachineDeployment>) {
    for set in stores.machine_sets.list_in(&change.key.namespace) {
        let labels = set.metadata.labels.as_ref();
        if labels.and_then(|all| all.get(label::DEPLOYMENT_NAME)) == Some(&change.key.name) {
            wake_set(stores, queue, Some(&set));
        }
    }
}

fn wake_referrers(
    stores: &Stores,
    queue: &Queue<ObjectKey>,
    kind: &GroupKind,
    change: &Change<DynamicObject>,
) {
    let ObjectKey { namespace, name } = &change.key;
    let value = index::reference(namespace, &kind.group, &kind.kind, name);
    let delay = if external_matters(change) { Duration::ZERO } else { GATHER };
    for machine in stores.machines.by_index(index::MACHINE_BY_REFERENCE, &value) {
        queue.add_after(ObjectKey::of(&*machine), delay);
    }
}

/// Whether a Machine goes on by it, and not only its words change.
fn external_matters(change: &Change<DynamicObject>) -> bool {
    let (Some(before), Some(after)) = (&change.before, &change.after) else { return true };
    let told = |object: &DynamicObject| {
        let data = &object.data;
        let steps = [
            data.pointer("/status/ready"),
            data.pointer("/status/initialization"),
            data.pointer("/spec/providerID"),
            data.pointer("/status/dataSecretName"),
        ];
        steps.map(|step| step.cloned())
    };
    told(before) != told(after)
        || before.metadata.deletion_timestamp != after.metadata.deletion_timestamp
        || reading::addresses(&before.data) != reading::addresses(&after.data)
}

fn wake_node(
    stores: &Stores,
    queue: &Queue<ObjectKey>,
    cluster: &ObjectKey,
    change: &Change<Node>,
) {
    if !node_matters(change) {
        return;
    }
    let of = index::cluster(&cluster.namespace, &cluster.name);
    let mut found =
        stores.machines.by_index(index::MACHINE_BY_NODE, &format!("{of}/{}", change.key.name));
    for one in [&change.before, &change.after].into_iter().flatten() {
        if let Some(id) = node::provider_id(one) {
            let value = format!("{of}/{id}");
            found.extend(stores.machines.by_index(index::MACHINE_BY_PROVIDER_ID, &value));
        }
    }
    for machine in found {
        queue.add(ObjectKey::of(&*machine));
    }
}

/// Heartbeats and what else is not kept make no difference.
fn node_matters(change: &Change<Node>) -> bool {
    let (Some(before), Some(after)) = (&change.before, &change.after) else { return true };
    before.spec != after.spec
        || before.status != after.status
        || before.metadata.labels != after.metadata.labels
        || before.metadata.annotations != after.metadata.annotations
        || before.metadata.deletion_timestamp != after.metadata.deletion_timestamp
}
