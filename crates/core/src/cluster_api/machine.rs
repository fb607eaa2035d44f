//! What is to be done for a Machine of Cluster API?
//!
//! Its infrastructure and its bootstrap data are objects of providers: we hand them over, copy what they tell, find the Node in the
//! workload cluster, and take all of it down again in order. Every phase is gone through, whatever became of the one
//! before, and the conditions are made of whatever is known.

pub mod conditions;
pub mod decide;
pub mod deleting;
pub mod deprecated;
pub mod draining;
mod first_words;
pub mod node;
pub mod node_keys;
pub mod observed;
mod references;
mod summary;
#[cfg(test)]
mod tests;
pub mod volumes;

pub use decide::{Action, MachineDecision, Which, decide};
pub use observed::{Connection, Observed, Reference};
