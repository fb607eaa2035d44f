//! Does the calendar agree with python-dateutil about when rules fire?
//!
//! The oracle runs in the Python environment that MACHINIST_VENV names, as `make test` sets it; without
//! it these tests say so and pass.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "clippy knows tests, but not their helpers"
)]

use std::{
    cell::RefCell,
    io::{BufRead, BufReader, Write},
    path::PathBuf,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use jiff::{SignedDuration, Timestamp, civil::DateTime};
use machinist_core::calendar::{
    Calendar, FreezeSpan, FreezeSpec, Schedule, Window, WindowSpec, YearlyPoint,
};
use proptest::{prelude::*, test_runner::TestRunner};
use serde_json::{Value, json};

/// dateutil's copy of the database is older than ours; these have not changed since.
const ZONES: [&str; 8] = [
    "UTC",
    "America/New_York",
    "Europe/Berlin",
    "Australia/Lord_Howe",
    "Australia/Sydney",
    "Asia/Kolkata",
    "America/Phoenix",
    "Africa/Cairo",
];
const WEEKDAYS: [&str; 7] = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"];
/// About ten seconds in all: dateutil walks each rule from its start.
const CASES: u32 = 200;
const FORMAT: &str = "%Y-%m-%dT%H:%M";

/// A Python process that answers one question after another.
struct Oracle {
    child: Child,
    questions: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Oracle {
    fn start() -> Option<RefCell<Self>> {
        let Some(environment) = std::env::var_os("MACHINIST_VENV") else {
            eprintln!(
                "skipped: MACHINIST_VENV does not name a Python environment with python-dateutil \
                 (`make venv` makes .venv)"
            );
            return None;
        };
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/calendar/oracle.py");
        // Tests run in their crate's folder; a relative path is meant from the checkout's root.
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut child = Command::new(root.join(environment).join("bin/python"))
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("MACHINIST_VENV has bin/python");
        let questions = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().expect("stdout is a pipe"));
        Some(RefCell::new(Self { child, questions, answers }))
    }

    fn ask(&mut self, question: &Value) -> Vec<i64> {
        let questions = self.questions.as_mut().expect("the oracle still runs");
        writeln!(questions, "{question}").expect("the oracle reads");
        let mut answer = String::new();
        self.answers.read_line(&mut answer).expect("the oracle answers");
        serde_json::from_str(&answer)
            .unwrap_or_else(|_| panic!("no answer to {question}: is dateutil installed?"))
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        // Its loop ends with its input.
        drop(self.questions.take());
        self.child.wait().ok();
    }
}

fn runner() -> TestRunner {
    TestRunner::new(ProptestConfig {
        cases: CASES,
        failure_persistence: None,
        ..ProptestConfig::default()
    })
}

/// A minute from 2019 to 2031, and one of every night in which a clock is set more often than chance.
fn any_local() -> impl Strategy<Value = DateTime> {
    let minutes = 12 * 365 * 24 * 60;
    prop_oneof![
        3 => (0_i64..minutes).prop_map(|minutes| {
            DateTime::constant(2019, 1, 1, 0, 0, 0, 0)
                .checked_add(SignedDuration::from_mins(minutes))
                .unwrap()
        }),
        1 => (
            prop::sample::select(vec![(3, 8), (11, 1), (3, 29), (10, 25), (10, 4), (4, 5)]),
            0_i8..4,
            prop::sample::select(vec![0_i8, 15, 30, 45]),
        )
            .prop_map(|((month, day), hour, minute)| {
                DateTime::constant(2026, month, day, hour, minute, 0, 0)
            }),
    ]
}

fn any_zone() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&ZONES[..])
}

fn list<T: ToString>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(",")
}

fn seconds(starts: Vec<Timestamp>) -> Vec<i64> {
    starts.into_iter().map(Timestamp::as_second).collect()
}

fn utc(local: DateTime) -> Timestamp {
    jiff::tz::TimeZone::UTC.to_timestamp(local).unwrap()
}

