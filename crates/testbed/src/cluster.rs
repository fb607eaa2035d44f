//! How do the parts become one cluster?

mod config;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use kube::Client;
use machinist_api::names::DEFAULT_NAMESPACE;
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::api_access::{ADMINISTRATORS, ApiAccess};
use crate::cloud::{self, CloudConfig, CloudHandle, CloudServer, ServeOptions, TlsPem};
use crate::cloud_controller::watch_over_nodes;
use crate::control_plane::{ControlPlane, ControlPlaneConfig};
use crate::csr_approver::approve_kubelets;
use crate::etcd::Etcd;
use crate::guard::Guard;
use crate::instances::{Instances, from_facts};
use crate::kubelet::Kubelets;
use crate::kwok;
use crate::manifests::{apply_crds, apply_yaml};
use crate::operator_process::{OperatorConfig, OperatorProcess};
use crate::permissions;
use crate::pki::Authority;
use crate::process::{Process, ProcessError};
use crate::programs::{self, Programs};
use crate::singletons::Singletons;
use crate::switch::Switch;
use crate::termination_handlers::TerminationHandlers;

pub use config::ClusterConfig;

/// A folder for a cluster of this process alone. Those that ended processes left behind are removed.
pub fn folder_of_this_process(parent: &Path, prefix: &str) -> std::io::Result<PathBuf> {
    for entry in std::fs::read_dir(parent)?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some(process) = name.strip_prefix(prefix)
            && !Path::new("/proc").join(process).exists()
        {
            std::fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(parent.join(format!("{prefix}{}", std::process::id())))
}

const KUBELET_PERMISSIONS: &str = include_str!("../assets/kubelet-permissions.yaml");

/// The keys in the cluster's credentials secret. They open nothing but the simulated cloud.
const ACCESS_KEY_ID: &str = "AKIAMACHINISTTESTBED";
const SECRET_ACCESS_KEY: &str = "machinist-testbed-secret";

/// A whole cluster: control plane, cloud, the machines' insides, pods, and what OpenShift holds
/// besides. Dropping it ends it at once; [`Cluster::shutdown`] ends it in order.
pub struct Cluster {
    // Fields are dropped in this order: who uses the control plane goes before it, and the folder
    // last.
    termination_handlers: Option<Switch>,
    etcd: Option<Etcd>,
    kubelet_approval: Switch,
    cloud_controller: Switch,
    seen: watch::Receiver<Instances>,
    kubelets: Kubelets,
    instances: JoinSet<()>,
    kwok: Process,
    control_plane: ControlPlane,
    cloud: CloudServer,
    cloud_handle: CloudHandle,
    urls: CloudUrls,
    admin: Client,
    kubeconfig: PathBuf,
    ec2_authority_file: PathBuf,
    guard: Guard,
    programs: Programs,
    folder: PathBuf,
    temporary_folder: Option<TempDir>,
}

struct CloudUrls {
    ec2: String,
    ec2_tls: String,
    admin: String,
}

impl Cluster {
    /// Starts everything; returns when the API server serves and the controllers run.
    pub async fn start(config: ClusterConfig) -> anyhow::Result<Self> {
        let guard = config.guard;
        let programs = programs::ensure(config.progress).await?;
        let (folder, temporary_folder) = prepare_folder(config.folder)?;

        let infrastructure_name = config.cloud.infrastructure_name.clone();
        let region = config.cloud.region.clone();
        let ec2_authority = Authority::new("machinist-testbed-ec2")?;
        let ec2_authority_file = folder.join("ec2-ca.crt");
        std::fs::write(&ec2_authority_file, ec2_authority.certificate())
            .with_context(|| format!("cannot write {}", ec2_authority_file.display()))?;
        let (cloud, urls) = start_cloud(config.cloud, config.cloud_seed, &ec2_authority).await?;

        let control_plane_config = ControlPlaneConfig {
            folder: folder.clone(),
            node_monitor: config.node_monitor,
            audit: config.audit,
        };
        let control_plane = ControlPlane::start(&programs, &guard, &control_plane_config).await?;
        let access = control_plane.access();
        let kubeconfig = folder.join("kubeconfig");
        access.write_kubeconfig(&kubeconfig, "admin", Some(ADMINISTRATORS))?;
        let admin = access.client_for("machinist-testbed", Some(ADMINISTRATORS)).await?;

        apply_yaml(&admin, KUBELET_PERMISSIONS).await?;
        permissions::install_cluster_roles(&admin).await?;
        for definitions in &config.machine_crds {
            apply_crds(&admin, definitions).await?;
        }
        let singletons = Singletons {
            infrastructure_name: &infrastructure_name,
            region: &region,
            api_server_url: access.server(),
            ec2_endpoint: &urls.ec2_tls,
            ec2_authority: &ec2_authority.certificate(),
            access_key_id: ACCESS_KEY_ID,
            secret_access_key: SECRET_ACCESS_KEY,
        };
        singletons.install(&admin).await?;

        let log_folder = control_plane.log_folder();
        let kwok_folder = folder.join("kwok");
        let kwok =
            kwok::start(&programs, &guard, access, &admin, &kwok_folder, &log_folder).await?;
        let (instances, seen) = follow_cloud(cloud.handle());
        let kubelet_folder = folder.join("kubelets");
        let kubelets =
            Kubelets::start(access, &kubelet_folder, config.kubelet, seen.clone()).await?;
        let termination_handlers = config.termination_handlers.map(|config| {
            let handlers = TerminationHandlers {
                config,
                guard: guard.clone(),
                admin: admin.clone(),
                instances: seen.clone(),
                metadata: cloud.metadata_url(""),
                kubelets: kubelet_folder,
                home: folder.clone(),
                log_folder: log_folder.clone(),
            };
            Switch::new(true, move || handlers.clone().run())
        });
        let etcd = match config.etcd_members {
            0 => None,
            members => {
                let (admin, seen) = (admin.clone(), seen.clone());
                Some(Etcd::start(admin, DEFAULT_NAMESPACE, members, seen).await?)
            }
        };
        let approver = admin.clone();
        let kubelet_approval =
            Switch::new(config.approve_kubelets, move || approve_kubelets(approver.clone()));
        let controller = admin.clone();
        let period = config.cloud_controller_period;
        let of_controller = seen.clone();
        let cloud_controller = Switch::new(config.cloud_controller, move || {
            watch_over_nodes(controller.clone(), of_controller.clone(), period)
        });

        Ok(Self {
            termination_handlers,
            etcd,
            seen,
            kubelet_approval,
            cloud_controller,
            kubelets,
            instances,
            kwok,
            control_plane,
            cloud_handle: cloud.handle(),
            cloud,
            urls,
            admin,
            kubeconfig,
            ec2_authority_file,
            guard,
            programs,
            folder,
            temporary_folder,
        })
    }

    /// A client that may do everything, as the user `machinist-testbed`.
    #[must_use]
    pub const fn admin(&self) -> &Client {
        &self.admin
    }

    /// A kubeconfig file for a person who may do everything.
    #[must_use]
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// For clients of users of one's own.
    #[must_use]
    pub const fn access(&self) -> &ApiAccess {
        self.control_plane.access()
    }

    /// A kubeconfig file for an operator of `namespace` that the audit log knows by `user`. It may do
    /// what the shipped rules allow and no more.
    pub async fn operator_kubeconfig(
        &self,
        user: &str,
        namespace: &str,
    ) -> anyhow::Result<PathBuf> {
        permissions::grant(&self.admin, user, namespace).await?;
        let file = format!("{}.kubeconfig", user.replace(['/', ':'], "-"));
        self.access().write_kubeconfig(&self.folder.join(file), user, None)
    }

    /// Starts an operator as a child that ends with this process.
    pub async fn start_operator(&self, config: OperatorConfig) -> anyhow::Result<OperatorProcess> {
        OperatorProcess::start(&self.guard, config, &self.folder, &self.log_folder()).await
    }

    /// The simulated cloud itself: its ledger, its instances, its console.
    #[must_use]
    pub const fn cloud(&self) -> &CloudHandle {
        &self.cloud_handle
    }

    /// The EC2 endpoint without TLS.
    #[must_use]
    pub fn ec2_endpoint(&self) -> &str {
        &self.urls.ec2
    }

    /// The EC2 endpoint with TLS; [`Self::ec2_authority_file`] vouches for it.
    #[must_use]
    pub fn ec2_endpoint_tls(&self) -> &str {
        &self.urls.ec2_tls
    }

    #[must_use]
    pub fn ec2_authority_file(&self) -> &Path {
        &self.ec2_authority_file
    }

    /// The HTTP API that plays the cloud's console and its provider.
    #[must_use]
    pub fn cloud_admin(&self) -> &str {
        &self.urls.admin
    }

    /// The program `kubectl` of the cluster's version.
    #[must_use]
    pub fn kubectl(&self) -> &Path {
        &self.programs.kubectl
    }

    /// Data, credentials and logs.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    #[must_use]
    pub fn log_folder(&self) -> PathBuf {
        self.control_plane.log_folder()
    }

    /// The API server's audit log, where [`ClusterConfig::audit`] asked for one.
    #[must_use]
    pub fn audit_log(&self) -> Option<&Path> {
        self.control_plane.audit_log()
    }

    /// Turns the approval of the kubelets' certificates by the testbed on or off.
    pub fn set_kubelet_approval(&self, on: bool) {
        self.kubelet_approval.set(on);
    }

    /// Turns the termination handlers of spot machines on or off, where there are any.
    pub fn set_termination_handlers(&self, on: bool) {
        if let Some(switch) = &self.termination_handlers {
            switch.set(on);
        }
    }

    /// Plays etcd for the control-plane machines of a namespace, of which there are to be so many, for
    /// as long as the answer is held.
    pub async fn play_etcd(&self, namespace: &str, members: usize) -> anyhow::Result<Etcd> {
        Etcd::start(self.admin.clone(), namespace, members, self.seen.clone()).await
    }

    /// Where the guest of an instance finds its metadata service.
    #[must_use]
    pub fn metadata_endpoint(&self, instance_id: &str) -> String {
        self.cloud.metadata_url(instance_id)
    }

    /// Turns the part of the cloud controller manager on or off.
    pub fn set_cloud_controller(&self, on: bool) {
        self.cloud_controller.set(on);
    }

    /// Fails with the end of its log if a program of the cluster is no longer running.
    pub fn check_running(&self) -> Result<(), ProcessError> {
        self.kwok.check_running()?;
        self.control_plane.processes().iter().try_for_each(Process::check_running)
    }

    /// Ends everything in order and removes the temporary folder, if there is one.
    pub async fn shutdown(self) -> anyhow::Result<()> {
        drop((self.termination_handlers, self.etcd));
        drop((self.kubelet_approval, self.cloud_controller, self.kubelets, self.instances));
        self.kwok.stop(Duration::from_secs(1)).await;
        self.control_plane.stop().await;
        drop(self.cloud);
        match self.temporary_folder {
            Some(folder) => folder.close().context("cannot remove the cluster's folder"),
            None => Ok(()),
        }
    }
}

fn prepare_folder(wanted: Option<PathBuf>) -> anyhow::Result<(PathBuf, Option<TempDir>)> {
    let Some(path) = wanted else {
        let folder = tempfile::Builder::new()
            .prefix("machinist-")
            .tempdir()
            .context("cannot create a temporary folder")?;
        return Ok((folder.path().to_owned(), Some(folder)));
    };
    std::fs::create_dir_all(&path).with_context(|| format!("cannot create {}", path.display()))?;
    // The children run in it, so a relative path would mean something else to them.
    let absolute = std::path::absolute(&path)
        .with_context(|| format!("cannot tell where {} is", path.display()))?;
    Ok((absolute, None))
}

async fn start_cloud(
    cloud: CloudConfig,
    seed: u64,
    authority: &Authority,
) -> anyhow::Result<(CloudServer, CloudUrls)> {
    let identity = authority.server("ec2", &["localhost", "127.0.0.1"])?;
    let tls = TlsPem { certificate_chain: identity.certificate, private_key: identity.key };
    let options = ServeOptions { cloud, seed, ..ServeOptions::default() };
    let server = cloud::serve(options, Some(tls)).await?;
    let urls = CloudUrls {
        ec2: server.ec2_url(),
        ec2_tls: server.ec2_tls_url().context("the simulated cloud serves no HTTPS")?,
        admin: server.admin_url(),
    };
    Ok((server, urls))
}

/// Publishes what the machines' insides need to know, each time the cloud changes.
fn follow_cloud(cloud: CloudHandle) -> (JoinSet<()>, watch::Receiver<Instances>) {
    let mut revision = cloud.watch();
    let (sender, receiver) = watch::channel(from_facts(cloud.snapshot()));
    let mut task = JoinSet::new();
    task.spawn(async move {
        while revision.changed().await.is_ok() {
            sender.send_replace(from_facts(cloud.snapshot()));
        }
    });
    (task, receiver)
}
