//! When must a kubelet report its status before the next report is due?
//!
//! When the controllers have declared its Node Unknown: a renewed Lease alone does not make it Ready
//! again. Kubelets that were only slow, on a machine that is busy, must not stay Unknown for minutes.
//! A real kubelet watches its Node; here one watch serves them all.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::TryStreamExt;
use k8s_openapi::api::core::v1::Node;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, ResourceExt};
use tokio::sync::Notify;

use super::Shared;

/// The running kubelets' ears, by Node name.
#[derive(Default)]
pub struct Reminders(Mutex<BTreeMap<String, Arc<Notify>>>);

impl Reminders {
    /// What the kubelet of this Node listens to.
    pub fn listen(&self, node: &str) -> Arc<Notify> {
        let mut ears = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(ears.entry(node.to_owned()).or_default())
    }

    pub fn forget(&self, node: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(node);
    }

    fn remind(&self, node: &str) {
        let ears = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ear) = ears.get(node) {
            ear.notify_one();
        }
    }
}

/// Reminds the kubelets of Nodes that are Unknown, until dropped.
pub async fn remind(shared: Arc<Shared>) {
    let nodes: Api<Node> = Api::all(shared.admin.clone());
    loop {
        let stream =
            watcher(nodes.clone(), watcher::Config::default()).default_backoff().applied_objects();
        let mut stream = pin!(stream);
        loop {
            match stream.try_next().await {
                Ok(Some(node)) if is_unknown(&node) => shared.reminders.remind(&node.name_any()),
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(error) => tracing::debug!("watch of nodes: {error}"),
            }
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

fn is_unknown(node: &Node) -> bool {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions
        .into_iter()
        .any(|condition| condition.type_ == "Ready" && condition.status == "Unknown")
}
