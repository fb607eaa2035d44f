//! What is done before work is committed to: the plan is stored and told, the provider's event is
//! moved where the plan says so, and when the time has come, work is committed to.

use std::borrow::Cow;

use jiff::SignedDuration;
use machinist_api::{
    Condition, ConditionSeverity, EventMove, Machine, MaintenancePhase, MaintenancePlan,
    MaintenanceWork,
    condition::{self, to_seconds},
    names::{annotation, condition_type, event, maintenance_reason as reason},
};

use super::{MaintenanceDecision, Pass, RECHECK, has_finalizer, is_leaving, set_condition};
use crate::{
    cloud::InstanceId,
    decision::{Announcement, Wait},
    maintenance::{
        observed::CloudSight,
        plan::{PlanEntry, Standing},
        record, records,
        step::Step,
    },
    node,
};

/// A moved event shows its new time within minutes.
const MOVE_VISIBLE: SignedDuration = SignedDuration::from_mins(5);
/// How often the provider is asked to move an event.
pub const MOVES_MAX: i32 = 3;

pub(super) fn decide(mut pass: Pass<'_>) -> MaintenanceDecision {
    let observed = pass.observed;
    if is_leaving(observed) {
        // Nothing was begun, so nothing is undone.
        if has_finalizer(observed) {
            pass.do_step(Step::RemoveFinalizer);
        }
        return pass.finish();
    }
    let was_done_by_the_original =
        pass.status.phase.is_none() && observed.maintenance.spec.maintenancescheduled;
    if was_done_by_the_original && observed.need.is_none() {
        return pass.enter(
            MaintenancePhase::Succeeded,
            "it was carried out before this operator was there",
        );
    }
    let Some(machine) = observed.machine else { return without_machine(pass) };
    let valid = Condition::holds(condition_type::VALID, pass.now);
    set_condition(&mut pass, valid);
    pass.status.machine_uid.clone_from(&machine.metadata.uid);
    if machine.metadata.deletion_timestamp.is_some() {
        return pass.enter(MaintenancePhase::Cancelled, "the machine is being deleted already");
    }
    if let Some(why) = pass.called_off() {
        return pass.enter(MaintenancePhase::Cancelled, format!("nothing was done: {why}"));
    }
    let Some(entry) = observed.entry else {
        return pass.wait(reason::NOT_YET, "it is planned with the next look at the fleet");
    };
    if let Some(wait) = keeps_from_beginning(&pass).filter(|_| entry.is_due()) {
        return hold_up(pass, entry, wait);
    }
    store_plan(&mut pass, entry);
    refresh_spec(&mut pass);
    match &entry.standing {
        Standing::Due => commit(pass, machine, entry),
        Standing::MovesEvent { event_id, to } => {
            let (event_id, to) = (event_id.clone(), *to);
            move_event(pass, event_id, to)
        }
        Standing::Planned | Standing::Blocked | Standing::LeftAlone | Standing::UnderWay { .. } => {
            rest(pass, entry)
        }
    }
}

/// Keeps the event in the spec of an object that we made, as the original wrote it.
fn refresh_spec(pass: &mut Pass<'_>) {
    let observed = pass.observed;
    let Some(need) = observed.need.filter(|_| is_ours(pass)) else { return };
    let spec = records::spec_for(&observed.maintenance.spec, need, observed.instance());
    if spec != observed.maintenance.spec {
        pass.do_step(Step::SetSpec(Box::new(spec)));
    }
}

/// Whether we made the object; otherwise a person did.
fn is_ours(pass: &Pass<'_>) -> bool {
    let annotations = pass.observed.maintenance.metadata.annotations.as_ref();
    annotations.is_some_and(|all| all.contains_key(annotation::MAINTENANCE_OURS))
}

/// Waits for the time, or for what keeps it from having one.
fn rest(mut pass: Pass<'_>, entry: &PlanEntry) -> MaintenanceDecision {
    pass.decision.waiting.clone_from(&entry.waits_on);
    if let Some(start) = entry.start.filter(|start| *start > pass.now) {
        pass.decision.recheck_by(start);
    }
    if let Some(latest) = entry.latest_safe_start.filter(|latest| *latest > pass.now) {
        pass.decision.recheck_by(latest);
    }
    pass.finish()
}

fn without_machine(mut pass: Pass<'_>) -> MaintenanceDecision {
    let name = pass.observed.maintenance.spec.machinelink.clone();
    let message = format!("spec.machinelink: Not found: there is no Machine {name}");
    if is_ours(&pass) {
        return pass.enter(MaintenancePhase::Cancelled, format!("machine {name} is gone"));
    }
    let is_news = pass.status.message.as_ref() != Some(&message);
    let condition = Condition::fails(
        condition_type::VALID,
        ConditionSeverity::Error,
        reason::MACHINE_NOT_FOUND,
        &message,
        pass.now,
    );
    set_condition(&mut pass, condition);
    pass.status.phase = Some(MaintenancePhase::Pending);
    pass.status.plan = None;
    pass.status.message = Some(message.clone());
    if is_news {
        pass.announce(Announcement::warning(event::FAILED_VALIDATE, message.clone()));
    }
    pass.say(reason::MACHINE_NOT_FOUND, message);
    pass.finish()
}

