//! What does a Kubernetes API server do, as far as the operator and the simulated cluster need it?
//!
//! An API server in memory, under the real `kube::Client`. [`Store`] is the pure state machine;
//! [`ApiServer`] is the thin shell around it: clients, watches, faults and observers. It has no clock
//! and no chance of its own, and wakes watches in the order of their beginnings, so the same requests
//! in the same order give the same answers.
//!
//! Not simulated: authentication and authorisation, admission webhooks, dry runs, server-side apply and
//! strategic merge patches (415), managedFields, tables and metadata-only answers, discovery, the life
//! of namespaces (nothing empties one that is deleted), the expiry of Events, quantities in other
//! spellings, patterns and CEL rules of CRDs, most of the validation and some of the defaults of
//! built-in kinds, the signature of what is asked for in a signing request, the volumes that a service account brings to a pod, and controllers of any kind:
//! who counts for disruption budgets, schedules, or plays the kubelet is somebody else. Items of lists
//! carry their kind, which the real server leaves out for built-in kinds.

mod built_in;
mod failure;
mod faults;
mod identity;
mod kinds;
mod object;
mod request;
mod schema;
mod selector;
mod service;
mod signing_request;
mod store;
mod stream;
mod watcher;

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Waker,
    time::Duration,
};

use jiff::Timestamp;
use kube::Resource;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

pub use failure::{Cause, Failure};
pub use faults::{
    Age, EventContext, EventFate, Faults, Loss, NoFaults, RequestContext, RequestFate,
    RequestOutcome,
};
pub use identity::Identity;
pub use kinds::{Kind, KindRef, Scope};
pub use object::{Object, ObjectRef, text_at, value_at};
pub use request::{ApiRequest, Options, Subresource, Verb};
pub use service::{ApiService, ResponseBody};
pub use store::{Answer, Chance, Collected, Commit, CommitRef, Origin, Outcome, Store, View};
pub use watcher::{EventType, WatchEvent, Watcher};

/// Tells the time that the server stamps objects with.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Sees every committed write, in order. It may read the server, and must not write to it.
pub type Observer = Box<dyn FnMut(&Commit) + Send>;

/// What can be chosen about a server.
#[derive(Clone, Debug)]
pub struct Config {
    /// How many revisions are remembered, at least; up to twice as many are. A watch or a list from
    /// before is answered with 410.
    pub history_revisions: u64,
    /// Time between two bookmarks of a watch; none sends only the one before its end.
    pub bookmark_every: Option<Duration>,
    /// Namespaces that are there from the beginning.
    pub namespaces: Vec<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            history_revisions: 10_000,
            // As the real server.
            bookmark_every: Some(Duration::from_secs(60)),
            namespaces: ["default", "kube-system", "kube-public", "kube-node-lease"]
                .map(str::to_owned)
                .to_vec(),
        }
    }
}

/// A running server. Clones are the same server.
#[derive(Clone)]
pub struct ApiServer {
    shared: Arc<Shared>,
}

/// What clients, watches and actors share.
struct Shared {
    state: Mutex<State>,
    faults: Mutex<Box<dyn Faults>>,
    /// Held while a write happens and is told about, so that observers see writes in order.
    observers: Mutex<Vec<Observer>>,
    clock: Clock,
    bookmark_every: Option<Duration>,
}

struct State {
    store: Store,
    watches: BTreeMap<u64, OpenWatch>,
    watches_begun: u64,
    requests: u64,
}

struct OpenWatch {
    info: WatchInfo,
    waker: Option<Waker>,
    ended: bool,
}

/// An open watch.
#[derive(Clone, Debug)]
pub struct WatchInfo {
    /// The watch, by the order of their beginnings.
    pub id: u64,
    pub client: Arc<str>,
    pub kind: KindRef,
}

impl ApiServer {
    /// A cluster that holds nothing but namespaces.
    #[must_use]
    pub fn new(config: &Config, clock: Clock, chance: Chance) -> Self {
        let state = State {
            store: Store::new(config.history_revisions, chance),
            watches: BTreeMap::new(),
            watches_begun: 0,
            requests: 0,
        };
        let shared = Shared {
            state: Mutex::new(state),
            faults: Mutex::new(Box::new(NoFaults)),
            observers: Mutex::new(Vec::new()),
            clock,
            bookmark_every: config.bookmark_every,
        };
        let server = Self { shared: Arc::new(shared) };
        if let Some(kind) = KindRef::find("", "namespaces") {
            for name in &config.namespaces {
                let body = serde_json::json!({ "metadata": { "name": name } });
                let request = ApiRequest::new(Verb::Create, kind, "", "").with_body(body);
                // A name that is no name makes no namespace.
                server.request("simulation", &request).ok();
            }
        }
        server
    }

    /// A client whose requests carry the tag. It must be called inside the runtime that it is used on.
    #[must_use]
    pub fn client(&self, tag: &str) -> kube::Client {
        kube::Client::new(self.service(tag), "default")
    }

    /// The server as one client sees it, for a client with layers of its own.
    #[must_use]
    pub fn service(&self, tag: &str) -> ApiService {
        ApiService { shared: Arc::clone(&self.shared), client: Arc::from(tag) }
    }

