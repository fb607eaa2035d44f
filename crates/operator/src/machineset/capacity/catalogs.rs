//! Which sizes of instance each cloud offers: asked once a day for all pools together, and not
//! again at once after a refusal.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use machinist_core::{
    cloud::{CloudFailure, ErrorClass},
    machineset::capacity::Capacity,
    providerspec::{ProviderKind, ProviderSpecFacts},
};
use machinist_providers::{InstanceSize, Provider};
use tokio::time::Instant;

use crate::engine::{backoff::Backoff, env::Env};

/// How long a catalog is good for. Types are added to a region now and then; none changes its size.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// The delays between failures that time may heal.
const RETRY: Backoff = Backoff { base: Duration::from_secs(5), cap: Duration::from_secs(10 * 60) };

/// The delay after a refusal, which only a person can heal.
const AFTER_REFUSAL: Duration = Duration::from_secs(10 * 60);

/// One catalog for each of these. A region that is left out is the cluster's own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CatalogKey {
    kind: ProviderKind,
    namespace: String,
    credentials_secret: Option<String>,
    region: Option<String>,
}

impl CatalogKey {
    pub fn of(namespace: String, facts: &ProviderSpecFacts) -> Self {
        Self {
            kind: facts.kind,
            namespace,
            credentials_secret: facts.credentials_secret.clone(),
            region: facts.region.clone(),
        }
    }
}

/// What a cloud offers, by the name of the type, and for how long this is believed.
#[derive(Clone, Debug)]
pub struct Catalog {
    pub sizes: Arc<Sizes>,
    pub until: Instant,
}

pub type Sizes = BTreeMap<String, Offer>;

/// What is known of one type.
#[derive(Clone, Debug)]
pub struct Offer {
    pub capacity: Capacity,
    /// Whether it has disks on its host.
    pub has_instance_store: bool,
}

/// Why there is no catalog, and when the cloud is asked again; never, where only a change of an
/// object can help.
#[derive(Clone, Debug)]
pub struct Unanswered {
    pub failure: CloudFailure,
    pub retry_at: Option<Instant>,
}

/// Every catalog that some pool needs.
#[derive(Default)]
pub struct Catalogs {
    entries: Mutex<BTreeMap<CatalogKey, Entry>>,
}

enum Entry {
    /// A call is under way. Whoever waits drives it, so that it goes on when another gives up.
    Asking {
        call: Call,
        failures: u32,
    },
    Known(Catalog),
    Failed {
        failure: CloudFailure,
        failures: u32,
        retry_at: Instant,
    },
}

type Call = Shared<BoxFuture<'static, Result<Arc<Sizes>, CloudFailure>>>;

impl Catalogs {
    /// The catalog of a cloud. `connect` is waited for only when the cloud must be asked.
    pub async fn get(
        &self,
        env: &Env,
        key: &CatalogKey,
        connect: impl Future<Output = Result<Arc<dyn Provider>, CloudFailure>>,
    ) -> Result<Catalog, Unanswered> {
        let now = env.instant();
        let under_way = match self.lock().get(key) {
            Some(Entry::Known(catalog)) if now < catalog.until => return Ok(catalog.clone()),
            Some(Entry::Failed { failure, retry_at, .. }) if now < *retry_at => {
                return Err(Unanswered { failure: failure.clone(), retry_at: Some(*retry_at) });
            }
            Some(Entry::Asking { call, .. }) => Some(call.clone()),
            _ => None,
        };
        let call = match under_way {
            Some(call) => call,
            None => match connect.await {
                Ok(provider) => self.ask(env, key, provider),
                Err(failure) => return Err(self.not_connected(env, key, failure)),
            },
        };
        let answer = call.clone().await;
        self.settle(env, key, &call, answer)
    }

