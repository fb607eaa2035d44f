//! How are durations, counts, fates and names written in a script?

use std::{fmt, time::Duration};

use jiff::SignedDuration;
use serde::{Deserialize, Deserializer, de};

use crate::effects::EffectFate;

/// A duration: `30s`, `5m`, `1h 30m`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span(pub Duration);

impl Span {
    #[must_use]
    pub const fn seconds(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    #[must_use]
    pub fn signed(self) -> SignedDuration {
        SignedDuration::try_from(self.0).unwrap_or(SignedDuration::MAX)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        span(&text).map(Self).map_err(de::Error::custom)
    }
}

fn span(text: &str) -> Result<Duration, String> {
    let parsed: SignedDuration = text
        .parse()
        .map_err(|error| format!("duration {text:?}: {error}; write it as 30s, 5m or 1h 30m"))?;
    Duration::try_from(parsed).map_err(|_| format!("duration {text:?} is negative"))
}

/// How many: `3`, `at most 3`, `at least 3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    Exactly(u64),
    AtMost(u64),
    AtLeast(u64),
}

impl Count {
    #[must_use]
    pub const fn holds(self, number: u64) -> bool {
        match self {
            Self::Exactly(wanted) => number == wanted,
            Self::AtMost(most) => number <= most,
            Self::AtLeast(least) => number >= least,
        }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exactly(wanted) => write!(formatter, "{wanted}"),
            Self::AtMost(most) => write!(formatter, "at most {most}"),
            Self::AtLeast(least) => write!(formatter, "at least {least}"),
        }
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let (make, number): (fn(u64) -> Self, &str) =
            match (text.strip_prefix("at most "), text.strip_prefix("at least ")) {
                (Some(number), _) => (Self::AtMost, number),
                (_, Some(number)) => (Self::AtLeast, number),
                (None, None) => (Self::Exactly, &text),
            };
        number.trim().parse().map(make).map_err(|_| {
            de::Error::custom(format!(
                "count {text:?}: write it as 3, \"at most 3\" or \"at least 3\""
            ))
        })
    }
}

/// What becomes of an effect: `crashBefore`, `crashAfter`, `loseAnswer`, `refuse`, `delay 20s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fate(pub EffectFate);

impl<'de> Deserialize<'de> for Fate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let fate = match text.as_str() {
            "crashBefore" => EffectFate::CrashBefore,
            "crashAfter" => EffectFate::CrashAfter,
            "loseAnswer" => EffectFate::LoseAnswer,
            "refuse" => EffectFate::Refuse,
            other => match other.strip_prefix("delay ") {
                Some(by) => EffectFate::Delay(span(by).map_err(de::Error::custom)?),
                None => {
                    return Err(de::Error::custom(format!(
                        "fate {text:?} is none of crashBefore, crashAfter, loseAnswer, refuse, delay 20s"
                    )));
                }
            },
        };
        Ok(Self(fate))
    }
}

/// A Machine: `name` is the newest of that name, `name#2` the second of that name, and `pool/3` the
/// third that was ever made for a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineName(pub Designation);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Designation {
    Newest(String),
    OfName(String, usize),
    OfPool(String, usize),
}

impl<'de> Deserialize<'de> for MachineName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let numbered = |number: &str| match number.parse::<usize>() {
            Ok(number) if number > 0 => Ok(number),
            _ => Err(de::Error::custom(format!("machine {text:?}: numbers begin with 1"))),
        };
        Ok(Self(match (text.split_once('/'), text.split_once('#')) {
            (Some((pool, number)), _) => Designation::OfPool(pool.to_owned(), numbered(number)?),
            (None, Some((name, number))) => Designation::OfName(name.to_owned(), numbered(number)?),
            (None, None) => Designation::Newest(text),
        }))
    }
}

impl fmt::Display for MachineName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Designation::Newest(name) => write!(formatter, "{name}"),
            Designation::OfName(name, number) => write!(formatter, "{name}#{number}"),
            Designation::OfPool(pool, number) => write!(formatter, "{pool}/{number}"),
        }
    }
}
