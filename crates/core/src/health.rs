//! Which machines are unhealthy by a MachineHealthCheck, and what is done about them.
//!
//! `policy` reads what the check says, `verdict` judges one machine, `count` says whether anything
//! may be remediated at all, `remediate` chooses for each unhealthy machine, `external` makes
//! requests to other controllers, and `decide` puts them together.

pub mod count;
pub mod decide;
mod duration;
pub mod external;
pub mod observed;
pub mod policy;
pub mod remediate;
mod startup;
#[cfg(test)]
mod tests;
pub mod verdict;

pub use decide::{HealthDecision, decide};
pub use observed::{Memory, Observed, Target, TargetNode};
pub use policy::Policy;
pub use remediate::Action;
pub use startup::started_at;
