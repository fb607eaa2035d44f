//! Says how the drain stands, on the Machine.

use kube::Api;
use machinist_api::Machine;
use machinist_core::drain::DrainDecision;

use crate::{
    context::Context,
    engine::{events::EventTarget, store::ObjectKey},
    write::{self, Precondition, WriteError},
};

pub async fn publish(
    context: &Context,
    machine: &Machine,
    decision: &DrainDecision,
) -> Result<(), WriteError> {
    let key = ObjectKey::of(machine);
    let api = Api::<Machine>::namespaced(context.client.clone(), &key.namespace);
    let stored = machine.status.as_ref();
    let written =
        write::status(&api, machine, stored, &decision.status, Precondition::Observed).await?;
    context.announce(&EventTarget::of(machine), "Drain", &decision.announcements);
    if let Some(written) = written {
        context.stores.machines.apply_written(written);
    }
    Ok(())
}
