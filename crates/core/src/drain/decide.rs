//! Which pods of a Node are evicted now, who blocks the drain, and when it is complete.
//!
//! The rules are those of `kubectl drain --force --ignore-daemonsets --delete-emptydir-data`:
//! mirror pods and pods of DaemonSets that exist stay, everything else goes through the eviction API with its own
//! grace period. What differs: nothing blocks in a loop. A refused pod is tried again when its
//! budget changes, or after a growing pause.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::{
    core::v1::{Node, Pod},
    policy::v1::PodDisruptionBudget,
};
use machinist_api::{
    AuthoritativeApi, Condition, ConditionSeverity, Machine, MachineStatus,
    condition::{self, ConditionStatus},
    names::{annotation, condition_type, event, phase, reason},
};

use super::observed::{Attempts, Observed};
use crate::{
    decision::{Announcement, Decision, Wait},
    drift::Class,
    machine::status::go_list,
    node::{self, Readiness},
    selector,
};

pub type DrainDecision = Decision<Action, MachineStatus>;

/// One step of a drain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    Cordon {
        node: String,
        uid: String,
    },
    Evict {
        namespace: String,
        pod: String,
        uid: String,
        /// `None` leaves the pod its own.
        grace_period_seconds: Option<i64>,
        /// Given back to `Attempts::refuse` when the API server refuses.
        budgets_seen: String,
    },
}

/// How the condition begins that says that nothing was drained.
pub const SKIPPED: &str = "Node drain skipped";
/// How long past the end of its grace period a pod may take before it is named as a blocker.
const OVERDUE: SignedDuration = SignedDuration::from_secs(30);
/// How long to wait for another control-plane Node; its uncordoning is an event as well.
const CONTROL_PLANE_RECHECK: SignedDuration = SignedDuration::from_secs(20);
/// How many blockers a condition names; the rest are counted.
const NAMED_BLOCKERS: usize = 5;

/// Whether the drain has anything to do for this Machine.
pub fn concerns(machine: &Machine) -> bool {
    let status = machine.status.as_ref();
    machine.metadata.deletion_timestamp.is_some()
        && is_ours(machine)
        && status.and_then(|status| status.phase.as_deref()) == Some(phase::DELETING)
        && !status
            .is_some_and(|status| condition::is_true(&status.conditions, condition_type::DRAINED))
}

/// Whether no other API owns the Machine. The other one drains by its own rules, and two that drain
/// would cordon against each other.
fn is_ours(machine: &Machine) -> bool {
    let owner = machine.status.as_ref().and_then(|status| status.authoritative_api);
    match owner.or(machine.spec.authoritative_api) {
        None | Some(AuthoritativeApi::MachineAPI) => true,
        Some(AuthoritativeApi::ClusterAPI | AuthoritativeApi::Migrating) => false,
    }
}

pub fn decide(observed: &Observed<'_>, now: Timestamp) -> DrainDecision {
    let machine = observed.machine;
    let status = machine.status.clone().unwrap_or_default();
    if !concerns(machine) {
        return Decision::settled(status);
    }
    // Hooks are respected in every branch, a skipped drain included (D15).
    let hooks = machine.spec.lifecycle_hooks.clone().unwrap_or_default().pre_drain;
    if !hooks.is_empty() {
        let mut decision = Decision::settled(status);
        decision
            .announcements
            .push(Announcement::normal(event::DRAIN_BLOCKED, "Drain blocked by pre-drain hook"));
        decision.waiting.push(Wait::on(
            reason::HOOK_PRESENT,
            format!("Drain operation currently blocked by: {}", go_list(&hooks)),
        ));
        return decision;
    }
    let is_excluded = machine
        .metadata
        .annotations
        .as_ref()
        .is_some_and(|annotations| annotations.contains_key(annotation::EXCLUDE_NODE_DRAINING));
    let was_linked = status.node_ref.is_some();
    if is_instance_gone(&status) {
        // Nobody is there to end the pods, and no budget can protect them any more.
        return skipped(status, &format!("{SKIPPED}: the instance is gone"), now);
    }
    match observed.node {
        Some(node) if !is_excluded => drain(observed, node, status, now),
        None if was_linked && !is_excluded => complete(status, None, now),
        _ => skipped(status, SKIPPED, now),
    }
}

/// Whether the instance was seen to terminate. One that is merely not found may still run.
fn is_instance_gone(status: &MachineStatus) -> bool {
    let running = condition::find(&status.conditions, condition_type::INSTANCE_RUNNING);
    running
        .filter(|condition| condition.status == ConditionStatus::False)
        .and_then(|condition| Class::from_reason(condition.reason.as_deref()?))
        .is_some_and(Class::is_termination)
}

