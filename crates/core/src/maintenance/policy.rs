//! What a MaintenancePolicy says, read and found valid; and what holds where there is none.

mod manifest;
mod read;

use std::collections::BTreeMap;

use jiff::SignedDuration;
use machinist_api::{
    MaintenanceAction,
    maintenance_policy::{
        AfterDrainDeadline, AfterSurgeTimeout, Approval, ControlPlaneMaintenance,
        NotificationWebhook, OnImpaired, OutdatedMachines, WhenNoWindow,
    },
};

use crate::{calendar::Calendar, drift::policy::DriftDefaults};

pub use manifest::read_manifest;
pub use read::{read, selector};

/// What holds for some machines.
#[derive(Clone, Debug)]
pub struct Policy {
    /// `None` where no policy selects a machine.
    pub name: Option<String>,
    pub calendar: Calendar,
    /// What is done for an event code.
    pub events: BTreeMap<String, EventRule>,
    pub budgets: Budgets,
    pub surge: Surge,
    pub drain: Drain,
    pub approval: Approval,
    pub when_no_window: WhenNoWindow,
    /// How much earlier than the deadline work is to be over.
    pub margin: SignedDuration,
    pub control_plane: ControlPlaneMaintenance,
    pub outdated: OutdatedMachines,
    pub on_impaired: OnImpaired,
    pub impaired_grace: SignedDuration,
    pub drift: DriftDefaults,
    /// Why nothing is begun, where nothing is.
    pub paused: Option<String>,
    /// How long the record of a finished maintenance is kept.
    pub retention: SignedDuration,
    /// How long a machine may take to be well again afterwards.
    pub verification: SignedDuration,
    pub webhook: Option<NotificationWebhook>,
}

/// What is done for one event code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventRule {
    pub action: MaintenanceAction,
    /// `None`: whatever heals more.
    pub escalation: Option<Vec<MaintenanceAction>>,
    pub approval: Option<Approval>,
    pub lead_time: Option<SignedDuration>,
}

/// How many machines may be out of work at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budgets {
    pub pool: Limit,
    pub zone: Option<Limit>,
    pub cluster: Option<Limit>,
    /// How long a finished machine keeps its place.
    pub cool_down: SignedDuration,
}

/// A number, or a share of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    Number(usize),
    Percent(usize),
}

impl Limit {
    /// How many that is of so many machines. A share is at least one, or a small pool could never be
    /// maintained.
    pub fn of(self, machines: usize) -> usize {
        match self {
            Self::Number(number) => number,
            Self::Percent(percent) => (machines.saturating_mul(percent) / 100).max(1),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surge {
    /// Whether a pool has a machine more while one of its machines is replaced.
    pub is_wanted: bool,
    pub timeout: SignedDuration,
    pub after_timeout: AfterSurgeTimeout,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drain {
    pub deadline: SignedDuration,
    pub after_deadline: AfterDrainDeadline,
}

impl Default for Policy {
    /// What holds for machines that no policy selects: any hour, at once, one of a pool at a time,
    /// with a surplus machine first; the control plane is only reported on.
    fn default() -> Self {
        Self {
            name: None,
            calendar: Calendar::default(),
            events: BTreeMap::new(),
            budgets: Budgets {
                pool: Limit::Number(1),
                zone: None,
                cluster: None,
                cool_down: SignedDuration::ZERO,
            },
            surge: Surge {
                is_wanted: true,
                // The managed-upgrade-operator's limit for the same wait.
                timeout: SignedDuration::from_mins(30),
                after_timeout: AfterSurgeTimeout::Abandon,
            },
            drain: Drain {
                deadline: SignedDuration::from_hours(1),
                // One Node that never drains must not keep its place in the budgets for ever.
                after_deadline: AfterDrainDeadline::Abandon,
            },
            approval: Approval::Automatic,
            when_no_window: WhenNoWindow::Ask,
            margin: SignedDuration::from_mins(30),
            control_plane: ControlPlaneMaintenance::ReportOnly,
            outdated: OutdatedMachines::Report,
            on_impaired: OnImpaired::Report,
            // The provider's own recovery of a failed host takes minutes, and comes first.
            impaired_grace: SignedDuration::from_mins(15),
            drift: DriftDefaults::default(),
            paused: None,
            retention: SignedDuration::from_hours(336),
            verification: SignedDuration::from_hours(1),
            webhook: None,
        }
    }
}

impl Policy {
    /// What it is called in a sentence.
    pub fn title(&self) -> String {
        match &self.name {
            Some(name) => format!("policy {name}"),
            None => "the default policy".to_owned(),
        }
    }

    /// Whether a person must approve work for an event of this code.
    pub fn approval_for(&self, code: &str) -> Approval {
        self.events.get(code).and_then(|rule| rule.approval).unwrap_or(self.approval)
    }
}
