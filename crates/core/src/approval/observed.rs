//! What must be known to decide about one signing request.

use std::collections::BTreeSet;

use k8s_openapi::api::{certificates::v1::CertificateSigningRequest, core::v1::Node};
use machinist_api::Machine;

use super::request::RequestedCertificate;

/// How many more pending requests than machines are believed.
const SLACK: usize = 100;

/// A request, and what may speak for it.
pub struct Observed<'a> {
    pub request: &'a CertificateSigningRequest,
    /// For a client: every Machine that has the Node's name among its internal DNS names. For a
    /// server: every Machine whose nodeRef names the Node. Others in the list do no harm.
    pub machines: Vec<&'a Machine>,
    /// The Node of that name.
    pub node: Option<&'a Node>,
    /// Only asked for when `ApprovalDecision::wants_current_certificate` was set.
    pub current: CurrentCertificate,
    /// The uids of those requests, of all that these Machines are bound to, which `is_void`.
    pub void_requests: BTreeSet<&'a str>,
    pub limits: Limits,
    /// The reason that people were last told for this request; kept for the request's uid while it
    /// exists.
    pub told: Option<&'a str>,
}

/// What the Node's kubelet serves with now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CurrentCertificate {
    NotAsked,
    /// There is none to be had, or none that the cluster's CA for kubelets signed and that is still
    /// valid; says why.
    Untrusted(String),
    /// Verified against the cluster's CA for kubelets, for a server, at this time.
    Trusted(RequestedCertificate),
}

/// How many requests of kubelets are pending, and how many there can rightly be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Those for which `counts_as_pending`: `mapi_current_pending_csr`.
    pub pending: usize,
    pub machines: usize,
    pub nodes: usize,
}

impl Limits {
    /// `mapi_max_pending_csr`
    pub fn max(&self) -> usize {
        self.machines.max(self.nodes).saturating_add(SLACK)
    }
}
