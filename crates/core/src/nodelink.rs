//! Which Node belongs to which Machine, and what of the Machine the Node must carry.

pub mod decide;
pub mod matching;
#[cfg(test)]
mod tests;

pub use decide::{Action, NodeChange, Observed, decide};
pub use matching::{NodeMatch, machine_matches_node, node_of};
