//! The Machine controller of Cluster API: hands over, copies, links, and takes down in order.
//!
//! The same five steps as every controller; `validate` is part of the decision.

pub mod emptying;
mod execute;
mod memory;
mod observe;
#[cfg(test)]
mod tests;
pub mod wake;

use std::time::Duration;

use kube::Api;
use machinist_api::cluster_api::{Machine, names::reason};
use machinist_core::{
    cluster_api::machine::{MachineDecision, conditions::at_generation, decide, observed::Policy},
    decision::Wait,
};

pub use self::{
    memory::Memory,
    observe::{Look, look},
};
use super::{context::Context, workloads::Workloads};
use crate::{
    engine::{events::EventTarget, queue::Outcome, store::ObjectKey, supervisor::Spawner},
    machine::{superseded_or_failed, until},
    write::{self, Precondition, WriteError},
};

pub const NAME: &str = "cluster-api-machine";

/// How soon a Machine without its Cluster is looked at again; the Cluster's event comes sooner.
const CLUSTER_RECHECK: Duration = Duration::from_secs(60);

/// What this controller has besides the context that all share.
pub struct Parts {
    pub workloads: Workloads,
    pub memory: Memory,
    pub policy: Policy,
    pub spawner: Spawner,
    /// Has a Machine looked at again.
    pub wake: emptying::Wake,
}

pub async fn reconcile(context: &Context, parts: &Parts, key: ObjectKey) -> Outcome {
    let base = &context.base;
    let Some(machine) = context.stores.machines.get(&key) else {
        parts.memory.forget(&key);
        base.note_waiting(NAME, &key, &[]);
        return Outcome::Settled;
    };
    if let Some(outcome) = base.held(NAME, &key) {
        return outcome;
    }
    let Some(cluster) = context.stores.cluster(&key.namespace, &machine.spec.cluster_name) else {
        let message = format!("Cluster {} does not exist", machine.spec.cluster_name);
        base.note_waiting(NAME, &key, &[Wait::on(reason::INTERNAL_ERROR, message)]);
        return Outcome::RecheckAfter(CLUSTER_RECHECK);
    };
    let observation = observe::observe(context, parts, &machine, &cluster).await;
    let now = base.env.now();
    let decision = decide(&observation.observed(), &parts.policy, now);

    base.note_waiting(NAME, &key, &decision.waiting);
    let executed = execute::execute(context, parts, &observation, &decision.actions).await;
    if !executed.is_gone && !executed.is_stale {
        let published = publish(context, parts, &machine, &executed.machine, &decision).await;
        if let Err(error) = published {
            return superseded_or_failed(error.into());
        }
    }
    if let Some(error) = executed.failure {
        return superseded_or_failed(error);
    }
    match (executed.again, decision.recheck) {
        // A refusal is news for the next pass: it names the budget.
        (true, _) => Outcome::RecheckAfter(Duration::ZERO),
        (false, Some(at)) => Outcome::RecheckAfter(until(now, at)),
        (false, None) => Outcome::Settled,
    }
}

/// One write of the whole status, when it differs.
async fn publish(
    context: &Context,
    parts: &Parts,
    observed: &Machine,
    machine: &Machine,
    decision: &MachineDecision,
) -> Result<(), WriteError> {
    let base = &context.base;
    let key = ObjectKey::of(machine);
    let mut wanted = decision.status.clone();
    at_generation(&mut wanted, observed.metadata.generation, machine.metadata.generation);
    let api = Api::<Machine>::namespaced(base.client.clone(), &key.namespace);
    let stored = machine.status.as_ref();
    let written = write::status(&api, machine, stored, &wanted, Precondition::Observed).await;
    if let Some(written) = execute::caught_up(context, &key, written).await? {
        parts.memory.note_written(&key, &written);
        context.stores.machines.apply_written(written);
    }
    base.announce(&EventTarget::of(machine), "Reconcile", &decision.announcements);
    Ok(())
}
