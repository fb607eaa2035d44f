//! How do all replicas serve with the same certificate where nobody gives us one?
//!
//! The first that comes makes it and keeps it in a Secret; all others read it there, and see by the
//! Secret when one of them has replaced it. When to replace it is decided in core. A Secret of that
//! name that is not marked as ours is used while it is good, and never written.

mod contents;
pub(super) mod make;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use anyhow::Context as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};
use machinist_api::names::annotation;
use machinist_core::serving_certificate::{Step, Validity, decide};

use self::contents::Contents;
use super::{
    keys::ServingKeys,
    trust::{Authorities, CaBundleSource},
};
use crate::{engine::env::Env, metrics::Metrics};

/// The name that the original's has, which OpenShift's service-ca fills.
pub const SECRET: &str = "machine-api-operator-webhook-cert";

/// Far less than the time between the making of a certificate and its use.
const LOOK_PERIOD: Duration = Duration::from_secs(5 * 60);
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LAST_RETRY: Duration = Duration::from_secs(30);

/// Writes that may meet somebody else's before the next look.
const ATTEMPTS: usize = 5;

/// The certificate in the Secret, looked after as long as the process lives.
pub struct SelfSigned {
    secrets: Api<Secret>,
    namespace: String,
    /// What the certificate must stand for.
    names: Vec<String>,
    keys: ServingKeys,
    bundle: CaBundleSource,
    server: &'static str,
    env: Env,
    metrics: Metrics,
    /// What is served with, in case somebody deletes the Secret.
    held: Option<Contents>,
}

impl SelfSigned {
    #[must_use]
    pub fn new(
        client: &Client,
        namespace: &str,
        names: Vec<String>,
        server: &'static str,
        env: &Env,
        metrics: &Metrics,
    ) -> Self {
        Self {
            secrets: Api::namespaced(client.clone(), namespace),
            namespace: namespace.to_owned(),
            names,
            keys: ServingKeys::default(),
            bundle: CaBundleSource::new(),
            server,
            env: env.clone(),
            metrics: metrics.clone(),
            held: None,
        }
    }

    #[must_use]
    pub fn keys(&self) -> ServingKeys {
        self.keys.clone()
    }

    #[must_use]
    pub fn bundle(&self) -> super::trust::CaBundle {
        self.bundle.bundle()
    }

    /// Looks after it.
    ///
    /// # Errors
    /// Never: what fails is told and tried again.
    pub async fn run(mut self) -> anyhow::Result<()> {
        let mut retry = FIRST_RETRY;
        loop {
            let result = self.pass().await;
            self.metrics.set_certificate_faulty(self.server, result.is_err());
            match result {
                Ok(()) => {
                    retry = FIRST_RETRY;
                    self.env.sleep(self.env.jitter(LOOK_PERIOD, 0.2)).await;
                }
                Err(error) => {
                    let (secret, error) = (SECRET, format!("{error:#}"));
                    tracing::warn!(secret, error, "the serving certificate cannot be looked after");
                    self.env.sleep(retry).await;
                    retry = LAST_RETRY.min(retry.saturating_mul(2));
                }
            }
        }
    }

    /// One look: reads the Secret, replaces what must be, and serves with what is there then.
    pub(super) async fn pass(&mut self) -> anyhow::Result<()> {
        for _ in 0..ATTEMPTS {
            let stored =
                self.secrets.get_opt(SECRET).await.with_context(|| {
                    format!("failed to read secret {}/{SECRET}", self.namespace)
                })?;
            if let Some(foreign) = stored.as_ref().filter(|secret| !is_ours(secret)) {
                return self.serve_foreign(Contents::of(foreign));
            }
            let now = self.env.now();
            let kept = match &stored {
                Some(secret) => Some(Contents::of(secret)),
                None => self.held.clone(),
            };
            let wanted = self.wanted(kept.as_ref(), now)?;
            if stored.is_some() && kept.as_ref() == Some(&wanted) {
                return self.serve(wanted);
            }
            if self.write(stored.as_ref(), &wanted).await? {
                tracing::info!(secret = SECRET, "wrote the serving certificate");
                return self.serve(wanted);
            }
        }
        anyhow::bail!("others keep changing secret {}/{SECRET}", self.namespace)
    }

