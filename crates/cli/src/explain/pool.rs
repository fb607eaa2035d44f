//! What is worth saying of a pool?

use machinist_api::{
    MachineSet,
    names::{annotation, phase},
};
use machinist_core::{
    disruption::{Pool, is_healthy},
    maintenance::surge::Mark,
    overview::{
        seen::{Nodes, Waiting},
        waiting,
    },
};
use serde::Serialize;

use crate::fleet::{Picture, name_of};

/// A MachineSet and its machines.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PoolStory {
    pub name: String,
    pub namespace: String,
    pub desired: i32,
    pub current: i32,
    pub ready: i32,
    /// Machines above its size, while others are replaced.
    pub surplus: usize,
    pub waiting: Option<Waiting>,
    /// Why maintenance of its machines is paused.
    pub paused: Option<String>,
    /// Why the disruption gate would let no machine be taken out of work now.
    pub gate: Option<String>,
    pub machines: Vec<MemberStory>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MemberStory {
    pub name: String,
    pub phase: String,
    /// What it waits for, in one sentence; none where it is well.
    pub waiting: Option<String>,
    /// What is planned for it, in one sentence.
    pub maintenance: Option<String>,
}

pub(super) fn story(set: &MachineSet, picture: &Picture<'_>) -> PoolStory {
    let status = set.status.clone().unwrap_or_default();
    let annotations = set.metadata.annotations.as_ref();
    let annotation_of = |key: &str| annotations.and_then(|all| all.get(key)).map(String::as_str);
    let is_member = |name: &&str| {
        let machine = picture.sights.get(*name).map(|sight| sight.machine);
        let owner = machine.and_then(|machine| picture.objects.set_of(machine));
        owner.is_some_and(|owner| owner.metadata.uid == set.metadata.uid)
    };
    let nodes = Nodes::new(picture.objects.nodes.iter().copied());
    let members: Vec<_> =
        picture.sights.iter().filter(|(name, _)| is_member(name)).map(|(_, sight)| sight).collect();
    // What the gate would say to a machine that does its work now.
    let asking = members
        .iter()
        .find(|sight| is_healthy(sight.machine, sight.node))
        .and_then(|sight| sight.machine.metadata.uid.as_deref());
    let seen = members.iter().map(|sight| (sight.machine, sight.node));
    let pool = Pool::of(set, seen, asking.unwrap_or_default());
    let approved_until =
        annotation_of(annotation::APPROVED_UNTIL).and_then(|text| text.parse().ok());
    PoolStory {
        name: set.metadata.name.clone().unwrap_or_default(),
        namespace: set.metadata.namespace.clone().unwrap_or_default(),
        desired: set.spec.replicas.unwrap_or(1),
        current: status.replicas.unwrap_or(0),
        ready: status.ready_replicas.unwrap_or(0),
        surplus: Mark::read(annotation_of(annotation::SURGE)).count(),
        waiting: waiting::of_pool(set),
        paused: annotation_of(annotation::MAINTENANCE_PAUSED).map(str::to_owned),
        gate: pool.permit(approved_until, picture.now).err().map(|held| held.0),
        machines: members
            .iter()
            .map(|sight| MemberStory {
                name: name_of(sight.machine).to_owned(),
                phase: sight
                    .machine
                    .status
                    .as_ref()
                    .and_then(|status| status.phase.clone())
                    .unwrap_or_else(|| phase::PROVISIONING.to_owned()),
                waiting: waiting::of_machine(sight.machine, &nodes).map(|waiting| waiting.message),
                maintenance: picture
                    .plan
                    .entry(name_of(sight.machine))
                    .map(machinist_core::maintenance::PlanEntry::sentence),
            })
            .collect(),
    }
}
