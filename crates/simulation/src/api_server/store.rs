//! What is stored, and what did each write change?
//!
//! The server as a pure state machine: a request and the time go in, an answer and the commits come
//! out. No clock, no tasks; chance comes from the source that the store was made with. The verbs are
//! in the files below; this one holds the state, its history and the one way to change it.

mod create;
mod delete;
mod evict;
mod garbage;
mod list;
mod replace;
mod scale;
mod validate;

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, LazyLock, OnceLock},
};

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::Value;

pub use garbage::Collected;

use super::{
    built_in,
    failure::Failure,
    kinds::{Fields, KINDS, Kind, KindRef},
    object::{Object, ObjectRef, key_of, set_revision},
    request::{ApiRequest, Subresource, Verb},
    schema::Schema,
    selector::Selector,
    watcher::Watcher,
};

/// Where the server's chance comes from: uids and the ends of generated names.
pub type Chance = Box<dyn FnMut() -> u64 + Send>;

/// Who asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The tag of the client handle.
    pub client: Arc<str>,
    pub user_agent: Option<Arc<str>>,
}

impl Origin {
    /// Somebody known only by a tag.
    #[must_use]
    pub fn tagged(tag: &str) -> Self {
        Self { client: Arc::from(tag), user_agent: None }
    }
}

/// One change of one object.
#[derive(Debug)]
pub struct Commit {
    pub revision: u64,
    pub time: Timestamp,
    pub kind: KindRef,
    pub verb: Verb,
    pub subresource: Subresource,
    pub origin: Origin,
    /// None where the object is new.
    pub before: Option<ObjectRef>,
    /// None where the object is gone.
    pub after: Option<ObjectRef>,
    last: OnceLock<ObjectRef>,
}

/// A shared commit.
pub type CommitRef = Arc<Commit>;

impl Commit {
    /// The object after the commit or, where it is gone, its last state with the revision of its end.
    #[must_use]
    pub fn object(&self) -> &ObjectRef {
        match (&self.after, &self.before) {
            (Some(after), _) => after,
            (None, before) => self.last.get_or_init(|| match before {
                Some(before) => before.at_revision(self.revision),
                None => Object::new(Value::Null),
            }),
        }
    }
}

/// What a request is answered with.
#[derive(Debug)]
pub enum Answer {
    Object { code: u16, object: ObjectRef },
    Value { code: u16, value: Value },
    List(Bytes),
    Watch(Box<Watcher>),
}

/// What a request led to. Commits happened even where the answer is a refusal: an eviction takes from
/// the budget before it looks at the pod's uid.
#[derive(Debug)]
pub struct Outcome {
    pub answer: Result<Answer, Failure>,
    pub commits: Vec<CommitRef>,
}

/// Which state a read sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    Latest,
    /// The state at an earlier revision, as from a server that lags behind.
    At(u64),
}

/// The state of the cluster.
pub struct Store {
    collections: Vec<Collection>,
    revision: u64,
    /// What happened up to here is forgotten.
    compacted: u64,
    /// How many revisions are remembered.
    history_revisions: u64,
    /// When which revision came to be, for looking back by age.
    times: VecDeque<(Timestamp, u64)>,
    chance: Chance,
    /// The commits of the request under way.
    commits: Vec<CommitRef>,
}

#[derive(Default)]
struct Collection {
    objects: BTreeMap<String, ObjectRef>,
    history: VecDeque<CommitRef>,
    /// The newest commit to this kind that is forgotten.
    forgotten: u64,
    schema: Option<&'static Schema>,
}

/// The schemas of all kinds, read once: a swarm makes a store for every seed.
static SCHEMAS: LazyLock<Vec<Option<Schema>>> = LazyLock::new(|| {
    let schema = |kind: &Kind| match kind.fields {
        Fields::Custom(definition) => Schema::of_definition(definition),
        Fields::BuiltIn | Fields::CustomUnchecked => None,
    };
    KINDS.iter().map(schema).collect()
});

/// Who does what, and when: what a commit records besides the change.
struct Turn<'a> {
    now: Timestamp,
    origin: &'a Origin,
    verb: Verb,
    subresource: Subresource,
}

impl Store {
    /// An empty cluster with the namespaces that every cluster has.
    #[must_use]
    pub fn new(history_revisions: u64, chance: Chance) -> Self {
        let collections = SCHEMAS
            .iter()
            .map(|schema| Collection { schema: schema.as_ref(), ..Collection::default() })
            .collect();
        Self {
            collections,
            revision: 1,
            compacted: 1,
            history_revisions,
            times: VecDeque::new(),
            chance,
            commits: Vec::new(),
        }
    }

