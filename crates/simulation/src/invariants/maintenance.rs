//! What must hold of maintenance? Budgets, windows, quorum, surplus and cordons, over what is stored and
//! what the cloud is asked for.
//!
//! Work begins with a stored record, and everything that is done for it is done under that record: the
//! record's beginning is held to the calendar, the budgets and people's word (`start`), each thing that
//! is done to a record that allows it (`effects`), and in the end nothing of it is left (`quiet`).
//! `calendar` and `policy` are written anew for this, and share nothing with what they judge.

mod calendar;
mod effects;
mod policy;
mod quiet;
mod start;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use machinist_api::{
    MachineMaintenance, MaintenanceAction, MaintenancePhase, MaintenanceWork,
    names::{annotation, label, maintenance_reason as reason},
};

use self::policy::PolicyTruth;
use super::{Judge, truth::MachineTruth};
use crate::api_server::{Commit, Object, value_at};

/// What is true of maintenance.
#[derive(Debug, Default)]
pub(super) struct MaintenanceTruth {
    /// By uid.
    records: BTreeMap<String, Record>,
    /// By name.
    policies: BTreeMap<String, PolicyTruth>,
    /// Whether an operator cordoned a Node that is cordoned, by its uid.
    cordons: BTreeMap<String, bool>,
    /// When others made a Node schedulable last, by its name.
    uncordoned: BTreeMap<String, Timestamp>,
    /// Since when everything is paused.
    paused_since: Option<Timestamp>,
}

/// A MachineMaintenance as it is stored.
#[derive(Clone, Debug, Default)]
struct Record {
    object: MachineMaintenance,
    phase: MaintenancePhase,
    work: MaintenanceWork,
}

impl Record {
    fn read(object: &Object) -> Self {
        let object: MachineMaintenance =
            serde_json::from_value(object.value().clone()).unwrap_or_default();
        let status = object.status.clone().unwrap_or_default();
        let work = status.work.unwrap_or_default();
        Self { phase: status.phase.unwrap_or_default(), work, object }
    }

    fn uid(&self) -> &str {
        self.object.metadata.uid.as_deref().unwrap_or_default()
    }

    fn machine(&self) -> &str {
        &self.object.spec.machinelink
    }

    fn action(&self) -> MaintenanceAction {
        self.work.action.unwrap_or(MaintenanceAction::Nothing)
    }

    fn waits_on(&self, what: &str) -> bool {
        let plan = self.object.status.as_ref().and_then(|status| status.plan.as_ref());
        plan.is_some_and(|plan| plan.waits_on.iter().any(|wait| wait.reason == what))
    }

    fn is_approved(&self) -> bool {
        let annotations = self.object.metadata.annotations.as_ref();
        annotations.is_some_and(|all| all.contains_key(annotation::MAINTENANCE_APPROVED))
    }
}

impl MaintenanceTruth {
    /// The work that is under way on a Machine.
    fn under_way(&self, machine_uid: &str) -> Option<&Record> {
        self.records.values().find(|record| {
            record.phase.is_under_way() && record.work.machine_uid.as_deref() == Some(machine_uid)
        })
    }

    /// The policy that holds for a Machine: the highest priority, then the first by name.
    fn policy_of(&self, pool: Option<&str>, role: Option<&str>) -> PolicyTruth {
        let selecting = self.policies.values().filter(|policy| policy.selects(pool, role));
        let first = selecting.min_by_key(|policy| (-policy.priority, policy.name.clone()));
        first.cloned().unwrap_or_default()
    }
}

impl Judge {
    pub(super) fn maintenance_changed(&mut self, commit: &Commit, by_operator: bool) {
        let uid = commit.object().uid().to_owned();
        let before = self.maintenance.records.get(&uid).cloned().unwrap_or_default();
        let Some(object) = &commit.after else {
            if before.phase.is_under_way() && by_operator {
                let words = format!("its record goes while it is {}", before.phase.as_str());
                self.find("L10", before.machine(), commit.time, words);
            }
            self.maintenance.records.remove(&uid);
            return;
        };
        let after = Record::read(object);
        self.maintenance.records.insert(uid, after.clone());
        if by_operator {
            self.check_transition_times(commit, after.machine());
            if after.phase.is_under_way() && !before.phase.is_under_way() {
                self.check_start(&after, commit.time);
            }
        }
        self.note_reached(&before, &after);
    }

    pub(super) fn policy_changed(&mut self, commit: &Commit) {
        let name = commit.object().name().to_owned();
        match &commit.after {
            None => {
                self.maintenance.policies.remove(&name);
            }
            Some(object) => {
                let known = self.maintenance.policies.get(&name);
                let policy = PolicyTruth::read(object, known, commit.time);
                self.maintenance.policies.insert(name, policy);
            }
        }
    }

