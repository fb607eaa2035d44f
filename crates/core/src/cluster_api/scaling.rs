//! How do a set and a deployment say that they grow, shrink, heal or go?
//!
//! Both have the same conditions with the same reasons; only what they call themselves differs.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use machinist_api::cluster_api::{
    Machine,
    condition::{self, FALSE, TRUE, UNKNOWN},
    names::{condition_type, reason},
};

use super::{
    aggregate::{self, listed, plural},
    identity::is_deleting,
};

/// After so long a deletion is called stale.
const STALE_AFTER: SignedDuration = SignedDuration::from_mins(15);
/// For so long a new Machine may be without the condition UpToDate: longer than nothing is said of it at all.
const UP_TO_DATE_GRACE: SignedDuration = SignedDuration::from_secs(15);

/// `blocked` says what is in the way, one sentence each.
pub fn scaling_up(
    desired: Option<i32>,
    current: i32,
    blocked: &[String],
    now: Timestamp,
) -> Condition {
    let type_ = condition_type::SCALING_UP;
    let Some(desired) = desired else {
        let words = "Waiting for spec.replicas set";
        return condition::new(type_, UNKNOWN, reason::WAITING_FOR_REPLICAS_SET, words, now);
    };
    let because = || blocked.iter().map(|one| format!("\n* {one}")).collect::<String>();
    if current >= desired {
        let words = match blocked.is_empty() || desired == 0 {
            true => String::new(),
            false => format!("Scaling up would be blocked because:{}", because()),
        };
        return condition::new(type_, FALSE, reason::NOT_SCALING_UP, words, now);
    }
    let mut words = format!("Scaling up from {current} to {desired} replicas");
    if !blocked.is_empty() {
        words.push_str(&format!(" is blocked because:{}", because()));
    }
    condition::new(type_, TRUE, reason::SCALING_UP, words, now)
}

pub fn scaling_down(
    desired: Option<i32>,
    current: i32,
    machines: &[&Machine],
    now: Timestamp,
) -> Condition {
    let type_ = condition_type::SCALING_DOWN;
    let Some(desired) = desired else {
        let words = "Waiting for spec.replicas set";
        return condition::new(type_, UNKNOWN, reason::WAITING_FOR_REPLICAS_SET, words, now);
    };
    if current <= desired {
        return condition::new(type_, FALSE, reason::NOT_SCALING_DOWN, "", now);
    }
    let mut words = format!("Scaling down from {current} to {desired} replicas");
    if let Some(stale) = stale(machines, now) {
        words.push_str(&format!("\n* {stale}"));
    }
    condition::new(type_, TRUE, reason::SCALING_DOWN, words, now)
}

/// Which Machines have been going for long.
fn stale(machines: &[&Machine], now: Timestamp) -> Option<String> {
    let names: Vec<&str> = machines
        .iter()
        .filter(|machine| {
            let since = machine.metadata.deletion_timestamp.as_ref();
            since.is_some_and(|at| now.duration_since(at.0) > STALE_AFTER)
        })
        .filter_map(|machine| machine.metadata.name.as_deref())
        .collect();
    let (who, verb) = (plural("Machine", names.len()), if names.len() == 1 { "is" } else { "are" });
    (!names.is_empty())
        .then(|| format!("{who} {} {verb} in deletion since more than 15m", listed(&names)))
}

pub fn machines_ready(machines: &[&Machine], now: Timestamp) -> Condition {
    let type_ = condition_type::MACHINES_READY;
    if machines.is_empty() {
        return condition::new(type_, TRUE, reason::NO_REPLICAS, "", now);
    }
    let sum = aggregate::of_machines(machines, condition_type::READY);
    let reason = match sum.status {
        TRUE => reason::READY,
        FALSE => reason::NOT_READY,
        _ => reason::READY_UNKNOWN,
    };
    condition::new(type_, sum.status, reason, sum.message, now)
}

/// A Machine that was made a moment ago may be without the condition.
pub fn machines_up_to_date(machines: &[&Machine], now: Timestamp) -> Condition {
    let type_ = condition_type::MACHINES_UP_TO_DATE;
    let told: Vec<&Machine> =
        machines.iter().copied().filter(|machine| !is_too_new(machine, now)).collect();
    if told.is_empty() {
        return condition::new(type_, TRUE, reason::NO_REPLICAS, "", now);
    }
    let sum = aggregate::of_machines(&told, condition_type::UP_TO_DATE);
    let reason = match sum.status {
        TRUE => reason::UP_TO_DATE,
        FALSE => reason::NOT_UP_TO_DATE,
        _ => reason::UP_TO_DATE_UNKNOWN,
    };
    condition::new(type_, sum.status, reason, sum.message, now)
}

fn is_too_new(machine: &Machine, now: Timestamp) -> bool {
    let created = machine.metadata.creation_timestamp.as_ref();
    let is_new = created.is_none_or(|at| now.duration_since(at.0) < UP_TO_DATE_GRACE);
    is_new && condition::find(conditions_of(machine), condition_type::UP_TO_DATE).is_none()
}

