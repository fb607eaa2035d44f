//! When is a policy open? An oracle of its own: it asks of every single minute whether a window opened at
//! it, and knows only the windows that the swarm and the scripts write.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use machinist_api::{MaintenancePolicySpec, maintenance_policy::MaintenanceWindow};

const MINUTE: SignedDuration = SignedDuration::from_mins(1);

/// The windows and freezes of a policy.
#[derive(Clone, Debug, Default)]
pub(super) struct CalendarTruth {
    windows: Vec<WindowTruth>,
    freezes: Vec<(Timestamp, Timestamp)>,
}

/// A window that opens at certain minutes of a day, on the clock of a zone.
#[derive(Clone, Debug)]
struct WindowTruth {
    minutes: BTreeSet<i8>,
    /// Every hour where there is none.
    hours: BTreeSet<i8>,
    length: i64,
    zone: TimeZone,
}

impl CalendarTruth {
    pub(super) fn read(spec: &MaintenancePolicySpec) -> Self {
        let freezes = spec.freezes.iter().filter_map(|freeze| {
            let time = |text: &Option<String>| text.as_deref().and_then(|text| text.parse().ok());
            Some((time(&freeze.from)?, time(&freeze.to)?))
        });
        Self {
            windows: spec.windows.iter().map(WindowTruth::read).collect(),
            freezes: freezes.collect(),
        }
    }

    /// Why work that takes so long may not begin then, in words.
    pub(super) fn refusal(&self, at: Timestamp, lasting: SignedDuration) -> Option<String> {
        let frozen = self.freezes.iter().find(|(from, to)| *from <= at && at < *to);
        if let Some((from, to)) = frozen {
            return Some(format!("it is frozen from {from} to {to}"));
        }
        if self.windows.is_empty() {
            return None;
        }
        let mut time = at;
        let end = at.saturating_add(lasting).unwrap_or(Timestamp::MAX);
        while time < end {
            if !self.windows.iter().any(|window| window.is_open(time)) {
                return Some(match time == at {
                    true => format!("no window is open at {at}"),
                    false => format!("what is open at {at} closes by {time}"),
                });
            }
            time = time.saturating_add(MINUTE).unwrap_or(Timestamp::MAX);
        }
        None
    }
}

impl WindowTruth {
    fn read(window: &MaintenanceWindow) -> Self {
        let zone = window.time_zone.as_deref().unwrap_or("UTC");
        let length: SignedDuration = window.duration.parse().unwrap_or_default();
        let numbers = |text: &str| -> BTreeSet<i8> {
            text.split(',').filter_map(|number| number.parse().ok()).collect()
        };
        let (minutes, hours) = match (&window.cron, &window.rrule) {
            (Some(cron), _) => {
                let mut fields = cron.split_whitespace().map(numbers);
                (fields.next().unwrap_or_default(), fields.next().unwrap_or_default())
            }
            (None, rule) => {
                let part = |name: &str| {
                    let parts = rule.as_deref().unwrap_or_default().split(';');
                    let found =
                        parts.filter_map(|part| part.split_once('=')).find(|it| it.0 == name);
                    found.map(|(_, value)| numbers(value)).unwrap_or_default()
                };
                (part("BYMINUTE"), part("BYHOUR"))
            }
        };
        Self {
            minutes,
            hours,
            length: length.as_secs() / 60,
            zone: TimeZone::get(zone).unwrap_or(TimeZone::UTC),
        }
    }

    /// Whether it opened at one of the last minutes and has not closed since.
    fn is_open(&self, at: Timestamp) -> bool {
        let minute = at.as_second().div_euclid(60);
        (0..self.length).any(|back| {
            let Ok(opened) = Timestamp::from_second((minute - back) * 60) else { return false };
            let local = self.zone.to_datetime(opened);
            self.minutes.contains(&local.minute())
                && (self.hours.is_empty() || self.hours.contains(&local.hour()))
        })
    }
}
