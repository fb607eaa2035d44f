//! What follows from the reasons that still hold: by when, how urgent, and since when.

use jiff::Timestamp;
use machinist_api::{
    MaintenanceReason, MaintenanceReasonKind, MaintenanceReasonState, maintenance_policy::Approval,
};

use super::title;
use crate::maintenance::{event::Code, policy::Policy};

/// The one maintenance that the reasons of a machine come to.
#[derive(Clone, Debug, PartialEq)]
pub struct Need {
    /// Those that hold, the riskiest first.
    pub reasons: Vec<MaintenanceReason>,
    /// When the provider acts, or a person wants it done; the earliest of these.
    pub deadline: Option<Timestamp>,
    /// The event whose time is the deadline, and up to when it may be moved.
    pub movable: Option<Movable>,
    /// When work may begin at the earliest.
    pub earliest: Option<Timestamp>,
    /// Whether a person must approve.
    pub approval: Approval,
    /// Lower is riskier.
    pub risk: u8,
    pub since: Timestamp,
    /// Whether something speaks against all of the reasons: nothing is begun then.
    pub is_doubtful: bool,
}

/// An event that the provider lets be moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Movable {
    pub event_id: String,
    pub until: Timestamp,
}

impl Need {
    /// What the recorded reasons come to; `None` when none of them holds.
    pub fn of(reasons: &[MaintenanceReason], policy: &Policy) -> Option<Self> {
        let mut holding: Vec<MaintenanceReason> = reasons
            .iter()
            .filter(|reason| reason.state == MaintenanceReasonState::Active)
            .cloned()
            .collect();
        holding.sort_by(|left, right| {
            (risk_of(left), deadline_of(left), &left.id).cmp(&(
                risk_of(right),
                deadline_of(right),
                &right.id,
            ))
        });
        let first = holding.first()?;
        let deadline = holding.iter().filter_map(deadline_of).min();
        let movable = holding
            .iter()
            .find(|reason| {
                reason.kind == MaintenanceReasonKind::Event && deadline_of(reason) == deadline
            })
            .and_then(|reason| {
                Some(Movable {
                    event_id: reason.id.clone(),
                    until: reason.not_before_deadline.as_ref()?.0,
                })
            });
        let needs_approval =
            holding.iter().any(|reason| policy.approval_for(&reason.code) == Approval::Manual);
        Some(Self {
            deadline,
            movable,
            earliest: holding.iter().map(|reason| earliest_of(reason, policy)).min().flatten(),
            approval: if needs_approval { Approval::Manual } else { Approval::Automatic },
            risk: risk_of(first),
            since: holding.iter().map(|reason| reason.since.0).min().unwrap_or(first.since.0),
            is_doubtful: holding.iter().all(|reason| reason.missing_since.is_some()),
            reasons: holding,
        })
    }

    /// The reasons in words.
    pub fn in_words(&self) -> String {
        let titles: Vec<String> = self.reasons.iter().map(title).collect();
        titles.join(" and ")
    }

    /// The codes of the reasons, the riskiest first.
    pub fn codes(&self) -> Vec<String> {
        let mut codes: Vec<String> =
            self.reasons.iter().map(|reason| reason.code.clone()).collect();
        codes.dedup();
        codes
    }
}

/// What is lost when nothing is done in time; lower is more.
pub fn risk_of(reason: &MaintenanceReason) -> u8 {
    match (reason.kind, Code::of(&reason.code)) {
        (_, Some(Code::InstanceRetirement)) => 0,
        (_, Some(Code::InstanceStop)) => 1,
        (MaintenanceReasonKind::Drift, None) => 2,
        (_, Some(Code::SystemReboot)) => 3,
        (_, Some(Code::SystemMaintenance)) => 4,
        (_, Some(Code::InstanceReboot)) => 5,
        (MaintenanceReasonKind::Request, None) => 6,
        (MaintenanceReasonKind::Outdated, None) => 7,
        (MaintenanceReasonKind::Event, None) => 8,
    }
}

fn deadline_of(reason: &MaintenanceReason) -> Option<Timestamp> {
    match reason.kind {
        MaintenanceReasonKind::Event => reason.not_before.as_ref().map(|time| time.0),
        MaintenanceReasonKind::Request => reason.not_after.as_ref().map(|time| time.0),
        MaintenanceReasonKind::Drift | MaintenanceReasonKind::Outdated => None,
    }
}

/// One reason that allows work now is enough.
fn earliest_of(reason: &MaintenanceReason, policy: &Policy) -> Option<Timestamp> {
    match reason.kind {
        MaintenanceReasonKind::Request => reason.not_before.as_ref().map(|time| time.0),
        MaintenanceReasonKind::Event => {
            let lead = policy.events.get(&reason.code)?.lead_time?;
            deadline_of(reason)?.checked_sub(lead).ok()
        }
        MaintenanceReasonKind::Drift | MaintenanceReasonKind::Outdated => None,
    }
}
