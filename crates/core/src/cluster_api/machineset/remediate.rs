//! Which unhealthy Machines does a set replace now?
//!
//! A health check marks a Machine (HealthCheckSucceeded and OwnerRemediated are False); its owner acts. Why it does not
//! act yet is said on the Machine itself.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use machinist_api::cluster_api::{
    Machine, MachineStatus,
    condition::{self, FALSE},
    names::{annotation, condition_type, reason},
};

use super::observed::Observed;
use crate::cluster_api::{
    deprecated, identity,
    scaling::{conditions_of, is_live, is_to_be_remediated, is_unhealthy, length},
    share::Share,
};

/// What is said on a Machine, and whether it goes.
#[derive(Clone, Debug, PartialEq)]
pub struct Remediation<'a> {
    pub machine: &'a Machine,
    pub status: MachineStatus,
    pub is_deleted: bool,
}

impl Remediation<'_> {
    /// Whether the Machine is to be replaced, but not yet.
    pub fn is_deferred(&self) -> bool {
        let mark = condition::find(&self.status.conditions, condition_type::OWNER_REMEDIATED);
        mark.is_some_and(|mark| mark.reason == reason::REMEDIATION_DEFERRED)
    }
}

/// `faults` are those of the preflight checks: a Machine that could not be made again is kept.
pub fn remediate<'a>(
    observed: &Observed<'a>,
    members: &[&'a Machine],
    faults: &[String],
    now: Timestamp,
) -> Vec<Remediation<'a>> {
    let mut answers: Vec<Remediation<'a>> =
        members.iter().filter_map(|machine| healthy_again(machine, now)).collect();
    let mut marked: Vec<&Machine> = members
        .iter()
        .copied()
        .filter(|machine| is_live(machine) && is_to_be_remediated(machine))
        .collect();
    if marked.is_empty() {
        return answers;
    }
    if !is_current_revision(observed) {
        let words = "Machine can't be remediated because it is not part of the current MachineSet of the \
                     MachineDeployment; it goes with the rollout";
        answers.extend(
            marked.into_iter().map(|one| said(one, reason::CANNOT_BE_REMEDIATED, words, now)),
        );
        return answers;
    }
    marked.sort_by_key(|machine| {
        let is_asked_for =
            identity::annotation(&machine.metadata, annotation::REMEDIATE_MACHINE).is_some();
        let created = machine.metadata.creation_timestamp.as_ref().map(|at| at.0);
        (!is_asked_for, std::cmp::Reverse(created), machine.metadata.name.clone())
    });
    let budget = budget(observed, members);
    for (place, machine) in marked.into_iter().enumerate() {
        let waits = if !faults.is_empty() {
            Some(format!(
                "Machine won't be remediated as the preflight checks fail:\n* {}",
                faults.join("\n* ")
            ))
        } else if budget.is_some_and(|budget| place >= budget) {
            Some("Waiting because there are already too many remediations in progress".to_owned())
        } else {
            None
        };
        answers.push(match waits {
            Some(words) => said(machine, reason::REMEDIATION_DEFERRED, &words, now),
            None => Remediation {
                is_deleted: true,
                ..said(
                    machine,
                    reason::MACHINE_DELETING,
                    "Machine deletion in progress as part of the remediation",
                    now,
                )
            },
        });
    }
    answers
}

/// The mark is taken off a Machine that recovered.
fn healthy_again(machine: &Machine, now: Timestamp) -> Option<Remediation<'_>> {
    let conditions = conditions_of(machine);
    let is_marked = condition::find(conditions, condition_type::OWNER_REMEDIATED).is_some();
    if !is_marked || is_unhealthy(machine) || !is_live(machine) {
        return None;
    }
    let mut status = machine.status.clone().unwrap_or_default();
    condition::remove(&mut status.conditions, condition_type::OWNER_REMEDIATED);
    deprecated::owner_remediated(&mut status, None, now);
    Some(Remediation { machine, status, is_deleted: false })
}

fn said<'a>(machine: &'a Machine, reason: &str, words: &str, now: Timestamp) -> Remediation<'a> {
    let new: Condition =
        condition::new(condition_type::OWNER_REMEDIATED, FALSE, reason, words, now);
    let mut status = machine.status.clone().unwrap_or_default();
    condition::set(&mut status.conditions, new, machine.metadata.generation);
    let waits = (reason != reason::MACHINE_DELETING).then_some(words);
    deprecated::owner_remediated(&mut status, Some(waits), now);
    Remediation { machine, status, is_deleted: false }
}

/// Only the newest set of a deployment replaces: the Machines of the others go anyway.
fn is_current_revision(observed: &Observed<'_>) -> bool {
    let Some(deployment) = observed.deployment else { return true };
    let revision = |metadata| identity::annotation(metadata, annotation::REVISION);
    revision(&deployment.metadata) == revision(&observed.set.metadata)
}

/// How many more may be replaced at once; `None` for all of them.
fn budget(observed: &Observed<'_>, members: &[&Machine]) -> Option<usize> {
    let deployment = observed.deployment?;
    let limit = deployment.spec.remediation.max_in_flight.as_ref()?;
    let replicas = deployment.spec.replicas.unwrap_or_else(|| length(members));
    // One that cannot be read permits nothing: admission refuses it, and more would be a guess.
    let limit = Share::read("spec.remediation.maxInFlight", limit).ok();
    let limit = limit.map_or(0, |limit| limit.rounded_up(replicas));
    let under_way = members
        .iter()
        .filter(|machine| {
            let mark = condition::find(conditions_of(machine), condition_type::OWNER_REMEDIATED);
            !is_live(machine) && mark.is_some_and(|mark| mark.reason == reason::MACHINE_DELETING)
        })
        .count();
    Some(usize::try_from(limit).unwrap_or(0).saturating_sub(under_way))
}
