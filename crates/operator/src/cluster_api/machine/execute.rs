//! Carries out what was decided for a Machine. A patch that fails keeps nothing else from being told; whatever destroys is done only when
//! all before it was.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Resource,
    api::{DeleteParams, ListParams, Preconditions},
    core::Request,
};
use machinist_api::cluster_api::{
    Machine,
    names::{event, finalizer},
};
use machinist_core::cluster_api::machine::{Action, Which};
use serde_json::{Value, json};

use super::{
    Parts,
    observe::{Look, Observation},
};
use crate::{
    cluster_api::{
        context::Context,
        workloads::{NODE_BY_PROVIDER_ID, Reach},
    },
    drain::{
        self,
        execute::{Place, Progress},
    },
    engine::{
        events::{EventTarget, EventType},
        store::{ObjectKey, Store},
    },
    write::{self, Precondition, WriteError},
};

/// What became of the actions.
pub struct Executed {
    /// The Machine after our own writes.
    pub machine: Arc<Machine>,
    /// Its finalizer is removed: there is no status to write.
    pub is_gone: bool,
    /// The Machine is not as it was decided on, so neither is its status.
    pub is_stale: bool,
    /// Something was refused, which the next pass tells.
    pub again: bool,
    /// The first that failed.
    pub failure: Option<anyhow::Error>,
}

pub async fn execute(
    context: &Context,
    parts: &Parts,
    observation: &Observation,
    actions: &[Action],
) -> Executed {
    let mut executed = Executed {
        machine: Arc::clone(&observation.machine),
        is_gone: false,
        is_stale: false,
        again: false,
        failure: None,
    };
    for action in actions {
        let destroys = !matches!(
            action,
            Action::PatchMachine(_) | Action::PatchExternal { .. } | Action::PatchNode { .. }
        );
        if destroys && executed.failure.is_some() {
            break;
        }
        let done = perform(context, parts, observation, action, &mut executed).await;
        executed.is_stale |= done.is_err() && matches!(action, Action::PatchMachine(_));
        if let Err(error) = done
            && executed.failure.is_none()
        {
            executed.failure = Some(error);
        }
    }
    executed
}

async fn perform(
    context: &Context,
    parts: &Parts,
    observation: &Observation,
    action: &Action,
    executed: &mut Executed,
) -> anyhow::Result<()> {
    let base = &context.base;
    base.require_leadership()?;
    let key = ObjectKey::of(&*observation.machine);
    match action {
        Action::PatchMachine(patch) => {
            let written = patch_machine(context, parts, &executed.machine, patch.clone()).await?;
            executed.machine = Arc::new(written);
        }
        Action::PatchExternal { which, patch } => {
            let (provided, object) = found(observation, *which)?;
            context.externals.patch(provided, object, patch.clone()).await?;
        }
        Action::PatchNode { node, patch } => {
            let (client, nodes) = workload(observation)?;
            let Some(known) = nodes.get(&ObjectKey::cluster_wide(node.as_str())) else {
                return Ok(());
            };
            let api = Api::<Node>::all(client.clone());
            let written =
                write::object(&api, &*known, patch.clone(), Precondition::Observed).await?;
            nodes.apply_written(written);
        }
        Action::Drain(actions) => {
            base.require_leave()?;
            let (client, nodes) = workload(observation)?;
            let place = Place { client, nodes, env: &base.env };
            drain::execute::cordon(place, &key, actions).await?;
            let progress =
                drain::execute::evict(place, &parts.memory.drains, &key, actions).await?;
            executed.again = progress == Progress::Refused;
        }
        Action::DeleteExternal(which) => {
            base.require_leave()?;
            let (provided, object) = found(observation, *which)?;
            tracing::info!(machine = %key, kind = provided.kind.kind, "deleting the provider's object");
            context.externals.delete(provided, object).await?;
        }
        Action::DeleteNode { node, uid, until } => {
            base.require_leave()?;
            match delete_node(observation, node, uid).await {
                Ok(()) => tracing::info!(machine = %key, node, "deleted the node"),
                Err(error) => {
                    let message = format!("error deleting Machine's Node: {error:#}");
                    base.events.record(
                        &EventTarget::of(&*observation.machine),
                        EventType::Warning,
                        event::FAILED_DELETE_NODE,
                        "Reconcile",
                        &message,
                    );
                    // Once its time is over the Machine goes without.
                    if until.is_none_or(|until| base.env.now() < until) {
                        return Err(error);
                    }
                }
            }
        }
        Action::RemoveFinalizer => {
            reveal_node(observation).await?;
            let finalizers = executed.machine.metadata.finalizers.clone().unwrap_or_default();
            let left: Vec<_> =
                finalizers.into_iter().filter(|one| one != finalizer::MACHINE).collect();
            let patch = json!({ "metadata": { "finalizers": left } });
            match patch_machine(context, parts, &executed.machine, patch).await {
                Ok(_) | Err(WriteError::Gone { .. }) => executed.is_gone = true,
                Err(error) => return Err(error.into()),
            }
            tracing::info!(machine = %key, "the machine is gone");
        }
    }
    Ok(())
}

