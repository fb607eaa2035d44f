//! The whole fleet as it is planned: everything that is read for one plan, held for as long as that is
//! made.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use k8s_openapi::api::{
    core::v1::{Node, Pod},
    policy::v1::PodDisruptionBudget,
};
use machinist_api::{Machine, MachineMaintenance, MachineSet};
use machinist_core::{
    cluster_api::maintained::is_of_cluster_api,
    maintenance::{
        Cluster, Durations, Gathered, PolicySet,
        control_plane::{self, ControlPlaneMember, EtcdAnswer, EtcdPods},
        event::Sighting,
        freshness, gather,
        plan::{ClusterState, ControlPlane, plan},
        records,
    },
    node,
};

use super::{
    closer_look,
    memory::{Memory, Planned},
    sight::{Pictures, Sighted},
};
use crate::{cluster_api::maintained::Maintained, context::Context};

pub struct Fleet {
    pub machines: Vec<Sighted>,
    pub sets: Vec<Arc<MachineSet>>,
    pub maintenances: Vec<Arc<MachineMaintenance>>,
    /// Of this cluster.
    pub budgets: Vec<Arc<PodDisruptionBudget>>,
    pub policies: PolicySet,
    pub durations: Durations,
    pub state: ClusterState,
}

/// A plan, and the objects that are missing for it.
pub struct NewPlan {
    pub planned: Planned,
    pub missing: Vec<MachineMaintenance>,
}

impl Fleet {
    pub async fn observe(context: &Context, memory: &Memory) -> Self {
        let stores = &context.stores;
        let maintenances = stores.maintenance.list();
        let pictures = Pictures::take(context);
        let of_cluster_api = stores.cluster_api.get();
        let mut machines: Vec<Sighted> = stores
            .machines
            .list()
            .iter()
            .chain(&of_cluster_api.map(Maintained::machines).unwrap_or_default())
            .map(|machine| Sighted::of(context, &pictures, machine))
            .collect();
        let counting = records::counting(maintenances.iter().map(AsRef::as_ref));
        let mut asks_for_control_plane = false;
        for sighted in &mut machines {
            let name = sighted.machine.metadata.name.as_deref().unwrap_or_default();
            if sighted.is_of_interest() || counting.contains_key(name) {
                let within = freshness::of_pods(memory.entry(name).as_ref(), context.env.now());
                sighted.look_closer(context, memory, within).await;
                asks_for_control_plane |= is_member(sighted);
            }
        }
        let members = machines.iter().filter(|sighted| is_member(sighted));
        let members: Vec<Linked> =
            members.map(|sighted| (Arc::clone(&sighted.machine), sighted.node.clone())).collect();
        let control_plane = judge(context, memory, &members, asks_for_control_plane).await;
        let durations = Durations::learn(maintenances.iter().map(AsRef::as_ref));
        Self {
            machines,
            sets: stores
                .machine_sets
                .list()
                .into_iter()
                .chain(of_cluster_api.map(Maintained::pools).unwrap_or_default())
                .collect(),
            budgets: stores.budgets.list(),
            policies: stores.maintenance.policy_set(),
            durations,
            state: ClusterState {
                paused: stores.maintenance.pause(),
                upgrade: stores.maintenance.upgrade(),
                control_plane,
            },
            maintenances,
        }
    }

    /// Plans, and says which objects are missing.
    pub fn plan(&self, namespace: &str, now: Timestamp) -> NewPlan {
        self.gathered(now, |gathered| {
            let plan = plan(&gathered.fleet, now);
            let counting = records::counting(self.maintenances.iter().map(AsRef::as_ref));
            let missing = self
                .machines
                .iter()
                .zip(&gathered.fleet.machines)
                .filter(|(_, machine)| !machine.is_deleting && !counting.contains_key(machine.name))
                .filter_map(|(sighted, machine)| {
                    let (need, instance) = (machine.need.as_ref()?, sighted.instance.as_deref());
                    Some(records::new_for(&sighted.machine, need, instance, namespace))
                })
                .collect();
            let reasons = gathered
                .reasons
                .into_iter()
                .map(|(name, merged)| (name.to_owned(), merged.reasons))
                .collect();
            NewPlan { planned: Planned { plan, reasons }, missing }
        })
    }

