//! How long to wait before trying again?

use std::time::Duration;

use super::env::Env;

/// The part of a delay that jitter may take away. A fifth spreads many failing keys over time and
/// keeps the delays readable.
const JITTER: f64 = 0.2;

/// Capped exponential delays with seeded jitter.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    /// The delay after the first failure.
    pub base: Duration,
    /// The longest delay.
    pub cap: Duration,
}

impl Backoff {
    /// Returns the delay after so many failures in a row (1 = the first).
    #[must_use]
    pub fn delay(&self, failures: u32, env: &Env) -> Duration {
        let factor = 1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
        env.jitter(self.base.saturating_mul(factor).min(self.cap), JITTER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn delays_double_up_to_the_cap_and_never_overflow() {
        let env = Env::simulated(jiff::Timestamp::UNIX_EPOCH, 1);
        let backoff = Backoff { base: Duration::from_millis(500), cap: Duration::from_secs(300) };
        for (failures, expected) in
            [(1, 0.5), (2, 1.0), (3, 2.0), (10, 256.0), (11, 300.0), (40, 300.0), (u32::MAX, 300.0)]
        {
            let delay = backoff.delay(failures, &env).as_secs_f64();
            assert!(delay <= expected && delay >= expected * 0.8, "{failures}: {delay}");
        }
    }
}
