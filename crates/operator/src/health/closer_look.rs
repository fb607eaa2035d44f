//! What is so at this moment? Asked of the API server itself before machines are taken away: a watch may
//! be behind without knowing it, and a share that is counted in the past is no share (S20).

use std::{collections::BTreeMap, fmt::Debug, sync::Arc};

use anyhow::Context as _;
use k8s_openapi::api::core::v1::Node;
use kube::{Api, Resource, api::ListParams};
use machinist_api::Machine;
use serde::de::DeserializeOwned;

use super::observe::LinkedMachine;
use crate::{context::Context, engine::guarded::Guarded, index};

/// Objects in a page. Only one page is in memory as text at a time.
const PAGE_SIZE: u32 = 500;

/// Every Machine of a namespace with the Node that it is linked to.
pub async fn machines(context: &Context, namespace: &str) -> anyhow::Result<Vec<LinkedMachine>> {
    let mut nodes: BTreeMap<String, Arc<Node>> = BTreeMap::new();
    list(&Api::<Guarded<Node>>::all(context.client.clone()), |mut node: Node| {
        index::prune_node(&mut node);
        nodes.insert(node.metadata.name.clone().unwrap_or_default(), Arc::new(node));
    })
    .await?;
    let mut machines = Vec::new();
    let api = Api::<Guarded<Machine>>::namespaced(context.client.clone(), namespace);
    list(&api, |machine: Machine| machines.push(Arc::new(machine))).await?;
    let linked = machines.into_iter().map(|machine| {
        let node = linked_node(&machine, &nodes);
        (machine, node)
    });
    Ok(linked.collect())
}

fn linked_node(machine: &Machine, nodes: &BTreeMap<String, Arc<Node>>) -> Option<Arc<Node>> {
    let reference = machine.status.as_ref()?.node_ref.as_ref()?;
    let node = nodes.get(reference.name.as_deref()?)?;
    let is_same = reference.uid.is_none() || reference.uid == node.metadata.uid;
    is_same.then(|| Arc::clone(node))
}

/// Hands over every object that can be read; of the others the watch tells.
async fn list<K>(api: &Api<Guarded<K>>, mut take: impl FnMut(K)) -> anyhow::Result<()>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let mut parameters = ListParams::default().limit(PAGE_SIZE);
    loop {
        let page = api
            .list(&parameters)
            .await
            .with_context(|| format!("failed to list {}", K::plural(&())))?;
        page.items.into_iter().filter_map(|object| object.0.ok()).for_each(&mut take);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => parameters = parameters.continue_token(&token),
            None => return Ok(()),
        }
    }
}