async fn patch_machine(
    context: &Context,
    parts: &Parts,
    machine: &Machine,
    patch: Value,
) -> Result<Machine, WriteError> {
    let key = ObjectKey::of(machine);
    let api = Api::<Machine>::namespaced(context.base.client.clone(), &key.namespace);
    let written = write::object(&api, machine, patch, Precondition::Observed).await;
    let written = caught_up(context, &key, written).await?;
    parts.memory.note_written(&key, &written);
    context.stores.machines.apply_written(written.clone());
    Ok(written)
}

/// Where a write was refused because the provider's came first, the Machine is read: under load the watch may be seconds
/// behind, and until then every further write would be refused too.
pub async fn caught_up<T>(
    context: &Context,
    key: &ObjectKey,
    written: Result<T, WriteError>,
) -> Result<T, WriteError> {
    if let Err(WriteError::Conflict { .. }) = &written {
        let api = Api::<Machine>::namespaced(context.base.client.clone(), &key.namespace);
        match api.get_opt(&key.name).await {
            Ok(Some(current)) => context.stores.machines.apply_written(current),
            Ok(None) => {}
            Err(error) => {
                tracing::debug!(machine = %key, %error, "cannot be read; the watch will tell")
            }
        }
    }
    written
}

fn found(
    observation: &Observation,
    which: Which,
) -> anyhow::Result<(&crate::cluster_api::externals::Provided, &kube::api::DynamicObject)> {
    let look = match which {
        Which::Infrastructure => &observation.infrastructure,
        Which::Bootstrap => &observation.bootstrap,
    };
    match look {
        Look::Found { provided, object } => Ok((provided, object)),
        _ => anyhow::bail!("the provider's object is not there"),
    }
}

fn workload(observation: &Observation) -> anyhow::Result<(&kube::Client, &Store<Node>)> {
    match &observation.reach {
        Reach::Up { client, nodes, .. } => Ok((client, nodes)),
        Reach::Down { why, .. } => anyhow::bail!("the workload cluster cannot be reached: {why}"),
    }
}

/// Asks the workload cluster for the Machine's Node before the Machine goes, where none is known: it may have joined a moment ago,
/// and a watch that is late does not show it. What was unseen is taken in, and the pass is decided again.
async fn reveal_node(observation: &Observation) -> anyhow::Result<()> {
    let machine = &observation.machine;
    let id = machine.spec.provider_id.as_deref().filter(|id| !id.is_empty());
    let (Reach::Up { client, nodes, .. }, Some(id)) = (&observation.reach, id) else {
        return Ok(());
    };
    let is_known = !nodes.by_index(NODE_BY_PROVIDER_ID, id).is_empty();
    let is_linked = machine.status.as_ref().is_some_and(|status| status.node_ref.is_some());
    // With the Cluster everything goes; and the Node that was linked is gone by the same watch that showed it.
    if is_known || is_linked || observation.cluster.metadata.deletion_timestamp.is_some() {
        return Ok(());
    }
    let listed = Api::<Node>::all(client.clone()).list(&ListParams::default()).await?;
    let has_id =
        |node: &Node| node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref()) == Some(id);
    let Some(node) = listed.items.into_iter().find(has_id) else { return Ok(()) };
    let what = format!("Node {} of {id}", node.metadata.name.as_deref().unwrap_or_default());
    tracing::warn!(machine = %ObjectKey::of(&**machine), what, "the watch does not show the node");
    nodes.apply_written(node);
    Err(WriteError::Conflict { what }.into())
}

/// What a workload cluster answers is not read, and neither must its Nodes have a uid: Cluster API asks for neither,
/// and its in-memory provider gives none. The watch tells when the Node is gone.
async fn delete_node(observation: &Observation, node: &str, uid: &str) -> anyhow::Result<()> {
    let (client, _) = workload(observation)?;
    let uid = Some(uid).filter(|uid| !uid.is_empty()).map(str::to_owned);
    let parameters = DeleteParams {
        preconditions: uid.map(|uid| Preconditions { uid: Some(uid), resource_version: None }),
        ..Default::default()
    };
    let request = Request::new(Node::url_path(&(), None)).delete(node, &parameters)?;
    match client.request_text(request).await {
        Ok(_) => Ok(()),
        // Gone, or already another of that name.
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
