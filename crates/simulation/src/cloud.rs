//! How does the operator reach the simulated cloud? As a provider over the testbed's pure model, with
//! a door that every call passes: pace, pause, crash, the call itself, the judge, the answer.

mod notices;
mod provider;
mod translate;

use std::{
    future::pending,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use async_trait::async_trait;
use machinist_api::names::secret_key;
use machinist_operator::{
    cloud::connect::{Connect, ConnectRequest, Credentials},
    engine::supervisor::Spawner,
};
use machinist_providers::{ErrorClass, Pacer, Provider, ProviderError, notice::NoticeQueue};
use machinist_testbed::cloud::model::{
    Caller, Cloud, Ec2Error, InstanceFacts, Outcome, Request, Response,
};
use tokio::{
    sync::{Notify, oneshot},
    time::timeout,
};

use self::{
    notices::{Mailbox, SimulatedQueue},
    translate::{Subject, class_of},
};
use crate::{
    chance::Chance,
    effects::{EffectFate, Place},
    faults::FaultKind,
    hub::{Hub, lock},
    invariants::CloudCall,
    process::Incarnation,
};

/// How long a call may take before its caller gives up, as with the real provider.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// The cloud of a world. Clones are the same cloud.
#[derive(Clone)]
pub struct SimulatedCloud {
    shared: Arc<Shared>,
}

struct Shared {
    hub: Arc<Hub>,
    model: Mutex<Cloud>,
    /// What it held at a revision.
    facts: Mutex<Option<(u64, Arc<[InstanceFacts]>)>>,
    mailbox: Mutex<Mailbox>,
    chance: Mutex<Chance>,
    spawner: Spawner,
    /// Told when the model's next transition may have moved.
    moved: Notify,
    /// The longest time that a request and its answer are under way, in milliseconds.
    latency_max: u64,
}

impl SimulatedCloud {
    #[must_use]
    pub fn new(
        hub: &Arc<Hub>,
        model: Cloud,
        chance: Chance,
        spawner: &Spawner,
        latency_max: u64,
    ) -> Self {
        let shared = Shared {
            hub: Arc::clone(hub),
            model: Mutex::new(model),
            facts: Mutex::default(),
            mailbox: Mutex::default(),
            chance: Mutex::new(chance),
            spawner: spawner.clone(),
            moved: Notify::new(),
            latency_max,
        };
        Self { shared: Arc::new(shared) }
    }

    /// The model, as it was at the last call or transition.
    pub fn model(&self) -> MutexGuard<'_, Cloud> {
        lock(&self.shared.model)
    }

    /// What the cloud holds, in the order of ids; made anew only when something changed.
    #[must_use]
    pub fn facts(&self) -> Arc<[InstanceFacts]> {
        let model = self.model();
        let mut known = lock(&self.shared.facts);
        match &*known {
            Some((revision, facts)) if *revision == model.revision() => Arc::clone(facts),
            _ => {
                let facts: Arc<[InstanceFacts]> = Arc::from(model.snapshot());
                *known = Some((model.revision(), Arc::clone(&facts)));
                facts
            }
        }
    }

    /// Changes the model as somebody at the console does, or the provider itself.
    pub fn change<T>(&self, change: impl FnOnce(&mut Cloud, jiff::Timestamp) -> T) -> T {
        let now = self.shared.hub.clock.now();
        let result = {
            let mut model = self.model();
            model.advance(now);
            change(&mut model, now)
        };
        self.settle();
        result
    }

    /// Lets time pass in the cloud for as long as the world lasts.
    ///
    /// # Errors
    /// Never fails; it returns a result to fit the supervisor.
    pub async fn keep_time(self) -> anyhow::Result<()> {
        loop {
            let next = self.model().next_transition();
            let moved = self.shared.moved.notified();
            match next {
                Some(at) => {
                    let at = self.shared.hub.clock.instant(at);
                    tokio::select! {
                        biased;
                        () = moved => {}
                        () = tokio::time::sleep_until(at) => {}
                    }
                }
                None => moved.await,
            }
            let now = self.shared.hub.clock.now();
            let before = self.model().revision();
            self.model().advance(now);
            if self.model().revision() != before {
                self.settle();
            }
        }
    }

    /// Puts notices off or doubles them from now on; zero turns that off.
    pub fn disturb_notices(&self, late_up_to: Duration, doubled: f64, lost: f64) {
        lock(&self.shared.mailbox).disturb(late_up_to, doubled, lost);
    }

    /// Posts what a change means to whoever listens.
    fn settle(&self) {
        let hub = &self.shared.hub;
        let facts = self.facts();
        {
            let mut chance = lock(&self.shared.chance);
            lock(&self.shared.mailbox).post(&facts, hub.clock.now(), &mut chance);
        }
        hub.judge().instances_are(&facts, hub.clock.now());
        hub.publish_violations();
        self.shared.moved.notify_one();
        hub.changed.notify_one();
    }

    /// Carries out one call and tells the judge.
    fn perform(&self, caller: &Caller, tag: &str, request: Request) -> Outcome {
        let hub = &self.shared.hub;
        let now = hub.clock.now();
        let action = request.action();
        let is_mutating = request.is_mutating();
        let call = CloudCall::of(tag, &request, now);
        hub.tally().cloud_calls += 1;
        self.count_standing(&call);
        let revision = self.model().revision();
        if is_mutating {
            self.model().advance(now);
            hub.judge().instances_are(&self.facts(), now);
        }
        let outcome = self.model().call(now, caller, request);
        let facts = is_mutating.then(|| self.facts());
        let result = match &outcome.result {
            Ok(_) => "ok".to_owned(),
            Err(error) => format!("{}: {}", error.code, error.message),
        };
        if let Some(facts) = facts {
            hub.judge().called(&call, &outcome, &facts);
            let subject = hub.judge().machine_of_call(&call);
            let lost = if outcome.delivery.lost { ", answer lost" } else { "" };
            hub.note(&subject, format!("cloud: {tag} {call} -> {result}{lost}"));
            hub.publish_violations();
            self.settle();
        } else {
            hub.judge().read(action);
            // A read lets the model's time pass too; the judge must not be behind it.
            if self.model().revision() != revision {
                self.settle();
            }
            if outcome.result.is_err() || outcome.delivery.lost {
                hub.note("", format!("cloud: {tag} {call} -> {result}"));
            }
        }
        outcome
    }
}

