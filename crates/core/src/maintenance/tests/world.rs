//! A world in which a maintenance is carried out: a pool, its machines, their nodes and pods, and a
//! cloud, all of which take their time. What the operator would do is done here, step by step, and each
//! step asks for the version that it was decided on.

mod happenings;
mod steps;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::{
    core::v1::{Node, Pod, Taint},
    policy::v1::PodDisruptionBudget,
};
use machinist_api::{
    Machine, MachineMaintenance, MachineMaintenanceStatus, MachineSet, MaintenancePhase,
    condition::to_seconds,
    names::{annotation, finalizer, taint},
};
use serde_json::json;

use super::*;
use crate::{
    cloud::{
        CloudFailure, ErrorClass, Instance, InstanceId, InstanceState, RebootMigration, RootDevice,
        ScheduledEvent, StateReason,
    },
    disruption::Held,
    drain::{self, Attempts},
    machineset::delete_order::first_to_go,
    maintenance::{
        decide::{MaintenanceDecision, decide},
        event::{Sighting, Source},
        observed::{CloudSight, Member, Observed, PoolSight},
        outcome,
        plan::{ControlPlane, UnderWay},
        reason::{Facts, Request, merge},
        step::Step,
    },
};

pub(super) const UID: &str = "mm-uid";
pub(super) const TARGET: &str = "a-0";

/// How long things take.
const BOOT: SignedDuration = SignedDuration::from_mins(4);
const REBOOT: SignedDuration = SignedDuration::from_mins(2);
const STOPPING: SignedDuration = SignedDuration::from_mins(1);
const GOING: SignedDuration = SignedDuration::from_mins(3);
const EVENT_CLEARS: SignedDuration = SignedDuration::from_mins(20);

pub(super) struct World {
    pub(super) now: Timestamp,
    pub(super) policy: Policy,
    pub(super) maintenance: Option<MachineMaintenance>,
    pub(super) set: Option<MachineSet>,
    pub(super) machines: BTreeMap<String, Machine>,
    pub(super) nodes: BTreeMap<String, Node>,
    pub(super) pods: Vec<Pod>,
    pub(super) budgets: Vec<PodDisruptionBudget>,
    pub(super) instances: BTreeMap<String, Instance>,
    pub(super) event: Option<ScheduledEvent>,
    pub(super) traits: Traits,
    pub(super) control_plane: ControlPlane,
    pub(super) is_control_plane: bool,
    pub(super) workloads_missing: Vec<String>,
    pub(super) gate: Result<(), Held>,
    /// What happens at which time.
    due: Vec<(Timestamp, Happening)>,
    version: u64,
    /// The size that people want the pool to have.
    pub(super) wanted: i32,
    /// Every step that was carried out, with the time.
    pub(super) log: Vec<(Timestamp, &'static str)>,
    /// The writes are counted from here; the process dies before this one.
    pub(super) dies_before: Option<usize>,
    pub(super) writes: usize,
    /// The cloud refuses these steps, by name.
    pub(super) refuses: BTreeMap<&'static str, CloudFailure>,
    /// Whether new machines ever get ready.
    pub(super) boots: bool,
    /// Whether a reboot has any effect, and an event ever clears.
    pub(super) reboots: bool,
    pub(super) clears: bool,
    /// Pods that no budget lets go.
    pub(super) stuck_pods: Vec<String>,
}

#[derive(Clone, Debug)]
enum Happening {
    Ready(String),
    Rebooted(String),
    Stopped(String),
    Started(String),
    Gone(String),
    PodGone(String),
    EventClears,
}

impl World {
    /// A pool of so many machines, the first of which has an event of this code in two days.
    pub(super) fn new(spec: Value, code: &str, size: usize) -> Self {
        let mut world = Self {
            now: now(),
            policy: read_policy(spec),
            maintenance: None,
            set: None,
            machines: BTreeMap::new(),
            nodes: BTreeMap::new(),
            pods: Vec::new(),
            budgets: Vec::new(),
            instances: BTreeMap::new(),
            event: Some(ScheduledEvent {
                id: "instance-event-1".to_owned(),
                instance: InstanceId(format!("i-{TARGET}")),
                code: code.to_owned(),
                description: "The instance is running on degraded hardware".to_owned(),
                not_before: Some(after(hours(48))),
                not_after: None,
                not_before_deadline: Some(after(hours(24 * 9))),
            }),
            traits: Traits { replacement: Replacement::Pool, ..Traits::default() },
            control_plane: ControlPlane { members: 3, problems: Vec::new() },
            is_control_plane: false,
            workloads_missing: Vec::new(),
            gate: Ok(()),
            due: Vec::new(),
            version: 1,
            wanted: i32::try_from(size).unwrap(),
            log: Vec::new(),
            dies_before: None,
            writes: 0,
            refuses: BTreeMap::new(),
            boots: true,
            reboots: true,
            clears: true,
            stuck_pods: Vec::new(),
        };
        world.set = Some(
            serde_json::from_value(json!({
                "metadata": { "name": "a", "uid": "set-uid", "resourceVersion": "1", "annotations": {} },
                "spec": { "replicas": size, "template": { "spec": {} } },
            }))
            .unwrap(),
        );
        for number in 0..size {
            world.make_machine(&format!("a-{number}"), true);
        }
        world.make_maintenance();
        for number in 0..2 {
            world.pods.push(pod(&format!("web-{number}"), &format!("node-{TARGET}")));
        }
        world
    }

