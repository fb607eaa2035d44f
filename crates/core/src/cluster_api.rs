//! The other Machine API, `cluster.x-k8s.io`: what is to be done for its objects?
//!
//! Infrastructure and bootstrap data are made by providers in other processes; what is agreed with them is in `contract`.

pub mod admission;
pub mod aggregate;
pub mod cluster;
pub mod contract;
pub mod conversion;
pub mod deployment;
pub mod deprecated;
pub mod health;
pub mod identity;
pub mod instance;
pub mod machine;
pub mod machineset;
pub mod maintained;
pub mod membership;
pub mod naming;
pub mod pausing;
pub mod progress;
pub mod scaling;
pub mod share;
pub mod template;
pub mod version;

pub use identity::Identity;
