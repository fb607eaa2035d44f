//! What happened behind the cluster's back, and what follows.
//!
//! `classify` names what happened from what was recorded and what is seen now, `policy` reads what
//! people want done about it, `respond` decides. The record is kept in the Machine's status, so that
//! a restart of the operator neither misses nor repeats anything.

mod class;
pub mod classify;
pub mod policy;
pub mod respond;
#[cfg(test)]
mod tests;

pub use class::Class;
pub use policy::DriftPolicy;
pub use respond::{Response, respond};
