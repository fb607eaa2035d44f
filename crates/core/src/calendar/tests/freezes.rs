//! When freezes hold: date ranges and yearly rules.

use super::*;

fn point(month: &str) -> YearlyPoint {
    YearlyPoint { month: month.to_owned(), ..YearlyPoint::default() }
}

fn day(month: &str, day: i8) -> YearlyPoint {
    YearlyPoint { day_of_month: Some(day), ..point(month) }
}

fn nth(month: &str, week: i8, weekday: &str, time: &str) -> YearlyPoint {
    YearlyPoint {
        week_of_month: Some(week),
        day_of_week: Some(weekday.to_owned()),
        time: Some(time.to_owned()),
        ..point(month)
    }
}

fn yearly(from: YearlyPoint, to: YearlyPoint, zone: &str) -> FreezeSpec {
    FreezeSpec {
        name: "yearly".to_owned(),
        span: FreezeSpan::Yearly { from, to },
        time_zone: Some(zone.to_owned()),
    }
}

fn frozen(spec: &FreezeSpec, from: &str, to: &str) -> Vec<String> {
    calendar(&[], std::slice::from_ref(spec))
        .frozen(at(from), at(to))
        .iter()
        .map(|frozen| format!("{} / {}", short(frozen.start), short(frozen.end)))
        .collect()
}

#[test]
fn a_range_of_dates_includes_its_last_day_in_its_zone() {
    let spec = dates("holidays", "2026-12-24", "2027-01-01", "Europe/Berlin");
    assert_eq!(
        frozen(&spec, "2026-01-01T00:00Z", "2028-01-01T00:00Z"),
        ["2026-12-23T23:00Z / 2027-01-01T23:00Z"]
    );
    let spec = dates("short", "2026-12-24T18:00", "2026-12-24T20:00:00Z", "Europe/Berlin");
    assert_eq!(
        frozen(&spec, "2026-01-01T00:00Z", "2028-01-01T00:00Z"),
        ["2026-12-24T17:00Z / 2026-12-24T20:00Z"]
    );
}

#[test]
fn the_nth_weekday_is_found_anew_every_year() {
    // In 2024 the fourth Thursday was the 28th, after the last Monday, the 25th.
    let spec =
        yearly(nth("November", 4, "Thursday", "08:00"), nth("Nov", -1, "Monday", "20:00"), "UTC");
    let error = Freeze::parse(&spec).unwrap_err();
    assert_eq!(error.field, "to");

    let spec = yearly(
        nth("November", 4, "Thursday", "08:00"),
        nth("December", 1, "Monday", "20:00"),
        "UTC",
    );
    assert_eq!(
        frozen(&spec, "2026-01-01T00:00Z", "2029-01-01T00:00Z"),
        [
            "2026-11-26T08:00Z / 2026-12-07T20:00Z",
            "2027-11-25T08:00Z / 2027-12-06T20:00Z",
            "2028-11-23T08:00Z / 2028-12-04T20:00Z",
        ]
    );
}

#[test]
fn a_yearly_freeze_lasts_across_the_end_of_the_year() {
    let spec = yearly(day("December", 20), day("January", 5), "America/New_York");
    let expected = "2026-12-20T05:00Z / 2027-01-06T05:00Z";
    assert_eq!(frozen(&spec, "2026-06-01T00:00Z", "2027-06-01T00:00Z"), [expected]);
    assert_eq!(frozen(&spec, "2027-01-03T00:00Z", "2027-01-04T00:00Z"), [expected]);
}

#[test]
fn months_and_weeks_alone_are_frozen_whole() {
    assert_eq!(
        frozen(&yearly(point("2"), point("2"), "UTC"), "2027-06-01T00:00Z", "2029-01-01T00:00Z"),
        ["2028-02-01T00:00Z / 2028-03-01T00:00Z"]
    );
    let week = |week| YearlyPoint { week_of_month: Some(week), ..point("April") };
    assert_eq!(
        frozen(&yearly(week(2), week(2), "UTC"), "2026-01-01T00:00Z", "2027-01-01T00:00Z"),
        ["2026-04-08T00:00Z / 2026-04-15T00:00Z"]
    );
    assert_eq!(
        frozen(&yearly(week(-1), week(-1), "UTC"), "2026-01-01T00:00Z", "2027-01-01T00:00Z"),
        ["2026-04-24T00:00Z / 2026-05-01T00:00Z"]
    );
}

#[test]
fn a_leap_day_is_the_28th_in_other_years() {
    let spec = yearly(day("February", 29), day("February", 29), "UTC");
    assert_eq!(
        frozen(&spec, "2027-01-01T00:00Z", "2029-01-01T00:00Z"),
        ["2027-02-28T00:00Z / 2027-03-01T00:00Z", "2028-02-29T00:00Z / 2028-03-01T00:00Z",]
    );
}

#[test]
fn an_ambiguous_bound_makes_the_freeze_longer() {
    // 01:30 comes twice: the first begins the freeze, the second ends it.
    let spec = dates("fold", "2026-11-01T01:30", "2026-11-01T01:45", "America/New_York");
    assert_eq!(
        frozen(&spec, "2026-10-01T00:00Z", "2026-12-01T00:00Z"),
        ["2026-11-01T05:30Z / 2026-11-01T06:45Z"]
    );
    // 02:30 is skipped: it begins an hour before and ends an hour after.
    let spec = dates("gap", "2026-03-08T02:30", "2026-03-08T02:30", "America/New_York");
    assert_eq!(
        frozen(&spec, "2026-03-01T00:00Z", "2026-04-01T00:00Z"),
        ["2026-03-08T06:30Z / 2026-03-08T07:30Z"]
    );
}
