//! What does a cron expression of five fields say?
//!
//! The dialect is that of a Kubernetes CronJob: minute, hour, day of the month, month, weekday; each a
//! list of `*`, numbers, names, ranges and steps. When both day fields restrict, either may match.

use std::collections::BTreeSet;

use super::{
    error::Problem,
    moment,
    rule::{Days, Rule},
};

struct Field {
    name: &'static str,
    low: i8,
    high: i8,
    named: fn(&str) -> Option<i8>,
}

const MINUTE: Field = Field { name: "minute", low: 0, high: 59, named: |_| None };
const HOUR: Field = Field { name: "hour", low: 0, high: 23, named: |_| None };
const MONTH_DAY: Field = Field { name: "day of the month", low: 1, high: 31, named: |_| None };
const MONTH: Field = Field {
    name: "month",
    low: 1,
    high: 12,
    named: |text| if text.len() == 3 { moment::month(text) } else { None },
};
/// 7 is Sunday too, so that `5-7` can be written.
const WEEKDAY: Field = Field {
    name: "weekday",
    low: 0,
    high: 7,
    named: |text| {
        if text.len() == 3 {
            moment::weekday(text).map(jiff::civil::Weekday::to_sunday_zero_offset)
        } else {
            None
        }
    },
};

/// Reads the expression.
pub(super) fn parse(text: &str) -> Result<Rule, Problem> {
    refuse_dialects(text)?;
    let fields: Vec<&str> = text.split_whitespace().collect();
    let [minute, hour, month_day, month, weekday] = fields[..] else {
        return Err(Problem::malformed(
            text,
            "five fields: minute, hour, day of the month, month, weekday",
        ));
    };
    let (minutes, _) = MINUTE.parse(minute)?;
    let (hours, _) = HOUR.parse(hour)?;
    let (month_days, any_month_day) = MONTH_DAY.parse(month_day)?;
    let (months, _) = MONTH.parse(month)?;
    let (weekdays, any_weekday) = WEEKDAY.parse(weekday)?;
    let weekdays = weekdays.into_iter().map(|weekday| weekday % 7).collect();
    Ok(Rule {
        days: Days::Cron { months, month_days, weekdays, either: !any_month_day && !any_weekday },
        minutes: times(&hours, &minutes),
        start: None,
        last: None,
        except: BTreeSet::new(),
    })
}

/// Every hour with every minute, as minutes since midnight.
pub(super) fn times(hours: &BTreeSet<i8>, minutes: &BTreeSet<i8>) -> BTreeSet<i16> {
    let of_hour = |hour: &i8| {
        let hour = i16::from(*hour) * 60;
        minutes.iter().map(move |minute| hour + i16::from(*minute))
    };
    hours.iter().flat_map(of_hour).collect()
}

/// Extensions are refused by their name, so that nobody takes one for a spelling mistake.
fn refuse_dialects(text: &str) -> Result<(), Problem> {
    let trimmed = text.trim();
    if trimmed.starts_with('@') {
        return Err(Problem::unsupported(trimmed, "write the five fields"));
    }
    if trimmed.starts_with("TZ=") || trimmed.starts_with("CRON_TZ=") {
        return Err(Problem::unsupported("a time zone in the expression", "use timeZone"));
    }
    if let Some(sign) = trimmed.chars().find(|sign| matches!(sign, '?' | '#')) {
        return Err(Problem::unsupported(
            format!("'{sign}'"),
            "use *, numbers, names, ranges, lists and steps, or an RRULE with BYDAY=2TU",
        ));
    }
    Ok(())
}

impl Field {
    /// The values, and whether the field leaves everything open.
    fn parse(&self, text: &str) -> Result<(BTreeSet<i8>, bool), Problem> {
        let mut values = BTreeSet::new();
        let mut any = false;
        for item in text.split(',') {
            let (range, step) = match item.split_once('/') {
                Some((range, step)) => (range, Some(self.step(item, step)?)),
                None => (item, None),
            };
            // The weekday 7 is a second name for 0, not a day more.
            let open_end = if self.high == 7 { 6 } else { self.high };
            let (low, high) = if range == "*" {
                // As in Kubernetes, `*/2` restricts and `*` does not.
                any |= step.is_none_or(|step| step == 1);
                (self.low, open_end)
            } else if let Some((low, high)) = range.split_once('-') {
                (self.value(item, low)?, self.value(item, high)?)
            } else {
                let value = self.value(item, range)?;
                (value, if step.is_some() { open_end.max(value) } else { value })
            };
            if low > high {
                return Err(Problem::malformed(
                    item,
                    format!("a range of the {} that does not run backwards", self.name),
                ));
            }
            values.extend((low..=high).step_by(step.unwrap_or(1)));
        }
        Ok((values, any))
    }

    fn value(&self, item: &str, text: &str) -> Result<i8, Problem> {
        if let Some(value) = (self.named)(text) {
            return Ok(value);
        }
        if matches!(text, "L" | "l") || text.ends_with(['W', 'w']) {
            return Err(Problem::unsupported(
                format!("'{text}' in the {}", self.name),
                "use an RRULE with BYMONTHDAY=-1 or BYDAY=-1FR",
            ));
        }
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i8>()
            .ok()
            .filter(|value| digits && (self.low..=self.high).contains(value))
            .ok_or_else(|| Problem::malformed(item, self.expected()))
    }

    fn step(&self, item: &str, text: &str) -> Result<usize, Problem> {
        text.parse::<usize>()
            .ok()
            .filter(|step| *step > 0)
            .ok_or_else(|| Problem::malformed(item, format!("a step of the {} above 0", self.name)))
    }

    fn expected(&self) -> String {
        format!("a {} from {} to {}", self.name, self.low, self.high)
    }
}
