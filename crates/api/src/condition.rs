//! What a condition of the Machine API looks like, and how one is set without touching the others.
//!
//! It differs from `meta/v1` Condition: it has a severity and no observedGeneration.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::Error};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConditionStatus {
    True,
    False,
    Unknown,
}

impl ConditionStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// How bad a condition is that is not True. Absent where the condition is True.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConditionSeverity {
    Error,
    Warning,
    Info,
}

/// One observation about a Machine, MachineSet or MachineHealthCheck.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// The time of the last change of this condition.
    pub last_transition_time: Time,
    /// A human-readable sentence about the last transition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// A CamelCase reason for the last transition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How bad it is; absent where status is True.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "empty_severity_is_none"
    )]
    #[schemars(extend("enum" = ["Error", "Warning", "Info", ""]))]
    pub severity: Option<ConditionSeverity>,
    /// True, False or Unknown.
    pub status: ConditionStatus,
    /// CamelCase type.
    #[serde(rename = "type")]
    pub type_: String,
}

impl Condition {
    /// A condition that holds.
    pub fn holds(type_: &str, at: jiff::Timestamp) -> Self {
        Self {
            last_transition_time: to_seconds(at),
            message: None,
            reason: None,
            severity: None,
            status: ConditionStatus::True,
            type_: type_.to_owned(),
        }
    }

    /// A condition that does not hold, with the reason and the sentence that says why.
    pub fn fails(
        type_: &str,
        severity: ConditionSeverity,
        reason: &str,
        message: impl Into<String>,
        at: jiff::Timestamp,
    ) -> Self {
        Self {
            message: Some(message.into()),
            reason: Some(reason.to_owned()),
            severity: Some(severity),
            status: ConditionStatus::False,
            ..Self::holds(type_, at)
        }
    }

    /// A condition that cannot be told.
    pub fn unknown(
        type_: &str,
        severity: ConditionSeverity,
        reason: &str,
        message: impl Into<String>,
        at: jiff::Timestamp,
    ) -> Self {
        Self {
            status: ConditionStatus::Unknown,
            ..Self::fails(type_, severity, reason, message, at)
        }
    }

    #[must_use]
    pub fn with_reason(mut self, reason: &str) -> Self {
        self.reason = Some(reason.to_owned());
        self
    }

    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }

    fn says_the_same_as(&self, other: &Self) -> bool {
        self.status == other.status
            && self.reason == other.reason
            && self.severity == other.severity
            && self.message == other.message
    }
}

/// Finds the condition of a type.
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether the condition of a type is there and True.
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    find(conditions, type_).is_some_and(|condition| condition.status == ConditionStatus::True)
}

/// Sets one condition and keeps the list sorted by type. The transition time moves only when
/// status, reason, severity or message differ, so that setting the same again writes nothing.
pub fn set(conditions: &mut Vec<Condition>, new: Condition) {
    match conditions.iter_mut().find(|condition| condition.type_ == new.type_) {
        Some(existing) if existing.says_the_same_as(&new) => {}
        Some(existing) => *existing = new,
        None => conditions.push(new),
    }
    conditions.sort_by(|left, right| left.type_.cmp(&right.type_));
}

/// Kubernetes keeps whole seconds; a finer time would differ after each round trip.
pub fn to_seconds(at: jiff::Timestamp) -> Time {
    Time(jiff::Timestamp::from_second(at.as_second()).unwrap_or(at))
}

/// The peer's type is a string, and an empty one means the same as none.
fn empty_severity_is_none<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<ConditionSeverity>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Severity {
        Known(ConditionSeverity),
        Text(String),
    }
    match Option::<Severity>::deserialize(deserializer)? {
        None => Ok(None),
        Some(Severity::Known(severity)) => Ok(Some(severity)),
        Some(Severity::Text(text)) if text.is_empty() => Ok(None),
        Some(Severity::Text(text)) => {
            Err(D::Error::unknown_variant(&text, &["Error", "Warning", "Info"]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> jiff::Timestamp {
        jiff::Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn setting_the_same_again_keeps_the_transition_time() {
        let mut conditions = vec![Condition::holds("Drainable", at(1))];
        set(&mut conditions, Condition::holds("Drainable", at(9)));
        assert_eq!(conditions[0].last_transition_time.0, at(1));
        let blocked =
            Condition::fails("Drainable", ConditionSeverity::Warning, "HookPresent", "x", at(9));
        set(&mut conditions, blocked);
        assert_eq!(conditions[0].last_transition_time.0, at(9));
    }

    #[test]
    fn the_list_stays_sorted_by_type() {
        let mut conditions = Vec::new();
        for type_ in ["Terminable", "Drained", "InstanceExists"] {
            set(&mut conditions, Condition::holds(type_, at(1)));
        }
        let types: Vec<_> = conditions.iter().map(|condition| condition.type_.as_str()).collect();
        assert_eq!(types, ["Drained", "InstanceExists", "Terminable"]);
    }
}
