//! A cloud that a test scripts. A mock, because what is tested is when the operator asks and what it
//! makes of the answers, not what a cloud answers; the provider contract suite tests that.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use jiff::Timestamp;
use machinist_api::{RawObject, names::tag};
use machinist_core::{
    cloud::{
        ErrorClass, Impairment, Instance, InstanceId, InstanceReport, InstanceState,
        RebootMigration, RootDevice, StateReason,
    },
    proxy::ProxySettings,
};
use machinist_providers::{
    InstanceSize, LaunchRequest, PreparedLaunch, Provider, ProviderError,
    notice::{Malformed, Notice, NoticeKind, NoticeQueue, Received},
};
use tokio::sync::Notify;

use super::connect::{Connect, ConnectRequest, Credentials};

/// Holds instances, counts calls, and can fail.
#[derive(Default)]
pub(crate) struct ScriptedCloud {
    pub(crate) instances: Mutex<BTreeMap<InstanceId, Instance>>,
    pub(crate) list_failure: Mutex<Option<ProviderError>>,
    /// How long the answer to a list is on its way: it shows what was there when it was asked for.
    pub(crate) list_takes: Mutex<Duration>,
    pub(crate) reports: Mutex<Option<Result<Vec<InstanceReport>, ProviderError>>>,
    pub(crate) terminated: Mutex<Vec<String>>,
    /// What was asked for besides: `stop i-1`.
    pub(crate) effects: Mutex<Vec<String>>,
    /// Why such things are refused.
    pub(crate) effect_failure: Mutex<Option<ProviderError>>,
    pub(crate) catalog: Mutex<Option<Vec<InstanceSize>>>,
    pub(crate) lists: AtomicUsize,
    pub(crate) describes: AtomicUsize,
    pub(crate) reports_asked: AtomicUsize,
}

impl ScriptedCloud {
    /// An instance of the cluster `demo`, launched at the beginning of time.
    pub(crate) fn put(&self, id: &str, uid: &str, state: InstanceState) -> Instance {
        let tags = [(tag::MACHINE_UID.to_owned(), uid.to_owned()), owned()];
        let instance = Instance {
            id: InstanceId(id.to_owned()),
            provider_id: format!("aws:///z/{id}"),
            state,
            state_reason: StateReason::default(),
            region: String::new(),
            zone: String::new(),
            instance_type: String::new(),
            launched_at: Some(Timestamp::UNIX_EPOCH),
            client_token: None,
            interruptible: false,
            tags: BTreeMap::from(tags),
            addresses: Vec::new(),
            host_id: None,
            root_device: RootDevice::default(),
            reboot_migration: RebootMigration::default(),
        };
        self.instances.lock().unwrap().insert(instance.id.clone(), instance.clone());
        instance
    }

    pub(crate) fn fail_lists(&self, error: Option<ProviderError>) {
        *self.list_failure.lock().unwrap() = error;
    }

    pub(crate) fn report(&self, answer: Result<Vec<InstanceReport>, ProviderError>) {
        *self.reports.lock().unwrap() = Some(answer);
    }

    pub(crate) fn effects(&self) -> Vec<String> {
        self.effects.lock().unwrap().clone()
    }

    /// Takes note of an effect, and refuses it where the script says so.
    fn effect(&self, what: &str, id: &InstanceId, state: Option<InstanceState>) -> Effect {
        self.effects.lock().unwrap().push(format!("{what} {id}"));
        if let Some(error) = self.effect_failure.lock().unwrap().clone() {
            return Err(error);
        }
        let mut instances = self.instances.lock().unwrap();
        let instance = instances.get_mut(id);
        if let (Some(instance), Some(state)) = (instance, state) {
            instance.state = state;
        }
        Ok(state.unwrap_or(InstanceState::Running))
    }

    pub(crate) fn lists(&self) -> usize {
        self.lists.load(Ordering::Relaxed)
    }

