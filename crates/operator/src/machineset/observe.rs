//! What is known of one pool: its Machines and their Nodes.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::{api::core::v1::Node, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use machinist_api::{Machine, MachineSet};
use machinist_core::machineset::{Bounds, Observed, observed::Member, validate};

use super::memory::{Memory, SetMemory, fresh_name};
use crate::{context::Context, engine::store::ObjectKey, index};

/// How many Machines one pass may make; the next pass follows at once.
const CREATED_IN_ONE_PASS: usize = 100;

pub struct Observation {
    set: Arc<MachineSet>,
    members: Vec<(Arc<Machine>, Option<Arc<Node>>)>,
    unreadable: usize,
    names: Vec<String>,
    bounds: Bounds,
    memory: SetMemory,
}

impl Observation {
    pub fn observed(&self) -> Observed<'_> {
        Observed {
            set: &self.set,
            machines: self
                .members
                .iter()
                .map(|(machine, node)| Member { machine, node: node.as_deref() })
                .collect(),
            unreadable: self.unreadable,
            fresh_names: &self.names,
            bounds: self.bounds,
            status_written_at: self.memory.status_written_at,
            last_failure: self.memory.last_failure.as_ref(),
        }
    }
}

pub fn observe(context: &Context, memory: &Memory, set: &Arc<MachineSet>) -> Observation {
    let key = ObjectKey::of(&**set);
    let remembered = memory.of(&key);
    let selector = validate(set).ok();
    let is_matching = |machine: &Machine| {
        let empty = BTreeMap::new();
        let labels = machine.metadata.labels.as_ref().unwrap_or(&empty);
        selector.as_ref().is_some_and(|selector| selector.matches(labels))
    };
    let machines = &context.stores.machines;
    let uid = set.metadata.uid.as_deref();
    let owned = uid.map(|uid| machines.by_index(index::MACHINE_BY_OWNER, uid)).unwrap_or_default();
    let mut adoptable = machines.by_index(index::MACHINE_BY_OWNER, index::NO_OWNER);
    adoptable.retain(|machine| is_matching(machine));
    let members: Vec<_> = owned
        .into_iter()
        .chain(adoptable)
        .filter(|machine| machine.metadata.namespace == set.metadata.namespace)
        .map(|machine| {
            let node = context.stores.linked_node(&machine);
            (machine, node)
        })
        .collect();
    let wanted = usize::try_from(set.spec.replicas.unwrap_or(1)).unwrap_or(0);
    let kept = members
        .iter()
        .filter(|(machine, _)| {
            machine.metadata.deletion_timestamp.is_none() && is_matching(machine)
        })
        .count();
    let missing = wanted.saturating_sub(kept).min(CREATED_IN_ONE_PASS);
    // A Machine whose creation succeeded after all is there by now.
    let is_there = |name: &String| {
        members.iter().any(|(machine, _)| machine.metadata.name.as_ref() == Some(name))
    };
    let mut names: Vec<String> =
        remembered.unresolved.iter().filter(|name| !is_there(name)).cloned().collect();
    while names.len() < missing {
        names.push(fresh_name(&context.env, &key.name));
    }
    let unreadable = unreadable_members(context, set);
    let bounds = memory.creations.bounds(&context.env, in_all(context));
    Observation { set: Arc::clone(set), members, unreadable, names, bounds, memory: remembered }
}

/// All Machines there are, those that cannot be read included.
pub fn in_all(context: &Context) -> usize {
    let machines = &context.stores.machines;
    machines.len() + machines.invalid().len()
}

/// How many Machines of this set exist that could not be read.
fn unreadable_members(context: &Context, set: &MachineSet) -> usize {
    let is_ours = |metadata: &ObjectMeta| {
        metadata.namespace == set.metadata.namespace
            && metadata.deletion_timestamp.is_none()
            && metadata.owner_references.iter().flatten().any(|owner| {
                owner.controller == Some(true) && Some(&owner.uid) == set.metadata.uid.as_ref()
            })
    };
    context.stores.machines.invalid().iter().filter(|object| is_ours(&object.metadata)).count()
}
