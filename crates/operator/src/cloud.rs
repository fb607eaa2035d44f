//! What the clouds hold: one client for each set of credentials and region, one view for each
//! cluster in it, refreshed by a handful of paged calls whatever the number of machines, and read by
//! every controller.

pub mod access;
pub mod connect;
pub mod connection;
mod notices;
pub mod pace;
pub mod permissions;
#[cfg(feature = "aws")]
pub mod real;
mod sharded;
pub mod snapshot;
#[cfg(test)]
pub(crate) mod testing;
pub mod view;

pub use access::{CloudAccess, CloudKey, CloudParts, CloudSettings, Clouds};
pub use snapshot::Snapshot;
