//! Which openings and freezes come next? The report is also what `-o json` prints: names are never
//! changed, only added; times are in UTC.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

use super::{instant::Instant, objects::Objects};
use crate::{
    calendar::{Calendar, Ending, HORIZON, Opening},
    maintenance::{
        Note, PolicySet,
        policies::{Chosen, Subject},
        policy::Policy,
    },
};

/// How far back the beginning of what is open now is looked for.
const LOOK_BACK: SignedDuration = SignedDuration::from_hours(32 * 24);
/// Freezes are listed for a year, or as far as the openings reach.
const FREEZES_AHEAD: SignedDuration = SignedDuration::from_hours(366 * 24);

/// What is asked.
#[derive(Clone, Debug)]
pub struct Question {
    pub from: Timestamp,
    /// How many openings of each policy.
    pub count: usize,
    /// Only policies of these names.
    pub wanted: Option<Vec<String>>,
}

#[derive(Debug, Serialize)]
pub struct Report {
    /// From when on openings are listed.
    pub from: Timestamp,
    pub policies: Vec<PolicyView>,
    pub notes: Vec<Note>,
}

/// A policy and its calendar.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyView {
    /// None: what holds for machines without a policy.
    pub name: Option<String>,
    /// For how many machines it holds.
    pub machines: usize,
    /// Why nothing is begun, where it is paused.
    pub paused: Option<String>,
    /// What is wrong with it, where it cannot be used.
    pub faults: Vec<String>,
    /// Whether it has no windows: every hour that is not frozen is open.
    pub any_hour: bool,
    pub openings: Vec<OpeningView>,
    pub freezes: Vec<FreezeView>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct OpeningView {
    /// May be before the time that is asked from, where it is open then.
    pub start: Timestamp,
    pub end: Timestamp,
    pub windows: Vec<String>,
    /// The freezes that end it early.
    pub until: Vec<String>,
}

/// A span in which nothing may begin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FreezeView {
    pub name: String,
    #[schemars(with = "Instant")]
    pub start: Timestamp,
    #[schemars(with = "Instant")]
    pub end: Timestamp,
}

/// Lists the openings and freezes of each policy.
pub fn report(objects: &Objects<'_>, question: &Question) -> Report {
    let legacy = objects.legacy();
    let set = objects.policy_set(&legacy);
    let machines = machines_by_policy(objects, &set);
    let is_wanted = |name: Option<&str>| match &question.wanted {
        None => true,
        Some(names) => name.is_some_and(|name| names.iter().any(|one| one == name)),
    };
    let faults = set.faults();
    let mut policies = Vec::new();
    for policy in &objects.policies {
        let name = policy.metadata.name.as_deref();
        if policy.metadata.deletion_timestamp.is_some() || !is_wanted(name) {
            continue;
        }
        let held = machines.get(&name.map(str::to_owned)).copied().unwrap_or(0);
        if let Some(policy) = set.get(name) {
            policies.push(view(policy, held, question));
        } else if let Some((name, faults)) = name.and_then(|name| faults.get_key_value(name)) {
            policies.push(PolicyView {
                name: Some((*name).to_owned()),
                machines: held,
                paused: None,
                faults: faults.iter().map(ToString::to_string).collect(),
                any_hour: false,
                openings: Vec::new(),
                freezes: Vec::new(),
            });
        }
    }
    let held = machines.get(&None).copied().unwrap_or(0);
    if let Some(usual) =
        set.get(None).filter(|_| is_wanted(None) && (held > 0 || policies.is_empty()))
    {
        policies.push(view(usual, held, question));
    }
    let mut notes = legacy.notes;
    notes.extend(objects.notes.iter().cloned());
    notes.sort();
    Report { from: question.from, policies, notes }
}

fn view(policy: &Policy, machines: usize, question: &Question) -> PolicyView {
    let calendar = &policy.calendar;
    let any_hour = calendar.windows.is_empty();
    let openings = if any_hour { Vec::new() } else { openings(calendar, question) };
    let last = openings.last().map_or(question.from, |opening| opening.end);
    let until = last.max(later(question.from, FREEZES_AHEAD));
    let freezes = calendar
        .frozen(question.from, until)
        .into_iter()
        .map(|frozen| FreezeView { name: frozen.freeze, start: frozen.start, end: frozen.end })
        .collect();
    PolicyView {
        name: policy.name.clone(),
        machines,
        paused: policy.paused.clone(),
        faults: Vec::new(),
        any_hour,
        openings,
        freezes,
    }
}

fn openings(calendar: &Calendar, question: &Question) -> Vec<OpeningView> {
    let limit = later(question.from, HORIZON);
    let mut found: Vec<OpeningView> = Vec::new();
    let mut at = question.from;
    while found.len() < question.count {
        let Some(opening) = calendar.next_opening(at, limit) else { break };
        at = opening.end;
        let start = if opening.start == question.from {
            true_start(calendar, question.from)
        } else {
            opening.start
        };
        let goes_on = opening.ending == Ending::GoesOn;
        found.push(opening_view(opening, start));
        if goes_on {
            break;
        }
    }
    found
}

fn opening_view(opening: Opening, start: Timestamp) -> OpeningView {
    let until = match opening.ending {
        Ending::FreezeBegins(freezes) => freezes,
        Ending::WindowEnds | Ending::GoesOn => Vec::new(),
    };
    OpeningView { start, end: opening.end, windows: opening.windows, until }
}

/// When what is open at an instant was opened: an exported event must not change with the hour of its
/// export.
fn true_start(calendar: &Calendar, from: Timestamp) -> Timestamp {
    let earlier = from.checked_sub(LOOK_BACK).unwrap_or(Timestamp::MIN);
    let just_after = later(from, SignedDuration::from_nanos(1));
    let before = calendar.openings(earlier, just_after).openings;
    before.last().filter(|last| last.end > from).map_or(from, |last| last.start)
}

/// For how many machines each policy holds.
pub fn machines_by_policy(
    objects: &Objects<'_>,
    policies: &PolicySet,
) -> BTreeMap<Option<String>, usize> {
    let mut machines = BTreeMap::new();
    for machine in &objects.machines {
        let subject = Subject::of(machine);
        let name = match policies.resolve(&subject).policy {
            Chosen::Valid(policy) => policy.name.clone(),
            Chosen::Invalid { name, .. } => Some(name.to_owned()),
        };
        *machines.entry(name).or_default() += 1;
    }
    machines
}

fn later(instant: Timestamp, by: SignedDuration) -> Timestamp {
    instant.checked_add(by).unwrap_or(Timestamp::MAX)
}
