//! How is a machine, in one word?

use machinist_api::{
    Machine,
    condition::{self, ConditionStatus},
    names::{condition_type, phase, reason},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{seen::Waiting, waiting::seen};
use crate::maintenance::{PlanEntry, plan::Standing};

/// One word for the colour of a machine. Later ones are worse.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum MachineState {
    Well,
    Maintenance,
    Starting,
    Leaving,
    Attention,
    Down,
}

/// A word with what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct State {
    pub word: MachineState,
    pub title: &'static str,
    /// One sentence.
    pub explanation: &'static str,
}

/// What a machine waits for on its way up, if nothing is wrong.
const STARTING: [&str; 4] =
    [seen::NOT_LOOKED_AT, seen::LAUNCHING, seen::INSTANCE_PENDING, reason::INSTANCE_NOT_CREATED];

impl MachineState {
    pub const ALL: [Self; 6] =
        [Self::Well, Self::Maintenance, Self::Starting, Self::Leaving, Self::Attention, Self::Down];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Well => "well",
            Self::Maintenance => "maintenance",
            Self::Starting => "starting",
            Self::Leaving => "leaving",
            Self::Attention => "attention",
            Self::Down => "down",
        }
    }

    pub fn explained(self) -> State {
        let (title, explanation) = match self {
            Self::Well => ("Well", "It does its work: its instance runs and its node is ready."),
            Self::Maintenance => ("In maintenance", "A maintenance was begun and is not over yet."),
            Self::Starting => ("Starting", "Its instance is being launched, or has no node yet."),
            Self::Leaving => ("Leaving", "It is being deleted: its node is emptied first."),
            Self::Attention => {
                ("Needs attention", "It is there, but something is not as it should be.")
            }
            Self::Down => ("Down", "Its instance does not run, or it has failed."),
        };
        State { word: self, title, explanation }
    }

    /// Judges a machine, given what holds it up and what is planned for it.
    pub fn of(machine: &Machine, waiting: Option<&Waiting>, entry: Option<&PlanEntry>) -> Self {
        if machine.metadata.deletion_timestamp.is_some() {
            return Self::Leaving;
        }
        if entry.is_some_and(|entry| matches!(entry.standing, Standing::UnderWay { .. })) {
            return Self::Maintenance;
        }
        let Some(waiting) = waiting else { return Self::Well };
        let status = machine.status.as_ref();
        if status.and_then(|status| status.phase.as_deref()) == Some(phase::FAILED) {
            return Self::Down;
        }
        let conditions = status.map(|status| status.conditions.as_slice()).unwrap_or_default();
        let running = condition::find(conditions, condition_type::INSTANCE_RUNNING);
        let is_starting = running.and_then(|one| one.reason.as_deref())
            == Some(reason::INSTANCE_STARTING)
            || STARTING.contains(&waiting.reason.as_str());
        let was_linked = status.is_some_and(|status| status.node_ref.is_some());
        if is_starting || (waiting.reason == seen::NODE_MISSING && !was_linked) {
            return Self::Starting;
        }
        let is_down = running.is_some_and(|one| one.status == ConditionStatus::False)
            || waiting.reason == reason::INSTANCE_MISSING
            || waiting.reason == seen::INSTANCE_NOT_RUNNING;
        if is_down { Self::Down } else { Self::Attention }
    }
}
