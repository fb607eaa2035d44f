//! On which days, and at which times of the day, does a rule fire?
//!
//! Cron and RRULE come to the same: a test for a day and a list of times. A day is judged by itself,
//! without counting from the rule's beginning, so a question about next week costs the same whether
//! the rule began last month or in 1970. Only COUNT needs to count; that is done once, when the rule
//! is read, and kept as the last time that counts.

use std::collections::BTreeSet;

use jiff::{
    Timestamp,
    civil::{Date, DateTime, Weekday},
    tz::TimeZone,
};

use super::moment::{self, Moment};

/// Rules are followed to the end of this year. It bounds the search for the last time of COUNT.
const LAST_YEAR: i16 = 2199;

/// A rule that does not fire within this many years of its beginning is said never to fire. The
/// rarest that does is a leap day that must be a certain weekday, which can take 40 years.
const NEVER_YEARS: i16 = 50;

/// When a window opens, in the time of a wall clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) days: Days,
    /// Minutes since midnight; never empty.
    pub(super) minutes: BTreeSet<i16>,
    /// Nothing fires before.
    pub(super) start: Option<DateTime>,
    /// Nothing fires after; the moment itself counts.
    pub(super) last: Option<Moment>,
    /// What is left out.
    pub(super) except: BTreeSet<Moment>,
}

/// The test for a day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Days {
    Cron {
        months: BTreeSet<i8>,
        month_days: BTreeSet<i8>,
        /// 0 is Sunday.
        weekdays: BTreeSet<i8>,
        /// Both day fields restrict: cron then fires when either of them matches.
        either: bool,
    },
    Daily {
        interval: i32,
        filter: DayFilter,
    },
    Weekly {
        interval: i32,
        weekdays: BTreeSet<i8>,
    },
    Monthly {
        interval: i32,
        filter: DayFilter,
    },
}

/// BYDAY and BYMONTHDAY: a day must pass each of them that is given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DayFilter {
    pub(super) by_day: Vec<ByDay>,
    pub(super) by_month_day: BTreeSet<i8>,
}

/// A weekday, or only the n-th one of the month, counted from the end when negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ByDay {
    pub(super) ordinal: Option<i8>,
    pub(super) weekday: Weekday,
}

impl Rule {
    /// Ends the rule with its `count`-th time. Exceptions count, as RFC 5545 has it.
    pub(super) fn end_after(&mut self, count: u32) {
        let Some(start) = self.start else { return };
        let nth = usize::try_from(count).unwrap_or(usize::MAX).saturating_sub(1);
        let last = days(start.date(), LAST_YEAR).flat_map(|date| self.locals_on(date)).nth(nth);
        self.last = last.map(Moment::Local);
    }

    /// Whether there is no moment at all at which it fires.
    pub(super) fn never_fires(&self, zone: &TimeZone) -> bool {
        let first = self.start.map_or(Date::constant(2000, 1, 1), DateTime::date);
        let year = first.year().saturating_add(NEVER_YEARS).min(LAST_YEAR);
        !days(first, year).any(|date| !self.starts_on(date, zone).is_empty())
    }

    /// When it fires on this day.
    pub(super) fn starts_on(&self, date: Date, zone: &TimeZone) -> Vec<Timestamp> {
        let mut starts = Vec::new();
        if self.except.contains(&Moment::Day(date)) {
            return starts;
        }
        for local in self.locals_on(date) {
            if self.except.contains(&Moment::Local(local)) {
                continue;
            }
            let instant = moment::instant(local, zone);
            let ended = match self.last {
                Some(Moment::Instant(last)) => instant > last,
                Some(Moment::Day(_) | Moment::Local(_)) | None => false,
            };
            if !ended && !self.except.contains(&Moment::Instant(instant)) {
                starts.push(instant);
            }
        }
        starts
    }

