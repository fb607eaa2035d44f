//! Which Machines go first when a set of Cluster API shrinks?
//!
//! The OpenShift kind's order (`crate::machineset::delete_order`) has other steps: there an unhealthy Machine goes by its
//! error fields, here by its conditions, and age has another scale. What is the same: the name decides last, so that the
//! same question always has the same answer.

use jiff::Timestamp;
use machinist_api::cluster_api::{
    Machine, condition,
    names::{annotation, condition_type, deletion_order},
};

use crate::cluster_api::{
    identity::annotation as annotated,
    scaling::{conditions_of, is_live, is_updating},
};

/// Age at which the scale flattens: ten days in seconds, Cluster API's constant.
const AGE_SCALE_SECONDS: f64 = 864_000.0;

/// The `count` Machines that go, those that are going already among them.
pub fn first_to_go<'a>(
    machines: &[&'a Machine],
    count: usize,
    order: Option<&str>,
    now: Timestamp,
) -> Vec<&'a Machine> {
    let mut ordered = machines.to_vec();
    ordered.sort_by(|left, right| {
        priority(right, order, now)
            .total_cmp(&priority(left, order, now))
            .then_with(|| left.metadata.name.cmp(&right.metadata.name))
    });
    ordered.truncate(count);
    ordered
}

/// Higher goes first.
fn priority(machine: &Machine, order: Option<&str>, now: Timestamp) -> f64 {
    if !is_live(machine) {
        return 100.0;
    }
    if annotated(&machine.metadata, annotation::DELETE_MACHINE).is_some() {
        return 80.0;
    }
    if is_updating(machine) {
        return 75.0;
    }
    if is_broken(machine) {
        return 50.0;
    }
    match order {
        Some(deletion_order::OLDEST) => by_age(machine, now),
        Some(deletion_order::NEWEST) => 50.0 - by_age(machine, now),
        _ => 20.0,
    }
}

/// Without a Node, or known to be unhealthy. What is unknown counts as healthy.
fn is_broken(machine: &Machine) -> bool {
    let conditions = conditions_of(machine);
    machine.status.as_ref().is_none_or(|status| status.node_ref.is_none())
        || condition::is_false(conditions, condition_type::NODE_HEALTHY)
        || condition::is_false(conditions, condition_type::HEALTH_CHECK_SUCCEEDED)
}

fn by_age(machine: &Machine, now: Timestamp) -> f64 {
    let Some(created) = machine.metadata.creation_timestamp.as_ref() else { return 0.0 };
    let age = now.duration_since(created.0).as_secs_f64();
    if age <= 0.0 { 0.0 } else { 50.0 * (1.0 - (-age / AGE_SCALE_SECONDS).exp()) }
}
