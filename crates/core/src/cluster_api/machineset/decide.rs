//! What to do for a MachineSet: adopt what is its own, make or delete the difference, replace what is unhealthy, carry the
//! template's marks to what is there, and count.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use machinist_api::cluster_api::{
    Machine, MachineSet, MachineSetStatus,
    names::{annotation, finalizer, kind, label, reason},
};
use serde_json::{Value, json};

use super::{
    delete_order::first_to_go,
    making::{self, NewMachine},
    observed::{Found, Observed, Part, validate},
    preflight, propagate,
    remediate::remediate,
    status::{self, Blocked},
};
use crate::{
    cluster_api::{
        contract::{GroupKind, ownership},
        deprecated::Hindrance,
        identity::{self, Identity, is_controlled_by, is_deleting, plain_reference},
        membership::Member,
        pausing, progress,
        scaling::{self, is_live},
    },
    decision::{Decision, Wait},
    machineset::ceiling,
    selector::MachineSelector,
};

pub type MachineSetDecision = Decision<Action, MachineSetStatus>;

/// One step for a set. Each names the uid and resourceVersion that it was decided on (Rule 3).
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Changes the set itself. Always alone: the next pass sees the set as it then is.
    Amend(Value),
    /// Ties a template to the Cluster.
    AmendTemplate {
        part: Part,
        patch: Value,
    },
    /// Becomes the controller of a Machine that matches and has none.
    Adopt {
        machine: Identity,
        patch: Value,
    },
    /// Carries the template's marks to a Machine.
    AmendMachine {
        machine: Identity,
        patch: Value,
    },
    /// Carries the template's marks to an object of a provider.
    AmendProvided {
        kind: GroupKind,
        object: Identity,
        patch: Value,
    },
    /// Says on a Machine how its remediation goes.
    Mark {
        machine: Identity,
        status: Box<machinist_api::cluster_api::MachineStatus>,
    },
    Create(Box<NewMachine>),
    Delete(Identity),
    /// An object of a provider that was made for a Machine that was never made.
    DeleteLeftover {
        kind: GroupKind,
        object: Identity,
    },
    /// The last: no Machine is left. Whoever carries it out asks the API server for Machines first.
    RemoveFinalizer(Value),
}

/// When preflight checks are asked again.
const PREFLIGHT_AGAIN: SignedDuration = SignedDuration::from_secs(15);
/// When a template that could not be used is looked at again.
const TEMPLATE_AGAIN: SignedDuration = SignedDuration::from_secs(30);

pub fn decide(observed: &Observed<'_>, now: Timestamp) -> MachineSetDecision {
    let set = observed.set;
    let stored = set.status.clone().unwrap_or_default();
    let Some(cluster) = observed.cluster else {
        let mut decision = Decision::settled(stored);
        let words = format!("there is no Cluster {} in this namespace", set.spec.cluster_name);
        decision.waiting.push(Wait::on("ClusterNotFound", words));
        return decision;
    };
    if pausing::is_paused(&set.metadata, Some(cluster)) {
        let mut status = stored;
        let paused =
            pausing::paused_condition(kind::MACHINE_SET, &set.metadata, Some(cluster), now);
        status::put(set, &mut status, [paused]);
        let mut decision = Decision::settled(status);
        decision.waiting.push(Wait::on("Paused", "the set or its Cluster is paused"));
        return decision;
    }
    let members = members(observed);
    if is_deleting(&set.metadata) {
        return deleting(observed, &members, now);
    }
    if let Some(patch) = amendment(observed) {
        let mut decision = Decision::settled(stored);
        decision.actions.push(Action::Amend(patch));
        return decision;
    }
    let selector = match validate(set) {
        Ok(selector) => selector,
        Err(fault) => {
            let message = fault.to_string();
            let mut decision = Decision::settled(status::invalid(set, &message, now));
            decision.waiting.push(Wait::on("InvalidConfiguration", message));
            return decision;
        }
    };
    living(observed, &members, &selector, now)
}

/// What the set controls, whatever its labels are, and what it may adopt; by name.
fn members<'a>(observed: &Observed<'a>) -> Vec<&'a Machine> {
    let mut members = observed.machines.clone();
    members.sort_by(|left, right| left.metadata.name.cmp(&right.metadata.name));
    members
}

