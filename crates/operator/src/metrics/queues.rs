//! How do the controllers and their queues do, by the names of controller-runtime and client-go?

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet},
    metrics::{
        MetricType,
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::Registry,
};
use tokio::time::Instant;

use super::Metrics;
use crate::engine::{env::Env, queue::Outcome};

/// Buckets of a run's duration, in seconds, as controller-runtime has them.
pub(super) const RUN_BUCKETS: [f64; 40] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9,
    1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0,
    25.0, 30.0, 40.0, 50.0, 60.0,
];

type Histograms<Labels> = Family<Labels, Histogram, fn() -> Histogram>;

/// The families of all queues.
#[derive(Debug)]
pub(super) struct Queues {
    depth: Family<QueueLabels, Gauge>,
    adds: Family<QueueLabels, Counter>,
    retries: Family<QueueLabels, Counter>,
    queue_duration: Histograms<QueueLabels>,
    work_duration: Histograms<QueueLabels>,
    reconcile: Family<ReconcileLabels, Counter>,
    reconcile_errors: Family<ControllerLabels, Counter>,
    reconcile_time: Histograms<ControllerLabels>,
    workers_max: Family<ControllerLabels, Gauge>,
    workers: Family<ControllerLabels, Gauge>,
    under_way: UnderWay,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QueueLabels {
    name: String,
    controller: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ControllerLabels {
    controller: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReconcileLabels {
    controller: String,
    result: &'static str,
}

/// The metrics of one queue.
#[derive(Clone, Debug)]
pub struct QueueMetrics {
    pub(crate) depth: Gauge,
    pub(crate) adds: Counter,
    pub(crate) retries: Counter,
    /// How long keys waited for their run.
    waited: Histogram,
    worked: Histogram,
    took: Histogram,
    workers_max: Gauge,
    workers: Gauge,
    errors: Counter,
    results: Family<ReconcileLabels, Counter>,
    runs: Arc<Runs>,
    controller: String,
}

/// One run, from its beginning to its end.
#[derive(Debug)]
pub(crate) struct Run(u64);

/// When the runs of one queue began that are under way.
#[derive(Debug)]
struct Runs {
    controller: String,
    env: Env,
    began: Mutex<(u64, BTreeMap<u64, Instant>)>,
}

impl Runs {
    fn lock(&self) -> MutexGuard<'_, (u64, BTreeMap<u64, Instant>)> {
        self.began.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The ages of all runs together, and of the oldest.
    fn ages(&self) -> (f64, f64) {
        let now = self.env.instant();
        let began = self.lock();
        let ages = began.1.values().map(|began| now.saturating_duration_since(*began));
        ages.map(|age| age.as_secs_f64())
            .fold((0.0, 0.0), |(sum, longest), age| (sum + age, f64::max(longest, age)))
    }
}

impl Default for Queues {
    fn default() -> Self {
        let runs: fn() -> Histogram = || Histogram::new(RUN_BUCKETS);
        // From ten nanoseconds on, as client-go has them.
        let waits: fn() -> Histogram = || Histogram::new(exponential_buckets(10e-9, 10.0, 12));
        Self {
            depth: Family::default(),
            adds: Family::default(),
            retries: Family::default(),
            queue_duration: Family::new_with_constructor(waits),
            work_duration: Family::new_with_constructor(waits),
            reconcile: Family::default(),
            reconcile_errors: Family::default(),
            reconcile_time: Family::new_with_constructor(runs),
            workers_max: Family::default(),
            workers: Family::default(),
            under_way: UnderWay::default(),
        }
    }
}

impl Queues {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("workqueue_depth", "Keys waiting to be handled", self.depth.clone());
        registry.register("workqueue_adds", "Keys added", self.adds.clone());
        registry.register("workqueue_retries", "Keys added after a failure", self.retries.clone());
        registry.register(
            "workqueue_queue_duration_seconds",
            "Time that a key waited for its run",
            self.queue_duration.clone(),
        );
        registry.register(
            "workqueue_work_duration_seconds",
            "Time that the run of a key took",
            self.work_duration.clone(),
        );
        registry.register("controller_runtime_reconcile", "Runs by result", self.reconcile.clone());
        registry.register(
            "controller_runtime_reconcile_errors",
            "Runs that failed",
            self.reconcile_errors.clone(),
        );
        registry.register(
            "controller_runtime_reconcile_time_seconds",
            "Duration of a run",
            self.reconcile_time.clone(),
        );
        registry.register(
            "controller_runtime_max_concurrent_reconciles",
            "Runs that may be under way at once",
            self.workers_max.clone(),
        );
        registry.register(
            "controller_runtime_active_workers",
            "Runs that are under way",
            self.workers.clone(),
        );
        registry.register_collector(Box::new(self.under_way.clone()));
    }
}

impl Metrics {
    /// The metrics of a queue, all of them at zero: a rate needs a beginning.
    pub(crate) fn queue(&self, controller: &str, env: &Env) -> QueueMetrics {
        let queues = &self.shared.queues;
        let labels = QueueLabels { name: controller.to_owned(), controller: controller.to_owned() };
        let own = ControllerLabels { controller: controller.to_owned() };
        let runs = Arc::new(Runs {
            controller: controller.to_owned(),
            env: env.clone(),
            began: Mutex::default(),
        });
        queues.under_way.add(&runs);
        for result in ["success", "requeue_after", "error"] {
            let controller = controller.to_owned();
            queues.reconcile.get_or_create_owned(&ReconcileLabels { controller, result });
        }
        QueueMetrics {
            depth: queues.depth.get_or_create_owned(&labels),
            adds: queues.adds.get_or_create_owned(&labels),
            retries: queues.retries.get_or_create_owned(&labels),
            waited: queues.queue_duration.get_or_create_owned(&labels),
            worked: queues.work_duration.get_or_create_owned(&labels),
            took: queues.reconcile_time.get_or_create_owned(&own),
            workers_max: queues.workers_max.get_or_create_owned(&own),
            workers: queues.workers.get_or_create_owned(&own),
            errors: queues.reconcile_errors.get_or_create_owned(&own),
            results: queues.reconcile.clone(),
            runs,
            controller: controller.to_owned(),
        }
    }
}

impl QueueMetrics {
    pub(crate) fn set_concurrency(&self, concurrency: usize) {
        self.workers_max.set(i64::try_from(concurrency).unwrap_or(i64::MAX));
    }

    pub(crate) fn began(&self, at: Instant, waited: Duration) -> Run {
        self.waited.observe(waited.as_secs_f64());
        self.workers.inc();
        let mut began = self.runs.lock();
        began.0 += 1;
        let number = began.0;
        began.1.insert(number, at);
        Run(number)
    }

    pub(crate) fn finished(&self, run: &Run, outcome: &Outcome, took: Duration) {
        self.runs.lock().1.remove(&run.0);
        self.workers.dec();
        self.worked.observe(took.as_secs_f64());
        self.took.observe(took.as_secs_f64());
        let result = match outcome {
            Outcome::Settled => "success",
            Outcome::RecheckAfter(_) => "requeue_after",
            Outcome::Failed(_) => {
                self.errors.inc();
                "error"
            }
        };
        let controller = self.controller.clone();
        self.results.get_or_create(&ReconcileLabels { controller, result }).inc();
    }
}

/// What grows while runs last: computed at each scrape.
#[derive(Clone, Debug, Default)]
struct UnderWay {
    queues: Arc<Mutex<Vec<Arc<Runs>>>>,
}

impl UnderWay {
    fn add(&self, runs: &Arc<Runs>) {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        // A queue of the same name takes the place of an earlier one: each series is there once.
        queues.retain(|known| known.controller != runs.controller);
        queues.push(Arc::clone(runs));
    }
}

type Age = fn((f64, f64)) -> f64;

impl Collector for UnderWay {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let gauges: [(&str, &str, Age); 2] = [
            ("workqueue_unfinished_work_seconds", "Age of all runs under way", |ages| ages.0),
            ("workqueue_longest_running_processor_seconds", "Age of the oldest run", |ages| ages.1),
        ];
        for (name, help, age) in gauges {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for runs in &queues {
                let own = runs.controller.as_str();
                let labels = [("name", own), ("controller", own)];
                metric.encode_family(&labels)?.encode_gauge(&age(runs.ages()))?;
            }
        }
        Ok(())
    }
}
