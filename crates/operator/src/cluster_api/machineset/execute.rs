//! Makes, deletes, adopts and amends Machines. One that fails never keeps the others from it.

use anyhow::Context as _;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use machinist_api::cluster_api::{
    Machine, MachineSet,
    names::{event, label},
};
use machinist_core::{
    cluster_api::{
        aggregate::listed,
        identity::is_controlled_by,
        machineset::{
            Action,
            making::{NewMachine, NewPart},
        },
    },
    decision::Announcement,
};

use super::{
    memory::Memory,
    observe::{Observation, in_all},
};
use crate::{
    cluster_api::{context::Context, decided::Written, templates},
    engine::{
        batches::{self, Failure},
        events::EventTarget,
        store::ObjectKey,
    },
    machineset::certain::Objects,
    write::{self, Precondition, WriteError},
};

/// Whether an action is a write of the set itself.
pub fn changes_the_set(action: &Action) -> bool {
    matches!(action, Action::Amend(_) | Action::RemoveFinalizer(_))
}

pub async fn execute(
    context: &Context,
    memory: &Memory,
    observation: &Observation,
    actions: &[Action],
) -> anyhow::Result<()> {
    let set = &*observation.set;
    let is_creation = |action: &&Action| matches!(action, Action::Create(_));
    let is_deletion = |action: &&Action| matches!(action, Action::Delete(_));
    let (creations, others): (Vec<_>, Vec<_>) = actions.iter().partition(is_creation);
    let (deletions, others): (Vec<_>, Vec<_>) = others.into_iter().partition(is_deletion);
    let is_mark = |action: &&Action| matches!(action, Action::Mark { .. });
    let (marks, first): (Vec<_>, Vec<_>) = others.into_iter().partition(is_mark);
    if !creations.is_empty() {
        sets(context, &ObjectKey::of(set)).confirm_as_seen(set).await?;
        reveal_unseen(context, set).await?;
    }
    let permit = |wanted| {
        let permits = memory.creations.take(&context.base.env, in_all(context), wanted);
        (permits.count, permits)
    };
    let written = Written::default();
    let perform = |action| perform(context, memory, observation, &written, action);
    // One after another, as they may be about the same Machine; and a mark is on it before it goes.
    let mut failures = batches::all_tried(&first, perform).await;
    failures.extend(batches::all_tried(&marks, perform).await);
    let unmarked = marked(&failures);
    let deletions: Vec<_> = deletions
        .into_iter()
        .filter(|action| !matches!(action, Action::Delete(one) if unmarked.contains(&one.uid)))
        .collect();
    let ((made, is_postponed), deleted) = futures::join!(
        batches::slowly_started(&creations, permit, perform),
        batches::all_tried(&deletions, perform),
    );
    announce(context, set, &creations, &made);
    failures.extend(made);
    failures.extend(deleted);
    // Somebody else's write came first: there is nothing to tell, only to look again.
    let (superseded, failures): (Vec<_>, Vec<_>) =
        failures.into_iter().partition(|(_, error)| batches::is_superseded(error));
    report(context, memory, set, failures.first());
    match failures.into_iter().chain(superseded).next() {
        Some((_, error)) => Err(error),
        // Other sets took what this one had seen: it looks again.
        None if is_postponed => {
            let what = format!("the machines that set {} may make", ObjectKey::of(set));
            Err(WriteError::Conflict { what }.into())
        }
        None => Ok(()),
    }
}