    /// Decides from now on what goes wrong.
    pub fn set_faults(&self, faults: impl Faults + 'static) {
        *lock(&self.shared.faults) = Box::new(faults);
    }

    /// Tells `observer` about every write from now on.
    pub fn observe(&self, observer: impl FnMut(&Commit) + Send + 'static) {
        lock(&self.shared.observers).push(Box::new(observer));
    }

    /// Lets go of whoever disturbs or observes it. They know the server, so that neither would ever be
    /// freed.
    pub fn part_from_all(&self) {
        self.set_faults(NoFaults);
        lock(&self.shared.observers).clear();
    }

    /// How many hold the server, whenever it is asked.
    #[cfg(test)]
    pub(crate) fn holders(&self) -> impl Fn() -> usize + use<> {
        let shared = Arc::downgrade(&self.shared);
        move || shared.strong_count()
    }

    /// Carries out a request at once, past all faults.
    ///
    /// # Errors
    /// Fails as the server refuses.
    pub fn request(&self, tag: &str, request: &ApiRequest) -> Result<Answer, Failure> {
        self.shared.apply(request, &Origin::tagged(tag), View::Latest)
    }

    /// The newest revision.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.shared.lock().store.revision()
    }

    /// The oldest revision that can still be read or watched from.
    #[must_use]
    pub fn oldest_revision(&self) -> u64 {
        self.shared.lock().store.oldest_revision()
    }

    /// How many requests came through clients.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.shared.lock().requests
    }

    /// Forgets what happened up to a revision: watches and lists from before are answered with 410.
    pub fn compact(&self, revision: u64) {
        self.shared.lock().store.compact(revision);
    }

    /// One round of the garbage collector. Returns the number of writes; at zero it is done.
    pub fn collect_garbage(&self, tag: &str) -> usize {
        let now = self.shared.now();
        let origin = Origin::tagged(tag);
        self.shared.write(|store| store.collect_garbage(&origin, now).commits)
    }

    /// The open watches, in the order of their beginnings.
    #[must_use]
    pub fn watches(&self) -> Vec<WatchInfo> {
        self.shared.lock().watches.values().map(|watch| watch.info.clone()).collect()
    }

    /// Ends the open watches that are chosen, as a server that goes away does.
    pub fn end_watches(&self, chosen: impl Fn(&WatchInfo) -> bool) {
        let mut wakers = Vec::new();
        for watch in self.shared.lock().watches.values_mut() {
            if chosen(&watch.info) {
                watch.ended = true;
                wakers.extend(watch.waker.take());
            }
        }
        wakers.into_iter().for_each(Waker::wake);
    }

    /// The object as it is stored.
    #[must_use]
    pub fn get_object(&self, kind: KindRef, namespace: &str, name: &str) -> Option<ObjectRef> {
        self.shared.lock().store.get(kind, namespace, name).cloned()
    }

    /// The objects as they are stored, in the order of namespace and name.
    #[must_use]
    pub fn objects(&self, kind: KindRef) -> Vec<ObjectRef> {
        self.shared.lock().store.objects(kind).cloned().collect()
    }

    /// The object as it is stored; none where it is absent or does not have the type's shape.
    #[must_use]
    pub fn get<K>(&self, namespace: &str, name: &str) -> Option<K>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned,
    {
        self.get_object(KindRef::of::<K>()?, namespace, name)?.parse().ok()
    }

    /// The objects as they are stored, without those that do not have the type's shape.
    #[must_use]
    pub fn list<K>(&self) -> Vec<K>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned,
    {
        let objects = KindRef::of::<K>().map(|kind| self.objects(kind)).unwrap_or_default();
        objects.iter().filter_map(|object| object.parse().ok()).collect()
    }

    /// Creates an object, past all faults.
    ///
    /// # Errors
    /// Fails as the server refuses.
    pub fn create<K>(&self, tag: &str, object: &K) -> Result<K, Failure>
    where
        K: Resource<DynamicType = ()> + Serialize + DeserializeOwned,
    {
        self.write_typed(tag, Verb::Create, Subresource::None, object)
    }

    /// Replaces an object, past all faults.
    ///
    /// # Errors
    /// Fails as the server refuses.
    pub fn update<K>(&self, tag: &str, subresource: Subresource, object: &K) -> Result<K, Failure>
    where
        K: Resource<DynamicType = ()> + Serialize + DeserializeOwned,
    {
        self.write_typed(tag, Verb::Update, subresource, object)
    }

    /// Merges a patch into an object, past all faults.
    ///
    /// # Errors
    /// Fails as the server refuses.
    pub fn patch<K>(
        &self,
        tag: &str,
        subresource: Subresource,
        namespace: &str,
        name: &str,
        patch: Value,
    ) -> Result<ObjectRef, Failure>
    where
        K: Resource<DynamicType = ()>,
    {
        let request = typed_request::<K>(Verb::MergePatch, namespace, name)?;
        match self.request(tag, &request.at(subresource).with_body(patch))? {
            Answer::Object { object, .. } => Ok(object),
            Answer::Value { value, .. } => Ok(Object::new(value)),
            Answer::List(_) | Answer::Watch(_) => Err(Failure::no_such_path()),
        }
    }

    /// Deletes an object, past all faults, with the body of a DELETE (`null` for none).
    ///
    /// # Errors
    /// Fails as the server refuses.
    pub fn delete<K>(
        &self,
        tag: &str,
        namespace: &str,
        name: &str,
        options: Value,
    ) -> Result<(), Failure>
    where
        K: Resource<DynamicType = ()>,
    {
        let request = typed_request::<K>(Verb::Delete, namespace, name)?;
        self.request(tag, &request.with_body(options)).map(drop)
    }

    fn write_typed<K>(
        &self,
        tag: &str,
        verb: Verb,
        subresource: Subresource,
        object: &K,
    ) -> Result<K, Failure>
    where
        K: Resource<DynamicType = ()> + Serialize + DeserializeOwned,
    {
        let metadata = object.meta();
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        let name = metadata.name.as_deref().filter(|_| verb != Verb::Create).unwrap_or_default();
        let unreadable = |error: serde_json::Error| Failure::bad_request(error.to_string());
        let body = serde_json::to_value(object).map_err(unreadable)?;
        let request = typed_request::<K>(verb, namespace, name)?.at(subresource).with_body(body);
        match self.request(tag, &request)? {
            Answer::Object { object, .. } => object.parse().map_err(unreadable),
            Answer::Value { value, .. } => serde_json::from_value(value).map_err(unreadable),
            Answer::List(_) | Answer::Watch(_) => Err(Failure::no_such_path()),
        }
    }
}

