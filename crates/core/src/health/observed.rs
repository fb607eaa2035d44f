//! What must be known to decide about one MachineHealthCheck.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use machinist_api::{Machine, MachineHealthCheck};
use serde_json::Value;

use crate::disruption::Pool;

/// A check and everything in its namespace that it may concern.
pub struct Observed<'a> {
    pub check: &'a MachineHealthCheck,
    /// Every Machine of the check's namespace, selected or not: the control plane is counted whole.
    pub machines: Vec<Target<'a>>,
    /// Every MachineSet of the namespace by its uid, counted for nobody: `Pool::of(set, members, "")`.
    pub pools: &'a BTreeMap<String, Pool>,
    /// Only asked for when `HealthDecision::wants_template` was set.
    pub template: Template,
    /// The requests of the template's kind in this namespace, by name; `None` while they are not
    /// known, and then nothing is requested or taken back.
    pub requests: Option<&'a BTreeMap<String, ExternalRequest>>,
    /// Why the last attempt to make a request failed, if it did.
    pub request_failure: Option<&'a str>,
    /// What the last decision about this check wants remembered.
    pub memory: &'a Memory,
    /// When this process last wrote the status; spaces out mere counts.
    pub status_written_at: Option<Timestamp>,
    /// Why what is seen is not to be trusted, where something speaks against it: a watch of Nodes
    /// or Machines that is cut off shows the past.
    pub doubt: Option<&'a str>,
}

/// A Machine with the Node that it is linked to.
#[derive(Clone)]
pub struct Target<'a> {
    pub machine: &'a Machine,
    pub node: TargetNode<'a>,
}

#[derive(Clone, Debug)]
pub enum TargetNode<'a> {
    /// The Machine has no nodeRef.
    NotLinked,
    Linked(&'a Node),
    /// The Machine has a nodeRef to this name, but no such Node is seen.
    Missing(String),
}

impl<'a> Target<'a> {
    /// Joins a Machine with the Node that the store has under its nodeRef.
    pub fn of(machine: &'a Machine, node: Option<&'a Node>) -> Self {
        let reference = machine.status.as_ref().and_then(|status| status.node_ref.as_ref());
        let node = match (node, reference) {
            (_, None) => TargetNode::NotLinked,
            (Some(node), Some(_)) => TargetNode::Linked(node),
            (None, Some(reference)) => {
                TargetNode::Missing(reference.name.clone().unwrap_or_default())
            }
        };
        Self { machine, node }
    }

    pub fn name(&self) -> &str {
        self.machine.metadata.name.as_deref().unwrap_or_default()
    }

    pub fn uid(&self) -> &str {
        self.machine.metadata.uid.as_deref().unwrap_or_default()
    }

    pub fn linked_node(&self) -> Option<&'a Node> {
        match &self.node {
            TargetNode::Linked(node) => Some(node),
            TargetNode::NotLinked | TargetNode::Missing(_) => None,
        }
    }

    /// How messages name a target: the check, the machine and the node.
    pub fn describe(&self, check: &MachineHealthCheck) -> String {
        let node = match &self.node {
            TargetNode::NotLinked => "",
            TargetNode::Linked(node) => crate::node::name(node),
            TargetNode::Missing(name) => name,
        };
        format!(
            "{}/{}/{}/{node}",
            check.metadata.namespace.as_deref().unwrap_or_default(),
            check.metadata.name.as_deref().unwrap_or_default(),
            self.name(),
        )
    }
}

/// What is known of the object that `spec.remediationTemplate` names.
#[derive(Clone, Debug, PartialEq)]
pub enum Template {
    NotAsked,
    /// It cannot be used; says why.
    NotFound(String),
    Found(Value),
}

/// A request for remediation that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalRequest {
    pub uid: String,
    pub resource_version: String,
    pub is_deleting: bool,
    /// The uids of its owners. One that is of another Machine of the same name is left alone.
    pub owner_uids: Vec<String>,
}

/// What one decision wants the next to know. It is lost with the process: then a person is told
/// once more, and a missing Node is waited for once more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Since when the linked Node of a Machine, by uid, is not seen.
    pub missing_since: BTreeMap<String, Timestamp>,
    /// What people were last told of a Machine, by uid.
    pub told: BTreeMap<String, String>,
}