/// The uids of Machines that could not be marked.
fn marked(failures: &[Failure<'_, Action>]) -> Vec<String> {
    let failed = failures.iter().filter_map(|(action, _)| match action {
        Action::Mark { machine, .. } => Some(machine.uid.clone()),
        _ => None,
    });
    failed.collect()
}

/// One event for all Machines that a pass has made.
fn announce(
    context: &Context,
    set: &MachineSet,
    creations: &[&Action],
    failures: &[Failure<'_, Action>],
) {
    let is_failed =
        |action: &Action| failures.iter().any(|(failed, _)| std::ptr::eq(*failed, action));
    let names: Vec<&str> = creations
        .iter()
        .filter(|action| !is_failed(action))
        .filter_map(|action| match action {
            Action::Create(new) => new.machine.metadata.name.as_deref(),
            _ => None,
        })
        .filter(|name| {
            let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
            context.stores.machines.get(&ObjectKey::new(namespace, *name)).is_some()
        })
        .collect();
    if !names.is_empty() {
        let words = format!("Created {} machines: {}", names.len(), listed(&names));
        let announcement = Announcement::normal(event::SUCCESSFUL_CREATE, words);
        context.base.announce(&EventTarget::of(set), "Reconcile", &[announcement]);
    }
}

/// Remembers the failure for the status, or that there is none any more.
fn report(
    context: &Context,
    memory: &Memory,
    set: &MachineSet,
    failure: Option<&Failure<'_, Action>>,
) {
    let key = ObjectKey::of(set);
    let words = failure.map(|(_, error)| format!("{error:#}"));
    if let (Some((action, _)), Some(words)) = (failure, &words)
        && memory.of(&key).last_failure.as_ref() != Some(words)
    {
        let reason = match action {
            Action::Delete(_) => event::FAILED_DELETE,
            Action::Adopt { .. } => event::FAILED_ADOPT,
            _ => event::FAILED_CREATE,
        };
        let announcement = Announcement::warning(reason, words);
        context.base.announce(&EventTarget::of(set), "Reconcile", &[announcement]);
    }
    memory.change(&key, |memory| {
        // Something may have been made that no Machine will refer to.
        memory.is_tidy &= words.is_none();
        memory.last_failure = words;
    });
}

fn sets<'a>(context: &'a Context, key: &ObjectKey) -> Objects<'a, MachineSet> {
    let api = Api::namespaced(context.base.client.clone(), &key.namespace);
    Objects { api, store: &context.stores.machine_sets }
}

fn machines<'a>(context: &'a Context, key: &ObjectKey) -> Objects<'a, Machine> {
    let api = Api::namespaced(context.base.client.clone(), &key.namespace);
    Objects { api, store: &context.stores.machines }
}

async fn reveal_unseen(context: &Context, set: &MachineSet) -> anyhow::Result<()> {
    let key = ObjectKey::of(set);
    let selector = format!("{}={}", label::CLUSTER_NAME, set.spec.cluster_name);
    let is_own = |machine: &ObjectMeta| is_controlled_by(machine, set.metadata.uid.as_deref());
    machines(context, &key).reveal_unseen(&key, &selector, is_own).await
}

