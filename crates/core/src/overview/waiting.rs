//! Why is this not as wished? The first thing that holds it up, in the operator's own words.
//!
//! The sentences are those of the conditions, which core wrote; this module only chooses.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, NodeCondition};
use machinist_api::names::{condition_type, phase, reason};
use machinist_api::{Condition, ConditionStatus, Machine, MachineSet, MachineStatus, condition};

use super::seen::{NodeState, Nodes, Waiting, instance_state, provider_status};
use crate::{cluster_api::maintained::is_of_cluster_api, node};

/// Reasons that no condition has, because nobody writes them: they are seen from outside.
pub(super) mod seen {
    pub const NOT_LOOKED_AT: &str = "NotLookedAt";
    pub const LAUNCHING: &str = "Launching";
    pub const INSTANCE_PENDING: &str = "InstancePending";
    pub const INSTANCE_NOT_RUNNING: &str = "InstanceNotRunning";
    pub const TERMINATING: &str = "Terminating";
    pub const NODE_MISSING: &str = "NodeMissing";
    pub const NODE_NOT_READY: &str = "NodeNotReady";
    pub const NODE_CORDONED: &str = "NodeCordoned";
    pub const SCALING_UP: &str = "ScalingUp";
    pub const SCALING_DOWN: &str = "ScalingDown";
    pub const DELETING: &str = "Deleting";
    pub const NODES_NOT_READY: &str = "NodesNotReady";
    pub const UNREADABLE: &str = "Unreadable";
}

/// What holds an object up that does not parse.
pub fn of_unreadable(problem: &str) -> Waiting {
    wait(seen::UNREADABLE, format!("the object cannot be read: {problem}"), None)
}

/// What holds a machine up; none when it is as it should be.
pub fn of_machine(machine: &Machine, nodes: &Nodes<'_>) -> Option<Waiting> {
    let status = machine.status.clone().unwrap_or_default();
    if let Some(paused) = paused(&status.conditions) {
        return Some(paused);
    }
    if let Some(deleted) = &machine.metadata.deletion_timestamp {
        return Some(of_deletion(machine, &status, deleted.0));
    }
    let Some(current) = status.phase.as_deref() else {
        let created = machine.metadata.creation_timestamp.as_ref().map(|time| time.0);
        let words = match is_of_cluster_api(machine) {
            true => "neither an operator nor its provider has said anything of this machine yet",
            false => "no operator has looked at this machine yet",
        };
        return Some(wait(seen::NOT_LOOKED_AT, words, created));
    };
    let exists = condition::find(&status.conditions, condition_type::INSTANCE_EXISTS);
    if current == phase::FAILED {
        return Some(of_failure(&status, exists));
    }
    of_instance(machine, &status, exists)
        .or_else(|| of_node(machine, nodes))
        .or_else(|| not_true(&status, condition_type::INSTANCE_HEALTHY))
        .or_else(|| not_true(&status, condition_type::LOAD_BALANCERS_ATTACHED))
}

/// The words of a condition that is there and False.
fn not_true(status: &MachineStatus, type_: &str) -> Option<Waiting> {
    let found = condition::find(&status.conditions, type_)?;
    (found.status == ConditionStatus::False).then(|| from_condition(found))
}

/// What holds a pool up.
pub fn of_pool(set: &MachineSet) -> Option<Waiting> {
    let status = set.status.clone().unwrap_or_default();
    if let Some(paused) = paused(&status.conditions) {
        return Some(paused);
    }
    if let Some(deleted) = &set.metadata.deletion_timestamp {
        return Some(wait(seen::DELETING, "the pool is being deleted", Some(deleted.0)));
    }
    let scaling = condition::find(&status.conditions, condition_type::SCALING);
    if let Some(failed) = scaling.filter(|scaling| scaling.status != ConditionStatus::True) {
        return Some(from_condition(failed));
    }
    if let Some(message) = status.error_message {
        let word = status.error_reason.as_deref().unwrap_or(phase::FAILED);
        return Some(wait(word, message, None));
    }
    if status.observed_generation < set.metadata.generation {
        let message = "no operator has looked at the last change of this pool yet";
        return Some(wait(seen::NOT_LOOKED_AT, message, None));
    }
    let desired = set.spec.replicas.unwrap_or(1);
    let current = status.replicas.unwrap_or(0);
    let ready = status.ready_replicas.unwrap_or(0);
    let (word, message) = if current < desired {
        (seen::SCALING_UP, format!("{current} of {desired} machines are made"))
    } else if current > desired {
        (seen::SCALING_DOWN, format!("{} machines are to be deleted", current - desired))
    } else if ready < desired {
        (seen::NODES_NOT_READY, format!("{ready} of {desired} nodes are ready"))
    } else {
        return None;
    };
    Some(wait(word, message, None))
}

fn of_failure(status: &MachineStatus, exists: Option<&Condition>) -> Waiting {
    // The conditions say what became of the instance and what follows; the error only that it
    // cannot be found.
    if let Some(down) = not_true(status, condition_type::INSTANCE_RUNNING) {
        return down;
    }
    let missing = exists.filter(|one| one.reason.as_deref() == Some(reason::INSTANCE_MISSING));
    if let Some(missing) = missing {
        return from_condition(missing);
    }
    let word = status.error_reason.as_deref().unwrap_or(phase::FAILED);
    let told = status.error_message.clone().or_else(|| exists?.message.clone());
    let message = told.unwrap_or_else(|| "the machine has failed".to_owned());
    wait(word, message, exists.map(since))
}

