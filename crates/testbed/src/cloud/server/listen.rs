//! How does a connection become calls? Accept loops for HTTP and HTTPS, one task for each connection.

use std::time::Duration;

use anyhow::Context;
use axum::body::Body;
use hyper::{Request, Response, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;

use super::{CloudHandle, admin, ec2, metadata};

/// A client that opens a connection and says nothing must not hold a task for ever.
const HANDSHAKE_DEADLINE: Duration = Duration::from_secs(10);
/// How long to wait after a failed accept: out of file descriptors does not pass in a microsecond.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A certificate chain and its key, both as PEM text.
#[derive(Clone)]
pub struct TlsPem {
    pub certificate_chain: String,
    pub private_key: String,
}

impl std::fmt::Debug for TlsPem {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("TlsPem")
    }
}

pub(super) fn tls_acceptor(tls: &TlsPem) -> anyhow::Result<TlsAcceptor> {
    let chain = CertificateDer::pem_slice_iter(tls.certificate_chain.as_bytes())
        .collect::<Result<Vec<_>, _>>()
        .context("reading the certificate chain")?;
    let key = PrivateKeyDer::from_pem_slice(tls.private_key.as_bytes())
        .context("reading the private key")?;
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let config = rustls::ServerConfig::builder_with_provider(provider.into())
        .with_safe_default_protocol_versions()
        .context("choosing TLS versions")?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .context("using the certificate with its key")?;
    Ok(TlsAcceptor::from(std::sync::Arc::new(config)))
}

pub(super) async fn serve_ec2(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    handle: CloudHandle,
) {
    accept(listener, move |stream| {
        let handle = handle.clone();
        let tls = tls.clone();
        async move {
            let service = service_fn(move |request: Request<Incoming>| {
                let handle = handle.clone();
                async move {
                    if request.uri().path().starts_with(metadata::PREFIX) {
                        return metadata::answer(&handle, request).await;
                    }
                    ec2::answer(&handle, request).await
                }
            });
            match tls {
                None => serve_connection(stream, service).await,
                Some(tls) => {
                    let handshake = tokio::time::timeout(HANDSHAKE_DEADLINE, tls.accept(stream));
                    match handshake.await {
                        Ok(Ok(stream)) => serve_connection(stream, service).await,
                        Ok(Err(error)) => tracing::debug!(%error, "tls handshake failed"),
                        Err(_) => tracing::debug!("tls handshake took too long"),
                    }
                }
            }
        }
    })
    .await;
}

pub(super) async fn serve_admin(listener: TcpListener, handle: CloudHandle) {
    let router = admin::router(handle);
    accept(listener, move |stream| {
        let router = router.clone();
        async move {
            serve_connection(stream, TowerToHyperService::new(router)).await;
        }
    })
    .await;
}

async fn accept<F, C>(listener: TcpListener, connection: F)
where
    F: Fn(TcpStream) -> C,
    C: Future<Output = ()> + Send + 'static,
{
    // Owned by this task, so the connections end with the server.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    stream.set_nodelay(true).ok();
                    connections.spawn(connection(stream));
                }
                Err(error) => {
                    tracing::warn!(%error, "accepting a connection failed");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
}

async fn serve_connection<I, S>(stream: I, service: S)
where
    I: AsyncRead + AsyncWrite + Unpin,
    S: hyper::service::Service<Request<Incoming>, Response = Response<Body>>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection ended early");
    }
}
