//! How is the page served without TLS, on this host only?

use std::net::SocketAddr;

use anyhow::Context as _;
use axum::Router;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// A server that is bound and not yet serving.
#[derive(Debug)]
pub struct PlainServer {
    listener: TcpListener,
    pub address: SocketAddr,
}

impl PlainServer {
    /// Binds an address. Port 0 takes a free port.
    ///
    /// # Errors
    /// Fails, naming the address, when it cannot be bound.
    pub async fn bind(address: SocketAddr) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(address)
            .await
            .with_context(|| format!("failed to listen on {address} for the page"))?;
        let address = listener.local_addr().context("failed to read the bound address")?;
        tracing::info!(%address, "serving the page without TLS");
        Ok(Self { listener, address })
    }

    /// Serves until told to stop.
    ///
    /// # Errors
    /// Fails when the listener fails.
    pub async fn run(self, router: Router, stopping: CancellationToken) -> anyhow::Result<()> {
        tokio::select! {
            biased;
            () = stopping.cancelled() => Ok(()),
            served = async { axum::serve(self.listener, router).await } => {
                served.context("failed to serve the page")
            }
        }
    }
}
