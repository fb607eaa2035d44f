//! What to do for a Machine that is being deleted: wait for the drain and the hooks, terminate,
//! wait until nothing is left, then let go.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use machinist_api::{
    Condition, ConditionSeverity, Machine,
    condition::{self, ConditionStatus},
    names::{annotation, condition_type, event, label, phase, reason},
};

use super::{
    decide::{Action, MachineDecision, MetadataChange, settle},
    observed::{
        CloudKnowledge, Identity, Observed, Policy, has_finalizer, may_have_instance,
        provider_status, validate,
    },
    status::{StatusDraft, go_list},
};
use crate::{
    cloud::{Instance, InstanceState, RebootMigration, RootDevice, StateReason},
    decision::{Announcement, Wait},
    drain, node,
};

pub(super) fn decide(
    observed: &Observed<'_>,
    mut draft: StatusDraft,
    policy: &Policy,
    now: Timestamp,
) -> MachineDecision {
    let machine = observed.machine;
    draft.set_phase(phase::DELETING);
    if !has_finalizer(machine) {
        return settle(machine, draft);
    }
    let drained = condition::find(&draft.status.conditions, condition_type::DRAINED).cloned();
    if !condition::is_true(&draft.status.conditions, condition_type::DRAINED) {
        let message = drained
            .and_then(|condition| condition.message)
            .unwrap_or_else(|| "waiting for the node to be drained".to_owned());
        return waiting(machine, draft, reason::DRAINING, message);
    }
    let hooks = machine.spec.lifecycle_hooks.clone().unwrap_or_default().pre_terminate;
    if !hooks.is_empty() {
        let message = format!("Terminate operation currently blocked by: {}", go_list(&hooks));
        return waiting(machine, draft, reason::HOOK_PRESENT, message);
    }
    if !may_have_instance(machine) && !is_anything_seen(observed) {
        // No intent was ever stored, so nothing was launched: neither cloud nor credentials are
        // needed to let go.
        return let_go(observed, draft);
    }
    match &observed.cloud {
        CloudKnowledge::Loading => waiting(
            machine,
            draft,
            reason::ERROR_CHECKING_PROVIDER,
            "waiting for the first answer of the cloud",
        ),
        CloudKnowledge::Unknown(failure) => {
            let message = format!("Failed to check if machine exists: {}", failure.message);
            draft.instance_unknown(reason::ERROR_CHECKING_PROVIDER, &message);
            let mut decision = waiting(machine, draft, failure.class.as_str(), message.clone());
            decision.announcements.push(Announcement::warning(event::FAILED_DELETE, message));
            decision
        }
        CloudKnowledge::Known(instances) => {
            terminate_what_is_left(observed, instances, draft, policy, now)
        }
    }
}

/// The Node, where somebody made it schedulable again after it was drained: pods may have come. Between
/// a drain and the termination a hook may lie, and hours.
fn uncordoned_since_its_drain<'a>(observed: &Observed<'a>, draft: &StatusDraft) -> Option<&'a str> {
    let node = observed.node.one().filter(|node| !node::is_unschedulable(node))?;
    let drained = condition::find(&draft.status.conditions, condition_type::DRAINED)?;
    let was_skipped =
        drained.message.as_ref().is_some_and(|message| message.starts_with(drain::decide::SKIPPED));
    (!was_skipped).then(|| node::name(node))
}