fn living(
    observed: &Observed<'_>,
    members: &[&Machine],
    selector: &MachineSelector,
    now: Timestamp,
) -> MachineSetDecision {
    let set = observed.set;
    let uid = set.metadata.uid.as_deref();
    let mut actions = Vec::new();
    let mut waiting = Vec::new();
    let mut again: Vec<Timestamp> = Vec::new();
    let mut after = |pause: SignedDuration| again.extend(now.checked_add(pause).ok());

    for template in &observed.templates {
        if let (Found::Whole { metadata, .. }, Some(cluster)) = (&template.found, observed.cluster)
        {
            let owner = plain_reference(cluster);
            let patch = ownership::with_owner(metadata, &owner, &set.spec.cluster_name);
            actions.extend(patch.map(|patch| Action::AmendTemplate { part: template.part, patch }));
        }
    }
    for machine in members {
        let Some(patch) = propagate::to_machine(set, machine) else { continue };
        let identity = Identity::of(&machine.metadata);
        actions.push(match is_controlled_by(&machine.metadata, uid) {
            true => Action::AmendMachine { machine: identity, patch },
            false => Action::Adopt { machine: identity, patch },
        });
    }
    actions.extend(provided_actions(observed, members));

    let faults = preflight::faults(observed);
    let remediations = remediate(observed, members, &faults, now);
    let deferred = remediations.iter().filter(|one| one.is_deferred()).count();
    // No change of the control plane wakes a set: the checks that keep its Machines are asked again.
    if deferred > 0 && !faults.is_empty() {
        let words = format!("{deferred} unhealthy machines are kept: {}", faults.join("; "));
        waiting.push(Wait::on(reason::REMEDIATION_DEFERRED, words));
        after(PREFLIGHT_AGAIN);
    }
    let mut going = Vec::new();
    for remediation in remediations {
        let machine = remediation.machine;
        if machine.status.as_ref() != Some(&remediation.status) {
            actions.push(Action::Mark {
                machine: Identity::of(&machine.metadata),
                status: Box::new(remediation.status),
            });
        }
        if remediation.is_deleted {
            going.push(machine);
        }
    }

    let replicas = usize::try_from(set.spec.replicas.unwrap_or(0)).unwrap_or(0);
    let current = members.len() + observed.unreadable;
    let mut blocked = Blocked::default();
    if set.spec.replicas.is_none() {
        waiting.push(Wait::on("WaitingForReplicasSet", "spec.replicas is not set"));
    } else if current < replicas {
        let missing = replicas - current;
        waiting.push(Wait::on("ScalingUp", format!("{missing} machines are to be made")));
        let template_faults = making::template_faults(&observed.templates);
        if !template_faults.is_empty() {
            after(TEMPLATE_AGAIN);
        } else if !faults.is_empty() {
            after(PREFLIGHT_AGAIN);
        }
        blocked.extend(Hindrance::Template, template_faults);
        blocked.extend(Hindrance::Preflight, faults.iter().cloned());
        let is_forbidden =
            identity::annotation(&set.metadata, annotation::DISABLE_MACHINE_CREATE) == Some("true");
        let is_looked_at = !observed.templates.is_empty();
        if blocked.by.is_empty() && !is_forbidden && is_looked_at {
            let allowance = ceiling::allow(replicas, missing, current, &observed.bounds);
            let names = observed.fresh_names.iter().take(allowance.count);
            actions.extend(names.map(|name| {
                Action::Create(Box::new(making::new_machine(set, &observed.templates, name)))
            }));
            let refusal = allowance.refusal.map(|refusal| refusal.message);
            blocked.extend(Hindrance::Failure, refusal);
            if let Some(pause) = allowance.again_after {
                after(pause);
            }
        }
        blocked.extend(Hindrance::Failure, observed.last_failure.map(str::to_owned));
    } else if current > replicas {
        let surplus = current - replicas;
        waiting.push(Wait::on("ScalingDown", format!("{surplus} machines are to be deleted")));
        // A Machine that is remediated is one that goes.
        let already: Vec<&Machine> = going.clone();
        let others: Vec<&Machine> = members
            .iter()
            .copied()
            .filter(|one| !already.iter().any(|known| known == one))
            .collect();
        let order = set.spec.deletion.order.as_deref();
        let count = surplus.saturating_sub(already.len());
        going.extend(
            first_to_go(&others, count, order, now).into_iter().filter(|machine| is_live(machine)),
        );
    }
    actions
        .extend(going.into_iter().map(|machine| Action::Delete(Identity::of(&machine.metadata))));

    let described = status::describe(set, members, selector, &blocked, now);
    let mut decision = spaced(observed, described, now);
    decision.actions = actions;
    decision.waiting = waiting;
    again.extend(scaling::next_change(members, now));
    for at in again {
        decision.recheck_by(at);
    }
    decision
}

