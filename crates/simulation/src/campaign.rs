//! How are many worlds run? Side by side on a few threads, each world on one of them alone, in the order
//! of their numbers as far as possible, until all are done or the time is over.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

use crate::{
    faults::Level,
    recording::Recipe,
    report::Summary,
    swarm::Plan,
    world::{self, RunReport},
};

/// How much is run, and when it ends early.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// How many worlds run at the same time.
    pub threads: usize,
    /// For how long worlds are begun.
    pub limit: Option<Duration>,
    /// Whether the rest is run after a broken promise.
    pub keep_going: bool,
}

impl Campaign {
    /// Runs the seeds of a range; tells of each broken promise as it is found.
    pub fn run_seeds(
        &self,
        seeds: std::ops::Range<u64>,
        level: Level,
        tell: impl Fn(&Recipe, &RunReport) + Sync,
    ) -> Summary {
        let recipes = seeds.map(|seed| Recipe::Seed { seed, level });
        self.run(recipes, tell)
    }

    /// Runs whatever is to be run.
    pub fn run(
        &self,
        recipes: impl IntoIterator<Item = Recipe, IntoIter: Send>,
        tell: impl Fn(&Recipe, &RunReport) + Sync,
    ) -> Summary {
        let begun = Instant::now();
        let left = Mutex::new(recipes.into_iter());
        let summary = Mutex::new(Summary::default());
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..self.threads.max(1) {
                scope.spawn(|| {
                    loop {
                        let is_late = self.limit.is_some_and(|limit| begun.elapsed() >= limit);
                        if is_late || is_over.load(Ordering::Relaxed) {
                            return;
                        }
                        let next = left.lock().unwrap_or_else(PoisonError::into_inner).next();
                        let Some(recipe) = next else { return };
                        let report = recipe.run(false);
                        if report.violation.is_some() {
                            tell(&recipe, &report);
                            is_over.store(!self.keep_going, Ordering::Relaxed);
                        }
                        summary.lock().unwrap_or_else(PoisonError::into_inner).add(&report);
                    }
                });
            }
        });
        summary.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The seeds of a sample that do not give the same trace twice; the two at the same time, so that what
/// they share by mistake shows.
#[must_use]
pub fn undetermined(sample: &[u64], level: Level) -> Vec<u64> {
    let fingerprint = |seed: u64| world::run(&Plan::draw(seed, level), false).fingerprint;
    let is_same = |seed: u64| {
        std::thread::scope(|scope| {
            let other = scope.spawn(|| fingerprint(seed));
            Some(fingerprint(seed)) == other.join().ok()
        })
    };
    sample.iter().copied().filter(|seed| !is_same(*seed)).collect()
}
