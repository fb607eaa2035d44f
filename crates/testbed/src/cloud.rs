//! Answers for EC2: a simulated cloud that unmodified AWS clients talk to.
//!
//! `model` is a pure state machine: time and seed are inputs, nothing is read from outside. `server`
//! is a thin shell that puts it on loopback ports. The deterministic simulator drives `model` alone,
//! so nothing that decides may live in `server`.

pub mod model;
pub mod server;

pub use model::{Cloud, CloudConfig, InstanceFacts, WorldIds};
pub use server::{BreakpointHandle, CloudHandle, CloudServer, ServeOptions, TlsPem, serve};
