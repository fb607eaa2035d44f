//! What does one kubelet do from its machine's first boot to its end?

use std::future::pending;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::instances::{Instance, Power};
use crate::kube_errors::{is_conflict, is_missing};

use super::node_object::{self, Readiness};
use super::{POWERED_LABEL, Shared, bootstrap, kubeconfig_of};

/// A kubelet keeps trying; what it waits for (an approval, the API server) comes or does not.
const RETRY: Duration = Duration::from_secs(1);
const LEASE_NAMESPACE: &str = "kube-node-lease";

pub struct Kubelet {
    shared: Arc<Shared>,
    instance: Instance,
    /// From the certificate that the cluster signed. It is on the machine's disk, so it outlives
    /// a stop.
    client: Option<Client>,
    has_serving_certificate: AtomicBool,
}

impl Kubelet {
    pub const fn new(shared: Arc<Shared>, instance: Instance) -> Self {
        Self { shared, instance, client: None, has_serving_certificate: AtomicBool::new(false) }
    }

    pub async fn live(mut self, mut power: watch::Receiver<Power>) {
        loop {
            let now = *power.borrow_and_update();
            tokio::select! {
                biased;
                // Whatever was under way is cut off, as by the loss of power.
                changed = power.changed() => if changed.is_err() { return },
                () = self.act(now) => return,
            }
        }
    }

    /// Returns when nothing will ever happen on this machine again.
    async fn act(&mut self, power: Power) {
        match power {
            Power::Pending | Power::Rebooting => pending().await,
            Power::On { boot } => self.run(boot).await,
            Power::Off | Power::Hung => {
                self.remove_powered_label().await;
                pending().await
            }
            Power::Gone => {
                self.shared.reminders.forget(&self.instance.private_name);
                self.remove_powered_label().await;
            }
        }
    }

    async fn run(&mut self, boot: u64) {
        sleep(self.shared.config.boot_delay).await;
        let client = self.certified_client().await;
        let ready_since = Timestamp::now();
        let node = self.register(&client, boot, ready_since).await;
        self.renew_lease(&client, &node).await;
        self.label_role().await;
        self.report_status(&client, boot, Readiness::Ready { since: ready_since }).await;
        tracing::debug!(node = self.instance.private_name, boot, "kubelet runs");
        // A kubelet is Ready before anybody approves its serving certificate.
        tokio::join!(
            self.obtain_serving_certificate(&client),
            self.heartbeat(&client, &node, boot, ready_since)
        );
    }

    async fn certified_client(&mut self) -> Client {
        if let Some(client) = &self.client {
            return client.clone();
        }
        let user = format!("system:node:{}", self.instance.private_name);
        let client = insist("obtain a client certificate", &self.instance, || async {
            let identity = bootstrap::client_certificate(&self.shared.bootstrap, &user).await?;
            let file = kubeconfig_of(&self.shared.folder, &self.instance.private_name);
            self.shared.access.write_kubeconfig_with(&file, &user, &identity)?;
            self.shared.access.client(&user, &identity).await
        })
        .await;
        self.client = Some(client.clone());
        client
    }

    async fn obtain_serving_certificate(&self, client: &Client) {
        if self.has_serving_certificate.load(Ordering::Relaxed) {
            return;
        }
        let user = format!("system:node:{}", self.instance.private_name);
        let alternatives =
            [self.instance.private_name.clone(), self.instance.private_address.clone()];
        insist("obtain a serving certificate", &self.instance, || async {
            bootstrap::serving_certificate(client, &user, &alternatives).await
        })
        .await;
        self.has_serving_certificate.store(true, Ordering::Relaxed);
    }

    /// Creates the Node, or takes up the one that this machine left when it went down.
    async fn register(&self, client: &Client, boot: u64, now: Timestamp) -> Node {
        let nodes: Api<Node> = Api::all(client.clone());
        let node = node_object::node(&self.instance, boot, now);
        insist("register its Node", &self.instance, || async {
            match nodes.create(&PostParams::default(), &node).await {
                Err(error) if is_conflict(&error) => {
                    let labels = json!({ "metadata": { "labels": node.labels() } });
                    let parameters = PatchParams::default();
                    Ok(nodes.patch(&node.name_any(), &parameters, &Patch::Merge(labels)).await?)
                }
                other => Ok(other?),
            }
        })
        .await
    }

