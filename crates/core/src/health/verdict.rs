//! Whether one machine is healthy, and if not, why.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Node, NodeCondition};
use machinist_api::{
    Machine,
    names::{annotation, condition_type, label, phase},
};

use super::{
    observed::{Memory, Target, TargetNode},
    policy::Policy,
    startup::started_at,
};
use crate::{drift::Class, machine::observed::provider_status};

/// How long a linked Node must be missing before that is believed: a cache may lag behind the write
/// that linked it, and a Node that is made anew is away for a moment (D12).
const MISSING_NODE_GRACE: SignedDuration = SignedDuration::from_secs(30);
/// Kubernetes keeps whole seconds, so a stored time may be up to one second before the truth.
const ROUNDING: SignedDuration = SignedDuration::from_secs(1);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Healthy,
    /// On its way out already: not healthy, and nothing is to be done.
    Deleting,
    /// Without a Node, and in time: counted as neither healthy nor unhealthy.
    Starting {
        until: Timestamp,
    },
    /// Without a Node, for as long as it likes: not healthy.
    NeverTimesOut,
    /// Another controller repairs it: not healthy until that is over.
    InRepair,
    /// Bad, but not for long enough yet.
    Suspect {
        cause: Cause,
        until: Timestamp,
    },
    Unhealthy(Cause),
}

/// What is wrong with a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    Failed,
    NoNode { since: Timestamp },
    NodeMissing { node: String },
    NodeCondition { type_: String, status: String, since: Timestamp },
}

impl Cause {
    /// A sentence without its end.
    pub fn words(&self) -> String {
        match self {
            Self::Failed => "its phase is Failed".to_owned(),
            Self::NoNode { since } => format!("it started at {since} and has no node"),
            Self::NodeMissing { node } => format!("its node {node} does not exist"),
            Self::NodeCondition { type_, status, since } => {
                format!("condition {type_} of its node is {status} since {since}")
            }
        }
    }

    /// Whether the machine is lost whatever we choose: its instance is certainly gone, or the
    /// provider has announced that it takes it. Such a remediation asks no gate; it is only counted.
    pub fn is_unavoidable(&self, machine: &Machine) -> bool {
        match self {
            Self::Failed => {
                let drift = provider_status(machine).drift;
                let class = drift.and_then(|drift| Class::from_reason(&drift.class));
                class.is_some_and(Class::is_termination)
            }
            Self::NodeCondition { type_, status, .. } => {
                type_ == condition_type::NODE_TERMINATING
                    && status == "True"
                    && is_interruptible(machine)
            }
            Self::NoNode { .. } | Self::NodeMissing { .. } => false,
        }
    }
}

/// Judges one machine; the first that applies wins.
pub fn judge(target: &Target<'_>, policy: &Policy, memory: &Memory, now: Timestamp) -> Verdict {
    let machine = target.machine;
    if machine.metadata.deletion_timestamp.is_some() {
        return Verdict::Deleting;
    }
    if is_failed(machine) {
        return Verdict::Unhealthy(Cause::Failed);
    }
    match &target.node {
        TargetNode::NotLinked => without_node(machine, policy, now),
        TargetNode::Missing(node) => {
            let since = memory.missing_since.get(target.uid()).copied().unwrap_or(now);
            let cause = Cause::NodeMissing { node: node.clone() };
            lasting(cause, later(since, MISSING_NODE_GRACE), now)
        }
        TargetNode::Linked(node) => match worst_condition(node, policy, now) {
            Some(verdict) => verdict,
            None if is_marked_for_repair(machine) => Verdict::InRepair,
            None => Verdict::Healthy,
        },
    }
}

pub fn is_failed(machine: &Machine) -> bool {
    machine.status.as_ref().and_then(|status| status.phase.as_deref()) == Some(phase::FAILED)
}

pub fn is_marked_for_repair(machine: &Machine) -> bool {
    let annotations = machine.metadata.annotations.as_ref();
    annotations.is_some_and(|all| all.contains_key(annotation::EXTERNAL_REMEDIATION))
}

fn is_interruptible(machine: &Machine) -> bool {
    let own = machine.metadata.labels.as_ref();
    let of_node = machine.spec.metadata.as_ref().map(|metadata| &metadata.labels);
    own.into_iter().chain(of_node).any(|labels| labels.contains_key(label::INTERRUPTIBLE))
}

fn without_node(machine: &Machine, policy: &Policy, now: Timestamp) -> Verdict {
    let Some(timeout) = policy.startup_timeout else { return Verdict::NeverTimesOut };
    let since = started_at(machine).unwrap_or(now);
    let until = later(since, timeout);
    if until < now {
        Verdict::Unhealthy(Cause::NoNode { since })
    } else {
        Verdict::Starting { until: later(until, ROUNDING) }
    }
}

/// The conditions of a check are alternatives: one that has lasted is enough, else the one that
/// will have lasted first.
fn worst_condition(node: &Node, policy: &Policy, now: Timestamp) -> Option<Verdict> {
    let present = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    let mut first_suspect: Option<(Timestamp, Cause)> = None;
    for bad in &policy.conditions {
        let found = present
            .into_iter()
            .flatten()
            .find(|condition| condition.type_ == bad.type_ && condition.status == bad.status);
        let Some(found) = found else { continue };
        let since = lasts_since(found, node);
        let cause =
            Cause::NodeCondition { type_: bad.type_.clone(), status: bad.status.clone(), since };
        match lasting(cause, later(since, bad.timeout), now) {
            Verdict::Suspect { cause, until } => {
                if first_suspect.as_ref().is_none_or(|(earliest, _)| until < *earliest) {
                    first_suspect = Some((until, cause));
                }
            }
            verdict => return Some(verdict),
        }
    }
    first_suspect.map(|(until, cause)| Verdict::Suspect { cause, until })
}

/// A condition that does not say since when has lasted as long as its Node.
fn lasts_since(condition: &NodeCondition, node: &Node) -> Timestamp {
    let said = condition.last_transition_time.as_ref();
    let known = said.or(node.metadata.creation_timestamp.as_ref());
    known.map_or(Timestamp::UNIX_EPOCH, |time| time.0)
}

fn lasting(cause: Cause, due: Timestamp, now: Timestamp) -> Verdict {
    if due < now {
        Verdict::Unhealthy(cause)
    } else {
        Verdict::Suspect { cause, until: later(due, ROUNDING) }
    }
}

fn later(at: Timestamp, pause: SignedDuration) -> Timestamp {
    at.checked_add(pause).unwrap_or(Timestamp::MAX)
}