/// Stores what is planned, and tells people when it is another time than before.
fn store_plan(pass: &mut Pass<'_>, entry: &PlanEntry) {
    let now = pass.now;
    let stored = pass.status.clone();
    let before = stored.plan.clone().unwrap_or_default();
    let entry = &without_a_time_that_slips(entry, &before, now);
    let was_late = condition::find(&pass.status.conditions, condition_type::ON_TIME)
        .is_some_and(|known| known.status == machinist_api::ConditionStatus::False);
    record::set_plan(&mut pass.status, entry, now);
    if pass.observed.instance().is_some() {
        let mut traits = pass.observed.traits.as_record();
        // Where the provider's catalog cannot be asked, what it said before holds.
        traits.local_disks |= pass.status.instance.is_some_and(|known| known.local_disks);
        pass.status.instance = Some(traits);
    }
    let phase = match entry.start {
        Some(_) => MaintenancePhase::Scheduled,
        None => MaintenancePhase::Pending,
    };
    let sentence = entry.sentence();
    pass.status.message = Some(sentence.clone());
    let plan = pass.status.plan.clone().unwrap_or_default();
    let is_news = pass.status.phase != Some(phase) || is_another(&before, &plan);
    pass.status.phase = Some(phase);
    if is_news {
        record::note(&mut pass.status, &sentence, now);
        if phase == MaintenancePhase::Scheduled && !entry.is_due() {
            pass.announce(Announcement::normal(event::MAINTENANCE_SCHEDULED, sentence.clone()));
        }
    } else if entry.is_late == was_late && is_nearly(&before, &plan, entry, now) {
        // A place in a budget comes a little later with every look: that is not worth a write each.
        pass.status.plan = stored.plan;
        pass.status.message = stored.message;
        pass.status.conditions = stored.conditions;
        return;
    }
    if entry.is_late && !was_late {
        pass.announce(Announcement::warning(event::MAINTENANCE_LATE, sentence));
    }
}

/// When a budget has a place again is only assumed while something is broken. A start that rests on
/// that and was not kept is not promised for a little later, again and again: it is when it may be.
fn without_a_time_that_slips<'a>(
    entry: &'a PlanEntry,
    before: &MaintenancePlan,
    now: jiff::Timestamp,
) -> Cow<'a, PlanEntry> {
    let has_passed = before.start.as_ref().is_none_or(|start| start.0 <= now);
    if entry.standing == Standing::Planned && has_passed && waits_for_the_same_place(before, entry)
    {
        Cow::Owned(entry.without_a_time())
    } else {
        Cow::Borrowed(entry)
    }
}

/// Whether nothing but a place in a budget is waited for, and the same things were in the way before.
fn waits_for_the_same_place(before: &MaintenancePlan, entry: &PlanEntry) -> bool {
    let is_for_a_place = entry.waits_on.iter().all(|wait| wait.reason == reason::BUDGET_EXHAUSTED);
    let now = entry.waits_on.iter().map(|wait| &wait.message);
    let then = before.waits_on.iter().map(|wait| &wait.message);
    is_for_a_place && !entry.waits_on.is_empty() && now.eq(then)
}

/// How much a planned start may move before that is stored.
const NEARLY: SignedDuration = SignedDuration::from_mins(10);

/// Whether two plans of the same kind begin at nearly the same time, or wait on the very same.
fn is_nearly(
    before: &MaintenancePlan,
    plan: &MaintenancePlan,
    entry: &PlanEntry,
    now: jiff::Timestamp,
) -> bool {
    let reasons = |plan: &MaintenancePlan| {
        plan.waits_on.iter().map(|wait| wait.reason.clone()).collect::<Vec<_>>()
    };
    match (&before.start, &plan.start) {
        (Some(before_start), Some(start)) => {
            let moved = start.0.duration_since(before_start.0).abs();
            // What is due stays due from when it first was, and what is promised for later stays so
            // until its time has come.
            let is_kept = match before_start.0 <= now {
                true => entry.is_due(),
                false => start > before_start && waits_for_the_same_place(before, entry),
            };
            (moved <= NEARLY || is_kept)
                && reasons(before) == reasons(plan)
                && before.policy == plan.policy
        }
        (None, _) | (_, None) => false,
    }
}

