//! What is refused, by which field, and in which words.

use super::*;

fn refusal(spec: &WindowSpec) -> String {
    Window::parse(spec).unwrap_err().to_string()
}

#[track_caller]
fn assert_refused(spec: &WindowSpec, field: &str, word: &str) {
    let error = refusal(spec);
    assert!(error.starts_with(&format!("{field}: ")), "{error}");
    assert!(error.contains(word), "{error}");
}

#[test]
fn bad_zones_and_durations_are_named() {
    for zone in ["Europe/Atlantis", "CET+1", "+02:00", "Local", "../etc/passwd"] {
        assert_refused(&cron("w", "0 2 * * *", "2h", zone), "timeZone", zone);
    }
    assert_refused(&cron("w", "0 2 * * *", "0s", "UTC"), "duration", "never open");
    for duration in ["-2h", "30s", "745h"] {
        assert_refused(&cron("w", "0 2 * * *", duration, "UTC"), "duration", "out of range");
    }
    for duration in ["", "two hours", "2", "1mo"] {
        assert_refused(&cron("w", "0 2 * * *", duration, "UTC"), "duration", "2h30m");
    }
}

#[test]
fn zones_are_found_whatever_their_case_and_utc_is_the_default() {
    let mut spec = cron("w", "0 2 * * *", "2h", "europe/berlin");
    assert_eq!(Window::parse(&spec).unwrap().zone().iana_name(), Some("Europe/Berlin"));
    for zone in [None, Some(String::new())] {
        spec.time_zone = zone;
        assert_eq!(Window::parse(&spec).unwrap().zone().iana_name(), Some("UTC"));
    }
}

#[test]
fn cron_that_is_not_understood_is_refused() {
    for (text, word) in [
        ("", "five fields"),
        ("0 2 * *", "five fields"),
        ("0 0 2 * * *", "five fields"),
        ("60 2 * * *", "minute"),
        ("0 24 * * *", "hour"),
        ("0 2 0 * *", "day of the month"),
        ("0 2 * 13 *", "month"),
        ("0 2 * * 8", "weekday"),
        ("0 2 * * FRI-MON", "backwards"),
        ("*/0 2 * * *", "step"),
        ("0 2 * * +1", "weekday"),
        ("0 2 1,,2 * *", "day of the month"),
        ("0 2 - * *", "day of the month"),
        ("0 2 L * *", "'L'"),
        ("0 2 15W * *", "'15W'"),
        ("0 2 * * 2#1", "'#'"),
        ("0 2 ? * MON", "'?'"),
        ("@weekly", "@weekly"),
        ("CRON_TZ=UTC 0 2 * * *", "timeZone"),
        ("0 2 30 2 *", "never fires"),
        ("0 2 31 4,6,9,11 *", "never fires"),
    ] {
        assert_refused(&cron("w", text, "2h", "UTC"), "cron", word);
    }
}

#[test]
fn parts_of_a_rule_that_are_not_supported_are_refused_by_name() {
    for part in [
        "BYSETPOS=1",
        "BYWEEKNO=3",
        "BYYEARDAY=1",
        "BYMONTH=2",
        "BYSECOND=0",
        "WKST=SU",
        "BYEASTER=0",
    ] {
        let name = part.split('=').next().unwrap();
        let rule = format!("FREQ=DAILY;BYHOUR=2;{part}");
        assert_refused(&rrule("w", &rule, "2h", "UTC"), "rrule", &format!("the part {name}"));
    }
    for frequency in ["YEARLY", "HOURLY", "MINUTELY", "SECONDLY", "OFTEN"] {
        let rule = format!("FREQ={frequency};BYHOUR=2");
        assert_refused(&rrule("w", &rule, "2h", "UTC"), "rrule", &format!("FREQ={frequency}"));
    }
}

