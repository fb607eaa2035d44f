//! `machinist-operator`: watches, calls core, executes, publishes.
//!
//! `engine` is what controllers run on; `machine`, `machineset`, `nodelink`, `drain`,
//! `health`, `maintenance` and `approval` are the controllers, all of the same shape; `upkeep` is what the operator
//! keeps for itself; `cluster_api` is the other Machine API; `cloud` is the view of the clouds; `webhook` answers the API server's questions
//! and `scrape` Prometheus', both over `tls`; `run` puts it together. `termination` is a program of
//! its own, on every spot machine.

pub mod approval;
pub mod args;
pub mod audit;
pub mod client;
pub mod cloud;
pub mod cluster_api;
pub mod context;
pub mod drain;
pub mod engine;
mod fleet;
pub mod health;
pub mod hold;
pub mod http;
pub mod index;
pub mod logging;
pub mod machine;
pub mod machineset;
pub mod maintenance;
pub mod metrics;
pub mod nodelink;
pub mod openshift;
mod outbound;
pub mod refusals;
pub mod run;
pub mod scrape;
pub mod serving;
pub mod status;
pub mod sweep;
pub mod termination;
#[cfg(test)]
mod testing;
pub mod tls;
pub mod upkeep;
pub mod wake;
pub mod webhook;
pub mod write;
