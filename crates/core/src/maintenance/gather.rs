//! How the objects of a cluster become the fleet that is planned. The operator and the command line
//! gather in the same way, so that both plan the same.

pub mod pods;

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::{
    core::v1::{Node, Pod},
    policy::v1::PodDisruptionBudget,
};
use machinist_api::{
    Machine, MachineMaintenance, MachineSet, MaintenancePhase, MaintenanceReason,
    condition::{self, to_seconds},
    maintenance_policy::OutdatedMachines,
    names::{annotation, condition_type, label, maintenance_reason, reason},
};

use super::{
    action::{Replacement, Traits},
    decide::MOVES_MAX,
    durations::Durations,
    event::{Sighting, Source},
    note::Note,
    observed::machine_annotation,
    outdated,
    plan::{ClusterState, Finished, Fleet, FleetMachine, FleetPool, Home, UnderWay},
    policies::{Chosen, PolicySet, Subject},
    policy::Policy,
    reason::{Facts, Merged, Need, Request, merge},
    records,
    surge::Mark,
};
use crate::{
    cloud::{InstanceId, RebootMigration, RootDevice},
    cluster_api::maintained,
    disruption::{self, Pool},
    drift::policy::{has_control_plane_role, maintenance_hold},
    machine::observed::Identity,
    node,
};

/// The objects of a cluster at one instant.
pub struct Cluster<'a> {
    pub machines: Vec<MachineSight<'a>>,
    pub sets: &'a [&'a MachineSet],
    /// Of all namespaces that are watched.
    pub maintenances: &'a [&'a MachineMaintenance],
    /// What the sources tell, of whatever instance.
    pub sightings: &'a [Sighting],
    pub policies: &'a PolicySet,
    pub durations: &'a Durations,
    pub state: ClusterState,
}

/// One Machine and what belongs to it.
pub struct MachineSight<'a> {
    pub machine: &'a Machine,
    pub node: Option<&'a Node>,
    /// The pods on its Node.
    pub pods: &'a [&'a Pod],
    /// The disruption budgets of the cluster that its Node is in.
    pub budgets: &'a [&'a PodDisruptionBudget],
    /// The sources that were asked about its instance and answered whole.
    pub asked: &'a [Source],
    /// Since when the provider's checks fail, and which.
    pub impaired: Option<(Timestamp, String)>,
    pub hardware: Hardware,
}

/// What the cloud tells of an instance that decides what can be done to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hardware {
    pub root_device: RootDevice,
    pub has_instance_store: bool,
    pub is_interruptible: bool,
    pub reboot_migration: RebootMigration,
}

impl Hardware {
    /// What the record of a maintenance has of it; `None` where the provider was not asked for it yet.
    pub fn recorded(maintenance: &MachineMaintenance) -> Option<Self> {
        let recorded = maintenance.status.as_ref()?.instance?;
        Some(Self {
            root_device: if recorded.root_on_host {
                RootDevice::InstanceStore
            } else {
                RootDevice::Network
            },
            has_instance_store: recorded.local_disks,
            is_interruptible: recorded.interruptible,
            reboot_migration: if recorded.reboot_moves {
                RebootMigration::Available
            } else {
                RebootMigration::Unavailable
            },
        })
    }
}

/// The fleet, and the reasons of each of its Machines, by name.
pub struct Gathered<'a> {
    pub fleet: Fleet<'a>,
    pub reasons: BTreeMap<&'a str, Merged>,
}

/// Gathers the fleet.
pub fn gather<'a>(cluster: &Cluster<'a>, now: Timestamp) -> Gathered<'a> {
    let mut gatherer = Gatherer {
        records: records::counting(cluster.maintenances.iter().copied()),
        sets: cluster
            .sets
            .iter()
            .map(|set| (set.metadata.uid.as_deref().unwrap_or_default(), *set))
            .collect(),
        sightings: by_instance(cluster.sightings),
        notes: Vec::new(),
        now,
        cluster,
    };
    gatherer.tell_duplicates();
    let mut machines = Vec::with_capacity(cluster.machines.len());
    let mut reasons = BTreeMap::new();
    for sight in &cluster.machines {
        let (machine, merged) = gatherer.machine(sight);
        if !merged.reasons.is_empty() {
            reasons.insert(machine.name, merged);
        }
        machines.push(machine);
    }
    let pools = gatherer.pools();
    gatherer.tell_strangers();
    let finished = cluster.maintenances.iter().filter_map(|one| finished(one, &pools)).collect();
    let fleet = Fleet {
        machines,
        pools,
        finished,
        policies: cluster.policies,
        durations: cluster.durations,
        cluster: cluster.state.clone(),
        notes: gatherer.notes,
    };
    Gathered { fleet, reasons }
}

