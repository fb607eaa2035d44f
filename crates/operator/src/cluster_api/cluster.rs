//! The small controller of Clusters: what their Machines need, and nothing of topology.

pub mod kubeconfig;
#[cfg(test)]
mod tests;
pub mod wake;

use std::sync::Arc;

use kube::{
    Api, Resource,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Preconditions},
    core::GroupVersionKind,
};
use machinist_api::cluster_api::{
    Cluster, GROUP, Machine, MachineDeployment, MachineSet,
    names::{finalizer, kind, label},
};
use machinist_core::cluster_api::{
    cluster::{Action, ClusterDecision, Descendant, Observed, Part, Remote, decide, say_failure},
    machine::observed::{is_control_plane, is_infrastructure_provisioned},
};
use serde_json::json;

use super::{
    context::Context,
    index,
    machine::{Look, look},
    workloads::{Reach, Workloads},
};
use crate::{
    engine::{batches, events::EventTarget, queue::Outcome, store::ObjectKey},
    machine::{concluded, superseded_or_failed},
    write::{self, Precondition, WriteError},
};

pub const NAME: &str = "cluster-api-cluster";

pub async fn reconcile(context: &Context, workloads: &Workloads, key: ObjectKey) -> Outcome {
    let base = &context.base;
    let Some(cluster) = context.stores.clusters.get(&key) else {
        workloads.forget(&key);
        base.note_waiting(NAME, &key, &[]);
        return Outcome::Settled;
    };
    if let Some(outcome) = base.held(NAME, &key) {
        return outcome;
    }
    let (infrastructure, control_plane) = futures::join!(
        look(context, &key.namespace, cluster.spec.infrastructure_ref.as_ref()),
        look(context, &key.namespace, cluster.spec.control_plane_ref.as_ref()),
    );
    let value = index::cluster(&key.namespace, &key.name);
    let machines = context.stores.machines.by_index(index::BY_CLUSTER, &value);
    let has_node = |one: &Arc<Machine>| one.status.as_ref().is_some_and(|it| it.node_ref.is_some());
    let observed = Observed {
        cluster: &cluster,
        infrastructure: infrastructure.reference(),
        control_plane: control_plane.reference(),
        has_control_plane_node: machines.iter().any(|one| is_control_plane(one) && has_node(one)),
        remote: remote(workloads, &key),
        descendants: match cluster.metadata.deletion_timestamp {
            Some(_) => descendants(context, &value, &machines),
            None => Vec::new(),
        },
        machine_pools: match cluster.metadata.deletion_timestamp {
            Some(_) => machine_pools(context, &key).await,
            None => Ok(Vec::new()),
        },
    };
    let now = base.env.now();
    let mut decision = decide(&observed, now);

    let looks = [&infrastructure, &control_plane];
    let executed = match execute(context, workloads, &cluster, looks, &decision.actions).await {
        Ok(executed) => executed,
        Err(error) => return superseded_or_failed(error),
    };
    if let Some((action, error)) = &executed.failure
        && !batches::is_superseded(error)
    {
        say_failure(&mut decision, &cluster, action, &format!("{error:#}"), now);
    }
    base.note_waiting(NAME, &key, &decision.waiting);
    let Some(current) = executed.cluster else {
        base.announce(&EventTarget::of(&*cluster), "Reconcile", &decision.announcements);
        return Outcome::Settled;
    };
    let published = publish(context, &current, &decision).await;
    if published.is_ok() && is_infrastructure_provisioned(&current) {
        workloads.begin(&key);
    }
    let executed = executed.failure.map_or(Ok(()), |(_, error)| Err(error));
    concluded(executed, published, decision.recheck, now)
}

fn remote(workloads: &Workloads, key: &ObjectKey) -> Remote {
    match workloads.reach(key) {
        Reach::Up { last_success, .. } => {
            Remote { is_up: true, last_success: Some(last_success), failures: 0 }
        }
        Reach::Down { last_success, failures, .. } => {
            Remote { is_up: false, last_success, failures }
        }
    }
}

/// What was made for the cluster: deployments, the sets of none, the Machines of none. What these made goes with them.
fn descendants(context: &Context, cluster: &str, machines: &[Arc<Machine>]) -> Vec<Descendant> {
    let mut all = Vec::new();
    for one in context.stores.deployments.by_index(index::BY_CLUSTER, cluster) {
        all.push(descendant::<MachineDeployment>(kind::MACHINE_DEPLOYMENT, &*one, false));
    }
    for one in context.stores.machine_sets.by_index(index::BY_CLUSTER, cluster) {
        all.push(descendant::<MachineSet>(kind::MACHINE_SET, &*one, false));
    }
    for one in machines {
        all.push(descendant::<Machine>(kind::MACHINE, &**one, is_control_plane(one)));
    }
    all
}

