//! The MachineDeployment controller of Cluster API: one set for each template, each of the right size.

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
use machinist_api::cluster_api::MachineDeployment;
use machinist_core::cluster_api::deployment::{MachineDeploymentDecision, decide};

use super::{context::Context, versions::Versions};
use crate::{
    engine::{batches, events::EventTarget, queue::Outcome, store::ObjectKey},
    machine::{concluded, superseded_or_failed},
    write::{self, Precondition, WriteError},
};

pub const NAME: &str = "cluster-api-machinedeployment";

/// Remembered of all deployments between passes; losing it costs a look.
#[derive(Debug, Default)]
pub struct Memory {
    deployments: Mutex<BTreeMap<ObjectKey, DeploymentMemory>>,
    versions: Versions,
}

#[derive(Clone, Debug, Default)]
pub struct DeploymentMemory {
    pub status_written_at: Option<Timestamp>,
    pub last_failure: Option<String>,
    /// For which uid and generation the templates were looked at.
    pub templates_seen: Option<(String, i64)>,
}

impl Memory {
    pub fn of(&self, key: &ObjectKey) -> DeploymentMemory {
        self.lock().get(key).cloned().unwrap_or_default()
    }

    pub fn change(&self, key: &ObjectKey, change: impl FnOnce(&mut DeploymentMemory)) {
        change(self.lock().entry(key.clone()).or_default());
    }

    pub fn forget(&self, key: &ObjectKey) {
        self.lock().remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, DeploymentMemory>> {
        self.deployments.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub async fn reconcile(context: &Context, memory: &Memory, key: ObjectKey) -> Outcome {
    let base = &context.base;
    let Some(deployment) = context.stores.deployments.get(&key) else {
        memory.forget(&key);
        base.note_waiting(NAME, &key, &[]);
        return Outcome::Settled;
    };
    if let Some(outcome) = base.held(NAME, &key) {
        return outcome;
    }
    let observation = observe::observe(context, memory, &deployment).await;
    let now = base.env.now();
    let decision = decide(&observation.observed(), now);

    base.note_waiting(NAME, &key, &decision.waiting);
    let executed = execute::execute(context, &observation, &decision.actions).await;
    let failure = executed.as_ref().err().filter(|error| !batches::is_superseded(error));
    let failure = failure.map(|error| format!("{error:#}"));
    memory.change(&key, |memory| memory.last_failure = failure);
    if executed.as_ref().is_err_and(batches::is_superseded) {
        // The status was decided on what is no more.
        return executed.map_or_else(superseded_or_failed, |()| Outcome::Settled);
    }
    if executed.is_ok() && decision.actions.iter().any(execute::changes_the_deployment) {
        // The change itself wakes this deployment again.
        return Outcome::Settled;
    }
    let published = publish(context, memory, &deployment, &decision).await;
    concluded(executed, published, decision.recheck, now)
}

async fn publish(
    context: &Context,
    memory: &Memory,
    deployment: &MachineDeployment,
    decision: &MachineDeploymentDecision,
) -> Result<(), WriteError> {
    let base = &context.base;
    base.announce(&EventTarget::of(deployment), "Reconcile", &decision.announcements);
    let key = ObjectKey::of(deployment);
    let api = Api::<MachineDeployment>::namespaced(base.client.clone(), &key.namespace);
    let stored = deployment.status.as_ref();
    let mut wanted = decision.status.clone();
    memory.versions.adapt(&mut wanted.versions, stored.map(|status| &status.versions));
    let written = write::status(&api, deployment, stored, &wanted, Precondition::Observed).await?;
    if let Some(written) = written {
        memory
            .versions
            .learn(&wanted.versions, written.status.as_ref().map(|status| &status.versions));
        let now = base.env.now();
        memory.change(&key, |memory| memory.status_written_at = Some(now));
        context.stores.deployments.apply_written(written);
    }
    Ok(())
}
