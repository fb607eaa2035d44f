//! How a `meta/v1` condition of Cluster API is made, found and set without touching the others.
//!
//! The conditions of the OpenShift kinds are in `crate::condition`: they have a severity, and their time
//! moves with the reason. Here it moves with the status only, as Kubernetes has it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::condition::to_seconds;

pub const TRUE: &str = "True";
pub const FALSE: &str = "False";
pub const UNKNOWN: &str = "Unknown";

/// A condition with everything in it but the generation, which `set` fills in.
pub fn new(
    type_: &str,
    status: &str,
    reason: &str,
    message: impl Into<String>,
    at: jiff::Timestamp,
) -> Condition {
    Condition {
        last_transition_time: to_seconds(at),
        message: message.into(),
        observed_generation: None,
        reason: reason.to_owned(),
        status: status.to_owned(),
        type_: type_.to_owned(),
    }
}

/// Finds the condition of a type.
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether the condition of a type is there and True.
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    has_status(conditions, type_, TRUE)
}

/// Whether the condition of a type is there and False.
pub fn is_false(conditions: &[Condition], type_: &str) -> bool {
    has_status(conditions, type_, FALSE)
}

fn has_status(conditions: &[Condition], type_: &str, status: &str) -> bool {
    find(conditions, type_).is_some_and(|condition| condition.status == status)
}

/// Sets one condition and keeps the order that Cluster API's tools show. The transition time moves only
/// with the status, and the generation is that of the object, so that setting the same again writes nothing.
pub fn set(conditions: &mut Vec<Condition>, mut new: Condition, generation: Option<i64>) {
    new.observed_generation = generation;
    match conditions.iter_mut().find(|condition| condition.type_ == new.type_) {
        Some(existing) => {
            if existing.status == new.status {
                new.last_transition_time = existing.last_transition_time.clone();
            }
            *existing = new;
        }
        None => conditions.push(new),
    }
    sort(conditions);
}

/// Takes a condition away.
pub fn remove(conditions: &mut Vec<Condition>, type_: &str) {
    conditions.retain(|condition| condition.type_ != type_);
}

/// The order that Cluster API's tools show: what sums up first, the end of a life last.
pub fn sort(conditions: &mut [Condition]) {
    const FIRST: [&str; 4] = ["Available", "Ready", "UpToDate", "RollingOut"];
    const LAST: [&str; 5] = ["ScalingUp", "ScalingDown", "Remediating", "Deleting", "Paused"];
    let place = |type_: &str| {
        let first = FIRST.iter().position(|known| *known == type_);
        let last = LAST.iter().position(|known| *known == type_);
        match (first, last) {
            (Some(index), _) => (0, index),
            (None, Some(index)) => (2, index),
            (None, None) => (1, 0),
        }
    };
    conditions.sort_by(|left, right| {
        place(&left.type_).cmp(&place(&right.type_)).then_with(|| left.type_.cmp(&right.type_))
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> jiff::Timestamp {
        jiff::Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn the_time_moves_with_the_status_only() {
        let mut conditions = vec![new("Ready", FALSE, "NotReady", "a", at(1))];
        set(&mut conditions, new("Ready", FALSE, "NotReady", "b", at(5)), Some(2));
        assert_eq!(conditions[0].last_transition_time.0, at(1));
        assert_eq!(
            (conditions[0].message.as_str(), conditions[0].observed_generation),
            ("b", Some(2))
        );
        set(&mut conditions, new("Ready", TRUE, "Ready", "", at(9)), Some(2));
        assert_eq!(conditions[0].last_transition_time.0, at(9));
    }

    #[test]
    fn summaries_come_first_and_the_end_last() {
        let mut conditions = Vec::new();
        for type_ in ["Paused", "NodeReady", "Deleting", "Ready", "Foreign", "Available"] {
            set(&mut conditions, new(type_, TRUE, "R", "", at(1)), None);
        }
        let types: Vec<_> = conditions.iter().map(|condition| condition.type_.as_str()).collect();
        assert_eq!(types, ["Available", "Ready", "Foreign", "NodeReady", "Deleting", "Paused"]);
    }
}