fn any_rule() -> impl Strategy<Value = String> {
    let weekdays = prop::sample::subsequence(WEEKDAYS.to_vec(), 0..4);
    let ordinals = prop::collection::vec(
        (prop::sample::select(vec![-5, -4, -2, -1, 1, 2, 3, 4, 5]), 0_usize..7)
            .prop_map(|(ordinal, weekday)| format!("{ordinal}{}", WEEKDAYS[weekday])),
        1..3,
    );
    let month_days =
        prop::collection::vec(prop_oneof![1..=31, -31..=-1, Just(31), Just(29), Just(-1)], 0..4);
    let days = prop_oneof![
        (weekdays.clone(), month_days.clone()).prop_map(|(weekdays, days)| (
            "DAILY",
            list(&weekdays),
            list(&days)
        )),
        weekdays.clone().prop_map(|weekdays| ("WEEKLY", list(&weekdays), String::new())),
        (weekdays, month_days.clone()).prop_map(|(weekdays, days)| (
            "MONTHLY",
            list(&weekdays),
            list(&days)
        )),
        (ordinals, month_days).prop_map(|(ordinals, days)| (
            "MONTHLY",
            list(&ordinals),
            list(&days)
        )),
    ];
    let hours = prop::collection::btree_set(0..24, 0..3);
    let minutes = prop::collection::btree_set(0..60, 0..3);
    let end = prop_oneof![
        3 => Just(String::new()),
        1 => (1..200).prop_map(|count| format!(";COUNT={count}")),
        1 => any_local().prop_map(|until| format!(";UNTIL={}", until.strftime("%Y%m%dT%H%M00"))),
    ];
    (days, 1..15, hours, minutes, end).prop_map(
        |((frequency, by_day, by_month_day), interval, hours, minutes, end)| {
            let mut rule = format!("FREQ={frequency};INTERVAL={interval}{end}");
            let parts = [
                ("BYDAY", by_day),
                ("BYMONTHDAY", by_month_day),
                ("BYHOUR", list(&hours.into_iter().collect::<Vec<_>>())),
                ("BYMINUTE", list(&minutes.into_iter().collect::<Vec<_>>())),
            ];
            for (name, values) in parts.into_iter().filter(|(_, values)| !values.is_empty()) {
                rule.push_str(&format!(";{name}={values}"));
            }
            rule
        },
    )
}

#[test]
fn recurrence_rules_fire_when_dateutil_says_so() {
    let Some(oracle) = Oracle::start() else { return };
    let fired = RefCell::new(0_usize);
    let cases = (any_rule(), any_local(), any_local(), 1_i64..700, any_zone(), 0_usize..4);
    let check = |(rule, start, from, days, zone, exceptions): (
        String,
        DateTime,
        DateTime,
        i64,
        &str,
        usize,
    )| {
        let to = from.checked_add(SignedDuration::from_hours(days * 24)).unwrap();
        let ask = |except: &[String]| {
            oracle.borrow_mut().ask(&json!({
                "kind": "rrule",
                "rule": rule,
                "start": start.strftime(FORMAT).to_string(),
                "except": except,
                "zone": zone,
                "from": from.strftime(FORMAT).to_string(),
                "to": to.strftime(FORMAT).to_string(),
            }))
        };
        // Some of the times themselves are left out, on the wall clock that they were found on.
        let zoned = jiff::tz::TimeZoneDatabase::bundled().get(zone).unwrap();
        let all = ask(&[]);
        let except: Vec<String> = all
            .iter()
            .step_by(3)
            .take(exceptions)
            .map(|second| {
                let instant = Timestamp::from_second(*second).unwrap();
                zoned.to_datetime(instant).strftime(FORMAT).to_string()
            })
            .collect();
        let expected = if except.is_empty() { all } else { ask(&except) };
        let spec = WindowSpec {
            name: "window".to_owned(),
            schedule: Schedule::Rrule {
                rule: rule.clone(),
                start: Some(start.strftime(FORMAT).to_string()),
                except,
            },
            duration: "1h".to_owned(),
            time_zone: Some(zone.to_owned()),
        };
        match Window::parse(&spec) {
            Ok(window) => {
                let found = seconds(window.starts(utc(from), utc(to), usize::MAX));
                *fired.borrow_mut() += usize::from(!found.is_empty());
                prop_assert_eq!(found, expected);
            }
            Err(error) => {
                prop_assert!(error.to_string().contains("never fires"), "{}", error);
                prop_assert_eq!(expected, Vec::<i64>::new());
            }
        }
        Ok(())
    };
    runner().run(&cases, check).unwrap();
    assert!(*fired.borrow() > 20, "too few rules fired to compare: {}", fired.borrow());
}

