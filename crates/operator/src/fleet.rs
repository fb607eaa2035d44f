//! What the metrics tell of the whole fleet, read from the stores at each scrape.

use std::sync::Arc;

use machinist_api::{Machine, MachineSet};

use crate::{
    cloud::{Clouds, access::ViewHealth},
    context::{Context, Stores},
    metrics::{
        CloudViewRow, CloudsSnapshot, FleetSnapshot, MachineRow, MachineSetRow, PermissionRow,
    },
};

const API_VERSION: &str = "machine.openshift.io/v1beta1";

pub fn register(context: &Arc<Context>) {
    // Weak: the metrics belong to the context.
    let weak = Arc::downgrade(&context.stores);
    context
        .metrics
        .register_fleet(move || weak.upgrade().map(|stores| snapshot(&stores)).unwrap_or_default());
    let weak = Arc::downgrade(context);
    context.metrics.register_clouds(move || {
        weak.upgrade().map(|context| clouds(&context.clouds)).unwrap_or_default()
    });
}

fn clouds(clouds: &Clouds) -> CloudsSnapshot {
    let view = |health: ViewHealth| CloudViewRow {
        provider: health.provider.to_owned(),
        region: health.key.connection.region,
        age_seconds: health.age.as_secs_f64(),
        is_failing: health.failure.is_some(),
    };
    let permission = |(provider, permission): (&str, String)| PermissionRow {
        provider: provider.to_owned(),
        permission,
    };
    CloudsSnapshot {
        views: clouds.health().into_iter().map(view).collect(),
        missing_permissions: clouds
            .missing_permissions()
            .list()
            .into_iter()
            .map(permission)
            .collect(),
    }
}

fn snapshot(stores: &Stores) -> FleetSnapshot {
    FleetSnapshot {
        machines: stores.machines.is_synced().then(|| machine_rows(stores)),
        machine_sets: stores.machine_sets.is_synced().then(|| machine_set_rows(stores)),
    }
}

pub(crate) fn machine_rows(stores: &Stores) -> Vec<MachineRow> {
    stores.machines.list().iter().map(|one| machine_row(one)).collect()
}

pub(crate) fn machine_set_rows(stores: &Stores) -> Vec<MachineSetRow> {
    stores.machine_sets.list().iter().map(|one| machine_set_row(one)).collect()
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
