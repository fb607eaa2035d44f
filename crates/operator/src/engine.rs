//! What do all controllers run on?
//!
//! A keyed queue and an ordered store over kube's watch streams, leader election, events and the supervisor of all tasks. Time
//! and randomness come in through [`env::Env`], every collection is ordered and every `select!` is biased, so the same
//! seed replays the same run under paused time.

pub mod backoff;
pub mod batches;
pub mod env;
pub mod events;
pub mod guarded;
pub mod latest;
pub mod leadership;
pub mod lease;
pub mod queue;
pub mod store;
pub mod supervisor;
pub mod watch;

#[cfg(test)]
pub(crate) mod testing;
