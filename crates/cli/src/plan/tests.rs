//! Does the plan look as a person needs it, and is it the same whatever asks for it?

use proptest::prelude::*;

use super::*;
use crate::{
    snapshot::Snapshot,
    testing::{at, berlin, fleet, golden, longest_line, now, testdata},
};

fn form(output: Output) -> Form {
    Form { output, notation: Notation::Indented }
}

fn shown(
    snapshot: &Snapshot,
    supposed: &[&str],
    output: Output,
    width: Option<usize>,
    now: Timestamp,
) -> String {
    let zone = berlin();
    let texts: Vec<String> = supposed.iter().map(|text| (*text).to_owned()).collect();
    let wishes = what_if::read(&texts, &zone).unwrap();
    let sightings = what_if::sightings(&wishes, snapshot).unwrap();
    let layout = Layout { zone: &zone, width, is_wide: output == Output::Wide };
    let trial = Trial { policies: Vec::new(), events: texts };
    with_plan(snapshot, &sightings, now, |picture| {
        text(picture, snapshot, &trial, form(output), &layout).unwrap()
    })
}

#[tokio::test]
async fn a_terminal_shows_the_table_the_days_and_the_notes() {
    golden("plan.txt", &shown(&fleet().await, &[], Output::Table, Some(80), now()));
}

/// A manual that shows something else than the program is worse than none.
#[test]
fn the_manual_shows_what_the_program_prints() {
    let manual = testdata("../../../../docs/operate/maintenance.md");
    let manual = std::fs::read_to_string(manual).unwrap();
    for name in ["plan.txt", "explain-blocked.txt", "windows.txt"] {
        let printed = std::fs::read_to_string(testdata(name)).unwrap();
        assert!(manual.contains(&printed), "{name} is not in docs/operate/maintenance.md");
    }
    let policy = std::fs::read_to_string(testdata("nights.yaml")).unwrap();
    assert!(manual.contains(&policy), "nights.yaml is not in docs/operate/maintenance.md");
}

#[tokio::test]
async fn a_pipe_gets_one_line_for_each_machine() {
    let text = shown(&fleet().await, &[], Output::Table, None, now());
    golden("plan-piped.txt", &text);
    let rows = text.lines().skip(3).take_while(|line| !line.is_empty());
    assert_eq!(rows.count(), 7);
}

#[tokio::test]
async fn wide_output_adds_columns_and_cuts_nothing() {
    let text = shown(&fleet().await, &[], Output::Wide, Some(40), now());
    let text = anstream::adapter::strip_str(&text).to_string();
    let header = text.lines().find(|line| line.starts_with("WHEN")).unwrap();
    for title in ["LAST SAFE START", "TAKES", "POOL", "ZONE", "POLICY", "WHY"] {
        assert!(header.contains(title), "{header}");
    }
    assert!(!text.contains('…'), "{text}");
}

#[tokio::test]
async fn programs_get_names_that_never_change() {
    let text = shown(&fleet().await, &[], Output::Json, None, now());
    golden("plan.json", &text);
    let plan: serde_json::Value = serde_json::from_str(&text).unwrap();
    let entry = &plan["entries"][0];
    for name in [
        "machine",
        "machineUid",
        "pool",
        "zone",
        "policy",
        "standing",
        "action",
        "andThen",
        "start",
        "end",
        "window",
        "latestSafeStart",
        "deadline",
        "expectedSeconds",
        "isLate",
        "codes",
        "because",
        "whyAction",
        "why",
        "waitsOn",
        "sentence",
    ] {
        assert!(entry.get(name).is_some(), "{name}");
    }
    let yaml = shown(&fleet().await, &[], Output::Yaml, None, now());
    let same: serde_json::Value = serde_saphyr::from_str(&yaml).unwrap();
    assert_eq!(same, plan);
}

#[tokio::test]
async fn names_are_printed_as_kubectl_prints_them() {
    let text = shown(&fleet().await, &[], Output::Name, None, now());
    assert_eq!(text.lines().next(), Some("machine.machine.openshift.io/worker-b-2"));
    assert_eq!(text.lines().count(), 7);
}

#[tokio::test]
async fn a_policy_and_an_event_are_tried_and_nothing_else_changes() {
    let mut snapshot = fleet().await;
    let policies = snapshot.try_policies(&[testdata("nights.yaml")]).unwrap();
    let zone = berlin();
    let event = "machine=worker-a-3,code=instance-retirement,not-before=2026-11-06";
    let wishes = what_if::read(&[event.to_owned()], &zone).unwrap();
    let sightings = what_if::sightings(&wishes, &snapshot).unwrap();
    let trial = Trial { policies, events: vec![event.to_owned()] };
    let layout = Layout { zone: &zone, width: Some(80), is_wide: false };
    let text = with_plan(&snapshot, &sightings, now(), |picture| {
        text(picture, &snapshot, &trial, form(Output::Table), &layout).unwrap()
    });
    golden("plan-trial.txt", &text);
}

