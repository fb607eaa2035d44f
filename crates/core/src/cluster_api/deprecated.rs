//! What do readers of the version before find in `status.deprecated.v1beta1` of sets, deployments and checked Machines?
//!
//! There a condition has a severity, and sums are made by a rule of their own: the weightiest condition speaks for all.

use jiff::Timestamp;
use machinist_api::{
    Condition, ConditionSeverity, ConditionStatus,
    cluster_api::{
        Machine, MachineSet, MachineStatus,
        names::{
            condition_type::{
                AVAILABLE, HEALTH_CHECK_SUCCEEDED, MACHINES_READY, OWNER_REMEDIATED, READY,
                V1BETA1_MACHINE_SET_READY, V1BETA1_MACHINES_CREATED, V1BETA1_RESIZED,
            },
            reason,
        },
    },
    condition,
};

const SCALING_UP: &str = "ScalingUp";
const SCALING_DOWN: &str = "ScalingDown";
const WAITING_FOR_AVAILABLE_MACHINES: &str = "WaitingForAvailableMachines";
const WAITING_FOR_MACHINE_SET: &str = "WaitingForMachineSet";
const HAS_REMEDIATE_MACHINE_ANNOTATION: &str = "HasRemediateMachineAnnotation";
const NODE_NOT_FOUND: &str = "NodeNotFound";

/// Why a set makes no more Machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hindrance {
    Template,
    Preflight,
    Failure,
}

impl Hindrance {
    const fn reason(self) -> &'static str {
        match self {
            Self::Template => "InfrastructureTemplateCloningFailed",
            Self::Preflight => "PreflightCheckFailed",
            Self::Failure => "MachineCreationFailed",
        }
    }
}

/// How many Machines a set has, and wants.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub current: i32,
    pub desired: i32,
    pub ready: i32,
}

pub fn of_set(
    conditions: &mut Vec<Condition>,
    size: Size,
    members: &[&Machine],
    hindrance: Option<(Hindrance, &str)>,
    now: Timestamp,
) {
    let Size { current, desired, ready } = size;
    let resizing = |reason, what: &str| {
        let words = format!("Scaling {what} MachineSet to {desired} replicas (actual {current})");
        Condition::fails(V1BETA1_RESIZED, ConditionSeverity::Warning, reason, words, now)
    };
    if current < desired {
        condition::set(conditions, resizing(SCALING_UP, "up"));
    } else if current > desired {
        condition::set(conditions, resizing(SCALING_DOWN, "down"));
    } else if ready == current {
        condition::set(conditions, Condition::holds(V1BETA1_RESIZED, now));
    }
    match hindrance {
        Some((hindrance, words)) => {
            let severity = ConditionSeverity::Error;
            let reason = hindrance.reason();
            let new = Condition::fails(V1BETA1_MACHINES_CREATED, severity, reason, words, now);
            condition::set(conditions, new);
        }
        None if current >= desired => {
            condition::set(conditions, Condition::holds(V1BETA1_MACHINES_CREATED, now));
        }
        // They are being made.
        None => {}
    }
    condition::set(conditions, machines_ready(members, now));
    summed_up(conditions, &[V1BETA1_MACHINES_CREATED, V1BETA1_RESIZED, MACHINES_READY], now);
}

/// The weightiest word of all Machines, with the one whose it is.
fn machines_ready(members: &[&Machine], now: Timestamp) -> Condition {
    let told: Vec<(&Machine, &Condition)> = members
        .iter()
        .filter_map(|machine| Some((*machine, condition::find(told_before(machine), READY)?)))
        .collect();
    let first = told.iter().min_by_key(|(_, one)| weight(one));
    let Some((machine, bad)) = first.filter(|(_, one)| one.status != ConditionStatus::True) else {
        return Condition::holds(MACHINES_READY, now);
    };
    let ready = told.iter().filter(|(_, one)| one.status == ConditionStatus::True).count();
    let name = machine.metadata.name.as_deref().unwrap_or_default();
    let reason = bad.reason.as_deref().unwrap_or_default();
    Condition {
        type_: MACHINES_READY.to_owned(),
        last_transition_time: condition::to_seconds(now),
        reason: Some(format!("{reason} @ Machine/{name}")),
        message: Some(format!("{ready} of {} completed", members.len())),
        severity: bad.severity,
        status: bad.status,
    }
}

