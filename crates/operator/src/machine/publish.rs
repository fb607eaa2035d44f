//! Says what is so: writes the status when it differs, then records the events and counts.

use std::time::Duration;

use kube::Api;
use machinist_api::{Machine, names::phase};
use machinist_core::{drift::Class, machine::MachineDecision};

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
    if !executed.let_go {
        let (status, precondition) = match &executed.aftermath {
            Some(aftermath) => (&aftermath.status, Precondition::SameObject),
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
    }
    tell(context, decision, executed);
    Ok(())
}

/// Tells what the status now says, and no sooner: a write that lost to another is decided anew, and
/// would be told twice.
fn tell(context: &Context, decision: &MachineDecision, executed: &Executed) {
    let target = EventTarget::of(&*executed.machine);
    let is_decision_stored = executed.aftermath.is_none() || executed.is_intent_stored;
    for announcement in decision.announcements.iter().filter(|_| is_decision_stored) {
        let class = Class::from_reason(announcement.reason);
        // What a failed step was to announce did not happen; what was noticed did.
        if executed.failure.is_none() || class.is_some() {
            context.announce(&target, "Reconcile", std::slice::from_ref(announcement));
        }
        if let Some(class) = class {
            context.metrics.count_drift(class);
        }
    }
    if let Some(aftermath) = &executed.aftermath {
        context.announce(&target, "Reconcile", &aftermath.announcements);
    }
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
