//! When is one window open?
//!
//! A window opens at the times of its rule, on a wall clock in its zone, and stays open for its
//! duration, which is elapsed time: a window of two hours is open for two hours, also in the night in
//! which the clock is set. What the clock does to the opening:
//!
//! - A time that is skipped (02:30 in the night when 02:00 becomes 03:00) is moved later by what is
//!   skipped: the window opens at 03:30, not never, and not a day late.
//! - A time that comes twice (01:30 in the night when 02:00 becomes 01:00) opens the window at the
//!   first of the two, once. A rule of every hour therefore has nothing in the hour that comes again.

use jiff::{SignedDuration, Timestamp, civil::Date, tz::TimeZone};

use super::{
    cron,
    error::{CalendarError, Problem},
    interval::{Interval, merged},
    moment,
    rrule::Text,
    rule::Rule,
};

/// Below a minute nothing could be begun.
const DURATION_MIN: SignedDuration = SignedDuration::from_mins(1);
/// A month. To know whether a window is open, its rule is looked at this far back.
const DURATION_MAX: SignedDuration = SignedDuration::from_hours(31 * 24);
/// Far longer than any rule that a person writes.
const TEXT_MAX: usize = 32 * 1024;

/// A window as a person writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowSpec {
    /// What it is called in plans.
    pub name: String,
    /// When it opens.
    pub schedule: Schedule,
    /// How long it stays open: `2h30m`, `PT2H30M`.
    pub duration: String,
    /// The IANA zone of the schedule; UTC when absent or empty.
    pub time_zone: Option<String>,
}

/// When a window opens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// Five fields, in the dialect of a Kubernetes CronJob.
    Cron(String),
    /// A recurrence rule of RFC 5545.
    Rrule {
        /// `FREQ=...`, or the lines DTSTART, RRULE and EXDATE of an iCalendar file.
        rule: String,
        /// DTSTART, when it is not in the rule's lines.
        start: Option<String>,
        /// EXDATE: a date leaves out the whole day, a time leaves out that time.
        except: Vec<String>,
    },
}

/// A window that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    name: String,
    rule: Rule,
    duration: SignedDuration,
    zone: TimeZone,
    /// The rule's times of a day, joined where one opening reaches the next: first and last time, in
    /// minutes. A rule that fires every minute then costs as much as one that fires once.
    runs: Vec<(i16, i16)>,
}

impl WindowSpec {
    /// The weekly start of the objects `PreferredUpgradeStartTime` and `UpgradeConfig` of 2020: a
    /// weekday and a time `HH:MM`, both in UTC.
    ///
    /// # Errors
    /// Names the field that is not of that form.
    pub fn preferred_start(
        name: &str,
        day_of_week: &str,
        time_utc: &str,
        duration: &str,
    ) -> Result<Self, CalendarError> {
        let weekday = moment::weekday(day_of_week).ok_or_else(|| {
            CalendarError::new("dayOfWeek", Problem::malformed(day_of_week, "a weekday"))
        })?;
        let minute = super::freeze::minute_of_day(time_utc)
            .map_err(|problem| CalendarError::new("timeUtc", problem))?;
        Ok(Self {
            name: name.to_owned(),
            schedule: Schedule::Cron(format!(
                "{} {} * * {}",
                minute % 60,
                minute / 60,
                weekday.to_sunday_zero_offset()
            )),
            duration: duration.to_owned(),
            time_zone: None,
        })
    }
}

