//! How do etcd, kube-apiserver, kube-controller-manager and kube-scheduler become a control plane?

mod credentials;
mod flags;
mod ready;

use std::ffi::OsString;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;

use crate::api_access::ApiAccess;
use crate::guard::Guard;
use crate::pki::Authority;
use crate::process::{Launch, Process};
use crate::programs::Programs;

use credentials::Credentials;

/// How quickly the node lifecycle controller notices that a kubelet fell silent.
#[derive(Clone, Copy, Debug)]
pub struct NodeMonitor {
    /// Time between two looks at all nodes.
    pub period: Duration,
    /// Silence after which a node is Unknown.
    pub grace_period: Duration,
}

impl Default for NodeMonitor {
    /// Kubernetes' own values.
    fn default() -> Self {
        Self { period: Duration::from_secs(5), grace_period: Duration::from_secs(50) }
    }
}

#[derive(Clone, Debug)]
pub struct ControlPlaneConfig {
    /// Holds the data, the credentials and, in `logs`, the logs.
    pub folder: PathBuf,
    pub node_monitor: NodeMonitor,
    /// Writes an audit log at Metadata level: who asked for what.
    pub audit: bool,
}

/// A running control plane. Dropping it kills it.
pub struct ControlPlane {
    access: ApiAccess,
    folder: PathBuf,
    audit_log: Option<PathBuf>,
    /// In the order in which they were started.
    processes: Vec<Process>,
}

impl ControlPlane {
    /// Starts the programs on free ports of the loopback interface and waits until they serve.
    pub async fn start(
        programs: &Programs,
        guard: &Guard,
        config: &ControlPlaneConfig,
    ) -> anyhow::Result<Self> {
        // A port that was free a moment ago can be taken before the program binds it.
        const ATTEMPTS: usize = 3;
        let mut attempt = 1;
        loop {
            match Self::start_once(programs, guard, config).await {
                Ok(control_plane) => return Ok(control_plane),
                Err(error) if attempt < ATTEMPTS && lost_a_port(&error) => {
                    tracing::info!(
                        "a port was taken while the control plane started; trying others"
                    );
                    attempt += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    #[must_use]
    pub const fn access(&self) -> &ApiAccess {
        &self.access
    }

    #[must_use]
    pub fn audit_log(&self) -> Option<&Path> {
        self.audit_log.as_deref()
    }

    #[must_use]
    pub fn log_folder(&self) -> PathBuf {
        log_folder(&self.folder)
    }

    #[must_use]
    pub fn processes(&self) -> &[Process] {
        &self.processes
    }

    /// Ends the programs, the last started first, so that none complains of another's absence.
    pub async fn stop(self) {
        for process in self.processes.iter().rev() {
            // The API server drains its watches for a minute unless it is hurried. Nothing of
            // the cluster is kept, so there is nothing to finish.
            process.stop(Duration::from_millis(500)).await;
        }
    }

    async fn start_once(
        programs: &Programs,
        guard: &Guard,
        config: &ControlPlaneConfig,
    ) -> anyhow::Result<Self> {
        let folder = &config.folder;
        for name in ["etcd", "logs", "credentials"] {
            let path = folder.join(name);
            if name == "etcd" && path.exists() {
                std::fs::remove_dir_all(&path)
                    .with_context(|| format!("cannot empty {}", path.display()))?;
            }
            std::fs::create_dir_all(&path)
                .with_context(|| format!("cannot create {}", path.display()))?;
        }
        let [etcd_port, api_port] = free_ports()?;
        let authority = Arc::new(Authority::new("machinist-testbed")?);
        let access =
            ApiAccess::new(format!("https://127.0.0.1:{api_port}"), Arc::clone(&authority));
        let credentials = Credentials::write(&folder.join("credentials"), &authority, &access)?;
        let audit_log = config.audit.then(|| log_folder(folder).join("audit.log"));
        let launch = |name: &str, program: &Path, arguments: Vec<OsString>| Launch {
            name: name.to_owned(),
            program: program.to_owned(),
            arguments,
            environment: Vec::new(),
            home: folder.clone(),
            log_folder: log_folder(folder),
        };

        let etcd_flags = flags::etcd(&credentials, &folder.join("etcd"), etcd_port);
        let etcd = Process::start(guard, launch("etcd", &programs.etcd, etcd_flags)).await?;
        ready::wait_for_port(&etcd, etcd_port).await?;

        let api_flags = flags::api_server(&credentials, etcd_port, api_port, audit_log.as_deref());
        let api_server =
            Process::start(guard, launch("kube-apiserver", &programs.kube_apiserver, api_flags))
                .await?;
        ready::wait_for_api_server(&access, &[&etcd, &api_server]).await?;

        let manager_flags = flags::controller_manager(&credentials, config.node_monitor);
        let controller_manager = Process::start(
            guard,
            launch("kube-controller-manager", &programs.kube_controller_manager, manager_flags),
        )
        .await?;
        let scheduler_flags = flags::scheduler(&credentials);
        let scheduler = Process::start(
            guard,
            launch("kube-scheduler", &programs.kube_scheduler, scheduler_flags),
        )
        .await?;
        ready::wait_for_controllers(
            &access,
            &[&etcd, &api_server, &controller_manager, &scheduler],
        )
        .await?;

        Ok(Self {
            access,
            folder: folder.clone(),
            audit_log,
            processes: vec![etcd, api_server, controller_manager, scheduler],
        })
    }
}

fn log_folder(folder: &Path) -> PathBuf {
    folder.join("logs")
}

fn lost_a_port(error: &anyhow::Error) -> bool {
    format!("{error:#}").contains("address already in use")
}

/// Free ports of the loopback interface. All are held until the last is known, or the kernel could
/// hand out the same one twice.
pub(crate) fn free_ports<const COUNT: usize>() -> anyhow::Result<[u16; COUNT]> {
    let mut held = Vec::with_capacity(COUNT);
    let mut ports = [0; COUNT];
    for port in &mut ports {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port")?;
        *port = listener.local_addr()?.port();
        held.push(listener);
    }
    Ok(ports)
}
