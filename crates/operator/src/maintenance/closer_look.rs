//! What is asked of an API server only when a maintenance needs it: an idle cluster costs nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use jiff::Timestamp;
use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet},
        core::v1::{Namespace, Node, Pod},
        policy::v1::PodDisruptionBudget,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{Api, Resource, api::ListParams};
use machinist_api::{MachineMaintenance, MaintenancePolicy};
use machinist_core::{
    maintenance::{
        control_plane::{ETCD_PODS, EtcdAnswer},
        daemons,
        workloads::{self, Workload},
    },
    node,
};
use serde::de::DeserializeOwned;

use super::{etcd_health, home::Home, memory::Memory};
use crate::{context::Context, index};

/// Objects in a page. Only one page is in memory as text at a time.
const PAGE_SIZE: u32 = 500;
/// How old a list may be that several passes share.
const KEPT: Duration = Duration::from_secs(10);
/// Where so many namespaces have new pods, one list of all is cheaper.
const NAMESPACES_MAX: usize = 20;

/// Takes in what decides whether work may begin as it is stored, however late the watches are: the
/// records that take places, the policies, whether a person paused everything, and etcd.
pub async fn refresh(context: &Context, memory: &Memory) -> anyhow::Result<()> {
    memory.etcd.forget();
    let stores = &context.stores.maintenance;
    let namespaces = Api::<Namespace>::all(context.client.clone());
    if let Some(namespace) = namespaces.get_opt(&stores.namespace).await? {
        stores.namespaces.apply_written(namespace);
    }
    if !stores.policies.is_absent() {
        let policies = Api::<MaintenancePolicy>::all(context.client.clone());
        for policy in list(&policies, ListParams::default()).await? {
            stores.policies.apply_written(policy);
        }
    }
    for namespace in stores.namespaces_of_records() {
        let api = Api::<MachineMaintenance>::namespaced(context.client.clone(), namespace);
        for record in list(&api, ListParams::default()).await? {
            stores.apply_written(record);
        }
    }
    Ok(())
}

/// Whether every DaemonSet that belongs on a Node runs there.
pub async fn daemons_run(
    context: &Context,
    memory: &Memory,
    home: &Home,
    node: &Node,
) -> anyhow::Result<bool> {
    let all = Api::<DaemonSet>::all(home.client.clone());
    let ask = list(&all, ListParams::default());
    let sets = memory.daemon_sets.get(&context.env, home.key.clone(), KEPT, ask).await?;
    let pods = pods_on(home, node::name(node)).await?;
    Ok(daemons::missing(node, &sets, &pods).is_empty())
}

/// The pods on a Node, as they are now.
pub async fn pods_on(home: &Home, node: &str) -> anyhow::Result<Vec<Pod>> {
    let pods = Api::<Pod>::all(home.client.clone());
    list(&pods, ListParams::default().fields(&format!("spec.nodeName={node}"))).await
}

/// All disruption budgets of a cluster, as they are now.
pub async fn budgets_in(home: &Home) -> anyhow::Result<Vec<PodDisruptionBudget>> {
    list(&Api::<PodDisruptionBudget>::all(home.client.clone()), ListParams::default()).await
}

/// What is known of etcd.
pub struct EtcdSight {
    pub pods: Vec<Pod>,
    /// By the name of the Node; of those that could be reached.
    pub answers: BTreeMap<String, EtcdAnswer>,
}

/// etcd's static pods, wherever the cluster has them, and what its members say.
pub async fn etcd(context: &Context, memory: &Memory) -> anyhow::Result<Arc<EtcdSight>> {
    let ask = async {
        let mut pods = Vec::new();
        for (namespace, key, value) in ETCD_PODS {
            let api = Api::<Pod>::namespaced(context.client.clone(), namespace);
            let of_etcd = ListParams::default().labels(&format!("{key}={value}"));
            pods.extend(list(&api, of_etcd).await?);
        }
        let answers = etcd_health::ask(&context.env, &pods).await;
        Ok(EtcdSight { pods, answers })
    };
    memory.etcd.get(&context.env, (), KEPT, ask).await
}

