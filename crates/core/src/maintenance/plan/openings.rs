//! When a calendar is open, laid out once for all machines of a policy and only as far as is asked.

use jiff::{SignedDuration, Timestamp};

use crate::calendar::{Calendar, Ending, Opening};

/// How far ahead a plan looks. A rule of every year fires within.
pub(super) const PLAN_HORIZON: SignedDuration = SignedDuration::from_hours(400 * 24);
/// The first piece that is laid out; each further one is twice as long.
const FIRST_PIECE: SignedDuration = SignedDuration::from_hours(32 * 24);

/// The openings of one calendar from now on.
pub(super) struct Openings {
    calendar: Calendar,
    horizon: Timestamp,
    found: Vec<Opening>,
    /// Everything before is laid out.
    cursor: Timestamp,
    piece: SignedDuration,
}

impl Openings {
    pub(super) fn new(calendar: Calendar, now: Timestamp) -> Self {
        Self {
            horizon: later(now, PLAN_HORIZON),
            found: Vec::new(),
            cursor: now,
            // Freezes alone are known by the year, and need no pieces.
            piece: if calendar.windows.is_empty() { PLAN_HORIZON } else { FIRST_PIECE },
            calendar,
        }
    }

    /// The earliest time, not before `from`, at which it is open for so long, with its opening.
    pub(super) fn earliest(
        &mut self,
        from: Timestamp,
        length: SignedDuration,
    ) -> Option<(Timestamp, Opening)> {
        self.lay_out_until(from);
        let mut index = self.found.partition_point(|opening| opening.end <= from);
        loop {
            let Some(opening) = self.found.get(index) else {
                if self.cursor >= self.horizon {
                    return None;
                }
                self.advance();
                continue;
            };
            // One that reaches the end of what is laid out may go on.
            if opening.end >= self.cursor && self.cursor < self.horizon {
                self.advance();
                continue;
            }
            let start = opening.start.max(from);
            if fits(opening, start, length) {
                return Some((start, opening.clone()));
            }
            index += 1;
        }
    }

    /// The latest time between the two at which it is open for so long, with its opening.
    pub(super) fn latest(
        &mut self,
        from: Timestamp,
        until: Timestamp,
        length: SignedDuration,
    ) -> Option<(Timestamp, Opening)> {
        self.lay_out_until(later(until, length));
        let last = self.found.partition_point(|opening| opening.start <= until);
        self.found.iter().take(last).rev().find_map(|opening| {
            let by_end = opening.end.checked_sub(length).ok()?;
            let start = match opening.ending {
                Ending::GoesOn => until,
                Ending::WindowEnds | Ending::FreezeBegins(_) => by_end.min(until),
            };
            (start >= opening.start.max(from)).then(|| (start, opening.clone()))
        })
    }

    /// The longest opening that is laid out.
    pub(super) fn longest(&self) -> Option<SignedDuration> {
        self.found.iter().map(|opening| opening.end.duration_since(opening.start)).max()
    }

    fn lay_out_until(&mut self, instant: Timestamp) {
        while self.cursor <= instant && self.cursor < self.horizon {
            self.advance();
        }
    }

    fn advance(&mut self) {
        let end = later(self.cursor, self.piece).min(self.horizon);
        let list = self.calendar.openings(self.cursor, end);
        for opening in list.openings {
            match self.found.last_mut() {
                Some(last) if last.end == opening.start && last.ending == Ending::GoesOn => {
                    last.end = opening.end;
                    last.windows.extend(opening.windows);
                    last.windows.sort();
                    last.windows.dedup();
                    last.ending = opening.ending;
                }
                Some(_) | None => self.found.push(opening),
            }
        }
        self.cursor = list.complete_until.max(later(self.cursor, SignedDuration::from_secs(1)));
        self.piece = self.piece.saturating_add(self.piece);
    }
}

/// One that goes on beyond what was asked is long enough for anything.
fn fits(opening: &Opening, start: Timestamp, length: SignedDuration) -> bool {
    opening.ending == Ending::GoesOn || later(start, length) <= opening.end
}

fn later(instant: Timestamp, by: SignedDuration) -> Timestamp {
    instant.checked_add(by).unwrap_or(Timestamp::MAX)
}