fn skipped(mut status: MachineStatus, message: &str, now: Timestamp) -> DrainDecision {
    let done = Condition::holds(condition_type::DRAINED, now).with_message(message);
    condition::set(&mut status.conditions, done);
    let mut decision = Decision::settled(status);
    decision.announcements.push(Announcement::normal(event::DRAIN_SKIPPED, message));
    decision
}

fn complete(mut status: MachineStatus, node: Option<&str>, now: Timestamp) -> DrainDecision {
    let done =
        Condition::holds(condition_type::DRAINED, now).with_message("Drain finished successfully");
    condition::set(&mut status.conditions, done);
    let mut decision = Decision::settled(status);
    if let Some(node) = node {
        decision
            .announcements
            .push(Announcement::normal(event::DELETED, format!("Node \"{node}\" drained")));
    }
    decision
        .announcements
        .push(Announcement::normal(event::DRAIN_SUCCEEDED, "Drain finished successfully"));
    decision
}

fn drain(
    observed: &Observed<'_>,
    node: &Node,
    mut status: MachineStatus,
    now: Timestamp,
) -> DrainDecision {
    let is_cordoned = node::is_unschedulable(node);
    if !is_cordoned
        && node::is_control_plane(node)
        && let Some(other) = observed.cordoned_control_plane
    {
        return hold_control_plane(status, node, other, now);
    }
    let is_unreachable = node::readiness(node) == Readiness::Unknown;
    let mut actions = Vec::new();
    if !is_cordoned {
        actions.push(Action::Cordon {
            node: node::name(node).to_owned(),
            uid: node::uid(node).to_owned(),
        });
    }
    let pods = observed.pods.iter().copied();
    let going: Vec<&Pod> = pods.filter(|pod| must_go(pod) || is_orphan(pod, observed)).collect();
    let evictions = evictions(&going, &observed.budgets, observed.attempts, is_unreachable, now);
    actions.extend(evictions.actions);
    let (blockers, recheck) = (evictions.blockers, evictions.recheck);
    if evictions.leaving == 0 && is_cordoned {
        return complete(status, Some(node::name(node)), now);
    }
    let was_draining = condition::find(&status.conditions, condition_type::DRAINED).is_some();
    let (condition, wait) = describe(node::name(node), blockers, now);
    let is_news = condition::find(&status.conditions, condition_type::DRAINED)
        .is_none_or(|known| known.message != condition.message);
    let is_blocked = condition.reason.as_deref() == Some(reason::DRAIN_ERROR);
    condition::set(&mut status.conditions, condition);
    let mut decision = Decision::settled(status);
    decision.actions = actions;
    decision.recheck = recheck;
    if !was_draining {
        decision
            .announcements
            .push(Announcement::normal(event::DRAIN_PROCEEDS, "Node drain proceeds"));
    }
    if is_blocked && is_news {
        decision.announcements.push(Announcement::warning(
            event::DRAIN_REQUEUED,
            format!("Node drain requeued: {}", wait.message),
        ));
    }
    decision.waiting.push(wait);
    decision
}

/// What is left to do for the pods of a Node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evictions {
    pub actions: Vec<Action>,
    /// How many pods have yet to go.
    pub leaving: usize,
    /// What keeps them, in words.
    pub blockers: Vec<String>,
    /// How it stands with each pod, in the order in which they were given.
    pub states: Vec<PodState>,
    pub recheck: Option<Timestamp>,
}

/// How it stands with a pod that must go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodState {
    /// Nobody waits for it any more.
    Gone,
    /// It is ending.
    Leaving,
    /// It is asked to go now.
    Evicted,
    /// Its budget lets others go first.
    Held,
    /// It was refused, with these words.
    Refused(String),
}

/// Which of the pods that must go are evicted now, and who blocks. A Node `is_unreachable` when its kubelet does
/// not answer: then nobody confirms the end of a pod.
pub fn evictions(
    pods: &[&Pod],
    budgets: &[&PodDisruptionBudget],
    attempts: &Attempts,
    is_unreachable: bool,
    now: Timestamp,
) -> Evictions {
    let mut evictions = Evictions::default();
    let mut allowance = Allowance::of(budgets);
    for pod in pods {
        let progress = progress(pod, budgets, attempts, &mut allowance, is_unreachable, now);
        evictions.states.push(state_of(pod, &progress, attempts));
        let until = match progress {
            Progress::Gone => continue,
            Progress::Evict { action, refused } => {
                evictions.actions.push(action);
                // Until it is known to go now, it is said to be blocked as before.
                evictions.blockers.extend(refused);
                // A pod that came and went while the watch was blind tells nobody that it is gone.
                now.checked_add(LONG_RECHECK).unwrap_or(now)
            }
            Progress::Terminating { until } => until,
            Progress::Blocked { why, until } => {
                evictions.blockers.push(why);
                until
            }
        };
        evictions.leaving += 1;
        evictions.recheck = earliest(evictions.recheck, until);
    }
    evictions
}

