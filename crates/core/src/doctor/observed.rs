//! What does a look at a cluster bring? Only what the examination needs.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use crate::{lease::LeaseRecord, operator_status::OperatorStatus};

/// What was asked for, or why it is not known: the person may not read it, for example.
pub type Asked<T> = Result<T, String>;

/// One look.
#[derive(Clone, Debug)]
pub struct Observed {
    /// Of the machines, and of the operator.
    pub namespace: String,
    /// By the API server's clock.
    pub now: Timestamp,
    /// Each definition that Machinist has, with what the cluster has of it.
    pub definitions: Vec<DefinitionState>,
    pub own_rights: Asked<OwnRights>,
    pub rights: Asked<Rights>,
    /// Those of the leases that exist, by name.
    pub leases: Asked<BTreeMap<String, LeaseState>>,
    /// The operator's Deployment, where there is one.
    pub deployed: Option<Deployed>,
    /// None where it has not said anything yet.
    pub status: Asked<Option<OperatorStatus>>,
    pub clocks: Clocks,
    /// The webhooks that are asked about our objects.
    pub webhooks: Asked<Vec<WebhookState>>,
    /// The certificate that the webhooks are served with, in PEM; none where it is not in a Secret.
    pub serving_certificate: Asked<Option<Vec<u8>>>,
    pub quotas: Asked<Vec<FullQuota>>,
    /// What machines and pools say of the cloud's quotas.
    pub said_quotas: Asked<Vec<SaidQuota>>,
}

#[derive(Clone, Debug)]
pub struct DefinitionState {
    pub shipped: CustomResourceDefinition,
    pub installed: Asked<Definition>,
}

#[derive(Clone, Debug)]
pub enum Definition {
    Missing,
    /// It is served; what it says may not be read.
    Served,
    Installed(Box<CustomResourceDefinition>),
}

/// What the person who asks may not do of what the command line does.
#[derive(Clone, Debug, Default)]
pub struct OwnRights {
    pub asked: usize,
    pub missing: Vec<Right>,
}

/// What the operator may not do of what it has to.
#[derive(Clone, Debug)]
pub struct Rights {
    /// Its user.
    pub user: String,
    pub asked: usize,
    pub missing: Vec<Right>,
}

/// One verb on one resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    pub verb: String,
    pub group: String,
    /// With its subresource, such as `machines/status`.
    pub resource: String,
    /// Empty means any.
    pub name: String,
    /// Empty means all of them, or none where the resource has none.
    pub namespace: String,
}

/// A lease, and when the API server wrote it by its own clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseState {
    pub record: LeaseRecord,
    pub written: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deployed {
    pub name: String,
    pub wanted: i32,
    pub available: i32,
}

/// The clocks that can be read, each beside the API server's at the same moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clocks {
    /// Of the machine that asks; none where the API server's answer has no date.
    pub here: Option<Stamp>,
}

/// One moment, by two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    pub by_it: Timestamp,
    pub by_server: Timestamp,
}

/// One webhook of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookState {
    /// Such as `ValidatingWebhookConfiguration machine-api`.
    pub configuration: String,
    pub name: String,
    /// Service or URL, in words.
    pub target: String,
    pub reach: Asked<Reach>,
    /// In PEM; empty where nobody has written one.
    pub ca_bundle: Vec<u8>,
    /// Whether objects are refused while it does not answer.
    pub fails_closed: bool,
}

/// Whether something is where a webhook points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    Answers,
    NoSuchService,
    NoSuchPort,
    /// The Service has no Pod that is ready.
    NoEndpoint,
    /// A URL where nobody listens, as seen from here.
    NobodyListens,
}

/// A ResourceQuota of the namespace that is used up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FullQuota {
    pub name: String,
    pub resource: String,
    pub used: String,
    pub hard: String,
}

/// What an object says of a quota of the cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaidQuota {
    /// Such as `machine worker-a-x7k2p`.
    pub object: String,
    pub message: String,
}
