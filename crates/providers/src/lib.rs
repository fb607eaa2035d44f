//! The clouds: one trait whose doc comments are the contract, and one module and cargo feature for
//! each cloud. Everything that a provider does not promise here, the operator does not rely on.

use std::collections::BTreeMap;

use async_trait::async_trait;
use jiff::Timestamp;
use machinist_api::RawObject;
pub use machinist_core::cloud::{ErrorClass, Instance, InstanceId, InstanceState};
use serde_json::Value;

#[cfg(feature = "aws")]
pub mod aws;

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

    /// Begins to start a stopped instance. Starting a running one succeeds.
    async fn start(&self, id: &InstanceId) -> Result<InstanceState, ProviderError>;

    /// Begins to stop a running instance. Stopping a stopped one succeeds.
    async fn stop(&self, id: &InstanceId) -> Result<InstanceState, ProviderError>;

    /// Asks for a reboot. Returns when the request is taken, not when it is done. Not idempotent:
    /// each call is one reboot.
    async fn reboot(&self, id: &InstanceId) -> Result<(), ProviderError>;

    /// Every scheduled event on the cluster's instances, completed and cancelled ones included as
    /// the provider reports them. All or nothing, like `list`.
    async fn scheduled_events(
        &self,
        cluster_id: &str,
    ) -> Result<Vec<ScheduledEvent>, ProviderError>;

    /// Moves an event to another start, where the provider allows it.
    async fn move_event(
        &self,
        id: &InstanceId,
        event_id: &str,
        not_before: Timestamp,
    ) -> Result<(), ProviderError>;

    /// The sizes that the region offers, sorted by name.
    async fn catalog(&self) -> Result<Vec<InstanceSize>, ProviderError>;
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

/// Something that the provider will do to an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
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

/// One size of instance.
#[derive(Clone, Debug, PartialEq)]
pub struct InstanceSize {
    pub name: String,
    pub vcpus: u32,
    pub memory_mib: u64,
    pub gpus: u32,
    /// As Kubernetes spells it: `amd64` or `arm64`.
    pub architecture: String,
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
}

impl ProviderError {
    pub fn new(class: ErrorClass, message: impl Into<String>) -> Self {
        Self { class, message: message.into(), code: None }
    }
}
