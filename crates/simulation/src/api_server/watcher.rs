//! What does a watch show? Commits, as far as its selectors match, in the order of their revisions.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use bytes::Bytes;
use serde_json::{Value, json};

use super::{
    built_in,
    failure::Failure,
    kinds::KindRef,
    object::{Object, ObjectRef},
    request::ApiRequest,
    selector::Selector,
    store::{Commit, Store},
};

/// How long the real server lets a watch run that names no timeout, at least.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(1800);

/// Where one watch is.
#[derive(Debug)]
pub struct Watcher {
    kind: KindRef,
    namespace: String,
    selector: Selector,
    /// Everything up to this revision has been seen.
    position: u64,
    initial: VecDeque<ObjectRef>,
    /// The end of the initial events is to be marked.
    marks_initial_end: bool,
    /// It begins at a version that is no longer remembered.
    expired: bool,
    pub(super) allow_bookmarks: bool,
    pub(super) timeout: Duration,
}

/// The type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventType {
    Added,
    Modified,
    Deleted,
}

impl EventType {
    const fn text(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

/// One event of a watch.
#[derive(Clone, Debug)]
pub struct WatchEvent {
    pub event_type: EventType,
    pub object: ObjectRef,
    /// The version before, where there was one that the watch could see.
    pub before: Option<ObjectRef>,
}

/// What comes next.
#[derive(Debug)]
pub(super) enum Step {
    Event(WatchEvent),
    /// The end of the initial events.
    InitialEnd(Bytes),
    /// What comes next is forgotten.
    Expired(Bytes),
    /// Nothing until the next commit.
    Idle,
}

impl Watcher {
    pub(super) fn new(
        request: &ApiRequest,
        selector: Selector,
        position: u64,
        initial: Vec<ObjectRef>,
    ) -> Self {
        let options = &request.options;
        let timeout =
            options.timeout_seconds.filter(|seconds| *seconds > 0).map(Duration::from_secs);
        Self {
            kind: request.kind,
            namespace: request.namespace.clone(),
            selector,
            position,
            initial: initial.into(),
            expired: false,
            marks_initial_end: options.send_initial_events == Some(true) && options.allow_bookmarks,
            allow_bookmarks: options.allow_bookmarks,
            timeout: timeout.unwrap_or(DEFAULT_TIMEOUT),
        }
    }

    pub(super) const fn expire(&mut self) {
        self.expired = true;
    }

    pub(super) const fn kind(&self) -> KindRef {
        self.kind
    }

    pub(super) fn next(&mut self, store: &Store) -> Step {
        if let Some(object) = self.initial.pop_front() {
            return Step::Event(WatchEvent { event_type: EventType::Added, object, before: None });
        }
        if self.marks_initial_end {
            self.marks_initial_end = false;
            return Step::InitialEnd(self.bookmark_line(Some("k8s.io/initial-events-end")));
        }
        let commits = store.commits_after(self.kind, self.position).filter(|_| !self.expired);
        let Some(commits) = commits else {
            let message = format!(
                "too old resource version: {} ({})",
                self.position,
                store.oldest_revision()
            );
            return Step::Expired(error_line(&Failure::expired(message)));
        };
        for commit in commits {
            self.position = commit.revision;
            if let Some(event) = self.event_of(commit) {
                return Step::Event(event);
            }
        }
        // Also where nothing of this kind happened: what other kinds did must not make this one old.
        self.position = self.position.max(store.revision());
        Step::Idle
    }

    fn event_of(&self, commit: &Commit) -> Option<WatchEvent> {
        let sees = |object: &&ObjectRef| {
            (self.namespace.is_empty() || object.namespace() == self.namespace)
                && self.selector.matches(object.value())
        };
        let before = commit.before.as_ref().filter(sees);
        let after = commit.after.as_ref().filter(sees);
        let (event_type, object) = match (before, after) {
            (None, None) => return None,
            (None, Some(after)) => (EventType::Added, Arc::clone(after)),
            (Some(_), Some(after)) => (EventType::Modified, Arc::clone(after)),
            (Some(_), None) if commit.after.is_none() => {
                (EventType::Deleted, Arc::clone(commit.object()))
            }
            // It is there, but no longer for this watch, which sees what it knew with a new version.
            (Some(before), None) => (EventType::Deleted, before.at_revision(commit.revision)),
        };
        Some(WatchEvent { event_type, object, before: before.cloned() })
    }

    pub(super) fn line(&self, event_type: EventType, object: &Object) -> Bytes {
        let text = match self.kind.kind.shows {
            Some(_) => Bytes::from(built_in::show_event(object.value()).to_string()),
            None => object.text(),
        };
        let head = event_type.text();
        let mut line = Vec::with_capacity(text.len() + 40);
        // The type comes first, as from a real server: clients read it before they know the object.
        line.extend_from_slice(b"{\"type\":\"");
        line.extend_from_slice(head.as_bytes());
        line.extend_from_slice(b"\",\"object\":");
        line.extend_from_slice(&text);
        line.extend_from_slice(b"}\n");
        Bytes::from(line)
    }

    /// A bookmark: everything up to here has been sent.
    pub(super) fn bookmark_line(&self, annotation: Option<&str>) -> Bytes {
        let mut metadata = json!({ "resourceVersion": self.position.to_string() });
        if let (Some(name), Some(fields)) = (annotation, metadata.as_object_mut()) {
            fields.insert("annotations".to_owned(), json!({ name: "true" }));
        }
        let object = json!({
            "kind": self.kind.kind.kind,
            "apiVersion": self.kind.kind.api_version(),
            "metadata": metadata,
        });
        special_line("BOOKMARK", &object)
    }
}

pub(super) fn error_line(failure: &Failure) -> Bytes {
    special_line("ERROR", &failure.status())
}

fn special_line(head: &str, object: &Value) -> Bytes {
    Bytes::from(format!("{{\"type\":\"{head}\",\"object\":{object}}}\n"))
}
