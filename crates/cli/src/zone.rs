//! In which zone does the person live who asks, and how is an instant written and read there?

use jiff::{
    SignedDuration, Timestamp, Zoned,
    civil::{Date, DateTime},
    tz::{TimeZone, TimeZoneDatabase},
};

use crate::failure::Hinted;

/// The zone in which everything is shown and plain times are read.
#[derive(Clone, Debug)]
pub struct Zone {
    zone: TimeZone,
    name: String,
}

/// A change of a zone's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockChange {
    pub at: Timestamp,
    /// By how much the clock jumps ahead; negative where it goes back.
    pub by: SignedDuration,
}

/// What is accepted as a time, for messages.
const TIMES: &str = "2026-11-07T21:00:00Z, \"2026-11-07 22:00\" or 2026-11-07";

impl Zone {
    /// The zone that is asked for, else that of TZ or the system, else UTC.
    pub fn choose(wanted: Option<&str>) -> anyhow::Result<Self> {
        let Some(name) = wanted else {
            let zone = TimeZone::try_system().unwrap_or(TimeZone::UTC);
            let name = zone.iana_name().unwrap_or("the local time").to_owned();
            return Ok(Self { zone, name });
        };
        Self::named(name).ok_or_else(|| {
            let what = format!("--zone: Invalid value: {name:?}: no such time zone");
            Hinted::new(what, "give a name such as Europe/Berlin, America/New_York or UTC").into()
        })
    }

