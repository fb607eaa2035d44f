//! How are the workload clusters reached?
//!
//! One task for each Cluster keeps one connection and one watch of its Nodes, of which only what decisions read is kept. It asks
//! the API server for a sign of life, and begins anew, with the kubeconfig as it then is, when there is none. A cluster that cannot
//! be reached costs its own task a try from time to time, and nobody else anything.

mod kubeconfig;
mod nodes;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
    time::Duration,
};

use async_trait::async_trait;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Secret};
use kube::{Api, Client};
use machinist_api::cluster_api::names::secret;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

pub use self::kubeconfig::OverTls;
use super::context::{NodeLook, Nodes};
use crate::{
    engine::{
        backoff::Backoff,
        env::Env,
        store::{Change, ObjectKey, Store},
        supervisor::Spawner,
        watch::Watch,
    },
    metrics::Metrics,
};

/// Nodes by their providerID.
pub const NODE_BY_PROVIDER_ID: &str = "provider-id";

/// How often a cluster is asked for a sign of life, how long it may take to give one, and how soon it is asked again when it
/// does not.
const PROBE_PERIOD: Duration = Duration::from_secs(10);
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);
const PROBE_AGAIN: Duration = Duration::from_secs(1);
/// So many in a row end a connection: within half a minute.
const FAILED_PROBES: u32 = 3;
/// The delays between attempts to connect.
const RETRY: Backoff = Backoff { base: Duration::from_secs(1), cap: Duration::from_secs(30) };
/// The longest wait for the first list of Nodes.
const LIST_TIMEOUT: Duration = Duration::from_secs(60);

/// Makes a client of a kubeconfig. The simulator and tests bring their own.
#[async_trait]
pub trait ConnectWorkload: Send + Sync {
    /// # Errors
    /// Fails, in words for a person, when the kubeconfig cannot be used.
    async fn connect(&self, kubeconfig: &str) -> anyhow::Result<Client>;
}

/// What is known of one workload cluster.
#[derive(Clone)]
pub enum Reach {
    Up { client: Client, nodes: Store<Node>, last_success: Timestamp },
    Down { why: String, last_success: Option<Timestamp>, failures: u32 },
}

/// What happened to a workload cluster.
pub enum News<'a> {
    /// It can be reached, or cannot any more.
    Reach,
    Node(&'a Change<Node>),
}

