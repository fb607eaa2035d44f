//! Which credential files do the programs of the control plane read?

use std::path::{Path, PathBuf};

use anyhow::Context;
use rcgen::KeyPair;

use crate::api_access::{ApiAccess, write_private};
use crate::pki::{Authority, Identity};

const AUDIT_POLICY: &str = include_str!("../../assets/audit-policy.yaml");

/// Paths of a certificate and its key.
pub struct Files {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

pub struct Credentials {
    /// Signs client certificates, and the API server's own.
    pub authority: Files,
    pub api_server: Files,
    /// etcd's authority is not the cluster's, or every user of the cluster could open etcd.
    pub etcd_authority: Files,
    pub etcd_server: Files,
    pub etcd_client: Files,
    /// The request-header authority: without one the controller-manager and the scheduler log
    /// errors without end.
    pub front_proxy_authority: Files,
    pub front_proxy_client: Files,
    pub service_account_key: PathBuf,
    pub service_account_public_key: PathBuf,
    pub controller_manager_kubeconfig: PathBuf,
    pub scheduler_kubeconfig: PathBuf,
    pub audit_policy: PathBuf,
}

impl Credentials {
    pub fn write(folder: &Path, authority: &Authority, access: &ApiAccess) -> anyhow::Result<Self> {
        let files = |name: &str, identity: &Identity| -> anyhow::Result<Files> {
            let files = Files {
                certificate: folder.join(format!("{name}.crt")),
                key: folder.join(format!("{name}.key")),
            };
            write_private(&files.certificate, &identity.certificate)?;
            write_private(&files.key, &identity.key)?;
            Ok(files)
        };
        let kubeconfig = |name: &str, user: &str, group: Option<&str>| {
            access.write_kubeconfig(&folder.join(format!("{name}.kubeconfig")), user, group)
        };

        let etcd_authority = Authority::new("machinist-testbed-etcd")?;
        let front_proxy_authority = Authority::new("machinist-testbed-front-proxy")?;
        let loopback = ["localhost", "127.0.0.1"];
        let api_server_names = [
            "localhost",
            "127.0.0.1",
            // The first address of the service network, where the `kubernetes` service is.
            "172.30.0.1",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "kubernetes.default.svc.cluster.local",
        ];

        let service_account = KeyPair::generate()?;
        let service_account_key = folder.join("service-account.key");
        let service_account_public_key = folder.join("service-account.pub");
        write_private(&service_account_key, &service_account.serialize_pem())?;
        write_private(&service_account_public_key, &service_account.public_key_pem())?;

        let audit_policy = folder.join("audit-policy.yaml");
        std::fs::write(&audit_policy, AUDIT_POLICY)
            .with_context(|| format!("cannot write {}", audit_policy.display()))?;

        Ok(Self {
            authority: files("authority", &authority.identity())?,
            api_server: files(
                "api-server",
                &authority.server("kube-apiserver", &api_server_names)?,
            )?,
            etcd_authority: files("etcd-authority", &etcd_authority.identity())?,
            etcd_server: files("etcd-server", &etcd_authority.server("etcd", &loopback)?)?,
            etcd_client: files("etcd-client", &etcd_authority.client("kube-apiserver", None)?)?,
            front_proxy_authority: files(
                "front-proxy-authority",
                &front_proxy_authority.identity(),
            )?,
            front_proxy_client: files(
                "front-proxy-client",
                &front_proxy_authority.client("front-proxy-client", None)?,
            )?,
            service_account_key,
            service_account_public_key,
            controller_manager_kubeconfig: kubeconfig(
                "controller-manager",
                "system:kube-controller-manager",
                None,
            )?,
            scheduler_kubeconfig: kubeconfig("scheduler", "system:kube-scheduler", None)?,
            audit_policy,
        })
    }
}