#[test]
fn rules_that_are_not_understood_are_refused() {
    for (rule, word) in [
        ("", "no FREQ"),
        ("BYHOUR=2", "no FREQ"),
        ("FREQ", "NAME=VALUE"),
        ("FREQ=DAILY;FREQ=WEEKLY;BYHOUR=2", "twice"),
        ("FREQ=DAILY", "BYHOUR"),
        ("FREQ=DAILY;BYMINUTE=5", "BYHOUR"),
        ("FREQ=WEEKLY;BYHOUR=2", "BYDAY"),
        ("FREQ=MONTHLY;BYHOUR=2", "BYMONTHDAY"),
        ("FREQ=DAILY;BYHOUR=24", "BYHOUR=24"),
        ("FREQ=DAILY;BYHOUR=2;BYMINUTE=60", "BYMINUTE=60"),
        ("FREQ=MONTHLY;BYHOUR=2;BYMONTHDAY=0", "BYMONTHDAY=0"),
        ("FREQ=MONTHLY;BYHOUR=2;BYMONTHDAY=32", "BYMONTHDAY=32"),
        ("FREQ=MONTHLY;BYHOUR=2;BYDAY=6MO", "BYDAY=6MO"),
        ("FREQ=MONTHLY;BYHOUR=2;BYDAY=0MO", "BYDAY=0MO"),
        ("FREQ=MONTHLY;BYHOUR=2;BYDAY=XX", "BYDAY=XX"),
        ("FREQ=MONTHLY;BYHOUR=2;BYDAY=é", "BYDAY=é"),
        ("FREQ=WEEKLY;BYHOUR=2;BYDAY=2MO", "ordinal"),
        ("FREQ=DAILY;BYHOUR=2;BYDAY=2MO", "ordinal"),
        ("FREQ=WEEKLY;BYHOUR=2;BYDAY=MO;BYMONTHDAY=1", "BYMONTHDAY with FREQ=WEEKLY"),
        ("FREQ=DAILY;BYHOUR=2;INTERVAL=2", "INTERVAL needs"),
        ("FREQ=DAILY;BYHOUR=2;COUNT=2", "COUNT needs"),
        ("DTSTART:20260101T020000\nFREQ=DAILY;INTERVAL=0", "INTERVAL=0"),
        ("DTSTART:20260101T020000\nFREQ=DAILY;INTERVAL=401", "INTERVAL=401"),
        ("DTSTART:20260101T020000\nFREQ=DAILY;COUNT=0", "COUNT=0"),
        ("DTSTART:20260101T020000\nFREQ=DAILY;COUNT=99999999", "COUNT=99999999"),
        ("DTSTART:20260101T020000\nFREQ=DAILY;COUNT=1;UNTIL=20270101", "exclude"),
        ("DTSTART:20260101T020000\nFREQ=DAILY;UNTIL=tomorrow", "tomorrow"),
        ("DTSTART:20260101T020000\nRRULE:FREQ=DAILY\nRRULE:FREQ=DAILY", "twice"),
        ("DTSTART:20260101T020000\nRRULE:FREQ=DAILY\nRDATE:20260202T020000", "RDATE"),
        ("DTSTART;TZID=Europe/Berlin:20260101T020000\nRRULE:FREQ=DAILY", "timeZone"),
        // February has no 30th, in whichever year.
        ("DTSTART:20260215T020000\nFREQ=MONTHLY;INTERVAL=12;BYMONTHDAY=30", "never fires"),
        ("FREQ=MONTHLY;BYHOUR=2;BYDAY=1MO;BYMONTHDAY=8", "never fires"),
        ("DTSTART:20260101T020000\nFREQ=DAILY;UNTIL=20251231", "never fires"),
        ("DTSTART:20260101T020000\nFREQ=DAILY;COUNT=1\nEXDATE:20260101", "never fires"),
    ] {
        assert_refused(&rrule("w", rule, "2h", "UTC"), "rrule", word);
    }
}

#[test]
fn starts_and_exceptions_are_named_as_their_own_fields() {
    let spec = |start: &str, except: &str| WindowSpec {
        name: "w".to_owned(),
        schedule: Schedule::Rrule {
            rule: "FREQ=DAILY".to_owned(),
            start: Some(start.to_owned()),
            except: vec![except.to_owned()],
        },
        duration: "2h".to_owned(),
        time_zone: None,
    };
    assert_refused(&spec("soon", "20260101"), "start", "soon");
    assert_refused(&spec("2026-01-01T02:00:30", "20260101"), "start", "seconds");
    assert_refused(&spec("1492-01-01T02:00", "20260101"), "start", "1492");
    assert_refused(&spec("2026-01-01T02:00", "20260230"), "except", "20260230");
}

#[test]
fn a_calendar_with_one_bad_part_names_all_of_them_and_is_none() {
    let point = |month: &str, week, day| YearlyPoint {
        month: month.to_owned(),
        week_of_month: week,
        day_of_month: day,
        ..YearlyPoint::default()
    };
    let yearly = |from, to| FreezeSpec {
        name: "f".to_owned(),
        span: FreezeSpan::Yearly { from, to },
        time_zone: None,
    };
    let errors = Calendar::parse(
        &[cron("good", "0 2 * * *", "2h", "UTC"), cron("bad", "0 2 * * *", "2h", "Nowhere")],
        &[
            dates("backwards", "2026-06-02", "2026-06-01", "UTC"),
            yearly(point("Brumaire", None, None), point("May", None, None)),
            yearly(point("May", Some(5), None), point("May", None, None)),
            yearly(point("May", None, None), point("April", None, Some(31))),
            yearly(point("May", None, None), point("May", Some(1), Some(1))),
        ],
    )
    .unwrap_err();
    let fields: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
    assert_eq!(
        fields,
        [
            "windows[1].timeZone",
            "freezes[0].to",
            "freezes[1].from.month",
            "freezes[2].from.weekOfMonth",
            "freezes[3].to.dayOfMonth",
            "freezes[4].to.dayOfMonth",
        ]
    );
}
