//! What happens to one Machine: launch, link, notice, terminate.
//!
//! `decide` covers a Machine that lives, `deleting` one that goes, `status` what is said of it, and
//! `outcome` how the result of an effect becomes part of the status.

pub mod decide;
mod deleting;
pub mod observed;
pub mod outcome;
pub mod status;
#[cfg(test)]
mod tests;

pub use decide::{Action, MachineDecision, MetadataChange, decide};
pub use observed::{CloudKnowledge, Identity, Observed, Policy};
