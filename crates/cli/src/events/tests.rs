//! Is everything in one order, told once, and does following go on where the list ended?

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Event;

use super::{
    follow::{Change, Told},
    *,
};
use crate::testing::{at, berlin, golden, happened, longest_line, now};

fn everything() -> Choice {
    Choice {
        machines: None,
        since: at("2026-11-02T00:00:00Z"),
        sources: Vec::new(),
        only_warnings: false,
    }
}

fn shown(report: &Report, output: Output, width: Option<usize>) -> String {
    let zone = berlin();
    let layout = Layout { zone: &zone, width, is_wide: output == Output::Wide };
    text(report, output, &layout).unwrap()
}

#[tokio::test]
async fn the_day_of_a_fleet_in_one_order() {
    let report = report(&happened().await, &everything(), 200, now());
    golden("../seeing/events.txt", &shown(&report, Output::Table, Some(80)));
    golden("../seeing/events-piped.txt", &shown(&report, Output::Table, None));
    golden("../seeing/events.json", &shown(&report, Output::Json, None));
    assert!(report.happenings.is_sorted_by_key(|one| one.time));
    let yaml: serde_json::Value =
        serde_saphyr::from_str(&shown(&report, Output::Yaml, None)).unwrap();
    assert_eq!(yaml, serde_json::to_value(&report).unwrap());
    for width in 50..120 {
        let text = shown(&report, Output::Table, Some(width));
        // Time, source and reason have no words to break, and take up to 60.
        let fits = |line: &&str| width >= 60 || line.starts_with("    ");
        let (length, line) =
            longest_line(&text.lines().filter(fits).collect::<Vec<_>>().join("\n"));
        assert!(length <= width, "{width}: {line:?}");
    }
}

/// Names as installers make them do not fit beside the rest in eighty columns.
#[tokio::test]
async fn a_long_name_goes_below() {
    let mut snapshot = happened().await;
    for event in &mut snapshot.events {
        let name = event.involved_object.name.take().unwrap_or_default();
        event.involved_object.name = Some(format!("machinist-worker-us-east-1a-{name}"));
    }
    let report = report(&snapshot, &everything(), 200, now());
    let text = shown(&report, Output::Table, Some(80));
    let (length, line) = longest_line(&text);
    assert!(length <= 80, "{line:?}");
    assert!(
        text.contains("\n    Machine machinist-worker-us-east-1a-worker-2: instance"),
        "{text}"
    );
}

#[tokio::test]
async fn machine_source_time_and_number_are_chosen() {
    let snapshot = happened().await;
    let chosen = |choice: &Choice, limit: u32| {
        let report = report(&snapshot, choice, limit, now());
        let reasons: Vec<String> = report.happenings.iter().map(|one| one.reason.clone()).collect();
        (reasons, report.left_out)
    };
    let machines = Some(BTreeSet::from(["worker-1".to_owned()]));
    let of_one = Choice { machines: machines.clone(), ..everything() };
    assert_eq!(chosen(&of_one, 200).0, ["StoppedByUser", "NodeNotReady"]);
    let of_cloud = Choice { sources: vec![Source::Cloud], machines, ..everything() };
    assert_eq!(chosen(&of_cloud, 200).0, ["StoppedByUser"]);
    let late = Choice { since: at("2026-11-02T09:50:00Z"), ..everything() };
    assert_eq!(chosen(&late, 200).0.len(), 2);
    let warnings = Choice { only_warnings: true, ..everything() };
    assert!(!chosen(&warnings, 200).0.contains(&"Update".to_owned()));
    let (last, left_out) = chosen(&everything(), 1);
    assert_eq!((last.len(), left_out > 5), (1, true));
    let text = shown(&report(&snapshot, &everything(), 1, now()), Output::Table, Some(80));
    assert!(text.contains("older ones left out; --limit shows more."), "{text}");
}

#[test]
fn since_is_a_duration_or_a_time_in_the_past() {
    let zone = berlin();
    assert_eq!(since("2h", &zone, now()).unwrap(), at("2026-11-02T08:00:00Z"));
    assert_eq!(since("2026-11-02 09:00", &zone, now()).unwrap(), at("2026-11-02T08:00:00Z"));
    for text in ["-2h", "soon"] {
        assert!(since(text, &zone, now()).is_err(), "{text}");
    }
}

fn event(uid: &str, count: i32) -> Change {
    let event: Event = serde_json::from_value(serde_json::json!({
        "metadata": { "name": uid, "uid": uid, "namespace": "openshift-machine-api" },
        "involvedObject": { "kind": "Machine", "name": "worker-9" },
        "reason": "Rebooted", "message": "again", "count": count,
        "lastTimestamp": "2026-11-02T10:01:00Z", "source": { "component": "machinist" },
        "firstTimestamp": "2026-11-02T10:01:00Z",
    }))
    .unwrap();
    Change::Event(Box::new(event))
}

#[tokio::test]
async fn what_was_told_is_not_told_again_after_a_lost_connection() {
    let snapshot = happened().await;
    let mut told = Told::of(&snapshot);
    let again = snapshot.events.iter().cloned();
    for event in again {
        assert_eq!(told.news(Change::Event(Box::new(event))).count(), 0);
    }
    assert_eq!(told.news(event("new", 1)).count(), 1);
    assert_eq!(told.news(event("new", 1)).count(), 0, "listed anew");
    let counted: Vec<Happening> = told.news(event("new", 2)).collect();
    assert_eq!((counted.len(), counted[0].count), (1, 2), "happened again");
}

#[tokio::test]
async fn what_is_remembered_is_bounded() {
    let mut told = Told::limited(&Snapshot::default(), 2);
    for uid in ["a", "b", "c"] {
        assert_eq!(told.news(event(uid, 1)).count(), 1);
    }
    assert_eq!(told.news(event("c", 1)).count(), 0);
    assert_eq!(told.news(event("a", 1)).count(), 1, "the oldest is forgotten");
}

#[tokio::test]
async fn a_node_that_joins_later_is_known_as_its_machines() {
    let mut told = Told::of(&Snapshot::default());
    let machine = serde_json::from_value(serde_json::json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
        "metadata": { "name": "worker-9" }, "spec": {},
        "status": { "nodeRef": { "kind": "Node", "name": "node-9" } },
    }))
    .unwrap();
    assert_eq!(told.news(Change::Machine(Box::new(machine))).count(), 0);
    let Change::Event(mut of_node) = event("n", 1) else { unreachable!() };
    of_node.involved_object.kind = Some("Node".to_owned());
    of_node.involved_object.name = Some("node-9".to_owned());
    let told: Vec<Happening> = told.news(Change::Event(of_node)).collect();
    assert_eq!(told[0].machine.as_deref(), Some("worker-9"));
}
