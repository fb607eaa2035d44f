//! Carries out what was decided, in order, and stops at the first failure. Every write asks for the
//! version that it was decided on (Rule 3).

use std::sync::Arc;

use anyhow::Context as _;
use k8s_openapi::api::core::v1::{Node, Pod, Taint};
use kube::{
    Api,
    api::{DeleteParams, PostParams, Preconditions},
};
use machinist_api::{
    Machine, MachineMaintenance, MachineMaintenanceStatus, MachineSet,
    cluster_api::names::annotation as theirs,
    names::{annotation, finalizer, taint},
};
use machinist_core::{
    cluster_api::maintained,
    drain,
    maintenance::{
        Step,
        decide::MaintenanceDecision,
        step::{MachineRef, NodeRef},
    },
};
use serde_json::{Value, json};

use super::{
    Maintenance,
    effects::{self, Asked},
    observe::Observation,
};
use crate::{
    cluster_api::maintained::Maintained,
    context::Context,
    drain::execute::{Place, Progress, evict},
    engine::store::ObjectKey,
    write::{self, Precondition, WriteError},
};

/// What came of it.
pub struct Executed {
    /// The object as the last write left it.
    pub object: Arc<MachineMaintenance>,
    /// The decided status, with what the cloud answered.
    pub status: MachineMaintenanceStatus,
    /// Whether the cloud was asked: then the status records what has happened.
    pub has_asked_cloud: bool,
    /// Whether an eviction was refused: that is news for the next pass.
    pub was_refused: bool,
    /// Whether the object is gone: nothing is left to publish.
    pub let_go: bool,
    pub failure: Option<anyhow::Error>,
}

