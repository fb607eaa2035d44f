//! What the API server is told when somebody creates or changes a Machine or a MachineSet: which
//! fields are filled in, what is refused, what is warned about.
//!
//! `webhooks` says which questions are asked and where, `configuration` how the API server is told of
//! them, `review` reads a question and writes its answer; `mutate` and `validate` are the rules, with
//! those of a cloud in a module of its own (`aws`). What the rules must know of the cluster is in
//! `context`. Nothing here may fail on what it is given: the input is whatever a user typed.
//!
//! The controllers check again what they rely on. The API server goes on without us when we do not
//! answer, so an object may never have come this way.

pub mod aws;
pub mod configuration;
pub mod context;
pub(crate) mod fault;
pub mod mutate;
pub mod object;
pub mod review;
mod shape;
#[cfg(test)]
mod tests;
pub mod validate;
pub mod webhooks;

pub use context::{Architecture, Context, Platform, SecretKnowledge, SecretName};
pub use mutate::{Defaulted, PatchOperation, mutate};
pub use object::Kind;
pub use review::{Answer, Review, ReviewError};
pub use validate::{Change, Verdict, validate};
pub use webhooks::Webhook;
