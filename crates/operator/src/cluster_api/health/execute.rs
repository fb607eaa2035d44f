//! Marks machines, and makes and withdraws requests. One that fails never keeps the others from it.

use kube::Api;
use machinist_api::cluster_api::{Machine, MachineHealthCheck};
use machinist_core::cluster_api::health::Action;

use crate::{
    cluster_api::context::Context,
    engine::{batches, store::ObjectKey},
    write::{self, Precondition, WriteError},
};

/// What went wrong.
pub struct Executed {
    /// The first failure; one that somebody else's write caused only where there is no other.
    pub failure: Option<anyhow::Error>,
    /// Why a request could not be made.
    pub request_failure: Option<String>,
}

pub async fn execute(
    context: &Context,
    check: &MachineHealthCheck,
    actions: &[Action],
) -> Executed {
    let all: Vec<&Action> = actions.iter().collect();
    let failures = batches::all_tried(&all, |action| perform(context, check, action)).await;
    let is_request = |action: &Action| matches!(action, Action::Request { .. });
    let request_failure = failures
        .iter()
        .find(|(action, _)| is_request(action))
        .map(|(_, error)| format!("{error:#}"));
    let (superseded, failures): (Vec<_>, Vec<_>) =
        failures.into_iter().partition(|(_, error)| batches::is_superseded(error));
    let failure = failures.into_iter().chain(superseded).next().map(|(_, error)| error);
    Executed { failure, request_failure }
}

async fn perform(
    context: &Context,
    check: &MachineHealthCheck,
    action: &Action,
) -> anyhow::Result<()> {
    let key = ObjectKey::of(check);
    let client = &context.base.client;
    match action {
        Action::Amend(patch) => {
            let api = Api::<MachineHealthCheck>::namespaced(client.clone(), &key.namespace);
            let written = write::object(&api, check, patch.clone(), Precondition::Observed).await?;
            context.stores.health_checks.apply_written(written);
        }
        Action::Mark { machine, status } => {
            let machine_key = ObjectKey::new(&key.namespace, &machine.name);
            let known = context.stores.machines.get(&machine_key);
            let known = known.filter(|known| {
                known.metadata.uid.as_ref() == Some(&machine.uid)
                    && known.metadata.resource_version.as_ref() == Some(&machine.resource_version)
            });
            // A newer version wakes this check again.
            let Some(known) = known else { return Ok(()) };
            let api = Api::<Machine>::namespaced(client.clone(), &key.namespace);
            let stored = known.status.as_ref();
            let written =
                write::status(&api, &*known, stored, &**status, Precondition::Observed).await?;
            if let Some(written) = written {
                context.stores.machines.apply_written(written);
            }
        }
        Action::Request { kind, version, object } => {
            context.base.require_leave()?;
            let provided = context.externals.provided_in(kind, version).await;
            match context.externals.create_among(&provided, &key.namespace, object).await {
                Ok(_) => {}
                // It is there already.
                Err(error) if matches!(error.downcast_ref(), Some(WriteError::Conflict { .. })) => {
                }
                Err(error) => return Err(error),
            }
        }
        Action::Withdraw { kind, version, object } => {
            let provided = context.externals.provided_in(kind, version).await;
            let known = provided.store.get(&ObjectKey::new(&key.namespace, &object.name));
            if let Some(known) =
                known.filter(|known| known.metadata.uid.as_ref() == Some(&object.uid))
            {
                context.externals.delete(&provided, &known).await?;
            }
        }
    }
    Ok(())
}
