//! Which cloud a Machine lives in, and how it is reached: credentials from the Machine's secret,
//! region, endpoints and tags from flags or from the cluster's Infrastructure object.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use kube::Client;
use machinist_api::{Machine, openshift_config::AwsPlatformStatus};
use machinist_core::{
    cloud::{CloudFailure, ErrorClass},
    machine::observed::{cluster_id, validate},
    providerspec::{ProviderKind, ProviderSpecFacts},
};
use machinist_providers::{IpFamily, Provider, service};
use tokio::time::Instant;

use super::{
    connect::Connect,
    connection::{Connection, ConnectionKey, Connector},
    notices,
    pace::Pace,
    permissions::MissingPermissions,
    view::{CloudView, Listener, ViewTimings},
};
use crate::{
    engine::{env::Env, supervisor::Spawner},
    metrics::Metrics,
    openshift::OpenShift,
};

/// Flags that take precedence over the cluster's Infrastructure object.
#[derive(Clone, Debug, Default)]
pub struct CloudSettings {
    pub region: Option<String>,
    /// Where services answer, by the names that Infrastructure's `serviceEndpoints` use.
    pub endpoints: BTreeMap<String, String>,
    pub ca_bundle_pem: Option<String>,
    /// The queue through which the cloud tells of changes.
    pub event_queue_url: Option<String>,
    pub timings: ViewTimings,
}

impl CloudSettings {
    /// The queue, if it may hold notices of that region. A URL that names no region, such as that
    /// of a stand-in, serves all.
    pub(super) fn event_queue_url_of(&self, region: &str) -> Option<&str> {
        let url = self.event_queue_url.as_deref()?;
        let host = url.split_once("://").map_or(url, |(_, rest)| rest).split('/').next()?;
        let of_queue = host.strip_prefix("sqs.").and_then(|rest| rest.split('.').next());
        of_queue.is_none_or(|of_queue| of_queue == region).then_some(url)
    }
}

/// One view for each of these.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CloudKey {
    pub connection: ConnectionKey,
    pub cluster_id: String,
}

impl fmt::Display for CloudKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} in {}", self.cluster_id, self.connection)
    }
}

/// A cloud within reach, for the Machines of one cluster.
pub struct CloudAccess {
    pub view: CloudView,
    /// Shared by everybody who calls with these credentials in this region.
    pub pace: Arc<Pace>,
    /// Tags of the whole cluster.
    pub cluster_tags: BTreeMap<String, String>,
    /// Which addresses the cluster's machines have.
    pub ip_family: IpFamily,
    connection: Arc<Connection>,
    platform: AwsPlatformStatus,
    opened_at: Instant,
}

impl CloudAccess {
    /// The provider: the same for as long as the process runs, whichever client is behind it.
    pub fn provider(&self) -> Arc<dyn Provider> {
        Arc::clone(&self.connection) as Arc<dyn Provider>
    }
}

/// How one view is doing.
#[derive(Clone, Debug)]
pub struct ViewHealth {
    pub key: CloudKey,
    pub provider: &'static str,
    /// Since the last complete list was begun, or since the view was opened.
    pub age: Duration,
    pub is_listed: bool,
    /// Why the last list failed.
    pub failure: Option<CloudFailure>,
    /// Where it is asked, if that is not the provider's own address.
    pub endpoint: Option<String>,
}

/// Machines of one cloud that cannot be reached share an answer for this long, so that thousands
/// do not read the same secret at once.
const FAILURE_KEPT: Duration = Duration::from_secs(2);

/// A cloud that nobody tried to reach for this long is nobody's any more. Longer than the queue's
/// longest pause between two tries.
const FAILURE_TOLD: Duration = Duration::from_secs(1800);

