//! The maintenance controller: plans for the whole fleet, and carries out one maintenance at a time for
//! each Machine.
//!
//! Two queues. `planning` looks at the whole fleet when something relevant changed, keeps the plan, and
//! makes and removes objects. The pass here is for one MachineMaintenance: observe, decide (core),
//! execute, publish. What begins a maintenance is decided on a plan that is made in the same pass, by one
//! pass at a time, so that no two of them take the same place in a budget.

mod closer_look;
mod effects;
mod etcd_health;
mod execute;
mod fleet;
mod home;
mod memory;
mod notify;
mod observe;
pub mod planning;
mod publish;
mod recent;
mod sight;
mod start;
pub mod stores;

use jiff::{SignedDuration, Timestamp};
use machinist_api::{Machine, MachineMaintenance, MaintenancePhase};
use machinist_core::{
    drift::policy::DriftDefaults,
    maintenance::{decide, policies::Subject},
};

pub use self::{
    memory::Memory,
    notify::Notifier,
    start::{Settings, start},
    stores::MaintenanceStores,
};
use crate::{
    cloud::pace::NotYet,
    context::{Context, Stores},
    engine::{
        queue::{Outcome, Queue},
        store::ObjectKey,
    },
    machine::{superseded_or_failed, until},
    write::WriteError,
};

#[cfg(test)]
mod tests;

pub const NAME: &str = "maintenance";

/// What only time decides about is looked at again after this long.
const WHILE_DOUBTFUL: SignedDuration = SignedDuration::from_mins(1);

/// What both passes share.
pub struct Maintenance {
    pub memory: Memory,
    /// Where those are put that a plan says something new for.
    pub queue: Queue<ObjectKey>,
    pub notifier: Notifier,
}

pub async fn reconcile(context: &Context, maintenance: &Maintenance, key: ObjectKey) -> Outcome {
    let stores = &context.stores.maintenance;
    let Some(known) = stores.get(&key) else {
        maintenance.memory.forget(&key);
        context.note_waiting(NAME, &key, &[]);
        return Outcome::Settled;
    };
    if let Some(counting) = stores.counting_instead_of(&known) {
        context.note_waiting(NAME, &key, &[]);
        return match publish::publish_not_counting(context, known, &counting).await {
            Ok(()) => Outcome::Settled,
            Err(error) => superseded_or_failed(error),
        };
    }
    let begins = may_begin(maintenance, &known, context.env.now());
    let turn = if begins { Some(maintenance.memory.turn().await) } else { None };
    if turn.is_some() {
        // A new leader's first list may be of the past, where a window or a taken place is missing.
        if let Err(error) = closer_look::refresh(context, &maintenance.memory).await {
            return Outcome::Failed(error);
        }
        planning::plan_anew(context, maintenance).await;
    }
    // It may have changed while others had their turn.
    let Some(object) = stores.get(&key) else { return Outcome::Settled };
    let observation = match observe::observe(context, maintenance, object, begins).await {
        Ok(observation) => observation,
        Err(error) => return Outcome::Failed(error),
    };
    let now = context.env.now();
    let mut decision = decide(&observation.observed(), &observation.policy, now);
    if observation.is_doubtful() {
        decision.recheck_by(now.checked_add(WHILE_DOUBTFUL).unwrap_or(Timestamp::MAX));
    }

    context.note_waiting(NAME, &key, &decision.waiting);
    let mut executed = execute::execute(context, maintenance, &observation, &decision).await;
    if let Some(error) = executed.failure.take() {
        return failed(context, &executed, error).await;
    }
    let published =
        publish::publish(context, maintenance, &observation, &decision, &executed).await;
    drop(turn);

    if let Err(error) = published {
        return superseded_or_failed(error.into());
    }
    if executed.was_refused {
        // A refusal is news for the next pass: it names the budget.
        return Outcome::RecheckAfter(std::time::Duration::ZERO);
    }
    match decision.recheck {
        Some(at) => Outcome::RecheckAfter(until(now, at)),
        None => Outcome::Settled,
    }
}

/// What the MaintenancePolicy of a Machine says of drift; nothing while none is known.
pub fn drift_defaults(stores: &Stores, machine: &Machine) -> DriftDefaults {
    if stores.maintenance.policies.is_empty() {
        return DriftDefaults::default();
    }
    observe::policy_of(&stores.maintenance.policy_set(), &Subject::of(machine)).drift
}

/// Whether this pass may be the one that begins the work, as far as the last plan tells.
fn may_begin(maintenance: &Maintenance, object: &MachineMaintenance, now: Timestamp) -> bool {
    let phase = object.status.as_ref().and_then(|status| status.phase).unwrap_or_default();
    let is_waiting = matches!(
        phase,
        MaintenancePhase::Pending | MaintenancePhase::Scheduled | MaintenancePhase::Failed
    );
    let entry = maintenance.memory.entry(&object.spec.machinelink).filter(|_| is_waiting);
    entry.is_some_and(|entry| entry.is_due() || entry.start.is_some_and(|start| start <= now))
}

/// What was decided was not carried out whole, so it is not published. A failure is said on the object,
/// unless somebody else's write came first.
async fn failed(context: &Context, executed: &execute::Executed, error: anyhow::Error) -> Outcome {
    if let Some(not_yet) = error.downcast_ref::<NotYet>() {
        return Outcome::RecheckAfter(not_yet.after);
    }
    let is_superseded = error.downcast_ref::<WriteError>().is_some_and(WriteError::is_superseded);
    if !is_superseded {
        let told = publish::publish_failure(context, executed, &error).await;
        if let Err(untold) = told {
            tracing::debug!(error = %untold, "a failure could not be told");
        }
    }
    superseded_or_failed(error)
}