pub async fn execute(
    context: &Context,
    maintenance: &Maintenance,
    observation: &Observation,
    decision: &MaintenanceDecision,
) -> Executed {
    let mut executed = Executed {
        object: Arc::clone(&observation.object),
        status: decision.status.clone(),
        has_asked_cloud: false,
        was_refused: false,
        let_go: false,
        failure: None,
    };
    let evictions: Vec<drain::Action> = decision
        .actions
        .iter()
        .filter_map(|step| match step {
            Step::Evict(action) => Some(action.clone()),
            _ => None,
        })
        .collect();
    let mut has_evicted = false;
    for step in &decision.actions {
        let is_eviction = matches!(step, Step::Evict(_));
        if is_eviction && has_evicted {
            continue;
        }
        has_evicted |= is_eviction;
        let key = ObjectKey::of(&*observation.object);
        tracing::info!(maintenance = %key, step = step.name(), "acts");
        let result = if is_eviction {
            evict_all(context, maintenance, &key, &evictions, &mut executed).await
        } else if step.is_cloud_effect() {
            ask(context, maintenance, observation, step, &mut executed).await
        } else {
            perform(context, observation, step, &mut executed).await.map(|()| Going::On)
        };
        match result {
            Ok(Going::On) => {}
            Ok(Going::NoFurther) => break,
            Err(error) => {
                executed.failure = Some(error);
                break;
            }
        }
    }
    executed
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Going {
    On,
    /// The cloud refused: what was to follow is decided anew.
    NoFurther,
}

/// Evicts all pods of the pass side by side.
async fn evict_all(
    context: &Context,
    maintenance: &Maintenance,
    key: &ObjectKey,
    evictions: &[drain::Action],
    executed: &mut Executed,
) -> anyhow::Result<Going> {
    context.require_leadership()?;
    let place = Place::here(context);
    let progress = evict(place, &maintenance.memory.evictions, key, evictions).await?;
    executed.was_refused |= progress == Progress::Refused;
    Ok(Going::On)
}

async fn ask(
    context: &Context,
    maintenance: &Maintenance,
    observation: &Observation,
    step: &Step,
    executed: &mut Executed,
) -> anyhow::Result<Going> {
    let (object, status) = (&executed.object, &executed.status);
    let asked = effects::ask(context, maintenance, observation, object, status, step).await?;
    executed.has_asked_cloud = true;
    let (status, going) = match asked {
        Asked::Accepted(status) => (status, Going::On),
        Asked::Refused(status) => (status, Going::NoFurther),
    };
    executed.status = status;
    Ok(going)
}

async fn perform(
    context: &Context,
    observation: &Observation,
    step: &Step,
    executed: &mut Executed,
) -> anyhow::Result<()> {
    context.require_leadership()?;
    // A Node is of the cluster of its machine's pool.
    let of = observation.pool_name();
    let uid = executed.object.metadata.uid.clone().unwrap_or_default();
    match step {
        Step::AddFinalizer => {
            let mut names = other_finalizers(&executed.object);
            names.push(finalizer::MAINTENANCE.to_owned());
            write_own(context, executed, json!({ "metadata": { "finalizers": names } })).await
        }
        Step::RemoveFinalizer => {
            let names = other_finalizers(&executed.object);
            write_own(context, executed, json!({ "metadata": { "finalizers": names } })).await?;
            executed.let_go = executed.object.metadata.deletion_timestamp.is_some();
            Ok(())
        }
        Step::MarkScheduled => {
            write_own(context, executed, json!({ "spec": { "maintenancescheduled": true } })).await
        }
        Step::SetSpec(spec) => {
            let (before, after) = (json!(executed.object.spec), json!(spec));
            let patch = machinist_core::merge_patch::between(&before, &after);
            write_own(context, executed, json!({ "spec": patch.unwrap_or_default() })).await
        }
        Step::ClearApproval => {
            let annotations = json!({ annotation::MAINTENANCE_APPROVED: null });
            let patch = json!({ "metadata": { "annotations": annotations } });
            write_own(context, executed, patch).await
        }
        Step::ResizePool { name, uid, resource_version, replicas, mark } => {
            let patch = json!({
                "metadata": { "annotations": { annotation::SURGE: mark } },
                "spec": { "replicas": replicas },
            });
            if let Some(known) = of_cluster_api(context, name)? {
                let seen = (uid.as_str(), resource_version.as_str());
                return known.patch_pool(&context.client, name, seen, patch).await;
            }
            let api = Api::<MachineSet>::namespaced(context.client.clone(), own(context));
            let written = write::at(&api, name, uid, resource_version, patch).await?;
            context.stores.machine_sets.apply_written(written);
            Ok(())
        }
        Step::CreateMachine(machine) => create_machine(context, machine).await,
        Step::ProtectNode(node) => {
            let annotations = json!({
                annotation::SCALE_DOWN_DISABLED: "true", annotation::PROTECTED_FOR: uid,
            });
            annotate_node(context, of, node, annotations).await
        }
        Step::UnprotectNode(node) => {
            let annotations = json!({
                annotation::SCALE_DOWN_DISABLED: null, annotation::PROTECTED_FOR: null,
            });
            annotate_node(context, of, node, annotations).await
        }
        Step::Cordon(node) => {
            let patch = json!({
                "metadata": { "annotations": { annotation::CORDONED_FOR: uid } },
                "spec": { "unschedulable": true },
            });
            patch_node(context, of, node, patch).await
        }
        Step::Uncordon(node) => {
            let patch = json!({
                "metadata": { "annotations": { annotation::CORDONED_FOR: null } },
                "spec": { "unschedulable": null },
            });
            patch_node(context, of, node, patch).await
        }
        Step::DisownCordon(node) => {
            annotate_node(context, of, node, json!({ annotation::CORDONED_FOR: null })).await
        }
        Step::DeletePod { namespace, pod, uid, grace_period_seconds } => {
            delete_pod(context, namespace, pod, uid, *grace_period_seconds).await
        }
        Step::AddOutOfServiceTaint(node) => {
            let mut taints = taints_of(context, node)?;
            taints.push(Taint {
                key: taint::OUT_OF_SERVICE.to_owned(),
                value: Some("nodeshutdown".to_owned()),
                effect: "NoExecute".to_owned(),
                ..Taint::default()
            });
            patch_node(context, of, node, json!({ "spec": { "taints": taints } })).await
        }
        Step::RemoveOutOfServiceTaint(node) => {
            let mut taints = taints_of(context, node)?;
            taints.retain(|one| one.key != taint::OUT_OF_SERVICE);
            patch_node(context, of, node, json!({ "spec": { "taints": taints } })).await
        }
        Step::Hold { machine, value } => {
            annotate_machine(context, machine, json!({ annotation::HOLD: value })).await
        }
        Step::ReleaseHold(machine) => {
            annotate_machine(context, machine, json!({ annotation::HOLD: null })).await
        }
        Step::MarkForDeletion { machine, value } => {
            annotate_machine(context, machine, json!({ mark_of(machine): value })).await
        }
        Step::UnmarkForDeletion(machine) => {
            annotate_machine(context, machine, json!({ mark_of(machine): null })).await
        }
        Step::ClearRequest(machine) => {
            let annotations = json!({ annotation::MAINTENANCE_REQUESTED: null });
            annotate_machine(context, machine, annotations).await
        }
        Step::DeleteMachine(machine) => delete_machine(context, machine).await,
        Step::Evict(_)
        | Step::EnableMigration(_)
        | Step::Reboot(_)
        | Step::Stop(_)
        | Step::Start(_)
        | Step::MoveEvent { .. } => Ok(()),
    }
}

/// Lets an object go, where our finalizer holds it.
pub async fn remove_finalizer(
    context: &Context,
    object: Arc<MachineMaintenance>,
) -> anyhow::Result<Arc<MachineMaintenance>> {
    let names = other_finalizers(&object);
    if object.metadata.finalizers.as_ref().is_none_or(|held| *held == names) {
        return Ok(object);
    }
    context.require_leadership()?;
    let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
    let api = Api::<MachineMaintenance>::namespaced(context.client.clone(), namespace);
    let patch = json!({ "metadata": { "finalizers": names } });
    let written = write::object(&api, &*object, patch, Precondition::Observed).await?;
    context.stores.maintenance.apply_written(written.clone());
    Ok(Arc::new(written))
}

/// Cluster API's machines, where a name is of one of them or of their pools.
fn of_cluster_api<'a>(context: &'a Context, name: &str) -> anyhow::Result<Option<&'a Maintained>> {
    if maintained::parts(name).is_none() {
        return Ok(None);
    }
    let known = context.stores.cluster_api.get();
    known.map(Some).with_context(|| format!("{name} is of Cluster API, which is not looked after"))
}

