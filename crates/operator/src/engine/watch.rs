//! How does the store learn what happens in the cluster?
//!
//! Feeds a store from kube's `watcher` stream, one watch for each kind. Lists are applied object by object over what is
//! already known, so the store is never seen empty or half full during a relist; what a complete list
//! lacks is then removed. The retry delays are ours, because kube's draw on unseeded randomness.

use std::{collections::BTreeSet, fmt::Debug, sync::Arc, time::Duration};

use futures::StreamExt;
use kube::{
    Api, Client, Resource,
    core::{DynamicResourceScope, NamespaceResourceScope, Request},
    runtime::watcher::{self, watcher},
};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout};

use super::{
    backoff::Backoff,
    env::Env,
    guarded::Guarded,
    store::{Doubt, InvalidObject, ObjectKey, Store},
};
use crate::metrics::Metrics;

/// The delays between attempts to list or watch.
const RETRY: Backoff = Backoff { base: Duration::from_secs(1), cap: Duration::from_secs(60) };

/// After so long without a failure the next one counts as the first again.
const RETRY_RESET: Duration = Duration::from_secs(120);

/// How often a kind that the cluster does not have is asked for.
const ABSENT_KIND_RETRY: Duration = Duration::from_secs(60);

/// Objects in a page of a list. The page's text and its parsed objects are in memory at once; 200 pods are about 5 MB.
const PAGE_SIZE: u32 = 200;

/// A watch that failed and was tried again this long ago, without another failure, goes on. kube's stream tells of
/// failures but not of a new beginning.
const RESUMED_AFTER: Duration = Duration::from_secs(15);

/// The longest wait for the answer to a single read.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// A kind that can be watched. What is known of it only at run time (the kind of a provider's object) is its
/// `DynamicType`.
pub trait Watched:
    Resource<DynamicType: Clone + Send + Sync + 'static>
    + Clone
    + Debug
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
}

impl<K> Watched for K where
    K: Resource<DynamicType: Clone + Send + Sync + 'static>
        + Clone
        + Debug
        + DeserializeOwned
        + Send
        + Sync
        + 'static
{
}

/// A watch that keeps a store up to date.
pub struct Watch<K: Resource> {
    client: Client,
    kind: K::DynamicType,
    api: Api<Guarded<K>>,
    config: watcher::Config,
    store: Store<K>,
    metrics: Metrics,
    presence: Presence,
    on_invalid: Arc<dyn Fn(&InvalidObject) + Send + Sync>,
}

/// Whether the cluster must have the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    Required,
    Optional,
}

/// What one list has shown so far.
#[derive(Default)]
struct Listing {
    keys: BTreeSet<ObjectKey>,
    newest: Option<u64>,
}

impl<K: Watched + Resource<DynamicType = ()>> Watch<K> {
    /// Watches all objects of the kind.
    #[must_use]
    pub fn cluster_wide(client: &Client, metrics: &Metrics, store: &Store<K>) -> Self {
        Self::over(client, (), Api::all(client.clone()), metrics, store)
    }

    /// Watches the objects of one namespace.
    #[must_use]
    pub fn namespaced(client: &Client, metrics: &Metrics, store: &Store<K>, namespace: &str) -> Self
    where
        K: Resource<Scope = NamespaceResourceScope>,
    {
        Self::over(client, (), Api::namespaced(client.clone(), namespace), metrics, store)
    }

    /// Watches the objects of one namespace, or of all when none is named.
    #[must_use]
    pub fn within(
        client: &Client,
        metrics: &Metrics,
        store: &Store<K>,
        namespace: Option<&str>,
    ) -> Self
    where
        K: Resource<Scope = NamespaceResourceScope>,
    {
        match namespace {
            Some(namespace) => Self::namespaced(client, metrics, store, namespace),
            None => Self::cluster_wide(client, metrics, store),
        }
    }
}

impl<K: Watched + Resource<Scope = DynamicResourceScope>> Watch<K> {
    /// Watches the objects of a kind that is known only now, in one namespace or in all.
    #[must_use]
    pub fn of_kind(
        client: &Client,
        kind: &K::DynamicType,
        metrics: &Metrics,
        store: &Store<K>,
        namespace: Option<&str>,
    ) -> Self {
        let api = match namespace {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, kind),
            None => Api::all_with(client.clone(), kind),
        };
        Self::over(client, kind.clone(), api, metrics, store)
    }
}

impl<K: Watched> Watch<K> {
    fn over(
        client: &Client,
        kind: K::DynamicType,
        api: Api<Guarded<K>>,
        metrics: &Metrics,
        store: &Store<K>,
    ) -> Self {
        Self {
            client: client.clone(),
            kind,
            api,
            config: watcher::Config::default().page_size(PAGE_SIZE),
            store: store.clone(),
            metrics: metrics.clone(),
            presence: Presence::Required,
            on_invalid: Arc::new(|_| ()),
        }
    }

    /// Restricts the watch by a label selector.
    #[must_use]
    pub fn labels(mut self, selector: &str) -> Self {
        self.config = self.config.labels(selector);
        self
    }

    /// Restricts the watch by a field selector.
    #[must_use]
    pub fn fields(mut self, selector: &str) -> Self {
        self.config = self.config.fields(selector);
        self
    }

    /// Declares that the cluster may lack the kind: the store then counts as synced and empty, and the kind is asked
    /// for again from time to time.
    #[must_use]
    pub fn optional(mut self) -> Self {
        self.presence = Presence::Optional;
        self
    }

