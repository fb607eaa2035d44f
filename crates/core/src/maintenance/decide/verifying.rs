//! Is the machine well again, and is the reason gone? Work is over only when that is seen.

use jiff::{SignedDuration, Timestamp};
use machinist_api::{
    Condition, ConditionSeverity, MaintenanceAction, MaintenancePhase, MaintenanceReasonKind,
    names::{annotation, condition_type, maintenance_reason as reason},
};

use super::{MaintenanceDecision, Pass, is_leaving, later, set_condition, surging, surplus_hold};
use crate::{
    cloud::InstanceState,
    maintenance::{
        observed::{CloudSight, Member, is_out_of_service, machine_annotation},
        step::{MachineRef, NodeRef, Step},
    },
    node::{self, Readiness},
};

/// The provider takes up to an hour to show that an event is dealt with.
pub const EVENT_REFRESH: SignedDuration = SignedDuration::from_hours(1);

pub(super) fn decide(pass: Pass<'_>) -> MaintenanceDecision {
    if pass.action() == MaintenanceAction::Replace { replaced(pass) } else { in_place(pass) }
}

fn in_place(mut pass: Pass<'_>) -> MaintenanceDecision {
    let observed = pass.observed;
    let work = pass.work();
    let Some(machine) = observed.worked_on(work.machine_uid.as_deref()) else {
        return pass.undo(MaintenancePhase::Cancelled, "somebody else deleted the machine");
    };
    match &observed.cloud {
        CloudSight::Unknown(_) => {
            return pass.wait(reason::CLOUD_UNKNOWN, "the cloud could not be asked");
        }
        CloudSight::Known(instance) => {
            let state = instance.as_ref().map(|instance| instance.state);
            if state != Some(InstanceState::Running) {
                let state = state.map_or("gone", InstanceState::as_str);
                return unwell(
                    pass,
                    reason::INSTANCE_NOT_RUNNING,
                    format!("the instance is {state}"),
                );
            }
        }
    }
    if let Some(name) = &work.node {
        match observed.node {
            Some(node) if node::readiness(node) == Readiness::Ready => {}
            Some(_) | None => {
                let words = format!("node {name} is not ready");
                return unwell(pass, reason::NODE_NOT_READY, words);
            }
        }
    }
    if let Some(step) = give_back(&pass) {
        return pass.step(step);
    }
    if machine_annotation(machine, annotation::MAINTENANCE_REQUESTED).is_some()
        && work.started_at.is_some()
    {
        pass.do_step(Step::ClearRequest(MachineRef::of(machine)));
    }
    if let Some(words) = still_there(&pass) {
        let end = later(pass.phase_since(), EVENT_REFRESH.max(pass.policy.verification));
        if end > pass.now {
            pass.decision.recheck_by(end);
            return pass.wait(reason::EVENT_STILL_PRESENT, words);
        }
        unverified(&mut pass, reason::EVENT_STILL_PRESENT, &words);
        return pass.fail(words);
    }
    workloads(pass)
}

/// What the machine gets back as soon as it is well: its schedulability first.
fn give_back(pass: &Pass<'_>) -> Option<Step> {
    let observed = pass.observed;
    let is_tainted_by_us = pass.work().drain.is_some_and(|drain| drain.out_of_service);
    if let Some(node) = observed.node.filter(|node| is_tainted_by_us && is_out_of_service(node)) {
        return Some(Step::RemoveOutOfServiceTaint(NodeRef::of(node)));
    }
    lift_cordon(pass).or_else(|| surplus_hold(observed))
}

/// The step that lifts our cordon, where it is there. One that is not ours stays.
pub(super) fn lift_cordon(pass: &Pass<'_>) -> Option<Step> {
    let node = pass.observed.node.filter(|_| pass.observed.is_cordoned_by_us())?;
    Some(if node::is_unschedulable(node) {
        Step::Uncordon(NodeRef::of(node))
    } else {
        Step::DisownCordon(NodeRef::of(node))
    })
}

/// The events and the drift that are there in spite of the work. A request is fulfilled by it.
fn still_there(pass: &Pass<'_>) -> Option<String> {
    if is_leaving(pass.observed) {
        return None;
    }
    let need = pass.observed.need?;
    let words: Vec<String> = need
        .reasons
        .iter()
        .filter(|one| {
            matches!(one.kind, MaintenanceReasonKind::Event | MaintenanceReasonKind::Drift)
        })
        .map(|one| format!("{} is still there", crate::maintenance::reason::title(one)))
        .collect();
    (!words.is_empty()).then(|| words.join(" and "))
}

/// Waits for a machine that is not well; in the end the action has failed.
fn unwell(mut pass: Pass<'_>, why: &'static str, words: String) -> MaintenanceDecision {
    let end = later(pass.phase_since(), pass.policy.verification);
    if end > pass.now {
        pass.decision.recheck_by(end);
        return pass.wait(why, words);
    }
    unverified(&mut pass, why, &words);
    pass.fail(format!("the machine is not well afterwards: {words}"))
}

fn replaced(pass: Pass<'_>) -> MaintenanceDecision {
    let observed = pass.observed;
    let uid = observed.uid().to_owned();
    if let Some(pool) = observed.pool.as_ref().filter(|pool| pool.mark().is_for(&uid)) {
        let resize = pool.mark().shrunk(pool.replicas(), &uid);
        return pass.step(surging::resize_step(pool, resize));
    }
    let missing = match (&observed.pool, &observed.replacement) {
        (Some(pool), _) => {
            let (ready, wanted) = (pool.ready_besides(""), pool.wanted());
            (ready < wanted)
                .then(|| format!("pool {} has {ready} ready machines of {wanted}", pool.name()))
        }
        (None, Some(copy)) => Member::obstacle(copy),
        (None, None) => observed
            .control_plane
            .problems
            .first()
            .filter(|_| observed.is_control_plane)
            .map(|problem| problem.message.clone()),
    };
    if let Some(words) = missing {
        return not_back(pass, reason::NODE_NOT_READY, words);
    }
    if let Some(node) = observed.protected_nodes().first() {
        return pass.step(Step::UnprotectNode(NodeRef::of(node)));
    }
    workloads(pass)
}

fn workloads(mut pass: Pass<'_>) -> MaintenanceDecision {
    let missing = pass.observed.workloads_missing;
    if !missing.is_empty() && !is_leaving(pass.observed) {
        let words = format!("not all pods are back: {}", missing.join("; "));
        return not_back(pass, reason::WORKLOADS_NOT_BACK, words);
    }
    let condition = Condition::holds(condition_type::VERIFIED, pass.now);
    set_condition(&mut pass, condition);
    let action = pass.action().as_str();
    pass.enter(MaintenancePhase::Succeeded, format!("{action} is done, and everything is well"))
}

/// The work is done, but not all is as it was: in the end that is said, and nothing more is tried.
fn not_back(mut pass: Pass<'_>, why: &'static str, words: String) -> MaintenanceDecision {
    let end: Timestamp = later(pass.phase_since(), pass.policy.verification);
    if end > pass.now {
        pass.decision.recheck_by(end);
        return pass.wait(why, words);
    }
    unverified(&mut pass, why, &words);
    pass.undo(MaintenancePhase::Failed, words)
}

fn unverified(pass: &mut Pass<'_>, why: &'static str, words: &str) {
    let condition =
        Condition::fails(condition_type::VERIFIED, ConditionSeverity::Error, why, words, pass.now);
    set_condition(pass, condition);
}