/// Whether a health check found a Machine broken and its owner is to act.
pub fn is_to_be_remediated(machine: &Machine) -> bool {
    let conditions = conditions_of(machine);
    condition::is_false(conditions, condition_type::HEALTH_CHECK_SUCCEEDED)
        && condition::is_false(conditions, condition_type::OWNER_REMEDIATED)
}

pub fn is_unhealthy(machine: &Machine) -> bool {
    condition::is_false(conditions_of(machine), condition_type::HEALTH_CHECK_SUCCEEDED)
}

pub fn remediating(owner: &str, machines: &[&Machine], now: Timestamp) -> Condition {
    let type_ = condition_type::REMEDIATING;
    let (acting, others): (Vec<&Machine>, Vec<&Machine>) =
        machines.iter().copied().partition(|machine| is_to_be_remediated(machine));
    if !acting.is_empty() {
        let sum = aggregate::of_machines(&acting, condition_type::OWNER_REMEDIATED);
        return condition::new(type_, TRUE, reason::REMEDIATING, sum.message, now);
    }
    let names: Vec<&str> = others
        .iter()
        .filter(|machine| is_unhealthy(machine))
        .filter_map(|machine| machine.metadata.name.as_deref())
        .collect();
    let words = match names.len() {
        0 => String::new(),
        count => format!(
            "{} {} {} not healthy (not to be remediated by {owner})",
            plural("Machine", count),
            listed(&names),
            if count == 1 { "is" } else { "are" }
        ),
    };
    condition::new(type_, FALSE, reason::NOT_REMEDIATING, words, now)
}

pub fn deleting(is_going: bool, machines: &[&Machine], now: Timestamp) -> Condition {
    let type_ = condition_type::DELETING;
    if !is_going {
        return condition::new(type_, FALSE, reason::NOT_DELETING, "", now);
    }
    let words = match machines.len() {
        0 => "Deletion completed".to_owned(),
        count => {
            let mut words = format!("Deleting {count} {}", plural("Machine", count));
            if let Some(stale) = stale(machines, now) {
                words.push_str(&format!("\n* {stale}"));
            }
            words
        }
    };
    condition::new(type_, TRUE, reason::DELETING, words, now)
}

/// When one of these conditions changes by the passing of time alone.
pub fn next_change(machines: &[&Machine], now: Timestamp) -> Option<Timestamp> {
    let becomes_stale = machines.iter().filter_map(|machine| {
        let at = machine.metadata.deletion_timestamp.as_ref()?.0;
        at.checked_add(STALE_AFTER).and_then(|at| at.checked_add(SignedDuration::from_secs(1))).ok()
    });
    let is_told =
        machines.iter().filter(|machine| is_too_new(machine, now)).filter_map(|machine| {
            let at = machine.metadata.creation_timestamp.as_ref()?.0;
            at.checked_add(UP_TO_DATE_GRACE).ok()
        });
    becomes_stale.chain(is_told).filter(|at| *at > now).min()
}

/// How many of these Machines are ready, available and up to date, and which versions they run. One that is being changed
/// in place is none of these.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub replicas: i32,
    pub ready: i32,
    pub available: i32,
    pub up_to_date: i32,
    pub versions: Vec<machinist_api::cluster_api::StatusVersion>,
}

pub fn count(machines: &[&Machine]) -> Counts {
    let mut counts = Counts { replicas: length(machines), ..Counts::default() };
    let mut versions = std::collections::BTreeMap::<String, i32>::new();
    for machine in machines {
        let node = machine.status.as_ref().and_then(|status| status.node_info.as_ref());
        let runs = node.map(|info| info.kubelet_version.clone()).filter(|known| !known.is_empty());
        if let Some(version) = runs.or_else(|| machine.spec.version.clone()) {
            *versions.entry(version).or_default() += 1;
        }
        if is_updating(machine) {
            continue;
        }
        let conditions = conditions_of(machine);
        let holds = |type_| i32::from(condition::is_true(conditions, type_));
        counts.ready += holds(condition_type::READY);
        counts.available += holds(condition_type::AVAILABLE);
        counts.up_to_date += holds(condition_type::UP_TO_DATE);
    }
    counts.versions = versions
        .into_iter()
        .map(|(version, replicas)| machinist_api::cluster_api::StatusVersion {
            version,
            replicas: Some(replicas),
        })
        .collect();
    counts
}

/// Whether an extension changes a Machine in place.
pub fn is_updating(machine: &Machine) -> bool {
    super::identity::annotation(
        &machine.metadata,
        machinist_api::cluster_api::names::annotation::UPDATE_IN_PROGRESS,
    )
    .is_some()
}

pub fn conditions_of(machine: &Machine) -> &[Condition] {
    machine.status.as_ref().map_or(&[], |status| &status.conditions)
}

pub fn length<T>(items: &[T]) -> i32 {
    i32::try_from(items.len()).unwrap_or(i32::MAX)
}

/// Whether a Machine is not on its way out.
pub fn is_live(machine: &Machine) -> bool {
    !is_deleting(&machine.metadata)
}
