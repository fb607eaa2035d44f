//! What is known of a Machine of Cluster API: its owners, its providers' objects, its Node, and what is on that.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, PoisonError},
    time::Duration,
};

use k8s_openapi::api::{
    core::v1::{Namespace, Node, PersistentVolume, Pod},
    policy::v1::PodDisruptionBudget,
    storage::v1::VolumeAttachment,
};
use kube::{
    Api, Client,
    api::{DynamicObject, ListParams},
};
use machinist_api::cluster_api::{
    Cluster, ContractRef, GROUP, Machine, MachineDeployment, MachineDrainRule, MachineSet,
    names::{kind, label},
};
use machinist_core::{
    cluster_api::{
        contract::{GroupKind, ownership, reading},
        machine::{
            Connection, Observed, Reference,
            deleting::{self, NodeSteps},
            draining::{Draining, needs_namespaces},
            node::to_take_down,
            observed::{NodeLookup, is_control_plane},
            volumes::{Volumes, attached, csi_name},
        },
    },
    drain::{Attempts, decide::must_go},
    node,
};

use super::{
    Parts,
    emptying::{Tools, View},
};
use crate::{
    cluster_api::{
        context::{Context, Stores},
        externals::Provided,
        index,
        workloads::{NODE_BY_PROVIDER_ID, Reach},
    },
    drain::observe::missing_daemon_sets,
    engine::store::ObjectKey,
};

/// The longest wait for the first list of a Node's pods.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);

/// An object of a provider, as it was found.
pub enum Look {
    NotDefined,
    Unreadable(String),
    Missing,
    Found { provided: Arc<Provided>, object: Arc<DynamicObject> },
}

impl Look {
    pub fn reference(&self) -> Reference<'_> {
        match self {
            Self::NotDefined => Reference::NotDefined,
            Self::Unreadable(why) => Reference::Unreadable(why),
            Self::Missing => Reference::Missing,
            Self::Found { provided, object } => {
                Reference::Found { object, contract: provided.served.contract }
            }
        }
    }
}

pub struct Observation {
    pub machine: Arc<Machine>,
    pub cluster: Arc<Cluster>,
    set: Option<Arc<MachineSet>>,
    deployment: Option<Arc<MachineDeployment>>,
    missing_owner: Option<String>,
    pub bootstrap: Look,
    pub infrastructure: Look,
    control_plane: Look,
    has_active_control_plane: bool,
    pub reach: Reach,
    nodes: Vec<Arc<Node>>,
    namesakes: Vec<(String, bool)>,
    emptying: Emptying,
}

/// What is known of what is on the Node.
enum Emptying {
    NotNow,
    Unread(String),
    Read(Box<Contents>),
}

impl Emptying {
    fn contents(&self) -> Option<&Contents> {
        match self {
            Self::Read(contents) => Some(contents),
            Self::NotNow | Self::Unread(_) => None,
        }
    }
}

/// What is on a Node that is being emptied.
struct Contents {
    node: Arc<Node>,
    pods: Vec<Arc<Pod>>,
    missing_daemon_sets: Vec<(String, String)>,
    budgets: Vec<Arc<PodDisruptionBudget>>,
    attempts: Attempts,
    rules: Vec<Arc<MachineDrainRule>>,
    namespaces: BTreeMap<String, BTreeMap<String, String>>,
    attachments: Vec<Arc<VolumeAttachment>>,
    /// `None` while the pods are not gone yet.
    volumes: Option<Vec<PersistentVolume>>,
}

impl Observation {
    pub fn observed(&self) -> Observed<'_> {
        Observed {
            machine: &self.machine,
            cluster: &self.cluster,
            set: self.set.as_deref(),
            deployment: self.deployment.as_deref(),
            missing_owner: self.missing_owner.clone(),
            bootstrap: self.bootstrap.reference(),
            infrastructure: self.infrastructure.reference(),
            control_plane: self.control_plane.reference(),
            has_active_control_plane: self.has_active_control_plane,
            connection: self.connection(),
            namesakes: self.namesakes.clone(),
            draining: self.emptying.contents().map(Contents::draining),
            volumes: self.emptying.contents().and_then(Contents::volumes),
            unread: match &self.emptying {
                Emptying::Unread(why) => Some(why),
                Emptying::NotNow | Emptying::Read(_) => None,
            },
        }
    }

    fn connection(&self) -> Connection<'_> {
        match &self.reach {
            Reach::Down { why, last_success, failures } => {
                Connection::Down { why, last_success: *last_success, failures: *failures }
            }
            Reach::Up { last_success, .. } => Connection::Up {
                last_success: *last_success,
                nodes: match self.nodes.as_slice() {
                    [] => NodeLookup::NotFound,
                    [one] => NodeLookup::Found(one),
                    many => NodeLookup::Ambiguous(many.iter().map(|one| node::name(one)).collect()),
                },
            },
        }
    }
}

