//! Makes, deletes, adopts and releases Machines. One that fails never keeps the others from it.

use futures::future::join_all;
use kube::{
    Api,
    api::{DeleteParams, PostParams, Preconditions},
};
use machinist_api::{
    Machine, MachineSet,
    names::{event, reason},
};
use machinist_core::{
    decision::Announcement,
    machineset::{Action, decide::controller_reference, observed::ScalingFailure},
};
use serde_json::json;

use super::memory::Memory;
use crate::{
    context::Context,
    engine::{events::EventTarget, store::ObjectKey},
    write::{self, Precondition},
};

/// The first batch; each that succeeds whole doubles the next. A template that the API server
/// refuses then costs one request, not hundreds.
const FIRST_BATCH: usize = 1;
const LARGEST_BATCH: usize = 32;

pub async fn execute(
    context: &Context,
    memory: &Memory,
    set: &MachineSet,
    actions: &[Action],
) -> anyhow::Result<()> {
    let key = ObjectKey::of(set);
    let mut batch = FIRST_BATCH;
    let mut rest = actions;
    let mut failures: Vec<anyhow::Error> = Vec::new();
    while !rest.is_empty() && failures.is_empty() {
        let (now, later) = rest.split_at(batch.min(rest.len()));
        let results =
            join_all(now.iter().map(|action| perform(context, memory, set, action))).await;
        failures.extend(results.into_iter().filter_map(Result::err));
        rest = later;
        batch = (batch * 2).min(LARGEST_BATCH);
    }
    if actions.is_empty() {
        return Ok(());
    }
    let failure = failures.first().map(|error| ScalingFailure {
        reason: if actions.iter().any(|action| matches!(action, Action::Create(_))) {
            reason::CREATING_FAILED
        } else {
            reason::DELETING_FAILED
        },
        message: format!("{error:#}"),
    });
    if let Some(failure) = &failure {
        let announcement = Announcement::warning(event::RECONCILE_ERROR, &failure.message);
        context.announce(&EventTarget::of(set), "Reconcile", &[announcement]);
    }
    memory.change(&key, |memory| memory.last_failure = failure);
    failures.into_iter().next().map_or(Ok(()), Err)
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
                    Err(write::WriteError::Conflict { what }.into())
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
    let answer = api.create(&PostParams::default(), machine).await;
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
        // The answer to an earlier try was lost: it is there, and the watch will show it.
        Err(kube::Error::Api(status)) if status.code == 409 => {
            Err(write::WriteError::Conflict { what: format!("Machine {}/{name}", key.namespace) }
                .into())
        }
        Err(error) => {
            Err(anyhow::Error::new(error).context(format!("failed to make machine {name}")))
        }
    }
}
