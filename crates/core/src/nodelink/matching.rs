//! Which Node is a Machine's: by the instance, else by the first internal address.

use k8s_openapi::api::core::v1::Node;
use machinist_api::Machine;

use crate::{cloud::InstanceId, machine::Identity, node};

/// The answer for one Machine.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeMatch<'a> {
    None,
    One(&'a Node),
    /// More than one Node claims to be this Machine; nobody is linked until that is resolved.
    Ambiguous(Vec<String>),
}

impl<'a> NodeMatch<'a> {
    pub fn one(&self) -> Option<&'a Node> {
        match self {
            Self::One(node) => Some(node),
            Self::None | Self::Ambiguous(_) => None,
        }
    }
}

/// The Node of a Machine among candidates. A match by providerID beats a match by address.
pub fn node_of<'a>(machine: &Machine, nodes: impl IntoIterator<Item = &'a Node>) -> NodeMatch<'a> {
    let mut by_id = Vec::new();
    let mut by_address = Vec::new();
    for node in nodes {
        match kind_of_match(machine, node) {
            Some(MatchedBy::ProviderId) => by_id.push(node),
            Some(MatchedBy::Address) => by_address.push(node),
            None => {}
        }
    }
    let matches = if by_id.is_empty() { by_address } else { by_id };
    match matches.as_slice() {
        [] => NodeMatch::None,
        [node] => NodeMatch::One(node),
        several => NodeMatch::Ambiguous(
            several.iter().map(|candidate| node::name(candidate).to_owned()).collect(),
        ),
    }
}

/// Whether this Node would be linked to this Machine.
pub fn machine_matches_node(machine: &Machine, node: &Node) -> bool {
    kind_of_match(machine, node).is_some()
}

#[derive(PartialEq, Eq)]
enum MatchedBy {
    ProviderId,
    Address,
}

fn kind_of_match(machine: &Machine, node: &Node) -> Option<MatchedBy> {
    let machine_id = machine.spec.provider_id.as_deref().filter(|id| !id.is_empty());
    match (machine_id, node::provider_id(node)) {
        // Two ids that differ are two machines, even when the cloud handed an address on. A Node
        // that has no id yet may be the next owner of the address: it gets one soon enough.
        (Some(machine_id), node_id) => {
            (node_id == Some(machine_id)).then_some(MatchedBy::ProviderId)
        }
        // The instance is recorded before the providerID: a Node may join in between.
        (None, Some(node_id)) if let Some(recorded) = Identity::of(machine).instance_id => {
            (InstanceId::from_provider_id(node_id) == Some(recorded))
                .then_some(MatchedBy::ProviderId)
        }
        (None, _) => {
            let address = *node::internal_ips(node).first()?;
            let addresses = &machine.status.as_ref()?.addresses;
            addresses
                .iter()
                .any(|known| known.type_ == "InternalIP" && known.address == address)
                .then_some(MatchedBy::Address)
        }
    }
}
