//! What is kept of the Nodes of a workload cluster?

use k8s_openapi::api::core::v1::Node;
use machinist_core::node;

use super::NODE_BY_PROVIDER_ID;
use crate::engine::store::Store;

pub(super) fn store() -> Store<Node> {
    Store::builder()
        .prune(prune)
        .index(NODE_BY_PROVIDER_ID, |one| {
            node::provider_id(one).map(str::to_owned).into_iter().collect()
        })
        .build()
}

/// Volumes stay: a deletion waits for them. So do the words of a condition that is not well; of the others nobody reads them.
fn prune(one: &mut Node) {
    let Some(status) = &mut one.status else { return };
    status.images = None;
    status.capacity = None;
    status.allocatable = None;
    status.volumes_in_use = None;
    status.daemon_endpoints = None;
    status.runtime_handlers = None;
    for condition in status.conditions.iter_mut().flatten() {
        condition.last_heartbeat_time = None;
        let is_well = match condition.type_.as_str() {
            "Ready" => condition.status == "True",
            _ => condition.status == "False",
        };
        if is_well {
            condition.message = None;
        }
    }
    if let Some(annotations) = &mut one.metadata.annotations {
        annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
    }
}
