//! What time is it in the world? The true time, which follows tokio's paused clock.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// The world's own clock; no fault ever moves it.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Timestamp,
    origin: Instant,
}

impl Clock {
    /// Starts now, in tokio's time.
    #[must_use]
    pub fn starting_at(start: Timestamp) -> Self {
        Self { start, origin: Instant::now() }
    }

    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.at(Instant::now())
    }

    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.origin.elapsed()
    }

    /// The time since the start.
    #[must_use]
    pub fn since_start(&self, time: Timestamp) -> SignedDuration {
        time.duration_since(self.start)
    }

    /// The moment in tokio's time that a time is; what is past is now.
    #[must_use]
    pub fn instant(&self, time: Timestamp) -> Instant {
        let after = Duration::try_from(self.since_start(time)).unwrap_or_default();
        self.origin + after
    }

    fn at(&self, instant: Instant) -> Timestamp {
        let elapsed = SignedDuration::try_from(instant.saturating_duration_since(self.origin))
            .unwrap_or(SignedDuration::MAX);
        self.start.saturating_add(elapsed).unwrap_or(Timestamp::MAX)
    }
}
