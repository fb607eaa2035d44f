//! Which changes of Cluster API's objects concern maintenance?

use std::sync::Arc;

use kube::Resource;
use machinist_api::cluster_api::{Machine, MachineDeployment, MachineSet};
use machinist_core::cluster_api::{identity::controller, maintained};

use super::Maintained;
use crate::{
    cluster_api::{
        context::Stores,
        index,
        workloads::{News, Workloads},
    },
    context::Stores as Base,
    engine::store::{Change, ObjectKey},
    wake::{Queues, is_heartbeat, maintenance},
};

/// Whom a change is about, by name.
struct Concerned {
    machines: Vec<String>,
    pools: Vec<String>,
}

/// Connects the stores to the queues of maintenance. Weakly: what a store holds must not keep the store.
pub fn connect(base: &Arc<Base>, maintained: &Maintained, workloads: &Workloads, queues: &Queues) {
    let stores = &maintained.stores;
    let (weak, of) = (Arc::downgrade(base), Arc::downgrade(stores));
    let with = {
        let queues = queues.clone();
        move |concerned: &dyn Fn(&Stores) -> Concerned| {
            if let (Some(base), Some(stores)) = (weak.upgrade(), of.upgrade()) {
                let Concerned { machines, pools } = concerned(&stores);
                maintenance::of_cluster_api(&base, &queues, &machines, &pools);
            }
        }
    };
    let on = with.clone();
    stores.machines.on_change(move |change: &Change<Machine>| {
        on(&|stores| {
            let both = change.before.iter().chain(&change.after);
            Concerned {
                machines: vec![named(&change.key)],
                pools: both.filter_map(|one| pool_of(stores, one)).collect(),
            }
        });
    });
    let on = with.clone();
    stores.deployments.on_change(move |change: &Change<MachineDeployment>| {
        if !is_status(change, |one| &one.spec) {
            on(&|_| Concerned { machines: Vec::new(), pools: vec![named(&change.key)] });
        }
    });
    let on = with.clone();
    stores.machine_sets.on_change(move |change: &Change<MachineSet>| {
        if is_status(change, |one| &one.spec) {
            return;
        }
        on(&|_| {
            let both = change.before.iter().chain(&change.after);
            let owners = both.filter_map(|one| owner_name(one.meta()));
            let pools = owners.chain([named(&change.key)]).collect();
            Concerned { machines: Vec::new(), pools }
        });
    });
    let on = with.clone();
    stores.clusters.on_change(move |change| {
        if !is_status(change, |one| &one.spec) {
            on(&|stores| of_cluster(stores, &change.key, |_| true));
        }
    });
    workloads.listen(move |cluster, news| match news {
        News::Reach => with(&|stores| of_cluster(stores, cluster, |_| true)),
        News::Node(change) => {
            let pair = change.before.as_deref().zip(change.after.as_deref());
            if pair.is_some_and(|(before, after)| is_heartbeat(before, after)) {
                return;
            }
            let name = change.key.name.as_str();
            let is_its = |machine: &Machine| {
                let node = machine.status.as_ref().and_then(|status| status.node_ref.as_ref());
                node.is_some_and(|node| node.name == name)
            };
            with(&|stores| of_cluster(stores, cluster, is_its));
        }
    });
}

/// Whether nothing changed that maintenance reads of a pool or a Cluster.
fn is_status<K: Resource<DynamicType = ()>, S: PartialEq>(
    change: &Change<K>,
    spec: impl Fn(&K) -> &S,
) -> bool {
    let (Some(before), Some(after)) = (&change.before, &change.after) else { return false };
    let of = |one: &K| {
        let metadata = one.meta();
        (metadata.uid.clone(), metadata.annotations.clone(), metadata.deletion_timestamp.clone())
    };
    spec(before) == spec(after) && of(before) == of(after)
}

/// The machines of a cluster, and their pools.
fn of_cluster(
    stores: &Stores,
    cluster: &ObjectKey,
    is_meant: impl Fn(&Machine) -> bool,
) -> Concerned {
    let of_cluster = index::cluster(&cluster.namespace, &cluster.name);
    let machines = stores.machines.by_index(index::BY_CLUSTER, &of_cluster);
    let machines = machines.iter().filter(|machine| is_meant(machine));
    let mut pools: Vec<String> =
        machines.clone().filter_map(|machine| pool_of(stores, machine)).collect();
    pools.sort();
    pools.dedup();
    let machines = machines.map(|machine| maintained::name(&machine.metadata)).collect();
    Concerned { machines, pools }
}

/// The name of the pool of a Machine.
fn pool_of(stores: &Stores, machine: &Machine) -> Option<String> {
    let set = owner_name(&machine.metadata)?;
    let key = super::key(&set)?;
    let found = stores.machine_sets.get(&key);
    Some(found.and_then(|found| owner_name(&found.metadata)).unwrap_or(set))
}

fn owner_name(
    metadata: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
) -> Option<String> {
    let owner = controller(metadata)?;
    Some(format!("{}/{}", metadata.namespace.as_deref().unwrap_or_default(), owner.name))
}

fn named(key: &ObjectKey) -> String {
    format!("{}/{}", key.namespace, key.name)
}
