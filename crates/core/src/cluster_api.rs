//! The other Machine API, `cluster.x-k8s.io`: what is to be done for its objects?
//!
//! Infrastructure and bootstrap data are made by providers in other processes; what is agreed with them is in `contract`.

pub mod cluster;
pub mod contract;
pub mod identity;
pub mod machine;
pub mod template;
