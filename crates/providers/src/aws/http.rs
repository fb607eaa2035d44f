//! How do the bytes travel to AWS: which certificates are trusted, and through which proxy?

use aws_sdk_ec2::config::SharedHttpClient;
use aws_smithy_http_client::{
    Builder, Connector,
    proxy::ProxyConfig,
    tls::{Provider as TlsProvider, TlsContext, TrustStore, rustls_provider::CryptoMode},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use machinist_core::proxy::{ProxySettings, Route};
use rustls::{
    RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};

use super::{errors::chain, settings::AwsSettings};
use crate::{ErrorClass, ProviderError, service};

/// Whose endpoints may be anywhere.
const SERVICES: [&str; 4] =
    [service::EC2, service::ELASTIC_LOAD_BALANCING, service::SQS, service::STS];

/// Builds the one client whose connections all calls share.
///
/// The proxy is the cluster's, or where the cluster has none to say that of the environment
/// (`HTTPS_PROXY`, `NO_PROXY`). An endpoint on this machine is reached by no proxy, nor is what gives a
/// machine or a pod its credentials.
pub(super) fn http_client(settings: &AwsSettings) -> Result<SharedHttpClient, ProviderError> {
    let mut trust_store = TrustStore::default();
    if let Some(pem) = &settings.ca_bundle_pem {
        check_certificates(pem)?;
        trust_store = trust_store.with_pem_certificate(pem.as_str());
    }
    if let Some(pem) = &settings.trusted_ca_pem {
        trust_store = trust_store.with_pem_certificate(readable_certificates(pem));
    }
    let proxy = proxy(settings, |name| std::env::var(name).ok())?;
    let tls_context = TlsContext::builder()
        .with_trust_store(trust_store)
        .build()
        .map_err(|error| refused(format!("ca bundle: {}", chain(&error))))?;
    Ok(Builder::new().build_with_connector_fn(move |settings, components| {
        let mut connector = Connector::builder().proxy_config(proxy.clone());
        connector.set_connector_settings(settings.cloned());
        if let Some(components) = components {
            connector.set_sleep_impl(components.sleep_impl());
        }
        connector
            .tls_provider(TlsProvider::Rustls(CryptoMode::AwsLc))
            .tls_context(tls_context.clone())
            .build()
    }))
}

fn proxy(
    settings: &AwsSettings,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<ProxyConfig, ProviderError> {
    let mut is_here = false;
    for name in SERVICES {
        if let Some(endpoint) = settings.endpoint(name) {
            is_here |= is_loopback(name, endpoint)?;
        }
    }
    // The SDK would read the environment by itself, and then send the machine's own credentials through
    // the proxy: it adds no exceptions to what it finds there.
    let (whose, known) = match &settings.proxy {
        Some(cluster) => ("cluster", Some(cluster.clone())),
        None if is_here => ("environment", None),
        None => ("environment", ProxySettings::of_environment(environment)),
    };
    let Some(known) = known else { return Ok(ProxyConfig::disabled()) };
    let proxy = match known.route(SERVICES.map(|name| settings.endpoint(name))) {
        Route::Direct => return Ok(ProxyConfig::disabled()),
        Route::Http(url) => ProxyConfig::http(url.as_str()),
        Route::Https(url) => ProxyConfig::https(url.as_str()),
        Route::All(url) => ProxyConfig::all(url.as_str()),
    };
    // This machine is among what is direct.
    proxy
        .map(|proxy| proxy.no_proxy(known.direct()))
        .map_err(|error| refused(format!("proxy of the {whose}: {}", chain(&error))))
}

/// Those that can be read, in PEM again.
fn readable_certificates(pem: &str) -> String {
    let mut readable = String::new();
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()).flatten() {
        if RootCertStore::empty().add(certificate.clone()).is_ok() {
            let text = STANDARD.encode(&certificate);
            readable.push_str(&format!(
                "-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n"
            ));
        }
    }
    readable
}

/// The connector panics on a certificate that it cannot read, so it gets none.
fn check_certificates(pem: &str) -> Result<(), ProviderError> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        let certificate =
            certificate.map_err(|error| refused(format!("ca bundle: {}", chain(&error))))?;
        roots.add(certificate).map_err(|error| refused(format!("ca bundle: {}", chain(&error))))?;
    }
    if roots.is_empty() {
        return Err(refused("ca bundle: expected at least one PEM certificate".to_owned()));
    }
    Ok(())
}

fn is_loopback(service: &str, endpoint: &str) -> Result<bool, ProviderError> {
    let unusable =
        || refused(format!("endpoint {endpoint:?} of {service}: expected an http or https URL"));
    let uri: http::Uri = endpoint.parse().map_err(|_| unusable())?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err(unusable());
    }
    let host = uri.host().ok_or_else(unusable)?;
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    Ok(host == "localhost" || address.is_ok_and(|address| address.is_loopback()))
}

fn refused(message: String) -> ProviderError {
    ProviderError::new(ErrorClass::InvalidConfiguration, message)
}

#[cfg(test)]
mod tests {
    use super::{super::settings::AwsCredentials, *};

    fn settings(proxy: Option<ProxySettings>) -> AwsSettings {
        AwsSettings { proxy, ..AwsSettings::new("us-east-1", AwsCredentials::DefaultChain) }
    }

    fn through(url: &str) -> Option<ProxySettings> {
        let url = Some(url.to_owned());
        Some(ProxySettings { http: url.clone(), https: url, no_proxy: None })
    }

    fn nothing(_: &str) -> Option<String> {
        None
    }

    /// An environment with one proxy for all.
    fn one_for_all(name: &str) -> Option<String> {
        (name == "ALL_PROXY").then(|| "http://of-environment:3128".to_owned())
    }

    #[test]
    fn the_clusters_proxy_comes_before_that_of_the_environment() {
        assert!(proxy(&settings(None), nothing).unwrap().is_disabled());
        let none = settings(Some(ProxySettings::default()));
        assert!(proxy(&none, one_for_all).unwrap().is_disabled());
        let chosen = proxy(&settings(through("http://proxy:3128")), one_for_all).unwrap();
        assert!(!chosen.is_from_env() && !chosen.is_disabled());
        assert!(format!("{chosen:?}").contains("http://proxy:3128"), "{chosen:?}");
        let here = settings(None).with_one_endpoint("http://127.0.0.1:1");
        assert!(proxy(&here, one_for_all).unwrap().is_disabled());
    }

    /// The SDK's own reading of the environment would send them through the proxy.
    #[test]
    fn credentials_of_the_machine_and_the_pod_never_go_through_a_proxy() {
        let chosen = proxy(&settings(None), one_for_all).unwrap();
        assert!(!chosen.is_from_env() && !chosen.is_disabled());
        let shown = format!("{chosen:?}");
        assert!(shown.contains("169.254.0.0/16") && shown.contains("fd00:ec2::/32"), "{shown}");
    }

    #[test]
    fn a_proxy_that_cannot_be_used_is_refused_without_its_password() {
        let error = proxy(&settings(through("ftp://me:secret@proxy")), nothing).unwrap_err();
        assert_eq!(error.class, ErrorClass::InvalidConfiguration);
        assert!(error.message.starts_with("proxy of the cluster: "), "{error}");
        assert!(!error.message.contains("secret"), "{error}");
    }

    #[test]
    fn certificates_that_cannot_be_read_are_left_out() {
        let bad = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert_eq!(readable_certificates(bad), "");
        assert_eq!(readable_certificates("no certificate"), "");
    }
}