    /// Three machines of the control plane without an owner; the first has an event.
    pub(super) fn control_plane(spec: Value, code: &str) -> Self {
        let mut world = Self::new(spec, code, 3);
        world.set = None;
        world.pods.clear();
        world.is_control_plane = true;
        world.traits.replacement = Replacement::Copy;
        world
    }

    fn make_maintenance(&mut self) {
        self.maintenance = Some(
            serde_json::from_value(json!({
                "metadata": {
                    "name": format!("mm-{TARGET}"),
                    "uid": UID,
                    "resourceVersion": "1",
                    "annotations": { "machinist.dev/created-for-event": "true" },
                },
                "spec": { "machinelink": TARGET, "maintenancescheduled": false },
            }))
            .unwrap(),
        );
    }

    fn make_machine(&mut self, name: &str, is_ready: bool) {
        let machine: Machine = serde_json::from_value(json!({
            "metadata": {
                "name": name,
                "uid": format!("uid-{name}"),
                "resourceVersion": self.next_version(),
                "creationTimestamp": self.now,
                "annotations": {},
            },
            "spec": {},
            "status": { "phase": "Running", "nodeRef": { "name": format!("node-{name}") } },
        }))
        .unwrap();
        self.machines.insert(name.to_owned(), machine);
        self.instances.insert(
            name.to_owned(),
            Instance {
                id: InstanceId(format!("i-{name}")),
                provider_id: format!("aws:///z1/i-{name}"),
                state: InstanceState::Running,
                state_reason: StateReason::default(),
                region: "r".to_owned(),
                zone: "z1".to_owned(),
                instance_type: "m".to_owned(),
                launched_at: Some(to_seconds(self.now).0),
                client_token: None,
                interruptible: false,
                tags: BTreeMap::new(),
                addresses: Vec::new(),
                host_id: None,
                root_device: RootDevice::default(),
                reboot_migration: RebootMigration::default(),
            },
        );
        if is_ready {
            self.make_node(name);
        } else if self.boots {
            self.later(BOOT, Happening::Ready(name.to_owned()));
        }
    }

    fn make_node(&mut self, machine: &str) {
        let name = format!("node-{machine}");
        let version = self.next_version();
        let node: Node = serde_json::from_value(json!({
            "metadata": { "name": name, "uid": format!("uid-{name}"), "resourceVersion": version,
                "annotations": {} },
            "spec": {},
            "status": {
                "conditions": [{ "type": "Ready", "status": "True" }],
                "nodeInfo": { "bootID": format!("boot-{version}"), "architecture": "", "containerRuntimeVersion": "",
                    "kernelVersion": "", "kubeProxyVersion": "", "kubeletVersion": "", "machineID": "",
                    "operatingSystem": "", "osImage": "", "systemUUID": "" },
            },
        }))
        .unwrap();
        self.nodes.insert(name, node);
    }

    pub(super) fn phase(&self) -> MaintenancePhase {
        self.status().phase.unwrap_or_default()
    }

    pub(super) fn status(&self) -> MachineMaintenanceStatus {
        self.maintenance.as_ref().and_then(|one| one.status.clone()).unwrap_or_default()
    }

    pub(super) fn replicas(&self) -> i32 {
        self.set.as_ref().and_then(|set| set.spec.replicas).unwrap_or_default()
    }

    /// How many machines do their work and take pods.
    pub(super) fn ready(&self) -> i32 {
        let ready = self.members().iter().filter(|member| member.is_ready()).count();
        i32::try_from(ready).unwrap()
    }

    pub(super) fn did(&self, step: &str) -> usize {
        self.log.iter().filter(|(_, name)| *name == step).count()
    }

