//! What does Cluster API's core manager look like from outside? A Deployment, its definitions, and a lease, which it
//! holds for as long as it has a pod.

use std::time::Duration;

use k8s_openapi::api::{apps::v1::Deployment, coordination::v1::Lease};
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use machinist_api::cluster_api::names::lease;
use machinist_testbed::manifests::{apply, apply_crds};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::reader::deployment;

const NAME: &str = "capi-controller-manager";
const POLL: Duration = Duration::from_millis(200);
const PATIENCE: Duration = Duration::from_secs(60);

/// Puts it there, with its lease held.
pub async fn install(client: &Client) {
    for definition in machinist_api::crd::cluster_api() {
        apply_crds(client, &serde_json::to_string(&definition).unwrap()).await.unwrap();
    }
    let namespace = lease::CORE_NAMESPACE;
    for object in [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
        deployment(namespace, NAME, "manager"),
        json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": lease::CORE, "namespace": namespace},
        }),
    ] {
        apply(client, object).await.unwrap();
    }
    hold(client, &format!("{NAME}-0_pod")).await;
}

/// Gives the lease back once it has no pod any more, as the real one does at its end.
pub async fn play(client: &Client) {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), lease::CORE_NAMESPACE);
    loop {
        let found = deployments.get_opt(NAME).await.ok().flatten();
        if found.and_then(|one| one.spec?.replicas) == Some(0) {
            hold(client, "").await;
            return;
        }
        sleep(POLL).await;
    }
}

/// Waits until whoever had the lease has given it back.
pub async fn until_free(client: &Client) {
    let leases: Api<Lease> = Api::namespaced(client.clone(), lease::CORE_NAMESPACE);
    let deadline = Instant::now() + PATIENCE;
    loop {
        let found = leases.get(lease::CORE).await.unwrap();
        let holder = found.spec.and_then(|spec| spec.holder_identity).unwrap_or_default();
        if holder.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "{holder} does not give the lease back");
        sleep(POLL).await;
    }
}

async fn hold(client: &Client, holder: &str) {
    let leases: Api<Lease> = Api::namespaced(client.clone(), lease::CORE_NAMESPACE);
    let now = jiff::Timestamp::now();
    // Longer than the page takes: it is not renewed.
    let duration = if holder.is_empty() { 1 } else { 3600 };
    let spec = json!({"spec": {
        "holderIdentity": holder, "leaseDurationSeconds": duration,
        "acquireTime": format!("{now:.6}"), "renewTime": format!("{now:.6}"),
    }});
    leases.patch(lease::CORE, &PatchParams::default(), &Patch::Merge(spec)).await.unwrap();
}
