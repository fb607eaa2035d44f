//! Who asks, and may they? The API server knows; its answers are kept for a few seconds.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::future::try_join_all;
use k8s_openapi::api::{
    authentication::v1::{TokenReview, TokenReviewSpec, UserInfo},
    authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
};
use kube::{Api, Client, api::PostParams};
use machinist_api::cluster_api;
use sha2::{Digest, Sha256};
use tokio::{sync::Semaphore, time::Instant};

use super::{answer::Refused, audience::Audience};
use crate::{engine::env::Env, scrape};

/// How long a right that was given or taken away is not noticed.
const KEPT_FOR: Duration = Duration::from_secs(5);
/// Answers that are kept. Strangers must not fill the memory.
const KEPT_MAX: usize = 2048;
/// Questions at once, so that strangers cannot make us flood the API server.
const ASKED_AT_ONCE: usize = 8;
const TIMEOUT: Duration = Duration::from_secs(5);
/// In how many namespaces somebody is asked for who may not see all. Nobody has that many teams in one place.
const NAMESPACES_MAX: usize = 100;

/// Something that the API server gives or refuses to somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Right {
    ListMachines,
    /// Of Cluster API.
    ListTheirMachines,
    ListMaintenances,
    ListPolicies,
    GetNodes,
    ListPods,
    PatchMaintenances,
    PatchMachines,
    PatchTheirMachines,
    PatchPools,
    PatchTheirPools,
    PatchPolicies,
    PatchNamespace,
}

impl Right {
    /// Verb, group, resource, and whether it is asked for in our namespace.
    fn attributes(self) -> (&'static str, &'static str, &'static str, bool) {
        match self {
            Self::ListMachines => ("list", "machine.openshift.io", "machines", true),
            Self::ListTheirMachines => ("list", cluster_api::GROUP, "machines", false),
            Self::PatchTheirMachines => ("patch", cluster_api::GROUP, "machines", false),
            Self::PatchTheirPools => ("patch", cluster_api::GROUP, "machinedeployments", false),
            Self::ListMaintenances => {
                ("list", "machinemaintenance.managed.openshift.io", "machinemaintenances", true)
            }
            Self::ListPolicies => ("list", "machinist.dev", "maintenancepolicies", false),
            Self::GetNodes => ("get", "", "nodes", false),
            Self::ListPods => ("list", "", "pods", false),
            Self::PatchMaintenances => {
                ("patch", "machinemaintenance.managed.openshift.io", "machinemaintenances", true)
            }
            Self::PatchMachines => ("patch", "machine.openshift.io", "machines", true),
            Self::PatchPools => ("patch", "machine.openshift.io", "machinesets", true),
            Self::PatchPolicies => ("patch", "machinist.dev", "maintenancepolicies", false),
            Self::PatchNamespace => ("patch", "", "namespaces", true),
        }
    }

    /// What somebody without it is told.
    pub fn lacking(self, namespace: &str) -> String {
        let is_namespaced = self.attributes().3;
        self.lacking_in(is_namespaced.then_some(namespace))
    }

    /// The same where the namespace is another than ours, or all.
    pub fn lacking_in(self, namespace: Option<&str>) -> String {
        let (verb, group, resource, _) = self.attributes();
        let of = if group.is_empty() { String::new() } else { format!(".{group}") };
        let place = namespace.map(|name| format!(" in namespace {name}")).unwrap_or_default();
        format!("you may not {verb} {resource}{of}{place}")
    }
}

/// Somebody whom the API server knows.
#[derive(Clone, Debug)]
pub(super) struct User {
    pub info: Arc<UserInfo>,
    /// Of the token, which itself is kept nowhere.
    hash: [u8; 32],
}

impl User {
    pub fn name(&self) -> &str {
        self.info.username.as_deref().unwrap_or("somebody")
    }
}

/// Asks, and keeps the answers.
pub(super) struct Access {
    tokens: Api<TokenReview>,
    rights: Api<SubjectAccessReview>,
    namespace: String,
    env: Env,
    kept: Mutex<BTreeMap<Question, Kept>>,
    asking: Semaphore,
}

/// By the hash of the token: who it is, or whether they may, and where.
type Question = ([u8; 32], Option<(Right, Option<String>)>);

#[derive(Clone)]
struct Kept {
    answer: Answer,
    until: Instant,
}

#[derive(Clone)]
enum Answer {
    Nobody,
    Somebody(Arc<UserInfo>),
    May(bool),
}

impl Access {
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

    /// Who shows this token.
    pub async fn who(&self, token: &str) -> Result<User, Refused> {
        let hash: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        match self.ask((hash, None), self.review(token)).await? {
            Answer::Somebody(info) => Ok(User { info, hash }),
            Answer::Nobody | Answer::May(_) => Err(Refused::unauthenticated()),
        }
    }

