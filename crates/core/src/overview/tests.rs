//! Is everything told that happened, once, with its cause and what follows?

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, Node};
use machinist_api::{Machine, MachineMaintenance};
use serde_json::{Value, json};

use super::{
    drift::{Evidence, Incident, incidents},
    timeline::{Happening, Source, Sources, timeline},
};
use crate::{decision::Severity, drift::Class};

fn at(time: &str) -> Timestamp {
    format!("2026-11-02T{time}Z").parse().unwrap()
}

fn machine(name: &str, change: impl FnOnce(&mut Value)) -> Machine {
    let mut object = json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
        "metadata": {
            "name": name, "namespace": "openshift-machine-api", "uid": format!("uid-{name}"),
            "creationTimestamp": "2026-10-01T08:00:00Z",
            "labels": { "machine.openshift.io/zone": "eu-west-1a" },
            "ownerReferences": [{
                "apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet",
                "name": "workers", "uid": "uid-workers", "controller": true,
            }],
        },
        "spec": { "providerID": format!("aws:///eu-west-1a/i-{name}") },
        "status": {
            "phase": "Running",
            "nodeRef": { "kind": "Node", "name": format!("node-{name}") },
            "providerStatus": { "instanceId": format!("i-{name}"), "instanceState": "running" },
            "conditions": [],
        },
    });
    change(&mut object);
    serde_json::from_value(object).unwrap()
}

fn stopped(object: &mut Value, response: &str, follows: &str) {
    object["status"]["providerStatus"]["drift"] = json!({
        "class": "StoppedByUser", "since": "2026-11-02T10:00:00Z", "response": response,
    });
    object["status"]["conditions"] = json!([{
        "type": "InstanceRunning", "status": "False", "reason": "StoppedByUser",
        "message": format!("instance i-a was stopped by a user (User initiated (10:00)); {follows}"),
        "lastTransitionTime": "2026-11-02T10:00:00Z",
    }]);
}

fn event(machine: &str, time: &str, reason: &str, message: &str) -> Event {
    of_kind("Machine", machine, time, reason, message, "machinist")
}

fn of_kind(
    kind: &str,
    name: &str,
    time: &str,
    reason: &str,
    message: &str,
    component: &str,
) -> Event {
    let time = at(time).to_string();
    serde_json::from_value(json!({
        "metadata": { "name": format!("{name}.{reason}.{time}") },
        "involvedObject": {
            "kind": kind, "namespace": "openshift-machine-api", "name": name,
            "uid": format!("uid-{name}"),
        },
        "type": "Normal", "reason": reason, "message": message, "count": 1,
        "firstTimestamp": time, "lastTimestamp": time,
        "source": { "component": component },
    }))
    .unwrap()
}

fn found(machines: &[Machine], events: &[Event]) -> Vec<Incident> {
    let machines: Vec<&Machine> = machines.iter().collect();
    let events: Vec<&Event> = events.iter().collect();
    incidents(&Evidence { machines: &machines, maintenances: &[], events: &events })
}

fn only(mut found: Vec<Incident>) -> Incident {
    assert_eq!(found.len(), 1, "{found:#?}");
    found.remove(0)
}

const STOPPED: &str = "instance i-a was stopped by a user (User initiated (10:00)); it is started \
                       again at 2026-11-02T10:05:00Z, unless somebody starts it before";

#[test]
fn the_record_alone_tells_what_is_so() {
    let follows = "it is started again at 2026-11-02T10:05:00Z, unless somebody starts it before";
    let machines = [machine("a", |object| stopped(object, "Wait", follows)), machine("b", |_| {})];
    let incident = only(found(&machines, &[]));
    assert_eq!((incident.machine.as_str(), incident.class), ("a", Class::StoppedByUser));
    assert_eq!(incident.cause.as_deref(), Some("User initiated (10:00)"));
    assert_eq!(incident.next.as_deref(), Some(follows));
    assert_eq!(incident.since, at("10:00:00"));
    assert_eq!(incident.pool.as_deref(), Some("workers"));
    assert_eq!(incident.zone.as_deref(), Some("eu-west-1a"));
    assert!(!incident.is_over && !incident.needs_a_person);
    assert_eq!(incident.sentence, STOPPED);
}

