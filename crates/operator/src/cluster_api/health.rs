//! The MachineHealthCheck controller of Cluster API: says which machines are not well, and asks for their remediation.

mod execute;
mod observe;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use jiff::Timestamp;
use kube::Api;
use machinist_api::cluster_api::{MachineHealthCheck, MachineHealthCheckStatus};
use machinist_core::cluster_api::health::decide;

use super::context::Context;
use crate::{
    engine::{events::EventTarget, queue::Outcome, store::ObjectKey},
    machine::concluded,
    write::{self, Precondition, WriteError},
};

pub const NAME: &str = "cluster-api-machinehealthcheck";

/// What is remembered of each check. Losing it costs one try, and a doubt begins anew with the process.
#[derive(Debug, Default)]
pub struct Memory {
    checks: Mutex<BTreeMap<ObjectKey, Remembered>>,
}

#[derive(Clone, Debug, Default)]
pub struct Remembered {
    /// Why its last request could not be made.
    pub failure: Option<String>,
    /// When what was seen may last have been the past.
    pub doubted_at: Option<Timestamp>,
}

impl Memory {
    pub fn of(&self, key: &ObjectKey) -> Remembered {
        self.lock().get(key).cloned().unwrap_or_default()
    }

    fn remember(&self, key: &ObjectKey, known: Remembered) {
        self.lock().insert(key.clone(), known);
    }

    fn forget(&self, key: &ObjectKey) {
        self.lock().remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Remembered>> {
        self.checks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub async fn reconcile(context: &Context, memory: &Memory, key: ObjectKey) -> Outcome {
    let base = &context.base;
    let Some(check) = context.stores.health_checks.get(&key) else {
        memory.forget(&key);
        base.note_waiting(NAME, &key, &[]);
        return Outcome::Settled;
    };
    if let Some(outcome) = base.held(NAME, &key) {
        return outcome;
    }
    let known = memory.of(&key);
    let observation = observe::observe(context, &known, &check).await;
    let now = base.env.now();
    let decision = decide(&observation.observed(), now);

    base.note_waiting(NAME, &key, &decision.waiting);
    base.announce(&EventTarget::of(&*check), "Check", &decision.announcements);
    let executed = execute::execute(context, &check, &decision.actions).await;
    let doubted_at = if observation.is_doubtful() { Some(now) } else { known.doubted_at };
    memory.remember(&key, Remembered { failure: executed.request_failure, doubted_at });
    // The check as our own write of this pass left it.
    let check = context.stores.health_checks.get(&key).unwrap_or(check);
    let published = publish(context, &check, &decision.status).await;
    let executed = executed.failure.map_or(Ok(()), Err);
    concluded(executed, published, decision.recheck, now)
}

async fn publish(
    context: &Context,
    check: &MachineHealthCheck,
    status: &MachineHealthCheckStatus,
) -> Result<(), WriteError> {
    let namespace = check.metadata.namespace.as_deref().unwrap_or_default();
    let api = Api::<MachineHealthCheck>::namespaced(context.base.client.clone(), namespace);
    let stored = check.status.as_ref();
    let written = write::status(&api, check, stored, status, Precondition::Observed).await?;
    if let Some(written) = written {
        context.stores.health_checks.apply_written(written);
    }
    Ok(())
}
