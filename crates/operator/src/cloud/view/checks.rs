//! When are the provider's own checks and its calendar asked for, and what if they may not be?

use std::time::Duration;

use machinist_providers::ProviderError;

use super::CloudView;
use crate::cloud::snapshot::{Changed, Reports};

/// A permission that is missing may be granted: asked again after so many periods, ten minutes
/// unless a flag says otherwise. Doubled, the operator notices the grant that much later.
const PERIODS_AFTER_REFUSAL: u32 = 10;

/// After so many failures in a row what was last said no longer counts.
const FAILURES_BEARABLE: u32 = 3;

/// Reports that are asked for early come no faster than this.
const REPORT_SPACING: Duration = Duration::from_secs(5);

impl CloudView {
    /// Asks for the reports soon: something was heard that they will tell more of.
    pub fn ask_for_reports(&self) {
        self.shared.report_soon.notify_one();
    }

    /// Whether there is an answer that was asked for no longer ago than `age`; waits for one as long as
    /// `patience` lasts. A question that fails ends the wait.
    pub async fn reports_within(&self, age: Duration, patience: Duration) -> bool {
        let shared = &self.shared;
        let now = shared.env.instant();
        let since = now.checked_sub(age).unwrap_or(now);
        let mut attempts = shared.report_attempts.subscribe();
        let answered = async {
            loop {
                let snapshot = self.snapshot();
                if matches!(snapshot.reports, Reports::Known(_))
                    && snapshot.reported_at.is_some_and(|at| at >= since)
                {
                    return true;
                }
                if attempts.get_and_see().is_some_and(|at| at >= since) {
                    return false;
                }
                self.ask_for_reports();
                if attempts.changed().await.is_err() {
                    return false;
                }
            }
        };
        tokio::select! {
            biased;
            answer = answered => answer,
            () = shared.env.sleep(patience) => false,
        }
    }

    pub(super) async fn keep_checking(&self) {
        let shared = &self.shared;
        // Whose instance it is, only a list tells; a failed one does not matter here.
        let mut attempts = shared.attempts.subscribe();
        while self.snapshot().listed_at.is_none() {
            if attempts.changed().await.is_err() {
                return;
            }
        }
        let mut failures = 0_u32;
        loop {
            let begun_at = shared.env.instant();
            let pause = match shared.provider.reports().await {
                Ok(reports) => {
                    failures = 0;
                    self.change(|snapshot| snapshot.report(reports, begun_at));
                    shared.timings.report_period
                }
                Err(error) => {
                    failures = failures.saturating_add(1);
                    self.take_failure(&error, failures)
                }
            };
            shared.report_attempts.send_replace(Some(begun_at));
            let next = shared.env.instant() + shared.env.jitter(pause, 0.1);
            tokio::select! {
                biased;
                () = tokio::time::sleep_until(next) => {}
                () = shared.report_soon.notified() => {
                    tokio::time::sleep_until(begun_at + REPORT_SPACING).await;
                }
            }
        }
    }

    /// Returns how long to wait.
    fn take_failure(&self, error: &ProviderError, failures: u32) -> Duration {
        let cluster = &self.shared.cluster_id;
        tracing::warn!(
            cluster,
            class = error.class.as_str(),
            error = %error,
            "asking for the provider's checks failed"
        );
        if let Some(permission) = &error.missing_permission {
            let reports = Reports::Missing { permission: permission.clone() };
            self.change(|snapshot| {
                snapshot.reports = reports;
                Changed::default()
            });
            return self.shared.timings.report_period * PERIODS_AFTER_REFUSAL;
        }
        let is_known = matches!(self.snapshot().reports, Reports::Known(_));
        if !is_known || failures >= FAILURES_BEARABLE {
            let reports = Reports::Failed { message: error.message.clone() };
            self.change(|snapshot| {
                snapshot.reports = reports;
                Changed::default()
            });
        }
        self.shared.timings.report_period
    }
}
