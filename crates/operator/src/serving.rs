//! Which servers does the process run over TLS, and whose certificates do they show?
//!
//! Wiring only: the flags, the certificates that are followed, the servers of admission (`webhook`), of the
//! metrics (`scrape`) and of the page, which alone may also be served without TLS, on this host.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use axum::Router;
use clap::{ArgAction, Args};
use kube::Client;
use machinist_api::openshift_config::{ApiServer, Infrastructure};
use machinist_core::{
    admission::configuration,
    tls_profile::{Chosen, TlsVersion, Wanted},
};

use crate::{
    engine::{env::Env, store::Store, supervisor::Spawner},
    http::Readiness,
    metrics::Metrics,
    page::{PlainServer, args::PageArgs},
    scrape,
    tls::{
        files::Folder,
        keys::ServingKeys,
        self_signed::SelfSigned,
        server::{Serving, TlsServer},
        settings::TlsSettings,
        trust::{Authorities, CaBundle, CaBundleSource},
    },
    webhook,
};

/// The servers' names in logs and metrics.
const WEBHOOK: &str = "webhook";
const METRICS: &str = "metrics";
const PAGE: &str = "page";

/// A page listens for as long as it is open, and each page of a browser has a few connections.
const PAGE_CONNECTIONS: usize = 512;
const PAGE_AGE: std::time::Duration = std::time::Duration::from_secs(60 * 60);

/// Services that may lead to us besides that of the webhooks.
const OTHER_SERVICES: [&str; 3] =
    ["machine-api-operator", "machine-api-controllers", "machinist-page"];

/// The flags of what is served over TLS.
#[derive(Args, Clone, Debug)]
pub struct ServingArgs {
    /// Answers the API server's questions about Machines and MachineSets that are created or changed.
    #[arg(
        long,
        value_name = "BOOL",
        default_value_t = true,
        default_missing_value = "true",
        num_args = 0..=1,
        action = ArgAction::Set
    )]
    pub webhooks: bool,

    /// Address at which the API server's questions are answered, over TLS; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8443")]
    pub webhook_address: SocketAddr,

    /// File to which the bound address is written, once it is.
    #[arg(long, value_name = "FILE")]
    pub webhook_address_file: Option<PathBuf>,

    /// Folder with tls.crt and tls.key, as cert-manager's and service-ca's Secrets are mounted, and
    /// perhaps ca.crt. Followed without a restart. Without it a certificate is made and kept in the
    /// Secret machine-api-operator-webhook-cert.
    #[arg(long, value_name = "FOLDER")]
    pub webhook_cert_dir: Option<PathBuf>,

    /// Address of /metrics over TLS, for those whose token may get it; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS")]
    pub metrics_tls_address: Option<SocketAddr>,

    /// File to which the bound address is written, once it is.
    #[arg(long, value_name = "FILE")]
    pub metrics_tls_address_file: Option<PathBuf>,

    /// Folder with tls.crt and tls.key for --metrics-tls-address, by default the webhooks' certificate.
    #[arg(long, value_name = "FOLDER")]
    pub metrics_cert_dir: Option<PathBuf>,

    /// Serves /metrics at --http-address too, to everybody who reaches it.
    #[arg(
        long,
        value_name = "BOOL",
        default_value_t = true,
        default_missing_value = "true",
        num_args = 0..=1,
        action = ArgAction::Set
    )]
    pub http_metrics: bool,

    /// Oldest version of TLS that is spoken, VersionTLS12 or VersionTLS13, instead of the cluster's.
    #[arg(long, value_name = "VERSION", value_parser = tls_version)]
    pub tls_min_version: Option<String>,

    /// Ciphers of TLS 1.2 that are spoken, by their names of IANA or OpenSSL, instead of the cluster's.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub tls_cipher_suites: Vec<String>,
}

fn tls_version(text: &str) -> Result<String, String> {
    TlsVersion::read(text).map(|_| text.to_owned()).map_err(|error| error.problem)
}

