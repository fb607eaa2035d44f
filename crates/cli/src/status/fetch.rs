//! How do the objects get here? Three lists, read as leniently as possible.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::api::{ApiResource, DynamicObject, ListParams, ObjectList};
use kube::{Api, Client, Resource};
use machinist_api::{Machine, MachineSet, cluster_api, names::DEFAULT_NAMESPACE};
use serde::de::DeserializeOwned;

use crate::cluster_api::{ClusterApi, is_served};
use crate::snapshot::live::{Place, raw};

/// Which machines are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    Namespace(String),
    All,
}

/// What was seen of the cluster, once.
#[derive(Debug, Default)]
pub struct Observed {
    pub sets: Vec<MachineSet>,
    pub machines: Vec<Machine>,
    /// Objects that do not parse are shown all the same (Rule 12).
    pub unreadable: Vec<Unreadable>,
    /// None where this user may not read Nodes.
    pub nodes: Option<Vec<Node>>,
    /// Whether the cluster has machines of Cluster API too.
    pub has_cluster_api: bool,
}

/// An object that is not what its kind says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    pub kind: &'static str,
    pub namespace: String,
    pub name: String,
    pub created_at: Option<Timestamp>,
    pub problem: String,
}

pub async fn fetch(client: &Client, scope: &Scope) -> Result<Observed, kube::Error> {
    let everything = ListParams::default();
    let set_objects = api::<MachineSet>(client, scope);
    let machine_objects = api::<Machine>(client, scope);
    let node_objects = Api::<Node>::all(client.clone());
    let (sets, machines, nodes) = tokio::join!(
        set_objects.list(&everything),
        machine_objects.list(&everything),
        node_objects.list(&everything),
    );
    let of_cluster_api = fetch_cluster_api(client, scope).await?;
    let is_other = !of_cluster_api.machines.is_empty();
    // A cluster may have machines of Cluster API only.
    let or_none = |listed: Result<ObjectList<DynamicObject>, kube::Error>| match listed {
        Err(kube::Error::Api(status)) if status.code == 404 && is_other => Ok(Vec::new()),
        listed => listed.map(|listed| listed.items),
    };
    let nodes = match nodes {
        Ok(nodes) => Some(nodes.items),
        Err(error) if is_forbidden(&error) => None,
        Err(error) => return Err(error),
    };
    let mut observed = Observed::read(or_none(sets)?, or_none(machines)?, nodes);
    observed.add(of_cluster_api);
    Ok(observed)
}

/// The objects of Cluster API as they came.
#[derive(Debug, Default)]
pub struct ClusterApiObjects {
    pub clusters: Vec<DynamicObject>,
    pub machines: Vec<DynamicObject>,
    pub sets: Vec<DynamicObject>,
    pub deployments: Vec<DynamicObject>,
}

/// They live in many namespaces, and are shown with the others; only where another namespace is chosen, those of that.
pub fn place_of_cluster_api(scope: &Scope) -> Scope {
    match scope {
        Scope::Namespace(namespace) if namespace == DEFAULT_NAMESPACE => Scope::All,
        chosen => chosen.clone(),
    }
}

async fn fetch_cluster_api(
    client: &Client,
    scope: &Scope,
) -> Result<ClusterApiObjects, kube::Error> {
    if !is_served(client).await {
        return Ok(ClusterApiObjects::default());
    }
    let scope = place_of_cluster_api(scope);
    let place = match &scope {
        Scope::Namespace(namespace) => Place::Namespace(namespace),
        Scope::All => Place::Cluster,
    };
    let (clusters, machines, sets, deployments) = tokio::join!(
        raw::<cluster_api::Cluster>(client, place),
        raw::<cluster_api::Machine>(client, place),
        raw::<cluster_api::MachineSet>(client, place),
        raw::<cluster_api::MachineDeployment>(client, place),
    );
    // Whoever may not read them sees the others.
    if [&clusters, &machines, &sets, &deployments].iter().any(|one| is_forbidden_in(one)) {
        return Ok(ClusterApiObjects::default());
    }
    let (clusters, machines) = (clusters?, machines?);
    Ok(ClusterApiObjects { clusters, machines, sets: sets?, deployments: deployments? })
}

/// An API of untyped objects: one that does not parse must not hide the others.
pub fn api<K: Resource<DynamicType = ()>>(client: &Client, scope: &Scope) -> Api<DynamicObject> {
    let resource = ApiResource::erase::<K>(&());
    match scope {
        Scope::Namespace(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        Scope::All => Api::all_with(client.clone(), &resource),
    }
}

fn is_forbidden_in<T>(answer: &Result<T, kube::Error>) -> bool {
    answer.as_ref().err().is_some_and(is_forbidden)
}

pub fn is_forbidden(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 403)
}

impl Observed {
    pub fn read(
        sets: impl IntoIterator<Item = DynamicObject>,
        machines: impl IntoIterator<Item = DynamicObject>,
        nodes: Option<Vec<Node>>,
    ) -> Self {
        let mut observed = Self { nodes, ..Self::default() };
        for object in sets {
            match parse("MachineSet", object) {
                Ok(set) => observed.sets.push(set),
                Err(unreadable) => observed.unreadable.push(unreadable),
            }
        }
        for object in machines {
            match parse("Machine", object) {
                Ok(machine) => observed.machines.push(machine),
                Err(unreadable) => observed.unreadable.push(unreadable),
            }
        }
        observed
    }

    /// Takes in the machines of Cluster API, with their Nodes as far as they tell of them.
    pub fn add(&mut self, objects: ClusterApiObjects) {
        self.has_cluster_api |= !objects.machines.is_empty();
        let mut read = ClusterApi::default();
        self.take("Cluster", objects.clusters, &mut read.clusters);
        self.take("Machine", objects.machines, &mut read.machines);
        self.take("MachineSet", objects.sets, &mut read.sets);
        self.take("MachineSet", objects.deployments, &mut read.deployments);
        let seen = read.seen();
        self.machines.extend(seen.machines);
        self.sets.extend(seen.pools);
        if let Some(nodes) = &mut self.nodes {
            nodes.extend(seen.nodes);
        }
    }

    fn take<K: DeserializeOwned>(
        &mut self,
        kind: &'static str,
        objects: Vec<DynamicObject>,
        to: &mut Vec<K>,
    ) {
        for object in objects {
            match parse(kind, object) {
                Ok(object) => to.push(object),
                Err(unreadable) => self.unreadable.push(unreadable),
            }
        }
    }
}

fn parse<K: DeserializeOwned>(kind: &'static str, object: DynamicObject) -> Result<K, Unreadable> {
    let metadata = object.metadata.clone();
    let parsed = serde_json::to_value(object).and_then(serde_json::from_value);
    parsed.map_err(|error| Unreadable {
        kind,
        namespace: metadata.namespace.unwrap_or_default(),
        name: metadata.name.unwrap_or_default(),
        created_at: metadata.creation_timestamp.map(|time| time.0),
        problem: error.to_string(),
    })
}
