//! Is this news, old news, or news about something that is gone?
//!
//! The rules by which the store takes in what it hears. resourceVersions are compared as numbers: Kubernetes
//! guarantees that since 1.35, and etcd-backed servers always did it. One that is no number is taken
//! as news.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;

use super::{Change, Index, IndexFunction, InvalidObject, ObjectKey};

/// How many deleted uids are remembered, so that an old list or a late answer does not bring them back. Far more
/// than are deleted within the lag of any watch; at about 100 bytes each it is nothing.
const TOMBSTONES: usize = 4096;

/// Where an object was heard of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Watch,
    Write,
}

pub(super) struct Contents<K> {
    pub(super) objects: BTreeMap<ObjectKey, Entry<K>>,
    pub(super) invalid: BTreeMap<ObjectKey, Entry<InvalidObject>>,
    /// Objects whose existence must be checked.
    pub(super) doubtful: BTreeSet<ObjectKey>,
    indexes: Vec<(&'static str, IndexFunction<K>, Index)>,
    /// By uid, the version up to which everything heard about it is old.
    tombstones: BTreeMap<String, u64>,
    tombstone_order: VecDeque<String>,
    /// The newest version that the watch has passed.
    passed: u64,
}

pub(super) struct Entry<T> {
    pub(super) object: Arc<T>,
    pub(super) uid: Option<String>,
    pub(super) version: Option<u64>,
}

/// A question to the API server: does this object still exist?
#[derive(Clone, Debug)]
pub(in crate::engine) struct Doubt {
    pub(in crate::engine) key: ObjectKey,
    version: Option<u64>,
}

impl<K: Resource> Contents<K> {
    pub(super) fn new(indexes: Vec<(&'static str, IndexFunction<K>)>) -> Self {
        Self {
            objects: BTreeMap::new(),
            invalid: BTreeMap::new(),
            doubtful: BTreeSet::new(),
            indexes: indexes
                .into_iter()
                .map(|(name, values)| (name, values, Index::new()))
                .collect(),
            tombstones: BTreeMap::new(),
            tombstone_order: VecDeque::new(),
            passed: 0,
        }
    }

    pub(super) fn get(&self, key: &ObjectKey) -> Option<Arc<K>> {
        self.objects.get(key).map(|entry| Arc::clone(&entry.object))
    }

    pub(super) fn list(&self) -> Vec<Arc<K>> {
        self.objects.values().map(|entry| Arc::clone(&entry.object)).collect()
    }

    pub(super) fn list_in(&self, namespace: &str) -> Vec<Arc<K>> {
        self.objects
            .range(ObjectKey::new(namespace, "")..)
            .take_while(|(key, _)| key.namespace == namespace)
            .map(|(_, entry)| Arc::clone(&entry.object))
            .collect()
    }

    pub(super) fn by_index(&self, index: &str, value: &str) -> Vec<Arc<K>> {
        let entries = self.indexes.iter().find(|(name, ..)| *name == index);
        entries
            .and_then(|(.., entries)| entries.get(value))
            .into_iter()
            .flatten()
            .filter_map(|key| self.get(key))
            .collect()
    }

    /// Takes in a readable object if it is news.
    pub(super) fn put(&mut self, object: Arc<K>, source: Source) -> Option<Change<K>> {
        let key = ObjectKey::of(&*object);
        let metadata = object.meta();
        let version = version_of(metadata);
        if source == Source::Watch {
            self.passed = self.passed.max(version.unwrap_or_default());
            self.doubtful.remove(&key);
        }
        if !self.is_news(&key, metadata, version) {
            return None;
        }
        if source == Source::Write
            && !self.objects.contains_key(&key)
            && version.is_some_and(|version| version <= self.passed)
        {
            // The watch has passed this write and yet we do not have the object. Its deletion would have left
            // a tombstone; so either both happened between two lists, or an event was lost.
            // Forgetting our own creation would repeat it; the API server is asked instead.
            self.doubtful.insert(key.clone());
        }
        let unreadable = self.remove_unreadable(&key);
        let uid = metadata.uid.clone();
        let entry = Entry { object: Arc::clone(&object), uid, version };
        let before = self.objects.insert(key.clone(), entry).map(|entry| entry.object);
        self.reindex(&key, before.as_deref(), Some(&object));
        Some(Change { key, before, after: Some(object), unreadable })
    }

    /// Takes in an object that could not be read. Returns whether it is news, and what that changed.
    pub(super) fn put_invalid(&mut self, object: InvalidObject) -> (bool, Option<Change<K>>) {
        let key = ObjectKey::of_metadata(&object.metadata);
        let version = version_of(&object.metadata);
        self.passed = self.passed.max(version.unwrap_or_default());
        self.doubtful.remove(&key);
        if !self.is_news(&key, &object.metadata, version) {
            return (false, None);
        }
        let uid = object.metadata.uid.clone();
        let object = Arc::new(object);
        let change = self.remove_readable(&key).or_else(|| self.forget_unreadable(&key));
        self.invalid.insert(key, Entry { object: Arc::clone(&object), uid, version });
        let told = change.map(|mut change| {
            change.unreadable.push(object);
            change
        });
        (true, told)
    }

    /// Takes in a deletion that the watch reported.
    pub(super) fn delete(&mut self, metadata: &ObjectMeta) -> Option<Change<K>> {
        let key = ObjectKey::of_metadata(metadata);
        let version = version_of(metadata);
        self.passed = self.passed.max(version.unwrap_or_default());
        if let Some(uid) = &metadata.uid {
            // An object that only left the selection of the watch may come back, with a later version.
            self.bury(uid, version.unwrap_or_default());
        }
        self.remove_uid(&key, metadata.uid.as_deref())
    }

    /// Takes in that a delete of ours removed the object.
    pub(super) fn forget(&mut self, key: &ObjectKey, uid: &str) -> Option<Change<K>> {
        self.bury(uid, u64::MAX);
        self.remove_uid(key, Some(uid))
    }

    /// Removes what a complete list did not contain.
    pub(super) fn retain_listed(
        &mut self,
        listed: &BTreeSet<ObjectKey>,
        newest_listed: Option<u64>,
    ) -> Vec<Change<K>> {
        let newest = newest_listed.unwrap_or_default();
        self.passed = self.passed.max(newest);
        let absent = |key: &&ObjectKey| !listed.contains(*key);
        let readable: Vec<ObjectKey> = self.objects.keys().filter(absent).cloned().collect();
        let unreadable: Vec<ObjectKey> = self.invalid.keys().filter(absent).cloned().collect();
        let mut changes: Vec<_> =
            unreadable.iter().filter_map(|key| self.forget_unreadable(key)).collect();
        for key in readable {
            let Some(entry) = self.objects.get(&key) else { continue };
            // Newer than everything in the list: the list may be the older one (a stale API server, or a write of
            // ours while it was under way).
            if entry.version.is_some_and(|version| version > newest) {
                self.doubtful.insert(key);
                continue;
            }
            let (uid, version) = (entry.uid.clone(), entry.version.unwrap_or_default());
            if let Some(uid) = uid {
                self.bury(&uid, version.max(newest));
            }
            changes.extend(self.remove_readable(&key));
        }
        changes
    }

    pub(super) fn next_doubt(&self) -> Option<Doubt> {
        let key = self.doubtful.first()?.clone();
        let version = self.objects.get(&key).and_then(|entry| entry.version);
        Some(Doubt { key, version })
    }

    /// Removes an object that turned out not to exist, if nothing newer was heard of it since the doubt.
    pub(super) fn remove_doubtful(&mut self, doubt: &Doubt) -> Option<Change<K>> {
        if !self.doubtful.remove(&doubt.key) {
            return None;
        }
        let entry = self.objects.get(&doubt.key)?;
        if entry.version != doubt.version {
            return None;
        }
        if let (Some(uid), Some(version)) = (entry.uid.clone(), entry.version) {
            self.bury(&uid, version);
        }
        self.remove_readable(&doubt.key)
    }

    #[cfg(test)]
    pub(super) fn tombstone_count(&self) -> usize {
        self.tombstones.len().max(self.tombstone_order.len())
    }

    /// Returns whether this version of an object is later than what is known.
    fn is_news(&self, key: &ObjectKey, metadata: &ObjectMeta, version: Option<u64>) -> bool {
        let Some(version) = version else { return true };
        let buried = metadata.uid.as_ref().and_then(|uid| self.tombstones.get(uid));
        if buried.is_some_and(|buried| version <= *buried) {
            return false;
        }
        let known = self.objects.get(key).map_or_else(
            || self.invalid.get(key).and_then(|entry| entry.version),
            |entry| entry.version,
        );
        known.is_none_or(|known| version > known)
    }

    fn bury(&mut self, uid: &str, version: u64) {
        if self.tombstones.insert(uid.to_owned(), version).is_none() {
            self.tombstone_order.push_back(uid.to_owned());
        }
        while self.tombstone_order.len() > TOMBSTONES {
            if let Some(oldest) = self.tombstone_order.pop_front() {
                self.tombstones.remove(&oldest);
            }
        }
    }

    /// Removes the object if it is the one with this uid: another one of the same name stays.
    fn remove_uid(&mut self, key: &ObjectKey, uid: Option<&str>) -> Option<Change<K>> {
        let same =
            |known: &Option<String>| uid.is_none() || known.is_none() || known.as_deref() == uid;
        if self.invalid.get(key).is_some_and(|entry| same(&entry.uid)) {
            // An object is either readable or not.
            return self.forget_unreadable(key);
        }
        if self.objects.get(key).is_some_and(|entry| same(&entry.uid)) {
            return self.remove_readable(key);
        }
        None
    }

    fn remove_readable(&mut self, key: &ObjectKey) -> Option<Change<K>> {
        self.doubtful.remove(key);
        let before = self.objects.remove(key)?.object;
        self.reindex(key, Some(&before), None);
        Some(Change { key: key.clone(), before: Some(before), after: None, unreadable: Vec::new() })
    }

    fn forget_unreadable(&mut self, key: &ObjectKey) -> Option<Change<K>> {
        let unreadable = self.remove_unreadable(key);
        let was_known = !unreadable.is_empty();
        was_known.then(|| Change { key: key.clone(), before: None, after: None, unreadable })
    }

    fn remove_unreadable(&mut self, key: &ObjectKey) -> Vec<Arc<InvalidObject>> {
        self.invalid.remove(key).map(|entry| entry.object).into_iter().collect()
    }

    fn reindex(&mut self, key: &ObjectKey, before: Option<&K>, after: Option<&K>) {
        for (_, values, index) in &mut self.indexes {
            for value in before.map(&*values).unwrap_or_default() {
                if let Some(keys) = index.get_mut(&value) {
                    keys.remove(key);
                    if keys.is_empty() {
                        index.remove(&value);
                    }
                }
            }
            for value in after.map(&*values).unwrap_or_default() {
                index.entry(value).or_default().insert(key.clone());
            }
        }
    }
}

/// Returns the resourceVersion as the number it is.
pub(in crate::engine) fn version_of(metadata: &ObjectMeta) -> Option<u64> {
    metadata.resource_version.as_deref().and_then(|version| version.parse().ok())
}
