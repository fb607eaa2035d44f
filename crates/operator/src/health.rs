//! The MachineHealthCheck controller: has machines replaced that do not work.
//!
//! The same steps as every controller. Where a check names a template of another controller, that is
//! read only when the decision wants it, and then it is decided once more. So it is before any machine is
//! taken away: then the API server is asked how things are at this moment.

mod closer_look;
mod execute;
mod external;
mod memory;
mod observe;
mod publish;

use machinist_core::health::{Action, decide};

pub use self::memory::Memory;
use crate::{
    context::Context,
    engine::{queue::Outcome, store::ObjectKey},
    machine::{superseded_or_failed, until},
};

#[cfg(test)]
mod tests;

pub const NAME: &str = "machinehealthcheck";

pub async fn reconcile(context: &Context, memory: &Memory, key: ObjectKey) -> Outcome {
    let Some(check) = context.stores.health_checks.get(&key) else {
        memory.forget(&key);
        context.note_waiting(NAME, &key, &[]);
        context.metrics.forget_health_check(&key.namespace, &key.name);
        return Outcome::Settled;
    };
    if let Some(outcome) = context.held(NAME, &key) {
        return outcome;
    }
    if context.stores.openshift.health_checks_are_anothers() {
        context.note_waiting(NAME, &key, &[]);
        return Outcome::Settled;
    }
    let mut observation = observe::observe(context, memory, &check).await;
    let now = context.env.now();
    let mut answer = decide(&observation.observed(), now);
    if answer.wants_template {
        observation.ask_for_template(context, memory).await;
        answer = decide(&observation.observed(), now);
    }

    if answer.decision.actions.iter().any(Action::is_remediation) {
        observation.look_closer(context).await;
        answer = decide(&observation.observed(), context.env.now());
    }

    context.note_waiting(NAME, &key, &answer.decision.waiting);
    let executed = execute::execute(context, memory, &check, &answer.decision.actions).await;
    let published = publish::publish(context, memory, &check, &answer).await;

    if let Err(error) = executed {
        return superseded_or_failed(error);
    }
    if let Err(error) = published {
        return superseded_or_failed(error.into());
    }
    if let Some(error) = observation.failure {
        return Outcome::Failed(error);
    }
    match answer.decision.recheck {
        Some(at) => Outcome::RecheckAfter(until(now, at)),
        None => Outcome::Settled,
    }
}
