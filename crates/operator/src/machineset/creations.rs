//! How many Machines may the pools of this process make together? What is asked is core's; here are the
//! clock, and what is under way and in no store yet.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::SignedDuration;
use machinist_core::machineset::{Bounds, Ceilings, CreationRate};
use tokio::time::Instant;

use crate::engine::env::Env;

/// The creations of all pools.
#[derive(Debug, Default)]
pub struct Creations {
    ceilings: Ceilings,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    rate: CreationRate,
    /// When the clock of the rate began.
    origin: Option<Instant>,
    under_way: usize,
}

/// Permits to make Machines; given back when the answers are there, and the store shows what was made.
#[derive(Debug)]
pub struct Permits<'a> {
    creations: &'a Creations,
    pub count: usize,
}

impl Creations {
    pub fn new(ceilings: Ceilings) -> Self {
        Self { ceilings, state: Mutex::default() }
    }

    /// What bounds the next creations. `in_all` are all Machines there are, those that cannot be read included.
    pub fn bounds(&self, env: &Env, in_all: usize) -> Bounds {
        let mut state = self.lock();
        let now = state.now(env);
        Bounds {
            ceilings: self.ceilings,
            machines_in_all: in_all + state.under_way,
            permitted: state.rate.permitted(now),
            burst_after: SignedDuration::try_from(state.rate.burst_after(now))
                .unwrap_or(SignedDuration::MAX),
        }
    }

    /// Takes permits for as many Machines as may be made now, at most `wanted`. Two pools that looked at
    /// the same room cannot both have it.
    pub fn take(&self, env: &Env, in_all: usize, wanted: usize) -> Permits<'_> {
        let mut state = self.lock();
        let now = state.now(env);
        let room = self.ceilings.of_all.saturating_sub(in_all + state.under_way);
        let count = state.rate.take(wanted.min(room), now);
        state.under_way += count;
        drop(state);
        Permits { creations: self, count }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn now(&mut self, env: &Env) -> Duration {
        let now = env.instant();
        now.saturating_duration_since(*self.origin.get_or_insert(now))
    }
}

impl Drop for Permits<'_> {
    fn drop(&mut self) {
        let mut state = self.creations.lock();
        state.under_way = state.under_way.saturating_sub(self.count);
    }
}
