//! Which maintenances a change concerns, and whether the fleet is planned anew for it.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::{Node, Pod};
use machinist_api::{Machine, MachineMaintenance, MachineSet, MaintenancePhase, MaintenanceWork};
use machinist_core::node;

use super::{Queues, is_heartbeat};
use crate::{
    context::Stores,
    engine::store::{Change, ObjectKey},
    index,
    maintenance::planning,
};

/// Changes that come within this time share one plan.
const GATHER: Duration = Duration::from_secs(3);

/// Connects the stores to the two queues. Weakly: what a store holds must not keep the store.
pub fn connect(stores: &Arc<Stores>, queues: &Queues) {
    let on = Arc::downgrade(stores);
    let with = move |wake: &dyn Fn(&Stores)| {
        if let Some(stores) = on.upgrade() {
            wake(&stores);
        }
    };
    let to = queues.clone();
    stores.maintenance.on_change(move |change| object_changed(&to, change));
    let (on, to) = (with.clone(), queues.clone());
    stores.machines.on_change(move |change| on(&|stores| machine_changed(stores, &to, change)));
    let (on, to) = (with.clone(), queues.clone());
    stores.machine_sets.on_change(move |change| on(&|stores| set_changed(stores, &to, change)));
    let (on, to) = (with.clone(), queues.clone());
    stores.nodes.on_change(move |change| on(&|stores| node_changed(stores, &to, change)));
    let (on, to) = (with.clone(), queues.clone());
    stores.pods.on_change(move |change| on(&|stores| pod_changed(stores, &to, change)));
    let (on, to) = (with, queues.clone());
    stores.budgets.on_change(move |_| {
        on(&|stores| wake_those(stores, &to, |phase, _| phase == MaintenancePhase::Draining));
    });
    let to = queues.clone();
    stores.maintenance.policies.on_change(move |change| {
        let same = |known: &(_, _)| is_same_policy(known.0, known.1);
        if !change.before.as_deref().zip(change.after.as_deref()).as_ref().is_some_and(same) {
            plan_soon(&to);
        }
    });
    let (own, to) = (&stores.maintenance, queues);
    let soon = |to: &Queues| {
        let to = to.clone();
        move || plan_soon(&to)
    };
    let wake = soon(to);
    own.upgrades.on_change(move |_| wake());
    let wake = soon(to);
    own.admin_freezes.on_change(move |_| wake());
    let wake = soon(to);
    own.customer_freezes.on_change(move |_| wake());
    let wake = soon(to);
    own.preferred_starts.on_change(move |_| wake());
    let wake = soon(to);
    own.namespaces.on_change(move |_| wake());
}

/// The cloud has news: events may be among them.
pub fn cloud_changed(stores: &Stores, queues: &Queues, machines: &[Arc<Machine>]) {
    plan_soon(queues);
    for machine in machines {
        let name = machine.metadata.name.as_deref().unwrap_or_default();
        for object in stores.maintenance.about(name) {
            if phase_of(&object).is_under_way() {
                queues.maintenances.add(ObjectKey::of(&*object));
            }
        }
    }
}

/// These machines of Cluster API, or these pools, changed.
pub fn of_cluster_api(stores: &Stores, queues: &Queues, machines: &[String], pools: &[String]) {
    plan_soon(queues);
    wake_those(stores, queues, |_, (object, work)| {
        machines.contains(&object.spec.machinelink)
            || work.pool.as_ref().is_some_and(|pool| pools.contains(pool))
    });
    // One that names a Machine which was not there.
    for machine in machines {
        for object in stores.maintenance.about(machine) {
            if !phase_of(&object).is_over() {
                queues.maintenances.add(ObjectKey::of(&*object));
            }
        }
    }
}

/// Plans the fleet anew, together with what else happens now.
pub fn plan_soon(queues: &Queues) {
    queues.plans.add_after(planning::key(), GATHER);
}

fn object_changed(queues: &Queues, change: &Change<MachineMaintenance>) {
    let (before, after) = (change.before.as_deref(), change.after.as_deref());
    let pair = before.zip(after);
    // A status is our own doing; the pass that wrote it said when to look again.
    let is_own_status = pair.is_some_and(|(before, after)| {
        before.spec == after.spec
            && before.metadata.uid == after.metadata.uid
            && before.metadata.annotations == after.metadata.annotations
            && before.metadata.finalizers == after.metadata.finalizers
            && before.metadata.deletion_timestamp == after.metadata.deletion_timestamp
    });
    if !is_own_status {
        queues.maintenances.add(change.key.clone());
    }
    let is_same_for_plan = pair.is_some_and(|(before, after)| {
        let says = |object: &MachineMaintenance| {
            let status = object.status.clone().unwrap_or_default();
            let is_begun = status.work.is_some();
            (status.phase, status.reasons, is_begun, status.next_attempt, status.event_move)
        };
        is_own_status && says(before) == says(after)
    });
    if !is_same_for_plan {
        plan_soon(queues);
    }
}