type Listener = Box<dyn Fn(&ObjectKey, &News<'_>) + Send + Sync>;

/// All workload clusters. Clones share them.
#[derive(Clone)]
pub struct Workloads {
    shared: Arc<Shared>,
}

struct Shared {
    client: Client,
    env: Env,
    metrics: Metrics,
    spawner: Spawner,
    connect: Arc<dyn ConnectWorkload>,
    clusters: Mutex<BTreeMap<ObjectKey, Arc<Workload>>>,
    listeners: RwLock<Vec<Arc<Listener>>>,
}

struct Workload {
    key: ObjectKey,
    reach: Mutex<Reach>,
    /// Says that another try may be worth it.
    kick: Notify,
    stop: CancellationToken,
}

impl Workloads {
    pub fn new(
        client: &Client,
        env: &Env,
        metrics: &Metrics,
        spawner: &Spawner,
        connect: Arc<dyn ConnectWorkload>,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                client: client.clone(),
                env: env.clone(),
                metrics: metrics.clone(),
                spawner: spawner.clone(),
                connect,
                clusters: Mutex::default(),
                listeners: RwLock::default(),
            }),
        }
    }

    /// Says who else is told of what happens.
    pub fn listen(&self, listener: impl Fn(&ObjectKey, &News<'_>) + Send + Sync + 'static) {
        let mut all = self.shared.listeners.write().unwrap_or_else(PoisonError::into_inner);
        all.push(Arc::new(Box::new(listener)));
    }

    /// Begins to reach the cluster, unless that has begun.
    pub fn begin(&self, key: &ObjectKey) {
        if !self.lock().contains_key(key) {
            self.want(key);
        }
    }

    /// Begins to reach the cluster. If that has begun, a try that waits is made at once.
    pub fn want(&self, key: &ObjectKey) {
        let mut clusters = self.lock();
        if let Some(known) = clusters.get(key) {
            return known.kick.notify_one();
        }
        let workload = Arc::new(Workload {
            key: key.clone(),
            reach: Mutex::new(Reach::Down {
                why: "it is being connected to".to_owned(),
                last_success: None,
                failures: 0,
            }),
            kick: Notify::new(),
            stop: CancellationToken::new(),
        });
        clusters.insert(key.clone(), Arc::clone(&workload));
        drop(clusters);
        let shared = Arc::clone(&self.shared);
        self.shared.spawner.spawn(format!("workload cluster {key}"), async move {
            let stopped = workload.stop.clone();
            tokio::select! {
                biased;
                () = stopped.cancelled() => {}
                () = workload.keep(&shared) => {}
            }
            Ok(())
        });
    }

    /// Lets a cluster go that is not there any more.
    pub fn forget(&self, key: &ObjectKey) {
        if let Some(known) = self.lock().remove(key) {
            known.stop.cancel();
        }
    }

    pub fn reach(&self, key: &ObjectKey) -> Reach {
        match self.lock().get(key) {
            Some(known) => known.reach(),
            None => Reach::Down {
                why: "its infrastructure is not provisioned".to_owned(),
                last_success: None,
                failures: 0,
            },
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Arc<Workload>>> {
        self.shared.clusters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Nodes for Workloads {
    fn look(&self, cluster: &ObjectKey, name: &str) -> NodeLook {
        match self.reach(cluster) {
            Reach::Up { nodes, .. } => match nodes.get(&ObjectKey::cluster_wide(name)) {
                Some(node) => NodeLook::Present(node),
                None => NodeLook::Gone,
            },
            Reach::Down { .. } => NodeLook::Unknown,
        }
    }

    /// An API server may give signs of life and no Nodes.
    fn doubt(&self, cluster: &ObjectKey) -> Option<String> {
        match self.reach(cluster) {
            Reach::Down { .. } => Some(format!("Cluster {cluster} does not answer")),
            Reach::Up { nodes, .. } if nodes.is_current(self.shared.env.instant()) => None,
            Reach::Up { .. } => {
                Some(format!("the watch of the nodes of Cluster {cluster} is interrupted"))
            }
        }
    }

    fn reached(&self, cluster: &ObjectKey) -> Option<(Client, Store<Node>)> {
        match self.reach(cluster) {
            Reach::Up { client, nodes, .. } => Some((client, nodes)),
            Reach::Down { .. } => None,
        }
    }
}

impl Workload {
    fn reach(&self) -> Reach {
        self.reach.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, shared: &Shared, reach: Reach) {
        let mut known = self.reach.lock().unwrap_or_else(PoisonError::into_inner);
        // Its memory goes with the lock.
        let before = std::mem::replace(&mut *known, reach);
        drop(known);
        drop(before);
        shared.tell(&self.key, &News::Reach);
    }

    /// Connects, watches, and begins again, as long as the cluster is there.
    async fn keep(&self, shared: &Arc<Shared>) {
        let mut failures = 0;
        let mut last_success = None;
        loop {
            let lost = self.connection(shared, &mut last_success, &mut failures).await;
            failures += 1;
            tracing::info!(cluster = %self.key, error = format!("{lost:#}"), failures, "workload cluster is not reached");
            self.set(shared, Reach::Down { why: format!("{lost:#}"), last_success, failures });
            let wait = RETRY.delay(failures, &shared.env);
            tokio::select! {
                biased;
                () = self.kick.notified() => {}
                () = shared.env.sleep(wait) => {}
            }
        }
    }

    /// One connection, from its beginning to its end. Returns why it ended.
    async fn connection(
        &self,
        shared: &Arc<Shared>,
        last_success: &mut Option<Timestamp>,
        failures: &mut u32,
    ) -> anyhow::Error {
        let client = match self.connect(shared).await {
            Ok(client) => client,
            Err(error) => return error,
        };
        *last_success = Some(shared.env.now());
        let store = nodes::store();
        let (weak, key) = (Arc::downgrade(shared), self.key.clone());
        store.on_change(move |change| {
            if let Some(shared) = weak.upgrade() {
                shared.tell(&key, &News::Node(change));
            }
        });
        let watch = Watch::cluster_wide(&client, &shared.metrics, &store).run(shared.env.clone());
        let probing = async {
            if tokio::time::timeout(LIST_TIMEOUT, store.synced()).await.is_err() {
                return anyhow::anyhow!("its nodes could not be listed");
            }
            *failures = 0;
            tracing::info!(cluster = %self.key, nodes = store.len(), "workload cluster is reached");
            let at = last_success.unwrap_or_else(|| shared.env.now());
            let up = Reach::Up { client: client.clone(), nodes: store.clone(), last_success: at };
            self.set(shared, up);
            self.probe(shared, &client, last_success).await
        };
        tokio::select! {
            biased;
            lost = probing => lost,
            ended = watch => match ended {
                Ok(()) => anyhow::anyhow!("the watch of its nodes ended"),
                Err(error) => error,
            },
        }
    }

    async fn connect(&self, shared: &Shared) -> anyhow::Result<Client> {
        let name = format!("{}{}", self.key.name, secret::KUBECONFIG_SUFFIX);
        let api = Api::<Secret>::namespaced(shared.client.clone(), &self.key.namespace);
        let found = api.get_opt(&name).await?;
        let found = found.ok_or_else(|| anyhow::anyhow!("the Secret {name} does not exist"))?;
        let value = found.data.unwrap_or_default().remove(secret::VALUE_KEY);
        let value = value.ok_or_else(|| {
            anyhow::anyhow!("the Secret {name} has no key {:?}", secret::VALUE_KEY)
        })?;
        let text = String::from_utf8(value.0)
            .map_err(|_| anyhow::anyhow!("the kubeconfig in the Secret {name} is no text"))?;
        let client = shared.connect.connect(&text).await?;
        alive(&client).await.map_err(|lost| lost.error)?;
        Ok(client)
    }

    /// Asks for signs of life until there are none. Returns why.
    async fn probe(
        &self,
        shared: &Shared,
        client: &Client,
        last_success: &mut Option<Timestamp>,
    ) -> anyhow::Error {
        let mut failed = 0;
        loop {
            shared.env.sleep(if failed == 0 { PROBE_PERIOD } else { PROBE_AGAIN }).await;
            match alive(client).await {
                Ok(()) => {
                    failed = 0;
                    *last_success = Some(shared.env.now());
                    self.note_success(shared.env.now());
                }
                // The kubeconfig may have been renewed.
                Err(lost) if lost.is_unauthorized => return lost.error,
                Err(lost) => {
                    failed += 1;
                    if failed >= FAILED_PROBES {
                        return lost.error;
                    }
                }
            }
        }
    }

    fn note_success(&self, at: Timestamp) {
        let mut known = self.reach.lock().unwrap_or_else(PoisonError::into_inner);
        if let Reach::Up { last_success, .. } = &mut *known {
            *last_success = at;
        }
    }
}

impl Shared {
    fn tell(&self, key: &ObjectKey, news: &News<'_>) {
        let all = self.listeners.read().unwrap_or_else(PoisonError::into_inner).clone();
        for listener in all {
            listener(key, news);
        }
    }
}

struct Lost {
    error: anyhow::Error,
    is_unauthorized: bool,
}

/// Whether an API server answers, whatever it says.
async fn alive(client: &Client) -> Result<(), Lost> {
    let lost = |error: anyhow::Error, is_unauthorized| Lost { error, is_unauthorized };
    let request = http::Request::get("/").body(Vec::new());
    let request = request.map_err(|error| lost(error.into(), false))?;
    match tokio::time::timeout(PROBE_TIMEOUT, client.request_text(request)).await {
        Err(_) => Err(lost(anyhow::anyhow!("no answer within {PROBE_TIMEOUT:?}"), false)),
        Ok(Ok(_)) => Ok(()),
        Ok(Err(kube::Error::Api(status))) if status.code == 401 => {
            Err(lost(anyhow::anyhow!("its API server does not know us: {}", status.message), true))
        }
        Ok(Err(kube::Error::Api(status))) if status.code < 500 => Ok(()),
        Ok(Err(error)) => Err(lost(error.into(), false)),
    }
}
