//! How does a kubelet come by its certificates? It asks the cluster, and waits for an approval.

use std::time::Duration;

use anyhow::{Context, bail};
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::PostParams;
use kube::runtime::wait::await_condition;
use kube::{Api, Client, ResourceExt};

use crate::pki::{Identity, signing_request};

pub const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client-kubelet";
pub const SERVING_SIGNER: &str = "kubernetes.io/kubelet-serving";
const NODES_GROUP: &str = "system:nodes";

/// A kubelet gives up on a request after this time and makes another.
const PATIENCE: Duration = Duration::from_secs(15 * 60);

/// Asks with the bootstrap credentials for the certificate that makes this machine a node.
pub async fn client_certificate(bootstrap: &Client, user: &str) -> anyhow::Result<Identity> {
    request(bootstrap, user, &[], CLIENT_SIGNER, "client auth").await
}

/// Asks as the node itself for the certificate of the kubelet's own server.
pub async fn serving_certificate(
    node: &Client,
    user: &str,
    alternatives: &[String],
) -> anyhow::Result<Identity> {
    request(node, user, alternatives, SERVING_SIGNER, "server auth").await
}

async fn request(
    client: &Client,
    user: &str,
    alternatives: &[String],
    signer: &str,
    usage: &str,
) -> anyhow::Result<Identity> {
    let asked = signing_request(user, Some(NODES_GROUP), alternatives)?;
    let requests: Api<CertificateSigningRequest> = Api::all(client.clone());
    let object = CertificateSigningRequest {
        metadata: ObjectMeta { generate_name: Some("csr-".to_owned()), ..ObjectMeta::default() },
        spec: CertificateSigningRequestSpec {
            request: ByteString(asked.certificate.into_bytes()),
            signer_name: signer.to_owned(),
            usages: Some(vec!["digital signature".to_owned(), usage.to_owned()]),
            ..CertificateSigningRequestSpec::default()
        },
        status: None,
    };
    let name = requests.create(&PostParams::default(), &object).await?.name_any();
    let decided = tokio::time::timeout(PATIENCE, await_condition(requests, &name, is_decided))
        .await
        .with_context(|| format!("nobody decided on {name}"))??;
    let certificate = decided
        .with_context(|| format!("{name} was deleted undecided"))?
        .status
        .and_then(|status| status.certificate)
        .unwrap_or_default();
    if certificate.0.is_empty() {
        bail!("{name} was denied, or its signer failed");
    }
    let certificate = String::from_utf8(certificate.0)
        .with_context(|| format!("the certificate of {name} is not PEM"))?;
    Ok(Identity { certificate, key: asked.key })
}

/// Issued, or refused for good, or gone.
fn is_decided(request: Option<&CertificateSigningRequest>) -> bool {
    let Some(request) = request else { return true };
    let Some(status) = &request.status else { return false };
    let refused = status
        .conditions
        .iter()
        .flatten()
        .any(|condition| condition.type_ == "Denied" || condition.type_ == "Failed");
    refused || status.certificate.is_some()
}