    fn members(&self) -> Vec<Member<'_>> {
        self.machines
            .values()
            .map(|machine| Member {
                machine,
                node: self.nodes.get(&node_of(machine)),
                daemons_run: true,
            })
            .collect()
    }

    /// Looks, decides, and carries out what was decided, as the operator does.
    pub(super) fn pass(&mut self) -> Option<MaintenanceDecision> {
        let decision = self.look()?;
        let mut status = decision.status.clone();
        let effects =
            decision.actions.iter().filter(|step| matches!(step, Step::Reboot(_))).count();
        assert!(effects <= 1, "at most one effect that is not harmless to repeat: {decision:?}");
        for step in &decision.actions {
            if !self.survives() {
                return Some(decision);
            }
            if let Some(failure) = self.refuses.get(step.name()) {
                status = outcome::refused(&status, step, failure, self.now);
                break;
            }
            if !self.carry_out(step) {
                return Some(decision);
            }
            self.log.push((self.now, step.name()));
            if step.is_cloud_effect() {
                status = outcome::accepted(&status, step, self.now);
            }
        }
        if self.survives() {
            self.publish(status);
        }
        Some(decision)
    }

    /// The decision for the world as it is.
    pub(super) fn look(&self) -> Option<MaintenanceDecision> {
        let maintenance = self.maintenance.as_ref()?;
        let machine = self.machines.get(TARGET);
        let known = self.status().reasons;
        let sightings: Vec<Sighting> =
            self.event.iter().filter(|_| machine.is_some()).map(Sighting::listed).collect();
        let facts = Facts {
            known: &known,
            sightings: &sightings,
            asked: &[Source::Api],
            requests: [
                Request::of_object(maintenance),
                machine.and_then(|one| Request::of_machine(one).unwrap()),
            ]
            .into_iter()
            .flatten()
            .collect(),
            impaired: None,
            differences: &[],
            is_done: self.status().phase == Some(MaintenancePhase::Succeeded),
        };
        let merged = merge(&facts, &self.policy, self.now);
        let need = machine.and_then(|_| Need::of(&merged.reasons, &self.policy));
        let plan = self.plan(need.clone());
        let node = machine.and_then(|machine| self.nodes.get(&node_of(machine)));
        let attempts = Attempts::default();
        let replacement = self
            .status()
            .work
            .and_then(|work| work.replacement)
            .and_then(|copy| self.members().into_iter().find(|one| one.name() == copy.name));
        let observed = Observed {
            maintenance,
            reasons: &merged,
            need: need.as_ref(),
            entry: plan.entry(TARGET),
            machine,
            node,
            cloud: CloudSight::Known(self.instances.get(TARGET).cloned().map(Box::new)),
            traits: &self.traits,
            is_control_plane: self.is_control_plane,
            zone: Some("z1"),
            pool: self.set.as_ref().map(|set| PoolSight { set, members: self.members() }),
            replacement,
            control_plane: &self.control_plane,
            pods: self
                .pods
                .iter()
                .filter(|pod| node.is_some() && node_name(pod) == format!("node-{TARGET}"))
                .collect(),
            budgets: self.budgets.iter().collect(),
            attempts: &attempts,
            gate: self.gate.clone(),
            workloads_missing: &self.workloads_missing,
            doubt: None,
        };
        Some(decide(&observed, &self.policy, self.now))
    }

    fn plan(&self, need: Option<Need>) -> Plan {
        let policies = PolicySet::of(self.policy.clone());
        let durations = Durations::default();
        let status = self.status();
        let under_way = status.phase.filter(|phase| phase.is_under_way()).map(|phase| UnderWay {
            phase,
            action: status.work.as_ref().and_then(|work| work.action).unwrap(),
            since: status.work.as_ref().and_then(|work| work.started_at.clone()).unwrap().0,
        });
        let mut need = need;
        let machines = self
            .members()
            .iter()
            .map(|member| {
                let is_target = member.name() == TARGET;
                FleetMachine {
                    name: member.machine.metadata.name.as_deref().unwrap(),
                    uid: member.machine.metadata.uid.as_deref().unwrap(),
                    pool: self.set.as_ref().map(|_| "a"),
                    maker: self.set.as_ref().map(|_| "a"),
                    zone: Some("z1"),
                    is_control_plane: self.is_control_plane,
                    is_available: member.is_ready(),
                    is_deleting: member.is_deleting(),
                    need: if is_target { need.take() } else { None },
                    under_way: under_way.filter(|_| is_target),
                    traits: self.traits.clone(),
                    next_attempt: status
                        .next_attempt
                        .as_ref()
                        .filter(|_| is_target)
                        .map(|time| time.0),
                    do_not_disrupt: Vec::new(),
                    ..FleetMachine::default()
                }
            })
            .collect();
        let pools = self.set.as_ref().map(|set| {
            let mark = super::super::surge::Mark::read(
                set.metadata
                    .annotations
                    .as_ref()
                    .and_then(|all| all.get(annotation::SURGE))
                    .map(String::as_str),
            );
            let desired = usize::try_from(self.replicas()).unwrap() - mark.count();
            ("a", FleetPool { desired, ..FleetPool::default() })
        });
        let fleet = Fleet {
            machines,
            pools: pools.into_iter().collect(),
            finished: Vec::new(),
            policies: &policies,
            durations: &durations,
            cluster: ClusterState {
                control_plane: self.control_plane.clone(),
                ..Default::default()
            },
            notes: Vec::new(),
        };
        plan(&fleet, self.now)
    }

