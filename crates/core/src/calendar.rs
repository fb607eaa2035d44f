//! When may maintenance begin?
//!
//! Windows are an allow-list: where there is one, everything else is closed; where there is none,
//! every hour is open. Freezes close whatever is open. Everything is asked for an instant that the
//! caller names (Rule 1); zones come from the database that is part of the program.
//!
//! Work is bounded (Rule 10): a question looks at most [`HORIZON`] ahead, day by day, and a list ends
//! after [`OPENINGS_MAX`] entries and says so. A rule that fires every minute costs as much as one that
//! fires once a day, and one that never fires is refused when it is read.

mod cron;
mod error;
mod freeze;
mod interval;
mod moment;
mod rrule;
mod rule;
#[cfg(test)]
mod tests;
mod window;

use std::collections::{BTreeSet, VecDeque};

use jiff::{SignedDuration, Timestamp};

use self::interval::{Interval, merged, without};
pub use self::{
    error::{CalendarError, Problem},
    freeze::{Freeze, FreezeSpan, FreezeSpec, YearlyPoint},
    window::{Schedule, Window, WindowSpec},
};

/// How far ahead a question looks at most: ten years, so that the next leap day is always within.
pub const HORIZON: SignedDuration = SignedDuration::from_hours(10 * 366 * 24);

/// How many openings or frozen spans are listed at most.
pub const OPENINGS_MAX: usize = 2_000;

/// How much is laid out at a time. A month: most questions are answered by the first piece.
const PIECE: SignedDuration = SignedDuration::from_hours(32 * 24);

/// The windows and freezes that hold together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calendar {
    /// When work may begin; none means always.
    pub windows: Vec<Window>,
    /// When it may not, in spite of them.
    pub freezes: Vec<Freeze>,
}

/// A span in which work may begin, from the start up to, but not including, the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The first instant, not before the one that was asked from.
    pub start: Timestamp,
    /// The instant at which it is closed again, or up to which was asked.
    pub end: Timestamp,
    /// The windows that it comes from, sorted; none when the calendar has none.
    pub windows: Vec<String>,
    /// Why it ends.
    pub ending: Ending,
}

/// Why an opening ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Its windows end.
    WindowEnds,
    /// A freeze begins; these hold at that instant.
    FreezeBegins(Vec<String>),
    /// It does not end there: the question did.
    GoesOn,
}

/// The openings in a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpeningList {
    /// In order, none touching another.
    pub openings: Vec<Opening>,
    /// The list is complete up to here: the end of the range, unless a limit came first.
    pub complete_until: Timestamp,
}

/// A span in which a freeze holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frozen {
    /// The first frozen instant.
    pub start: Timestamp,
    /// The first instant that is not frozen any more.
    pub end: Timestamp,
    /// The freeze.
    pub freeze: String,
}

/// Whether work may begin at an instant, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// These windows are open; none when the calendar has none.
    Open(Vec<String>),
    /// These freezes hold, whatever the windows say.
    Frozen(Vec<String>),
    /// No window is open.
    OutsideWindows,
}

/// When an open calendar closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// It is closed already.
    Closed,
    /// At this instant.
    At(Timestamp),
    /// Not before this instant, and it was not looked further.
    NotBefore(Timestamp),
}

/// Whether work of an expected length fits into what is left of the opening.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fit {
    /// It does.
    Fits,
    /// The calendar is open, but closes too early.
    TooShort {
        /// When.
        closes_at: Timestamp,
        /// What is left.
        left: SignedDuration,
    },
    /// The calendar is closed, and how.
    Closed(Standing),
}

impl Calendar {
    /// Understands windows and freezes.
    ///
    /// # Errors
    /// All that is wrong, each with its field (`windows[0].timeZone`). There is no calendar of the
    /// rest: without a window that does not parse it could be open at any hour, and without a freeze
    /// that does not parse it would be open in it.
    pub fn parse(
        windows: &[WindowSpec],
        freezes: &[FreezeSpec],
    ) -> Result<Self, Vec<CalendarError>> {
        let mut calendar = Self::default();
        let mut errors = Vec::new();
        for (index, spec) in windows.iter().enumerate() {
            match Window::parse(spec) {
                Ok(window) => calendar.windows.push(window),
                Err(error) => errors.push(error.within(&format!("windows[{index}]"))),
            }
        }
        for (index, spec) in freezes.iter().enumerate() {
            match Freeze::parse(spec) {
                Ok(freeze) => calendar.freezes.push(freeze),
                Err(error) => errors.push(error.within(&format!("freezes[{index}]"))),
            }
        }
        if errors.is_empty() { Ok(calendar) } else { Err(errors) }
    }

