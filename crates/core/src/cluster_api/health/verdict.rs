//! Is a machine well?

use jiff::{SignedDuration, Timestamp};
use machinist_api::cluster_api::{
    Cluster, Machine, UnhealthyCondition, condition,
    names::{annotation, condition_type, label, reason},
};

use super::observed::{NodeSight, Policy, Target, since};
use crate::{
    cluster_api::{
        identity::{self, is_deleting},
        scaling::conditions_of,
    },
    health::count::Tally,
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Healthy,
    /// In time to get a Node.
    Starting {
        until: Timestamp,
    },
    /// Something is bad and has not lasted long enough.
    Suspect {
        until: Timestamp,
    },
    /// Nothing can be said: its cluster is not up yet, or does not answer, or it may be without a Node for ever.
    Unjudged,
    Deleting,
    Unhealthy {
        reason: &'static str,
        message: String,
    },
}

impl Verdict {
    /// When time alone changes it.
    pub fn until(&self) -> Option<Timestamp> {
        match self {
            Self::Starting { until } | Self::Suspect { until } => Some(*until),
            _ => None,
        }
    }
}

/// Counts for the breaker. What nobody can judge is left out like what is starting: it is no reason to keep broken
/// machines.
pub fn tally<'a>(verdicts: impl IntoIterator<Item = &'a Verdict>) -> Tally {
    let mut tally = Tally::default();
    for verdict in verdicts {
        tally.expected += 1;
        match verdict {
            Verdict::Healthy => tally.healthy += 1,
            Verdict::Starting { .. } | Verdict::Unjudged => tally.starting += 1,
            Verdict::Suspect { .. } | Verdict::Deleting | Verdict::Unhealthy { .. } => {}
        }
    }
    tally
}

/// Counts for the breaker while nothing can be judged: what was last said of the machines, and what people ask for now.
pub fn last_told<'a>(machines: impl IntoIterator<Item = &'a Machine>) -> Tally {
    let mut tally = Tally::default();
    for machine in machines {
        let was_well =
            !condition::is_false(conditions_of(machine), condition_type::HEALTH_CHECK_SUCCEEDED);
        tally.expected += 1;
        tally.healthy += usize::from(was_well && !is_asked_for_by_hand(machine));
    }
    tally
}

/// Whether a check is about a Machine at all.
pub fn is_watched(machine: &Machine) -> bool {
    let has = |key| identity::annotation(&machine.metadata, key).is_some();
    !has(annotation::SKIP_REMEDIATION) && !has(annotation::PAUSED)
}

/// Whether a person wants the machine replaced, however it is.
pub fn is_asked_for_by_hand(machine: &Machine) -> bool {
    identity::annotation(&machine.metadata, annotation::REMEDIATE_MACHINE).is_some()
}

pub fn judge(policy: &Policy, cluster: &Cluster, target: &Target<'_>, now: Timestamp) -> Verdict {
    let machine = target.machine;
    if is_asked_for_by_hand(machine) {
        let key = annotation::REMEDIATE_MACHINE;
        return Verdict::Unhealthy {
            reason: reason::HAS_REMEDIATE_ANNOTATION,
            message: format!("Health check failed: marked for remediation via {key} annotation"),
        };
    }
    if !is_cluster_up(cluster, machine) {
        return Verdict::Unjudged;
    }
    let mut causes = Causes::default();
    for bad in &policy.machine_conditions {
        let known = condition::find(conditions_of(machine), &bad.type_);
        let known = known.map(|known| (known.status.as_str(), Some(known.last_transition_time.0)));
        causes.weigh("Machine", bad, known, reason::UNHEALTHY_MACHINE, now);
    }
    let is_without_end = match &target.node {
        NodeSight::NotYet => causes.startup(policy, cluster, machine, now),
        NodeSight::Gone => {
            let node = machine.status.as_ref().and_then(|status| status.node_ref.as_ref());
            let name = node.map_or("", |node| node.name.as_str());
            causes.fail(reason::NODE_DELETED, format!("Node {name} has been deleted"));
            false
        }
        NodeSight::Unknown => true,
        NodeSight::Present(node) => {
            let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
            for bad in &policy.node_conditions {
                let known = conditions.into_iter().flatten().find(|known| known.type_ == bad.type_);
                let known = known.map(|known| {
                    (known.status.as_str(), since(known.last_transition_time.as_ref()))
                });
                causes.weigh("Node", bad, known, reason::UNHEALTHY_NODE, now);
            }
            false
        }
    };
    causes.verdict(is_without_end, is_deleting(&machine.metadata))
}