    /// Whether a person paused everything.
    pub(super) fn namespace_changed(&mut self, commit: &Commit) {
        let object = commit.object();
        if object.name() != crate::template::NAMESPACE {
            return;
        }
        let annotations = value_at(object.value(), "/metadata/annotations");
        let is_paused =
            annotations.is_some_and(|all| all.get(annotation::MAINTENANCE_PAUSED).is_some());
        self.maintenance.paused_since =
            is_paused.then(|| self.maintenance.paused_since.unwrap_or(commit.time));
    }

    /// The interesting states.
    fn note_reached(&mut self, before: &Record, after: &Record) {
        let enters = |phase| after.phase == phase && before.phase != phase;
        let action = after.action();
        let is_undone = before.phase == MaintenancePhase::Undoing;
        let states = [
            (after.waits_on(reason::OUTSIDE_WINDOW), "a maintenance waits for its window"),
            (after.waits_on(reason::FROZEN), "a maintenance waits for the end of a freeze"),
            (after.waits_on(reason::BUDGET_EXHAUSTED), "a maintenance waits for a budget"),
            (
                after.waits_on(reason::NO_WINDOW_IN_TIME)
                    && after.waits_on(reason::APPROVAL_MISSING),
                "a maintenance comes too late and asks a person",
            ),
            (after.waits_on(reason::LEFT_TO_PROVIDER), "a maintenance is left to the provider"),
            (
                enters(MaintenancePhase::Cancelled) && is_undone,
                "a maintenance is called off and everything is put back",
            ),
            (
                enters(MaintenancePhase::Failed) && is_undone,
                "a maintenance fails and everything is put back",
            ),
            (
                enters(MaintenancePhase::Succeeded) && after.work.surge.is_some(),
                "a machine is replaced with a surplus first",
            ),
            (
                enters(MaintenancePhase::Succeeded) && after.work.replacement.is_some(),
                "a machine of the control plane is replaced by a copy",
            ),
            (
                enters(MaintenancePhase::Succeeded) && action == MaintenanceAction::Reboot,
                "a machine is rebooted in place",
            ),
            (
                enters(MaintenancePhase::Succeeded) && action == MaintenanceAction::StopStart,
                "a machine is stopped and started",
            ),
            (
                after.work.drain.as_ref().is_some_and(|drain| drain.forced),
                "a drain is forced after its deadline",
            ),
            (
                before.phase.is_under_way()
                    && after.phase.is_under_way()
                    && before.action() < action
                    && before.action() != MaintenanceAction::Nothing,
                "an action that failed gives way to another",
            ),
        ];
        for (_, what) in states.into_iter().filter(|(is_so, _)| *is_so) {
            self.reached.push(what);
        }
    }

    /// Notes since when a Machine does its work, or does not.
    pub(super) fn note_work(&mut self, uid: &str, now: Timestamp) {
        let Some(machine) = self.machines.get(uid).cloned() else { return };
        let works = self.works(&machine);
        if let Some(machine) = self.machines.get_mut(uid) {
            match works {
                true => machine.broken_since = None,
                false => {
                    machine.broken_since.get_or_insert(now);
                }
            }
        }
    }

    /// The Machine of a Node, by its link.
    pub(super) fn machine_of_node(&self, node: &str) -> Option<String> {
        let linked = |one: &&MachineTruth| one.node.as_deref() == Some(node);
        self.machines.values().find(linked).map(|one| one.uid.clone())
    }

    /// Whether a Machine is out of work for longer than a view may take to show it.
    fn is_seen_broken(&self, machine: &MachineTruth, now: Timestamp) -> bool {
        machine.broken_since.is_some_and(|since| self.must_be_seen(since, now))
    }

    fn policy_for(&self, machine: &MachineTruth) -> PolicyTruth {
        let pool = machine.owner.as_ref().and_then(|owner| self.sets.get(owner));
        let role = machine.labels.get(label::MACHINE_ROLE).map(String::as_str);
        self.maintenance.policy_of(pool.map(|set| set.name.as_str()), role)
    }
}

fn is_control_plane(machine: &MachineTruth) -> bool {
    machine.labels.get(label::MACHINE_ROLE).is_some_and(|role| role == "master")
}

fn later(at: Timestamp, by: SignedDuration) -> Timestamp {
    let furthest = if by.is_negative() { Timestamp::MIN } else { Timestamp::MAX };
    at.checked_add(by).unwrap_or(furthest)
}
