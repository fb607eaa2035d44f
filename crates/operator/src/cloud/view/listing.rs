//! When is everything listed, and how is a list demanded that is young enough?

use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};

use machinist_core::cloud::CloudFailure;
use tokio::time::Instant;

use super::{CloudView, failure_of, unanswered};
use crate::cloud::snapshot::{Changed, Snapshot};

/// However many demand a list, the cloud is not asked for one more often than this.
const LIST_SPACING: Duration = Duration::from_secs(1);

/// From when on a list must have been begun to satisfy everybody.
#[derive(Default)]
pub(super) struct Wanted {
    since: Option<Instant>,
}

/// One list, and how it went.
#[derive(Clone, Default)]
pub(super) struct Attempt {
    begun_at: Option<Instant>,
    failure: Option<CloudFailure>,
}

impl CloudView {
    /// The picture, once it has a complete list that was begun no longer ago than `age`. Asked for
    /// before anything is concluded from an absence. Fails when such a list fails: then nothing is
    /// known, least of all that something is gone (Rule 9).
    pub async fn fresh_within(&self, age: Duration) -> Result<Arc<Snapshot>, CloudFailure> {
        let now = self.shared.env.instant();
        let since = now.checked_sub(age).unwrap_or(now);
        let mut attempts = self.shared.attempts.subscribe();
        loop {
            let snapshot = self.snapshot();
            if snapshot.listed_at.is_some_and(|at| at >= since) {
                return Ok(snapshot);
            }
            let attempt = attempts.get_and_see();
            if let (Some(begun_at), Some(failure)) = (attempt.begun_at, attempt.failure)
                && begun_at >= since
            {
                return Err(failure);
            }
            {
                let mut wanted = self.shared.wanted.lock().unwrap_or_else(PoisonError::into_inner);
                wanted.since = wanted.since.max(Some(since));
            }
            self.shared.list_soon.notify_one();
            if attempts.changed().await.is_err() {
                return Err(unanswered());
            }
        }
    }

    pub(super) async fn keep_listing(&self) {
        let shared = &self.shared;
        let mut failures = 0_u32;
        loop {
            let begun_at = shared.env.instant();
            let succeeded = self.list(begun_at).await;
            failures = if succeeded { 0 } else { (failures + 1).min(6) };
            // A refused list is asked for again soon, then less and less often.
            let pause = if succeeded {
                shared.timings.list_period
            } else {
                (Duration::from_secs(1) * 2_u32.pow(failures)).min(shared.timings.list_period)
            };
            let next = shared.env.instant() + shared.env.jitter(pause, 0.1);
            tokio::select! {
                biased;
                () = tokio::time::sleep_until(next) => {}
                () = self.list_is_wanted(begun_at) => {}
            }
        }
    }

    /// Waits until somebody demands a list younger than the last.
    async fn list_is_wanted(&self, last: Instant) {
        loop {
            let since = {
                let mut wanted = self.shared.wanted.lock().unwrap_or_else(PoisonError::into_inner);
                wanted.since = wanted.since.filter(|since| *since > last);
                wanted.since
            };
            if since.is_some() {
                return tokio::time::sleep_until(last + LIST_SPACING).await;
            }
            self.shared.list_soon.notified().await;
        }
    }

    async fn list(&self, begun_at: Instant) -> bool {
        let shared = &self.shared;
        let failure = match shared.provider.list(&shared.cluster_id).await {
            Ok(listed) => {
                let visibility = shared.timings.launch_visibility;
                self.skip_looks(&listed, begun_at);
                self.change(|snapshot| snapshot.replace(listed, begun_at, visibility));
                None
            }
            Err(error) => {
                tracing::warn!(
                    cluster = shared.cluster_id,
                    class = error.class.as_str(),
                    error = %error,
                    "listing instances failed"
                );
                let failure = failure_of(&error);
                // Those who have a picture keep it: later failures change nobody's decision.
                self.change(|snapshot| {
                    snapshot.failure = Some(failure.clone());
                    Changed::default()
                });
                Some(failure)
            }
        };
        let succeeded = failure.is_none();
        shared.attempts.send_replace(Attempt { begun_at: Some(begun_at), failure });
        succeeded
    }
}
