//! How does one get a whole cluster on a laptop, in seconds, for people, tests and benchmarks?
//!
//! A real control plane (`control_plane`, from `programs`), a simulated EC2 cloud (`cloud`), the
//! machines' insides (`kubelet`, with pods played by `kwok`), and what an OpenShift cluster holds
//! besides (`singletons`), and `etcd` on its own machines. `cluster` puts them together. Beside it
//! `cluster_api` runs Cluster API's own programs.

#![expect(
    clippy::disallowed_methods,
    reason = "the testbed is the world around the operator: its clock is the machine's"
)]

pub mod api_access;
pub mod cloud;
pub mod cloud_controller;
pub mod cluster;
pub mod cluster_api;
pub mod control_plane;
mod csr_approver;
pub mod deployment;
pub mod etcd;
pub mod guard;
pub mod instances;
mod kube_errors;
pub mod kubelet;
pub mod kwok;
pub mod manifests;
pub mod operator_process;
pub mod permissions;
pub mod pki;
pub mod process;
pub mod programs;
pub mod singletons;
mod switch;
pub mod termination_handlers;

pub use cluster::{Cluster, ClusterConfig};
