//! What must be known to decide on a Cluster.

use jiff::Timestamp;
use machinist_api::cluster_api::Cluster;

use crate::cluster_api::machine::Reference;

/// One Cluster and what belongs to it.
pub struct Observed<'a> {
    pub cluster: &'a Cluster,
    pub infrastructure: Reference<'a>,
    pub control_plane: Reference<'a>,
    /// Whether a control-plane Machine has a Node.
    pub has_control_plane_node: bool,
    pub remote: Remote,
    /// What was made for it, in the order in which it goes. Only looked at while it is being deleted.
    pub descendants: Vec<Descendant>,
    /// The names of its MachinePools, which nobody here looks after, or why they are not known. Only looked at while it is being
    /// deleted.
    pub machine_pools: Result<Vec<String>, String>,
}

/// Whether its API server is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remote {
    pub is_up: bool,
    pub last_success: Option<Timestamp>,
    pub failures: u32,
}

/// An object that goes before its Cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Descendant {
    pub kind: &'static str,
    pub name: String,
    pub uid: String,
    pub is_deleting: bool,
    /// Workers go first: the control plane has to let them go.
    pub is_control_plane: bool,
}
