//! Is it told once what happened to an instance, and never what nobody knows?

use serde_json::json;

use super::*;
use crate::{
    cloud::{InstanceState, RebootMigration, RootDevice, StateReason},
    cluster_api::maintained::{self, Owners},
    disruption,
    overview::drift::{Evidence, incidents},
};

fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

fn machine() -> Machine {
    serde_json::from_value(json!({
        "metadata": { "name": "m", "namespace": "ns", "uid": "uid-m", "generation": 1 },
        "spec": {
            "clusterName": "c", "bootstrap": {}, "infrastructureRef": {},
            "providerID": "aws:///z/i-m",
        },
        "status": { "phase": "Running", "nodeRef": { "name": "m" } },
    }))
    .unwrap()
}

fn instance(state: InstanceState, code: &str) -> Instance {
    Instance {
        id: InstanceId("i-m".to_owned()),
        provider_id: "aws:///z/i-m".to_owned(),
        state,
        state_reason: StateReason { code: code.to_owned(), ..StateReason::default() },
        region: String::new(),
        zone: String::new(),
        instance_type: String::new(),
        launched_at: None,
        client_token: None,
        interruptible: false,
        tags: Default::default(),
        addresses: Vec::new(),
        host_id: None,
        root_device: RootDevice::Network,
        reboot_migration: RebootMigration::Unavailable,
    }
}

fn said(machine: &Machine) -> Option<(String, String)> {
    let known = condition::find(conditions_of(machine), INSTANCE_RUNNING)?;
    Some((known.status.clone(), known.reason.clone()))
}

/// What is said after a look, and whether anybody is told.
fn after(machine: &mut Machine, sight: Sight<'_>) -> Option<bool> {
    let told = tell(machine, sight, now())?;
    machine.status = Some(told.status);
    Some(told.announcement.is_some())
}

#[test]
fn what_happened_is_told_once_and_is_over_when_it_runs_again() {
    let mut machine = machine();
    let running = instance(InstanceState::Running, "");
    let stopped = instance(InstanceState::Stopped, "Client.UserInitiatedShutdown");
    let word = |status: &str, reason: &str| Some((status.to_owned(), reason.to_owned()));
    for (sight, told, expected) in [
        (Sight::Unknown, None, None),
        (Sight::Seen(&running), Some(false), word("True", "Running")),
        (Sight::Seen(&running), None, word("True", "Running")),
        (Sight::Unknown, None, word("True", "Running")),
        (Sight::Seen(&stopped), Some(true), word("False", "StoppedByUser")),
        (Sight::Seen(&stopped), None, word("False", "StoppedByUser")),
        (Sight::Seen(&running), Some(false), word("True", "Running")),
    ] {
        assert_eq!(after(&mut machine, sight), told, "{sight:?}");
        assert_eq!(said(&machine), expected, "{sight:?}");
    }
}

#[test]
fn one_that_is_not_shown_is_unknown_only_if_it_was_seen_before() {
    let id = InstanceId("i-m".to_owned());
    let mut machine = machine();
    assert_eq!(after(&mut machine, Sight::Missing(&id)), None, "another account, perhaps");
    let running = instance(InstanceState::Running, "");
    after(&mut machine, Sight::Seen(&running));
    assert_eq!(after(&mut machine, Sight::Missing(&id)), Some(false));
    let unknown = ("Unknown".to_owned(), "InstanceMissing".to_owned());
    assert_eq!(said(&machine), Some(unknown));
    // What was seen to end stays ended.
    let ended = instance(InstanceState::Terminated, "Server.SpotInstanceTermination");
    assert_eq!(after(&mut machine, Sight::Seen(&ended)), Some(true));
    assert_eq!(after(&mut machine, Sight::Missing(&id)), None);
    assert_eq!(said(&machine).unwrap().1, "SpotInterruption");
}

#[test]
fn a_machine_that_goes_is_expected_to_go() {
    let mut machine = machine();
    machine.metadata.deletion_timestamp =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now()));
    let ended = instance(InstanceState::Terminated, "");
    assert_eq!(tell(&machine, Sight::Seen(&ended), now()), None);
}

#[test]
fn the_gate_counts_it_and_the_list_of_drift_shows_it() {
    let mut machine = machine();
    let stopped = instance(InstanceState::Stopped, "Client.UserInitiatedShutdown");
    after(&mut machine, Sight::Seen(&stopped));
    let seen = maintained::machine(&machine, &Owners::default());
    let ready = serde_json::from_value(json!({
        "metadata": { "name": "m" },
        "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
    }));
    assert!(!disruption::is_healthy(&seen, Some(&ready.unwrap())));
    let found = incidents(&Evidence { machines: &[&seen], ..Evidence::default() });
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].machine.as_str(), found[0].class), ("ns/m", Class::StoppedByUser));
    assert_eq!(found[0].instance.as_deref(), Some("i-m"));
    assert!(found[0].sentence.contains("a health check acts on its Node"), "{}", found[0].sentence);
}
