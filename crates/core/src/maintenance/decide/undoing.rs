//! How everything is put back: the machine comes into service again first, then the surplus goes. What
//! is not ours is left alone.

use jiff::{SignedDuration, Timestamp};
use machinist_api::{
    Machine, MaintenancePhase,
    condition::to_seconds,
    names::{annotation, maintenance_reason as reason},
};

use super::{
    MaintenanceDecision, Pass, later, replacing::not_first, surging, surplus_hold, verifying,
};
use crate::{
    cloud::InstanceState,
    maintenance::{
        observed::{CloudSight, Member, PoolSight, is_out_of_service, machine_annotation},
        step::{MachineRef, NodeRef, Step},
    },
    node::{self, Readiness},
};

/// When a failed maintenance is tried again: doubled each time.
const FIRST_RETRY: SignedDuration = SignedDuration::from_mins(30);
const LAST_RETRY: SignedDuration = SignedDuration::from_hours(24);

pub(super) fn decide(pass: Pass<'_>) -> MaintenanceDecision {
    let observed = pass.observed;
    let work = pass.work();
    let uid = observed.uid().to_owned();
    let machine = observed.worked_on(work.machine_uid.as_deref());
    if work.stopped && machine.is_some() {
        match &observed.cloud {
            CloudSight::Unknown(_) => {
                return pass.wait(reason::CLOUD_UNKNOWN, "the cloud could not be asked");
            }
            CloudSight::Known(Some(instance)) if instance.state == InstanceState::Stopped => {
                let id = instance.id.clone();
                return pass.step(Step::Start(id));
            }
            CloudSight::Known(Some(instance)) if instance.state == InstanceState::Stopping => {
                return pass.wait(reason::INSTANCE_NOT_RUNNING, "the instance is still stopping");
            }
            CloudSight::Known(_) => {}
        }
    }
    let is_tainted_by_us = work.drain.as_ref().is_some_and(|drain| drain.out_of_service);
    if let Some(node) = observed.node.filter(|node| is_tainted_by_us && is_out_of_service(node)) {
        return pass.step(Step::RemoveOutOfServiceTaint(NodeRef::of(node)));
    }
    if let Some(step) = verifying::lift_cordon(&pass) {
        return pass.step(step);
    }
    if let Some(machine) = machine.filter(|machine| is_marked_by_us(machine, &uid)) {
        return pass.step(Step::UnmarkForDeletion(MachineRef::of(machine)));
    }
    if let Some(step) = surplus_hold(observed) {
        return pass.step(step);
    }
    if let Some(pool) = observed.pool.as_ref().filter(|pool| pool.mark().is_for(&uid)) {
        return remove_surplus(pass, pool, machine);
    }
    if let Some(copy) = surplus_copy(&pass, machine) {
        return pass.step(Step::DeleteMachine(MachineRef::of(copy.machine)));
    }
    if let Some(node) = observed.protected_nodes().first() {
        return pass.step(Step::UnprotectNode(NodeRef::of(node)));
    }
    done(pass)
}