pub fn of_deployment(
    conditions: &mut Vec<Condition>,
    available: i32,
    least: i32,
    current: Option<&MachineSet>,
    now: Timestamp,
) {
    let new = match available >= least {
        true => Condition::holds(AVAILABLE, now),
        false => {
            let words = format!(
                "Minimum availability requires {least} replicas, current {available} available"
            );
            let severity = ConditionSeverity::Warning;
            Condition::fails(AVAILABLE, severity, WAITING_FOR_AVAILABLE_MACHINES, words, now)
        }
    };
    condition::set(conditions, new);
    let waiting = |words: Option<&str>| Condition {
        message: words.map(str::to_owned),
        ..Condition::fails(
            V1BETA1_MACHINE_SET_READY,
            ConditionSeverity::Info,
            WAITING_FOR_MACHINE_SET,
            "",
            now,
        )
    };
    let new = match current {
        None => waiting(Some("MachineSet not found")),
        Some(set) => {
            let status = set.status.as_ref().and_then(|status| status.deprecated.as_ref());
            let told = status.and_then(|status| status.v1beta1.as_ref());
            let told = told.and_then(|told| condition::find(&told.conditions, READY));
            told.map_or_else(
                || waiting(None),
                |told| Condition { type_: V1BETA1_MACHINE_SET_READY.to_owned(), ..told.clone() },
            )
        }
    };
    condition::set(conditions, new);
    summed_up(conditions, &[AVAILABLE], now);
}

/// What a health check says on a Machine.
pub fn checked(status: &mut MachineStatus, failed: Option<(&str, &str)>, now: Timestamp) {
    let new = match failed {
        None => Condition::holds(HEALTH_CHECK_SUCCEEDED, now),
        Some((why, words)) => {
            let (why, words) = match why {
                reason::HAS_REMEDIATE_ANNOTATION => (
                    HAS_REMEDIATE_MACHINE_ANNOTATION,
                    Some("Marked for remediation via remediate-machine annotation".to_owned()),
                ),
                reason::NODE_DELETED => (NODE_NOT_FOUND, None),
                why => {
                    let lines = words.lines().filter_map(|line| line.strip_prefix("  * "));
                    (why, Some(lines.collect::<Vec<_>>().join("; ")))
                }
            };
            let severity = ConditionSeverity::Warning;
            let failed = Condition::fails(HEALTH_CHECK_SUCCEEDED, severity, why, "", now);
            Condition { message: words, ..failed }
        }
    };
    put(conditions_of(status), new);
}

/// Whether the owner has replaced a Machine: `None` takes the word back, words say why not yet.
pub fn owner_remediated(status: &mut MachineStatus, waits: Option<Option<&str>>, now: Timestamp) {
    let conditions = conditions_of(status);
    let new = match waits {
        None => return conditions.retain(|one| one.type_ != OWNER_REMEDIATED),
        Some(None) => Condition::holds(OWNER_REMEDIATED, now),
        Some(Some(words)) => {
            let (severity, why) = (ConditionSeverity::Warning, reason::WAITING_FOR_REMEDIATION);
            let waits = Condition::fails(OWNER_REMEDIATED, severity, why, words, now);
            Condition { message: waits.message.filter(|words| !words.is_empty()), ..waits }
        }
    };
    put(conditions, new);
}

fn conditions_of(status: &mut MachineStatus) -> &mut Vec<Condition> {
    let deprecated = status.deprecated.get_or_insert_default();
    &mut deprecated.v1beta1.get_or_insert_default().conditions
}

fn told_before(machine: &Machine) -> &[Condition] {
    let status = machine.status.as_ref().and_then(|status| status.deprecated.as_ref());
    status.and_then(|status| status.v1beta1.as_ref()).map_or(&[], |told| &told.conditions)
}

fn summed_up(conditions: &mut Vec<Condition>, order: &[&str], now: Timestamp) {
    let found = order.iter().filter_map(|type_| condition::find(conditions, type_));
    if let Some(sum) = sum(&found.collect::<Vec<_>>(), now) {
        condition::set(conditions, sum);
    }
    in_order(conditions);
}

/// Sets one and keeps the order: another would be put right by the Machine's own controller, without end.
fn put(conditions: &mut Vec<Condition>, new: Condition) {
    condition::set(conditions, new);
    in_order(conditions);
}

/// As Cluster API has it: the sum first.
pub(super) fn in_order(conditions: &mut [Condition]) {
    conditions.sort_by_key(|one| (one.type_ != READY, one.type_.clone()));
}

/// What Ready says of these, the most important first.
pub(super) fn sum(found: &[&Condition], now: Timestamp) -> Option<Condition> {
    let first = found.iter().min_by_key(|one| weight(one))?;
    if first.status == ConditionStatus::True {
        return Some(Condition::holds(READY, now));
    }
    Some(Condition {
        type_: READY.to_owned(),
        last_transition_time: condition::to_seconds(now),
        ..(*first).clone()
    })
}

fn weight(one: &Condition) -> u8 {
    match (one.status, one.severity) {
        (ConditionStatus::False, Some(ConditionSeverity::Error)) => 0,
        (ConditionStatus::False, Some(ConditionSeverity::Warning)) => 1,
        (ConditionStatus::False, _) => 2,
        (ConditionStatus::True, _) => 3,
        (ConditionStatus::Unknown, _) => 4,
    }
}

#[cfg(test)]
#[path = "deprecated_tests.rs"]
mod tests;
