//! May we take or keep this lease?
//!
//! The rules of client-go's leader election, as a pure function. Whether a holder is still alive is judged by when
//! *we* saw its record change, on our own monotonic clock; the times written in the record are for people. A
//! holder whose clock is wrong can therefore neither lose its lease too early nor keep it too long.

use std::time::Duration;

use jiff::Timestamp;
use machinist_api::openshift_config::Infrastructure;

/// How long a lease lasts and how often it is renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTimings {
    /// How long others wait after the last renewal that they saw.
    pub duration: Duration,
    /// How long the holder goes on without a successful renewal before it gives up.
    pub renew_deadline: Duration,
    /// The time between attempts to acquire or renew.
    pub retry_period: Duration,
}

impl LeaseTimings {
    /// The timings of the original `machine-api-operator`.
    pub const MACHINE_API_OPERATOR: Self = Self::of_seconds(137, 107, 26);
    /// The same where the control plane is one node: whenever its API server is replaced there is none
    /// for a while, and nobody else who could take over.
    pub const MACHINE_API_OPERATOR_ON_ONE_NODE: Self = Self::of_seconds(270, 240, 60);
    /// The timings of the original machine controllers.
    pub const MACHINE_CONTROLLERS: Self = Self::of_seconds(120, 110, 20);

    /// The timings of the original `machine-api-operator` in this cluster; without Infrastructure it is
    /// not OpenShift.
    #[must_use]
    pub fn of_operator(infrastructure: Option<&Infrastructure>) -> Self {
        let status = infrastructure.and_then(|known| known.status.as_ref());
        match status.and_then(|status| status.control_plane_topology.as_deref()) {
            Some("SingleReplica") => Self::MACHINE_API_OPERATOR_ON_ONE_NODE,
            Some(_) | None => Self::MACHINE_API_OPERATOR,
        }
    }

    /// Makes timings of whole seconds.
    #[must_use]
    pub const fn of_seconds(duration: u64, renew_deadline: u64, retry_period: u64) -> Self {
        Self {
            duration: Duration::from_secs(duration),
            renew_deadline: Duration::from_secs(renew_deadline),
            retry_period: Duration::from_secs(retry_period),
        }
    }

    /// Checks that the holder gives up before others may take over, and tries at least once before it does.
    ///
    /// # Errors
    /// Names the two timings that contradict each other.
    pub fn validate(&self) -> Result<(), LeaseTimingsError> {
        let Self { duration, renew_deadline, retry_period } = *self;
        if duration <= renew_deadline {
            return Err(LeaseTimingsError::DeadlineNotBeforeExpiry { duration, renew_deadline });
        }
        if renew_deadline <= retry_period {
            return Err(LeaseTimingsError::NoRetryBeforeDeadline { renew_deadline, retry_period });
        }
        if retry_period.is_zero() {
            return Err(LeaseTimingsError::NoRetryPeriod);
        }
        Ok(())
    }

    /// The duration as a Lease carries it: whole seconds, at least one, never shorter than asked for.
    fn duration_seconds(&self) -> i32 {
        let whole = self.duration.as_secs() + u64::from(self.duration.subsec_nanos() > 0);
        i32::try_from(whole.max(1)).unwrap_or(i32::MAX)
    }
}

/// Why timings cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LeaseTimingsError {
    /// Two processes could act at once.
    #[error(
        "the renew deadline ({renew_deadline:?}) must be shorter than the lease duration ({duration:?})"
    )]
    DeadlineNotBeforeExpiry {
        /// The lease duration.
        duration: Duration,
        /// The renew deadline.
        renew_deadline: Duration,
    },
    /// The first failed renewal would be the last.
    #[error(
        "the retry period ({retry_period:?}) must be shorter than the renew deadline ({renew_deadline:?})"
    )]
    NoRetryBeforeDeadline {
        /// The renew deadline.
        renew_deadline: Duration,
        /// The retry period.
        retry_period: Duration,
    },
    /// A loop without a pause.
    #[error("the retry period must not be zero")]
    NoRetryPeriod,
}

/// What a Lease says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseRecord {
    /// Who holds it; empty when it was released.
    pub holder: String,
    /// How long it lasts after a renewal.
    pub duration_seconds: i32,
    /// When the holder got it, by the holder's clock.
    pub acquired: Option<Timestamp>,
    /// When the holder last renewed it, by the holder's clock.
    pub renewed: Option<Timestamp>,
    /// How often it changed hands.
    pub transitions: i32,
}

/// A record, and since when we know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedLease {
    /// What the Lease says.
    pub record: LeaseRecord,
    /// Our monotonic time when we first saw it say so.
    pub since: Duration,
}

