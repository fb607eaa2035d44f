//! What a Node must carry of its Machine: the annotation that names it, its labels, annotations and
//! taints. Additive only: nothing that others put on the Node is removed. A Node that no Machine claims
//! any more goes once its instance is known to have ended.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, Taint};
use machinist_api::{Machine, names::annotation};

use crate::{
    cloud::{Instance, InstanceState},
    decision::{Decision, Wait},
    entries, node,
};

/// A Node and the Machines that claim it.
pub struct Observed<'a> {
    pub node: &'a Node,
    pub machines: Vec<&'a Machine>,
    /// The Node's instance, where the cloud shows it.
    pub instance: Option<&'a Instance>,
}

/// One step for a Node.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    Add(NodeChange),
    /// With the uid that was observed.
    Delete,
}

/// What is to be added to the Node. Empty maps and no taints mean no write.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeChange {
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    /// The whole list, ours added, when any of ours is missing.
    pub taints: Option<Vec<Taint>>,
}

impl NodeChange {
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.annotations.is_empty() && self.taints.is_none()
    }
}

pub const AMBIGUOUS: &str = "AmbiguousMachine";

pub fn decide(observed: &Observed<'_>) -> Decision<Action, ()> {
    let mut decision = Decision::settled(());
    if node::is_deleting(observed.node) {
        return decision;
    }
    match observed.machines.as_slice() {
        [] if is_left_over(observed) => decision.actions.push(Action::Delete),
        [] => {}
        [machine] => {
            let change = missing_on(observed.node, machine);
            if !change.is_empty() {
                decision.actions.push(Action::Add(change));
            }
        }
        several => {
            let names: Vec<_> =
                several.iter().filter_map(|machine| machine.metadata.name.as_deref()).collect();
            decision.waiting.push(Wait::on(
                AMBIGUOUS,
                format!(
                    "node {} matches {} machines, expected 1: {}",
                    node::name(observed.node),
                    several.len(),
                    names.join(", ")
                ),
            ));
        }
    }
    decision
}

/// Whether the Node outlived both its Machine and its instance: it joined, or was seen, after the
/// Machine had looked for it. Its name would keep the next kubelet that gets it from joining.
fn is_left_over(observed: &Observed<'_>) -> bool {
    observed.instance.is_some_and(|instance| {
        instance.state == InstanceState::Terminated && instance.machine_uid().is_some()
    })
}

fn missing_on(node: &Node, machine: &Machine) -> NodeChange {
    let mut wanted_annotations = BTreeMap::new();
    let mut wanted_labels = BTreeMap::new();
    if let Some(metadata) = &machine.spec.metadata {
        wanted_annotations.extend(metadata.annotations.clone());
        wanted_labels.extend(metadata.labels.clone());
    }
    wanted_annotations.insert(
        annotation::MACHINE.to_owned(),
        format!(
            "{}/{}",
            machine.metadata.namespace.as_deref().unwrap_or_default(),
            machine.metadata.name.as_deref().unwrap_or_default()
        ),
    );
    NodeChange {
        labels: entries::missing_from(wanted_labels, node.metadata.labels.as_ref()),
        annotations: entries::missing_from(wanted_annotations, node.metadata.annotations.as_ref()),
        taints: with_missing_taints(node, machine.spec.taints.as_deref().unwrap_or_default()),
    }
}

/// The Node's taints with the Machine's added whose key and effect are absent.
fn with_missing_taints(node: &Node, wanted: &[Taint]) -> Option<Vec<Taint>> {
    let present =
        node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default().to_vec();
    let mut all = present.clone();
    for taint in wanted {
        let is_there = |known: &Taint| known.key == taint.key && known.effect == taint.effect;
        if !all.iter().any(is_there) {
            all.push(taint.clone());
        }
    }
    (all.len() > present.len()).then_some(all)
}
