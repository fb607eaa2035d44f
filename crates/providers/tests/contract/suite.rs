//! The checks, by what they are about. Each gets a cloud and fails with what it saw.

pub mod acting;
pub mod balancing;
pub mod failing;
pub mod fields;
pub mod hosting;
pub mod identifying;
pub mod launching;
pub mod preparing;
pub mod queueing;
pub mod reading;
pub mod reporting;
