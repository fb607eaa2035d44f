//! The MachineSet controller: keeps a pool at its size.
//!
//! The same five steps as every controller; `validate` is part of the decision.

pub mod capacity;
pub(crate) mod certain;
pub(crate) mod creations;
mod execute;
pub(crate) mod memory;
mod observe;
mod publish;

use machinist_core::{
    machineset::{Ceilings, decide},
    pause,
};

pub use self::memory::Memory;
use crate::{
    args::Args,
    context::Context,
    engine::{queue::Outcome, store::ObjectKey},
    machine::concluded,
};

#[cfg(test)]
mod tests;

pub const NAME: &str = "machineset";

pub fn ceilings(args: &Args) -> Ceilings {
    Ceilings { of_one_set: args.max_machines_per_set, of_all: args.max_machines }
}

pub async fn reconcile(context: &Context, memory: &Memory, key: ObjectKey) -> Outcome {
    let Some(set) = context.stores.machine_sets.get(&key) else {
        memory.forget(&key);
        context.note_waiting(NAME, &key, &[]);
        return Outcome::Settled;
    };
    if let Some(outcome) = context.held(NAME, &key) {
        return outcome;
    }
    let set = pause::set_as_seen(set, context.stores.openshift.migration());
    let observation = observe::observe(context, memory, &set);
    let now = context.env.now();
    let decision = decide(&observation.observed(), now);

    context.note_waiting(NAME, &key, &decision.waiting);
    let executed = execute::execute(context, memory, &set, &decision.actions).await;
    let published = publish::publish(context, memory, &set, &decision).await;

    concluded(executed, published, decision.recheck, now)
}