#[test]
fn record_and_event_of_one_stop_are_one_incident() {
    let machines = [machine("a", |object| stopped(object, "Start", "it is being started again"))];
    let events = [
        event("a", "10:00:01", "StoppedByUser", STOPPED),
        event(
            "a",
            "10:05:00",
            "StartingInstance",
            "instance i-a was stopped by a user; it is being started again",
        ),
    ];
    let incident = only(found(&machines, &events));
    assert_eq!(incident.next.as_deref(), Some("it is being started again"));
    assert!(incident.done.is_empty(), "what is being done is told once: {incident:?}");
}

#[test]
fn a_stop_that_was_answered_is_over_and_says_what_was_done() {
    let events = [
        event("a", "10:00:01", "StoppedByUser", STOPPED),
        event(
            "a",
            "10:05:00",
            "StartingInstance",
            "instance i-a was stopped by a user; it is being started again",
        ),
        event("a", "10:05:30", "FailedStart", "could not start: no capacity"),
        event("a", "10:06:30", "Update", "instance i-a runs again, as was decided"),
    ];
    let incident = only(found(&[machine("a", |_| {})], &events));
    assert!(incident.is_over);
    assert_eq!(incident.over_at, Some(at("10:06:30")));
    assert_eq!(incident.next, None);
    let reasons: Vec<&str> = incident.done.iter().map(|deed| deed.reason.as_str()).collect();
    assert_eq!(reasons, ["StartingInstance", "FailedStart", "Update"]);
    assert!(incident.sentence.ends_with("runs again, as was decided"), "{}", incident.sentence);
}

#[test]
fn a_start_by_somebody_ends_the_stop_and_is_told_itself() {
    let events = [
        event("a", "10:00:01", "StoppedByUser", STOPPED),
        event("a", "10:02:00", "Started", "instance i-a was started without us"),
    ];
    let incidents = found(&[machine("a", |_| {})], &events);
    let classes: Vec<(Class, bool)> =
        incidents.iter().map(|one| (one.class, one.is_over)).collect();
    assert_eq!(classes, [(Class::Started, true), (Class::StoppedByUser, true)]);
    assert_eq!(incidents[1].over_at, Some(at("10:02:00")));
}

#[test]
fn what_becomes_better_known_stays_one_incident() {
    let events = [
        event("a", "10:00:00", "Stopped", "instance i-a was stopped; by policy nothing is done"),
        event("a", "10:00:40", "StoppedByUser", STOPPED),
    ];
    let machines = [machine("a", |object| stopped(object, "Report", "by policy nothing is done"))];
    let incident = only(found(&machines, &events));
    assert_eq!(incident.class, Class::StoppedByUser);
    assert!(incident.needs_a_person);
}

#[test]
fn the_machine_that_is_gone_has_no_open_incident() {
    let message = "instance i-a was terminated by a user; the machine is deleted, and pool workers \
                   makes another";
    let events = [
        event("a", "10:00:00", "TerminatedByUser", message),
        event("a", "10:00:00", "Replacing", message),
    ];
    let incident = only(found(&[machine("b", |_| {})], &events));
    assert!(incident.is_over);
    assert_eq!(incident.instance.as_deref(), Some("i-a"));
    assert_eq!(incident.done[0].words, "the machine is deleted, and pool workers makes another");
}

#[test]
fn a_new_machine_of_the_same_name_has_no_part_in_it() {
    let events = [event("a", "10:00:00", "StoppedByUser", STOPPED)];
    let other = machine("a", |object| object["metadata"]["uid"] = json!("another"));
    let incident = only(found(&[other], &events));
    assert!(incident.is_over);
    assert_eq!(incident.machine_uid, "uid-a");
}