    /// The call under way, or a new one.
    fn ask(&self, env: &Env, key: &CatalogKey, provider: Arc<dyn Provider>) -> Call {
        let now = env.instant();
        let mut entries = self.lock();
        // What nobody has asked for since it went stale is not kept for ever.
        entries.retain(|_, entry| match entry {
            Entry::Asking { .. } => true,
            Entry::Known(catalog) => now < catalog.until,
            Entry::Failed { retry_at, .. } => now < *retry_at + KEPT,
        });
        if let Some(Entry::Asking { call, .. }) = entries.get(key) {
            return call.clone();
        }
        let failures = failures_of(entries.get(key));
        let call = async move {
            match provider.catalog().await {
                Ok(sizes) => Ok(Arc::new(sizes.into_iter().map(translate).collect::<Sizes>())),
                Err(error) => {
                    Err(CloudFailure { class: error.class, message: error.message.clone() })
                }
            }
        };
        let call = call.boxed().shared();
        entries.insert(key.clone(), Entry::Asking { call: call.clone(), failures });
        call
    }

    /// Keeps the answer of a call; the first who has it does, for all who waited.
    fn settle(
        &self,
        env: &Env,
        key: &CatalogKey,
        call: &Call,
        answer: Result<Arc<Sizes>, CloudFailure>,
    ) -> Result<Catalog, Unanswered> {
        let mut entries = self.lock();
        let failures = match entries.get(key) {
            Some(Entry::Asking { call: current, failures }) if current.ptr_eq(call) => *failures,
            Some(Entry::Known(catalog)) => return Ok(catalog.clone()),
            entry => failures_of(entry),
        };
        match answer {
            Ok(sizes) => {
                let catalog = Catalog { sizes, until: env.instant() + KEPT };
                entries.insert(key.clone(), Entry::Known(catalog.clone()));
                Ok(catalog)
            }
            Err(failure) => Err(failed(&mut entries, env, key, failure, failures)),
        }
    }

    fn not_connected(&self, env: &Env, key: &CatalogKey, failure: CloudFailure) -> Unanswered {
        // The object is at fault, and its change wakes us: it must find the way free.
        if failure.class == ErrorClass::InvalidConfiguration {
            return Unanswered { failure, retry_at: None };
        }
        let mut entries = self.lock();
        let failures = failures_of(entries.get(key));
        failed(&mut entries, env, key, failure, failures)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<CatalogKey, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Remembers a failure, unless it is remembered already: many wait for one answer.
fn failed(
    entries: &mut BTreeMap<CatalogKey, Entry>,
    env: &Env,
    key: &CatalogKey,
    failure: CloudFailure,
    failures: u32,
) -> Unanswered {
    let now = env.instant();
    if let Some(Entry::Failed { failure, retry_at, .. }) = entries.get(key)
        && now < *retry_at
    {
        return Unanswered { failure: failure.clone(), retry_at: Some(*retry_at) };
    }
    let failures = failures.saturating_add(1);
    let pause = match failure.class {
        ErrorClass::Unauthorized => AFTER_REFUSAL,
        _ => RETRY.delay(failures, env),
    };
    let retry_at = now + pause;
    tracing::warn!(
        namespace = key.namespace,
        region = key.region,
        class = failure.class.as_str(),
        error = failure.message,
        "the catalog of instance types could not be read"
    );
    let entry = Entry::Failed { failure: failure.clone(), failures, retry_at };
    entries.insert(key.clone(), entry);
    Unanswered { failure, retry_at: Some(retry_at) }
}

fn failures_of(entry: Option<&Entry>) -> u32 {
    match entry {
        Some(Entry::Asking { failures, .. } | Entry::Failed { failures, .. }) => *failures,
        Some(Entry::Known(_)) | None => 0,
    }
}

fn translate(size: InstanceSize) -> (String, Offer) {
    let InstanceSize { name, vcpus, memory_mib, gpus, architecture, has_instance_store } = size;
    let capacity = Capacity { vcpus, memory_mib, gpus, architecture };
    (name, Offer { capacity, has_instance_store })
}
