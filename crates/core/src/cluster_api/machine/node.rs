//! Which Node is the Machine's, and what does it get from it?

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Taint};
use machinist_api::cluster_api::{
    MachineNodeRef, MachineTaint,
    names::{annotation, event, label, taint},
};
use serde_json::{Map, Value, json};

use super::{
    decide::{Action, Pass},
    node_keys::NodeKeys,
    observed::{Connection, NodeLookup, Observed},
};
use crate::{
    cluster_api::contract::{ownership, reading},
    decision::Announcement,
    node,
};

/// The keys that every Node of ours gets.
const BOOKKEEPING: [&str; 5] = [
    annotation::NODE_CLUSTER_NAME,
    annotation::NODE_CLUSTER_NAMESPACE,
    annotation::NODE_MACHINE,
    annotation::NODE_OWNER_KIND,
    annotation::NODE_OWNER_NAME,
];

pub(super) fn link(pass: &mut Pass<'_>) {
    let observed = pass.observed;
    let Some(provider_id) = pass.provider_id() else { return };
    let nodes = match &observed.connection {
        Connection::Up { nodes, .. } => nodes,
        Connection::Down { .. } => return,
    };
    match nodes {
        NodeLookup::NotFound => {
            if let (Some(known), false) = (&pass.status.node_ref, observed.is_deleting()) {
                pass.problems.push(format!(
                    "no matching Node for Machine: Node {} with spec.providerID {provider_id} is gone",
                    known.name
                ));
            }
        }
        NodeLookup::Ambiguous(names) => pass.problems.push(format!(
            "{} Nodes have the spec.providerID {provider_id}: {}",
            names.len(),
            names.join(", ")
        )),
        NodeLookup::Found(found) => take(pass, found),
    }
}

/// Which Nodes go with a Machine that goes: those with its providerID; and the one that it was linked to, where none has the
/// providerID (it registered anew and has none yet, or its provider writes it in another way) or several have. A Node that
/// is another Machine's by now is not taken.
pub fn to_take_down<N: AsRef<Node>>(
    with_provider_id: Vec<N>,
    linked: Option<N>,
    is_anothers: bool,
) -> Vec<N> {
    let Some(linked) = linked else { return with_provider_id };
    let is_among =
        with_provider_id.iter().any(|one| node::name(one.as_ref()) == node::name(linked.as_ref()));
    match with_provider_id.len() {
        0 if is_anothers => Vec::new(),
        0 => vec![linked],
        1 => with_provider_id,
        _ if is_among => vec![linked],
        _ => with_provider_id,
    }
}

fn take(pass: &mut Pass<'_>, found: &Node) {
    let observed = pass.observed;
    let name = node::name(found);
    // A Node that another Machine holds is not taken from it.
    let is_linked = pass.status.node_ref.as_ref().is_some_and(|known| known.name == name);
    if !is_linked && observed.shares_node() {
        pass.problems.push(claimed(observed, name));
        return;
    }
    if pass.status.node_ref.is_none() {
        pass.status.node_ref = Some(MachineNodeRef { name: name.to_owned() });
        let message = format!("Set Machine status.nodeRef to {name}");
        pass.decision
            .announcements
            .push(Announcement::normal(event::SUCCESSFUL_SET_NODE_REF, message));
    }
    pass.status.node_info = found.status.as_ref().and_then(|status| status.node_info.clone());
    if observed.is_deleting() || node::is_deleting(found) {
        return;
    }
    if let Some(patch) = sync(observed, &pass.policy.node_keys, found) {
        pass.after.push(Action::PatchNode { node: name.to_owned(), patch });
    }
}

pub(super) fn claimed(observed: &Observed<'_>, node: &str) -> String {
    let others: Vec<_> = observed.namesakes.iter().map(|(name, _)| name.as_str()).collect();
    format!(
        "Node {node} belongs to Machine {} already: it has the same spec.providerID",
        others.join(", ")
    )
}

