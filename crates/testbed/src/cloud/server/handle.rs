//! How does the rest of the process use the cloud? A handle that can be cloned, watched and asked.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use tokio::sync::{Notify, watch};

use crate::cloud::model::{
    Caller, ChangedBy, Cloud, ConsoleError, Ec2Error, EventPatch, Faults, Impair, Impairment,
    InstanceFacts, LedgerQuery, LedgerView, NewEvent, Outcome, Request, ScheduledEvent, SpotNotice,
    SpotNoticeRequest, StateChange, WorldIds,
};

/// A running cloud, in this process.
#[derive(Debug, Clone)]
pub struct CloudHandle {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    cloud: Mutex<Cloud>,
    /// The model's revision; kubelets wait on it.
    revision: watch::Sender<u64>,
    /// Wakes the task that waits for the next transition, since a call may have set an earlier one.
    changed: Notify,
}

impl CloudHandle {
    pub(super) fn new(cloud: Cloud) -> Self {
        let (revision, _) = watch::channel(cloud.revision());
        Self {
            shared: Arc::new(Shared { cloud: Mutex::new(cloud), revision, changed: Notify::new() }),
        }
    }

    /// Returns a receiver that changes whenever an instance, its tags or its events do.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.shared.revision.subscribe()
    }

    /// Returns what each instance looks like from inside, as of now.
    pub fn snapshot(&self) -> Vec<InstanceFacts> {
        self.with(|cloud, now| {
            cloud.advance(now);
            cloud.snapshot()
        })
    }

    pub fn world(&self) -> WorldIds {
        self.with(|cloud, _| cloud.world().ids().clone())
    }

    /// Makes an EC2 call without the wire, with the same faults, throttling and ledger.
    pub fn call(&self, caller: &Caller, request: Request) -> Outcome {
        self.with(|cloud, now| cloud.call(now, caller, request))
    }

    pub(super) fn reject(
        &self,
        caller: &Caller,
        action: &str,
        parameters: BTreeMap<String, String>,
        error: Ec2Error,
    ) -> Outcome {
        self.with(|cloud, now| cloud.reject(now, caller, action, parameters, error))
    }

    pub fn stop(&self, id: &str, by: ChangedBy) -> Result<StateChange, ConsoleError> {
        self.with(|cloud, now| cloud.console_stop(now, id, by))
    }

    pub fn start(&self, id: &str) -> Result<StateChange, ConsoleError> {
        self.with(|cloud, now| cloud.console_start(now, id))
    }

    pub fn reboot(&self, id: &str, by: ChangedBy) -> Result<StateChange, ConsoleError> {
        self.with(|cloud, now| cloud.console_reboot(now, id, by))
    }

    pub fn terminate(&self, id: &str, by: ChangedBy) -> Result<StateChange, ConsoleError> {
        self.with(|cloud, now| cloud.console_terminate(now, id, by))
    }

    pub fn impair(&self, id: &str, impair: &Impair) -> Result<Option<Impairment>, ConsoleError> {
        self.with(|cloud, now| cloud.console_impair(now, id, impair))
    }

    pub fn spot_notice(
        &self,
        id: &str,
        request: &SpotNoticeRequest,
    ) -> Result<SpotNotice, ConsoleError> {
        self.with(|cloud, now| cloud.console_spot_notice(now, id, request))
    }

    pub fn schedule_event(&self, event: NewEvent) -> Result<ScheduledEvent, ConsoleError> {
        self.with(|cloud, now| cloud.schedule_event(now, event))
    }

    pub fn patch_event(&self, id: &str, patch: EventPatch) -> Result<ScheduledEvent, ConsoleError> {
        self.with(|cloud, now| cloud.patch_event(now, id, patch))
    }

    pub fn delete_event(&self, id: &str) -> Result<(), ConsoleError> {
        self.with(|cloud, now| cloud.delete_event(now, id))
    }

    pub fn faults(&self) -> Faults {
        self.with(|cloud, _| cloud.faults().clone())
    }

    pub fn add_faults(&self, faults: Faults) -> Result<Faults, ConsoleError> {
        self.with(|cloud, _| cloud.add_faults(faults).cloned())
    }

    pub fn clear_faults(&self) {
        self.with(|cloud, _| cloud.clear_faults());
    }

    pub fn ledger(&self, query: &LedgerQuery) -> LedgerView {
        self.with(|cloud, now| {
            cloud.advance(now);
            cloud.ledger(query)
        })
    }

    /// Carries out what is due without a call, for as long as the process lives.
    pub(super) async fn run_transitions(self) {
        loop {
            let changed = self.shared.changed.notified();
            let due = self.with(|cloud, now| {
                cloud.advance(now);
                cloud.next_transition().map(|at| at.duration_since(now))
            });
            match due {
                // The model is only late, never early: a negative wait means at once.
                Some(wait) => {
                    let wait = Duration::try_from(wait).unwrap_or(Duration::ZERO);
                    tokio::select! {
                        biased;
                        () = changed => {}
                        () = tokio::time::sleep(wait) => {}
                    }
                }
                None => changed.await,
            }
        }
    }

    fn with<T>(&self, act: impl FnOnce(&mut Cloud, Timestamp) -> T) -> T {
        let mut cloud = self.lock();
        let before = (cloud.revision(), cloud.next_transition());
        // The clock is read under the lock, so that the model's time never runs backwards.
        let result = act(&mut cloud, Timestamp::now());
        let after = (cloud.revision(), cloud.next_transition());
        drop(cloud);
        if before.0 != after.0 {
            self.shared.revision.send_replace(after.0);
        }
        if before.1 != after.1 {
            self.shared.changed.notify_one();
        }
        result
    }

    fn lock(&self) -> MutexGuard<'_, Cloud> {
        // A panic in a test that holds the lock must not make every later call panic as well.
        self.shared.cloud.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
