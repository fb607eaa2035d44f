//! What to do for a MachineDeployment: find or make the set of its template, give every set its size, take away sets that
//! are empty, and count.

use jiff::{SignedDuration, Timestamp};
use machinist_api::cluster_api::{
    MachineDeployment, MachineDeploymentStatus, MachineSet,
    names::{annotation, event, finalizer, kind},
};
use serde_json::{Value, json};

use super::{
    current,
    desired::{self, Role},
    observed::{Observed, Policy, validate},
    paused::{self, Shared},
    rollout,
    sizes::Census,
    status,
};
use crate::{
    cluster_api::{
        contract::ownership,
        identity::{self, Identity, is_controlled_by, is_deleting, plain_reference},
        machineset::{
            making,
            observed::{Found, Part},
        },
        membership::Member,
        naming, pausing, progress, scaling,
    },
    decision::{Announcement, Decision, Wait},
};

pub type MachineDeploymentDecision = Decision<Action, MachineDeploymentStatus>;

/// One step for a deployment. Each names the uid and resourceVersion that it was decided on (Rule 3).
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Changes the deployment itself. Always alone: the next pass sees it as it then is.
    Amend(Value),
    /// Ties a template to the Cluster.
    AmendTemplate {
        part: Part,
        patch: Value,
    },
    /// Makes the set of the current template. Its name follows from the template, so that no second can be made.
    CreateSet(Box<MachineSet>),
    /// Changes the size of a set, and what reaches it in place.
    AmendSet {
        set: Identity,
        patch: Value,
    },
    DeleteSet(Identity),
    /// The last: no set is left. Whoever carries it out asks the API server for sets first.
    RemoveFinalizer(Value),
}

/// When a template that could not be used is looked at again.
const TEMPLATE_AGAIN: SignedDuration = SignedDuration::from_secs(30);
/// How many names are tried for a new set, should others be taken.
const NAMES_TRIED: usize = 8;

pub fn decide(observed: &Observed<'_>, now: Timestamp) -> MachineDeploymentDecision {
    let deployment = observed.deployment;
    let stored = deployment.status.clone().unwrap_or_default();
    let Some(cluster) = observed.cluster else {
        let mut decision = Decision::settled(stored);
        let words =
            format!("there is no Cluster {} in this namespace", deployment.spec.cluster_name);
        decision.waiting.push(Wait::on("ClusterNotFound", words));
        return decision;
    };
    if pausing::is_paused(&deployment.metadata, Some(cluster)) {
        let mut status = stored;
        let kind = kind::MACHINE_DEPLOYMENT;
        let paused = pausing::paused_condition(kind, &deployment.metadata, Some(cluster), now);
        status::put(deployment, &mut status, [paused]);
        let mut decision = Decision::settled(status);
        decision.waiting.push(Wait::on("Paused", "the deployment or its Cluster is paused"));
        return decision;
    }
    if is_deleting(&deployment.metadata) {
        return deleting(observed, now);
    }
    let current = current::find(deployment, &observed.sets, now);
    if let Some(patch) = amendment(observed, current) {
        let mut decision = Decision::settled(stored);
        decision.actions.push(Action::Amend(patch));
        return decision;
    }
    let policy = match validate(deployment) {
        Ok(policy) => policy,
        Err(fault) => {
            let message = fault.to_string();
            let mut decision = Decision::settled(status::invalid(deployment, &message, now));
            decision.waiting.push(Wait::on("InvalidConfiguration", message));
            return decision;
        }
    };
    living(observed, &policy, current, now)
}

fn living(
    observed: &Observed<'_>,
    policy: &Policy,
    current: Option<&MachineSet>,
    now: Timestamp,
) -> MachineDeploymentDecision {
    let deployment = observed.deployment;
    let mut actions = Vec::new();
    let mut waiting = Vec::new();
    let mut announcements = Vec::new();
    let mut again: Vec<Timestamp> = Vec::new();
    let mut blocked: Vec<String> = Vec::new();
    match deployment.spec.replicas {
        None => waiting.push(Wait::on("WaitingForReplicasSet", "spec.replicas is not set")),
        Some(replicas) if deployment.spec.paused == Some(true) => {
            actions.extend(shared(observed, policy, current, replicas));
        }
        Some(replicas) => {
            let old = old_sets(observed, current);
            let census = Census::of(&observed.machines);
            let plan = rollout::plan(policy, replicas, census.sizes(current), &census.all(&old));
            let newest = old.iter().map(|set| desired::revision(set)).max().unwrap_or(0);
            let known = current.map_or(0, desired::revision);
            let revision = Some(if known > newest { known } else { newest + 1 });
            let role = Role { replicas: plan.new, revision, is_closed: false };
            match current {
                Some(set) => actions.extend(amend(deployment, policy, set, role)),
                None => {
                    let made = make_set(observed, policy, role, now);
                    if let Ok(set) = &made {
                        let name = set.metadata.name.as_deref().unwrap_or_default();
                        let words = format!("Created MachineSet {name}");
                        announcements.push(Announcement::normal(event::SUCCESSFUL_CREATE, words));
                    }
                    match made {
                        Ok(set) => actions.push(Action::CreateSet(set)),
                        Err(faults) => {
                            blocked.extend(faults);
                            again.extend(now.checked_add(TEMPLATE_AGAIN).ok());
                        }
                    }
                }
            }
            // Nothing old is touched before there is something new.
            if current.is_some() {
                for (set, size) in old.iter().zip(&plan.old) {
                    let is_closed = policy.is_on_delete;
                    let role = Role { replicas: *size, revision: None, is_closed };
                    actions.extend(amend(deployment, policy, set, role));
                }
                actions.extend(empty_sets(&census, current, &old, replicas));
            }
            waiting.extend(told(&census, &plan, replicas, current, &old));
        }
    }
    blocked.extend(observed.last_failure.filter(|_| !actions.is_empty()).map(str::to_owned));
    // Last: a template that may not be changed keeps nothing from its Machines.
    actions.extend(template_actions(observed));

    let described =
        status::describe(deployment, policy, &observed.machines, current, &blocked, now);
    let mut decision = spaced(observed, described, now);
    decision.actions = actions;
    decision.waiting = waiting;
    decision.announcements = announcements;
    again.extend(scaling::next_change(&observed.machines, now));
    let after = deployment.spec.rollout.after.as_ref().map(|after| after.0);
    again.extend(after.filter(|after| *after > now));
    for at in again {
        decision.recheck_by(at);
    }
    decision
}