/// The annotation that makes a Machine the first to go, in its own API.
fn mark_of(machine: &MachineRef) -> &'static str {
    match maintained::parts(&machine.name) {
        Some(_) => theirs::DELETE_MACHINE,
        None => annotation::DELETE_MACHINE,
    }
}

/// The namespace of the Machines.
fn own(context: &Context) -> &str {
    &context.stores.maintenance.namespace
}

fn other_finalizers(object: &MachineMaintenance) -> Vec<String> {
    let names = object.metadata.finalizers.clone().unwrap_or_default();
    names.into_iter().filter(|name| name != finalizer::MAINTENANCE).collect()
}

async fn write_own(context: &Context, executed: &mut Executed, patch: Value) -> anyhow::Result<()> {
    let object = &executed.object;
    let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
    let api = Api::<MachineMaintenance>::namespaced(context.client.clone(), namespace);
    let written = write::object(&api, &**object, patch, Precondition::Observed).await?;
    executed.object = Arc::new(written.clone());
    context.stores.maintenance.apply_written(written);
    Ok(())
}

/// `of`: the pool whose machine's Node it is.
async fn patch_node(
    context: &Context,
    of: Option<&str>,
    node: &NodeRef,
    patch: Value,
) -> anyhow::Result<()> {
    if let Some(pool) = of
        && let Some(known) = of_cluster_api(context, pool)?
    {
        return known.patch_node(pool, node, patch).await;
    }
    let api = Api::<Node>::all(context.client.clone());
    let written = write::at(&api, &node.name, &node.uid, &node.resource_version, patch).await?;
    context.stores.nodes.apply_written(written);
    Ok(())
}

