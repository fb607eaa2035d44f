//! When, how and why is a machine maintained?
//!
//! `policy` and `policies` read what people want; `event` and `reason` what speaks for it; `action`
//! chooses what is done; `durations` says how long that takes. `plan` lays the whole fleet on the
//! calendar. `decide` carries one maintenance out, step by step; `records` says which objects there
//! are to be. `control_plane`, `daemons` and `workloads` judge what is around a machine. All of it is
//! pure: the operator, the command line and the page call the same functions.

pub mod action;
pub mod control_plane;
pub mod daemons;
pub mod decide;
pub mod durations;
pub mod event;
pub mod freshness;
pub mod gather;
pub mod managed_upgrade;
pub mod note;
pub mod observed;
pub mod outcome;
pub mod outdated;
pub mod plan;
pub mod policies;
pub mod policy;
pub mod policy_status;
pub mod reason;
pub mod record;
pub mod records;
pub mod step;
pub mod surge;
#[cfg(test)]
mod tests;
pub mod workloads;

pub use decide::{MaintenanceDecision, decide};
pub use durations::Durations;
pub use gather::{Cluster, Gathered, gather};
pub use note::Note;
pub use observed::Observed;
pub use plan::{Fleet, FleetMachine, FleetPool, Plan, PlanEntry, plan};
pub use policies::PolicySet;
pub use policy::Policy;
pub use reason::Need;
pub use step::Step;