#[test]
fn an_impaired_instance_is_told_from_its_condition() {
    let machines = [machine("a", |object| {
        object["status"]["conditions"] = json!([{
            "type": "InstanceHealthy", "status": "False", "reason": "Impaired",
            "message": "instance i-a fails the provider's checks: system since 2026-11-02T09:00:00Z",
            "lastTransitionTime": "2026-11-02T09:01:00Z",
        }]);
    })];
    let maintenance: MachineMaintenance = serde_json::from_value(json!({
        "apiVersion": "machinemaintenance.managed.openshift.io/v1alpha1",
        "kind": "MachineMaintenance", "metadata": { "name": "mm-a" },
        "spec": { "machinelink": "a", "machineid": "i-a", "maintenancescheduled": false },
        "status": {
            "machineUid": "uid-a", "message": "Replace on Saturday",
            "reasons": [{
                "id": "drift/Impaired/1", "kind": "Drift", "code": "Impaired", "state": "Active",
                "since": "2026-11-02T09:01:00Z",
            }],
        },
    }))
    .unwrap();
    let alone = only(found(&machines, &[]));
    assert_eq!(alone.cause.as_deref(), Some("system since 2026-11-02T09:00:00Z"));
    assert!(alone.next.unwrap().starts_with("nothing is done"));
    let evidence =
        Evidence { machines: &[&machines[0]], maintenances: &[&maintenance], events: &[] };
    assert_eq!(incidents(&evidence)[0].next.as_deref(), Some("Replace on Saturday"));
}

#[test]
fn what_is_open_comes_first_and_then_the_newest() {
    let machines =
        [machine("a", |object| stopped(object, "Wait", "it waits")), machine("b", |_| {})];
    let reboot = "instance i-b was rebooted without us; nothing is done";
    let events =
        [event("b", "11:00:00", "Rebooted", reboot), event("b", "12:00:00", "Rebooted", reboot)];
    let found = found(&machines, &events);
    let order: Vec<(&str, Timestamp)> =
        found.iter().map(|one| (one.machine.as_str(), one.since)).collect();
    assert_eq!(order, [("a", at("10:00:00")), ("b", at("12:00:00")), ("b", at("11:00:00"))]);
    let json = serde_json::to_value(&found[0]).unwrap();
    assert_eq!(json["class"], "StoppedByUser");
    assert_eq!(json["needsAPerson"], false);
}

#[test]
fn what_waits_for_a_person_comes_before_everything() {
    let machines = [
        machine("a", |object| stopped(object, "Wait", "it waits")),
        machine("b", |object| {
            stopped(object, "Held", "its replacement is held");
            object["status"]["providerStatus"]["drift"]["since"] = json!("2026-11-02T08:00:00Z");
        }),
    ];
    let found = found(&machines, &[]);
    let names: Vec<&str> = found.iter().map(|one| one.machine.as_str()).collect();
    assert_eq!(names, ["b", "a"]);
    assert!(found[0].needs_a_person && !found[1].needs_a_person);
}

#[test]
fn others_events_and_broken_ones_are_no_drift() {
    let mut timeless = event("a", "10:00:00", "StoppedByUser", STOPPED);
    (timeless.first_timestamp, timeless.last_timestamp) = (None, None);
    let foreign = of_kind("Machine", "a", "10:00:00", "StoppedByUser", STOPPED, "somebody");
    let of_pod = of_kind("Pod", "a", "10:00:00", "StoppedByUser", STOPPED, "machinist");
    assert_eq!(found(&[machine("a", |_| {})], &[timeless, foreign, of_pod]), []);
}

fn node(machine: &str, ready: &str) -> Node {
    serde_json::from_value(json!({
        "metadata": {
            "name": format!("node-{machine}"), "creationTimestamp": "2026-10-01T08:03:00Z",
        },
        "status": { "conditions": [{
            "type": "Ready", "status": ready, "lastTransitionTime": "2026-11-02T10:01:00Z",
            "message": "Kubelet stopped posting node status.",
        }] },
    }))
    .unwrap()
}

