//! Makes, deletes, adopts and releases Machines. One that fails never keeps the others from it.

use anyhow::Context as _;
use kube::{
    Api,
    api::{DeleteParams, ListParams, PostParams, Preconditions},
};
use machinist_api::{Machine, MachineSet, names::event};
use machinist_core::{
    decision::Announcement,
    machineset::{Action, decide::controller_reference, observed::ScalingFailure},
};
use serde_json::json;

use super::{memory::Memory, observe::in_all};
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
        confirm_wanted(context, set).await?;
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

/// Asks the API server for the pool itself before any Machine is made. A view that is late shows a
/// pool as wanted, or as large, that is neither any more, and each Machine costs an instance. What is
/// news is taken in, and the pass is decided again.
async fn confirm_wanted(context: &Context, set: &MachineSet) -> anyhow::Result<()> {
    let key = ObjectKey::of(set);
    let uid = set.metadata.uid.as_deref().unwrap_or_default();
    let api = Api::<MachineSet>::namespaced(context.client.clone(), &key.namespace);
    let stored =
        api.get_opt(&key.name).await.with_context(|| format!("failed to look at set {key}"))?;
    let is_as_seen = stored.as_ref().is_some_and(|stored| {
        stored.metadata.uid == set.metadata.uid
            && stored.metadata.generation == set.metadata.generation
            && stored.metadata.deletion_timestamp == set.metadata.deletion_timestamp
    });
    if is_as_seen {
        return Ok(());
    }
    tracing::warn!(set = %key, "the watch does not show how the set is now");
    match stored {
        Some(stored) => context.stores.machine_sets.apply_written(stored),
        None => context.stores.machine_sets.forget_written(&key, uid),
    }
    Err(WriteError::Conflict { what: format!("set {key}") }.into())
}

/// Asks the API server for the pool's Machines before any is made. A watch that lost an event shows
/// fewer than there are, and a Machine too many is an instance too many. What was unseen is taken in,
/// and the pass is decided again.
async fn reveal_unseen(context: &Context, set: &MachineSet) -> anyhow::Result<()> {
    let key = ObjectKey::of(set);
    let labels = set.spec.selector.match_labels.clone().unwrap_or_default();
    let selector: Vec<String> =
        labels.iter().map(|(label, value)| format!("{label}={value}")).collect();
    let api = Api::<Machine>::namespaced(context.client.clone(), &key.namespace);
    let listed = api
        .list_metadata(&ListParams::default().labels(&selector.join(",")))
        .await
        .with_context(|| format!("failed to count the machines of set {key}"))?;
    let unreadable = context.stores.machines.invalid();
    let mut is_news = false;
    for machine in listed.items {
        let machine_key = ObjectKey::of(&machine);
        let is_known = context.stores.machines.get(&machine_key).is_some()
            || unreadable.iter().any(|known| known.metadata.uid == machine.metadata.uid);
        let owners = machine.metadata.owner_references.iter().flatten();
        let is_own = owners.into_iter().any(|owner| Some(&owner.uid) == set.metadata.uid.as_ref());
        if is_own && !is_known {
            tracing::warn!(set = %key, machine = %machine_key, "the watch does not show a machine");
            context.stores.machines.apply_written(api.get(&machine_key.name).await?);
            is_news = true;
        }
    }
    if is_news {
        let what = format!("the machines of set {key}");
        return Err(WriteError::Conflict { what }.into());
    }
    Ok(())
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
    let api = Api::<Machine>::namespaced(context.client.clone(), &key.namespace);
    match action {
        Action::Create(machine) => create(context, memory, set, &api, machine).await,
        Action::Delete { name, uid, resource_version } => {
            let preconditions = Preconditions {
                uid: Some(uid.clone()),
                resource_version: Some(resource_version.clone()),
            };
            let parameters =
                DeleteParams { preconditions: Some(preconditions), ..Default::default() };
            let machine_key = ObjectKey::new(&key.namespace, name);
            match api.delete(name, &parameters).await {
                Ok(answer) => {
                    tracing::info!(set = %key, machine = name, "deleted a machine");
                    context.stores.machines.apply_deleted(&machine_key, uid, answer.left());
                    Ok(())
                }
                Err(kube::Error::Api(status)) if status.code == 404 => {
                    context.stores.machines.forget_written(&machine_key, uid);
                    Ok(())
                }
                Err(kube::Error::Api(status)) if status.code == 409 => {
                    let what = format!("Machine {machine_key}");
                    Err(WriteError::Conflict { what }.into())
                }
                Err(error) => Err(anyhow::Error::new(error)
                    .context(format!("failed to delete machine {machine_key}"))),
            }
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
            let written = write::object(&api, &*machine, patch, Precondition::Observed).await?;
            context.stores.machines.apply_written(written);
            Ok(())
        }
    }
}

async fn create(
    context: &Context,
    memory: &Memory,
    set: &MachineSet,
    api: &Api<Machine>,
    machine: &Machine,
) -> anyhow::Result<()> {
    let key = ObjectKey::of(set);
    let name = machine.metadata.name.clone().unwrap_or_default();
    // Until there is an answer the name is the only thing that keeps a second Machine away.
    memory.change(&key, |memory| {
        if !memory.unresolved.contains(&name) {
            memory.unresolved.push(name.clone());
        }
    });
    let answer = match api.create(&PostParams::default(), machine).await {
        // The answer to an earlier try was lost. The watch may not show it yet: counted from now on,
        // or another would be made in its place.
        Err(kube::Error::Api(status)) if status.code == 409 => api.get(&name).await,
        answer => answer,
    };
    let is_resolved = match &answer {
        Ok(_) => true,
        Err(kube::Error::Api(status)) => status.code < 500 && status.code != 429,
        Err(_) => false,
    };
    if is_resolved {
        memory.change(&key, |memory| memory.unresolved.retain(|known| *known != name));
    }
    match answer {
        Ok(created) => {
            tracing::info!(set = %key, machine = name, "made a machine");
            context.stores.machines.apply_written(created);
            Ok(())
        }
        Err(error) => {
            Err(anyhow::Error::new(error).context(format!("failed to make machine {name}")))
        }
    }
}
