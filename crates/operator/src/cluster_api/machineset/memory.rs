//! What one process remembers of its sets between passes. Losing it costs nothing but a look or a name: everything that
//! matters is in the cluster.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use jiff::Timestamp;
use machinist_core::machineset::Ceilings;

use crate::{
    cluster_api::versions::Versions, engine::store::ObjectKey, machineset::creations::Creations,
};

/// Remembered of all sets.
#[derive(Debug, Default)]
pub struct Memory {
    sets: Mutex<BTreeMap<ObjectKey, SetMemory>>,
    pub creations: Creations,
    pub versions: Versions,
}

#[derive(Clone, Debug, Default)]
pub struct SetMemory {
    /// Names of Machines whose creation had no clear answer: tried again before any other, so that a lost answer cannot
    /// make two.
    pub unresolved: Vec<String>,
    pub status_written_at: Option<Timestamp>,
    pub last_failure: Option<String>,
    /// For which uid and generation the templates were looked at.
    pub templates_seen: Option<(String, i64)>,
    /// Whether the providers' objects were searched for such that no Machine refers to.
    pub is_tidy: bool,
}

impl Memory {
    /// With other ceilings than the usual ones.
    pub fn new(ceilings: Ceilings) -> Self {
        Self { creations: Creations::new(ceilings), ..Self::default() }
    }

    pub fn of(&self, key: &ObjectKey) -> SetMemory {
        self.lock().get(key).cloned().unwrap_or_default()
    }

    pub fn change(&self, key: &ObjectKey, change: impl FnOnce(&mut SetMemory)) {
        change(self.lock().entry(key.clone()).or_default());
    }

    pub fn forget(&self, key: &ObjectKey) {
        self.lock().remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, SetMemory>> {
        self.sets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
