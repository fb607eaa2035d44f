//! The conditions of the ClusterOperator, row by row.

use machinist_api::openshift_config::{ClusterOperatorCondition, ClusterOperatorStatus};
use serde_json::json;

use super::{
    super::{
        Mode,
        cluster_operator::{Facts, Judged, Outcome, is_initializing, judge},
    },
    common::{minutes_ago, now},
};
use crate::decision::Announcement;

const AVAILABLE: &str = "Cluster Machine API Operator is available at operator: 4.20";

fn judged(stored: Option<&ClusterOperatorStatus>, release: &str, outcome: Outcome) -> Judged {
    let facts = Facts { mode: Mode::Managed, namespace: "ns", release, outcome, note: None };
    judge(stored, &facts, now())
}

fn failed(words: &str) -> Outcome {
    Outcome::Failed(words.to_owned())
}

fn row<'a>(status: &'a ClusterOperatorStatus, type_: &str) -> (&'a str, &'a str, &'a str) {
    let found = status.conditions.iter().find(|one| one.type_ == type_).unwrap();
    (&found.status, &found.reason, &found.message)
}

fn available() -> ClusterOperatorStatus {
    judged(None, "4.20", Outcome::Done).status
}

fn aged(mut status: ClusterOperatorStatus, minutes: i64) -> ClusterOperatorStatus {
    for condition in &mut status.conditions {
        condition.last_transition_time.0 = minutes_ago(minutes);
    }
    status
}

#[test]
fn it_begins_as_an_operator_that_is_initializing() {
    for outcome in [Outcome::Waiting, failed("no luck")] {
        let judged = judged(None, "4.20", outcome);
        let status = judged.status;
        let first = ("False", "Initializing", "Operator is initializing");
        assert_eq!(row(&status, "Available"), first);
        assert_eq!(row(&status, "Degraded"), ("False", "AsExpected", ""), "not for 20 minutes");
        assert_eq!(
            row(&status, "Progressing"),
            ("True", "SyncingResources", "Progressing towards operator: 4.20")
        );
        assert_eq!(row(&status, "Upgradeable"), ("True", "", ""));
        assert_eq!(status.versions, []);
        assert!(is_initializing(Some(&status)) && is_initializing(None));
    }
}

#[test]
fn done_is_available_at_the_release() {
    let judged = judged(None, "4.20", Outcome::Done);
    let status = &judged.status;
    assert_eq!(row(status, "Available"), ("True", "AsExpected", AVAILABLE));
    assert_eq!(row(status, "Progressing"), ("False", "AsExpected", ""));
    assert_eq!(row(status, "Degraded"), ("False", "AsExpected", ""));
    assert_eq!(row(status, "Upgradeable"), ("True", "", ""));
    assert_eq!(
        serde_json::to_value(&status.versions).unwrap(),
        json!([{ "name": "operator", "version": "4.20" }])
    );
    assert!(!is_initializing(Some(status)));
    let upgrade = Announcement::normal("Status upgrade", "Progressing towards operator: 4.20");
    assert_eq!(judged.announcements, [upgrade]);
}

#[test]
fn nothing_changes_while_nothing_does() {
    let before = aged(available(), 60);
    for outcome in [Outcome::Done, Outcome::Waiting] {
        let judged = judged(Some(&before), "4.20", outcome);
        assert_eq!(judged.status, before);
        assert_eq!((judged.announcements.len(), judged.recheck), (0, None));
    }
    let degraded = aged(judged(Some(&before), "4.20", failed("no luck")).status, 60);
    let again = judged(Some(&degraded), "4.20", failed("no luck"));
    assert_eq!(again.status, degraded);
    assert_eq!(again.announcements, []);
}

#[test]
fn an_upgrade_is_progress_and_the_version_is_the_old_one_until_it_is_done() {
    let before = aged(available(), 60);
    let judged_ = judged(Some(&before), "4.21", Outcome::Waiting);
    let status = &judged_.status;
    assert_eq!(
        row(status, "Progressing"),
        ("True", "SyncingResources", "Progressing towards operator: 4.21")
    );
    assert_eq!(row(status, "Available"), ("True", "AsExpected", AVAILABLE));
    assert_eq!(status.versions, before.versions);
    assert_eq!(
        judged_.announcements,
        [Announcement::normal("Status upgrade", "Progressing towards operator: 4.21")]
    );
    let again = judged(Some(status), "4.21", Outcome::Waiting);
    assert_eq!(again.announcements, [], "told once");
    let done = judged(Some(status), "4.21", Outcome::Done).status;
    assert_eq!(row(&done, "Progressing"), ("False", "AsExpected", ""));
    assert_eq!(done.versions[0].version, "4.21");
}

