//! Which object is looked at next?
//!
//! A keyed work queue: a key is queued at most once, runs at most once at a time (invariant R5), and runs again
//! when it was added during its run. Keys that fail wait with capped exponential backoff (R3)
//! while all others go on. Everything is ordered (FIFO, ordered maps, tokio time), so a run replays.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt::Display,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::stream::{FuturesUnordered, StreamExt};
use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{backoff::Backoff, env::Env, leadership::Leadership};
use crate::metrics::{Metrics, QueueMetrics};

/// The delays between retries of a failing key. Half a second absorbs a conflict; five minutes keeps a
/// broken fleet from loading the API server, and a fix is noticed sooner anyway, by its watch event.
pub const RETRY: Backoff =
    Backoff { base: Duration::from_millis(500), cap: Duration::from_secs(5 * 60) };

/// How a run for a key ended.
#[derive(Debug)]
pub enum Outcome {
    /// Nothing more to do until something changes.
    Settled,
    /// Nothing more to do now; the answer can change by the passing of time alone.
    RecheckAfter(Duration),
    /// The run could not be finished; it is repeated with backoff.
    Failed(anyhow::Error),
}

impl From<anyhow::Result<Self>> for Outcome {
    fn from(result: anyhow::Result<Self>) -> Self {
        result.unwrap_or_else(Self::Failed)
    }
}

/// A queue of keys that need a look. Clones share the same queue.
#[derive(Debug)]
pub struct Queue<K> {
    shared: Arc<Shared<K>>,
}

#[derive(Debug)]
struct Shared<K> {
    name: String,
    env: Env,
    metrics: QueueMetrics,
    state: Mutex<State<K>>,
    changed: Notify,
}

#[derive(Debug)]
struct State<K> {
    /// Keys to run now, first come first served.
    ready: VecDeque<K>,
    /// The same keys, and since when.
    queued: BTreeMap<K, Instant>,
    running: BTreeSet<K>,
    /// Keys that were added while running.
    again: BTreeSet<K>,
    /// Keys to run later, by due time, then by the order of asking.
    delayed: BTreeMap<(Instant, u64), K>,
    due: BTreeMap<K, (Instant, u64)>,
    asked: u64,
    /// Failures in a row.
    failures: BTreeMap<K, u32>,
}

impl<K> Clone for Queue<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<K: Ord + Clone + Display> Queue<K> {
    /// Makes an empty queue. The name labels its metrics and log lines.
    #[must_use]
    pub fn new(name: impl Into<String>, env: &Env, metrics: &Metrics) -> Self {
        let name = name.into();
        let state = State {
            ready: VecDeque::new(),
            queued: BTreeMap::new(),
            running: BTreeSet::new(),
            again: BTreeSet::new(),
            delayed: BTreeMap::new(),
            due: BTreeMap::new(),
            asked: 0,
            failures: BTreeMap::new(),
        };
        Self {
            shared: Arc::new(Shared {
                metrics: metrics.queue(&name, env),
                name,
                env: env.clone(),
                state: Mutex::new(state),
                changed: Notify::new(),
            }),
        }
    }

    /// Asks for a run of `key` as soon as possible.
    pub fn add(&self, key: K) {
        let added = self.lock().add(key, self.shared.env.instant());
        if added {
            self.shared.metrics.adds.inc();
            self.publish_depth();
            self.shared.changed.notify_one();
        }
    }

    /// Asks for a run of `key` after `delay`, or earlier if an earlier one is already due.
    ///
    /// A run in the meantime does not cancel it: who asked for a look at that time shall get it.
    pub fn add_after(&self, key: K, delay: Duration) {
        if delay.is_zero() {
            return self.add(key);
        }
        let Some(at) = self.shared.env.instant().checked_add(delay) else { return };
        self.lock().add_at(key, at);
        self.shared.changed.notify_one();
    }

