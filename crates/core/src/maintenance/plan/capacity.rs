//! How many machines are out of work at any time, in a pool, a zone or the whole cluster; and when
//! one more may be.
//!
//! A profile is a list of steps. Asking it and adding to it walk over the steps only, so that a plan
//! of many machines stays far from quadratic in the fleet.

use jiff::{SignedDuration, Timestamp};

/// The places that are taken, over time.
#[derive(Clone, Debug)]
pub(super) struct Profile<'a> {
    /// Sorted; the first begins with time itself.
    steps: Vec<Step>,
    /// Who takes a place, for sentences.
    takers: Vec<Taker<'a>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    from: Timestamp,
    taken: usize,
    /// How many of these are of what is out of work without a name.
    nameless: usize,
    /// The smallest limit of those who take a place.
    limit: usize,
}

/// Who takes a place, from when to when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taker<'a> {
    pub(super) name: &'a str,
    pub(super) from: Timestamp,
    pub(super) to: Timestamp,
}

/// No limit of its own: what is broken takes a place and asks nobody.
pub(super) const NO_LIMIT: usize = usize::MAX;

impl Default for Profile<'_> {
    fn default() -> Self {
        let step = Step { from: Timestamp::MIN, taken: 0, nameless: 0, limit: NO_LIMIT };
        Self { steps: vec![step], takers: Vec::new() }
    }
}

impl<'a> Profile<'a> {
    /// Takes a place for somebody who tolerates `limit` in all.
    pub(super) fn take(&mut self, taker: Taker<'a>, limit: usize) {
        self.change(taker.from, taker.to, |step| {
            step.taken = step.taken.saturating_add(1);
            step.limit = step.limit.min(limit);
        });
        self.takers.push(taker);
    }

    /// Takes places for what is out of work without a name.
    pub(super) fn take_nameless(&mut self, from: Timestamp, to: Timestamp, count: usize) {
        self.change(from, to, |step| {
            step.taken = step.taken.saturating_add(count);
            step.nameless = step.nameless.saturating_add(count);
        });
    }

    /// Gives such a place back, where there is one: what others hold by name stays theirs. Says whether
    /// there was one.
    pub(super) fn give_back(&mut self, from: Timestamp, to: Timestamp) -> bool {
        let is_taken = self.steps.get(self.index_at(from)).is_some_and(|step| step.nameless > 0);
        self.change(from, to, |step| {
            if step.nameless > 0 {
                step.nameless -= 1;
                step.taken = step.taken.saturating_sub(1);
            }
        });
        is_taken
    }

    /// The earliest time, not before `from`, at which a place is free for so long.
    pub(super) fn earliest(
        &self,
        from: Timestamp,
        length: SignedDuration,
        limit: usize,
    ) -> Option<Timestamp> {
        let mut start = from;
        for (index, step) in self.steps.iter().enumerate().skip(self.index_at(from)) {
            if !step.has_room(limit) {
                start = self.end_of(index)?;
                continue;
            }
            let end = start.checked_add(length).ok()?;
            if self.end_of(index).is_none_or(|step_end| step_end >= end) {
                return Some(start);
            }
        }
        None
    }

    /// The latest time, not after `until` and not before `from`, at which a place is free for so long.
    pub(super) fn latest(
        &self,
        from: Timestamp,
        until: Timestamp,
        length: SignedDuration,
        limit: usize,
    ) -> Option<Timestamp> {
        let mut end = until.checked_add(length).ok()?;
        let last = self.index_at(end.checked_sub(SignedDuration::from_nanos(1)).ok()?);
        for step in self.steps.iter().take(last + 1).rev() {
            let start = end.checked_sub(length).ok()?;
            if start < from {
                return None;
            }
            if !step.has_room(limit) {
                end = step.from;
                continue;
            }
            if step.from <= start {
                return Some(start);
            }
        }
        None
    }

    /// Who takes a place between two instants, sorted by name.
    pub(super) fn takers_until(&self, from: Timestamp, to: Timestamp) -> Vec<Taker<'a>> {
        let mut takers: Vec<Taker<'a>> = self
            .takers
            .iter()
            .filter(|taker| taker.from < to && taker.to > from)
            .copied()
            .collect();
        takers.sort_by_key(|taker| (taker.name, taker.from));
        takers.dedup_by_key(|taker| taker.name);
        takers
    }

    /// How many places are taken between two instants where it is fullest, and how many may be.
    pub(super) fn fullest(&self, from: Timestamp, to: Timestamp) -> (usize, usize) {
        let steps = self.steps.iter().skip(self.index_at(from)).take_while(|step| step.from < to);
        steps.fold((0, NO_LIMIT), |(taken, limit), step| {
            (taken.max(step.taken), limit.min(step.limit))
        })
    }

    fn change(&mut self, from: Timestamp, to: Timestamp, change: impl Fn(&mut Step)) {
        if to <= from {
            return;
        }
        let first = self.split_at(from);
        let last = self.split_at(to);
        for step in self.steps.iter_mut().take(last).skip(first) {
            change(step);
        }
    }

    /// The index of the step that begins at an instant; makes one where there is none.
    fn split_at(&mut self, at: Timestamp) -> usize {
        let index = self.index_at(at);
        match self.steps.get(index) {
            Some(step) if step.from == at => index,
            Some(step) => {
                let step = Step { from: at, ..*step };
                self.steps.insert(index + 1, step);
                index + 1
            }
            None => index,
        }
    }

    fn index_at(&self, at: Timestamp) -> usize {
        self.steps.partition_point(|step| step.from <= at).saturating_sub(1)
    }

    fn end_of(&self, index: usize) -> Option<Timestamp> {
        self.steps.get(index + 1).map(|step| step.from)
    }
}

impl Step {
    fn has_room(&self, limit: usize) -> bool {
        self.taken < limit.min(self.limit)
    }
}
