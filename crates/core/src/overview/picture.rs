//! How do the objects of a cluster become a plan? As the operator's leader makes it.
//!
//! There is no cloud to ask here, so that the command line and every replica can answer. What the provider announced is what the operator recorded, and what
//! the machines' own metadata tells on their Nodes; of an instance only what its Machine says is known.

use std::collections::{BTreeMap, BTreeSet};

use super::{objects::Objects, seen::Nodes};
use crate::{
    cloud::InstanceId,
    cluster_api::maintained::{self, is_of_cluster_api},
    drift::Class,
    machine::observed::Identity,
    maintenance::{
        Cluster, Durations, Gathered, Note, Plan, PlanEntry, PolicySet,
        control_plane::{self, ControlPlaneMember, EtcdPods},
        event::{Code, EventState, Sighting, Source},
        gather,
        gather::{Hardware, MachineSight},
        managed_upgrade::upgrade_under_way,
        plan,
        plan::{ClusterState, ControlPlane, Standing},
        records,
    },
    node,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use machinist_api::{
    Machine, MachineMaintenance, MaintenanceReasonKind, MaintenanceReasonState, MaintenanceWait,
    condition::{self, ConditionStatus},
    names::{condition_type, label, maintenance_reason},
};

/// The plan, and what it was made of.
pub struct Picture<'a> {
    pub objects: &'a Objects<'a>,
    /// The MachineMaintenance that counts, by Machine.
    pub records: &'a BTreeMap<&'a str, &'a MachineMaintenance>,
    pub gathered: &'a Gathered<'a>,
    pub plan: &'a Plan,
    pub policies: &'a PolicySet,
    pub control_plane: &'a ControlPlane,
    pub sights: &'a BTreeMap<&'a str, Sight<'a>>,
    /// What maintenances wait for that only the operator sees, as it recorded it, by Machine.
    pub held_up: &'a BTreeMap<&'a str, &'a [MaintenanceWait]>,
    pub now: Timestamp,
}

/// A Machine with what belongs to it.
#[derive(Clone)]
pub struct Sight<'a> {
    pub machine: &'a Machine,
    pub node: Option<&'a Node>,
    pub pods: &'a [&'a Pod],
}