fn machine_changed(stores: &Stores, queues: &Queues, change: &Change<Machine>) {
    plan_soon(queues);
    let name = change.key.name.as_str();
    let owners: Vec<String> = [&change.before, &change.after]
        .into_iter()
        .flatten()
        .filter_map(|machine| owner_of(machine))
        .collect();
    wake_those(stores, queues, |_, (object, work)| {
        let is_of_pool = work.pool.as_ref().is_some_and(|pool| owners.contains(pool));
        let is_copy = work.replacement.as_ref().is_some_and(|copy| copy.name == name);
        object.spec.machinelink == name || is_of_pool || is_copy || work.control_plane
    });
    // One that names a Machine which was not there.
    if change.before.is_none() {
        for object in stores.maintenance.about(name) {
            queues.maintenances.add(ObjectKey::of(&*object));
        }
    }
}

fn set_changed(stores: &Stores, queues: &Queues, change: &Change<MachineSet>) {
    let says = |set: &MachineSet| {
        (
            set.metadata.annotations.clone(),
            set.metadata.deletion_timestamp.clone(),
            set.spec.clone(),
        )
    };
    let (before, after) = (change.before.as_deref(), change.after.as_deref());
    if before.map(says) == after.map(says) {
        return;
    }
    plan_soon(queues);
    let name = &change.key.name;
    wake_those(stores, queues, |_, (_, work)| work.pool.as_ref() == Some(name));
}

fn node_changed(stores: &Stores, queues: &Queues, change: &Change<Node>) {
    let pair = change.before.as_deref().zip(change.after.as_deref());
    if pair.is_some_and(|(before, after)| is_heartbeat(before, after)) {
        return;
    }
    plan_soon(queues);
    let machines = stores.machines.by_index(index::MACHINE_BY_NODE, &change.key.name);
    let nodes = [&change.before, &change.after];
    let is_control_plane = nodes.into_iter().flatten().any(|node| node::is_control_plane(node));
    wake_those(stores, queues, |_, (object, work)| {
        (is_control_plane && work.control_plane)
            || machines.iter().any(|machine| concerns(machine, object, work))
    });
}

/// A pod that leaves lets the drain go on; one of a DaemonSet that comes makes a new machine whole.
fn pod_changed(stores: &Stores, queues: &Queues, change: &Change<Pod>) {
    let pod = change.after.as_deref().or(change.before.as_deref());
    let Some(node) = pod.and_then(|pod| index::node_of_pod(pod).into_iter().next()) else { return };
    wake_those(stores, queues, |phase, (object, work)| {
        let of_node = || stores.machines.by_index(index::MACHINE_BY_NODE, &node);
        match phase {
            MaintenancePhase::Draining => work.node.as_ref() == Some(&node),
            MaintenancePhase::Surging => {
                of_node().iter().any(|machine| concerns(machine, object, work))
            }
            _ => false,
        }
    });
}

/// Whether a Machine is the one that is maintained, its copy, or of its pool.
fn concerns(machine: &Machine, object: &MachineMaintenance, work: &MaintenanceWork) -> bool {
    let name = machine.metadata.name.as_deref().unwrap_or_default();
    let is_copy = work.replacement.as_ref().is_some_and(|copy| copy.name == name);
    object.spec.machinelink == name
        || is_copy
        || (work.pool.is_some() && owner_of(machine) == work.pool)
}

/// Wakes those of the maintenances under way for which it holds.
fn wake_those(
    stores: &Stores,
    queues: &Queues,
    concerns: impl Fn(MaintenancePhase, (&MachineMaintenance, &MaintenanceWork)) -> bool,
) {
    for object in stores.maintenance.under_way() {
        let work = object.status.as_ref().and_then(|status| status.work.as_ref());
        if work.is_some_and(|work| concerns(phase_of(&object), (&object, work))) {
            queues.maintenances.add(ObjectKey::of(&*object));
        }
    }
}

fn phase_of(object: &MachineMaintenance) -> MaintenancePhase {
    object.status.as_ref().and_then(|status| status.phase).unwrap_or_default()
}

fn owner_of(machine: &Machine) -> Option<String> {
    let mut owners = machine.metadata.owner_references.iter().flatten();
    owners.find(|owner| owner.controller == Some(true)).map(|owner| owner.name.clone())
}

fn is_same_policy(
    before: &machinist_api::MaintenancePolicy,
    after: &machinist_api::MaintenancePolicy,
) -> bool {
    before.spec == after.spec
        && before.metadata.uid == after.metadata.uid
        && before.metadata.deletion_timestamp == after.metadata.deletion_timestamp
}
