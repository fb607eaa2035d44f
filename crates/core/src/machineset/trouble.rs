//! Why does a pool not have its size, or not its instances? Said on the pool, so that nobody has to
//! look through its Machines (D24).

use jiff::Timestamp;
use machinist_api::{
    Condition, ConditionSeverity, ConditionStatus, MachineSet, MachineSetStatus, condition,
    names::{condition_type, event, reason},
};

use super::observed::{Member, ScalingFailure};
use crate::{decision::Announcement, machine::status::NOT_CREATED};

/// What keeps a pool from what it wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble<'a> {
    /// Its Machines cannot be made or deleted.
    Scaling(&'a ScalingFailure),
    /// They are made, but the cloud launches no instances for them.
    Launching { reason: &'static str, message: String },
}

/// Why launches fail, as far as it does not heal within seconds: a cloud that wants to be asked more
/// slowly is no trouble.
const LAUNCH_REASONS: [&str; 5] = [
    reason::INVALID_CONFIGURATION,
    reason::QUOTA_EXCEEDED,
    reason::INSUFFICIENT_CAPACITY,
    reason::UNAUTHORIZED,
    reason::INSTANCE_NOT_CREATED,
];

/// The trouble of the first Machine, in the order given, that has any. One example is enough, and it
/// changes as seldom as possible.
pub fn of_launches(kept: &[&Member<'_>]) -> Option<Trouble<'static>> {
    kept.iter().find_map(|member| {
        let machine = member.machine;
        let conditions = &machine.status.as_ref()?.conditions;
        let exists = condition::find(conditions, condition_type::INSTANCE_EXISTS)
            .filter(|exists| exists.status == ConditionStatus::False)?;
        let reason =
            LAUNCH_REASONS.into_iter().find(|known| exists.reason.as_deref() == Some(known))?;
        let name = machine.metadata.name.as_deref().unwrap_or_default();
        // Without a cause its launch is only still to come.
        let words = exists.message.as_deref().filter(|words| *words != NOT_CREATED)?;
        Some(Trouble::Launching { reason, message: format!("machine {name}: {words}") })
    })
}

/// Says what is wrong, and takes it back when nothing is.
pub fn describe(
    mut status: MachineSetStatus,
    trouble: Option<&Trouble<'_>>,
    now: Timestamp,
) -> MachineSetStatus {
    status.error_reason = None;
    status.error_message = None;
    let condition = match trouble {
        Some(Trouble::Scaling(failure)) => {
            status.error_reason = Some(failure.error_reason.to_owned());
            status.error_message = Some(failure.message.clone());
            let (reason, message) = (failure.reason, &failure.message);
            fails(ConditionSeverity::Error, reason, message, now)
        }
        Some(Trouble::Launching { reason, message }) => {
            fails(ConditionSeverity::Warning, reason, message, now)
        }
        // A healthy set carries no condition of ours: one is written only to take a failure back.
        None if condition::find(&status.conditions, condition_type::SCALING).is_none() => {
            return status;
        }
        None => Condition::holds(condition_type::SCALING, now).with_reason(reason::AS_DESIRED),
    };
    condition::set(&mut status.conditions, condition);
    status
}

/// The event for a refusal: told when it is news, and not with every look at the pool.
pub fn announce(set: &MachineSet, refusal: &ScalingFailure) -> Option<Announcement> {
    let stored = set.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let is_told = condition::find(stored, condition_type::SCALING).is_some_and(|told| {
        told.status == ConditionStatus::False && told.reason.as_deref() == Some(refusal.reason)
    });
    (!is_told).then(|| Announcement::warning(event::RECONCILE_ERROR, &refusal.message))
}

fn fails(severity: ConditionSeverity, reason: &str, message: &str, now: Timestamp) -> Condition {
    Condition::fails(condition_type::SCALING, severity, reason, message, now)
}
