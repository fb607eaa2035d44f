//! How the answer of the cloud to a step becomes part of the record.

use jiff::Timestamp;
use machinist_api::{MachineMaintenanceStatus, condition::to_seconds};

use super::{record, step::Step};
use crate::cloud::{CloudFailure, ErrorClass};

/// More attempts would ask for the same capacity that is not there.
const NO_MORE_ATTEMPTS: i32 = i32::MAX;

/// The cloud took the request. To be stored before anything else is decided.
pub fn accepted(
    status: &MachineMaintenanceStatus,
    step: &Step,
    now: Timestamp,
) -> MachineMaintenanceStatus {
    let mut status = status.clone();
    if let Step::MoveEvent { .. } = step {
        return status;
    }
    if let Some(effect) = status.work.as_mut().and_then(|work| work.effect.as_mut()) {
        effect.requested_at = Some(to_seconds(now));
        effect.failure = None;
    }
    status
}

/// The cloud refused, or did not answer.
pub fn refused(
    status: &MachineMaintenanceStatus,
    step: &Step,
    failure: &CloudFailure,
    now: Timestamp,
) -> MachineMaintenanceStatus {
    let mut status = status.clone();
    let words = format!("{} failed: {}", step.name(), failure.message);
    if let Step::MoveEvent { .. } = step {
        if let Some(event_move) = &mut status.event_move {
            event_move.failure = Some(failure.message.clone());
        }
        record::note(&mut status, words, now);
        return status;
    }
    let may_have_happened = matches!(failure.class, ErrorClass::Transient | ErrorClass::Unknown);
    if let Some(effect) = status.work.as_mut().and_then(|work| work.effect.as_mut()) {
        if may_have_happened && matches!(step, Step::Reboot(_)) {
            // It is waited for as if it had been taken: a second one would be worse.
            effect.requested_at = Some(to_seconds(now));
        } else {
            effect.since = to_seconds(now);
            effect.failure = Some(failure.message.clone());
        }
        if failure.class == ErrorClass::InsufficientCapacity
            || failure.class == ErrorClass::InvalidConfiguration
        {
            effect.attempt = NO_MORE_ATTEMPTS;
        }
    }
    record::note(&mut status, words, now);
    status
}
