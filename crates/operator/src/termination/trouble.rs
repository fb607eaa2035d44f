//! How is something that goes wrong for a while told? Once when it begins, and once when it ends.

use std::time::Duration;

/// The first pause doubles with every failure, up to the last.
const DOUBLINGS_MAX: u32 = 16;

/// A thing that may fail again and again.
#[derive(Debug, Default)]
pub struct Trouble {
    failures: u32,
}

/// What there is to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    None,
    Began,
    Ended {
        /// How many times in a row it failed.
        failures: u32,
    },
}

impl Trouble {
    pub const fn failed(&mut self) -> News {
        self.failures = self.failures.saturating_add(1);
        if self.failures == 1 { News::Began } else { News::None }
    }

    pub const fn succeeded(&mut self) -> News {
        let failures = std::mem::replace(&mut self.failures, 0);
        if failures == 0 { News::None } else { News::Ended { failures } }
    }

    /// How long to wait before the next attempt, without jitter; none while nothing is wrong.
    pub fn pause(&self, first: Duration, last: Duration) -> Option<Duration> {
        let doublings = self.failures.checked_sub(1)?.min(DOUBLINGS_MAX);
        Some(first.saturating_mul(1 << doublings).min(last.max(first)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_is_told_when_it_begins_and_when_it_ends_and_pauses_grow_to_a_bound() {
        let (first, last) = (Duration::from_secs(1), Duration::from_secs(20));
        let mut trouble = Trouble::default();
        assert_eq!(trouble.succeeded(), News::None);
        assert_eq!(trouble.pause(first, last), None);
        assert_eq!(trouble.failed(), News::Began);
        let mut pauses = Vec::new();
        for _ in 0..40 {
            pauses.push(trouble.pause(first, last).unwrap().as_secs());
            assert_eq!(trouble.failed(), News::None);
        }
        assert_eq!(pauses[..6], [1, 2, 4, 8, 16, 20]);
        assert!(pauses[6..].iter().all(|pause| *pause == 20));
        let long = Duration::from_secs(60);
        assert_eq!(trouble.pause(long, last), Some(long), "never more often than without trouble");
        assert_eq!(trouble.succeeded(), News::Ended { failures: 41 });
        assert_eq!(trouble.succeeded(), News::None);
    }
}
