//! Which MachineHealthChecks a change concerns.

use machinist_api::{Machine, MachineSet};
use machinist_core::health::Policy;

use crate::{
    context::Stores,
    engine::{
        queue::Queue,
        store::{Change, ObjectKey},
    },
};

/// Wakes the checks that watch a Machine. One that cannot be read waits for its own change.
pub fn wake_checks_of(stores: &Stores, checks: &Queue<ObjectKey>, machine: &Machine) {
    let namespace = machine.metadata.namespace.as_deref().unwrap_or_default();
    let labels = machine.metadata.labels.as_ref();
    for check in stores.health_checks.list_in(namespace) {
        if Policy::read(&check).is_ok_and(|policy| policy.selects(labels)) {
            checks.add(ObjectKey::of(&*check));
        }
    }
}

/// A pool's size and annotations say how many of its machines may be out of work at once.
pub fn set_changed(stores: &Stores, checks: &Queue<ObjectKey>, change: &Change<MachineSet>) {
    let says = |set: &MachineSet| {
        (
            set.metadata.annotations.clone(),
            set.metadata.deletion_timestamp.is_some(),
            set.spec.replicas,
        )
    };
    let (before, after) = (change.before.as_deref().map(says), change.after.as_deref().map(says));
    if before == after {
        return;
    }
    for check in stores.health_checks.list_in(&change.key.namespace) {
        checks.add(ObjectKey::of(&*check));
    }
}
