//! How do the objects get here? Three lists, read as leniently as possible.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::{Api, Client, Resource};
use machinist_api::{Machine, MachineSet};
use serde::de::DeserializeOwned;

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
    let nodes = match nodes {
        Ok(nodes) => Some(nodes.items),
        Err(error) if is_forbidden(&error) => None,
        Err(error) => return Err(error),
    };
    Ok(Observed::read(sets?.items, machines?.items, nodes))
}

/// An API of untyped objects: one that does not parse must not hide the others.
pub fn api<K: Resource<DynamicType = ()>>(client: &Client, scope: &Scope) -> Api<DynamicObject> {
    let resource = ApiResource::erase::<K>(&());
    match scope {
        Scope::Namespace(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        Scope::All => Api::all_with(client.clone(), &resource),
    }
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
