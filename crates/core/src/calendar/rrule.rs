//! What does an iCalendar recurrence rule (RFC 5545) say?
//!
//! Supported are FREQ (DAILY, WEEKLY, MONTHLY), INTERVAL, BYDAY (with ordinals when MONTHLY),
//! BYMONTHDAY (negative too), BYHOUR, BYMINUTE, COUNT and UNTIL; beside the rule DTSTART and EXDATE.
//! Everything else is refused by name: a part that were passed over would open a window at a time that
//! nobody allowed.
//!
//! DTSTART gives the rule its beginning, and what the rule does not say (time of day, weekday, day of
//! the month). It is a time of the rule only if the rule matches it. Weeks begin on Monday.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{
    civil::{DateTime, Time},
    tz::TimeZone,
};

use super::{
    cron::times,
    error::{CalendarError, Problem},
    moment::{self, Moment},
    rule::{ByDay, DayFilter, Days, Rule},
};

/// More would have to be counted through on every change of the policy, for a window that in practice
/// has no end.
const COUNT_MAX: u32 = 10_000;
/// Thirty-three years of months; more is a slip of the keyboard.
const INTERVAL_MAX: i32 = 400;
/// A bound on the work for each day looked at.
const EXCEPTIONS_MAX: usize = 1_000;

const PARTS: [&str; 8] =
    ["FREQ", "INTERVAL", "BYDAY", "BYMONTHDAY", "BYHOUR", "BYMINUTE", "COUNT", "UNTIL"];

/// A recurrence rule as it was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Text {
    rule: String,
    start: Option<String>,
    except: Vec<String>,
}

impl Text {
    /// Takes the fields of a window. The rule may itself hold the lines `DTSTART`, `RRULE` and
    /// `EXDATE` of an iCalendar file.
    pub(super) fn new(
        rule: &str,
        start: Option<&str>,
        except: &[String],
        zone: &TimeZone,
    ) -> Result<Self, CalendarError> {
        let fail = |problem| CalendarError::new("rrule", problem);
        let mut text =
            Self { start: start.map(str::to_owned), except: except.to_vec(), ..Self::default() };
        for line in rule.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (property, value) = match line.split_once(':') {
                // A rule has no colon of its own, so what is before one is a property's name.
                Some((property, value)) => (property.to_uppercase(), value),
                None => ("RRULE".to_owned(), line),
            };
            let name = property.split(';').next().unwrap_or_default();
            check_zone(&property, zone).map_err(fail)?;
            match name {
                "RRULE" if text.rule.is_empty() => value.clone_into(&mut text.rule),
                "DTSTART" if text.start.is_none() => text.start = Some(value.to_owned()),
                "RRULE" | "DTSTART" => {
                    return Err(fail(Problem::Contradiction(format!("{name} is given twice"))));
                }
                "EXDATE" => text.except.extend(value.split(',').map(str::to_owned)),
                other => {
                    return Err(fail(Problem::unsupported(
                        other,
                        "a rule may come with DTSTART and EXDATE",
                    )));
                }
            }
        }
        if text.except.len() > EXCEPTIONS_MAX {
            return Err(CalendarError::new(
                "except",
                Problem::out_of_range(text.except.len(), format!("at most {EXCEPTIONS_MAX}")),
            ));
        }
        Ok(text)
    }

    /// Understands it.
    pub(super) fn parse(&self, zone: &TimeZone) -> Result<Rule, CalendarError> {
        let start = self.start(zone).map_err(|problem| CalendarError::new("start", problem))?;
        let except = self
            .except
            .iter()
            .map(|text| Moment::parse(text))
            .collect::<Result<BTreeSet<Moment>, Problem>>()
            .map_err(|problem| CalendarError::new("except", problem))?;
        Parts::read(&self.rule)
            .and_then(|parts| parts.rule(start, except))
            .map_err(|problem| CalendarError::new("rrule", problem))
    }

    fn start(&self, zone: &TimeZone) -> Result<Option<DateTime>, Problem> {
        let Some(text) = &self.start else { return Ok(None) };
        let start = match Moment::parse(text)? {
            Moment::Day(date) => date.to_datetime(Time::midnight()),
            Moment::Local(local) => local,
            Moment::Instant(instant) => zone.to_datetime(instant),
        };
        if start.second() != 0 || start.subsec_nanosecond() != 0 {
            return Err(Problem::unsupported("a start with seconds", "name a whole minute"));
        }
        if !(1970..=2199).contains(&start.year()) {
            return Err(Problem::out_of_range(start.year(), "a year from 1970 to 2199"));
        }
        Ok(Some(start))
    }
}