    pub(super) fn own(&mut self) -> &mut MachineMaintenance {
        self.maintenance.as_mut().unwrap()
    }

    fn later(&mut self, by: SignedDuration, happening: Happening) {
        self.due.push((self.now.checked_add(by).unwrap(), happening));
    }

    fn next_version(&mut self) -> String {
        self.version += 1;
        self.version.to_string()
    }

    /// Passes and time, until it is over; returns whether it is.
    pub(super) fn run(&mut self, limit: SignedDuration) -> bool {
        let end = self.now.checked_add(limit).unwrap();
        while self.now < end {
            self.pass();
            if self.maintenance.is_none() || self.is_settled() {
                return true;
            }
            self.tick(SignedDuration::from_secs(20));
        }
        false
    }

    /// Runs until a phase is entered.
    pub(super) fn run_to(&mut self, phase: MaintenancePhase) {
        for _ in 0..3_000 {
            if self.phase() == phase {
                return;
            }
            self.pass();
            self.tick(SignedDuration::from_secs(20));
        }
        panic!("{phase:?} was not reached, but {:?}: {:?}", self.phase(), self.status().message);
    }

    fn is_settled(&self) -> bool {
        self.phase().is_over()
            && self.maintenance.as_ref().is_some_and(|one| one.metadata.finalizers.is_none())
    }

    /// What must be true when it is over, whatever happened before.
    pub(super) fn assert_nothing_left(&self) {
        for node in self.nodes.values() {
            for key in [annotation::CORDONED_FOR, annotation::PROTECTED_FOR] {
                assert!(!is_annotated(node, key), "{key} is left on a node: {:?}", self.log);
            }
            let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
            assert!(taints.is_none_or(Vec::is_empty), "a taint is left");
        }
        for machine in self.machines.values() {
            if machine.metadata.deletion_timestamp.is_some() {
                continue;
            }
            let annotations = machine.metadata.annotations.clone().unwrap_or_default();
            assert_ne!(annotations.get(annotation::DELETE_MACHINE).map(String::as_str), Some(UID));
            let hold = annotations.get(annotation::HOLD);
            assert!(hold.is_none_or(|hold| !hold.contains(UID)), "our hold is left");
        }
        if let Some(set) = &self.set {
            let mark = set.metadata.annotations.as_ref().and_then(|all| all.get(annotation::SURGE));
            assert_eq!(mark, None, "the pool is still marked");
        }
    }
}

fn node_of(machine: &Machine) -> String {
    format!("node-{}", machine.metadata.name.as_deref().unwrap_or_default())
}

fn node_name(pod: &Pod) -> String {
    pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default()
}

pub(super) fn pod(name: &str, node: &str) -> Pod {
    serde_json::from_value(json!({
        "metadata": { "name": name, "namespace": "app", "uid": format!("uid-{name}"), "annotations": {} },
        "spec": { "nodeName": node, "containers": [] },
    }))
    .unwrap()
}

fn annotate(node: &mut Node, key: &str, value: Option<&str>) {
    let annotations = node.metadata.annotations.get_or_insert_default();
    match value {
        Some(value) => annotations.insert(key.to_owned(), value.to_owned()),
        None => annotations.remove(key),
    };
}

fn is_annotated(node: &Node, key: &str) -> bool {
    node.metadata
        .annotations
        .as_ref()
        .is_some_and(|all| all.get(key).is_some_and(|value| value == UID))
}

pub(super) fn failure(class: ErrorClass) -> CloudFailure {
    CloudFailure { class, message: "the cloud says no".to_owned() }
}
