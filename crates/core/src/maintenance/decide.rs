//! What is the next step of one maintenance?
//!
//! A pass that enters a phase, or decides on an effect, stores that and does nothing else; the pass
//! after it does what is stored. So whatever process comes next finds in the record, and in the marks
//! on the objects themselves, what was begun, and goes on with it or undoes it. At most one effect that
//! is not harmless to repeat is asked for in a pass.
//!
//! ```text
//! Pending <-> Scheduled -> Surging -> Draining -> Acting -> Verifying -> Succeeded
//!                             |           |          |          |
//!                             +-----------+----------+----------+-> Undoing -> Cancelled | Failed
//! ```
//!
//! The reason is looked at again before each step. When it is gone, everything is put back, up to the
//! point from which there is no way back; from there on, work is finished. A failed action gives way to
//! the next that heals more; when there is none, the maintenance has failed and is tried again later.

mod acting;
mod draining;
mod over;
mod replacing;
mod surging;
mod undoing;
mod verifying;
mod waiting;

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use machinist_api::{
    ConditionStatus, Machine, MachineMaintenanceStatus, MaintenanceAction, MaintenancePhase,
    MaintenanceWork,
    condition::{self, to_seconds},
    names::{annotation, condition_type, event, finalizer, maintenance_reason as reason, phase},
};

use super::{
    observed::{Observed, machine_annotation},
    policy::Policy,
    record,
    step::{MachineRef, Step},
    workloads,
};
use crate::{
    cluster_api::maintained::is_of_cluster_api,
    decision::{Announcement, Decision, Wait},
    drift::policy::maintenance_hold,
};

pub use waiting::MOVES_MAX;

pub type MaintenanceDecision = Decision<Step, MachineMaintenanceStatus>;

/// How often what does not wake a maintenance by itself is looked at.
const RECHECK: SignedDuration = SignedDuration::from_secs(30);

pub fn decide(observed: &Observed<'_>, policy: &Policy, now: Timestamp) -> MaintenanceDecision {
    let mut pass = Pass::new(observed, policy, now);
    let phase = pass.status.phase.unwrap_or_default();
    if phase.is_under_way() {
        if let Some(doubt) = observed.doubt {
            return pass.wait(reason::REASON_DOUBTFUL, format!("nothing is done: {doubt}"));
        }
        if !observed.maintenance.spec.maintenancescheduled && !is_leaving(observed) {
            pass.decision.actions.push(Step::MarkScheduled);
        }
    }
    match phase {
        MaintenancePhase::Pending | MaintenancePhase::Scheduled => waiting::decide(pass),
        MaintenancePhase::Surging => surging::decide(pass),
        MaintenancePhase::Draining => draining::decide(pass),
        MaintenancePhase::Acting => acting::decide(pass),
        MaintenancePhase::Verifying => verifying::decide(pass),
        MaintenancePhase::Undoing => undoing::decide(pass),
        MaintenancePhase::Succeeded | MaintenancePhase::Failed | MaintenancePhase::Cancelled => {
            over::decide(pass)
        }
    }
}

/// One pass over a maintenance.
struct Pass<'a> {
    observed: &'a Observed<'a>,
    policy: &'a Policy,
    now: Timestamp,
    /// What will be published.
    status: MachineMaintenanceStatus,
    decision: MaintenanceDecision,
}

impl<'a> Pass<'a> {
    fn new(observed: &'a Observed<'a>, policy: &'a Policy, now: Timestamp) -> Self {
        let mut status = observed.maintenance.status.clone().unwrap_or_default();
        status.observed_generation = observed.maintenance.metadata.generation;
        let decision = Decision::settled(MachineMaintenanceStatus::default());
        let mut pass = Self { observed, policy, now, status, decision };
        pass.take_reasons();
        pass
    }

    /// Records the reasons as they are now, and what is new about them.
    fn take_reasons(&mut self) {
        if self.status.phase.is_some_and(MaintenancePhase::is_over) {
            return;
        }
        for news in &self.observed.reasons.news {
            record::note(&mut self.status, news, self.now);
        }
        self.status.reasons.clone_from(&self.observed.reasons.reasons);
    }

    /// What was begun. Under way there always is a record; without one there is nothing to be done.
    fn work(&self) -> MaintenanceWork {
        self.status.work.clone().unwrap_or_default()
    }

    fn work_mut(&mut self) -> &mut MaintenanceWork {
        self.status.work.get_or_insert_default()
    }

    fn action(&self) -> MaintenanceAction {
        self.work().action.unwrap_or(MaintenanceAction::Nothing)
    }

    /// Whether somebody wants it to be called off: no reason holds any more, or the object goes.
    fn called_off(&self) -> Option<String> {
        if is_leaving(self.observed) {
            return Some("the MachineMaintenance was deleted".to_owned());
        }
        if self.observed.need.is_some() {
            return None;
        }
        let states: Vec<String> = self
            .observed
            .reasons
            .reasons
            .iter()
            .map(|reason| {
                let state = format!("{:?}", reason.state).to_lowercase();
                format!("{} is {state}", super::reason::title(reason))
            })
            .collect();
        if states.is_empty() {
            return Some("there is no reason for it".to_owned());
        }
        Some(states.join(" and "))
    }

