//! What do the texts of the metadata service mean?
//!
//! Whatever comes is survived: a text that means nothing is an error for the log, never a notice.

use std::collections::BTreeMap;

use jiff::{Timestamp, fmt::strtime, tz::TimeZone};
use serde_json::{Map, Value};

use super::{
    observed::{Action, InstanceAction},
    scheduled::{EventState, ScheduledEvent, ScheduledEvents},
};

/// How much of a description, or of a text that is complained about, is kept.
const TEXT_MAX: usize = 200;

/// Why a text means nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the metadata service answers {question} with {text:?}, which is not {wanted}")]
pub struct Unreadable {
    pub question: &'static str,
    pub text: String,
    pub wanted: &'static str,
}

/// `spot/termination-time`: a time, or nothing at all, as some imitations of the service answer.
/// AWS says that any other text is no notice.
///
/// # Errors
/// Fails when the text is neither.
pub fn termination_time(text: &str) -> Result<Option<Timestamp>, Unreadable> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let unreadable = || complaint("spot/termination-time", text, "a time");
    time(text).map(Some).ok_or_else(unreadable)
}

/// `spot/instance-action`: `{"action": "terminate", "time": "2026-06-01T12:02:00Z"}`.
///
/// # Errors
/// Fails when the text names no action that is known.
pub fn instance_action(text: &str) -> Result<InstanceAction, Unreadable> {
    let unreadable = || complaint("spot/instance-action", text, "an action and its time");
    let value: Value = serde_json::from_str(text).map_err(|_| unreadable())?;
    let action = match value.get("action").and_then(Value::as_str) {
        Some("terminate") => Action::Terminate,
        Some("stop") => Action::Stop,
        Some("hibernate") => Action::Hibernate,
        _ => return Err(unreadable()),
    };
    Ok(InstanceAction { action, at: value.get("time").and_then(Value::as_str).and_then(time) })
}

/// `events/recommendations/rebalance`: `{"noticeTime": "2026-06-01T12:00:00Z"}`.
///
/// # Errors
/// Fails when the text is not such a notice.
pub fn rebalance(text: &str) -> Result<Option<Timestamp>, Unreadable> {
    let unreadable = || complaint("events/recommendations/rebalance", text, "a notice");
    let value: Value = serde_json::from_str(text).map_err(|_| unreadable())?;
    let notice = value.get("noticeTime").and_then(Value::as_str).ok_or_else(unreadable)?;
    Ok(time(notice))
}

/// `events/maintenance/scheduled`: an array of events. An entry without an id or a code is left out,
/// and noted.
///
/// # Errors
/// Fails when the text is no array.
pub fn scheduled_events(text: &str) -> Result<ScheduledEvents, Unreadable> {
    let unreadable = || complaint("events/maintenance/scheduled", text, "an array of events");
    let entries: Vec<Value> = serde_json::from_str(text).map_err(|_| unreadable())?;
    let mut events = ScheduledEvents { by_id: BTreeMap::new(), is_partial: false };
    for entry in &entries {
        match entry.as_object().and_then(event) {
            Some((id, event)) => {
                events.by_id.insert(id, event);
            }
            None => events.is_partial = true,
        }
    }
    Ok(events)
}

fn event(entry: &Map<String, Value>) -> Option<(String, ScheduledEvent)> {
    let field = |name: &str| {
        let text = entry.get(name).and_then(Value::as_str).map(str::trim);
        text.filter(|text| !text.is_empty())
    };
    let description = field("Description").unwrap_or_default();
    let event = ScheduledEvent {
        code: shortened(field("Code")?),
        state: state(field("State"), description),
        not_before: field("NotBefore").and_then(time),
        not_after: field("NotAfter").and_then(time),
        not_before_deadline: field("NotBeforeDeadline").and_then(time),
        description: shortened(description),
    };
    Some((shortened(field("EventId")?), event))
}

/// A finished event says so in its state, or at the beginning of its description. Anything else is
/// work to come: better looked at for nothing than overlooked.
fn state(word: Option<&str>, description: &str) -> EventState {
    let begins = |prefix: &str| {
        let beginning = description.get(..prefix.len());
        beginning.is_some_and(|beginning| beginning.eq_ignore_ascii_case(prefix))
    };
    let is = |wanted: &str| word.is_some_and(|word| word.eq_ignore_ascii_case(wanted));
    if is("completed") || begins("[Completed]") {
        EventState::Completed
    } else if is("canceled") || is("cancelled") || begins("[Canceled]") || begins("[Cancelled]") {
        EventState::Canceled
    } else {
        EventState::Active
    }
}

/// The service writes `2026-06-01T12:02:00Z` in some places and `1 Jun 2026 12:02:00 GMT` in others.
fn time(text: &str) -> Option<Timestamp> {
    if let Ok(time) = text.parse() {
        return Some(time);
    }
    let civil = strtime::parse("%d %b %Y %H:%M:%S GMT", text).ok()?.to_datetime().ok()?;
    civil.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
}

fn complaint(question: &'static str, text: &str, wanted: &'static str) -> Unreadable {
    Unreadable { question, text: shortened(text), wanted }
}

fn shortened(text: &str) -> String {
    text.chars().take(TEXT_MAX).collect()
}
