//! Whether another API owns an object during a migration, and how that is said on it.

use jiff::Timestamp;
use machinist_api::{
    AuthoritativeApi, Condition, ConditionSeverity, condition,
    names::{condition_type, reason},
};

use crate::decision::Wait;

/// Sets the `Paused` condition for the API that owns the object; tells whether it changed.
pub fn set_condition(
    conditions: &mut Vec<Condition>,
    owner: AuthoritativeApi,
    now: Timestamp,
) -> bool {
    let condition = match owner {
        AuthoritativeApi::MachineAPI => Condition::fails(
            condition_type::PAUSED,
            ConditionSeverity::Info,
            reason::AUTHORITATIVE_API_MACHINE_API,
            message(owner),
            now,
        ),
        AuthoritativeApi::ClusterAPI | AuthoritativeApi::Migrating => {
            Condition::holds(condition_type::PAUSED, now)
                .with_reason(reason::AUTHORITATIVE_API_NOT_MACHINE_API)
                .with_message(message(owner))
        }
    };
    let before = conditions.clone();
    condition::set(conditions, condition);
    before != *conditions
}

/// Why nothing happens to an object that another API owns.
pub fn wait(owner: AuthoritativeApi) -> Wait {
    Wait::on(reason::AUTHORITATIVE_API_NOT_MACHINE_API, message(owner))
}

fn message(owner: AuthoritativeApi) -> String {
    format!("The AuthoritativeAPI status is set to '{}'", owner.as_str())
}
