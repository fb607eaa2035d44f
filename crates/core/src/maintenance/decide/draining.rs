//! How the Node is emptied: cordoned by us if nobody did, its pods evicted, and what follows when that
//! does not end.

use k8s_openapi::api::core::v1::{Node, Pod};
use machinist_api::{
    MaintenanceAction, MaintenancePhase,
    condition::to_seconds,
    maintenance_policy::AfterDrainDeadline,
    names::{annotation, maintenance_reason as reason},
};

use super::{MaintenanceDecision, Pass, later, surging};
use crate::{
    drain::{decide::must_go, evictions},
    maintenance::{
        observed::{is_not_to_be_disrupted, node_annotation},
        record,
        step::{NodeRef, Step},
    },
    node::{self, Readiness},
};

/// How many blockers are named; the rest are counted.
const NAMED: usize = 5;

pub(super) fn decide(pass: Pass<'_>) -> MaintenanceDecision {
    let pass = match pass.still_wanted() {
        Ok(pass) => pass,
        Err(decision) => return *decision,
    };
    let observed = pass.observed;
    let Some(node) = observed.node else {
        return pass.go(MaintenancePhase::Acting, "there is no node to drain");
    };
    if !node::is_unschedulable(node) {
        return cordon(pass, node);
    }
    drain(pass, node)
}

fn cordon(mut pass: Pass<'_>, node: &Node) -> MaintenanceDecision {
    let observed = pass.observed;
    if observed.is_cordoned_by_us() {
        // Whoever made it schedulable wants it to work; the pods that are gone come back by themselves.
        let name = node::name(node);
        return pass.undo(
            MaintenancePhase::Failed,
            format!("somebody made node {name} schedulable again"),
        );
    }
    if let Some(words) = obstacle(&pass) {
        return pass.wait(reason::SURGE_NOT_READY, words);
    }
    let since = to_seconds(pass.now);
    let deadline = to_seconds(later(pass.now, pass.policy.drain.deadline));
    if let Some(drain) = &mut pass.work_mut().drain {
        drain.cordoned_by_us = true;
        // What was waited for before is no part of the drain.
        drain.since = since;
        drain.deadline = deadline;
    }
    pass.step(Step::Cordon(NodeRef::of(node)))
}

/// Why the machine must not be taken out of work now, looked at again in the last moment.
fn obstacle(pass: &Pass<'_>) -> Option<String> {
    let observed = pass.observed;
    if observed.is_control_plane {
        let name = &observed.maintenance.spec.machinelink;
        return observed.control_plane.obstacle(name, pass.action());
    }
    let has_surge = pass.work().surge.is_some();
    match &observed.pool {
        // Where policy goes on without the new machine, its readiness is not asked for again.
        Some(pool) if has_surge && pass.action() == MaintenanceAction::Replace => {
            let is_told_to_proceed = pass.policy.surge.after_timeout
                == machinist_api::maintenance_policy::AfterSurgeTimeout::Proceed;
            surging::short_of(pass, pool).filter(|_| !is_told_to_proceed)
        }
        Some(_) | None => None,
    }
}

fn drain(mut pass: Pass<'_>, node: &Node) -> MaintenanceDecision {
    pass.note_workloads();
    let observed = pass.observed;
    let now = pass.now;
    let record = pass.work().drain;
    let is_forced = record.as_ref().is_some_and(|record| record.forced);
    let deadline = record.map_or(now, |record| record.deadline.0);
    let is_unreachable = node::readiness(node) == Readiness::Unknown;
    let (kept, pods): (Vec<&Pod>, Vec<&Pod>) = observed
        .pods
        .iter()
        .copied()
        .filter(|pod| must_go(pod))
        .partition(|pod| is_kept(&pass, pod));
    let evictions = evictions(&pods, &observed.budgets, observed.attempts, is_unreachable, now);
    let leaving = evictions.leaving + kept.len();
    if leaving == 0 {
        let words = format!("node {} is drained", node::name(node));
        return pass.go(MaintenancePhase::Acting, words);
    }
    let mut blockers: Vec<String> = kept.iter().map(|pod| not_disrupted(pod)).collect();
    blockers.extend(evictions.blockers);
    let words = in_words(node, leaving, blockers.clone());
    let is_overdue = deadline <= now;
    if is_forced {
        for pod in observed.pods.iter().filter(|pod| must_go(pod)) {
            if let Some(step) = removal(pod, is_unreachable) {
                pass.do_step(step);
            }
        }
        return pass.wait(reason::DRAINING, format!("{words}; they are removed by force"));
    }
    if is_overdue {
        match pass.policy.drain.after_deadline {
            AfterDrainDeadline::Abandon => {
                let message = format!("the drain did not end in time: {words}");
                return pass.undo(MaintenancePhase::Failed, message);
            }
            AfterDrainDeadline::Force => {
                if let Some(drain) = &mut pass.work_mut().drain {
                    drain.forced = true;
                }
                record::note(
                    &mut pass.status,
                    format!("the drain did not end in time, and is forced: {words}"),
                    now,
                );
                pass.decision.recheck_by(now);
                return pass.wait(reason::DRAINING, words);
            }
            AfterDrainDeadline::Wait => {}
        }
    }
    for action in evictions.actions {
        pass.do_step(Step::Evict(action));
    }
    if let Some(at) = evictions.recheck {
        pass.decision.recheck_by(at);
    }
    if !is_overdue {
        pass.decision.recheck_by(deadline);
    }
    if blockers.is_empty() && !is_overdue {
        return pass.wait(reason::DRAINING, words);
    }
    pass.wait(reason::DRAIN_BLOCKED, words)
}

/// Whether a pod that is not to be disrupted is still waited for: up to the latest safe start, and no
/// longer than a drain may take.
fn is_kept(pass: &Pass<'_>, pod: &Pod) -> bool {
    let deadline = pass.work().drain.map_or(pass.now, |drain| drain.deadline.0);
    let latest = pass.observed.entry.and_then(|entry| entry.latest_safe_start);
    must_go(pod)
        && is_not_to_be_disrupted(pod)
        && pod.metadata.deletion_timestamp.is_none()
        && deadline > pass.now
        && latest.is_none_or(|latest| latest > pass.now)
}

fn removal(pod: &Pod, is_unreachable: bool) -> Option<Step> {
    // One that goes already goes; on a Node that does not answer nobody would confirm its end.
    if pod.metadata.deletion_timestamp.is_some() && !is_unreachable {
        return None;
    }
    Some(Step::DeletePod {
        namespace: pod.metadata.namespace.clone().unwrap_or_default(),
        pod: pod.metadata.name.clone().unwrap_or_default(),
        uid: pod.metadata.uid.clone().unwrap_or_default(),
        grace_period_seconds: is_unreachable.then_some(0),
    })
}

fn not_disrupted(pod: &Pod) -> String {
    format!(
        "pod {}/{} is not to be disrupted",
        pod.metadata.namespace.as_deref().unwrap_or_default(),
        pod.metadata.name.as_deref().unwrap_or_default(),
    )
}

fn in_words(node: &Node, leaving: usize, mut blockers: Vec<String>) -> String {
    let mut words = format!("{leaving} pods have yet to leave node {}", node::name(node));
    let hidden = blockers.len().saturating_sub(NAMED);
    blockers.truncate(NAMED);
    if !blockers.is_empty() {
        words.push_str(&format!(": {}", blockers.join("; ")));
    }
    if hidden > 0 {
        words.push_str(&format!("; and {hidden} more"));
    }
    if node_annotation(node, annotation::CORDONED_FOR).is_none() {
        words.push_str("; the cordon is not ours and stays");
    }
    words
}