/// The parts of the rule, by name.
struct Parts<'a>(BTreeMap<String, &'a str>);

impl<'a> Parts<'a> {
    fn read(rule: &'a str) -> Result<Self, Problem> {
        let mut parts = BTreeMap::new();
        for part in rule.split(';').filter(|part| !part.trim().is_empty()) {
            let Some((name, value)) = part.split_once('=') else {
                return Err(Problem::malformed(part, "NAME=VALUE"));
            };
            let name = name.trim().to_uppercase();
            if !PARTS.contains(&name.as_str()) {
                return Err(Problem::unsupported(
                    format!("the part {name}"),
                    format!("supported are {}", PARTS.join(", ")),
                ));
            }
            if parts.insert(name.clone(), value.trim()).is_some() {
                return Err(Problem::Contradiction(format!("{name} is given twice")));
            }
        }
        Ok(Self(parts))
    }

    fn rule(&self, start: Option<DateTime>, except: BTreeSet<Moment>) -> Result<Rule, Problem> {
        let interval = self.interval()?;
        if interval > 1 && start.is_none() {
            return Err(Problem::Missing(
                "INTERVAL needs a start (DTSTART) to count from".to_owned(),
            ));
        }
        let days = self.days(interval, start)?;
        let last = self.0.get("UNTIL").map(|text| Moment::parse(text)).transpose()?;
        let mut rule = Rule { days, minutes: self.minutes(start)?, start, last, except };
        if let Some(count) = self.count()? {
            if last.is_some() {
                return Err(Problem::Contradiction(
                    "COUNT and UNTIL exclude each other".to_owned(),
                ));
            }
            if start.is_none() {
                return Err(Problem::Missing(
                    "COUNT needs a start (DTSTART) to count from".to_owned(),
                ));
            }
            rule.end_after(count);
        }
        Ok(rule)
    }

    fn days(&self, interval: i32, start: Option<DateTime>) -> Result<Days, Problem> {
        let by_day = self.by_day()?;
        let by_month_day = self.numbers("BYMONTHDAY", -31, 31)?.unwrap_or_default();
        if by_month_day.contains(&0) {
            return Err(Problem::out_of_range("BYMONTHDAY=0", "1 to 31, or -31 to -1"));
        }
        let ordinals = by_day.iter().any(|by_day| by_day.ordinal.is_some());
        let needs_start = |what: &str| {
            Problem::Missing(format!("the rule needs {what} or a start (DTSTART) to take it from"))
        };
        let frequency = self.0.get("FREQ").map(|text| text.to_uppercase());
        match frequency.as_deref() {
            Some("DAILY") if !ordinals => {
                Ok(Days::Daily { interval, filter: DayFilter { by_day, by_month_day } })
            }
            Some("WEEKLY") if !ordinals && by_month_day.is_empty() => {
                let weekdays: BTreeSet<i8> = if by_day.is_empty() {
                    let start = start.ok_or_else(|| needs_start("BYDAY"))?;
                    BTreeSet::from([start.weekday().to_sunday_zero_offset()])
                } else {
                    by_day.iter().map(|by_day| by_day.weekday.to_sunday_zero_offset()).collect()
                };
                Ok(Days::Weekly { interval, weekdays })
            }
            Some("MONTHLY") => {
                let mut filter = DayFilter { by_day, by_month_day };
                if filter == DayFilter::default() {
                    let start = start.ok_or_else(|| needs_start("BYDAY, BYMONTHDAY"))?;
                    filter.by_month_day.insert(start.day());
                }
                Ok(Days::Monthly { interval, filter })
            }
            Some(frequency @ ("DAILY" | "WEEKLY")) => {
                let part = if ordinals { "an ordinal in BYDAY" } else { "BYMONTHDAY" };
                Err(Problem::unsupported(
                    format!("{part} with FREQ={frequency}"),
                    "use FREQ=MONTHLY",
                ))
            }
            Some(other) => Err(Problem::unsupported(
                format!("FREQ={other}"),
                "supported are DAILY, WEEKLY and MONTHLY",
            )),
            None => Err(Problem::Missing("the rule has no FREQ".to_owned())),
        }
    }