#[test]
fn cloud_cluster_and_we_are_in_one_order_and_nothing_is_told_twice() {
    let machine = machine("a", |object| stopped(object, "Wait", "it is started again later"));
    let maintenance: MachineMaintenance = serde_json::from_value(json!({
        "apiVersion": "machinemaintenance.managed.openshift.io/v1alpha1",
        "kind": "MachineMaintenance", "metadata": { "name": "mm-a" },
        "spec": { "machinelink": "a", "machineid": "i-a", "maintenancescheduled": false },
        "status": {
            "timeline": [
                { "time": "2026-11-02T09:00:00Z", "phase": "Draining", "message": "the node is emptied" },
                { "time": "2026-11-02T07:00:00Z", "phase": "Pending", "message": "it was noticed" },
            ],
            "history": [{
                "finishedAt": "2026-10-20T07:00:00Z", "outcome": "Succeeded", "action": "Reboot",
            }],
        },
    }))
    .unwrap();
    let events = [
        event("a", "10:00:01", "StoppedByUser", STOPPED),
        event("a", "09:00:01", "MaintenanceStep", "the node is emptied"),
        of_kind(
            "MachineMaintenance",
            "mm-a",
            "09:00:02",
            "MaintenanceStep",
            "the node is emptied",
            "machinist",
        ),
        of_kind(
            "Node",
            "node-a",
            "10:01:02",
            "NodeNotReady",
            "Node node-a status is now: NodeNotReady",
            "node-controller",
        ),
        of_kind("Pod", "web-1", "10:01:02", "Killing", "Stopping container web", "kubelet"),
    ];
    let events: Vec<&Event> = events.iter().collect();
    let node = node("a", "Unknown");
    let told = timeline(&Sources {
        machines: &[&machine],
        maintenances: &[&maintenance],
        nodes: &[&node],
        events: &events,
    });
    let lines: Vec<(Source, &str)> =
        told.iter().map(|one| (one.source, one.reason.as_str())).collect();
    assert_eq!(
        lines,
        [
            (Source::Cluster, "Created"),
            (Source::Cluster, "RegisteredNode"),
            (Source::Machinist, "Succeeded"),
            (Source::Machinist, "Pending"),
            (Source::Machinist, "MaintenanceStep"),
            (Source::Cloud, "StoppedByUser"),
            (Source::Cluster, "NodeNotReady"),
        ]
    );
    assert!(told.iter().all(|one| one.machine.as_deref() == Some("a")), "{told:?}");
    assert!(told.is_sorted_by_key(|one| one.time));
}

#[test]
fn what_only_the_objects_remember_is_told() {
    let machine = machine("a", |object| {
        object["status"]["providerStatus"]["launchTime"] = json!("2026-10-01T08:01:00Z");
        object["metadata"]["deletionTimestamp"] = json!("2026-11-02T12:00:00Z");
    });
    let node = node("a", "False");
    let told = timeline(&Sources { machines: &[&machine], nodes: &[&node], ..Sources::default() });
    let words: Vec<&str> = told.iter().map(|one| one.message.as_str()).collect();
    assert_eq!(
        words,
        [
            "the machine was created",
            "instance i-a was started",
            "node node-a joined",
            "node node-a is not ready: Kubelet stopped posting node status.",
            "its deletion was asked for",
        ]
    );
    let warnings = told.iter().filter(|one: &&Happening| one.severity == Severity::Warning);
    assert_eq!(warnings.count(), 1);
}

