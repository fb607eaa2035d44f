//! With which credentials, endpoint and limits is EC2 called?
//!
//! One client, and so one pool of connections, for each provider. The SDK's retries are off: the
//! caller's queue and rate limit decide when to try again.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use aws_config::{
    default_provider::credentials::DefaultCredentialsChain,
    profile::ProfileFileCredentialsProvider, provider_config::ProviderConfig,
};
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_runtime::env_config::file::{EnvConfigFileKind, EnvConfigFiles};
use aws_sdk_ec2::{
    Client,
    config::{
        AppName, BehaviorVersion, Credentials, Region, SharedHttpClient,
        StalledStreamProtectionConfig, retry::RetryConfig, timeout::TimeoutConfig,
    },
    error::{ProvideErrorMetadata, SdkError},
};
use machinist_api::names::secret_key;

use super::{
    errors::{Attempt, chain, provider_error},
    http::http_client,
    lookups::Lookups,
};
use crate::{ErrorClass, ProviderError};

/// Told of every call: EC2's action, and `ok` or the class of the error.
pub type CallObserver = Arc<dyn Fn(&'static str, &str) + Send + Sync>;

/// Everything that is chosen about one account and region.
#[derive(Clone)]
pub struct AwsSettings {
    pub region: String,
    /// Where EC2 answers, `http` or `https`; none for AWS's own endpoint of the region.
    pub endpoint: Option<String>,
    pub credentials: AwsCredentials,
    /// Certificates that are trusted besides the system's.
    pub ca_bundle_pem: Option<String>,
    /// What the calls are signed off with in AWS's logs: letters, digits and hyphens.
    pub user_agent: String,
    pub timeouts: AwsTimeouts,
    /// How many instances a page has; EC2 allows 5 to 1000.
    pub page_size: i32,
    pub observer: Option<CallObserver>,
}

/// How long a call may take.
#[derive(Clone, Copy, Debug)]
pub struct AwsTimeouts {
    pub connect: Duration,
    /// The whole call. Doubled, a verb that hangs holds its slot of the queue twice as long.
    pub call: Duration,
}

impl Default for AwsTimeouts {
    fn default() -> Self {
        Self { connect: Duration::from_secs(5), call: Duration::from_secs(30) }
    }
}

/// Who calls. Debug output shows no secret.
#[derive(Clone)]
pub enum AwsCredentials {
    /// A pair of keys.
    Static { access_key_id: String, secret_access_key: String },
    /// The text of a shared-config file, whose profile `default` has keys, or names a role to be
    /// assumed or a web identity. `credential_process` is not carried out.
    SharedConfig(String),
    /// What the environment gives: variables, the user's files, a web identity, the instance's role.
    DefaultChain,
}

impl AwsCredentials {
    /// Reads a Secret's data: the key `credentials`, or else the pair of keys.
    ///
    /// A Secret without either is `Unauthorized`, not `InvalidConfiguration`: once it is filled, the
    /// same Machine works.
    pub fn from_secret(data: &BTreeMap<String, Vec<u8>>) -> Result<Self, ProviderError> {
        let invalid =
            || ProviderError::new(ErrorClass::Unauthorized, "invalid secret for aws credentials");
        let text = |key: &str| {
            let bytes = data.get(key).filter(|bytes| !bytes.is_empty())?;
            Some(String::from_utf8(bytes.clone()).map_err(|_| invalid()))
        };
        if let Some(shared) = text(secret_key::AWS_CREDENTIALS) {
            return shared.map(Self::SharedConfig);
        }
        let id = text(secret_key::AWS_ACCESS_KEY_ID).ok_or_else(invalid)??;
        let secret = text(secret_key::AWS_SECRET_ACCESS_KEY).ok_or_else(invalid)??;
        Ok(Self::Static { access_key_id: id, secret_access_key: secret })
    }
}

impl fmt::Debug for AwsCredentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Static { .. } => "Static(...)",
            Self::SharedConfig(_) => "SharedConfig(...)",
            Self::DefaultChain => "DefaultChain",
        })
    }
}

impl fmt::Debug for AwsSettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("AwsSettings")
            .field("region", &self.region)
            .field("endpoint", &self.endpoint)
            .field("credentials", &self.credentials)
            .field("timeouts", &self.timeouts)
            .finish_non_exhaustive()
    }
}

