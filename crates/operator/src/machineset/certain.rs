//! How does a set, of either API, make and delete each Machine once, on a view that may be late?

use std::fmt::Debug;

use anyhow::Context as _;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Api, Resource,
    api::{DeleteParams, ListParams, Preconditions},
};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    engine::store::{ObjectKey, Store},
    write::{self, WriteError},
};

/// The objects of one kind, as the API server has them and as the watch shows them.
pub struct Objects<'a, K> {
    pub api: Api<K>,
    pub store: &'a Store<K>,
}

impl<K> Objects<'_, K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Serialize,
{
    /// Asks the API server for the set itself before any Machine is made. A view that is late shows a set as wanted, or
    /// as large, that is neither any more, and each Machine costs an instance. What is news is taken in, and the pass is
    /// decided again.
    pub async fn confirm_as_seen(&self, set: &K) -> anyhow::Result<()> {
        let key = ObjectKey::of(set);
        let stored = self.api.get_opt(&key.name).await;
        let stored = stored.with_context(|| format!("failed to look at set {key}"))?;
        let is_as_seen = stored.as_ref().is_some_and(|stored| {
            stored.meta().uid == set.meta().uid
                && stored.meta().generation == set.meta().generation
                && stored.meta().deletion_timestamp == set.meta().deletion_timestamp
        });
        if is_as_seen {
            return Ok(());
        }
        tracing::warn!(set = %key, "the watch does not show how the set is now");
        match stored {
            Some(stored) => self.store.apply_written(stored),
            None => {
                let uid = set.meta().uid.as_deref().unwrap_or_default();
                self.store.forget_written(&key, uid);
            }
        }
        Err(WriteError::Conflict { what: format!("set {key}") }.into())
    }

    /// Asks the API server for the set's Machines before any is made, and before the set goes. A watch that lost an event
    /// shows fewer than there are, and a Machine too many is an instance too many. What was unseen is taken in, and the
    /// pass is decided again.
    pub async fn reveal_unseen(
        &self,
        set: &ObjectKey,
        selector: &str,
        is_own: impl Fn(&ObjectMeta) -> bool,
    ) -> anyhow::Result<()> {
        let listed = self.api.list_metadata(&ListParams::default().labels(selector)).await;
        let listed =
            listed.with_context(|| format!("failed to count the machines of set {set}"))?;
        let unreadable = self.store.invalid();
        let mut is_news = false;
        for machine in listed.items {
            let key = ObjectKey::of(&machine);
            let is_known = self.store.get(&key).is_some()
                || unreadable.iter().any(|known| known.metadata.uid == machine.metadata.uid);
            if is_own(&machine.metadata) && !is_known {
                tracing::warn!(set = %set, machine = %key, "the watch does not show a machine");
                self.store.apply_written(self.api.get(&key.name).await?);
                is_news = true;
            }
        }
        if is_news {
            let what = format!("the machines of set {set}");
            return Err(WriteError::Conflict { what }.into());
        }
        Ok(())
    }

    /// Makes a Machine, and says whether it is certain what became of it.
    pub async fn create(&self, set: &ObjectKey, machine: &K) -> (anyhow::Result<()>, bool) {
        let name = machine.meta().name.clone().unwrap_or_default();
        let answer = match self.api.create(&write::creation(), machine).await {
            // The answer to an earlier try was lost. The watch may not show it yet: counted from now on, or another would
            // be made in its place.
            Err(kube::Error::Api(status)) if status.code == 409 => self.api.get(&name).await,
            answer => answer,
        };
        let is_certain = match &answer {
            Ok(_) => true,
            Err(kube::Error::Api(status)) => status.code < 500 && status.code != 429,
            Err(_) => false,
        };
        let made = answer.with_context(|| format!("failed to make machine {name}"));
        let made = made.map(|created| {
            tracing::info!(set = %set, machine = name, "made a machine");
            self.store.apply_written(created);
        });
        (made, is_certain)
    }

    /// Deletes a Machine as it was seen.
    pub async fn delete(
        &self,
        set: &ObjectKey,
        name: &str,
        uid: &str,
        version: String,
    ) -> anyhow::Result<()> {
        let preconditions =
            Preconditions { uid: Some(uid.to_owned()), resource_version: Some(version) };
        let parameters = DeleteParams { preconditions: Some(preconditions), ..Default::default() };
        let key = ObjectKey::new(&set.namespace, name);
        match self.api.delete(name, &parameters).await {
            Ok(answer) => {
                tracing::info!(set = %set, machine = name, "deleted a machine");
                self.store.apply_deleted(&key, uid, answer.left());
                Ok(())
            }
            Err(kube::Error::Api(status)) if status.code == 404 => {
                self.store.forget_written(&key, uid);
                Ok(())
            }
            Err(kube::Error::Api(status)) if status.code == 409 => {
                Err(WriteError::Conflict { what: format!("Machine {key}") }.into())
            }
            Err(error) => {
                Err(anyhow::Error::new(error).context(format!("failed to delete machine {key}")))
            }
        }
    }
}