/// Servers that are bound and not yet serving, whose certificates are followed already.
pub struct TlsServers {
    webhook: Option<(TlsServer, ServingKeys)>,
    metrics: Option<(TlsServer, ServingKeys)>,
    page: Option<PageServer>,
    /// Whom the API server must trust to ask us.
    pub ca_bundle: CaBundle,
    /// What is spoken; whoever knows the cluster's profile says it here.
    pub settings: TlsSettings,
}

/// How the page is served.
enum PageServer {
    Tls(TlsServer, ServingKeys),
    Plain(PlainServer),
}

/// What the servers are made of.
#[derive(Clone, Copy)]
pub struct Parts<'a> {
    pub client: &'a Client,
    pub namespace: &'a str,
    pub env: &'a Env,
    pub metrics: &'a Metrics,
    pub spawner: &'a Spawner,
}

impl TlsServers {
    /// Binds the addresses that flags name, and begins to follow the certificates.
    ///
    /// # Errors
    /// Fails when an address cannot be bound or told.
    pub async fn bind(
        args: &ServingArgs,
        page: &PageArgs,
        parts: Parts<'_>,
    ) -> anyhow::Result<Self> {
        page.check()?;
        let webhook = match args.webhooks {
            true => Some(TlsServer::bind(WEBHOOK, args.webhook_address).await?),
            false => None,
        };
        let metrics = match args.metrics_tls_address {
            Some(address) => Some(TlsServer::bind(METRICS, address).await?),
            None => None,
        };
        let (paged, plain) = match page.page_address {
            Some(address) if page.page_plain_http => {
                (None, Some(PlainServer::bind(address).await?))
            }
            Some(address) => (Some(TlsServer::bind(PAGE, address).await?), None),
            None => (None, None),
        };
        let address = |server: Option<&TlsServer>| server.map(|server| server.address);
        tell_address(address(webhook.as_ref()), args.webhook_address_file.as_deref())?;
        tell_address(address(metrics.as_ref()), args.metrics_tls_address_file.as_deref())?;
        let page_address =
            address(paged.as_ref()).or_else(|| plain.as_ref().map(|server| server.address));
        tell_address(page_address, page.page_address_file.as_deref())?;

        let shares = (metrics.is_some() && args.metrics_cert_dir.is_none())
            || (paged.is_some() && page.page_cert_dir.is_none());
        let (keys, ca_bundle) = match webhook.is_some() || shares {
            true => follow_certificate(args, parts),
            false => (ServingKeys::default(), CaBundle::fixed(Authorities::ToldByOthers)),
        };
        let metrics_keys = match &args.metrics_cert_dir {
            Some(path) if metrics.is_some() => follow_folder(METRICS, path, None, parts),
            Some(_) | None => keys.clone(),
        };
        let page_keys = match &page.page_cert_dir {
            Some(path) if paged.is_some() => follow_folder(PAGE, path, None, parts),
            Some(_) | None => keys.clone(),
        };
        let paged = paged.map(|mut server| {
            server.limits.connections = PAGE_CONNECTIONS;
            server.limits.age = PAGE_AGE;
            PageServer::Tls(server, page_keys)
        });
        Ok(Self {
            page: paged.or_else(|| plain.map(PageServer::Plain)),
            webhook: webhook.map(|server| (server, keys)),
            metrics: metrics.map(|server| (server, metrics_keys)),
            ca_bundle,
            settings: TlsSettings::new(flags(args)),
        })
    }

    /// The address of the webhooks, where they are served.
    #[must_use]
    pub fn webhook_address(&self) -> Option<SocketAddr> {
        self.webhook.as_ref().map(|(server, _)| server.address)
    }