    /// Whether every time of the list fires on this day, none cut off by the rule's bounds.
    pub(super) fn fires_whole_on(&self, date: Date) -> bool {
        let utc_day = |instant: Timestamp| day_number(TimeZone::UTC.to_datetime(instant).date());
        // No zone is two days from UTC.
        let two_days_on = day_number(date).saturating_add(2);
        let left_alone = self.except.iter().all(|except| match except {
            Moment::Day(day) => *day != date,
            Moment::Local(local) => local.date() != date,
            Moment::Instant(instant) => utc_day(*instant).abs_diff(day_number(date)) > 2,
        });
        left_alone
            && self.start.is_none_or(|start| start.date() < date)
            && match self.last {
                None => true,
                Some(Moment::Day(last)) => date <= last,
                Some(Moment::Local(last)) => date < last.date(),
                Some(Moment::Instant(last)) => two_days_on < utc_day(last),
            }
            && self.matches(date)
    }

    /// The times on the wall clock of this day, within the rule's bounds, exceptions included.
    fn locals_on(&self, date: Date) -> impl Iterator<Item = DateTime> + '_ {
        let minutes = if self.matches(date) { Some(&self.minutes) } else { None };
        minutes.into_iter().flatten().filter_map(move |minute| at(date, *minute)).filter(|local| {
            self.start.is_none_or(|start| start <= *local)
                && match self.last {
                    Some(Moment::Day(last)) => local.date() <= last,
                    Some(Moment::Local(last)) => *local <= last,
                    Some(Moment::Instant(_)) | None => true,
                }
        })
    }

    fn matches(&self, date: Date) -> bool {
        let anchor = self.start.map_or(Date::constant(1970, 1, 1), DateTime::date);
        if self.start.is_some() && date < anchor {
            return false;
        }
        match &self.days {
            Days::Cron { months, month_days, weekdays, either } => {
                let month_day = month_days.contains(&date.day());
                let weekday = weekdays.contains(&date.weekday().to_sunday_zero_offset());
                let day = if *either { month_day || weekday } else { month_day && weekday };
                months.contains(&date.month()) && day
            }
            Days::Daily { interval, filter } => {
                day_number(date).saturating_sub(day_number(anchor)).rem_euclid(*interval) == 0
                    && filter.admits(date)
            }
            Days::Weekly { interval, weekdays } => {
                week_number(date).saturating_sub(week_number(anchor)).rem_euclid(*interval) == 0
                    && weekdays.contains(&date.weekday().to_sunday_zero_offset())
            }
            Days::Monthly { interval, filter } => {
                month_number(date).saturating_sub(month_number(anchor)).rem_euclid(*interval) == 0
                    && filter.admits(date)
            }
        }
    }
}

impl DayFilter {
    fn admits(&self, date: Date) -> bool {
        let from_end = date.day() - date.days_in_month() - 1;
        let month_day = self.by_month_day.is_empty()
            || self.by_month_day.contains(&date.day())
            || self.by_month_day.contains(&from_end);
        let by_day = self.by_day.is_empty()
            || self.by_day.iter().any(|by_day| {
                by_day.weekday == date.weekday()
                    && by_day.ordinal.is_none_or(|ordinal| {
                        ordinal == (date.day() - 1) / 7 + 1 || ordinal == (from_end + 1) / 7 - 1
                    })
            });
        month_day && by_day
    }
}

/// A time of a day, from minutes since its midnight.
pub(super) fn at(date: Date, minute: i16) -> Option<DateTime> {
    let hour = i8::try_from(minute / 60).ok()?;
    let minute = i8::try_from(minute % 60).ok()?;
    DateTime::new(date.year(), date.month(), date.day(), hour, minute, 0, 0).ok()
}

/// The days from this one to the end of a year.
fn days(first: Date, last_year: i16) -> impl Iterator<Item = Date> {
    std::iter::successors(Some(first), |date| date.tomorrow().ok())
        .take_while(move |date| date.year() <= last_year)
}

/// Days since 1970-01-01.
fn day_number(date: Date) -> i32 {
    let hours = Date::constant(1970, 1, 1).duration_until(date).as_hours();
    i32::try_from(hours / 24).unwrap_or(i32::MAX)
}

/// Weeks that begin on a Monday: the default of RFC 5545. 1970-01-01 was a Thursday.
fn week_number(date: Date) -> i32 {
    day_number(date).saturating_add(3).div_euclid(7)
}

fn month_number(date: Date) -> i32 {
    i32::from(date.year()) * 12 + i32::from(date.month())
}
