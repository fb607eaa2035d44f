//! Where do time and chance come from?
//!
//! Everything in the operator that needs the wall clock, a timer or a random number asks an [`Env`].
//! The system's one reads the clock and seeds itself from the operating system; the simulated one is
//! a pure function of its seed and of tokio's (paused) time, so a run can be replayed exactly.
//! Timers and deadlines use tokio time only: a wall clock that jumps never moves them.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use rand_chacha::{
    ChaCha12Rng,
    rand_core::{Rng, SeedableRng},
};
use tokio::time::Instant;

/// Clock, sleep and randomness of one operator process. Clones share the same random sequence.
#[derive(Clone, Debug)]
pub struct Env {
    wall_clock: WallClock,
    random: Arc<Mutex<ChaCha12Rng>>,
    steadiness: Arc<Mutex<Steadiness>>,
}

/// What the wall clock showed when it was last read, to notice when it is set.
#[derive(Clone, Copy, Debug, Default)]
struct Steadiness {
    last: Option<(Instant, Timestamp)>,
    set_at: Option<Timestamp>,
}

/// A clock that is corrected little by little stays within this; one that is set does not.
const CLOCK_TOLERANCE: SignedDuration = SignedDuration::from_secs(5);

impl Steadiness {
    fn read(&mut self, at: Instant, shown: Timestamp) {
        if let Some((last_at, last_shown)) = self.last {
            let passed = SignedDuration::try_from(at.saturating_duration_since(last_at))
                .unwrap_or(SignedDuration::MAX);
            let moved = shown.duration_since(last_shown);
            if moved.saturating_sub(passed).abs() > CLOCK_TOLERANCE {
                self.set_at = Some(shown);
            }
        }
        self.last = Some((at, shown));
    }
}

#[derive(Clone, Debug)]
enum WallClock {
    System,
    /// `jumped` is by how many milliseconds somebody has set it.
    Simulated {
        start: Timestamp,
        origin: Instant,
        jumped: Arc<AtomicI64>,
    },
}

impl Env {
    /// Returns the environment of a real process.
    ///
    /// # Errors
    /// Fails when the operating system has no randomness to seed from.
    pub fn system() -> anyhow::Result<Self> {
        let seed = system_seed().map_err(|error| {
            anyhow::anyhow!("failed to read a random seed from the operating system: {error}")
        })?;
        Ok(Self {
            wall_clock: WallClock::System,
            random: Arc::new(Mutex::new(ChaCha12Rng::from_seed(seed))),
            steadiness: Arc::default(),
        })
    }

    /// Returns an environment whose wall clock starts at `start` and follows tokio's time, and whose
    /// randomness is given by `seed`. Call it inside the runtime whose time it shall follow.
    #[must_use]
    pub fn simulated(start: Timestamp, seed: u64) -> Self {
        Self {
            wall_clock: WallClock::Simulated {
                start,
                origin: Instant::now(),
                jumped: Arc::default(),
            },
            random: Arc::new(Mutex::new(ChaCha12Rng::seed_from_u64(seed))),
            steadiness: Arc::default(),
        }
    }

    /// Sets a simulated wall clock forward or back, as an administrator does; timers do not notice.
    /// The system's clock is not ours to set.
    pub fn jump(&self, by: SignedDuration) {
        if let WallClock::Simulated { jumped, .. } = &self.wall_clock {
            let by = i64::try_from(by.as_millis()).unwrap_or_default();
            jumped.fetch_add(by, Ordering::Relaxed);
        }
    }

