//! The nights in which the clock is set, in both directions.

use super::*;

/// A window of two hours at one local time, and when it is open around a change of the clock.
struct Case {
    what: &'static str,
    zone: &'static str,
    cron: &'static str,
    from: &'static str,
    to: &'static str,
    open: &'static [&'static str],
}

const CASES: &[Case] = &[
    Case {
        what: "New York, forward: 02:30 is skipped and becomes 03:30",
        zone: "America/New_York",
        cron: "30 2 * * *",
        from: "2026-03-07T00:00Z",
        to: "2026-03-10T00:00Z",
        open: &[
            "2026-03-07T07:30Z / 2026-03-07T09:30Z",
            "2026-03-08T07:30Z / 2026-03-08T09:30Z",
            "2026-03-09T06:30Z / 2026-03-09T08:30Z",
        ],
    },
    Case {
        what: "New York, forward: a window across the gap lasts two hours all the same",
        zone: "America/New_York",
        cron: "0 1 * * *",
        from: "2026-03-08T00:00Z",
        to: "2026-03-09T00:00Z",
        open: &["2026-03-08T06:00Z / 2026-03-08T08:00Z"],
    },
    Case {
        what: "New York, back: 01:30 comes twice and opens once, at the first",
        zone: "America/New_York",
        cron: "30 1 * * *",
        from: "2026-10-31T00:00Z",
        to: "2026-11-03T00:00Z",
        open: &[
            "2026-10-31T05:30Z / 2026-10-31T07:30Z",
            "2026-11-01T05:30Z / 2026-11-01T07:30Z",
            "2026-11-02T06:30Z / 2026-11-02T08:30Z",
        ],
    },
    Case {
        what: "Berlin, forward",
        zone: "Europe/Berlin",
        cron: "30 2 * * *",
        from: "2026-03-28T00:00Z",
        to: "2026-03-31T00:00Z",
        open: &[
            "2026-03-28T01:30Z / 2026-03-28T03:30Z",
            "2026-03-29T01:30Z / 2026-03-29T03:30Z",
            "2026-03-30T00:30Z / 2026-03-30T02:30Z",
        ],
    },
    Case {
        what: "Berlin, back",
        zone: "Europe/Berlin",
        cron: "30 2 * * *",
        from: "2026-10-24T00:00Z",
        to: "2026-10-27T00:00Z",
        open: &[
            "2026-10-24T00:30Z / 2026-10-24T02:30Z",
            "2026-10-25T00:30Z / 2026-10-25T02:30Z",
            "2026-10-26T01:30Z / 2026-10-26T03:30Z",
        ],
    },
    Case {
        what: "Lord Howe, forward by half an hour: 02:15 becomes 02:45",
        zone: "Australia/Lord_Howe",
        cron: "15 2 * * *",
        from: "2026-10-02T12:00Z",
        to: "2026-10-05T00:00Z",
        open: &[
            "2026-10-02T15:45Z / 2026-10-02T17:45Z",
            "2026-10-03T15:45Z / 2026-10-03T17:45Z",
            "2026-10-04T15:15Z / 2026-10-04T17:15Z",
        ],
    },
    Case {
        what: "Lord Howe, back by half an hour: 01:45 opens once, at the first",
        zone: "Australia/Lord_Howe",
        cron: "45 1 * * *",
        from: "2026-04-03T12:00Z",
        to: "2026-04-06T00:00Z",
        open: &[
            "2026-04-03T14:45Z / 2026-04-03T16:45Z",
            "2026-04-04T14:45Z / 2026-04-04T16:45Z",
            "2026-04-05T15:15Z / 2026-04-05T17:15Z",
        ],
    },
    Case {
        what: "Kolkata has no daylight saving, and half an hour in its offset",
        zone: "Asia/Kolkata",
        cron: "30 2 * * *",
        from: "2026-03-28T12:00Z",
        to: "2026-03-30T12:00Z",
        open: &["2026-03-28T21:00Z / 2026-03-28T23:00Z", "2026-03-29T21:00Z / 2026-03-29T23:00Z"],
    },
    Case {
        what: "Phoenix stays, while New York moves",
        zone: "America/Phoenix",
        cron: "30 2 * * *",
        from: "2026-03-07T00:00Z",
        to: "2026-03-09T00:00Z",
        open: &["2026-03-07T09:30Z / 2026-03-07T11:30Z", "2026-03-08T09:30Z / 2026-03-08T11:30Z"],
    },
    Case {
        what: "Santiago sets its clock at midnight: 00:00 becomes 01:00",
        zone: "America/Santiago",
        cron: "0 0 * * *",
        from: "2026-09-05T00:00Z",
        to: "2026-09-08T00:00Z",
        open: &[
            "2026-09-05T04:00Z / 2026-09-05T06:00Z",
            "2026-09-06T04:00Z / 2026-09-06T06:00Z",
            "2026-09-07T03:00Z / 2026-09-07T05:00Z",
        ],
    },
];

#[test]
fn windows_open_once_and_last_their_elapsed_time_when_the_clock_is_set() {
    for case in CASES {
        let calendar = calendar(&[cron("night", case.cron, "2h", case.zone)], &[]);
        assert_eq!(spans(&calendar, case.from, case.to), case.open, "{}", case.what);
    }
}

#[test]
fn a_rule_of_every_hour_is_not_fired_in_the_hour_that_comes_again() {
    let hourly =
        |duration| calendar(&[cron("all", "0 * * * *", duration, "America/New_York")], &[]);
    let (from, to) = ("2026-11-01T00:00Z", "2026-11-02T00:00Z");
    assert_eq!(
        spans(&hourly("1h"), from, to),
        ["2026-11-01T00:00Z / 2026-11-01T06:00Z", "2026-11-01T07:00Z / 2026-11-02T00:00Z",]
    );
    assert_eq!(spans(&hourly("2h"), from, to), [format!("{from} / {to}")]);
    let (from, to) = ("2026-03-08T00:00Z", "2026-03-09T00:00Z");
    assert_eq!(spans(&hourly("1h"), from, to), [format!("{from} / {to}")]);
}

#[test]
fn a_day_that_a_zone_skipped_is_made_up_for_on_the_next() {
    // Samoa went from 29 to 31 December 2011.
    let daily = cron("daily", "0 12 * * *", "1h", "Pacific/Apia");
    assert_eq!(
        starts(&daily, "2011-12-29T00:00Z", "2012-01-01T12:00Z"),
        ["2011-12-29T22:00Z", "2011-12-30T22:00Z", "2011-12-31T22:00Z"]
    );
}