    /// Whether work may begin at this instant.
    #[must_use]
    pub fn is_open(&self, now: Timestamp) -> bool {
        matches!(self.standing(now), Standing::Open(_))
    }

    /// Whether work may begin at this instant, and why.
    #[must_use]
    pub fn standing(&self, now: Timestamp) -> Standing {
        let freezes = self.freezes_at(now);
        if !freezes.is_empty() {
            return Standing::Frozen(freezes);
        }
        match self.windows_at(now) {
            Some(windows) => Standing::Open(windows),
            None => Standing::OutsideWindows,
        }
    }

    /// The first opening between the instants, which begins at once when it is open already.
    #[must_use]
    pub fn next_opening(&self, after: Timestamp, limit: Timestamp) -> Option<Opening> {
        self.walk(after, limit).next()
    }

    /// The first opening between the instants into which work of this length fits.
    #[must_use]
    pub fn next_fitting(
        &self,
        after: Timestamp,
        limit: Timestamp,
        expected: SignedDuration,
    ) -> Option<Opening> {
        self.walk(after, limit)
            .take(OPENINGS_MAX)
            .find(|opening| self.fits(opening.start, expected) == Fit::Fits)
    }

    /// The openings between the instants: overlapping windows joined, freezes cut out.
    #[must_use]
    pub fn openings(&self, from: Timestamp, to: Timestamp) -> OpeningList {
        let mut walk = self.walk(from, to);
        let openings: Vec<Opening> = walk.by_ref().take(OPENINGS_MAX).collect();
        let complete_until = match openings.last() {
            Some(last) if openings.len() == OPENINGS_MAX => last.end,
            Some(_) | None => walk.limit,
        };
        OpeningList { openings, complete_until }
    }

    /// When freezes hold between the instants, each whole, in order; at most [`OPENINGS_MAX`].
    #[must_use]
    pub fn frozen(&self, from: Timestamp, to: Timestamp) -> Vec<Frozen> {
        let bounds = Interval { start: from, end: within_horizon(from, to) };
        let mut frozen: Vec<Frozen> = Vec::new();
        for freeze in &self.freezes {
            frozen.extend(freeze.intervals(&bounds).into_iter().map(|interval| Frozen {
                start: interval.start,
                end: interval.end,
                freeze: freeze.name().to_owned(),
            }));
        }
        frozen.sort_by(|one, other| {
            (one.start, one.end, &one.freeze).cmp(&(other.start, other.end, &other.freeze))
        });
        frozen.truncate(OPENINGS_MAX);
        frozen
    }

    /// When it closes, if it is open at this instant.
    #[must_use]
    pub fn closes_at(&self, now: Timestamp) -> Closing {
        match self.walk(now, later(now, HORIZON)).next() {
            Some(opening) if opening.start == now => match opening.ending {
                Ending::WindowEnds | Ending::FreezeBegins(_) => Closing::At(opening.end),
                Ending::GoesOn => Closing::NotBefore(opening.end),
            },
            Some(_) | None => Closing::Closed,
        }
    }

    /// Whether work that takes this long may begin at this instant and be done before it closes.
    ///
    /// Work that needs longer than [`HORIZON`] is compared with the horizon.
    #[must_use]
    pub fn fits(&self, now: Timestamp, expected: SignedDuration) -> Fit {
        let standing = self.standing(now);
        let Standing::Open(_) = standing else { return Fit::Closed(standing) };
        let wanted = within_horizon(now, later(now, expected));
        match self.walk(now, wanted).next() {
            Some(opening) if opening.end < wanted => {
                Fit::TooShort { closes_at: opening.end, left: opening.end.duration_since(now) }
            }
            Some(_) | None => Fit::Fits,
        }
    }

