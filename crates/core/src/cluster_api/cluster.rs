//! What do Machines need of their Cluster?
//!
//! The small part of a cluster controller: it hands over the objects of the cluster's providers, says once that the infrastructure is there and
//! that the control plane came up, sees to a kubeconfig where no control-plane provider does, and takes everything down in order. There
//! is no topology.

pub mod decide;
mod deleting;
pub mod observed;
#[cfg(test)]
mod tests;

pub use decide::{Action, ClusterDecision, Part, decide, say_failure};
pub use observed::{Descendant, Observed, Remote};
