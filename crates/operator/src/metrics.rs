//! What can be measured from outside?
//!
//! One registry for the whole process, without globals. Names and labels of the original controllers are kept, so that existing
//! alerts and dashboards work; what is ours begins with `machinist_`. Served as OpenMetrics text.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use prometheus_client::{
    encoding::{EncodeLabelSet, text},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

use self::{
    clouds::Clouds, fleet::Fleet, health::HealthChecks, instance_failures::InstanceFailures,
    maintenance::Maintenances, process::Process, queues::Queues, serving::Servers, upkeep::Upkeep,
    waiting::Waiting,
};
pub use self::{
    clouds::{CloudViewRow, CloudsSnapshot, PermissionRow},
    fleet::{FleetSnapshot, MachineRow, MachineSetRow},
    instance_failures::InstanceOperation,
    maintenance::{MaintenanceRow, NotificationResult},
    queues::QueueMetrics,
};

use crate::refusals::Refusals;

mod certificates;
mod clouds;
mod fleet;
mod health;
mod instance_failures;
mod maintenance;
mod process;
mod queues;
mod serving;
mod upkeep;
mod waiting;

/// The media type of the text that [`Metrics::encode`] returns.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Buckets of the phase histogram, in seconds, as the original has them.
const PHASE_BUCKETS: [f64; 13] =
    [5.0, 10.0, 20.0, 30.0, 60.0, 90.0, 120.0, 180.0, 240.0, 300.0, 360.0, 480.0, 600.0];

/// All metrics of the process. Clones share the same values.
#[derive(Clone, Debug)]
pub struct Metrics {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    registry: Mutex<Registry>,
    queues: Queues,
    requests: Family<RequestLabels, Counter>,
    lease_held: Family<LeaseLabels, Gauge>,
    watch_failures: Family<KindLabels, Counter>,
    dropped_events: Counter,
    phase_transition: Family<PhaseLabels, Histogram, fn() -> Histogram>,
    cloud_calls: Family<CloudCallLabels, Counter>,
    notices: Family<NoticeLabels, Counter>,
    orphans: Gauge,
    orphans_terminated: Counter,
    invariant_violations: Family<InvariantLabels, Counter>,
    drift: Family<DriftLabels, Counter>,
    certificates_approved: Family<ApprovalLabels, Counter>,
    health_checks: HealthChecks,
    maintenances: Maintenances,
    upkeep: Upkeep,
    instance_failures: InstanceFailures,
    waiting: Waiting,
    servers: Servers,
    refusals: Refusals,
}

