//! Says what is so of a pool: its counts, and why it does not have its size.

use kube::Api;
use machinist_api::MachineSet;
use machinist_core::machineset::MachineSetDecision;

use super::memory::Memory;
use crate::{
    context::Context,
    engine::{events::EventTarget, store::ObjectKey},
    write::{self, Precondition, WriteError},
};

pub async fn publish(
    context: &Context,
    memory: &Memory,
    set: &MachineSet,
    decision: &MachineSetDecision,
) -> Result<(), WriteError> {
    context.announce(&EventTarget::of(set), "Reconcile", &decision.announcements);
    let key = ObjectKey::of(set);
    let api = Api::<MachineSet>::namespaced(context.client.clone(), &key.namespace);
    let stored = set.status.as_ref();
    let written =
        write::status(&api, set, stored, &decision.status, Precondition::Observed).await?;
    if let Some(written) = written {
        let now = context.env.now();
        memory.change(&key, |memory| memory.status_written_at = Some(now));
        context.stores.machine_sets.apply_written(written);
    }
    Ok(())
}
