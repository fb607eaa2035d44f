//! What is said of a MachineDeployment: its counts, its phase and its conditions.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use machinist_api::cluster_api::{
    Machine, MachineDeployment, MachineDeploymentStatus, MachineSet,
    condition::{self, FALSE, TRUE, UNKNOWN},
    names::{condition_type, deployment_phase, kind, reason},
};

use super::observed::Policy;
use crate::cluster_api::{
    aggregate::plural,
    deprecated,
    identity::is_deleting,
    pausing,
    scaling::{self, conditions_of},
};

/// How many different reasons of a rollout are listed.
const REASONS_MAX: usize = 5;

pub fn describe(
    deployment: &MachineDeployment,
    policy: &Policy,
    machines: &[&Machine],
    current: Option<&MachineSet>,
    blocked: &[String],
    now: Timestamp,
) -> MachineDeploymentStatus {
    let mut status = deployment.status.clone().unwrap_or_default();
    let counts = scaling::count(machines);
    status.replicas = Some(counts.replicas);
    status.ready_replicas = Some(counts.ready);
    status.available_replicas = Some(counts.available);
    status.up_to_date_replicas = Some(counts.up_to_date);
    status.versions = counts.versions;
    status.selector = Some(policy.selector.canonical());
    status.observed_generation = deployment.metadata.generation;
    status.phase = Some(phase(deployment.spec.replicas, counts.ready).to_owned());
    let before = status.deprecated.get_or_insert_default().v1beta1.get_or_insert_default();
    before.updated_replicas = counts.up_to_date;
    before.ready_replicas = counts.ready;
    before.available_replicas = counts.available;
    before.unavailable_replicas =
        (deployment.spec.replicas.unwrap_or(0).max(counts.replicas) - counts.available).max(0);

    let is_going = is_deleting(&deployment.metadata);
    let desired = if is_going { Some(0) } else { deployment.spec.replicas };
    let conditions = [
        available(deployment, policy, counts.available, now),
        rolling_out(machines, now),
        scaling::scaling_up(desired, counts.replicas, blocked, now),
        scaling::scaling_down(desired, counts.replicas, machines, now),
        scaling::machines_ready(machines, now),
        scaling::machines_up_to_date(machines, now),
        scaling::remediating(kind::MACHINE_DEPLOYMENT, machines, now),
        scaling::deleting(is_going, machines, now),
        pausing::paused_condition(kind::MACHINE_DEPLOYMENT, &deployment.metadata, None, now),
    ];
    put(deployment, &mut status, conditions);
    let before = status.deprecated.get_or_insert_default().v1beta1.get_or_insert_default();
    if let Some(replicas) = deployment.spec.replicas {
        let least = replicas - policy.unavailable(replicas);
        let conditions = &mut before.conditions;
        deprecated::of_deployment(conditions, counts.available, least, current, now);
    }
    status
}

fn phase(replicas: Option<i32>, ready: i32) -> &'static str {
    match replicas {
        None => deployment_phase::UNKNOWN,
        Some(replicas) if ready < replicas => deployment_phase::SCALING_UP,
        Some(replicas) if ready > replicas => deployment_phase::SCALING_DOWN,
        Some(_) => deployment_phase::RUNNING,
    }
}

fn available(
    deployment: &MachineDeployment,
    policy: &Policy,
    available: i32,
    now: Timestamp,
) -> Condition {
    let type_ = condition_type::AVAILABLE;
    let Some(replicas) = deployment.spec.replicas else {
        let words = "Waiting for spec.replicas set";
        return condition::new(type_, UNKNOWN, reason::WAITING_FOR_REPLICAS_SET, words, now);
    };
    let unavailable = policy.unavailable(replicas);
    let least = (replicas - unavailable).max(0);
    if available >= least {
        return condition::new(type_, TRUE, reason::AVAILABLE, "", now);
    }
    let mut words = format!("{available} available replicas, at least {least} required");
    if unavailable > 0 {
        words.push_str(&format!(
            " (spec.rollout.strategy.rollingUpdate.maxUnavailable is {unavailable}, spec.replicas is \
             {replicas})"
        ));
    }
    condition::new(type_, FALSE, reason::NOT_AVAILABLE, words, now)
}

/// The Machines say themselves why they are not up to date; what concerns the version comes first.
fn rolling_out(machines: &[&Machine], now: Timestamp) -> Condition {
    let type_ = condition_type::ROLLING_OUT;
    let mut count = 0;
    let mut reasons = BTreeSet::new();
    for machine in machines {
        let known = condition::find(conditions_of(machine), condition_type::UP_TO_DATE);
        let Some(outdated) = known.filter(|known| known.status == FALSE) else { continue };
        count += 1;
        for line in outdated.message.lines().filter(|line| !line.is_empty()) {
            let line = line.trim_start_matches("* ").to_owned();
            reasons.insert((!line.starts_with("Version"), line));
        }
    }
    if count == 0 {
        return condition::new(type_, FALSE, reason::NOT_ROLLING_OUT, "", now);
    }
    let mut words = format!("Rolling out {count} not up-to-date {}", plural("replica", count));
    for (_, line) in reasons.into_iter().take(REASONS_MAX) {
        words.push_str(&format!("\n* {line}"));
    }
    condition::new(type_, TRUE, reason::ROLLING_OUT, words, now)
}

/// Nothing can be told of the Machines: the deployment itself is wrong.
pub fn invalid(
    deployment: &MachineDeployment,
    message: &str,
    now: Timestamp,
) -> MachineDeploymentStatus {
    let mut status = deployment.status.clone().unwrap_or_default();
    status.observed_generation = deployment.metadata.generation;
    status.phase = Some(deployment_phase::UNKNOWN.to_owned());
    let types = [
        condition_type::AVAILABLE,
        condition_type::ROLLING_OUT,
        condition_type::SCALING_UP,
        condition_type::SCALING_DOWN,
        condition_type::MACHINES_READY,
        condition_type::MACHINES_UP_TO_DATE,
        condition_type::REMEDIATING,
    ];
    let unknown =
        |type_: &str| condition::new(type_, UNKNOWN, reason::INTERNAL_ERROR, message, now);
    put(deployment, &mut status, types.map(unknown));
    status
}

pub fn put(
    deployment: &MachineDeployment,
    status: &mut MachineDeploymentStatus,
    conditions: impl IntoIterator<Item = Condition>,
) {
    for new in conditions {
        condition::set(&mut status.conditions, new, deployment.metadata.generation);
    }
}
