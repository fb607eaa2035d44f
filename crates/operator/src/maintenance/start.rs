//! How the parts of maintenance are put together: watches, queues, metrics, the webhook.

use std::sync::Arc;

use jiff::Timestamp;
use machinist_api::{
    ConditionStatus, MachineMaintenance, MaintenancePhase, condition, names::condition_type,
};

use super::{Maintenance, Memory, NAME, Notifier, planning, publish::unverified};
use crate::{
    context::{Context, Stores},
    engine::{
        queue::{Outcome, Queue},
        store::ObjectKey,
        supervisor::Spawner,
    },
    metrics::MaintenanceRow,
    wake::Queues,
};

/// How many maintenances are worked on at once; most wait.
const CONCURRENCY: usize = 8;

type Run = std::pin::Pin<Box<dyn Future<Output = Outcome> + Send>>;
type Handler = Box<dyn Fn(ObjectKey) -> Run + Send + Sync>;

/// What can be chosen about it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings<'a> {
    /// Who is told of changes of phase, unless a policy names another.
    pub webhook: Option<&'a str>,
    /// The labels of the policies that count; all of them without it.
    pub policies: Option<&'a str>,
}

/// Starts everything; `start` starts one controller.
pub fn start(
    settings: Settings<'_>,
    spawner: &Spawner,
    context: &Arc<Context>,
    queues: &Queues,
    start: impl Fn(&'static str, Queue<ObjectKey>, usize, Handler),
) {
    let Context { client, env, metrics, events, .. } = &**context;
    context.stores.maintenance.watch(settings.policies, client, env, metrics, spawner, events);
    register_metrics(context);
    let (notifier, messenger) = Notifier::new(settings.webhook, context);
    spawner.spawn("maintenance notifications", messenger.run());
    let maintenance = Arc::new(Maintenance {
        memory: Memory::default(),
        queue: queues.maintenances.clone(),
        notifier,
    });
    queues.plans.add(planning::key());
    let (of, shared) = (Arc::clone(context), Arc::clone(&maintenance));
    start(
        planning::NAME,
        queues.plans.clone(),
        1,
        Box::new(move |_| {
            let (context, maintenance) = (Arc::clone(&of), Arc::clone(&shared));
            Box::pin(async move { planning::reconcile(&context, &maintenance).await })
        }),
    );
    let of = Arc::clone(context);
    start(
        NAME,
        queues.maintenances.clone(),
        CONCURRENCY,
        Box::new(move |key| {
            let (context, maintenance) = (Arc::clone(&of), Arc::clone(&maintenance));
            Box::pin(async move { super::reconcile(&context, &maintenance, key).await })
        }),
    );
}

fn register_metrics(context: &Arc<Context>) {
    // Weakly: what listens to a store holds the metrics.
    let (stores, env) = (Arc::downgrade(&context.stores), context.env.clone());
    context.metrics.register_maintenances(move || {
        stores.upgrade().map(|stores| rows(&stores, env.now())).unwrap_or_default()
    });
}

fn rows(stores: &Stores, now: Timestamp) -> Vec<MaintenanceRow> {
    stores.maintenance.list().iter().map(|object| row(object, now)).collect()
}

fn row(object: &Arc<MachineMaintenance>, now: Timestamp) -> MaintenanceRow {
    let status = object.status.clone().unwrap_or_default();
    let phase = status.phase.unwrap_or_default();
    let is_open = !phase.is_over();
    let plan = status.plan.as_ref().filter(|_| is_open);
    let seconds = |time: &Timestamp| time.duration_since(now).as_secs_f64();
    let started = status.work.as_ref().and_then(|work| work.started_at.as_ref());
    let is_late = condition::find(&status.conditions, condition_type::ON_TIME)
        .is_some_and(|known| known.status == ConditionStatus::False);
    MaintenanceRow {
        namespace: object.metadata.namespace.clone().unwrap_or_default(),
        machine: object.spec.machinelink.clone(),
        phase,
        is_late: is_late && is_open,
        seconds_to_deadline: plan
            .and_then(|plan| plan.deadline.as_ref())
            .map(|deadline| seconds(&deadline.0)),
        under_way_seconds: started
            .filter(|_| phase.is_under_way())
            .map(|started| -seconds(&started.0)),
        waits_on: plan.and_then(|plan| plan.waits_on.first()).map(|wait| wait.reason.clone()),
        unverified: unverified(object).filter(|_| phase == MaintenancePhase::Failed || is_open),
    }
}
