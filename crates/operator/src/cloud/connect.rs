//! How a provider is reached: the seam at which the real cloud is put in, or a simulated one.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use machinist_core::providerspec::ProviderKind;
use machinist_providers::{
    Provider, ProviderError,
    aws::{AwsCredentials, AwsProvider, AwsSettings},
};

use crate::metrics::Metrics;

/// Everything that a connection needs. Holds secrets: it has no Debug.
pub struct ConnectRequest {
    pub kind: ProviderKind,
    pub region: String,
    pub endpoint: Option<String>,
    pub credentials: Credentials,
    pub ca_bundle_pem: Option<String>,
}

/// Whose account it is.
pub enum Credentials {
    /// What the process finds around itself: instance role, environment.
    Ambient,
    /// What a Secret holds; the provider knows its keys.
    Secret(BTreeMap<String, Vec<u8>>),
}

/// Makes providers.
#[async_trait]
pub trait Connect: Send + Sync {
    async fn connect(&self, request: ConnectRequest) -> Result<Arc<dyn Provider>, ProviderError>;
}

/// The real clouds.
pub struct RealClouds {
    pub metrics: Metrics,
}

#[async_trait]
impl Connect for RealClouds {
    async fn connect(&self, request: ConnectRequest) -> Result<Arc<dyn Provider>, ProviderError> {
        match request.kind {
            ProviderKind::Aws => {
                let metrics = self.metrics.clone();
                let credentials = match &request.credentials {
                    Credentials::Ambient => AwsCredentials::DefaultChain,
                    Credentials::Secret(data) => AwsCredentials::from_secret(data)?,
                };
                let mut settings = AwsSettings::new(request.region, credentials);
                settings.endpoint = request.endpoint;
                settings.ca_bundle_pem = request.ca_bundle_pem;
                settings.observer = Some(Arc::new(move |action: &'static str, result: &str| {
                    metrics.count_cloud_call("aws", action, result);
                }));
                Ok(Arc::new(AwsProvider::new(settings).await?))
            }
        }
    }
}