struct Gatherer<'c, 'a> {
    cluster: &'c Cluster<'a>,
    /// The MachineMaintenance of a Machine, by the Machine's name.
    records: BTreeMap<&'a str, &'a MachineMaintenance>,
    /// By uid.
    sets: BTreeMap<&'a str, &'a MachineSet>,
    sightings: BTreeMap<&'a str, Vec<Sighting>>,
    notes: Vec<Note>,
    now: Timestamp,
}

impl<'a> Gatherer<'_, 'a> {
    /// Of several objects about one Machine one counts.
    fn tell_duplicates(&mut self) {
        for one in self.cluster.maintenances {
            let machine = one.spec.machinelink.as_str();
            let counted = self.records.get(machine);
            if counted.is_some_and(|counted| !std::ptr::eq(*counted, *one)) {
                let name = one.metadata.name.as_deref().unwrap_or_default();
                let counted = counted.and_then(|counted| counted.metadata.name.as_deref());
                self.notes.push(Note::warning(
                    reason::INVALID_CONFIGURATION,
                    format!("machinemaintenance/{name}"),
                    format!(
                        "{name} is about machine {machine} too, and {} counts",
                        counted.unwrap_or_default()
                    ),
                ));
            }
        }
    }

    fn machine(&mut self, sight: &MachineSight<'a>) -> (FleetMachine<'a>, Merged) {
        let machine: &'a Machine = sight.machine;
        let name = machine.metadata.name.as_deref().unwrap_or_default();
        let set = self.set_of(machine);
        let record = self.records.get(name).copied();
        let status = record.and_then(|record| record.status.as_ref());
        let labels = machine.metadata.labels.as_ref();
        let label_of = |key: &str| labels.and_then(|all| all.get(key)).map(String::as_str);
        let is_control_plane =
            has_control_plane_role(machine) || sight.node.is_some_and(node::is_control_plane);
        let subject = Subject::of(machine);
        let usual = Policy::default();
        let policies = self.cluster.policies;
        let policy = match policies.resolve(&subject).policy {
            Chosen::Valid(policy) => policy,
            Chosen::Invalid { .. } => &usual,
        };
        let merged = self.reasons(sight, set, record, policy);
        let own_hold =
            record.and_then(|record| record.metadata.uid.as_deref()).map(maintenance_hold);
        let hold = machine_annotation(machine, annotation::HOLD)
            .filter(|hold| Some(*hold) != own_hold.as_deref());
        let set_annotations = set.and_then(|set| set.metadata.annotations.as_ref());
        let paused = machine_annotation(machine, annotation::MAINTENANCE_PAUSED)
            .or_else(|| set_annotations?.get(annotation::MAINTENANCE_PAUSED).map(String::as_str))
            .or_else(|| maintained::standstill_of(machine));
        let event_move = status.and_then(|status| status.event_move.as_ref());
        let fleet_machine = FleetMachine {
            name,
            uid: machine.metadata.uid.as_deref().unwrap_or_default(),
            pool: set.and_then(|set| set.metadata.name.as_deref()),
            maker: subject.pool,
            home: Home::of(&machine.metadata),
            zone: label_of(label::ZONE),
            role: subject.role,
            labels,
            is_control_plane,
            is_available: disruption::is_healthy(machine, sight.node),
            is_deleting: machine.metadata.deletion_timestamp.is_some(),
            has_no_instance: Identity::of(machine).instance_id.is_none(),
            is_instance_missing: is_instance_missing(machine),
            hold,
            paused,
            need: Need::of(&merged.reasons, policy),
            under_way: record.and_then(under_way),
            approval: record.and_then(|record| {
                let annotations = record.metadata.annotations.as_ref()?;
                annotations.get(annotation::MAINTENANCE_APPROVED).map(String::as_str)
            }),
            postponed_until: record.and_then(postponed_until),
            next_attempt: status
                .and_then(|status| status.next_attempt.as_ref())
                .map(|time| to_seconds(time.0).0),
            cannot_move: event_move
                .filter(|event_move| event_move.attempt >= MOVES_MAX)
                .and_then(|event_move| event_move.failure.as_deref()),
            traits: traits(machine, set, is_control_plane, sight.hardware),
            impossible_budgets: pods::impossible_budgets(sight.pods, sight.budgets),
            do_not_disrupt: pods::do_not_disrupt(sight.pods),
        };
        (fleet_machine, merged)
    }

    fn reasons(
        &mut self,
        sight: &MachineSight<'a>,
        set: Option<&MachineSet>,
        record: Option<&MachineMaintenance>,
        policy: &Policy,
    ) -> Merged {
        let machine = sight.machine;
        let name = machine.metadata.name.as_deref().unwrap_or_default();
        let status = record
            .filter(|record| records::is_about(record, machine))
            .and_then(|record| record.status.as_ref());
        let known: &[MaintenanceReason] = status.map_or(&[], |status| &status.reasons);
        let instance = Identity::of(machine).instance_id;
        let sightings = instance.as_ref().and_then(|id| self.sightings.get(id.0.as_str()));
        let mut requests: Vec<Request> = record.and_then(Request::of_object).into_iter().collect();
        match Request::of_machine(machine) {
            Ok(request) => requests.extend(request),
            Err(problem) => self.notes.push(Note::warning(
                reason::INVALID_CONFIGURATION,
                format!("machine/{name}"),
                format!("machine {name}: {problem}"),
            )),
        }
        // Comparing costs, and is for nothing where it is no reason. Cluster API rolls a changed template out itself.
        let set = set.filter(|_| {
            policy.outdated == OutdatedMachines::Replace && !maintained::is_of_cluster_api(machine)
        });
        let differences = set.map_or_else(Vec::new, |set| outdated::differences(machine, set));
        let facts = Facts {
            known,
            sightings: sightings.map_or(&[], Vec::as_slice),
            asked: sight.asked,
            requests,
            impaired: sight.impaired.clone(),
            differences: &differences,
            is_done: status.and_then(|status| status.phase) == Some(MaintenancePhase::Succeeded),
        };
        merge(&facts, policy, self.now)
    }

    fn set_of(&self, machine: &Machine) -> Option<&'a MachineSet> {
        let owners = machine.metadata.owner_references.iter().flatten();
        let mut controllers = owners.filter(|owner| owner.controller == Some(true));
        self.sets.get(controllers.next()?.uid.as_str()).copied()
    }

    fn pools(&self) -> BTreeMap<&'a str, FleetPool<'a>> {
        self.cluster.sets.iter().map(|set| pool(set)).collect()
    }

    /// Events of instances that no Machine has, and objects about Machines that there are not.
    fn tell_strangers(&mut self) {
        let known: std::collections::BTreeSet<InstanceId> = self
            .cluster
            .machines
            .iter()
            .filter_map(|sight| Identity::of(sight.machine).instance_id)
            .collect();
        for (instance, sightings) in &self.sightings {
            if known.contains(&InstanceId((*instance).to_owned())) {
                continue;
            }
            for sighting in sightings {
                self.notes.push(Note::normal(
                    "UnknownInstance",
                    format!("instance/{instance}"),
                    format!(
                        "event {} ({}) is of instance {instance}, which no Machine has",
                        sighting.code, sighting.id
                    ),
                ));
            }
        }
        let names: std::collections::BTreeSet<&str> = self
            .cluster
            .machines
            .iter()
            .filter_map(|sight| sight.machine.metadata.name.as_deref())
            .collect();
        for one in self.cluster.maintenances {
            let machine = one.spec.machinelink.as_str();
            let is_over = one
                .status
                .as_ref()
                .and_then(|status| status.phase)
                .is_some_and(|phase| phase.is_over());
            if !names.contains(machine) && !is_over {
                let name = one.metadata.name.as_deref().unwrap_or_default();
                self.notes.push(Note::warning(
                    maintenance_reason::MACHINE_NOT_FOUND,
                    format!("machinemaintenance/{name}"),
                    format!("{name}: spec.machinelink: Not found: there is no Machine {machine}"),
                ));
            }
        }
    }
}

