//! What to do for a MachineSet: let go of what no longer matches, adopt what does, make or delete
//! the difference, and count.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use machinist_api::{
    AuthoritativeApi, ConditionStatus, Machine, MachineSet, MachineSetStatus, condition,
    names::{condition_type, error_reason, event, finalizer, reason},
};

use super::{
    ceiling,
    delete_order::first_to_go,
    observed::{Member, Observed, ScalingFailure, validate},
    trouble::{self, Trouble},
};
use crate::{
    decision::{Announcement, Decision, Wait},
    node::{self, Readiness},
    selector::MachineSelector,
};

pub type MachineSetDecision = Decision<Action, MachineSetStatus>;

/// One step for a pool. Each names the uid and resourceVersion that it was decided on (Rule 3).
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Drops our owner reference: the Machine no longer matches (D18).
    Release {
        name: String,
        uid: String,
        resource_version: String,
    },
    /// Becomes the controller of a Machine that matches and has none.
    Adopt {
        name: String,
        uid: String,
        resource_version: String,
    },
    Create(Box<Machine>),
    Delete {
        name: String,
        uid: String,
        resource_version: String,
    },
}

/// Mere counts are written at most this often; three hundred Nodes that become Ready at once are
/// then a handful of writes.
const STATUS_SPACING: SignedDuration = SignedDuration::from_secs(2);

pub fn decide(observed: &Observed<'_>, now: Timestamp) -> MachineSetDecision {
    let set = observed.set;
    let status = set.status.clone().unwrap_or_default();
    // Children of a deleted set are removed by the garbage collector.
    if set.metadata.deletion_timestamp.is_some() {
        return Decision::settled(status);
    }
    if let Some(decision) = paused(set, now) {
        return decision;
    }
    let selector = match validate(set) {
        Ok(selector) => selector,
        Err(fault) => return invalid(set, &fault.to_string(), now),
    };
    let mut actions = Vec::new();
    let mut kept: Vec<&Member<'_>> = Vec::new();
    let mut owned = observed.unreadable;
    for member in &observed.machines {
        owned += usize::from(is_owned(set, member.machine));
        match belonging(set, member.machine, &selector) {
            Belonging::Ours if !is_deleting(member.machine) => kept.push(member),
            Belonging::Adoptable if !is_deleting(member.machine) => {
                let (name, uid, resource_version) = identity(member.machine);
                actions.push(Action::Adopt { name, uid, resource_version });
                kept.push(member);
            }
            Belonging::NoLongerMatching => {
                let (name, uid, resource_version) = identity(member.machine);
                actions.push(Action::Release { name, uid, resource_version });
            }
            Belonging::Ours | Belonging::Adoptable | Belonging::Foreign => {}
        }
    }
    kept.sort_by(|left, right| left.machine.metadata.name.cmp(&right.machine.metadata.name));

    let replicas = usize::try_from(set.spec.replicas.unwrap_or(1)).unwrap_or(0);
    let wanted = replicas.saturating_sub(observed.unreadable);
    let mut waiting = Vec::new();
    let mut allowance = ceiling::Allowance::default();
    if kept.len() < wanted {
        let missing = wanted - kept.len();
        allowance = ceiling::allow(replicas, missing, owned, &observed.bounds);
        let names = observed.fresh_names.iter().take(allowance.count);
        actions.extend(names.map(|name| Action::Create(Box::new(new_machine(set, name)))));
        if let Some(refusal) = &allowance.refusal {
            waiting.push(Wait::on(refusal.reason, &refusal.message));
        }
        waiting.push(Wait::on("ScalingUp", format!("{missing} machines are to be made")));
    } else if kept.len() > wanted {
        let machines: Vec<&Machine> = kept.iter().map(|member| member.machine).collect();
        let surplus = kept.len() - wanted;
        let policy = set.spec.delete_policy.as_deref();
        for machine in first_to_go(&machines, surplus, policy, now) {
            let (name, uid, resource_version) = identity(machine);
            actions.push(Action::Delete { name, uid, resource_version });
        }
        waiting.push(Wait::on("ScalingDown", format!("{surplus} machines are to be deleted")));
    }

    let (counted, recheck) = count(set, &kept, &selector, now);
    // With nothing left to do, nothing fails any more, whatever happened before.
    let failure = observed.last_failure.filter(|_| !actions.is_empty());
    let refusal = allowance.refusal.as_ref();
    let trouble = failure.or(refusal).map(Trouble::Scaling);
    let trouble = trouble.or_else(|| trouble::of_launches(&kept));
    let described = trouble::describe(counted, trouble.as_ref(), now);
    let mut decision = spaced(set, described, observed.status_written_at, now);
    decision.actions = actions;
    decision.waiting = waiting;
    decision.announcements.extend(refusal.and_then(|refusal| trouble::announce(set, refusal)));
    let again = allowance.again_after.and_then(|after| now.checked_add(after).ok());
    for at in recheck.into_iter().chain(again) {
        decision.recheck_by(at);
    }
    decision
}

