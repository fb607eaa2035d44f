//! The Machine controller: launches, links, follows and terminates one Machine at a time.
//!
//! Five steps, each in a file of its name: observe (reads), validate (reads, only before a launch),
//! decide (core), execute (writes, and `effects` on the cloud; stops at the first failure), publish
//! (status).

mod effects;
pub mod execute;
mod memory;
mod observe;
mod publish;
mod validate;

use std::time::Duration;

use machinist_core::{
    cloud::{CloudFailure, ErrorClass},
    machine::{CloudKnowledge, decide, observed::LaunchParameters},
    pause, promises,
};

pub use self::memory::Memory;
use crate::{
    context::Context,
    engine::{queue::Outcome, store::ObjectKey},
    write::WriteError,
};

pub const NAME: &str = "machine";

/// How soon to look again after somebody else's write came first; their event usually comes sooner.
const AFTER_CONFLICT: Duration = Duration::from_secs(1);

pub async fn reconcile(context: &Context, memory: &Memory, key: ObjectKey) -> Outcome {
    let Some(machine) = context.stores.machines.get(&key) else {
        memory.forget(&key);
        context.note_waiting(NAME, &key, &[]);
        context.metrics.forget_machine(&key.namespace, &key.name);
        return Outcome::Settled;
    };
    if let Some(outcome) = context.held(NAME, &key) {
        return outcome;
    }
    let machine = pause::machine_as_seen(machine, context.stores.openshift.migration());
    let observation = observe::observe(context, &machine).await;
    let check = validate::launch_check(context, &observation).await;
    let now = context.env.now();
    let observed = observation.observed(check.as_ref().map(|check| check.verdict.clone()));
    for promise in memory.newly_broken(&key, promises::broken(&observed)) {
        tracing::error!(machine = %key, promise, "a promise is broken");
        context.metrics.count_invariant_violation(promise);
    }
    let decision = decide(&observed, &context.policy(), now);
    let retry = retryable_failure(&observed.cloud, observed.launch_check.as_ref());

    context.note_waiting(NAME, &key, &decision.waiting);
    let prepared = check.and_then(|check| check.prepared);
    let executed =
        execute::execute(context, memory, &observation, &decision.actions, prepared).await;
    if let Some(not_yet) = executed.not_yet() {
        // Nothing was done of what the status would tell.
        return Outcome::RecheckAfter(not_yet.after);
    }
    if executed.failure.as_ref().is_some_and(is_superseded) {
        // The status was decided on a version that is no more; it would be refused as well.
        return Outcome::RecheckAfter(AFTER_CONFLICT);
    }
    let published = publish::publish(context, &decision, &executed).await;

    if let Some(error) = executed.failure {
        return Outcome::Failed(error);
    }
    if let Err(error) = published {
        return superseded_or_failed(error.into());
    }
    if let Some(failure) = retry {
        return Outcome::Failed(anyhow::anyhow!("{}: {}", failure.class.as_str(), failure.message));
    }
    match decision.recheck {
        Some(at) => Outcome::RecheckAfter(until(now, at)),
        None => Outcome::Settled,
    }
}

/// A failure of the cloud that time may heal. Only a fault of the configuration does not heal.
fn retryable_failure(
    cloud: &CloudKnowledge,
    check: Option<&Result<LaunchParameters, CloudFailure>>,
) -> Option<CloudFailure> {
    let failure = match (cloud, check) {
        (CloudKnowledge::Unknown(failure), _) => failure,
        (_, Some(Err(failure))) => failure,
        _ => return None,
    };
    (failure.class != ErrorClass::InvalidConfiguration).then(|| failure.clone())
}

/// How a pass ends: what could not be done is told first, then what could not be said.
pub fn concluded(
    executed: anyhow::Result<()>,
    published: Result<(), WriteError>,
    recheck: Option<jiff::Timestamp>,
    now: jiff::Timestamp,
) -> Outcome {
    if let Err(error) = executed {
        return superseded_or_failed(error);
    }
    if let Err(error) = published {
        return superseded_or_failed(error.into());
    }
    match recheck {
        Some(at) => Outcome::RecheckAfter(until(now, at)),
        None => Outcome::Settled,
    }
}

/// Somebody else's write came first: that is no failure, their version is decided on next.
pub fn superseded_or_failed(error: anyhow::Error) -> Outcome {
    let is_superseded = error.downcast_ref::<WriteError>().is_some_and(WriteError::is_superseded);
    if is_superseded {
        tracing::debug!(error = format!("{error:#}"), "superseded");
        Outcome::RecheckAfter(AFTER_CONFLICT)
    } else {
        Outcome::Failed(error)
    }
}

fn is_superseded(error: &anyhow::Error) -> bool {
    error.downcast_ref::<WriteError>().is_some_and(WriteError::is_superseded)
}

/// The time from now to then, at least a moment, so that a clock that is behind cannot spin.
pub fn until(now: jiff::Timestamp, then: jiff::Timestamp) -> Duration {
    let wait = then.duration_since(now).max(jiff::SignedDuration::from_millis(50));
    Duration::try_from(wait).unwrap_or(Duration::from_secs(1))
}
