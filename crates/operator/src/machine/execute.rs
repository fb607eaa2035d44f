//! Carries out what was decided, in order, and stops at the first failure.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::api::core::v1::Node;
use kube::{
    Api,
    api::{DeleteParams, Preconditions},
};
use machinist_api::{Machine, names::finalizer};
use machinist_core::{
    cloud::{ErrorClass, InstanceId},
    machine::{
        Action, MetadataChange,
        observed::{Identity, has_finalizer, is_deleting},
        outcome::{self, Aftermath},
    },
};
use machinist_providers::PreparedLaunch;
use serde_json::{Value, json};

use super::observe::Observation;
use crate::{
    cloud::{CloudAccess, view::failure_of},
    context::Context,
    engine::{events::EventTarget, store::ObjectKey},
    metrics::InstanceOperation,
    write::{self, Precondition, WriteError},
};

/// What came of it.
pub struct Executed {
    /// The Machine as the last write left it.
    pub machine: Arc<Machine>,
    /// What the effect means for the status, where there was one.
    pub aftermath: Option<Aftermath>,
    /// Whether the launch intent was stored in this pass: then no call was made with its token yet.
    is_intent_new: bool,
    /// Whether the Machine is gone: nothing is left to publish.
    pub let_go: bool,
    pub failure: Option<anyhow::Error>,
}

pub async fn execute(
    context: &Context,
    observation: &Observation,
    actions: &[Action],
    prepared: Option<PreparedLaunch>,
) -> Executed {
    let mut executed = Executed {
        machine: Arc::clone(&observation.machine),
        aftermath: None,
        is_intent_new: false,
        let_go: false,
        failure: None,
    };
    for action in actions {
        tracing::info!(
            machine = %ObjectKey::of(&*observation.machine),
            action = action.name(),
            "acts"
        );
        let result = perform(context, observation, action, prepared.as_ref(), &mut executed).await;
        if let Err(error) = result {
            executed.failure = Some(error);
            break;
        }
    }
    executed
}

async fn perform(
    context: &Context,
    observation: &Observation,
    action: &Action,
    prepared: Option<&PreparedLaunch>,
    executed: &mut Executed,
) -> anyhow::Result<()> {
    let api = machines(context, &executed.machine);
    match action {
        Action::AddFinalizer => {
            let names = with_finalizer(&executed.machine);
            let patch = json!({ "metadata": { "finalizers": names } });
            write(context, &api, executed, patch).await
        }
        Action::StoreIntent(status) => {
            let machine = &executed.machine;
            let stored = machine.status.as_ref();
            let precondition = Precondition::Observed;
            let written = write::status(&api, machine, stored, &**status, precondition).await?;
            take(context, executed, written);
            executed.is_intent_new = true;
            Ok(())
        }
        Action::Launch { client_token } => {
            let (Some(access), Some(prepared)) = (&observation.access, prepared) else {
                anyhow::bail!("a launch was decided without being prepared");
            };
            launch(context, access, prepared, client_token, executed).await
        }
        Action::TagInstance { id, tags } => tag(observation, id, tags).await,
        Action::ChangeMetadata(change) => {
            write(context, &api, executed, metadata_patch(change)).await
        }
        Action::Terminate { id } => terminate(context, observation, id).await,
        Action::DeleteNode { name, uid } => delete_node(context, name, uid).await,
        Action::RemoveFinalizer => {
            let names = without_finalizer(&executed.machine);
            let patch = json!({ "metadata": { "finalizers": names } });
            let result = write(context, &api, executed, patch).await;
            executed.let_go = result.is_ok();
            result
        }
    }
}

async fn launch(
    context: &Context,
    access: &CloudAccess,
    prepared: &PreparedLaunch,
    client_token: &str,
    executed: &mut Executed,
) -> anyhow::Result<()> {
    access.pace.turn().await?;
    fence(context, executed).await?;
    context.require_leadership()?;
    let answer = access.provider.launch(prepared, client_token).await;
    access.pace.learn(answer.as_ref().err().map(|error| error.class));
    let machine = Arc::clone(&executed.machine);
    let now = context.env.now();
    match answer {
        Ok(instance) => {
            executed.aftermath = Some(outcome::launched(&machine, &instance, now));
            access.view.learn(instance);
            Ok(())
        }
        Err(error) if error.class == ErrorClass::TokenMismatch => {
            let identity = Identity::of(&machine);
            let found =
                access.provider.find(&identity.machine_uid, &identity.client_tokens).await?;
            let existing = found.iter().find(|one| one.state.is_live()).or_else(|| found.first());
            executed.aftermath = outcome::token_mismatch(&machine, existing, &context.policy, now);
            match executed.aftermath {
                Some(_) => Ok(()),
                None => Err(error.into()),
            }
        }
        Err(error) => {
            count_failure(context, &machine, InstanceOperation::Create, error.class);
            let failure = failure_of(&error);
            let only_call = executed.is_intent_new;
            executed.aftermath = Some(outcome::launch_failed(&machine, &failure, only_call, now));
            match error.class {
                ErrorClass::InvalidConfiguration => Ok(()),
                _ => Err(error.into()),
            }
        }
    }
}