impl SimulatedCloud {
    /// Counts the faults that the model draws by itself, at each call that they may hit.
    fn count_standing(&self, call: &CloudCall) {
        let hub = &self.shared.hub;
        let standing = hub.weather().standing.clone();
        let subject = hub.judge().machine_of_call(call);
        for kind in standing {
            let is_met = match kind {
                FaultKind::F40 | FaultKind::F44 | FaultKind::F45 | FaultKind::F49 => {
                    call.action == "RunInstances"
                }
                FaultKind::F50 => call.action == "TerminateInstances",
                FaultKind::F59 => matches!(call.action, "RunInstances" | "StartInstances"),
                FaultKind::F41 | FaultKind::F42 | FaultKind::F43 | FaultKind::F60 => {
                    call.action == "DescribeInstances"
                }
                _ => true,
            };
            if is_met {
                hub.count_fault(kind, Some(subject.as_str()).filter(|name| !name.is_empty()));
            }
        }
    }
}

/// Makes the providers of one world's processes.
#[derive(Clone)]
pub struct SimulatedClouds {
    pub cloud: SimulatedCloud,
}

impl SimulatedClouds {
    /// Connections that belong to one life of a process.
    #[must_use]
    pub fn for_process(&self, incarnation: Arc<Incarnation>) -> ProcessClouds {
        ProcessClouds { cloud: self.cloud.clone(), incarnation }
    }
}

/// How one life of a process reaches the cloud.
pub struct ProcessClouds {
    cloud: SimulatedCloud,
    incarnation: Arc<Incarnation>,
}

#[async_trait]
impl Connect for ProcessClouds {
    async fn connect(&self, request: ConnectRequest) -> Result<Arc<dyn Provider>, ProviderError> {
        let access_key_id = match &request.credentials {
            Credentials::Ambient => None,
            Credentials::Secret(data) => data
                .get(secret_key::AWS_ACCESS_KEY_ID)
                .map(|key| String::from_utf8_lossy(key).into_owned()),
        };
        Ok(Arc::new(SimulatedProvider {
            cloud: self.cloud.clone(),
            incarnation: Arc::clone(&self.incarnation),
            region: request.region,
            caller: Caller { access_key_id, user_agent: "machinist-operator".to_owned() },
            pacer: request.pacer,
            permissions: request.permissions,
        }))
    }

    async fn notices(
        &self,
        _: ConnectRequest,
        _: &str,
    ) -> Result<Arc<dyn NoticeQueue>, ProviderError> {
        Ok(Arc::new(SimulatedQueue {
            cloud: self.cloud.clone(),
            incarnation: Arc::clone(&self.incarnation),
        }))
    }
}

/// One account and region, as one life of a process calls it.
pub struct SimulatedProvider {
    cloud: SimulatedCloud,
    incarnation: Arc<Incarnation>,
    region: String,
    caller: Caller,
    pacer: Arc<dyn Pacer>,
    permissions: machinist_operator::cloud::permissions::MissingPermissions,
}

