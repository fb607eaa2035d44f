//! What cron and RRULE say: month lengths, leap days, year ends, counts and exceptions.

use super::*;

fn assert_cron(text: &str, from: &str, to: &str, expected: &[&str]) {
    assert_eq!(starts(&cron("c", text, "1h", "UTC"), from, to), expected, "{text}");
}

fn assert_rule(rule: &str, from: &str, to: &str, expected: &[&str]) {
    assert_eq!(starts(&rrule("r", rule, "1h", "UTC"), from, to), expected, "{rule}");
}

#[test]
fn cron_reads_ranges_lists_steps_and_names() {
    let week = ("2026-06-01T00:00Z", "2026-06-08T00:00Z");
    assert_cron(
        "0 2 * * TUE-THU",
        week.0,
        week.1,
        &["2026-06-02T02:00Z", "2026-06-03T02:00Z", "2026-06-04T02:00Z"],
    );
    assert_cron(
        "15,45 22-23 * jun fri",
        week.0,
        week.1,
        &["2026-06-05T22:15Z", "2026-06-05T22:45Z", "2026-06-05T23:15Z", "2026-06-05T23:45Z"],
    );
    let day = ("2026-06-01T00:00Z", "2026-06-02T00:00Z");
    assert_cron(
        "0 */8 * * *",
        day.0,
        day.1,
        &["2026-06-01T00:00Z", "2026-06-01T08:00Z", "2026-06-01T16:00Z"],
    );
    assert_cron(
        "0 1-9/4 * * *",
        day.0,
        day.1,
        &["2026-06-01T01:00Z", "2026-06-01T05:00Z", "2026-06-01T09:00Z"],
    );
    assert_cron("40/10 5 * * *", day.0, day.1, &["2026-06-01T05:40Z", "2026-06-01T05:50Z"]);
    assert_cron("0 0 * * 7", week.0, week.1, &["2026-06-07T00:00Z"]);
    assert_cron("0 0 * * 0", week.0, week.1, &["2026-06-07T00:00Z"]);
    assert_cron(
        "0 0 * * 5-7",
        week.0,
        week.1,
        &["2026-06-05T00:00Z", "2026-06-06T00:00Z", "2026-06-07T00:00Z"],
    );
}

#[test]
fn cron_with_both_day_fields_fires_on_either() {
    assert_cron(
        "0 0 3 * FRI",
        "2026-06-01T00:00Z",
        "2026-06-08T00:00Z",
        &["2026-06-03T00:00Z", "2026-06-05T00:00Z"],
    );
    // As in Kubernetes, a step restricts and a bare star does not.
    assert_cron(
        "0 0 */6 * FRI",
        "2026-06-01T00:00Z",
        "2026-06-08T00:00Z",
        &["2026-06-01T00:00Z", "2026-06-05T00:00Z", "2026-06-07T00:00Z"],
    );
}

#[test]
fn leap_days_come_every_four_years_except_in_2100() {
    let leap = ["2092-02-29T03:00Z", "2096-02-29T03:00Z", "2104-02-29T03:00Z"];
    assert_cron("0 3 29 2 *", "2090-01-01T00:00Z", "2105-01-01T00:00Z", &leap);
    assert_rule(
        "DTSTART:20000229T030000\nRRULE:FREQ=MONTHLY;INTERVAL=12",
        "2090-01-01T00:00Z",
        "2105-01-01T00:00Z",
        &leap,
    );
}

#[test]
fn the_next_leap_day_is_found_eight_years_ahead() {
    let calendar = calendar(&[cron("leap", "0 3 29 2 *", "1h", "UTC")], &[]);
    let opening = calendar.next_opening(at("2096-03-01T00:00Z"), at("2200-01-01T00:00Z"));
    assert_eq!(opening.unwrap().start, at("2104-02-29T03:00Z"));
}

#[test]
fn days_that_a_month_does_not_have_are_passed_over() {
    let year = ("2026-01-01T00:00Z", "2026-07-01T00:00Z");
    assert_rule(
        "FREQ=MONTHLY;BYMONTHDAY=31;BYHOUR=4",
        year.0,
        year.1,
        &["2026-01-31T04:00Z", "2026-03-31T04:00Z", "2026-05-31T04:00Z"],
    );
    assert_rule(
        "FREQ=MONTHLY;BYMONTHDAY=-1;BYHOUR=4",
        year.0,
        "2026-05-01T00:00Z",
        &["2026-01-31T04:00Z", "2026-02-28T04:00Z", "2026-03-31T04:00Z", "2026-04-30T04:00Z"],
    );
    assert_rule(
        "FREQ=MONTHLY;BYMONTHDAY=-31;BYHOUR=4",
        year.0,
        "2026-05-01T00:00Z",
        &["2026-01-01T04:00Z", "2026-03-01T04:00Z"],
    );
    assert_rule(
        "FREQ=MONTHLY;BYDAY=5FR;BYHOUR=4",
        year.0,
        year.1,
        &["2026-01-30T04:00Z", "2026-05-29T04:00Z"],
    );
    assert_rule(
        "FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=4",
        year.0,
        "2026-04-01T00:00Z",
        &["2026-01-30T04:00Z", "2026-02-27T04:00Z", "2026-03-27T04:00Z"],
    );
}