    pub(crate) fn describes(&self) -> usize {
        self.describes.load(Ordering::Relaxed)
    }
}

type Effect = Result<InstanceState, ProviderError>;

fn owned() -> (String, String) {
    (tag::cluster("demo"), tag::OWNED.to_owned())
}

pub(crate) fn id(id: &str) -> InstanceId {
    InstanceId(id.to_owned())
}

pub(crate) fn refused() -> ProviderError {
    ProviderError::new(ErrorClass::Unauthorized, "who are you")
}

pub(crate) fn forbidden(permission: &str) -> ProviderError {
    let mut error = ProviderError::new(ErrorClass::Unauthorized, "you may not");
    error.missing_permission = Some(permission.to_owned());
    error
}

pub(crate) fn impaired(id: &str) -> InstanceReport {
    InstanceReport {
        instance: InstanceId(id.to_owned()),
        impairments: vec![Impairment { check: "system".to_owned(), since: None }],
        events: Vec::new(),
    }
}

fn not_scripted<T>() -> Result<T, ProviderError> {
    Err(ProviderError::new(ErrorClass::Unknown, "not scripted"))
}

#[async_trait]
impl Provider for ScriptedCloud {
    fn name(&self) -> &'static str {
        "scripted"
    }

    async fn list(&self, _: &str) -> Result<Vec<Instance>, ProviderError> {
        self.lists.fetch_add(1, Ordering::Relaxed);
        if let Some(error) = self.list_failure.lock().unwrap().clone() {
            return Err(error);
        }
        let seen = self.instances.lock().unwrap().values().cloned().collect();
        let takes = *self.list_takes.lock().unwrap();
        tokio::time::sleep(takes).await;
        Ok(seen)
    }

    async fn describe(&self, ids: &[InstanceId]) -> Result<Vec<Instance>, ProviderError> {
        self.describes.fetch_add(1, Ordering::Relaxed);
        let instances = self.instances.lock().unwrap();
        Ok(ids.iter().filter_map(|id| instances.get(id).cloned()).collect())
    }

    async fn find(&self, _: &str, _: &[String]) -> Result<Vec<Instance>, ProviderError> {
        not_scripted()
    }

    async fn prepare(&self, _: &LaunchRequest) -> Result<PreparedLaunch, ProviderError> {
        not_scripted()
    }

    async fn launch(&self, _: &PreparedLaunch, _: &str) -> Result<Instance, ProviderError> {
        not_scripted()
    }

    async fn terminate(&self, id: &InstanceId) -> Result<InstanceState, ProviderError> {
        self.terminated.lock().unwrap().push(id.0.clone());
        if let Some(instance) = self.instances.lock().unwrap().get_mut(id) {
            instance.state = InstanceState::ShuttingDown;
        }
        Ok(InstanceState::ShuttingDown)
    }

    async fn tag(&self, _: &InstanceId, _: &BTreeMap<String, String>) -> Result<(), ProviderError> {
        not_scripted()
    }

    fn tags(&self, _: &LaunchRequest) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    async fn start(&self, id: &InstanceId) -> Result<InstanceState, ProviderError> {
        self.effect("start", id, Some(InstanceState::Pending))
    }

    async fn stop(&self, id: &InstanceId) -> Result<InstanceState, ProviderError> {
        self.effect("stop", id, Some(InstanceState::Stopping))
    }

    async fn reboot(&self, id: &InstanceId) -> Result<(), ProviderError> {
        self.effect("reboot", id, None).map(|_| ())
    }

    async fn reports(&self) -> Result<Vec<InstanceReport>, ProviderError> {
        self.reports_asked.fetch_add(1, Ordering::Relaxed);
        self.reports.lock().unwrap().clone().unwrap_or_else(|| Ok(Vec::new()))
    }

    async fn move_event(
        &self,
        id: &InstanceId,
        event: &str,
        to: Timestamp,
    ) -> Result<(), ProviderError> {
        self.effect(&format!("move {event} to {to} of"), id, None).map(|_| ())
    }

    async fn enable_reboot_migration(&self, id: &InstanceId) -> Result<(), ProviderError> {
        self.effect("enable migration of", id, None).map(|_| ())
    }

    async fn attach(&self, _: &RawObject, _: &Instance) -> Result<(), ProviderError> {
        not_scripted()
    }

    async fn detach(&self, _: &RawObject, _: &Instance) -> Result<(), ProviderError> {
        not_scripted()
    }

    async fn release_hosts(&self, _: &str) -> Result<(), ProviderError> {
        not_scripted()
    }

    async fn catalog(&self) -> Result<Vec<InstanceSize>, ProviderError> {
        self.catalog.lock().unwrap().clone().map_or_else(not_scripted, Ok)
    }
}