/// What to change of the Node: a merge patch, or `None` when all is as it should be.
fn sync(observed: &Observed<'_>, keys: &NodeKeys, node: &Node) -> Option<Value> {
    let present = node.metadata.annotations.clone().unwrap_or_default();
    let labels = wanted_labels(observed, keys);
    let mut annotations = bookkeeping(observed);
    let own = wanted_annotations(observed, keys);
    let own_keys = joined(own.keys());
    annotations.extend(own);
    let label_keys = joined(labels.keys());

    let mut metadata = Map::new();
    let before = tracked(&present, annotation::LABELS_FROM_MACHINE);
    let known = node.metadata.labels.clone().unwrap_or_default();
    if let Some(changes) = changes(&labels, &known, before.iter().map(String::as_str)) {
        metadata.insert("labels".to_owned(), changes);
    }
    let before = tracked(&present, annotation::ANNOTATIONS_FROM_MACHINE);
    let removable = before.iter().map(String::as_str).chain(BOOKKEEPING);
    let mut more = BTreeMap::from([
        (annotation::LABELS_FROM_MACHINE.to_owned(), label_keys),
        (annotation::ANNOTATIONS_FROM_MACHINE.to_owned(), own_keys),
    ]);
    more.append(&mut annotations);
    let (taints, tracked_taints) = taints(observed, node, &present);
    if let Some(tracked) = tracked_taints {
        more.insert(annotation::TAINTS_FROM_MACHINE.to_owned(), tracked);
    }
    if let Some(changes) = changes(&more, &present, removable) {
        metadata.insert("annotations".to_owned(), changes);
    }
    let mut patch = Map::new();
    if !metadata.is_empty() {
        patch.insert("metadata".to_owned(), Value::Object(metadata));
    }
    if let Some(taints) = taints {
        patch.insert("spec".to_owned(), json!({ "taints": taints }));
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

fn bookkeeping(observed: &Observed<'_>) -> BTreeMap<String, String> {
    let metadata = &observed.machine.metadata;
    let mut all = BTreeMap::from([
        (annotation::NODE_CLUSTER_NAME.to_owned(), observed.machine.spec.cluster_name.clone()),
        (
            annotation::NODE_CLUSTER_NAMESPACE.to_owned(),
            metadata.namespace.clone().unwrap_or_default(),
        ),
        (annotation::NODE_MACHINE.to_owned(), metadata.name.clone().unwrap_or_default()),
    ]);
    let owners = metadata.owner_references.as_deref().unwrap_or_default();
    if let Some(owner) = ownership::controller_of(owners) {
        all.insert(annotation::NODE_OWNER_KIND.to_owned(), owner.kind.clone());
        all.insert(annotation::NODE_OWNER_NAME.to_owned(), owner.name.clone());
    }
    all
}

fn wanted_labels(observed: &Observed<'_>, keys: &NodeKeys) -> BTreeMap<String, String> {
    let labels = observed.machine.metadata.labels.clone().unwrap_or_default();
    let mut wanted: BTreeMap<_, _> =
        labels.into_iter().filter(|(key, _)| keys.is_label_meant(key)).collect();
    let infrastructure = observed.infrastructure.found();
    if infrastructure.is_some_and(|(object, _)| reading::is_interruptible(&object.data)) {
        wanted.insert(label::INTERRUPTIBLE.to_owned(), String::new());
    }
    wanted
}

fn wanted_annotations(observed: &Observed<'_>, keys: &NodeKeys) -> BTreeMap<String, String> {
    let annotations = observed.machine.metadata.annotations.clone().unwrap_or_default();
    annotations.into_iter().filter(|(key, _)| keys.is_annotation_meant(key)).collect()
}

fn joined<'a>(keys: impl Iterator<Item = &'a String>) -> String {
    keys.map(String::as_str).collect::<Vec<_>>().join(",")
}

fn tracked(annotations: &BTreeMap<String, String>, key: &str) -> BTreeSet<String> {
    let listed = annotations.get(key).map(String::as_str).unwrap_or_default();
    listed.split(',').filter(|key| !key.is_empty()).map(str::to_owned).collect()
}

/// What of `wanted` is not there, and what was set before and is not wanted any more. Keys of others are left alone.
fn changes<'a>(
    wanted: &BTreeMap<String, String>,
    present: &BTreeMap<String, String>,
    removable: impl Iterator<Item = &'a str>,
) -> Option<Value> {
    let mut all: Map<String, Value> = wanted
        .iter()
        .filter(|(key, value)| present.get(*key) != Some(*value))
        .map(|(key, value)| (key.clone(), json!(value)))
        .collect();
    for key in removable.filter(|key| !wanted.contains_key(*key) && present.contains_key(*key)) {
        all.insert(key.to_owned(), Value::Null);
    }
    (!all.is_empty()).then_some(Value::Object(all))
}