fn terminate_what_is_left(
    observed: &Observed<'_>,
    instances: &[Instance],
    mut draft: StatusDraft,
    policy: &Policy,
    now: Timestamp,
) -> MachineDecision {
    let machine = observed.machine;
    let identity = Identity::of(machine);
    let mut left: Vec<&Instance> =
        instances.iter().filter(|one| is_ours(one, &identity) && one.state.is_live()).collect();
    left.sort_by(|one, other| one.id.cmp(&other.id));

    let stored = instances.iter().find(|one| Some(&one.id) == identity.instance_id.as_ref());
    if let Some(instance) = stored.filter(|one| is_ours(one, &identity)) {
        draft.provider.instance_state = Some(instance.state.as_str().to_owned());
    }
    // One effect in a pass: the next follows when this one is seen.
    let next = left.iter().find(|one| one.state != InstanceState::ShuttingDown);
    let is_unrecorded = identity.instance_id.is_none();
    if let Some(found) = next.filter(|one| is_unrecorded && one.state != InstanceState::Pending) {
        // The answer to its launch was lost. Its Node may have joined and taken pods meanwhile, and a
        // drain without a known instance found no Node.
        draft.provider.instance_id = Some(found.id.0.clone());
        draft.provider.instance_state = Some(found.state.as_str().to_owned());
        draft.status.conditions.retain(|known| known.type_ != condition_type::DRAINED);
        let message = format!("instance {} was found; its node is drained first", found.id);
        return waiting(machine, draft, reason::DRAINING, message);
    }
    if let Some(node) = uncordoned_since_its_drain(observed, &draft).filter(|_| next.is_some()) {
        draft.status.conditions.retain(|known| known.type_ != condition_type::DRAINED);
        let message = format!("node {node} was uncordoned after its drain, and is drained again");
        return waiting(machine, draft, reason::DRAINING, message);
    }
    if let Some(instance) = next {
        let refused = termination_refused(&draft);
        stops_running(&mut draft, instance, now);
        let (word, message) = match refused {
            Some(message) => (reason::TERMINATION_FAILED, message),
            None => {
                let message = format!("instance {} is being terminated", instance.id);
                (reason::TERMINATING, message)
            }
        };
        let mut decision = waiting(machine, draft, word, message);
        // Traffic leaves first.
        if must_detach(machine) {
            decision.actions.push(Action::Detach { instance: Box::new((*instance).clone()) });
        }
        decision.actions.push(Action::Terminate { id: instance.id.clone() });
        recheck_termination(&mut decision, now);
        return decision;
    }
    if let Some(instance) = left.first() {
        let message = format!("instance {} is shutting down", instance.id);
        stops_running(&mut draft, instance, now);
        draft.instance_exists();
        let mut decision = waiting(machine, draft, reason::TERMINATING, message);
        decision.actions.extend(show_state(machine, instance));
        recheck_termination(&mut decision, now);
        return decision;
    }
    if let Some(until) = launch_may_still_appear(machine, &identity, instances, policy, now) {
        let mut decision = waiting(
            machine,
            draft,
            "LaunchUnresolved",
            "a launch was begun and its result is not known; waiting until it would be visible",
        );
        decision.recheck_by(until);
        return decision;
    }
    let_go(observed, draft)
}

/// Why the provider would not terminate the instance, if it would not.
fn termination_refused(draft: &StatusDraft) -> Option<String> {
    condition::find(&draft.status.conditions, condition_type::INSTANCE_EXISTS)
        .filter(|exists| exists.reason.as_deref() == Some(reason::TERMINATION_FAILED))
        .and_then(|exists| exists.message.clone())
}

/// Says that the instance is going because we terminate it, unless it was down before.
fn stops_running(draft: &mut StatusDraft, instance: &Instance, now: Timestamp) {
    let is_down = condition::find(&draft.status.conditions, condition_type::INSTANCE_RUNNING)
        .is_some_and(|running| running.status == ConditionStatus::False);
    if !is_down {
        draft.set(Condition::fails(
            condition_type::INSTANCE_RUNNING,
            ConditionSeverity::Info,
            reason::TERMINATING,
            format!("instance {} is terminated with its machine", instance.id),
            now,
        ));
    }
}

/// What carries the uid is ours, even where the Machine's own record of it was lost.
fn is_anything_seen(observed: &Observed<'_>) -> bool {
    let identity = Identity::of(observed.machine);
    match &observed.cloud {
        CloudKnowledge::Known(instances) => instances.iter().any(|one| is_ours(one, &identity)),
        CloudKnowledge::Loading | CloudKnowledge::Unknown(_) => false,
    }
}

/// An instance is ours by the uid tag, or by the stored id when nobody else's uid is on it and the
/// cluster owns it (an instance that another controller made).
fn is_ours(instance: &Instance, identity: &Identity) -> bool {
    match instance.machine_uid() {
        Some(uid) => uid == identity.machine_uid,
        None => {
            Some(&instance.id) == identity.instance_id.as_ref()
                && instance.is_owned_by_cluster(identity.cluster_id.as_deref().unwrap_or_default())
        }
    }
}

/// How long a call to launch may be under way: longer than any caller waits for its answer.
const LAUNCH_CALL: SignedDuration = SignedDuration::from_secs(60);

/// A launch may have happened just before the deletion, and no read may show its instance yet, even
/// where its id is known. Until when to go on looking; `None` once any instance of ours was seen, in
/// whatever state.
fn launch_may_still_appear(
    machine: &Machine,
    identity: &Identity,
    instances: &[Instance],
    policy: &Policy,
    now: Timestamp,
) -> Option<Timestamp> {
    if instances.iter().any(|instance| is_ours(instance, identity)) {
        return None;
    }
    let launched_at = provider_status(machine).launch.map(|intent| intent.since);
    let deleted_at = machine.metadata.deletion_timestamp.as_ref().map(|time| time.0);
    // A stored id without an intent is another controller's launch, long ago or not.
    let last_possible = match (&identity.instance_id, launched_at) {
        (Some(_), Some(at)) => at,
        // The call may still have been on its way, for a process that is gone by now.
        _ => deleted_at?.checked_add(LAUNCH_CALL).ok()?,
    };
    // Who recorded it may have had a clock that was behind; the API server's is not.
    let created_at = machine.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let last_possible = policy.at_latest(last_possible).max(created_at.unwrap_or(last_possible));
    last_possible.checked_add(policy.launch_visibility).ok().filter(|until| *until > now)
}

