//! Whose turn is it to call the cloud? The decision is core's; here are the clock and the waiting.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use machinist_core::{
    cloud::ErrorClass,
    pacing::{Answer, Lane, Pacing, Turn},
};
use machinist_providers::Pacer;
use tokio::time::Instant;

use crate::engine::env::Env;

/// How long a refusal counts. A pace that is at its limit all the time is refused every half a minute.
const REFUSAL_COUNTS: Duration = Duration::from_secs(120);

/// Others are before the caller: it is to come back then, its place in line is kept.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the cloud is asked more slowly for now; next try in {after:?}")]
pub struct NotYet {
    pub after: Duration,
}

/// The pace of one account and region, shared by everybody who calls there.
#[derive(Debug)]
pub struct Pace {
    env: Env,
    origin: Instant,
    pacing: Mutex<Pacing>,
}

impl Pace {
    pub fn new(env: &Env) -> Self {
        Self { env: env.clone(), origin: env.instant(), pacing: Mutex::default() }
    }

    /// Waits for the turn of the caller, if it is near. Otherwise the caller is told when to come
    /// back: whoever waits holds a place that others need (Rule 10). `caller` names the one for
    /// whom the call is made, such as a Machine's uid.
    pub async fn turn(&self, action: &'static str, caller: &str) -> Result<(), NotYet> {
        let now = self.now();
        let turn = self.pacing().ask(Lane::of(action), caller, now);
        match turn {
            Turn::Mine { after } => {
                self.env.sleep(after).await;
                Ok(())
            }
            Turn::ComeBack { after } => Err(NotYet { after }),
        }
    }

    /// Whether the cloud asked to be called more slowly, not long ago.
    pub fn is_throttled(&self) -> bool {
        self.pacing().was_refused_within(REFUSAL_COUNTS, self.now())
    }

    fn now(&self) -> Duration {
        self.env.instant().saturating_duration_since(self.origin)
    }

    fn pacing(&self) -> MutexGuard<'_, Pacing> {
        self.pacing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Pacer for Pace {
    async fn turn_to_read(&self, action: &'static str) {
        let now = self.now();
        let wait = self.pacing().reserve(Lane::of(action), now);
        if !wait.is_zero() {
            self.env.sleep(wait).await;
        }
    }

    fn learn(&self, action: &'static str, class: Option<ErrorClass>) {
        let answer = match class {
            Some(ErrorClass::Throttled) => Answer::Refused,
            // No answer, or none that tells whether the call was counted.
            Some(ErrorClass::Transient | ErrorClass::Unknown) => return,
            _ => Answer::Admitted,
        };
        let now = self.now();
        self.pacing().learn(Lane::of(action), answer, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_near_turn_is_waited_for_and_a_far_one_is_not() {
        let env = Env::simulated(jiff::Timestamp::UNIX_EPOCH, 1);
        let pace = Pace::new(&env);
        let started = env.instant();
        for machine in 0..7 {
            pace.turn("RunInstances", &machine.to_string()).await.unwrap();
        }
        assert_eq!(started.elapsed(), Duration::from_secs(1), "five at once, then two a second");
        for class in [None, Some(ErrorClass::Throttled)] {
            pace.learn("RunInstances", class);
        }
        let (near, far) =
            tokio::join!(pace.turn("RunInstances", "8"), pace.turn("RunInstances", "9"));
        near.unwrap();
        let far = far.unwrap_err();
        assert!(far.after > Duration::from_millis(500), "{far}");
        pace.turn("TerminateInstances", "9").await.unwrap();
        env.sleep(far.after).await;
        pace.turn("RunInstances", "9").await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn reads_wait_as_long_as_it_takes() {
        let env = Env::simulated(jiff::Timestamp::UNIX_EPOCH, 1);
        let pace = Pace::new(&env);
        let started = env.instant();
        for _ in 0..200 {
            pace.turn_to_read("DescribeInstances").await;
        }
        assert_eq!(started.elapsed(), Duration::from_secs(5), "a hundred at once, then twenty");
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_counts_for_a_while() {
        let env = Env::simulated(jiff::Timestamp::UNIX_EPOCH, 1);
        let pace = Pace::new(&env);
        pace.learn("RunInstances", None);
        assert!(!pace.is_throttled());
        pace.learn("RunInstances", Some(ErrorClass::Throttled));
        env.sleep(REFUSAL_COUNTS).await;
        assert!(pace.is_throttled());
        env.sleep(Duration::from_secs(1)).await;
        assert!(!pace.is_throttled());
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_proves_nothing_changes_nothing() {
        let pace = Pace::new(&Env::simulated(jiff::Timestamp::UNIX_EPOCH, 1));
        for _ in 0..6 {
            pace.turn("RunInstances", "a").await.unwrap();
        }
        for (class, rate) in [
            (Some(ErrorClass::Transient), 2.0),
            (Some(ErrorClass::Unknown), 2.0),
            (Some(ErrorClass::InsufficientCapacity), 2.1),
            (Some(ErrorClass::Throttled), 1.05),
        ] {
            pace.learn("RunInstances", class);
            assert_eq!(pace.pacing().rate(Lane::Launches), rate, "{class:?}");
        }
    }
}