/// The Node's taints as they should be, when they are not, and those to be remembered as the Machine's.
fn taints(
    observed: &Observed<'_>,
    node: &Node,
    annotations: &BTreeMap<String, String>,
) -> (Option<Vec<Taint>>, Option<String>) {
    let present = node.spec.as_ref().and_then(|spec| spec.taints.clone()).unwrap_or_default();
    let mut wanted = present.clone();
    wanted.retain(|one| one.key != taint::UNINITIALIZED);
    let mark = Taint {
        key: taint::OUTDATED_REVISION.to_owned(),
        effect: "PreferNoSchedule".to_owned(),
        ..Default::default()
    };
    wanted.retain(|one| one.key != mark.key || one.effect != mark.effect || is_outdated(observed));
    if is_outdated(observed) && !wanted.iter().any(|one| one.key == mark.key) {
        wanted.push(mark);
    }
    let tracking = propagated(&observed.machine.spec.taints, &mut wanted, annotations);
    ((wanted != present).then_some(wanted), tracking)
}

/// Puts the Machine's own taints among `wanted`, and says which are remembered: `None` when there is nothing to remember.
fn propagated(
    taints: &[MachineTaint],
    wanted: &mut Vec<Taint>,
    annotations: &BTreeMap<String, String>,
) -> Option<String> {
    let is_first = !annotations.contains_key(annotation::TAINTS_FROM_MACHINE);
    if taints.is_empty() && is_first {
        return None;
    }
    let before = tracked(annotations, annotation::TAINTS_FROM_MACHINE);
    let id = |key: &str, effect: &str| format!("{key}:{effect}");
    let listed: BTreeSet<_> = taints.iter().map(|one| id(&one.key, &one.effect)).collect();
    wanted.retain(|one| {
        let id = id(&one.key, &one.effect);
        !before.contains(&id) || listed.contains(&id)
    });
    let mut always = BTreeSet::new();
    for one in taints {
        let is_always = one.propagation == "Always";
        if is_always {
            always.insert(id(&one.key, &one.effect));
        }
        let value = one.value.clone().filter(|value| !value.is_empty());
        match wanted.iter_mut().find(|known| known.key == one.key && known.effect == one.effect) {
            Some(known) if is_always && known.value != value => known.value = value,
            None if is_always || is_first => wanted.push(Taint {
                key: one.key.clone(),
                value,
                effect: one.effect.clone(),
                ..Default::default()
            }),
            _ => {}
        }
    }
    Some(always.into_iter().collect::<Vec<_>>().join(","))
}

/// Whether the Machine's set is of an older revision than its deployment.
fn is_outdated(observed: &Observed<'_>) -> bool {
    let revision = |annotations: Option<&BTreeMap<String, String>>| {
        annotations.and_then(|all| all.get(annotation::REVISION)?.parse::<i64>().ok())
    };
    let set = observed.set.and_then(|set| revision(set.metadata.annotations.as_ref()));
    let deployment =
        observed.deployment.and_then(|one| revision(one.metadata.annotations.as_ref()));
    matches!((set, deployment), (Some(set), Some(deployment)) if set < deployment)
}

/// Since when the Node's kubelet does not answer; `None` while it does.
pub fn unreachable_since(node: &Node) -> Option<Timestamp> {
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    let ready = conditions.iter().find(|one| one.type_ == "Ready")?;
    (ready.status == "Unknown")
        .then(|| ready.last_transition_time.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0))
}
