//! What can be seen of a machine three times: as an object, as an instance, as a Node?

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use machinist_api::{
    Machine,
    names::{annotation, label},
    provider_status::ProviderStatus,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::instant::Instant;
pub use crate::machine::observed::provider_status;
use crate::node;

/// What its Machine knows of an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstanceView {
    pub id: String,
    /// The cloud's own word.
    pub state: Option<String>,
    #[serde(rename = "type")]
    pub type_: Option<String>,
    pub zone: Option<String>,
}

/// A Machine's Node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeView {
    pub name: String,
    pub state: NodeState,
    pub is_cordoned: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub enum NodeState {
    Ready,
    NotReady,
    /// The kubelet does not report.
    Unknown,
    /// The Machine names a Node that is not there.
    Missing,
    /// This user may not read Nodes.
    NotVisible,
}

/// Why something is not as wished: a word, a sentence, and since when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Waiting {
    pub reason: String,
    pub message: String,
    #[schemars(with = "Option<Instant>")]
    pub since: Option<Timestamp>,
}

/// The Nodes by name, if they may be read at all.
pub struct Nodes<'a>(Option<BTreeMap<&'a str, &'a Node>>);

impl<'a> Nodes<'a> {
    pub fn new(nodes: impl IntoIterator<Item = &'a Node>) -> Self {
        Self(Some(nodes.into_iter().map(|node| (node::name(node), node)).collect()))
    }

    /// They may not be read.
    pub fn hidden() -> Self {
        Self(None)
    }

    /// What is shown of the Node of a Machine.
    pub fn view_of(&self, machine: &Machine) -> Option<NodeView> {
        self.of(machine).map(|(name, state, node)| NodeView {
            name,
            state,
            is_cordoned: node.is_some_and(node::is_unschedulable),
        })
    }

    /// The Node that a Machine is linked to, and what can be said of it.
    pub fn of(&self, machine: &Machine) -> Option<(String, NodeState, Option<&'a Node>)> {
        let link = machine.status.as_ref()?.node_ref.as_ref()?;
        let name = link.name.clone()?;
        let Some(nodes) = &self.0 else { return Some((name, NodeState::NotVisible, None)) };
        // A Node of the same name that was made anew is another one.
        let found = nodes
            .get(name.as_str())
            .filter(|node| link.uid.as_deref().is_none_or(|uid| uid == node::uid(node)));
        let state = match found.map(|node| node::readiness(node)) {
            None => NodeState::Missing,
            Some(node::Readiness::Ready) => NodeState::Ready,
            Some(node::Readiness::NotReady) => NodeState::NotReady,
            Some(node::Readiness::Unknown) => NodeState::Unknown,
        };
        Some((name, state, found.copied()))
    }
}

/// What is shown of the instance of a Machine.
pub fn instance(machine: &Machine) -> Option<InstanceView> {
    let provider = provider_status(machine);
    // aws:///<zone>/<instance id>, for a Machine that another controller made.
    let from_provider_id = || machine.spec.provider_id.as_deref()?.rsplit('/').next();
    let id = provider.instance_id.clone().or_else(|| from_provider_id().map(str::to_owned))?;
    let labels = machine.metadata.labels.as_ref();
    let label_of = |key: &str| labels.and_then(|labels| labels.get(key)).cloned();
    Some(InstanceView {
        id,
        state: instance_state(machine, &provider),
        type_: label_of(label::INSTANCE_TYPE),
        zone: label_of(label::ZONE),
    })
}

/// The cloud's word for the instance's state, from the two places where it is kept.
pub fn instance_state(machine: &Machine, provider: &ProviderStatus) -> Option<String> {
    let annotations = machine.metadata.annotations.as_ref();
    let annotated =
        || annotations.and_then(|annotations| annotations.get(annotation::INSTANCE_STATE)).cloned();
    provider.instance_state.clone().or_else(annotated)
}
