//! What one look at the metadata service brought.

use jiff::Timestamp;

use super::scheduled::ScheduledEvents;

/// What one question brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Answer<T> {
    /// The question failed. Nothing follows from that (Rule 9).
    #[default]
    Unknown,
    /// The service says that there is nothing.
    Nothing,
    Announced(T),
}

/// What becomes of an interrupted spot instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Terminate,
    Stop,
    Hibernate,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceAction {
    pub action: Action,
    /// When it happens, where that could be read.
    pub at: Option<Timestamp>,
}

/// All questions of one look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// `spot/termination-time`. The time is only told, never acted on, so it may be missing.
    pub termination: Answer<Option<Timestamp>>,
    /// `spot/instance-action`.
    pub action: Answer<InstanceAction>,
    /// `events/recommendations/rebalance`, with the time of the notice.
    pub rebalance: Answer<Option<Timestamp>>,
    /// `events/maintenance/scheduled`.
    pub events: Answer<ScheduledEvents>,
}

impl<T> Answer<T> {
    pub fn announced(&self) -> Option<&T> {
        match self {
            Self::Announced(what) => Some(what),
            Self::Unknown | Self::Nothing => None,
        }
    }

    /// This answer, or the earlier one where the question failed.
    fn or(self, earlier: Self) -> Self {
        match self {
            Self::Unknown => earlier,
            known => known,
        }
    }
}

impl Observed {
    /// What is known after this look, given what was known before it.
    #[must_use]
    pub fn after(self, earlier: Self) -> Self {
        Self {
            termination: self.termination.or(earlier.termination),
            action: self.action.or(earlier.action),
            rebalance: self.rebalance.or(earlier.rebalance),
            events: self.events.or(earlier.events),
        }
    }

    /// Whether the instance is about to be terminated. Either of the two questions is enough: the
    /// second came years after the first, and imitations of the service answer only one.
    #[must_use]
    pub fn is_terminating(&self) -> bool {
        matches!(self.termination, Answer::Announced(_))
            || self.action.announced().is_some_and(|notice| notice.action == Action::Terminate)
    }

    /// Whether every question failed.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}
