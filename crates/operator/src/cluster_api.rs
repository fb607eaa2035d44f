//! The controllers of the other Machine API, `cluster.x-k8s.io`.
//!
//! Of the same shape as those of the OpenShift API, on the same engine; what is decided is in `machinist_core::cluster_api`. `externals`
//! knows the objects of providers, `workloads` the clusters that the machines belong to, `templates` what new objects are made of,
//! `maintained` what maintenance sees of all this.

pub mod clouds;
pub mod cluster;
pub mod context;
pub mod decided;
pub mod deployment;
pub mod externals;
pub mod health;
pub mod index;
#[cfg(test)]
pub(crate) mod lab;
pub mod machine;
pub mod machineset;
pub mod maintained;
pub mod reframe;
pub mod start;
pub mod templates;
#[cfg(test)]
pub(crate) mod testing;
pub mod versions;
pub mod wake;
pub mod workloads;
