//! How many Machines a pool has: which belong to it, which are made, which go first.

pub mod capacity;
pub mod ceiling;
pub mod decide;
pub mod delete_order;
pub mod observed;
#[cfg(test)]
mod tests;
pub mod trouble;

pub use ceiling::{Bounds, Ceilings, CreationRate};
pub use decide::{Action, MachineSetDecision, decide};
pub use observed::{Observed, validate};
