//! How a Node is emptied before its machine goes: who is evicted, who blocks, and what is said.

pub mod decide;
pub mod observed;
#[cfg(test)]
mod tests;

pub use decide::{Action, DrainDecision, Evictions, PodState, decide, evictions};
pub use observed::{Attempts, Observed};
