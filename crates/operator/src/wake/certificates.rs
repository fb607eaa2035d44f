//! Which pending signing requests a change concerns: those for a Node that the changed object may
//! speak for, or against.

use std::collections::BTreeSet;

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use machinist_api::Machine;
use machinist_core::approval::{Binding, is_void};

use crate::{
    context::Stores,
    engine::{
        queue::Queue,
        store::{Change, ObjectKey},
    },
    index,
};

pub fn machine_changed(stores: &Stores, requests: &Queue<ObjectKey>, change: &Change<Machine>) {
    if let (Some(before), Some(after)) = (&change.before, &change.after)
        && says_the_same(before, after)
    {
        return;
    }
    let mut nodes = BTreeSet::new();
    for machine in [&change.before, &change.after].into_iter().flatten() {
        nodes.extend(index::internal_dns_of_machine(machine));
        nodes.extend(index::node_of_machine(machine));
    }
    for node in &nodes {
        wake_requests_for(stores, requests, node);
    }
}

/// A machine whose request came to nothing may have asked again already.
pub fn request_ended(
    stores: &Stores,
    requests: &Queue<ObjectKey>,
    change: &Change<CertificateSigningRequest>,
) {
    let (Some(before), Some(after)) = (&change.before, &change.after) else { return };
    if !is_void(after) || is_void(before) {
        return;
    }
    let Some(uid) = after.metadata.uid.as_deref() else { return };
    for machine in stores.machines.list() {
        if Binding::of(&machine).is_some_and(|bound| bound.request == uid) {
            for node in index::internal_dns_of_machine(&machine) {
                wake_requests_for(stores, requests, &node);
            }
        }
    }
}

/// Wakes the pending requests that are for a Node of this name.
pub fn wake_requests_for(stores: &Stores, requests: &Queue<ObjectKey>, node: &str) {
    for request in stores.requests.by_index(index::REQUEST_BY_NODE, node) {
        requests.add(ObjectKey::of(&*request));
    }
}

fn says_the_same(before: &Machine, after: &Machine) -> bool {
    let status = |machine: &Machine| {
        machine.status.as_ref().map(|status| {
            (
                status.addresses.clone(),
                status.node_ref.clone(),
                status.phase.clone(),
                status.conditions.clone(),
                status.provider_status.clone(),
            )
        })
    };
    before.metadata.deletion_timestamp == after.metadata.deletion_timestamp
        && before.metadata.annotations == after.metadata.annotations
        && status(before) == status(after)
}
