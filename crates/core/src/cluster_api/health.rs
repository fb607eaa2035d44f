//! What is to be done for a MachineHealthCheck of Cluster API?
//!
//! The arithmetic of the breaker is that of the OpenShift kind (`crate::health::count`): machines that are still in time to
//! get a Node are left out of it, which Cluster API does not do. What differs: conditions of Machines count too, nothing is
//! deleted here (the owner acts on a mark, or another controller on a request), and the number may have a lower bound. The gate is
//! that of both APIs, which Cluster API does not have.

pub mod decide;
pub mod gate;
pub mod observed;
#[cfg(test)]
mod tests;
pub mod verdict;

pub use decide::{Action, HealthDecision, decide};
pub use gate::Gate;
pub use observed::{Doubt, NodeSight, Observed, Policy, Target};