/// Every cloud that some Machine lives in.
pub struct Clouds {
    env: Env,
    spawner: Spawner,
    metrics: Metrics,
    connector: Arc<Connector>,
    listener: Listener,
    known: Mutex<Known>,
    /// Lets one connection be made at a time, so that no two are made for one key.
    connecting: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Known {
    connections: BTreeMap<ConnectionKey, Arc<Connection>>,
    accesses: BTreeMap<CloudKey, Arc<CloudAccess>>,
    /// Those that are only looked at: no Machine of ours is made there, and what has none is nobody's business.
    watched: BTreeMap<CloudKey, Arc<CloudAccess>>,
    failures: BTreeMap<ConnectionKey, (Instant, CloudFailure)>,
}

/// What clouds are reached with.
pub struct CloudParts {
    pub client: Client,
    pub env: Env,
    pub spawner: Spawner,
    pub metrics: Metrics,
    pub connect: Arc<dyn Connect>,
    pub settings: CloudSettings,
    pub openshift: OpenShift,
    pub listener: Listener,
}

impl Clouds {
    pub fn new(parts: CloudParts) -> Self {
        let connector = Connector {
            client: parts.client,
            env: parts.env.clone(),
            connect: parts.connect,
            settings: parts.settings,
            openshift: parts.openshift,
            permissions: MissingPermissions::default(),
        };
        Self {
            env: parts.env,
            spawner: parts.spawner,
            metrics: parts.metrics,
            connector: Arc::new(connector),
            listener: parts.listener,
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
        let platform = self.connector.platform();
        if let Some(access) = self.known(&key, &platform) {
            return Ok(access);
        }
        let _one_at_a_time = self.connecting.lock().await;
        if let Some(access) = self.known(&key, &platform) {
            return Ok(access);
        }
        let connection = self.connection(&key.connection, facts.kind).await?;
        Ok(self.open(key, connection, platform))
    }

    /// Every cloud that was connected to, ordered by key.
    pub fn all(&self) -> Vec<(CloudKey, Arc<CloudAccess>)> {
        let known = self.lock();
        known.accesses.iter().map(|(key, access)| (key.clone(), Arc::clone(access))).collect()
    }

    /// Looks at a cloud whose instances others make.
    pub async fn watch(&self, key: CloudKey, kind: ProviderKind) -> Result<(), CloudFailure> {
        let _one_at_a_time = self.connecting.lock().await;
        if self.lock().watched.contains_key(&key) {
            return Ok(());
        }
        let connection = self.connection(&key.connection, kind).await?;
        let view = self.view(&key, &connection);
        let access = access(view, self.env.instant(), connection, self.connector.platform());
        self.lock().watched.insert(key, access);
        Ok(())
    }

    /// Every cloud that is only looked at, ordered by key.
    pub fn watched(&self) -> Vec<(CloudKey, Arc<CloudAccess>)> {
        let known = self.lock();
        known.watched.iter().map(|(key, access)| (key.clone(), Arc::clone(access))).collect()
    }

    /// How each view is doing.
    pub fn health(&self) -> Vec<ViewHealth> {
        let now = self.env.instant();
        let health = |(key, access): (CloudKey, Arc<CloudAccess>)| {
            let snapshot = access.view.snapshot();
            let unlisted = || now.saturating_duration_since(access.opened_at);
            ViewHealth {
                key,
                provider: access.connection.name(),
                age: snapshot.age(now).unwrap_or_else(unlisted),
                is_listed: snapshot.listed_at.is_some(),
                failure: snapshot.failure.clone(),
                endpoint: self.endpoint(),
            }
        };
        self.all().into_iter().chain(self.watched()).map(health).collect()
    }

    /// The clouds that could not even be connected to lately, with the reason; ordered by key.
    pub fn unreachable(&self) -> Vec<(ConnectionKey, CloudFailure)> {
        let now = self.env.instant();
        let known = self.lock();
        let lately = known.failures.iter().filter(|(_, (at, _))| now < *at + FAILURE_TOLD);
        lately.map(|(key, (_, failure))| (key.clone(), failure.clone())).collect()
    }

    /// Where instances are asked for, if that is not the provider's own address.
    pub fn endpoint(&self) -> Option<String> {
        let named = self.connector.endpoints().remove(service::EC2);
        // One with a password in it is refused, and not repeated (Rule 13).
        named.filter(|url| !url.is_empty() && !url.contains('@'))
    }

    pub fn missing_permissions(&self) -> &MissingPermissions {
        &self.connector.permissions
    }

    /// What is open already, unless the cluster's tags or addresses have changed since.
    fn known(&self, key: &CloudKey, platform: &AwsPlatformStatus) -> Option<Arc<CloudAccess>> {
        self.lock().accesses.get(key).filter(|access| access.platform == *platform).cloned()
    }

    fn key(&self, machine: &Machine, facts: &ProviderSpecFacts) -> Result<CloudKey, CloudFailure> {
        let of_platform = || Some(self.connector.platform().region).filter(|name| !name.is_empty());
        let region = facts
            .region
            .clone()
            .or_else(of_platform)
            .or_else(|| self.connector.settings.region.clone())
            .ok_or_else(|| CloudFailure {
                class: ErrorClass::InvalidConfiguration,
                message: "spec.providerSpec.value.placement.region: Required value: neither the \
                          machine nor the cluster names a region"
                    .to_owned(),
            })?;
        Ok(CloudKey {
            connection: ConnectionKey {
                namespace: machine.metadata.namespace.clone().unwrap_or_default(),
                credentials_secret: facts.credentials_secret.clone(),
                region,
            },
            cluster_id: cluster_id(machine).unwrap_or_default().to_owned(),
        })
    }

    async fn connection(
        &self,
        key: &ConnectionKey,
        kind: ProviderKind,
    ) -> Result<Arc<Connection>, CloudFailure> {
        let now = self.env.instant();
        {
            let known = self.lock();
            if let Some(connection) = known.connections.get(key) {
                return Ok(Arc::clone(connection));
            }
            if let Some((at, failure)) = known.failures.get(key)
                && now < *at + FAILURE_KEPT
            {
                return Err(failure.clone());
            }
        }
        match Connection::open(&self.connector, key.clone(), kind).await {
            Ok(connection) => {
                let connection = Arc::new(connection);
                if self.connector.settings.event_queue_url_of(&key.region).is_some() {
                    let (connection, env) = (Arc::clone(&connection), self.env.clone());
                    let task = notices::run(connection, env, self.metrics.clone());
                    self.spawner.spawn(format!("notices of {key}"), task);
                }
                let mut known = self.lock();
                known.failures.remove(key);
                known.connections.insert(key.clone(), Arc::clone(&connection));
                Ok(connection)
            }
            Err(failure) => {
                let failed_at = self.env.instant();
                self.lock().failures.insert(key.clone(), (failed_at, failure.clone()));
                Err(failure)
            }
        }
    }

    /// The view survives a change of tags: nothing is learnt anew.
    fn open(
        &self,
        key: CloudKey,
        connection: Arc<Connection>,
        platform: AwsPlatformStatus,
    ) -> Arc<CloudAccess> {
        let known = self.lock().accesses.get(&key).cloned();
        let (view, opened_at) = match known {
            Some(access) => (access.view.clone(), access.opened_at),
            None => (self.view(&key, &connection), self.env.instant()),
        };
        let access = access(view, opened_at, connection, platform);
        self.lock().accesses.insert(key, Arc::clone(&access));
        access
    }

    fn view(&self, key: &CloudKey, connection: &Arc<Connection>) -> CloudView {
        let view = CloudView::new(
            &key.cluster_id,
            Arc::clone(connection) as Arc<dyn Provider>,
            &connection.pace,
            &self.env,
            self.connector.settings.timings,
            Arc::clone(&self.listener),
        );
        connection.add_view(&view);
        self.spawner.spawn(format!("cloud view of {key}"), view.clone().run());
        view
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn access(
    view: CloudView,
    opened_at: Instant,
    connection: Arc<Connection>,
    platform: AwsPlatformStatus,
) -> Arc<CloudAccess> {
    let tags = platform.resource_tags.iter();
    Arc::new(CloudAccess {
        view,
        pace: Arc::clone(&connection.pace),
        cluster_tags: tags.map(|tag| (tag.key.clone(), tag.value.clone())).collect(),
        ip_family: ip_family(&platform),
        connection,
        platform,
        opened_at,
    })
}

/// A word that is not known is read as the oldest: one address of the old kind.
fn ip_family(platform: &AwsPlatformStatus) -> IpFamily {
    match platform.ip_family.as_deref() {
        Some("DualStackIPv4Primary") => IpFamily::DualStackIPv4Primary,
        Some("DualStackIPv6Primary") => IpFamily::DualStackIPv6Primary,
        _ => IpFamily::IPv4,
    }
}

#[cfg(test)]
mod tests;