impl Contents {
    fn draining(&self) -> Draining<'_> {
        let missing = self.missing_daemon_sets.iter();
        Draining {
            node: &self.node,
            pods: self.pods.iter().map(AsRef::as_ref).collect(),
            missing_daemon_sets: missing
                .map(|(namespace, name)| (namespace.as_str(), name.as_str()))
                .collect(),
            budgets: self.budgets.iter().map(AsRef::as_ref).collect(),
            attempts: &self.attempts,
            rules: self.rules.iter().map(AsRef::as_ref).collect(),
            namespaces: &self.namespaces,
        }
    }

    fn volumes(&self) -> Option<Volumes<'_>> {
        let volumes = self.volumes.as_ref()?;
        Some(Volumes {
            node: &self.node,
            attachments: self.attachments.iter().map(AsRef::as_ref).collect(),
            volumes: volumes.iter().collect(),
        })
    }
}

pub async fn observe(
    context: &Context,
    parts: &Parts,
    machine: &Arc<Machine>,
    cluster: &Arc<Cluster>,
) -> Observation {
    let key = ObjectKey::of(&**machine);
    let stores = &context.stores;
    let is_deleting = machine.metadata.deletion_timestamp.is_some();
    let (set, missing_owner) = owning_set(context, machine);
    let deployment = set.as_ref().and_then(|set| {
        let name = set.metadata.labels.as_ref()?.get(label::DEPLOYMENT_NAME)?;
        stores.deployments.get(&ObjectKey::new(&key.namespace, name))
    });
    let (infrastructure, bootstrap) = futures::join!(
        look(context, &key.namespace, Some(&machine.spec.infrastructure_ref)),
        look(context, &key.namespace, machine.spec.bootstrap.config_ref.as_ref()),
    );
    let of_cluster = index::cluster(&key.namespace, &machine.spec.cluster_name);
    let (control_plane, has_active_control_plane) = match is_deleting {
        false => (Look::NotDefined, true),
        true => {
            let reference = cluster.spec.control_plane_ref.as_ref();
            let machines = stores.machines.by_index(index::BY_CLUSTER, &of_cluster);
            let is_active = |one: &Arc<Machine>| {
                is_control_plane(one) && one.metadata.deletion_timestamp.is_none()
            };
            (look(context, &key.namespace, reference).await, machines.iter().any(is_active))
        }
    };
    let provider_id = provider_id(machine, &infrastructure);
    let cluster_key = ObjectKey::new(&key.namespace, &machine.spec.cluster_name);
    let reach = parts.workloads.reach(&cluster_key);
    let nodes = nodes(stores, machine, provider_id.as_deref(), &reach);
    let mut namesakes = Vec::new();
    if let Some(id) = &provider_id {
        let value = format!("{of_cluster}/{id}");
        let same = stores.machines.by_index(index::MACHINE_BY_PROVIDER_ID, &value);
        namesakes = same
            .iter()
            .filter(|one| one.metadata.uid != machine.metadata.uid)
            .map(|one| (one.metadata.name.clone().unwrap_or_default(), holds_node(one, machine)))
            .collect();
    }
    let mut observation = Observation {
        machine: Arc::clone(machine),
        cluster: Arc::clone(cluster),
        set,
        deployment,
        missing_owner,
        bootstrap,
        infrastructure,
        control_plane,
        has_active_control_plane,
        reach,
        nodes,
        namesakes,
        emptying: Emptying::NotNow,
    };
    if is_deleting {
        let steps = deleting::node_steps(&observation.observed(), context.base.env.now());
        observation.emptying = look_into(context, parts, &observation, &cluster_key, steps).await;
    }
    observation
}

/// The Nodes that are the Machine's.
fn nodes(
    stores: &Stores,
    machine: &Machine,
    provider_id: Option<&str>,
    reach: &Reach,
) -> Vec<Arc<Node>> {
    let Reach::Up { nodes, .. } = reach else { return Vec::new() };
    let found = provider_id.map(|id| nodes.by_index(NODE_BY_PROVIDER_ID, id)).unwrap_or_default();
    if machine.metadata.deletion_timestamp.is_none() {
        return found;
    }
    let status = machine.status.as_ref();
    let linked = status.and_then(|status| status.node_ref.as_ref());
    let linked = linked.and_then(|one| nodes.get(&ObjectKey::cluster_wide(one.name.as_str())));
    let is_anothers = linked.as_ref().is_some_and(|node| has_another(stores, machine, node));
    to_take_down(found, linked, is_anothers)
}

