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
}

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

    /// The machines under way, for those whose change concerns all of them.
    pub fn under_way(&self) -> Vec<ObjectKey> {
        self.lock().keys().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Attempts>> {
        self.drains.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