    async fn heartbeat(&self, client: &Client, node: &Node, boot: u64, ready_since: Timestamp) {
        let config = &self.shared.config;
        let reminder = self.shared.reminders.listen(&self.instance.private_name);
        let mut since = ready_since;
        let mut next_report = Instant::now() + config.status_report;
        // Hundreds of machines that boot together must not beat together.
        let mut pause = phase(&self.instance.id, config.heartbeat);
        loop {
            tokio::select! {
                biased;
                () = reminder.notified() => {
                    since = Timestamp::now();
                    next_report = Instant::now();
                }
                () = sleep(pause) => {}
            }
            pause = config.heartbeat;
            if let Err(error) = self.try_renew_lease(client, node).await {
                tracing::debug!(node = self.instance.private_name, "lease not renewed: {error:#}");
            }
            if Instant::now() >= next_report {
                self.report_status(client, boot, Readiness::Ready { since }).await;
                next_report = Instant::now() + config.status_report;
            }
        }
    }

    async fn renew_lease(&self, client: &Client, node: &Node) {
        insist("renew its Lease", &self.instance, || self.try_renew_lease(client, node)).await;
    }

    async fn try_renew_lease(&self, client: &Client, node: &Node) -> anyhow::Result<()> {
        let leases: Api<Lease> = Api::namespaced(client.clone(), LEASE_NAMESPACE);
        let lease = node_object::lease(node, Timestamp::now());
        let name = &self.instance.private_name;
        let renewal = Patch::Merge(json!({ "spec": lease.spec }));
        match leases.patch(name, &PatchParams::default(), &renewal).await {
            Err(error) if is_missing(&error) => {
                leases.create(&PostParams::default(), &lease).await?;
            }
            other => {
                other?;
            }
        }
        Ok(())
    }

    async fn report_status(&self, client: &Client, boot: u64, readiness: Readiness) {
        let nodes: Api<Node> = Api::all(client.clone());
        let name = &self.instance.private_name;
        insist("report its status", &self.instance, || async {
            let status = node_object::status(&self.instance, boot, readiness, Timestamp::now());
            let patch = Patch::Strategic(json!({ "status": status }));
            match nodes.patch_status(name, &PatchParams::default(), &patch).await {
                // Somebody deleted the Node. A kubelet registers when it starts, not before.
                Err(error) if is_missing(&error) => Ok(()),
                other => Ok(other.map(drop)?),
            }
        })
        .await;
    }

    /// A kubelet may not name its own role; on OpenShift an operator does it.
    async fn label_role(&self) {
        let labels = node_object::role_labels(self.instance.role);
        self.patch_labels("label its role", json!(labels)).await;
    }

    async fn remove_powered_label(&self) {
        self.patch_labels("remove its label", json!({ POWERED_LABEL: null })).await;
    }

    async fn patch_labels(&self, what: &str, labels: serde_json::Value) {
        let nodes: Api<Node> = Api::all(self.shared.admin.clone());
        let name = &self.instance.private_name;
        let patch = Patch::Merge(json!({ "metadata": { "labels": labels } }));
        insist(what, &self.instance, || async {
            match nodes.patch_metadata(name, &PatchParams::default(), &patch).await {
                Err(error) if is_missing(&error) => Ok(()),
                other => Ok(other.map(drop)?),
            }
        })
        .await;
    }
}

async fn insist<T, Attempt: Future<Output = anyhow::Result<T>>>(
    what: &str,
    instance: &Instance,
    attempt: impl Fn() -> Attempt,
) -> T {
    loop {
        match attempt().await {
            Ok(value) => return value,
            Err(error) => {
                tracing::debug!(instance = instance.id, "kubelet cannot {what}: {error:#}");
                sleep(RETRY).await;
            }
        }
    }
}

/// A part of the interval that is the same at every run and differs between machines.
fn phase(id: &str, interval: Duration) -> Duration {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    let thousandths = u32::try_from(hasher.finish() % 1000).unwrap_or(0);
    interval * thousandths / 1000
}
