//! What is to be done for a MachineSet of Cluster API?
//!
//! What differs from the OpenShift kind of that name: a Machine that is going still counts, what belongs to the set is
//! told by the owner reference and never by labels alone, the template's marks reach Machines that are there already, and
//! unhealthy Machines are deleted here, on the word of a health check.

pub mod decide;
pub mod delete_order;
pub mod making;
pub mod observed;
pub mod preflight;
pub mod propagate;
pub mod remediate;
pub mod status;
#[cfg(test)]
mod tests;

pub use decide::{Action, MachineSetDecision, decide};
pub use observed::{Observed, Part, Template, validate};
