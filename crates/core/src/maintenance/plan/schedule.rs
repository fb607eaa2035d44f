//! How each machine gets its time: in the order of urgency, the first that calendar and budgets
//! allow; and what is planned where that comes too late.

mod late;
mod obstacles;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use machinist_api::{
    MaintenanceAction,
    names::{maintenance_reason as reason, reason as condition_reason},
};

use super::{
    PlanEntry, Standing,
    capacity::Taker,
    fleet::{Fleet, FleetMachine, UnderWay},
    latest_safe_start,
    openings::Openings,
    places::{Places, Seat, rounded_up, subject},
    words,
};
use crate::{
    calendar::{Calendar, Fit, Opening},
    decision::Wait,
    maintenance::{
        action::{self, Choice},
        note::Note,
        policies::Chosen,
        policy::Policy,
        reason::Need,
    },
};

/// What is under way and takes longer than expected keeps its places at least this long.
const STILL_BUSY: SignedDuration = SignedDuration::from_mins(5);
/// A search that goes on longer than this is given up (Rule 10). Each round passes a step of a budget
/// or an opening, of which a plan has far fewer.
const ROUNDS_MAX: usize = 20_000;

/// Whose openings: a policy by name, and what of its calendar counts.
type CalendarKey<'a> = (Option<&'a str>, Strictness);

/// What of a calendar is respected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Strictness {
    Whole,
    /// Not the windows, only the freezes.
    FreezesOnly,
    Nothing,
}

pub(super) struct Planner<'a> {
    fleet: &'a Fleet<'a>,
    now: Timestamp,
    places: Places<'a>,
    openings: BTreeMap<CalendarKey<'a>, Openings>,
    /// What the calendar of a policy says of a start; asked again for each machine.
    fits: BTreeMap<(Option<&'a str>, Timestamp, SignedDuration), Fit>,
    notes: Vec<Note>,
}

/// A machine that needs something, with all that its time depends on.
struct Task<'a> {
    machine: &'a FleetMachine<'a>,
    need: &'a Need,
    policy: &'a Policy,
    choice: Choice,
    expected: SignedDuration,
    latest_safe_start: Option<Timestamp>,
    seats: Vec<Seat<'a>>,
}

/// A time, and the opening that it is in.
struct Slot {
    start: Timestamp,
    windows: Vec<String>,
}

impl<'a> Planner<'a> {
    pub(super) fn new(fleet: &'a Fleet<'a>, now: Timestamp) -> Self {
        Self {
            fleet,
            now,
            places: Places::new(fleet, now),
            openings: BTreeMap::new(),
            fits: BTreeMap::new(),
            notes: Vec::new(),
        }
    }

