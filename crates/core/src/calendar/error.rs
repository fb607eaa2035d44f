//! What is wrong with a window or a freeze, and in which field?

/// One field of a window or a freeze that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct CalendarError {
    /// The field, as a path from the object that was parsed, such as `windows[0].timeZone`.
    pub field: String,
    /// What is wrong with it.
    pub problem: Problem,
}

impl CalendarError {
    pub(super) fn new(field: impl Into<String>, problem: Problem) -> Self {
        Self { field: field.into(), problem }
    }

    /// The same error, seen from the object that holds this one.
    pub(super) fn within(self, parent: &str) -> Self {
        Self { field: format!("{parent}.{}", self.field), problem: self.problem }
    }
}

/// What is wrong with a field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The time zone is not in the database.
    #[error("\"{0}\" is no time zone of the IANA database; expected a name such as Europe/Berlin")]
    UnknownZone(String),
    /// The text is not of the form that the field has.
    #[error("\"{text}\" is not valid: expected {expected}")]
    Malformed {
        /// What was read.
        text: String,
        /// What the field takes.
        expected: String,
    },
    /// The text has the right form and says something that is not supported.
    #[error("{what} is not supported; {instead}")]
    Unsupported {
        /// The part, by its name.
        what: String,
        /// What is.
        instead: String,
    },
    /// The window would be open for no time at all.
    #[error("a window that is open for no time is never open")]
    ZeroDuration,
    /// The value lies outside of what is allowed.
    #[error("{value} is out of range: expected {expected}")]
    OutOfRange {
        /// What was read.
        value: String,
        /// The range.
        expected: String,
    },
    /// Something else must be said as well.
    #[error("{0}")]
    Missing(String),
    /// Two things that exclude each other are said.
    #[error("{0}")]
    Contradiction(String),
    /// No moment satisfies the rule.
    #[error("the rule never fires: {0}")]
    NeverFires(String),
}

impl Problem {
    pub(super) fn malformed(text: impl Into<String>, expected: impl Into<String>) -> Self {
        Self::Malformed { text: text.into(), expected: expected.into() }
    }

    pub(super) fn unsupported(what: impl Into<String>, instead: impl Into<String>) -> Self {
        Self::Unsupported { what: what.into(), instead: instead.into() }
    }

    pub(super) fn out_of_range(value: impl ToString, expected: impl Into<String>) -> Self {
        Self::OutOfRange { value: value.to_string(), expected: expected.into() }
    }
}
