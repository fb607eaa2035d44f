//! The capacity controller: says on a pool what one Machine of it would have, so that an
//! autoscaler can grow it from zero.
//!
//! The usual steps, on a queue of its own: it waits for the cloud, and a cloud that is slow or
//! refuses must never keep a pool from its size.

pub(crate) mod catalogs;

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use kube::Api;
use machinist_api::MachineSet;
use machinist_core::{
    machineset::{
        capacity::{self, Answer, CapacityDecision, Complaint, Question},
        decide::new_machine,
    },
    pause,
};
use serde_json::json;
use tokio::time::Instant;

use self::catalogs::{CatalogKey, Catalogs};
use crate::{
    context::Context,
    engine::{events::EventTarget, queue::Outcome, store::ObjectKey},
    machine::superseded_or_failed,
    write::{self, Precondition, WriteError},
};

pub const NAME: &str = "machineset-capacity";

/// What one process remembers: the catalogs, and what it told whom. Losing it costs a call for
/// each cloud, and an event told twice.
#[derive(Default)]
pub struct Memory {
    catalogs: Catalogs,
    told: Mutex<BTreeMap<ObjectKey, Complaint>>,
}

impl Memory {
    fn told(&self, key: &ObjectKey) -> Option<Complaint> {
        self.lock().get(key).cloned()
    }

    fn remember(&self, key: &ObjectKey, complaint: Option<Complaint>) {
        match complaint {
            Some(complaint) => self.lock().insert(key.clone(), complaint),
            None => self.lock().remove(key),
        };
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Complaint>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub async fn reconcile(context: &Context, memory: &Memory, key: ObjectKey) -> Outcome {
    let migration = context.stores.openshift.migration();
    let set = context.stores.machine_sets.get(&key);
    let set = set.map(|set| pause::set_as_seen(set, migration));
    let asked = set.and_then(|set| capacity::question(&set).map(|question| (set, question)));
    let Some((set, question)) = asked else {
        memory.remember(&key, None);
        context.note_waiting(NAME, &key, &[]);
        return Outcome::Settled;
    };
    let (answer, changes_at) = observe(context, memory, &set, &question).await;
    let decision = capacity::decide(&set, &question, &answer, memory.told(&key).as_ref());

    context.note_waiting(NAME, &key, &decision.waiting);
    let executed = execute(context, &set, &decision).await;
    context.announce(&EventTarget::of(&*set), "Reconcile", &decision.announcements);
    memory.remember(&key, decision.complaint);

    match (executed, changes_at) {
        (Err(error), _) => superseded_or_failed(error.into()),
        (Ok(()), Some(at)) => Outcome::RecheckAfter(until(context.env.instant(), at)),
        (Ok(()), None) => Outcome::Settled,
    }
}

/// What the catalog says of the pool's instance type, and when it may say something else.
async fn observe(
    context: &Context,
    memory: &Memory,
    set: &MachineSet,
    question: &Question,
) -> (Answer, Option<Instant>) {
    let namespace = set.metadata.namespace.clone().unwrap_or_default();
    let key = CatalogKey::of(namespace, &question.facts);
    let connect = async {
        let machine = new_machine(set, set.metadata.name.as_deref().unwrap_or_default());
        let access = context.clouds.of(&machine).await?;
        Ok(access.provider())
    };
    match memory.catalogs.get(&context.env, &key, connect).await {
        Ok(known) => match known.sizes.get(&question.instance_type) {
            Some(offer) => (Answer::Known(offer.capacity.clone()), None),
            None => (Answer::UnknownType, Some(known.until)),
        },
        Err(unanswered) => (Answer::Failed(unanswered.failure), unanswered.retry_at),
    }
}

/// The labels are merged with what the pool carries, so the write wants it unchanged.
async fn execute(
    context: &Context,
    set: &MachineSet,
    decision: &CapacityDecision,
) -> Result<(), WriteError> {
    if decision.annotations.is_empty() {
        return Ok(());
    }
    let key = ObjectKey::of(set);
    let api = Api::<MachineSet>::namespaced(context.client.clone(), &key.namespace);
    let patch = json!({ "metadata": { "annotations": decision.annotations } });
    let written = write::object(&api, set, patch, Precondition::Observed).await?;
    tracing::info!(set = %key, annotations = ?decision.annotations, "described a machine of the set");
    context.stores.machine_sets.apply_written(written);
    Ok(())
}

/// At least a second, so that a time that has just come cannot spin.
fn until(now: Instant, then: Instant) -> Duration {
    then.saturating_duration_since(now).max(Duration::from_secs(1))
}

#[cfg(test)]
mod tests;
