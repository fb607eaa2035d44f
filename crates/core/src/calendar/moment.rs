//! Which moment does a text in a window or a freeze name, and when is that in its time zone?

use jiff::{
    Timestamp,
    civil::{Date, DateTime, Weekday},
    tz::{TimeZone, TimeZoneDatabase},
};

use super::error::Problem;

/// The zone where none is named, as in the objects of the original operators.
const DEFAULT_ZONE: &str = "UTC";

/// A day, a time on a wall clock, or an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Moment {
    Day(Date),
    Local(DateTime),
    Instant(Timestamp),
}

impl Moment {
    /// Reads RFC 3339 (`2026-12-24`, `2026-12-24T08:00`, `2026-12-24T08:00:00Z`) and iCalendar
    /// (`20261224`, `20261224T080000`, `20261224T080000Z`).
    pub(super) fn parse(text: &str) -> Result<Self, Problem> {
        let text = text.trim();
        let problem = || {
            Problem::malformed(
                text,
                "a date (2026-12-24), a date and time (2026-12-24T08:00) or one in UTC \
                 (2026-12-24T08:00:00Z)",
            )
        };
        let Some((_, time)) = text.split_once(['T', 't']) else {
            return text.parse().map(Self::Day).map_err(|_| problem());
        };
        if time.contains(['Z', 'z', '+', '-']) {
            return text.parse().map(Self::Instant).map_err(|_| problem());
        }
        text.parse().map(Self::Local).map_err(|_| problem())
    }
}

/// Looks a zone up in the database that is part of the program.
///
/// The machine's own database is not asked: it may be absent or old, and two leaders that disagree
/// about an hour would disagree about a window.
pub(super) fn zone(name: Option<&str>) -> Result<TimeZone, Problem> {
    let name = name.map(str::trim).filter(|name| !name.is_empty()).unwrap_or(DEFAULT_ZONE);
    TimeZoneDatabase::bundled().get(name).map_err(|_| Problem::UnknownZone(name.to_owned()))
}

/// When a wall clock in this zone shows this time.
///
/// A time that daylight saving skips is moved later by what is skipped (02:30 becomes 03:30); of a
/// time that comes twice, the first is meant. RFC 5545 says the same.
pub(super) fn instant(local: DateTime, zone: &TimeZone) -> Timestamp {
    zone.to_timestamp(local).unwrap_or(Timestamp::MAX)
}

/// Reads a weekday by its English name, or by its first two or three letters.
pub(super) fn weekday(text: &str) -> Option<Weekday> {
    let lower = text.trim().to_lowercase();
    WEEKDAYS
        .into_iter()
        .find(|(name, _)| {
            *name == lower || name.get(..3) == Some(&lower) || name.get(..2) == Some(&lower)
        })
        .map(|(_, weekday)| weekday)
}

/// Reads a month by its English name, by the first three letters of it, or by its number.
pub(super) fn month(text: &str) -> Option<i8> {
    let lower = text.trim().to_lowercase();
    if let Ok(number) = lower.parse::<i8>() {
        return (1..=12).contains(&number).then_some(number);
    }
    (1..).zip(MONTHS).find_map(|(number, name)| {
        (name == lower || name.get(..3) == Some(&lower)).then_some(number)
    })
}

pub(super) const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

const WEEKDAYS: [(&str, Weekday); 7] = [
    ("monday", Weekday::Monday),
    ("tuesday", Weekday::Tuesday),
    ("wednesday", Weekday::Wednesday),
    ("thursday", Weekday::Thursday),
    ("friday", Weekday::Friday),
    ("saturday", Weekday::Saturday),
    ("sunday", Weekday::Sunday),
];
