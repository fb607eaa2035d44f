//! The clouds: one trait whose doc comments are the contract, and one module and cargo feature for
//! each cloud. Everything that a provider does not promise here, the operator does not rely on.

use std::collections::BTreeMap;

use async_trait::async_trait;
use jiff::Timestamp;
use machinist_api::RawObject;
pub use machinist_core::cloud::{
    ErrorClass, Impairment, Instance, InstanceId, InstanceReport, InstanceState, RebootMigration,
    RootDevice, ScheduledEvent, StateReason,
};
use serde_json::Value;

#[cfg(feature = "aws")]
pub mod aws;
pub mod notice;

/// The services whose endpoints may be overridden, by the names that Infrastructure uses.
pub mod service {
    pub const EC2: &str = "ec2";
    /// Classic and network load balancers alike.
    pub const ELASTIC_LOAD_BALANCING: &str = "elasticloadbalancing";
    pub const SQS: &str = "sqs";
    pub const STS: &str = "sts";
}

/// One account and region of a cloud.
///
/// Every verb is safe to repeat. No verb retries by itself: the caller's queue and rate limit do.
/// Every verb ends within the client's time limit. Nothing here logs or returns a secret.
#[async_trait]
pub trait Provider: Send + Sync {
    /// The provider's short name, such as `aws`; a label of metrics.
    fn name(&self) -> &'static str;

    /// Every instance that carries the cluster's ownership tag, all pages, sorted by id, recently
    /// terminated ones included.
    ///
    /// All or nothing: when one page fails the whole call fails, so that a partial list is never
    /// mistaken for the truth. The list may lag behind a launch or a tag by the provider's
    /// consistency delay: absence proves nothing by itself.
    async fn list(&self, cluster_id: &str) -> Result<Vec<Instance>, ProviderError>;

    /// The instances among `ids` that the provider knows now, sorted by id, in as few calls as
    /// possible. An id that is left out is not known to the provider: it never existed, is not
    /// visible yet, or was terminated so long ago that it is forgotten. An unknown id among others
    /// does not hide those.
    async fn describe(&self, ids: &[InstanceId]) -> Result<Vec<Instance>, ProviderError>;

    /// Every instance launched for a Machine uid, found by the uid tag or by one of the client
    /// tokens. This is how a launch is found whose answer was lost.
    async fn find(
        &self,
        machine_uid: &str,
        client_tokens: &[String],
    ) -> Result<Vec<Instance>, ProviderError>;

    /// Checks a launch as far as reads can and resolves names and filters to ids. Has no effect.
    ///
    /// `InvalidConfiguration` only when the configuration is at fault (its message begins with the
    /// field's path, such as `providerSpec.subnet`); a lookup that failed to answer keeps its own
    /// class.
    async fn prepare(&self, request: &LaunchRequest) -> Result<PreparedLaunch, ProviderError>;

    /// Launches one instance, tagged with the Machine's uid and the cluster from its first moment.
    ///
    /// Idempotent by `client_token`: the same token and parameters give the same instance however
    /// often it is called. The same token with other parameters fails with `TokenMismatch` and
    /// launches nothing. After `Transient` or `Unknown` the instance may exist.
    async fn launch(
        &self,
        prepared: &PreparedLaunch,
        client_token: &str,
    ) -> Result<Instance, ProviderError>;

    /// Begins the termination of one instance and returns its state. Terminating what is already
    /// shutting down or terminated succeeds; an unknown id fails with `NotFound`.
    async fn terminate(&self, id: &InstanceId) -> Result<InstanceState, ProviderError>;

    /// Adds tags, leaving others alone. Repeating it changes nothing.
    async fn tag(
        &self,
        id: &InstanceId,
        tags: &BTreeMap<String, String>,
    ) -> Result<(), ProviderError>;

    /// The tags that an instance launched by this request carries; computed, not asked for. Empty
    /// where the providerSpec cannot be read.
    fn tags(&self, request: &LaunchRequest) -> BTreeMap<String, String>;

    /// Begins to start a stopped instance. Starting a running one succeeds.
    async fn start(&self, id: &InstanceId) -> Result<InstanceState, ProviderError>;

    /// Begins to stop a running instance. Stopping a stopped one succeeds.
    async fn stop(&self, id: &InstanceId) -> Result<InstanceState, ProviderError>;

    /// Asks for a reboot. Returns when the request is taken, not when it is done. Not idempotent:
    /// each call is one reboot.
    async fn reboot(&self, id: &InstanceId) -> Result<(), ProviderError>;

