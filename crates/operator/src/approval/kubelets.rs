//! How a kubelet is asked for the certificate that it serves with: the seam at which real kubelets
//! are put in, or others.

use std::{net::IpAddr, sync::Arc, time::Duration};

use anyhow::{Context as _, ensure};
use async_trait::async_trait;
use rustls::{
    ClientConfig, RootCertStore,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Where every kubelet serves.
const PORT: u16 = 10250;
/// How long a kubelet may take; a request waits meanwhile, and others behind it.
const TIMEOUT: Duration = Duration::from_secs(5);

#[async_trait]
pub trait Kubelets: Send + Sync {
    /// The certificate, in DER, that the kubelet of this Node serves with at this address: only if
    /// one of the authorities (PEM) signed it, for a server of the Node's name, and it is valid now.
    async fn serving_certificate(
        &self,
        node: &str,
        address: IpAddr,
        authorities: &str,
    ) -> anyhow::Result<Vec<u8>>;
}

/// Kubelets that nobody can reach, where there are none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unreachable;

#[async_trait]
impl Kubelets for Unreachable {
    async fn serving_certificate(
        &self,
        node: &str,
        _address: IpAddr,
        _authorities: &str,
    ) -> anyhow::Result<Vec<u8>> {
        anyhow::bail!("the kubelet of node {node} cannot be reached")
    }
}

/// Kubelets of the real world, over TLS. Nothing is sent to them but the handshake.
#[derive(Clone, Copy, Debug)]
pub struct OverTls {
    port: u16,
}

impl Default for OverTls {
    fn default() -> Self {
        Self { port: PORT }
    }
}

#[async_trait]
impl Kubelets for OverTls {
    async fn serving_certificate(
        &self,
        node: &str,
        address: IpAddr,
        authorities: &str,
    ) -> anyhow::Result<Vec<u8>> {
        let asked = handshake(node, address, self.port, authorities);
        tokio::time::timeout(TIMEOUT, asked)
            .await
            .with_context(|| format!("the kubelet of node {node} at {address} does not answer"))?
            .with_context(|| format!("the kubelet of node {node} at {address} is not trusted"))
    }
}

async fn handshake(
    node: &str,
    address: IpAddr,
    port: u16,
    authorities: &str,
) -> anyhow::Result<Vec<u8>> {
    let config = trusting(authorities)?;
    let name = ServerName::try_from(node.to_owned()).unwrap_or_else(|_| address.into());
    let connection = TcpStream::connect((address, port)).await?;
    let stream = TlsConnector::from(Arc::new(config)).connect(name, connection).await?;
    let (_, session) = stream.get_ref();
    let served = session.peer_certificates().and_then(<[_]>::first);
    Ok(served.context("it shows no certificate")?.to_vec())
}

fn trusting(authorities: &str) -> anyhow::Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(authorities.as_bytes()) {
        roots.add(certificate.context("the CA of kubelets is not PEM")?)?;
    }
    ensure!(!roots.is_empty(), "the CA of kubelets is empty");
    let provider = Arc::new(aws_lc_rs::default_provider());
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth())
}

#[cfg(test)]
mod tests;
