//! How the picture of a cloud is kept true: a complete list now and then (`listing`), a closer look
//! at what is changing and a confirmation by id before anything is destroyed (`looks`), and the
//! provider's own checks (`checks`).

mod checks;
mod listing;
mod looks;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak},
    time::Duration,
};

use jiff::Timestamp;
use machinist_core::{
    cloud::{CloudFailure, ErrorClass, Instance, InstanceId},
    maintenance::event::Sighting,
};
use machinist_providers::{Provider, ProviderError};
use tokio::{sync::Notify, time::Instant};

use self::{
    listing::{Attempt, Wanted},
    looks::Looks,
};
use super::{
    pace::Pace,
    snapshot::{Changed, News, Snapshot},
};
use crate::engine::{env::Env, latest};

/// How often a view looks.
#[derive(Clone, Copy, Debug)]
pub struct ViewTimings {
    /// Between complete lists.
    pub list_period: Duration,
    /// Between looks at an instance that is changing, at first; the pause grows to `list_period`.
    pub first_look: Duration,
    /// Between questions for the provider's own checks and its calendar.
    pub report_period: Duration,
    /// How long after a launch the cloud may not show it.
    pub launch_visibility: Duration,
}

impl Default for ViewTimings {
    fn default() -> Self {
        Self {
            list_period: Duration::from_secs(30),
            first_look: Duration::from_secs(2),
            report_period: Duration::from_secs(60),
            launch_visibility: Duration::from_secs(60),
        }
    }
}

pub type Listener = Arc<dyn Fn(&News) + Send + Sync>;

/// The view of one cluster in one region. Clones share it.
#[derive(Clone)]
pub struct CloudView {
    shared: Arc<Shared>,
}

/// A view, for whoever the view itself holds.
pub struct WeakView {
    shared: Weak<Shared>,
}

impl WeakView {
    pub fn upgrade(&self) -> Option<CloudView> {
        self.shared.upgrade().map(|shared| CloudView { shared })
    }
}

struct Shared {
    cluster_id: String,
    provider: Arc<dyn Provider>,
    pace: Arc<Pace>,
    env: Env,
    timings: ViewTimings,
    snapshot: RwLock<Arc<Snapshot>>,
    wanted: Mutex<Wanted>,
    /// Told when a list is wanted before its time.
    list_soon: Notify,
    /// How the last list went.
    attempts: latest::Sender<Attempt>,
    looks: Mutex<Looks>,
    /// Told when somebody asks by id.
    look_soon: Notify,
    /// Told when reports are wanted before their time.
    report_soon: Notify,
    /// When the last question for reports was asked, whatever came of it.
    report_attempts: latest::Sender<Option<Instant>>,
    listener: Listener,
}

impl CloudView {
    pub fn new(
        cluster_id: &str,
        provider: Arc<dyn Provider>,
        pace: &Arc<Pace>,
        env: &Env,
        timings: ViewTimings,
        listener: Listener,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                cluster_id: cluster_id.to_owned(),
                provider,
                pace: Arc::clone(pace),
                env: env.clone(),
                timings,
                snapshot: RwLock::default(),
                wanted: Mutex::default(),
                list_soon: Notify::new(),
                attempts: latest::Sender::default(),
                looks: Mutex::default(),
                look_soon: Notify::new(),
                report_soon: Notify::new(),
                report_attempts: latest::Sender::default(),
                listener,
            }),
        }
    }

    pub fn downgrade(&self) -> WeakView {
        WeakView { shared: Arc::downgrade(&self.shared) }
    }

    /// The picture as it is now.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.shared.snapshot.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes in an instance that a launch returned, and keeps an eye on it.
    pub fn learn(&self, instance: Instance) {
        let id = instance.id.clone();
        let now = self.shared.env.instant();
        self.change(|snapshot| snapshot.launched(instance, now));
        self.watch_closely(id);
    }

    /// Takes in the notice that an instance will be taken back then.
    pub fn interrupt(&self, id: &InstanceId, at: Timestamp) {
        self.change(|snapshot| snapshot.interrupt(id, at));
    }

    /// Takes in the notice that an event is scheduled, moved or over.
    pub fn hear(&self, sighting: Sighting) {
        self.change(|snapshot| snapshot.hear(sighting));
    }

    /// Keeps the picture true for as long as the process runs.
    pub async fn run(self) -> anyhow::Result<()> {
        // Side by side: a list of many pages must not hold up a confirmation.
        tokio::select! {
            biased;
            () = self.keep_listing() => {}
            () = self.keep_looking() => {}
            () = self.keep_checking() => {}
        }
        Ok(())
    }

    /// Changes the picture and tells whom it concerns.
    fn change(&self, change: impl FnOnce(&mut Snapshot) -> Changed) {
        let news = {
            let mut current = self.shared.snapshot.write().unwrap_or_else(PoisonError::into_inner);
            // Those who hold the old picture keep it; what did not change is shared with it.
            let mut next = Snapshot::clone(&current);
            let changed = change(&mut next);
            let is_new = is_answer_for_everybody(&current, &next);
            *current = Arc::new(next);
            if is_new { Some(News::ForEverybody) } else { about(changed) }
        };
        if let Some(news) = news {
            (self.shared.listener)(&news);
        }
    }

    fn looks(&self) -> MutexGuard<'_, Looks> {
        self.shared.looks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn about(changed: Changed) -> Option<News> {
    (!changed.is_empty()).then_some(News::About(changed))
}

/// Whether those concern everybody who waits for an answer: the first list or the reason why there
/// is none, a list after failures, and checks that came or went altogether.
fn is_answer_for_everybody(before: &Snapshot, after: &Snapshot) -> bool {
    let is_first = before.listed_at.is_none()
        && (after.listed_at.is_some() || after.failure != before.failure);
    let is_back = before.failure.is_some() && after.failure.is_none();
    let reports_turned =
        std::mem::discriminant(&before.reports) != std::mem::discriminant(&after.reports);
    is_first || is_back || reports_turned
}

/// A provider's error as decisions see it.
pub fn failure_of(error: &ProviderError) -> CloudFailure {
    CloudFailure { class: error.class, message: error.message.clone() }
}

/// For a question that nobody answers any more: the process is ending.
fn unanswered() -> CloudFailure {
    CloudFailure {
        class: ErrorClass::Transient,
        message: "the view of the cloud has ended".to_owned(),
    }
}

#[cfg(test)]
mod tests;
