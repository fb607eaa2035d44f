//! What is planned where no window lies before the deadline: the policy's answer. Budgets hold
//! whatever it is.

use jiff::{SignedDuration, Timestamp};
use machinist_api::{maintenance_policy::WhenNoWindow, names::maintenance_reason as reason};

use super::{Planner, Slot, Strictness, Task, later, obstacles};
use crate::{
    decision::Wait,
    maintenance::{
        plan::{PlanEntry, Standing, words},
        reason::Need,
    },
};

/// The provider refuses a new time that is nearer than this.
const MOVED_AT_LEAST: SignedDuration = SignedDuration::from_mins(60);
/// The provider refuses to move an event that begins within this.
const MOVABLE_UNTIL: SignedDuration = SignedDuration::from_mins(5);

/// Plans what cannot be planned in time. `found` is the first time that calendar and budgets allow.
pub(super) fn answer<'a>(
    planner: &mut Planner<'a>,
    task: &Task<'a>,
    entry: &mut PlanEntry,
    found: Option<Slot>,
) {
    let Some(latest) = task.latest_safe_start else {
        // Without a deadline a time was looked for as far as a plan reaches.
        entry.waits_on = vec![no_window(planner, task)];
        return;
    };
    entry.is_late = true;
    let why = late_because(planner, task, latest, found.as_ref());
    let late = Wait::on(reason::NO_WINDOW_IN_TIME, why);
    match task.policy.when_no_window {
        WhenNoWindow::ActAnyway => act(planner, task, entry, late),
        WhenNoWindow::Ask => ask(planner, task, entry, late),
        WhenNoWindow::MoveEvent => match move_to(planner, task, found.as_ref()) {
            Ok((event_id, to)) => {
                let start = found.map(|slot| slot.start);
                planner.note_late(task, &format!("the provider's event is moved to {to}"));
                entry.start = start;
                entry.standing = Standing::MovesEvent { event_id: event_id.clone(), to };
                entry.why = format!("{} moves the event to {to} for it", task.policy.title());
                entry.waits_on = vec![
                    late,
                    Wait::on(reason::MOVING_EVENT, format!("event {event_id} is moved to {to}")),
                ];
            }
            Err(cannot) => {
                let late = Wait::on(late.reason, format!("{}; {cannot}", late.message));
                ask(planner, task, entry, late);
            }
        },
        WhenNoWindow::LetProviderAct => {
            planner.note_late(task, "it is left to the provider");
            entry.standing = Standing::LeftAlone;
            let message = format!("{} leaves it to the provider", task.policy.title());
            entry.waits_on = vec![late, Wait::on(reason::LEFT_TO_PROVIDER, message)];
        }
    }
}

/// Against the calendar, but no earlier than must be: people get all the time that there is. Freezes
/// are broken last.
fn act<'a>(planner: &mut Planner<'a>, task: &Task<'a>, entry: &mut PlanEntry, late: Wait) {
    let from = obstacles::earliest(task, planner.now).at;
    let latest = task.latest_safe_start.unwrap_or(from);
    let in_time = [Strictness::FreezesOnly, Strictness::Nothing]
        .into_iter()
        .find_map(|strictness| planner.latest(task, strictness, from, latest));
    let slot = in_time.or_else(|| planner.earliest(task, Strictness::Nothing, from));
    let Some(slot) = slot else {
        entry.waits_on = vec![late, no_window(planner, task)];
        planner.note_late(task, "no budget ever has a place for it");
        return;
    };
    planner.note_late(task, &format!("it is done at {} against the calendar", slot.start));
    entry.start = Some(slot.start);
    entry.why = if slot.start > latest {
        "it is too late already, and this is the first time at which every budget has a place"
            .to_owned()
    } else {
        format!(
            "it is the latest safe start, and {} acts against the calendar then",
            task.policy.title()
        )
    };
    if slot.start <= planner.now {
        entry.standing = Standing::Due;
    } else {
        entry.standing = Standing::Planned;
        entry.waits_on = vec![late];
    }
}

fn ask<'a>(planner: &mut Planner<'a>, task: &Task<'a>, entry: &mut PlanEntry, late: Wait) {
    if obstacles::is_approved(task) {
        return act(planner, task, entry, late);
    }
    planner.note_late(task, "a person must decide");
    let because = "it must be done against the calendar".to_owned();
    entry.waits_on = vec![late, obstacles::approval_missing(task, &because)];
}

/// The event and its new time, or why it cannot be moved. The new time is the last in a window that
/// the provider allows: if our work fails, it acts at an hour that people chose.
fn move_to<'a>(
    planner: &mut Planner<'a>,
    task: &Task<'a>,
    found: Option<&Slot>,
) -> Result<(String, Timestamp), String> {
    let Need { deadline: Some(deadline), movable: Some(movable), .. } = task.need else {
        return Err("the provider does not let the event be moved".to_owned());
    };
    if let Some(failure) = task.machine.cannot_move {
        return Err(format!("the provider did not move the event: {failure}"));
    }
    let now = planner.now;
    if later(now, MOVABLE_UNTIL) >= *deadline {
        return Err("the event begins too soon to be moved".to_owned());
    }
    let Some(slot) = found else {
        return Err("no window is open for long enough later, either".to_owned());
    };
    let needed = later(slot.start, task.expected.saturating_add(task.policy.margin));
    let needed = needed.max(later(now, MOVED_AT_LEAST));
    if needed > movable.until {
        return Err(format!(
            "the provider lets the event be moved to {} at the latest, and {needed} would be needed",
            movable.until
        ));
    }
    let in_window = planner
        .openings(task.policy, Strictness::Whole)
        .latest(needed, movable.until, SignedDuration::ZERO)
        .map(|(start, _)| start);
    Ok((movable.event_id.clone(), in_window.unwrap_or(movable.until)))
}

fn late_because<'a>(
    planner: &mut Planner<'a>,
    task: &Task<'a>,
    latest: Timestamp,
    found: Option<&Slot>,
) -> String {
    let next = match found {
        Some(slot) => format!("the first time that windows and budgets allow is {}", slot.start),
        None => no_window(planner, task).message,
    };
    format!("it must begin by {latest} to be over in time, and {next}")
}

/// Why there is no time at all.
fn no_window<'a>(planner: &mut Planner<'a>, task: &Task<'a>) -> Wait {
    let from = obstacles::earliest(task, planner.now).at;
    let openings = planner.openings(task.policy, Strictness::Whole);
    if openings.earliest(from, task.expected).is_some() {
        let length = task.expected.saturating_add(task.policy.budgets.cool_down);
        let message = planner
            .places
            .crowded(&task.seats, from, length)
            .unwrap_or_else(|| "no budget has a place as far as a plan looks ahead".to_owned());
        return Wait::on(reason::BUDGET_EXHAUSTED, message);
    }
    match openings.longest() {
        Some(longest) if longest < task.expected => Wait::on(
            reason::WINDOW_TOO_SHORT,
            format!(
                "no window is long enough: the longest is open for {}, and the work is expected to \
                 take {}",
                words::duration_in_words(longest),
                words::duration_in_words(task.expected),
            ),
        ),
        Some(_) | None => Wait::on(
            reason::NO_WINDOW,
            format!("no window of {} opens within 400 days", task.policy.title()),
        ),
    }
}