impl ObservedLease {
    /// Takes in what was read: the time moves only when the record did.
    #[must_use]
    pub fn update(previous: Option<Self>, record: LeaseRecord, now: Duration) -> Self {
        match previous {
            Some(previous) if previous.record == record => previous,
            Some(_) | None => Self { record, since: now },
        }
    }

    fn expires(&self) -> Duration {
        let seconds = u64::try_from(self.record.duration_seconds).unwrap_or_default();
        self.since.saturating_add(Duration::from_secs(seconds))
    }
}

/// The two clocks at the moment of deciding.
#[derive(Clone, Copy, Debug)]
pub struct LeaseNow {
    /// Monotonic time since some moment in this process: all that the decision uses.
    pub monotonic: Duration,
    /// Wall-clock time: only written into the record.
    pub wall: Timestamp,
}

/// What to do about a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseDecision {
    /// It does not exist: create it so.
    Create(LeaseRecord),
    /// It is ours: write this to keep it.
    Renew(LeaseRecord),
    /// It is free or its holder is gone: write this to take it.
    Take(LeaseRecord),
    /// Another one holds it.
    Wait {
        /// Who.
        holder: String,
        /// Our monotonic time when it expires if it is not renewed until then.
        until: Duration,
    },
}

/// Decides what to do about a lease, from what was last observed of it (`None`: it does not exist).
#[must_use]
pub fn decide(
    observed: Option<&ObservedLease>,
    me: &str,
    timings: &LeaseTimings,
    now: LeaseNow,
) -> LeaseDecision {
    let fresh = LeaseRecord {
        holder: me.to_owned(),
        duration_seconds: timings.duration_seconds(),
        acquired: Some(now.wall),
        renewed: Some(now.wall),
        transitions: 0,
    };
    let Some(observed) = observed else { return LeaseDecision::Create(fresh) };
    let LeaseRecord { holder, acquired, transitions, .. } = &observed.record;
    if holder == me {
        return LeaseDecision::Renew(LeaseRecord {
            acquired: *acquired,
            transitions: *transitions,
            ..fresh
        });
    }
    if !holder.is_empty() && now.monotonic < observed.expires() {
        return LeaseDecision::Wait { holder: holder.clone(), until: observed.expires() };
    }
    LeaseDecision::Take(LeaseRecord { transitions: transitions.saturating_add(1), ..fresh })
}

