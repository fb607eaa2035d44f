//! How the picture of a cloud is kept true: a complete list now and then, a closer look at what is
//! changing, and a confirmation by id before anything is destroyed.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
    time::Duration,
};

use machinist_core::cloud::{CloudFailure, ErrorClass, Instance, InstanceId};
use machinist_providers::{Provider, ProviderError};
use tokio::{
    sync::{Notify, oneshot},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::snapshot::{Changed, News, Snapshot};
use crate::engine::env::Env;

/// How often a view looks.
#[derive(Clone, Copy, Debug)]
pub struct ViewTimings {
    /// Between complete lists.
    pub list_period: Duration,
    /// Between looks at an instance that is changing, at first; the pause grows to `list_period`.
    pub first_look: Duration,
    /// How long after a launch the cloud may not show it.
    pub launch_visibility: Duration,
}

/// Questions that come within this time share one call.
const GATHER: Duration = Duration::from_millis(50);
/// How fast the pause between looks at one instance grows.
const LOOK_GROWTH: f64 = 1.5;

type Answer = Result<Vec<Instance>, CloudFailure>;
pub type Listener = Arc<dyn Fn(&News) + Send + Sync>;

/// The view of one cluster in one region. Clones share it.
#[derive(Clone)]
pub struct CloudView {
    shared: Arc<Shared>,
}

struct Shared {
    cluster_id: String,
    provider: Arc<dyn Provider>,
    env: Env,
    timings: ViewTimings,
    snapshot: RwLock<Arc<Snapshot>>,
    state: Mutex<State>,
    wake: Notify,
    listener: Listener,
    closed: CancellationToken,
}

#[derive(Default)]
struct State {
    looks: BTreeMap<InstanceId, Look>,
    questions: Vec<Question>,
}

struct Look {
    due: Instant,
    pause: Duration,
}

struct Question {
    ids: BTreeSet<InstanceId>,
    answer: oneshot::Sender<Answer>,
}

impl CloudView {
    pub fn new(
        cluster_id: &str,
        provider: Arc<dyn Provider>,
        env: &Env,
        timings: ViewTimings,
        listener: Listener,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                cluster_id: cluster_id.to_owned(),
                provider,
                env: env.clone(),
                timings,
                snapshot: RwLock::default(),
                state: Mutex::default(),
                wake: Notify::new(),
                listener,
                closed: CancellationToken::new(),
            }),
        }
    }

    /// The picture as it is now.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.shared.snapshot.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// What the cloud says of these ids now; what it does not know is left out. Questions of many
    /// machines at once share one call.
    pub async fn confirm(&self, ids: BTreeSet<InstanceId>) -> Answer {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let (answer, receiver) = oneshot::channel();
        self.state().questions.push(Question { ids, answer });
        self.shared.wake.notify_one();
        let answer = tokio::select! {
            biased;
            answer = receiver => answer.ok(),
            () = self.shared.closed.cancelled() => None,
        };
        answer.unwrap_or_else(|| {
            Err(CloudFailure {
                class: ErrorClass::Transient,
                message: "the connection to the cloud was replaced".to_owned(),
            })
        })
    }

    /// Takes in an instance that a launch returned, and keeps an eye on it.
    pub fn learn(&self, instance: Instance) {
        let id = instance.id.clone();
        let now = self.shared.env.instant();
        self.swap(|snapshot| snapshot.launched(instance, now));
        self.watch_closely(id);
    }

    /// Looks soon at an instance that was just acted on.
    pub fn watch_closely(&self, id: InstanceId) {
        let pause = self.shared.timings.first_look;
        let due = self.shared.env.instant() + pause;
        self.state().looks.insert(id, Look { due, pause });
        self.shared.wake.notify_one();
    }

    /// Ends the view's task: another view has taken its place.
    pub fn close(&self) {
        self.shared.closed.cancel();
    }

    /// Keeps the picture true until the view is closed.
    pub async fn run(self) -> anyhow::Result<()> {
        let shared = Arc::clone(&self.shared);
        let mut next_list = shared.env.instant();
        let mut failures = 0_u32;
        loop {
            if shared.env.instant() >= next_list {
                let succeeded = self.list().await;
                failures = if succeeded { 0 } else { (failures + 1).min(6) };
                // A refused list is asked for again soon, then less and less often.
                let pause = if succeeded {
                    shared.timings.list_period
                } else {
                    (Duration::from_secs(1) * 2_u32.pow(failures)).min(shared.timings.list_period)
                };
                next_list = shared.env.instant() + shared.env.jitter(pause, 0.1);
            }
            self.answer_questions().await;
            let next = self.next_look().map_or(next_list, |look| look.min(next_list));
            tokio::select! {
                biased;
                () = shared.closed.cancelled() => return Ok(()),
                () = tokio::time::sleep_until(next) => {}
                () = shared.wake.notified() => {
                    // Others are about to ask the same.
                    shared.env.sleep(GATHER).await;
                }
            }
        }
    }

    async fn list(&self) -> bool {
        let shared = &self.shared;
        let begun_at = shared.env.instant();
        match shared.provider.list(&shared.cluster_id).await {
            Ok(listed) => {
                let visibility = shared.timings.launch_visibility;
                self.swap(|snapshot| snapshot.replace(listed, begun_at, visibility));
                true
            }
            Err(error) => {
                tracing::warn!(
                    cluster = shared.cluster_id,
                    class = error.class.as_str(),
                    error = %error,
                    "listing instances failed"
                );
                let failure = failure_of(&error);
                self.swap(|snapshot| (snapshot.with_failure(failure), Changed::default()));
                // Later failures change nobody's decision: the picture is kept.
                if self.snapshot().listed_at.is_none() {
                    (shared.listener)(&News::ForEverybody);
                }
                false
            }
        }
    }

    /// Describes, in one go, everything that was asked for and every instance due for a look.
    async fn answer_questions(&self) {
        let shared = &self.shared;
        let now = shared.env.instant();
        let (questions, mut ids) = {
            let mut state = self.state();
            let questions = std::mem::take(&mut state.questions);
            let due: BTreeSet<InstanceId> = state
                .looks
                .iter()
                .filter(|(_, look)| look.due <= now + GATHER)
                .map(|(id, _)| id.clone())
                .collect();
            (questions, due)
        };
        ids.extend(questions.iter().flat_map(|question| question.ids.iter().cloned()));
        if ids.is_empty() {
            return;
        }
        let asked: Vec<InstanceId> = ids.iter().cloned().collect();
        let answer = shared.provider.describe(&asked).await;
        self.plan_next_looks(&ids, answer.as_ref().ok());
        if let Ok(found) = &answer {
            self.swap(|snapshot| snapshot.update(found.clone(), now));
        }
        let answer = answer.map_err(|error| failure_of(&error));
        for question in questions {
            let part = answer.clone().map(|found| {
                found.into_iter().filter(|one| question.ids.contains(&one.id)).collect()
            });
            // Whoever asked may be gone.
            question.answer.send(part).ok();
        }
    }

    /// What is still changing is looked at again, after a longer pause each time.
    fn plan_next_looks(&self, asked: &BTreeSet<InstanceId>, found: Option<&Vec<Instance>>) {
        let now = self.shared.env.instant();
        let mut state = self.state();
        for id in asked {
            let instance = found.and_then(|found| found.iter().find(|one| one.id == *id));
            let is_changing = match (found, instance) {
                (Some(_), Some(instance)) => instance.state.is_transitional(),
                // Not visible yet, or no answer: only worth another look if it was being watched.
                (Some(_), None) | (None, _) => state.looks.contains_key(id),
            };
            let known = state.looks.remove(id);
            if is_changing {
                let first = self.shared.timings.first_look;
                let pause = known.map_or(first, |look| look.pause.mul_f64(LOOK_GROWTH));
                // Past the list's period the list itself is enough.
                if pause < self.shared.timings.list_period {
                    state.looks.insert(id.clone(), Look { due: now + pause, pause });
                }
            }
        }
    }

    fn swap(&self, change: impl FnOnce(&Snapshot) -> (Snapshot, Changed)) {
        let (changed, is_first) = {
            let mut current = self.shared.snapshot.write().unwrap_or_else(PoisonError::into_inner);
            let (next, changed) = change(&current);
            let is_first = current.listed_at.is_none() && next.listed_at.is_some();
            *current = Arc::new(next);
            (changed, is_first)
        };
        if is_first {
            (self.shared.listener)(&News::ForEverybody);
        } else if !changed.is_empty() {
            (self.shared.listener)(&News::About(changed));
        }
    }

    fn next_look(&self) -> Option<Instant> {
        self.state().looks.values().map(|look| look.due).min()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A provider's error as decisions see it.
pub fn failure_of(error: &ProviderError) -> CloudFailure {
    CloudFailure { class: error.class, message: error.message.clone() }
}

#[cfg(test)]
mod tests;