enum Belonging {
    Ours,
    Adoptable,
    NoLongerMatching,
    Foreign,
}

fn controller(machine: &Machine) -> Option<&OwnerReference> {
    machine.metadata.owner_references.iter().flatten().find(|one| one.controller == Some(true))
}

fn is_owned(set: &MachineSet, machine: &Machine) -> bool {
    controller(machine).is_some_and(|owner| Some(&owner.uid) == set.metadata.uid.as_ref())
}

fn belonging(set: &MachineSet, machine: &Machine, selector: &MachineSelector) -> Belonging {
    let empty = Default::default();
    let matches = selector.matches(machine.metadata.labels.as_ref().unwrap_or(&empty));
    match controller(machine) {
        Some(_) if is_owned(set, machine) => {
            if matches {
                Belonging::Ours
            } else {
                Belonging::NoLongerMatching
            }
        }
        Some(_) => Belonging::Foreign,
        None if matches => Belonging::Adoptable,
        None => Belonging::Foreign,
    }
}

fn is_deleting(machine: &Machine) -> bool {
    machine.metadata.deletion_timestamp.is_some()
}

fn identity(machine: &Machine) -> (String, String, String) {
    (
        machine.metadata.name.clone().unwrap_or_default(),
        machine.metadata.uid.clone().unwrap_or_default(),
        machine.metadata.resource_version.clone().unwrap_or_default(),
    )
}

/// The reference that makes a MachineSet the controller of a Machine.
pub fn controller_reference(set: &MachineSet) -> OwnerReference {
    OwnerReference {
        api_version: "machine.openshift.io/v1beta1".to_owned(),
        block_owner_deletion: Some(true),
        controller: Some(true),
        kind: "MachineSet".to_owned(),
        name: set.metadata.name.clone().unwrap_or_default(),
        uid: set.metadata.uid.clone().unwrap_or_default(),
    }
}

/// A Machine as the template says. It is born with the finalizer: one write less, and no moment in
/// which it could vanish unnoticed.
pub fn new_machine(set: &MachineSet, name: &str) -> Machine {
    let template = &set.spec.template;
    let mut machine = Machine::new(name, template.spec.clone());
    machine.metadata.namespace = set.metadata.namespace.clone();
    machine.metadata.labels = Some(template.metadata.labels.clone());
    machine.metadata.annotations =
        (!template.metadata.annotations.is_empty()).then(|| template.metadata.annotations.clone());
    machine.metadata.owner_references = Some(vec![controller_reference(set)]);
    machine.metadata.finalizers = Some(vec![finalizer::MACHINE.to_owned()]);
    machine
}

