//! Which marks of the template are to reach Machines that are there already?
//!
//! Labels, annotations, readiness gates, timeouts, the time to be ready and taints do; version, failure domain and the
//! references never. A key that the template no longer has is taken away again: the set remembers in an annotation which
//! keys it has ever given (server-side apply, which Cluster API uses, remembers them on every object).

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use machinist_api::cluster_api::{
    Machine, MachineSet,
    names::{annotation, finalizer, label},
};
use serde_json::{Map, Value, json};

use crate::{
    cluster_api::{
        identity::{self, controller_reference, is_deleting},
        naming,
    },
    merge_patch,
};

/// On a set: the keys that it has given to its Machines, as `labels=a,b;annotations=c`.
pub const GIVEN: &str = "machinist.dev/propagated";

/// The marks that every Machine of the set has.
pub fn labels(set: &MachineSet) -> BTreeMap<String, String> {
    let mut labels = set.spec.template.metadata.labels.clone();
    labels.insert(label::CLUSTER_NAME.to_owned(), set.spec.cluster_name.clone());
    let name = set.metadata.name.as_deref().unwrap_or_default();
    labels.insert(label::SET_NAME.to_owned(), naming::label_value(name));
    if let Some(deployment) = identity::label(&set.metadata, label::DEPLOYMENT_NAME) {
        labels.insert(label::DEPLOYMENT_NAME.to_owned(), deployment.to_owned());
    }
    labels
}

/// Keys that were given once, as the set remembers them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    labels: BTreeSet<String>,
    annotations: BTreeSet<String>,
}

impl Given {
    pub fn read(set: &MachineSet) -> Self {
        let mut given = Self::default();
        let text = identity::annotation(&set.metadata, GIVEN).unwrap_or_default();
        for part in text.split(';') {
            let Some((field, keys)) = part.split_once('=') else { continue };
            let keys = keys.split(',').filter(|key| !key.is_empty()).map(str::to_owned);
            match field {
                "labels" => given.labels.extend(keys),
                "annotations" => given.annotations.extend(keys),
                _ => {}
            }
        }
        given
    }

    fn of_template(set: &MachineSet) -> Self {
        let metadata = &set.spec.template.metadata;
        Self {
            labels: metadata.labels.keys().cloned().collect(),
            annotations: metadata.annotations.keys().cloned().collect(),
        }
    }

    fn write(&self) -> String {
        let join = |keys: &BTreeSet<String>| keys.iter().cloned().collect::<Vec<_>>().join(",");
        format!("labels={};annotations={}", join(&self.labels), join(&self.annotations))
    }
}

/// What the set is to remember before it gives anything, if that is more than it does. Keys that are gone from the
/// template and from every object are forgotten with the next that comes.
pub fn to_remember<'a>(
    set: &MachineSet,
    objects: impl IntoIterator<Item = &'a ObjectMeta>,
) -> Option<String> {
    let (known, now) = (Given::read(set), Given::of_template(set));
    if now.labels.is_subset(&known.labels) && now.annotations.is_subset(&known.annotations) {
        return None;
    }
    let mut wanted = now;
    for object in objects {
        let has = |keys: &Option<BTreeMap<String, String>>, key: &String| {
            keys.as_ref().is_some_and(|keys| keys.contains_key(key))
        };
        wanted.labels.extend(known.labels.iter().filter(|key| has(&object.labels, key)).cloned());
        wanted
            .annotations
            .extend(known.annotations.iter().filter(|key| has(&object.annotations, key)).cloned());
    }
    Some(wanted.write())
}

/// What to change on a Machine, as a merge patch.
pub fn to_machine(set: &MachineSet, machine: &Machine) -> Option<Value> {
    let mut patch = Map::new();
    if let Some(spec) = spec_difference(set, machine) {
        patch.insert("spec".to_owned(), spec);
    }
    if !is_deleting(&machine.metadata) {
        let mut metadata = marks(set, &machine.metadata, &labels(set));
        let owner = controller_reference(set);
        let owners = machine.metadata.owner_references.as_deref().unwrap_or_default();
        if !owners.contains(&owner) {
            let owners = identity::with_owner(&machine.metadata, owner);
            metadata.insert("ownerReferences".to_owned(), json!(owners));
        }
        let mut finalizers = machine.metadata.finalizers.clone().unwrap_or_default();
        if !finalizers.iter().any(|known| known == finalizer::MACHINE) {
            finalizers.push(finalizer::MACHINE.to_owned());
            metadata.insert("finalizers".to_owned(), json!(finalizers));
        }
        if !metadata.is_empty() {
            patch.insert("metadata".to_owned(), Value::Object(metadata));
        }
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

/// What to change on an object of a provider, as a merge patch.
pub fn to_provided(set: &MachineSet, object: &ObjectMeta) -> Option<Value> {
    if is_deleting(object) {
        return None;
    }
    let metadata = marks(set, object, &labels(set));
    (!metadata.is_empty()).then(|| json!({ "metadata": metadata }))
}

fn marks(
    set: &MachineSet,
    object: &ObjectMeta,
    labels: &BTreeMap<String, String>,
) -> Map<String, Value> {
    let given = Given::read(set);
    let annotations = &set.spec.template.metadata.annotations;
    let mut metadata = Map::new();
    let mut put = |field: &str, difference: Map<String, Value>| {
        if !difference.is_empty() {
            metadata.insert(field.to_owned(), Value::Object(difference));
        }
    };
    put("labels", difference(object.labels.as_ref(), labels, &given.labels));
    put("annotations", difference(object.annotations.as_ref(), annotations, &given.annotations));
    metadata
}

fn difference(
    known: Option<&BTreeMap<String, String>>,
    wanted: &BTreeMap<String, String>,
    given: &BTreeSet<String>,
) -> Map<String, Value> {
    let empty = BTreeMap::new();
    let known = known.unwrap_or(&empty);
    let set = wanted
        .iter()
        .filter(|(key, value)| known.get(*key) != Some(value))
        .map(|(key, value)| (key.clone(), json!(value)));
    let removed = given
        .iter()
        .filter(|key| !wanted.contains_key(*key) && known.contains_key(*key))
        .filter(|key| key.as_str() != annotation::PAUSED)
        .map(|key| (key.clone(), Value::Null));
    set.chain(removed).collect()
}

/// Only what may change on a Machine that is there.
fn spec_difference(set: &MachineSet, machine: &Machine) -> Option<Value> {
    let template = &set.spec.template.spec;
    let mut wanted = machine.spec.clone();
    wanted.readiness_gates = template.readiness_gates.clone();
    wanted.min_ready_seconds = template.min_ready_seconds;
    wanted.taints = template.taints.clone();
    // Admission fills this in on a Machine, so an absent one is no difference.
    let node_deletion = template
        .deletion
        .node_deletion_timeout_seconds
        .or(machine.spec.deletion.node_deletion_timeout_seconds);
    wanted.deletion = template.deletion.clone();
    wanted.deletion.node_deletion_timeout_seconds = node_deletion;
    if wanted == machine.spec {
        return None;
    }
    let value = |spec| serde_json::to_value(spec).unwrap_or(Value::Null);
    merge_patch::between(&value(&machine.spec), &value(&wanted))
}
