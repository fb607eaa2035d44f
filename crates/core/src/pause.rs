//! Whether another API owns an object during a migration, and how that is said on it.
//!
//! Where OpenShift says that its migration is off, nothing is said of it on objects. One whose status
//! names another API is left alone all the same: somebody was there before.

use std::sync::Arc;

use jiff::Timestamp;
use machinist_api::{
    AuthoritativeApi, Condition, ConditionSeverity, Machine, MachineSet, condition,
    names::{condition_type, reason},
};

use crate::decision::Wait;

/// Whether the fields of the migration are looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Migration {
    /// They are, where the objects have them: the feature is on, or nobody says.
    #[default]
    Honoured,
    /// OpenShift says that the feature is off.
    Off,
}

/// A Machine as the controllers see it: without the fields of a migration that is off.
pub fn machine_as_seen(machine: Arc<Machine>, migration: Migration) -> Arc<Machine> {
    let status = machine.status.as_ref().and_then(|status| status.authoritative_api);
    if !is_hidden(machine.spec.authoritative_api, status, migration) {
        return machine;
    }
    let mut seen = Arc::unwrap_or_clone(machine);
    seen.spec.authoritative_api = None;
    if let Some(status) = &mut seen.status {
        status.authoritative_api = None;
    }
    Arc::new(seen)
}

/// The same for a MachineSet.
pub fn set_as_seen(set: Arc<MachineSet>, migration: Migration) -> Arc<MachineSet> {
    let status = set.status.as_ref().and_then(|status| status.authoritative_api);
    if !is_hidden(set.spec.authoritative_api, status, migration) {
        return set;
    }
    let mut seen = Arc::unwrap_or_clone(set);
    seen.spec.authoritative_api = None;
    if let Some(status) = &mut seen.status {
        status.authoritative_api = None;
    }
    Arc::new(seen)
}

fn is_hidden(
    wanted: Option<AuthoritativeApi>,
    owner: Option<AuthoritativeApi>,
    migration: Migration,
) -> bool {
    let is_anothers = owner.is_some_and(|owner| {
        matches!(owner, AuthoritativeApi::ClusterAPI | AuthoritativeApi::Migrating)
    });
    migration == Migration::Off && !is_anothers && (wanted.is_some() || owner.is_some())
}

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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn machine(spec: Option<&str>, status: Option<&str>) -> Arc<Machine> {
        let field = |value: Option<&str>| {
            value.map_or_else(|| json!({}), |api| json!({ "authoritativeAPI": api }))
        };
        let mut object: Value =
            json!({ "metadata": { "name": "m" }, "spec": field(spec), "status": field(status) });
        object["spec"]["providerSpec"] = json!({});
        Arc::new(serde_json::from_value(object).unwrap())
    }

    fn set(spec: Option<&str>, status: Option<&str>) -> Arc<MachineSet> {
        let field = |value: Option<&str>| {
            value.map_or_else(|| json!({}), |api| json!({ "authoritativeAPI": api }))
        };
        let mut object: Value =
            json!({ "metadata": { "name": "s" }, "spec": field(spec), "status": field(status) });
        object["spec"]["selector"] = json!({});
        object["spec"]["template"] = json!({});
        Arc::new(serde_json::from_value(object).unwrap())
    }

    #[test]
    fn a_migration_that_is_off_is_not_seen_but_another_owner_is() {
        let api = Some(AuthoritativeApi::MachineAPI);
        let table = [
            (None, None, Migration::Off, (None, None)),
            (Some("MachineAPI"), None, Migration::Off, (None, None)),
            (Some("MachineAPI"), Some("MachineAPI"), Migration::Off, (None, None)),
            (Some("ClusterAPI"), Some("MachineAPI"), Migration::Off, (None, None)),
            (
                Some("MachineAPI"),
                Some("ClusterAPI"),
                Migration::Off,
                (api, Some(AuthoritativeApi::ClusterAPI)),
            ),
            (
                Some("MachineAPI"),
                Some("Migrating"),
                Migration::Off,
                (api, Some(AuthoritativeApi::Migrating)),
            ),
            (Some("MachineAPI"), Some("MachineAPI"), Migration::Honoured, (api, api)),
            (Some("MachineAPI"), None, Migration::Honoured, (api, None)),
        ];
        for (spec, status, migration, expected) in table {
            let seen = machine_as_seen(machine(spec, status), migration);
            let of_status = seen.status.as_ref().and_then(|status| status.authoritative_api);
            assert_eq!((seen.spec.authoritative_api, of_status), expected, "{spec:?} {status:?}");
            let seen = set_as_seen(set(spec, status), migration);
            let of_status = seen.status.as_ref().and_then(|status| status.authoritative_api);
            assert_eq!((seen.spec.authoritative_api, of_status), expected, "{spec:?} {status:?}");
        }
    }
}
