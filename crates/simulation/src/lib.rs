//! How does the whole system behave when everything that can fail fails, on one thread and in virtual time?
//!
//! `api_server` is the cluster's API in memory, under the real `kube::Client`; `cloud` is the testbed's
//! pure model of EC2 behind the operator's provider; `process` runs the operator's own code; `actors` are
//! everybody else, the providers of Cluster API among them, whose machines an operator reaches through `workload`. `world` puts them together from a plan that `swarm` draws from a seed, `faults` makes
//! things go wrong, `invariants` says what must hold all the same, and `trace` tells what happened. `dump`
//! brings a fleet to life that was somewhere else.

pub mod actors;
pub mod api_server;
pub mod campaign;
pub mod certificates;
pub mod chance;
pub mod clock;
pub mod cloud;
pub mod dump;
pub mod effects;
pub mod exhaustive;
pub mod faults;
pub mod hub;
pub mod invariants;
pub mod process;
pub mod recording;
pub mod report;
pub mod script;
pub mod swarm;
pub mod tally;
pub mod template;
pub mod trace;
pub mod weather;
pub mod workload;
pub mod world;