    /// Begins to serve, once it is known what the cluster wants to be spoken: a client must not be
    /// offered less, not even for the first seconds. A replica that does not know it, or is without a
    /// certificate, is not ready.
    pub fn start(
        self,
        parts: Parts<'_>,
        readiness: &Readiness,
        api_servers: &Store<ApiServer>,
        infrastructures: &Store<Infrastructure>,
        region: Option<String>,
        page: impl FnOnce() -> Router,
    ) {
        let Parts { client, namespace, env, metrics, spawner } = parts;
        let settings = self.settings;
        let profiles = (!settings.are_fixed()).then(|| api_servers.clone());
        if let Some(profiles) = profiles.clone() {
            let is_known = move || profiles.is_synced();
            readiness.require("the TLS profile of the cluster is known", is_known);
        }
        // Until everything else has stopped: a user's request should not wait for our end.
        let start = |(server, keys): (TlsServer, ServingKeys), router| {
            let (name, followed) = (server.name, keys.clone());
            readiness.require(format!("the {name} server has a certificate"), move || {
                followed.are_there()
            });
            let serving = Serving {
                keys,
                settings: settings.clone(),
                env: env.clone(),
                metrics: metrics.clone(),
            };
            let (stopping, profiles) = (spawner.stopping_last(), profiles.clone());
            spawner.spawn_last(format!("{name} server"), async move {
                if let Some(profiles) = profiles {
                    tokio::select! {
                        biased;
                        () = stopping.cancelled() => return Ok(()),
                        () = profiles.synced() => {}
                    }
                }
                server.run(router, serving, stopping).await
            });
        };
        if let Some(webhook) = self.webhook {
            let cluster = webhook::Cluster {
                client: client.clone(),
                infrastructures: infrastructures.clone(),
                namespace: namespace.to_owned(),
                region,
            };
            start(webhook, webhook::router(cluster, env, metrics));
        }
        if let Some(server) = self.metrics {
            let access = scrape::Access::new(client, namespace, env);
            start(server, scrape::router(access, metrics));
        }
        match self.page {
            Some(PageServer::Tls(server, keys)) => start((server, keys), page()),
            Some(PageServer::Plain(server)) => {
                let (router, stopping) = (page(), spawner.stopping());
                spawner.spawn("page server", server.run(router, stopping));
            }
            None => {}
        }
    }
}

fn flags(args: &ServingArgs) -> Option<Chosen> {
    let ciphers = Some(args.tls_cipher_suites.as_slice()).filter(|names| !names.is_empty());
    let wanted = Wanted { min_version: args.tls_min_version.as_deref(), cipher_suites: ciphers };
    (wanted != Wanted::default()).then(|| Chosen::of_wanted(wanted))
}

fn tell_address(address: Option<SocketAddr>, file: Option<&Path>) -> anyhow::Result<()> {
    if let (Some(address), Some(file)) = (address, file) {
        fs::write(file, format!("{address}\n"))
            .with_context(|| format!("failed to write {}", file.display()))?;
    }
    Ok(())
}

/// The webhooks' certificate: out of its folder, or made by us.
fn follow_certificate(args: &ServingArgs, parts: Parts<'_>) -> (ServingKeys, CaBundle) {
    if let Some(path) = &args.webhook_cert_dir {
        let source = CaBundleSource::new();
        let bundle = source.bundle();
        return (follow_folder(WEBHOOK, path, Some(source), parts), bundle);
    }
    let Parts { client, namespace, env, metrics, spawner } = parts;
    let names = names(namespace);
    let own = SelfSigned::new(client, namespace, names, WEBHOOK, env, metrics);
    let (keys, bundle) = (own.keys(), own.bundle());
    spawner.spawn("serving certificate", own.run());
    (keys, bundle)
}

fn follow_folder(
    server: &'static str,
    path: &Path,
    bundle: Option<CaBundleSource>,
    parts: Parts<'_>,
) -> ServingKeys {
    let keys = ServingKeys::default();
    let folder = Folder {
        server,
        path: path.to_owned(),
        keys: keys.clone(),
        bundle,
        env: parts.env.clone(),
        metrics: parts.metrics.clone(),
    };
    parts.spawner.spawn(format!("certificate of the {server} server"), folder.run());
    keys
}

/// What our own certificate stands for: the Services, and this host for an API server that runs on it.
fn names(namespace: &str) -> Vec<String> {
    let services = [configuration::SERVICE].into_iter().chain(OTHER_SERVICES);
    let mut names: Vec<String> = services
        .flat_map(|service| {
            let short = format!("{service}.{namespace}.svc");
            [format!("{short}.cluster.local"), short]
        })
        .collect();
    names.extend(["localhost", "127.0.0.1", "::1"].map(str::to_owned));
    names
}

#[cfg(test)]
mod tests;