/// A worker cannot come up before the control plane, and nothing before the infrastructure.
fn is_cluster_up(cluster: &Cluster, machine: &Machine) -> bool {
    let conditions = cluster.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let is_control_plane = identity::label(&machine.metadata, label::CONTROL_PLANE).is_some();
    condition::is_true(conditions, condition_type::INFRASTRUCTURE_READY)
        && (is_control_plane || is_initialized(cluster))
}

/// Whether the cluster has a control plane, and so an API server that answers unless something is wrong.
pub fn is_initialized(cluster: &Cluster) -> bool {
    let conditions = cluster.status.as_ref().map_or(&[][..], |status| &status.conditions);
    condition::is_true(conditions, condition_type::CONTROL_PLANE_INITIALIZED)
}

#[derive(Default)]
struct Causes {
    failed: Vec<(&'static str, String)>,
    /// When the first of what is bad will have lasted.
    pending: Option<Timestamp>,
    starting: Option<Timestamp>,
}

impl Causes {
    fn fail(&mut self, reason: &'static str, message: String) {
        self.failed.push((reason, message));
    }

    fn weigh(
        &mut self,
        what: &str,
        bad: &UnhealthyCondition,
        known: Option<(&str, Option<Timestamp>)>,
        reason: &'static str,
        now: Timestamp,
    ) {
        let Some((_, since)) = known.filter(|(status, _)| *status == bad.status) else { return };
        let timeout = SignedDuration::from_secs(i64::from(bad.timeout_seconds));
        let until = since.unwrap_or(now).checked_add(timeout).unwrap_or(Timestamp::MAX);
        if until <= now {
            let words = format!(
                "Condition {} on {what} is reporting status {} for more than {}",
                bad.type_,
                bad.status,
                go_duration(bad.timeout_seconds)
            );
            self.fail(reason, words);
        } else {
            self.pending = Some(self.pending.map_or(until, |known| known.min(until)));
        }
    }

    /// Whether the machine may be without a Node for ever.
    fn startup(
        &mut self,
        policy: &Policy,
        cluster: &Cluster,
        machine: &Machine,
        now: Timestamp,
    ) -> bool {
        let Some(timeout) = policy.startup_timeout else { return true };
        let true_since = |conditions: &[_], type_| {
            condition::find(conditions, type_)
                .filter(|known| known.status == condition::TRUE)
                .map(|known| known.last_transition_time.0)
        };
        let of_cluster = cluster.status.as_ref().map_or(&[][..], |status| &status.conditions);
        let began = [
            machine.metadata.creation_timestamp.as_ref().map(|at| at.0),
            true_since(of_cluster, condition_type::CONTROL_PLANE_INITIALIZED),
            true_since(of_cluster, condition_type::INFRASTRUCTURE_READY),
            true_since(conditions_of(machine), condition_type::INFRASTRUCTURE_READY),
        ];
        let began = began.into_iter().flatten().max().unwrap_or(now);
        let until = began.checked_add(timeout).unwrap_or(Timestamp::MAX);
        if until <= now {
            let seconds = i32::try_from(timeout.as_secs()).unwrap_or(i32::MAX);
            let words = format!("Node failed to report startup in {}", go_duration(seconds));
            self.fail(reason::NODE_STARTUP_TIMEOUT, words);
        } else {
            self.starting = Some(until);
        }
        false
    }

    fn verdict(self, is_without_end: bool, is_going: bool) -> Verdict {
        if !self.failed.is_empty() {
            let own = self.failed.iter().find(|(reason, _)| *reason == reason::UNHEALTHY_MACHINE);
            let reason = own.or_else(|| self.failed.first()).map_or("", |(reason, _)| *reason);
            let lines: String =
                self.failed.iter().map(|(_, words)| format!("\n  * {words}")).collect();
            return Verdict::Unhealthy { reason, message: format!("Health check failed:{lines}") };
        }
        if is_going {
            return Verdict::Deleting;
        }
        if let Some(until) = self.starting {
            let until = self.pending.map_or(until, |pending| pending.min(until));
            return Verdict::Starting { until };
        }
        match self.pending {
            Some(until) => Verdict::Suspect { until },
            None if is_without_end => Verdict::Unjudged,
            None => Verdict::Healthy,
        }
    }
}

/// As Go writes a duration of whole seconds: `5m0s`, `1h0m0s`, `30s`.
fn go_duration(seconds: i32) -> String {
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{rest}s"),
        (0, _) => format!("{minutes}m{rest}s"),
        _ => format!("{hours}h{minutes}m{rest}s"),
    }
}