impl AwsSettings {
    /// Returns settings for AWS's own endpoint with the usual limits.
    pub fn new(region: impl Into<String>, credentials: AwsCredentials) -> Self {
        Self {
            region: region.into(),
            endpoint: None,
            credentials,
            ca_bundle_pem: None,
            user_agent: concat!("machinist-", env!("CARGO_PKG_VERSION")).to_owned(),
            timeouts: AwsTimeouts::default(),
            page_size: 1_000,
            observer: None,
        }
    }
}

/// EC2 in one account and region.
pub struct AwsProvider {
    pub(super) ec2: Arc<Ec2>,
    pub(super) lookups: Lookups,
}

impl fmt::Debug for AwsProvider {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("AwsProvider")
            .field("region", &self.ec2.region)
            .finish_non_exhaustive()
    }
}

impl AwsProvider {
    /// Builds the client. Calls nothing: wrong credentials show at the first verb.
    pub async fn new(settings: AwsSettings) -> Result<Self, ProviderError> {
        let AwsSettings { region, endpoint, credentials, timeouts, page_size, observer, .. } =
            &settings;
        let http_client = http_client(endpoint.as_deref(), settings.ca_bundle_pem.as_deref())?;
        let credentials = credentials_provider(credentials, region, &http_client).await;
        let app_name = AppName::new(settings.user_agent.clone()).map_err(|error| {
            let message = format!("user agent {:?}: {}", settings.user_agent, chain(&error));
            ProviderError::new(ErrorClass::InvalidConfiguration, message)
        })?;
        let timeout_config = TimeoutConfig::builder()
            .connect_timeout(timeouts.connect)
            .operation_timeout(timeouts.call)
            .operation_attempt_timeout(timeouts.call)
            .build();
        let mut config = aws_sdk_ec2::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new(region.clone()))
            .credentials_provider(credentials)
            .http_client(http_client)
            .retry_config(RetryConfig::disabled())
            .timeout_config(timeout_config)
            // The time limit of the call covers stalls too; two limits would give two answers.
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
            .app_name(app_name);
        config.set_endpoint_url(endpoint.clone());
        let ec2 = Arc::new(Ec2 {
            client: Client::from_conf(config.build()),
            region: region.clone(),
            page_size: *page_size,
            observer: observer.clone(),
        });
        Ok(Self { lookups: Lookups::new(Arc::clone(&ec2)), ec2 })
    }

    pub fn region(&self) -> &str {
        &self.ec2.region
    }
}

/// The client and what every call needs.
pub(super) struct Ec2 {
    pub client: Client,
    pub region: String,
    pub page_size: i32,
    observer: Option<CallObserver>,
}

impl Ec2 {
    /// Carries out one call, classes its error and tells the observer.
    pub async fn call<Output, E>(
        &self,
        attempt: &Attempt,
        sent: impl Future<Output = Result<Output, SdkError<E>>>,
    ) -> Result<Output, ProviderError>
    where
        E: ProvideErrorMetadata + std::error::Error + 'static,
    {
        let result = sent.await.map_err(|error| provider_error(attempt, &error));
        if let Some(observer) = &self.observer {
            let outcome = result.as_ref().err().map_or("ok", |error| error.class.as_str());
            observer(attempt.action, outcome);
        }
        result
    }
}

