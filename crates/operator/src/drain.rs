//! The drain controller: empties the Nodes of machines that go, many at once, woken by what
//! happens to pods and budgets instead of asking again and again.

mod execute;
mod memory;
mod observe;
mod publish;

use machinist_core::drain::{decide, decide::concerns};

pub use self::memory::Memory;
use crate::{
    context::Context,
    engine::{queue::Outcome, store::ObjectKey},
    machine::{superseded_or_failed, until},
};

pub const NAME: &str = "drain";

pub async fn reconcile(context: &Context, memory: &Memory, key: ObjectKey) -> Outcome {
    let machine = context.stores.machines.get(&key).filter(|machine| concerns(machine));
    let Some(machine) = machine else {
        memory.forget(&key);
        context.note_waiting(NAME, &key, &[]);
        return Outcome::Settled;
    };
    let observation = match observe::observe(context, memory, &machine).await {
        Ok(observation) => observation,
        Err(error) => return Outcome::Failed(error.into()),
    };
    let now = context.env.now();
    let decision = decide(&observation.observed(), now);

    context.note_waiting(NAME, &key, &decision.waiting);
    let executed = execute::execute(context, memory, &key, &decision.actions).await;
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