/// Whether a plan differs in what people go by. A place in a budget that comes a little later is none.
fn is_another(before: &MaintenancePlan, plan: &MaintenancePlan) -> bool {
    before.action != plan.action
        || before.window != plan.window
        || before.deadline != plan.deadline
        || before.start.is_some() != plan.start.is_some()
        || before.waits_on.first().map(|wait| &wait.reason)
            != plan.waits_on.first().map(|wait| &wait.reason)
}

/// What keeps a maintenance that is due from beginning, as far as it lasts.
fn keeps_from_beginning(pass: &Pass<'_>) -> Option<Wait> {
    let observed = pass.observed;
    if let Some(doubt) = observed.doubt {
        return Some(Wait::on(reason::REASON_DOUBTFUL, format!("nothing is begun: {doubt}")));
    }
    if let CloudSight::Unknown(Some(failure)) = &observed.cloud {
        let message = format!("the cloud could not be asked: {}", failure.message);
        return Some(Wait::on(reason::CLOUD_UNKNOWN, message));
    }
    let held = observed.gate.as_ref().err()?;
    Some(Wait::on(reason::GATE_HOLDS, held.0.clone()))
}

/// Says what keeps it from beginning, where the plan is said.
fn hold_up(mut pass: Pass<'_>, entry: &PlanEntry, wait: Wait) -> MaintenanceDecision {
    let held = PlanEntry { waits_on: vec![wait], ..entry.without_a_time() };
    store_plan(&mut pass, &held);
    refresh_spec(&mut pass);
    pass.recheck_in(RECHECK);
    rest(pass, &held)
}

/// Stores that work is begun, with all that it begins from.
fn commit(mut pass: Pass<'_>, machine: &Machine, entry: &PlanEntry) -> MaintenanceDecision {
    let observed = pass.observed;
    if matches!(observed.cloud, CloudSight::Unknown(_)) {
        return pass.wait(reason::CLOUD_UNKNOWN, "the cloud is being asked about the instance");
    }
    if !has_finalizer(observed) {
        return pass.step(Step::AddFinalizer);
    }
    let now = to_seconds(pass.now);
    let instance = observed.instance();
    pass.status.work = Some(MaintenanceWork {
        action: Some(entry.action),
        and_then: entry.and_then.clone(),
        control_plane: observed.is_control_plane,
        boot_id: observed.node.and_then(node::boot_id).map(str::to_owned),
        instance_id: instance.map(|instance| instance.id.0.clone()),
        launch_time: instance.and_then(|instance| instance.launched_at).map(to_seconds),
        machine_uid: machine.metadata.uid.clone(),
        node: observed.node.map(|node| node::name(node).to_owned()),
        phase_since: Some(now.clone()),
        pool: entry.pool.clone(),
        started_at: Some(now),
        zone: observed.zone.map(str::to_owned),
        ..MaintenanceWork::default()
    });
    pass.status.next_attempt = None;
    let message = format!("work has begun: {}", entry.sentence());
    pass.announce(Announcement::normal(event::MAINTENANCE_STARTED, message.clone()));
    let phase = pass.first_phase(entry.action);
    pass.go(phase, message)
}

fn move_event(mut pass: Pass<'_>, event_id: String, to: jiff::Timestamp) -> MaintenanceDecision {
    let observed = pass.observed;
    pass.decision.waiting = observed.entry.map_or_else(Vec::new, |entry| entry.waits_on.clone());
    let Some(instance) = observed.instance() else {
        return pass.wait(reason::CLOUD_UNKNOWN, "the instance is not seen, so nothing is moved");
    };
    let known = pass.status.event_move.clone();
    let attempt = match known.filter(|known| known.event_id == event_id) {
        Some(known)
            if known.requested_at.0.checked_add(MOVE_VISIBLE).is_ok_and(|at| at > pass.now) =>
        {
            pass.recheck_in(MOVE_VISIBLE);
            return pass.finish();
        }
        Some(known) if known.attempt >= MOVES_MAX => {
            pass.recheck_in(MOVE_VISIBLE);
            return pass.finish();
        }
        Some(known) => known.attempt.saturating_add(1),
        None => 1,
    };
    let instance: InstanceId = instance.id.clone();
    pass.status.event_move = Some(EventMove {
        attempt,
        event_id: event_id.clone(),
        failure: None,
        requested_at: to_seconds(pass.now),
        to: to_seconds(to),
    });
    let words = format!("the provider is asked to move event {event_id} to {to}");
    let now = pass.now;
    record::note(&mut pass.status, &words, now);
    pass.announce(Announcement::normal(event::MAINTENANCE_EVENT_MOVED, words));
    pass.do_step(Step::MoveEvent { instance, event_id, to });
    pass.recheck_in(MOVE_VISIBLE);
    pass.finish()
}
