//! What is known of a cloud at one moment, and what changed since the last.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use machinist_core::cloud::{CloudFailure, Instance, InstanceId};
use tokio::time::Instant;

/// An immutable picture of the instances of one cluster in one region.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    entries: BTreeMap<InstanceId, Entry>,
    by_uid: BTreeMap<String, BTreeSet<InstanceId>>,
    /// When the last complete list was begun; `None` before the first.
    pub listed_at: Option<Instant>,
    /// Why the last list failed; the picture is then older than it should be.
    pub failure: Option<CloudFailure>,
}

#[derive(Clone, Debug)]
struct Entry {
    instance: Arc<Instance>,
    learned_at: Instant,
    /// When our own launch returned it: for a while a read may not show it.
    launched_at: Option<Instant>,
}

impl Entry {
    fn may_be_invisible(&self, visibility: Duration, now: Instant) -> bool {
        self.launched_at.is_some_and(|at| at + visibility > now)
    }
}

impl Snapshot {
    pub fn get(&self, id: &InstanceId) -> Option<&Arc<Instance>> {
        self.entries.get(id).map(|entry| &entry.instance)
    }

    /// The instances that carry a Machine's uid.
    pub fn of_machine(&self, uid: &str) -> impl Iterator<Item = &Arc<Instance>> {
        self.by_uid.get(uid).into_iter().flatten().filter_map(|id| self.get(id))
    }

    /// Takes in a complete list. What it lacks is dropped, unless it was learnt after the list was
    /// begun or launched less than `visibility` ago: a list may be behind a launch.
    pub(super) fn replace(
        &self,
        listed: Vec<Instance>,
        begun_at: Instant,
        visibility: Duration,
    ) -> (Self, Changed) {
        let mut next = Self { listed_at: Some(begun_at), ..Self::default() };
        for (id, entry) in &self.entries {
            if entry.learned_at > begun_at || entry.may_be_invisible(visibility, begun_at) {
                next.entries.insert(id.clone(), entry.clone());
            }
        }
        for instance in listed {
            let known = self.entries.get(&instance.id);
            if known.is_some_and(|known| known.learned_at > begun_at) {
                continue;
            }
            next.insert(instance, begun_at, known);
        }
        next.index();
        let changed = self.difference(&next);
        (next, changed)
    }

    /// Takes in instances that were described one by one. What was asked for and not found stays:
    /// one read that lacks an instance proves nothing, a complete list drops it.
    pub(super) fn update(&self, found: Vec<Instance>, at: Instant) -> (Self, Changed) {
        let mut next = self.clone();
        for instance in found {
            let known = self.entries.get(&instance.id);
            next.insert(instance, at, known);
        }
        next.index();
        let changed = self.difference(&next);
        (next, changed)
    }

    /// Takes in what our own launch returned.
    pub(super) fn launched(&self, instance: Instance, at: Instant) -> (Self, Changed) {
        let mut next = self.clone();
        let id = instance.id.clone();
        next.insert(instance, at, self.entries.get(&id));
        if let Some(entry) = next.entries.get_mut(&id) {
            entry.launched_at = Some(at);
        }
        next.index();
        let changed = self.difference(&next);
        (next, changed)
    }

    pub(super) fn with_failure(&self, failure: CloudFailure) -> Self {
        Self { failure: Some(failure), ..self.clone() }
    }

    /// Shares the old value when nothing changed: most instances never do.
    fn insert(&mut self, instance: Instance, at: Instant, known: Option<&Entry>) {
        let id = instance.id.clone();
        let shared = match known {
            Some(known) if *known.instance == instance => Arc::clone(&known.instance),
            _ => Arc::new(instance),
        };
        let launched_at = known.and_then(|known| known.launched_at);
        self.entries.insert(id, Entry { instance: shared, learned_at: at, launched_at });
    }

    fn index(&mut self) {
        self.by_uid.clear();
        for (id, entry) in &self.entries {
            if let Some(uid) = entry.instance.machine_uid() {
                self.by_uid.entry(uid.to_owned()).or_default().insert(id.clone());
            }
        }
    }

    fn difference(&self, next: &Self) -> Changed {
        let mut changed = Changed::default();
        let mut note = |instance: &Instance| {
            changed.ids.insert(instance.id.clone());
            changed.uids.extend(instance.machine_uid().map(str::to_owned));
        };
        for (id, entry) in &next.entries {
            match self.entries.get(id) {
                Some(known) if Arc::ptr_eq(&known.instance, &entry.instance) => {}
                _ => note(&entry.instance),
            }
        }
        for (id, entry) in &self.entries {
            if !next.entries.contains_key(id) {
                note(&entry.instance);
            }
        }
        changed
    }
}

/// What a view tells those who read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// The first answer, or the reason why there is none: whoever waits for one is concerned.
    ForEverybody,
    About(Changed),
}

/// Which instances, and so which Machines, look different now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    pub ids: BTreeSet<InstanceId>,
    pub uids: BTreeSet<String>,
}

impl Changed {
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }
}
