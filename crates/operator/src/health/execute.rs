//! Has machines replaced or repaired. One that fails never keeps the others from it.

use anyhow::Context as _;
use futures::future::join_all;
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api,
    api::{DeleteParams, DynamicObject, PostParams, Preconditions},
};
use machinist_api::{Machine, MachineHealthCheck, names::annotation};
use machinist_core::health::Action;
use serde_json::Value;

use super::{external, memory::Memory, publish::machine_target};
use crate::{
    context::Context,
    engine::store::ObjectKey,
    write::{self, WriteError},
};

/// How many requests for one check are under way at once.
const LARGEST_BATCH: usize = 32;

/// What became of an action that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Done {
    Done,
    /// What it was decided on turned out not to be so.
    Dropped,
}

pub async fn execute(
    context: &Context,
    memory: &Memory,
    check: &MachineHealthCheck,
    actions: &[Action],
) -> anyhow::Result<()> {
    let key = ObjectKey::of(check);
    let mut results = Vec::with_capacity(actions.len());
    for batch in actions.chunks(LARGEST_BATCH) {
        let tried = batch.iter().map(|action| perform(context, memory, &key.namespace, action));
        results.extend(join_all(tried).await);
    }
    let (mut failure, mut superseded, mut request_failure) = (None, None, None);
    let mut requested = false;
    for (action, result) in actions.iter().zip(results) {
        let is_request = matches!(action, Action::CreateRequest { .. });
        requested |= is_request;
        match result {
            Ok(Done::Dropped) => {}
            Ok(Done::Done) => tell_done(context, &key, action),
            // Somebody else's write came first: there is nothing to tell, only to look again.
            Err(error) if is_superseded(&error) => superseded = superseded.or(Some(error)),
            Err(error) => {
                let words = format!("{error:#}");
                tell(context, &key, action, action.failed(&words));
                if is_request && request_failure.is_none() {
                    request_failure = Some(words);
                }
                failure = failure.or(Some(error));
            }
        }
    }
    if requested {
        memory.change(&key, |memory| memory.request_failure = request_failure);
    }
    failure.or(superseded).map_or(Ok(()), Err)
}

fn tell_done(context: &Context, check: &ObjectKey, action: &Action) {
    tell(context, check, action, action.done());
    if let Some((machine, _)) = action.machine() {
        tracing::info!(%check, machine, "an unhealthy machine is remediated");
    }
    if action.is_counted_remediation() {
        context.metrics.count_remediation(&check.namespace, &check.name);
    }
}

fn tell(
    context: &Context,
    check: &ObjectKey,
    action: &Action,
    announcement: Option<machinist_core::decision::Announcement>,
) {
    let (Some((name, uid)), Some(announcement)) = (action.machine(), announcement) else { return };
    let target = machine_target(&check.namespace, name, uid);
    context.announce(&target, "Remediate", &[announcement]);
}

fn is_superseded(error: &anyhow::Error) -> bool {
    error.downcast_ref::<WriteError>().is_some_and(WriteError::is_superseded)
}

async fn perform(
    context: &Context,
    memory: &Memory,
    namespace: &str,
    action: &Action,
) -> anyhow::Result<Done> {
    context.require_leave()?;
    if let Some(node) = action.absent_node()
        && !is_absent(context, node).await?
    {
        tracing::info!(node, "a node that was not seen exists after all");
        return Ok(Done::Dropped);
    }
    match action {
        Action::DeleteMachine { name, uid, resource_version, .. } => {
            delete_machine(context, namespace, name, uid, resource_version).await
        }
        Action::MarkForRepair { name, uid, resource_version, .. } => {
            let api = Api::<Machine>::namespaced(context.client.clone(), namespace);
            let version = Some(resource_version.as_str());
            let key = annotation::EXTERNAL_REMEDIATION;
            let written = write::annotation(&api, name, uid, version, key, "").await?;
            context.stores.machines.apply_written(written);
            Ok(Done::Done)
        }
        Action::CreateRequest { object, .. } => {
            create_request(context, memory, namespace, object).await
        }
        Action::DeleteRequest { api_version, kind, name, uid, resource_version } => {
            let api = external::api(&context.client, memory, namespace, api_version, kind).await?;
            let Some(api) = api else { return Ok(Done::Dropped) };
            match api.delete(name, &exactly(uid, resource_version)).await {
                Ok(_) => Ok(Done::Done),
                Err(error) => not_deleted(format!("{kind} {namespace}/{name}"), error),
            }
        }
    }
}

/// Asks for a Node by name: the store may not show it yet.
async fn is_absent(context: &Context, node: &str) -> anyhow::Result<bool> {
    let api = Api::<Node>::all(context.client.clone());
    let known = api
        .get_metadata_opt(node)
        .await
        .with_context(|| format!("failed to ask for node {node}"))?;
    Ok(known.is_none())
}

fn exactly(uid: &str, resource_version: &str) -> DeleteParams {
    let preconditions = Preconditions {
        uid: Some(uid.to_owned()),
        resource_version: Some(resource_version.to_owned()),
    };
    DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() }
}

fn not_deleted(what: String, error: kube::Error) -> anyhow::Result<Done> {
    match error {
        kube::Error::Api(status) if status.code == 404 => Ok(Done::Dropped),
        kube::Error::Api(status) if status.code == 409 => Err(WriteError::Conflict { what }.into()),
        error => Err(anyhow::Error::new(error).context(format!("failed to delete {what}"))),
    }
}

async fn delete_machine(
    context: &Context,
    namespace: &str,
    name: &str,
    uid: &str,
    resource_version: &str,
) -> anyhow::Result<Done> {
    let api = Api::<Machine>::namespaced(context.client.clone(), namespace);
    let key = ObjectKey::new(namespace, name);
    match api.delete(name, &exactly(uid, resource_version)).await {
        Ok(answer) => {
            context.stores.machines.apply_deleted(&key, uid, answer.left());
            Ok(Done::Done)
        }
        Err(error) => {
            if matches!(&error, kube::Error::Api(status) if status.code == 404) {
                context.stores.machines.forget_written(&key, uid);
            }
            not_deleted(format!("Machine {key}"), error)
        }
    }
}

async fn create_request(
    context: &Context,
    memory: &Memory,
    namespace: &str,
    object: &Value,
) -> anyhow::Result<Done> {
    let request: DynamicObject =
        serde_json::from_value(object.clone()).context("the template makes no object")?;
    let types = request.types.clone().unwrap_or_default();
    let name = request.metadata.name.clone().unwrap_or_default();
    let (api_version, kind) = (types.api_version.as_str(), types.kind.as_str());
    let api = external::api(&context.client, memory, namespace, api_version, kind).await?;
    let api = api.with_context(|| format!("the cluster does not have kind {kind}"))?;
    match api.create(&PostParams::default(), &request).await {
        Ok(_) => Ok(Done::Done),
        // The answer to an earlier try was lost, or the list that was decided on was late.
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(Done::Dropped),
        Err(error) => {
            Err(anyhow::Error::new(error)
                .context(format!("failed to make {kind} {namespace}/{name}")))
        }
    }
}
