//! How there comes to be a machine more before one goes: the pool grows by one, or a copy is made of a
//! Machine without a pool.

use jiff::Timestamp;
use machinist_api::{
    MaintenanceAction, MaintenancePhase, ReplacementRecord, SurgeRecord,
    condition::to_seconds,
    maintenance_policy::AfterSurgeTimeout,
    names::{annotation, finalizer, label, maintenance_reason as reason},
};

use super::{MaintenanceDecision, Pass, later};
use crate::maintenance::{
    observed::{Member, Observed, PoolSight, node_annotation},
    step::{NodeRef, Step},
};

/// Names are cut so that what the API server allows suffices for the suffix.
const NAME_MAX: usize = 52;

/// Stores which machines there are before one more is made.
pub(super) fn prepare(pass: &mut Pass<'_>) {
    let now = to_seconds(pass.now);
    let observed = pass.observed;
    match &observed.pool {
        Some(pool) => {
            let mut before: Vec<String> =
                pool.members.iter().map(|member| member.uid().to_owned()).collect();
            before.sort();
            let pool_uid = pool.set.metadata.uid.clone().unwrap_or_default();
            let work = pass.work_mut();
            if work.surge.is_none() {
                work.surge = Some(SurgeRecord { before, pool_uid, since: now });
            }
        }
        None => {
            let name = copy_name(observed, pass.status.attempts);
            let work = pass.work_mut();
            if work.replacement.is_none() {
                work.replacement = Some(ReplacementRecord { name, since: now });
            }
        }
    }
}

pub(super) fn decide(pass: Pass<'_>) -> MaintenanceDecision {
    let mut pass = match pass.still_wanted() {
        Ok(pass) => pass,
        Err(decision) => return *decision,
    };
    let observed = pass.observed;
    let work = pass.work();
    protect(&mut pass);
    match (&observed.pool, &work.surge, &work.replacement) {
        (Some(pool), Some(surge), _) => grow(pass, pool, surge),
        (None, _, Some(copy)) => duplicate(pass, copy),
        (None, Some(_), None) => pass.fail("its pool is gone"),
        (Some(_), None, _) | (None, None, None) => {
            let phase = pass.after_surge(MaintenanceAction::Replace);
            pass.go(phase, "no machine more is wanted")
        }
    }
}

fn grow(pass: Pass<'_>, pool: &PoolSight<'_>, surge: &SurgeRecord) -> MaintenanceDecision {
    let uid = pass.observed.uid().to_owned();
    let name = pool.name().to_owned();
    if pool.set.metadata.deletion_timestamp.is_some()
        || pool.set.metadata.uid.as_deref() != Some(&surge.pool_uid)
    {
        return pass.fail(format!("pool {name} is being deleted or is another one"));
    }
    let mark = pool.mark();
    if !mark.is_for(&uid) {
        if let Some(max) = pool.autoscaler_max().filter(|max| pool.replicas() >= *max) {
            let words = format!(
                "pool {name} has {} machines, and its autoscaler's limit is {max}",
                pool.replicas()
            );
            return too_long(pass, surge.since.0, reason::SURGE_NOT_ALLOWED, words);
        }
        if let Some(max) = pool.owner_surge().filter(|max| mark.count() >= *max) {
            let words = format!(
                "pool {name} has {} machines above its size, and its maxSurge is {max}",
                mark.count()
            );
            return too_long(pass, surge.since.0, reason::SURGE_NOT_ALLOWED, words);
        }
        let resize = mark.grown(pool.replicas(), &uid);
        return pass.step(resize_step(pool, resize));
    }
    match short_of(&pass, pool) {
        None => {
            let phase = pass.after_surge(MaintenanceAction::Replace);
            pass.go(phase, format!("pool {name} has a machine more, and it is ready"))
        }
        Some(words) => too_long(pass, surge.since.0, reason::SURGE_NOT_READY, words),
    }
}

/// Why the pool would have too few machines without this one.
pub(super) fn short_of(pass: &Pass<'_>, pool: &PoolSight<'_>) -> Option<String> {
    let work = pass.work();
    let target = work.machine_uid.unwrap_or_default();
    let (ready, wanted) = (pool.ready_besides(&target), pool.wanted());
    if ready >= wanted {
        return None;
    }
    let mut obstacles: Vec<String> = pool
        .members
        .iter()
        .filter(|member| member.uid() != target && !member.is_deleting())
        .filter_map(Member::obstacle)
        .collect();
    obstacles.sort();
    obstacles.truncate(3);
    let what = if obstacles.is_empty() {
        "a new machine is made".to_owned()
    } else {
        obstacles.join("; ")
    };
    Some(format!(
        "pool {} would have {ready} ready machines of {wanted} without this one: {what}",
        pool.name()
    ))
}