#[test]
fn weekdays_with_and_without_an_ordinal_may_stand_together() {
    assert_rule(
        "FREQ=MONTHLY;BYDAY=WE,1SU;BYHOUR=4",
        "2026-06-01T00:00Z",
        "2026-06-16T00:00Z",
        &["2026-06-03T04:00Z", "2026-06-07T04:00Z", "2026-06-10T04:00Z"],
    );
}

#[test]
fn by_day_and_by_month_day_must_both_hold() {
    assert_rule(
        "FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13;BYHOUR=0",
        "2026-01-01T00:00Z",
        "2027-01-01T00:00Z",
        &["2026-02-13T00:00Z", "2026-03-13T00:00Z", "2026-11-13T00:00Z"],
    );
}

#[test]
fn intervals_count_from_the_start_across_the_end_of_a_year() {
    let rule = "DTSTART:20261221T100000\nRRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=SU,MO";
    assert_rule(
        rule,
        "2026-01-01T00:00Z",
        "2027-01-20T00:00Z",
        &[
            "2026-12-21T10:00Z",
            "2026-12-27T10:00Z",
            "2027-01-04T10:00Z",
            "2027-01-10T10:00Z",
            "2027-01-18T10:00Z",
        ],
    );
    let rule = "DTSTART:20261230T100000\nRRULE:FREQ=DAILY;INTERVAL=3";
    assert_rule(
        rule,
        "2026-01-01T00:00Z",
        "2027-01-06T00:00Z",
        &["2026-12-30T10:00Z", "2027-01-02T10:00Z", "2027-01-05T10:00Z"],
    );
}

#[test]
fn a_window_lasts_across_the_end_of_the_year() {
    let calendar = calendar(&[cron("eve", "0 22 31 12 *", "4h", "Europe/Berlin")], &[]);
    assert_eq!(
        spans(&calendar, "2026-12-01T00:00Z", "2027-02-01T00:00Z"),
        ["2026-12-31T21:00Z / 2027-01-01T01:00Z"]
    );
    assert!(calendar.is_open(at("2027-01-01T00:30Z")));
}

#[test]
fn count_ends_a_rule_and_exceptions_count() {
    let rule =
        "DTSTART:20260105T020000\nRRULE:FREQ=WEEKLY;BYDAY=MO;COUNT=3\nEXDATE:20260112T020000";
    let range = ("2026-01-01T00:00Z", "2030-01-01T00:00Z");
    assert_rule(rule, range.0, range.1, &["2026-01-05T02:00Z", "2026-01-19T02:00Z"]);
}

#[test]
fn until_includes_its_moment_and_a_date_includes_its_day() {
    let range = ("2026-01-01T00:00Z", "2030-01-01T00:00Z");
    let expected = ["2026-01-05T02:00Z", "2026-01-06T02:00Z"];
    for until in ["20260106T020000", "20260106T020000Z", "20260106", "20260106T235900"] {
        let rule = format!("DTSTART:20260105T020000\nRRULE:FREQ=DAILY;UNTIL={until}");
        assert_rule(&rule, range.0, range.1, &expected);
    }
    let rule = "DTSTART:20260105T020000\nRRULE:FREQ=DAILY;UNTIL=20260106T015959Z";
    assert_rule(rule, range.0, range.1, &expected[..1]);
}

#[test]
fn an_exception_is_a_day_or_a_time_in_the_zone_or_in_utc() {
    for except in ["20260106", "20260106T020000", "20260106T010000Z", "2026-01-06T02:00"] {
        let spec = WindowSpec {
            name: "r".to_owned(),
            schedule: Schedule::Rrule {
                rule: "FREQ=DAILY".to_owned(),
                start: Some("2026-01-05T02:00".to_owned()),
                except: vec![except.to_owned()],
            },
            duration: "1h".to_owned(),
            time_zone: Some("Europe/Berlin".to_owned()),
        };
        assert_eq!(
            starts(&spec, "2026-01-01T00:00Z", "2026-01-08T00:00Z"),
            ["2026-01-05T01:00Z", "2026-01-07T01:00Z"],
            "{except}"
        );
    }
}

#[test]
fn the_start_gives_what_the_rule_does_not_say() {
    let spec = rrule(
        "r",
        "DTSTART;TZID=Europe/Berlin:20260131T023000\nRRULE:FREQ=MONTHLY",
        "1h",
        "Europe/Berlin",
    );
    assert_eq!(
        starts(&spec, "2026-01-01T00:00Z", "2026-06-01T00:00Z"),
        ["2026-01-31T01:30Z", "2026-03-31T00:30Z", "2026-05-31T00:30Z",]
    );
}

#[test]
fn the_preferred_start_of_2020_is_a_weekly_window_in_utc() {
    let spec = WindowSpec::preferred_start("preferred", "Saturday", "23:30", "3h").unwrap();
    let calendar = calendar(&[spec], &[]);
    assert_eq!(
        spans(&calendar, "2026-06-01T00:00Z", "2026-06-14T00:00Z"),
        ["2026-06-06T23:30Z / 2026-06-07T02:30Z", "2026-06-13T23:30Z / 2026-06-14T00:00Z",]
    );
}