async fn annotate_node(
    context: &Context,
    of: Option<&str>,
    node: &NodeRef,
    annotations: Value,
) -> anyhow::Result<()> {
    patch_node(context, of, node, json!({ "metadata": { "annotations": annotations } })).await
}

/// The taints of a Node at the version that was seen: a list is written whole.
fn taints_of(context: &Context, node: &NodeRef) -> Result<Vec<Taint>, WriteError> {
    let known = context.stores.nodes.get(&ObjectKey::cluster_wide(node.name.as_str()));
    let is_seen = |known: &Arc<Node>| {
        known.metadata.resource_version.as_deref() == Some(&node.resource_version)
    };
    let known = known
        .filter(is_seen)
        .ok_or_else(|| WriteError::Conflict { what: format!("Node {}", node.name) })?;
    Ok(known.spec.as_ref().and_then(|spec| spec.taints.clone()).unwrap_or_default())
}

async fn annotate_machine(
    context: &Context,
    machine: &MachineRef,
    annotations: Value,
) -> anyhow::Result<()> {
    if let Some(known) = of_cluster_api(context, &machine.name)? {
        return known.annotate_machine(&context.client, machine, annotations).await;
    }
    let api = Api::<Machine>::namespaced(context.client.clone(), own(context));
    let patch = json!({ "metadata": { "annotations": annotations } });
    let version = &machine.resource_version;
    let written = write::at(&api, &machine.name, &machine.uid, version, patch).await?;
    context.stores.machines.apply_written(written);
    Ok(())
}

async fn create_machine(context: &Context, machine: &Machine) -> anyhow::Result<()> {
    let api = Api::<Machine>::namespaced(context.client.clone(), own(context));
    match api.create(&PostParams::default(), machine).await {
        Ok(made) => {
            context.stores.machines.apply_written(made);
            Ok(())
        }
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
        Err(error) => {
            let name = machine.metadata.name.as_deref().unwrap_or_default();
            Err(error).with_context(|| format!("failed to make Machine {name}"))
        }
    }
}

async fn delete_machine(context: &Context, machine: &MachineRef) -> anyhow::Result<()> {
    if let Some(known) = of_cluster_api(context, &machine.name)? {
        return known.delete_machine(&context.client, machine).await;
    }
    let api = Api::<Machine>::namespaced(context.client.clone(), own(context));
    let key = ObjectKey::new(own(context), machine.name.as_str());
    let preconditions = Preconditions {
        uid: Some(machine.uid.clone()),
        resource_version: Some(machine.resource_version.clone()),
    };
    let parameters = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    match api.delete(&machine.name, &parameters).await {
        Ok(answer) => {
            context.stores.machines.apply_deleted(&key, &machine.uid, answer.left());
            Ok(())
        }
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {
            Err(WriteError::Conflict { what: format!("Machine {key}") }.into())
        }
        Err(error) => Err(error).with_context(|| format!("failed to delete Machine {key}")),
    }
}

async fn delete_pod(
    context: &Context,
    namespace: &str,
    pod: &str,
    uid: &str,
    grace_period_seconds: Option<i64>,
) -> anyhow::Result<()> {
    let api = Api::<Pod>::namespaced(context.client.clone(), namespace);
    let parameters = DeleteParams {
        grace_period_seconds: grace_period_seconds.and_then(|seconds| u32::try_from(seconds).ok()),
        preconditions: Some(Preconditions { uid: Some(uid.to_owned()), resource_version: None }),
        ..DeleteParams::default()
    };
    match api.delete(pod, &parameters).await {
        Ok(_) => Ok(()),
        // Gone, or already another pod of that name.
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
        Err(error) => Err(error).with_context(|| format!("failed to delete pod {namespace}/{pod}")),
    }
}
