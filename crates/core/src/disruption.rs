//! Whether a machine may be taken out of work by our own choice: the one gate that counts every
//! disruption (Rule 7).
//!
//! Commands (a deletion, a scale-down) and the unavoidable (an instance that is certainly gone) do
//! not ask; they are counted. What asks is held while too much of its pool is out of work already,
//! for whatever reason: a storm that looks like many broken machines is usually one broken switch,
//! or one person who knows what they do.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use machinist_api::{
    Machine, MachineSet,
    condition::{self, ConditionStatus},
    names::{annotation, condition_type, phase},
};

use crate::{
    decision::FieldError,
    drift::{Class, policy::is_under_maintenance},
    machine::observed::provider_status,
    node::{self, Readiness},
};

/// How much of a pool may be out of work, unless its annotation says otherwise.
const USUAL_SHARE_PERCENT: usize = 40;

/// A pool as seen by one of its machines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    pub name: String,
    pub desired: usize,
    /// How many machines, but for the one that asks, do their work.
    pub healthy_others: usize,
    /// How many, with the one that asks, were stopped by a user.
    pub stopped_by_user: usize,
    pub is_deleting: bool,
    pub annotations: std::collections::BTreeMap<String, String>,
}

/// The gate's no, in a sentence for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held(pub String);

impl Pool {
    /// Counts a pool for the machine with this uid. `members` are all Machines that the set owns,
    /// each with its linked Node.
    pub fn of<'a>(
        set: &MachineSet,
        members: impl IntoIterator<Item = (&'a Machine, Option<&'a Node>)>,
        asking_uid: &str,
    ) -> Self {
        let mut pool = Self {
            name: set.metadata.name.clone().unwrap_or_default(),
            desired: usize::try_from(set.spec.replicas.unwrap_or(1)).unwrap_or(0),
            healthy_others: 0,
            stopped_by_user: 0,
            is_deleting: set.metadata.deletion_timestamp.is_some(),
            annotations: set.metadata.annotations.clone().unwrap_or_default(),
        };
        for (machine, node) in members {
            let is_asking = machine.metadata.uid.as_deref() == Some(asking_uid);
            if !is_asking && is_healthy(machine, node) {
                pool.healthy_others += 1;
            }
            if !is_asking && is_stopped_by_user(machine) {
                pool.stopped_by_user += 1;
            }
        }
        pool
    }

    /// How many machines may be out of work at once: at least one, or a single machine could never
    /// be repaired.
    pub fn breaker(&self) -> Result<usize, FieldError> {
        let usual = (self.desired * USUAL_SHARE_PERCENT / 100).max(1);
        let Some(text) = self.annotations.get(annotation::MAX_DISRUPTED) else { return Ok(usual) };
        let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<usize>();
        match (number, text.ends_with('%')) {
            (Ok(share), true) if share <= 100 => Ok((self.desired * share / 100).max(1)),
            (Ok(count), false) => Ok(count),
            _ => Err(FieldError::new(
                format!("metadata.annotations[{}]", annotation::MAX_DISRUPTED),
                format!("Invalid value: {text:?}: must be a number or a share such as \"40%\""),
            )),
        }
    }

    /// Whether the machine that asks may be taken out of work, or stay so, by our own choice. The
    /// base is the desired count: what is missing is out of work too.
    pub fn permit(&self, approved_until: Option<Timestamp>, now: Timestamp) -> Result<(), Held> {
        if approved_until.is_some_and(|until| until > now) {
            return Ok(());
        }
        let breaker = match self.breaker() {
            Ok(breaker) => breaker,
            Err(fault) => return Err(Held(format!("pool {}: {fault}", self.name))),
        };
        let out_of_work = self.desired.saturating_sub(self.healthy_others);
        if out_of_work <= breaker {
            return Ok(());
        }
        Err(Held(format!(
            "{out_of_work} of {} machines of pool {} are out of work, and by our own choice it may \
             be {breaker} at most; goes on when others recover, or when a person sets the \
             annotation {} on the machine or the pool",
            self.desired,
            self.name,
            annotation::APPROVED_UNTIL,
        )))
    }
}

/// Whether a machine does its work as far as anybody can tell. Unknown is not healthy here: the
/// gate would rather hold once too often. One that maintenance works on takes no pods.
pub fn is_healthy(machine: &Machine, node: Option<&Node>) -> bool {
    let Some(status) = &machine.status else { return false };
    let is_cordoned_for_maintenance = node
        .and_then(|node| node.metadata.annotations.as_ref())
        .is_some_and(|all| all.contains_key(annotation::CORDONED_FOR));
    if is_cordoned_for_maintenance || is_under_maintenance(machine) {
        return false;
    }
    let is_running = condition::find(&status.conditions, condition_type::INSTANCE_RUNNING)
        .is_none_or(|condition| condition.status == ConditionStatus::True);
    machine.metadata.deletion_timestamp.is_none()
        && status.phase.as_deref() == Some(phase::RUNNING)
        && is_running
        && node.is_some_and(|node| node::readiness(node) == Readiness::Ready)
}

fn is_stopped_by_user(machine: &Machine) -> bool {
    // Every machine of a pool is asked for every other: most need not be read for that.
    let record = machine.status.as_ref().and_then(|status| status.provider_status.as_ref());
    let says_so = record.is_some_and(|raw| raw.as_json().contains(Class::StoppedByUser.as_str()));
    says_so
        && provider_status(machine)
            .drift
            .is_some_and(|drift| drift.class == Class::StoppedByUser.as_str())
}

#[cfg(test)]
mod tests;