#[test]
fn the_same_words_on_several_objects_or_by_several_names_are_told_once() {
    let of_record = |time: &str, reason: &str| {
        of_kind("MachineMaintenance", "mm-a", time, reason, "work has begun", "machinist")
    };
    let events = [
        of_record("10:00:00", "MaintenanceStarted"),
        of_record("10:00:00", "MaintenanceStep"),
        event("a", "10:00:01", "MaintenanceStarted", "work has begun"),
        event("a", "10:10:00", "MaintenanceStarted", "work has begun"),
    ];
    let events: Vec<&Event> = events.iter().collect();
    let told = timeline(&Sources { events: &events, ..Sources::default() });
    let times: Vec<Timestamp> = told.iter().map(|one| one.time).collect();
    assert_eq!(times, [at("10:00:00"), at("10:10:00")], "later it is another one");
}

#[test]
fn a_hook_is_news_only_once_it_holds_something() {
    let hooked = |object: &mut Value| {
        object["status"]["conditions"] = json!([{
            "type": "Drainable", "status": "False", "reason": "HookPresent", "message": "held",
            "lastTransitionTime": "2026-11-02T10:00:00Z",
        }]);
    };
    let reasons = |machine: &Machine| -> Vec<String> {
        let told = timeline(&Sources { machines: &[machine], ..Sources::default() });
        told.into_iter().map(|one| one.reason).collect()
    };
    assert_eq!(reasons(&machine("a", hooked)), ["Created"]);
    let going = machine("a", |object| {
        hooked(object);
        object["metadata"]["deletionTimestamp"] = json!("2026-11-02T10:00:01Z");
    });
    assert_eq!(reasons(&going), ["Created", "HookPresent", "Deleting"]);
}

#[test]
fn what_was_announced_and_is_done_is_not_to_come_any_more() {
    let starting = machine("a", |object| {
        stopped(object, "Start", "");
        object["status"]["providerStatus"]["drift"]["actedAt"] = json!("2026-11-02T10:05:00Z");
        object["status"]["conditions"][0]["reason"] = json!("InstanceStarting");
        object["status"]["conditions"][0]["message"] = json!("instance i-a is starting");
    });
    let events = [
        event("a", "10:00:01", "StoppedByUser", STOPPED),
        event(
            "a",
            "10:05:00",
            "StartingInstance",
            "instance i-a was stopped; it is being started again",
        ),
    ];
    let incident = only(found(&[starting], &events));
    assert_eq!(incident.next, None, "{incident:#?}");
    assert_eq!(incident.done.len(), 1);
    assert!(incident.sentence.ends_with("it is being started again"), "{}", incident.sentence);
}

#[test]
fn what_happened_to_objects_of_cluster_api_is_told_by_their_full_names() {
    let told = |kind: &str, name: &str, version: &str| {
        let mut event = of_kind(kind, name, "10:00:00", "StoppedByUser", "m", "machinist");
        event.involved_object.namespace = Some("team-a".to_owned());
        event.involved_object.api_version = Some(version.to_owned());
        event
    };
    let events = [
        told("Machine", "a", "cluster.x-k8s.io/v1beta2"),
        told("MachineSet", "b", "cluster.x-k8s.io/v1beta2"),
        told("MachineDeployment", "c", "cluster.x-k8s.io/v1beta1"),
        told("Machine", "a", "machine.openshift.io/v1beta1"),
    ];
    let events: Vec<&Event> = events.iter().collect();
    let told = timeline(&Sources { events: &events, ..Sources::default() });
    let told: Vec<(&str, Option<&str>)> =
        told.iter().map(|one| (one.about.as_str(), one.machine.as_deref())).collect();
    assert_eq!(
        told,
        [
            ("Machine a", Some("a")),
            ("Machine team-a/a", Some("team-a/a")),
            ("MachineDeployment team-a/c", None),
            ("MachineSet team-a/b", None),
        ]
    );
    let mut seen = machine("a", |_| ());
    seen.metadata.name = Some("team-a/a".to_owned());
    seen.metadata.namespace = Some("team-a".to_owned());
    let found = incidents(&Evidence { machines: &[&seen], events: &events, ..Evidence::default() });
    let of_seen = found.iter().find(|one| one.machine == "team-a/a").unwrap();
    assert_eq!(of_seen.pool.as_deref(), Some("workers"), "it is known to be of the machine");
}