impl SimulatedProvider {
    /// The door that every call passes.
    async fn call(
        &self,
        what: &str,
        subject: Subject,
        request: Request,
    ) -> Result<Response, ProviderError> {
        let action = request.action();
        let is_mutating = request.is_mutating();
        if !is_mutating {
            self.pacer.turn_to_read(action).await;
        }
        let answer = self.send(request).await;
        let result = answer.map_err(|failed| failed.tell(what, subject, action));
        let class = result.as_ref().err().map(|error| error.class);
        self.pacer.learn(action, class);
        match &result {
            Ok(_) => self.permissions.granted("aws", action),
            Err(ProviderError { missing_permission: Some(permission), .. }) => {
                self.permissions.refused("aws", action, permission);
            }
            Err(_) => {}
        }
        result
    }

    async fn send(&self, request: Request) -> Result<Response, Failed> {
        let cloud = &self.cloud;
        let hub = &cloud.shared.hub;
        let incarnation = &self.incarnation;
        if incarnation.is_dead() {
            return pending().await;
        }
        let mut fate = EffectFate::Pass;
        if request.is_mutating() {
            let call = CloudCall::of(&incarnation.tag, &request, hub.clock.now());
            hub.judge().invoked(&call, &incarnation.identity);
            hub.publish_violations();
            let target = call.target();
            fate = hub.fate_of_effect(&incarnation.tag, Place::Cloud, request.action(), &target);
        }
        if fate == EffectFate::CrashBefore {
            incarnation.crash();
            return pending().await;
        }
        // A paused process sends when it wakes, and not before.
        let held = incarnation.held_for();
        if !held.is_zero() {
            tokio::time::sleep(held).await;
        }
        if fate == EffectFate::Refuse {
            let error = Ec2Error::new("InternalError", "An injected fault refused the call");
            return Err(Failed::Refused(error));
        }
        let (there, back) = {
            let mut chance = lock(&cloud.shared.chance);
            let most = cloud.shared.latency_max;
            (chance.millis(most / 10, most), chance.millis(most / 10, most))
        };
        let there = match fate {
            EffectFate::Delay(delay) => there + delay,
            _ => there,
        };
        let outcome = if there.is_zero() {
            Some(cloud.perform(&self.caller, &incarnation.tag, request))
        } else {
            timeout(CALL_TIMEOUT, self.on_its_way(there, request)).await.ok()
        };
        if fate == EffectFate::CrashAfter {
            incarnation.crash();
            return pending().await;
        }
        let Some(outcome) = outcome else { return Err(Failed::NoAnswer) };
        let after = Duration::try_from(outcome.delivery.after).unwrap_or_default();
        tokio::time::sleep((back + after).min(CALL_TIMEOUT)).await;
        if outcome.delivery.lost || fate == EffectFate::LoseAnswer {
            return Err(Failed::NoAnswer);
        }
        outcome.result.map_err(Failed::Refused)
    }

    /// A request that was sent arrives, whatever becomes of its sender.
    async fn on_its_way(&self, travel: Duration, request: Request) -> Outcome {
        let (answer, receiver) = oneshot::channel();
        let (cloud, caller) = (self.cloud.clone(), self.caller.clone());
        let incarnation = Arc::clone(&self.incarnation);
        self.cloud.shared.spawner.spawn("request to the cloud", async move {
            tokio::time::sleep(travel).await;
            let is_launch = matches!(request, Request::RunInstances(_));
            if incarnation.is_dead() && is_launch {
                cloud.shared.hub.sometimes("a launch arrives after its caller died");
            }
            let outcome = cloud.perform(&caller, &incarnation.tag, request);
            // Whoever asked may be gone.
            answer.send(outcome).ok();
            Ok(())
        });
        match receiver.await {
            Ok(outcome) => outcome,
            // The world ends.
            Err(_) => pending().await,
        }
    }
}

/// Why there is no good answer.
enum Failed {
    Refused(Ec2Error),
    NoAnswer,
}

impl Failed {
    fn tell(self, what: &str, subject: Subject, action: &str) -> ProviderError {
        match self {
            Self::NoAnswer => ProviderError::new(
                ErrorClass::Transient,
                format!("failed to {what}: no answer within {} s", CALL_TIMEOUT.as_secs()),
            ),
            Self::Refused(error) => {
                let class = class_of(&error, subject);
                let denied = error.code == "UnauthorizedOperation";
                let message = format!("failed to {what}: {}: {}", error.code, error.message);
                ProviderError {
                    class,
                    message,
                    code: Some(error.code),
                    missing_permission: denied.then(|| format!("ec2:{action}")),
                }
            }
        }
    }
}