async fn perform(
    context: &Context,
    memory: &Memory,
    observation: &Observation,
    written: &Written,
    action: &Action,
) -> anyhow::Result<()> {
    let set = &*observation.set;
    let key = ObjectKey::of(set);
    let (sets, machines) = (sets(context, &key), machines(context, &key));
    match action {
        Action::Amend(patch) => {
            let written =
                write::object(&sets.api, set, patch.clone(), Precondition::Observed).await?;
            context.stores.machine_sets.apply_written(written);
        }
        Action::RemoveFinalizer(patch) => {
            reveal_unseen(context, set).await?;
            let written =
                write::object(&sets.api, set, patch.clone(), Precondition::Observed).await?;
            tracing::info!(set = %key, "the set has no machines any more and goes");
            let uid = set.metadata.uid.as_deref().unwrap_or_default();
            let remaining = written.metadata.finalizers.iter().flatten().next().is_some();
            context.stores.machine_sets.apply_deleted(&key, uid, remaining.then_some(written));
        }
        Action::AmendTemplate { part, patch } => {
            let sight = observation.templates.iter().find(|sight| sight.part == *part);
            if let Some(sight) = sight {
                templates::amend(context, sight, patch.clone()).await?;
            }
        }
        Action::Adopt { machine, patch } | Action::AmendMachine { machine, patch } => {
            let known = written.known(&context.stores.machines, &key.namespace, machine)?;
            let Some(known) = known else { return Ok(()) };
            let answer =
                write::object(&machines.api, &*known, patch.clone(), Precondition::Observed)
                    .await?;
            written.take(&context.stores.machines, answer);
        }
        Action::Mark { machine, status } => {
            let known = written.known(&context.stores.machines, &key.namespace, machine)?;
            let Some(known) = known else { return Ok(()) };
            let stored = known.status.as_ref();
            let answer =
                write::status(&machines.api, &*known, stored, &**status, Precondition::Observed)
                    .await?;
            if let Some(answer) = answer {
                written.take(&context.stores.machines, answer);
            }
        }
        Action::AmendProvided { kind, object, patch } => {
            let watched = context.externals.watched();
            let Some(provided) = watched.iter().find(|known| known.kind == *kind) else {
                return Ok(());
            };
            let known = provided.store.get(&ObjectKey::new(&key.namespace, &object.name));
            if let Some(known) =
                known.filter(|known| known.metadata.uid.as_ref() == Some(&object.uid))
            {
                context.externals.patch(provided, &known, patch.clone()).await?;
            }
        }
        Action::DeleteLeftover { kind, object } => {
            let provided = context.externals.provided(kind).await?;
            let known = provided.store.get(&ObjectKey::new(&key.namespace, &object.name));
            if let Some(known) =
                known.filter(|known| known.metadata.uid.as_ref() == Some(&object.uid))
            {
                // A Machine may have taken it over since.
                if known.metadata.resource_version.as_ref() != Some(&object.resource_version) {
                    let what = format!("{} {}/{}", kind.kind, key.namespace, object.name);
                    return Err(WriteError::Conflict { what }.into());
                }
                tracing::info!(set = %key, kind = %kind, name = object.name, "deleted an object that no machine refers to");
                context.externals.delete(&provided, &known).await?;
            }
        }
        Action::Create(new) => create(context, memory, set, &machines, new).await?,
        Action::Delete(machine) => {
            context.base.require_leave()?;
            written.known(&context.stores.machines, &key.namespace, machine)?;
            let version = written.version(machine);
            machines.delete(&key, &machine.name, &machine.uid, version).await?;
        }
    }
    Ok(())
}

async fn create(
    context: &Context,
    memory: &Memory,
    set: &MachineSet,
    machines: &Objects<'_, Machine>,
    new: &NewMachine,
) -> anyhow::Result<()> {
    let key = ObjectKey::of(set);
    let name = new.machine.metadata.name.clone().unwrap_or_default();
    // Until there is an answer the name is the only thing that keeps a second Machine away.
    memory.change(&key, |memory| {
        if !memory.unresolved.contains(&name) {
            memory.unresolved.push(name.clone());
        }
    });
    let parts = new.parts.iter().map(|part| create_part(context, set, part, &name));
    futures::future::try_join_all(parts).await?;
    let (made, is_certain) = machines.create(&key, &new.machine).await;
    if is_certain {
        memory.change(&key, |memory| memory.unresolved.retain(|known| *known != name));
    }
    made
}

/// Makes an object of a provider. One of that name that this set made before is that object; anybody else's is not touched.
async fn create_part(
    context: &Context,
    set: &MachineSet,
    part: &NewPart,
    name: &str,
) -> anyhow::Result<()> {
    let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
    let what = || format!("failed to make {} {name}", part.kind.kind);
    match context.externals.create(&part.kind, namespace, &part.object).await {
        Ok(_) => Ok(()),
        Err(error) if matches!(error.downcast_ref(), Some(WriteError::Conflict { .. })) => {
            let found =
                context.externals.find(&part.kind, namespace, name).await.with_context(what)?;
            let is_own = found.object.is_some_and(|object| {
                let mut owners = object.metadata.owner_references.iter().flatten();
                owners.any(|owner| Some(&owner.uid) == set.metadata.uid.as_ref())
            });
            anyhow::ensure!(is_own, "{}: one that is not ours is there already", what());
            Ok(())
        }
        Err(error) => Err(error.context(what())),
    }
}
