//! What holds for every calendar.

use proptest::prelude::*;

use super::*;

const ZONES: [&str; 6] = [
    "UTC",
    "America/New_York",
    "Europe/Berlin",
    "Australia/Lord_Howe",
    "Asia/Kolkata",
    "America/Santiago",
];

fn any_window() -> impl Strategy<Value = WindowSpec> {
    let schedule = prop_oneof![
        (0..60, 0..24, 0..7).prop_map(|(minute, hour, day)| format!("{minute} {hour} * * {day}")),
        (1..30, 0..24).prop_map(|(step, hour)| format!("*/{step} {hour} * * *")),
        (0..24, 1..29).prop_map(|(hour, day)| format!("30 {hour} {day},31 * *")),
        Just("* * * * *".to_owned()),
    ];
    (schedule, 1_i64..3_000, prop::sample::select(&ZONES[..]), "[a-c]")
        .prop_map(|(text, minutes, zone, name)| cron(&name, &text, &format!("{minutes}m"), zone))
}

fn any_freeze() -> impl Strategy<Value = FreezeSpec> {
    let day = |day: i16| {
        jiff::civil::date(2026, 1, 1).checked_add(hours(i64::from(day) * 24)).unwrap().to_string()
    };
    (0_i16..400, 0_i16..20, prop::sample::select(&ZONES[..]))
        .prop_map(move |(from, length, zone)| dates("f", &day(from), &day(from + length), zone))
}

fn any_calendar() -> impl Strategy<Value = Calendar> {
    (prop::collection::vec(any_window(), 0..4), prop::collection::vec(any_freeze(), 0..4))
        .prop_map(|(windows, freezes)| calendar(&windows, &freezes))
}

/// Any minute of 2026.
fn any_instant() -> impl Strategy<Value = Timestamp> {
    (0_i64..365 * 24 * 60)
        .prop_map(|minutes| at("2026-01-01T00:00Z") + SignedDuration::from_mins(minutes))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn openings_are_sorted_apart_and_inside_of_the_range(
        calendar in any_calendar(),
        from in any_instant(),
        days in 0_i64..90,
    ) {
        let to = from + hours(days * 24);
        let list = calendar.openings(from, to);
        let mut before = None;
        for opening in &list.openings {
            prop_assert!(opening.start < opening.end);
            prop_assert!(from <= opening.start && opening.end <= to);
            prop_assert!(before.is_none_or(|before| before < opening.start));
            prop_assert_eq!(opening.windows.is_empty(), calendar.windows.is_empty());
            before = Some(opening.end);
        }
        prop_assert_eq!(list, calendar.openings(from, to));
    }

    #[test]
    fn is_open_agrees_with_the_openings(
        calendar in any_calendar(),
        from in any_instant(),
        minutes in prop::collection::vec(0_i64..40 * 24 * 60, 1..20),
    ) {
        let list = calendar.openings(from, from + hours(40 * 24));
        let nanosecond = SignedDuration::from_nanos(1);
        let chosen = minutes.iter().map(|minutes| from + SignedDuration::from_mins(*minutes));
        let edges = list.openings.iter().take(20).flat_map(|opening| {
            [opening.start, opening.end, opening.start - nanosecond, opening.end - nanosecond]
        });
        for now in chosen.chain(edges).filter(|now| (from..list.complete_until).contains(now)) {
            let within = list.openings.iter().find(|opening| (opening.start..opening.end).contains(&now));
            prop_assert_eq!(calendar.is_open(now), within.is_some(), "{}", now);
            if let (Standing::Open(windows), Some(opening)) = (calendar.standing(now), within) {
                let names = &opening.windows;
                prop_assert!(windows.iter().all(|name| names.contains(name)));
            }
        }
    }

    #[test]
    fn the_next_opening_is_the_first_of_the_list(
        calendar in any_calendar(),
        after in any_instant(),
        days in 0_i64..90,
    ) {
        let limit = after + hours(days * 24);
        let next = calendar.next_opening(after, limit);
        prop_assert_eq!(&next, &calendar.openings(after, limit).openings.into_iter().next());
        if let Some(next) = next {
            prop_assert_eq!(calendar.is_open(after), next.start == after);
        }
    }

    #[test]
    fn a_range_in_two_halves_tells_the_same(
        calendar in any_calendar(),
        from in any_instant(),
        first in 1_i64..60 * 24,
        second in 1_i64..60 * 24,
    ) {
        let middle = from + hours(first);
        let to = middle + hours(second);
        let whole = calendar.openings(from, to);
        prop_assume!(whole.complete_until == to);
        let cut = |list: OpeningList| {
            list.openings
                .into_iter()
                .map(|opening| Interval { start: opening.start, end: opening.end })
                .collect::<Vec<_>>()
        };
        let mut halves = cut(calendar.openings(from, middle));
        halves.extend(cut(calendar.openings(middle, to)));
        prop_assert_eq!(merged(halves), cut(whole));
    }

    #[test]
    fn what_fits_is_open_all_the_while_and_what_is_too_short_closes(
        calendar in any_calendar(),
        now in any_instant(),
        minutes in 1_i64..5_000,
    ) {
        let expected = SignedDuration::from_mins(minutes);
        match calendar.fits(now, expected) {
            Fit::Fits => {
                let list = calendar.openings(now, now + expected).openings;
                prop_assert_eq!(list.len(), 1);
                prop_assert_eq!((list[0].start, list[0].end), (now, now + expected));
            }
            Fit::TooShort { closes_at, left } => {
                prop_assert!(!calendar.is_open(closes_at));
                prop_assert_eq!(now + left, closes_at);
                prop_assert_eq!(calendar.closes_at(now), Closing::At(closes_at));
            }
            Fit::Closed(standing) => {
                prop_assert_eq!(standing, calendar.standing(now));
                prop_assert_eq!(calendar.closes_at(now), Closing::Closed);
            }
        }
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,60}", zone in "\\PC{0,20}") {
        Window::parse(&cron("c", &text, &text, &zone)).ok();
        Window::parse(&cron("c", &text, "1h", "UTC")).ok();
        Window::parse(&rrule("r", &text, "1h", "UTC")).ok();
        Window::parse(&rrule("r", &format!("FREQ=MONTHLY;BYDAY={text}"), "1h", "UTC")).ok();
        Freeze::parse(&dates("d", &text, &text, "UTC")).ok();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The times of a whole day are laid out at once where nothing forbids it; one by one they must
    /// come to the same.
    #[test]
    fn intervals_are_the_starts_with_the_duration(
        spec in any_window(),
        from in any_instant(),
        days in 1_i64..20,
    ) {
        let window = Window::parse(&spec).unwrap();
        let bounds = Interval { start: from, end: from + hours(days * 24) };
        let starts = window.starts(from - window.duration(), bounds.end, usize::MAX);
        let one_by_one = starts
            .into_iter()
            .filter_map(|start| Interval { start, end: start + window.duration() }.clipped(&bounds))
            .collect();
        prop_assert_eq!(window.intervals(&bounds), merged(one_by_one));
    }
}