/// Whether another Machine of the cluster is linked to the Node, or has its providerID.
fn has_another(stores: &Stores, machine: &Machine, node: &Node) -> bool {
    let namespace = machine.metadata.namespace.as_deref().unwrap_or_default();
    let of = index::cluster(namespace, &machine.spec.cluster_name);
    let name = node::name(node);
    let mut others = stores.machines.by_index(index::MACHINE_BY_NODE, &format!("{of}/{name}"));
    if let Some(id) = node::provider_id(node) {
        let value = format!("{of}/{id}");
        others.extend(stores.machines.by_index(index::MACHINE_BY_PROVIDER_ID, &value));
    }
    others.iter().any(|one| one.metadata.uid != machine.metadata.uid)
}

/// Whether another Machine with the same providerID has the Node, or comes first where none has.
fn holds_node(other: &Machine, machine: &Machine) -> bool {
    let is_linked = |one: &Machine| one.status.as_ref().is_some_and(|it| it.node_ref.is_some());
    let age = |one: &Machine| {
        let created = one.metadata.creation_timestamp.as_ref().map(|time| time.0);
        (created, one.metadata.name.clone())
    };
    is_linked(other) || (!is_linked(machine) && age(other) < age(machine))
}

fn provider_id(machine: &Machine, infrastructure: &Look) -> Option<String> {
    // A machine that goes before its provider was done may have joined all the same.
    let is_deleting = machine.metadata.deletion_timestamp.is_some();
    let told = match infrastructure {
        Look::Found { object, provided } => reading::provider_id(&object.data).filter(|_| {
            is_deleting || reading::is_provisioned(&object.data, provided.served.contract)
        }),
        _ => None,
    };
    told.map(str::to_owned).or_else(|| machine.spec.provider_id.clone()).filter(|id| !id.is_empty())
}

fn owning_set(context: &Context, machine: &Machine) -> (Option<Arc<MachineSet>>, Option<String>) {
    let owners = machine.metadata.owner_references.as_deref().unwrap_or_default();
    let owner = ownership::controller_of(owners)
        .filter(|one| ownership::group_of(one) == GROUP && one.kind == kind::MACHINE_SET);
    let Some(owner) = owner else { return (None, None) };
    let namespace = machine.metadata.namespace.as_deref().unwrap_or_default();
    let set = context.stores.machine_sets.get(&ObjectKey::new(namespace, &owner.name));
    match set.filter(|set| set.metadata.uid.as_deref() == Some(owner.uid.as_str())) {
        Some(set) => (Some(set), None),
        // Its Machines go with it.
        None if machine.metadata.deletion_timestamp.is_some() => (None, None),
        None => (None, Some(format!("MachineSet {} does not exist", owner.name))),
    }
}

pub async fn look(context: &Context, namespace: &str, reference: Option<&ContractRef>) -> Look {
    let Some(reference) = reference else { return Look::NotDefined };
    let kind = GroupKind::new(&reference.api_group, &reference.kind);
    match context.externals.find(&kind, namespace, &reference.name).await {
        Err(error) => Look::Unreadable(format!("{:#}", anyhow::Error::new(error))),
        Ok(found) => match found.object {
            None => Look::Missing,
            Some(object) => Look::Found { provided: found.provided, object },
        },
    }
}

/// What is on the Node, as far as the steps to come need it. What cannot be read is said, and keeps nothing else from
/// being told.
async fn look_into(
    context: &Context,
    parts: &Parts,
    observation: &Observation,
    cluster: &ObjectKey,
    steps: NodeSteps,
) -> Emptying {
    let (Reach::Up { client, .. }, [node]) = (&observation.reach, observation.nodes.as_slice())
    else {
        return Emptying::NotNow;
    };
    if steps == NodeSteps::default() {
        return Emptying::NotNow;
    }
    match contents(context, parts, (&observation.machine, node, client), cluster, steps).await {
        Ok(contents) => Emptying::Read(Box::new(contents)),
        Err(error) => {
            let key = ObjectKey::of(&*observation.machine);
            tracing::warn!(machine = %key, error = format!("{error:#}"), "cannot read what is on the node");
            Emptying::Unread(format!("{error:#}"))
        }
    }
}

