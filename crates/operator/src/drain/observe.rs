//! What is known of a Node that is to be emptied: its pods, their budgets, the control plane.

use std::{collections::BTreeSet, sync::Arc};

use k8s_openapi::api::{
    apps::v1::DaemonSet,
    core::v1::{Node, Pod},
    policy::v1::PodDisruptionBudget,
};
use kube::{Api, Client, api::ListParams};
use machinist_api::Machine;
use machinist_core::{
    drain::{
        Attempts, Observed,
        decide::{daemon_set_of, must_go},
    },
    node,
};

use super::memory::Memory;
use crate::{context::Context, engine::store::ObjectKey, index};

pub struct Observation {
    machine: Arc<Machine>,
    node: Option<Arc<Node>>,
    cordoned_control_plane: Option<String>,
    pods: Vec<Arc<Pod>>,
    missing_daemon_sets: Vec<(String, String)>,
    budgets: Vec<Arc<PodDisruptionBudget>>,
    attempts: Attempts,
}

impl Observation {
    pub fn observed(&self) -> Observed<'_> {
        Observed {
            machine: &self.machine,
            node: self.node.as_deref(),
            cordoned_control_plane: self.cordoned_control_plane.as_deref(),
            pods: self.pods.iter().map(AsRef::as_ref).collect(),
            missing_daemon_sets: self
                .missing_daemon_sets
                .iter()
                .map(|(namespace, name)| (namespace.as_str(), name.as_str()))
                .collect(),
            budgets: self.budgets.iter().map(AsRef::as_ref).collect(),
            attempts: &self.attempts,
        }
    }
}

pub async fn observe(
    context: &Context,
    memory: &Memory,
    machine: &Arc<Machine>,
) -> Result<Observation, kube::Error> {
    let key = ObjectKey::of(&**machine);
    let node = match node_of(context, machine) {
        Some(node) => as_it_is(context, node).await?,
        None => unseen_node(context, machine).await?,
    };
    let pods = match &node {
        Some(node) => pods_on(context, node).await?,
        None => Vec::new(),
    };
    let is_cordoned = node.as_ref().is_some_and(|node| node::is_unschedulable(node));
    let missing_daemon_sets = match is_cordoned && !pods.iter().any(|pod| must_go(pod)) {
        true => missing_daemon_sets(&context.client, &pods).await?,
        false => Vec::new(),
    };
    memory.change(&key, |attempts| {
        attempts.retain(|uid| pods.iter().any(|pod| pod.metadata.uid.as_deref() == Some(uid)));
    });
    let mut budgets = Vec::new();
    let mut namespaces: Vec<_> =
        pods.iter().filter_map(|pod| pod.metadata.namespace.as_deref()).collect();
    namespaces.dedup();
    for namespace in namespaces {
        budgets.extend(context.stores.budgets.list_in(namespace));
    }
    Ok(Observation {
        machine: Arc::clone(machine),
        cordoned_control_plane: node.as_ref().and_then(|node| other_cordoned(context, node)),
        node,
        pods,
        missing_daemon_sets,
        budgets,
        attempts: memory.attempts(&key),
    })
}

/// Whether the Machine's Node is one of the control plane, of which only one is drained at a time.
pub fn is_control_plane(context: &Context, machine: &Machine) -> bool {
    node_of(context, machine).is_some_and(|node| node::is_control_plane(&node))
}

/// The Node as the watch shows it. When nothing seems to be left on a cordoned one the API server is asked:
/// somebody may have lifted the cordon of another, and pods would come while the instance goes (S8).
async fn as_it_is(context: &Context, node: Arc<Node>) -> Result<Option<Arc<Node>>, kube::Error> {
    let watched = context.stores.pods.by_index(index::POD_BY_NODE, node::name(&node));
    if !node::is_unschedulable(&node) || watched.iter().any(|pod| must_go(pod)) {
        return Ok(Some(node));
    }
    let stored = Api::<Node>::all(context.client.clone()).get_opt(node::name(&node)).await?;
    Ok(stored.filter(|stored| node::uid(stored) == node::uid(&node)).map(Arc::new))
}

