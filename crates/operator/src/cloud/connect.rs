//! How a provider is reached: the seam at which the real cloud is put in, or a simulated one.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use machinist_core::{cloud::ErrorClass, providerspec::ProviderKind, proxy::ProxySettings};
use machinist_providers::{Pacer, Provider, ProviderError, notice::NoticeQueue};

use super::permissions::MissingPermissions;

/// Everything that a connection needs. Holds secrets: it has no Debug.
#[derive(Clone)]
pub struct ConnectRequest {
    pub kind: ProviderKind,
    pub region: String,
    /// Where services answer, by the names that Infrastructure's `serviceEndpoints` use.
    pub endpoints: BTreeMap<String, String>,
    pub credentials: Credentials,
    pub ca_bundle_pem: Option<String>,
    /// Certificates that the whole cluster trusts; what cannot be read of them is left out.
    pub trusted_ca_pem: Option<String>,
    /// The cluster's proxy; none leaves it to the environment.
    pub proxy: Option<ProxySettings>,
    /// Keeps the calls within the account's limits.
    pub pacer: Arc<dyn Pacer>,
    /// Told of calls that were refused for lack of a permission, and of those that succeeded.
    pub permissions: MissingPermissions,
}

/// Whose account it is.
#[derive(Clone)]
pub enum Credentials {
    /// What the process finds around itself: instance role, environment.
    Ambient,
    /// What a Secret holds; the provider knows its keys.
    Secret(Arc<BTreeMap<String, Vec<u8>>>),
}

/// Makes providers.
#[async_trait]
pub trait Connect: Send + Sync {
    async fn connect(&self, request: ConnectRequest) -> Result<Arc<dyn Provider>, ProviderError>;

    /// Makes a reader of the queue through which the cloud tells of changes.
    async fn notices(
        &self,
        _request: ConnectRequest,
        queue_url: &str,
    ) -> Result<Arc<dyn NoticeQueue>, ProviderError> {
        let message = format!("queue {queue_url}: this cloud has no queues");
        Err(ProviderError::new(ErrorClass::InvalidConfiguration, message))
    }
}