fn state_of(pod: &Pod, progress: &Progress, attempts: &Attempts) -> PodState {
    let refused = attempts.said(pod.metadata.uid.as_deref().unwrap_or_default());
    match (progress, refused) {
        (Progress::Gone, _) => PodState::Gone,
        _ if pod.metadata.deletion_timestamp.is_some() => PodState::Leaving,
        (_, Some(said)) => PodState::Refused(said.to_owned()),
        (Progress::Evict { .. }, None) => PodState::Evicted,
        (_, None) => PodState::Held,
    }
}

/// The condition and the wait say the same sentence.
fn describe(node: &str, blockers: Vec<String>, now: Timestamp) -> (Condition, Wait) {
    if blockers.is_empty() {
        let message = format!("draining node {node}");
        let condition = Condition::fails(
            condition_type::DRAINED,
            ConditionSeverity::Info,
            reason::DRAINING,
            &message,
            now,
        );
        return (condition, Wait::on(reason::DRAINING, message));
    }
    let mut named: Vec<_> = blockers.iter().take(NAMED_BLOCKERS).cloned().collect();
    if blockers.len() > NAMED_BLOCKERS {
        named.push(format!("and {} more", blockers.len() - NAMED_BLOCKERS));
    }
    let message = format!("could not drain machine: node {node}: {}", named.join("; "));
    let condition = Condition::fails(
        condition_type::DRAINED,
        ConditionSeverity::Warning,
        reason::DRAIN_ERROR,
        &message,
        now,
    );
    (condition, Wait::on(reason::DRAIN_ERROR, message))
}

fn hold_control_plane(
    mut status: MachineStatus,
    node: &Node,
    other: &str,
    now: Timestamp,
) -> DrainDecision {
    let message = format!(
        "could not drain machine: node {}: drain not permitted while control-plane node {other} is unschedulable",
        node::name(node)
    );
    let condition = Condition::fails(
        condition_type::DRAINED,
        ConditionSeverity::Warning,
        reason::DRAIN_ERROR,
        &message,
        now,
    );
    condition::set(&mut status.conditions, condition);
    let mut decision = Decision::settled(status);
    decision.waiting.push(Wait::on(reason::DRAIN_ERROR, message));
    if let Ok(later) = now.checked_add(CONTROL_PLANE_RECHECK) {
        decision.recheck_by(later);
    }
    decision
}

enum Progress {
    Gone,
    /// With what keeps it, if it was refused before.
    Evict {
        action: Action,
        refused: Option<String>,
    },
    Terminating {
        until: Timestamp,
    },
    Blocked {
        why: String,
        until: Timestamp,
    },
}

fn progress(
    pod: &Pod,
    budgets: &[&PodDisruptionBudget],
    attempts: &Attempts,
    allowance: &mut Allowance,
    is_unreachable: bool,
    now: Timestamp,
) -> Progress {
    let namespace = pod.metadata.namespace.clone().unwrap_or_default();
    let name = pod.metadata.name.clone().unwrap_or_default();
    let uid = pod.metadata.uid.clone().unwrap_or_default();
    if let Some(deletion) = &pod.metadata.deletion_timestamp {
        // The deletion timestamp already is the end of the grace period.
        let overdue_at = deletion.0.checked_add(OVERDUE).unwrap_or(Timestamp::MAX);
        return match (is_unreachable, now >= overdue_at) {
            // Nobody is there to confirm the end of a pod on an unreachable node.
            (true, _) if now > deletion.0 => Progress::Gone,
            (true, _) => Progress::Terminating { until: deletion.0 },
            (false, false) => Progress::Terminating { until: overdue_at },
            (false, true) => Progress::Blocked {
                why: format!("pod {namespace}/{name} is still terminating after its grace period"),
                until: now.checked_add(LONG_RECHECK).unwrap_or(Timestamp::MAX),
            },
        };
    }
    let budgets_seen = budgets_seen(pod, budgets);
    match attempts.hold(&uid, &budgets_seen) {
        Some((until, said)) if until > now => {
            Progress::Blocked { why: blocked_by(pod, budgets, said), until }
        }
        _ if !allowance.take(pod, budgets) => Progress::Terminating {
            // Its turn comes with the next change of the budget, which is watched.
            until: now.checked_add(LONG_RECHECK).unwrap_or(Timestamp::MAX),
        },
        held => Progress::Evict {
            refused: held.map(|(_, said)| blocked_by(pod, budgets, said)),
            action: Action::Evict {
                namespace,
                pod: name,
                uid,
                grace_period_seconds: is_unreachable.then_some(1),
                budgets_seen,
            },
        },
    }
}

