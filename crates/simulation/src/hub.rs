//! What do all parts of a world share? The clock, the timeline, the judge, the counters, and who is
//! alive. Everything runs on one thread; a lock is never held over an await.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::{
    clock::Clock,
    effects::{Effect, EffectFate, Interference, NoInterference, Place},
    faults::FaultKind,
    invariants::Judge,
    process::{Incarnation, Processes},
    tally::Tally,
    trace::Trace,
    weather::Weather,
};

/// Shared by everything in a world.
#[derive(Debug)]
pub struct Hub {
    pub clock: Clock,
    trace: Mutex<Trace>,
    judge: Mutex<Judge>,
    tally: Mutex<Tally>,
    weather: Mutex<Weather>,
    interference: Mutex<Box<dyn Interference>>,
    effects: Mutex<u64>,
    processes: Mutex<Processes>,
    /// Told when something changed that the world's actors may care about.
    pub changed: Notify,
    /// Told when an invariant was violated.
    pub violated: Notify,
}

impl Hub {
    #[must_use]
    pub fn new(clock: Clock, judge: Judge, trace_lines: usize) -> Arc<Self> {
        Arc::new(Self {
            clock,
            trace: Mutex::new(Trace::new(clock, trace_lines)),
            judge: Mutex::new(judge),
            tally: Mutex::default(),
            weather: Mutex::default(),
            interference: Mutex::new(Box::new(NoInterference)),
            effects: Mutex::default(),
            processes: Mutex::default(),
            changed: Notify::new(),
            violated: Notify::new(),
        })
    }

    /// Adds a line to the timeline; the subject is a Machine's name, or empty.
    pub fn note(&self, subject: &str, line: impl AsRef<str>) {
        self.trace().note(self.clock.now(), subject, line.as_ref());
    }

    pub fn trace(&self) -> MutexGuard<'_, Trace> {
        lock(&self.trace)
    }

    pub fn judge(&self) -> MutexGuard<'_, Judge> {
        lock(&self.judge)
    }

    pub fn tally(&self) -> MutexGuard<'_, Tally> {
        lock(&self.tally)
    }

    pub fn weather(&self) -> MutexGuard<'_, Weather> {
        lock(&self.weather)
    }

    /// Lets somebody come between effects and their records from now on.
    pub fn interfere(&self, by: impl Interference + 'static) {
        *lock(&self.interference) = Box::new(by);
    }

    /// How many effects there were.
    #[must_use]
    pub fn effects(&self) -> u64 {
        *lock(&self.effects)
    }

    /// What becomes of an effect that is about to happen.
    pub fn fate_of_effect(&self, tag: &str, place: Place, what: &str, target: &str) -> EffectFate {
        let number = {
            let mut effects = lock(&self.effects);
            *effects += 1;
            *effects
        };
        let effect = Effect {
            number,
            tag: tag.to_owned(),
            place,
            what: what.to_owned(),
            target: target.to_owned(),
        };
        let fate = lock(&self.interference).on_effect(&effect);
        if fate != EffectFate::Pass {
            self.note("", format!("fault: {fate:?} at effect {number}: {tag} {what} {target}"));
        }
        fate
    }

    pub fn with_processes<T>(&self, with: impl FnOnce(&mut Processes) -> T) -> T {
        with(&mut lock(&self.processes))
    }

    #[must_use]
    pub fn incarnation(&self, tag: &str) -> Option<Arc<Incarnation>> {
        self.with_processes(|all| all.get(tag))
    }

    /// Notes that an invariant does not hold; the first violation counts.
    pub fn violate(&self, id: &'static str, subject: &str, words: impl Into<String>) {
        let words = words.into();
        self.note(subject, format!("VIOLATION {id}: {words}"));
        self.judge().record(id, subject, self.clock.now(), words);
        self.violated.notify_one();
    }

    /// Tells of everything that the judge found since the last time.
    pub fn publish_violations(&self) {
        let reached = self.judge().take_reached();
        for what in reached {
            self.sometimes(what);
        }
        let found = self.judge().take_found();
        for violation in found {
            self.violate(violation.id, &violation.subject, violation.words);
        }
    }

    /// Counts a fault, for the Machine that it hits or for all there are.
    pub fn count_fault(&self, kind: FaultKind, machine: Option<&str>) {
        let phases = self.judge().phases(machine);
        self.tally().count(kind, &phases);
    }

    /// Counts that an interesting state was reached.
    pub fn sometimes(&self, what: &'static str) {
        self.tally().sometimes(what);
    }
}

pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
