//! How many Machines may there be, and how quickly may they be made?
//!
//! A typing error, a loop of two programs or a defect of ours must not order a thousand instances.
//! Only what is made is bounded here: nothing is ever deleted because of a ceiling.

use std::time::Duration;

use jiff::SignedDuration;
use machinist_api::names::{error_reason, reason};

use super::observed::ScalingFailure;

/// How many Machines a pool makes at once when their number is bounded by time: each burst costs a
/// list, so they are not made one by one.
const BURST: usize = 20;

/// Machines that may be made at once after a quiet time. A pool that is scaled by hand never notices
/// the rate; whatever runs away is slowed down after this many.
const RESERVE_MAX: f64 = 500.0;

/// Machines in a second after that. Clouds launch more slowly.
const RATE: f64 = 20.0;

/// When to look again for room that another pool may have left.
const ROOM_RECHECK: SignedDuration = SignedDuration::from_secs(30);

/// The most Machines that there may be, those that are going included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ceilings {
    pub of_one_set: usize,
    pub of_all: usize,
}

impl Default for Ceilings {
    /// Kubernetes itself is made for 5000 Nodes.
    fn default() -> Self {
        Self { of_one_set: 2000, of_all: 5000 }
    }
}

/// What bounds the making of Machines at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    pub ceilings: Ceilings,
    /// All Machines there are, and those that are just being made.
    pub machines_in_all: usize,
    /// How many the rate permits now.
    pub permitted: usize,
    /// How long until it permits another burst.
    pub burst_after: SignedDuration,
}

/// How many Machines a pool may make now, and why not all that it misses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowance {
    pub count: usize,
    /// A ceiling is in the way: a person has to raise it or to want less.
    pub refusal: Option<ScalingFailure>,
    /// When the answer can change without an event of the pool's own.
    pub again_after: Option<SignedDuration>,
}

/// `owned` are the Machines with the pool's owner reference, whatever else is true of them: a Machine
/// whose labels were changed, or that is going, is still an instance.
pub fn allow(replicas: usize, missing: usize, owned: usize, bounds: &Bounds) -> Allowance {
    let Ceilings { of_one_set, of_all } = bounds.ceilings;
    if replicas > of_one_set {
        return refused(
            0,
            reason::TOO_MANY_MACHINES,
            format!(
                "spec.replicas: Invalid value: {replicas}: must be less than or equal to {of_one_set}, \
                 the operator's --max-machines-per-set; no machine is made and none is deleted"
            ),
        );
    }
    let room_of_set = of_one_set.saturating_sub(owned);
    let room_of_all = of_all.saturating_sub(bounds.machines_in_all);
    let room = room_of_set.min(room_of_all);
    let wanted = missing.min(room);
    let paced = pace(wanted, bounds);
    if missing <= room {
        return paced;
    }
    let missing = missing - room;
    let message = if room_of_all <= room_of_set {
        format!(
            "spec.replicas: Forbidden: {missing} machines cannot be made: there are as many machines \
             as there may be, {of_all}, the operator's --max-machines"
        )
    } else {
        format!(
            "spec.replicas: Forbidden: {missing} machines cannot be made before others are gone: the \
             set owns as many as it may, {of_one_set}, the operator's --max-machines-per-set"
        )
    };
    let refusal = refused(paced.count, reason::CEILING_REACHED, message);
    let again_after = paced.again_after.map_or(ROOM_RECHECK, |after| after.min(ROOM_RECHECK));
    Allowance { again_after: Some(again_after), ..refusal }
}

fn pace(wanted: usize, bounds: &Bounds) -> Allowance {
    let burst = wanted.min(BURST);
    if wanted <= bounds.permitted {
        return Allowance { count: wanted, ..Allowance::default() };
    }
    let count = if bounds.permitted >= burst { bounds.permitted } else { 0 };
    Allowance { count, again_after: Some(bounds.burst_after), ..Allowance::default() }
}

fn refused(count: usize, reason: &'static str, message: String) -> Allowance {
    let error_reason = error_reason::INVALID_CONFIGURATION;
    Allowance {
        count,
        refusal: Some(ScalingFailure { reason, error_reason, message }),
        again_after: None,
    }
}

/// The rate of one operator for all its pools. Time is the time since any fixed moment of a clock that
/// never goes back.
#[derive(Clone, Debug)]
pub struct CreationRate {
    reserve: f64,
    filled_at: Duration,
}

impl Default for CreationRate {
    fn default() -> Self {
        Self { reserve: RESERVE_MAX, filled_at: Duration::ZERO }
    }
}

impl CreationRate {
    pub fn permitted(&self, now: Duration) -> usize {
        // Not negative, and far below what a float holds exactly.
        self.at(now).floor().max(0.0) as usize
    }

    /// How long until another burst is permitted.
    pub fn burst_after(&self, now: Duration) -> Duration {
        let missing = (BURST as f64 - self.at(now)).max(0.0);
        Duration::from_secs_f64(missing / RATE)
    }

    /// Takes as many as are wanted and permitted, and returns how many.
    pub fn take(&mut self, wanted: usize, now: Duration) -> usize {
        let taken = wanted.min(self.permitted(now));
        self.reserve = self.at(now) - taken as f64;
        self.filled_at = self.filled_at.max(now);
        taken
    }

    fn at(&self, now: Duration) -> f64 {
        let elapsed = now.saturating_sub(self.filled_at).as_secs_f64();
        (self.reserve + elapsed * RATE).min(RESERVE_MAX)
    }
}
