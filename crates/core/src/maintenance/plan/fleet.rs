//! What must be known to plan: every machine of the fleet, its pools, and what holds for all.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use machinist_api::{MaintenanceAction, MaintenancePhase};

use crate::{
    cluster_api::maintained,
    maintenance::{
        action::Traits, durations::Durations, note::Note, policies::PolicySet, reason::Need,
    },
};

/// The whole fleet at one instant. The order of the machines does not matter.
pub struct Fleet<'a> {
    /// Every Machine, whether it needs anything or not: all are counted.
    pub machines: Vec<FleetMachine<'a>>,
    /// Every MachineSet by name.
    pub pools: BTreeMap<&'a str, FleetPool<'a>>,
    /// Maintenances that are over: they keep their places for the cool-down.
    pub finished: Vec<Finished<'a>>,
    pub policies: &'a PolicySet,
    pub durations: &'a Durations,
    pub cluster: ClusterState,
    /// What the reader of the fleet found: events of unknown instances, objects of unknown Machines.
    pub notes: Vec<Note>,
}

/// In which cluster a machine does its work. Budgets of a zone and of a cluster are counted in each apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Home<'a> {
    /// Where its Machine is.
    #[default]
    Here,
    /// A workload cluster of Cluster API, with its namespace.
    Workload(&'a str),
}

impl<'a> Home<'a> {
    /// Of a machine or a pool.
    pub fn of(metadata: &'a ObjectMeta) -> Self {
        maintained::cluster_of(metadata).map_or(Self::Here, Self::Workload)
    }
}

/// One Machine.
#[derive(Clone, Debug, Default)]
pub struct FleetMachine<'a> {
    pub name: &'a str,
    pub uid: &'a str,
    /// The MachineSet that owns it.
    pub pool: Option<&'a str>,
    /// The MachineSet that made it, also when that is gone: its policy is chosen by it.
    pub maker: Option<&'a str>,
    pub home: Home<'a>,
    pub zone: Option<&'a str>,
    pub role: Option<&'a str>,
    pub labels: Option<&'a BTreeMap<String, String>>,
    pub is_control_plane: bool,
    /// Whether it does its work as far as anybody can tell (`disruption::is_healthy`).
    pub is_available: bool,
    pub is_deleting: bool,
    /// Whether nothing was launched for it yet, as far as it is recorded.
    pub has_no_instance: bool,
    /// Whether the provider knows nothing of its instance any more.
    pub is_instance_missing: bool,
    /// Why nothing is done to it by our own choice, where its annotations say so.
    pub hold: Option<&'a str>,
    /// Why maintenance is paused for it or its pool, where an annotation says so.
    pub paused: Option<&'a str>,
    /// What its reasons come to.
    pub need: Option<Need>,
    /// The maintenance that was begun.
    pub under_way: Option<UnderWay>,
    /// The value of the annotation with which a person approves.
    pub approval: Option<&'a str>,
    /// Until when a person put it off.
    pub postponed_until: Option<Timestamp>,
    /// When a maintenance that failed may be tried again.
    pub next_attempt: Option<Timestamp>,
    /// Why the provider's event could not be moved, where that was tried often enough.
    pub cannot_move: Option<&'a str>,
    pub traits: Traits,
    /// Budgets of pods on its Node that can never be met, in words.
    pub impossible_budgets: Vec<String>,
    /// Pods on its Node that are not to be disrupted.
    pub do_not_disrupt: Vec<String>,
}

/// A maintenance that was begun and is not over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnderWay {
    pub phase: MaintenancePhase,
    pub action: MaintenanceAction,
    pub since: Timestamp,
}

/// A MachineSet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetPool<'a> {
    pub home: Home<'a>,
    /// How many machines it is to have, without those that we added (`surge::Mark::count`).
    pub desired: usize,
    /// The zone of its template, where all of its machines are in one.
    pub zone: Option<String>,
    /// How many may be out of work by the gate's own rule (`disruption::Pool::breaker`).
    pub gate: Option<usize>,
}

/// A maintenance that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished<'a> {
    pub machine: &'a str,
    pub pool: Option<&'a str>,
    /// `None` where neither the machine nor its pool is there to say it.
    pub home: Option<Home<'a>>,
    pub zone: Option<&'a str>,
    pub is_control_plane: bool,
    /// The policy that held.
    pub policy: Option<&'a str>,
    pub at: Timestamp,
}

/// What holds for all machines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterState {
    /// Why nothing is begun in the whole cluster.
    pub paused: Option<String>,
    /// The upgrade that is under way (`managed_upgrade::upgrade_under_way`).
    pub upgrade: Option<String>,
    pub control_plane: ControlPlane,
}

/// What is known of the control plane.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControlPlane {
    /// How many members it has.
    pub members: usize,
    /// Members that are not ready, and what is not known of etcd. Unknown is not healthy.
    pub problems: Vec<ControlPlaneProblem>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ControlPlaneProblem {
    /// The Machine that it is about; `None` where it is about all.
    pub machine: Option<String>,
    pub message: String,
}

impl ControlPlane {
    /// Why a member may not be taken out of work: the others would be too few, or are not known to
    /// be well. What is wrong with the member itself is no obstacle.
    pub fn obstacle(&self, machine: &str, action: MaintenanceAction) -> Option<String> {
        let others: Vec<&str> = self
            .problems
            .iter()
            .filter(|problem| problem.machine.as_deref() != Some(machine))
            .map(|problem| problem.message.as_str())
            .collect();
        if !others.is_empty() {
            return Some(others.join("; "));
        }
        let left = self.members.saturating_sub(1);
        let quorum = self.members / 2 + 1;
        // Another member joins before this one goes.
        if action != MaintenanceAction::Replace && left < quorum {
            return Some(format!(
                "the control plane has {} members, and {quorum} must be there at any time",
                self.members
            ));
        }
        None
    }
}
