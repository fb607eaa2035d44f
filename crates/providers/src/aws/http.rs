//! How do the bytes travel to AWS: which certificates are trusted, and through which proxy?

use aws_sdk_ec2::config::SharedHttpClient;
use aws_smithy_http_client::{
    Builder, Connector,
    proxy::ProxyConfig,
    tls::{Provider as TlsProvider, TlsContext, TrustStore, rustls_provider::CryptoMode},
};
use rustls::{
    RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};

use super::{errors::chain, settings::AwsSettings};
use crate::{ErrorClass, ProviderError, service};

/// Builds the one client whose connections all calls share.
///
/// The proxy of the environment (`HTTPS_PROXY`, `NO_PROXY`) is used, as OpenShift sets it, except
/// where an endpoint is on this machine, which no proxy could reach.
pub(super) fn http_client(settings: &AwsSettings) -> Result<SharedHttpClient, ProviderError> {
    let mut trust_store = TrustStore::default();
    if let Some(pem) = &settings.ca_bundle_pem {
        check_certificates(pem)?;
        trust_store = trust_store.with_pem_certificate(pem.as_str());
    }
    let mut proxy = ProxyConfig::from_env();
    for name in [service::EC2, service::ELASTIC_LOAD_BALANCING, service::SQS, service::STS] {
        if let Some(endpoint) = settings.endpoint(name)
            && is_loopback(name, endpoint)?
        {
            proxy = ProxyConfig::disabled();
        }
    }
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
