//! What to do for a MachineHealthCheck: say on each machine how it is, and ask for the remediation of those that are not
//! well, unless there are too many of them.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use machinist_api::{
    cluster_api::{
        Cluster, Machine, MachineHealthCheckStatus, MachineStatus, RemediationTemplateRef,
        condition::{self, FALSE, TRUE},
        names::{condition_type, event, kind, label, reason},
    },
    names::reason::DISRUPTION_HELD,
};
use serde_json::{Map, Value, json};

use super::{
    observed::{Doubt, Observed, Policy, Target, Trigger},
    verdict::{self, Verdict, is_asked_for_by_hand, is_initialized, is_watched, judge},
};
use crate::{
    cluster_api::{
        contract::{
            GroupKind,
            cloning::{self, Clone as Wanted},
        },
        deprecated,
        identity::{self, Identity, is_deleting, plain_reference},
        machineset::observed::Found,
        pausing,
        scaling::conditions_of,
    },
    decision::{Announcement, Decision, Wait},
    health::count::Tally,
};

/// How often the gate, a template and a request are asked for again: not all that a check reads wakes it.
const HELD_RECHECK: SignedDuration = SignedDuration::from_secs(30);
/// How soon doubtful sight is looked through again: an interrupted watch that goes on wakes nobody.
const DOUBT_RECHECK: SignedDuration = SignedDuration::from_secs(10);
/// How long Machines have to say what is seen again of their Nodes: whoever writes that on them is woken together with the check.
const SETTLING: SignedDuration = SignedDuration::from_secs(60);

pub type HealthDecision = Decision<Action, MachineHealthCheckStatus>;

/// One step for a check. Each names the uid and resourceVersion that it was decided on (Rule 3).
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Changes the check itself: its owner and its label.
    Amend(Value),
    /// Says on a Machine how it is, and whether its owner is to act; one write for both.
    Mark { machine: Identity, status: Box<MachineStatus> },
    /// Asks another controller to act, in the version of its API that the check names. One that is there already is left alone.
    Request { kind: GroupKind, version: String, object: Box<Value> },
    /// Takes a request back: the machine recovered.
    Withdraw { kind: GroupKind, version: String, object: Identity },
}

pub fn decide(observed: &Observed<'_>, now: Timestamp) -> HealthDecision {
    let check = observed.check;
    let stored = check.status.clone().unwrap_or_default();
    let Some(cluster) = observed.cluster else {
        let mut decision = Decision::settled(stored);
        let words = format!("there is no Cluster {} in this namespace", check.spec.cluster_name);
        decision.waiting.push(Wait::on("ClusterNotFound", words));
        return decision;
    };
    let mut status = stored;
    let paused =
        pausing::paused_condition(kind::MACHINE_HEALTH_CHECK, &check.metadata, Some(cluster), now);
    let generation = check.metadata.generation;
    condition::set(&mut status.conditions, paused, generation);
    if pausing::is_paused(&check.metadata, Some(cluster)) || is_deleting(&check.metadata) {
        let mut decision = Decision::settled(status);
        decision.waiting.push(Wait::on("Paused", "the check or its Cluster is paused"));
        return decision;
    }
    let policy = match Policy::read(check) {
        Ok(policy) => policy,
        Err(fault) => {
            let message = fault.to_string();
            status.observed_generation = generation;
            let type_ = condition_type::REMEDIATION_ALLOWED;
            let refused = condition::new(type_, FALSE, reason::INTERNAL_ERROR, &message, now);
            condition::set(&mut status.conditions, refused, generation);
            let mut decision = Decision::settled(status);
            decision.waiting.push(Wait::on("InvalidConfiguration", message));
            return decision;
        }
    };

    let mut targets: Vec<&Target<'_>> =
        observed.targets.iter().filter(|target| is_watched(target.machine)).collect();
    targets.sort_by(|left, right| left.machine.metadata.name.cmp(&right.machine.metadata.name));
    let doubt = doubt(observed, cluster, now);
    let last_told = verdict::last_told(targets.iter().map(|target| target.machine));
    if doubt.is_some() {
        targets.retain(|target| is_asked_for_by_hand(target.machine));
    }
    let judged: Vec<(&Machine, Verdict)> = targets
        .iter()
        .map(|target| (target.machine, judge(&policy, cluster, target, now)))
        .collect();
    let tally = match doubt {
        Some(_) => last_told,
        None => verdict::tally(judged.iter().map(|(_, verdict)| verdict)),
    };
    let allowed = allowed(policy.trigger, &tally);
    let held = match allowed {
        Some(_) => held(observed, &policy, &judged, now),
        None => BTreeMap::new(),
    };

    let mut decision = Decision::settled(status);
    match doubt {
        // Numbers out of the past are no news, so those that were told stay.
        Some(why) => {
            let words = format!("nothing is remediated but what a person asks for: {why}");
            decision.waiting.push(Wait::on("ObservationDoubtful", words));
            decision.recheck_by(later(now, DOUBT_RECHECK));
        }
        None => publish(observed, &mut decision, &policy, &judged, &tally, (allowed, &held), now),
    }
    decision.actions.extend(amendment(observed).map(Action::Amend));
    for (machine, verdict) in &judged {
        let is_held = held.contains_key(name_of(machine));
        let is_allowed = allowed.is_some() && !is_held;
        act(observed, &mut decision, &policy, machine, verdict, is_allowed, now);
        if let Some(until) = verdict.until() {
            decision.recheck_by(until);
        }
    }
    decision
}

