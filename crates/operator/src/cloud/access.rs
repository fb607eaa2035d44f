//! Which cloud a Machine lives in, and how it is reached: credentials from the Machine's secret,
//! region and endpoint from the cluster's Infrastructure object or from flags.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, Client};
use machinist_api::{
    Machine,
    openshift_config::{AwsPlatformStatus, Infrastructure},
};
use machinist_core::{
    cloud::{CloudFailure, ErrorClass},
    machine::observed::{cluster_id, validate},
    providerspec::ProviderSpecFacts,
};
use machinist_providers::Provider;
use tokio::time::Instant;

use super::{
    connect::{Connect, ConnectRequest, Credentials},
    pace::Pace,
    view::{CloudView, Listener, ViewTimings},
};
use crate::engine::{
    env::Env,
    store::{ObjectKey, Store},
    supervisor::Spawner,
};

/// Flags that take precedence over the cluster's Infrastructure object.
#[derive(Clone, Debug)]
pub struct CloudSettings {
    pub region: Option<String>,
    pub ec2_endpoint: Option<String>,
    pub ca_bundle_pem: Option<String>,
    pub timings: ViewTimings,
}

/// One view and one client for each of these.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CloudKey {
    pub namespace: String,
    pub credentials_secret: Option<String>,
    pub region: String,
    pub cluster_id: String,
}

impl fmt::Display for CloudKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let secret = self.credentials_secret.as_deref().unwrap_or("ambient credentials");
        write!(formatter, "{} in {} by {}/{secret}", self.cluster_id, self.region, self.namespace)
    }
}

/// A cloud within reach.
pub struct CloudAccess {
    pub provider: Arc<dyn Provider>,
    pub view: CloudView,
    pub pace: Pace,
    /// Tags of the whole cluster.
    pub cluster_tags: BTreeMap<String, String>,
    platform: AwsPlatformStatus,
    connected_at: Instant,
}

/// Credentials that were refused are read anew, but no more often than this.
const RECONNECT_PAUSE: Duration = Duration::from_secs(30);

/// Where a cluster's own trusted certificates are on OpenShift.
const CA_NAMESPACE: &str = "openshift-config-managed";
const CA_CONFIG_MAP: &str = "kube-cloud-config";
const CA_KEY: &str = "ca-bundle.pem";

/// Every cloud that some Machine lives in.
pub struct Clouds {
    client: Client,
    env: Env,
    spawner: Spawner,
    connect: Arc<dyn Connect>,
    settings: CloudSettings,
    infrastructures: Store<Infrastructure>,
    listener: Listener,
    known: Mutex<BTreeMap<CloudKey, Arc<CloudAccess>>>,
    /// Lets one connection be made at a time, so that no two views are opened for one key.
    connecting: tokio::sync::Mutex<()>,
}

impl Clouds {
    pub fn new(
        client: &Client,
        env: &Env,
        spawner: &Spawner,
        connect: Arc<dyn Connect>,
        settings: CloudSettings,
        infrastructures: &Store<Infrastructure>,
        listener: Listener,
    ) -> Self {
        Self {
            client: client.clone(),
            env: env.clone(),
            spawner: spawner.clone(),
            connect,
            settings,
            infrastructures: infrastructures.clone(),
            listener,
            known: Mutex::default(),
            connecting: tokio::sync::Mutex::default(),
        }
    }

    /// The cloud of a Machine, connected to on first need.
    pub async fn of(&self, machine: &Machine) -> Result<Arc<CloudAccess>, CloudFailure> {
        let facts = validate(machine).map_err(|fault| CloudFailure {
            class: ErrorClass::InvalidConfiguration,
            message: fault.to_string(),
        })?;
        let key = self.key(machine, &facts)?;
        if let Some(access) = self.known(&key) {
            return Ok(access);
        }
        let _one_at_a_time = self.connecting.lock().await;
        if let Some(access) = self.known(&key) {
            return Ok(access);
        }
        let access = Arc::new(self.open(&key, &facts).await?);
        let view = access.view.clone();
        self.spawner.spawn(format!("cloud view of {key}"), view.run());
        if let Some(replaced) = self.lock().insert(key, Arc::clone(&access)) {
            replaced.view.close();
        }
        Ok(access)
    }

    /// How old each view is, for metrics.
    pub fn views(&self) -> Vec<(CloudKey, Option<Duration>)> {
        let now = self.env.instant();
        self.lock()
            .iter()
            .map(|(key, access)| {
                let listed_at = access.view.snapshot().listed_at;
                (key.clone(), listed_at.map(|at| now.saturating_duration_since(at)))
            })
            .collect()
    }