    /// Gathers, and hands what was gathered to the caller.
    pub fn gathered<R>(&self, now: Timestamp, with: impl FnOnce(Gathered<'_>) -> R) -> R {
        let pods: Vec<Vec<&Pod>> = self
            .machines
            .iter()
            .map(|sighted| sighted.pods.iter().map(AsRef::as_ref).collect())
            .collect();
        let sets: Vec<&MachineSet> = self.sets.iter().map(AsRef::as_ref).collect();
        let maintenances: Vec<&MachineMaintenance> =
            self.maintenances.iter().map(AsRef::as_ref).collect();
        // Budgets of another cluster say nothing of pods here, and the other way round.
        let here: Vec<&PodDisruptionBudget> = self.budgets.iter().map(AsRef::as_ref).collect();
        let elsewhere: Vec<Vec<&PodDisruptionBudget>> = self
            .machines
            .iter()
            .map(|sighted| sighted.budgets.iter().map(AsRef::as_ref).collect())
            .collect();
        let sightings: Vec<Sighting> =
            self.machines.iter().flat_map(|sighted| sighted.sightings.iter().cloned()).collect();
        let machines = self.machines.iter().zip(&pods).zip(&elsewhere);
        let cluster = Cluster {
            machines: machines
                .map(|((sighted, pods), elsewhere)| {
                    let is_elsewhere = is_of_cluster_api(&sighted.machine);
                    sighted.sight(pods, if is_elsewhere { elsewhere } else { &here })
                })
                .collect(),
            sets: &sets,
            maintenances: &maintenances,
            sightings: &sightings,
            policies: &self.policies,
            durations: &self.durations,
            state: self.state.clone(),
        };
        with(gather(&cluster, now))
    }
}

fn is_member(sighted: &Sighted) -> bool {
    control_plane::is_member(&sighted.machine, sighted.node.as_deref())
}

type Linked = (Arc<Machine>, Option<Arc<Node>>);

/// How the control plane is doing now, etcd included.
pub async fn control_plane_now(context: &Context, memory: &Memory) -> ControlPlane {
    memory.etcd.forget();
    let machines = context.stores.machines.list().into_iter();
    let members: Vec<Linked> = machines
        .map(|machine| {
            let node = context.stores.linked_node(&machine);
            (machine, node)
        })
        .filter(|(machine, node)| control_plane::is_member(machine, node.as_deref()))
        .collect();
    judge(context, memory, &members, true).await
}

/// etcd is asked for only where one of its machines is concerned.
async fn judge(
    context: &Context,
    memory: &Memory,
    members: &[Linked],
    is_asked: bool,
) -> ControlPlane {
    if !is_asked {
        return control_plane::judge(&with_answers(members, None), EtcdPods::NotAsked);
    }
    match closer_look::etcd(context, memory).await {
        Ok(etcd) => {
            let members = with_answers(members, Some(&etcd.answers));
            control_plane::judge(&members, EtcdPods::Known(&etcd.pods))
        }
        Err(error) => {
            let why = format!("{error:#}");
            control_plane::judge(&with_answers(members, None), EtcdPods::Unknown(&why))
        }
    }
}

fn with_answers<'a>(
    members: &'a [Linked],
    answers: Option<&'a BTreeMap<String, EtcdAnswer>>,
) -> Vec<ControlPlaneMember<'a>> {
    let member = |(machine, node): &'a Linked| ControlPlaneMember {
        machine,
        node: node.as_deref(),
        etcd: node.as_deref().and_then(|node| answers?.get(node::name(node))),
    };
    members.iter().map(member).collect()
}