/// Why nothing is judged now, if that is so. Only over the connection does a Machine get its Node, so without it also one that
/// has none yet, and what we say ourselves of its Node, tell of us and not of the machine.
fn doubt(observed: &Observed<'_>, cluster: &Cluster, now: Timestamp) -> Option<String> {
    match &observed.doubt {
        Some(Doubt::Machines) => {
            Some("the watch of Cluster API's machines is interrupted".to_owned())
        }
        Some(Doubt::Nodes(why)) => is_initialized(cluster).then(|| why.clone()),
        None => observed
            .doubted_at
            .filter(|at| is_initialized(cluster) && now < later(*at, SETTLING))
            .map(|_| "the nodes are seen again for less than a minute".to_owned()),
    }
}

fn later(now: Timestamp, wait: SignedDuration) -> Timestamp {
    now.checked_add(wait).unwrap_or(Timestamp::MAX)
}

fn name_of(machine: &Machine) -> &str {
    machine.metadata.name.as_deref().unwrap_or_default()
}

/// Which of the unhealthy machines the gate holds, by name, and why. Those whose owner was asked before are counted first: that
/// is done.
fn held<'a>(
    observed: &Observed<'_>,
    policy: &Policy,
    judged: &[(&'a Machine, Verdict)],
    now: Timestamp,
) -> BTreeMap<&'a str, String> {
    let mut gate = observed.gate.clone();
    let (asked, new): (Vec<&Machine>, Vec<&Machine>) = judged
        .iter()
        .filter(|(machine, verdict)| {
            matches!(verdict, Verdict::Unhealthy { .. }) && !is_deleting(&machine.metadata)
        })
        .map(|(machine, _)| *machine)
        .partition(|machine| is_asked_for(observed, policy, machine));
    for machine in asked {
        gate.note(machine);
    }
    let answers = new
        .into_iter()
        .filter_map(|machine| Some((name_of(machine), gate.permit(machine, policy, now).err()?)));
    answers.collect()
}

/// Whether the owner of a machine, or another controller, was asked to replace it before.
fn is_asked_for(observed: &Observed<'_>, policy: &Policy, machine: &Machine) -> bool {
    match &policy.template {
        None => is_owner_asked(machine),
        Some(_) => observed.requests.iter().any(|request| request.name == machine.metadata.name),
    }
}

/// How many more may become unhealthy; `None` when nothing may be remediated.
fn allowed(trigger: Trigger, tally: &Tally) -> Option<usize> {
    match trigger {
        Trigger::AtMost(most) => tally.remediations_allowed(most),
        Trigger::InRange { least, most } => {
            let unhealthy = tally.unhealthy();
            (least <= unhealthy).then(|| most.checked_sub(unhealthy)).flatten()
        }
    }
}

