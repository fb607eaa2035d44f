//! What does a policy say, read anew for the judge? Only what the swarm and the scripts write.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use machinist_api::{
    MaintenancePolicy, MaintenancePolicySpec,
    maintenance_policy::{
        AfterSurgeTimeout, Approval, Budgets, ControlPlaneMaintenance, WhenNoWindow,
    },
};

use super::calendar::CalendarTruth;
use crate::api_server::Object;

/// A MaintenancePolicy; by default, what holds without any.
#[derive(Clone, Debug, Default)]
pub(super) struct PolicyTruth {
    pub(super) name: String,
    pub(super) priority: i32,
    pools: BTreeSet<String>,
    roles: BTreeSet<String>,
    pub(super) calendar: CalendarTruth,
    pub(super) paused_since: Option<Timestamp>,
    spec: MaintenancePolicySpec,
}

impl PolicyTruth {
    pub(super) fn read(object: &Object, known: Option<&Self>, now: Timestamp) -> Self {
        let policy: MaintenancePolicy =
            serde_json::from_value(object.value().clone()).unwrap_or_default();
        let spec = policy.spec;
        let selector = spec.selector.clone().unwrap_or_default();
        let is_paused = spec.paused == Some(true);
        Self {
            name: object.name().to_owned(),
            priority: spec.priority.unwrap_or(0),
            pools: selector.pools.into_iter().collect(),
            roles: selector.roles.into_iter().collect(),
            calendar: CalendarTruth::read(&spec),
            paused_since: is_paused
                .then(|| known.and_then(|known| known.paused_since).unwrap_or(now)),
            spec,
        }
    }

    pub(super) fn selects(&self, pool: Option<&str>, role: Option<&str>) -> bool {
        let is_of = |names: &BTreeSet<String>, name: Option<&str>| {
            names.is_empty() || name.is_some_and(|name| names.contains(name))
        };
        is_of(&self.pools, pool) && is_of(&self.roles, role)
    }

    pub(super) fn allows_control_plane(&self) -> bool {
        self.spec.control_plane == Some(ControlPlaneMaintenance::OneAtATime)
    }

    pub(super) fn wants_approval(&self) -> bool {
        self.spec.approval == Some(Approval::Manual)
    }

    /// Whether it may be worked on against the calendar where that is too late.
    pub(super) fn overrules_calendar(&self, is_approved: bool) -> bool {
        match self.spec.when_no_window.unwrap_or(WhenNoWindow::Ask) {
            WhenNoWindow::ActAnyway => true,
            WhenNoWindow::Ask | WhenNoWindow::MoveEvent => is_approved,
            WhenNoWindow::LetProviderAct => false,
        }
    }

    pub(super) fn goes_on_without_surplus(&self) -> bool {
        let surge = self.spec.surge.as_ref().and_then(|surge| surge.after_timeout);
        surge == Some(AfterSurgeTimeout::Proceed)
    }

    /// How many of a pool may be out of work at once.
    pub(super) fn of_pool(&self, size: usize) -> usize {
        limit(self.budgets().and_then(|all| all.pool.as_ref()), size).unwrap_or(1)
    }

    pub(super) fn of_zone(&self) -> Option<usize> {
        limit(self.budgets()?.zone.as_ref(), 0)
    }

    pub(super) fn of_cluster(&self) -> Option<usize> {
        limit(self.budgets()?.cluster.as_ref(), 0)
    }

    pub(super) fn cool_down(&self) -> SignedDuration {
        let text = self.budgets().and_then(|all| all.cool_down.as_deref());
        text.and_then(|text| text.parse().ok()).unwrap_or(SignedDuration::ZERO)
    }

    pub(super) fn retention(&self) -> Option<SignedDuration> {
        self.spec.retention.as_deref().and_then(|text| text.parse().ok())
    }

    fn budgets(&self) -> Option<&Budgets> {
        self.spec.budgets.as_ref()
    }
}

/// A share is at least one.
fn limit(value: Option<&IntOrString>, size: usize) -> Option<usize> {
    match value? {
        IntOrString::Int(number) => usize::try_from(*number).ok(),
        IntOrString::String(text) => match text.strip_suffix('%') {
            Some(share) => share.parse::<usize>().ok().map(|share| (size * share / 100).max(1)),
            None => text.parse().ok(),
        },
    }
}
