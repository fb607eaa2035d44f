//! Which Machines go first when a pool shrinks.
//!
//! The priorities are the peer's. Where they are equal, what was chosen by somebody goes first, then
//! age decides where the policy asks for it (a float cannot tell seconds apart after years), then the
//! name: the same question always has the same answer.

use std::cmp::Ordering;

use jiff::Timestamp;
use machinist_api::{Machine, names::annotation};

/// Age at which the scale flattens: a hundred days in seconds, the peer's constant.
const AGE_SCALE_SECONDS: f64 = 8_640_000.0;

/// The `count` Machines to delete, first to go first.
pub fn first_to_go<'a>(
    machines: &[&'a Machine],
    count: usize,
    policy: Option<&str>,
    now: Timestamp,
) -> Vec<&'a Machine> {
    let mut ordered = machines.to_vec();
    ordered.sort_by(|left, right| {
        priority(right, policy, now)
            .total_cmp(&priority(left, policy, now))
            .then_with(|| is_chosen(right).cmp(&is_chosen(left)))
            .then_with(|| by_creation(left, right, policy))
            .then_with(|| left.metadata.name.cmp(&right.metadata.name))
    });
    ordered.truncate(count);
    ordered
}

/// Higher goes first.
fn priority(machine: &Machine, policy: Option<&str>, now: Timestamp) -> f64 {
    if machine.metadata.deletion_timestamp.is_some() {
        return 100.0;
    }
    let is_chosen = is_chosen(machine);
    match policy {
        Some("Oldest" | "Newest") if is_chosen => 100.0,
        Some("Oldest") => by_age(machine, now),
        Some("Newest") => 100.0 - by_age(machine, now),
        _ if is_chosen => 50.0,
        _ if machine.status.as_ref().is_none_or(|status| status.node_ref.is_none()) => 40.0,
        _ => 20.0,
    }
}

fn by_age(machine: &Machine, now: Timestamp) -> f64 {
    let Some(created) = machine.metadata.creation_timestamp.as_ref() else { return 0.0 };
    let age = now.duration_since(created.0).as_secs_f64();
    if age <= 0.0 { 0.0 } else { 50.0 * (1.0 - (-age / AGE_SCALE_SECONDS).exp()) }
}

/// One without a time counts as new, as in its priority.
fn by_creation(left: &Machine, right: &Machine, policy: Option<&str>) -> Ordering {
    let created = |machine: &Machine| {
        machine.metadata.creation_timestamp.as_ref().map_or(Timestamp::MAX, |at| at.0)
    };
    match policy {
        Some("Oldest") => created(left).cmp(&created(right)),
        Some("Newest") => created(right).cmp(&created(left)),
        _ => Ordering::Equal,
    }
}

/// Whether somebody asked for it to go, or it is broken.
fn is_chosen(machine: &Machine) -> bool {
    is_marked(machine) || has_error(machine)
}

fn is_marked(machine: &Machine) -> bool {
    let annotations = machine.metadata.annotations.as_ref();
    [annotation::DELETE_MACHINE, annotation::CLUSTER_API_DELETE_MACHINE].iter().any(|key| {
        annotations.and_then(|known| known.get(*key)).is_some_and(|value| !value.is_empty())
    })
}

fn has_error(machine: &Machine) -> bool {
    machine
        .status
        .as_ref()
        .is_some_and(|status| status.error_reason.is_some() || status.error_message.is_some())
}