    /// Carries out a request.
    pub fn apply(
        &mut self,
        request: &ApiRequest,
        origin: &Origin,
        now: Timestamp,
        view: View,
    ) -> Outcome {
        let turn = Turn { now, origin, verb: request.verb, subresource: request.subresource };
        let answer = match (request.verb, request.subresource) {
            (Verb::Get, Subresource::Scale) => self.get_scale(request),
            (Verb::Get, _) => self.get_object(request, view),
            (Verb::List, _) => self.list(request, view),
            (Verb::Watch, _) => self.watch(request, view),
            (Verb::Create, Subresource::Eviction) => self.evict(&turn, request),
            (Verb::Create, Subresource::Binding) => self.bind(&turn, request),
            (Verb::Create, _) => self.create(&turn, request),
            (Verb::Update | Verb::MergePatch | Verb::JsonPatch, Subresource::Scale) => {
                self.write_scale(&turn, request)
            }
            (Verb::Update, _) => self.update(&turn, request),
            (Verb::MergePatch | Verb::JsonPatch, _) => self.patch(&turn, request),
            (Verb::Delete, _) => self.delete(&turn, request),
            (Verb::DeleteCollection, _) => self.delete_collection(&turn, request),
        };
        let answer = answer.map(|answer| present(request.kind, answer));
        Outcome { answer, commits: std::mem::take(&mut self.commits) }
    }

    /// The newest revision.
    #[must_use]
    pub const fn revision(&self) -> u64 {
        self.revision
    }

    /// The oldest revision that can still be read or watched from.
    #[must_use]
    pub const fn oldest_revision(&self) -> u64 {
        self.compacted
    }

    /// The newest revision that is at least so old, as far back as is remembered.
    #[must_use]
    pub fn revision_before(&self, time: Timestamp) -> u64 {
        let later = self.times.partition_point(|(then, _)| *then <= time);
        let found = later.checked_sub(1).and_then(|index| self.times.get(index));
        found.map_or(self.compacted, |(_, revision)| *revision).max(self.compacted)
    }

    /// Forgets what happened up to a revision.
    pub fn compact(&mut self, revision: u64) {
        self.compacted = self.compacted.max(revision.min(self.revision));
        for collection in &mut self.collections {
            collection.forget(self.compacted);
        }
        while self.times.front().is_some_and(|(_, revision)| *revision < self.compacted) {
            self.times.pop_front();
        }
    }

    /// The object as it is now.
    #[must_use]
    pub fn get(&self, kind: KindRef, namespace: &str, name: &str) -> Option<&ObjectRef> {
        self.collection(kind)?.objects.get(&key_of(namespace, name))
    }

    /// The objects as they are now, in the order of their keys.
    pub fn objects(&self, kind: KindRef) -> impl Iterator<Item = &ObjectRef> {
        self.collection(kind).into_iter().flat_map(|collection| collection.objects.values())
    }

    /// The commits to a kind after a revision, oldest first; none where they are forgotten.
    pub(super) fn commits_after(
        &self,
        kind: KindRef,
        revision: u64,
    ) -> Option<impl Iterator<Item = &CommitRef>> {
        let collection = self.collection(kind)?;
        if revision < collection.forgotten {
            return None;
        }
        let first = collection.history.partition_point(|commit| commit.revision <= revision);
        Some(collection.history.range(first..))
    }

    fn collection(&self, kind: KindRef) -> Option<&Collection> {
        self.collections.get(kind.collection)
    }

    /// The objects at a revision; none where it is forgotten.
    fn objects_at(&self, kind: KindRef, revision: u64) -> Option<BTreeMap<String, ObjectRef>> {
        if revision < self.compacted {
            return None;
        }
        let collection = self.collection(kind)?;
        let mut objects = collection.objects.clone();
        for commit in collection.history.iter().rev() {
            if commit.revision <= revision {
                break;
            }
            let object = commit.object();
            let key = key_of(object.namespace(), object.name());
            match &commit.before {
                Some(before) => objects.insert(key, Arc::clone(before)),
                None => objects.remove(&key),
            };
        }
        Some(objects)
    }

    /// Stores an object under the next revision.
    fn put(&mut self, turn: &Turn<'_>, kind: KindRef, mut value: Value) -> ObjectRef {
        self.revision += 1;
        set_revision(&mut value, self.revision);
        let object = Object::new(value);
        let key = key_of(object.namespace(), object.name());
        let before = match self.collections.get_mut(kind.collection) {
            Some(collection) => collection.objects.insert(key, Arc::clone(&object)),
            None => None,
        };
        self.record(turn, kind, before, Some(Arc::clone(&object)));
        object
    }

