//! What is planned, as it is shown?

use jiff::Timestamp;
use machinist_api::{MaintenanceWait, names::maintenance_reason};
use schemars::JsonSchema;
use serde::Serialize;

use super::{instant::Instant, picture::Picture, row::needs_approval, wish::approve};
use crate::maintenance::{Note, PlanEntry, gather::postponed_until, plan::Standing};

/// The whole plan.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanView {
    pub version: String,
    /// The instant for which it holds.
    #[schemars(with = "Instant")]
    pub as_of: Timestamp,
    /// What is under way, then what is planned by time, then what is blocked by deadline.
    pub entries: Vec<EntryView>,
    /// Warnings first.
    pub notes: Vec<Note>,
}

/// What is planned for one machine.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EntryView {
    #[serde(flatten)]
    pub entry: PlanEntry,
    /// What it waits for that only the operator sees, as it recorded it.
    pub held_up_by: Vec<MaintenanceWait>,
    /// All of it in one sentence, as in the conditions of its MachineMaintenance.
    pub sentence: String,
    pub needs_approval: bool,
    pub approved: bool,
    /// Until when a person put it off.
    #[schemars(with = "Option<Instant>")]
    pub postponed_until: Option<Timestamp>,
    pub can_postpone: bool,
    /// Whether it is stuck: late, blocked, or held up by what does not pass by itself.
    pub is_stuck: bool,
}

impl EntryView {
    pub fn of(entry: &PlanEntry, picture: &Picture<'_>) -> Self {
        let name = entry.machine.as_str();
        let record = picture.records.get(name).copied();
        let held_up_by = picture.held_up.get(name).copied().unwrap_or_default().to_vec();
        let is_open = !matches!(entry.standing, Standing::UnderWay { .. } | Standing::LeftAlone);
        Self {
            is_stuck: is_stuck(entry, &held_up_by),
            held_up_by,
            sentence: entry.sentence(),
            needs_approval: needs_approval(entry),
            approved: approve::is_approved(name, picture),
            postponed_until: record.and_then(postponed_until),
            can_postpone: is_open && record.is_some(),
            entry: entry.clone(),
        }
    }

    /// Whether it says the same, apart from the instant: what is due begins now, whenever now is.
    pub fn says_the_same(&self, other: &Self) -> bool {
        let timeless = |view: &Self| {
            let mut view = view.clone();
            if view.entry.is_due() {
                (view.entry.start, view.entry.end) = (None, None);
            }
            if let Standing::UnderWay { .. } = view.entry.standing {
                view.entry.end = None;
            }
            view
        };
        timeless(self) == timeless(other)
    }
}

/// What work under way waits for as a matter of course: other things that are under way, too.
const PASSING: [&str; 9] = [
    maintenance_reason::SURGE_NOT_READY,
    maintenance_reason::DRAINING,
    maintenance_reason::MACHINE_GOING,
    maintenance_reason::INSTANCE_NOT_RUNNING,
    maintenance_reason::NODE_NOT_READY,
    maintenance_reason::NODE_NOT_REBOOTED,
    maintenance_reason::EVENT_STILL_PRESENT,
    maintenance_reason::WORKLOADS_NOT_BACK,
    maintenance_reason::NOT_YET,
];

fn is_stuck(entry: &PlanEntry, held_up_by: &[MaintenanceWait]) -> bool {
    let is_held = held_up_by.iter().any(|wait| !PASSING.contains(&wait.reason.as_str()));
    entry.is_late || entry.standing == Standing::Blocked || needs_approval(entry) || is_held
}

/// Shows the plan of a picture.
pub fn plan(picture: &Picture<'_>) -> PlanView {
    PlanView {
        version: String::new(),
        as_of: picture.now,
        entries: picture.plan.entries.iter().map(|one| EntryView::of(one, picture)).collect(),
        notes: picture.plan.notes.clone(),
    }
}
