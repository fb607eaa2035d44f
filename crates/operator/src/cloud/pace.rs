//! How fast the cloud may be asked to change things: as fast as it answers, until it says that it is
//! too fast; then slower, and carefully faster again.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use machinist_core::cloud::ErrorClass;
use tokio::time::Instant;

use crate::engine::env::Env;

/// EC2's published refill for RunInstances is two a second: the pace after the first refusal.
const FIRST_SPACING: Duration = Duration::from_millis(500);
const LONGEST_SPACING: Duration = Duration::from_secs(20);
/// Below this the pace is as good as free.
const FREE: Duration = Duration::from_millis(10);

/// The longest that a caller waits inside its pass.
const PATIENCE: Duration = Duration::from_secs(2);

/// The cloud asked us to slow down, and others are before the caller.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the cloud is asked more slowly for now; next try in {after:?}")]
pub struct NotYet {
    pub after: Duration,
}

/// The pace of one account and region. Shared by all controllers.
#[derive(Debug)]
pub struct Pace {
    env: Env,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    spacing: Duration,
    next: Instant,
}

impl Pace {
    pub fn new(env: &Env) -> Self {
        let state = State { spacing: Duration::ZERO, next: env.instant() };
        Self { env: env.clone(), state: Mutex::new(state) }
    }

    /// Waits for the turn of the caller, if it is near. Otherwise the caller is told when to come
    /// back: whoever waits holds a place that others need (Rule 10).
    pub async fn turn(&self) -> Result<(), NotYet> {
        let at = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let now = self.env.instant();
            let at = state.next.max(now);
            let wait = at - now;
            if wait > PATIENCE {
                return Err(NotYet { after: wait.mul_f64(0.5 + self.env.random_unit()) });
            }
            state.next = at + state.spacing;
            at
        };
        tokio::time::sleep_until(at).await;
        Ok(())
    }

    /// Learns from an answer.
    pub fn learn(&self, class: Option<ErrorClass>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if class == Some(ErrorClass::Throttled) {
            state.spacing = (state.spacing * 2).clamp(FIRST_SPACING, LONGEST_SPACING);
            state.next = self.env.instant() + state.spacing;
        } else if state.spacing < FREE {
            state.spacing = Duration::ZERO;
        } else {
            state.spacing = state.spacing.mul_f64(0.9);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;

    #[tokio::test(start_paused = true)]
    async fn a_refusal_slows_down_and_answers_speed_up_again() {
        let env = Env::simulated(Timestamp::UNIX_EPOCH, 1);
        let pace = Pace::new(&env);
        let begun = env.instant();
        for _ in 0..100 {
            pace.turn().await.unwrap();
        }
        assert_eq!(env.instant(), begun, "free until told otherwise");
        pace.learn(Some(ErrorClass::Throttled));
        pace.turn().await.unwrap();
        pace.turn().await.unwrap();
        assert!(env.instant() >= begun + FIRST_SPACING * 2);
        for _ in 0..100 {
            pace.learn(None);
        }
        pace.turn().await.unwrap();
        let free_again = env.instant();
        pace.turn().await.unwrap();
        assert_eq!(env.instant(), free_again);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_is_far_behind_is_sent_away() {
        let env = Env::simulated(Timestamp::UNIX_EPOCH, 1);
        let pace = Pace::new(&env);
        pace.learn(Some(ErrorClass::Throttled));
        let turns = futures::future::join_all((0..32).map(|_| pace.turn())).await;
        let served = turns.iter().filter(|turn| turn.is_ok()).count();
        assert!((1..=5).contains(&served), "{served} of 32 hold a place");
    }
}
