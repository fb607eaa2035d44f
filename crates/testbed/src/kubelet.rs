//! What runs inside the instances? Simulated kubelets, one task for each instance.

mod bootstrap;
mod life;
mod node_object;
mod reminder;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    core::v1::ServiceAccount,
};
use kube::{Api, Client, api::PostParams};
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::api_access::{ADMINISTRATORS, ApiAccess};
use crate::instances::{Instances, Power};
use crate::manifests::apply;

pub use bootstrap::{CLIENT_SIGNER, SERVING_SIGNER};
use life::Kubelet;
use reminder::Reminders;

/// kwok plays the pods of the Nodes that carry this label. It goes when the instance stops, so that
/// the pods of a dead node hang as they do in life.
pub const POWERED_LABEL: &str = "testbed.machinist.dev/powered";

/// The service account that a machine's bootstrap credentials belong to, as on OpenShift.
const BOOTSTRAP_NAMESPACE: &str = "openshift-machine-config-operator";
const BOOTSTRAP_ACCOUNT: &str = "node-bootstrapper";
pub const BOOTSTRAP_USER: &str =
    "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper";

/// Longer than any cluster of this crate lives.
const BOOTSTRAP_TOKEN_SECONDS: i64 = 30 * 24 * 60 * 60;

#[derive(Clone, Debug)]
pub struct KubeletConfig {
    /// From the instance running to the kubelet's first request.
    pub boot_delay: Duration,
    /// Between two renewals of the node's Lease.
    pub heartbeat: Duration,
    /// Between two reports of an unchanged Node status.
    pub status_report: Duration,
}

impl Default for KubeletConfig {
    /// A real kubelet's intervals, on a machine that boots quickly.
    fn default() -> Self {
        Self {
            boot_delay: Duration::from_secs(10),
            heartbeat: Duration::from_secs(10),
            status_report: Duration::from_secs(300),
        }
    }
}

/// All kubelets. Dropping it is a power cut.
pub struct Kubelets {
    #[expect(dead_code, reason = "held for its Drop, which ends the tasks")]
    tasks: JoinSet<()>,
}

/// What all kubelets share.
struct Shared {
    config: KubeletConfig,
    access: ApiAccess,
    /// Where the kubelets keep their own credentials.
    folder: PathBuf,
    /// The credentials in every machine's user data: good for asking for a certificate only.
    bootstrap: Client,
    /// Sets what a kubelet may not: role labels, and the label's removal once it is off.
    admin: Client,
    reminders: Reminders,
}

impl Kubelets {
    /// Follows `instances` until dropped. The credentials of each kubelet are put into `folder`.
    pub async fn start(
        access: &ApiAccess,
        folder: &Path,
        config: KubeletConfig,
        instances: watch::Receiver<Instances>,
    ) -> anyhow::Result<Self> {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        let admin = access.client_for("machinist-testbed", Some(ADMINISTRATORS)).await?;
        let shared = Arc::new(Shared {
            config,
            access: access.clone(),
            folder: folder.to_owned(),
            bootstrap: bootstrap_client(access, &admin).await?,
            admin,
            reminders: Reminders::default(),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(reminder::remind(Arc::clone(&shared)));
        tasks.spawn(follow(shared, instances));
        Ok(Self { tasks })
    }
}

/// The credentials in every machine's user data. With a token: a certificate could not name all groups
/// of a service account, and whoever approves looks at them.
pub async fn bootstrap_client(access: &ApiAccess, admin: &Client) -> anyhow::Result<Client> {
    let account = json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": { "name": BOOTSTRAP_ACCOUNT, "namespace": BOOTSTRAP_NAMESPACE },
    });
    apply(admin, account).await?;
    let accounts: Api<ServiceAccount> = Api::namespaced(admin.clone(), BOOTSTRAP_NAMESPACE);
    let request = TokenRequest {
        spec: TokenRequestSpec {
            expiration_seconds: Some(BOOTSTRAP_TOKEN_SECONDS),
            ..TokenRequestSpec::default()
        },
        ..TokenRequest::default()
    };
    let answer = accounts
        .create_token_request(BOOTSTRAP_ACCOUNT, &PostParams::default(), &request)
        .await
        .context("cannot get a token for the machines to join with")?;
    let token = answer.status.map(|status| status.token).unwrap_or_default();
    access.client_with_token(BOOTSTRAP_USER, &token).await
}

/// The kubeconfig with which the kubelet of a Node works, in the folder of all kubelets.
#[must_use]
pub fn kubeconfig_of(folder: &Path, node: &str) -> PathBuf {
    folder.join(format!("{node}.kubeconfig"))
}

async fn follow(shared: Arc<Shared>, mut instances: watch::Receiver<Instances>) {
    let mut tasks = JoinSet::new();
    let mut switches: BTreeMap<String, watch::Sender<Power>> = BTreeMap::new();
    loop {
        let seen = Arc::clone(&instances.borrow_and_update());
        for (id, instance) in seen.iter() {
            if let Some(switch) = switches.get(id) {
                switch.send_if_modified(|power| {
                    let changed = *power != instance.power;
                    *power = instance.power;
                    changed
                });
            } else if matches!(instance.power, Power::On { .. }) {
                let (switch, power) = watch::channel(instance.power);
                switches.insert(id.clone(), switch);
                let kubelet = Kubelet::new(Arc::clone(&shared), instance.clone());
                tasks.spawn(kubelet.live(power));
            }
        }
        // The cloud forgets a terminated instance after a while.
        switches.retain(|id, switch| {
            let known = seen.contains_key(id);
            if !known {
                switch.send_replace(Power::Gone);
            }
            known
        });
        while tasks.try_join_next().is_some() {}
        if instances.changed().await.is_err() {
            return;
        }
    }
}
