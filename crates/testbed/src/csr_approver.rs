//! Who approves the kubelets' certificates where no operator runs that does? This switch.

use futures::TryStreamExt;
use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestCondition,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Patch, PatchParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use std::pin::pin;
use std::time::Duration;

use crate::kubelet::{BOOTSTRAP_USER, CLIENT_SIGNER, SERVING_SIGNER};

/// Approves the kubelets' pending requests, one after another, until dropped.
pub(crate) async fn approve_kubelets(client: Client) {
    let requests: Api<CertificateSigningRequest> = Api::all(client);
    loop {
        let stream = watcher(requests.clone(), watcher::Config::default())
            .default_backoff()
            .applied_objects();
        let mut stream = pin!(stream);
        loop {
            match stream.try_next().await {
                Ok(Some(request)) if is_pending_kubelet_request(&request) => {
                    approve(&requests, &request).await;
                }
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(error) => tracing::debug!("watch of signing requests: {error}"),
            }
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

async fn approve(requests: &Api<CertificateSigningRequest>, request: &CertificateSigningRequest) {
    let name = request.name_any();
    let now = Time(Timestamp::now());
    let condition = CertificateSigningRequestCondition {
        type_: "Approved".to_owned(),
        status: "True".to_owned(),
        reason: Some("TestbedApproved".to_owned()),
        message: Some("approved by the testbed's switch".to_owned()),
        last_update_time: Some(now.clone()),
        last_transition_time: Some(now),
    };
    let patch = Patch::Merge(json!({ "status": { "conditions": [condition] } }));
    if let Err(error) = requests.patch_approval(&name, &PatchParams::default(), &patch).await {
        tracing::warn!("cannot approve {name}: {error}");
    }
}

fn is_pending_kubelet_request(request: &CertificateSigningRequest) -> bool {
    let decided = request.status.as_ref().is_some_and(|status| {
        status.certificate.is_some()
            || status.conditions.as_ref().is_some_and(|conditions| !conditions.is_empty())
    });
    let user = request.spec.username.as_deref().unwrap_or_default();
    let from_kubelet = match request.spec.signer_name.as_str() {
        CLIENT_SIGNER => user == BOOTSTRAP_USER || user.starts_with("system:node:"),
        SERVING_SIGNER => user.starts_with("system:node:"),
        _ => false,
    };
    from_kubelet && !decided
}
