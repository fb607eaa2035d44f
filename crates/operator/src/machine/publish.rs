//! Says what is so: writes the status when it differs, records the events, counts the phase.

use std::time::Duration;

use kube::Api;
use machinist_api::{Machine, names::phase};
use machinist_core::machine::MachineDecision;

use super::execute::Executed;
use crate::{
    context::Context,
    engine::events::EventTarget,
    write::{self, Precondition, WriteError},
};

pub async fn publish(
    context: &Context,
    decision: &MachineDecision,
    executed: &Executed,
) -> Result<(), WriteError> {
    let machine = &executed.machine;
    let target = EventTarget::of(&**machine);
    // What a failed step was to announce did not happen.
    if executed.failure.is_none() {
        context.announce(&target, "Reconcile", &decision.announcements);
    }
    if executed.let_go {
        return Ok(());
    }
    let (status, precondition) = match &executed.aftermath {
        Some(aftermath) => {
            context.announce(&target, "Reconcile", &aftermath.announcements);
            (&aftermath.status, Precondition::SameObject)
        }
        None => (&decision.status, Precondition::Observed),
    };
    let namespace = machine.metadata.namespace.as_deref().unwrap_or_default();
    let api = Api::<Machine>::namespaced(context.client.clone(), namespace);
    let stored = machine.status.as_ref();
    let written = write::status(&api, &**machine, stored, status, precondition).await?;
    if let Some(written) = written {
        count_phase(context, machine, &written);
        context.stores.machines.apply_written(written);
    }
    Ok(())
}

fn count_phase(context: &Context, before: &Machine, after: &Machine) {
    let phase_of = |machine: &Machine| machine.status.as_ref().and_then(|it| it.phase.clone());
    let (Some(new), Some(created)) = (phase_of(after), &after.metadata.creation_timestamp) else {
        return;
    };
    if phase_of(before).as_ref() == Some(&new) || new == phase::DELETING {
        return;
    }
    let age = context.env.now().duration_since(created.0);
    context.metrics.observe_phase_transition(&new, Duration::try_from(age).unwrap_or_default());
}