async fn contents(
    context: &Context,
    parts: &Parts,
    (machine, node, client): (&Arc<Machine>, &Arc<Node>, &Client),
    cluster: &ObjectKey,
    steps: NodeSteps,
) -> anyhow::Result<Contents> {
    let key = ObjectKey::of(&**machine);
    let tools = Tools {
        client,
        env: &context.base.env,
        metrics: &context.base.metrics,
        spawner: &parts.spawner,
        wake: &parts.wake,
    };
    let view = parts.memory.emptying.view(&key, cluster, node::name(node), &tools);
    let listed = async {
        view.pods.synced().await;
        view.cluster.attachments.synced().await;
    };
    if tokio::time::timeout(LIST_TIMEOUT, listed).await.is_err() {
        let which = if view.pods.is_synced() { "volume attachments" } else { "pods" };
        anyhow::bail!("its {which} were not listed within {} s", LIST_TIMEOUT.as_secs());
    }
    let mut pods = view.pods.list();
    let mut daemons = Vec::new();
    let mut volumes = None;
    let attachments = view.cluster.attachments.list();
    if node::is_unschedulable(node) && !pods.iter().any(|pod| must_go(pod)) {
        // The watch may be behind a pod that was bound just before the cordon, and the machine goes next.
        pods = listed_now(client, node::name(node)).await?;
        daemons = missing_daemon_sets(client, &pods).await?;
    }
    if steps.detach && (!steps.drain || node::is_unschedulable(node)) {
        volumes = Some(attached_volumes(client, node, &attachments).await?);
    }
    let rules = context.stores.drain_rules.list_in(&key.namespace);
    let namespaces = namespaces(client, &view, &pods, &rules).await?;
    parts.memory.drains.change(&key, |attempts| {
        attempts.retain(|uid| pods.iter().any(|pod| pod.metadata.uid.as_deref() == Some(uid)));
    });
    Ok(Contents {
        node: Arc::clone(node),
        pods,
        missing_daemon_sets: daemons,
        budgets: view.cluster.budgets.list(),
        attempts: parts.memory.drains.attempts(&key),
        rules,
        namespaces,
        attachments,
        volumes,
    })
}

async fn listed_now(client: &Client, node: &str) -> Result<Vec<Arc<Pod>>, kube::Error> {
    let selector = format!("spec.nodeName={node}");
    let api = Api::<Pod>::all(client.clone());
    let listed = api.list(&ListParams::default().fields(&selector)).await?;
    Ok(listed.items.into_iter().map(Arc::new).collect())
}

/// The labels of the pods' namespaces, where a rule asks for them.
async fn namespaces(
    client: &Client,
    view: &View,
    pods: &[Arc<Pod>],
    rules: &[Arc<MachineDrainRule>],
) -> Result<BTreeMap<String, BTreeMap<String, String>>, kube::Error> {
    let rules: Vec<_> = rules.iter().map(AsRef::as_ref).collect();
    if !needs_namespaces(&rules) {
        return Ok(BTreeMap::new());
    }
    let wanted: BTreeSet<_> =
        pods.iter().filter_map(|pod| pod.metadata.namespace.clone()).collect();
    let mut known = view.namespaces.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for name in wanted {
        if known.contains_key(&name) {
            continue;
        }
        if let Some(found) = Api::<Namespace>::all(client.clone()).get_opt(&name).await? {
            known.insert(name, found.metadata.labels.unwrap_or_default());
        }
    }
    view.namespaces.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&known);
    Ok(known)
}

/// The volumes that are attached to the Node. All are listed only when it names one that no attachment explains.
async fn attached_volumes(
    client: &Client,
    node: &Node,
    attachments: &[Arc<VolumeAttachment>],
) -> Result<Vec<PersistentVolume>, kube::Error> {
    let attachments: Vec<_> = attachments.iter().map(AsRef::as_ref).collect();
    let (by_node, by_attachment) = attached(node, &attachments);
    let api = Api::<PersistentVolume>::all(client.clone());
    let mut volumes = Vec::new();
    for name in by_attachment {
        volumes.extend(api.get_opt(name).await?);
    }
    let explained: BTreeSet<_> = volumes.iter().filter_map(csi_name).collect();
    if by_node.iter().any(|name| !explained.contains(*name)) {
        return Ok(api.list(&ListParams::default()).await?.items);
    }
    Ok(volumes)
}