    /// Calls `report` for each new version of an object that could not be read.
    #[must_use]
    pub fn on_invalid(mut self, report: impl Fn(&InvalidObject) + Send + Sync + 'static) -> Self {
        self.on_invalid = Arc::new(report);
        self
    }

    /// Watches as long as the process lives.
    ///
    /// # Errors
    /// Fails only if kube's watcher ends, which it never does.
    pub async fn run(self, env: Env) -> anyhow::Result<()> {
        let stream = watcher(self.api.clone(), self.config.clone());
        let mut stream = std::pin::pin!(stream);
        let mut listing = Listing::default();
        let mut failures = Failures::default();
        let mut ask_after = env.instant();
        loop {
            tokio::select! {
                biased;
                event = stream.next() => match event {
                    Some(Ok(event)) => self.apply(event, &mut listing),
                    Some(Err(error)) => {
                        let delay = self.note_failure(&error, &mut failures, &env);
                        self.store.note_interruption(Some(env.instant() + delay + RESUMED_AFTER));
                        env.sleep(delay).await;
                    }
                    None => anyhow::bail!("the watch of {} ended", K::plural(&self.kind)),
                },
                doubt = self.next_doubt(ask_after) => {
                    if let Err(error) = self.check_existence(&doubt).await {
                        tracing::debug!(kind = %K::kind(&self.kind), key = %doubt.key, %error, "check failed");
                        // The stream is read meanwhile: an event may answer the question.
                        ask_after = env.instant() + failures.next_delay(&env);
                    }
                }
            }
        }
    }

    async fn next_doubt(&self, not_before: Instant) -> Doubt {
        tokio::time::sleep_until(not_before).await;
        self.store.next_doubt().await
    }

    fn apply(&self, event: watcher::Event<Guarded<K>>, listing: &mut Listing) {
        // A list that has begun may fail yet; whatever else is heard shows that we are up to date.
        if !matches!(event, watcher::Event::Init | watcher::Event::InitApply(_)) {
            self.store.note_interruption(None);
        }
        match event {
            watcher::Event::Init => *listing = Listing::default(),
            watcher::Event::InitApply(object) => {
                listing.note(&object);
                self.put(object);
            }
            watcher::Event::InitDone => {
                let listing = std::mem::take(listing);
                self.store.finish_list(&listing.keys, listing.newest);
            }
            watcher::Event::Apply(object) => self.put(object),
            watcher::Event::Delete(object) => self.store.apply_watched_deletion(object.meta()),
        }
    }

    fn put(&self, object: Guarded<K>) {
        match object.0 {
            Ok(object) => self.store.apply_watched(object),
            Err(invalid) => {
                if self.store.apply_invalid(invalid.metadata.clone(), invalid.error.clone()) {
                    tracing::warn!(
                        kind = %K::kind(&self.kind),
                        key = %ObjectKey::of_metadata(&invalid.metadata),
                        error = invalid.error,
                        "object cannot be read and is left alone"
                    );
                    (self.on_invalid)(&invalid);
                }
            }
        }
    }

    fn note_failure(&self, error: &watcher::Error, failures: &mut Failures, env: &Env) -> Duration {
        let kind = K::kind(&self.kind);
        match (status_code(error), self.presence) {
            (Some(404), Presence::Optional) => {
                if !self.store.is_synced() {
                    tracing::info!(%kind, "the cluster does not have this kind; going on without it");
                }
                self.store.mark_absent();
                return env.jitter(ABSENT_KIND_RETRY, 0.2);
            }
            // The server forgot the version we were at; listing again is the normal way on.
            (Some(410), _) => tracing::debug!(%kind, %error, "watch expired"),
            (_, _) => tracing::warn!(%kind, %error, "watch failed"),
        }
        self.metrics.count_watch_failure(&kind);
        failures.next_delay(env)
    }

    /// Asks the API server whether an object exists.
    async fn check_existence(&self, doubt: &Doubt) -> anyhow::Result<()> {
        let namespace = Some(doubt.key.namespace.as_str()).filter(|name| !name.is_empty());
        let request = Request::new(K::url_path(&self.kind, namespace))
            .get(&doubt.key.name, &kube::api::GetParams::default())?;
        match timeout(READ_TIMEOUT, self.client.request::<Guarded<K>>(request)).await? {
            Ok(object) => {
                self.store.settle_doubt_as_present(doubt);
                self.put(object);
            }
            Err(kube::Error::Api(status)) if status.code == 404 => {
                self.store.settle_doubt_as_gone(doubt);
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

impl Listing {
    fn note<K: Resource>(&mut self, object: &K) {
        self.newest = self.newest.max(super::store::version_of(object.meta()));
        self.keys.insert(ObjectKey::of(object));
    }
}

/// Failures in a row, where a long quiet time ends the row.
#[derive(Default)]
struct Failures {
    count: u32,
    last: Option<Instant>,
}

impl Failures {
    fn next_delay(&mut self, env: &Env) -> Duration {
        let now = env.instant();
        let quiet = self.last.is_none_or(|last| now.duration_since(last) > RETRY_RESET);
        self.count = if quiet { 1 } else { self.count.saturating_add(1) };
        self.last = Some(now);
        RETRY.delay(self.count, env)
    }
}

fn status_code(error: &watcher::Error) -> Option<u16> {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status)) => Some(status.code),
        watcher::Error::WatchError(status) => Some(status.code),
        watcher::Error::InitialListFailed(_)
        | watcher::Error::WatchStartFailed(_)
        | watcher::Error::WatchFailed(_)
        | watcher::Error::NoResourceVersion => None,
    }
}

#[cfg(test)]
mod tests;
