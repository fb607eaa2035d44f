//! What does the cluster look like, as far as we know?
//!
//! An ordered store of one kind of object, fed by a watch and by the answers to our own writes. It never goes back
//! in time for an object, and it knows at least what this process wrote (invariant S30): a decision
//! taken right after a write sees that write, however late the watch is.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{
        Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicBool, Ordering},
    },
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use tokio::{sync::Notify, time::Instant};

use self::contents::{Contents, Source};
pub(super) use self::contents::{Doubt, version_of};
use super::latest;

mod contents;

/// Namespace and name of an object. The namespace of a cluster-wide object is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// The namespace, empty for cluster-wide kinds.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl ObjectKey {
    /// Makes the key of a namespaced object.
    #[must_use]
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// Makes the key of a cluster-wide object.
    #[must_use]
    pub fn cluster_wide(name: impl Into<String>) -> Self {
        Self::new("", name)
    }

    /// Returns the key of an object.
    #[must_use]
    pub fn of<K: Resource>(object: &K) -> Self {
        Self::of_metadata(object.meta())
    }

    /// Returns the key of the object with this metadata.
    #[must_use]
    pub fn of_metadata(metadata: &ObjectMeta) -> Self {
        Self {
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
        }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            formatter.write_str(&self.name)
        } else {
            write!(formatter, "{}/{}", self.namespace, self.name)
        }
    }
}

/// What a change did to one object.
#[derive(Clone, Debug)]
pub struct Change<K> {
    /// Which object.
    pub key: ObjectKey,
    /// What was known before; `None` for a new object.
    pub before: Option<Arc<K>>,
    /// What is known now; `None` when it is gone.
    pub after: Option<Arc<K>>,
    /// The versions before and after that could not be read. Whoever counts objects counts them.
    pub unreadable: Vec<Arc<InvalidObject>>,
}

/// An object that exists but could not be read.
#[derive(Clone, Debug)]
pub struct InvalidObject {
    /// Its metadata, which could be read.
    pub metadata: ObjectMeta,
    /// What is wrong with the rest.
    pub error: String,
}

/// Ordered store of one kind. Clones share the same contents.
pub struct Store<K> {
    shared: Arc<Shared<K>>,
}

/// Declares a store before it is filled.
pub struct StoreBuilder<K> {
    prune: Box<dyn Fn(&mut K) + Send + Sync>,
    indexes: Vec<(&'static str, IndexFunction<K>)>,
}

type IndexFunction<K> = Box<dyn Fn(&K) -> Vec<String> + Send + Sync>;
type Listener<K> = Arc<dyn Fn(&Change<K>) + Send + Sync>;

struct Shared<K> {
    prune: Box<dyn Fn(&mut K) + Send + Sync>,
    contents: RwLock<Contents<K>>,
    listeners: RwLock<Vec<Listener<K>>>,
    synced: latest::Sender<bool>,
    /// Whether the cluster does not have the kind, as far as its watch knows.
    absent: AtomicBool,
    /// Until when the watch counts as interrupted, because it failed.
    interrupted_until: Mutex<Option<Instant>>,
    /// Wakes the watch when an object's existence must be checked.
    doubts: Notify,
}

impl<K> Clone for Store<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<K: Resource> fmt::Debug for Store<K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Never the contents: they may hold what must not be logged.
        let objects = self.read().objects.len();
        formatter.debug_struct("Store").field("objects", &objects).finish_non_exhaustive()
    }
}

impl<K: Resource> StoreBuilder<K> {
    /// Drops what the operator does not need from each object before it is stored. Managed fields are
    /// always dropped.
    #[must_use]
    pub fn prune(mut self, prune: impl Fn(&mut K) + Send + Sync + 'static) -> Self {
        self.prune = Box::new(prune);
        self
    }

    /// Adds an index: the values under which an object is found by [`Store::by_index`].
    #[must_use]
    pub fn index(
        mut self,
        name: &'static str,
        values: impl Fn(&K) -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        self.indexes.push((name, Box::new(values)));
        self
    }

    /// Makes the store, empty and not yet synced.
    #[must_use]
    pub fn build(self) -> Store<K> {
        Store {
            shared: Arc::new(Shared {
                prune: self.prune,
                contents: RwLock::new(Contents::new(self.indexes)),
                listeners: RwLock::default(),
                synced: latest::Sender::new(false),
                absent: AtomicBool::new(false),
                interrupted_until: Mutex::default(),
                doubts: Notify::new(),
            }),
        }
    }
}

impl<K: Resource> Store<K> {
    /// Declares a store.
    #[must_use]
    pub fn builder() -> StoreBuilder<K> {
        StoreBuilder { prune: Box::new(|_| ()), indexes: Vec::new() }
    }

    /// Calls `listener` after each change, whether it came from the watch or from our own write. It must be quick
    /// and may read the store; typically it adds keys to queues.
    pub fn on_change(&self, listener: impl Fn(&Change<K>) + Send + Sync + 'static) {
        let mut listeners = self.shared.listeners.write().unwrap_or_else(PoisonError::into_inner);
        listeners.push(Arc::new(listener));
    }

