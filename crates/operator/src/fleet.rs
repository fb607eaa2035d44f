//! What the metrics tell of the whole fleet, read from the stores at each scrape.

use std::sync::Arc;

use machinist_api::{Machine, MachineSet};

use crate::{
    context::{Context, Stores},
    metrics::{CloudViewRow, FleetSnapshot, MachineRow, MachineSetRow},
};

const API_VERSION: &str = "machine.openshift.io/v1beta1";

pub fn register(context: &Arc<Context>) {
    let stores = context.stores.clone();
    context.metrics.register_fleet(move || snapshot(&stores));
    // Weak: the metrics belong to the context.
    let weak = Arc::downgrade(context);
    context.metrics.register_cloud_views(move || {
        let views = weak.upgrade().map(|context| context.clouds.views()).unwrap_or_default();
        views
            .into_iter()
            .filter_map(|(key, age)| {
                Some(CloudViewRow {
                    provider: "aws".to_owned(),
                    region: key.region,
                    age_seconds: age?.as_secs_f64(),
                })
            })
            .collect()
    });
}

fn snapshot(stores: &Stores) -> FleetSnapshot {
    let machines = || stores.machines.list().iter().map(|one| machine_row(one)).collect();
    let sets = || stores.machine_sets.list().iter().map(|one| machine_set_row(one)).collect();
    FleetSnapshot {
        machines: stores.machines.is_synced().then(machines),
        machine_sets: stores.machine_sets.is_synced().then(sets),
    }
}

fn machine_row(machine: &Machine) -> MachineRow {
    let status = machine.status.clone().unwrap_or_default();
    MachineRow {
        namespace: machine.metadata.namespace.clone().unwrap_or_default(),
        name: machine.metadata.name.clone().unwrap_or_default(),
        spec_provider_id: machine.spec.provider_id.clone().unwrap_or_default(),
        node: status.node_ref.and_then(|node| node.name).unwrap_or_default(),
        api_version: API_VERSION.to_owned(),
        phase: status.phase.unwrap_or_default(),
        created: machine.metadata.creation_timestamp.as_ref().map(|time| time.0),
    }
}

fn machine_set_row(set: &MachineSet) -> MachineSetRow {
    let status = set.status.clone().unwrap_or_default();
    MachineSetRow {
        namespace: set.metadata.namespace.clone().unwrap_or_default(),
        name: set.metadata.name.clone().unwrap_or_default(),
        api_version: API_VERSION.to_owned(),
        created: set.metadata.creation_timestamp.as_ref().map(|time| time.0),
        replicas: status.replicas.unwrap_or(0),
        available_replicas: status.available_replicas.unwrap_or(0),
        ready_replicas: status.ready_replicas.unwrap_or(0),
    }
}
