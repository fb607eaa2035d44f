//! The drain controller: empties the Nodes of machines that go, many at once, woken by what
//! happens to pods and budgets instead of asking again and again.

pub(crate) mod execute;
mod memory;
pub(crate) mod observe;
mod publish;

use machinist_core::drain::{decide, decide::concerns};

use self::execute::Place;
pub use self::memory::Memory;
use crate::{
    context::Context,
    engine::{queue::Outcome, store::ObjectKey},
    machine::{superseded_or_failed, until},
};

#[cfg(test)]
mod tests;

pub const NAME: &str = "drain";

pub async fn reconcile(context: &Context, memory: &Memory, key: ObjectKey) -> Outcome {
    let current = || context.stores.machines.get(&key).filter(|machine| concerns(machine));
    let is_control_plane = current().is_some_and(|one| observe::is_control_plane(context, &one));
    let turn = if is_control_plane { Some(memory.control_plane_turn().await) } else { None };
    let Some(machine) = current() else {
        memory.forget(&key);
        context.note_waiting(NAME, &key, &[]);
        return Outcome::Settled;
    };
    if let Some(outcome) = context.held(NAME, &key) {
        return outcome;
    }
    let observation = match observe::observe(context, memory, &machine).await {
        Ok(observation) => observation,
        Err(error) => return Outcome::Failed(error.into()),
    };
    let now = context.env.now();
    let decision = decide(&observation.observed(), now);

    context.note_waiting(NAME, &key, &decision.waiting);
    let cordoned = execute::cordon(Place::here(context), &key, &decision.actions).await;
    drop(turn);
    let executed = match cordoned {
        Ok(()) => execute::evict(Place::here(context), memory, &key, &decision.actions).await,
        Err(error) => Err(error),
    };
    let published = publish::publish(context, &machine, &decision).await;

    if let Err(error) = published {
        return superseded_or_failed(error.into());
    }
    match executed {
        Err(error) => superseded_or_failed(error),
        // A refusal is news for the next pass: it names the budget.
        Ok(execute::Progress::Refused) => Outcome::RecheckAfter(std::time::Duration::ZERO),
        Ok(execute::Progress::Done) => match decision.recheck {
            Some(at) => Outcome::RecheckAfter(until(now, at)),
            None => Outcome::Settled,
        },
    }
}
