//! What is agreed with providers of infrastructure, bootstrap data and control planes?
//!
//! Their kinds are not known beforehand. Which fields mean what is said by a label of their CRD (`discovery`), what an
//! object tells is in `reading`, whose it is in `ownership`, and how it is made of a template in `cloning`.

pub mod cloning;
pub mod discovery;
pub mod ownership;
pub mod reading;
#[cfg(test)]
mod tests;

pub use discovery::{Contract, GroupKind, Served};
