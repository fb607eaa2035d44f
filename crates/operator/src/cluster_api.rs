//! The controllers of the other Machine API, `cluster.x-k8s.io`.
//!
//! Of the same shape as those of the OpenShift API, on the same engine; what is decided is in `machinist_core::cluster_api`. `externals`
//! knows the objects of providers, `workloads` the clusters that the machines belong to.

pub mod cluster;
pub mod context;
pub mod externals;
pub mod index;
#[cfg(test)]
pub(crate) mod lab;
pub mod machine;
pub mod reframe;
pub mod start;
pub mod workloads;
