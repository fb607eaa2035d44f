//! When is which machine maintained? The whole fleet's reasons, laid on the calendar under the budgets.
//!
//! The operator, `machinist plan` and the page call this one function, so that what is shown is what
//! happens. It is pure and deterministic: the same fleet at the same instant gives the same plan,
//! whatever the order of its machines.
//!
//! The order is that of the deadlines, then of the risk, then of age. Each machine takes the first
//! time at which a window is open for as long as the work is expected to take and every budget has a
//! place. What cannot be done in time is said, and the policy's answer is planned.

mod capacity;
mod fleet;
mod openings;
mod places;
mod schedule;
mod words;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use machinist_api::{MaintenanceAction, MaintenancePhase, condition::to_seconds};
use schemars::JsonSchema;
use serde::Serialize;

use super::{note::Note, policy::Policy};
use crate::{decision::Wait, overview::instant::Instant};

pub use fleet::{
    ClusterState, ControlPlane, ControlPlaneProblem, Finished, Fleet, FleetMachine, FleetPool,
    Home, UnderWay,
};
pub use words::duration_in_words;

/// When is which machine maintained.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Plan {
    /// The instant for which it holds.
    pub as_of: Timestamp,
    /// What is under way, then what is planned by time, then what is blocked by deadline.
    pub entries: Vec<PlanEntry>,
    /// Warnings first.
    pub notes: Vec<Note>,
    /// Where in the entries a machine is.
    #[serde(skip)]
    index: BTreeMap<String, usize>,
}

impl Plan {
    /// What is planned for a Machine.
    pub fn entry(&self, machine: &str) -> Option<&PlanEntry> {
        self.entries.get(*self.index.get(machine)?)
    }

    /// The earliest time at which the plan can change by the passing of time alone.
    pub fn recheck(&self) -> Option<Timestamp> {
        let later = self.entries.iter().flat_map(|entry| [entry.start, entry.latest_safe_start]);
        later.flatten().filter(|time| *time > self.as_of).min()
    }
}

/// What is planned for one machine.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanEntry {
    pub machine: String,
    pub machine_uid: String,
    pub pool: Option<String>,
    pub zone: Option<String>,
    /// `None` where no policy selects the machine.
    pub policy: Option<String>,
    pub standing: Standing,
    pub action: MaintenanceAction,
    /// What is done instead when that fails.
    pub and_then: Vec<MaintenanceAction>,
    #[schemars(with = "Option<Instant>")]
    pub start: Option<Timestamp>,
    /// When it is expected to be over.
    #[schemars(with = "Option<Instant>")]
    pub end: Option<Timestamp>,
    /// The windows that work begins in, with commas between; none where there are none.
    pub window: Option<String>,
    #[schemars(with = "Option<Instant>")]
    pub latest_safe_start: Option<Timestamp>,
    #[schemars(with = "Option<Instant>")]
    pub deadline: Option<Timestamp>,
    #[serde(rename = "expectedSeconds", serialize_with = "as_seconds")]
    #[schemars(with = "i64")]
    pub expected: SignedDuration,
    /// Whether it will not be over before its deadline, or only against the calendar.
    pub is_late: bool,
    /// The codes of its reasons, the riskiest first.
    pub codes: Vec<String>,
    /// Its reasons in words.
    pub because: String,
    /// Why this action.
    pub why_action: String,
    /// Why then.
    pub why: String,
    /// What keeps it from beginning now.
    pub waits_on: Vec<Wait>,
}

/// How a planned maintenance stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", tag = "is")]
pub enum Standing {
    /// It was begun.
    UnderWay {
        phase: MaintenancePhase,
        #[schemars(with = "Instant")]
        since: Timestamp,
    },
    /// It may begin now.
    Due,
    /// It begins later.
    Planned,
    /// The provider's event is moved first.
    MovesEvent {
        #[serde(rename = "eventId")]
        event_id: String,
        #[schemars(with = "Instant")]
        to: Timestamp,
    },
    /// Something must change before it has a time.
    Blocked,
    /// The provider acts, or nobody.
    LeftAlone,
}

impl PlanEntry {
    /// Whether it may begin now.
    pub fn is_due(&self) -> bool {
        self.standing == Standing::Due
    }

    /// The same work, with no word on when.
    pub(super) fn without_a_time(&self) -> Self {
        Self { standing: Standing::Blocked, start: None, end: None, ..self.clone() }
    }

    /// One sentence: what, why, when and why then. The condition, the event and the command line
    /// show it.
    pub fn sentence(&self) -> String {
        words::sentence(self)
    }
}

/// Lays the whole fleet's reasons on the calendar.
pub fn plan(fleet: &Fleet<'_>, now: Timestamp) -> Plan {
    // What is stored and shown has no parts of seconds, and a plan is what it says.
    let whole_second = to_seconds(now).0;
    let (mut entries, mut notes) = schedule::Planner::new(fleet, whole_second).run();
    entries.sort_by(|left, right| order(left).cmp(&order(right)));
    notes.extend(fleet.notes.iter().cloned());
    notes.sort();
    notes.dedup();
    let index =
        entries.iter().enumerate().map(|(index, entry)| (entry.machine.clone(), index)).collect();
    Plan { as_of: now, entries, notes, index }
}

fn order(entry: &PlanEntry) -> (u8, Timestamp, Timestamp, &str) {
    let rank = match entry.standing {
        Standing::UnderWay { .. } => 0,
        Standing::Due | Standing::Planned | Standing::MovesEvent { .. } => 1,
        Standing::Blocked => 2,
        Standing::LeftAlone => 3,
    };
    (
        rank,
        entry.start.unwrap_or(Timestamp::MAX),
        entry.deadline.unwrap_or(Timestamp::MAX),
        &entry.machine,
    )
}

/// The last instant at which work may begin and be over before the deadline, with the policy's margin.
pub fn latest_safe_start(
    deadline: Timestamp,
    expected: SignedDuration,
    policy: &Policy,
) -> Timestamp {
    deadline.checked_sub(expected.saturating_add(policy.margin)).unwrap_or(Timestamp::MIN)
}

fn as_seconds<S: serde::Serializer>(
    duration: &SignedDuration,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_i64(duration.as_secs())
}
