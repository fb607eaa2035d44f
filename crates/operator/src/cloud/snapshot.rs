//! What is known of a cloud at one moment, and what changed since the last.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use machinist_core::{
    cloud::{CloudFailure, Instance, InstanceId, InstanceReport},
    machine::HealthKnowledge,
    maintenance::event::Sighting,
};
use tokio::time::Instant;

use super::sharded::Sharded;

/// An immutable picture of the instances of one cluster in one region. Pictures share what they
/// have in common.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// By id.
    entries: Sharded<String, Entry>,
    by_uid: Sharded<String, BTreeSet<InstanceId>>,
    /// When the last complete list was begun; `None` before the first.
    pub listed_at: Option<Instant>,
    /// Why the last list failed; the picture is then older than it should be.
    pub failure: Option<CloudFailure>,
    /// What the provider's own checks say.
    pub reports: Reports,
    /// When the last answer with reports was asked for; `None` before the first.
    pub reported_at: Option<Instant>,
    /// What notices told of scheduled events, by instance and by the notice's own id.
    heard: Arc<BTreeMap<InstanceId, BTreeMap<String, Sighting>>>,
    /// When the provider takes instances back that it gave notice for.
    interruptions: Arc<BTreeMap<InstanceId, Timestamp>>,
}

/// More events than any instance has at once.
const HEARD_MAX: usize = 20;

