//! Which machines are being drained by this process, and which evictions were refused. Losing it
//! costs one early eviction.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use machinist_core::drain::Attempts;

use crate::engine::store::ObjectKey;

#[derive(Debug, Default)]
pub struct Memory {
    drains: Mutex<BTreeMap<ObjectKey, Attempts>>,
    control_plane: tokio::sync::Mutex<()>,
}

/// The right to cordon a control-plane Node, held by one drain at a time.
pub type Turn<'a> = tokio::sync::MutexGuard<'a, ()>;

impl Memory {
    pub fn attempts(&self, key: &ObjectKey) -> Attempts {
        self.lock().entry(key.clone()).or_default().clone()
    }

    pub fn change(&self, key: &ObjectKey, change: impl FnOnce(&mut Attempts)) {
        change(self.lock().entry(key.clone()).or_default());
    }

    pub fn forget(&self, key: &ObjectKey) {
        self.lock().remove(key);
    }

    pub fn contains(&self, key: &ObjectKey) -> bool {
        self.lock().contains_key(key)
    }

    /// Waits for the turn of a control-plane Node. Between the look at the other ones and the cordon
    /// lies a request: without turns, all that are deleted together would find nobody cordoned.
    pub async fn control_plane_turn(&self) -> Turn<'_> {
        self.control_plane.lock().await
    }

    /// The machines under way, for those whose change concerns all of them.
    pub fn under_way(&self) -> Vec<ObjectKey> {
        self.lock().keys().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Attempts>> {
        self.drains.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
