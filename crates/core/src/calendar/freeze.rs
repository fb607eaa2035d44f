//! When does a freeze keep everything closed?
//!
//! A freeze errs on the longer side. An end that is a date means the whole day; where daylight saving
//! makes a bound ambiguous, the earlier beginning and the later end count; 29 February is the 28th in a
//! year without it.

use jiff::{
    SignedDuration, Timestamp,
    civil::{Date, DateTime, Time, Weekday},
    tz::TimeZone,
};

use super::{
    error::{CalendarError, Problem},
    interval::Interval,
    moment::{self, Moment},
};

/// A freeze as a person writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreezeSpec {
    /// What it is called in plans.
    pub name: String,
    /// From when to when.
    pub span: FreezeSpan,
    /// The IANA zone of dates and times; UTC when absent or empty.
    pub time_zone: Option<String>,
}

/// From when to when a freeze lasts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FreezeSpan {
    /// Once.
    Dates {
        /// A date or a time: `2026-12-20`, `2026-12-20T18:00`, `2026-12-20T18:00:00Z`.
        from: String,
        /// The same; a date is frozen to its end, a time is not frozen itself.
        to: String,
    },
    /// Every year. An end that comes before the beginning lies in the next year.
    Yearly {
        /// The beginning.
        from: YearlyPoint,
        /// The end.
        to: YearlyPoint,
    },
}

/// A moment of every year: the `UtcTime` of `AdminFreezeWindow` and `CustomerFreezeWindow`.
///
/// With `week_of_month` and `day_of_week` it is the n-th such weekday of the month; with
/// `week_of_month` alone, the n-th seven days; with neither and no `day_of_month`, the month. The
/// beginning of a freeze takes the first day of these, the end the last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct YearlyPoint {
    /// `December`, `Dec` or `12`.
    pub month: String,
    /// 1 to 4, or -1 for the last.
    pub week_of_month: Option<i8>,
    /// `Monday`.
    pub day_of_week: Option<String>,
    /// 1 to 31.
    pub day_of_month: Option<i8>,
    /// `HH:MM`; without it a freeze begins with the day, and ends with the day.
    pub time: Option<String>,
}

