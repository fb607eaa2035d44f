//! What the operator keeps for itself in the cluster, and what it says of itself there.
//!
//! `desired` is what the kept objects should be, `restore` what must change of one that is not so,
//! `takeover` what becomes of the controllers before us, `rollout` whether a DaemonSet is where it
//! should be, `decide` puts that together for one pass. `workers` and `cluster_operator` make of it
//! what OpenShift's version operator reads. `mode` says whether there is anything to do at all.

pub mod cluster_operator;
mod decide;
pub mod desired;
pub mod mode;
mod observed;
mod restore;
mod rollout;
mod takeover;
pub mod workers;

#[cfg(test)]
mod tests;

pub use decide::{Action, UpkeepDecision, decide};
pub use desired::{TerminationHandler, termination_check, termination_handler};
pub use mode::Mode;
pub use observed::{History, Kept, Object, Observed};
pub use takeover::{OLD_CONTROLLERS, scale_down_patch};
