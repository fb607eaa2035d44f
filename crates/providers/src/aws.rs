//! AWS, through the official SDK: how each verb of the contract becomes calls of EC2.
//!
//! Not here yet: registration with load balancers and the allocation of dedicated hosts. A
//! providerSpec with `loadBalancers` is launched without them; one that asks for a dynamic host is
//! refused.

mod catalog;
mod client;
mod config;
mod errors;
mod events;
mod http;
mod instances;
mod launch;
mod lookups;
mod memory;
mod request;

use std::collections::BTreeMap;

use async_trait::async_trait;
use jiff::Timestamp;
use machinist_core::cloud::{Instance, InstanceId, InstanceState};

pub use self::{
    client::{AwsCredentials, AwsProvider, AwsSettings, AwsTimeouts, CallObserver},
    config::{API_VERSIONS, AwsMachineProviderConfig, KIND, ResourceReference},
};
use crate::{InstanceSize, LaunchRequest, PreparedLaunch, Provider, ProviderError, ScheduledEvent};

#[async_trait]
impl Provider for AwsProvider {
    fn name(&self) -> &'static str {
        "aws"
    }

    async fn list(&self, cluster_id: &str) -> Result<Vec<Instance>, ProviderError> {
        self.list_instances(cluster_id).await
    }

    async fn describe(&self, ids: &[InstanceId]) -> Result<Vec<Instance>, ProviderError> {
        self.describe_instances(ids).await
    }

    async fn find(
        &self,
        machine_uid: &str,
        client_tokens: &[String],
    ) -> Result<Vec<Instance>, ProviderError> {
        self.find_instances(machine_uid, client_tokens).await
    }

    async fn prepare(&self, request: &LaunchRequest) -> Result<PreparedLaunch, ProviderError> {
        self.prepare_launch(request).await
    }

    async fn launch(
        &self,
        prepared: &PreparedLaunch,
        client_token: &str,
    ) -> Result<Instance, ProviderError> {
        self.launch_instance(prepared, client_token).await
    }

    async fn terminate(&self, id: &InstanceId) -> Result<InstanceState, ProviderError> {
        self.terminate_instance(id).await
    }

    async fn tag(
        &self,
        id: &InstanceId,
        tags: &BTreeMap<String, String>,
    ) -> Result<(), ProviderError> {
        self.tag_instance(id, tags).await
    }

    async fn start(&self, id: &InstanceId) -> Result<InstanceState, ProviderError> {
        self.start_instance(id).await
    }

    async fn stop(&self, id: &InstanceId) -> Result<InstanceState, ProviderError> {
        self.stop_instance(id).await
    }

    async fn reboot(&self, id: &InstanceId) -> Result<(), ProviderError> {
        self.reboot_instance(id).await
    }

    async fn scheduled_events(
        &self,
        cluster_id: &str,
    ) -> Result<Vec<ScheduledEvent>, ProviderError> {
        self.list_scheduled_events(cluster_id).await
    }

    async fn move_event(
        &self,
        id: &InstanceId,
        event_id: &str,
        not_before: Timestamp,
    ) -> Result<(), ProviderError> {
        self.move_scheduled_event(id, event_id, not_before).await
    }

    async fn catalog(&self) -> Result<Vec<InstanceSize>, ProviderError> {
        self.list_instance_sizes().await
    }
}
