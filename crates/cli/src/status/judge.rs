//! What is to be said of the cluster? A pure function from the objects to a report.
//!
//! The report is also what `-o json` prints: names are never changed, only added.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use machinist_api::{Machine, MachineSet};
pub use machinist_core::overview::seen::{InstanceView, NodeState, NodeView, Nodes, Waiting};
use machinist_core::overview::{seen, waiting};
use serde::Serialize;

use super::fetch::{Observed, Unreadable};

/// Everything, in the order in which it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    pub pools: Vec<PoolView>,
    /// Machines that no pool keeps.
    pub machines_without_pool: Vec<MachineView>,
    pub summary: Summary,
}

/// A MachineSet and its machines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PoolView {
    pub namespace: String,
    pub name: String,
    pub created_at: Option<Timestamp>,
    pub desired: i32,
    pub current: i32,
    pub ready: i32,
    pub available: i32,
    pub waiting: Option<Waiting>,
    pub machines: Vec<MachineView>,
}

/// One machine, seen three times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineView {
    pub namespace: String,
    pub name: String,
    /// Empty while nobody has looked at the machine.
    pub phase: String,
    pub created_at: Option<Timestamp>,
    pub deleted_at: Option<Timestamp>,
    pub instance: Option<InstanceView>,
    pub node: Option<NodeView>,
    pub waiting: Option<Waiting>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    pub machines: usize,
    pub by_phase: BTreeMap<String, usize>,
    pub waiting_machines: usize,
    pub waiting_pools: usize,
}

/// What a machine is called while nobody has given it a phase.
pub const NO_PHASE: &str = "New";
/// What an object is called that does not parse.
pub const UNREADABLE: &str = "Unreadable";

pub fn report(observed: &Observed) -> Report {
    let nodes = match &observed.nodes {
        Some(nodes) => Nodes::new(nodes),
        None => Nodes::hidden(),
    };
    let mut pools: Vec<PoolView> = observed.sets.iter().map(pool_view).collect();
    pools.extend(unreadable(observed, "MachineSet").map(unreadable_pool));
    pools
        .sort_by(|left, right| (&left.namespace, &left.name).cmp(&(&right.namespace, &right.name)));

    let mut views: Vec<(Option<String>, MachineView)> = observed
        .machines
        .iter()
        .map(|machine| (pool_of(machine), machine_view(machine, &nodes)))
        .collect();
    views.extend(unreadable(observed, "Machine").map(|one| (None, unreadable_machine(one))));
    views.sort_by(|(_, left), (_, right)| {
        (&left.namespace, &left.name).cmp(&(&right.namespace, &right.name))
    });
    let summary = summarize(&pools, views.iter().map(|(_, view)| view));

    let mut machines_without_pool = Vec::new();
    for (pool, view) in views {
        let keeper = pools.iter_mut().find(|candidate| {
            candidate.namespace == view.namespace && Some(&candidate.name) == pool.as_ref()
        });
        match keeper {
            Some(keeper) => keeper.machines.push(view),
            None => machines_without_pool.push(view),
        }
    }
    Report { pools, machines_without_pool, summary }
}

impl Report {
    /// All machines, those of the pools first.
    pub fn machines(&self) -> impl Iterator<Item = &MachineView> {
        self.pools.iter().flat_map(|pool| &pool.machines).chain(&self.machines_without_pool)
    }
}

/// The kinds that keep machines: the second is of Cluster API.
const POOLS: [&str; 2] = ["MachineSet", "MachineDeployment"];

fn pool_of(machine: &Machine) -> Option<String> {
    let owners = machine.metadata.owner_references.iter().flatten();
    let mut controllers = owners
        .filter(|owner| owner.controller == Some(true) && POOLS.contains(&owner.kind.as_str()));
    controllers.next().map(|owner| owner.name.clone())
}

fn pool_view(set: &MachineSet) -> PoolView {
    let status = set.status.clone().unwrap_or_default();
    PoolView {
        namespace: set.metadata.namespace.clone().unwrap_or_default(),
        name: set.metadata.name.clone().unwrap_or_default(),
        created_at: created_at(&set.metadata),
        desired: set.spec.replicas.unwrap_or(1),
        current: status.replicas.unwrap_or(0),
        ready: status.ready_replicas.unwrap_or(0),
        available: status.available_replicas.unwrap_or(0),
        waiting: waiting::of_pool(set),
        machines: Vec::new(),
    }
}

fn machine_view(machine: &Machine, nodes: &Nodes<'_>) -> MachineView {
    MachineView {
        namespace: machine.metadata.namespace.clone().unwrap_or_default(),
        name: machine.metadata.name.clone().unwrap_or_default(),
        phase: machine.status.as_ref().and_then(|status| status.phase.clone()).unwrap_or_default(),
        created_at: created_at(&machine.metadata),
        deleted_at: machine.metadata.deletion_timestamp.as_ref().map(|time| time.0),
        instance: seen::instance(machine),
        node: nodes.view_of(machine),
        waiting: waiting::of_machine(machine, nodes),
    }
}

fn created_at(metadata: &ObjectMeta) -> Option<Timestamp> {
    metadata.creation_timestamp.as_ref().map(|time| time.0)
}

fn unreadable<'a>(
    observed: &'a Observed,
    kind: &'static str,
) -> impl Iterator<Item = &'a Unreadable> {
    observed.unreadable.iter().filter(move |one| one.kind == kind)
}

fn unreadable_pool(object: &Unreadable) -> PoolView {
    PoolView {
        namespace: object.namespace.clone(),
        name: object.name.clone(),
        created_at: object.created_at,
        desired: 0,
        current: 0,
        ready: 0,
        available: 0,
        waiting: Some(waiting::of_unreadable(&object.problem)),
        machines: Vec::new(),
    }
}

fn unreadable_machine(object: &Unreadable) -> MachineView {
    MachineView {
        namespace: object.namespace.clone(),
        name: object.name.clone(),
        phase: UNREADABLE.to_owned(),
        created_at: object.created_at,
        deleted_at: None,
        instance: None,
        node: None,
        waiting: Some(waiting::of_unreadable(&object.problem)),
    }
}

fn summarize<'a>(pools: &[PoolView], machines: impl Iterator<Item = &'a MachineView>) -> Summary {
    let waiting_pools = pools.iter().filter(|pool| pool.waiting.is_some()).count();
    let mut summary = Summary { waiting_pools, ..Summary::default() };
    for machine in machines {
        let phase = if machine.phase.is_empty() { NO_PHASE } else { &machine.phase };
        summary.machines += 1;
        *summary.by_phase.entry(phase.to_owned()).or_default() += 1;
        summary.waiting_machines += usize::from(machine.waiting.is_some());
    }
    summary
}
