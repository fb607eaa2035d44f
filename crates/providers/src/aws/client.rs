//! How is a call made: with which clients, and through which one door?
//!
//! One client for each service, one pool of connections and one cache of credentials for all of
//! them. The SDK's retries are off: the caller's queue and rate limit decide when to try again.

use std::{fmt, sync::Arc, time::Duration};

use aws_config::SdkConfig;
use aws_sdk_ec2::{
    config::{
        AppName, BehaviorVersion, IdentityCache, Region, StalledStreamProtectionConfig,
        retry::RetryConfig, timeout::TimeoutConfig,
    },
    error::{ProvideErrorMetadata, SdkError},
};

use super::{
    credentials::credentials_provider,
    errors::{Attempt, chain, provider_error},
    http::http_client,
    load_balancers::LoadBalancers,
    lookups::Lookups,
    regions::Regions,
    settings::{AwsSettings, Call, CallObserver},
};
use crate::{ErrorClass, Pacer, ProviderError, service};

/// AWS in one account and region.
pub struct AwsProvider {
    pub(super) cloud: Arc<Cloud>,
    pub(super) lookups: Lookups,
    pub(super) load_balancers: LoadBalancers,
    pub(super) regions: Regions,
}

impl fmt::Debug for AwsProvider {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("AwsProvider")
            .field("region", &self.cloud.region)
            .finish_non_exhaustive()
    }
}

impl AwsProvider {
    /// Builds the clients. Calls nothing: wrong credentials show at the first verb.
    pub async fn new(settings: AwsSettings) -> Result<Self, ProviderError> {
        let shared = shared_config(&settings, settings.timeouts.call).await?;
        let endpoint = |service: &str| settings.endpoint(service).map(str::to_owned);
        let mut ec2 = aws_sdk_ec2::config::Builder::from(&shared);
        ec2.set_endpoint_url(endpoint(service::EC2));
        let mut classic = aws_sdk_elasticloadbalancing::config::Builder::from(&shared);
        classic.set_endpoint_url(endpoint(service::ELASTIC_LOAD_BALANCING));
        let mut network = aws_sdk_elasticloadbalancingv2::config::Builder::from(&shared);
        network.set_endpoint_url(endpoint(service::ELASTIC_LOAD_BALANCING));
        let cloud = Arc::new(Cloud {
            ec2: aws_sdk_ec2::Client::from_conf(ec2.build()),
            classic: aws_sdk_elasticloadbalancing::Client::from_conf(classic.build()),
            network: aws_sdk_elasticloadbalancingv2::Client::from_conf(network.build()),
            has_own_ec2_endpoint: settings.endpoint(service::EC2).is_some(),
            region: settings.region,
            page_size: settings.page_size,
            path: CallPath { observer: settings.observer, pacer: settings.pacer },
        });
        Ok(Self {
            lookups: Lookups::new(Arc::clone(&cloud)),
            load_balancers: LoadBalancers::new(Arc::clone(&cloud)),
            regions: Regions::new(Arc::clone(&cloud)),
            cloud,
        })
    }

    pub fn region(&self) -> &str {
        &self.cloud.region
    }
}

/// The clients and what every call needs.
pub(super) struct Cloud {
    pub ec2: aws_sdk_ec2::Client,
    pub classic: aws_sdk_elasticloadbalancing::Client,
    pub network: aws_sdk_elasticloadbalancingv2::Client,
    pub has_own_ec2_endpoint: bool,
    pub region: String,
    pub page_size: i32,
    path: CallPath,
}

impl Cloud {
    /// Carries out one call, in its turn, and classes its error.
    pub async fn call<Output, E>(
        &self,
        attempt: &Attempt,
        sent: impl Future<Output = Result<Output, SdkError<E>>>,
    ) -> Result<Output, ProviderError>
    where
        E: ProvideErrorMetadata + std::error::Error + 'static,
    {
        self.path.call(attempt, sent).await
    }
}

/// The one door that every call passes: paced before, classed and counted after.
pub(super) struct CallPath {
    pub observer: Option<CallObserver>,
    pub pacer: Option<Arc<dyn Pacer>>,
}

impl CallPath {
    pub async fn call<Output, E>(
        &self,
        attempt: &Attempt,
        sent: impl Future<Output = Result<Output, SdkError<E>>>,
    ) -> Result<Output, ProviderError>
    where
        E: ProvideErrorMetadata + std::error::Error + 'static,
    {
        let action = attempt.action;
        if let Some(pacer) = &self.pacer
            && action.is_read()
        {
            pacer.turn_to_read(action.name()).await;
        }
        let result = sent.await.map_err(|error| provider_error(attempt, &error));
        let error = result.as_ref().err();
        if let Some(pacer) = &self.pacer {
            pacer.learn(action.name(), error.map(|error| error.class));
        }
        if let Some(observer) = &self.observer {
            observer(&Call {
                action: action.name(),
                outcome: error.map_or("ok", |error| error.class.as_str()),
                missing_permission: error.and_then(|error| error.missing_permission.as_deref()),
            });
        }
        result
    }
}

/// What the clients of all services have in common.
pub(super) async fn shared_config(
    settings: &AwsSettings,
    call_limit: Duration,
) -> Result<SdkConfig, ProviderError> {
    let http_client = http_client(settings)?;
    let app_name = AppName::new(settings.user_agent.clone()).map_err(|error| {
        let message = format!("user agent {:?}: {}", settings.user_agent, chain(&error));
        ProviderError::new(ErrorClass::InvalidConfiguration, message)
    })?;
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(settings.timeouts.connect)
        .operation_timeout(call_limit)
        .operation_attempt_timeout(call_limit)
        .build();
    let credentials = credentials_provider(settings, &http_client, &timeouts).await;
    Ok(SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new(settings.region.clone()))
        .credentials_provider(credentials)
        .identity_cache(IdentityCache::lazy().build())
        .http_client(http_client)
        .retry_config(RetryConfig::disabled())
        .timeout_config(timeouts)
        // The time limit of the call covers stalls too; two limits would give two answers.
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
        .app_name(app_name)
        .build())
}

#[cfg(test)]
mod tests;