impl Debug for ApiServer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ApiServer")
            .field("revision", &self.revision())
            .finish_non_exhaustive()
    }
}

fn typed_request<K: Resource<DynamicType = ()>>(
    verb: Verb,
    namespace: &str,
    name: &str,
) -> Result<ApiRequest, Failure> {
    let kind = KindRef::of::<K>().ok_or_else(Failure::no_such_path)?;
    Ok(ApiRequest::new(verb, kind, namespace, name))
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn now(&self) -> Timestamp {
        (self.clock)()
    }

    fn apply(&self, request: &ApiRequest, origin: &Origin, view: View) -> Result<Answer, Failure> {
        let now = self.now();
        if !request.verb.is_write() {
            return self.lock().store.apply(request, origin, now, view).answer;
        }
        let mut answer = None;
        self.write(|store| {
            let outcome = store.apply(request, origin, now, View::Latest);
            answer = Some(outcome.answer);
            outcome.commits
        });
        answer.unwrap_or_else(|| Err(Failure::no_such_path()))
    }

    /// Changes the store, wakes the watches that see it, and tells the observers.
    fn write(&self, change: impl FnOnce(&mut Store) -> Vec<CommitRef>) -> usize {
        let mut observers = lock(&self.observers);
        let mut wakers = Vec::new();
        let commits = {
            let mut state = self.lock();
            let commits = change(&mut state.store);
            for watch in state.watches.values_mut() {
                if commits.iter().any(|commit| commit.kind.collection == watch.info.kind.collection)
                {
                    wakers.extend(watch.waker.take());
                }
            }
            commits
        };
        for commit in &commits {
            for observer in observers.iter_mut() {
                observer(commit);
            }
        }
        drop(observers);
        wakers.into_iter().for_each(Waker::wake);
        commits.len()
    }

    fn fate_of_request(&self, client: &str, request: &ApiRequest) -> RequestFate {
        let (number, revision, oldest_revision) = {
            let mut state = self.lock();
            state.requests += 1;
            (state.requests, state.store.revision(), state.store.oldest_revision())
        };
        let now = self.now();
        let context = RequestContext { number, client, request, now, revision, oldest_revision };
        lock(&self.faults).on_request(&context)
    }

    fn fate_of_event(&self, context: &EventContext<'_>) -> EventFate {
        lock(&self.faults).on_event(context)
    }

    fn resolve(&self, age: Age) -> u64 {
        match age {
            Age::Revision(revision) => revision,
            Age::Time(age) => {
                let then = self.now().checked_sub(age).unwrap_or(Timestamp::MIN);
                self.lock().store.revision_before(then)
            }
        }
    }
}

impl State {
    fn add_watch(&mut self, client: &Arc<str>, kind: KindRef) -> u64 {
        self.watches_begun += 1;
        let id = self.watches_begun;
        let info = WatchInfo { id, client: Arc::clone(client), kind };
        self.watches.insert(id, OpenWatch { info, waker: None, ended: false });
        id
    }

    fn forget_watch(&mut self, id: u64) {
        self.watches.remove(&id);
    }

    fn is_watch_ended(&self, id: u64) -> bool {
        self.watches.get(&id).is_none_or(|watch| watch.ended)
    }

    fn wake_on_commit(&mut self, id: u64, waker: &Waker) {
        if let Some(watch) = self.watches.get_mut(&id) {
            watch.waker = Some(waker.clone());
        }
    }
}

/// A panic while the lock was held leaves a state that is whole: every change is made in one piece.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
