//! Every verb goes to the current client, and a refusal of the credentials is remembered.

use std::collections::BTreeMap;

use async_trait::async_trait;
use jiff::Timestamp;
use machinist_api::RawObject;
use machinist_core::cloud::{Instance, InstanceId, InstanceReport, InstanceState};
use machinist_providers::{InstanceSize, LaunchRequest, PreparedLaunch, Provider, ProviderError};

use super::Connection;

impl Connection {
    fn heard<T>(&self, answer: Result<T, ProviderError>) -> Result<T, ProviderError> {
        self.note(answer.as_ref().err());
        answer
    }
}

#[async_trait]
impl Provider for Connection {
    fn name(&self) -> &'static str {
        self.lock().provider.name()
    }

    async fn list(&self, cluster_id: &str) -> Result<Vec<Instance>, ProviderError> {
        self.heard(self.provider().await.list(cluster_id).await)
    }

    async fn describe(&self, ids: &[InstanceId]) -> Result<Vec<Instance>, ProviderError> {
        self.heard(self.provider().await.describe(ids).await)
    }

    async fn find(
        &self,
        machine_uid: &str,
        client_tokens: &[String],
    ) -> Result<Vec<Instance>, ProviderError> {
        self.heard(self.provider().await.find(machine_uid, client_tokens).await)
    }

    async fn prepare(&self, request: &LaunchRequest) -> Result<PreparedLaunch, ProviderError> {
        self.heard(self.provider().await.prepare(request).await)
    }

    async fn launch(
        &self,
        prepared: &PreparedLaunch,
        client_token: &str,
    ) -> Result<Instance, ProviderError> {
        self.heard(self.provider().await.launch(prepared, client_token).await)
    }

    async fn terminate(&self, id: &InstanceId) -> Result<InstanceState, ProviderError> {
        self.heard(self.provider().await.terminate(id).await)
    }

    async fn tag(
        &self,
        id: &InstanceId,
        tags: &BTreeMap<String, String>,
    ) -> Result<(), ProviderError> {
        self.heard(self.provider().await.tag(id, tags).await)
    }

    fn tags(&self, request: &LaunchRequest) -> BTreeMap<String, String> {
        self.lock().provider.tags(request)
    }

    async fn start(&self, id: &InstanceId) -> Result<InstanceState, ProviderError> {
        self.heard(self.provider().await.start(id).await)
    }

    async fn stop(&self, id: &InstanceId) -> Result<InstanceState, ProviderError> {
        self.heard(self.provider().await.stop(id).await)
    }

    async fn reboot(&self, id: &InstanceId) -> Result<(), ProviderError> {
        self.heard(self.provider().await.reboot(id).await)
    }

    async fn reports(&self) -> Result<Vec<InstanceReport>, ProviderError> {
        self.heard(self.provider().await.reports().await)
    }

    async fn move_event(
        &self,
        id: &InstanceId,
        event_id: &str,
        not_before: Timestamp,
    ) -> Result<(), ProviderError> {
        self.heard(self.provider().await.move_event(id, event_id, not_before).await)
    }

    async fn enable_reboot_migration(&self, id: &InstanceId) -> Result<(), ProviderError> {
        self.heard(self.provider().await.enable_reboot_migration(id).await)
    }

    async fn attach(
        &self,
        provider_spec: &RawObject,
        instance: &Instance,
    ) -> Result<(), ProviderError> {
        self.heard(self.provider().await.attach(provider_spec, instance).await)
    }

    async fn detach(
        &self,
        provider_spec: &RawObject,
        instance: &Instance,
    ) -> Result<(), ProviderError> {
        self.heard(self.provider().await.detach(provider_spec, instance).await)
    }

    async fn release_hosts(&self, machine_uid: &str) -> Result<(), ProviderError> {
        self.heard(self.provider().await.release_hosts(machine_uid).await)
    }

    async fn catalog(&self) -> Result<Vec<InstanceSize>, ProviderError> {
        self.heard(self.provider().await.catalog().await)
    }
}
