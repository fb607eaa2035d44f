//! The NodeLink controller: gives each Node what its Machine wants on it, and deletes one that outlived
//! Machine and instance. (The other direction, the Machine's nodeRef, is part of the Machine's own
//! status.)

use std::sync::Arc;

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use machinist_api::Machine;
use machinist_core::{
    cloud::{Instance, InstanceId},
    node,
    nodelink::{Action, NodeChange, Observed, decide, machine_matches_node},
};
use serde_json::{Value, json};

use crate::{
    context::{Context, Stores},
    engine::{queue::Outcome, store::ObjectKey},
    index,
    machine::{execute::delete_node, superseded_or_failed},
    write::{self, Precondition},
};

pub const NAME: &str = "nodelink";

pub async fn reconcile(context: &Context, key: ObjectKey) -> Outcome {
    let Some(node) = context.stores.nodes.get(&key) else {
        context.note_waiting(NAME, &key, &[]);
        return Outcome::Settled;
    };
    let machines = observe(&context.stores, &node);
    let instance = instance_of(context, &node);
    let observed = Observed {
        node: &node,
        machines: machines.iter().map(AsRef::as_ref).collect(),
        instance: instance.as_deref(),
    };
    let decision = decide(&observed);
    context.note_waiting(NAME, &key, &decision.waiting);
    for action in &decision.actions {
        if let Err(error) = execute(context, &node, action).await {
            return superseded_or_failed(error);
        }
    }
    Outcome::Settled
}

fn observe(stores: &Stores, node: &Node) -> Vec<Arc<Machine>> {
    let mut machines = Vec::new();
    for instance in index::instance_of_node(node) {
        machines.extend(stores.machines.by_index(index::MACHINE_BY_INSTANCE, &instance));
    }
    if machines.is_empty()
        && let Some(address) = node::internal_ips(node).first()
    {
        machines.extend(stores.machines.by_index(index::MACHINE_BY_INTERNAL_IP, address));
    }
    machines.retain(|machine| machine_matches_node(machine, node));
    machines
}

/// The instance behind a Node, in whichever account and region it is.
fn instance_of(context: &Context, node: &Node) -> Option<Arc<Instance>> {
    let id = node::provider_id(node).and_then(InstanceId::from_provider_id)?;
    let clouds = context.clouds.all();
    clouds.iter().find_map(|(_, access)| access.view.snapshot().get(&id).cloned())
}

async fn execute(context: &Context, node: &Node, action: &Action) -> anyhow::Result<()> {
    match action {
        Action::Add(change) => add(context, node, change).await,
        Action::Delete => {
            let name = node::name(node);
            tracing::info!(node = name, "deleting a node that outlived its machine and instance");
            delete_node(context, name, node::uid(node)).await
        }
    }
}

async fn add(context: &Context, node: &Node, change: &NodeChange) -> anyhow::Result<()> {
    let api = Api::<Node>::all(context.client.clone());
    // Labels and annotations are set key by key, whatever else the Node's kubelet writes meanwhile;
    // it writes often while it joins. The list of taints is replaced whole, so it must be as observed.
    let precondition = match change.taints {
        None => Precondition::SameObject,
        Some(_) => Precondition::Observed,
    };
    let written = write::object(&api, node, patch_of(change), precondition).await?;
    context.stores.nodes.apply_written(written);
    Ok(())
}

fn patch_of(change: &NodeChange) -> Value {
    let mut patch = json!({});
    if !change.labels.is_empty() {
        patch["metadata"]["labels"] = json!(change.labels);
    }
    if !change.annotations.is_empty() {
        patch["metadata"]["annotations"] = json!(change.annotations);
    }
    if let Some(taints) = &change.taints {
        patch["spec"]["taints"] = json!(taints);
    }
    patch
}