/// The counts, and when they can change by the passing of time alone.
fn count(
    set: &MachineSet,
    kept: &[&Member<'_>],
    selector: &MachineSelector,
    now: Timestamp,
) -> (MachineSetStatus, Option<Timestamp>) {
    let template_labels = &set.spec.template.metadata.labels;
    let min_ready = SignedDuration::from_secs(i64::from(set.spec.min_ready_seconds.unwrap_or(0)));
    let (mut labeled, mut ready, mut available) = (0, 0, 0);
    let mut recheck: Option<Timestamp> = None;
    for member in kept {
        let labels = member.machine.metadata.labels.as_ref();
        let carries = |key, value| labels.and_then(|known| known.get(key)) == Some(value);
        if template_labels.iter().all(|(key, value)| carries(key, value)) {
            labeled += 1;
        }
        let Some(node) = member.node.filter(|node| node::readiness(node) == Readiness::Ready)
        else {
            continue;
        };
        if is_known_not_to_run(member.machine) {
            continue;
        }
        ready += 1;
        let since = node::ready_since(node).unwrap_or(now);
        match since.checked_add(min_ready) {
            Ok(at) if min_ready.is_zero() || at <= now => available += 1,
            Ok(at) => recheck = Some(recheck.map_or(at, |known| known.min(at))),
            Err(_) => {}
        }
    }
    let status = MachineSetStatus {
        replicas: Some(i32::try_from(kept.len()).unwrap_or(i32::MAX)),
        fully_labeled_replicas: Some(labeled),
        ready_replicas: Some(ready),
        available_replicas: Some(available),
        observed_generation: set.metadata.generation,
        label_selector: Some(selector.canonical()),
        ..set.status.clone().unwrap_or_default()
    };
    (status, recheck)
}

/// Whether the cloud says that the instance does not run. Its Node still says Ready until the
/// kubelet's last word is too old, which takes longer than one look at the cloud.
fn is_known_not_to_run(machine: &Machine) -> bool {
    let conditions = machine.status.as_ref().map_or(&[][..], |status| &status.conditions);
    condition::find(conditions, condition_type::INSTANCE_RUNNING)
        .is_some_and(|condition| condition.status == ConditionStatus::False)
}

/// Holds back a status in which only the counts of ready and available Machines moved, when one was
/// written a moment ago.
fn spaced(
    set: &MachineSet,
    status: MachineSetStatus,
    written_at: Option<Timestamp>,
    now: Timestamp,
) -> MachineSetDecision {
    let stored = set.status.clone().unwrap_or_default();
    let only_counts = MachineSetStatus {
        ready_replicas: stored.ready_replicas,
        available_replicas: stored.available_replicas,
        fully_labeled_replicas: stored.fully_labeled_replicas,
        replicas: stored.replicas,
        ..status.clone()
    } == stored;
    let due = written_at.and_then(|at| at.checked_add(STATUS_SPACING).ok());
    match due {
        Some(due) if due > now && only_counts && status != stored => {
            let mut decision = Decision::settled(stored);
            decision.recheck_by(due);
            decision
        }
        _ => Decision::settled(status),
    }
}

fn invalid(set: &MachineSet, message: &str, now: Timestamp) -> MachineSetDecision {
    let fault = ScalingFailure {
        reason: reason::INVALID_CONFIGURATION,
        error_reason: error_reason::INVALID_CONFIGURATION,
        message: message.to_owned(),
    };
    let status = set.status.clone().unwrap_or_default();
    let mut status = trouble::describe(status, Some(&Trouble::Scaling(&fault)), now);
    status.observed_generation = set.metadata.generation;
    let mut decision = Decision::settled(status);
    decision.announcements.push(Announcement::warning(event::RECONCILE_ERROR, message));
    decision.waiting.push(Wait::on(reason::INVALID_CONFIGURATION, message));
    decision
}

fn paused(set: &MachineSet, now: Timestamp) -> Option<MachineSetDecision> {
    let mut status = set.status.clone().unwrap_or_default();
    // The status says who acts; what the spec wants is only where it begins.
    let Some(current) = status.authoritative_api else {
        status.authoritative_api = Some(set.spec.authoritative_api?);
        return Some(Decision::settled(status));
    };
    let changed = crate::pause::set_condition(&mut status.conditions, current, now);
    match current {
        AuthoritativeApi::MachineAPI if !changed => None,
        AuthoritativeApi::MachineAPI => Some(Decision::settled(status)),
        AuthoritativeApi::ClusterAPI | AuthoritativeApi::Migrating => {
            let mut decision = Decision::settled(status);
            decision.waiting.push(crate::pause::wait(current));
            Some(decision)
        }
    }
}
