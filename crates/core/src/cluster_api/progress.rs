//! Is a status worth a write now? Mere counts are held back for a moment.

use jiff::{SignedDuration, Timestamp};
use machinist_api::cluster_api::names::condition_type;
use serde::Serialize;
use serde_json::Value;

use crate::decision::Decision;

/// Mere counts are written at most this often; a hundred Machines that become ready at once are then a handful of writes.
const SPACING: SignedDuration = SignedDuration::from_secs(1);

/// Nothing to do but to publish the status; one in which only counts moved is held back when another was written a moment ago.
pub fn spaced<Action, Status>(
    stored: Option<&Status>,
    written_at: Option<Timestamp>,
    new: Status,
    now: Timestamp,
) -> Decision<Action, Status>
where
    Status: Clone + Default + PartialEq + Serialize,
{
    let stored = stored.cloned().unwrap_or_default();
    let due = written_at.and_then(|at| at.checked_add(SPACING).ok());
    match due {
        Some(due) if due > now && new != stored && is_mere_progress(&stored, &new) => {
            let mut decision = Decision::settled(stored);
            decision.recheck_by(due);
            decision
        }
        _ => Decision::settled(new),
    }
}

/// What moves while a set, or a deployment, does nothing but grow or shrink.
const COUNTS: [&str; 6] = [
    "replicas",
    "readyReplicas",
    "availableReplicas",
    "upToDateReplicas",
    "versions",
    "deprecated",
];

/// Whether only counts moved in a status, and what is said of Machines by their names.
fn is_mere_progress(stored: &impl Serialize, new: &impl Serialize) -> bool {
    without_counts(stored) == without_counts(new)
}

fn without_counts(status: &impl Serialize) -> Value {
    let mut status = serde_json::to_value(status).unwrap_or_default();
    if let Some(fields) = status.as_object_mut() {
        fields.retain(|name, _| !COUNTS.contains(&name.as_str()));
    }
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
    for one in conditions.into_iter().flatten() {
        if one["type"] != condition_type::DELETING {
            one["message"] = Value::Null;
        }
    }
    status
}
