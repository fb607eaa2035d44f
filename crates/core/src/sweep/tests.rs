//! What a sweep reports, and above all what it leaves alone.

use machinist_api::names::tag;

use super::*;
use crate::cloud::{InstanceState, RebootMigration, RootDevice, StateReason};

const CLUSTER: &str = "demo";

fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

fn hours_ago(hours: i64) -> Timestamp {
    now() - SignedDuration::from_hours(hours)
}

fn instance(id: &str, uid: Option<&str>) -> Instance {
    let mut tags = BTreeMap::from([(tag::cluster(CLUSTER), tag::OWNED.to_owned())]);
    tags.extend(uid.map(|uid| (tag::MACHINE_UID.to_owned(), uid.to_owned())));
    Instance {
        id: InstanceId(id.to_owned()),
        provider_id: format!("aws:///z/{id}"),
        state: InstanceState::Running,
        state_reason: StateReason::default(),
        region: String::new(),
        zone: String::new(),
        instance_type: String::new(),
        launched_at: Some(hours_ago(2)),
        client_token: uid.map(|uid| format!("{uid}-1")),
        interruptible: false,
        tags,
        addresses: Vec::new(),
        host_id: None,
        root_device: RootDevice::default(),
        reboot_migration: RebootMigration::default(),
    }
}

fn claim(uid: &str) -> Claim {
    Claim { machine_uid: uid.to_owned(), cluster_id: Some(CLUSTER.to_owned()), ..Claim::default() }
}

/// One sweep after another over the same instances, all but the last without a fresh list.
struct Case {
    instances: Vec<Instance>,
    machines: Machines,
    sweeps: u32,
    terminate: bool,
}

impl Case {
    fn new(instances: Vec<Instance>, claims: Vec<Claim>) -> Self {
        Self {
            instances,
            machines: Machines::Listed { claims, at: now() },
            sweeps: 2,
            terminate: true,
        }
    }

    fn decide(&self) -> SweepDecision {
        let policy = Policy { terminate: self.terminate, ..Policy::default() };
        let mut decision = SweepDecision::default();
        for _ in 0..self.sweeps {
            let memory = std::mem::take(&mut decision.memory);
            let observed = Observed {
                cluster_id: CLUSTER,
                instances: self.instances.iter().collect(),
                machines: self.machines.clone(),
                memory: &memory,
            };
            decision = decide(&observed, &policy, now());
        }
        decision
    }

    fn reported(&self) -> Vec<String> {
        self.decide().orphans.into_iter().map(|orphan| orphan.id.0).collect()
    }

    fn terminated(&self) -> Vec<String> {
        self.decide().terminate.into_iter().map(|id| id.0).collect()
    }

    fn waits_for(&self) -> Option<&'static str> {
        self.decide().waiting.map(|wait| wait.reason)
    }
}

/// One instance of a Machine that is there, and one of a Machine that is gone.
fn one_orphan() -> Vec<Instance> {
    vec![instance("i-1", Some("there")), instance("i-2", Some("gone"))]
}

#[test]
fn an_instance_whose_machine_is_gone_is_terminated_after_two_sweeps() {
    let mut case = Case::new(one_orphan(), vec![claim("there")]);
    assert_eq!(case.reported(), ["i-2"]);
    assert_eq!(case.terminated(), ["i-2"]);
    let why = Why::MachineIsGone { machine_uid: "gone".to_owned() };
    assert_eq!(case.decide().orphans[0].why, why);
    case.sweeps = 1;
    assert_eq!(case.reported(), ["i-2"]);
    assert!(case.terminated().is_empty(), "seen once only");
}

#[test]
fn nothing_is_terminated_unless_asked_for() {
    let case = Case { terminate: false, ..Case::new(one_orphan(), vec![claim("there")]) };
    assert_eq!(case.reported(), ["i-2"]);
    assert!(case.terminated().is_empty());
    assert_eq!(case.waits_for(), None);
}

#[test]
fn a_list_that_failed_or_was_not_asked_for_kills_nothing() {
    let machines = Machines::Remembered(vec![claim("there")]);
    let case = Case { machines, ..Case::new(one_orphan(), Vec::new()) };
    assert_eq!(case.reported(), ["i-2"]);
    assert!(case.terminated().is_empty());
    assert_eq!(case.waits_for(), Some(reason::MACHINES_NOT_LISTED));
}

#[test]
fn an_empty_list_or_one_of_another_cluster_kills_nothing() {
    let other = Claim { cluster_id: Some("other".to_owned()), ..claim("there") };
    let unnamed = Claim { cluster_id: None, ..claim("there") };
    for claims in [Vec::new(), vec![other], vec![unnamed]] {
        let case = Case::new(one_orphan(), claims);
        assert!(case.terminated().is_empty());
        assert_eq!(case.waits_for(), Some(reason::NO_MACHINES));
    }
}

#[test]
fn a_machine_whose_record_cannot_be_read_protects_everything() {
    let unreadable = Claim { is_unreadable: true, ..claim("other") };
    let case = Case::new(one_orphan(), vec![claim("there"), unreadable]);
    assert!(case.terminated().is_empty());
    assert_eq!(case.waits_for(), Some(reason::MACHINE_UNREADABLE));
}

