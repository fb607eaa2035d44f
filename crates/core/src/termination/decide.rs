//! What is a Node to say, given what was answered and what it says already?

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Node, NodeCondition},
    apimachinery::pkg::apis::meta::v1::Time,
};
use machinist_api::names::{annotation, condition_type, reason};
use serde_json::{Value, json};

use super::{
    observed::{Action, Answer, InstanceAction, Observed},
    scheduled::{annotation_for, annotation_of, on_node},
};

/// The message of the condition `Terminating`; others match on it.
pub const TERMINATION_MESSAGE: &str = "The cloud provider has marked this instance for termination";

/// What to write to a Node. Everything that it does not name stays as it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    pub conditions: Vec<NodeCondition>,
    pub scheduled_events: Annotation,
}

/// What becomes of an annotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Annotation {
    Keep,
    Set(String),
    Remove,
}

/// What a condition is to say.
struct Wanted {
    type_: &'static str,
    status: &'static str,
    reason: &'static str,
    message: String,
}

/// What to write to the Node; none when it says everything already.
#[must_use]
pub fn decide(observed: &Observed, node: &Node, now: Timestamp) -> Option<Change> {
    let wanted = [
        terminating(observed, node),
        stopping(&observed.action, node),
        rebalance_recommended(&observed.rebalance, node),
    ];
    let conditions = wanted
        .into_iter()
        .flatten()
        .filter_map(|wanted| condition(wanted, node, now))
        .collect::<Vec<_>>();
    let scheduled_events = scheduled_events(observed, node);
    let is_needed = !conditions.is_empty() || scheduled_events != Annotation::Keep;
    is_needed.then_some(Change { conditions, scheduled_events })
}

impl Change {
    /// The strategic merge patch of the Node's status: conditions are merged by their type, so those
    /// of others stay. It is right whatever else the Node holds, so it carries the uid only (Rule 3).
    #[must_use]
    pub fn patch(&self, uid: &str) -> Value {
        let mut metadata = json!({ "uid": uid });
        let value = match &self.scheduled_events {
            Annotation::Keep => None,
            Annotation::Set(text) => Some(json!(text)),
            Annotation::Remove => Some(Value::Null),
        };
        if let Some(value) = value {
            metadata["annotations"] = json!({ annotation::SCHEDULED_EVENTS: value });
        }
        let mut patch = json!({ "metadata": metadata });
        if !self.conditions.is_empty() {
            patch["status"] = json!({ "conditions": self.conditions });
        }
        patch
    }
}

/// The provider does not take such a notice back, so neither do we: a condition that is True stays,
/// whoever set it.
fn terminating(observed: &Observed, node: &Node) -> Option<Wanted> {
    let is_new = observed.is_terminating() && !is_true(node, condition_type::NODE_TERMINATING);
    is_new.then(|| Wanted {
        type_: condition_type::NODE_TERMINATING,
        status: "True",
        reason: reason::TERMINATION_REQUESTED,
        message: TERMINATION_MESSAGE.to_owned(),
    })
}

/// A spot instance that is stopped or hibernated comes back as the same Node: no reason to replace
/// its Machine, but one to move its pods.
fn stopping(answer: &Answer<InstanceAction>, node: &Node) -> Option<Wanted> {
    let type_ = condition_type::NODE_STOPPING;
    let (verb, reason, at) = match answer {
        Answer::Unknown => return None,
        Answer::Announced(InstanceAction { action: Action::Stop, at }) => {
            ("stop", reason::STOP_REQUESTED, at)
        }
        Answer::Announced(InstanceAction { action: Action::Hibernate, at }) => {
            ("hibernate", reason::HIBERNATION_REQUESTED, at)
        }
        Answer::Nothing | Answer::Announced(InstanceAction { action: Action::Terminate, .. }) => {
            return is_true(node, type_).then(|| Wanted {
                type_,
                status: "False",
                reason: reason::NOT_REQUESTED,
                message: "The cloud provider does not intend to stop this instance".to_owned(),
            });
        }
    };
    let message = format!("The cloud provider will {verb} this instance{}", told(" at", *at));
    Some(Wanted { type_, status: "True", reason, message })
}

fn rebalance_recommended(answer: &Answer<Option<Timestamp>>, node: &Node) -> Option<Wanted> {
    let type_ = condition_type::NODE_REBALANCE_RECOMMENDED;
    match answer {
        Answer::Unknown => None,
        Answer::Announced(at) => Some(Wanted {
            type_,
            status: "True",
            reason: reason::REBALANCE_RECOMMENDED,
            message: format!(
                "The cloud provider sees an elevated risk that this instance is interrupted{}",
                told(", since", *at)
            ),
        }),
        Answer::Nothing => is_true(node, type_).then(|| Wanted {
            type_,
            status: "False",
            reason: reason::NOT_RECOMMENDED,
            message: "The cloud provider no longer recommends to leave this instance".to_owned(),
        }),
    }
}

fn told(word: &str, at: Option<Timestamp>) -> String {
    at.map_or_else(String::new, |at| format!("{word} {at}"))
}

fn scheduled_events(observed: &Observed, node: &Node) -> Annotation {
    let current = annotation_of(node);
    let wanted = match &observed.events {
        Answer::Unknown => return Annotation::Keep,
        Answer::Nothing => None,
        Answer::Announced(events) => {
            // What the answer does not name is gone, unless a part of it could not be read.
            let mut all = if events.is_partial { on_node(node) } else { Default::default() };
            all.extend(events.by_id.clone());
            annotation_for(all)
        }
    };
    match wanted {
        Some(text) if current != Some(text.as_str()) => Annotation::Set(text),
        None if current.is_some() => Annotation::Remove,
        Some(_) | None => Annotation::Keep,
    }
}

/// The condition to write, unless it stands there already. Its transition is when its status changed.
fn condition(wanted: Wanted, node: &Node, now: Timestamp) -> Option<NodeCondition> {
    let current = find(node, wanted.type_);
    let keeps_status = current.is_some_and(|current| current.status == wanted.status);
    let is_said = keeps_status
        && current.is_some_and(|current| {
            current.reason.as_deref() == Some(wanted.reason)
                && current.message.as_deref() == Some(wanted.message.as_str())
        });
    if is_said {
        return None;
    }
    let since = current
        .filter(|_| keeps_status)
        .and_then(|current| current.last_transition_time.clone())
        .unwrap_or(Time(now));
    Some(NodeCondition {
        type_: wanted.type_.to_owned(),
        status: wanted.status.to_owned(),
        reason: Some(wanted.reason.to_owned()),
        message: Some(wanted.message),
        last_heartbeat_time: Some(Time(now)),
        last_transition_time: Some(since),
    })
}

fn find<'a>(node: &'a Node, type_: &str) -> Option<&'a NodeCondition> {
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == type_)
}

fn is_true(node: &Node, type_: &str) -> bool {
    find(node, type_).is_some_and(|condition| condition.status == "True")
}
