//! Carries out what was decided, in order, and stops at the first failure.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Node;
use kube::{
    Api,
    api::{DeleteParams, Preconditions},
};
use machinist_api::{Machine, names::finalizer};
use machinist_core::machine::{
    Action, MetadataChange, observed::provider_status, outcome::Aftermath,
};
use machinist_providers::PreparedLaunch;
use serde_json::{Value, json};

use super::{effects, memory::Memory, observe::Observation};
use crate::{
    cloud::pace::NotYet,
    context::Context,
    engine::store::ObjectKey,
    write::{self, Precondition, WriteError},
};

/// What came of it.
pub struct Executed {
    /// The Machine as the last write left it.
    pub machine: Arc<Machine>,
    /// What the effect means for the status, where there was one.
    pub aftermath: Option<Aftermath>,
    /// Whether the decided status was stored before the effect, which it promises.
    pub is_intent_stored: bool,
    /// Whether the Machine is gone: nothing is left to publish.
    pub let_go: bool,
    pub failure: Option<anyhow::Error>,
}

impl Executed {
    /// When to come back, where it was not yet this Machine's turn.
    pub fn not_yet(&self) -> Option<NotYet> {
        self.failure.as_ref()?.downcast_ref::<NotYet>().copied()
    }
}

pub async fn execute(
    context: &Context,
    memory: &Memory,
    observation: &Observation,
    actions: &[Action],
    prepared: Option<PreparedLaunch>,
) -> Executed {
    let mut executed = Executed {
        machine: Arc::clone(&observation.machine),
        aftermath: None,
        is_intent_stored: false,
        let_go: false,
        failure: None,
    };
    // Before anything is recorded of it: an attempt that only waited for its turn is none.
    let is_start = |action: &Action| matches!(action, Action::Start { .. });
    if actions.iter().any(is_start)
        && let Err(not_yet) = effects::turn_to_start(observation).await
    {
        executed.failure = Some(not_yet);
        return executed;
    }
    for action in actions {
        tracing::info!(
            machine = %ObjectKey::of(&*observation.machine),
            action = action.name(),
            "acts"
        );
        let prepared = prepared.as_ref();
        let result = perform(context, memory, observation, action, prepared, &mut executed).await;
        if let Err(error) = result {
            executed.failure = Some(error);
            break;
        }
    }
    executed
}

async fn perform(
    context: &Context,
    memory: &Memory,
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
            executed.is_intent_stored = true;
            let token = |machine| provider_status(machine).launch.map(|intent| intent.client_token);
            let new = token(&executed.machine);
            if let Some(new) = new.filter(|new| token(&observation.machine).as_ref() != Some(new)) {
                memory.stored(&ObjectKey::of(&*executed.machine), &new);
            }
            Ok(())
        }
        Action::Launch { client_token } => {
            let (Some(access), Some(prepared)) = (&observation.access, prepared) else {
                anyhow::bail!("a launch was decided without being prepared");
            };
            effects::launch(context, memory, access, prepared, client_token, executed).await
        }
        Action::TagInstance { id, tags } => effects::tag(context, observation, id, tags).await,
        Action::ChangeMetadata(change) => {
            write(context, &api, executed, metadata_patch(change)).await
        }
        Action::Start { id } => effects::start(context, observation, id, executed).await,
        Action::Replace => replace(context, &api, executed).await,
        Action::Attach { instance, fingerprint } => {
            effects::attach(context, observation, instance, fingerprint, executed).await
        }
        Action::Detach { instance } => {
            effects::detach(context, observation, instance, executed).await
        }
        Action::Terminate { id } => effects::terminate(context, observation, id, executed).await,
        Action::ReleaseHosts => effects::release_hosts(context, observation, executed).await,
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

/// Deletes the Machine as it was decided on, so that its pool makes another.
async fn replace(
    context: &Context,
    api: &Api<Machine>,
    executed: &mut Executed,
) -> anyhow::Result<()> {
    let machine = &executed.machine;
    let known = ObjectKey::of(&**machine);
    let parameters = DeleteParams {
        preconditions: Some(Preconditions {
            uid: machine.metadata.uid.clone(),
            resource_version: machine.metadata.resource_version.clone(),
        }),
        ..Default::default()
    };
    match api.delete(&known.name, &parameters).await {
        Ok(answer) => {
            take(context, executed, answer.left());
            Ok(())
        }
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {
            Err(WriteError::Conflict { what: write::name_of(&**machine) }.into())
        }
        Err(error) => {
            Err(anyhow::Error::new(error).context(format!("failed to delete machine {known}")))
        }
    }
}

/// Deletes the Node of this uid and no other (S26).
/// Deletes a Node unless it is another one of that name by now.
pub async fn delete_node(context: &Context, name: &str, uid: &str) -> anyhow::Result<()> {
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

pub(super) fn machines(context: &Context, machine: &Machine) -> Api<Machine> {
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
