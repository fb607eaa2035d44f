//! What does one read of instances see? The truth, unless a fault puts something between.
//!
//! Every read draws one view: perhaps a copy of the table that is a little old, perhaps with some
//! instances left out. Each page of a list is a read of its own, and so are a lookup by id and one by
//! filter; that they can disagree follows from it.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::{Cloud, instance::Instance, random::Randomness, time::later};

/// How many old copies of the table are kept over the longest lag.
const REPLICAS_MAX: i32 = 8;

/// An instance that reads leave out, though it is there and calls that change it find it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Hidden {
    pub instance_id: String,
    /// How long; without it, until it is shown again.
    #[serde(default, rename = "for")]
    pub lasting: Option<SignedDuration>,
    /// From how many reads that ask for it at most.
    #[serde(default)]
    pub count: Option<u32>,
    /// Until when; `for` says the same from now on.
    #[serde(default)]
    pub until: Option<Timestamp>,
}

/// The chance that a read leaves an instance out, for each instance and read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Omissions {
    /// Asked for by id: the answer is InvalidInstanceID.NotFound.
    pub by_id: f64,
    /// In a list.
    pub by_filter: f64,
}

/// Reads that answer from an old copy of the table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StaleReads {
    /// How old the copy is at most.
    pub lag: SignedDuration,
    /// Which share of the reads.
    pub probability: f64,
}

/// What EC2 does not promise about lists.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PageFaults {
    /// Each page comes in any order.
    pub shuffled: bool,
    /// Pages hold fewer than they could, down to none, and say that there is more.
    pub short: bool,
}

/// What other stand-ins for EC2 make of a filter that they do not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FilterAnswer {
    Everything,
    Nothing,
}

pub(super) type Table = BTreeMap<String, Instance>;

/// A copy of all instances as of a time.
#[derive(Debug, Clone)]
pub(super) struct Replica {
    taken_at: Timestamp,
    instances: Arc<Table>,
}

/// What one read sees.
#[derive(Debug, Clone, Default)]
pub(super) struct View {
    replica: Option<Arc<Table>>,
    omitted: BTreeSet<String>,
}

impl View {
    pub(super) fn get<'a>(
        &'a self,
        truth: &'a Table,
        now: Timestamp,
        id: &str,
    ) -> Option<&'a Instance> {
        self.table(truth).get(id).filter(|instance| self.shows(instance, now))
    }

    pub(super) fn all<'a>(
        &'a self,
        truth: &'a Table,
        now: Timestamp,
    ) -> impl Iterator<Item = &'a Instance> {
        self.table(truth).values().filter(move |instance| self.shows(instance, now))
    }

    fn table<'a>(&'a self, truth: &'a Table) -> &'a Table {
        self.replica.as_deref().unwrap_or(truth)
    }

    fn shows(&self, instance: &Instance, now: Timestamp) -> bool {
        instance.visible_from <= now && !self.omitted.contains(&instance.id)
    }
}

impl Hidden {
    /// Starts the clock of an entry that a caller brings.
    pub(super) fn beginning(self, now: Timestamp) -> Self {
        let until = self.lasting.map(|lasting| later(now, lasting)).or(self.until);
        Self { until, ..self }
    }

    fn holds(&self, now: Timestamp) -> bool {
        self.until.is_none_or(|until| now < until) && self.count != Some(0)
    }
}

impl Cloud {
    /// Draws what a read sees; no ids means a list.
    pub(super) fn draw_view(&mut self, now: Timestamp, ids: &[String]) -> View {
        let mut view = View::default();
        self.faults.hidden.retain(|hidden| hidden.holds(now));
        for hidden in &mut self.faults.hidden {
            let id = &hidden.instance_id;
            let is_asked_for = ids.is_empty() || ids.contains(id);
            if is_asked_for && self.instances.contains_key(id) {
                view.omitted.insert(id.clone());
                if let Some(count) = &mut hidden.count {
                    *count -= 1;
                }
            }
        }
        if let Some(omissions) = &self.faults.omissions {
            let mut omit = |id: &String, probability: f64, randomness: &mut Randomness| {
                if probability > 0.0 && randomness.strikes(probability) {
                    view.omitted.insert(id.clone());
                }
            };
            if ids.is_empty() {
                for id in self.instances.keys() {
                    omit(id, omissions.by_filter, &mut self.randomness);
                }
            }
            for id in ids {
                omit(id, omissions.by_id, &mut self.randomness);
            }
        }
        if let Some(stale) = &self.faults.stale_reads
            && self.randomness.strikes(stale.probability)
        {
            let choice = self.randomness.fault_below(self.replicas.len() as u64);
            let replica = usize::try_from(choice).ok().and_then(|index| self.replicas.get(index));
            view.replica = replica.map(|replica| Arc::clone(&replica.instances));
        }
        view
    }

    /// Keeps copies of the table for stale reads: few, so that they cost little whatever the fleet.
    pub(super) fn refresh_replicas(&mut self, now: Timestamp) {
        let Some(stale) = &self.faults.stale_reads else {
            self.replicas = VecDeque::new();
            return;
        };
        self.replicas.retain(|replica| now.duration_since(replica.taken_at) <= stale.lag);
        let is_due = self
            .replicas
            .back()
            .is_none_or(|newest| now.duration_since(newest.taken_at) >= stale.lag / REPLICAS_MAX);
        if is_due {
            let instances = Arc::new(self.instances.clone());
            self.replicas.push_back(Replica { taken_at: now, instances });
        }
    }

    /// Returns how many entries the next page may have at most; none means as many as were asked
    /// for.
    pub(super) fn draw_page_limit(&mut self) -> Option<usize> {
        let is_short = self.faults.pages.as_ref().is_some_and(|pages| pages.short);
        is_short.then(|| usize::try_from(self.randomness.fault_below(6)).unwrap_or(1))
    }

    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        if !self.faults.pages.as_ref().is_some_and(|pages| pages.shuffled) {
            return;
        }
        for last in (1..items.len()).rev() {
            let other = self.randomness.fault_below(last as u64 + 1);
            items.swap(last, usize::try_from(other).unwrap_or(last));
        }
    }
}
