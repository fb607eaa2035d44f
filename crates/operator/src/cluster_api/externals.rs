//! What is known of the objects of providers?
//!
//! Their kinds are named by Machines, Clusters and sets only. On the first sight of a kind the labels of its CRD say which version is
//! spoken to, and one watch of it begins, which keeps the fields of the contract. Later sights find the watch there.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
    time::Duration,
};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client,
    api::{ApiResource, DeleteParams, DynamicObject, Preconditions},
};
use machinist_core::cluster_api::contract::{
    Contract, GroupKind, Served,
    discovery::{Unresolved, resolve},
    reading,
};
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    engine::{
        env::Env,
        store::{Change, ObjectKey, Store},
        supervisor::Spawner,
        watch::Watch,
    },
    metrics::Metrics,
    write::{self, Precondition, WriteError},
};

/// After so long the labels of a CRD are read again: a provider may have been upgraded.
const LABELS_KEPT: Duration = Duration::from_secs(300);
/// After so long a kind that could not be spoken to is asked for again.
const REFUSAL_KEPT: Duration = Duration::from_secs(15);
/// The longest wait for the first list of a kind.
const LIST_TIMEOUT: Duration = Duration::from_secs(20);

/// Why an object of a provider cannot be looked at.
#[derive(Debug, thiserror::Error)]
pub enum ExternalError {
    #[error(transparent)]
    Unresolved(#[from] Unresolved),
    #[error("{0} are not listed yet")]
    NotListed(String),
    #[error("failed to read {what}")]
    Failed {
        what: String,
        #[source]
        source: Box<kube::Error>,
    },
}

/// A kind that is watched.
pub struct Provided {
    pub kind: GroupKind,
    pub served: Served,
    pub resource: ApiResource,
    pub store: Store<DynamicObject>,
    stop: CancellationToken,
}

impl Drop for Provided {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// What was asked for: the kind, and the object if it is there.
#[derive(Clone)]
pub struct Found {
    pub provided: Arc<Provided>,
    pub object: Option<Arc<DynamicObject>>,
}

type Listener = Box<dyn Fn(&GroupKind, &Change<DynamicObject>) + Send + Sync>;

/// All kinds of providers that were seen. Clones share them.
#[derive(Clone)]
pub struct Externals {
    shared: Arc<Shared>,
}

struct Shared {
    client: Client,
    env: Env,
    metrics: Metrics,
    spawner: Spawner,
    namespace: Option<String>,
    kinds: Mutex<BTreeMap<GroupKind, Known>>,
    /// One at a time resolves and begins to watch, so that no kind is watched twice.
    beginning: tokio::sync::Mutex<()>,
    listeners: RwLock<Vec<Arc<Listener>>>,
}

#[derive(Clone)]
struct Known {
    resolved: Result<Served, Unresolved>,
    until: Instant,
    provided: Option<Arc<Provided>>,
}

impl Externals {
    pub fn new(
        client: &Client,
        env: &Env,
        metrics: &Metrics,
        spawner: &Spawner,
        namespace: Option<&str>,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                client: client.clone(),
                env: env.clone(),
                metrics: metrics.clone(),
                spawner: spawner.clone(),
                namespace: namespace.map(str::to_owned),
                kinds: Mutex::default(),
                beginning: tokio::sync::Mutex::default(),
                listeners: RwLock::default(),
            }),
        }
    }

    /// Says who else is told of changes.
    pub fn listen(
        &self,
        listener: impl Fn(&GroupKind, &Change<DynamicObject>) + Send + Sync + 'static,
    ) {
        let mut all = self.shared.listeners.write().unwrap_or_else(PoisonError::into_inner);
        all.push(Arc::new(Box::new(listener)));
    }

    /// How a kind is spoken to.
    pub async fn resolve(&self, kind: &GroupKind) -> Result<Served, ExternalError> {
        if let Some(known) = self.fresh(kind) {
            return Ok(known.resolved?);
        }
        let _turn = self.shared.beginning.lock().await;
        match self.fresh(kind) {
            Some(known) => Ok(known.resolved?),
            None => Ok(self.look_up(kind).await?.resolved?),
        }
    }

    /// The object of this kind and name, as the watch shows it. One that is not there is asked for, so that an object that
    /// was made a moment ago is not called missing.
    pub async fn find(
        &self,
        kind: &GroupKind,
        namespace: &str,
        name: &str,
    ) -> Result<Found, ExternalError> {
        let provided = self.provided(kind).await?;
        let listed = tokio::time::timeout(LIST_TIMEOUT, provided.store.synced()).await;
        if listed.is_err() {
            return Err(ExternalError::NotListed(kind.crd_name()));
        }
        let key = ObjectKey::new(namespace, name);
        if let Some(object) = provided.store.get(&key) {
            return Ok(Found { provided, object: Some(object) });
        }
        let api = self.api(&provided, namespace);
        let stored =
            api.get_opt(name).await.map_err(|error| failed(kind, namespace, name, error))?;
        if let Some(stored) = stored {
            provided.store.apply_written(stored);
        }
        let object = provided.store.get(&key);
        Ok(Found { provided, object })
    }

    /// An object whole, as the API server has it: a template. Its kind is not watched.
    pub async fn read_whole(
        &self,
        kind: &GroupKind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<DynamicObject>, ExternalError> {
        let served = self.resolve(kind).await?;
        self.read_in(kind, &served.version, namespace, name).await
    }

    /// The same of a kind whose version is named, so that no label is asked for.
    pub async fn read_in(
        &self,
        kind: &GroupKind,
        version: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Option<DynamicObject>, ExternalError> {
        let resource = resource_of(kind, version);
        let api =
            Api::<DynamicObject>::namespaced_with(self.shared.client.clone(), namespace, &resource);
        api.get_opt(name).await.map_err(|error| failed(kind, namespace, name, error))
    }

    /// Creates an object, whole as given; the watch of its kind knows it at once.
    pub async fn create(
        &self,
        kind: &GroupKind,
        namespace: &str,
        object: &Value,
    ) -> anyhow::Result<Arc<DynamicObject>> {
        let provided = self.provided(kind).await?;
        self.create_among(&provided, namespace, object).await
    }

    /// The same of a kind that is known to be watched.
    pub async fn create_among(
        &self,
        provided: &Provided,
        namespace: &str,
        object: &Value,
    ) -> anyhow::Result<Arc<DynamicObject>> {
        let object: DynamicObject = serde_json::from_value(object.clone())?;
        let created = self.api(provided, namespace).create(&write::creation(), &object).await;
        let created = created.map_err(|error| {
            let name = object.metadata.name.clone().unwrap_or_default();
            WriteError::of(format!("{} {namespace}/{name}", provided.kind.kind), error)
        })?;
        provided.store.apply_written(created.clone());
        Ok(Arc::new(created))
    }

    /// Changes an object by a merge patch, as it was observed.
    pub async fn patch(
        &self,
        provided: &Provided,
        object: &DynamicObject,
        patch: Value,
    ) -> Result<(), WriteError> {
        let api = self.api(provided, object.metadata.namespace.as_deref().unwrap_or_default());
        let written = write::external(&api, object, patch, Precondition::Observed).await?;
        provided.store.apply_written(written);
        Ok(())
    }

    /// Deletes the object of this uid.
    pub async fn delete(
        &self,
        provided: &Provided,
        object: &DynamicObject,
    ) -> Result<(), WriteError> {
        let metadata = &object.metadata;
        let (name, uid) = (metadata.name.clone().unwrap_or_default(), metadata.uid.clone());
        let api = self.api(provided, metadata.namespace.as_deref().unwrap_or_default());
        let parameters = DeleteParams {
            preconditions: Some(Preconditions { uid: uid.clone(), resource_version: None }),
            ..Default::default()
        };
        let key = ObjectKey::of_metadata(metadata);
        match api.delete(&name, &parameters).await {
            Ok(answer) => {
                let remaining = answer.left().filter(|left| left.metadata.uid == uid);
                provided.store.apply_deleted(&key, uid.as_deref().unwrap_or_default(), remaining);
                Ok(())
            }
            Err(error) => match WriteError::of(format!("{} {key}", provided.kind.kind), error) {
                WriteError::Gone { .. } => Ok(()),
                error => Err(error),
            },
        }
    }

    /// The kinds that are watched now, for those who list all objects of a kind.
    pub fn watched(&self) -> Vec<Arc<Provided>> {
        self.lock().values().filter_map(|known| known.provided.clone()).collect()
    }

    /// The kind, with its watch.
    pub async fn provided(&self, kind: &GroupKind) -> Result<Arc<Provided>, ExternalError> {
        if let Some(Known { resolved: Ok(_), provided: Some(provided), .. }) = self.fresh(kind) {
            return Ok(provided);
        }
        let _turn = self.shared.beginning.lock().await;
        let known = match self.fresh(kind) {
            Some(known) => known,
            None => self.look_up(kind).await?,
        };
        let served = known.resolved?;
        match known.provided.filter(|provided| provided.served == served) {
            Some(provided) => Ok(provided),
            None => Ok(self.begin(kind, served)),
        }
    }

    /// The kind in a version that is named, with its watch. No label is asked for: only providers have them.
    pub async fn provided_in(&self, kind: &GroupKind, version: &str) -> Arc<Provided> {
        let _turn = self.shared.beginning.lock().await;
        let known = self.lock().get(kind).and_then(|known| known.provided.clone());
        if let Some(provided) = known.filter(|provided| provided.served.version == version) {
            return provided;
        }
        let served = Served { contract: Contract::V1Beta2, version: version.to_owned() };
        let until = self.shared.env.instant() + LABELS_KEPT;
        let known = Known { resolved: Ok(served.clone()), until, provided: None };
        self.lock().insert(kind.clone(), known);
        self.begin(kind, served)
    }

    fn fresh(&self, kind: &GroupKind) -> Option<Known> {
        let now = self.shared.env.instant();
        self.lock().get(kind).filter(|known| known.until > now).cloned()
    }

    /// Reads the labels of the CRD. What was known of a kind is kept while they cannot be read.
    async fn look_up(&self, kind: &GroupKind) -> Result<Known, ExternalError> {
        let Shared { client, env, .. } = &*self.shared;
        let name = kind.crd_name();
        let api = Api::<CustomResourceDefinition>::all(client.clone());
        let resolved = match api.get_metadata_opt(&name).await {
            Ok(Some(definition)) => resolve(kind, definition.metadata.labels.as_ref()),
            Ok(None) => Err(Unresolved::NoDefinition(name)),
            Err(error) => {
                let known = self.lock().get(kind).cloned().filter(|known| known.resolved.is_ok());
                return known.ok_or_else(|| ExternalError::Failed {
                    what: format!("CustomResourceDefinition {name}"),
                    source: Box::new(error),
                });
            }
        };
        let kept = if resolved.is_ok() { LABELS_KEPT } else { REFUSAL_KEPT };
        let mut kinds = self.lock();
        let provided = kinds.get(kind).and_then(|known| known.provided.clone());
        let known = Known { resolved, until: env.instant() + kept, provided };
        kinds.insert(kind.clone(), known.clone());
        Ok(known)
    }

    fn begin(&self, kind: &GroupKind, served: Served) -> Arc<Provided> {
        let Shared { client, env, metrics, spawner, namespace, .. } = &*self.shared;
        let resource = resource_of(kind, &served.version);
        let store = Store::<DynamicObject>::builder().prune(prune).build();
        let (weak, of) = (Arc::downgrade(&self.shared), kind.clone());
        store.on_change(move |change| {
            let Some(shared) = weak.upgrade() else { return };
            let all = shared.listeners.read().unwrap_or_else(PoisonError::into_inner).clone();
            for listener in all {
                listener(&of, change);
            }
        });
        let stop = CancellationToken::new();
        let watch =
            Watch::of_kind(client, &resource, metrics, &store, namespace.as_deref()).optional();
        let (stopped, env) = (stop.clone(), env.clone());
        tracing::info!(kind = %kind, version = served.version, contract = served.contract.as_str(), "a provider's kind is watched");
        spawner.spawn(format!("watch of {}", kind.plural()), async move {
            tokio::select! {
                biased;
                () = stopped.cancelled() => Ok(()),
                ended = watch.run(env) => ended,
            }
        });
        let provided = Arc::new(Provided { kind: kind.clone(), served, resource, store, stop });
        if let Some(known) = self.lock().get_mut(kind) {
            known.provided = Some(Arc::clone(&provided));
        }
        provided
    }

    fn api(&self, provided: &Provided, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.shared.client.clone(), namespace, &provided.resource)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<GroupKind, Known>> {
        self.shared.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn failed(kind: &GroupKind, namespace: &str, name: &str, error: kube::Error) -> ExternalError {
    ExternalError::Failed {
        what: format!("{} {namespace}/{name}", kind.kind),
        source: Box::new(error),
    }
}

fn resource_of(kind: &GroupKind, version: &str) -> ApiResource {
    ApiResource {
        group: kind.group.clone(),
        version: version.to_owned(),
        api_version: format!("{}/{version}", kind.group),
        kind: kind.kind.clone(),
        plural: kind.plural(),
    }
}

fn prune(object: &mut DynamicObject) {
    reading::keep_contract(&mut object.data);
    if let Some(annotations) = &mut object.metadata.annotations {
        annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
    }
}