    pub(super) fn run(mut self) -> (Vec<PlanEntry>, Vec<Note>) {
        self.tell_policy_faults();
        let fleet = self.fleet;
        let mut entries = Vec::new();
        let mut waiting: Vec<(&'a FleetMachine<'a>, &'a Need)> = Vec::new();
        for machine in &fleet.machines {
            match (&machine.under_way, &machine.need) {
                (Some(under_way), _) => entries.push(self.keep(machine, *under_way)),
                (None, Some(need)) if !machine.is_deleting => waiting.push((machine, need)),
                (None, Some(_) | None) => {}
            }
        }
        waiting.sort_by(|(left, left_need), (right, right_need)| {
            urgency(left_need, left.name).cmp(&urgency(right_need, right.name))
        });
        let mut overruled = BTreeMap::new();
        for (machine, need) in waiting {
            let resolution = fleet.policies.resolve(&subject(machine));
            for loser in resolution.overruled {
                let pair = (policy_name(&resolution.policy), loser);
                overruled.entry(pair).or_insert_with(Vec::new).push(machine.name);
            }
            entries.push(match resolution.policy {
                Chosen::Valid(policy) => self.schedule(machine, need, policy),
                Chosen::Invalid { name, faults } => {
                    let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
                    let message = format!("policy {name} cannot be used: {}", faults.join("; "));
                    invalid(machine, need, name, Wait::on(reason::POLICY_INVALID, message))
                }
            });
        }
        self.tell_overruled(overruled);
        (entries, self.notes)
    }

    /// Takes the places of what is under way.
    fn keep(&mut self, machine: &'a FleetMachine<'a>, under_way: UnderWay) -> PlanEntry {
        let resolution = self.fleet.policies.resolve(&subject(machine));
        // Whatever became of its policy, it is finished under what holds without one.
        let policy = match resolution.policy {
            Chosen::Valid(policy) => Some(policy),
            Chosen::Invalid { .. } => None,
        };
        let usual = Policy::default();
        let policy = policy.unwrap_or(&usual);
        let seats = self.places.seats(self.fleet, machine, policy);
        let expected = self.fleet.durations.expected(under_way.action, machine.pool);
        let end = later(under_way.since, expected);
        // One that takes longer than expected ends nobody knows when.
        let is_overdue = end <= later(self.now, STILL_BUSY);
        let end = if is_overdue { rounded_up(later(self.now, STILL_BUSY)) } else { end };
        let to = later(end, policy.budgets.cool_down);
        self.places.sit(&seats, Taker { name: machine.name, from: self.now, to });
        let deadline = machine.need.as_ref().and_then(|need| need.deadline);
        PlanEntry {
            machine: machine.name.to_owned(),
            machine_uid: machine.uid.to_owned(),
            pool: machine.pool.map(str::to_owned),
            zone: machine.zone.map(str::to_owned),
            policy: policy.name.clone(),
            standing: Standing::UnderWay { phase: under_way.phase, since: under_way.since },
            action: under_way.action,
            and_then: Vec::new(),
            start: Some(under_way.since),
            end: Some(end),
            window: None,
            latest_safe_start: deadline
                .map(|deadline| latest_safe_start(deadline, expected, policy)),
            deadline,
            expected,
            is_late: deadline.is_some_and(|deadline| end > deadline),
            codes: machine.need.as_ref().map_or_else(Vec::new, Need::codes),
            because: machine.need.as_ref().map_or_else(String::new, Need::in_words),
            why_action: String::new(),
            why: "it was begun, and work that was begun is finished".to_owned(),
            waits_on: Vec::new(),
        }
    }

    fn schedule(
        &mut self,
        machine: &'a FleetMachine<'a>,
        need: &'a Need,
        policy: &'a Policy,
    ) -> PlanEntry {
        let choice = action::choose(&need.reasons, &machine.traits, policy);
        let expected = self.fleet.durations.expected(choice.action, machine.pool);
        let task = Task {
            machine,
            need,
            policy,
            expected,
            latest_safe_start: need
                .deadline
                .map(|deadline| latest_safe_start(deadline, expected, policy)),
            seats: self.places.seats(self.fleet, machine, policy),
            choice,
        };
        let mut entry = self.entry_of(&task);
        if task.choice.action == MaintenanceAction::Nothing {
            entry.standing = Standing::LeftAlone;
            entry.waits_on = vec![Wait::on(reason::NO_ACTION, task.choice.why.clone())];
            return entry;
        }
        let obstacles = obstacles::of(&task, &self.fleet.cluster);
        if !obstacles.is_empty() {
            entry.waits_on = obstacles;
            self.tell_if_late(&task, &mut entry);
            return entry;
        }
        // A machine that is out of work already takes no further place by being worked on.
        let had = match machine.is_available {
            true => Vec::new(),
            false => self.places.stand_up(&task.seats),
        };
        self.find_time(&task, &mut entry);
        self.places.sit_again(&had, entry.start);
        if let Some(start) = entry.start {
            let to = later(later(start, task.expected), policy.budgets.cool_down);
            self.places.sit(&task.seats, Taker { name: machine.name, from: start, to });
            entry.end = Some(later(start, task.expected));
        }
        entry
    }

    /// Gives the entry its time, its standing and the reasons for both.
    fn find_time(&mut self, task: &Task<'a>, entry: &mut PlanEntry) {
        let from = obstacles::earliest(task, self.now);
        let found = self.earliest(task, Strictness::Whole, from.at);
        let is_in_time = |start: Timestamp| {
            task.latest_safe_start.is_none_or(|latest| start <= latest || start <= self.now)
        };
        match found {
            Some(slot) if is_in_time(slot.start) => {
                self.place(task, entry, &slot, from);
                entry.is_late = task.latest_safe_start.is_some_and(|latest| slot.start > latest);
                if entry.is_late {
                    self.note_late(task, "it begins at once");
                }
            }
            found => late::answer(self, task, entry, found),
        }
    }

    fn place(
        &mut self,
        task: &Task<'a>,
        entry: &mut PlanEntry,
        slot: &Slot,
        from: obstacles::Earliest,
    ) {
        entry.start = Some(slot.start);
        entry.window = (!slot.windows.is_empty()).then(|| slot.windows.join(","));
        if slot.start <= self.now {
            entry.standing = Standing::Due;
            entry.why = match &entry.window {
                Some(window) => format!("window {window} is open"),
                None => "every hour is allowed".to_owned(),
            };
            return;
        }
        entry.standing = Standing::Planned;
        let waits = self.why_not_before(task, slot, from);
        entry.why = words::why_then(&entry.window, &waits);
        entry.waits_on = waits;
    }

    /// What keeps work from beginning at once, in the order in which it stands in the way.
    fn why_not_before(
        &mut self,
        task: &Task<'a>,
        slot: &Slot,
        from: obstacles::Earliest,
    ) -> Vec<Wait> {
        let mut waits: Vec<Wait> = from.wait.into_iter().collect();
        let at = from.at;
        let fit = self.fit(task.policy, at, task.expected);
        let is_open_at_once = fit == Fit::Fits;
        waits.extend(words::closed(&fit, slot.start, task.expected));
        let opens = self
            .openings(task.policy, Strictness::Whole)
            .earliest(at, task.expected)
            .map_or(at, |(start, _)| start);
        if slot.start > opens || (is_open_at_once && slot.start > at) {
            let length = task.expected.saturating_add(task.policy.budgets.cool_down);
            let crowded = self.places.crowded(&task.seats, opens, length);
            waits.extend(crowded.map(|message| Wait::on(reason::BUDGET_EXHAUSTED, message)));
        }
        waits
    }

    /// The first time at which the calendar is open for long enough and every budget has a place.
    fn earliest(
        &mut self,
        task: &Task<'a>,
        strictness: Strictness,
        from: Timestamp,
    ) -> Option<Slot> {
        let length = task.expected.saturating_add(task.policy.budgets.cool_down);
        let mut at = from;
        for _ in 0..ROUNDS_MAX {
            let (open, opening) =
                self.openings(task.policy, strictness).earliest(at, task.expected)?;
            let free = self.places.earliest(&task.seats, open, length)?;
            if free == open {
                // A place that comes later in the list may have moved the time past one that comes
                // before: nothing moved, so all agree.
                return Some(slot(open, opening));
            }
            at = free;
        }
        None
    }

    /// The last such time that is not after `until`.
    fn latest(
        &mut self,
        task: &Task<'a>,
        strictness: Strictness,
        from: Timestamp,
        until: Timestamp,
    ) -> Option<Slot> {
        let length = task.expected.saturating_add(task.policy.budgets.cool_down);
        let mut at = until;
        for _ in 0..ROUNDS_MAX {
            let (open, opening) =
                self.openings(task.policy, strictness).latest(from, at, task.expected)?;
            let free = self.places.latest(&task.seats, from, open, length)?;
            if free == open {
                return Some(slot(open, opening));
            }
            at = free;
        }
        None
    }

    fn openings(&mut self, policy: &'a Policy, strictness: Strictness) -> &mut Openings {
        let now = self.now;
        let key = (policy.name.as_deref(), strictness);
        self.openings.entry(key).or_insert_with(|| {
            let calendar = match strictness {
                Strictness::Whole => policy.calendar.clone(),
                Strictness::FreezesOnly => {
                    Calendar { windows: Vec::new(), freezes: policy.calendar.freezes.clone() }
                }
                Strictness::Nothing => Calendar::default(),
            };
            Openings::new(calendar, now)
        })
    }

    fn fit(&mut self, policy: &'a Policy, at: Timestamp, expected: SignedDuration) -> Fit {
        let key = (policy.name.as_deref(), at, expected);
        self.fits.entry(key).or_insert_with(|| policy.calendar.fits(at, expected)).clone()
    }

    fn entry_of(&self, task: &Task<'a>) -> PlanEntry {
        let machine = task.machine;
        PlanEntry {
            machine: machine.name.to_owned(),
            machine_uid: machine.uid.to_owned(),
            pool: machine.pool.map(str::to_owned),
            zone: machine.zone.map(str::to_owned),
            policy: task.policy.name.clone(),
            standing: Standing::Blocked,
            action: task.choice.action,
            and_then: task.choice.and_then.clone(),
            start: None,
            end: None,
            window: None,
            latest_safe_start: task.latest_safe_start,
            deadline: task.need.deadline,
            expected: task.expected,
            is_late: false,
            codes: task.need.codes(),
            because: task.need.in_words(),
            why_action: task.choice.why.clone(),
            why: String::new(),
            waits_on: Vec::new(),
        }
    }

    /// Says of one that is blocked that its time runs out.
    fn tell_if_late(&mut self, task: &Task<'a>, entry: &mut PlanEntry) {
        if task.latest_safe_start.is_some_and(|latest| latest < self.now) {
            entry.is_late = true;
            let waits: Vec<&str> =
                entry.waits_on.iter().map(|wait| wait.message.as_str()).collect();
            self.note_late(task, &format!("it is held: {}", waits.join("; ")));
        }
    }

    fn note_late(&mut self, task: &Task<'a>, what: &str) {
        let name = task.machine.name;
        let deadline = task.need.deadline.map_or_else(String::new, |at| format!(" before {at}"));
        let message = format!(
            "machine {name}: {} cannot be dealt with{deadline} as the calendar and the budgets are; {what}",
            task.need.in_words(),
        );
        self.notes.push(Note::warning(
            reason::NO_WINDOW_IN_TIME,
            format!("machine/{name}"),
            message,
        ));
    }

    fn tell_policy_faults(&mut self) {
        for (name, faults) in self.fleet.policies.faults() {
            for fault in faults {
                self.notes.push(Note::warning(
                    condition_reason::INVALID_CONFIGURATION,
                    format!("policy/{name}"),
                    format!("policy {name} cannot be used: {fault}"),
                ));
            }
        }
    }

    fn tell_overruled(&mut self, overruled: BTreeMap<(String, &str), Vec<&str>>) {
        for ((winner, loser), mut machines) in overruled {
            machines.sort_unstable();
            let example = machines.first().copied().unwrap_or_default();
            let message = format!(
                "policy {loser} does not hold for {} machines that need maintenance ({example} \
                 first): policy {winner} comes before it",
                machines.len()
            );
            self.notes.push(Note::normal("PolicyOverruled", format!("policy/{loser}"), message));
        }
    }
}

/// The deadline first, then the risk, then what waits longest.
fn urgency<'a>(need: &Need, name: &'a str) -> (Timestamp, u8, Timestamp, &'a str) {
    (need.deadline.unwrap_or(Timestamp::MAX), need.risk, need.since, name)
}

