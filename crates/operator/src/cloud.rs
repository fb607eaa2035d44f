//! What the clouds hold: one view for each set of credentials, region and cluster, refreshed by a
//! handful of paged calls whatever the number of machines, and read by every controller.

pub mod access;
pub mod connect;
pub mod pace;
pub mod snapshot;
pub mod view;

pub use access::{CloudAccess, CloudKey, CloudSettings, Clouds};
pub use snapshot::Snapshot;
