//! The checks, by what they are about. Each gets a cloud and fails with what it saw.

pub mod acting;
pub mod failing;
pub mod launching;
pub mod preparing;
pub mod reading;