#[test]
fn an_instance_that_was_just_launched_is_left_alone() {
    for minutes in [-5, 0, 1, 14] {
        let mut young = instance("i-2", Some("gone"));
        young.launched_at = Some(now() - SignedDuration::from_mins(minutes));
        let case = Case::new(vec![instance("i-1", Some("there")), young], vec![claim("there")]);
        assert!(case.reported().is_empty(), "{minutes} minutes old");
        assert!(case.terminated().is_empty());
    }
}

#[test]
fn a_list_of_machines_older_than_the_launch_kills_nothing() {
    let machines = Machines::Listed { claims: vec![claim("there")], at: hours_ago(3) };
    let case = Case { machines, ..Case::new(one_orphan(), Vec::new()) };
    assert!(case.terminated().is_empty());
}

#[test]
fn an_instance_without_a_time_of_launch_is_never_terminated() {
    let mut ageless = instance("i-2", Some("gone"));
    ageless.launched_at = None;
    let instances = vec![instance("i-1", Some("there")), ageless];
    let case = Case { sweeps: 5, ..Case::new(instances, vec![claim("there")]) };
    assert!(case.terminated().is_empty());
}

#[test]
fn whatever_a_machine_claims_in_any_way_is_no_orphan() {
    let named = BTreeSet::from([InstanceId("i-2".to_owned())]);
    let tokens = BTreeSet::from(["gone-1".to_owned()]);
    for other in [
        Claim { instances: named, ..claim("other") },
        Claim { client_tokens: tokens, ..claim("other") },
        claim("gone"),
    ] {
        let case = Case::new(one_orphan(), vec![claim("there"), other]);
        assert!(case.reported().is_empty());
        assert!(case.terminated().is_empty());
    }
}

#[test]
fn both_the_record_and_the_provider_id_name_an_instance() {
    let machine: Machine = serde_json::from_value(serde_json::json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
        "metadata": { "name": "m", "uid": "u" },
        "spec": { "providerID": "aws:///z/i-named", "providerSpec": {} },
        "status": { "providerStatus": { "instanceId": "i-recorded" } },
    }))
    .unwrap();
    let ids: Vec<String> = Claim::of(&machine).instances.into_iter().map(|id| id.0).collect();
    assert_eq!(ids, ["i-named", "i-recorded"]);
}

#[test]
fn an_instance_without_a_machine_uid_is_reported_and_never_terminated() {
    let instances = vec![instance("i-1", Some("there")), instance("i-bootstrap", None)];
    let case = Case { sweeps: 9, ..Case::new(instances, vec![claim("there")]) };
    assert_eq!(case.reported(), ["i-bootstrap"]);
    assert!(case.terminated().is_empty());
    assert_eq!(case.decide().orphans[0].why, Why::NeverHadMachine);
}

#[test]
fn an_instance_of_another_cluster_is_not_even_reported() {
    let mut foreign = instance("i-2", Some("gone"));
    foreign.tags.insert(tag::cluster(CLUSTER), "shared".to_owned());
    let mut untagged = instance("i-3", Some("gone"));
    untagged.tags.remove(&tag::cluster(CLUSTER));
    let instances = vec![instance("i-1", Some("there")), foreign, untagged];
    assert!(Case::new(instances, vec![claim("there")]).reported().is_empty());
}

#[test]
fn what_is_ending_is_no_orphan() {
    for (state, is_orphan) in [
        (InstanceState::Pending, true),
        (InstanceState::Running, true),
        (InstanceState::Stopping, true),
        (InstanceState::Stopped, true),
        (InstanceState::ShuttingDown, false),
        (InstanceState::Terminated, false),
    ] {
        let mut instances = one_orphan();
        instances[1].state = state;
        let case = Case::new(instances, vec![claim("there")]);
        assert_eq!(!case.reported().is_empty(), is_orphan, "{state:?}");
    }
}

#[test]
fn few_are_terminated_in_one_sweep_and_the_oldest_first() {
    for (orphans, others, expected) in [(3, 0, 1), (10, 10, 1), (10, 50, 3), (2, 200, 2)] {
        let mut instances: Vec<Instance> = (0..orphans)
            .map(|index| {
                let mut one = instance(&format!("i-orphan-{index:02}"), Some("gone"));
                one.launched_at = Some(hours_ago(2 + index));
                one
            })
            .collect();
        instances.extend((0..others).map(|index| instance(&format!("i-{index}"), Some("there"))));
        let case = Case::new(instances, vec![claim("there")]);
        let terminated = case.terminated();
        assert_eq!(terminated.len(), expected, "{orphans} of {}", orphans + others);
        assert_eq!(terminated[0], format!("i-orphan-{:02}", orphans - 1));
        let is_capped = expected < usize::try_from(orphans).unwrap();
        assert_eq!(case.waits_for().is_some(), is_capped);
    }
}

#[test]
fn whoever_finds_an_owner_in_between_begins_anew() {
    let instances = one_orphan();
    let policy = Policy { terminate: true, ..Policy::default() };
    let mut memory = Memory::new();
    let gone = || vec![claim("there")];
    let back = || vec![claim("there"), claim("gone")];
    for (claims, expected) in [(gone(), 0), (back(), 0), (gone(), 0), (gone(), 1)] {
        let observed = Observed {
            cluster_id: CLUSTER,
            instances: instances.iter().collect(),
            machines: Machines::Listed { claims, at: now() },
            memory: &memory,
        };
        let decision = decide(&observed, &policy, now());
        assert_eq!(decision.terminate.len(), expected);
        memory = decision.memory;
    }
}