fn publish(
    observed: &Observed<'_>,
    decision: &mut HealthDecision,
    policy: &Policy,
    judged: &[(&Machine, Verdict)],
    tally: &Tally,
    (allowed, held): (Option<usize>, &BTreeMap<&str, String>),
    now: Timestamp,
) {
    let number = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
    let generation = observed.check.metadata.generation;
    let is_told =
        condition::is_false(&decision.status.conditions, condition_type::REMEDIATION_ALLOWED);
    let status = &mut decision.status;
    status.expected_machines = Some(number(tally.expected));
    status.current_healthy = Some(number(tally.healthy));
    status.remediations_allowed = Some(match held.is_empty() {
        true => number(allowed.unwrap_or(0)),
        false => 0,
    });
    status.observed_generation = generation;
    status.targets =
        judged.iter().filter_map(|(machine, _)| machine.metadata.name.clone()).collect();
    let type_ = condition_type::REMEDIATION_ALLOWED;
    let restriction = match (allowed, held.values().next()) {
        (None, _) => Some((reason::TOO_MANY_UNHEALTHY, restricted(policy.trigger, tally))),
        (Some(_), Some(first)) => {
            decision.recheck_by(later(now, HELD_RECHECK));
            let others = match held.len() {
                1 => String::new(),
                count => format!("; and {} more", count - 1),
            };
            Some((DISRUPTION_HELD, format!("Remediation is held: {first}{others}")))
        }
        (Some(_), None) => None,
    };
    let new = match restriction {
        None => condition::new(type_, TRUE, reason::REMEDIATION_ALLOWED, "", now),
        Some((why, words)) => {
            if !is_told {
                let restricted = Announcement::warning(event::REMEDIATION_RESTRICTED, &words);
                decision.announcements.push(restricted);
            }
            decision.waiting.push(Wait::on(why, &words));
            condition::new(type_, FALSE, why, words, now)
        }
    };
    condition::set(&mut decision.status.conditions, new, generation);
}

fn restricted(trigger: Trigger, tally: &Tally) -> String {
    match trigger {
        Trigger::AtMost(most) => format!(
            "Remediation is not allowed, the number of unhealthy machines exceeds \
             unhealthyLessThanOrEqualTo {}",
            tally.figures(most)
        ),
        Trigger::InRange { least, most } => format!(
            "Remediation is not allowed, the number of unhealthy machines is not within the range \
             (total: {}, unhealthy: {}, unhealthyInRange: [{least}-{most}])",
            tally.counted(),
            tally.unhealthy()
        ),
    }
}

/// What is said on one machine, and what is asked of others.
fn act(
    observed: &Observed<'_>,
    decision: &mut HealthDecision,
    policy: &Policy,
    machine: &Machine,
    verdict: &Verdict,
    is_allowed: bool,
    now: Timestamp,
) {
    let mut status = machine.status.clone().unwrap_or_default();
    let generation = machine.metadata.generation;
    let say = |status: &mut MachineStatus, type_, is_true: bool, reason: &str, words: &str| {
        let truth = if is_true { TRUE } else { FALSE };
        let new = condition::new(type_, truth, reason, words, now);
        condition::set(&mut status.conditions, new, generation);
    };
    let succeeded = condition_type::HEALTH_CHECK_SUCCEEDED;
    match verdict {
        Verdict::Healthy => {
            say(&mut status, succeeded, true, reason::HEALTH_CHECK_SUCCEEDED, "");
            condition::remove(&mut status.conditions, condition_type::EXTERNALLY_REMEDIATED);
            deprecated::checked(&mut status, None, now);
            decision.actions.extend(withdrawal(observed, policy, machine));
        }
        Verdict::Unhealthy { reason: why, message } => {
            say(&mut status, succeeded, false, why, message);
            deprecated::checked(&mut status, Some((why, message)), now);
            if is_allowed && !is_deleting(&machine.metadata) {
                let was_told = condition::is_false(conditions_of(machine), succeeded);
                match &policy.template {
                    None if is_owner_asked(machine) => {}
                    None => {
                        let type_ = condition_type::OWNER_REMEDIATED;
                        let (why, words) =
                            (reason::WAITING_FOR_REMEDIATION, "Waiting for remediation");
                        say(&mut status, type_, false, why, words);
                        deprecated::owner_remediated(&mut status, Some(Some("")), now);
                    }
                    Some(template) => {
                        let (why, words) = external(observed, decision, template, machine);
                        // Neither a template nor a request wakes a check.
                        decision.recheck_by(later(now, HELD_RECHECK));
                        say(&mut status, condition_type::EXTERNALLY_REMEDIATED, false, why, &words);
                    }
                }
                if !was_told {
                    let name = machine.metadata.name.as_deref().unwrap_or_default();
                    let words = format!("Machine {name} has been marked as unhealthy: {message}");
                    let announcement = Announcement::normal(event::MACHINE_MARKED_UNHEALTHY, words);
                    decision.announcements.push(announcement);
                }
            }
        }
        Verdict::Starting { .. }
        | Verdict::Suspect { .. }
        | Verdict::Unjudged
        | Verdict::Deleting => {}
    }
    if machine.status.as_ref() != Some(&status) && machine.status.is_some()
        || machine.status.is_none() && status != MachineStatus::default()
    {
        let machine = Identity::of(&machine.metadata);
        decision.actions.push(Action::Mark { machine, status: Box::new(status) });
    }
}

