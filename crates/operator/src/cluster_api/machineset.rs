//! The MachineSet controller of Cluster API: keeps a set at its size.
//!
//! The same five steps as every controller; `validate` is part of the decision.

mod execute;
mod memory;
mod observe;
#[cfg(test)]
mod tests;

use kube::Api;
use machinist_api::cluster_api::MachineSet;
use machinist_core::cluster_api::machineset::{MachineSetDecision, decide};

pub use self::memory::Memory;
use super::context::Context;
use crate::{
    engine::{batches, events::EventTarget, queue::Outcome, store::ObjectKey},
    machine::{concluded, superseded_or_failed},
    write::{self, Precondition, WriteError},
};

pub const NAME: &str = "cluster-api-machineset";

pub async fn reconcile(context: &Context, memory: &Memory, key: ObjectKey) -> Outcome {
    let base = &context.base;
    let Some(set) = context.stores.machine_sets.get(&key) else {
        memory.forget(&key);
        base.note_waiting(NAME, &key, &[]);
        return Outcome::Settled;
    };
    if let Some(outcome) = base.held(NAME, &key) {
        return outcome;
    }
    let observation = observe::observe(context, memory, &set).await;
    let now = base.env.now();
    let decision = decide(&observation.observed(), now);

    base.note_waiting(NAME, &key, &decision.waiting);
    let executed = execute::execute(context, memory, &observation, &decision.actions).await;
    if executed.as_ref().is_err_and(batches::is_superseded) {
        // The status was decided on what is no more.
        return executed.map_or_else(superseded_or_failed, |()| Outcome::Settled);
    }
    if executed.is_ok() && decision.actions.iter().any(execute::changes_the_set) {
        // The change itself wakes this set again.
        return Outcome::Settled;
    }
    let published = publish(context, memory, &set, &decision).await;
    concluded(executed, published, decision.recheck, now)
}

async fn publish(
    context: &Context,
    memory: &Memory,
    set: &MachineSet,
    decision: &MachineSetDecision,
) -> Result<(), WriteError> {
    let base = &context.base;
    base.announce(&EventTarget::of(set), "Reconcile", &decision.announcements);
    let key = ObjectKey::of(set);
    let api = Api::<MachineSet>::namespaced(base.client.clone(), &key.namespace);
    let stored = set.status.as_ref();
    let mut wanted = decision.status.clone();
    memory.versions.adapt(&mut wanted.versions, stored.map(|status| &status.versions));
    let written = write::status(&api, set, stored, &wanted, Precondition::Observed).await?;
    if let Some(written) = written {
        memory
            .versions
            .learn(&wanted.versions, written.status.as_ref().map(|status| &status.versions));
        let now = base.env.now();
        memory.change(&key, |memory| memory.status_written_at = Some(now));
        context.stores.machine_sets.apply_written(written);
    }
    Ok(())
}
