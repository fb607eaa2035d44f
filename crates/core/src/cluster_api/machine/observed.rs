//! What must be known to decide on one Machine of Cluster API.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Node;
use kube::core::DynamicObject;
use machinist_api::cluster_api::{
    Cluster, Machine, MachineDeployment, MachineSet, condition,
    names::{annotation, condition_type, label},
};

use super::{draining::Draining, node_keys::NodeKeys, volumes::Volumes};
use crate::cluster_api::contract::{Contract, GroupKind};

/// One Machine and all that belongs to it.
pub struct Observed<'a> {
    pub machine: &'a Machine,
    pub cluster: &'a Cluster,
    /// The set that controls it, and the deployment of that set.
    pub set: Option<&'a MachineSet>,
    pub deployment: Option<&'a MachineDeployment>,
    /// An owner that is named and cannot be found.
    pub missing_owner: Option<String>,
    pub bootstrap: Reference<'a>,
    pub infrastructure: Reference<'a>,
    /// Only looked at while the Machine is being deleted.
    pub control_plane: Reference<'a>,
    /// Whether a control-plane Machine of the cluster is there that is not being deleted.
    pub has_active_control_plane: bool,
    pub connection: Connection<'a>,
    /// Other Machines of the cluster with the same providerID: their names, and whether they are linked to the Node.
    pub namesakes: Vec<(String, bool)>,
    /// What is on the Node, while it is being emptied.
    pub draining: Option<Draining<'a>>,
    /// What is attached to the Node, once it is empty.
    pub volumes: Option<Volumes<'a>>,
    /// Why neither is known, where they were asked for.
    pub unread: Option<&'a str>,
}

/// An object of a provider, as far as it is known.
#[derive(Clone, Copy, Debug)]
pub enum Reference<'a> {
    /// None is named.
    NotDefined,
    /// It cannot be told whether it is there.
    Unreadable(&'a str),
    Missing,
    Found {
        object: &'a DynamicObject,
        contract: Contract,
    },
}

impl<'a> Reference<'a> {
    pub fn found(&self) -> Option<(&'a DynamicObject, Contract)> {
        match self {
            Self::Found { object, contract } => Some((object, *contract)),
            Self::NotDefined | Self::Unreadable(_) | Self::Missing => None,
        }
    }

    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Missing)
    }

    pub fn is_deleting(&self) -> bool {
        self.found().is_some_and(|(object, _)| object.metadata.deletion_timestamp.is_some())
    }
}

/// What the workload cluster lets us see.
#[derive(Clone, Debug)]
pub enum Connection<'a> {
    /// The Nodes of the workload cluster are watched.
    Up { nodes: NodeLookup<'a>, last_success: Timestamp },
    /// Why not, since when, and how often it was tried in vain.
    Down { why: &'a str, last_success: Option<Timestamp>, failures: u32 },
}

/// The Nodes with the Machine's providerID; for one that goes, see [`node::to_take_down`](super::node::to_take_down).
#[derive(Clone, Debug)]
pub enum NodeLookup<'a> {
    NotFound,
    Found(&'a Node),
    Ambiguous(Vec<&'a str>),
}

impl<'a> Connection<'a> {
    pub fn node(&self) -> Option<&'a Node> {
        match self {
            Self::Up { nodes: NodeLookup::Found(node), .. } => Some(node),
            Self::Up { .. } | Self::Down { .. } => None,
        }
    }

    pub fn is_up(&self) -> bool {
        matches!(self, Self::Up { .. })
    }
}

/// What the operator is told by its flags.
#[derive(Clone, Debug)]
pub struct Policy {
    /// How long what was last known of a Node is shown while its cluster cannot be reached.
    pub remote_conditions_grace: SignedDuration,
    pub node_keys: NodeKeys,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            remote_conditions_grace: SignedDuration::from_mins(5),
            node_keys: NodeKeys::default(),
        }
    }
}

impl Observed<'_> {
    pub fn is_deleting(&self) -> bool {
        self.machine.metadata.deletion_timestamp.is_some()
    }

    pub fn is_control_plane(&self) -> bool {
        is_control_plane(self.machine)
    }

    pub fn control_plane_kind(&self) -> Option<GroupKind> {
        let reference = self.cluster.spec.control_plane_ref.as_ref()?;
        Some(GroupKind::new(&reference.api_group, &reference.kind))
    }

    /// Whether the Machine's Node is another's too, which holds it.
    pub fn shares_node(&self) -> bool {
        self.namesakes.iter().any(|(_, is_linked)| *is_linked)
    }
}

pub fn is_control_plane(machine: &Machine) -> bool {
    let labels = machine.metadata.labels.as_ref();
    labels.is_some_and(|labels| labels.contains_key(label::CONTROL_PLANE))
}

pub fn is_paused(cluster: &Cluster, machine: &Machine) -> bool {
    let annotations = machine.metadata.annotations.as_ref();
    cluster.spec.paused == Some(true)
        || annotations.is_some_and(|all| all.contains_key(annotation::PAUSED))
}

pub fn is_infrastructure_provisioned(cluster: &Cluster) -> bool {
    let status = cluster.status.as_ref();
    status.is_some_and(|one| one.initialization.infrastructure_provisioned == Some(true))
}

/// Since when the control plane is known to have come up.
pub fn control_plane_initialized_at(cluster: &Cluster) -> Option<Timestamp> {
    let conditions = &cluster.status.as_ref()?.conditions;
    let found = condition::find(conditions, condition_type::CONTROL_PLANE_INITIALIZED)?;
    (found.status == condition::TRUE).then_some(found.last_transition_time.0)
}