fn template_actions(observed: &Observed<'_>) -> Vec<Action> {
    let Some(cluster) = observed.cluster else { return Vec::new() };
    let owner = plain_reference(cluster);
    let name = &observed.deployment.spec.cluster_name;
    observed
        .templates
        .iter()
        .filter_map(|template| {
            let Found::Whole { metadata, .. } = &template.found else { return None };
            let patch = ownership::with_owner(metadata, &owner, name)?;
            Some(Action::AmendTemplate { part: template.part, patch })
        })
        .collect()
}

fn amend(
    deployment: &MachineDeployment,
    policy: &Policy,
    set: &MachineSet,
    role: Role,
) -> Option<Action> {
    let patch = desired::amendment(deployment, policy, set, role)?;
    Some(Action::AmendSet { set: Identity::of(&set.metadata), patch })
}

/// The set of the current template, or why it cannot be made.
fn make_set(
    observed: &Observed<'_>,
    policy: &Policy,
    role: Role,
    now: Timestamp,
) -> Result<Box<MachineSet>, Vec<String>> {
    if let Some(cluster) = observed.cluster.filter(|cluster| is_deleting(&cluster.metadata)) {
        let name = cluster.metadata.name.as_deref().unwrap_or_default();
        return Err(vec![format!("Cluster {name} is being deleted")]);
    }
    let faults = making::template_faults(&observed.templates);
    if !faults.is_empty() {
        return Err(faults);
    }
    if observed.templates.is_empty() {
        return Err(Vec::new());
    }
    if observed.unreadable > 0 {
        return Err(vec![format!(
            "{} MachineSets of this deployment cannot be read; one of them may be the wanted one",
            observed.unreadable
        )]);
    }
    let deployment = observed.deployment;
    let after = current::expired_rollout(deployment, &observed.sets, now);
    let base = deployment.metadata.name.as_deref().unwrap_or_default();
    let is_taken =
        |name: &str| observed.sets.iter().any(|set| set.metadata.name.as_deref() == Some(name));
    let free = (0..NAMES_TRIED).find_map(|taken| {
        let letters = desired::letters(deployment, after, taken);
        let name = naming::set_name(base, &letters);
        (!is_taken(&name)).then_some((name, letters))
    });
    let Some((name, letters)) = free else {
        return Err(vec!["all names of sets for this template are taken by other sets".to_owned()]);
    };
    let hash = desired::hash(&letters);
    Ok(Box::new(desired::new_set(deployment, policy, role, &name, &hash, after)))
}

/// The sets of other templates, the oldest first.
fn old_sets<'a>(observed: &Observed<'a>, current: Option<&MachineSet>) -> Vec<&'a MachineSet> {
    let mut old: Vec<&MachineSet> = observed
        .sets
        .iter()
        .copied()
        .filter(|set| current.is_none_or(|current| current.metadata.uid != set.metadata.uid))
        .filter(|set| !is_deleting(&set.metadata))
        .collect();
    old.sort_by_key(|set| (current::created(set), set.metadata.name.clone()));
    old
}

/// Old sets without Machines go when the current one is complete.
fn empty_sets(
    census: &Census<'_>,
    current: Option<&MachineSet>,
    old: &[&MachineSet],
    replicas: i32,
) -> Vec<Action> {
    let new = census.sizes(current);
    let is_complete =
        new.is_told && (new.spec, new.status) == (replicas, replicas) && new.available >= replicas;
    let is_empty = |set: &&&MachineSet| {
        let sizes = census.sizes(Some(set));
        sizes.is_told && (sizes.spec, sizes.status) == (0, 0)
    };
    let empty = old.iter().filter(|_| is_complete).filter(is_empty);
    empty.map(|set| Action::DeleteSet(Identity::of(&set.metadata))).collect()
}

