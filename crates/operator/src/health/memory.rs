//! What one process remembers of its checks between passes. Losing it costs an event told twice, and
//! half a minute for a Node that is missing.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use jiff::Timestamp;
use kube::core::{ApiResource, GroupVersionKind};
use machinist_core::health;

use crate::engine::store::ObjectKey;

/// Remembered of all checks.
#[derive(Debug, Default)]
pub struct Memory {
    checks: Mutex<BTreeMap<ObjectKey, CheckMemory>>,
    /// How the kinds of other controllers are called in paths, by group, version and kind.
    resources: Mutex<BTreeMap<(String, String, String), ApiResource>>,
}

#[derive(Clone, Debug, Default)]
pub struct CheckMemory {
    pub decided: health::Memory,
    pub status_written_at: Option<Timestamp>,
    /// Why the last attempt to make a request failed, if it did.
    pub request_failure: Option<String>,
}

impl Memory {
    pub fn of(&self, key: &ObjectKey) -> CheckMemory {
        self.lock().get(key).cloned().unwrap_or_default()
    }

    pub fn change(&self, key: &ObjectKey, change: impl FnOnce(&mut CheckMemory)) {
        change(self.lock().entry(key.clone()).or_default());
    }

    pub fn forget(&self, key: &ObjectKey) {
        self.lock().remove(key);
    }

    pub fn resource(&self, kind: &GroupVersionKind) -> Option<ApiResource> {
        self.lock_resources().get(&name_of(kind)).cloned()
    }

    pub fn learn_resource(&self, kind: &GroupVersionKind, resource: ApiResource) {
        self.lock_resources().insert(name_of(kind), resource);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, CheckMemory>> {
        self.checks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_resources(&self) -> MutexGuard<'_, BTreeMap<(String, String, String), ApiResource>> {
        self.resources.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn name_of(kind: &GroupVersionKind) -> (String, String, String) {
    (kind.group.clone(), kind.version.clone(), kind.kind.clone())
}
