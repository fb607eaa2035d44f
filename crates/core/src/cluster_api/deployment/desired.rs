//! What does a set of a deployment look like, new or there already?

use std::collections::BTreeMap;

use jiff::Timestamp;
use machinist_api::{
    cluster_api::{
        MachineDeployment, MachineSet, MachineSetSpec, SetDeletion,
        names::{annotation, deletion_order, finalizer, label},
    },
    names::annotation::SURGE,
};
use serde_json::{Map, Value, json};

use super::{current, observed::Policy};
use crate::{
    cluster_api::{
        identity::{self, controller_reference},
        machineset::propagate,
        naming,
    },
    merge_patch,
};

/// Annotations of a deployment that are its own.
const NOT_COPIED: [&str; 10] = [
    annotation::LAST_APPLIED,
    annotation::REVISION,
    annotation::REVISION_HISTORY,
    annotation::DESIRED_REPLICAS,
    annotation::MAX_REPLICAS,
    annotation::CONVERSION_DATA,
    annotation::DISABLE_MACHINE_CREATE,
    annotation::PAUSED,
    SURGE,
    current::MADE_FOR,
];

/// How a set is to be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Role {
    pub replicas: i32,
    pub revision: Option<i64>,
    /// Whether it makes no Machines any more: an old one, where those go only when a person deletes them.
    pub is_closed: bool,
}

/// A set that is not there yet. `after` is the rollout by time that it is made for, where one is due. Its name follows from
/// what it is for: made twice, it is one object.
pub fn new_set(
    deployment: &MachineDeployment,
    policy: &Policy,
    role: Role,
    name: &str,
    hash: &str,
    after: Option<Timestamp>,
) -> MachineSet {
    let mut selector = deployment.spec.selector.clone();
    let selected = selector.match_labels.get_or_insert_default();
    selected.insert(label::TEMPLATE_HASH.to_owned(), hash.to_owned());
    let mut template = deployment.spec.template.clone();
    template.metadata.labels = template_labels(deployment, hash);
    let spec = MachineSetSpec {
        cluster_name: deployment.spec.cluster_name.clone(),
        replicas: Some(role.replicas),
        selector,
        template,
        machine_naming: deployment.spec.machine_naming.clone(),
        deletion: deployment.spec.deletion.clone(),
    };
    let mut set = MachineSet::new(name, spec);
    set.metadata.namespace = deployment.metadata.namespace.clone();
    set.metadata.labels = Some(set_labels(deployment, hash));
    let made_for = after.map(|after| (current::MADE_FOR.to_owned(), after.to_string()));
    let annotations = annotations(deployment, policy, role).into_iter().chain(made_for);
    set.metadata.annotations = Some(annotations.collect());
    set.metadata.owner_references = Some(vec![controller_reference(deployment)]);
    set.metadata.finalizers = Some(vec![finalizer::MACHINE_SET.to_owned()]);
    // Born with what its controller would have to write first.
    if let Some(given) = propagate::to_remember(&set, []) {
        set.metadata.annotations.get_or_insert_default().insert(propagate::GIVEN.to_owned(), given);
    }
    set
}

/// The letters of a new set's name. They depend on the template and the asked-for rollout; `taken` counts the names that
/// other sets have already.
pub fn letters(deployment: &MachineDeployment, after: Option<Timestamp>, taken: usize) -> String {
    let template = current::compared(&deployment.spec.template.spec);
    let template = serde_json::to_string(&template).unwrap_or_default();
    let after = after.map(|at| at.to_string()).unwrap_or_default();
    let uid = deployment.metadata.uid.as_deref().unwrap_or_default();
    naming::letters_of(&[uid, &template, &after, &taken.to_string()])
}

/// What tells the set's Machines from those of the other sets.
pub fn hash(letters: &str) -> String {
    let number =
        letters.bytes().fold(0u32, |sum, byte| sum.wrapping_mul(0x0100_0193) ^ u32::from(byte));
    format!("{number}-{letters}")
}

fn template_labels(deployment: &MachineDeployment, hash: &str) -> BTreeMap<String, String> {
    let mut labels = deployment.spec.template.metadata.labels.clone();
    labels.insert(label::TEMPLATE_HASH.to_owned(), hash.to_owned());
    labels.insert(label::CLUSTER_NAME.to_owned(), deployment.spec.cluster_name.clone());
    labels
}

fn set_labels(deployment: &MachineDeployment, hash: &str) -> BTreeMap<String, String> {
    let mut labels = template_labels(deployment, hash);
    let name = deployment.metadata.name.clone().unwrap_or_default();
    labels.insert(label::DEPLOYMENT_NAME.to_owned(), name);
    labels
}

