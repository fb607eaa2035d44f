//! Who is told when a maintenance changes its phase? A webhook, where a flag or the policy names one: a
//! small JSON body, tried again for a while, and never waited for by a pass.

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use axum::body::Body;
use http::{
    HeaderValue, Method, Request, Uri,
    header::{AUTHORIZATION, CONTENT_TYPE},
};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use machinist_api::MachineMaintenanceStatus;
use rustls::{
    ClientConfig, RootCertStore,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, pem::PemObject},
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{execute::Executed, observe::Observation};
use crate::{
    context::Context,
    engine::{backoff::Backoff, env::Env, store::ObjectKey},
    metrics::{Metrics, NotificationResult},
    openshift::OpenShift,
    outbound,
};

/// How many may wait; more are dropped, and counted.
const WAITING_MAX: usize = 256;
/// How often one is tried.
const ATTEMPTS: u32 = 5;
const RETRY: Backoff = Backoff { base: Duration::from_secs(1), cap: Duration::from_secs(30) };
/// How long the webhook may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The key of the Secret that holds the bearer token.
const TOKEN_KEY: &str = "token";

/// Takes notifications and never blocks.
pub struct Notifier {
    usual: Option<String>,
    sender: mpsc::Sender<Notification>,
    metrics: Metrics,
}

/// One notification.
#[derive(Clone, Debug)]
struct Notification {
    url: String,
    secret_name: Option<String>,
    body: Value,
}

/// Delivers them one after another.
pub struct Messenger {
    receiver: mpsc::Receiver<Notification>,
    client: Client,
    namespace: String,
    openshift: OpenShift,
    env: Env,
    metrics: Metrics,
}

impl Notifier {
    /// `usual` is the webhook of whoever's policy names none.
    pub fn new(usual: Option<&str>, context: &Context) -> (Self, Messenger) {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        let notifier =
            Self { usual: usual.map(str::to_owned), sender, metrics: context.metrics.clone() };
        let messenger = Messenger {
            receiver,
            client: context.client.clone(),
            namespace: context.stores.maintenance.namespace.clone(),
            openshift: context.stores.openshift.clone(),
            env: context.env.clone(),
            metrics: context.metrics.clone(),
        };
        (notifier, messenger)
    }

    /// Tells that a phase was entered.
    pub(super) fn tell(&self, context: &Context, observation: &Observation, executed: &Executed) {
        let phase = executed.status.phase.unwrap_or_default();
        let webhook = observation.policy.webhook.as_ref();
        if webhook.is_some_and(|one| !one.phases.is_empty() && !one.phases.contains(&phase)) {
            return;
        }
        let of_policy = webhook.map(|one| (one.url.clone(), one.secret_name.clone()));
        let usual = || self.usual.clone().map(|url| (url, None));
        let Some((url, secret_name)) = of_policy.or_else(usual) else { return };
        let key = ObjectKey::of(&*executed.object);
        let machine = &executed.object.spec.machinelink;
        let before = observation.object.status.as_ref();
        let body = body(&key, machine, before, &executed.status, context.env.now());
        self.put(Notification { url, secret_name, body });
    }

    /// Never waits: what finds no room is dropped, and counted.
    fn put(&self, notification: Notification) {
        if self.sender.try_send(notification).is_err() {
            self.metrics.count_notification(NotificationResult::Dropped);
        }
    }
}

fn body(
    key: &ObjectKey,
    machine: &str,
    before: Option<&MachineMaintenanceStatus>,
    status: &MachineMaintenanceStatus,
    now: jiff::Timestamp,
) -> Value {
    let plan = status.plan.as_ref();
    let codes: Vec<&str> = status.reasons.iter().map(|reason| reason.code.as_str()).collect();
    json!({
        "kind": "MaintenancePhaseChanged",
        "namespace": key.namespace,
        "name": key.name,
        "machine": machine,
        "from": before.and_then(|status| status.phase).map(|phase| phase.as_str()),
        "phase": status.phase.map(|phase| phase.as_str()),
        "action": plan.and_then(|plan| plan.action).map(|action| action.as_str()),
        "policy": plan.and_then(|plan| plan.policy.as_deref()),
        "start": plan.and_then(|plan| plan.start.as_ref()).map(|time| time.0),
        "deadline": plan.and_then(|plan| plan.deadline.as_ref()).map(|time| time.0),
        "reasons": codes,
        "message": status.message,
        "time": now,
    })
}

impl Messenger {
    /// Delivers for as long as the process runs.
    pub async fn run(mut self) -> anyhow::Result<()> {
        while let Some(notification) = self.receiver.recv().await {
            let result = self.deliver(&notification).await;
            self.metrics.count_notification(result);
        }
        // Nobody is left who could tell anything; the supervisor wants tasks to go on.
        std::future::pending().await
    }

    async fn deliver(&self, notification: &Notification) -> NotificationResult {
        for attempt in 1..=ATTEMPTS {
            let sent = self.send(notification);
            let answer = tokio::select! {
                biased;
                answer = sent => answer,
                () = self.env.sleep(TIMEOUT) => Err(anyhow::anyhow!("no answer in time")),
            };
            match answer {
                Ok(()) => return NotificationResult::Sent,
                // Nothing of the URL but its host: it may carry a secret.
                Err(error) => tracing::warn!(
                    host = host_of(&notification.url),
                    attempt,
                    error = format!("{error:#}"),
                    "a notification could not be delivered"
                ),
            }
            if attempt < ATTEMPTS {
                self.env.sleep(RETRY.delay(attempt, &self.env)).await;
            }
        }
        NotificationResult::Failed
    }

    async fn send(&self, notification: &Notification) -> anyhow::Result<()> {
        let uri: Uri = notification.url.parse().context("the address cannot be read")?;
        let mut request = Request::new(Body::from(notification.body.to_string()));
        *request.method_mut() = Method::POST;
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(name) = &notification.secret_name {
            let token = self.token(name).await?;
            let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
                .context("the token cannot be sent")?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let answer = outbound::exchange(&uri, request, || self.trusting()).await?;
        anyhow::ensure!(answer.status.is_success(), "the webhook answers {}", answer.status);
        Ok(())
    }

    /// The system's certificates, and those that the cluster trusts.
    fn trusting(&self) -> anyhow::Result<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if let Some(pem) = self.openshift.trusted_ca() {
            let trusted = CertificateDer::pem_slice_iter(pem.as_bytes());
            roots.add_parsable_certificates(trusted.flatten());
        }
        let provider = Arc::new(aws_lc_rs::default_provider());
        Ok(ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth())
    }

    async fn token(&self, secret: &str) -> anyhow::Result<String> {
        let api = Api::<Secret>::namespaced(self.client.clone(), &self.namespace);
        let found = api.get_opt(secret).await?.with_context(|| format!("no secret {secret}"))?;
        let bytes = found.data.and_then(|mut data| data.remove(TOKEN_KEY));
        let bytes = bytes.with_context(|| format!("secret {secret} has no key {TOKEN_KEY}"))?;
        let text = String::from_utf8(bytes.0).context("the token is no text")?;
        Ok(text.trim().to_owned())
    }
}

fn host_of(url: &str) -> String {
    let uri: Option<Uri> = url.parse().ok();
    uri.and_then(|uri| uri.host().map(str::to_owned)).unwrap_or_default()
}

/// Puts notifications in as a pass does.
#[cfg(test)]
pub(super) mod testing {
    use super::*;

    pub(in crate::maintenance) fn send(notifier: &Notifier, url: &str, body: Value) {
        notifier.put(Notification { url: url.to_owned(), secret_name: None, body });
    }
}
