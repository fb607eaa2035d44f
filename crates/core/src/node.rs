//! What a Node says about itself, read the same way everywhere.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, NodeCondition};
use machinist_api::names::label;

/// The Node's own word on whether it is Ready. Unknown is neither (Rule 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    Ready,
    NotReady,
    /// The kubelet does not report: the node may or may not run.
    Unknown,
}

pub fn name(node: &Node) -> &str {
    node.metadata.name.as_deref().unwrap_or_default()
}

pub fn uid(node: &Node) -> &str {
    node.metadata.uid.as_deref().unwrap_or_default()
}

pub fn provider_id(node: &Node) -> Option<&str> {
    node.spec.as_ref()?.provider_id.as_deref().filter(|id| !id.is_empty())
}

pub fn internal_ips(node: &Node) -> Vec<&str> {
    let addresses = node.status.as_ref().and_then(|status| status.addresses.as_ref());
    addresses
        .into_iter()
        .flatten()
        .filter(|address| address.type_ == "InternalIP")
        .map(|address| address.address.as_str())
        .collect()
}

pub fn readiness(node: &Node) -> Readiness {
    match ready_condition(node).map(|condition| condition.status.as_str()) {
        Some("True") => Readiness::Ready,
        Some("False") => Readiness::NotReady,
        _ => Readiness::Unknown,
    }
}

/// Since when the Node is Ready; `None` when it is not.
pub fn ready_since(node: &Node) -> Option<Timestamp> {
    let condition = ready_condition(node).filter(|condition| condition.status == "True")?;
    condition.last_transition_time.as_ref().map(|time| time.0)
}

/// Changes at each boot of the machine.
pub fn boot_id(node: &Node) -> Option<&str> {
    let info = node.status.as_ref()?.node_info.as_ref()?;
    Some(info.boot_id.as_str()).filter(|id| !id.is_empty())
}

pub fn is_unschedulable(node: &Node) -> bool {
    node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or(false)
}

pub fn is_control_plane(node: &Node) -> bool {
    node.metadata.labels.as_ref().is_some_and(|labels| {
        labels.contains_key(label::NODE_CONTROL_PLANE) || labels.contains_key(label::NODE_MASTER)
    })
}

pub fn is_deleting(node: &Node) -> bool {
    node.metadata.deletion_timestamp.is_some()
}

fn ready_condition(node: &Node) -> Option<&NodeCondition> {
    node.status.as_ref()?.conditions.as_ref()?.iter().find(|condition| condition.type_ == "Ready")
}
