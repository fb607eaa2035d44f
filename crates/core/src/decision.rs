//! What every decision looks like, whatever its domain.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

/// What to do, what to say, why nothing more happens, and when to look again.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "a decision that nobody carries out is lost"]
pub struct Decision<Action, Status> {
    /// In order; the executor stops at the first that fails.
    pub actions: Vec<Action>,
    /// The whole status we own, to be published when it differs from what is stored.
    pub status: Status,
    /// What people are to be told once.
    pub announcements: Vec<Announcement>,
    /// Why nothing more happens; empty when nothing more is wanted.
    pub waiting: Vec<Wait>,
    /// The earliest time at which the answer can change without an event.
    pub recheck: Option<Timestamp>,
}

impl<Action, Status> Decision<Action, Status> {
    /// Nothing to do; the status as given.
    pub fn settled(status: Status) -> Self {
        Self {
            actions: Vec::new(),
            status,
            announcements: Vec::new(),
            waiting: Vec::new(),
            recheck: None,
        }
    }

    /// Looks again at `at` at the latest.
    pub fn recheck_by(&mut self, at: Timestamp) {
        self.recheck = Some(self.recheck.map_or(at, |earlier| earlier.min(at)));
    }
}

/// Why something waits: a word for programs and a sentence for people. The same words go to the
/// condition, the event, the metric and the command line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Wait {
    pub reason: &'static str,
    pub message: String,
}

impl Wait {
    pub fn on(reason: &'static str, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }
}

/// A Kubernetes Event to be recorded on the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    pub severity: Severity,
    pub reason: &'static str,
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub enum Severity {
    Normal,
    Warning,
}

impl Announcement {
    pub fn normal(reason: &'static str, message: impl Into<String>) -> Self {
        Self { severity: Severity::Normal, reason, message: message.into() }
    }

    pub fn warning(reason: &'static str, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, reason, message: message.into() }
    }
}

/// A field of an object that is wrong, in the API server's own style.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct FieldError {
    pub path: String,
    pub problem: String,
}

/// What is quoted of the input may be a megabyte; what is said of it goes into conditions and events.
const CHARACTERS_MAX: usize = 4000;

impl FieldError {
    pub fn new(path: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { path: cut(path.into()), problem: cut(problem.into()) }
    }
}

fn cut(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(CHARACTERS_MAX) {
        text.truncate(end);
        text.push_str("...");
    }
    text
}
