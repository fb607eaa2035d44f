//! Windows and freezes together.

use super::*;

#[test]
fn without_windows_everything_is_open_but_freezes() {
    let empty = Calendar::default();
    let now = at("2026-06-01T00:00Z");
    assert_eq!(empty.standing(now), Standing::Open(Vec::new()));
    assert_eq!(empty.closes_at(now), Closing::NotBefore(now + HORIZON));
    assert_eq!(empty.fits(now, hours(1_000)), Fit::Fits);

    let frozen = calendar(&[], &[dates("audit", "2026-06-02", "2026-06-03", "UTC")]);
    assert_eq!(
        spans(&frozen, "2026-06-01T00:00Z", "2026-06-05T00:00Z"),
        ["2026-06-01T00:00Z / 2026-06-02T00:00Z", "2026-06-04T00:00Z / 2026-06-05T00:00Z",]
    );
    assert_eq!(frozen.standing(at("2026-06-03T23:59Z")), Standing::Frozen(vec!["audit".into()]));
    assert_eq!(frozen.closes_at(now), Closing::At(at("2026-06-02T00:00Z")));
    assert_eq!(frozen.closes_at(at("2026-06-02T00:00Z")), Closing::Closed);
}

#[test]
fn with_a_window_everything_else_is_closed() {
    let calendar = calendar(&[cron("night", "0 2 * * *", "2h", "UTC")], &[]);
    for (now, open) in [
        ("2026-06-01T01:59:59.999999999Z", false),
        ("2026-06-01T02:00Z", true),
        ("2026-06-01T03:59:59Z", true),
        ("2026-06-01T04:00Z", false),
    ] {
        assert_eq!(calendar.is_open(at(now)), open, "{now}");
    }
    assert_eq!(calendar.standing(at("2026-06-01T12:00Z")), Standing::OutsideWindows);
    assert_eq!(calendar.next_opening(at("2026-06-01T04:00Z"), at("2026-06-01T23:00Z")), None);
}

#[test]
fn overlapping_windows_join_and_touching_ones_too() {
    let calendar = calendar(
        &[
            cron("early", "0 1 * * 1", "2h", "UTC"),
            cron("late", "0 2 * * 1", "2h", "UTC"),
            cron("dawn", "0 4 * * 1", "1h", "UTC"),
            cron("noon", "0 12 * * 1", "1h", "UTC"),
        ],
        &[],
    );
    let list = calendar.openings(at("2026-06-01T00:00Z"), at("2026-06-08T00:00Z"));
    assert_eq!(list.complete_until, at("2026-06-08T00:00Z"));
    let found: Vec<_> = list
        .openings
        .iter()
        .map(|opening| (short(opening.start), short(opening.end), opening.windows.join(" ")))
        .collect();
    assert_eq!(
        found,
        [
            ("2026-06-01T01:00Z".into(), "2026-06-01T05:00Z".into(), "dawn early late".to_owned()),
            ("2026-06-01T12:00Z".into(), "2026-06-01T13:00Z".into(), "noon".to_owned()),
        ]
    );
    assert_eq!(list.openings[0].ending, Ending::WindowEnds);
}

#[test]
fn a_freeze_cuts_a_window_and_is_named() {
    let calendar = calendar(
        &[cron("night", "0 0 * * *", "6h", "UTC")],
        &[dates("audit", "2026-06-01T02:00", "2026-06-01T03:00", "UTC")],
    );
    let list = calendar.openings(at("2026-06-01T00:00Z"), at("2026-06-01T12:00Z")).openings;
    assert_eq!(
        spans(&calendar, "2026-06-01T00:00Z", "2026-06-01T12:00Z"),
        ["2026-06-01T00:00Z / 2026-06-01T02:00Z", "2026-06-01T03:00Z / 2026-06-01T06:00Z",]
    );
    assert_eq!(list[0].ending, Ending::FreezeBegins(vec!["audit".into()]));
    assert_eq!(list[1].ending, Ending::WindowEnds);
}

