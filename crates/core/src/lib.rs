//! The decisions: pure functions from what is observed to what to do and what to say.
//!
//! Nothing here reads a clock, a network, the environment or a source of randomness (Rule 1), and
//! no answer depends on the order of a hash map (Rule 2). The operator, the command line and the
//! simulator call the same functions, so what is shown is what happens.
//!
//! Each domain is a folder with the same files: `observed.rs` (only what the decision needs),
//! `decide.rs` (one public `decide`), `tests.rs`.

pub mod admission;
pub mod approval;
pub mod calendar;
pub mod cloud;
pub mod cluster_api;
pub mod decision;
pub mod disruption;
pub mod drain;
pub mod drift;
pub mod endpoint;
mod entries;
pub mod features;
pub mod health;
pub mod lease;
pub mod machine;
pub mod machineset;
pub mod maintenance;
pub mod merge_patch;
pub mod node;
pub mod nodelink;
pub mod operator_status;
pub mod pacing;
pub mod pause;
pub mod promises;
pub mod providerspec;
pub mod proxy;
pub mod selector;
pub mod serving_certificate;
pub mod sweep;
pub mod termination;
pub mod tls_profile;
pub mod upkeep;