    /// What should be in the Secret, given what is.
    fn wanted(&self, kept: Option<&Contents>, now: Timestamp) -> anyhow::Result<Contents> {
        let current = kept.and_then(|kept| kept.validity_for(&self.names));
        let next = kept.and_then(|kept| kept.next_validity_for(&self.names));
        let make = || make::make(&self.names, now).context("failed to make a certificate");
        Ok(match (decide(current, next, now), kept) {
            (Step::Keep, Some(kept)) => kept.clone(),
            (Step::Prepare, Some(kept)) => kept.with_next(make()?, now),
            (Step::Promote, Some(kept)) => kept.promoted(),
            (Step::Replace, _) | (_, None) => Contents::new(make()?),
        })
    }

    /// Whether it was written; not if somebody else did in between.
    async fn write(&self, stored: Option<&Secret>, contents: &Contents) -> anyhow::Result<bool> {
        let secret = match stored {
            Some(secret) => Secret { data: Some(contents.to_data()), ..secret.clone() },
            None => Secret {
                metadata: ObjectMeta {
                    name: Some(SECRET.to_owned()),
                    namespace: Some(self.namespace.clone()),
                    annotations: Some(BTreeMap::from([(
                        annotation::SELF_SIGNED.to_owned(),
                        "true".to_owned(),
                    )])),
                    ..ObjectMeta::default()
                },
                type_: Some("kubernetes.io/tls".to_owned()),
                data: Some(contents.to_data()),
                ..Secret::default()
            },
        };
        // The whole object carries the version that it was decided on (Rule 3).
        let written = match stored {
            Some(_) => self.secrets.replace(SECRET, &PostParams::default(), &secret).await,
            None => self.secrets.create(&PostParams::default(), &secret).await,
        };
        match written {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(false),
            Err(error) => Err(error)
                .with_context(|| format!("failed to write secret {}/{SECRET}", self.namespace)),
        }
    }

    /// Serves with what somebody else keeps, and does not put right: nobody trusts one that ran out, so
    /// it is not shown. What is held and still good is shown meanwhile.
    fn serve_foreign(&mut self, contents: Contents) -> anyhow::Result<()> {
        let now = self.env.now();
        let is_good = |contents: &Contents| contents.pair().map(|pair| pair.certificate.validity);
        let validity = match is_good(&contents) {
            Ok(validity) if !validity.holds(now) => validity,
            Ok(_) | Err(_) => return self.serve(contents),
        };
        let holds = |held: &Contents| is_good(held).is_ok_and(|validity| validity.holds(now));
        if !self.held.as_ref().is_some_and(holds) {
            self.keys.clear();
            self.held = None;
        }
        let Validity { not_before, not_after } = validity;
        anyhow::bail!(
            "the certificate in secret {}/{SECRET} is good from {not_before} to {not_after} only, and \
             the secret is not ours: whoever keeps it must renew it, or delete it so that one is made",
            self.namespace
        )
    }

    fn serve(&mut self, contents: Contents) -> anyhow::Result<()> {
        if self.held.as_ref() == Some(&contents) {
            return Ok(());
        }
        let pair = contents
            .pair()
            .with_context(|| format!("secret {}/{SECRET} cannot be used", self.namespace))?;
        self.bundle.tell(match contents.authorities() {
            [] => Authorities::ToldByOthers,
            pem => Authorities::Bundle(Arc::from(pem)),
        });
        self.keys.set(&pair);
        let expires = pair.certificate.validity.not_after;
        self.metrics.set_certificate_expiry(self.server, expires);
        tracing::info!(server = self.server, %expires, "serving with the certificate of the secret");
        self.held = Some(contents);
        Ok(())
    }
}

fn is_ours(secret: &Secret) -> bool {
    let annotations = secret.metadata.annotations.as_ref();
    annotations.is_some_and(|all| all.contains_key(annotation::SELF_SIGNED))
}

#[cfg(test)]
mod tests;