fn annotations(
    deployment: &MachineDeployment,
    policy: &Policy,
    role: Role,
) -> BTreeMap<String, String> {
    let mut all = deployment.metadata.annotations.clone().unwrap_or_default();
    all.retain(|key, _| !NOT_COPIED.contains(&key.as_str()));
    let replicas = deployment.spec.replicas.unwrap_or(0);
    let most = replicas.saturating_add(policy.surge(replicas));
    all.insert(annotation::DESIRED_REPLICAS.to_owned(), replicas.to_string());
    all.insert(annotation::MAX_REPLICAS.to_owned(), most.to_string());
    all.insert(annotation::DISABLE_MACHINE_CREATE.to_owned(), role.is_closed.to_string());
    if let Some(revision) = role.revision {
        all.insert(annotation::REVISION.to_owned(), revision.to_string());
    }
    all
}

/// What to change on a set that is there: its size, and what reaches it in place. One merge patch, or `None`.
pub fn amendment(
    deployment: &MachineDeployment,
    policy: &Policy,
    set: &MachineSet,
    role: Role,
) -> Option<Value> {
    let hash = identity::label(&set.metadata, label::TEMPLATE_HASH).unwrap_or_default();
    let mut wanted = set.spec.clone();
    wanted.replicas = Some(role.replicas);
    wanted.deletion = deletion(deployment, set);
    wanted.machine_naming = deployment.spec.machine_naming.clone();
    let (from, to) = (&deployment.spec.template, &mut wanted.template);
    to.metadata.labels = template_labels(deployment, hash);
    to.metadata.annotations = from.metadata.annotations.clone();
    to.spec.min_ready_seconds = from.spec.min_ready_seconds;
    to.spec.readiness_gates = from.spec.readiness_gates.clone();
    to.spec.deletion = from.spec.deletion.clone();
    to.spec.taints = from.spec.taints.clone();
    let value = |spec: &MachineSetSpec| serde_json::to_value(spec).unwrap_or(Value::Null);
    let spec = merge_patch::between(&value(&set.spec), &value(&wanted));

    let mut metadata = Map::new();
    let mut put = |field: &str, difference: Map<String, Value>| {
        if !difference.is_empty() {
            metadata.insert(field.to_owned(), Value::Object(difference));
        }
    };
    let mut labels = changed(set.metadata.labels.as_ref(), &set_labels(deployment, hash));
    // What the set had of the template before, and the template no longer has.
    for key in set.spec.template.metadata.labels.keys() {
        let is_known = set.metadata.labels.as_ref().is_some_and(|all| all.contains_key(key));
        if is_known && !wanted.template.metadata.labels.contains_key(key) {
            labels.insert(key.clone(), Value::Null);
        }
    }
    put("labels", labels);
    put(
        "annotations",
        changed(set.metadata.annotations.as_ref(), &annotations(deployment, policy, role)),
    );
    let owner = controller_reference(deployment);
    if !set.metadata.owner_references.iter().flatten().any(|known| *known == owner) {
        let owners = identity::with_owner(&set.metadata, owner);
        metadata.insert("ownerReferences".to_owned(), json!(owners));
    }
    let mut patch = Map::new();
    if !metadata.is_empty() {
        patch.insert("metadata".to_owned(), Value::Object(metadata));
    }
    if let Some(spec) = spec {
        patch.insert("spec".to_owned(), spec);
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

/// Nothing said is Random, and some webhooks of Cluster API write that into a set: to take it away again would never end.
fn deletion(deployment: &MachineDeployment, set: &MachineSet) -> SetDeletion {
    let (wanted, known) = (&deployment.spec.deletion, &set.spec.deletion);
    let is_random = known.order.as_deref() == Some(deletion_order::RANDOM);
    if wanted.order.is_none() && is_random { known.clone() } else { wanted.clone() }
}

fn changed(
    known: Option<&BTreeMap<String, String>>,
    wanted: &BTreeMap<String, String>,
) -> Map<String, Value> {
    let is_new = |key: &String, value: &String| known.and_then(|all| all.get(key)) != Some(value);
    wanted
        .iter()
        .filter(|(key, value)| is_new(key, value))
        .map(|(key, value)| (key.clone(), json!(value)))
        .collect()
}

/// The revision that a set says it is.
pub fn revision(set: &MachineSet) -> i64 {
    identity::annotation(&set.metadata, annotation::REVISION)
        .and_then(|text| text.parse().ok())
        .unwrap_or(0)
}
