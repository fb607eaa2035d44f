//! What there is to say of a plan besides its entries.

use schemars::JsonSchema;
use serde::Serialize;

use crate::decision::Severity;

/// A word for programs, a sentence for people, and what it is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Note {
    pub severity: Severity,
    pub reason: &'static str,
    /// The object: `machine/x`, `policy/y`.
    pub about: String,
    pub message: String,
}

impl Note {
    pub fn normal(
        reason: &'static str,
        about: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self { severity: Severity::Normal, reason, about: about.into(), message: message.into() }
    }

    pub fn warning(
        reason: &'static str,
        about: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self { severity: Severity::Warning, ..Self::normal(reason, about, message) }
    }
}

impl PartialOrd for Note {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Warnings first, then by what they are about.
impl Ord for Note {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let key = |note: &Self| (note.severity == Severity::Normal, note.about.clone());
        key(self)
            .cmp(&key(other))
            .then_with(|| self.reason.cmp(other.reason))
            .then_with(|| self.message.cmp(&other.message))
    }
}