    pub fn named(name: &str) -> Option<Self> {
        let zone = TimeZoneDatabase::bundled().get(name).ok()?;
        let name = zone.iana_name().unwrap_or(name).to_owned();
        Some(Self { zone, name })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads an instant, or a date and time on a clock in this zone.
    pub fn read(&self, field: &str, text: &str) -> anyhow::Result<Timestamp> {
        if let Ok(instant) = text.trim().parse::<Timestamp>() {
            return Ok(instant);
        }
        let local = text.trim().parse::<DateTime>();
        local.ok().and_then(|local| self.zone.to_timestamp(local).ok()).ok_or_else(|| {
            let what = format!("{field}: Invalid value: {text:?}: not a time");
            let hint = format!("times look like {TIMES}; without a zone they are in {}", self.name);
            Hinted::new(what, hint).into()
        })
    }

    pub fn date(&self, instant: Timestamp) -> Date {
        self.zone.to_datetime(instant).date()
    }

    /// `Sat  7 Nov 22:00`, with the year where it is not that of `now`, and with the zone's letters
    /// where the clock shows that time twice.
    pub fn column(&self, instant: Timestamp, now: Timestamp) -> String {
        let zoned = self.zoned(instant);
        let is_this_year = zoned.year() == self.zone.to_datetime(now).year();
        let day = if is_this_year { "%a %e %b" } else { "%a %e %b %Y" };
        format!("{} {}", zoned.strftime(day), self.clock(instant))
    }

    /// The same in a sentence, without spaces that only line things up.
    pub fn words(&self, instant: Timestamp, now: Timestamp) -> String {
        single_spaced(&self.column(instant, now))
    }

    /// `Sat  7 Nov 22:00:09`, for what follows closely.
    pub fn second(&self, instant: Timestamp, now: Timestamp) -> String {
        let zoned = self.zoned(instant);
        let is_this_year = zoned.year() == self.zone.to_datetime(now).year();
        let format = if is_this_year { "%a %e %b %H:%M:%S" } else { "%a %e %b %Y %H:%M:%S" };
        zoned.strftime(format).to_string()
    }

    /// `22:00`.
    pub fn clock(&self, instant: Timestamp) -> String {
        let zoned = self.zoned(instant);
        let is_twice = self.zone.to_ambiguous_timestamp(zoned.datetime()).is_ambiguous();
        zoned.strftime(if is_twice { "%H:%M %Z" } else { "%H:%M" }).to_string()
    }

    /// `Saturday 7 November 2026`.
    pub fn day(&self, instant: Timestamp) -> String {
        single_spaced(&self.zoned(instant).strftime("%A %e %B %Y").to_string())
    }

    /// `Mon 2 Nov 2026, 11:00 CET (Europe/Berlin)`.
    pub fn whole(&self, instant: Timestamp) -> String {
        let zoned = self.zoned(instant);
        let mut text = single_spaced(&zoned.strftime("%a %e %b %Y, %H:%M %Z").to_string());
        if !matches!(self.name.as_str(), "UTC" | "Etc/UTC") {
            text.push_str(&format!(" ({})", self.name));
        }
        text
    }

    /// The first change of the clock from `from` on and before `to`.
    pub fn clock_change(&self, from: Timestamp, to: Timestamp) -> Option<ClockChange> {
        let before = from.checked_sub(SignedDuration::from_nanos(1)).ok()?;
        let changes = self.zone.following(before).take_while(|change| change.timestamp() < to);
        changes.take(4).find_map(|change| {
            let at = change.timestamp();
            let earlier = at.checked_sub(SignedDuration::from_nanos(1)).ok()?;
            let offset = |instant| i64::from(self.zone.to_offset(instant).seconds());
            let by = SignedDuration::from_secs(offset(at) - offset(earlier));
            (!by.is_zero()).then_some(ClockChange { at, by })
        })
    }

    /// The change of the clock on a day, in words.
    pub fn clock_change_on(&self, date: Date) -> Option<String> {
        let midnight = |date: Date| date.to_zoned(self.zone.clone()).ok();
        let from = midnight(date)?.timestamp();
        let to = midnight(date.tomorrow().ok()?)?.timestamp();
        self.clock_change(from, to).map(|change| self.change_in_words(change))
    }

    pub fn change_in_words(&self, change: ClockChange) -> String {
        let way = if change.by.is_positive() { "ahead" } else { "back" };
        // What the clock shows in the moment before it jumps.
        let shown =
            change.at.checked_sub(SignedDuration::from_secs(1)).map_or(change.at, |before| before);
        let shown = self.zone.to_datetime(shown).checked_add(SignedDuration::from_secs(1));
        let at = shown.map_or_else(|_| String::new(), |at| at.strftime(" at %H:%M").to_string());
        format!("clocks go {way}{at} by {}", in_words(change.by.abs()))
    }

    /// A sentence of core, with its times as a person in this zone writes them.
    pub fn localize(&self, text: &str, now: Timestamp) -> String {
        let mut localized = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((at, length)) = find_instant(rest) {
            let (before, from) = rest.split_at(at);
            let (found, after) = from.split_at(length);
            localized.push_str(before);
            match found.parse::<Timestamp>() {
                Ok(instant) => localized.push_str(&self.words(instant, now)),
                Err(_) => localized.push_str(found),
            }
            rest = after;
        }
        localized.push_str(rest);
        localized
    }

    fn zoned(&self, instant: Timestamp) -> Zoned {
        instant.to_zoned(self.zone.clone())
    }
}

/// `1h`, `30m`: how long, without a unit that is zero.
pub fn in_words(duration: SignedDuration) -> String {
    let minutes = duration.as_mins();
    match (minutes / 60, minutes % 60) {
        (0, minutes) => format!("{minutes}m"),
        (hours, 0) => format!("{hours}h"),
        (hours, minutes) => format!("{hours}h{minutes}m"),
    }
}

fn single_spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Where the first `2026-11-07T21:00:00Z` begins, and how long it is.
fn find_instant(text: &str) -> Option<(usize, usize)> {
    const SHAPE: &[u8] = b"0000-00-00T00:00:00";
    let bytes = text.as_bytes();
    let fits = |start: usize| {
        let candidate = bytes.get(start..start.checked_add(SHAPE.len())?)?;
        let is_so = candidate.iter().zip(SHAPE).all(|(byte, shape)| match shape {
            b'0' => byte.is_ascii_digit(),
            other => byte == other,
        });
        if !is_so {
            return None;
        }
        let tail = bytes.get(start + SHAPE.len()..)?;
        let fraction = tail.iter().take_while(|byte| **byte == b'.' || byte.is_ascii_digit());
        let fraction = fraction.count();
        (tail.get(fraction) == Some(&b'Z')).then_some(SHAPE.len() + fraction + 1)
    };
    (0..bytes.len()).find_map(|start| fits(start).map(|length| (start, length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn berlin() -> Zone {
        Zone::named("Europe/Berlin").unwrap()
    }

    #[test]
    fn times_are_those_of_the_persons_clock() {
        let now = at("2026-11-02T10:00:00Z");
        for (instant, column) in [
            ("2026-11-07T21:00:00Z", "Sat  7 Nov 22:00"),
            ("2026-07-17T21:00:00Z", "Fri 17 Jul 23:00"),
            ("2027-01-02T21:00:00Z", "Sat  2 Jan 2027 22:00"),
            // The clock shows 02:30 twice.
            ("2026-10-25T00:30:00Z", "Sun 25 Oct 02:30 CEST"),
            ("2026-10-25T01:30:00Z", "Sun 25 Oct 02:30 CET"),
        ] {
            assert_eq!(berlin().column(at(instant), now), column, "{instant}");
        }
        assert_eq!(berlin().whole(now), "Mon 2 Nov 2026, 11:00 CET (Europe/Berlin)");
        assert_eq!(Zone::named("UTC").unwrap().whole(now), "Mon 2 Nov 2026, 10:00 UTC");
    }

    #[test]
    fn what_a_person_types_is_read_in_their_zone() {
        for (text, instant) in [
            ("2026-11-07T21:00:00Z", "2026-11-07T21:00:00Z"),
            ("2026-11-07T21:00:00-05:00", "2026-11-08T02:00:00Z"),
            ("2026-11-07 22:00", "2026-11-07T21:00:00Z"),
            ("2026-11-07T22:00", "2026-11-07T21:00:00Z"),
            ("2026-11-07", "2026-11-06T23:00:00Z"),
        ] {
            assert_eq!(berlin().read("--at", text).unwrap(), at(instant), "{text}");
        }
        for text in ["", "tomorrow", "2026-13-01", "22:00"] {
            let error = berlin().read("--at", text).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("--at: Invalid value: {text:?}: not a time"),
                "{text}"
            );
        }
    }

    #[test]
    fn an_unknown_zone_is_refused_by_name() {
        let error = Zone::choose(Some("Mars/Olympus")).unwrap_err();
        assert_eq!(error.to_string(), "--zone: Invalid value: \"Mars/Olympus\": no such time zone");
    }

    #[test]
    fn the_times_in_a_sentence_become_the_persons() {
        let now = at("2026-11-02T10:00:00Z");
        for (text, expected) in [
            ("", ""),
            ("no time at all, 12:00 or 2026-11-02", "no time at all, 12:00 or 2026-11-02"),
            (
                "work may begin at 2026-11-07T21:00:00Z, due 2027-01-10T00:00:00.5Z",
                "work may begin at Sat 7 Nov 22:00, due Sun 10 Jan 2027 01:00",
            ),
            ("ä 2026-99-99T99:99:99Z ö", "ä 2026-99-99T99:99:99Z ö"),
            ("2026-11-07T21:00:00", "2026-11-07T21:00:00"),
        ] {
            assert_eq!(berlin().localize(text, now), expected);
        }
    }

    #[test]
    fn a_change_of_the_clock_is_told_on_its_day() {
        for (date, expected) in [
            ("2026-10-24", None),
            ("2026-10-25", Some("clocks go back at 03:00 by 1h")),
            ("2026-03-29", Some("clocks go ahead at 02:00 by 1h")),
        ] {
            let date: Date = date.parse().unwrap();
            assert_eq!(berlin().clock_change_on(date).as_deref(), expected, "{date}");
        }
        let date: Date = "2026-10-25".parse().unwrap();
        assert_eq!(Zone::named("UTC").unwrap().clock_change_on(date), None);
    }
}
