//! What is to be done for a MachineDeployment of Cluster API?
//!
//! It keeps no Machines itself: it has one MachineSet for each template it ever had, and says how large each is.

pub mod current;
pub mod decide;
pub mod desired;
pub mod observed;
pub mod paused;
pub mod rollout;
pub mod sizes;
pub mod status;
#[cfg(test)]
mod tests;

pub use decide::{Action, MachineDeploymentDecision, decide};
pub use observed::{Observed, validate};