/// The workloads that had pods on the Node and are not back, in words.
pub async fn workloads_missing(
    context: &Context,
    home: &Home,
    had_to_leave: &[String],
    since: Timestamp,
) -> anyhow::Result<Vec<String>> {
    let namespaces = workloads::namespaces(had_to_leave);
    if namespaces.is_empty() {
        return Ok(Vec::new());
    }
    let pods = match home.key {
        None => {
            let of = |namespace: &&str| context.stores.pods.list_in(namespace);
            namespaces.iter().flat_map(of).collect()
        }
        Some(_) => {
            let found: Vec<Pod> = in_namespaces(home, &namespaces).await?;
            found.into_iter().map(Arc::new).collect::<Vec<_>>()
        }
    };
    let pods: Vec<&Pod> = pods.iter().map(AsRef::as_ref).collect();
    let deployments: Vec<Deployment> = in_namespaces(home, &namespaces).await?;
    let stateful: Vec<StatefulSet> = in_namespaces(home, &namespaces).await?;
    let replicated: Vec<ReplicaSet> = in_namespaces(home, &namespaces).await?;
    let mut known: Vec<Workload<'_>> = Vec::new();
    known.extend(deployments.iter().map(|one| Workload {
        kind: "deployment",
        metadata: &one.metadata,
        makers: sets_of(one, &replicated),
        selector: one.spec.as_ref().map(|spec| &spec.selector),
        wanted: one.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1),
        ready: one.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or(0),
    }));
    known.extend(stateful.iter().map(|one| Workload {
        kind: "statefulset",
        metadata: &one.metadata,
        makers: vec![named("StatefulSet", &one.metadata)],
        selector: one.spec.as_ref().map(|spec| &spec.selector),
        wanted: one.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1),
        ready: one.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or(0),
    }));
    // Those of Deployments are counted there.
    let is_free =
        |one: &&ReplicaSet| one.metadata.owner_references.iter().flatten().next().is_none();
    known.extend(replicated.iter().filter(is_free).map(|one| Workload {
        kind: "replicaset",
        metadata: &one.metadata,
        makers: vec![named("ReplicaSet", &one.metadata)],
        selector: one.spec.as_ref().map(|spec| &spec.selector),
        wanted: one.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1),
        ready: one.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or(0),
    }));
    Ok(workloads::missing(&known, &pods, had_to_leave, since))
}

/// As the store of our own cluster keeps them.
pub fn pruned(pods: Vec<Pod>) -> Vec<Arc<Pod>> {
    let kept = |mut pod: Pod| {
        index::prune_pod(&mut pod);
        Arc::new(pod)
    };
    pods.into_iter().map(kept).collect()
}

/// The ReplicaSets that make the pods of a Deployment.
fn sets_of(deployment: &Deployment, sets: &[ReplicaSet]) -> Vec<String> {
    let is_own = |set: &&ReplicaSet| {
        let mut owners = set.metadata.owner_references.iter().flatten();
        owners.any(|owner| Some(&owner.uid) == deployment.metadata.uid.as_ref())
    };
    sets.iter().filter(is_own).map(|set| named("ReplicaSet", &set.metadata)).collect()
}

fn named(kind: &str, metadata: &ObjectMeta) -> String {
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    workloads::maker(namespace, kind, metadata.name.as_deref().unwrap_or_default())
}

async fn in_namespaces<K>(home: &Home, namespaces: &BTreeSet<&str>) -> anyhow::Result<Vec<K>>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned,
{
    if namespaces.len() > NAMESPACES_MAX {
        return list(&Api::<K>::all(home.client.clone()), ListParams::default()).await;
    }
    let mut found = Vec::new();
    for namespace in namespaces {
        let api = Api::<K>::namespaced(home.client.clone(), namespace);
        found.extend(list(&api, ListParams::default()).await?);
    }
    Ok(found)
}

/// Everything, page by page.
async fn list<K>(api: &Api<K>, parameters: ListParams) -> anyhow::Result<Vec<K>>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let mut parameters = parameters.limit(PAGE_SIZE);
    let mut found = Vec::new();
    loop {
        let page = api
            .list(&parameters)
            .await
            .with_context(|| format!("failed to list {}", K::plural(&())))?;
        found.extend(page.items);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => parameters = parameters.continue_token(&token),
            None => return Ok(found),
        }
    }
}
