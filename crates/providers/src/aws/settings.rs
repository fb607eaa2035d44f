//! What is chosen about one account and region: where it answers, who calls, and who is told?

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use machinist_api::names::secret_key;
use machinist_core::proxy::ProxySettings;

use crate::{ErrorClass, Pacer, ProviderError};

/// One call that was made, as an observer hears of it.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The operation, such as `RunInstances` or `elbv2:RegisterTargets`.
    pub action: &'static str,
    /// `ok`, or the class of the error.
    pub outcome: &'a str,
    /// The permission that was lacking, such as `ec2:StartInstances`, where that is why it failed.
    pub missing_permission: Option<&'a str>,
}

/// Told of every call after its answer.
pub type CallObserver = Arc<dyn Fn(&Call<'_>) + Send + Sync>;

/// Everything that is chosen about one account and region.
#[derive(Clone)]
pub struct AwsSettings {
    pub region: String,
    /// Where services answer, `http` or `https`, by their names in `service`; AWS's own endpoints of
    /// the region for those that are not here. Names of other services are ignored.
    pub endpoints: BTreeMap<String, String>,
    pub credentials: AwsCredentials,
    /// Certificates that are trusted besides the system's.
    pub ca_bundle_pem: Option<String>,
    /// Certificates that the whole cluster trusts, besides those; what cannot be read of them is left
    /// out, for they are not about us.
    pub trusted_ca_pem: Option<String>,
    /// The cluster's proxy; none leaves it to the environment.
    pub proxy: Option<ProxySettings>,
    /// What the calls are signed off with in AWS's logs: letters, digits and hyphens.
    pub user_agent: String,
    pub timeouts: AwsTimeouts,
    /// How many instances a page has; EC2 allows 5 to 1000.
    pub page_size: i32,
    pub observer: Option<CallObserver>,
    /// Asked before every read and told of every answer; none lets calls go at once.
    pub pacer: Option<Arc<dyn Pacer>>,
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

impl AwsSettings {
    /// Returns settings for AWS's own endpoints with the usual limits.
    pub fn new(region: impl Into<String>, credentials: AwsCredentials) -> Self {
        Self {
            region: region.into(),
            endpoints: BTreeMap::new(),
            credentials,
            ca_bundle_pem: None,
            trusted_ca_pem: None,
            proxy: None,
            user_agent: concat!("machinist-", env!("CARGO_PKG_VERSION")).to_owned(),
            timeouts: AwsTimeouts::default(),
            page_size: 1_000,
            observer: None,
            pacer: None,
        }
    }

    /// Sends every service to one endpoint, as a stand-in for AWS wants it.
    #[must_use]
    pub fn with_one_endpoint(mut self, url: &str) -> Self {
        use crate::service::{EC2, ELASTIC_LOAD_BALANCING, SQS, STS};
        for name in [EC2, ELASTIC_LOAD_BALANCING, SQS, STS] {
            self.endpoints.insert(name.to_owned(), url.to_owned());
        }
        self
    }

    pub(super) fn endpoint(&self, service: &str) -> Option<&str> {
        self.endpoints.get(service).map(String::as_str).filter(|url| !url.is_empty())
    }
}

impl fmt::Debug for AwsSettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("AwsSettings")
            .field("region", &self.region)
            .field("endpoints", &self.endpoints)
            .field("credentials", &self.credentials)
            .field("timeouts", &self.timeouts)
            .finish_non_exhaustive()
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

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn one_endpoint_serves_every_service() {
        let settings = AwsSettings::new("us-east-1", AwsCredentials::DefaultChain);
        assert_eq!(settings.endpoint(crate::service::EC2), None);
        let settings = settings.with_one_endpoint("http://127.0.0.1:1");
        for name in ["ec2", "elasticloadbalancing", "sqs", "sts"] {
            assert_eq!(settings.endpoint(name), Some("http://127.0.0.1:1"), "{name}");
        }
    }
}
