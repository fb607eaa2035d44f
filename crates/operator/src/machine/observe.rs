//! What is known of one Machine: the object, its instance, its Node, its owner.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use k8s_openapi::api::core::v1::Node;
use machinist_api::{Machine, MachineSet, condition, names::condition_type};
use machinist_core::{
    cloud::{CloudFailure, Instance, InstanceId, InstanceState},
    disruption::Pool,
    drift::{classify::is_boot_unexplained, policy::DriftDefaults},
    machine::{
        CloudKnowledge, HealthKnowledge, Identity, Observed,
        observed::{LaunchParameters, is_deleting, may_have_instance, provider_status, validate},
    },
    nodelink::node_of,
};

use super::validate::launch_request;
use crate::{
    cloud::{CloudAccess, view::failure_of},
    context::{Context, Stores},
    engine::store::ObjectKey,
    index,
    maintenance::drift_defaults,
};

/// Everything that was read, held for the length of one pass.
pub struct Observation {
    pub machine: Arc<Machine>,
    pub access: Option<Arc<CloudAccess>>,
    pub cloud: CloudKnowledge,
    health: HealthKnowledge,
    cloud_shows_nothing: bool,
    wanted_tags: BTreeMap<String, String>,
    nodes: Vec<Arc<Node>>,
    pool: Option<Pool>,
    owner_is_deleting: bool,
    drift_defaults: DriftDefaults,
}

impl Observation {
    /// The decision's view of it.
    pub fn observed(
        &self,
        launch_check: Option<Result<LaunchParameters, CloudFailure>>,
    ) -> Observed<'_> {
        Observed {
            machine: &self.machine,
            cloud: self.cloud.clone(),
            node: node_of(&self.machine, self.nodes.iter().map(AsRef::as_ref)),
            health: self.health.clone(),
            cloud_shows_nothing: self.cloud_shows_nothing,
            wanted_tags: self.wanted_tags.clone(),
            pool: self.pool.clone(),
            owner_is_deleting: self.owner_is_deleting,
            drift_defaults: self.drift_defaults,
            launch_check,
        }
    }
}

pub async fn observe(context: &Context, machine: &Arc<Machine>) -> Observation {
    let nodes = candidate_nodes(&context.stores, machine);
    let (access, cloud) = if needs_cloud(machine) {
        match context.clouds.of(machine).await {
            Ok(access) => {
                let node = node_of(machine, nodes.iter().map(AsRef::as_ref));
                let cloud = instances_of(machine, node.one(), &access).await;
                (Some(access), cloud)
            }
            Err(failure) => (None, CloudKnowledge::Unknown(failure)),
        }
    } else {
        (None, CloudKnowledge::Loading)
    };
    let set = owning_set(&context.stores, machine);
    // Counting a pool for each of its machines at each look would cost their square.
    let runs = matches!(&cloud, CloudKnowledge::Known(instances)
        if instances.iter().any(|one| one.state == InstanceState::Running));
    Observation {
        machine: Arc::clone(machine),
        health: health_of(machine, access.as_deref()),
        cloud_shows_nothing: access.as_ref().is_some_and(|access| shows_nothing(access)),
        wanted_tags: wanted_tags(machine, access.as_deref()),
        access,
        cloud,
        nodes,
        drift_defaults: if runs {
            DriftDefaults::default()
        } else {
            drift_defaults(&context.stores, machine)
        },
        pool: set.as_ref().filter(|_| !runs).map(|set| pool_of(&context.stores, machine, set)),
        owner_is_deleting: set.is_some_and(|set| set.metadata.deletion_timestamp.is_some()),
    }
}

fn health_of(machine: &Machine, access: Option<&CloudAccess>) -> HealthKnowledge {
    let (Some(access), Some(id)) = (access, Identity::of(machine).instance_id) else {
        return HealthKnowledge::Loading;
    };
    access.view.snapshot().health_of(&id)
}

/// Whether the cloud shows no live instance of the whole cluster.
fn shows_nothing(access: &CloudAccess) -> bool {
    !access.view.snapshot().instances().iter().any(|instance| instance.state.is_live())
}

/// What the instance's tags are to be by now, once it has been launched with those of its time.
fn wanted_tags(machine: &Machine, access: Option<&CloudAccess>) -> BTreeMap<String, String> {
    let has_instance = Identity::of(machine).instance_id.is_some();
    let Some(access) = access.filter(|_| has_instance && !is_deleting(machine)) else {
        return BTreeMap::new();
    };
    let request = launch_request(machine, access, None);
    request.map(|request| access.provider().tags(&request)).unwrap_or_default()
}

/// The pool as the gate counts it.
fn pool_of(stores: &Stores, machine: &Machine, set: &MachineSet) -> Pool {
    let owner = set.metadata.uid.as_deref().unwrap_or_default();
    let members: Vec<_> = stores
        .machines
        .by_index(index::MACHINE_BY_OWNER, owner)
        .into_iter()
        .map(|member| {
            let node = stores.linked_node(&member);
            (member, node)
        })
        .collect();
    let asking = machine.metadata.uid.as_deref().unwrap_or_default();
    Pool::of(set, members.iter().map(|(member, node)| (&**member, node.as_deref())), asking)
}