fn by_instance(sightings: &[Sighting]) -> BTreeMap<&str, Vec<Sighting>> {
    let mut by_instance: BTreeMap<&str, Vec<Sighting>> = BTreeMap::new();
    for sighting in sightings {
        by_instance.entry(sighting.instance.0.as_str()).or_default().push(sighting.clone());
    }
    by_instance
}

/// The maintenance that was begun and is not over.
fn under_way(record: &MachineMaintenance) -> Option<UnderWay> {
    let status = record.status.as_ref()?;
    let work = status.work.as_ref()?;
    Some(UnderWay {
        phase: status.phase.filter(|phase| phase.is_under_way())?,
        action: work.action?,
        since: work.started_at.as_ref()?.0,
    })
}

/// Until when a person put a maintenance off. What is no time puts nothing off.
pub fn postponed_until(record: &MachineMaintenance) -> Option<Timestamp> {
    let annotations = record.metadata.annotations.as_ref()?;
    let time = annotations.get(annotation::MAINTENANCE_POSTPONED)?.trim().parse().ok()?;
    Some(to_seconds(time).0)
}

/// A maintenance that is over and was begun: it keeps its places for the cool-down.
fn finished<'a>(
    record: &'a MachineMaintenance,
    pools: &BTreeMap<&'a str, FleetPool<'a>>,
) -> Option<Finished<'a>> {
    let status = record.status.as_ref()?;
    let work = status.work.as_ref()?;
    let is_over = status.phase.is_some_and(|phase| phase.is_over());
    let machine = record.spec.machinelink.as_str();
    let pool = work.pool.as_deref();
    Some(Finished {
        machine,
        pool,
        home: match maintained::parts(machine) {
            None => Some(Home::Here),
            Some(_) => pool.and_then(|pool| pools.get(pool)).map(|pool| pool.home),
        },
        zone: work.zone.as_deref(),
        is_control_plane: work.control_plane,
        policy: status.plan.as_ref().and_then(|plan| plan.policy.as_deref()),
        at: status.finished_at.as_ref().filter(|_| is_over)?.0,
    })
}

