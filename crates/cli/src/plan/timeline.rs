//! What happens on which day? The plan as a calendar that a person reads from top to bottom.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp, civil::Date};
use machinist_api::MaintenanceAction;
use machinist_core::{
    calendar::{Ending, Opening},
    maintenance::{Plan, PlanEntry, PolicySet, plan::Standing},
};

use crate::screen::{Layout, wrapped};

/// How far beyond the last start the end of a window is looked for.
const BEYOND: SignedDuration = SignedDuration::from_hours(48);

/// Something that happens at an instant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Happening {
    at: Timestamp,
    /// Deadlines first: what comes too late is seen to come after.
    rank: u8,
    mark: char,
    text: String,
}

/// By days of the person's zone; empty where nothing has a time.
pub(super) fn timeline(plan: &Plan, policies: &PolicySet, layout: &Layout<'_>) -> String {
    let mut days: BTreeMap<Date, Vec<Happening>> = BTreeMap::new();
    let mut openings = Openings { plan, policies, known: BTreeMap::new() };
    let mut happenings = Vec::new();
    for entry in &plan.entries {
        happenings.extend(of_entry(plan, entry, layout));
        happenings.extend(openings.around(entry, layout));
    }
    happenings.sort();
    happenings.dedup();
    for happening in happenings {
        days.entry(layout.zone.date(happening.at)).or_default().push(happening);
    }
    let mut lines = Vec::new();
    let mut before: Option<Date> = None;
    for (date, happenings) in days {
        if before.is_some() {
            lines.push(String::new());
        }
        before = Some(date);
        let Some(first) = happenings.first() else { continue };
        let mut title = layout.zone.day(first.at);
        if date == layout.zone.date(plan.as_of) {
            title.push_str(", today");
        }
        if let Some(change) = layout.zone.clock_change_on(date) {
            title.push_str(&format!(" ({change})"));
        }
        lines.extend(wrapped("", &title, layout.text_width()));
        for happening in happenings {
            let begin = format!("  {}  {} ", layout.zone.clock(happening.at), happening.mark);
            lines.extend(wrapped(&begin, &happening.text, layout.text_width()));
        }
    }
    if lines.is_empty() { String::new() } else { lines.join("\n") + "\n" }
}

/// The windows that work begins in.
struct Openings<'a> {
    plan: &'a Plan,
    policies: &'a PolicySet,
    /// By policy: all openings as far as the plan reaches.
    known: BTreeMap<Option<&'a str>, Vec<Opening>>,
}

impl<'a> Openings<'a> {
    /// The opening that a planned machine begins in.
    fn around(&mut self, entry: &'a PlanEntry, layout: &Layout<'_>) -> Option<Happening> {
        let start = entry.start.filter(|_| entry.window.is_some())?;
        let (plan, policies) = (self.plan, self.policies);
        let policy = entry.policy.as_deref();
        let known = self.known.entry(policy).or_insert_with(|| {
            let starts = plan.entries.iter().filter_map(|entry| entry.start);
            let last = starts.max().unwrap_or(plan.as_of).max(plan.as_of);
            let until = last.checked_add(BEYOND).unwrap_or(Timestamp::MAX);
            policies.get(policy).map_or_else(Vec::new, |policy| {
                policy.calendar.openings(plan.as_of, until).openings
            })
        });
        let opening = known.iter().find(|one| one.start <= start && start < one.end)?;
        let verb = if opening.start <= plan.as_of { "is open" } else { "opens" };
        let mut text = format!("window {} {verb}", opening.windows.join(", "));
        match &opening.ending {
            Ending::WindowEnds => {
                let end = near(opening.end, opening.start, plan.as_of, layout);
                text.push_str(&format!(", until {end}"));
            }
            Ending::FreezeBegins(freezes) => {
                let end = near(opening.end, opening.start, plan.as_of, layout);
                text.push_str(&format!(", until freeze {} begins {end}", freezes.join(", ")));
            }
            Ending::GoesOn => {}
        }
        Some(Happening { at: opening.start, rank: 1, mark: '[', text })
    }
}

fn of_entry(plan: &Plan, entry: &PlanEntry, layout: &Layout<'_>) -> Vec<Happening> {
    let mut happenings = Vec::new();
    let machine = &entry.machine;
    let mut add = |at: Timestamp, rank: u8, mark: char, text: String| {
        happenings.push(Happening { at, rank, mark, text });
    };
    if let Some(deadline) = entry.deadline {
        let whose = if entry.codes.is_empty() {
            String::new()
        } else {
            format!(" ({})", entry.codes.join(", "))
        };
        add(deadline, 0, '!', format!("deadline of {machine}{whose}"));
    }
    match (&entry.standing, entry.start) {
        (Standing::UnderWay { phase, since }, _) => {
            let what = done(entry.action);
            add(*since, 2, '*', format!("{machine} {what}: under way ({})", phase.as_str()));
        }
        (Standing::Due | Standing::Planned, Some(start)) => {
            add(start, 2, '*', begins(plan, entry, start, layout));
        }
        (Standing::MovesEvent { event_id, to }, start) => {
            let to_words = layout.zone.words(*to, plan.as_of);
            add(
                plan.as_of,
                2,
                '>',
                format!("event {event_id} of {machine} is moved to {to_words}"),
            );
            if let Some(start) = start {
                add(start, 2, '*', begins(plan, entry, start, layout));
            }
        }
        (Standing::Blocked, _) => {
            if let (Some(latest), Some(wait)) = (entry.latest_safe_start, entry.waits_on.first()) {
                let text =
                    format!("last safe start of {machine}, which is blocked ({})", wait.reason);
                add(latest, 2, '?', text);
            }
        }
        (Standing::LeftAlone, _) | (Standing::Due | Standing::Planned, None) => {}
    }
    happenings
}

/// What begins, and how long it takes.
fn begins(plan: &Plan, entry: &PlanEntry, start: Timestamp, layout: &Layout<'_>) -> String {
    let mut text = format!("{} {}", entry.machine, done(entry.action));
    if let Some(end) = entry.end {
        text.push_str(&format!(", until about {}", near(end, start, plan.as_of, layout)));
    }
    if entry.window.is_none() && entry.is_late {
        text.push_str(", outside of the windows");
    }
    text
}

/// The time alone where the day is clear.
fn near(at: Timestamp, start: Timestamp, now: Timestamp, layout: &Layout<'_>) -> String {
    if at.duration_since(start) < SignedDuration::from_hours(12) {
        layout.zone.clock(at)
    } else {
        layout.zone.words(at, now)
    }
}

fn done(action: MaintenanceAction) -> &'static str {
    match action {
        MaintenanceAction::Nothing => "is left as it is",
        MaintenanceAction::Reboot => "is rebooted",
        MaintenanceAction::RebootMigrate => "is rebooted onto another host",
        MaintenanceAction::StopStart => "is stopped and started",
        MaintenanceAction::Replace => "is replaced",
    }
}
