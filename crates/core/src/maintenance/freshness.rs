//! How old may what is known of the pods in another cluster be? They are asked for, and nobody tells when they change.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use machinist_api::names::maintenance_reason as reason;

use super::PlanEntry;
use crate::{cluster_api::maintained, decision::Wait};

/// Work that begins within this time is near.
const NEAR: SignedDuration = SignedDuration::from_hours(1);
/// When work is near or under way, when the pods hold it, and else.
pub const WHEN_NEAR: Duration = Duration::from_secs(10);
const WHEN_HELD: Duration = Duration::from_secs(50);
const WHEN_FAR: Duration = Duration::from_mins(10);

/// By what is planned for the machine that they are on. What is planned for the first time is looked at at once: it is said in
/// the plan.
pub fn of_pods(entry: Option<&PlanEntry>, now: Timestamp) -> Duration {
    let soon = now.checked_add(NEAR).unwrap_or(Timestamp::MAX);
    match entry {
        Some(entry) if is_held_by_pods(entry) => WHEN_HELD,
        Some(entry) if entry.start.is_none_or(|start| start > soon) => WHEN_FAR,
        Some(_) | None => WHEN_NEAR,
    }
}

/// Whether pods in another cluster keep it from beginning.
pub fn is_held_by_pods(entry: &PlanEntry) -> bool {
    let is_of_pods =
        |wait: &Wait| [reason::DO_NOT_DISRUPT, reason::DRAIN_IMPOSSIBLE].contains(&wait.reason);
    maintained::parts(&entry.machine).is_some() && entry.waits_on.iter().any(is_of_pods)
}

#[cfg(test)]
mod tests {
    use machinist_api::MaintenanceAction;

    use super::*;
    use crate::maintenance::plan::Standing;

    fn entry(machine: &str, start: Option<i64>, waits_on: Option<&'static str>) -> PlanEntry {
        PlanEntry {
            machine: machine.to_owned(),
            machine_uid: String::new(),
            pool: None,
            zone: None,
            policy: None,
            standing: Standing::Planned,
            action: MaintenanceAction::Replace,
            and_then: Vec::new(),
            start: start.map(|second| Timestamp::from_second(second).unwrap()),
            end: None,
            window: None,
            latest_safe_start: None,
            deadline: None,
            expected: SignedDuration::ZERO,
            is_late: false,
            codes: Vec::new(),
            because: String::new(),
            why_action: String::new(),
            why: String::new(),
            waits_on: waits_on.map(|reason| Wait::on(reason, "")).into_iter().collect(),
        }
    }

    #[test]
    fn the_nearer_the_work_the_younger() {
        let held = Some(reason::DO_NOT_DISRUPT);
        let table = [
            ("planned for the first time", None, WHEN_NEAR),
            ("within the hour", Some(entry("ns/m", Some(3_600), None)), WHEN_NEAR),
            ("later", Some(entry("ns/m", Some(3_601), None)), WHEN_FAR),
            ("without a time", Some(entry("ns/m", None, Some(reason::PAUSED))), WHEN_FAR),
            ("held by pods", Some(entry("ns/m", None, held)), WHEN_HELD),
            ("held by pods that are watched", Some(entry("m", None, held)), WHEN_FAR),
        ];
        for (name, entry, within) in table {
            assert_eq!(of_pods(entry.as_ref(), Timestamp::UNIX_EPOCH), within, "{name}");
        }
    }
}
