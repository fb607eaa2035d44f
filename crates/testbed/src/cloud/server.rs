//! How do clients reach the simulated cloud? Loopback listeners around the pure model.
//!
//! The shell reads the clock, locks the model for one call at a time, and sends what the model said.
//! It decides nothing.

mod admin;
mod ec2;
mod elb_requests;
mod handle;
mod launch_request;
mod listen;
mod metadata;
mod query;
mod requests;
mod responses;
#[cfg(test)]
mod tests;
mod xml;

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::Context;
use tokio::{net::TcpListener, task::JoinSet};

pub use handle::{BreakpointHandle, CloudHandle};
pub use listen::TlsPem;

use super::model::{Cloud, CloudConfig};

/// What to serve, and where. Port 0 takes any free port.
#[derive(Debug, Clone, Default)]
pub struct ServeOptions {
    pub cloud: CloudConfig,
    pub seed: u64,
    pub ec2_port: u16,
    pub ec2_tls_port: u16,
    pub admin_port: u16,
}

impl From<CloudConfig> for ServeOptions {
    fn from(cloud: CloudConfig) -> Self {
        Self { cloud, ..Self::default() }
    }
}

/// A running cloud. Dropping it ends its tasks and closes its ports.
#[derive(Debug)]
pub struct CloudServer {
    handle: CloudHandle,
    ec2: SocketAddr,
    ec2_tls: Option<SocketAddr>,
    admin: SocketAddr,
    tasks: JoinSet<()>,
}

/// Starts the cloud on loopback: EC2 over HTTP, EC2 over HTTPS where a certificate is given, and the
/// admin API.
pub async fn serve(
    options: impl Into<ServeOptions>,
    tls: Option<TlsPem>,
) -> anyhow::Result<CloudServer> {
    let options = options.into();
    let handle = CloudHandle::new(Cloud::new(options.cloud, options.seed));
    let mut tasks = JoinSet::new();

    let (listener, ec2) = bind(options.ec2_port).await?;
    tasks.spawn(listen::serve_ec2(listener, None, handle.clone()));

    let mut ec2_tls = None;
    if let Some(tls) = tls {
        let acceptor = listen::tls_acceptor(&tls).context("the EC2 endpoint's certificate")?;
        let (listener, address) = bind(options.ec2_tls_port).await?;
        tasks.spawn(listen::serve_ec2(listener, Some(acceptor), handle.clone()));
        ec2_tls = Some(address);
    }

    let (listener, admin) = bind(options.admin_port).await?;
    tasks.spawn(listen::serve_admin(listener, handle.clone()));
    tasks.spawn(handle.clone().run_transitions());

    Ok(CloudServer { handle, ec2, ec2_tls, admin, tasks })
}

impl CloudServer {
    pub fn handle(&self) -> CloudHandle {
        self.handle.clone()
    }

    pub fn ec2_url(&self) -> String {
        format!("http://{}", self.ec2)
    }

    /// Returns the HTTPS endpoint; none when no certificate was given.
    pub fn ec2_tls_url(&self) -> Option<String> {
        self.ec2_tls.map(|address| format!("https://{address}"))
    }

    /// Returns where the guest of an instance finds its metadata service.
    pub fn metadata_url(&self, instance_id: &str) -> String {
        format!("{}{}{instance_id}", self.ec2_url(), metadata::PREFIX)
    }

    pub fn admin_url(&self) -> String {
        format!("http://{}", self.admin)
    }

    /// Waits until a task of the server ends, which only a panic in it can cause.
    pub async fn failed(&mut self) -> anyhow::Error {
        match self.tasks.join_next().await {
            Some(Err(error)) => anyhow::Error::new(error).context("a task of the simulated cloud"),
            Some(Ok(())) | None => anyhow::anyhow!("a task of the simulated cloud ended"),
        }
    }
}

async fn bind(port: u16) -> anyhow::Result<(TcpListener, SocketAddr)> {
    let wanted = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let listener = TcpListener::bind(wanted)
        .await
        .with_context(|| format!("binding {wanted} for the simulated cloud"))?;
    let address = listener.local_addr().context("reading the bound address")?;
    Ok((listener, address))
}