#[test]
fn a_failure_degrades_at_once_but_in_an_upgrade_only_after_20_minutes() {
    let before = aged(available(), 60);
    let same = judged(Some(&before), "4.20", failed("no luck"));
    let words = "Failed to resync for operator: 4.20 because no luck";
    assert_eq!(row(&same.status, "Degraded"), ("True", "SyncingFailed", words));
    assert_eq!(row(&same.status, "Available"), ("True", "AsExpected", AVAILABLE));
    assert_eq!(same.announcements, [Announcement::warning("Status degraded", words)]);

    let progressing = judged(Some(&before), "4.21", Outcome::Waiting).status;
    let early = aged(progressing.clone(), 19);
    let suppressed = judged(Some(&early), "4.21", failed("no luck"));
    assert_eq!(row(&suppressed.status, "Degraded"), ("False", "AsExpected", ""));
    assert_eq!(suppressed.recheck, Some(minutes_ago(-1)));
    let late = judged(Some(&aged(progressing, 20)), "4.21", failed("no luck"));
    let words = "Failed when progressing towards operator: 4.21 because no luck";
    assert_eq!(row(&late.status, "Degraded"), ("True", "SyncingFailed", words));
    assert_eq!(late.announcements, [Announcement::warning("Status degraded", words)]);
    let healed = judged(Some(&late.status), "4.21", Outcome::Done).status;
    assert_eq!(row(&healed, "Degraded"), ("False", "AsExpected", ""));
}

#[test]
fn a_platform_without_machines_is_available_in_its_own_words() {
    let facts = Facts {
        mode: Mode::NoOp,
        namespace: "ns",
        release: "4.20",
        outcome: Outcome::Done,
        note: None,
    };
    let status = judge(None, &facts, now()).status;
    let words = "Cluster Machine API Operator is in NoOp mode";
    assert_eq!(row(&status, "Available"), ("True", "AsExpected", words));
    assert_eq!(row(&status, "Progressing"), ("False", "AsExpected", ""));
    assert_eq!(status.versions[0].version, "4.20");
}

#[test]
fn times_are_those_of_the_last_change_of_a_status_and_conditions_of_others_stay() {
    let mut before = aged(available(), 60);
    before.conditions.push(ClusterOperatorCondition {
        type_: "Theirs".to_owned(),
        ..before.conditions[0].clone()
    });
    let after = judged(Some(&before), "4.20", failed("no luck")).status;
    for (one, other) in before.conditions.iter().zip(&after.conditions) {
        let expected = if one.type_ == "Degraded" { now() } else { minutes_ago(60) };
        assert_eq!(other.last_transition_time.0, expected, "{}", one.type_);
    }
    assert_eq!(after.conditions.last().unwrap().type_, "Theirs");
}

#[test]
fn the_note_is_said_where_the_contract_says_nothing() {
    let note = Some("the old one is off");
    let facts = Facts {
        mode: Mode::Managed,
        namespace: "ns",
        release: "4.20",
        outcome: Outcome::Done,
        note,
    };
    let status = judge(Some(&available()), &facts, now()).status;
    assert_eq!(row(&status, "Progressing"), ("False", "AsExpected", "the old one is off"));
    assert_eq!(row(&status, "Available"), ("True", "AsExpected", AVAILABLE));
}

#[test]
fn related_objects_are_the_contracts() {
    let of = |group: &str, resource: &str, name: &str| json!({ "group": group, "resource": resource, "name": name });
    let within = |group: &str, resource: &str| {
        let mut object = of(group, resource, "");
        object["namespace"] = "ns".into();
        object
    };
    assert_eq!(
        serde_json::to_value(available().related_objects).unwrap(),
        json!([
            of("", "namespaces", "ns"),
            within("machine.openshift.io", "machines"),
            within("machine.openshift.io", "machinesets"),
            within("machine.openshift.io", "machinehealthchecks"),
            within("rbac.authorization.k8s.io", "roles"),
            of("rbac.authorization.k8s.io", "clusterroles", "machinist-operator"),
            of("rbac.authorization.k8s.io", "clusterroles", "machine-api-operator"),
            of("rbac.authorization.k8s.io", "clusterroles", "machine-api-controllers"),
            within("metal3.io", "baremetalhosts"),
        ])
    );
}
