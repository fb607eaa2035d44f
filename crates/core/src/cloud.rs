//! What is known of a cloud instance, in words that fit every provider.
//!
//! Providers translate their SDK's types into these; decisions read nothing else of a cloud.

use std::{collections::BTreeMap, fmt};

use jiff::Timestamp;
use machinist_api::{MachineAddress, names::tag};
use serde::{Deserialize, Serialize};

/// The provider's id of an instance, such as `i-0123456789abcdef0`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InstanceId(pub String);

impl InstanceId {
    /// The id at the end of a providerID such as `aws:///us-east-1a/i-0123`.
    pub fn from_provider_id(provider_id: &str) -> Option<Self> {
        let (_, path) = provider_id.split_once("://")?;
        let id = path.rsplit('/').next()?;
        (!id.is_empty()).then(|| Self(id.to_owned()))
    }
}

impl fmt::Display for InstanceId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Where an instance is in its life. The words are EC2's; other providers map theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InstanceState {
    Pending,
    Running,
    Stopping,
    Stopped,
    ShuttingDown,
    Terminated,
}

impl InstanceState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
            Self::ShuttingDown => "shutting-down",
            Self::Terminated => "terminated",
        }
    }

    /// Whether anything of the instance is left: all but terminated.
    pub fn is_live(self) -> bool {
        self != Self::Terminated
    }

    /// Whether the state will change by itself soon.
    pub fn is_transitional(self) -> bool {
        matches!(self, Self::Pending | Self::Stopping | Self::ShuttingDown)
    }
}

/// One instance as the provider last described it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    pub id: InstanceId,
    /// The providerID that the Node carries too: `aws:///<zone>/<id>`.
    pub provider_id: String,
    pub state: InstanceState,
    /// Why the state is what it is.
    pub state_reason: StateReason,
    pub region: String,
    pub zone: String,
    pub instance_type: String,
    /// When it was last started: changes at each start, not at a reboot.
    pub launched_at: Option<Timestamp>,
    /// The token of the launch, where the provider keeps it.
    pub client_token: Option<String>,
    /// Whether the provider may take it back at any time (spot).
    pub interruptible: bool,
    pub tags: BTreeMap<String, String>,
    /// In the order that the Machine's status has them.
    pub addresses: Vec<MachineAddress>,
    /// The dedicated host that it runs on, where it has one.
    pub host_id: Option<String>,
    /// Where its root disk is.
    #[serde(default)]
    pub root_device: RootDevice,
    #[serde(default)]
    pub reboot_migration: RebootMigration,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RootDevice {
    /// On the network: survives a stop.
    #[default]
    Network,
    /// On the host: a stop is impossible, a retirement terminates.
    InstanceStore,
}

/// Whether a reboot can move the instance to another host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RebootMigration {
    /// The provider does not say, or does not offer it.
    #[default]
    Unavailable,
    /// It can be switched on.
    Available,
    Enabled,
}

/// The provider's account of a state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateReason {
    /// The provider's code, such as `Client.UserInitiatedShutdown`; empty where it gives none.
    pub code: String,
    /// Its words; empty where it says nothing.
    pub message: String,
    /// When the state began, where the provider tells.
    pub since: Option<Timestamp>,
}

impl Instance {
    /// The uid of the Machine that the instance was launched for or adopted by.
    pub fn machine_uid(&self) -> Option<&str> {
        self.tags.get(tag::MACHINE_UID).map(String::as_str)
    }

    /// Whether the cluster's ownership tag is on it.
    pub fn is_owned_by_cluster(&self, cluster_id: &str) -> bool {
        self.tags.get(&tag::cluster(cluster_id)).is_some_and(|value| value == tag::OWNED)
    }
}

/// What the provider's own checks and its calendar say of one instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceReport {
    pub instance: InstanceId,
    /// The checks that fail; empty when all is well.
    pub impairments: Vec<Impairment>,
    pub events: Vec<ScheduledEvent>,
}

/// A check of the provider that fails.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Impairment {
    /// Which one: `system`, `instance` or `attached-ebs`.
    pub check: String,
    pub since: Option<Timestamp>,
}

/// Something that the provider will do to an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduledEvent {
    pub id: String,
    pub instance: InstanceId,
    /// The provider's code, such as `instance-retirement`.
    pub code: String,
    pub description: String,
    pub not_before: Option<Timestamp>,
    pub not_after: Option<Timestamp>,
    /// The latest start that the provider accepts when the event is moved.
    pub not_before_deadline: Option<Timestamp>,
}

/// What kind of failure a provider's answer is. The class decides what happens next; the text is
/// for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ErrorClass {
    /// May work next time: a network error, a 5xx.
    Transient,
    /// The provider asks us to slow down.
    Throttled,
    /// The request itself is wrong and will be refused for ever. The only terminal class.
    InvalidConfiguration,
    /// The thing asked about does not exist (yet, where the provider is eventually consistent).
    NotFound,
    QuotaExceeded,
    InsufficientCapacity,
    /// Credentials are missing, wrong or not allowed to.
    Unauthorized,
    /// The token was used with other parameters: an earlier attempt may have had an effect.
    TokenMismatch,
    /// Nothing above; the effect may or may not have happened.
    Unknown,
}

impl ErrorClass {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Transient => "Transient",
            Self::Throttled => "Throttled",
            Self::InvalidConfiguration => "InvalidConfiguration",
            Self::NotFound => "NotFound",
            Self::QuotaExceeded => "QuotaExceeded",
            Self::InsufficientCapacity => "InsufficientCapacity",
            Self::Unauthorized => "Unauthorized",
            Self::TokenMismatch => "TokenMismatch",
            Self::Unknown => "Unknown",
        }
    }
}

/// A provider's refusal or failure, as a decision sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CloudFailure {
    pub class: ErrorClass,
    /// A sentence for a person; names the field where the configuration is at fault.
    pub message: String,
}
