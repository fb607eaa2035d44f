//! The operator's own part: keeps its webhook configurations, its termination handlers and their
//! check as they should be, replaces the controllers before us, and tells OpenShift how it is.
//!
//! The same steps as every controller, for the one key there is: observe, decide (core), execute,
//! publish. It is woken by every change of what it looks at, and repeated with backoff for as long as
//! something fails.

mod execute;
mod facts;
mod observe;
mod publish;
mod start;
mod stores;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use machinist_core::upkeep::{History, cluster_operator, decide};

use self::stores::UpkeepStores;
pub use self::{facts::Facts, start::start};
use crate::{
    args::upkeep::UpkeepArgs,
    context::Context,
    engine::{events::EventRecorder, queue::Outcome, store::ObjectKey},
    machine::{superseded_or_failed, until},
    tls::trust::CaBundle,
};

#[cfg(test)]
mod tests;

pub const NAME: &str = "upkeep";

/// How often everything is looked at although nothing is known to have changed.
const SLOW_LOOK: Duration = Duration::from_secs(10 * 60);

/// How soon to look again after a conflict.
const AFTER_CONFLICT: Duration = Duration::from_secs(1);

/// The component that events are from, as they always were.
const COMPONENT: &str = "machineapioperator";

/// What the upkeep works with.
pub struct Upkeep {
    args: UpkeepArgs,
    namespace: String,
    stores: UpkeepStores,
    /// Whom the API server must trust to ask the webhooks' server.
    ca_bundle: CaBundle,
    events: EventRecorder,
    facts: Arc<Facts>,
    history: Mutex<History>,
}

impl Upkeep {
    /// The one key of its queue.
    fn key() -> ObjectKey {
        ObjectKey::cluster_wide(cluster_operator::NAME)
    }

    fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub async fn reconcile(context: &Context, upkeep: &Upkeep) -> Outcome {
    let observation = observe::observe(context, upkeep);
    let now = context.env.now();
    let history = upkeep.history().clone();
    let decision = decide(&observation.observed(&history), now);
    upkeep.history().note_rollout(decision.unfinished_since);

    let executed = execute::execute(context, upkeep, &decision.actions).await;
    let problems: Vec<String> = observation
        .problems
        .iter()
        .chain(&decision.problems)
        .chain(&executed.failures)
        .cloned()
        .collect();
    upkeep.facts.set(problems.clone());
    context.metrics.set_upkeep_problems(problems.len());
    let published = publish::publish(context, upkeep, &observation, &decision, &problems).await;

    let failures: Vec<&String> = observation.problems.iter().chain(&executed.failures).collect();
    let told = match published {
        Err(error) => return superseded_or_failed(error),
        Ok(_) if !failures.is_empty() => {
            let words: Vec<&str> = failures.iter().map(|one| one.as_str()).collect();
            return Outcome::Failed(anyhow::anyhow!("{}", words.join("; ")));
        }
        // Somebody else's write came first: theirs is looked at next.
        Ok(_) if executed.is_superseded => return Outcome::RecheckAfter(AFTER_CONFLICT),
        Ok(told) => told,
    };
    let next = [decision.recheck, told].into_iter().flatten().min();
    let wait = next.map_or(SLOW_LOOK, |at| until(now, at));
    Outcome::RecheckAfter(wait.min(SLOW_LOOK))
}
