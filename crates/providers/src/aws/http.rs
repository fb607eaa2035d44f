//! How do the bytes travel to AWS: which certificates are trusted, and through which proxy?

use aws_sdk_ec2::config::SharedHttpClient;
use aws_smithy_http_client::{
    Builder, Connector,
    proxy::ProxyConfig,
    tls::{Provider as TlsProvider, TlsContext, TrustStore, rustls_provider::CryptoMode},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use machinist_core::proxy::Route;
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
/// (`HTTPS_PROXY`, `NO_PROXY`). An endpoint on this machine is reached by no proxy.
pub(super) fn http_client(settings: &AwsSettings) -> Result<SharedHttpClient, ProviderError> {
    let mut trust_store = TrustStore::default();
    if let Some(pem) = &settings.ca_bundle_pem {
        check_certificates(pem)?;
        trust_store = trust_store.with_pem_certificate(pem.as_str());
    }
    if let Some(pem) = &settings.trusted_ca_pem {
        trust_store = trust_store.with_pem_certificate(readable_certificates(pem));
    }
    let proxy = proxy(settings)?;
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

fn proxy(settings: &AwsSettings) -> Result<ProxyConfig, ProviderError> {
    let mut is_here = false;
    for name in SERVICES {
        if let Some(endpoint) = settings.endpoint(name) {
            is_here |= is_loopback(name, endpoint)?;
        }
    }
    let Some(cluster) = &settings.proxy else {
        let proxy = if is_here { ProxyConfig::disabled() } else { ProxyConfig::from_env() };
        return Ok(proxy);
    };
    let proxy = match cluster.route(SERVICES.map(|name| settings.endpoint(name))) {
        Route::Direct => return Ok(ProxyConfig::disabled()),
        Route::Http(url) => ProxyConfig::http(url.as_str()),
        Route::Https(url) => ProxyConfig::https(url.as_str()),
        Route::All(url) => ProxyConfig::all(url.as_str()),
    };
    // This machine is among what is direct.
    proxy
        .map(|proxy| proxy.no_proxy(cluster.direct()))
        .map_err(|error| refused(format!("proxy of the cluster: {}", chain(&error))))
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
    use machinist_core::proxy::ProxySettings;

    use super::{super::settings::AwsCredentials, *};

    fn settings(proxy: Option<ProxySettings>) -> AwsSettings {
        AwsSettings { proxy, ..AwsSettings::new("us-east-1", AwsCredentials::DefaultChain) }
    }

    fn through(url: &str) -> Option<ProxySettings> {
        let url = Some(url.to_owned());
        Some(ProxySettings { http: url.clone(), https: url, no_proxy: None })
    }

    #[test]
    fn the_clusters_proxy_comes_before_that_of_the_environment() {
        assert!(proxy(&settings(None)).unwrap().is_from_env());
        assert!(proxy(&settings(Some(ProxySettings::default()))).unwrap().is_disabled());
        let chosen = proxy(&settings(through("http://proxy:3128"))).unwrap();
        assert!(!chosen.is_from_env() && !chosen.is_disabled());
        let here = settings(None).with_one_endpoint("http://127.0.0.1:1");
        assert!(proxy(&here).unwrap().is_disabled());
    }

    #[test]
    fn a_proxy_that_cannot_be_used_is_refused_without_its_password() {
        let error = proxy(&settings(through("ftp://me:secret@proxy"))).unwrap_err();
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
