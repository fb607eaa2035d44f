//! Does the calendar open and close when a person would say so?

use jiff::{SignedDuration, Timestamp};

use super::*;

mod calendars;
mod daylight_saving;
mod freezes;
mod properties;
mod refusals;
mod rules;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn hours(hours: i64) -> SignedDuration {
    SignedDuration::from_hours(hours)
}

fn cron(name: &str, text: &str, duration: &str, zone: &str) -> WindowSpec {
    WindowSpec {
        name: name.to_owned(),
        schedule: Schedule::Cron(text.to_owned()),
        duration: duration.to_owned(),
        time_zone: Some(zone.to_owned()),
    }
}

fn rrule(name: &str, rule: &str, duration: &str, zone: &str) -> WindowSpec {
    WindowSpec {
        name: name.to_owned(),
        schedule: Schedule::Rrule { rule: rule.to_owned(), start: None, except: Vec::new() },
        duration: duration.to_owned(),
        time_zone: Some(zone.to_owned()),
    }
}

fn dates(name: &str, from: &str, to: &str, zone: &str) -> FreezeSpec {
    FreezeSpec {
        name: name.to_owned(),
        span: FreezeSpan::Dates { from: from.to_owned(), to: to.to_owned() },
        time_zone: Some(zone.to_owned()),
    }
}

fn calendar(windows: &[WindowSpec], freezes: &[FreezeSpec]) -> Calendar {
    Calendar::parse(windows, freezes).unwrap()
}

/// The openings as `start / end`, in UTC.
fn spans(calendar: &Calendar, from: &str, to: &str) -> Vec<String> {
    calendar
        .openings(at(from), at(to))
        .openings
        .iter()
        .map(|opening| format!("{} / {}", short(opening.start), short(opening.end)))
        .collect()
}

/// The times at which one window opens, in UTC.
fn starts(spec: &WindowSpec, from: &str, to: &str) -> Vec<String> {
    Window::parse(spec).unwrap().starts(at(from), at(to), 1_000).into_iter().map(short).collect()
}

fn short(instant: Timestamp) -> String {
    instant.strftime("%Y-%m-%dT%H:%MZ").to_string()
}