/// Minutes, hours, days of the month, months, weekdays; none is all.
type CronFields = (Vec<i8>, Vec<i8>, Vec<i8>, Vec<i8>, Vec<i8>);

#[test]
fn cron_fires_when_dateutil_says_so() {
    let Some(oracle) = Oracle::start() else { return };
    let some = |low: i8, high: i8, most: usize| {
        prop::collection::btree_set(low..=high, 0..=most)
            .prop_map(|set| set.into_iter().collect::<Vec<i8>>())
    };
    let cases = (
        (some(0, 59, 3), some(0, 23, 3), some(1, 31, 3), some(1, 12, 4), some(0, 6, 3)),
        any_local(),
        1_i64..400,
        any_zone(),
    );
    let check = |((minutes, hours, month_days, months, weekdays), from, days, zone): (
        CronFields,
        DateTime,
        i64,
        &str,
    )| {
        let to = from.checked_add(SignedDuration::from_hours(days * 24)).unwrap();
        let or_all = |values: Vec<i8>, high: i8| {
            if values.is_empty() { (0..=high).collect() } else { values }
        };
        let (minutes, hours) = (or_all(minutes, 59), or_all(hours, 23));
        prop_assume!(minutes.len() * hours.len() < 100);
        let field = |values: &[i8]| if values.is_empty() { "*".to_owned() } else { list(values) };
        let text = format!(
            "{} {} {} {} {}",
            field(&minutes),
            field(&hours),
            field(&month_days),
            field(&months),
            field(&weekdays)
        );
        let expected = oracle.borrow_mut().ask(&json!({
            "kind": "cron",
            "minutes": minutes,
            "hours": hours,
            "month_days": month_days,
            "months": months,
            "weekdays": weekdays,
            "zone": zone,
            "from": from.strftime(FORMAT).to_string(),
            "to": to.strftime(FORMAT).to_string(),
        }));
        let spec = WindowSpec {
            name: "window".to_owned(),
            schedule: Schedule::Cron(text.clone()),
            duration: "1h".to_owned(),
            time_zone: Some(zone.to_owned()),
        };
        match Window::parse(&spec) {
            Ok(window) => {
                let found = seconds(window.starts(utc(from), utc(to), usize::MAX));
                prop_assert_eq!(found, expected, "{}", text);
            }
            Err(error) => {
                prop_assert!(error.to_string().contains("never fires"), "{}", error);
                prop_assert_eq!(expected, Vec::<i64>::new());
            }
        }
        Ok(())
    };
    runner().run(&cases, check).unwrap();
}

#[test]
fn yearly_freezes_begin_when_dateutil_says_so() {
    let Some(oracle) = Oracle::start() else { return };
    let weeks = prop::sample::select(vec![1_i8, 2, 3, 4, -1]);
    let cases = (1_i8..=12, weeks, 0_usize..7, any_zone());
    let names = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
    let check = |(month, week, weekday, zone): (i8, i8, usize, &str)| {
        let expected = oracle.borrow_mut().ask(&json!({
            "kind": "nth_weekday",
            "month": month,
            "week": week,
            "weekday": weekday,
            "zone": zone,
            "years": (2020..2030).collect::<Vec<_>>(),
        }));
        let point = |time: &str| YearlyPoint {
            month: month.to_string(),
            week_of_month: Some(week),
            day_of_week: Some(names[weekday].to_owned()),
            day_of_month: None,
            time: Some(time.to_owned()),
        };
        let spec = FreezeSpec {
            name: "freeze".to_owned(),
            span: FreezeSpan::Yearly { from: point("12:00"), to: point("13:00") },
            time_zone: Some(zone.to_owned()),
        };
        let calendar = Calendar::parse(&[], &[spec]).unwrap();
        let from = utc(DateTime::constant(2020, 1, 1, 0, 0, 0, 0));
        let to = utc(DateTime::constant(2029, 12, 31, 23, 59, 0, 0));
        let found = calendar.frozen(from, to).into_iter().map(|frozen| frozen.start).collect();
        prop_assert_eq!(seconds(found), expected);
        Ok(())
    };
    runner().run(&cases, check).unwrap();
}