    /// Up to the point from which there is no way back: whether it is still wanted, and the machine is
    /// still there. If not, what is done instead.
    fn still_wanted(self) -> Result<Self, Box<MaintenanceDecision>> {
        if let Some(why) = self.called_off() {
            let words = format!("it is called off: {why}");
            return Err(Box::new(self.undo(MaintenancePhase::Cancelled, words)));
        }
        let machine = self.observed.worked_on(self.work().machine_uid.as_deref());
        if machine.is_some_and(has_lost_its_instance) {
            let words = "it is called off: the machine has lost its instance";
            return Err(Box::new(self.undo(MaintenancePhase::Cancelled, words)));
        }
        if self.is_doubtful() {
            let words = "the provider does not show the reason now";
            return Err(Box::new(self.wait(reason::REASON_DOUBTFUL, words)));
        }
        if machine.is_none_or(|machine| machine.metadata.deletion_timestamp.is_some()) {
            let words = "somebody else deleted the machine";
            return Err(Box::new(self.undo(MaintenancePhase::Cancelled, words)));
        }
        Ok(self)
    }

    /// Whether the reason is in doubt: then no further step is taken, and none is undone.
    fn is_doubtful(&self) -> bool {
        self.observed.need.is_some_and(|need| need.is_doubtful)
    }

    fn say(&mut self, reason: &'static str, message: impl Into<String>) {
        self.decision.waiting.push(Wait::on(reason, message));
    }

    fn announce(&mut self, announcement: Announcement) {
        self.decision.announcements.push(announcement);
    }

    fn recheck_in(&mut self, duration: SignedDuration) {
        self.decision.recheck_by(later(self.now, duration));
    }

    fn do_step(&mut self, step: Step) {
        self.decision.actions.push(step);
    }

    /// Waits on something, in words, and looks again after a while.
    fn wait(mut self, reason: &'static str, message: impl Into<String>) -> MaintenanceDecision {
        self.say(reason, message);
        self.recheck_in(RECHECK);
        self.finish()
    }

    /// Does one step and comes back when it is seen.
    fn step(mut self, step: Step) -> MaintenanceDecision {
        self.do_step(step);
        self.recheck_in(RECHECK);
        self.finish()
    }

    /// Goes on to a phase of the work.
    fn go(mut self, phase: MaintenancePhase, message: impl Into<String>) -> MaintenanceDecision {
        self.prepare(phase);
        self.enter(phase, message)
    }

    /// Enters a phase, which is stored before anything is done in it.
    fn enter(mut self, phase: MaintenancePhase, message: impl Into<String>) -> MaintenanceDecision {
        let message = message.into();
        record::enter(&mut self.status, phase, &message, self.now);
        self.announce(match phase {
            MaintenancePhase::Succeeded => {
                Announcement::normal(event::MAINTENANCE_SUCCEEDED, message)
            }
            MaintenancePhase::Failed => Announcement::warning(event::MAINTENANCE_FAILED, message),
            MaintenancePhase::Cancelled => {
                Announcement::normal(event::MAINTENANCE_CANCELLED, message)
            }
            MaintenancePhase::Pending
            | MaintenancePhase::Scheduled
            | MaintenancePhase::Surging
            | MaintenancePhase::Draining
            | MaintenancePhase::Acting
            | MaintenancePhase::Verifying
            | MaintenancePhase::Undoing => Announcement::normal(event::MAINTENANCE_STEP, message),
        });
        self.decision.recheck_by(self.now);
        self.finish()
    }

    /// Puts everything back; the outcome is what it comes to then.
    fn undo(
        mut self,
        outcome: MaintenancePhase,
        message: impl Into<String>,
    ) -> MaintenanceDecision {
        self.work_mut().outcome = Some(outcome);
        self.enter(MaintenancePhase::Undoing, message)
    }

    /// The action failed: the next that heals more is tried, or all is put back.
    fn fail(mut self, message: impl Into<String>) -> MaintenanceDecision {
        let message = message.into();
        let work = self.work_mut();
        work.failure = Some(message.clone());
        let has_next = !work.and_then.is_empty();
        if !has_next || is_leaving(self.observed) {
            return self.undo(MaintenancePhase::Failed, message);
        }
        let next = self.work_mut().and_then.remove(0);
        let work = self.work_mut();
        work.action = Some(next);
        work.effect = None;
        let words = format!("{message}; {} is tried instead", next.as_str());
        self.announce(Announcement::warning(event::MAINTENANCE_ESCALATED, words.clone()));
        let phase = self.first_phase(next);
        self.go(phase, words)
    }

    /// Where an action begins.
    fn first_phase(&self, action: MaintenanceAction) -> MaintenancePhase {
        if action != MaintenanceAction::Replace {
            return self.after_surge(action);
        }
        let wants_surge = match self.observed.traits.replacement {
            super::action::Replacement::Pool => self.policy.surge.is_wanted,
            super::action::Replacement::Copy => true,
            super::action::Replacement::Owner(_)
            | super::action::Replacement::Theirs(_)
            | super::action::Replacement::Nobody => false,
        };
        if wants_surge { MaintenancePhase::Surging } else { self.after_surge(action) }
    }