fn of_deletion(machine: &Machine, status: &MachineStatus, deleted: Timestamp) -> Waiting {
    let not_true = |type_: &str| {
        let found = condition::find(&status.conditions, type_);
        found.filter(|condition| condition.status != ConditionStatus::True)
    };
    if !condition::is_true(&status.conditions, condition_type::DRAINED) {
        let holds =
            not_true(condition_type::DRAINABLE).or_else(|| not_true(condition_type::DRAINED));
        return holds.map_or_else(
            || wait(reason::DRAINING, "waiting for the node to be drained", Some(deleted)),
            from_condition,
        );
    }
    if let Some(hook) = not_true(condition_type::TERMINABLE) {
        return from_condition(hook);
    }
    let exists = condition::find(&status.conditions, condition_type::INSTANCE_EXISTS);
    if let Some(unknown) = exists.filter(|exists| exists.status == ConditionStatus::Unknown) {
        return from_condition(unknown);
    }
    let provider = provider_status(machine);
    let message = match (&provider.instance_id, instance_state(machine, &provider)) {
        (Some(id), Some(state)) if state == "shutting-down" || state == "terminated" => {
            format!("instance {id} is {state}")
        }
        (Some(id), _) => format!("instance {id} is being terminated"),
        (None, _) => "the machine is being removed".to_owned(),
    };
    wait(seen::TERMINATING, message, Some(deleted))
}

fn of_instance(
    machine: &Machine,
    status: &MachineStatus,
    exists: Option<&Condition>,
) -> Option<Waiting> {
    let provider = provider_status(machine);
    if let Some(missing) = exists.filter(|exists| exists.status != ConditionStatus::True) {
        // The provider's own words say more than "has not been created".
        let refusal = provider.conditions.iter().find(|creation| {
            creation.type_ == condition_type::MACHINE_CREATION && creation.status == "False"
        });
        return Some(match refusal {
            Some(refusal) => {
                let when = refusal.last_transition_time.0;
                wait(&refusal.reason, refusal.message.clone(), Some(when))
            }
            None if provider.launch.is_some() && missing.status == ConditionStatus::False => {
                wait(seen::LAUNCHING, "the instance is being launched", Some(since(missing)))
            }
            None => from_condition(missing),
        });
    }
    let Some(id) = &provider.instance_id else {
        let is_adopted = machine.spec.provider_id.is_some();
        let created = machine.metadata.creation_timestamp.as_ref().map(|time| time.0);
        return (!is_adopted)
            .then(|| wait(seen::LAUNCHING, "the instance is being launched", created));
    };
    let running = condition::find(&status.conditions, condition_type::INSTANCE_RUNNING);
    if let Some(down) = running.filter(|running| running.status != ConditionStatus::True) {
        return Some(from_condition(down));
    }
    match instance_state(machine, &provider).as_deref() {
        None | Some("running") => None,
        Some("pending") => {
            Some(wait(seen::INSTANCE_PENDING, format!("instance {id} is pending"), None))
        }
        Some(state) => {
            Some(wait(seen::INSTANCE_NOT_RUNNING, format!("instance {id} is {state}"), None))
        }
    }
}

fn of_node(machine: &Machine, nodes: &Nodes<'_>) -> Option<Waiting> {
    let Some((name, state, node)) = nodes.of(machine) else {
        let message = match provider_status(machine).instance_id {
            Some(id) => format!("instance {id} has no node yet"),
            None => "the machine has no node yet".to_owned(),
        };
        return Some(wait(seen::NODE_MISSING, message, None));
    };
    let ready = node.and_then(ready_condition);
    let told = ready.and_then(|ready| ready.message.as_deref()).filter(|told| !told.is_empty());
    let told = told.map(|told| format!(": {told}")).unwrap_or_default();
    let when = ready.and_then(|ready| ready.last_transition_time.as_ref()).map(|time| time.0);
    match state {
        NodeState::NotVisible => None,
        NodeState::Missing => Some(wait(seen::NODE_MISSING, format!("node {name} is gone"), None)),
        NodeState::NotReady => {
            Some(wait(seen::NODE_NOT_READY, format!("node {name} is not ready{told}"), when))
        }
        NodeState::Unknown => {
            Some(wait(seen::NODE_NOT_READY, format!("node {name} is silent{told}"), when))
        }
        NodeState::Ready if node.is_some_and(node::is_unschedulable) => {
            Some(wait(seen::NODE_CORDONED, format!("node {name} is cordoned"), None))
        }
        NodeState::Ready => None,
    }
}

fn ready_condition(node: &Node) -> Option<&NodeCondition> {
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == "Ready")
}

/// During a migration another API may own the object.
fn paused(conditions: &[Condition]) -> Option<Waiting> {
    let paused = condition::find(conditions, condition_type::PAUSED)?;
    (paused.status == ConditionStatus::True).then(|| from_condition(paused))
}

fn from_condition(condition: &Condition) -> Waiting {
    let told = condition.message.clone().filter(|message| !message.is_empty());
    let message =
        told.unwrap_or_else(|| format!("{} is {}", condition.type_, condition.status.as_str()));
    let word = condition.reason.as_deref().unwrap_or(&condition.type_);
    wait(word, message, Some(since(condition)))
}

fn since(condition: &Condition) -> Timestamp {
    condition.last_transition_time.0
}

fn wait(reason: &str, message: impl Into<String>, since: Option<Timestamp>) -> Waiting {
    Waiting { reason: reason.to_owned(), message: message.into(), since }
}