fn pool(set: &MachineSet) -> (&str, FleetPool<'_>) {
    let annotations = set.metadata.annotations.as_ref();
    let mark =
        Mark::read(annotations.and_then(|all| all.get(annotation::SURGE)).map(String::as_str));
    let replicas = usize::try_from(set.spec.replicas.unwrap_or(1)).unwrap_or(0);
    let desired = replicas.saturating_sub(mark.count());
    let counted = Pool { desired, ..Pool::of(set, [], "") };
    let labels = &set.spec.template.metadata.labels;
    let pool = FleetPool {
        home: Home::of(&set.metadata),
        desired,
        zone: labels.get(label::ZONE).cloned().or_else(|| template_zone(set)),
        // One that cannot be read holds everything by our own choice; the gate says so.
        gate: Some(counted.breaker().unwrap_or(0)),
    };
    (set.metadata.name.as_deref().unwrap_or_default(), pool)
}

fn template_zone(set: &MachineSet) -> Option<String> {
    let value = set.spec.template.spec.provider_spec.value.as_ref()?.as_object()?;
    let zone = value.get("placement")?.get("availabilityZone")?.as_str()?;
    (!zone.is_empty()).then(|| zone.to_owned())
}

fn traits(
    machine: &Machine,
    set: Option<&MachineSet>,
    is_control_plane: bool,
    hardware: Hardware,
) -> Traits {
    if maintained::is_of_cluster_api(machine) {
        return Traits {
            is_interruptible: hardware.is_interruptible,
            replacement: maintained::replacement(machine, set),
            out_of_reach: Some(maintained::OUT_OF_REACH),
            ..Traits::default()
        };
    }
    let owners = machine.metadata.owner_references.iter().flatten();
    let owner = owners.into_iter().find(|owner| owner.controller == Some(true));
    let replacement = match (set, owner) {
        (Some(set), _) if set.metadata.deletion_timestamp.is_some() => Replacement::Nobody,
        (Some(_), _) => Replacement::Pool,
        (None, Some(owner)) if owner.kind == "ControlPlaneMachineSet" => {
            Replacement::Owner(format!("{} {}", owner.kind, owner.name))
        }
        (None, None) if is_control_plane => Replacement::Copy,
        (None, Some(_) | None) => Replacement::Nobody,
    };
    Traits {
        root_device: hardware.root_device,
        has_instance_store: hardware.has_instance_store,
        is_interruptible: hardware.is_interruptible,
        reboot_migration: hardware.reboot_migration,
        replacement,
        out_of_reach: None,
    }
}

fn is_instance_missing(machine: &Machine) -> bool {
    let conditions = machine.status.as_ref().map(|status| status.conditions.as_slice());
    condition::find(conditions.unwrap_or_default(), condition_type::INSTANCE_EXISTS)
        .is_some_and(|known| known.reason.as_deref() == Some(reason::INSTANCE_MISSING))
}
