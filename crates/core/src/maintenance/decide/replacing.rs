//! How a machine goes when another has taken its place: exactly this one, marked before its pool
//! shrinks; or deleted, where its pool, its owner or a copy makes up for it.

use jiff::SignedDuration;
use machinist_api::{
    Machine, MaintenanceAction, MaintenancePhase, SurgeRecord,
    maintenance_policy::AfterSurgeTimeout,
    names::{annotation, maintenance_reason as reason},
};

use super::{MaintenanceDecision, Pass, later, surging};
use crate::{
    machineset::delete_order::first_to_go,
    maintenance::{
        observed::{Member, PoolSight, machine_annotation},
        step::{MachineRef, Step},
    },
};

/// How long a pool may take to delete the machine that it was told to.
const CHOSEN_WITHIN: SignedDuration = SignedDuration::from_mins(5);

pub(super) fn decide(mut pass: Pass<'_>) -> MaintenanceDecision {
    let observed = pass.observed;
    let work = pass.work();
    let uid = observed.uid().to_owned();
    let is_grown = observed.pool.as_ref().is_some_and(|pool| pool.mark().is_for(&uid));
    let target = observed.worked_on(work.machine_uid.as_deref());
    let Some(machine) = target.filter(|one| one.metadata.deletion_timestamp.is_none()) else {
        return going(pass, target.is_some(), is_grown);
    };
    // What is drained by its deletion was not drained before: its pods are still there to be noted.
    pass.note_workloads();
    let is_shrunk = work.surge.is_some() && observed.pool.is_some() && !is_grown;
    if !is_shrunk {
        if let Some(why) = pass.called_off() {
            return pass.undo(MaintenancePhase::Cancelled, format!("it is called off: {why}"));
        }
        if pass.is_doubtful() {
            return pass.wait(reason::REASON_DOUBTFUL, "the provider does not show the reason now");
        }
    }
    match (&observed.pool, &work.surge) {
        (Some(pool), Some(_)) if is_grown => shrink(pass, pool, machine),
        (Some(pool), Some(surge)) => chosen(pass, pool, surge),
        (None, Some(_)) => {
            pass.wait(reason::MACHINE_GOING, "its pool is gone, and it goes with it")
        }
        (_, None) => delete(pass, machine),
    }
}

/// It goes, or is gone. A pool that is still larger gets its size back.
fn going(pass: Pass<'_>, is_there: bool, is_grown: bool) -> MaintenanceDecision {
    let observed = pass.observed;
    if let Some(pool) = observed.pool.as_ref().filter(|_| is_grown) {
        let resize = pool.mark().shrunk(pool.replicas(), observed.uid());
        return pass.step(surging::resize_step(pool, resize));
    }
    if is_there {
        return pass.wait(reason::MACHINE_GOING, "the machine is being drained and terminated");
    }
    pass.go(MaintenancePhase::Verifying, "the machine is gone")
}

/// The pool gets its size back, and this machine is the one that goes.
fn shrink(pass: Pass<'_>, pool: &PoolSight<'_>, machine: &Machine) -> MaintenanceDecision {
    let is_told_to_proceed = pass.policy.surge.after_timeout == AfterSurgeTimeout::Proceed;
    if let Some(words) = surging::short_of(&pass, pool).filter(|_| !is_told_to_proceed) {
        return pass.wait(reason::SURGE_NOT_READY, words);
    }
    let uid = pass.observed.uid().to_owned();
    if machine_annotation(machine, annotation::DELETE_MACHINE).is_none_or(str::is_empty) {
        let machine = MachineRef::of(machine);
        return pass.step(Step::MarkForDeletion { machine, value: uid });
    }
    if let Some(words) = not_first(&pass, pool, machine) {
        return pass.wait(reason::MACHINE_GOING, words);
    }
    let resize = pool.mark().shrunk(pool.replicas(), &uid);
    pass.step(surging::resize_step(pool, resize))
}

/// Why the pool would not delete just this machine when it shrinks by one.
pub(super) fn not_first(
    pass: &Pass<'_>,
    pool: &PoolSight<'_>,
    machine: &Machine,
) -> Option<String> {
    let kept: Vec<&Machine> = pool
        .members
        .iter()
        .filter(|member| !member.is_deleting())
        .map(|member| member.machine)
        .collect();
    let replicas = usize::try_from(pool.replicas()).unwrap_or(0);
    if kept.len() != replicas {
        return Some(format!(
            "pool {} has {} machines and is to have {replicas}; it is left to settle first",
            pool.name(),
            kept.len()
        ));
    }
    let policy = pool.set.spec.delete_policy.as_deref();
    let first = first_to_go(&kept, 1, policy, pass.now).into_iter().next()?;
    if first.metadata.uid == machine.metadata.uid {
        return None;
    }
    let other = first.metadata.name.as_deref().unwrap_or_default();
    Some(format!("pool {} would delete machine {other} first", pool.name()))
}

/// The pool was told; it deletes the machine in a moment.
fn chosen(pass: Pass<'_>, pool: &PoolSight<'_>, surge: &SurgeRecord) -> MaintenanceDecision {
    let alive = pool.members.iter().filter(|member| !member.is_deleting()).count();
    let replicas = usize::try_from(pool.replicas()).unwrap_or(0);
    let is_late = later(pass.phase_since().max(surge.since.0), CHOSEN_WITHIN) <= pass.now;
    if alive <= replicas && is_late {
        return pass.undo(
            MaintenancePhase::Failed,
            format!("pool {} deleted another machine than the one meant", pool.name()),
        );
    }
    let words = format!("pool {} is about to delete the machine", pool.name());
    pass.wait(reason::MACHINE_GOING, words)
}

/// Deletes the machine itself: its pool or its owner makes another, or a copy is there.
fn delete(pass: Pass<'_>, machine: &Machine) -> MaintenanceDecision {
    let observed = pass.observed;
    if observed.is_control_plane {
        let name = machine.metadata.name.as_deref().unwrap_or_default();
        let obstacle = observed.control_plane.obstacle(name, MaintenanceAction::Replace);
        let copy = observed.replacement.as_ref().and_then(Member::obstacle);
        if let Some(words) = obstacle.or(copy) {
            return pass.wait(reason::CONTROL_PLANE_NOT_READY, words);
        }
    } else if let Err(held) = &observed.gate {
        return pass.wait(reason::GATE_HOLDS, held.0.clone());
    }
    pass.step(Step::DeleteMachine(MachineRef::of(machine)))
}
