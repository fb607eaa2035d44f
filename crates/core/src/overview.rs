//! What does a person see of the fleet at a glance? What the command line and the page show, judged once.
//!
//! `drift` says what happened behind the cluster's back and what follows; `timeline` puts what the cloud,
//! the cluster and we did in one order. All of it is pure, and serialisable.

pub mod drift;
#[cfg(test)]
mod tests;
pub mod timeline;
mod told;
