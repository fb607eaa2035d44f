//! AWS, through the official SDK: how each verb of the contract becomes calls of its
//! services.

mod actions;
mod catalog;
mod client;
mod config;
mod credentials;
mod errors;
mod hosts;
mod http;
mod instances;
mod launch;
mod load_balancers;
mod lookups;
mod memory;
mod queue;
mod redaction;
mod regions;
mod reports;
mod request;
mod settings;

use std::collections::BTreeMap;

use async_trait::async_trait;
use jiff::Timestamp;
use machinist_api::RawObject;
use machinist_core::cloud::{Instance, InstanceId, InstanceReport, InstanceState};

pub use self::{
    actions::permissions,
    client::AwsProvider,
    config::{API_VERSIONS, AwsMachineProviderConfig, KIND, ResourceReference},
    queue::EventQueue,
    settings::{AwsCredentials, AwsSettings, AwsTimeouts, Call, CallObserver},
};
use crate::{InstanceSize, LaunchRequest, PreparedLaunch, Provider, ProviderError};

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

    fn tags(&self, request: &LaunchRequest) -> BTreeMap<String, String> {
        let Ok(config) = AwsMachineProviderConfig::parse(&request.provider_spec) else {
            return BTreeMap::new();
        };
        let tags = request::tags(&config, request);
        tags.into_iter().filter_map(|tag| Some((tag.key?, tag.value?))).collect()
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

    async fn reports(&self) -> Result<Vec<InstanceReport>, ProviderError> {
        self.list_reports().await
    }

    async fn move_event(
        &self,
        id: &InstanceId,
        event_id: &str,
        not_before: Timestamp,
    ) -> Result<(), ProviderError> {
        self.move_scheduled_event(id, event_id, not_before).await
    }

    async fn enable_reboot_migration(&self, id: &InstanceId) -> Result<(), ProviderError> {
        self.let_reboots_migrate(id).await
    }

    async fn attach(
        &self,
        provider_spec: &RawObject,
        instance: &Instance,
    ) -> Result<(), ProviderError> {
        self.attach_instance(provider_spec, instance).await
    }

    async fn detach(
        &self,
        provider_spec: &RawObject,
        instance: &Instance,
    ) -> Result<(), ProviderError> {
        self.detach_instance(provider_spec, instance).await
    }

    async fn release_hosts(&self, machine_uid: &str) -> Result<(), ProviderError> {
        self.release_hosts_of(machine_uid).await
    }

    async fn catalog(&self) -> Result<Vec<InstanceSize>, ProviderError> {
        self.list_instance_sizes().await
    }
}