async fn credentials_provider(
    credentials: &AwsCredentials,
    region: &str,
    http_client: &SharedHttpClient,
) -> SharedCredentialsProvider {
    let region = Region::new(region.to_owned());
    let provider_config = ProviderConfig::without_region()
        .with_region(Some(region.clone()))
        .with_http_client(http_client.clone());
    match credentials {
        AwsCredentials::Static { access_key_id, secret_access_key } => {
            SharedCredentialsProvider::new(Credentials::new(
                access_key_id.trim(),
                secret_access_key.trim(),
                None,
                None,
                "Secret",
            ))
        }
        AwsCredentials::SharedConfig(text) => {
            let files = EnvConfigFiles::builder()
                .with_contents(EnvConfigFileKind::Config, text.clone())
                .build();
            SharedCredentialsProvider::new(
                ProfileFileCredentialsProvider::builder()
                    .configure(&provider_config)
                    .profile_files(files)
                    // Named, or the operator's own AWS_PROFILE would choose.
                    .profile_name("default")
                    .build(),
            )
        }
        AwsCredentials::DefaultChain => SharedCredentialsProvider::new(
            DefaultCredentialsChain::builder()
                .region(region)
                .configure(provider_config)
                .build()
                .await,
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{InstanceId, Provider};

    fn unreachable(credentials: AwsCredentials) -> AwsSettings {
        AwsSettings {
            // Port 1 is reserved and nothing listens there.
            endpoint: Some("http://127.0.0.1:1".to_owned()),
            ..AwsSettings::new("us-east-1", credentials)
        }
    }

    fn keys() -> AwsCredentials {
        AwsCredentials::Static {
            access_key_id: "AKIDEXAMPLE".to_owned(),
            secret_access_key: "topsecret".to_owned(),
        }
    }

    async fn first_error(settings: AwsSettings) -> ProviderError {
        let provider = AwsProvider::new(settings).await.unwrap();
        provider.terminate(&InstanceId("i-1".to_owned())).await.unwrap_err()
    }

    #[test]
    fn secret_has_a_shared_config_or_a_pair_of_keys() {
        let read = |entries: &[(&str, &str)]| {
            let entries = entries.iter();
            let data = entries.map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec()));
            AwsCredentials::from_secret(&data.collect())
        };
        let id = ("aws_access_key_id", "AKIDEXAMPLE");
        let secret = ("aws_secret_access_key", "topsecret");
        assert!(matches!(read(&[id, secret]), Ok(AwsCredentials::Static { .. })));
        let both = read(&[id, secret, ("credentials", "[default]")]);
        assert!(matches!(both, Ok(AwsCredentials::SharedConfig(_))));
        for incomplete in [&[][..], &[id], &[secret], &[id, ("aws_secret_access_key", "")]] {
            let error = read(incomplete).unwrap_err();
            assert_eq!(error.class, ErrorClass::Unauthorized);
            assert_eq!(error.message, "invalid secret for aws credentials");
        }
    }

    #[tokio::test]
    async fn debug_output_shows_no_secret() {
        let shared = AwsCredentials::SharedConfig("aws_secret_access_key = topsecret".to_owned());
        for credentials in [keys(), shared] {
            let settings = unreachable(credentials);
            let provider = AwsProvider::new(settings.clone()).await.unwrap();
            let shown = format!("{settings:?} {provider:?}");
            assert!(!shown.contains("topsecret"), "{shown}");
            assert!(!shown.contains("AKIDEXAMPLE"), "{shown}");
        }
    }

    #[tokio::test]
    async fn unreachable_endpoint_is_transient_and_counted() {
        let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
        let record = Arc::clone(&seen);
        let observer: CallObserver = Arc::new(move |action, result| {
            record.lock().unwrap().push((action, result.to_owned()));
        });
        let error =
            first_error(AwsSettings { observer: Some(observer), ..unreachable(keys()) }).await;
        assert_eq!(error.class, ErrorClass::Transient, "{error}");
        assert!(error.message.starts_with("failed to terminate instance i-1: "), "{error}");
        assert_eq!(*seen.lock().unwrap(), [("TerminateInstances", "Transient".to_owned())]);
    }

    #[tokio::test]
    async fn shared_config_gives_its_default_profile() {
        let text =
            "[default]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = topsecret\n";
        let error = first_error(unreachable(AwsCredentials::SharedConfig(text.to_owned()))).await;
        // It had credentials to sign with, and then found nobody there.
        assert_eq!(error.class, ErrorClass::Transient, "{error}");
    }

    #[tokio::test]
    async fn shared_config_without_credentials_is_unauthorized() {
        for text in ["", "[other]\n", "[default]\ncredential_process = /bin/true\n"] {
            let credentials = AwsCredentials::SharedConfig(text.to_owned());
            let error = first_error(unreachable(credentials)).await;
            assert_eq!(error.class, ErrorClass::Unauthorized, "{text:?}: {error}");
        }
    }

    #[tokio::test]
    async fn unusable_settings_are_refused_with_their_name() {
        let endpoint = Some("ftp://example.com".to_owned());
        let bundle = Some("not a certificate".to_owned());
        let table = [
            (AwsSettings { endpoint, ..unreachable(keys()) }, "endpoint \"ftp://example.com\""),
            (AwsSettings { ca_bundle_pem: bundle, ..unreachable(keys()) }, "ca bundle"),
            (AwsSettings { user_agent: "a b".to_owned(), ..unreachable(keys()) }, "user agent"),
        ];
        for (settings, expected) in table {
            let error = AwsProvider::new(settings).await.unwrap_err();
            assert_eq!(error.class, ErrorClass::InvalidConfiguration);
            assert!(error.message.starts_with(expected), "{error}");
        }
    }
}