/// The pool gets its size back, and the machine that goes is the one that was made for us.
fn remove_surplus(
    pass: Pass<'_>,
    pool: &PoolSight<'_>,
    target: Option<&Machine>,
) -> MaintenanceDecision {
    let uid = pass.observed.uid().to_owned();
    let resize = pool.mark().shrunk(pool.replicas(), &uid);
    let is_target_there = target.is_some_and(|one| one.metadata.deletion_timestamp.is_none());
    let alive: Vec<&Member<'_>> =
        pool.members.iter().filter(|member| !member.is_deleting()).collect();
    let size = usize::try_from(resize.replicas).unwrap_or(0);
    // Nothing is deleted by it: the surplus was never made, or went by itself.
    if alive.len() <= size {
        return match marked_besides(&alive, &uid, None) {
            Some(step) => pass.step(step),
            None => pass.step(surging::resize_step(pool, resize)),
        };
    }
    let before = pass.work().surge.map(|surge| surge.before).unwrap_or_default();
    let target_uid = pass.work().machine_uid.unwrap_or_default();
    let mut candidates = alive.clone();
    candidates.retain(|member| member.uid() != target_uid);
    // The newest of those that were not there before; of the rest, whichever is newest.
    candidates.sort_by_key(|member| {
        let is_old = before.iter().any(|uid| uid == member.uid());
        let created = member.machine.metadata.creation_timestamp.as_ref().map(|time| time.0);
        (is_old, std::cmp::Reverse(created), member.name().to_owned())
    });
    let Some(surplus) = candidates.first() else {
        return pass.step(surging::resize_step(pool, resize));
    };
    if let Some(step) = marked_besides(&alive, &uid, Some(surplus.uid())) {
        return pass.step(step);
    }
    let others_ready = pool.ready_besides(surplus.uid());
    // Our own cordon is lifted by now; another's was there before us.
    let is_target_ready = alive.iter().any(|one| {
        let is_up = |node| node::readiness(node) == Readiness::Ready;
        one.uid() == target_uid && one.node.is_some_and(is_up)
    });
    if others_ready < pool.wanted() && !is_target_ready && surplus.is_ready() && is_target_there {
        let words = format!(
            "machine {} stays until the one that it was made for is ready again",
            surplus.name()
        );
        return pass.wait(reason::NODE_NOT_READY, words);
    }
    if !is_marked_by_us(surplus.machine, &uid) {
        let machine = MachineRef::of(surplus.machine);
        return pass.step(Step::MarkForDeletion { machine, value: uid });
    }
    if let Some(words) = not_first(&pass, pool, surplus.machine) {
        return pass.wait(reason::MACHINE_GOING, words);
    }
    pass.step(surging::resize_step(pool, resize))
}

/// Takes our mark off a machine that was to go and stays, because meanwhile another went or was made: the next time that the
/// pool shrinks, it would be the first.
fn marked_besides(alive: &[&Member<'_>], uid: &str, surplus: Option<&str>) -> Option<Step> {
    let stays = |member: &&&Member<'_>| surplus != Some(member.uid());
    let marked = alive.iter().filter(stays).find(|member| is_marked_by_us(member.machine, uid))?;
    Some(Step::UnmarkForDeletion(MachineRef::of(marked.machine)))
}

/// The copy that was made for us and is not needed, because the one it was made from stays.
fn surplus_copy<'a>(pass: &Pass<'a>, target: Option<&Machine>) -> Option<&'a Member<'a>> {
    let observed = pass.observed;
    let stays = target.is_some_and(|machine| machine.metadata.deletion_timestamp.is_none());
    let copy = observed.replacement.as_ref().filter(|copy| stays && !copy.is_deleting())?;
    let is_ours =
        machine_annotation(copy.machine, annotation::REPLACES_FOR) == Some(observed.uid());
    is_ours.then_some(copy)
}

fn done(mut pass: Pass<'_>) -> MaintenanceDecision {
    let work = pass.work();
    let outcome = work.outcome.unwrap_or(MaintenancePhase::Cancelled);
    let why = pass.status.message.clone().unwrap_or_default();
    if outcome == MaintenancePhase::Failed {
        pass.status.attempts = pass.status.attempts.saturating_add(1);
        let at = retry_at(pass.status.attempts, pass.now);
        pass.status.next_attempt = Some(to_seconds(at));
        let words = format!("{why}; everything is put back, and it is tried again after {at}");
        return pass.enter(MaintenancePhase::Failed, words);
    }
    pass.enter(outcome, format!("{why}; everything is put back"))
}

fn retry_at(attempts: i32, now: Timestamp) -> Timestamp {
    let doublings = u32::try_from(attempts.saturating_sub(1)).unwrap_or(0).min(10);
    later(now, (FIRST_RETRY * 2_i32.pow(doublings)).min(LAST_RETRY))
}

fn is_marked_by_us(machine: &Machine, uid: &str) -> bool {
    machine_annotation(machine, annotation::DELETE_MACHINE) == Some(uid)
}
