//! What is known of one Machine: the object, its instance, its Node, its owner.

use std::{collections::BTreeSet, sync::Arc};

use k8s_openapi::api::core::v1::Node;
use machinist_api::{Machine, condition, names::condition_type};
use machinist_core::{
    cloud::{CloudFailure, Instance, InstanceId},
    machine::{
        CloudKnowledge, Identity, Observed,
        observed::{is_deleting, may_have_instance, provider_status, validate},
    },
    nodelink::node_of,
};

use crate::{
    cloud::{CloudAccess, view::failure_of},
    context::{Context, Stores},
    engine::store::ObjectKey,
    index,
};

/// Everything that was read, held for the length of one pass.
pub struct Observation {
    pub machine: Arc<Machine>,
    pub access: Option<Arc<CloudAccess>>,
    cloud: CloudKnowledge,
    nodes: Vec<Arc<Node>>,
    owner_is_deleting: bool,
}

impl Observation {
    /// The decision's view of it.
    pub fn observed(&self, launch_check: Option<Result<(), CloudFailure>>) -> Observed<'_> {
        Observed {
            machine: &self.machine,
            cloud: self.cloud.clone(),
            node: node_of(&self.machine, self.nodes.iter().map(AsRef::as_ref)),
            owner_is_deleting: self.owner_is_deleting,
            launch_check,
        }
    }
}

pub async fn observe(context: &Context, machine: &Arc<Machine>) -> Observation {
    let (access, cloud) = if needs_cloud(machine) {
        match context.clouds.of(machine).await {
            Ok(access) => {
                let cloud = instances_of(machine, &access).await;
                (Some(access), cloud)
            }
            Err(failure) => (None, CloudKnowledge::Unknown(failure)),
        }
    } else {
        (None, CloudKnowledge::Loading)
    };
    Observation {
        machine: Arc::clone(machine),
        access,
        cloud,
        nodes: candidate_nodes(&context.stores, machine),
        owner_is_deleting: owner_is_deleting(&context.stores, machine),
    }
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

async fn instances_of(machine: &Machine, access: &CloudAccess) -> CloudKnowledge {
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

    let answer = confirm(machine, &identity, &found, access).await;
    match answer {
        Ok(Some(confirmed)) => CloudKnowledge::Known(confirmed),
        Ok(None) => CloudKnowledge::Known(found),
        Err(failure) => CloudKnowledge::Unknown(failure),
    }
}

/// Asks by id where the picture alone must not decide: before anything is destroyed, and before an
/// instance is called missing (Rule 9).
async fn confirm(
    machine: &Machine,
    identity: &Identity,
    found: &[Instance],
    access: &CloudAccess,
) -> Result<Option<Vec<Instance>>, CloudFailure> {
    let mut ids: BTreeSet<InstanceId> = found.iter().map(|one| one.id.clone()).collect();
    ids.extend(identity.instance_id.clone());
    let is_complete = identity.instance_id.as_ref().is_none_or(|id| {
        found.iter().any(|instance| instance.id == *id && instance.state.is_live())
    });
    if is_complete && !is_deleting(machine) {
        return Ok(None);
    }
    let mut confirmed = access.view.confirm(ids).await?;
    // A single read that lacks what the list shows proves nothing: the list drops it soon, or does
    // not.
    confirmed.extend(found.iter().cloned());
    let intent_is_open =
        identity.instance_id.is_none() && provider_status(machine).launch.is_some();
    if is_deleting(machine) && intent_is_open {
        let by_token = access
            .provider
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
    if let Some(provider_id) = machine.spec.provider_id.as_deref() {
        nodes.extend(stores.nodes.by_index(index::NODE_BY_PROVIDER_ID, provider_id));
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

fn owner_is_deleting(stores: &Stores, machine: &Machine) -> bool {
    let owner =
        machine.metadata.owner_references.iter().flatten().find(|one| one.controller == Some(true));
    let Some(owner) = owner.filter(|owner| owner.kind == "MachineSet") else { return false };
    let namespace = machine.metadata.namespace.as_deref().unwrap_or_default();
    let set = stores.machine_sets.get(&ObjectKey::new(namespace, owner.name.as_str()));
    set.is_some_and(|set| {
        set.metadata.uid.as_ref() == Some(&owner.uid) && set.metadata.deletion_timestamp.is_some()
    })
}
