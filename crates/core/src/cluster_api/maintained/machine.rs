//! How is a Machine of this API seen as a machine of a pool, and who would make another one?

use super::{
    Owners, STANDSTILL, WORKLOAD_CLUSTER, is_control_plane, join, name, pool, standstill, surge_of,
};
use crate::{
    cloud::InstanceId,
    cluster_api::{identity::controller, scaling::conditions_of},
    drift::{
        Class,
        policy::has_control_plane_role,
        respond::{Kind, halves},
    },
    maintenance::action::Replacement,
};
use k8s_openapi::{
    api::core::v1::{Node, NodeCondition},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use machinist_api::{
    Condition, ConditionSeverity, ConditionStatus, Machine as Seen, MachineAddress,
    MachineSet as SeenPool, MachineStatus as SeenStatus, NodeReference, RawObject,
    cluster_api::{
        Machine, condition,
        names::{condition_type as theirs, kind},
    },
    names::{condition_type, label},
    provider_status::{DriftRecord, ProviderStatus},
};

/// Instances of this provider have ids that are theirs alone.
const GLOBAL_IDS: &str = "aws://";

/// How a Machine is seen.
pub fn machine(machine: &Machine, owners: &Owners<'_>) -> Seen {
    let mut annotations = pool::annotations(&machine.metadata);
    if let Some(why) = standstill(machine, owners) {
        annotations.insert(STANDSTILL.to_owned(), why);
    }
    annotations.insert(WORKLOAD_CLUSTER.to_owned(), cluster(machine));
    let status = machine.status.clone().unwrap_or_default();
    let metadata = ObjectMeta {
        name: Some(name(&machine.metadata)),
        annotations: Some(annotations),
        owner_references: owner(machine, owners).map(|owner| vec![owner]),
        ..machine.metadata.clone()
    };
    let mut seen = Seen { metadata, ..Seen::default() };
    let labels = seen.metadata.labels.get_or_insert_default();
    let role = if is_control_plane(machine) { "control-plane" } else { "worker" };
    labels.insert(label::MACHINE_ROLE.to_owned(), role.to_owned());
    let zone = status.failure_domain.as_ref().or(machine.spec.failure_domain.as_ref());
    if let Some(zone) = zone {
        labels.insert(label::ZONE.to_owned(), zone.clone());
    }
    seen.spec.provider_id.clone_from(&machine.spec.provider_id);
    let addresses = status
        .addresses
        .iter()
        .map(|one| MachineAddress { address: one.address.clone(), type_: one.type_.clone() });
    seen.status = Some(SeenStatus {
        addresses: addresses.collect(),
        phase: status.phase.clone(),
        last_updated: status.last_updated.clone(),
        node_ref: node_name(machine).map(|name| NodeReference {
            kind: Some("Node".to_owned()),
            name: Some(name),
            ..NodeReference::default()
        }),
        conditions: deletion(machine).into_iter().chain(running(machine)).collect(),
        provider_status: provider_status(machine),
        ..SeenStatus::default()
    });
    seen
}

/// The pool that controls it, or whatever else does.
fn owner(machine: &Machine, owners: &Owners<'_>) -> Option<OwnerReference> {
    let owner = controller(&machine.metadata)?;
    let (kind, metadata) = match (owners.deployment, owners.set) {
        (Some(deployment), _) => (kind::MACHINE_DEPLOYMENT, &deployment.metadata),
        (None, Some(set)) => (kind::MACHINE_SET, &set.metadata),
        (None, None) => return Some(owner.clone()),
    };
    Some(OwnerReference {
        kind: kind.to_owned(),
        name: name(metadata),
        uid: metadata.uid.clone().unwrap_or_default(),
        ..owner.clone()
    })
}

/// What the record of the other API would hold: the instance, and what happened to it.
fn provider_status(machine: &Machine) -> Option<RawObject> {
    let running = condition::find(conditions_of(machine), condition_type::INSTANCE_RUNNING);
    let class = running.and_then(|known| Class::from_reason(&known.reason));
    let drift = running.zip(class).map(|(known, class)| DriftRecord {
        class: class.as_str().to_owned(),
        since: known.last_transition_time.0,
        response: halves(&known.message)
            .map_or(Kind::Report, |(_, words)| Kind::said(words))
            .as_str()
            .to_owned(),
        attempts: 0,
        acted_at: None,
        failure: None,
    });
    let status = ProviderStatus { instance_id: instance(machine), drift, ..Default::default() };
    RawObject::from_value(&status).ok()
}

/// Where several clusters may use one name for an instance, theirs is put before it: what is told of one must not be
/// taken for the other.
fn instance(machine: &Machine) -> Option<String> {
    let id = machine.spec.provider_id.as_deref()?;
    if id.starts_with(GLOBAL_IDS) {
        return InstanceId::from_provider_id(id).map(|id| id.0);
    }
    Some(join(&cluster(machine), id))
}

/// The name of its workload cluster among all.
fn cluster(machine: &Machine) -> String {
    let namespace = machine.metadata.namespace.as_deref().unwrap_or_default();
    join(namespace, &machine.spec.cluster_name)
}

/// Whether its instance runs, where the cloud is looked at.
fn running(machine: &Machine) -> Option<Condition> {
    let known = condition::find(conditions_of(machine), condition_type::INSTANCE_RUNNING)?;
    let status = match known.status.as_str() {
        condition::TRUE => ConditionStatus::True,
        condition::FALSE => ConditionStatus::False,
        _ => ConditionStatus::Unknown,
    };
    let (severity, words) = (ConditionSeverity::Warning, known.message.as_str());
    let since = known.last_transition_time.0;
    let said = Condition::fails(&known.type_, severity, &known.reason, words, since);
    Some(Condition { status, ..said })
}

/// How far its deletion is, where the other API says it.
fn deletion(machine: &Machine) -> Option<Condition> {
    machine.metadata.deletion_timestamp.as_ref()?;
    let deleting = condition::find(conditions_of(machine), theirs::DELETING)?;
    let since = deleting.last_transition_time.0;
    let (reason, words) = (deleting.reason.as_str(), deleting.message.as_str());
    let severity = ConditionSeverity::Info;
    Some(Condition::fails(condition_type::DRAINED, severity, reason, words, since))
}

/// The name of its Node among those of all clusters.
pub fn node_name(machine: &Machine) -> Option<String> {
    let node = machine.status.as_ref()?.node_ref.as_ref()?;
    Some(join(&cluster(machine), &node.name))
}

/// Its Node as far as the Machine tells of it, for those who do not reach its cluster.
pub fn node(machine: &Machine) -> Option<Node> {
    let name = node_name(machine)?;
    let ready = condition::find(conditions_of(machine), theirs::NODE_READY);
    let ready = NodeCondition {
        type_: "Ready".to_owned(),
        status: ready.map_or_else(|| "Unknown".to_owned(), |known| known.status.clone()),
        reason: ready.map(|known| known.reason.clone()),
        message: ready.map(|known| known.message.clone()),
        last_transition_time: ready.map(|known| known.last_transition_time.clone()),
        ..NodeCondition::default()
    };
    let mut node = Node::default();
    node.metadata.name = Some(name);
    node.status.get_or_insert_default().conditions = Some(vec![ready]);
    Some(node)
}

/// Who would make another machine in the place of one that is seen.
pub fn replacement(machine: &Seen, pool: Option<&SeenPool>) -> Replacement {
    let owner = controller(&machine.metadata);
    let named = |owner: &OwnerReference| format!("{} {}", owner.kind, owner.name);
    match (owner, pool) {
        (None, _) => Replacement::Nobody,
        (Some(owner), _) if has_control_plane_role(machine) => Replacement::Theirs(format!(
            "{} replaces the machines of its control plane itself, and is to be asked for it",
            named(owner)
        )),
        (Some(_), Some(pool)) if pool.metadata.deletion_timestamp.is_some() => Replacement::Nobody,
        (Some(owner), Some(pool)) if surge_of(pool) == Some(0) => Replacement::Owner(named(owner)),
        (Some(_), Some(_)) => Replacement::Pool,
        (Some(owner), None) => {
            Replacement::Theirs(format!("{} makes and removes its machines itself", named(owner)))
        }
    }
}
