//! What happens to one Machine: launch, link, notice, terminate.
//!
//! `decide` covers a Machine that lives (`binding` finds its instance, `launch` makes it, `living`
//! follows it, `down` answers what happened to it), `deleting` one that goes, `status` what is said of it, and
//! `outcome` how the result of an effect becomes part of the status.

mod binding;
pub mod decide;
mod deleting;
mod down;
mod launch;
mod living;
pub mod observed;
pub mod outcome;
pub mod status;
#[cfg(test)]
mod tests;

pub use decide::{Action, MachineDecision, MetadataChange, decide};
pub use observed::{CloudKnowledge, HealthKnowledge, Identity, Observed, Policy};
