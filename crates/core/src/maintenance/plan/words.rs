//! The sentences of a plan. The condition, the event, the command line and the page show the same.

use jiff::{SignedDuration, Timestamp};
use machinist_api::{MaintenanceAction, names::maintenance_reason as reason};

use super::{PlanEntry, Standing};
use crate::{
    calendar::{Fit, Standing as CalendarStanding},
    decision::Wait,
};

pub(super) fn sentence(entry: &PlanEntry) -> String {
    let machine = &entry.machine;
    let what = match entry.action {
        MaintenanceAction::Nothing => format!("nothing is done to {machine}"),
        MaintenanceAction::Reboot => format!("{machine} is rebooted"),
        MaintenanceAction::RebootMigrate => {
            format!("{machine} is rebooted, which moves it to another host")
        }
        MaintenanceAction::StopStart => format!("{machine} is stopped and started"),
        MaintenanceAction::Replace => format!("{machine} is replaced"),
    };
    let mut text = match &entry.standing {
        Standing::UnderWay { phase, since } => {
            format!("{what} since {since} ({})", phase.as_str())
        }
        Standing::Due => format!("{what} now"),
        Standing::Planned | Standing::MovesEvent { .. } => match entry.start {
            Some(start) => format!("{what} at {start}"),
            None => format!("{what} later"),
        },
        Standing::Blocked => format!("{what} when it may be"),
        Standing::LeftAlone => what,
    };
    if let Some(window) = &entry.window {
        text.push_str(&format!(" in window {window}"));
    }
    if !entry.because.is_empty() {
        text.push_str(&format!(" because of {}", entry.because));
    }
    if let Some(deadline) = entry.deadline {
        text.push_str(&format!(", due {deadline}"));
    }
    let waits: Vec<&str> = entry.waits_on.iter().map(|wait| wait.message.as_str()).collect();
    if !waits.is_empty() {
        text.push_str(&format!("; {}", waits.join("; ")));
    }
    text
}

/// Why the calendar does not allow a start at an instant.
pub(super) fn closed(fit: &Fit, start: Timestamp, expected: SignedDuration) -> Option<Wait> {
    match fit {
        Fit::Fits => None,
        Fit::Closed(CalendarStanding::Frozen(freezes)) => Some(Wait::on(
            reason::FROZEN,
            format!("freeze {} holds; work may begin at {start}", freezes.join(", ")),
        )),
        Fit::Closed(CalendarStanding::OutsideWindows | CalendarStanding::Open(_)) => {
            Some(Wait::on(
                reason::OUTSIDE_WINDOW,
                format!("no window is open; work may begin at {start}"),
            ))
        }
        Fit::TooShort { closes_at, left } => Some(Wait::on(
            reason::WINDOW_TOO_SHORT,
            format!(
                "the window closes at {closes_at}, in {}, and the work is expected to take {}",
                duration_in_words(*left),
                duration_in_words(expected),
            ),
        )),
    }
}

/// Why work begins when it does.
pub(super) fn why_then(window: &Option<String>, waits: &[Wait]) -> String {
    let waits_for = |word: &str| waits.iter().any(|wait| wait.reason == word);
    let mut reasons = Vec::new();
    if let Some(window) = window {
        reasons.push(format!("window {window} is open then"));
    }
    if waits_for(reason::FROZEN) {
        reasons.push("the freeze is over then".to_owned());
    }
    if waits_for(reason::BUDGET_EXHAUSTED) {
        reasons.push("the budgets have a place then".to_owned());
    }
    if waits_for(reason::NOT_YET) || waits_for(reason::RETRY_LATER) {
        reasons.push("it is not to begin before".to_owned());
    }
    if waits_for(reason::DO_NOT_DISRUPT) {
        reasons.push("it cannot be put off any longer then".to_owned());
    }
    if reasons.is_empty() {
        reasons.push("every hour is allowed".to_owned());
    }
    reasons.join(", and ")
}

/// A duration as a person writes it: `1h20m`.
pub fn duration_in_words(duration: SignedDuration) -> String {
    let minutes = duration.as_mins();
    match (minutes / 60, minutes % 60, duration.as_secs() % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, 0) => format!("{minutes}m"),
        (0, minutes, seconds) => format!("{minutes}m{seconds}s"),
        (hours, 0, _) => format!("{hours}h"),
        (hours, minutes, _) => format!("{hours}h{minutes}m"),
    }
}