fn duplicate(mut pass: Pass<'_>, copy: &ReplacementRecord) -> MaintenanceDecision {
    let observed = pass.observed;
    let Some(machine) = observed.machine else { return pass.fail("the machine is gone") };
    let Some(member) = &observed.replacement else {
        let mut duplicate = machinist_api::Machine::new(&copy.name, machine.spec.clone());
        duplicate.spec.provider_id = None;
        duplicate.spec.lifecycle_hooks = None;
        duplicate.metadata.namespace.clone_from(&machine.metadata.namespace);
        let mut labels = machine.metadata.labels.clone().unwrap_or_default();
        // They say what the old instance is, not what the new one is to be.
        for key in [label::INSTANCE_TYPE, label::REGION, label::ZONE] {
            labels.remove(key);
        }
        duplicate.metadata.labels = Some(labels);
        duplicate.metadata.annotations =
            Some([(annotation::REPLACES_FOR.to_owned(), observed.uid().to_owned())].into());
        duplicate.metadata.finalizers = Some(vec![finalizer::MACHINE.to_owned()]);
        return pass.step(Step::CreateMachine(Box::new(duplicate)));
    };
    if crate::maintenance::observed::machine_annotation(member.machine, annotation::REPLACES_FOR)
        != Some(observed.uid())
    {
        // It is not ours, so undoing must not touch it.
        pass.work_mut().replacement = None;
        return pass
            .undo(MaintenancePhase::Failed, format!("a machine {} exists already", copy.name));
    }
    let name = machine.metadata.name.as_deref().unwrap_or_default();
    let obstacle = member
        .obstacle()
        .or_else(|| observed.control_plane.obstacle(name, MaintenanceAction::Replace));
    match obstacle {
        None => {
            let phase = pass.after_surge(MaintenanceAction::Replace);
            pass.go(phase, format!("machine {} is ready to take its place", copy.name))
        }
        Some(words) => too_long(pass, copy.since.0, reason::SURGE_NOT_READY, words),
    }
}

/// Waits, as long as policy says; then does what it says.
fn too_long(
    mut pass: Pass<'_>,
    since: Timestamp,
    why: &'static str,
    words: String,
) -> MaintenanceDecision {
    let end = later(since, pass.policy.surge.timeout);
    if end > pass.now {
        pass.decision.recheck_by(end);
        return pass.wait(why, words);
    }
    // Without another member first the quorum would suffer: there is nothing to proceed to.
    let is_copy = pass.observed.pool.is_none();
    match pass.policy.surge.after_timeout {
        AfterSurgeTimeout::Wait => pass.wait(why, words),
        AfterSurgeTimeout::Proceed if !is_copy => {
            let was_never_grown = pass
                .observed
                .pool
                .as_ref()
                .is_some_and(|pool| !pool.mark().is_for(pass.observed.uid()));
            if was_never_grown {
                pass.work_mut().surge = None;
            }
            let phase = pass.after_surge(MaintenanceAction::Replace);
            pass.go(phase, format!("it goes on without a machine more: {words}"))
        }
        AfterSurgeTimeout::Proceed | AfterSurgeTimeout::Abandon => {
            let words = format!("no other machine was ready in time: {words}");
            pass.undo(MaintenancePhase::Failed, words)
        }
    }
}

/// Keeps the autoscaler from the new, still empty Nodes.
fn protect(pass: &mut Pass<'_>) {
    let observed = pass.observed;
    let Some(surge) = pass.work().surge else { return };
    let Some(pool) = &observed.pool else { return };
    for member in &pool.members {
        let Some(node) = member.node.filter(|_| !surge.before.contains(&member.uid().to_owned()))
        else {
            continue;
        };
        if node_annotation(node, annotation::SCALE_DOWN_DISABLED).is_none() {
            pass.do_step(Step::ProtectNode(NodeRef::of(node)));
        }
    }
}

pub(super) fn resize_step(pool: &PoolSight<'_>, resize: crate::maintenance::surge::Resize) -> Step {
    Step::ResizePool {
        name: pool.name().to_owned(),
        uid: pool.set.metadata.uid.clone().unwrap_or_default(),
        resource_version: pool.set.metadata.resource_version.clone().unwrap_or_default(),
        replicas: resize.replicas,
        mark: resize.mark.map(|mark| mark.to_string()),
    }
}

/// A name that is the same whenever it is asked for, and another after each failed attempt.
fn copy_name(observed: &Observed<'_>, attempts: i32) -> String {
    let name = &observed.maintenance.spec.machinelink;
    let base: String = name.chars().take(NAME_MAX).collect();
    let letters: String =
        observed.uid().chars().filter(char::is_ascii_alphanumeric).take(5).collect();
    format!("{base}-{}{attempts}", letters.to_lowercase())
}
