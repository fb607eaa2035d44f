//! Are openings and freezes shown as they are, and does a calendar program understand the export?

use super::{
    list::{Question, Report},
    *,
};
use crate::testing::{at, berlin, fleet, golden, longest_line, now, testdata};

fn report(snapshot: &Snapshot, question: &Question) -> Report {
    list::report(&snapshot.objects(), question)
}

async fn asked(from: &str, count: usize) -> Report {
    let snapshot = fleet().await;
    report(&snapshot, &Question { from: at(from), count, wanted: None })
}

#[tokio::test]
async fn the_next_openings_and_freezes_are_listed_in_the_persons_zone() {
    let report = asked("2026-11-02T10:00:00Z", 5).await;
    golden("windows.txt", &table::table(&report, &berlin(), Some(80)));
    golden("windows.json", &(serde_json::to_string_pretty(&report).unwrap() + "\n"));
}

#[tokio::test]
async fn what_is_open_is_said_to_be_and_a_jump_of_the_clock_is_marked() {
    let mut snapshot = fleet().await;
    snapshot.policies[0].spec.windows[0].duration = "8h".to_owned();
    let report =
        report(&snapshot, &Question { from: at("2026-10-24T21:00:00Z"), count: 2, wanted: None });
    let text = table::table(&report, &berlin(), Some(80));
    let text = anstream::adapter::strip_str(&text).to_string();
    assert!(text.contains("  Sat 24 Oct 22:00   Sun 25 Oct 05:00"), "{text}");
    assert!(text.contains("    open now; clocks go back at 03:00 by 1h"), "{text}");
    assert!(text.contains("  Sat 31 Oct 22:00   Sun  1 Nov 06:00        8h"), "{text}");
}

#[tokio::test]
async fn a_window_that_a_freeze_cuts_says_so() {
    let mut snapshot = fleet().await;
    snapshot.policies[0].spec.freezes[0].yearly = None;
    snapshot.policies[0].spec.freezes[0].from = Some("2026-11-08".to_owned());
    snapshot.policies[0].spec.freezes[0].to = Some("2026-11-20".to_owned());
    let report = report(&snapshot, &Question { from: now(), count: 1, wanted: None });
    let opening = &report.policies[0].openings[0];
    assert_eq!(opening.end, at("2026-11-07T23:00:00Z"));
    assert_eq!(opening.until, ["year-end"]);
    let text = table::table(&report, &berlin(), Some(80));
    assert!(text.contains("cut short by freeze year-end"), "{text}");
}

#[tokio::test]
async fn one_policy_can_be_chosen_by_name_and_by_file() {
    let mut snapshot = fleet().await;
    assert_eq!(wanted(&[], &mut snapshot).unwrap(), None);
    let names = wanted(&["nights".to_owned()], &mut snapshot).unwrap();
    assert_eq!(names, Some(vec!["nights".to_owned()]));
    let report_of = |names, snapshot: &Snapshot| {
        report(snapshot, &Question { from: now(), count: 1, wanted: names })
    };
    assert_eq!(report_of(names, &snapshot).policies.len(), 1);
    let file = testdata("nights.yaml").display().to_string();
    let names = wanted(&[file], &mut snapshot).unwrap();
    let report = report_of(names, &snapshot);
    assert_eq!(report.policies[0].openings[0].windows, ["every-night"]);
    let error = wanted(&["days".to_owned()], &mut snapshot).unwrap_err();
    assert_eq!(error.to_string(), "--policy: there is no MaintenancePolicy days");
}

#[tokio::test]
async fn a_policy_that_cannot_be_used_names_its_fields() {
    let mut snapshot = fleet().await;
    snapshot.policies[0].spec.windows[0].time_zone = Some("Mars/Olympus".to_owned());
    let report = report(&snapshot, &Question { from: now(), count: 1, wanted: None });
    let text = table::table(&report, &berlin(), Some(80));
    assert!(text.contains("Policy nights, 6 machines: cannot be used"), "{text}");
    assert!(text.contains("spec.windows[0].timeZone"), "{text}");
}

#[tokio::test]
async fn without_policies_any_hour_is_allowed() {
    let mut snapshot = fleet().await;
    snapshot.policies.clear();
    let report = report(&snapshot, &Question { from: now(), count: 1, wanted: None });
    let text = table::table(&report, &berlin(), Some(80));
    assert!(text.contains("Without a policy, 9 machines: any hour is allowed"), "{text}");
}

#[tokio::test]
async fn no_line_is_longer_than_the_terminal() {
    let mut snapshot = fleet().await;
    snapshot.policies[0].spec.windows[0].name = "a-very-long-name-of-a-window-indeed".repeat(2);
    for width in 40..100 {
        let report = report(&snapshot, &Question { from: now(), count: 3, wanted: None });
        let (length, line) = longest_line(&table::table(&report, &berlin(), Some(width)));
        assert!(length <= width, "{width}: {line}");
    }
}

/// What RFC 5545 wants of lines, joined again to what they say.
fn unfolded(text: &str) -> Vec<String> {
    assert!(text.ends_with("\r\n"));
    assert_eq!(text.matches('\n').count(), text.matches("\r\n").count(), "ends that are no CRLF");
    for line in text.split("\r\n") {
        assert!(line.len() <= 75, "{} octets: {line:?}", line.len());
    }
    text.replace("\r\n ", "").lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn the_export_is_a_calendar() {
    let report = asked("2026-11-02T10:00:00Z", 3).await;
    let text = ical::calendar(&report, now());
    let lines = unfolded(&text);
    assert_eq!(lines.first().map(String::as_str), Some("BEGIN:VCALENDAR"));
    assert_eq!(lines.last().map(String::as_str), Some("END:VCALENDAR"));
    let count = |line: &str| lines.iter().filter(|one| *one == line).count();
    assert_eq!((count("BEGIN:VEVENT"), count("END:VEVENT")), (4, 4));
    assert_eq!(count("DTSTART:20261107T210000Z"), 1, "{text}");
    assert_eq!(count("DTEND:20261108T010000Z"), 1);
    let uids: std::collections::BTreeSet<&String> =
        lines.iter().filter(|line| line.starts_with("UID:")).collect();
    assert_eq!(uids.len(), 4);
}

#[tokio::test]
async fn the_same_opening_has_the_same_uid_whenever_it_is_exported() {
    let uid = |text: String| {
        let lines = unfolded(&text);
        lines.into_iter().find(|line| line.starts_with("UID:")).unwrap()
    };
    let before = uid(ical::calendar(&asked("2026-11-02T10:00:00Z", 1).await, now()));
    let within = uid(ical::calendar(&asked("2026-11-07T23:30:00Z", 1).await, now()));
    assert_eq!(before, "UID:opening-nights-saturdays-20261107T210000Z@machinist.dev");
    assert_eq!(before, within);
}

#[tokio::test]
async fn odd_names_are_escaped_and_long_ones_folded() {
    let mut snapshot = fleet().await;
    snapshot.policies[0].spec.windows[0].name = "a; b, c\\d\ne ".to_owned() + &"ä→".repeat(60);
    let report = report(&snapshot, &Question { from: now(), count: 1, wanted: None });
    let lines = unfolded(&ical::calendar(&report, now()));
    let summary = lines.iter().find(|line| line.starts_with("SUMMARY:")).unwrap();
    assert!(
        summary.starts_with("SUMMARY:Maintenance window a\\; b\\, c\\\\d\\ne ä→ä→"),
        "{summary}"
    );
    assert!(summary.ends_with("ä→ (policy nights)"), "{summary}");
}