    /// Where an action goes on when there is a machine more, or none is wanted. What is deleted with
    /// hooks on it, is of the control plane or of Cluster API, is drained by its deletion, when the hooks
    /// allow it.
    fn after_surge(&self, action: MaintenanceAction) -> MaintenancePhase {
        let has_hooks = self.observed.machine.is_some_and(|machine| {
            machine.spec.lifecycle_hooks.as_ref().is_some_and(|hooks| !hooks.pre_drain.is_empty())
        });
        let is_of_cluster_api = self.observed.machine.is_some_and(is_of_cluster_api);
        let drains_itself = action == MaintenanceAction::Replace
            && (has_hooks || self.observed.is_control_plane || is_of_cluster_api);
        if drains_itself || self.observed.node.is_none() {
            MaintenancePhase::Acting
        } else {
            MaintenancePhase::Draining
        }
    }

    /// Stores what a phase needs to know when it begins.
    fn prepare(&mut self, phase: MaintenancePhase) {
        let now = to_seconds(self.now);
        match phase {
            MaintenancePhase::Surging => surging::prepare(self),
            MaintenancePhase::Draining => {
                let deadline = to_seconds(later(self.now, self.policy.drain.deadline));
                let out_of_service = self
                    .status
                    .work
                    .as_ref()
                    .and_then(|work| work.drain.as_ref())
                    .is_some_and(|drain| drain.out_of_service);
                self.work_mut().drain = Some(machinist_api::DrainRecord {
                    cordoned_by_us: false,
                    deadline,
                    forced: false,
                    out_of_service,
                    since: now,
                });
            }
            MaintenancePhase::Pending
            | MaintenancePhase::Scheduled
            | MaintenancePhase::Acting
            | MaintenancePhase::Verifying
            | MaintenancePhase::Undoing
            | MaintenancePhase::Succeeded
            | MaintenancePhase::Failed
            | MaintenancePhase::Cancelled => {}
        }
    }

    /// Records whose pods have to leave the Node, to know afterwards whether they are back.
    fn note_workloads(&mut self) {
        let found = workloads::makers(self.observed.pods.iter().copied());
        let mut known: BTreeSet<String> = self.work().workloads.into_iter().collect();
        known.extend(found);
        if !known.is_empty() {
            self.work_mut().workloads = known.into_iter().take(workloads::MAKERS_MAX).collect();
        }
    }

    /// Since when the present phase lasts.
    fn phase_since(&self) -> Timestamp {
        self.work().phase_since.map_or(self.now, |time| time.0)
    }

    fn finish(mut self) -> MaintenanceDecision {
        if self.status.phase.is_some_and(MaintenancePhase::is_under_way) {
            record::set_waits(&mut self.status, &self.decision.waiting);
        }
        self.decision.status = self.status;
        self.decision
    }
}

/// Whether the provider has not known its instance for so long that the Machine is given up: nothing can be done to it here,
/// and its drift sees to it.
fn has_lost_its_instance(machine: &Machine) -> bool {
    let Some(status) = &machine.status else { return false };
    let exists = condition::find(&status.conditions, condition_type::INSTANCE_EXISTS);
    status.phase.as_deref() == Some(phase::FAILED)
        && exists.is_some_and(|known| known.status == ConditionStatus::False)
}

/// Whether the object is being deleted.
fn is_leaving(observed: &Observed<'_>) -> bool {
    observed.maintenance.metadata.deletion_timestamp.is_some()
}

fn has_finalizer(observed: &Observed<'_>) -> bool {
    let finalizers = observed.maintenance.metadata.finalizers.iter().flatten();
    finalizers.into_iter().any(|name| name == finalizer::MAINTENANCE)
}

/// The step that puts our hold on a Machine, where it is not there.
fn missing_hold(observed: &Observed<'_>) -> Option<Step> {
    let machine = observed.machine?;
    let value = maintenance_hold(observed.uid());
    let present = machine_annotation(machine, annotation::HOLD);
    (present != Some(value.as_str()))
        .then(|| Step::Hold { machine: MachineRef::of(machine), value })
}

/// The step that takes our hold from a Machine, where it is there.
fn surplus_hold(observed: &Observed<'_>) -> Option<Step> {
    let machine = observed.machine?;
    let is_ours = machine_annotation(machine, annotation::HOLD)
        == Some(maintenance_hold(observed.uid()).as_str());
    is_ours.then(|| Step::ReleaseHold(MachineRef::of(machine)))
}

fn set_condition(pass: &mut Pass<'_>, condition: machinist_api::Condition) {
    condition::set(&mut pass.status.conditions, condition);
}

fn later(instant: Timestamp, by: SignedDuration) -> Timestamp {
    instant.checked_add(by).unwrap_or(Timestamp::MAX)
}