    /// The open connection, unless there is reason to open another: the credentials are refused
    /// and may have been rotated, or the cluster's endpoint or tags have changed.
    fn known(&self, key: &CloudKey) -> Option<Arc<CloudAccess>> {
        let access = self.lock().get(key).cloned()?;
        let snapshot = access.view.snapshot();
        let is_refused = snapshot
            .failure
            .as_ref()
            .is_some_and(|failure| failure.class == ErrorClass::Unauthorized);
        let is_old = self.env.instant() > access.connected_at + RECONNECT_PAUSE;
        let is_same_platform = access.platform == self.aws_platform().unwrap_or_default();
        (is_same_platform && !(is_refused && is_old)).then_some(access)
    }

    fn key(&self, machine: &Machine, facts: &ProviderSpecFacts) -> Result<CloudKey, CloudFailure> {
        let region = facts
            .region
            .clone()
            .or_else(|| self.settings.region.clone())
            .or_else(|| self.aws_platform().map(|aws| aws.region).filter(|name| !name.is_empty()))
            .ok_or_else(|| CloudFailure {
                class: ErrorClass::InvalidConfiguration,
                message: "spec.providerSpec.value.placement.region: Required value: neither the \
                          machine nor the cluster names a region"
                    .to_owned(),
            })?;
        Ok(CloudKey {
            namespace: machine.metadata.namespace.clone().unwrap_or_default(),
            credentials_secret: facts.credentials_secret.clone(),
            region,
            cluster_id: cluster_id(machine).unwrap_or_default().to_owned(),
        })
    }

    async fn open(
        &self,
        key: &CloudKey,
        facts: &ProviderSpecFacts,
    ) -> Result<CloudAccess, CloudFailure> {
        let platform = self.aws_platform().unwrap_or_default();
        let of_platform = platform
            .service_endpoints
            .iter()
            .find(|endpoint| endpoint.name == "ec2")
            .map(|endpoint| endpoint.url.clone());
        let ca_bundle_pem = match &self.settings.ca_bundle_pem {
            Some(bundle) => Some(bundle.clone()),
            None => self.cluster_ca_bundle().await,
        };
        let request = ConnectRequest {
            kind: facts.kind,
            region: key.region.clone(),
            endpoint: self.settings.ec2_endpoint.clone().or(of_platform),
            credentials: self.credentials(key).await?,
            ca_bundle_pem,
        };
        let provider = self.connect.connect(request).await.map_err(|error| CloudFailure {
            class: error.class,
            message: format!("could not connect to {key}: {error}"),
        })?;
        let view = CloudView::new(
            &key.cluster_id,
            Arc::clone(&provider),
            &self.env,
            self.settings.timings,
            Arc::clone(&self.listener),
        );
        Ok(CloudAccess {
            provider,
            view,
            pace: Pace::new(&self.env),
            cluster_tags: platform
                .resource_tags
                .iter()
                .map(|tag| (tag.key.clone(), tag.value.clone()))
                .collect(),
            platform,
            connected_at: self.env.instant(),
        })
    }

    async fn credentials(&self, key: &CloudKey) -> Result<Credentials, CloudFailure> {
        let Some(name) = &key.credentials_secret else { return Ok(Credentials::Ambient) };
        let path = format!("secret {}/{name}", key.namespace);
        let secret = Api::<Secret>::namespaced(self.client.clone(), &key.namespace)
            .get_opt(name)
            .await
            .map_err(|error| CloudFailure {
                class: ErrorClass::Transient,
                message: format!("{path} could not be read: {error}"),
            })?
            .ok_or_else(|| CloudFailure {
                class: ErrorClass::Unauthorized,
                message: format!(
                    "spec.providerSpec.value.credentialsSecret.name: {path} was not found"
                ),
            })?;
        let data = secret.data.unwrap_or_default();
        Ok(Credentials::Secret(data.into_iter().map(|(key, bytes)| (key, bytes.0)).collect()))
    }

    /// The cluster's own certificates; a cluster without them uses the system's.
    async fn cluster_ca_bundle(&self) -> Option<String> {
        let api = Api::<ConfigMap>::namespaced(self.client.clone(), CA_NAMESPACE);
        match api.get_opt(CA_CONFIG_MAP).await {
            Ok(found) => found?.data?.remove(CA_KEY),
            Err(error) => {
                tracing::debug!(%error, "the cluster's CA bundle could not be read");
                None
            }
        }
    }

    fn aws_platform(&self) -> Option<AwsPlatformStatus> {
        let infrastructure = self.infrastructures.get(&ObjectKey::cluster_wide("cluster"))?;
        infrastructure.status.as_ref()?.platform_status.as_ref()?.aws.clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<CloudKey, Arc<CloudAccess>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