#[test]
fn work_begins_only_where_it_can_be_done_before_closing() {
    let calendar = calendar(
        &[cron("short", "0 2 * * *", "1h", "UTC"), cron("long", "0 2 * * SUN", "4h", "UTC")],
        &[],
    );
    let monday = at("2026-06-01T02:15Z");
    assert_eq!(calendar.fits(monday, SignedDuration::from_mins(45)), Fit::Fits);
    assert_eq!(
        calendar.fits(monday, SignedDuration::from_mins(46)),
        Fit::TooShort { closes_at: at("2026-06-01T03:00Z"), left: SignedDuration::from_mins(45) }
    );
    assert_eq!(
        calendar.fits(at("2026-06-01T04:00Z"), hours(1)),
        Fit::Closed(Standing::OutsideWindows)
    );
    let fitting = calendar.next_fitting(monday, at("2026-07-01T00:00Z"), hours(2)).unwrap();
    assert_eq!(fitting.start, at("2026-06-07T02:00Z"));
    assert_eq!(fitting.windows, ["long", "short"]);
    assert_eq!(calendar.next_fitting(monday, at("2026-07-01T00:00Z"), hours(5)), None);
}

#[test]
fn work_that_fits_beyond_the_limit_of_the_question_fits() {
    let calendar = calendar(&[cron("night", "0 2 * * *", "4h", "UTC")], &[]);
    let found = calendar.next_fitting(at("2026-06-01T00:00Z"), at("2026-06-01T03:00Z"), hours(4));
    assert_eq!(found.unwrap().start, at("2026-06-01T02:00Z"));
}

#[test]
fn a_rule_of_every_minute_is_one_opening_and_ends_with_the_horizon() {
    let calendar = calendar(&[cron("all", "* * * * *", "1m", "UTC")], &[]);
    let now = at("2026-06-01T00:00:30Z");
    assert_eq!(calendar.closes_at(now), Closing::NotBefore(now + HORIZON));
    let list = calendar.openings(now, Timestamp::MAX);
    assert_eq!(list.openings.len(), 1);
    assert_eq!(list.complete_until, now + HORIZON);
}

#[test]
fn an_exception_is_a_hole_in_what_would_be_one_opening() {
    for (until, except) in [
        ("20260603T235900Z", "20260602T120000Z"),
        ("20260603T235900", "20260602T120000"),
        ("20260603", "20260602T120000"),
    ] {
        let rule = format!(
            "DTSTART:20260601T000000\nRRULE:FREQ=DAILY;BYHOUR={};UNTIL={until}\nEXDATE:{except}",
            (0..24).map(|hour| hour.to_string()).collect::<Vec<_>>().join(",")
        );
        let calendar = calendar(&[rrule("hourly", &rule, "1h", "UTC")], &[]);
        assert_eq!(
            spans(&calendar, "2026-05-01T00:00Z", "2026-07-01T00:00Z"),
            ["2026-06-01T00:00Z / 2026-06-02T12:00Z", "2026-06-02T13:00Z / 2026-06-04T00:00Z",]
        );
    }
}

#[test]
fn a_list_that_is_too_long_says_how_far_it_goes() {
    let calendar = calendar(&[cron("odd", "*/2 * * * *", "1m", "UTC")], &[]);
    let from = at("2026-06-01T00:00Z");
    let list = calendar.openings(from, at("2027-06-01T00:00Z"));
    assert_eq!(list.openings.len(), OPENINGS_MAX);
    assert_eq!(list.complete_until, from + SignedDuration::from_mins(2 * 1_999 + 1));
}

#[test]
fn questions_at_the_ends_of_time_are_answered() {
    let calendar = calendar(
        &[cron("night", "0 2 * * *", "2h", "Europe/Berlin")],
        &[dates("audit", "2026-06-01", "2026-06-02", "UTC")],
    );
    for now in [Timestamp::MIN, Timestamp::MAX] {
        assert_eq!(calendar.is_open(now), calendar.closes_at(now) != Closing::Closed, "{now}");
        assert_ne!(calendar.fits(now, SignedDuration::MAX), Fit::Fits, "{now}");
        assert!(calendar.openings(now, Timestamp::MAX).complete_until >= now);
        assert_eq!(calendar.frozen(now, Timestamp::MAX), []);
    }
    let now = at("2026-06-05T00:00Z");
    assert_eq!(calendar.openings(now, now).openings, []);
    assert_eq!(calendar.openings(now, at("2026-06-01T00:00Z")).openings, []);
}