/// Marks for the objects of providers, and the end of those that no Machine refers to.
fn provided_actions(observed: &Observed<'_>, members: &[&Machine]) -> Vec<Action> {
    let set = observed.set;
    let referred: BTreeSet<[&str; 3]> = members
        .iter()
        .flat_map(|machine| {
            let config = machine.spec.bootstrap.config_ref.as_ref();
            config.into_iter().chain([&machine.spec.infrastructure_ref])
        })
        .map(|reference| [&*reference.name, &*reference.kind, &*reference.api_group])
        .collect();
    let mut actions = Vec::new();
    for provided in &observed.provided {
        let metadata = provided.metadata;
        let object = Identity::of(metadata);
        let kind = provided.kind.clone();
        if referred.contains(&[&*object.name, &*kind.kind, &*kind.group]) {
            let patch = propagate::to_provided(set, metadata);
            actions.extend(patch.map(|patch| Action::AmendProvided { kind, object, patch }));
            continue;
        }
        let owners = metadata.owner_references.as_deref().unwrap_or_default();
        let is_held = owners.iter().any(|owner| Some(&owner.uid) == set.metadata.uid.as_ref());
        let is_to_be_used = observed.fresh_names.contains(&object.name);
        // One that a Machine controls is the Machine's, wherever that is.
        let is_taken = identity::controller(metadata).is_some();
        if is_held && !is_taken && !is_to_be_used && !is_deleting(metadata) {
            actions.push(Action::DeleteLeftover { kind, object });
        }
    }
    actions
}

/// What is missing on the set itself, and what it is to remember.
fn amendment(observed: &Observed<'_>) -> Option<Value> {
    let set = observed.set;
    let objects = observed.machines.iter().map(|machine| &machine.metadata);
    let objects = objects.chain(observed.provided.iter().map(|provided| provided.metadata));
    let given = propagate::to_remember(set, objects);
    let member = Member {
        metadata: &set.metadata,
        cluster_name: &set.spec.cluster_name,
        selector: &set.spec.selector,
        template_labels: &set.spec.template.metadata.labels,
        finalizer: finalizer::MACHINE_SET,
        is_of_another: identity::label(&set.metadata, label::DEPLOYMENT_NAME).is_some()
            || identity::controller(&set.metadata).is_some(),
    };
    member.amendment(observed.cluster?, given.map(|given| json!({ propagate::GIVEN: given })))
}

/// All Machines go; then the set does.
fn deleting(observed: &Observed<'_>, members: &[&Machine], now: Timestamp) -> MachineSetDecision {
    let set = observed.set;
    let uid = set.metadata.uid.as_deref();
    let own: Vec<&Machine> = members
        .iter()
        .copied()
        .filter(|machine| is_controlled_by(&machine.metadata, uid))
        .collect();
    let mut status = match MachineSelector::read("spec.selector", &set.spec.selector) {
        Ok(selector) => status::describe(set, &own, &selector, &Blocked::default(), now),
        Err(fault) => status::invalid(set, &fault.to_string(), now),
    };
    status::put(set, &mut status, [scaling::deleting(true, &own, now)]);
    let mut decision = spaced(observed, status, now);
    let live = own.iter().filter(|machine| is_live(machine));
    decision.actions =
        live.map(|machine| Action::Delete(Identity::of(&machine.metadata))).collect();
    decision.actions.extend(
        provided_actions(observed, &own)
            .into_iter()
            .filter(|action| matches!(action, Action::DeleteLeftover { .. })),
    );
    if !own.is_empty() || observed.unreadable > 0 {
        let count = own.len() + observed.unreadable;
        decision.waiting.push(Wait::on("Deleting", format!("{count} machines are not gone yet")));
        return decision;
    }
    let finalizers = set.metadata.finalizers.clone().unwrap_or_default();
    let left: Vec<&String> =
        finalizers.iter().filter(|known| *known != finalizer::MACHINE_SET).collect();
    if decision.actions.is_empty() && left.len() < finalizers.len() {
        let patch = json!({ "metadata": { "finalizers": left } });
        decision.actions.push(Action::RemoveFinalizer(patch));
    }
    decision
}

fn spaced(observed: &Observed<'_>, new: MachineSetStatus, now: Timestamp) -> MachineSetDecision {
    progress::spaced(observed.set.status.as_ref(), observed.status_written_at, new, now)
}

/// Whether the set needs its templates looked at: Machines are missing.
pub fn is_short(set: &MachineSet, members: usize) -> bool {
    let replicas = usize::try_from(set.spec.replicas.unwrap_or(0)).unwrap_or(0);
    !is_deleting(&set.metadata) && members < replicas
}
