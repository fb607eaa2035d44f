//! Is an object still as it was decided on? (Rule 3)

use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use kube::Resource;
use machinist_core::cluster_api::Identity;

use crate::{
    engine::store::{ObjectKey, Store},
    write::WriteError,
};

/// The versions that one pass has written, by uid. Its next write of the same object goes by them: what is newer than the
/// decision only by our own hand was decided on as well.
#[derive(Debug, Default)]
pub struct Written {
    versions: Mutex<BTreeMap<String, String>>,
}

impl Written {
    /// Takes the answer to a write of this pass into the store.
    pub fn take<K>(&self, store: &Store<K>, written: K)
    where
        K: Resource<DynamicType = ()> + Clone + Debug,
    {
        let metadata = written.meta();
        if let Some((uid, version)) = metadata.uid.clone().zip(metadata.resource_version.clone()) {
            self.lock().insert(uid, version);
        }
        store.apply_written(written);
    }

    /// The version that a write goes by which was decided on this one.
    pub fn version(&self, decided: &Identity) -> String {
        let own = self.lock().get(&decided.uid).cloned();
        own.unwrap_or_else(|| decided.resource_version.clone())
    }

    /// The object as it was decided on, or as this pass has left it; `None` where it is gone. Where somebody else has
    /// written it since, what was decided is not done: the set or deployment looks again.
    pub fn known<K>(
        &self,
        store: &Store<K>,
        namespace: &str,
        decided: &Identity,
    ) -> Result<Option<Arc<K>>, WriteError>
    where
        K: Resource<DynamicType = ()> + Clone + Debug,
    {
        let key = ObjectKey::new(namespace, &decided.name);
        let known = store.get(&key).filter(|known| known.meta().uid.as_ref() == Some(&decided.uid));
        let Some(known) = known else { return Ok(None) };
        if known.meta().resource_version.clone().unwrap_or_default() != self.version(decided) {
            return Err(WriteError::Conflict { what: format!("{} {key}", K::kind(&())) });
        }
        Ok(Some(known))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.versions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