    fn walk(&self, from: Timestamp, to: Timestamp) -> Walk<'_> {
        Walk {
            calendar: self,
            cursor: from,
            limit: within_horizon(from, to).max(from),
            found: VecDeque::new(),
        }
    }

    /// What is open within the bounds, sorted and disjoint, with the windows it comes from.
    fn lay_out(&self, bounds: &Interval) -> Vec<Span> {
        let of_windows: Vec<(&str, Vec<Interval>)> =
            self.windows.iter().map(|window| (window.name(), window.intervals(bounds))).collect();
        let open = if self.windows.is_empty() {
            vec![*bounds]
        } else {
            merged(of_windows.iter().flat_map(|(_, intervals)| intervals.iter().copied()).collect())
        };
        let frozen =
            merged(self.freezes.iter().flat_map(|freeze| freeze.intervals(bounds)).collect());
        let names = |interval: &Interval| {
            of_windows
                .iter()
                .filter(|(_, intervals)| {
                    // Sorted and disjoint: only the last that begins before the end can reach in.
                    let index = intervals.partition_point(|other| other.start < interval.end);
                    intervals
                        .get(index.wrapping_sub(1))
                        .is_some_and(|other| other.overlaps(interval))
                })
                .map(|(name, _)| (*name).to_owned())
                .collect()
        };
        let closed_by_windows = |end: Timestamp| {
            let index = open.partition_point(|other| other.end < end);
            end < bounds.end && open.get(index).is_some_and(|other| other.end == end)
        };
        without(&open, &frozen)
            .into_iter()
            .map(|interval| Span {
                windows: names(&interval),
                closed_by_windows: closed_by_windows(interval.end),
                interval,
            })
            .collect()
    }

    fn freezes_at(&self, now: Timestamp) -> Vec<String> {
        let bounds = moment_of(now);
        let holds = |freeze: &&Freeze| !freeze.intervals(&bounds).is_empty();
        let names: BTreeSet<&str> = self.freezes.iter().filter(holds).map(Freeze::name).collect();
        names.into_iter().map(str::to_owned).collect()
    }

    /// The windows that are open; nothing when the calendar has windows and all are closed.
    fn windows_at(&self, now: Timestamp) -> Option<Vec<String>> {
        let bounds = moment_of(now);
        let holds = |window: &&Window| !window.intervals(&bounds).is_empty();
        let names: BTreeSet<&str> = self.windows.iter().filter(holds).map(Window::name).collect();
        if names.is_empty() && !self.windows.is_empty() {
            return None;
        }
        Some(names.into_iter().map(str::to_owned).collect())
    }
}

/// An open span, before it is known whether it goes on beyond the piece it was found in.
struct Span {
    interval: Interval,
    windows: BTreeSet<String>,
    /// Its windows are known to end with it. Otherwise a freeze begins, or the piece ends there.
    closed_by_windows: bool,
}

/// Openings one after another, laid out piece by piece.
struct Walk<'a> {
    calendar: &'a Calendar,
    /// Everything before is laid out.
    cursor: Timestamp,
    limit: Timestamp,
    found: VecDeque<Span>,
}

impl Iterator for Walk<'_> {
    type Item = Opening;

    fn next(&mut self) -> Option<Opening> {
        loop {
            let ended = self.found.front().is_some_and(|span| span.interval.end < self.cursor);
            if ended || self.cursor >= self.limit {
                return self.found.pop_front().map(|span| self.opening(span));
            }
            self.advance();
        }
    }
}

impl Walk<'_> {
    fn advance(&mut self) {
        // Freezes alone are known by the year, and need no pieces.
        let whole = self.calendar.windows.is_empty();
        let end = if whole { self.limit } else { later(self.cursor, PIECE).min(self.limit) };
        for span in self.calendar.lay_out(&Interval { start: self.cursor, end }) {
            match self.found.back_mut() {
                Some(last) if last.interval.end == span.interval.start => {
                    last.interval.end = span.interval.end;
                    last.windows.extend(span.windows);
                    last.closed_by_windows = span.closed_by_windows;
                }
                Some(_) | None => self.found.push_back(span),
            }
        }
        self.cursor = end;
    }

    fn opening(&self, span: Span) -> Opening {
        let Interval { start, end } = span.interval;
        let windows = if span.closed_by_windows { None } else { self.calendar.windows_at(end) };
        let ending = match windows {
            None => Ending::WindowEnds,
            Some(_) => match self.calendar.freezes_at(end) {
                freezes if freezes.is_empty() => Ending::GoesOn,
                freezes => Ending::FreezeBegins(freezes),
            },
        };
        Opening { start, end, windows: span.windows.into_iter().collect(), ending }
    }
}

fn within_horizon(from: Timestamp, to: Timestamp) -> Timestamp {
    to.min(later(from, HORIZON))
}

fn later(instant: Timestamp, by: SignedDuration) -> Timestamp {
    instant.checked_add(by).unwrap_or(Timestamp::MAX)
}

/// The shortest interval that holds the instant.
fn moment_of(now: Timestamp) -> Interval {
    Interval { start: now, end: later(now, SignedDuration::from_nanos(1)) }
}
