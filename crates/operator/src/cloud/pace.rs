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

    /// Waits for the turn of the caller.
    pub async fn turn(&self) {
        let at = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let at = state.next.max(self.env.instant());
            state.next = at + state.spacing;
            at
        };
        tokio::time::sleep_until(at).await;
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
            pace.turn().await;
        }
        assert_eq!(env.instant(), begun, "free until told otherwise");
        pace.learn(Some(ErrorClass::Throttled));
        pace.turn().await;
        pace.turn().await;
        assert!(env.instant() >= begun + FIRST_SPACING * 2);
        for _ in 0..100 {
            pace.learn(None);
        }
        pace.turn().await;
        let free_again = env.instant();
        pace.turn().await;
        assert_eq!(env.instant(), free_again);
    }
}
