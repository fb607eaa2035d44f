//! What can go wrong? Every fault of the model with its id, its greatest rate, and where it is injected.

pub mod api;
pub mod storm;

use serde::{Deserialize, Serialize};

/// How bad a run is.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum, Serialize, Deserialize,
)]
#[serde(rename_all = "camelCase")]
pub enum Level {
    /// Nothing fails: the reference.
    Calm,
    /// A tenth of the greatest rates.
    Windy,
    /// The greatest rates.
    Stormy,
}

impl Level {
    /// The part of the greatest rate that is drawn from.
    #[must_use]
    pub const fn factor(self) -> f64 {
        match self {
            Self::Calm => 0.0,
            Self::Windy => 0.1,
            Self::Stormy => 1.0,
        }
    }

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Calm => "calm",
            Self::Windy => "windy",
            Self::Stormy => "stormy",
        }
    }
}

/// How a fault comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// With this probability at each request, event or effect.
    Each,
    /// With this probability in each minute.
    Minute,
    /// As part of the run's plan, with this probability.
    Run,
}

macro_rules! faults {
    ($($name:ident $rate:literal $trigger:ident $words:literal,)*) => {
        /// A kind of fault, by its id.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum FaultKind { $($name,)* }

        impl FaultKind {
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            #[must_use]
            pub const fn id(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }

            #[must_use]
            pub const fn words(self) -> &'static str {
                match self { $(Self::$name => $words,)* }
            }

            #[must_use]
            pub const fn max_rate(self) -> f64 {
                match self { $(Self::$name => $rate,)* }
            }

            #[must_use]
            pub const fn trigger(self) -> Trigger {
                match self { $(Self::$name => Trigger::$trigger,)* }
            }
        }
    };
}

faults! {
    F01 0.20 Each "conflict on a write",
    F02 0.10 Each "error, not applied",
    F03 0.05 Each "applied, answer lost",
    F04 0.02 Minute "429 with Retry-After for a while",
    F05 0.05 Minute "403 for one verb of one kind for a while",
    F06 0.03 Minute "API server unreachable",
    F07 0.05 Each "stale list",
    F08 0.10 Each "watch lags",
    F09 0.02 Each "watch event dropped until the next list",
    F10 0.05 Each "watch event doubled",
    F11 0.30 Each "watch events overtake each other",
    F12 0.005 Each "watch goes back in time for one object",
    F13 0.04 Minute "history expired, everything is listed again",
    F14 0.002 Each "watch falls silent",
    F16 0.10 Each "a list takes long while others work",
    F17 0.02 Each "answers of writes come late",
    F18 0.50 Run "deleted and made again with the same name",
    F24 0.50 Run "a budget that lets nobody go for a while",
    F25 0.05 Each "pods take all of their grace period",
    F30 0.01 Each "crash before or after an effect",
    F31 0.01 Minute "crash loop",
    F32 0.02 Minute "process paused",
    F33 0.05 Minute "process cut off from the API server while the cloud answers",
    F35 0.50 Run "looks without a reason",
    F38 0.05 Minute "crash at any await, or a stop in between",
    F40 0.30 Run "new instances are not shown for a while",
    F41 0.05 Run "an instance is found by tag and not by id, or the reverse",
    F42 0.005 Run "an old instance is not shown once",
    F43 0.50 Run "pages are short and in any order",
    F44 0.10 Run "launch refused",
    F45 0.05 Run "launch fails and has happened",
    F46 0.50 Run "the user data changes between two tries",
    F49 0.03 Run "launched instance dies or never runs",
    F50 0.05 Run "termination takes effect late, or says not found",
    F51 0.05 Minute "termination refused for a while",
    F52 0.50 Run "throttling",
    F55 0.50 Run "names of nodes are used again",
    F56 0.05 Minute "instance stopped, rebooted or terminated by hand",
    F57 0.03 Minute "spot notice or scheduled stop",
    F58 0.01 Minute "credentials refused for a while",
    F59 0.50 Run "the cloud's clock differs",
    F60 0.05 Run "reads of the cloud are stale",
    F70 0.05 Each "node joins late or never",
    F71 0.03 Minute "node not ready for a while, all at once too",
    F72 0.01 Minute "kubelet dead, instance alive",
    F73 0.50 Run "strangers ask for certificates, and nodes for those of others",
    F80 0.01 Minute "wall clock jumps",
}

/// Faults that are not injected, and why.
pub const NOT_INJECTED: &[(&str, &str)] = &[
    ("F15", "a stream of bookmarks only is an idle watch, which is the usual case"),
    ("F34", "the queue is part of what is tested: a key that it loses shows as L1"),
    ("F47", "the model's tokens are zonal by nature; launches repeat token and zone together"),
    ("F48", "tokens are remembered for a day, longer than a run"),
    ("F53", "the operator launches and terminates one by one"),
];