/// The pods of a Node as the watch shows them. When nothing seems to be left on a cordoned Node the
/// API server is asked: the watch may be behind a pod that was bound just before the cordon, and the
/// instance goes next (S8).
pub async fn pods_on(context: &Context, node: &Node) -> Result<Vec<Arc<Pod>>, kube::Error> {
    let watched = context.stores.pods.by_index(index::POD_BY_NODE, node::name(node));
    if !node::is_unschedulable(node) || watched.iter().any(|pod| must_go(pod)) {
        return Ok(watched);
    }
    let selector = format!("spec.nodeName={}", node::name(node));
    let listed = Api::<Pod>::all(context.client.clone())
        .list(&ListParams::default().fields(&selector))
        .await?;
    Ok(listed.items.into_iter().map(Arc::new).collect())
}

/// The DaemonSets of these pods that do not exist. Only asked for when nothing else is left, so once for
/// each at the end of a drain: nobody needs a watch of all DaemonSets for that.
pub async fn missing_daemon_sets(
    client: &Client,
    pods: &[Arc<Pod>],
) -> Result<Vec<(String, String)>, kube::Error> {
    let owners: BTreeSet<_> = pods.iter().filter_map(|pod| daemon_set_of(pod)).collect();
    let mut missing = Vec::new();
    for (namespace, name) in owners {
        let api = Api::<DaemonSet>::namespaced(client.clone(), namespace);
        match api.get(name).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if is_missing(&status, name) => {
                missing.push((namespace.to_owned(), name.to_owned()));
            }
            // Whoever does not let us look has its pods left alone, as those of a set that exists.
            Err(kube::Error::Api(status)) if matches!(status.code, 403 | 404) => {
                tracing::warn!(namespace, name, code = status.code, "the DaemonSet cannot be read");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(missing)
}

/// Whether it is the object that is not there, and not the kind.
fn is_missing(status: &kube::core::Status, name: &str) -> bool {
    let details = status.details.as_ref();
    status.code == 404 && details.is_some_and(|details| details.name == name)
}

/// The linked Node, or the one of the Machine's instance where no link was made yet. A Node of the
/// same name and another uid is somebody else's.
fn node_of(context: &Context, machine: &Machine) -> Option<Arc<Node>> {
    let nodes = &context.stores.nodes;
    let reference = machine.status.as_ref().and_then(|status| status.node_ref.as_ref());
    if let Some(reference) = reference {
        let node = nodes.get(&ObjectKey::cluster_wide(reference.name.as_deref()?))?;
        let is_same = reference.uid.is_none() || reference.uid == node.metadata.uid;
        return is_same.then_some(node);
    }
    let instance = index::instance_of_machine(machine).pop()?;
    nodes.by_index(index::NODE_BY_INSTANCE, &instance).into_iter().next()
}

/// The Node where the watch does not show it: the linked one, or the one with the name that the provider
/// gave the instance. A drain without a Node is over at once and the instance goes next, so the API
/// server is asked whether there is really none (S8).
async fn unseen_node(
    context: &Context,
    machine: &Machine,
) -> Result<Option<Arc<Node>>, kube::Error> {
    let Some(status) = &machine.status else { return Ok(None) };
    let linked = status.node_ref.as_ref();
    let named = status.addresses.iter().find(|address| address.type_ == "InternalDNS");
    let name = linked
        .and_then(|node| node.name.as_deref())
        .or_else(|| named.map(|address| address.address.as_str()));
    let Some(name) = name else { return Ok(None) };
    let node = Api::<Node>::all(context.client.clone()).get_opt(name).await?;
    let is_its_own = |node: &Node| match linked.and_then(|linked| linked.uid.as_ref()) {
        Some(uid) => node.metadata.uid.as_ref() == Some(uid),
        None => index::instance_of_node(node) == index::instance_of_machine(machine),
    };
    Ok(node.filter(is_its_own).map(Arc::new))
}

fn other_cordoned(context: &Context, node: &Node) -> Option<String> {
    if !node::is_control_plane(node) {
        return None;
    }
    let others = context.stores.nodes.list();
    others
        .iter()
        .find(|other| {
            node::is_control_plane(other)
                && node::is_unschedulable(other)
                && node::uid(other) != node::uid(node)
        })
        .map(|other| node::name(other).to_owned())
}