    /// Returns one object.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<K>> {
        self.read().get(key)
    }

    /// Returns all objects, ordered by key.
    #[must_use]
    pub fn list(&self) -> Vec<Arc<K>> {
        self.read().list()
    }

    /// Returns the objects of a namespace, ordered by name.
    #[must_use]
    pub fn list_in(&self, namespace: &str) -> Vec<Arc<K>> {
        self.read().list_in(namespace)
    }

    /// Returns the objects with this value in an index, ordered by key; none for an index that was not declared.
    #[must_use]
    pub fn by_index(&self, index: &str, value: &str) -> Vec<Arc<K>> {
        self.read().by_index(index, value)
    }

    /// Returns the objects that exist but could not be read, ordered by key. They are in no other answer of the
    /// store, but whoever counts objects must count them.
    #[must_use]
    pub fn invalid(&self) -> Vec<Arc<InvalidObject>> {
        self.read().invalid.values().map(|entry| Arc::clone(&entry.object)).collect()
    }

    /// Returns how many readable objects there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.read().objects.len()
    }

    /// Returns whether there is no readable object.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether the first list is complete. Before that, an absent object may exist.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        self.shared.synced.get()
    }

    /// Returns whether the cluster does not have the kind, as far as its watch knows.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        self.shared.absent.load(Ordering::Relaxed)
    }

    /// Notes that the cluster does not have the kind.
    pub(crate) fn mark_absent(&self) {
        self.shared.absent.store(true, Ordering::Relaxed);
        self.mark_synced();
    }

    /// Waits until the first list is complete.
    pub async fn synced(&self) {
        // The sender lives in the store itself, so waiting cannot fail.
        let mut synced = self.shared.synced.subscribe();
        while !synced.get() && synced.changed().await.is_ok() {}
    }

    /// Returns whether the store is believed to show the present: the first list is complete, and the watch did
    /// not fail a moment ago.
    #[must_use]
    pub fn is_current(&self, now: Instant) -> bool {
        let until = *self.shared.interrupted_until.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_synced() && until.is_none_or(|until| until <= now)
    }

    /// Notes that the watch failed. It counts as interrupted until then, or until something is heard of it.
    pub(super) fn note_interruption(&self, until: Option<Instant>) {
        *self.shared.interrupted_until.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }

    /// Takes in the object that the API server returned for one of our own writes, if it is news.
    ///
    /// A write that removed the last finalizer of a deleted object removes the object.
    pub fn apply_written(&self, object: K) {
        let metadata = object.meta();
        let gone = metadata.deletion_timestamp.is_some()
            && metadata.deletion_grace_period_seconds == Some(0)
            && metadata.finalizers.as_ref().is_none_or(Vec::is_empty);
        if gone {
            let (key, uid) = (ObjectKey::of(&object), metadata.uid.clone().unwrap_or_default());
            return self.forget_written(&key, &uid);
        }
        self.put(object, Source::Write);
    }

    /// Takes in the answer to a delete of ours, as `Api::delete(..).await?.left()` gives it: the object as it is
    /// while finalizers or a grace period hold it, or `None` when it is gone.
    pub fn apply_deleted(&self, key: &ObjectKey, uid: &str, remaining: Option<K>) {
        match remaining {
            Some(object) => self.apply_written(object),
            None => self.forget_written(key, uid),
        }
    }

    /// Notes that a delete of ours removed the object at once. Late events about that uid are ignored.
    pub fn forget_written(&self, key: &ObjectKey, uid: &str) {
        let change = self.write().forget(key, uid);
        self.announce(change);
    }

    pub(super) fn apply_watched(&self, object: K) {
        self.put(object, Source::Watch);
    }

    pub(crate) fn apply_invalid(&self, metadata: ObjectMeta, error: String) -> bool {
        let mut contents = self.write();
        let (news, change) = contents.put_invalid(InvalidObject { metadata, error });
        drop(contents);
        self.announce(change);
        news
    }

    pub(super) fn apply_watched_deletion(&self, metadata: &ObjectMeta) {
        let change = self.write().delete(metadata);
        self.announce(change);
    }

    /// Ends a list: whatever it did not contain is gone, except where the list may be older than what we
    /// know; those are checked one by one.
    pub(super) fn finish_list(&self, listed: &BTreeSet<ObjectKey>, newest_listed: Option<u64>) {
        let changes = self.write().retain_listed(listed, newest_listed);
        for change in changes {
            self.announce(Some(change));
        }
        self.shared.doubts.notify_one();
        self.shared.absent.store(false, Ordering::Relaxed);
        self.mark_synced();
    }

    pub(crate) fn mark_synced(&self) {
        if !self.shared.synced.get() {
            self.shared.synced.send_replace(true);
        }
    }

    /// Waits for an object whose existence must be checked with the API server.
    pub(super) async fn next_doubt(&self) -> Doubt {
        loop {
            if let Some(doubt) = self.read().next_doubt() {
                return doubt;
            }
            self.shared.doubts.notified().await;
        }
    }

    /// Ends a doubt: the object does not exist, unless something newer was learnt in the meantime.
    pub(super) fn settle_doubt_as_gone(&self, doubt: &Doubt) {
        let change = self.write().remove_doubtful(doubt);
        self.announce(change);
    }

    /// Ends a doubt: the object exists.
    pub(super) fn settle_doubt_as_present(&self, doubt: &Doubt) {
        self.write().doubtful.remove(&doubt.key);
    }

    fn put(&self, mut object: K, source: Source) {
        object.meta_mut().managed_fields = None;
        (self.shared.prune)(&mut object);
        let mut contents = self.write();
        let change = contents.put(Arc::new(object), source);
        let doubtful = !contents.doubtful.is_empty();
        drop(contents);
        if doubtful {
            self.shared.doubts.notify_one();
        }
        self.announce(change);
    }

    /// Tells the listeners, without holding a lock: they may read the store and write to queues.
    fn announce(&self, change: Option<Change<K>>) {
        let Some(change) = change else { return };
        let listeners =
            self.shared.listeners.read().unwrap_or_else(PoisonError::into_inner).clone();
        for listener in listeners {
            listener(&change);
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, Contents<K>> {
        self.shared.contents.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Contents<K>> {
        self.shared.contents.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Objects by key under each value of an index.
type Index = BTreeMap<String, BTreeSet<ObjectKey>>;

#[cfg(test)]
mod tests;
