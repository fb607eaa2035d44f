//! What do the coming days look like: windows, freezes, and a bar for each maintenance?

use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

use super::{
    instant::Instant,
    picture::Picture,
    plan_view::EntryView,
    windows::{FreezeView, machines_by_policy},
};
use crate::{
    calendar::{Ending, Opening},
    maintenance::{Note, plan::Standing, policy::Policy},
};

/// What is shown unless it is said, and at most.
pub const DAYS_USUAL: SignedDuration = SignedDuration::from_hours(14 * 24);
pub const DAYS_MAX: SignedDuration = SignedDuration::from_hours(62 * 24);

/// How many openings of one policy are drawn.
const OPENINGS_MAX: usize = 500;

/// Some days.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CalendarView {
    pub version: String,
    #[schemars(with = "Instant")]
    pub as_of: Timestamp,
    #[schemars(with = "Instant")]
    pub from: Timestamp,
    #[schemars(with = "Instant")]
    pub to: Timestamp,
    /// One for each policy, and one for the machines without.
    pub lanes: Vec<Lane>,
    /// Everything that has a time and touches these days, by its start.
    pub bars: Vec<Bar>,
    /// What has no time: blocked, or left alone.
    pub unplaced: Vec<EntryView>,
    pub notes: Vec<Note>,
}

/// A policy's windows and freezes.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Lane {
    /// None: what holds for machines without a policy.
    pub policy: Option<String>,
    pub machines: usize,
    /// Why nothing is begun, where it is paused.
    pub paused: Option<String>,
    /// What is wrong with it, where it cannot be used.
    pub faults: Vec<String>,
    /// Whether it has no windows: every hour that is not frozen is open.
    pub any_hour: bool,
    pub windows: Vec<Window>,
    pub freezes: Vec<FreezeView>,
}

/// A span in which work may begin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "CalendarWindow")]
pub struct Window {
    #[schemars(with = "Instant")]
    pub start: Timestamp,
    #[schemars(with = "Instant")]
    pub end: Timestamp,
    pub names: Vec<String>,
    /// Why it ends early.
    pub ends_because: Option<String>,
}

/// A maintenance on the calendar.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Bar {
    pub entry: EntryView,
    #[schemars(with = "Instant")]
    pub start: Timestamp,
    #[schemars(with = "Instant")]
    pub end: Timestamp,
    pub tone: Tone,
}

/// How a bar stands out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Tone {
    Running,
    Planned,
    /// Not over before its deadline, or only against the calendar.
    Late,
    /// The provider's event is moved first.
    Moves,
}

/// The days that are asked for, within what is shown at most.
pub fn days(
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    now: Timestamp,
) -> Result<(Timestamp, Timestamp), String> {
    let from = from.unwrap_or(now);
    let to = to.unwrap_or_else(|| later(from, DAYS_USUAL));
    if to <= from {
        return Err(format!("to: Invalid value: {to}: not after {from}"));
    }
    if to.duration_since(from) > DAYS_MAX {
        return Err("to: Invalid value: at most 62 days are shown at once".to_owned());
    }
    Ok((from, to))
}

/// Lays some days out.
pub fn calendar(picture: &Picture<'_>, from: Timestamp, to: Timestamp) -> CalendarView {
    let mut bars = Vec::new();
    let mut unplaced = Vec::new();
    for entry in &picture.plan.entries {
        let view = EntryView::of(entry, picture);
        let start = match &entry.standing {
            Standing::UnderWay { since, .. } => Some(*since),
            _ => entry.start,
        };
        let Some(start) = start else {
            unplaced.push(view);
            continue;
        };
        let mut end = entry.end.unwrap_or_else(|| later(start, entry.expected)).max(start);
        // What is under way lasts at least until now.
        if matches!(entry.standing, Standing::UnderWay { .. }) {
            end = end.max(picture.now);
        }
        if start < to && end >= from {
            let tone = match &entry.standing {
                _ if entry.is_late => Tone::Late,
                Standing::UnderWay { .. } => Tone::Running,
                Standing::MovesEvent { .. } => Tone::Moves,
                Standing::Due | Standing::Planned | Standing::Blocked | Standing::LeftAlone => {
                    Tone::Planned
                }
            };
            bars.push(Bar { entry: view, start, end, tone });
        }
    }
    bars.sort_by(|left, right| {
        (left.start, &left.entry.entry.machine).cmp(&(right.start, &right.entry.entry.machine))
    });
    CalendarView {
        version: String::new(),
        as_of: picture.now,
        from,
        to,
        lanes: lanes(picture, from, to),
        bars,
        unplaced,
        notes: picture.plan.notes.clone(),
    }
}

fn lanes(picture: &Picture<'_>, from: Timestamp, to: Timestamp) -> Vec<Lane> {
    let machines = machines_by_policy(picture.objects, picture.policies);
    let held = |name: Option<&str>| machines.get(&name.map(str::to_owned)).copied().unwrap_or(0);
    let faults = picture.policies.faults();
    let mut lanes: Vec<Lane> = Vec::new();
    for policy in &picture.objects.policies {
        let name = policy.metadata.name.as_deref();
        if policy.metadata.deletion_timestamp.is_some() {
            continue;
        }
        match picture.policies.get(name) {
            Some(policy) => lanes.push(lane(policy, held(name), from, to)),
            None => lanes.push(Lane {
                policy: name.map(str::to_owned),
                machines: held(name),
                paused: None,
                faults: name
                    .and_then(|name| faults.get(name))
                    .map_or_else(Vec::new, |all| all.iter().map(ToString::to_string).collect()),
                any_hour: false,
                windows: Vec::new(),
                freezes: Vec::new(),
            }),
        }
    }
    if let Some(usual) = picture.policies.get(None)
        && (held(None) > 0 || lanes.is_empty())
    {
        lanes.push(lane(usual, held(None), from, to));
    }
    lanes
}

fn lane(policy: &Policy, machines: usize, from: Timestamp, to: Timestamp) -> Lane {
    let calendar = &policy.calendar;
    let any_hour = calendar.windows.is_empty();
    let openings = if any_hour { Vec::new() } else { calendar.openings(from, to).openings };
    let frozen = calendar.frozen(from, to).into_iter();
    Lane {
        policy: policy.name.clone(),
        machines,
        paused: policy.paused.clone(),
        faults: Vec::new(),
        any_hour,
        windows: openings.into_iter().take(OPENINGS_MAX).map(window).collect(),
        freezes: frozen
            .take(OPENINGS_MAX)
            .map(|one| FreezeView { name: one.freeze, start: one.start, end: one.end })
            .collect(),
    }
}

fn window(opening: Opening) -> Window {
    let ends_because = match opening.ending {
        Ending::FreezeBegins(names) => Some(format!("freeze {} begins", names.join(", "))),
        Ending::WindowEnds | Ending::GoesOn => None,
    };
    Window { start: opening.start, end: opening.end, names: opening.windows, ends_because }
}

fn later(instant: Timestamp, by: SignedDuration) -> Timestamp {
    instant.checked_add(by).unwrap_or(Timestamp::MAX)
}