fn told(
    census: &Census<'_>,
    plan: &rollout::Plan,
    replicas: i32,
    current: Option<&MachineSet>,
    old: &[&MachineSet],
) -> Option<Wait> {
    let new = census.sizes(current);
    let left: i32 = census.all(old).iter().map(|one| one.spec.max(one.status)).sum();
    if left > 0 {
        let words = format!(
            "{} of {replicas} machines are of the current template and work, {left} are of older ones",
            new.available
        );
        return Some(Wait::on("RollingOut", words));
    }
    let is_whole = plan.new == replicas && (new.status, new.available) == (replicas, replicas);
    (!is_whole).then(|| {
        let words = format!("{} of {replicas} machines work", new.available);
        Wait::on("Scaling", words)
    })
}

/// The sizes while the rollout is paused.
fn shared(
    observed: &Observed<'_>,
    policy: &Policy,
    current: Option<&MachineSet>,
    replicas: i32,
) -> Vec<Action> {
    let deployment = observed.deployment;
    let mut sets = old_sets(observed, None);
    sets.reverse();
    let most = |set: &MachineSet| {
        identity::annotation(&set.metadata, annotation::MAX_REPLICAS)
            .and_then(|text| text.parse().ok())
    };
    let census = Census::of(&observed.machines);
    let share = |set: &&MachineSet| Shared { sizes: census.sizes(Some(set)), most: most(set) };
    let shares: Vec<Shared> = sets.iter().map(share).collect();
    let place = current
        .and_then(|current| sets.iter().position(|set| set.metadata.uid == current.metadata.uid));
    let wanted = paused::scale(replicas, policy.surge(replicas), &shares, place);
    sets.iter()
        .zip(wanted)
        .filter(|(set, size)| set.spec.replicas != Some(*size))
        .filter_map(|(set, replicas)| {
            let role = Role { replicas, revision: None, is_closed: false };
            amend(deployment, policy, set, role)
        })
        .collect()
}

/// What is missing on the deployment itself, and the revision of its current set.
fn amendment(observed: &Observed<'_>, current: Option<&MachineSet>) -> Option<Value> {
    let deployment = observed.deployment;
    // One that is about to get a newer revision is not copied from.
    let newest = observed.sets.iter().map(|set| desired::revision(set)).max();
    let revision = current
        .filter(|set| Some(desired::revision(set)) == newest)
        .filter(|set| is_controlled_by(&set.metadata, deployment.metadata.uid.as_deref()))
        .and_then(|set| identity::annotation(&set.metadata, annotation::REVISION))
        .filter(|revision| {
            identity::annotation(&deployment.metadata, annotation::REVISION) != Some(revision)
        });
    let member = Member {
        metadata: &deployment.metadata,
        cluster_name: &deployment.spec.cluster_name,
        selector: &deployment.spec.selector,
        template_labels: &deployment.spec.template.metadata.labels,
        finalizer: finalizer::MACHINE_DEPLOYMENT,
        is_of_another: false,
    };
    let revision = revision.map(|revision| json!({ annotation::REVISION: revision }));
    member.amendment(observed.cluster?, revision)
}

/// All sets go; then the deployment does.
fn deleting(observed: &Observed<'_>, now: Timestamp) -> MachineDeploymentDecision {
    let deployment = observed.deployment;
    let uid = deployment.metadata.uid.as_deref();
    let own: Vec<&MachineSet> =
        observed.sets.iter().copied().filter(|set| is_controlled_by(&set.metadata, uid)).collect();
    let status = match validate(deployment) {
        Ok(policy) => status::describe(deployment, &policy, &observed.machines, None, &[], now),
        Err(fault) => {
            let mut status = status::invalid(deployment, &fault.to_string(), now);
            let deleting = scaling::deleting(true, &observed.machines, now);
            status::put(deployment, &mut status, [deleting]);
            status
        }
    };
    let mut decision = spaced(observed, status, now);
    let live = own.iter().filter(|set| !is_deleting(&set.metadata));
    decision.actions = live.map(|set| Action::DeleteSet(Identity::of(&set.metadata))).collect();
    if !own.is_empty() || observed.unreadable > 0 {
        let count = own.len() + observed.unreadable;
        decision.waiting.push(Wait::on("Deleting", format!("{count} sets are not gone yet")));
        return decision;
    }
    let finalizers = deployment.metadata.finalizers.clone().unwrap_or_default();
    let left: Vec<&String> =
        finalizers.iter().filter(|known| *known != finalizer::MACHINE_DEPLOYMENT).collect();
    if left.len() < finalizers.len() {
        let patch = json!({ "metadata": { "finalizers": left } });
        decision.actions.push(Action::RemoveFinalizer(patch));
    }
    decision
}

fn spaced(
    observed: &Observed<'_>,
    new: MachineDeploymentStatus,
    now: Timestamp,
) -> MachineDeploymentDecision {
    progress::spaced(observed.deployment.status.as_ref(), observed.status_written_at, new, now)
}
