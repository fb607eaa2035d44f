//! What people want done about drift: annotations on the Machine, or else on its pool.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use machinist_api::{
    Machine,
    names::{annotation, label},
};

use crate::{decision::FieldError, disruption::Pool};

/// How long a stopped instance is left alone: a person may be about to start it again.
const USUAL_GRACE: SignedDuration = SignedDuration::from_mins(5);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnStopped {
    Start,
    Replace,
    Report,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnTerminated {
    Replace,
    Report,
}

/// What is to be done for one Machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriftPolicy {
    pub on_stopped: OnStopped,
    pub on_terminated: OnTerminated,
    pub grace: SignedDuration,
    /// Why nothing may be done by our own choice, where the Machine says so.
    pub hold: Option<String>,
    pub approved_until: Option<Timestamp>,
}

/// What a MaintenancePolicy says, for machines whose annotations and pool say nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriftDefaults {
    pub on_stopped: Option<OnStopped>,
    pub on_terminated: Option<OnTerminated>,
    pub grace: Option<SignedDuration>,
}

impl DriftPolicy {
    /// Reads the policy of a machine without a MaintenancePolicy.
    pub fn read(
        machine: &Machine,
        pool: Option<&Pool>,
        is_control_plane: bool,
    ) -> Result<Self, FieldError> {
        Self::read_with(machine, pool, is_control_plane, &DriftDefaults::default())
    }

    /// Reads the policy. A value that cannot be read is an error that names its field: then nothing
    /// is done but said.
    pub fn read_with(
        machine: &Machine,
        pool: Option<&Pool>,
        is_control_plane: bool,
        defaults: &DriftDefaults,
    ) -> Result<Self, FieldError> {
        let empty = BTreeMap::new();
        let own = machine.metadata.annotations.as_ref().unwrap_or(&empty);
        let of_pool = pool.map_or(&empty, |pool| &pool.annotations);
        let value = |key: &'static str| {
            let path = |of: &str| format!("{of}metadata.annotations[{key}]");
            let on_pool = || {
                let name = pool.map_or("", |pool| pool.name.as_str());
                of_pool.get(key).map(|text| (path(&format!("machineset {name}: ")), text.as_str()))
            };
            own.get(key).map(|text| (path(""), text.as_str())).or_else(on_pool)
        };
        let on_stopped = match value(annotation::ON_STOPPED) {
            None => match defaults.on_stopped {
                Some(word) => word,
                // Starting a stopped member by itself could hurt a quorum that somebody is repairing.
                None if is_control_plane => OnStopped::Report,
                None => OnStopped::Start,
            },
            Some((_, "Start")) => OnStopped::Start,
            Some((_, "Replace")) => OnStopped::Replace,
            Some((_, "Report")) => OnStopped::Report,
            Some((path, other)) => return Err(unsupported(path, other, "Start, Replace, Report")),
        };
        let on_terminated = match value(annotation::ON_TERMINATED) {
            None => defaults.on_terminated.unwrap_or(OnTerminated::Replace),
            Some((_, "Replace")) => OnTerminated::Replace,
            Some((_, "Report")) => OnTerminated::Report,
            Some((path, other)) => return Err(unsupported(path, other, "Replace, Report")),
        };
        let grace = match value(annotation::STOPPED_GRACE_PERIOD) {
            None => defaults.grace.unwrap_or(USUAL_GRACE),
            Some((path, text)) => text
                .parse::<SignedDuration>()
                .ok()
                .filter(|grace| !grace.is_negative())
                .ok_or_else(|| {
                    let problem = format!("Invalid value: {text:?}: must be a duration such as 5m");
                    FieldError::new(path, problem)
                })?,
        };
        let approved_until = match value(annotation::APPROVED_UNTIL) {
            None => None,
            Some((path, text)) => Some(text.parse::<Timestamp>().map_err(|_| {
                let problem =
                    format!("Invalid value: {text:?}: must be a time such as 2026-01-01T12:00:00Z");
                FieldError::new(path, problem)
            })?),
        };
        let hold = own.get(annotation::HOLD).cloned();
        Ok(Self { on_stopped, on_terminated, grace, hold, approved_until })
    }
}

/// What the hold of a maintenance of ours begins with; the uid of its object follows.
const MAINTENANCE_HOLD: &str = "maintenance ";

/// The value of the hold that the maintenance with this uid puts on its Machine.
pub fn maintenance_hold(uid: &str) -> String {
    format!("{MAINTENANCE_HOLD}{uid}")
}

/// Whether a maintenance of ours works on the Machine: what it does to the instance is no drift. A
/// hold that a person wrote may begin with the same word, but goes on with more than a uid.
pub fn is_under_maintenance(machine: &Machine) -> bool {
    let annotations = machine.metadata.annotations.as_ref();
    let hold = annotations.and_then(|all| all.get(annotation::HOLD));
    hold.is_some_and(|hold| is_hold_of_maintenance(hold))
}

/// Whether the value of a hold is one that a maintenance of ours writes.
pub fn is_hold_of_maintenance(hold: &str) -> bool {
    hold.strip_prefix(MAINTENANCE_HOLD)
        .is_some_and(|uid| !uid.is_empty() && !uid.contains(char::is_whitespace))
}

/// Whether a Machine is of the control plane, by its role.
pub fn has_control_plane_role(machine: &Machine) -> bool {
    let role = machine.metadata.labels.as_ref().and_then(|labels| labels.get(label::MACHINE_ROLE));
    role.is_some_and(|role| matches!(role.as_str(), "master" | "control-plane"))
}

fn unsupported(path: String, value: &str, supported: &str) -> FieldError {
    FieldError::new(path, format!("Unsupported value: {value:?}: supported values: {supported}"))
}