/// What is known of the provider's checks and its calendar.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Reports {
    /// No answer yet since start.
    #[default]
    NotYet,
    /// The instances that something is reported of; all others are well.
    Known(Arc<BTreeMap<InstanceId, InstanceReport>>),
    /// The credentials lack a permission: this capability is off, nothing else is.
    Missing { permission: String },
    /// The provider could not be asked for so long that what it last said no longer counts.
    Failed { message: String },
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
        self.entries.get(&id.0).map(|entry| &entry.instance)
    }

    /// The instances that carry a Machine's uid.
    pub fn of_machine(&self, uid: &str) -> impl Iterator<Item = &Arc<Instance>> {
        self.by_uid.get(uid).into_iter().flatten().filter_map(|id| self.get(id))
    }

    /// Every instance, ordered by id.
    pub fn instances(&self) -> Vec<&Arc<Instance>> {
        self.entries.sorted().into_iter().map(|(_, entry)| &entry.instance).collect()
    }

    /// How old the last complete list is; `None` before the first.
    pub fn age(&self, now: Instant) -> Option<Duration> {
        self.listed_at.map(|at| now.saturating_duration_since(at))
    }

    /// What is reported of an instance; `None` where nothing is.
    pub fn report_of(&self, id: &InstanceId) -> Option<&InstanceReport> {
        match &self.reports {
            Reports::Known(reports) => reports.get(id),
            Reports::NotYet | Reports::Missing { .. } | Reports::Failed { .. } => None,
        }
    }

    /// When the provider takes an instance back, where it gave notice.
    pub fn spot_notice_of(&self, id: &InstanceId) -> Option<Timestamp> {
        self.interruptions.get(id).copied()
    }

    /// What notices told of scheduled events of an instance.
    pub fn heard_of(&self, id: &InstanceId) -> impl Iterator<Item = &Sighting> {
        self.heard.get(id).into_iter().flat_map(BTreeMap::values)
    }

    /// What is known of an instance's health, as decisions see it.
    pub fn health_of(&self, id: &InstanceId) -> HealthKnowledge {
        let interruption = self.spot_notice_of(id);
        let known = |report: Option<&InstanceReport>| HealthKnowledge::Known {
            impairments: report.map(|report| report.impairments.clone()).unwrap_or_default(),
            interruption,
        };
        match &self.reports {
            // A notice is certain, whatever else is not known.
            _ if interruption.is_some() => known(self.report_of(id)),
            Reports::NotYet => HealthKnowledge::Loading,
            Reports::Known(_) if self.get(id).is_none() => HealthKnowledge::Loading,
            Reports::Known(reports) => known(reports.get(id)),
            Reports::Missing { permission } => {
                HealthKnowledge::Unknown(format!("the credentials lack {permission}"))
            }
            Reports::Failed { message } => HealthKnowledge::Unknown(message.clone()),
        }
    }

    /// Takes in a complete list. What it lacks is dropped, unless it was learnt after the list was
    /// begun or launched less than `visibility` ago: a list may be behind a launch.
    pub(super) fn replace(
        &mut self,
        listed: Vec<Instance>,
        begun_at: Instant,
        visibility: Duration,
    ) -> Changed {
        let mut changed = Changed::default();
        let present: BTreeSet<&str> = listed.iter().map(|one| one.id.0.as_str()).collect();
        let dropped: Vec<InstanceId> = self
            .entries
            .sorted()
            .into_iter()
            .filter(|(id, entry)| {
                !present.contains(id.as_str())
                    && entry.learned_at <= begun_at
                    && !entry.may_be_invisible(visibility, begun_at)
            })
            .map(|(_, entry)| entry.instance.id.clone())
            .collect();
        for id in &dropped {
            self.remove(id, &mut changed);
        }
        for instance in listed {
            let known = self.entries.get(&instance.id.0);
            if known.is_none_or(|known| known.learned_at <= begun_at) {
                self.insert(instance, begun_at, &mut changed);
            }
        }
        self.forget_notices();
        self.listed_at = Some(begun_at);
        self.failure = None;
        changed
    }

    /// Takes in instances that were described one by one. What was asked for and not found stays:
    /// one read that lacks an instance proves nothing, a complete list drops it.
    pub(super) fn update(&mut self, found: Vec<Instance>, at: Instant) -> Changed {
        let mut changed = Changed::default();
        for instance in found {
            // An answer that was long under way does not undo a later one.
            let known = self.entries.get(&instance.id.0);
            if known.is_none_or(|known| known.learned_at <= at) {
                self.insert(instance, at, &mut changed);
            }
        }
        changed
    }

    /// Takes in what our own launch returned.
    pub(super) fn launched(&mut self, instance: Instance, at: Instant) -> Changed {
        let mut changed = Changed::default();
        let id = instance.id.clone();
        self.insert(instance, at, &mut changed);
        if let Some(entry) = self.entries.get(&id.0).cloned() {
            self.entries.insert(id.0, Entry { launched_at: Some(at), ..entry });
        }
        changed
    }

    /// Takes in what the provider's checks say; instances that are not ours are left out.
    pub(super) fn report(&mut self, reports: Vec<InstanceReport>, asked_at: Instant) -> Changed {
        let next: BTreeMap<InstanceId, InstanceReport> = reports
            .into_iter()
            .filter(|report| self.get(&report.instance).is_some())
            .map(|report| (report.instance.clone(), report))
            .collect();
        let mut changed = Changed::default();
        let before = match &self.reports {
            Reports::Known(reports) => Arc::clone(reports),
            Reports::NotYet | Reports::Missing { .. } | Reports::Failed { .. } => Arc::default(),
        };
        for id in before.keys().chain(next.keys()) {
            if before.get(id) != next.get(id) {
                self.note(id, &mut changed);
            }
        }
        self.reports = Reports::Known(Arc::new(next));
        self.reported_at = Some(asked_at);
        changed
    }

    /// Takes in the notice that an instance will be taken back. The first notice counts: they come
    /// more than once.
    pub(super) fn interrupt(&mut self, id: &InstanceId, at: Timestamp) -> Changed {
        let mut changed = Changed::default();
        if self.get(id).is_some() && !self.interruptions.contains_key(id) {
            Arc::make_mut(&mut self.interruptions).insert(id.clone(), at);
            self.note(id, &mut changed);
        }
        changed
    }

    /// Takes in what a notice told of a scheduled event. The last notice of an id counts.
    pub(super) fn hear(&mut self, sighting: Sighting) -> Changed {
        let mut changed = Changed::default();
        let id = sighting.instance.clone();
        let known = self.heard.get(&id);
        let is_same = known.and_then(|known| known.get(&sighting.id)) == Some(&sighting);
        let is_full = known
            .is_some_and(|known| known.len() >= HEARD_MAX && !known.contains_key(&sighting.id));
        if self.get(&id).is_some() && !is_same && !is_full {
            let heard = Arc::make_mut(&mut self.heard);
            heard.entry(id.clone()).or_default().insert(sighting.id.clone(), sighting);
            self.note(&id, &mut changed);
        }
        changed
    }

    /// An instance that is gone needs no notice any more.
    fn forget_notices(&mut self) {
        let entries = &self.entries;
        let is_live = |id: &InstanceId| {
            entries.get(&id.0).is_some_and(|entry| entry.instance.state.is_live())
        };
        if self.interruptions.keys().any(|id| !is_live(id)) {
            Arc::make_mut(&mut self.interruptions).retain(|id, _| is_live(id));
        }
        if self.heard.keys().any(|id| !is_live(id)) {
            Arc::make_mut(&mut self.heard).retain(|id, _| is_live(id));
        }
    }

    /// Shares the old value when nothing changed: most instances never do.
    fn insert(&mut self, instance: Instance, at: Instant, changed: &mut Changed) {
        let known = self.entries.get(&instance.id.0).cloned();
        let launched_at = known.as_ref().and_then(|known| known.launched_at);
        if let Some(known) = &known
            && *known.instance == instance
        {
            let entry =
                Entry { instance: Arc::clone(&known.instance), learned_at: at, launched_at };
            self.entries.insert(instance.id.0, entry);
            return;
        }
        if let Some(known) = &known {
            changed.note(&known.instance);
            self.leave_index(&known.instance);
        }
        changed.note(&instance);
        if let Some(uid) = instance.machine_uid() {
            self.by_uid.change(uid.to_owned(), |ids| {
                ids.insert(instance.id.clone());
            });
        }
        let instance = Arc::new(instance);
        self.entries.insert(instance.id.0.clone(), Entry { instance, learned_at: at, launched_at });
    }

    fn remove(&mut self, id: &InstanceId, changed: &mut Changed) {
        if let Some(entry) = self.entries.remove(&id.0) {
            changed.note(&entry.instance);
            self.leave_index(&entry.instance);
        }
    }

    fn leave_index(&mut self, instance: &Instance) {
        let Some(uid) = instance.machine_uid() else { return };
        self.by_uid.change(uid.to_owned(), |ids| {
            ids.remove(&instance.id);
        });
        if self.by_uid.get(uid).is_some_and(BTreeSet::is_empty) {
            self.by_uid.remove(uid);
        }
    }

    fn note(&self, id: &InstanceId, changed: &mut Changed) {
        match self.get(id) {
            Some(instance) => changed.note(instance),
            None => {
                changed.ids.insert(id.clone());
            }
        }
    }
}

/// What a view tells those who read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// The first answer, the reason why there is none, or an answer after failures: whoever waits
    /// for one is concerned.
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

    fn note(&mut self, instance: &Instance) {
        self.ids.insert(instance.id.clone());
        self.uids.extend(instance.machine_uid().map(str::to_owned));
    }
}

#[cfg(test)]
mod tests;