    fn minutes(&self, start: Option<DateTime>) -> Result<BTreeSet<i16>, Problem> {
        let hours = self.numbers("BYHOUR", 0, 23)?;
        let minutes = self.numbers("BYMINUTE", 0, 59)?;
        let Some(hours) = hours.or_else(|| start.map(|start| BTreeSet::from([start.hour()])))
        else {
            return Err(Problem::Missing(
                "the rule needs BYHOUR or a start (DTSTART) to take the time of day from"
                    .to_owned(),
            ));
        };
        let minutes =
            minutes.unwrap_or_else(|| BTreeSet::from([start.map_or(0, |start| start.minute())]));
        Ok(times(&hours, &minutes))
    }

    fn interval(&self) -> Result<i32, Problem> {
        let Some(text) = self.0.get("INTERVAL") else { return Ok(1) };
        text.parse().ok().filter(|interval| (1..=INTERVAL_MAX).contains(interval)).ok_or_else(
            || Problem::out_of_range(format!("INTERVAL={text}"), format!("1 to {INTERVAL_MAX}")),
        )
    }

    fn count(&self) -> Result<Option<u32>, Problem> {
        let Some(text) = self.0.get("COUNT") else { return Ok(None) };
        let count = text.parse().ok().filter(|count| (1..=COUNT_MAX).contains(count));
        count.map(Some).ok_or_else(|| {
            Problem::out_of_range(format!("COUNT={text}"), format!("1 to {COUNT_MAX}"))
        })
    }

    fn numbers(&self, name: &str, low: i8, high: i8) -> Result<Option<BTreeSet<i8>>, Problem> {
        let Some(text) = self.0.get(name) else { return Ok(None) };
        let number = |text: &str| {
            text.trim()
                .parse::<i8>()
                .ok()
                .filter(|number| (low..=high).contains(number))
                .ok_or_else(|| {
                    Problem::out_of_range(format!("{name}={text}"), format!("{low} to {high}"))
                })
        };
        text.split(',').map(number).collect::<Result<_, _>>().map(Some)
    }

    fn by_day(&self) -> Result<Vec<ByDay>, Problem> {
        let Some(text) = self.0.get("BYDAY") else { return Ok(Vec::new()) };
        let expected = "weekdays such as MO, or 2TU and -1FR with FREQ=MONTHLY";
        let by_day = |item: &str| {
            let item = item.trim();
            let problem = || Problem::malformed(format!("BYDAY={item}"), expected);
            let split = item.len().checked_sub(2).ok_or_else(problem)?;
            let (ordinal, weekday) = item.split_at_checked(split).ok_or_else(problem)?;
            let weekday = moment::weekday(weekday).ok_or_else(problem)?;
            if ordinal.is_empty() {
                return Ok(ByDay { ordinal: None, weekday });
            }
            let ordinal: i8 = ordinal.parse().map_err(|_| problem())?;
            if ordinal == 0 || !(-5..=5).contains(&ordinal) {
                return Err(Problem::out_of_range(format!("BYDAY={item}"), "1 to 5, or -5 to -1"));
            }
            Ok(ByDay { ordinal: Some(ordinal), weekday })
        };
        text.split(',').map(by_day).collect()
    }
}

/// A property may name a zone, but only the window's: two would leave open which one is meant.
fn check_zone(property: &str, zone: &TimeZone) -> Result<(), Problem> {
    for parameter in property.split(';').skip(1) {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        match name {
            "TZID" if zone.iana_name().is_some_and(|zone| zone.eq_ignore_ascii_case(value)) => {}
            "TZID" => {
                return Err(Problem::Contradiction(format!(
                    "TZID={value} is not the window's timeZone"
                )));
            }
            "VALUE" if matches!(value, "DATE" | "DATE-TIME") => {}
            other => {
                return Err(Problem::unsupported(
                    format!("the parameter {other}"),
                    "DTSTART and EXDATE take TZID and VALUE",
                ));
            }
        }
    }
    Ok(())
}
