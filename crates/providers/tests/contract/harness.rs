//! What does the suite need of a cloud?

use std::{
    any::Any,
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use jiff::Timestamp;
use machinist_api::RawObject;
use machinist_providers::{
    Instance, InstanceId, InstanceState, IpFamily, LaunchRequest, Provider, UserData,
    aws::{AwsCredentials, AwsProvider, AwsSettings, Call, CallObserver},
};
use serde_json::Value;

use crate::console::Console;

/// A cloud to run the suite over.
pub struct Harness {
    pub provider: Arc<dyn Provider>,
    /// What the provider was made with, for checks that make another one.
    pub settings: AwsSettings,
    /// The cloud's other door, which knows nothing of the provider.
    pub console: Console,
    pub capabilities: BTreeSet<Capability>,
    /// A providerSpec that can be launched, by ids.
    pub provider_spec: Value,
    /// One that means the same things by filters.
    pub provider_spec_by_filters: Value,
    pub calls: Arc<Calls>,
    /// What only a cloud of our own can be told to do.
    pub levers: Option<Arc<dyn Levers>>,
    /// How a scheduled event comes about.
    pub schedule: Arc<dyn Schedule>,
    /// Held only to end the cloud with the test.
    pub _server: Box<dyn Any + Send + Sync>,
    pub machines: AtomicU32,
}

/// What a stand-in may lack. A check that needs it is left out there, and says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Capability {
    /// Client tokens make launches idempotent and can be searched for.
    ClientTokens,
    /// Failing status checks exist, and the answer comes in pages.
    Reports,
    /// Scheduled events exist and can be moved.
    Events,
    /// Hosts are found by their tags and cannot be released while an instance is on one.
    HostsAreHeld,
    /// Load balancers refuse what does not exist, and forget what was deregistered.
    StrictLoadBalancers,
    /// A tag for an instance that does not exist is refused.
    TagsOnlyWhatExists,
    /// Calls can be made to fail, and permissions taken away.
    Faults,
    /// The parameters of each launch can be read again.
    Ledger,
    /// There is a queue service.
    Queue,
    /// Roles can be assumed.
    Roles,
}

/// What the provider of the cloud decides about its instances.
pub trait Schedule: Send + Sync {
    /// Schedules a retirement and returns the event's id.
    fn schedule_retirement(
        &self,
        instance: &InstanceId,
        not_before: Timestamp,
        deadline: Timestamp,
    ) -> String;
}

/// What a cloud is told behind the provider's back.
pub trait Levers: Send + Sync {
    /// Lets one of EC2's checks of an instance fail: `system`, `instance` or `attached-ebs`.
    fn impair(&self, instance: &InstanceId, check: &str);

    /// Takes a permission such as `ec2:StartInstances` away, until cleared.
    fn deny(&self, permission: &str);

    /// The parameters of the call that launched an instance, in EC2's own names.
    fn launch_parameters(&self, instance: &InstanceId) -> Value;

    /// A zone in a carrier's network, and a subnet there.
    fn wavelength(&self) -> (String, String);

    /// Answers every filter on the instances' status with everything or with nothing, until cleared.
    fn answer_status_filters(&self, with_everything: bool);

    /// Refuses every call of the action with the code, until cleared.
    fn refuse(&self, action: &str, code: &str);

    /// Carries out the next call of the action and ends the connection without an answer.
    fn lose_answer(&self, action: &str);

    fn clear(&self);
}

impl Harness {
    /// Whether the cloud can show something; if not, the reader of the output learns what is missing.
    pub fn can(&self, capability: Capability) -> bool {
        let can = self.capabilities.contains(&capability);
        if !can {
            println!("  left out: this cloud has no {capability:?}");
        }
        can
    }

    pub fn levers(&self) -> &Arc<dyn Levers> {
        self.levers.as_ref().expect("a cloud with this capability has levers")
    }

