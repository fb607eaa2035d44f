//! One client for each set of credentials and region: kept as long as it serves, replaced in place
//! when the credentials were rotated, or the cluster's endpoints, proxy or trusted certificates have
//! changed.
//!
//! Whoever holds a connection, a view for example, never notices the replacement: nothing is learnt
//! anew.

mod provider;

use std::{
    collections::BTreeMap,
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, Client};
use machinist_api::openshift_config::AwsPlatformStatus;
use machinist_core::{
    cloud::{CloudFailure, ErrorClass},
    endpoint::{self, NamedBy},
    providerspec::ProviderKind,
    proxy::ProxySettings,
};
use machinist_providers::{Provider, ProviderError, notice::NoticeQueue};
use tokio::time::Instant;

use super::{
    access::CloudSettings,
    connect::{Connect, ConnectRequest, Credentials},
    pace::Pace,
    permissions::MissingPermissions,
    view::{CloudView, WeakView},
};
use crate::{engine::env::Env, openshift::OpenShift};

/// Credentials that were refused are read anew, but no more often than this.
pub(super) const RECONNECT_PAUSE: Duration = Duration::from_secs(30);

/// Where a cluster's own trusted certificates are on OpenShift.
const CA_NAMESPACE: &str = "openshift-config-managed";
const CA_CONFIG_MAP: &str = "kube-cloud-config";
const CA_KEY: &str = "ca-bundle.pem";

/// Whose account, and where.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionKey {
    pub namespace: String,
    pub credentials_secret: Option<String>,
    pub region: String,
}

impl fmt::Display for ConnectionKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let secret = self.credentials_secret.as_deref().unwrap_or("ambient credentials");
        write!(formatter, "{} by {}/{secret}", self.region, self.namespace)
    }
}

/// What all connections are made from.
pub(super) struct Connector {
    pub client: Client,
    pub env: Env,
    pub connect: Arc<dyn Connect>,
    pub settings: CloudSettings,
    pub openshift: OpenShift,
    pub permissions: MissingPermissions,
}

/// A cloud within reach. It is a provider itself, so that calls always go to the current client.
pub struct Connection {
    pub key: ConnectionKey,
    pub pace: Arc<Pace>,
    kind: ProviderKind,
    connector: Arc<Connector>,
    current: Mutex<Current>,
    /// Lets one renewal happen at a time.
    renewing: tokio::sync::Mutex<()>,
    /// The views that look through this connection, and hold it.
    views: Mutex<Vec<WeakView>>,
}

struct Current {
    provider: Arc<dyn Provider>,
    notices: Option<Arc<dyn NoticeQueue>>,
    /// Of the credentials; the bytes themselves are not kept.
    fingerprint: u64,
    surroundings: Surroundings,
    /// When the credentials were last read.
    read_at: Instant,
    /// With which surroundings a client could not be made.
    failed_with: Option<Surroundings>,
    /// Whether a call was refused because of who we are, not of what we may do.
    is_refused: bool,
}

/// What a client is made from besides credentials; another means another client.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Surroundings {
    endpoints: BTreeMap<String, String>,
    proxy: Option<ProxySettings>,
    /// Which version of them.
    trusted_certificates: Option<String>,
}

impl Connection {
    pub(super) async fn open(
        connector: &Arc<Connector>,
        key: ConnectionKey,
        kind: ProviderKind,
    ) -> Result<Self, CloudFailure> {
        let pace = Arc::new(Pace::new(&connector.env));
        let credentials = connector.credentials(&key).await?;
        let surroundings = connector.surroundings();
        let current = connector.reach(&key, kind, &pace, credentials, surroundings).await?;
        Ok(Self {
            key,
            pace,
            kind,
            connector: Arc::clone(connector),
            current: Mutex::new(current),
            renewing: tokio::sync::Mutex::default(),
            views: Mutex::default(),
        })
    }

    pub(super) fn add_view(&self, view: &CloudView) {
        self.views.lock().unwrap_or_else(PoisonError::into_inner).push(view.downgrade());
    }

    pub(super) fn views(&self) -> Vec<CloudView> {
        let views = self.views.lock().unwrap_or_else(PoisonError::into_inner);
        views.iter().filter_map(WeakView::upgrade).collect()
    }

    /// The queue of notices, where there is one for this region.
    pub(super) async fn notices(&self) -> Option<Arc<dyn NoticeQueue>> {
        self.renew_if_needed().await;
        self.lock().notices.clone()
    }

    /// The client of now, a new one if there is reason to make one.
    async fn provider(&self) -> Arc<dyn Provider> {
        self.renew_if_needed().await;
        Arc::clone(&self.lock().provider)
    }

    /// Remembers whether the credentials are refused, or too weak: better ones may have been put
    /// in their place. Reading them again costs one request now and then, and the same ones
    /// change nothing.
    pub(super) fn note(&self, error: Option<&ProviderError>) {
        match error {
            None => self.lock().is_refused = false,
            Some(error) if error.class == ErrorClass::Unauthorized => {
                self.lock().is_refused = true;
            }
            Some(_) => {}
        }
    }

    fn needs_renewal(&self) -> bool {
        let now = self.connector.env.instant();
        let surroundings = self.connector.surroundings();
        let current = self.lock();
        let may_read = now >= current.read_at + RECONNECT_PAUSE;
        let is_elsewhere = current.surroundings != surroundings;
        // What is new is tried at once, and then no more often than refused credentials are.
        let is_news = is_elsewhere && current.failed_with.as_ref() != Some(&surroundings);
        is_news || ((is_elsewhere || current.is_refused) && may_read)
    }