/// Makes providers for one scripted cloud, which takes only the key `key`'s current value.
#[derive(Default)]
pub(crate) struct ScriptedClouds {
    pub(crate) cloud: Arc<ScriptedCloud>,
    pub(crate) queue: Arc<ScriptedQueue>,
    /// What each connection was made with: endpoints, and the secret's key.
    pub(crate) connections: Mutex<Vec<(BTreeMap<String, String>, String)>>,
    /// And the proxy and the trusted certificates.
    pub(crate) ways: Mutex<Vec<(Option<ProxySettings>, Option<String>)>>,
}

#[async_trait]
impl Connect for ScriptedClouds {
    async fn connect(&self, request: ConnectRequest) -> Result<Arc<dyn Provider>, ProviderError> {
        let key = match &request.credentials {
            Credentials::Ambient => String::new(),
            Credentials::Secret(data) => String::from_utf8(data["key"].clone()).unwrap(),
        };
        self.connections.lock().unwrap().push((request.endpoints, key));
        self.ways.lock().unwrap().push((request.proxy, request.trusted_ca_pem));
        Ok(Arc::clone(&self.cloud) as Arc<dyn Provider>)
    }

    async fn notices(
        &self,
        _: ConnectRequest,
        _: &str,
    ) -> Result<Arc<dyn NoticeQueue>, ProviderError> {
        Ok(Arc::clone(&self.queue) as Arc<dyn NoticeQueue>)
    }
}

/// A queue whose messages a test puts in; what is not deleted comes again.
#[derive(Default)]
pub(crate) struct ScriptedQueue {
    pub(crate) messages: Mutex<VecDeque<Received>>,
    pub(crate) failure: Mutex<Option<ProviderError>>,
    pub(crate) deleted: Mutex<Vec<String>>,
    pub(crate) received: AtomicUsize,
    pub(crate) was_deleted: Notify,
}

impl ScriptedQueue {
    pub(crate) fn put_malformed(&self, receipt: &str) {
        let content = Err(Malformed("no JSON".to_owned()));
        let received = Received { receipt: receipt.to_owned(), content };
        self.messages.lock().unwrap().push_back(received);
    }

    pub(crate) fn put_notice(&self, receipt: &str, instance: &str, kind: NoticeKind) {
        let notice = Notice { instances: vec![id(instance)], kind, at: None };
        let received = Received { receipt: receipt.to_owned(), content: Ok(notice) };
        self.messages.lock().unwrap().push_back(received);
    }
}

#[async_trait]
impl NoticeQueue for ScriptedQueue {
    async fn receive(&self) -> Result<Vec<Received>, ProviderError> {
        self.received.fetch_add(1, Ordering::Relaxed);
        match self.failure.lock().unwrap().clone() {
            Some(error) => Err(error),
            None => Ok(self.messages.lock().unwrap().iter().cloned().collect()),
        }
    }

    async fn delete(&self, receipts: &[String]) -> Result<(), ProviderError> {
        self.messages.lock().unwrap().retain(|one| !receipts.contains(&one.receipt));
        self.deleted.lock().unwrap().extend(receipts.iter().cloned());
        self.was_deleted.notify_one();
        Ok(())
    }
}