/// The operator asks etcd's members themselves; here that is only on its record.
#[tokio::test]
async fn what_only_the_operator_sees_is_shown_from_its_record() {
    let mut snapshot = fleet().await;
    let words = "member master-1 of etcd does not answer";
    for maintenance in &mut snapshot.maintenances {
        let is_master = maintenance.spec.machinelink == "master-0";
        let Some(status) = maintenance.status.as_mut().filter(|_| is_master) else { continue };
        let mut plan = status.plan.take().unwrap_or_default();
        for (reason, message) in [("ControlPlaneNotReady", words), ("OutsideWindow", "stale")] {
            let wait = serde_json::json!({ "reason": reason, "message": message });
            plan.waits_on.push(serde_json::from_value(wait).unwrap());
        }
        status.plan = Some(plan);
    }
    let text = shown(&snapshot, &[], Output::Table, Some(200), now());
    assert!(text.contains(&format!("the operator waits: {words}")), "{text}");
    assert!(!text.contains("stale"), "the plan knows windows itself: {text}");
    let json = shown(&snapshot, &[], Output::Json, None, now());
    assert!(json.contains(words), "{json}");
}

#[tokio::test]
async fn another_time_gives_another_plan() {
    let snapshot = fleet().await;
    let saturday = shown(&snapshot, &[], Output::Table, Some(80), at("2026-11-07T21:05:00Z"));
    let saturday = anstream::adapter::strip_str(&saturday).to_string();
    let row = saturday.lines().find(|line| line.starts_with("now, late")).unwrap();
    assert!(row.contains("worker-a-2") && row.contains("Reboot"), "{saturday}");
    assert!(saturday.contains("[ window saturdays is open, until 02:00"), "{saturday}");
}

#[tokio::test]
async fn a_fleet_that_needs_nothing_says_so() {
    let mut snapshot = fleet().await;
    snapshot.maintenances.clear();
    for machine in &mut snapshot.machines {
        machine.metadata.annotations = None;
    }
    let text = shown(&snapshot, &[], Output::Table, Some(80), now());
    assert_eq!(
        text,
        "Plan as of Mon 2 Nov 2026, 11:00 CET (Europe/Berlin)\n\nNothing is planned: no machine in \
         namespace openshift-machine-api needs\nmaintenance (9 looked at).\n"
    );
}

#[tokio::test]
async fn an_event_for_a_machine_that_is_not_there_is_refused() {
    let snapshot = fleet().await;
    let wish = "machine=nobody,code=instance-stop,not-before=2026-11-06".to_owned();
    let wishes = what_if::read(&[wish], &berlin()).unwrap();
    let error = what_if::sightings(&wishes, &snapshot).unwrap_err();
    assert_eq!(
        error.to_string(),
        "--what-if: there is no machine nobody in namespace openshift-machine-api"
    );
}

#[tokio::test]
async fn a_day_on_which_the_clock_changes_is_marked() {
    let mut snapshot = fleet().await;
    for maintenance in &mut snapshot.maintenances {
        for reason in maintenance.status.iter_mut().flat_map(|status| &mut status.reasons) {
            reason.not_before = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(
                "2026-10-25T06:00:00Z",
            )));
        }
    }
    let text = shown(&snapshot, &[], Output::Table, Some(80), at("2026-10-20T10:00:00Z"));
    assert!(text.contains("Sunday 25 October 2026 (clocks go back at 03:00 by 1h)"), "{text}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Whatever the names and the width, no line is beyond it.
    #[test]
    fn no_line_is_longer_than_the_terminal(
        width in 50usize..140,
        suffix in "[a-z0-9-]{0,40}",
        hours in 0i64..400,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut snapshot = runtime.block_on(fleet());
        for maintenance in &mut snapshot.maintenances {
            maintenance.spec.machinelink.push_str(&suffix);
        }
        for machine in &mut snapshot.machines {
            machine.metadata.name = machine.metadata.name.take().map(|name| name + &suffix);
        }
        let now = now().checked_add(jiff::SignedDuration::from_hours(hours)).unwrap();
        let text = shown(&snapshot, &[], Output::Table, Some(width), now);
        let (length, line) = longest_line(&text);
        prop_assert!(length <= width, "{width}: {line:?}");
    }
}