/// The MachinePools of a cluster, by name, or why they are not known. Where their kind is not served there are none.
async fn machine_pools(context: &Context, cluster: &ObjectKey) -> Result<Vec<String>, String> {
    let kind = GroupVersionKind::gvk(GROUP, &Cluster::version(&()), "MachinePool");
    let resource = ApiResource::from_gvk_with_plural(&kind, "machinepools");
    let client = context.base.client.clone();
    let api = Api::<DynamicObject>::namespaced_with(client, &cluster.namespace, &resource);
    let of_cluster = format!("{}={}", label::CLUSTER_NAME, cluster.name);
    match api.list_metadata(&ListParams::default().labels(&of_cluster)).await {
        Ok(found) => Ok(found.items.into_iter().filter_map(|one| one.metadata.name).collect()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
        Err(error) => Err(format!("failed to list its MachinePools: {error}")),
    }
}

fn descendant<K: kube::Resource>(
    kind: &'static str,
    object: &K,
    is_control_plane: bool,
) -> Descendant {
    let metadata = object.meta();
    Descendant {
        kind,
        name: metadata.name.clone().unwrap_or_default(),
        uid: metadata.uid.clone().unwrap_or_default(),
        // What another controls is that one's to delete; it is only waited for.
        is_deleting: metadata.deletion_timestamp.is_some()
            || metadata.owner_references.iter().flatten().any(|one| one.controller == Some(true)),
        is_control_plane,
    }
}

/// What became of the actions.
struct Executed {
    /// The Cluster after our own writes; `None` when it is gone.
    cluster: Option<Arc<Cluster>>,
    /// The first that failed. It keeps no other back, and nothing from being said; only the Cluster does not go with it.
    failure: Option<(Action, anyhow::Error)>,
}

/// # Errors
/// Fails when the Cluster itself could not be written: nothing is done on a version that may not be the last.
async fn execute(
    context: &Context,
    workloads: &Workloads,
    cluster: &Arc<Cluster>,
    looks: [&Look; 2],
    actions: &[Action],
) -> anyhow::Result<Executed> {
    let base = &context.base;
    let key = ObjectKey::of(&**cluster);
    let api = Api::<Cluster>::namespaced(base.client.clone(), &key.namespace);
    let mut current = Arc::clone(cluster);
    let mut failure = None;
    for action in actions {
        base.require_leadership()?;
        match action {
            Action::PatchCluster(patch) => {
                let written =
                    write::object(&api, &*current, patch.clone(), Precondition::Observed).await?;
                context.stores.clusters.apply_written(written.clone());
                current = Arc::new(written);
            }
            Action::RemoveFinalizer if failure.is_some() => {}
            Action::RemoveFinalizer => {
                let finalizers = current.metadata.finalizers.clone().unwrap_or_default();
                let left: Vec<_> =
                    finalizers.into_iter().filter(|one| one != finalizer::CLUSTER).collect();
                let patch = json!({ "metadata": { "finalizers": left } });
                match write::object(&api, &*current, patch, Precondition::Observed).await {
                    Ok(written) => context.stores.clusters.apply_written(written),
                    Err(WriteError::Gone { .. }) => {}
                    Err(error) => return Err(error.into()),
                }
                workloads.forget(&key);
                return Ok(Executed { cluster: None, failure });
            }
            other => {
                if let Err(error) = perform(context, workloads, &current, looks, other).await {
                    failure.get_or_insert_with(|| (other.clone(), error));
                }
            }
        }
    }
    Ok(Executed { cluster: Some(current), failure })
}

/// What is done to other objects than the Cluster.
async fn perform(
    context: &Context,
    workloads: &Workloads,
    cluster: &Cluster,
    [infrastructure, control_plane]: [&Look; 2],
    action: &Action,
) -> anyhow::Result<()> {
    let base = &context.base;
    let key = ObjectKey::of(cluster);
    let part = |part: &Part| match part {
        Part::Infrastructure => infrastructure,
        Part::ControlPlane => control_plane,
    };
    match action {
        Action::PatchCluster(_) | Action::RemoveFinalizer => {}
        Action::PatchExternal { part: of, patch } => {
            if let Look::Found { provided, object } = part(of) {
                context.externals.patch(provided, object, patch.clone()).await?;
            }
        }
        Action::EnsureKubeconfig { server } => {
            if kubeconfig::ensure(base, cluster, server).await? {
                workloads.want(&key);
            }
        }
        Action::DeleteDescendant { kind, name, uid } => {
            base.require_leave()?;
            delete(context, &key.namespace, kind, name, uid).await?;
        }
        Action::DeleteExternal(of) => {
            base.require_leave()?;
            if let Look::Found { provided, object } = part(of) {
                context.externals.delete(provided, object).await?;
            }
        }
    }
    Ok(())
}

async fn delete(
    context: &Context,
    namespace: &str,
    kind: &str,
    name: &str,
    uid: &str,
) -> anyhow::Result<()> {
    let parameters = DeleteParams {
        preconditions: Some(Preconditions { uid: Some(uid.to_owned()), resource_version: None }),
        ..Default::default()
    };
    let client = context.base.client.clone();
    let deleted = match kind {
        kind::MACHINE_DEPLOYMENT => {
            let api = Api::<MachineDeployment>::namespaced(client, namespace);
            api.delete(name, &parameters).await.map(|_| ())
        }
        kind::MACHINE_SET => {
            let api = Api::<MachineSet>::namespaced(client, namespace);
            api.delete(name, &parameters).await.map(|_| ())
        }
        _ => {
            let api = Api::<Machine>::namespaced(client, namespace);
            api.delete(name, &parameters).await.map(|_| ())
        }
    };
    match deleted.map_err(|error| WriteError::of(format!("{kind} {namespace}/{name}"), error)) {
        Ok(()) | Err(WriteError::Gone { .. } | WriteError::Conflict { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

async fn publish(
    context: &Context,
    cluster: &Cluster,
    decision: &ClusterDecision,
) -> Result<(), WriteError> {
    let base = &context.base;
    let namespace = cluster.metadata.namespace.as_deref().unwrap_or_default();
    let api = Api::<Cluster>::namespaced(base.client.clone(), namespace);
    let stored = cluster.status.as_ref();
    let written =
        write::status(&api, cluster, stored, &decision.status, Precondition::Observed).await?;
    if let Some(written) = written {
        context.stores.clusters.apply_written(written);
    }
    base.announce(&EventTarget::of(cluster), "Reconcile", &decision.announcements);
    Ok(())
}