    /// A request for a new Machine in a cluster of its own.
    pub fn request(&self) -> LaunchRequest {
        let number = self.machines.fetch_add(1, Ordering::SeqCst);
        LaunchRequest {
            cluster_id: format!("cluster-{number}"),
            machine_name: format!("worker-{number}"),
            machine_uid: format!("00000000-0000-0000-0000-{number:012}"),
            provider_spec: raw(&self.provider_spec),
            user_data: Some(UserData(b"#!/bin/sh\ntrue\n".to_vec())),
            cluster_tags: BTreeMap::from([("from-cluster".to_owned(), "yes".to_owned())]),
            ip_family: IpFamily::IPv4,
        }
    }

    /// The request with fields of its providerSpec replaced.
    pub fn request_with(&self, fields: &Value) -> LaunchRequest {
        let mut spec = self.provider_spec.clone();
        for (key, value) in fields.as_object().expect("fields are an object") {
            spec[key] = value.clone();
        }
        LaunchRequest { provider_spec: raw(&spec), ..self.request() }
    }

    /// A name that no other check uses.
    pub fn name(&self, prefix: &str) -> String {
        format!("{prefix}-{}", self.machines.fetch_add(1, Ordering::SeqCst))
    }

    /// Another provider for the same cloud, with other credentials.
    pub async fn provider_with(&self, credentials: AwsCredentials) -> AwsProvider {
        AwsProvider::new(AwsSettings { credentials, ..self.settings.clone() }).await.unwrap()
    }

    pub async fn launch(&self, request: &LaunchRequest) -> Instance {
        let prepared = self.provider.prepare(request).await.expect("prepare succeeds");
        let token = token(request);
        self.provider.launch(&prepared, &token).await.expect("launch succeeds")
    }

    /// Launches a machine and waits until it runs.
    pub async fn running(&self, request: &LaunchRequest) -> Instance {
        let id = self.launch(request).await.id;
        self.wait_for(&id, InstanceState::Running).await
    }

    pub async fn wait_for(&self, id: &InstanceId, state: InstanceState) -> Instance {
        let waited = tokio::time::timeout(Duration::from_secs(60), async {
            loop {
                let found = self.provider.describe(std::slice::from_ref(id)).await.unwrap();
                if let Some(instance) = found.into_iter().find(|found| found.state == state) {
                    return instance;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        waited.await.unwrap_or_else(|_| panic!("instance {id} never became {state:?}"))
    }
}

pub fn raw(value: &Value) -> RawObject {
    RawObject::from_value(value).unwrap()
}

/// The token of a Machine's first attempt.
pub fn token(request: &LaunchRequest) -> String {
    format!("{}-g1", request.machine_uid)
}

/// The calls that a provider made, as its observer heard of them.
#[derive(Default)]
pub struct Calls {
    counts: Mutex<BTreeMap<&'static str, u32>>,
    missing_permissions: Mutex<BTreeSet<String>>,
    after_success: Mutex<Vec<(&'static str, Reaction)>>,
}

type Reaction = Box<dyn FnOnce() + Send>;

impl Calls {
    pub fn observer(self: &Arc<Self>) -> CallObserver {
        let calls = Arc::clone(self);
        Arc::new(move |call: &Call<'_>| {
            calls.record(call.action, call.outcome);
            if let Some(permission) = call.missing_permission {
                calls.missing_permissions.lock().unwrap().insert(permission.to_owned());
            }
        })
    }

    pub fn count(&self, action: &str) -> u32 {
        self.counts.lock().unwrap().get(action).copied().unwrap_or_default()
    }

    pub fn missing_permissions(&self) -> BTreeSet<String> {
        self.missing_permissions.lock().unwrap().clone()
    }

    pub fn total(&self) -> u32 {
        self.counts.lock().unwrap().values().sum()
    }

    /// Does something right after the next success of the action.
    pub fn after_success(&self, action: &'static str, reaction: impl FnOnce() + Send + 'static) {
        self.after_success.lock().unwrap().push((action, Box::new(reaction)));
    }

    fn record(&self, action: &'static str, result: &str) {
        *self.counts.lock().unwrap().entry(action).or_default() += 1;
        if result != "ok" {
            return;
        }
        let mut waiting = self.after_success.lock().unwrap();
        if let Some(index) = waiting.iter().position(|(waited_for, _)| *waited_for == action) {
            let (_, reaction) = waiting.remove(index);
            reaction();
        }
    }
}
