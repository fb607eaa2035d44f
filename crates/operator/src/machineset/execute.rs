//! Makes, deletes, adopts and releases Machines. One that fails never keeps the others from it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use machinist_api::{Machine, MachineSet, names::event};
use machinist_core::{
    decision::Announcement,
    machineset::{Action, decide::controller_reference, observed::ScalingFailure},
};
use serde_json::json;

use super::{certain::Objects, memory::Memory, observe::in_all};
use crate::{
    context::Context,
    engine::{
        batches::{self, Failure},
        events::EventTarget,
        store::ObjectKey,
    },
    write::{self, Precondition, WriteError},
};

pub async fn execute(
    context: &Context,
    memory: &Memory,
    set: &MachineSet,
    actions: &[Action],
) -> anyhow::Result<()> {
    let (creations, others): (Vec<_>, Vec<_>) =
        actions.iter().partition(|action| matches!(action, Action::Create(_)));
    let (deletions, ownership): (Vec<_>, Vec<_>) =
        others.into_iter().partition(|action| matches!(action, Action::Delete { .. }));
    if !creations.is_empty() {
        sets(context, &ObjectKey::of(set)).confirm_as_seen(set).await?;
        reveal_unseen(context, set).await?;
    }
    let permit = |wanted| {
        let permits = memory.creations.take(&context.env, in_all(context), wanted);
        (permits.count, permits)
    };
    let perform = |action| perform(context, memory, set, action);
    let ((mut failures, is_postponed), deletion_failures, ownership_failures) = futures::join!(
        batches::slowly_started(&creations, permit, perform),
        batches::all_tried(&deletions, perform),
        batches::all_tried(&ownership, perform),
    );
    // What keeps the pool from its size is told before the rest.
    failures.extend(deletion_failures);
    failures.extend(ownership_failures);
    // Somebody else's write came first: there is nothing to tell, only to look again.
    let (superseded, failures): (Vec<_>, Vec<_>) =
        failures.into_iter().partition(|(_, error)| batches::is_superseded(error));
    report(context, memory, set, failures.first());
    match failures.into_iter().chain(superseded).next() {
        Some((_, error)) => Err(error),
        // Other pools took what this one had seen: it looks again.
        None if is_postponed => {
            let what = format!("the machines that set {} may make", ObjectKey::of(set));
            Err(WriteError::Conflict { what }.into())
        }
        None => Ok(()),
    }
}

fn sets<'a>(context: &'a Context, key: &ObjectKey) -> Objects<'a, MachineSet> {
    let api = Api::namespaced(context.client.clone(), &key.namespace);
    Objects { api, store: &context.stores.machine_sets }
}

fn machines<'a>(context: &'a Context, key: &ObjectKey) -> Objects<'a, Machine> {
    let api = Api::namespaced(context.client.clone(), &key.namespace);
    Objects { api, store: &context.stores.machines }
}

async fn reveal_unseen(context: &Context, set: &MachineSet) -> anyhow::Result<()> {
    let key = ObjectKey::of(set);
    let labels = set.spec.selector.match_labels.clone().unwrap_or_default();
    let selector: Vec<String> =
        labels.iter().map(|(label, value)| format!("{label}={value}")).collect();
    let is_own = |machine: &ObjectMeta| {
        let owners = machine.owner_references.iter().flatten();
        owners.into_iter().any(|owner| Some(&owner.uid) == set.metadata.uid.as_ref())
    };
    machines(context, &key).reveal_unseen(&key, &selector.join(","), is_own).await
}

/// Remembers the failure for the status, or that there is none any more.
fn report(
    context: &Context,
    memory: &Memory,
    set: &MachineSet,
    failure: Option<&Failure<'_, Action>>,
) {
    let failure = failure.map(|(action, error)| ScalingFailure::of(action, format!("{error:#}")));
    if let Some(failure) = &failure {
        let announcement = Announcement::warning(event::RECONCILE_ERROR, &failure.message);
        context.announce(&EventTarget::of(set), "Reconcile", &[announcement]);
    }
    memory.change(&ObjectKey::of(set), |memory| memory.last_failure = failure);
}

async fn perform(
    context: &Context,
    memory: &Memory,
    set: &MachineSet,
    action: &Action,
) -> anyhow::Result<()> {
    let key = ObjectKey::of(set);
    let machines = machines(context, &key);
    match action {
        Action::Create(machine) => create(memory, &key, &machines, machine).await,
        Action::Delete { name, uid, resource_version } => {
            machines.delete(&key, name, uid, resource_version.clone()).await
        }
        Action::Adopt { name, uid, .. } | Action::Release { name, uid, .. } => {
            let machine_key = ObjectKey::new(&key.namespace, name);
            let Some(machine) = context
                .stores
                .machines
                .get(&machine_key)
                .filter(|machine| machine.metadata.uid.as_ref() == Some(uid))
            else {
                return Ok(());
            };
            let mut owners = machine.metadata.owner_references.clone().unwrap_or_default();
            owners.retain(|owner| Some(&owner.uid) != set.metadata.uid.as_ref());
            if matches!(action, Action::Adopt { .. }) {
                owners.push(controller_reference(set));
            }
            let patch = json!({ "metadata": { "ownerReferences": owners } });
            let written =
                write::object(&machines.api, &*machine, patch, Precondition::Observed).await?;
            context.stores.machines.apply_written(written);
            Ok(())
        }
    }
}

async fn create(
    memory: &Memory,
    set: &ObjectKey,
    machines: &Objects<'_, Machine>,
    machine: &Machine,
) -> anyhow::Result<()> {
    let name = machine.metadata.name.clone().unwrap_or_default();
    // Until there is an answer the name is the only thing that keeps a second Machine away.
    memory.change(set, |memory| {
        if !memory.unresolved.contains(&name) {
            memory.unresolved.push(name.clone());
        }
    });
    let (made, is_certain) = machines.create(set, machine).await;
    if is_certain {
        memory.change(set, |memory| memory.unresolved.retain(|known| *known != name));
    }
    made
}
