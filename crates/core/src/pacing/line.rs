//! Who waits for a turn, and who came before whom?

use std::{collections::BTreeMap, time::Duration};

/// Whoever does not come back in time no longer counts for those behind, but keeps the place.
const LATE: Duration = Duration::from_secs(1);
/// Whoever stays away this long has given up: a Machine that was deleted, for example.
const GONE: Duration = Duration::from_secs(60);

/// Places in the order in which they were asked for.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    /// When each is due back, by number.
    places: BTreeMap<u64, Duration>,
    numbers: BTreeMap<String, u64>,
    next: u64,
}

impl Line {
    /// How many others have a claim to an earlier turn.
    pub(super) fn ahead_of(&self, name: &str, now: Duration) -> usize {
        let number = self.numbers.get(name).copied().unwrap_or(self.next);
        self.places.range(..number).filter(|(_, due)| **due + LATE >= now).count()
    }

    /// Gives a place at the end, or keeps the one that is there, until somebody is due back.
    pub(super) fn keep(&mut self, name: &str, due: Duration, now: Duration) {
        self.forget_gone(now);
        let number = self.numbers.get(name).copied().unwrap_or(self.next);
        self.next = self.next.max(number + 1);
        self.numbers.insert(name.to_owned(), number);
        self.places.insert(number, due);
    }

    pub(super) fn leave(&mut self, name: &str) {
        if let Some(number) = self.numbers.remove(name) {
            self.places.remove(&number);
        }
    }

    fn forget_gone(&mut self, now: Duration) {
        // Nobody is told to come back later than this, so one look a while is enough; the first
        // place is the likeliest to be gone.
        let is_gone = |due: &Duration| *due + GONE < now;
        if self.places.values().next().is_some_and(is_gone) {
            self.places.retain(|_, due| !is_gone(due));
            let places = &self.places;
            self.numbers.retain(|_, number| places.contains_key(number));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn asking_again_keeps_the_place_and_adds_none() {
        let mut line = Line::default();
        for name in ["a", "b", "a", "c", "a"] {
            line.keep(name, at(10), at(0));
        }
        assert_eq!(line.ahead_of("a", at(1)), 0);
        assert_eq!(line.ahead_of("b", at(1)), 1);
        assert_eq!(line.ahead_of("c", at(1)), 2);
        assert_eq!(line.ahead_of("new", at(1)), 3);
        line.leave("b");
        assert_eq!(line.ahead_of("c", at(1)), 1);
    }

    #[test]
    fn whoever_is_late_holds_nobody_up_and_whoever_is_gone_is_forgotten() {
        let mut line = Line::default();
        line.keep("late", at(10), at(0));
        line.keep("next", at(20), at(0));
        assert_eq!(line.ahead_of("next", at(11)), 1);
        assert_eq!(line.ahead_of("next", at(12)), 0);
        assert_eq!(line.ahead_of("late", at(12)), 0, "still first when it comes");
        line.keep("other", at(100), at(90));
        assert_eq!(line.places.len(), 1, "{line:?}");
        assert_eq!(line.numbers.len(), 1, "{line:?}");
    }
}
