//! What do the rules of admission know of the cluster?

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use machinist_api::openshift_config::Infrastructure;
use machinist_core::admission::{Architecture, Context, SecretKnowledge, SecretName};
use tokio::sync::Semaphore;

use crate::engine::store::{ObjectKey, Store};

/// How long somebody is kept waiting who creates a Machine while we do not know the cluster yet.
const SYNC_TIMEOUT: Duration = Duration::from_secs(3);

/// A look that takes longer is not worth the wait: it is for a warning only.
const SECRET_TIMEOUT: Duration = Duration::from_secs(2);

/// What the rules may ask.
pub struct Cluster {
    pub client: Client,
    pub infrastructures: Store<Infrastructure>,
    /// Secrets are looked for here and nowhere else: whoever reaches the port may ask.
    pub namespace: String,
    /// The region where no Infrastructure names one.
    pub region: Option<String>,
}

impl Cluster {
    /// What is known now; none if nothing can be known yet.
    pub(super) async fn context(&self) -> Option<Context> {
        tokio::time::timeout(SYNC_TIMEOUT, self.infrastructures.synced()).await.ok()?;
        let architecture = Architecture::of_name(std::env::consts::ARCH);
        let infrastructure = self.infrastructures.get(&ObjectKey::cluster_wide("cluster"));
        let status = infrastructure.as_ref().and_then(|object| object.status.as_ref());
        let mut context = match status {
            Some(status) => Context::of_infrastructure(status, architecture),
            None => Context { architecture, ..Context::default() },
        };
        context.region = context.region.or_else(|| self.region.clone());
        Some(context)
    }

    /// Looks whether a Secret exists, without reading it. What cannot be told in time is not asked, nor
    /// while too many others ask: one question is one request to the API server, and strangers must not
    /// make us flood it.
    pub(super) async fn look_for_secret(
        &self,
        secret: &SecretName,
        looks: &Semaphore,
    ) -> SecretKnowledge {
        if secret.namespace != self.namespace {
            return SecretKnowledge::NotAsked;
        }
        // The name becomes a part of a path; a Secret of another name cannot exist.
        if !is_object_name(&secret.name) {
            return SecretKnowledge::Missing;
        }
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &secret.namespace);
        let looked = async {
            let _permit = looks.acquire().await;
            secrets.get_metadata_opt(&secret.name).await
        };
        match tokio::time::timeout(SECRET_TIMEOUT, looked).await {
            Ok(Ok(Some(_))) => SecretKnowledge::Found,
            Ok(Ok(None)) => SecretKnowledge::Missing,
            Ok(Err(kube::Error::Api(status))) if (400..500).contains(&status.code) => {
                SecretKnowledge::Unreadable(status.message)
            }
            Ok(Err(_)) | Err(_) => SecretKnowledge::NotAsked,
        }
    }
}

/// The API server's rule for names of Secrets (RFC 1123).
fn is_object_name(name: &str) -> bool {
    let is_word = |part: &str| {
        !part.is_empty()
            && !part.starts_with('-')
            && !part.ends_with('-')
            && part.chars().all(|one| matches!(one, 'a'..='z' | '0'..='9' | '-'))
    };
    name.len() <= 253 && name.split('.').all(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_leave_the_path_is_no_name() {
        for good in ["a", "aws-cloud-credentials", "a.b-c.0"] {
            assert!(is_object_name(good), "{good}");
        }
        for bad in ["", ".", "..", "../configmaps/x", "a/b", "a?b", "A", "a..b", "-a", "a-", "ä"] {
            assert!(!is_object_name(bad), "{bad}");
        }
        assert!(!is_object_name(&"a".repeat(254)));
    }
}
