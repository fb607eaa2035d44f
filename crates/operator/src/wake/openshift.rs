//! Who is woken when OpenShift says something else of the whole cluster.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use super::{Queues, wake_all_machines};
use crate::{context::Stores, engine::store::ObjectKey};

/// Connects the stores to the queues.
pub fn connect(stores: &Arc<Stores>, queues: &Queues) {
    let (on, to) = (Arc::downgrade(stores), queues.clone());
    // A feature may change whose the machines, the pools and the checks are.
    stores.openshift.feature_gates.on_change(move |_| {
        let Some(stores) = on.upgrade() else { return };
        wake_all_machines(&stores, &to.machines);
        for set in stores.machine_sets.list() {
            to.machine_sets.add(ObjectKey::of(&*set));
            to.capacities.add(ObjectKey::of(&*set));
        }
        for check in stores.health_checks.list() {
            to.health_checks.add(ObjectKey::of(&*check));
        }
    });
    let (on, to) = (Arc::downgrade(stores), queues.requests.clone());
    let stood_by = Arc::new(AtomicBool::new(false));
    let approver_changed = move || {
        let Some(stores) = on.upgrade() else { return };
        let standby = stores.openshift.approval_standby();
        if stood_by.swap(standby.is_some(), Ordering::Relaxed) == standby.is_some() {
            return;
        }
        match standby {
            Some(wait) => tracing::info!(why = wait.message, "certificates are not approved here"),
            None => tracing::info!("certificates are approved here"),
        }
        for request in stores.requests.list() {
            to.add(ObjectKey::of(&*request));
        }
    };
    let also = approver_changed.clone();
    stores.openshift.approvers.on_change(move |_| approver_changed());
    // Only OpenShift has another approver.
    stores.infrastructures.on_change(move |_| also());
}