impl Window {
    /// Understands a window.
    ///
    /// # Errors
    /// Names the first field that cannot be used: `timeZone`, `duration`, `cron`, `rrule`, `start`,
    /// `except`.
    pub fn parse(spec: &WindowSpec) -> Result<Self, CalendarError> {
        let zone = moment::zone(spec.time_zone.as_deref())
            .map_err(|problem| CalendarError::new("timeZone", problem))?;
        let duration =
            duration(&spec.duration).map_err(|problem| CalendarError::new("duration", problem))?;
        let (field, rule) = match &spec.schedule {
            Schedule::Cron(text) => {
                let rule = bounded(text).and_then(|()| cron::parse(text));
                ("cron", rule.map_err(|problem| CalendarError::new("cron", problem))?)
            }
            Schedule::Rrule { rule: text, start, except } => {
                bounded(text).map_err(|problem| CalendarError::new("rrule", problem))?;
                let text = Text::new(text, start.as_deref(), except, &zone)?;
                ("rrule", text.parse(&zone)?)
            }
        };
        if rule.never_fires(&zone) {
            return Err(CalendarError::new(
                field,
                Problem::NeverFires("no day and time satisfies all of its parts".to_owned()),
            ));
        }
        let runs = runs(&rule, duration);
        Ok(Self { name: spec.name.clone(), rule, duration, zone, runs })
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How long it stays open.
    #[must_use]
    pub const fn duration(&self) -> SignedDuration {
        self.duration
    }

    /// The zone of its schedule.
    #[must_use]
    pub const fn zone(&self) -> &TimeZone {
        &self.zone
    }

    /// When it opens, from the first instant up to the second, at most `limit` times. Openings that
    /// overlap are told one by one.
    #[must_use]
    pub fn starts(&self, from: Timestamp, to: Timestamp, limit: usize) -> Vec<Timestamp> {
        let mut starts = Vec::new();
        for date in self.dates(from, to) {
            let on_day = self.rule.starts_on(date, &self.zone);
            starts.extend(on_day.into_iter().filter(|start| (from..to).contains(start)));
            if starts.len() >= limit {
                break;
            }
        }
        // A day in which the clock is set forward can tell its times out of order, and one twice.
        starts.sort_unstable();
        starts.dedup();
        starts.truncate(limit);
        starts
    }

    /// When it is open within the bounds, sorted and disjoint.
    pub(super) fn intervals(&self, bounds: &Interval) -> Vec<Interval> {
        let earliest = bounds.start.checked_sub(self.duration).unwrap_or(Timestamp::MIN);
        let mut intervals = Vec::new();
        let clock_changes = self.clock_changes(earliest, bounds.end);
        for date in self.dates(earliest, bounds.end) {
            if self.rule.fires_whole_on(date) && !self.clock_is_set_on(date, &clock_changes) {
                for (first, last) in &self.runs {
                    let Some(local) = super::rule::at(date, *first) else { continue };
                    let start = moment::instant(local, &self.zone);
                    let length = SignedDuration::from_mins(i64::from(last - first))
                        .saturating_add(self.duration);
                    intervals.push(Interval { start, end: later(start, length) });
                }
            } else {
                intervals.extend(
                    self.rule
                        .starts_on(date, &self.zone)
                        .into_iter()
                        .map(|start| Interval { start, end: later(start, self.duration) }),
                );
            }
        }
        let clipped = intervals.iter().filter_map(|interval| interval.clipped(bounds)).collect();
        merged(clipped)
    }

    /// The days whose times can lie between the instants. Where a zone crossed the date line, a
    /// skipped time moves by a whole day.
    fn dates(&self, from: Timestamp, to: Timestamp) -> impl Iterator<Item = Date> {
        let day = |instant: Timestamp| self.zone.to_datetime(instant).date();
        let two_days = SignedDuration::from_hours(48);
        let mut first = day(from).saturating_sub(two_days);
        let mut last = day(to).saturating_add(two_days);
        if let Some(start) = self.rule.start {
            first = first.max(start.date());
        }
        match self.rule.last {
            Some(moment::Moment::Day(end)) => last = last.min(end),
            Some(moment::Moment::Local(end)) => last = last.min(end.date()),
            Some(moment::Moment::Instant(_)) | None => {}
        }
        std::iter::successors(Some(first), |date| date.tomorrow().ok())
            .take_while(move |date| *date <= last)
    }

    /// When the clock is set in these days.
    fn clock_changes(&self, from: Timestamp, to: Timestamp) -> Vec<Timestamp> {
        let three_days = SignedDuration::from_hours(72);
        let from = from.checked_sub(three_days).unwrap_or(Timestamp::MIN);
        let to = later(to, three_days);
        self.zone
            .following(from)
            .map(|transition| transition.timestamp())
            .take_while(|instant| *instant <= to)
            .collect()
    }

    fn clock_is_set_on(&self, date: Date, clock_changes: &[Timestamp]) -> bool {
        let midnight = |date: Date| {
            moment::instant(date.to_datetime(jiff::civil::Time::midnight()), &self.zone)
        };
        let day = midnight(date)..=date.tomorrow().map_or(Timestamp::MAX, midnight);
        clock_changes.iter().any(|instant| day.contains(instant))
    }
}

fn later(instant: Timestamp, by: SignedDuration) -> Timestamp {
    instant.checked_add(by).unwrap_or(Timestamp::MAX)
}

fn bounded(text: &str) -> Result<(), Problem> {
    if text.len() > TEXT_MAX {
        return Err(Problem::out_of_range(
            format!("a text of {} bytes", text.len()),
            format!("at most {TEXT_MAX}"),
        ));
    }
    Ok(())
}

fn duration(text: &str) -> Result<SignedDuration, Problem> {
    let duration: SignedDuration = text
        .trim()
        .parse()
        .map_err(|_| Problem::malformed(text, "a duration such as 2h30m or PT2H30M"))?;
    if duration.is_zero() {
        return Err(Problem::ZeroDuration);
    }
    if !(DURATION_MIN..=DURATION_MAX).contains(&duration) {
        return Err(Problem::out_of_range(text, "1m to 744h (31 days)"));
    }
    Ok(duration)
}

fn runs(rule: &Rule, duration: SignedDuration) -> Vec<(i16, i16)> {
    let mut runs: Vec<(i16, i16)> = Vec::new();
    for minute in &rule.minutes {
        match runs.last_mut() {
            Some((_, last)) if SignedDuration::from_mins(i64::from(minute - *last)) <= duration => {
                *last = *minute;
            }
            Some(_) | None => runs.push((*minute, *minute)),
        }
    }
    runs
}
