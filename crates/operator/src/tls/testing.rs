//! A client of our servers in tests: one connection, whose certificate can be looked at, and that is
//! kept open from one request to the next.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::Router;
use rustls::{
    ClientConfig, RootCertStore, SupportedProtocolVersion,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::{TlsConnector, client::TlsStream};
use tokio_util::sync::CancellationToken;

use super::{
    keys::{Pair, ServingKeys},
    self_signed::make::{Made, make},
    server::{Limits, Serving, TlsServer},
    settings::TlsSettings,
};
use crate::{
    engine::{env::Env, supervisor::Supervisor},
    metrics::Metrics,
};

/// Longer than anything takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A certificate for this host, good now.
pub(crate) fn certificate() -> Made {
    make(&["127.0.0.1".to_owned()], Env::system().unwrap().now()).unwrap()
}

/// A server that runs until it is dropped.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) keys: ServingKeys,
    pub(crate) settings: TlsSettings,
    pub(crate) metrics: Metrics,
    pub(crate) supervisor: Supervisor,
    pub(crate) stopping: CancellationToken,
}

impl Running {
    pub(crate) async fn start(router: Router, limits: Limits) -> Self {
        let mut server = TlsServer::bind("test", "127.0.0.1:0".parse().unwrap()).await.unwrap();
        server.limits = limits;
        let running = Self {
            address: server.address,
            keys: ServingKeys::default(),
            settings: TlsSettings::new(None),
            metrics: Metrics::new(),
            supervisor: Supervisor::new(),
            stopping: CancellationToken::new(),
        };
        let serving = Serving {
            keys: running.keys.clone(),
            settings: running.settings.clone(),
            env: Env::system().unwrap(),
            metrics: running.metrics.clone(),
        };
        let run = server.run(router, serving, running.stopping.clone());
        running.supervisor.spawner().spawn("server", run);
        running
    }

    pub(crate) fn show(&self, made: &Made) {
        self.keys.set(&Pair::read(made.certificate.as_bytes(), made.key.as_bytes()).unwrap());
    }
}

/// An open connection.
pub(crate) struct Connected {
    stream: TlsStream<TcpStream>,
}

impl Connected {
    /// Connects to whoever has a certificate of these authorities.
    pub(crate) async fn to(address: SocketAddr, authorities: &str) -> anyhow::Result<Self> {
        Self::with_versions(address, authorities, rustls::ALL_VERSIONS).await
    }

    pub(crate) async fn with_versions(
        address: SocketAddr,
        authorities: &str,
        versions: &[&'static SupportedProtocolVersion],
    ) -> anyhow::Result<Self> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(authorities.as_bytes()) {
            roots.add(certificate?)?;
        }
        let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_protocol_versions(versions)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::from(address.ip());
        let connect = async {
            let stream = TcpStream::connect(address).await?;
            TlsConnector::from(Arc::new(config)).connect(name, stream).await
        };
        Ok(Self { stream: tokio::time::timeout(PATIENCE, connect).await?? })
    }

    /// Sends a request and returns the status code and the body of the answer.
    pub(crate) async fn ask(&mut self, head: &str, body: &[u8]) -> anyhow::Result<(u16, String)> {
        self.send(head, body).await?;
        tokio::time::timeout(PATIENCE, self.answer()).await?
    }

    pub(crate) async fn get(&mut self, path: &str) -> anyhow::Result<(u16, String)> {
        self.ask(&format!("GET {path} HTTP/1.1\r\nhost: x\r\n"), b"").await
    }

    pub(crate) async fn send(&mut self, head: &str, body: &[u8]) -> anyhow::Result<()> {
        let head = format!("{head}content-length: {}\r\n\r\n", body.len());
        self.stream.write_all(&[head.as_bytes(), body].concat()).await?;
        Ok(self.stream.flush().await?)
    }

    pub(crate) async fn answer(&mut self) -> anyhow::Result<(u16, String)> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.stream.read_u8().await?);
        }
        let head = String::from_utf8(head)?.to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.unwrap_or("0").parse()?];
        self.stream.read_exact(&mut body).await?;
        let status = head.split(' ').nth(1).unwrap_or_default().parse()?;
        Ok((status, String::from_utf8(body)?))
    }
}