/// A freeze that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Freeze {
    name: String,
    zone: TimeZone,
    span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Span {
    Once(Interval),
    Yearly { from: Point, to: Point },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Point {
    month: i8,
    day: PointDay,
    /// Minutes since the midnight with which the day begins.
    minute: i16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PointDay {
    OfMonth(i8),
    Last,
    Nth {
        week: i8,
        weekday: Weekday,
    },
    /// Counted from the month's end; 1 is the last day.
    FromEnd(i8),
}

/// Which end of the freeze a point is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bound {
    From,
    To,
}

const DAY_MINUTES: i16 = 24 * 60;

impl Freeze {
    /// Understands a freeze.
    ///
    /// # Errors
    /// Names the first field that cannot be used: `timeZone`, `from`, `to` or one inside of them.
    pub fn parse(spec: &FreezeSpec) -> Result<Self, CalendarError> {
        let zone = moment::zone(spec.time_zone.as_deref())
            .map_err(|problem| CalendarError::new("timeZone", problem))?;
        let span = match &spec.span {
            FreezeSpan::Dates { from, to } => Span::Once(once(from, to, &zone)?),
            FreezeSpan::Yearly { from, to } => {
                let from = Point::parse(from, Bound::From).map_err(|error| error.within("from"))?;
                let to = Point::parse(to, Bound::To).map_err(|error| error.within("to"))?;
                check_order(&from, &to)?;
                Span::Yearly { from, to }
            }
        };
        Ok(Self { name: spec.name.clone(), zone, span })
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// When it is frozen, whole, wherever that touches the bounds; sorted.
    pub(super) fn intervals(&self, bounds: &Interval) -> Vec<Interval> {
        match &self.span {
            Span::Once(interval) => {
                if interval.overlaps(bounds) {
                    vec![*interval]
                } else {
                    Vec::new()
                }
            }
            Span::Yearly { from, to } => {
                let year = |instant: Timestamp| self.zone.to_datetime(instant).year();
                // One that began last year may last into this one.
                let first = year(bounds.start).saturating_sub(1);
                let last = year(bounds.end).saturating_add(1);
                (first..=last)
                    .filter_map(|year| self.of_year(year, from, to))
                    .filter(|interval| interval.overlaps(bounds))
                    .collect()
            }
        }
    }

    fn of_year(&self, year: i16, from: &Point, to: &Point) -> Option<Interval> {
        let from = from.in_year(year)?;
        let same_year = to.in_year(year)?;
        let to = if same_year > from { same_year } else { to.in_year(year.checked_add(1)?)? };
        Some(Interval { start: beginning(from, &self.zone), end: end(to, &self.zone) })
    }
}

/// Reads `HH:MM`, to minutes since midnight.
pub(super) fn minute_of_day(text: &str) -> Result<i16, Problem> {
    let number = |text: &str, limit: i16| {
        let digits =
            (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i16>().ok().filter(|number| digits && *number < limit)
    };
    text.trim()
        .split_once(':')
        .and_then(|(hour, minute)| Some(number(hour, 24)? * 60 + number(minute, 60)?))
        .ok_or_else(|| Problem::malformed(text, "a time HH:MM"))
}

fn once(from: &str, to: &str, zone: &TimeZone) -> Result<Interval, CalendarError> {
    let read = |field: &str, text: &str| {
        Moment::parse(text).map_err(|problem| CalendarError::new(field, problem))
    };
    let start = match read("from", from)? {
        Moment::Day(date) => beginning(date.to_datetime(Time::midnight()), zone),
        Moment::Local(local) => beginning(local, zone),
        Moment::Instant(instant) => instant,
    };
    let finish = match read("to", to)? {
        Moment::Day(date) => {
            let next = date.tomorrow().unwrap_or(Date::MAX);
            end(next.to_datetime(Time::midnight()), zone)
        }
        Moment::Local(local) => end(local, zone),
        Moment::Instant(instant) => instant,
    };
    if finish <= start {
        return Err(CalendarError::new(
            "to",
            Problem::Contradiction(format!("{to} does not come after {from}")),
        ));
    }
    Ok(Interval { start, end: finish })
}

/// An end that comes before the beginning in some years only would freeze those years whole.
fn check_order(from: &Point, to: &Point) -> Result<(), CalendarError> {
    // Weekdays and leap years repeat after 28 years.
    let orders: Vec<std::cmp::Ordering> =
        (2000..2028).filter_map(|year| Some(from.in_year(year)?.cmp(&to.in_year(year)?))).collect();
    let ahead = orders.iter().all(|order| order.is_lt());
    let behind = orders.iter().all(|order| order.is_gt());
    if ahead || behind {
        return Ok(());
    }
    Err(CalendarError::new(
        "to",
        Problem::Contradiction("in some years it does not come after `from`".to_owned()),
    ))
}

fn beginning(local: DateTime, zone: &TimeZone) -> Timestamp {
    zone.to_ambiguous_timestamp(local).earlier().unwrap_or(Timestamp::MIN)
}

fn end(local: DateTime, zone: &TimeZone) -> Timestamp {
    zone.to_ambiguous_timestamp(local).later().unwrap_or(Timestamp::MAX)
}

impl Point {
    fn parse(point: &YearlyPoint, bound: Bound) -> Result<Self, CalendarError> {
        let fail = |field: &str, problem| Err(CalendarError::new(field, problem));
        let Some(month) = moment::month(&point.month) else {
            return fail("month", Problem::malformed(&point.month, "a month such as December"));
        };
        let weekday = match &point.day_of_week {
            None => None,
            Some(text) => match moment::weekday(text) {
                Some(weekday) => Some(weekday),
                None => return fail("dayOfWeek", Problem::malformed(text, "a weekday")),
            },
        };
        if let Some(week) = point.week_of_month.filter(|week| !matches!(week, 1..=4 | -1)) {
            let expected = "1 to 4, or -1 for the last: every month has these";
            return fail("weekOfMonth", Problem::out_of_range(week, expected));
        }
        let day = match (point.day_of_month, point.week_of_month, weekday) {
            (Some(day), None, None) => {
                // 2000 was a leap year.
                let longest = Date::new(2000, month, 1).map_or(31, Date::days_in_month);
                if !(1..=longest).contains(&day) {
                    let expected = format!("1 to {longest} in this month");
                    return fail("dayOfMonth", Problem::out_of_range(day, expected));
                }
                PointDay::OfMonth(day)
            }
            (Some(_), _, _) => {
                let problem = "it excludes weekOfMonth and dayOfWeek".to_owned();
                return fail("dayOfMonth", Problem::Contradiction(problem));
            }
            (None, Some(week), Some(weekday)) => PointDay::Nth { week, weekday },
            (None, None, Some(_)) => {
                let problem = "dayOfWeek needs weekOfMonth beside it".to_owned();
                return fail("weekOfMonth", Problem::Missing(problem));
            }
            (None, Some(-1), None) if bound == Bound::From => PointDay::FromEnd(7),
            (None, Some(-1), None) => PointDay::Last,
            (None, Some(week), None) if bound == Bound::From => PointDay::OfMonth(week * 7 - 6),
            (None, Some(week), None) => PointDay::OfMonth(week * 7),
            (None, None, None) if bound == Bound::From => PointDay::OfMonth(1),
            (None, None, None) => PointDay::Last,
        };
        let minute = match (&point.time, bound) {
            (Some(text), Bound::From | Bound::To) => {
                minute_of_day(text).map_err(|problem| CalendarError::new("time", problem))?
            }
            (None, Bound::From) => 0,
            (None, Bound::To) => DAY_MINUTES,
        };
        Ok(Self { month, day, minute })
    }

    fn in_year(&self, year: i16) -> Option<DateTime> {
        let first = Date::new(year, self.month, 1).ok()?;
        let days = first.days_in_month();
        let date = match self.day {
            PointDay::OfMonth(day) => Date::new(year, self.month, day.min(days)).ok()?,
            PointDay::Last => first.last_of_month(),
            PointDay::FromEnd(days_left) => {
                Date::new(year, self.month, days - days_left + 1).ok()?
            }
            PointDay::Nth { week, weekday } => first.nth_weekday_of_month(week, weekday).ok()?,
        };
        let minutes = SignedDuration::from_mins(i64::from(self.minute));
        date.to_datetime(Time::midnight()).checked_add(minutes).ok()
    }
}
