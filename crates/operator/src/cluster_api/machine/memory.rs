//! What this process remembers of Machines. Losing it costs a look, or one early eviction.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use machinist_api::cluster_api::Machine;

use super::emptying::Emptying;
use crate::{drain, engine::store::ObjectKey};

#[derive(Default)]
pub struct Memory {
    /// Which evictions were refused.
    pub drains: drain::Memory,
    /// What is watched of Nodes that are being emptied.
    pub emptying: Emptying,
    /// The version that this controller itself wrote last.
    written: Mutex<BTreeMap<ObjectKey, String>>,
}

impl Memory {
    pub fn note_written(&self, key: &ObjectKey, machine: &Machine) {
        let version = machine.metadata.resource_version.clone().unwrap_or_default();
        self.lock().insert(key.clone(), version);
    }

    /// Whether the Machine is as this controller left it: then it has nothing to learn from it.
    pub fn is_own(&self, key: &ObjectKey, machine: &Machine) -> bool {
        let version = machine.metadata.resource_version.as_ref();
        version.is_some_and(|version| self.lock().get(key) == Some(version))
    }

    pub fn forget(&self, key: &ObjectKey) {
        self.lock().remove(key);
        self.drains.forget(key);
        self.emptying.forget(key);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, String>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