fn slot(start: Timestamp, opening: Opening) -> Slot {
    Slot { start, windows: opening.windows }
}

fn policy_name(chosen: &Chosen<'_>) -> String {
    match chosen {
        Chosen::Valid(policy) => policy.name.clone().unwrap_or_default(),
        Chosen::Invalid { name, .. } => (*name).to_owned(),
    }
}

fn invalid(machine: &FleetMachine<'_>, need: &Need, policy: &str, wait: Wait) -> PlanEntry {
    PlanEntry {
        machine: machine.name.to_owned(),
        machine_uid: machine.uid.to_owned(),
        pool: machine.pool.map(str::to_owned),
        zone: machine.zone.map(str::to_owned),
        policy: Some(policy.to_owned()),
        standing: Standing::Blocked,
        action: MaintenanceAction::Nothing,
        and_then: Vec::new(),
        start: None,
        end: None,
        window: None,
        latest_safe_start: None,
        deadline: need.deadline,
        expected: SignedDuration::ZERO,
        is_late: false,
        codes: need.codes(),
        because: need.in_words(),
        why_action: String::new(),
        why: String::new(),
        waits_on: vec![wait],
    }
}

pub(super) fn later(instant: Timestamp, by: SignedDuration) -> Timestamp {
    instant.checked_add(by).unwrap_or(Timestamp::MAX)
}