    /// Returns how many keys are ready to run and not yet running.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.lock().ready.len()
    }

    /// Runs `handler` for the keys, at most `concurrency` at once, until `stopping` is cancelled; then
    /// finishes the runs under way and returns.
    ///
    /// No run starts unless `leadership` is held. All runs share the caller's task, so a panic in one
    /// is a panic of the task, and the supervisor ends the process.
    ///
    /// # Errors
    /// Never fails; it returns a result to fit the supervisor.
    pub async fn run<H, F>(
        self,
        mut leadership: Leadership,
        stopping: CancellationToken,
        concurrency: usize,
        handler: H,
    ) -> anyhow::Result<()>
    where
        H: Fn(K) -> F,
        F: Future<Output = Outcome>,
    {
        let concurrency = concurrency.max(1);
        self.shared.metrics.set_concurrency(concurrency);
        let mut runs = FuturesUnordered::new();
        loop {
            // Also when nothing may start: a due time left in the past would turn this loop hot.
            self.promote_due();
            while runs.len() < concurrency && !stopping.is_cancelled() && leadership.is_held() {
                let Some((key, waited)) = self.take() else { break };
                let started = self.shared.env.instant();
                let measured = self.shared.metrics.began(started, waited);
                let run = handler(key.clone());
                runs.push(async move { (key, started, measured, run.await) });
            }
            if stopping.is_cancelled() && runs.is_empty() {
                return Ok(());
            }
            let next_due = self.next_due();
            tokio::select! {
                biased;
                Some((key, started, measured, outcome)) = runs.next(), if !runs.is_empty() => {
                    let took = self.shared.env.instant().saturating_duration_since(started);
                    self.shared.metrics.finished(&measured, &outcome, took);
                    self.finish(key, outcome);
                }
                () = stopping.cancelled(), if !stopping.is_cancelled() => {}
                () = leadership.changed() => {}
                () = self.shared.changed.notified() => {}
                () = sleep_until(next_due) => {}
            }
        }
    }

    /// Takes the next key to run and marks it running. Also returns how long it waited.
    fn take(&self) -> Option<(K, Duration)> {
        let now = self.shared.env.instant();
        let mut state = self.lock();
        let key = state.ready.pop_front()?;
        let since = state.queued.remove(&key).unwrap_or(now);
        state.running.insert(key.clone());
        drop(state);
        self.publish_depth();
        Some((key, now.saturating_duration_since(since)))
    }

    fn promote_due(&self) {
        let added = self.lock().promote_due(self.shared.env.instant());
        if added > 0 {
            self.shared.metrics.adds.inc_by(added);
            self.publish_depth();
        }
    }

    fn finish(&self, key: K, outcome: Outcome) {
        let Shared { env, metrics, name, .. } = &*self.shared;
        let mut state = self.lock();
        state.running.remove(&key);
        match outcome {
            Outcome::Settled => {
                state.failures.remove(&key);
            }
            Outcome::RecheckAfter(delay) => {
                state.failures.remove(&key);
                if let Some(at) = env.instant().checked_add(delay) {
                    state.add_at(key.clone(), at);
                }
            }
            Outcome::Failed(error) => {
                let failures = state.failures.entry(key.clone()).or_default();
                *failures = failures.saturating_add(1);
                let (failures, delay) = (*failures, RETRY.delay(*failures, env));
                tracing::warn!(
                    controller = name,
                    %key,
                    failures,
                    retry_in_seconds = delay.as_secs_f64(),
                    error = format!("{error:#}"),
                    "run failed"
                );
                metrics.retries.inc();
                state.add_at(key.clone(), env.instant() + delay);
            }
        }
        if state.again.remove(&key) {
            state.add(key, env.instant());
        }
        drop(state);
        self.publish_depth();
    }

    fn next_due(&self) -> Option<Instant> {
        self.lock().delayed.first_key_value().map(|((at, _), _)| *at)
    }

    fn publish_depth(&self) {
        self.shared.metrics.depth.set(i64::try_from(self.depth()).unwrap_or(i64::MAX));
    }

    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Ord + Clone> State<K> {
    /// Queues the key, or notes that it must run again. Returns whether that changed anything.
    fn add(&mut self, key: K, now: Instant) -> bool {
        if self.running.contains(&key) {
            return self.again.insert(key);
        }
        if self.queued.contains_key(&key) {
            return false;
        }
        self.queued.insert(key.clone(), now);
        self.ready.push_back(key);
        true
    }

    fn add_at(&mut self, key: K, at: Instant) {
        if let Some(due) = self.due.get(&key) {
            if due.0 <= at {
                return;
            }
            self.delayed.remove(due);
        }
        self.asked += 1;
        let due = (at, self.asked);
        self.due.insert(key.clone(), due);
        self.delayed.insert(due, key);
    }

    /// Moves the keys whose time has come to the ready ones. Returns how many were added.
    fn promote_due(&mut self, now: Instant) -> u64 {
        let mut added = 0;
        while let Some(entry) = self.delayed.first_entry() {
            if entry.key().0 > now {
                break;
            }
            let key = entry.remove();
            self.due.remove(&key);
            added += u64::from(self.add(key, now));
        }
        added
    }
}

/// Waits until a time, or for ever when there is none.
async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