/// Reads the Machine once more from the API server right before a launch: what is being deleted
/// must not be launched for, however late the watch is and however long the turn took (S2).
async fn fence(context: &Context, executed: &Executed) -> anyhow::Result<()> {
    let known = ObjectKey::of(&*executed.machine);
    let api = machines(context, &executed.machine);
    let current = api.get_opt(&known.name).await?;
    match current {
        Some(current)
            if current.metadata.uid == executed.machine.metadata.uid
                && !is_deleting(&current)
                && has_finalizer(&current) =>
        {
            Ok(())
        }
        _ => Err(WriteError::Conflict { what: write::name_of(&*executed.machine) }.into()),
    }
}

async fn tag(
    observation: &Observation,
    id: &InstanceId,
    tags: &BTreeMap<String, String>,
) -> anyhow::Result<()> {
    let Some(access) = &observation.access else {
        anyhow::bail!("instance {id} cannot be tagged without access to its cloud");
    };
    access.pace.turn().await?;
    let answer = access.provider.tag(id, tags).await;
    access.pace.learn(answer.as_ref().err().map(|error| error.class));
    access.view.watch_closely(id.clone());
    Ok(answer?)
}

async fn terminate(
    context: &Context,
    observation: &Observation,
    id: &InstanceId,
) -> anyhow::Result<()> {
    let Some(access) = &observation.access else {
        anyhow::bail!("instance {id} cannot be terminated without access to its cloud");
    };
    access.pace.turn().await?;
    context.require_leadership()?;
    let answer = access.provider.terminate(id).await;
    access.pace.learn(answer.as_ref().err().map(|error| error.class));
    access.view.watch_closely(id.clone());
    match answer {
        Ok(_) => Ok(()),
        // Gone already: the next look shows it.
        Err(error) if error.class == ErrorClass::NotFound => Ok(()),
        Err(error) => {
            let machine = &observation.machine;
            count_failure(context, machine, InstanceOperation::Delete, error.class);
            context.announce(
                &EventTarget::of(&**machine),
                "Delete",
                &[machinist_core::decision::Announcement::warning(
                    machinist_api::names::event::FAILED_DELETE,
                    format!("could not terminate: {error}"),
                )],
            );
            Err(error.into())
        }
    }
}

/// Deletes the Node of this uid and no other (S26).
async fn delete_node(context: &Context, name: &str, uid: &str) -> anyhow::Result<()> {
    let preconditions = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
    let parameters = DeleteParams { preconditions: Some(preconditions), ..Default::default() };
    match Api::<Node>::all(context.client.clone()).delete(name, &parameters).await {
        Ok(answer) => {
            let key = ObjectKey::cluster_wide(name);
            context.stores.nodes.apply_deleted(&key, uid, answer.left());
            Ok(())
        }
        // Gone, or already another Node of that name.
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
        Err(error) => {
            Err(anyhow::Error::new(error).context(format!("failed to delete node {name}")))
        }
    }
}

async fn write(
    context: &Context,
    api: &Api<Machine>,
    executed: &mut Executed,
    patch: Value,
) -> anyhow::Result<()> {
    let written = write::object(api, &*executed.machine, patch, Precondition::Observed).await?;
    take(context, executed, Some(written));
    Ok(())
}

/// Goes on with the version that a write returned.
fn take(context: &Context, executed: &mut Executed, written: Option<Machine>) {
    if let Some(written) = written {
        executed.machine = Arc::new(written.clone());
        context.stores.machines.apply_written(written);
    }
}

fn machines(context: &Context, machine: &Machine) -> Api<Machine> {
    let namespace = machine.metadata.namespace.as_deref().unwrap_or_default();
    Api::namespaced(context.client.clone(), namespace)
}

fn with_finalizer(machine: &Machine) -> Vec<String> {
    let mut names = without_finalizer(machine);
    names.push(finalizer::MACHINE.to_owned());
    names
}

fn without_finalizer(machine: &Machine) -> Vec<String> {
    let names = machine.metadata.finalizers.clone().unwrap_or_default();
    names.into_iter().filter(|name| name != finalizer::MACHINE).collect()
}

fn metadata_patch(change: &MetadataChange) -> Value {
    let mut patch = json!({});
    if !change.labels.is_empty() {
        patch["metadata"]["labels"] = json!(change.labels);
    }
    if !change.annotations.is_empty() {
        patch["metadata"]["annotations"] = json!(change.annotations);
    }
    if let Some(provider_id) = &change.provider_id {
        patch["spec"]["providerID"] = json!(provider_id);
    }
    if !change.node_labels.is_empty() {
        patch["spec"]["metadata"]["labels"] = json!(change.node_labels);
    }
    patch
}

fn count_failure(
    context: &Context,
    machine: &Machine,
    operation: InstanceOperation,
    class: ErrorClass,
) {
    let key = ObjectKey::of(machine);
    context.metrics.count_instance_failure(operation, &key.namespace, &key.name, class.as_str());
}
