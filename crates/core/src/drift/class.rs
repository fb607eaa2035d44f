//! The names of what can happen to an instance. The same word is the condition's reason, the event's
//! reason and the metric's label.

/// What happened to an instance without the cluster's doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    StoppedByUser,
    StoppedByGuest,
    StoppedByProvider,
    /// The provider does not say by whom.
    Stopped,
    Started,
    Rebooted,
    TerminatedByUser,
    TerminatedByGuest,
    TerminatedByProvider,
    /// The provider took a spot instance back.
    SpotInterruption,
    /// The provider does not say by whom.
    Terminated,
    /// The provider's own checks fail.
    Impaired,
    /// The provider does not know it any more, and nobody saw it terminate.
    Vanished,
}

impl Class {
    pub const ALL: [Self; 13] = [
        Self::StoppedByUser,
        Self::StoppedByGuest,
        Self::StoppedByProvider,
        Self::Stopped,
        Self::Started,
        Self::Rebooted,
        Self::TerminatedByUser,
        Self::TerminatedByGuest,
        Self::TerminatedByProvider,
        Self::SpotInterruption,
        Self::Terminated,
        Self::Impaired,
        Self::Vanished,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::StoppedByUser => "StoppedByUser",
            Self::StoppedByGuest => "StoppedByGuest",
            Self::StoppedByProvider => "StoppedByProvider",
            Self::Stopped => "Stopped",
            Self::Started => "Started",
            Self::Rebooted => "Rebooted",
            Self::TerminatedByUser => "TerminatedByUser",
            Self::TerminatedByGuest => "TerminatedByGuest",
            Self::TerminatedByProvider => "TerminatedByProvider",
            Self::SpotInterruption => "SpotInterruption",
            Self::Terminated => "Terminated",
            Self::Impaired => "Impaired",
            Self::Vanished => "Vanished",
        }
    }

    /// The class that an event's reason names, if it names one: an event about drift is counted.
    pub fn from_reason(reason: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.as_str() == reason)
    }

    pub fn is_stop(self) -> bool {
        matches!(
            self,
            Self::StoppedByUser | Self::StoppedByGuest | Self::StoppedByProvider | Self::Stopped
        )
    }

    /// Whether the instance is certainly gone, or going: nothing brings it back.
    pub fn is_termination(self) -> bool {
        matches!(
            self,
            Self::TerminatedByUser
                | Self::TerminatedByGuest
                | Self::TerminatedByProvider
                | Self::SpotInterruption
                | Self::Terminated
        )
    }

    /// What happened, for a sentence that begins with the instance.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::StoppedByUser => "was stopped by a user",
            Self::StoppedByGuest => "was shut down from inside",
            Self::StoppedByProvider => "was stopped by the provider",
            Self::Stopped => "was stopped",
            Self::Started => "was started",
            Self::Rebooted => "was rebooted",
            Self::TerminatedByUser => "was terminated by a user",
            Self::TerminatedByGuest => "was terminated from inside",
            Self::TerminatedByProvider => "was terminated by the provider",
            Self::SpotInterruption => "was taken back by the provider (spot)",
            Self::Terminated => "was terminated",
            Self::Impaired => "fails the provider's checks",
            Self::Vanished => "is not known to the provider any more",
        }
    }
}