/// A pod past its time is watched; this only bounds how old the sentence about it can get.
const LONG_RECHECK: SignedDuration = SignedDuration::from_secs(300);

/// How many evictions each budget allows in this pass. Asking for more at once would only be
/// refused: one budget over twenty pods must not cost twenty requests at each of its changes.
struct Allowance(BTreeMap<(Option<String>, Option<String>), i32>);

impl Allowance {
    fn of(budgets: &[&PodDisruptionBudget]) -> Self {
        let allowed = budgets.iter().map(|budget| (Self::key(budget), disruptions_allowed(budget)));
        Self(allowed.filter(|(_, allowed)| *allowed > 0).collect())
    }

    /// Whether the pod may be tried now. A budget that allows nothing does not hold a first try:
    /// the API server may let an unhealthy pod go all the same, and its words are worth having.
    fn take(&mut self, pod: &Pod, budgets: &[&PodDisruptionBudget]) -> bool {
        let keys: Vec<_> = covering(pod, budgets).map(Self::key).collect();
        if keys.iter().any(|key| self.0.get(key) == Some(&0)) {
            return false;
        }
        for key in keys {
            if let Some(allowed) = self.0.get_mut(&key) {
                *allowed -= 1;
            }
        }
        true
    }

    fn key(budget: &PodDisruptionBudget) -> (Option<String>, Option<String>) {
        (budget.metadata.namespace.clone(), budget.metadata.name.clone())
    }
}

/// Names the budgets that allow nothing now, or else repeats the API server's words.
fn blocked_by(pod: &Pod, budgets: &[&PodDisruptionBudget], said: &str) -> String {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let names: Vec<String> = covering(pod, budgets)
        .filter(|budget| disruptions_allowed(budget) <= 0)
        .map(|budget| {
            let status = budget.status.as_ref();
            format!(
                "{} ({} of {} healthy, {} needed)",
                budget.metadata.name.as_deref().unwrap_or_default(),
                status.map_or(0, |status| status.current_healthy),
                status.map_or(0, |status| status.expected_pods),
                status.map_or(0, |status| status.desired_healthy),
            )
        })
        .collect();
    if names.is_empty() {
        format!("pod {namespace}/{name} was not evicted: {said}")
    } else {
        format!("pod {namespace}/{name} is protected by disruption budget {}", names.join(", "))
    }
}

fn covering<'a>(
    pod: &'a Pod,
    budgets: &'a [&'a PodDisruptionBudget],
) -> impl Iterator<Item = &'a PodDisruptionBudget> {
    let labels = pod.metadata.labels.clone().unwrap_or_default();
    budgets.iter().copied().filter(move |budget| {
        budget.metadata.namespace == pod.metadata.namespace
            && selector::matches(
                budget.spec.as_ref().and_then(|spec| spec.selector.as_ref()),
                &labels,
            )
    })
}

fn disruptions_allowed(budget: &PodDisruptionBudget) -> i32 {
    budget.status.as_ref().map_or(0, |status| status.disruptions_allowed)
}

/// What of the budgets decides whether another try is worth it.
fn budgets_seen(pod: &Pod, budgets: &[&PodDisruptionBudget]) -> String {
    let seen: Vec<String> = covering(pod, budgets)
        .map(|budget| {
            format!(
                "{}:{}",
                budget.metadata.name.as_deref().unwrap_or_default(),
                disruptions_allowed(budget) > 0
            )
        })
        .collect();
    seen.join(",")
}

/// Whether a pod has to leave before the Node may go, whatever else is known.
pub fn must_go(pod: &Pod) -> bool {
    !is_mirror(pod) && daemon_set_of(pod).is_none()
}

/// The namespace and name of the DaemonSet that keeps a pod. While that exists the pod stays: another
/// would be made in its place.
pub fn daemon_set_of(pod: &Pod) -> Option<(&str, &str)> {
    let owners = pod.metadata.owner_references.iter().flatten();
    let owner = owners
        .into_iter()
        .find(|owner| owner.controller == Some(true) && owner.kind == "DaemonSet")?;
    Some((pod.metadata.namespace.as_deref().unwrap_or_default(), owner.name.as_str()))
}

fn is_mirror(pod: &Pod) -> bool {
    let annotations = pod.metadata.annotations.as_ref();
    annotations.is_some_and(|all| all.contains_key("kubernetes.io/config.mirror"))
}

/// Nobody makes another in its place, so it is a pod like any other.
fn is_orphan(pod: &Pod, observed: &Observed<'_>) -> bool {
    !is_mirror(pod)
        && daemon_set_of(pod).is_some_and(|owner| observed.missing_daemon_sets.contains(&owner))
}

fn earliest(known: Option<Timestamp>, new: Timestamp) -> Option<Timestamp> {
    Some(known.map_or(new, |known| known.min(new)))
}
