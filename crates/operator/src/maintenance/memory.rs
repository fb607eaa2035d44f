//! What one process knows of maintenance between passes: the last plan, refused evictions, what was
//! listed a moment ago. Losing it costs a plan.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use k8s_openapi::api::{apps::v1::DaemonSet, core::v1::Pod, policy::v1::PodDisruptionBudget};
use machinist_api::{MachineMaintenance, MaintenanceReason};
use machinist_core::maintenance::{Note, Plan, PlanEntry};

use super::{closer_look::EtcdSight, recent::Recent};
use crate::{drain, engine::store::ObjectKey, machineset::capacity::catalogs::Catalogs};

#[derive(Default)]
pub struct Memory {
    planned: Mutex<Option<Arc<Planned>>>,
    told: Mutex<Vec<Note>>,
    /// The reboots that this process asked for, by the instant at which each was stored: the record of
    /// the answer may have been lost.
    rebooted: Mutex<BTreeMap<ObjectKey, String>>,
    turn: tokio::sync::Mutex<()>,
    pub evictions: drain::Memory,
    pub catalogs: Catalogs,
    /// By the workload cluster; `None` for this one.
    pub daemon_sets: Recent<Vec<DaemonSet>, Option<ObjectKey>>,
    /// The pods on Nodes of workload clusters, and the budgets there.
    pub pods_elsewhere: Recent<Vec<Arc<Pod>>, (ObjectKey, String)>,
    pub budgets_elsewhere: Recent<Vec<Arc<PodDisruptionBudget>>, ObjectKey>,
    /// Why workload clusters did not tell.
    pub silent: Recent<String, ObjectKey>,
    pub etcd: Recent<EtcdSight>,
}

/// The plan of the whole fleet, and what it was made for.
#[derive(Default)]
pub struct Planned {
    pub plan: Plan,
    /// By the name of the Machine.
    pub reasons: BTreeMap<String, Vec<MaintenanceReason>>,
}

impl Planned {
    /// Whether something is planned for the Machine that was not, or for other reasons.
    fn differs(&self, other: &Self, machine: &str) -> bool {
        let says = |planned: &Self| planned.plan.entry(machine).map(without_now);
        says(self) != says(other) || self.reasons.get(machine) != other.reasons.get(machine)
    }
}

/// What is due begins now, whenever now is: that alone is nothing new.
fn without_now(entry: &PlanEntry) -> PlanEntry {
    let mut entry = entry.clone();
    if entry.is_due() {
        entry.start = None;
        entry.end = None;
    }
    entry
}

/// The right to begin a maintenance, held by one pass at a time: between the plan that allows it and
/// the record that it is begun lie requests.
pub type Turn<'a> = tokio::sync::MutexGuard<'a, ()>;

impl Memory {
    pub async fn turn(&self) -> Turn<'_> {
        self.turn.lock().await
    }

    pub fn planned(&self) -> Option<Arc<Planned>> {
        lock(&self.planned).clone()
    }

    pub fn entry(&self, machine: &str) -> Option<PlanEntry> {
        self.planned()?.plan.entry(machine).cloned()
    }

    /// Keeps a plan; returns which of the objects it says something new for.
    pub fn keep<'a>(
        &self,
        planned: Planned,
        objects: impl IntoIterator<Item = &'a MachineMaintenance>,
    ) -> Vec<ObjectKey> {
        let planned = Arc::new(planned);
        let before = lock(&self.planned).replace(Arc::clone(&planned));
        let before = before.unwrap_or_default();
        objects
            .into_iter()
            .filter(|object| planned.differs(&before, &object.spec.machinelink))
            .map(ObjectKey::of)
            .collect()
    }

    pub fn drop_plan(&self) {
        lock(&self.planned).take();
    }

    /// Those of the notes that were not told yet; the others are forgotten.
    pub fn news<'a>(&self, notes: &'a [Note]) -> Vec<&'a Note> {
        let before = std::mem::replace(&mut *lock(&self.told), notes.to_vec());
        notes.iter().filter(|note| !before.contains(note)).collect()
    }

    /// Whether the reboot that was stored then may be asked for: no more than once by this process.
    pub fn may_reboot(&self, key: &ObjectKey, stored_at: &str) -> bool {
        let before = lock(&self.rebooted).insert(key.clone(), stored_at.to_owned());
        before.as_deref() != Some(stored_at)
    }

    pub fn forget(&self, key: &ObjectKey) {
        self.evictions.forget(key);
        lock(&self.rebooted).remove(key);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
