//! How the record of a maintenance is kept: its phase, its timeline and the history of earlier ones,
//! all of them bounded.

use jiff::Timestamp;
use machinist_api::{
    Condition, ConditionSeverity, MachineMaintenanceStatus, MaintenanceHistoryEntry,
    MaintenancePhase, MaintenancePlan, MaintenanceReasonKind, MaintenanceReasonState,
    MaintenanceWait, TimelineEntry,
    condition::{self, to_seconds},
    names::condition_type,
};

use super::{
    plan::{PlanEntry, Standing},
    reason::OBJECT,
};

/// As the schema says.
pub const HISTORY_MAX: usize = 10;
pub const TIMELINE_MAX: usize = 50;
/// How a maintenance began is always kept.
const TIMELINE_FIRST: usize = 5;
/// As the schema says.
const WAITS_MAX: usize = 10;
/// The word of the original's design.
const IN_PROGRESS: &str = "in-progress";

/// The entry of the history that a finished record becomes.
pub fn as_history(status: &MachineMaintenanceStatus) -> Option<MaintenanceHistoryEntry> {
    let outcome = status.phase.filter(|phase| phase.is_over())?;
    let work = status.work.as_ref();
    Some(MaintenanceHistoryEntry {
        action: work
            .and_then(|work| work.action)
            .or_else(|| status.plan.as_ref().and_then(|plan| plan.action)),
        codes: status.reasons.iter().map(|reason| reason.code.clone()).collect(),
        event_ids: status.reasons.iter().map(|reason| reason.id.clone()).collect(),
        finished_at: status.finished_at.clone()?,
        machine_uid: status.machine_uid.clone(),
        message: status.message.clone(),
        outcome,
        pool: work.and_then(|work| work.pool.clone()),
        started_at: work.and_then(|work| work.started_at.clone()),
    })
}

/// A status with which a finished record starts anew: nothing but the history, the old record first.
pub fn started_anew(status: &MachineMaintenanceStatus) -> MachineMaintenanceStatus {
    let mut history: Vec<MaintenanceHistoryEntry> = as_history(status).into_iter().collect();
    history.extend(status.history.iter().cloned());
    history.truncate(HISTORY_MAX);
    MachineMaintenanceStatus {
        history,
        phase: Some(MaintenancePhase::Pending),
        ..MachineMaintenanceStatus::default()
    }
}

/// Adds an entry to the timeline, unless it says what the last one says.
pub fn note(status: &mut MachineMaintenanceStatus, message: impl Into<String>, now: Timestamp) {
    let message = message.into();
    if status.timeline.last().is_some_and(|last| last.message == message) {
        return;
    }
    let phase = status.phase.unwrap_or_default();
    status.timeline.push(TimelineEntry { message, phase, time: to_seconds(now) });
    if status.timeline.len() > TIMELINE_MAX {
        status.timeline.remove(TIMELINE_FIRST);
    }
}

/// Enters a phase and says why.
pub fn enter(
    status: &mut MachineMaintenanceStatus,
    phase: MaintenancePhase,
    message: impl Into<String>,
    now: Timestamp,
) {
    let message = message.into();
    if status.phase != Some(phase) {
        status.phase = Some(phase);
        if let Some(work) = &mut status.work {
            work.phase_since = Some(to_seconds(now));
        }
    }
    status.maintenance = phase.is_under_way().then(|| IN_PROGRESS.to_owned());
    status.finished_at =
        phase.is_over().then(|| status.finished_at.clone().unwrap_or_else(|| to_seconds(now)));
    answer_requests(status, phase);
    status.message = Some(message.clone());
    note(status, message, now);
}

/// What a person asked for by the object is answered with the end of the maintenance: it was done, or is
/// called off. The annotation of a Machine asks for as long as it is there.
fn answer_requests(status: &mut MachineMaintenanceStatus, phase: MaintenancePhase) {
    let answer = match phase {
        MaintenancePhase::Succeeded => MaintenanceReasonState::Completed,
        MaintenancePhase::Cancelled => MaintenanceReasonState::Cancelled,
        _ => return,
    };
    for reason in &mut status.reasons {
        let is_request = reason.kind == MaintenanceReasonKind::Request;
        let is_of_object = reason.sources.iter().any(|source| source == OBJECT);
        if is_request && is_of_object && reason.state == MaintenanceReasonState::Active {
            reason.state = answer;
        }
    }
}

/// Stores what is planned, and says it in the conditions.
pub fn set_plan(status: &mut MachineMaintenanceStatus, entry: &PlanEntry, now: Timestamp) {
    let waits = entry.waits_on.iter().take(WAITS_MAX).map(|wait| MaintenanceWait {
        message: wait.message.clone(),
        reason: wait.reason.to_owned(),
    });
    status.plan = Some(MaintenancePlan {
        action: Some(entry.action),
        deadline: entry.deadline.map(to_seconds),
        expected_seconds: Some(entry.expected.as_secs()),
        latest_safe_start: entry.latest_safe_start.map(to_seconds),
        policy: entry.policy.clone(),
        start: entry.start.map(to_seconds),
        waits_on: waits.collect(),
        why: Some(entry.why.clone()).filter(|why| !why.is_empty()),
        window: entry.window.clone(),
    });
    let sentence = entry.sentence();
    let scheduled = match (&entry.standing, entry.waits_on.first()) {
        (Standing::Blocked | Standing::LeftAlone, Some(wait)) => Condition::fails(
            condition_type::SCHEDULED,
            ConditionSeverity::Info,
            wait.reason,
            &sentence,
            now,
        ),
        _ => Condition::holds(condition_type::SCHEDULED, now).with_message(&sentence),
    };
    condition::set(&mut status.conditions, scheduled);
    let on_time = if entry.is_late {
        let reason = entry.waits_on.first().map_or("Late", |wait| wait.reason);
        Condition::fails(
            condition_type::ON_TIME,
            ConditionSeverity::Warning,
            reason,
            &sentence,
            now,
        )
    } else {
        Condition::holds(condition_type::ON_TIME, now)
    };
    condition::set(&mut status.conditions, on_time);
}

/// Stores what a maintenance that is under way waits on.
pub fn set_waits(status: &mut MachineMaintenanceStatus, waits: &[crate::decision::Wait]) {
    let plan = status.plan.get_or_insert_default();
    plan.waits_on = waits
        .iter()
        .take(WAITS_MAX)
        .map(|wait| MaintenanceWait {
            message: wait.message.clone(),
            reason: wait.reason.to_owned(),
        })
        .collect();
}