    /// Every instance of the account and region that fails one of the provider's checks or has a
    /// scheduled event, sorted by id; completed and cancelled events are included as the provider
    /// reports them. Instances of other clusters are among them: providers cannot always ask by
    /// tag. All or nothing, like `list`, and its cost does not grow with the fleet.
    async fn reports(&self) -> Result<Vec<InstanceReport>, ProviderError>;

    /// Moves an event to another start, where the provider allows it.
    async fn move_event(
        &self,
        id: &InstanceId,
        event_id: &str,
        not_before: Timestamp,
    ) -> Result<(), ProviderError>;

    /// Lets reboots of an instance move it to another host, where the provider offers that.
    /// Repeating it changes nothing.
    async fn enable_reboot_migration(&self, id: &InstanceId) -> Result<(), ProviderError>;

    /// Registers a running instance with the load balancers that its providerSpec names. What is
    /// registered already stays so.
    async fn attach(
        &self,
        provider_spec: &RawObject,
        instance: &Instance,
    ) -> Result<(), ProviderError>;

    /// Takes an instance out of the load balancers that its providerSpec names. A load balancer
    /// that is gone, or does not know the instance, is no error.
    async fn detach(
        &self,
        provider_spec: &RawObject,
        instance: &Instance,
    ) -> Result<(), ProviderError>;

    /// Gives back the hosts that were allocated for a Machine and nothing else: they are found by
    /// the Machine's uid on them. None is no error. Fails while an instance is still on one.
    async fn release_hosts(&self, machine_uid: &str) -> Result<(), ProviderError>;

    /// The sizes that the region offers, sorted by name.
    async fn catalog(&self) -> Result<Vec<InstanceSize>, ProviderError>;
}

/// Keeps calls within the pace that an account allows; one for each account and region, shared by
/// everybody who calls there.
#[async_trait]
pub trait Pacer: Send + Sync {
    /// Waits until a read may be sent. Whoever changes things asked for their turn beforehand, so
    /// as not to hold a place while they wait.
    async fn turn_to_read(&self, action: &'static str);

    /// Learns from an answer; `None` is success.
    fn learn(&self, action: &'static str, class: Option<ErrorClass>);
}

/// What is to be launched, and for whom.
#[derive(Clone, Debug)]
pub struct LaunchRequest {
    pub cluster_id: String,
    pub machine_name: String,
    pub machine_uid: String,
    /// The Machine's `spec.providerSpec.value`.
    pub provider_spec: RawObject,
    /// What the instance reads at boot; a secret.
    pub user_data: Option<UserData>,
    /// Tags of the whole cluster (Infrastructure's resourceTags); the Machine's own come first.
    pub cluster_tags: BTreeMap<String, String>,
    pub ip_family: IpFamily,
}

/// Which addresses the cluster's machines have (Infrastructure's ipFamily).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IpFamily {
    #[default]
    IPv4,
    DualStackIPv4Primary,
    DualStackIPv6Primary,
}

/// User data: bytes that are never shown.
#[derive(Clone)]
pub struct UserData(pub Vec<u8>);

impl std::fmt::Debug for UserData {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "UserData({} bytes)", self.0.len())
    }
}

/// A launch whose names are resolved to ids: the provider's own form, opaque to everybody else.
#[derive(Clone, Debug)]
pub struct PreparedLaunch {
    pub request: LaunchRequest,
    pub resolved: Value,
}

/// One size of instance.
#[derive(Clone, Debug, PartialEq)]
pub struct InstanceSize {
    pub name: String,
    pub vcpus: u32,
    pub memory_mib: u64,
    pub gpus: u32,
    /// As Kubernetes spells it: `amd64` or `arm64`.
    pub architecture: String,
    /// Whether it has disks on its host: a stop destroys what is on them.
    pub has_instance_store: bool,
}

/// Why a verb failed. The class decides the policy; the text is for people.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct ProviderError {
    pub class: ErrorClass,
    /// What was tried, on what, and what the provider said; never a secret.
    pub message: String,
    /// The provider's own error code, where it gave one.
    pub code: Option<String>,
    /// The permission that the credentials lack, such as `ec2:StartInstances`, where that is why.
    pub missing_permission: Option<String>,
}

impl ProviderError {
    pub fn new(class: ErrorClass, message: impl Into<String>) -> Self {
        Self { class, message: message.into(), code: None, missing_permission: None }
    }
}