    /// Removes an object, and returns it as its watchers see it last.
    fn remove(&mut self, turn: &Turn<'_>, kind: KindRef, object: &ObjectRef) -> ObjectRef {
        self.revision += 1;
        let key = key_of(object.namespace(), object.name());
        if let Some(collection) = self.collections.get_mut(kind.collection) {
            collection.objects.remove(&key);
        }
        let commit = self.record(turn, kind, Some(Arc::clone(object)), None);
        Arc::clone(commit.object())
    }

    fn record(
        &mut self,
        turn: &Turn<'_>,
        kind: KindRef,
        before: Option<ObjectRef>,
        after: Option<ObjectRef>,
    ) -> CommitRef {
        // Watchers and checkers see the kind that is stored, whatever name it was written by.
        let stored = KINDS
            .get(kind.collection)
            .map_or(kind, |stored| KindRef { collection: kind.collection, kind: stored });
        let commit = Arc::new(Commit {
            revision: self.revision,
            time: turn.now,
            kind: stored,
            verb: turn.verb,
            subresource: turn.subresource,
            origin: turn.origin.clone(),
            before,
            after,
            last: OnceLock::new(),
        });
        if let Some(collection) = self.collections.get_mut(kind.collection) {
            collection.history.push_back(Arc::clone(&commit));
        }
        self.times.push_back((turn.now, self.revision));
        self.commits.push(Arc::clone(&commit));
        // In steps, so that forgetting does not cost on every write.
        if self.revision.saturating_sub(self.compacted) > self.history_revisions.saturating_mul(2) {
            self.compact(self.revision - self.history_revisions);
        }
        commit
    }

    fn random(&mut self) -> u64 {
        (self.chance)()
    }

    fn get_object(&self, request: &ApiRequest, view: View) -> Result<Answer, Failure> {
        let missing = || Failure::not_found(request.kind.kind, &request.name);
        let key = key_of(&request.namespace, &request.name);
        let object = match view {
            View::Latest => self.get(request.kind, &request.namespace, &request.name).cloned(),
            View::At(revision) => self
                .objects_at(request.kind, revision.max(self.compacted))
                .and_then(|objects| objects.get(&key).cloned()),
        };
        if let Ok(wanted) = request.options.resource_version.parse::<u64>()
            && wanted > self.revision
        {
            return Err(Failure::too_large_version(wanted, self.revision));
        }
        object.map(|object| Answer::Object { code: 200, object }).ok_or_else(missing)
    }

    fn watch(&self, request: &ApiRequest, view: View) -> Result<Answer, Failure> {
        let options = &request.options;
        self.check_list_options(request)?;
        let mut field_selector = options.field_selector.clone();
        if !request.name.is_empty() {
            field_selector = format!("metadata.name={}", request.name);
        }
        let selector =
            Selector::parse(request.kind.kind, &options.label_selector, &field_selector)?;
        let wanted = options.resource_version.parse::<u64>().unwrap_or_default();
        let from = match view {
            View::Latest => self.revision,
            View::At(revision) => revision.clamp(self.compacted, self.revision),
        };
        let with_state = wanted == 0 || options.send_initial_events == Some(true);
        let initial = if with_state && options.send_initial_events != Some(false) {
            let objects = self.objects_at(request.kind, from).unwrap_or_default();
            objects
                .into_values()
                .filter(|object| {
                    in_namespace(object, &request.namespace) && selector.matches(object.value())
                })
                .collect()
        } else {
            Vec::new()
        };
        let mut watcher =
            Watcher::new(request, selector, if with_state { from } else { wanted }, initial);
        if !with_state && wanted < self.compacted {
            watcher.expire();
        }
        Ok(Answer::Watch(Box::new(watcher)))
    }
}

impl Collection {
    fn forget(&mut self, revision: u64) {
        while let Some(commit) = self.history.pop_front_if(|commit| commit.revision <= revision) {
            self.forgotten = commit.revision;
        }
    }
}

/// An answer in the words of the kind that was asked for.
fn present(kind: KindRef, answer: Answer) -> Answer {
    if kind.kind.shows.is_none() {
        return answer;
    }
    match answer {
        Answer::Object { code, object } => {
            Answer::Object { code, object: Object::new(built_in::show_event(object.value())) }
        }
        other @ (Answer::Value { .. } | Answer::List(_) | Answer::Watch(_)) => other,
    }
}

fn in_namespace(object: &Object, namespace: &str) -> bool {
    namespace.is_empty() || object.namespace() == namespace
}

fn seconds(time: Timestamp) -> Value {
    // The API keeps whole seconds.
    let whole = Timestamp::from_second(time.as_second()).unwrap_or(time);
    Value::from(whole.to_string())
}
