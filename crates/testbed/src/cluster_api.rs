//! How do Cluster API's own programs run beside the testbed's API server?
//!
//! Its infrastructure provider, unmodified, with the in-memory backend: machines, Nodes and whole workload
//! API servers live in that process, and no Docker is needed. And its core manager, which does what
//! Machinist does in its place: tests and benchmarks compare the two. None of their webhooks is
//! registered, so nothing is defaulted: [`objects`] writes everything out.

pub mod objects;
pub mod pod;

use std::ffi::OsString;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use self::pod::Pod;
use crate::api_access::ADMINISTRATORS;
use crate::cluster::Cluster;
use crate::control_plane::free_ports;
use crate::manifests::{apply_definitions, documents};
use crate::operator_process::{OperatorConfig, OperatorProcess};
use crate::pki::Authority;
use crate::programs::{self, ClusterApiPrograms, Progress};

/// The core manager's user in the audit log.
pub const CORE_USER: &str = "cluster-api-core";
/// The provider's user in the audit log.
pub const PROVIDER_USER: &str = "cluster-api-provider";

/// The provider's debug server listens here and nowhere else, so there is one provider on a machine.
const DEBUG_PORT: u16 = 19_000;
/// Another run on the same machine may have to end first.
const PATIENCE: Duration = Duration::from_secs(900);
const POLL: Duration = Duration::from_millis(500);

/// A cluster that serves Cluster API's kinds, as they come from Cluster API.
#[derive(Clone, Debug)]
pub struct ClusterApi {
    programs: ClusterApiPrograms,
    folder: PathBuf,
}

impl ClusterApi {
    /// Finds the programs, building them where they are missing, and installs the definitions.
    pub async fn install(cluster: &Cluster, progress: Progress) -> anyhow::Result<Self> {
        let programs = programs::ensure_cluster_api(progress).await?;
        apply_definitions(cluster.admin(), definitions(&programs.crds)?).await?;
        let folder = cluster.folder().join("cluster-api");
        write_webhook_identity(&folder)?;
        Ok(Self { programs, folder })
    }

    /// Starts the provider, for all namespaces. Waits for that of another run on this machine to end.
    pub async fn start_provider(&self, cluster: &Cluster) -> anyhow::Result<OperatorProcess> {
        wait_for_debug_port().await?;
        let arguments = vec![
            // The in-memory machines need no pools, and the provider more requests than its defaults:
            // it is not what is measured.
            "--feature-gates=MachinePool=false".into(),
            "--kube-api-qps=1000".into(),
            "--kube-api-burst=2000".into(),
        ];
        let environment = vec![
            // Where the workload API servers listen.
            ("POD_IP".to_owned(), Ipv4Addr::LOCALHOST.to_string().into()),
            // There is none; the other backend is never asked for.
            ("DOCKER_HOST".to_owned(), "unix:///nonexistent/docker.sock".into()),
        ];
        let config =
            self.config(cluster, PROVIDER_USER, &self.programs.provider, arguments, environment)?;
        cluster.start_operator(config).await
    }

    /// Starts the core manager, for the objects of one place (see [`objects::labels`]) and with its default
    /// settings. Its own flag `--namespace` is no use: with it MachineSets and MachineDeployments fail at
    /// "failed to cast MachineSet informer to SharedIndexInformer" (v1.14.0).
    pub async fn start_core(
        &self,
        cluster: &Cluster,
        place: &str,
    ) -> anyhow::Result<OperatorProcess> {
        let arguments = vec![format!("--watch-filter={place}").into()];
        let config = self.config(cluster, CORE_USER, &self.programs.core, arguments, Vec::new())?;
        cluster.start_operator(config).await
    }

    /// Starts the core manager as a Pod of its Deployment, with the arguments that stand there: for the objects of all
    /// namespaces, and with `--leader-elect` only while it holds its lease in that namespace.
    pub async fn start_core_as(
        &self,
        pod: &Pod<'_>,
        cluster: &Cluster,
        arguments: Vec<OsString>,
    ) -> anyhow::Result<OperatorProcess> {
        let config = self.config(cluster, CORE_USER, &self.programs.core, arguments, Vec::new())?;
        cluster.start_operator(pod.around(config)).await
    }

    fn config(
        &self,
        cluster: &Cluster,
        user: &str,
        program: &Path,
        mut arguments: Vec<OsString>,
        environment: Vec<(String, OsString)>,
    ) -> anyhow::Result<OperatorConfig> {
        let path = self.folder.join(format!("{user}.kubeconfig"));
        let kubeconfig = cluster.access().write_kubeconfig(&path, user, Some(ADMINISTRATORS))?;
        let [webhook_port] = free_ports()?;
        let mut flag = |name: &str, value: &Path| {
            let mut flag = OsString::from(format!("--{name}="));
            flag.push(value);
            arguments.push(flag);
        };
        flag("kubeconfig", &kubeconfig);
        flag("webhook-cert-dir", &self.folder);
        arguments.extend([
            format!("--webhook-port={webhook_port}").into(),
            "--health-addr=0".into(),
            "--diagnostics-address=0".into(),
        ]);
        Ok(OperatorConfig {
            // Several run in one cluster, each in a namespace of its own.
            name: format!("{user}-{webhook_port}"),
            program: program.to_owned(),
            arguments,
            environment,
        })
    }
}

/// Both managers serve webhooks, whether anybody calls them or not.
fn write_webhook_identity(folder: &Path) -> anyhow::Result<()> {
    let describe = || format!("cannot write to {}", folder.display());
    std::fs::create_dir_all(folder).with_context(describe)?;
    let identity = Authority::new("machinist-testbed-cluster-api")?
        .server("cluster-api", &["localhost", "127.0.0.1"])?;
    std::fs::write(folder.join("tls.crt"), identity.certificate).with_context(describe)?;
    std::fs::write(folder.join("tls.key"), identity.key).with_context(describe)
}

/// The definitions of a folder, with the labels that Cluster API's own installation adds: they say
/// which version of a kind speaks which contract.
fn definitions(folder: &Path) -> anyhow::Result<Vec<Value>> {
    let describe = || format!("cannot read {}", folder.display());
    let mut definitions = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(describe)? {
        let text = std::fs::read_to_string(entry?.path()).with_context(describe)?;
        for mut definition in documents(&text)? {
            definition["metadata"]["labels"] = objects::contract_labels();
            // Nobody converts here: what is written in the newest version is read in it.
            definition["spec"]["conversion"] = json!({ "strategy": "None" });
            definitions.push(definition);
        }
    }
    Ok(definitions)
}

async fn wait_for_debug_port() -> anyhow::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    let mut is_told = false;
    loop {
        match TcpListener::bind((Ipv4Addr::UNSPECIFIED, DEBUG_PORT)) {
            Ok(_) => return Ok(()),
            Err(error) if Instant::now() > deadline => {
                bail!("port {DEBUG_PORT}, which the in-memory provider needs, is taken: {error}")
            }
            Err(_) if !is_told => {
                eprintln!(
                    "port {DEBUG_PORT} is taken; waiting for another in-memory provider to end"
                );
                is_told = true;
            }
            Err(_) => {}
        }
        sleep(POLL).await;
    }
}