/// Keeps the State column true while the instance goes.
fn show_state(machine: &Machine, instance: &Instance) -> Option<Action> {
    let state = instance.state.as_str();
    let shown = machine.metadata.annotations.as_ref()?.get(annotation::INSTANCE_STATE)?;
    (shown != state).then(|| {
        let annotations =
            BTreeMap::from([(annotation::INSTANCE_STATE.to_owned(), state.to_owned())]);
        Action::ChangeMetadata(MetadataChange { annotations, ..Default::default() })
    })
}

/// A termination that was accepted and came to nothing is asked for again.
fn recheck_termination(decision: &mut MachineDecision, now: Timestamp) {
    if let Ok(later) = now.checked_add(TERMINATION_RECHECK) {
        decision.recheck_by(later);
    }
}

/// As often as a cloud's instances are listed.
const TERMINATION_RECHECK: SignedDuration = SignedDuration::from_secs(30);

/// Nothing is left in the cloud: the Node goes, then the finalizer (Rules 4 and 6).
fn let_go(observed: &Observed<'_>, draft: StatusDraft) -> MachineDecision {
    let machine = observed.machine;
    let mut decision = settle(machine, draft);
    // What is published now would be gone in the next instant.
    decision.status = machine.status.clone().unwrap_or_default();
    if let Some(node) = observed.node.one() {
        decision.actions.push(Action::DeleteNode {
            name: node::name(node).to_owned(),
            uid: node::uid(node).to_owned(),
        });
    }
    if must_detach(machine)
        && let Some(instance) = remembered(machine)
    {
        decision.actions.push(Action::Detach { instance: Box::new(instance) });
    }
    let record = provider_status(machine);
    let has_host = record.dedicated_host.is_some()
        || validate(machine).is_ok_and(|facts| facts.has_own_host) && record.launch.is_some();
    if has_host {
        decision.actions.push(Action::ReleaseHosts);
        let failure = condition::find(
            machine.status.as_ref().map_or(&[][..], |status| &status.conditions),
            condition_type::INSTANCE_EXISTS,
        )
        .filter(|exists| exists.reason.as_deref() == Some(reason::HOST_NOT_RELEASED))
        .and_then(|exists| exists.message.clone());
        decision.waiting.extend(failure.map(|words| Wait::on(reason::HOST_NOT_RELEASED, words)));
    }
    decision.actions.push(Action::RemoveFinalizer);
    decision.announcements.push(Announcement::normal(
        event::DELETE,
        format!("Deleted machine {}", machine.metadata.name.as_deref().unwrap_or_default()),
    ));
    decision
}

/// Whether the instance may still be registered with load balancers: also where registering it
/// failed half-way.
fn must_detach(machine: &Machine) -> bool {
    let has_balancers = validate(machine).is_ok_and(|facts| !facts.load_balancers.is_empty());
    let conditions = machine.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let attached = condition::find(conditions, condition_type::LOAD_BALANCERS_ATTACHED);
    has_balancers && attached.is_none_or(|known| known.reason.as_deref() != Some(reason::DETACHED))
}

/// The instance as the Machine remembers it, for what is done after it is gone: an address stays
/// registered when its owner goes.
fn remembered(machine: &Machine) -> Option<Instance> {
    let label =
        |key: &str| machine.metadata.labels.as_ref().and_then(|labels| labels.get(key)).cloned();
    Some(Instance {
        id: Identity::of(machine).instance_id?,
        provider_id: machine.spec.provider_id.clone().unwrap_or_default(),
        state: InstanceState::Terminated,
        state_reason: StateReason::default(),
        region: label(label::REGION).unwrap_or_default(),
        zone: label(label::ZONE).unwrap_or_default(),
        instance_type: label(label::INSTANCE_TYPE).unwrap_or_default(),
        launched_at: None,
        client_token: None,
        interruptible: false,
        tags: BTreeMap::new(),
        addresses: machine.status.as_ref()?.addresses.clone(),
        host_id: None,
        root_device: RootDevice::default(),
        reboot_migration: RebootMigration::default(),
    })
}

fn waiting(
    machine: &Machine,
    draft: StatusDraft,
    reason: &'static str,
    message: impl Into<String>,
) -> MachineDecision {
    let mut decision = settle(machine, draft);
    decision.waiting.push(Wait::on(reason, message));
    decision
}