/// Returns the record that gives a lease up, so that a successor need not wait.
#[must_use]
pub fn released(record: &LeaseRecord, wall: Timestamp) -> LeaseRecord {
    LeaseRecord {
        holder: String::new(),
        // The shortest that the API accepts, as client-go writes it.
        duration_seconds: 1,
        acquired: Some(wall),
        renewed: Some(wall),
        transitions: record.transitions,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMINGS: LeaseTimings = LeaseTimings::of_seconds(120, 110, 20);

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn wall(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn record(holder: &str) -> LeaseRecord {
        LeaseRecord {
            holder: holder.into(),
            duration_seconds: 60,
            acquired: Some(wall("2026-01-01T00:00:00Z")),
            renewed: Some(wall("2026-01-01T00:10:00Z")),
            transitions: 4,
        }
    }

    #[test]
    fn where_the_control_plane_is_one_node_the_operators_lease_lasts_longer() {
        let of = |status: serde_json::Value| {
            let object = serde_json::json!({
                "metadata": { "name": "cluster" }, "spec": {}, "status": status,
            });
            LeaseTimings::of_operator(Some(&serde_json::from_value(object).unwrap()))
        };
        let single = of(serde_json::json!({ "controlPlaneTopology": "SingleReplica" }));
        assert_eq!(single, LeaseTimings::of_seconds(270, 240, 60));
        single.validate().unwrap();
        let usual = LeaseTimings::of_seconds(137, 107, 26);
        for status in [
            serde_json::json!({ "controlPlaneTopology": "HighlyAvailable" }),
            serde_json::json!({ "infrastructureTopology": "SingleReplica" }),
            serde_json::json!({}),
        ] {
            assert_eq!(of(status.clone()), usual, "{status}");
        }
        assert_eq!(LeaseTimings::of_operator(None), usual);
    }

    fn check(observed: Option<(&str, u64)>, now: u64, expected: &LeaseDecision) {
        let observed = observed
            .map(|(holder, since)| ObservedLease { record: record(holder), since: seconds(since) });
        let now = LeaseNow { monotonic: seconds(now), wall: wall("2026-01-01T01:00:00Z") };
        assert_eq!(decide(observed.as_ref(), "me", &TIMINGS, now), *expected);
    }

    fn ours(acquired: &str, transitions: i32) -> LeaseRecord {
        LeaseRecord {
            holder: "me".into(),
            duration_seconds: 120,
            acquired: Some(wall(acquired)),
            renewed: Some(wall("2026-01-01T01:00:00Z")),
            transitions,
        }
    }

    #[test]
    fn decisions_follow_the_locally_observed_time() {
        let taken = LeaseDecision::Take(ours("2026-01-01T01:00:00Z", 5));
        let wait = |until| LeaseDecision::Wait { holder: "other".into(), until: seconds(until) };
        // Absent: create, without a transition.
        check(None, 100, &LeaseDecision::Create(ours("2026-01-01T01:00:00Z", 0)));
        // Held by another, just seen: wait the holder's own duration, from when we saw it.
        check(Some(("other", 100)), 100, &wait(160));
        check(Some(("other", 100)), 159, &wait(160));
        // Not renewed in that time: take it.
        check(Some(("other", 100)), 160, &taken);
        check(Some(("other", 100)), 1000, &taken);
        // Released: take it at once.
        check(Some(("", 100)), 100, &taken);
        // Ours, also after a restart under the same name, and also after it expired: keep acquireTime and count.
        let kept = LeaseDecision::Renew(ours("2026-01-01T00:00:00Z", 4));
        check(Some(("me", 100)), 110, &kept);
        check(Some(("me", 100)), 1000, &kept);
    }

    #[test]
    fn a_renewal_by_a_holder_with_a_wrong_clock_still_counts() {
        let first = ObservedLease::update(None, record("other"), seconds(10));
        // The same record again: the time of the first sight stays.
        let again = ObservedLease::update(Some(first.clone()), record("other"), seconds(40));
        assert_eq!(again.since, seconds(10));
        // Renewed with a time in the past, by our clock: it is a change, so the holder lives.
        let skewed = LeaseRecord { renewed: Some(wall("2020-01-01T00:00:00Z")), ..record("other") };
        let renewed = ObservedLease::update(Some(again), skewed, seconds(65));
        assert_eq!(renewed.since, seconds(65));
        let now = LeaseNow { monotonic: seconds(120), wall: wall("2026-01-01T01:00:00Z") };
        assert_eq!(
            decide(Some(&renewed), "me", &TIMINGS, now),
            LeaseDecision::Wait { holder: "other".into(), until: seconds(125) }
        );
        // A renewal time far in the future does not keep it alive.
        let future = LeaseRecord { renewed: Some(wall("2036-01-01T00:00:00Z")), ..record("other") };
        let stale = ObservedLease::update(None, future, seconds(0));
        assert!(matches!(decide(Some(&stale), "me", &TIMINGS, now), LeaseDecision::Take(_)));
    }

    #[test]
    fn a_lease_without_a_valid_duration_is_free() {
        for duration_seconds in [0, -5] {
            let record = LeaseRecord { duration_seconds, ..record("other") };
            let observed = ObservedLease { record, since: seconds(10) };
            let now = LeaseNow { monotonic: seconds(10), wall: wall("2026-01-01T01:00:00Z") };
            assert!(matches!(decide(Some(&observed), "me", &TIMINGS, now), LeaseDecision::Take(_)));
        }
    }

    #[test]
    fn a_released_record_is_empty_short_and_keeps_the_count() {
        let released = released(&record("me"), wall("2026-01-01T02:00:00Z"));
        assert_eq!((released.holder.as_str(), released.duration_seconds), ("", 1));
        assert_eq!(released.transitions, 4);
    }

    #[test]
    fn timings_that_could_give_two_leaders_are_refused() {
        assert_eq!(LeaseTimings::MACHINE_API_OPERATOR.validate(), Ok(()));
        assert_eq!(LeaseTimings::MACHINE_CONTROLLERS.validate(), Ok(()));
        for (duration, deadline, retry) in [(10, 10, 2), (10, 11, 2), (10, 5, 5), (10, 5, 0)] {
            LeaseTimings::of_seconds(duration, deadline, retry).validate().unwrap_err();
        }
    }

    #[test]
    fn a_fraction_of_a_second_is_rounded_up() {
        let timings = LeaseTimings { duration: Duration::from_millis(1500), ..TIMINGS };
        assert_eq!(timings.duration_seconds(), 2);
        let timings = LeaseTimings { duration: Duration::from_millis(100), ..TIMINGS };
        assert_eq!(timings.duration_seconds(), 1);
    }
}
