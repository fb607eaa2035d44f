//! How does the rest of the process use the cloud? A handle that can be cloned, watched and asked.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use tokio::sync::{Notify, watch};

use crate::cloud::model::{
    Breakpoint, Caller, ChangedBy, Cloud, ConsoleError, Ec2Error, EventPatch, Faults, HeldCall,
    HideRequest, HostDescription, Impair, Impairment, InstanceFacts, LedgerQuery, LedgerView,
    LoadBalancerFacts, MetadataAnswer, MetadataRequest, NewBreakpoint, NewEvent, Outcome,
    RebalanceRequest, Request, ScheduledEvent, SpotNotice, SpotNoticeRequest, StateChange,
    WorldIds,
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
    /// Changes when a breakpoint is set, hit or removed; held connections wait on it.
    breakpoints: watch::Sender<u64>,
    /// Wakes the task that waits for the next transition, since a call may have set an earlier one.
    changed: Notify,
}

/// One breakpoint of a running cloud.
#[derive(Debug, Clone)]
pub struct BreakpointHandle {
    cloud: CloudHandle,
    id: u64,
}

impl BreakpointHandle {
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Waits until the breakpoint holds a call; an error when it is removed before.
    pub async fn wait_until_hit(&self) -> Result<HeldCall, ConsoleError> {
        let id = self.id;
        self.cloud
            .breakpoint_is(|cloud| match cloud.breakpoint(id) {
                None => Some(Err(ConsoleError::NotFound(format!("breakpoint {id} was removed")))),
                Some(breakpoint) => breakpoint.call.clone().map(Ok),
            })
            .await
    }

    /// Removes it; the held connection ends without an answer.
    pub fn remove(&self) -> Result<(), ConsoleError> {
        self.cloud.remove_breakpoint(self.id)
    }
}

impl CloudHandle {
    pub(super) fn new(cloud: Cloud) -> Self {
        let (revision, _) = watch::channel(cloud.revision());
        let (breakpoints, _) = watch::channel(cloud.breakpoint_revision());
        let shared =
            Shared { cloud: Mutex::new(cloud), revision, breakpoints, changed: Notify::new() };
        Self { shared: Arc::new(shared) }
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

    /// Recommends to leave a spot instance, or takes that back; returns since when.
    pub fn rebalance(
        &self,
        id: &str,
        request: &RebalanceRequest,
    ) -> Result<Option<Timestamp>, ConsoleError> {
        self.with(|cloud, now| cloud.console_rebalance(now, id, request))
    }

    /// Asks the metadata service of an instance, as its guest does.
    pub fn metadata(&self, instance_id: &str, request: &MetadataRequest) -> MetadataAnswer {
        self.with(|cloud, now| cloud.metadata(now, instance_id, request))
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
        self.with(|cloud, now| cloud.add_faults(now, faults).cloned())
    }

    /// Clears the faults of one kind, named as in their JSON form, such as `denied`.
    pub fn clear_fault_kind(&self, kind: &str) -> Result<(), ConsoleError> {
        self.with(|cloud, _| cloud.clear_fault_kind(kind))
    }

    /// Leaves an instance out of every read, for a while or until it is shown again.
    pub fn hide(&self, id: &str, request: &HideRequest) -> Result<(), ConsoleError> {
        self.with(|cloud, now| cloud.console_hide(now, id, request))
    }

    pub fn show(&self, id: &str) -> Result<(), ConsoleError> {
        self.with(|cloud, now| cloud.console_show(now, id))
    }

    /// Takes an instance away for good, as an hour after its termination.
    pub fn vanish(&self, id: &str) -> Result<StateChange, ConsoleError> {
        self.with(|cloud, now| cloud.console_vanish(now, id))
    }

    pub fn load_balancers(&self) -> LoadBalancerFacts {
        self.with(|cloud, now| {
            cloud.advance(now);
            cloud.load_balancer_facts(now)
        })
    }

    pub fn hosts(&self) -> Vec<HostDescription> {
        self.with(|cloud, now| {
            cloud.advance(now);
            cloud.hosts()
        })
    }

    /// Sets a breakpoint; it stands until it is removed, whatever becomes of the handle.
    pub fn add_breakpoint(&self, wanted: NewBreakpoint) -> Result<BreakpointHandle, ConsoleError> {
        let breakpoint = self.with(|cloud, _| cloud.add_breakpoint(wanted))?;
        Ok(BreakpointHandle { cloud: self.clone(), id: breakpoint.id })
    }

    pub fn breakpoints(&self) -> Vec<Breakpoint> {
        self.with(|cloud, _| cloud.breakpoints().to_vec())
    }

    pub fn remove_breakpoint(&self, id: u64) -> Result<(), ConsoleError> {
        self.with(|cloud, _| cloud.remove_breakpoint(id))
    }

    pub fn clear_breakpoints(&self) {
        self.with(|cloud, _| cloud.clear_breakpoints());
    }

    pub(super) async fn breakpoint_removed(&self, id: u64) {
        self.breakpoint_is(|cloud| cloud.breakpoint(id).is_none().then_some(())).await;
    }

    /// Waits until something is so about the breakpoints, and returns it.
    async fn breakpoint_is<T>(&self, wanted: impl Fn(&Cloud) -> Option<T>) -> T {
        let mut changes = self.shared.breakpoints.subscribe();
        loop {
            if let Some(found) = self.with(|cloud, _| wanted(cloud)) {
                return found;
            }
            // The sender lives in what this handle holds, so the channel cannot close.
            changes.changed().await.ok();
        }
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
        let before = (cloud.revision(), cloud.next_transition(), cloud.breakpoint_revision());
        // The clock is read under the lock, so that the model's time never runs backwards.
        let result = act(&mut cloud, Timestamp::now());
        let after = (cloud.revision(), cloud.next_transition(), cloud.breakpoint_revision());
        drop(cloud);
        if before.0 != after.0 {
            self.shared.revision.send_replace(after.0);
        }
        if before.1 != after.1 {
            self.shared.changed.notify_one();
        }
        if before.2 != after.2 {
            self.shared.breakpoints.send_replace(after.2);
        }
        result
    }

    fn lock(&self) -> MutexGuard<'_, Cloud> {
        // A panic in a test that holds the lock must not make every later call panic as well.
        self.shared.cloud.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