/// Gathers and plans, with events that are only supposed besides those that are known.
pub fn with_plan<R>(
    objects: &Objects<'_>,
    supposed: &[Sighting],
    now: Timestamp,
    look: impl FnOnce(&Picture<'_>) -> R,
) -> R {
    let nodes = Nodes::new(objects.nodes.iter().copied());
    let pods_by_node = pods_by_node(&objects.pods);
    let no_pods: &[&Pod] = &[];
    let sights: BTreeMap<&str, Sight<'_>> = objects
        .machines
        .iter()
        .copied()
        .map(|machine| {
            let node = nodes.of(machine).and_then(|(_, _, node)| node);
            let pods = node.and_then(|node| pods_by_node.get(node::name(node)));
            let pods = pods.map_or(no_pods, Vec::as_slice);
            (name_of(machine), Sight { machine, node, pods })
        })
        .collect();
    let legacy = objects.legacy();
    let policies = objects.policy_set(&legacy);
    let durations = Durations::learn(objects.maintenances.iter().copied());
    let records = records::counting(objects.maintenances.iter().copied());
    let mut sightings = supposed.to_vec();
    let mut unrecorded = BTreeSet::new();
    let machines: Vec<MachineSight<'_>> = sights
        .values()
        .map(|sight| {
            let record = records.get(name_of(sight.machine)).copied();
            sightings.extend(announced(sight, record));
            MachineSight {
                machine: sight.machine,
                node: sight.node,
                pods: sight.pods,
                budgets: &objects.budgets,
                // Nobody was asked: what is recorded holds until the operator says otherwise.
                asked: &[],
                impaired: impaired(sight.machine, record),
                hardware: record.and_then(Hardware::recorded).unwrap_or_else(|| {
                    // What a provider of Cluster API keeps is replaced, whatever it is made of.
                    if !is_of_cluster_api(sight.machine) {
                        unrecorded.insert(name_of(sight.machine));
                    }
                    hardware(sight.machine)
                }),
            }
        })
        .collect();
    let members: Vec<ControlPlaneMember<'_>> = sights
        .values()
        .filter(|sight| control_plane::is_member(sight.machine, sight.node))
        .map(|sight| ControlPlaneMember {
            machine: sight.machine,
            node: sight.node,
            // Only the operator asks the members themselves; what they said is on the records.
            etcd: None,
        })
        .collect();
    let etcd = etcd_pods(&objects.pods);
    let etcd = match objects.pods_unknown {
        _ if !objects.tell_of_etcd => EtcdPods::NotAsked,
        Some(why) => EtcdPods::Unknown(why),
        None => EtcdPods::Known(&etcd),
    };
    let control_plane = control_plane::judge(&members, etcd);
    let cluster = Cluster {
        machines,
        sets: &objects.sets,
        maintenances: &objects.maintenances,
        sightings: &sightings,
        policies: &policies,
        durations: &durations,
        state: ClusterState {
            paused: objects.pause().map(str::to_owned),
            upgrade: upgrade_under_way(&objects.upgrades),
            control_plane: control_plane.clone(),
        },
    };
    let gathered = gather(&cluster, now);
    let mut plan = plan(&gathered.fleet, now);
    plan.notes.extend(unknown_hardware(&plan, &unrecorded));
    plan.notes.extend(legacy.notes.iter().cloned());
    plan.notes.extend(objects.notes.iter().cloned());
    plan.notes.sort();
    plan.notes.dedup();
    let recorded: BTreeMap<&str, Vec<MaintenanceWait>> =
        records.iter().map(|(name, record)| (*name, waits_of(record, plan.entry(name)))).collect();
    let held_up = recorded.iter().map(|(name, waits)| (*name, waits.as_slice())).collect();
    look(&Picture {
        objects,
        records: &records,
        held_up: &held_up,
        gathered: &gathered,
        plan: &plan,
        policies: &policies,
        control_plane: &control_plane,
        sights: &sights,
        now,
    })
}

pub fn name_of(machine: &Machine) -> &str {
    machine.metadata.name.as_deref().unwrap_or_default()
}

/// What the machine's metadata tells on its Node and nobody has recorded yet. What is recorded was
/// merged from better sources.
fn announced(sight: &Sight<'_>, record: Option<&MachineMaintenance>) -> Vec<Sighting> {
    let Some(instance) = Identity::of(sight.machine).instance_id else { return Vec::new() };
    let reasons = record.and_then(|record| record.status.as_ref()).map(|status| &status.reasons);
    let recorded: BTreeSet<&str> =
        reasons.into_iter().flatten().map(|reason| reason.id.as_str()).collect();
    let events = sight.node.map(|node| Sighting::on_node(node, &instance)).unwrap_or_default();
    events.into_iter().filter(|event| !recorded.contains(event.id.as_str())).collect()
}

/// An event that is only supposed.
pub fn supposed(id: String, instance: InstanceId, code: &str, not_before: Timestamp) -> Sighting {
    Sighting {
        source: Source::Api,
        id,
        instance,
        code: code.to_owned(),
        description: "supposed, to try the plan".to_owned(),
        state: EventState::Active,
        not_before: Some(not_before),
        not_after: None,
        not_before_deadline: None,
    }
}

/// What only the operator sees of a machine of Cluster API, whose pods are in another cluster.
const ONLY_OPERATOR_ELSEWHERE: [&str; 2] =
    [maintenance_reason::DO_NOT_DISRUPT, maintenance_reason::DRAIN_IMPOSSIBLE];

/// What only the operator sees, which asks the provider, etcd's members and the gate.
const ONLY_OPERATOR: [&str; 6] = [
    maintenance_reason::CLOUD_UNKNOWN,
    maintenance_reason::CONTROL_PLANE_NOT_READY,
    maintenance_reason::GATE_HOLDS,
    maintenance_reason::REASON_DOUBTFUL,
    maintenance_reason::RETRY_LATER,
    maintenance_reason::STEP_FAILED,
];

/// What the operator recorded that a maintenance waits for: all of it while it is under way, and before
/// that what cannot be known here. The plan knows the rest, and newer.
fn waits_of(record: &MachineMaintenance, entry: Option<&PlanEntry>) -> Vec<MaintenanceWait> {
    let Some(status) = record.status.as_ref() else { return Vec::new() };
    let is_under_way = status.phase.is_some_and(|phase| phase.is_under_way());
    let is_over = status.phase.is_some_and(|phase| phase.is_over());
    let is_elsewhere = maintained::parts(&record.spec.machinelink).is_some();
    let is_hidden_here = |reason: &str| {
        ONLY_OPERATOR.contains(&reason) || is_elsewhere && ONLY_OPERATOR_ELSEWHERE.contains(&reason)
    };
    let is_news = |wait: &&MaintenanceWait| {
        let is_known =
            entry.is_some_and(|entry| entry.waits_on.iter().any(|one| one.message == wait.message));
        is_under_way || is_hidden_here(&wait.reason) && !is_known
    };
    let waits = status.plan.iter().filter(|_| !is_over).flat_map(|plan| &plan.waits_on);
    waits.filter(is_news).cloned().collect()
}

/// Since when the provider's checks fail: as recorded, else as the Machine's condition says.
fn impaired(machine: &Machine, record: Option<&MachineMaintenance>) -> Option<(Timestamp, String)> {
    let reasons = record.and_then(|record| record.status.as_ref()).map(|status| &status.reasons);
    let recorded = reasons.into_iter().flatten().find_map(|reason| {
        let is_so = reason.kind == MaintenanceReasonKind::Drift
            && reason.state == MaintenanceReasonState::Active;
        let since = reason.id.strip_prefix(&format!("drift/{}/", Class::Impaired.as_str()))?;
        let since = since.parse::<Timestamp>().ok().filter(|_| is_so)?;
        let words = reason.description.as_deref().unwrap_or_default();
        let checks = words.strip_prefix("the provider's checks fail: ").unwrap_or(words);
        Some((since, checks.to_owned()))
    });
    let conditions = machine.status.as_ref().map(|status| status.conditions.as_slice());
    let told = || {
        let healthy = condition::find(conditions?, condition_type::INSTANCE_HEALTHY)?;
        let is_so = healthy.status == ConditionStatus::False
            && healthy.reason.as_deref() == Some(Class::Impaired.as_str());
        let words = healthy.message.clone().unwrap_or_default();
        is_so.then_some((healthy.last_transition_time.0, words))
    };
    recorded.or_else(told)
}

/// What of the hardware the Machine itself says.
fn hardware(machine: &Machine) -> Hardware {
    let labels = machine.metadata.labels.as_ref();
    Hardware {
        is_interruptible: labels.is_some_and(|all| all.contains_key(label::INTERRUPTIBLE)),
        ..Hardware::default()
    }
}

/// Says for which machines the provider's answer could change what is done.
fn unknown_hardware(plan: &Plan, unrecorded: &BTreeSet<&str>) -> Option<Note> {
    let depends = |entry: &&PlanEntry| {
        let is_event = entry.codes.iter().any(|code| Code::of(code).is_some());
        let is_open = !matches!(entry.standing, Standing::UnderWay { .. });
        is_event && is_open && unrecorded.contains(entry.machine.as_str())
    };
    let machines: Vec<&str> =
        plan.entries.iter().filter(depends).map(|entry| entry.machine.as_str()).collect();
    let first = machines.first()?;
    let others = match machines.len() {
        1 => String::new(),
        count => format!(" and {} more", count - 1),
    };
    let message = format!(
        "nothing is recorded of the disks of {first}{others}, nor whether a reboot can move it: the \
         operator, which asks the provider, may choose another action"
    );
    Some(Note::normal("InstanceUnknown", format!("machine/{first}"), message))
}

fn etcd_pods(pods: &[&Pod]) -> Vec<Pod> {
    let is_etcd = |pod: &&Pod| {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        control_plane::is_etcd(namespace, pod.metadata.labels.as_ref())
    };
    pods.iter().copied().filter(is_etcd).cloned().collect()
}

fn pods_by_node<'a>(pods: &[&'a Pod]) -> BTreeMap<&'a str, Vec<&'a Pod>> {
    let mut by_node: BTreeMap<&str, Vec<&Pod>> = BTreeMap::new();
    for pod in pods.iter().copied() {
        if let Some(node) = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) {
            by_node.entry(node).or_default().push(pod);
        }
    }
    by_node
}