    async fn renew_if_needed(&self) {
        if !self.needs_renewal() {
            return;
        }
        // Whoever comes meanwhile goes on with what there is: no call waits for the API server.
        let Ok(_one_at_a_time) = self.renewing.try_lock() else { return };
        if !self.needs_renewal() {
            return;
        }
        match self.renew().await {
            Ok(true) => tracing::info!(cloud = %self.key, "connected anew"),
            Ok(false) => tracing::debug!(cloud = %self.key, "the credentials are the same"),
            Err(failure) => {
                tracing::warn!(cloud = %self.key, error = failure.message, "reconnecting failed");
            }
        }
    }

    async fn renew(&self) -> Result<bool, CloudFailure> {
        let credentials = self.connector.credentials(&self.key).await;
        let surroundings = self.connector.surroundings();
        let is_same = {
            let mut current = self.lock();
            current.failed_with = Some(surroundings.clone());
            current.read_at = self.connector.env.instant();
            let is_same_secret =
                credentials.as_ref().is_ok_and(|read| fingerprint(read) == current.fingerprint);
            is_same_secret && current.surroundings == surroundings
        };
        let credentials = credentials?;
        if is_same {
            return Ok(false);
        }
        let connector = &self.connector;
        let next =
            connector.reach(&self.key, self.kind, &self.pace, credentials, surroundings).await?;
        *self.lock() = next;
        Ok(true)
    }

    fn lock(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connector {
    async fn reach(
        &self,
        key: &ConnectionKey,
        kind: ProviderKind,
        pace: &Arc<Pace>,
        credentials: Credentials,
        surroundings: Surroundings,
    ) -> Result<Current, CloudFailure> {
        self.check_addresses(&surroundings).map_err(|message| CloudFailure {
            class: ErrorClass::InvalidConfiguration,
            message: format!("could not connect to {key}: {message}"),
        })?;
        let fingerprint = fingerprint(&credentials);
        let ca_bundle_pem = match &self.settings.ca_bundle_pem {
            Some(bundle) => Some(bundle.clone()),
            None => self.cluster_ca_bundle().await,
        };
        let request = ConnectRequest {
            kind,
            region: key.region.clone(),
            endpoints: surroundings.endpoints.clone(),
            credentials,
            ca_bundle_pem,
            trusted_ca_pem: self.openshift.trusted_ca(),
            proxy: surroundings.proxy.clone(),
            pacer: Arc::clone(pace) as _,
            permissions: self.permissions.of_caller(&key.to_string()),
        };
        let failure = |error: ProviderError| CloudFailure {
            class: error.class,
            message: format!("could not connect to {key}: {error}"),
        };
        let notices = self.notices(key, &request).await;
        let provider = self.connect.connect(request).await.map_err(failure)?;
        let read_at = self.env.instant();
        Ok(Current {
            provider,
            notices,
            fingerprint,
            surroundings,
            read_at,
            failed_with: None,
            is_refused: false,
        })
    }

    /// A queue that cannot be had is missed, and nothing else is: lists show everything later.
    async fn notices(
        &self,
        key: &ConnectionKey,
        request: &ConnectRequest,
    ) -> Option<Arc<dyn NoticeQueue>> {
        let url = self.settings.event_queue_url_of(&key.region)?;
        match self.connect.notices(request.clone(), url).await {
            Ok(queue) => Some(queue),
            Err(error) => {
                tracing::warn!(cloud = %key, queue = url, error = %error, "no notices are read");
                None
            }
        }
    }

    fn surroundings(&self) -> Surroundings {
        Surroundings {
            endpoints: self.endpoints(),
            proxy: self.openshift.proxy(),
            trusted_certificates: self.openshift.trusted_ca_version(),
        }
    }

    /// Says which of the addresses is none that the operator may be sent to.
    fn check_addresses(&self, surroundings: &Surroundings) -> Result<(), String> {
        // An empty one means AWS's own.
        let named = surroundings.endpoints.iter().filter(|(_, url)| !url.is_empty());
        for (service, url) in named {
            let is_flag = self.settings.endpoints.contains_key(service);
            let named_by = if is_flag { NamedBy::Flag } else { NamedBy::Cluster };
            endpoint::check(url, named_by)
                .map_err(|why| format!("endpoint of {service}: {why}"))?;
        }
        let proxy = surroundings.proxy.iter();
        for url in proxy.flat_map(|proxy| [&proxy.http, &proxy.https]).flatten() {
            endpoint::check(url, NamedBy::Proxy)
                .map_err(|why| format!("proxy of the cluster: {why}"))?;
        }
        Ok(())
    }

    /// Flags come before the cluster's Infrastructure object.
    pub(super) fn endpoints(&self) -> BTreeMap<String, String> {
        let of_platform = self.platform().service_endpoints.into_iter();
        let mut endpoints: BTreeMap<String, String> =
            of_platform.map(|endpoint| (endpoint.name, endpoint.url)).collect();
        endpoints.extend(self.settings.endpoints.clone());
        endpoints
    }

    pub(super) fn platform(&self) -> AwsPlatformStatus {
        let infrastructure = self.openshift.infrastructure();
        let status = infrastructure.as_ref().and_then(|one| one.status.as_ref());
        let platform = status.and_then(|status| status.platform_status.as_ref());
        platform.and_then(|platform| platform.aws.clone()).unwrap_or_default()
    }

    async fn credentials(&self, key: &ConnectionKey) -> Result<Credentials, CloudFailure> {
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
        let data = data.into_iter().map(|(key, bytes)| (key, bytes.0)).collect();
        Ok(Credentials::Secret(Arc::new(data)))
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
}

/// Tells one set of credentials from another, without keeping either.
fn fingerprint(credentials: &Credentials) -> u64 {
    let mut hasher = DefaultHasher::new();
    match credentials {
        Credentials::Ambient => {}
        Credentials::Secret(data) => data.hash(&mut hasher),
    }
    hasher.finish()
}