/// A Machine that is at fault is not asked about; one that goes and never had an instance, or is
/// not drained yet, needs no cloud either.
fn needs_cloud(machine: &Machine) -> bool {
    if is_deleting(machine) {
        let is_drained = machine
            .status
            .as_ref()
            .is_some_and(|status| condition::is_true(&status.conditions, condition_type::DRAINED));
        return is_drained && may_have_instance(machine);
    }
    validate(machine).is_ok()
}

async fn instances_of(
    machine: &Machine,
    node: Option<&Node>,
    access: &CloudAccess,
) -> CloudKnowledge {
    let snapshot = access.view.snapshot();
    if snapshot.listed_at.is_none() {
        return match &snapshot.failure {
            Some(failure) => CloudKnowledge::Unknown(failure.clone()),
            None => CloudKnowledge::Loading,
        };
    }
    let identity = Identity::of(machine);
    let mut found: Vec<Instance> = snapshot
        .of_machine(&identity.machine_uid)
        .chain(identity.instance_id.iter().filter_map(|id| snapshot.get(id)))
        .map(|instance| Instance::clone(instance))
        .collect();
    found.sort_by(|left, right| left.id.cmp(&right.id));
    found.dedup_by(|left, right| left.id == right.id);

    let answer = confirm(machine, node, &identity, &found, access).await;
    match answer {
        Ok(Some(confirmed)) => CloudKnowledge::Known(confirmed),
        Ok(None) => CloudKnowledge::Known(found),
        Err(failure) => CloudKnowledge::Unknown(failure),
    }
}

/// Asks by id where the picture alone must not decide: before anything is destroyed, before an
/// instance is called missing (Rule 9), and when a boot may have been a start.
async fn confirm(
    machine: &Machine,
    node: Option<&Node>,
    identity: &Identity,
    found: &[Instance],
    access: &CloudAccess,
) -> Result<Option<Vec<Instance>>, CloudFailure> {
    let mut ids: BTreeSet<InstanceId> = found.iter().map(|one| one.id.clone()).collect();
    ids.extend(identity.instance_id.clone());
    let is_certain = |instance: &Instance| {
        matches!(instance.state, InstanceState::Pending | InstanceState::Running)
    };
    let is_complete = identity
        .instance_id
        .as_ref()
        .is_none_or(|id| found.iter().any(|one| one.id == *id && is_certain(one)));
    let record = provider_status(machine);
    let is_explained = !node.is_some_and(|node| is_boot_unexplained(&record, node));
    if is_complete && is_explained && !is_deleting(machine) {
        return Ok(None);
    }
    let mut confirmed = access.view.confirm(ids).await?;
    // A single read that lacks what the list shows proves nothing: the list drops it soon, or does
    // not.
    confirmed.extend(found.iter().cloned());
    let intent_is_open = identity.instance_id.is_none() && record.launch.is_some();
    if is_deleting(machine) && intent_is_open {
        let by_token = access
            .provider()
            .find(&identity.machine_uid, &identity.client_tokens)
            .await
            .map_err(|error| failure_of(&error))?;
        confirmed.extend(by_token);
    }
    // The sort is stable: what was confirmed comes before what was only remembered.
    confirmed.sort_by(|left, right| left.id.cmp(&right.id));
    confirmed.dedup_by(|later, earlier| later.id == earlier.id);
    Ok(Some(confirmed))
}

fn candidate_nodes(stores: &Stores, machine: &Machine) -> Vec<Arc<Node>> {
    let mut nodes = Vec::new();
    for instance in index::instance_of_machine(machine) {
        nodes.extend(stores.nodes.by_index(index::NODE_BY_INSTANCE, &instance));
    }
    for address in machine.status.iter().flat_map(|status| &status.addresses) {
        if address.type_ == "InternalIP" {
            nodes.extend(stores.nodes.by_index(index::NODE_BY_INTERNAL_IP, &address.address));
        }
    }
    nodes.sort_by(|left, right| left.metadata.name.cmp(&right.metadata.name));
    nodes.dedup_by(|left, right| left.metadata.name == right.metadata.name);
    nodes
}

fn owning_set(stores: &Stores, machine: &Machine) -> Option<Arc<MachineSet>> {
    let owner = machine
        .metadata
        .owner_references
        .iter()
        .flatten()
        .find(|one| one.controller == Some(true) && one.kind == "MachineSet")?;
    let namespace = machine.metadata.namespace.as_deref().unwrap_or_default();
    let set = stores.machine_sets.get(&ObjectKey::new(namespace, owner.name.as_str()))?;
    (set.metadata.uid.as_ref() == Some(&owner.uid)).then_some(set)
}
