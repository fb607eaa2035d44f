//! With whose rights is AWS called?

use aws_config::{
    default_provider::credentials::DefaultCredentialsChain,
    environment::EnvironmentVariableCredentialsProvider,
    meta::credentials::CredentialsProviderChain, profile::ProfileFileCredentialsProvider,
    provider_config::ProviderConfig,
};
use aws_credential_types::{Credentials, provider::SharedCredentialsProvider};
use aws_runtime::env_config::file::{EnvConfigFileKind, EnvConfigFiles};
use aws_sdk_ec2::config::{Region, SharedHttpClient, retry::RetryConfig, timeout::TimeoutConfig};

use super::settings::{AwsCredentials, AwsSettings};
use crate::service;

pub(super) async fn credentials_provider(
    settings: &AwsSettings,
    http_client: &SharedHttpClient,
    timeouts: &TimeoutConfig,
) -> SharedCredentialsProvider {
    let region = Region::new(settings.region.clone());
    let provider_config = ProviderConfig::without_region()
        .with_region(Some(region.clone()))
        .with_http_client(http_client.clone())
        .with_timeout_config(timeouts.clone())
        .with_retry_config(RetryConfig::disabled());
    let sts_endpoint = settings.endpoint(service::STS);
    match &settings.credentials {
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
            SharedCredentialsProvider::new(from_text(text, sts_endpoint, &provider_config))
        }
        AwsCredentials::DefaultChain => {
            let chain = DefaultCredentialsChain::builder()
                .region(region)
                .configure(provider_config.clone())
                .build()
                .await;
            // The chain's own client of STS can be sent elsewhere only by the environment.
            match (sts_endpoint, web_identity(|name| std::env::var(name).ok())) {
                (Some(_), Some(text)) => SharedCredentialsProvider::new(
                    CredentialsProviderChain::first_try(
                        "Environment",
                        EnvironmentVariableCredentialsProvider::new(),
                    )
                    .or_else("WebIdentity", from_text(&text, sts_endpoint, &provider_config))
                    .or_else("Default", chain),
                ),
                (Some(_), None) | (None, _) => SharedCredentialsProvider::new(chain),
            }
        }
    }
}

fn from_text(
    text: &str,
    sts_endpoint: Option<&str>,
    provider_config: &ProviderConfig,
) -> ProfileFileCredentialsProvider {
    let mut files =
        EnvConfigFiles::builder().with_contents(EnvConfigFileKind::Config, text.to_owned());
    if has_bare_profiles(text) {
        files = files.with_contents(EnvConfigFileKind::Credentials, text.to_owned());
    }
    if let Some(url) = sts_endpoint {
        files = files.with_contents(EnvConfigFileKind::Config, sts_override(url));
    }
    ProfileFileCredentialsProvider::builder()
        .configure(provider_config)
        .profile_files(files.build())
        // Named, or the operator's own AWS_PROFILE would choose.
        .profile_name("default")
        .build()
}

/// Whether profiles are named as in a credentials file, `[name]`. The controllers before us read
/// both spellings from one text.
fn has_bare_profiles(text: &str) -> bool {
    text.lines()
        .filter_map(|line| line.trim().strip_prefix('[')?.strip_suffix(']'))
        .any(|name| name.trim() != "default" && !name.trim().contains(char::is_whitespace))
}

/// A file that is read besides the text and only says where STS answers. The SDK has no other door
/// for it.
fn sts_override(url: &str) -> String {
    format!(
        "[default]\nservices = machinist\n\n[services machinist]\nsts =\n  endpoint_url = {url}\n"
    )
}

/// The web identity that a Pod's environment names, as a shared config.
fn web_identity(environment: impl Fn(&str) -> Option<String>) -> Option<String> {
    let variable = |name: &str| environment(name).filter(|value| !value.is_empty());
    let role = variable("AWS_ROLE_ARN")?;
    let token_file = variable("AWS_WEB_IDENTITY_TOKEN_FILE")?;
    let mut text =
        format!("[default]\nrole_arn = {role}\nweb_identity_token_file = {token_file}\n");
    if let Some(session) = variable("AWS_ROLE_SESSION_NAME") {
        text.push_str(&format!("role_session_name = {session}\n"));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn web_identity_of_a_pod_is_a_profile() {
        let environment = |name: &str| match name {
            "AWS_ROLE_ARN" => Some("arn:aws:iam::1:role/a".to_owned()),
            "AWS_WEB_IDENTITY_TOKEN_FILE" => Some("/var/run/token".to_owned()),
            _ => None,
        };
        let expected = "[default]\nrole_arn = arn:aws:iam::1:role/a\nweb_identity_token_file = /var/run/token\n";
        assert_eq!(web_identity(environment).as_deref(), Some(expected));
        assert_eq!(web_identity(|_| Some(String::new())), None);
        assert_eq!(web_identity(|name| environment(name).filter(|_| name == "AWS_ROLE_ARN")), None);
    }

    #[test]
    fn profiles_named_as_in_a_credentials_file_are_noticed() {
        let table = [
            ("[default]\nrole_arn = a\nsource_profile = source\n\n[source]\n", true),
            ("[default]\n[profile source]\n", false),
            ("[profile default]\n", false),
            ("", false),
            ("role_arn = [source]\n", false),
        ];
        for (text, expected) in table {
            assert_eq!(has_bare_profiles(text), expected, "{text:?}");
        }
    }
}