/// The owner keeps what it says itself: its own reasons are not written over.
fn is_owner_asked(machine: &Machine) -> bool {
    condition::is_false(conditions_of(machine), condition_type::OWNER_REMEDIATED)
}

/// Asks for a remediation by another controller, once; a reason and words for the Machine.
fn external(
    observed: &Observed<'_>,
    decision: &mut HealthDecision,
    template: &RemediationTemplateRef,
    machine: &Machine,
) -> (&'static str, String) {
    let waiting = (reason::WAITING_FOR_REMEDIATION, "Waiting for external remediation".to_owned());
    let name = machine.metadata.name.as_deref().unwrap_or_default();
    if observed.requests.iter().any(|request| request.name.as_deref() == Some(name)) {
        return waiting;
    }
    let described = format!("remediation template {} {}", template.kind, template.name);
    let object = match &observed.template {
        Some(Found::Whole { object, .. }) => object,
        Some(Found::Unknown(why)) => {
            let words = format!("Error retrieving {described}: {why}");
            return (reason::REMEDIATION_TEMPLATE_NOT_FOUND, words);
        }
        Some(Found::Missing) | None => {
            let words = format!("Error retrieving {described}: it does not exist");
            return (reason::REMEDIATION_TEMPLATE_NOT_FOUND, words);
        }
    };
    let (source, version) = template_kind(template);
    let owner = plain_reference(machine);
    let (labels, annotations) = (BTreeMap::new(), BTreeMap::new());
    let wanted = Wanted {
        name,
        namespace: machine.metadata.namespace.as_deref().unwrap_or_default(),
        cluster: &machine.spec.cluster_name,
        owner: Some(&owner),
        labels: &labels,
        annotations: &annotations,
    };
    let object = Box::new(cloning::clone_from(object, &source, &wanted));
    let kind = cloning::cloned_kind(&source);
    decision.actions.push(Action::Request { kind, version, object });
    match observed.last_failure {
        Some(failure) => (reason::REMEDIATION_REQUEST_CREATION_FAILED, failure.to_owned()),
        None => waiting,
    }
}

fn withdrawal(observed: &Observed<'_>, policy: &Policy, machine: &Machine) -> Option<Action> {
    let template = policy.template.as_ref()?;
    let request = observed.requests.iter().find(|request| {
        let owners = request.owner_references.iter().flatten();
        request.name == machine.metadata.name
            && !is_deleting(request)
            && owners.into_iter().any(|owner| Some(&owner.uid) == machine.metadata.uid.as_ref())
    })?;
    let (source, version) = template_kind(template);
    let kind = cloning::cloned_kind(&source);
    Some(Action::Withdraw { kind, version, object: Identity::of(request) })
}

/// The kind of a template, and the version that its reference names: whoever remediates is no provider of Cluster API, whose
/// definitions say in labels how they are spoken to.
pub fn template_kind(template: &RemediationTemplateRef) -> (GroupKind, String) {
    let named = template.api_version.as_str();
    let (group, version) = named.split_once('/').unwrap_or(("", named));
    (GroupKind::new(group, &template.kind), version.to_owned())
}

/// The owner and the label that the check misses.
fn amendment(observed: &Observed<'_>) -> Option<Value> {
    let check = observed.check;
    let cluster = observed.cluster?;
    let mut metadata = Map::new();
    if !identity::is_owned_by_cluster(&check.metadata, cluster) {
        let owners = identity::with_owner(&check.metadata, plain_reference(cluster));
        metadata.insert("ownerReferences".to_owned(), json!(owners));
    }
    let name = &check.spec.cluster_name;
    if identity::label(&check.metadata, label::CLUSTER_NAME) != Some(name) {
        metadata.insert("labels".to_owned(), json!({ label::CLUSTER_NAME: name }));
    }
    (!metadata.is_empty()).then(|| json!({ "metadata": metadata }))
}
