//! What does a person see of the fleet, and want changed? What the command line and the page show, judged once.
//!
//! Everything here is pure, from the objects of a cluster (`objects`) and the plan made of them (`picture`) to
//! what is to be read. `seen`, `waiting` and `state` say how a machine is, `row` in one line and `story` in all;
//! `fleet`, `query` and `delta` show them all, `machine`, `views` and `pods` one. `drift` says what happened
//! behind the cluster's back and what follows; `timeline` puts what the cloud, the cluster and we did in one
//! order. `windows`, `plan_view`, `calendar_view`, `policies` and `what_if` are about what is to come; `wish`
//! turns what a person asks for into what is written.

pub mod calendar_view;
pub mod delta;
pub mod drift;
pub mod drift_view;
pub mod fleet;
pub mod instant;
pub mod machine;
pub mod objects;
pub mod picture;
pub mod plan_view;
pub mod pods;
pub mod policies;
pub mod query;
pub mod row;
pub mod seen;
#[cfg(test)]
mod shown_tests;
pub mod state;
pub mod story;
#[cfg(test)]
mod tests;
pub mod timeline;
pub mod timeline_view;
mod told;
pub mod views;
pub mod waiting;
pub mod what_if;
pub mod windows;
pub mod wish;
