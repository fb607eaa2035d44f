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

/// The verdict on a machine of a pool, some seconds after noon.
fn judged(machine: &Machine, sight: Sight<'_>, pool: Option<&Pool>, seconds: i64) -> Verdict {
    let seen = maintained::machine(machine, &Owners::default());
    let keeping = Keeping { seen: &seen, pool, defaults: DriftDefaults::default() };
    judge(machine, sight, &keeping, now() + jiff::SignedDuration::from_secs(seconds))
}

/// What is said after a look, and whether anybody is told.
fn after(machine: &mut Machine, sight: Sight<'_>) -> Option<bool> {
    let told = judged(machine, sight, None, 0).told?;
    machine.status = Some(told.status);
    Some(told.announcement.is_some())
}

fn pool(desired: usize, healthy_others: usize) -> Pool {
    Pool {
        name: "ns/md".to_owned(),
        desired,
        healthy_others,
        stopped_by_user: 0,
        is_deleting: false,
        annotations: Default::default(),
    }
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
    assert_eq!(judged(&machine, Sight::Seen(&ended), Some(&pool(3, 2)), 60), Verdict::default());
    assert!(!is_down(&machine, Sight::Seen(&ended)));
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

#[test]
fn policy_says_whether_a_machine_is_replaced_and_the_gate_whether_it_may() {
    let ended = instance(InstanceState::Terminated, "Client.UserInitiatedShutdown");
    let stopped = instance(InstanceState::Stopped, "Client.UserInitiatedShutdown");
    let (few, many) = (pool(5, 3), pool(5, 2));
    let control_plane = json!({ "cluster.x-k8s.io/control-plane": "" });
    let table = [
        ("ended", &ended, Some(&few), json!({}), true, "pool ns/md makes another"),
        ("ended, with many others", &ended, Some(&many), json!({}), true, "makes another"),
        (
            "stopped, replace, a storm",
            &stopped,
            Some(&many),
            json!({ "machinist.dev/on-stopped": "Replace" }),
            false,
            "its replacement is held",
        ),
        (
            "stopped, replace, a storm, approved",
            &stopped,
            Some(&many),
            json!({
                "machinist.dev/on-stopped": "Replace",
                "machinist.dev/approved-until": "2026-01-01T13:00:00Z",
            }),
            true,
            "makes another",
        ),
        ("ended, no pool", &ended, None, json!({}), false, "has no pool"),
        (
            "ended, report",
            &ended,
            Some(&few),
            json!({ "machinist.dev/on-terminated": "Report" }),
            false,
            "its provider keeps it",
        ),
        ("on hold", &ended, Some(&few), json!({ "machinist.dev/hold": "x" }), false, "on hold: x"),
        (
            "paused",
            &ended,
            Some(&few),
            json!({ "cluster.x-k8s.io/paused": "" }),
            false,
            "the Machine has the annotation",
        ),
        ("stopped", &stopped, Some(&few), json!({}), false, "its provider keeps it"),
        (
            "stopped, replace",
            &stopped,
            Some(&few),
            json!({ "machinist.dev/on-stopped": "Replace" }),
            true,
            "makes another",
        ),
        (
            "stopped, start",
            &stopped,
            Some(&few),
            json!({ "machinist.dev/on-stopped": "Start" }),
            false,
            "nobody but its provider may start",
        ),
        (
            "bad value",
            &ended,
            Some(&few),
            json!({ "machinist.dev/on-terminated": "Restart" }),
            false,
            "Unsupported value",
        ),
    ];
    for (name, instance, pool, annotations, replaces, words) in table {
        let mut machine = machine();
        machine.metadata.annotations = Some(serde_json::from_value(annotations).unwrap());
        let first = judged(&machine, Sight::Seen(instance), pool, 0);
        let is_stopped = name.starts_with("stopped");
        assert!(!(is_stopped && first.replaces), "{name}: not when it is noticed");
        machine.status = Some(first.told.unwrap().status);
        let then = judged(&machine, Sight::Seen(instance), pool, 600);
        assert_eq!(then.replaces, replaces, "{name}");
        if let Some(told) = then.told {
            machine.status = Some(told.status);
        }
        let message = &condition::find(conditions_of(&machine), INSTANCE_RUNNING).unwrap().message;
        assert!(message.contains(words), "{name}: {message}");
        let again = judged(&machine, Sight::Seen(instance), pool, 600);
        assert_eq!((again.told, again.replaces), (None, replaces), "{name}: said once");
    }
    let mut machine = machine();
    machine.metadata.labels = Some(serde_json::from_value(control_plane).unwrap());
    after(&mut machine, Sight::Seen(&ended));
    assert!(!judged(&machine, Sight::Seen(&ended), Some(&few), 600).replaces, "its own controller");
}

#[test]
fn what_was_seen_to_end_is_replaced_also_when_the_cloud_has_forgotten_it() {
    let (id, few) = (InstanceId("i-m".to_owned()), pool(5, 3));
    let ended = instance(InstanceState::Terminated, "");
    let mut machine = machine();
    assert!(!judged(&machine, Sight::Missing(&id), Some(&few), 600).replaces);
    after(&mut machine, Sight::Seen(&ended));
    let verdict = judged(&machine, Sight::Missing(&id), Some(&few), 600);
    assert!(verdict.replaces, "a process may have died before it was done");
    let announced = verdict.told.unwrap().announcement.unwrap();
    assert_eq!(announced.reason, "Replacing");
}
