//! Who shows a token, and may they? The API server knows; its answers are kept for a short while.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use k8s_openapi::api::{
    authentication::v1::{TokenReview, TokenReviewSpec, UserInfo},
    authorization::v1::{
        NonResourceAttributes, ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
    },
};
use kube::{Api, Client, api::PostParams};
use sha2::{Digest, Sha256};
use tokio::{sync::Semaphore, time::Instant};

use crate::engine::env::Env;

/// How long a right that was given or taken away is not noticed.
const ALLOWED_FOR: Duration = Duration::from_secs(60);
const REFUSED_FOR: Duration = Duration::from_secs(10);

/// Answers that are kept. Those who scrape are few; strangers must not fill the memory.
const KEPT_MAX: usize = 256;

/// Questions at once, so that strangers cannot make us flood the API server.
const ASKED_AT_ONCE: usize = 8;
const TIMEOUT: Duration = Duration::from_secs(5);

/// What is known of somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Allowed,
    /// The token is nobody's.
    Unauthenticated,
    Forbidden,
    /// The API server could not be asked.
    Unknown,
}

impl Verdict {
    /// The metric's label.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Unauthenticated => "unauthenticated",
            Self::Forbidden => "forbidden",
            Self::Unknown => "unknown",
        }
    }
}

/// Asks for verdicts and keeps them.
pub struct Access {
    tokens: Api<TokenReview>,
    rights: Api<SubjectAccessReview>,
    /// Ours; the right to read what is in it counts as the right to read the metrics.
    namespace: String,
    env: Env,
    /// By the hash of the token, which itself is kept nowhere.
    kept: Mutex<BTreeMap<[u8; 32], Kept>>,
    asking: Semaphore,
}

#[derive(Clone, Copy)]
struct Kept {
    verdict: Verdict,
    until: Instant,
}

impl Access {
    #[must_use]
    pub fn new(client: &Client, namespace: &str, env: &Env) -> Self {
        Self {
            tokens: Api::all(client.clone()),
            rights: Api::all(client.clone()),
            namespace: namespace.to_owned(),
            env: env.clone(),
            kept: Mutex::default(),
            asking: Semaphore::new(ASKED_AT_ONCE),
        }
    }

    /// Whether the bearer of this token may read the metrics.
    pub async fn ask(&self, token: &str) -> Verdict {
        let hash: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        if let Some(verdict) = self.remembered(&hash) {
            return verdict;
        }
        let asked = async {
            let _permit = self.asking.acquire().await;
            // Somebody may have asked for the same meanwhile.
            match self.remembered(&hash) {
                Some(verdict) => Ok(verdict),
                None => {
                    let verdict = self.ask_api_server(token).await?;
                    self.remember(hash, verdict);
                    Ok::<_, kube::Error>(verdict)
                }
            }
        };
        match tokio::time::timeout(TIMEOUT, asked).await {
            Ok(Ok(verdict)) => verdict,
            Ok(Err(error)) => {
                tracing::warn!(%error, "the API server cannot be asked who reads the metrics");
                Verdict::Unknown
            }
            Err(_) => {
                tracing::warn!("the API server does not say in time who reads the metrics");
                Verdict::Unknown
            }
        }
    }

    async fn ask_api_server(&self, token: &str) -> kube::Result<Verdict> {
        let review = TokenReview {
            spec: TokenReviewSpec { token: Some(token.to_owned()), ..TokenReviewSpec::default() },
            ..TokenReview::default()
        };
        let status = self.tokens.create(&PostParams::default(), &review).await?.status;
        let status = status.unwrap_or_default();
        let user = match (status.authenticated, status.user) {
            (Some(true), Some(user)) => user,
            (Some(_) | None, _) => return Ok(Verdict::Unauthenticated),
        };
        let path = SubjectAccessReviewSpec {
            non_resource_attributes: Some(NonResourceAttributes {
                path: Some("/metrics".to_owned()),
                verb: Some("get".to_owned()),
            }),
            ..asked_by(&user)
        };
        // What the proxy in front of the original's metrics asks.
        let part_of_namespace = SubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                namespace: Some(self.namespace.clone()),
                verb: Some("get".to_owned()),
                version: Some("v1".to_owned()),
                resource: Some("namespace".to_owned()),
                subresource: Some("metrics".to_owned()),
                ..ResourceAttributes::default()
            }),
            ..asked_by(&user)
        };
        for spec in [path, part_of_namespace] {
            let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
            let answer = self.rights.create(&PostParams::default(), &review).await?;
            if answer.status.is_some_and(|status| status.allowed && status.denied != Some(true)) {
                return Ok(Verdict::Allowed);
            }
        }
        Ok(Verdict::Forbidden)
    }

    fn remembered(&self, hash: &[u8; 32]) -> Option<Verdict> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(hash).filter(|kept| self.env.instant() < kept.until).map(|kept| kept.verdict)
    }

    fn remember(&self, hash: [u8; 32], verdict: Verdict) {
        let keep_for = match verdict {
            Verdict::Allowed => ALLOWED_FOR,
            Verdict::Unauthenticated | Verdict::Forbidden => REFUSED_FOR,
            Verdict::Unknown => return,
        };
        let now = self.env.instant();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT_MAX {
            kept.retain(|_, kept| now < kept.until);
        }
        // Strangers push out strangers: what is refused ends first.
        if kept.len() >= KEPT_MAX
            && let Some(first) =
                kept.iter().min_by_key(|(_, kept)| kept.until).map(|(hash, _)| *hash)
        {
            kept.remove(&first);
        }
        kept.insert(hash, Kept { verdict, until: now + keep_for });
    }
}

/// A question for somebody.
pub(crate) fn asked_by(user: &UserInfo) -> SubjectAccessReviewSpec {
    SubjectAccessReviewSpec {
        user: user.username.clone(),
        groups: user.groups.clone(),
        uid: user.uid.clone(),
        extra: user.extra.clone(),
        ..SubjectAccessReviewSpec::default()
    }
}
