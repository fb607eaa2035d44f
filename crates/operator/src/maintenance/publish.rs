//! Says how far a maintenance is: on the object, to those who listen to its events, to who measures, and
//! to the webhook, where there is one.

use std::{sync::Arc, time::Duration};

use kube::Api;
use machinist_api::{
    Condition, MachineMaintenance, MachineMaintenanceStatus, MaintenancePhase, condition,
    names::{condition_type, maintenance_reason},
};
use machinist_core::{
    decision::Wait,
    maintenance::{decide::MaintenanceDecision, record, records},
};

use super::{
    Maintenance,
    execute::{Executed, remove_finalizer},
    observe::Observation,
};
use crate::{
    cluster_api::maintained::event_target,
    context::Context,
    engine::{events::EventTarget, store::ObjectKey},
    write::{self, Precondition, WriteError},
};

pub async fn publish(
    context: &Context,
    maintenance: &Maintenance,
    observation: &Observation,
    decision: &MaintenanceDecision,
    executed: &Executed,
) -> Result<(), WriteError> {
    if !executed.let_go {
        let precondition = if executed.has_asked_cloud {
            Precondition::SameObject
        } else {
            Precondition::Observed
        };
        write(context, &executed.object, &executed.status, precondition).await?;
    }
    // Only now: what is told once is told by its difference from the stored status.
    context.announce(&EventTarget::of(&*executed.object), "Maintain", &decision.announcements);
    if let Some(machine) = &observation.machine {
        context.announce(&event_target(machine), "Maintain", &decision.announcements);
    }
    let before = observation.object.status.as_ref().and_then(|status| status.phase);
    if executed.status.phase != before {
        entered(context, maintenance, observation, executed);
    }
    Ok(())
}

/// Another object counts for the Machine: nothing is done but to say so. What was begun for this one is
/// over, so nothing holds it any more.
pub async fn publish_not_counting(
    context: &Context,
    object: Arc<MachineMaintenance>,
    counting: &MachineMaintenance,
) -> anyhow::Result<()> {
    let object = remove_finalizer(context, object).await?;
    let is_gone = object.metadata.deletion_timestamp.is_some();
    if !is_gone {
        let status = records::not_counting(&object, counting, context.env.now());
        write(context, &object, &status, Precondition::Observed).await?;
    }
    Ok(())
}

/// A step failed, and what was decided is not so: only that is said.
pub async fn publish_failure(
    context: &Context,
    executed: &Executed,
    error: &anyhow::Error,
) -> Result<(), WriteError> {
    let mut status = executed.object.status.clone().unwrap_or_default();
    let words = format!("a step failed and is tried again: {error:#}");
    record::set_waits(&mut status, &[Wait::on(maintenance_reason::STEP_FAILED, words)]);
    write(context, &executed.object, &status, Precondition::Observed).await
}

async fn write(
    context: &Context,
    object: &MachineMaintenance,
    status: &MachineMaintenanceStatus,
    precondition: Precondition,
) -> Result<(), WriteError> {
    let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
    let api = Api::<MachineMaintenance>::namespaced(context.client.clone(), namespace);
    let stored = object.status.as_ref();
    if let Some(written) = write::status(&api, object, stored, status, precondition).await? {
        context.stores.maintenance.apply_written(written);
    }
    Ok(())
}

/// A phase was entered: measured, logged, and told to whoever wants to know.
fn entered(
    context: &Context,
    maintenance: &Maintenance,
    observation: &Observation,
    executed: &Executed,
) {
    let status = &executed.status;
    let phase = status.phase.unwrap_or_default();
    let key = ObjectKey::of(&*executed.object);
    let message = status.message.as_deref().unwrap_or_default();
    tracing::info!(maintenance = %key, phase = phase.as_str(), "{message}");
    if phase.is_over() {
        observe_duration(context, status, phase);
    }
    maintenance.notifier.tell(context, observation, executed);
}

fn observe_duration(
    context: &Context,
    status: &MachineMaintenanceStatus,
    outcome: MaintenancePhase,
) {
    let Some(work) = &status.work else { return };
    let (Some(action), Some(started), Some(finished)) =
        (work.action, &work.started_at, &status.finished_at)
    else {
        return;
    };
    let took = Duration::try_from(finished.0.duration_since(started.0)).unwrap_or_default();
    context.metrics.observe_maintenance(action, outcome, took);
}

/// Why the machine is not well afterwards, where it is not.
pub fn unverified(object: &Arc<MachineMaintenance>) -> Option<String> {
    let conditions = &object.status.as_ref()?.conditions;
    let verified: &Condition = condition::find(conditions, condition_type::VERIFIED)?;
    let fails = verified.status == machinist_api::ConditionStatus::False;
    verified.reason.clone().filter(|_| fails)
}