    /// Returns the wall-clock time: for what people and other programs read, never for a timer.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        let shown = self.read_wall_clock();
        self.steadiness().read(Instant::now(), shown);
        shown
    }

    /// Returns the time that the wall clock showed when it was last seen to have been set, forward or
    /// back, since the process began. How long ago something before that was, it cannot tell.
    #[must_use]
    pub fn clock_set_at(&self) -> Option<Timestamp> {
        let shown = self.read_wall_clock();
        let mut steadiness = self.steadiness();
        steadiness.read(Instant::now(), shown);
        steadiness.set_at
    }

    fn steadiness(&self) -> MutexGuard<'_, Steadiness> {
        self.steadiness.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read_wall_clock(&self) -> Timestamp {
        match &self.wall_clock {
            WallClock::System => system_now(),
            WallClock::Simulated { start, origin, jumped } => {
                let elapsed =
                    SignedDuration::try_from(origin.elapsed()).unwrap_or(SignedDuration::MAX);
                let jumped = SignedDuration::from_millis(jumped.load(Ordering::Relaxed));
                let shown = elapsed.saturating_add(jumped);
                start.saturating_add(shown).unwrap_or(Timestamp::MAX)
            }
        }
    }

    /// Returns the monotonic time that all timers and deadlines are measured in.
    #[must_use]
    pub fn instant(&self) -> Instant {
        Instant::now()
    }

    /// Waits for `duration` of monotonic time.
    pub async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    /// Returns a random number that is at least 0 and less than 1.
    #[must_use]
    pub fn random_unit(&self) -> f64 {
        // 53 bits are what a double can hold exactly.
        const STEPS: f64 = (1_u64 << 53) as f64;
        (self.random_u64() >> 11) as f64 / STEPS
    }

    /// Returns 64 random bits.
    #[must_use]
    pub fn random_u64(&self) -> u64 {
        self.random.lock().unwrap_or_else(PoisonError::into_inner).next_u64()
    }

    /// Returns `duration` shortened by a random part of at most `fraction` of it.
    ///
    /// Jitter only ever shortens, so that a cap on a delay stays a cap.
    #[must_use]
    pub fn jitter(&self, duration: Duration, fraction: f64) -> Duration {
        duration.mul_f64(1.0 - fraction.clamp(0.0, 1.0) * self.random_unit())
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the system's clock; everything else asks Env"
)]
fn system_now() -> Timestamp {
    // A clock outside the range of a timestamp (before the year -9999) reads as the epoch.
    Timestamp::try_from(std::time::SystemTime::now()).unwrap_or(Timestamp::UNIX_EPOCH)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place that asks the system for randomness; everything else asks Env"
)]
fn system_seed() -> Result<[u8; 32], getrandom::Error> {
    let mut seed = [0_u8; 32];
    getrandom::fill(&mut seed)?;
    Ok(seed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn simulated_wall_clock_follows_tokio_time() {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let env = Env::simulated(start, 1);
        env.sleep(Duration::from_secs(90)).await;
        assert_eq!(env.now().to_string(), "2026-01-01T00:01:30Z");
    }

    #[tokio::test(start_paused = true)]
    async fn a_simulated_wall_clock_that_is_set_moves_no_timer() {
        let env = Env::simulated(Timestamp::UNIX_EPOCH, 1);
        let before = env.instant();
        env.clone().jump(SignedDuration::from_hours(-1));
        assert_eq!(env.now().to_string(), "1969-12-31T23:00:00Z");
        assert_eq!(env.instant(), before);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wall_clock_that_is_set_is_noticed() {
        for by in [SignedDuration::from_hours(-1), SignedDuration::from_mins(2)] {
            let env = Env::simulated(Timestamp::UNIX_EPOCH, 1);
            assert_eq!(env.clock_set_at(), None);
            env.sleep(Duration::from_secs(3600)).await;
            assert_eq!(env.clock_set_at(), None);
            env.jump(SignedDuration::from_secs(2));
            assert_eq!(env.clock_set_at(), None, "it is corrected a little");
            env.jump(by);
            let set_at = env.now();
            env.sleep(Duration::from_secs(60)).await;
            assert_eq!(env.clock_set_at(), Some(set_at));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn same_seed_gives_the_same_numbers_and_jitter_only_shortens() {
        let first = Env::simulated(Timestamp::UNIX_EPOCH, 7);
        let second = Env::simulated(Timestamp::UNIX_EPOCH, 7);
        let other = Env::simulated(Timestamp::UNIX_EPOCH, 8);
        let draw = |env: &Env| (0..16).map(|_| env.random_u64()).collect::<Vec<_>>();
        let numbers = draw(&first);
        assert_eq!(numbers, draw(&second));
        assert_ne!(numbers, draw(&other));
        for _ in 0..100 {
            let jittered = first.jitter(Duration::from_secs(10), 0.2);
            assert!(jittered <= Duration::from_secs(10) && jittered >= Duration::from_secs(8));
        }
    }
}
