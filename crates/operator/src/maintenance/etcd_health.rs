//! How is each member of etcd, as it says itself? Asked where the kubelet asks, and as it does: whoever
//! answers there is believed, because a false answer can only hold maintenance back.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use axum::body::Body;
use futures::future::join_all;
use http::{Request, Uri};
use k8s_openapi::api::core::v1::Pod;
use machinist_core::maintenance::control_plane::{EtcdAnswer, health_url};
use rustls::{
    ClientConfig, DigitallySignedStruct, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use serde_json::Value;

use crate::{engine::env::Env, outbound};

/// How long a member may take. One that takes longer is not reached.
const TIMEOUT: Duration = Duration::from_secs(3);
/// How much of what a member says is repeated.
const WORDS_MAX: usize = 200;

/// What the members say that could be reached, by the name of the Node.
pub async fn ask(env: &Env, pods: &[Pod]) -> BTreeMap<String, EtcdAnswer> {
    let asked = pods.iter().filter_map(|pod| {
        let node = pod.spec.as_ref()?.node_name.clone()?;
        Some((node, health_url(pod)?))
    });
    let answers = asked.map(async |(node, url)| Some((node, ask_one(env, &url).await?)));
    join_all(answers).await.into_iter().flatten().collect()
}

async fn ask_one(env: &Env, url: &str) -> Option<EtcdAnswer> {
    let address: Uri = url.parse().ok()?;
    let answer = tokio::select! {
        biased;
        answer = outbound::exchange(&address, Request::new(Body::empty()), as_the_kubelet_does) => answer,
        () = env.sleep(TIMEOUT) => Err(anyhow::anyhow!("no answer in time")),
    };
    match answer {
        Ok(answer) if answer.status.is_success() => Some(EtcdAnswer::Healthy),
        Ok(answer) => {
            let words = format!("{} {}", answer.status.as_u16(), in_words(&answer.body));
            Some(EtcdAnswer::Unhealthy(words.trim_end().to_owned()))
        }
        Err(error) => {
            tracing::debug!(url, error = format!("{error:#}"), "a member of etcd was not reached");
            None
        }
    }
}

/// The reason that etcd gives, or what it says.
fn in_words(body: &[u8]) -> String {
    let reason = serde_json::from_slice::<Value>(body)
        .ok()
        .and_then(|body| body.get("reason")?.as_str().map(str::to_owned))
        .filter(|reason| !reason.is_empty());
    let text = reason.unwrap_or_else(|| String::from_utf8_lossy(body).into_owned());
    text.trim().chars().filter(|letter| !letter.is_control()).take(WORDS_MAX).collect()
}

fn as_the_kubelet_does() -> anyhow::Result<ClientConfig> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    Ok(ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody(provider)))
        .with_no_client_auth())
}

/// Takes whatever certificate is shown, as the kubelet's probes do.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