// The names of the labels are the contract of the original metrics (client-go, controller-runtime, the Machine API).

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    code: String,
    method: String,
    host: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LeaseLabels {
    name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabels {
    kind: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PhaseLabels {
    phase: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CloudCallLabels {
    provider: String,
    action: String,
    result: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DriftLabels {
    class: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ApprovalLabels {
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct NoticeLabels {
    result: &'static str,
}

/// What became of a notice of the cloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoticeResult {
    /// About an instance of ours: looked at.
    Ours,
    /// About somebody else's: left alone.
    Others,
    /// It could not be read: dropped.
    Malformed,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct InvariantLabels {
    invariant: &'static str,
}

impl Metrics {
    /// Makes the metrics of a process, all at zero.
    #[must_use]
    pub fn new() -> Self {
        let phases: fn() -> Histogram = || Histogram::new(PHASE_BUCKETS);
        let shared = Shared {
            registry: Mutex::default(),
            queues: Queues::default(),
            requests: Family::default(),
            lease_held: Family::default(),
            watch_failures: Family::default(),
            dropped_events: Counter::default(),
            phase_transition: Family::new_with_constructor(phases),
            cloud_calls: Family::default(),
            notices: Family::default(),
            orphans: Gauge::default(),
            orphans_terminated: Counter::default(),
            invariant_violations: Family::default(),
            drift: Family::default(),
            certificates_approved: Family::default(),
            health_checks: HealthChecks::default(),
            maintenances: Maintenances::default(),
            upkeep: Upkeep::default(),
            instance_failures: InstanceFailures::default(),
            waiting: Waiting::default(),
            servers: Servers::default(),
            refusals: Refusals::default(),
        };
        shared.register();
        Self { shared: Arc::new(shared) }
    }

    /// Returns all metrics as OpenMetrics text.
    ///
    /// # Errors
    /// Fails only if writing to memory fails.
    pub fn encode(&self) -> Result<String, std::fmt::Error> {
        let mut encoded = String::new();
        let registry = self.shared.registry.lock().unwrap_or_else(PoisonError::into_inner);
        text::encode(&mut encoded, &registry)?;
        Ok(encoded)
    }

    /// Counts something that happened behind the cluster's back.
    pub fn count_drift(&self, class: machinist_core::drift::Class) {
        self.shared.drift.get_or_create(&DriftLabels { class: class.as_str() }).inc();
    }

    /// Publishes the fleet's metrics from what `snapshot` returns at each scrape.
    pub fn register_fleet(&self, snapshot: impl Fn() -> FleetSnapshot + Send + Sync + 'static) {
        self.lock_registry().register_collector(Box::new(Fleet::new(snapshot)));
    }

    /// Publishes how the cloud views are doing from what `snapshot` returns at each scrape.
    pub fn register_clouds(&self, snapshot: impl Fn() -> CloudsSnapshot + Send + Sync + 'static) {
        self.lock_registry().register_collector(Box::new(Clouds::new(snapshot)));
    }

    /// Counts a notice of the cloud.
    pub fn count_notice(&self, result: NoticeResult) {
        let result = match result {
            NoticeResult::Ours => "ours",
            NoticeResult::Others => "others",
            NoticeResult::Malformed => "malformed",
        };
        self.shared.notices.get_or_create(&NoticeLabels { result }).inc();
    }

    /// Publishes how many instances of the cluster belong to no Machine.
    pub fn set_orphans(&self, count: usize) {
        self.shared.orphans.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Counts an instance without a Machine that was terminated.
    pub fn count_orphan_terminated(&self) {
        self.shared.orphans_terminated.inc();
    }

    /// Observes how long after its creation a machine entered a phase.
    pub fn observe_phase_transition(&self, phase: &str, since_creation: Duration) {
        let labels = PhaseLabels { phase: phase.to_owned() };
        let histogram = self.shared.phase_transition.get_or_create(&labels);
        histogram.observe(since_creation.as_secs_f64());
    }

    /// Counts a failed operation on a machine's instance.
    pub fn count_instance_failure(
        &self,
        operation: InstanceOperation,
        namespace: &str,
        name: &str,
        reason: &str,
    ) {
        self.shared.instance_failures.count(operation, namespace, name, reason);
    }

    /// Counts a call to a cloud. `result` is `success` or the class of the error.
    pub fn count_cloud_call(&self, provider: &str, action: &str, result: &str) {
        let labels = CloudCallLabels {
            provider: provider.to_owned(),
            action: action.to_owned(),
            result: result.to_owned(),
        };
        self.shared.cloud_calls.get_or_create(&labels).inc();
    }

    /// Notes why an object waits, or with `None` that it does not.
    pub fn set_waiting(&self, controller: &str, key: &str, reason: Option<&str>) {
        self.shared.waiting.set(controller, key, reason);
    }

    /// Drops what is remembered of a machine that is gone, so that memory does not grow with its history.
    pub fn forget_machine(&self, namespace: &str, name: &str) {
        self.shared.instance_failures.forget(namespace, name);
    }

    /// Counts that something happened that must never happen.
    pub fn count_invariant_violation(&self, invariant: &'static str) {
        self.shared.invariant_violations.get_or_create(&InvariantLabels { invariant }).inc();
    }

    /// Counts an event that could not be recorded.
    pub fn count_dropped_event(&self) {
        self.shared.dropped_events.inc();
    }

    pub(crate) fn count_watch_failure(&self, kind: &str) {
        self.shared.watch_failures.get_or_create(&KindLabels { kind: kind.to_owned() }).inc();
    }

    pub(crate) fn set_lease_held(&self, name: &str, held: bool) {
        let labels = LeaseLabels { name: name.to_owned() };
        self.shared.lease_held.get_or_create(&labels).set(i64::from(held));
    }

    /// What the API server refuses, as the client has seen.
    pub fn refusals(&self) -> &Refusals {
        &self.shared.refusals
    }

    pub(crate) fn count_request(&self, code: &str, method: &str, host: &str) {
        let labels = RequestLabels {
            code: code.to_owned(),
            method: method.to_owned(),
            host: host.to_owned(),
        };
        self.shared.requests.get_or_create(&labels).inc();
    }

    fn lock_registry(&self) -> std::sync::MutexGuard<'_, Registry> {
        self.shared.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Shared {
    /// Registers every family. A counter's name gets `_total` on the wire.
    fn register(&self) {
        let mut registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        self.queues.register(&mut registry);
        registry.register(
            "rest_client_requests",
            "Requests to the API server by status code, method and host",
            self.requests.clone(),
        );
        registry.register(
            "leader_election_master_status",
            "Whether this process holds the lease",
            self.lease_held.clone(),
        );
        registry.register(
            "machinist_watch_failures",
            "Lists and watches that failed",
            self.watch_failures.clone(),
        );
        registry.register(
            "machinist_events_dropped",
            "Events that could not be recorded",
            self.dropped_events.clone(),
        );
        registry.register(
            "mapi_machine_phase_transition_seconds",
            "Time from a machine's creation to its entering the phase",
            self.phase_transition.clone(),
        );
        registry.register(
            "machinist_cloud_calls",
            "Calls to the cloud by action and result",
            self.cloud_calls.clone(),
        );
        registry.register(
            "machinist_cloud_notices",
            "Notices from the cloud's event queue by what became of them",
            self.notices.clone(),
        );
        registry.register(
            "machinist_orphan_instances",
            "Instances with the cluster's tag and without a Machine",
            self.orphans.clone(),
        );
        registry.register(
            "machinist_orphan_instances_terminated",
            "Instances without a Machine that were terminated",
            self.orphans_terminated.clone(),
        );
        registry.register(
            "machinist_invariant_violations",
            "Things that happened and must never happen",
            self.invariant_violations.clone(),
        );
        registry.register(
            "machinist_machine_drift",
            "Changes of instances that were made behind the cluster's back",
            self.drift.clone(),
        );
        registry.register(
            "machinist_certificates_approved",
            "Certificates of kubelets that were approved, by what spoke for them",
            self.certificates_approved.clone(),
        );
        self.health_checks.register(&mut registry);
        self.maintenances.register(&mut registry);
        self.servers.register(&mut registry);
        self.upkeep.register(&mut registry);
        registry.register_collector(Box::new(self.instance_failures.clone()));
        registry.register_collector(Box::new(self.waiting.clone()));
        registry.register_collector(Box::new(Process));
    }
}

#[cfg(test)]
mod dashboard_tests;
#[cfg(test)]
mod tests;
