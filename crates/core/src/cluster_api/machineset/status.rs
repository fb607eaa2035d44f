//! What is said of a MachineSet: its counts and its conditions.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use machinist_api::cluster_api::{
    Machine, MachineSet, MachineSetStatus,
    condition::{self, UNKNOWN},
    names::{condition_type, kind, reason},
};

use crate::{
    cluster_api::{
        deprecated::{self, Hindrance, Size},
        identity::is_deleting,
        pausing,
        scaling::{self, Counts},
    },
    selector::MachineSelector,
};

/// What keeps a set from making Machines.
#[derive(Clone, Debug, Default)]
pub struct Blocked {
    /// One sentence each.
    pub by: Vec<String>,
    pub hindrance: Option<Hindrance>,
}

impl Blocked {
    /// The first is what it is called by.
    pub fn extend(&mut self, hindrance: Hindrance, by: impl IntoIterator<Item = String>) {
        let before = self.by.len();
        self.by.extend(by);
        if self.by.len() > before {
            self.hindrance.get_or_insert(hindrance);
        }
    }
}

/// Everything that can be told when the Machines are known.
pub fn describe(
    set: &MachineSet,
    members: &[&Machine],
    selector: &MachineSelector,
    blocked: &Blocked,
    now: Timestamp,
) -> MachineSetStatus {
    let counts = scaling::count(members);
    let mut status = counted(set, &counts);
    status.selector = Some(selector.canonical());
    let is_going = is_deleting(&set.metadata);
    let desired = if is_going { Some(0) } else { set.spec.replicas };
    let current = scaling::length(members);
    let conditions = [
        scaling::scaling_up(desired, current, &blocked.by, now),
        scaling::scaling_down(desired, current, members, now),
        scaling::machines_ready(members, now),
        scaling::machines_up_to_date(members, now),
        scaling::remediating(kind::MACHINE_SET, members, now),
        scaling::deleting(is_going, members, now),
        pausing::paused_condition(kind::MACHINE_SET, &set.metadata, None, now),
    ];
    put(set, &mut status, conditions);
    let size = Size { current, desired: desired.unwrap_or(current), ready: counts.ready };
    let words = blocked.by.join("; ");
    let hindrance = blocked.hindrance.map(|hindrance| (hindrance, words.as_str()));
    let before = status.deprecated.get_or_insert_default().v1beta1.get_or_insert_default();
    deprecated::of_set(&mut before.conditions, size, members, hindrance, now);
    status
}

fn counted(set: &MachineSet, counts: &Counts) -> MachineSetStatus {
    let mut status = set.status.clone().unwrap_or_default();
    status.replicas = Some(counts.replicas);
    status.ready_replicas = Some(counts.ready);
    status.available_replicas = Some(counts.available);
    status.up_to_date_replicas = Some(counts.up_to_date);
    status.versions = counts.versions.clone();
    status.observed_generation = set.metadata.generation;
    let before = status.deprecated.get_or_insert_default().v1beta1.get_or_insert_default();
    before.fully_labeled_replicas = counts.replicas;
    before.ready_replicas = counts.ready;
    before.available_replicas = counts.available;
    status
}

/// Nothing can be told of the Machines: the set itself is wrong.
pub fn invalid(set: &MachineSet, message: &str, now: Timestamp) -> MachineSetStatus {
    let mut status = set.status.clone().unwrap_or_default();
    status.observed_generation = set.metadata.generation;
    let types = [
        condition_type::SCALING_UP,
        condition_type::SCALING_DOWN,
        condition_type::MACHINES_READY,
        condition_type::MACHINES_UP_TO_DATE,
        condition_type::REMEDIATING,
    ];
    let unknown =
        |type_: &str| condition::new(type_, UNKNOWN, reason::INTERNAL_ERROR, message, now);
    put(set, &mut status, types.map(unknown));
    status
}

pub fn put(
    set: &MachineSet,
    status: &mut MachineSetStatus,
    conditions: impl IntoIterator<Item = Condition>,
) {
    for new in conditions {
        condition::set(&mut status.conditions, new, set.metadata.generation);
    }
}