    /// Whether somebody may do something.
    pub async fn may(&self, user: &User, right: Right) -> Result<bool, Refused> {
        let is_namespaced = right.attributes().3;
        self.may_in(user, right, is_namespaced.then_some(self.namespace.as_str())).await
    }

    /// Whether somebody may do something in a namespace, or in all.
    pub async fn may_in(
        &self,
        user: &User,
        right: Right,
        namespace: Option<&str>,
    ) -> Result<bool, Refused> {
        let question = (user.hash, Some((right, namespace.map(str::to_owned))));
        let answer = self.ask(question, self.review_right(user, right, namespace)).await?;
        Ok(matches!(answer, Answer::May(true)))
    }

    /// Of these namespaces, where somebody may see the machines of Cluster API.
    pub async fn audience(
        &self,
        user: &User,
        namespaces: BTreeSet<String>,
    ) -> Result<Audience, Refused> {
        if namespaces.is_empty() {
            return Ok(Audience::default());
        }
        if self.may_in(user, Right::ListTheirMachines, None).await? {
            return Ok(Audience::All);
        }
        let asked = namespaces.into_iter().take(NAMESPACES_MAX).map(async |namespace| {
            let may = self.may_in(user, Right::ListTheirMachines, Some(&namespace)).await?;
            Ok::<_, Refused>(may.then_some(namespace))
        });
        Ok(Audience::Namespaces(try_join_all(asked).await?.into_iter().flatten().collect()))
    }

    /// Refuses somebody who may not.
    pub async fn require(&self, user: &User, right: Right) -> Result<(), Refused> {
        if self.may(user, right).await? {
            return Ok(());
        }
        Err(Refused::forbidden(right.lacking(&self.namespace))
            .hinted("ask whoever runs the cluster for the role machinist-page-reader"))
    }

    async fn ask(
        &self,
        question: Question,
        asked: impl Future<Output = kube::Result<Answer>>,
    ) -> Result<Answer, Refused> {
        if let Some(answer) = self.remembered(&question) {
            return Ok(answer);
        }
        let asked = async {
            let _permit = self.asking.acquire().await;
            // Somebody may have asked for the same meanwhile.
            if let Some(answer) = self.remembered(&question) {
                return Ok(answer);
            }
            let answer = asked.await?;
            self.remember(question, answer.clone());
            Ok::<_, kube::Error>(answer)
        };
        match tokio::time::timeout(TIMEOUT, asked).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => {
                tracing::warn!(%error, "the API server cannot be asked who looks at the page");
                Err(Refused::unknown())
            }
            Err(_) => {
                tracing::warn!("the API server does not say in time who looks at the page");
                Err(Refused::unknown())
            }
        }
    }

    async fn review(&self, token: &str) -> kube::Result<Answer> {
        let review = TokenReview {
            spec: TokenReviewSpec { token: Some(token.to_owned()), ..TokenReviewSpec::default() },
            ..TokenReview::default()
        };
        let status = self.tokens.create(&PostParams::default(), &review).await?.status;
        let status = status.unwrap_or_default();
        Ok(match (status.authenticated, status.user) {
            (Some(true), Some(user)) => Answer::Somebody(Arc::new(user)),
            (Some(_) | None, _) => Answer::Nobody,
        })
    }

    async fn review_right(
        &self,
        user: &User,
        right: Right,
        namespace: Option<&str>,
    ) -> kube::Result<Answer> {
        let (verb, group, resource, _) = right.attributes();
        let is_namespace = right == Right::PatchNamespace;
        let attributes = ResourceAttributes {
            verb: Some(verb.to_owned()),
            group: Some(group.to_owned()),
            resource: Some(resource.to_owned()),
            namespace: namespace.map(str::to_owned),
            name: is_namespace.then(|| self.namespace.clone()),
            ..ResourceAttributes::default()
        };
        let spec = SubjectAccessReviewSpec {
            resource_attributes: Some(attributes),
            ..scrape::asked_by(&user.info)
        };
        let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
        let status = self.rights.create(&PostParams::default(), &review).await?.status;
        let may = status.is_some_and(|status| status.allowed && status.denied != Some(true));
        Ok(Answer::May(may))
    }

    fn remembered(&self, question: &Question) -> Option<Answer> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = kept.get(question).filter(|kept| self.env.instant() < kept.until)?;
        Some(kept.answer.clone())
    }

    fn remember(&self, question: Question, answer: Answer) {
        let now = self.env.instant();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT_MAX {
            kept.retain(|_, kept| now < kept.until);
        }
        // Whatever is pushed out is only asked for again.
        if kept.len() >= KEPT_MAX
            && let Some(first) =
                kept.iter().min_by_key(|(_, kept)| kept.until).map(|(key, _)| key.clone())
        {
            kept.remove(&first);
        }
        kept.insert(question, Kept { answer, until: now + KEPT_FOR });
    }
}
