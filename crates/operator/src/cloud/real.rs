//! How the real clouds are reached: each through its SDK.

use std::sync::Arc;

use async_trait::async_trait;
use machinist_core::providerspec::ProviderKind;
use machinist_providers::{
    Provider, ProviderError,
    aws::{AwsCredentials, AwsProvider, AwsSettings, Call, EventQueue},
    notice::NoticeQueue,
};

use super::connect::{Connect, ConnectRequest, Credentials};
use crate::metrics::Metrics;

/// The real clouds.
pub struct RealClouds {
    pub metrics: Metrics,
}

#[async_trait]
impl Connect for RealClouds {
    async fn connect(&self, request: ConnectRequest) -> Result<Arc<dyn Provider>, ProviderError> {
        match request.kind {
            ProviderKind::Aws => Ok(Arc::new(AwsProvider::new(self.aws(request)?).await?)),
        }
    }

    async fn notices(
        &self,
        request: ConnectRequest,
        queue_url: &str,
    ) -> Result<Arc<dyn NoticeQueue>, ProviderError> {
        match request.kind {
            ProviderKind::Aws => {
                Ok(Arc::new(EventQueue::new(self.aws(request)?, queue_url).await?))
            }
        }
    }
}

impl RealClouds {
    fn aws(&self, request: ConnectRequest) -> Result<AwsSettings, ProviderError> {
        let (metrics, permissions) = (self.metrics.clone(), request.permissions);
        let credentials = match &request.credentials {
            Credentials::Ambient => AwsCredentials::DefaultChain,
            Credentials::Secret(data) => AwsCredentials::from_secret(data)?,
        };
        let mut settings = AwsSettings::new(request.region, credentials);
        settings.endpoints = request.endpoints;
        settings.ca_bundle_pem = request.ca_bundle_pem;
        settings.trusted_ca_pem = request.trusted_ca_pem;
        settings.proxy = request.proxy;
        settings.pacer = Some(request.pacer);
        settings.observer = Some(Arc::new(move |call: &Call<'_>| {
            metrics.count_cloud_call("aws", call.action, call.outcome);
            match call.missing_permission {
                Some(permission) => permissions.refused("aws", call.action, permission),
                None if call.outcome == "ok" => permissions.granted("aws", call.action),
                None => {}
            }
        }));
        Ok(settings)
    }
}
