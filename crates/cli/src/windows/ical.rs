//! How do openings and freezes get into a calendar? As iCalendar, RFC 5545.
//!
//! All times are in UTC, so no zone needs to be defined. What is exported again keeps its UID, and a
//! calendar that imports it twice has it once.

use jiff::{Timestamp, tz::TimeZone};

use machinist_core::overview::windows::{PolicyView, Report};

/// A line has at most so many octets, its end apart (RFC 5545, 3.1).
const OCTETS_MAX: usize = 75;

/// `stamp` is when it is written.
pub(super) fn calendar(report: &Report, stamp: Timestamp) -> String {
    let mut text = String::new();
    for line in [
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:-//Machinist//Maintenance windows//EN",
        "CALSCALE:GREGORIAN",
        "METHOD:PUBLISH",
        "X-WR-CALNAME:Machine maintenance",
    ] {
        push(&mut text, line);
    }
    for policy in &report.policies {
        of_policy(&mut text, policy, stamp);
    }
    push(&mut text, "END:VCALENDAR");
    text
}

fn of_policy(text: &mut String, policy: &PolicyView, stamp: Timestamp) {
    let owner = policy.name.as_deref().unwrap_or("default");
    let holders = match &policy.name {
        Some(name) => format!("policy {name}"),
        None => "machines without a policy".to_owned(),
    };
    for opening in &policy.openings {
        let windows = opening.windows.join(", ");
        let mut words = format!("Maintenance of machines may begin ({holders}).");
        if !opening.until.is_empty() {
            words.push_str(&format!(" Cut short by freeze {}.", opening.until.join(", ")));
        }
        let event = Event {
            uid: uid("opening", owner, &opening.windows.join("+"), opening.start),
            start: opening.start,
            end: opening.end,
            summary: format!("Maintenance window {windows} ({holders})"),
            description: words,
            category: "Maintenance window",
        };
        event.write(text, stamp);
    }
    for freeze in &policy.freezes {
        let event = Event {
            uid: uid("freeze", owner, &freeze.name, freeze.start),
            start: freeze.start,
            end: freeze.end,
            summary: format!("Maintenance freeze {} ({holders})", freeze.name),
            description: format!("No maintenance of machines begins ({holders})."),
            category: "Maintenance freeze",
        };
        event.write(text, stamp);
    }
}

struct Event {
    uid: String,
    start: Timestamp,
    end: Timestamp,
    summary: String,
    description: String,
    category: &'static str,
}

impl Event {
    fn write(&self, text: &mut String, stamp: Timestamp) {
        for line in [
            "BEGIN:VEVENT".to_owned(),
            format!("UID:{}", self.uid),
            format!("DTSTAMP:{}", utc(stamp)),
            format!("DTSTART:{}", utc(self.start)),
            format!("DTEND:{}", utc(self.end)),
            format!("SUMMARY:{}", escaped(&self.summary)),
            format!("DESCRIPTION:{}", escaped(&self.description)),
            format!("CATEGORIES:{}", escaped(self.category)),
            // Nobody is busy because machines may be maintained.
            "TRANSP:TRANSPARENT".to_owned(),
            "END:VEVENT".to_owned(),
        ] {
            push(text, &line);
        }
    }
}

/// The same for the same thing, whenever it is asked for.
fn uid(kind: &str, policy: &str, name: &str, start: Timestamp) -> String {
    let word = |text: &str| -> String {
        let letter = |letter: char| {
            if letter.is_ascii_alphanumeric() || ".+-".contains(letter) { letter } else { '_' }
        };
        text.chars().map(letter).collect()
    };
    format!("{kind}-{}-{}-{}@machinist.dev", word(policy), word(name), utc(start))
}

fn utc(instant: Timestamp) -> String {
    instant.to_zoned(TimeZone::UTC).strftime("%Y%m%dT%H%M%SZ").to_string()
}

/// Text as a value (RFC 5545, 3.3.11).
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\\' | ';' | ',' => escaped.extend(['\\', letter]),
            '\n' => escaped.push_str("\\n"),
            letter if letter.is_control() => {}
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// A line, folded where it is too long, with the end that the format wants.
fn push(text: &mut String, line: &str) {
    let mut room = OCTETS_MAX;
    for letter in line.chars() {
        if letter.len_utf8() > room {
            text.push_str("\r\n ");
            // The space counts.
            room = OCTETS_MAX - 1;
        }
        text.push(letter);
        room -= letter.len_utf8();
    }
    text.push_str("\r\n");
}
