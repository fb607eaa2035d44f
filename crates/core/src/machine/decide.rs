//! What to do for a Machine, in the contract's order: validate, hold the finalizer, find the
//! instance, launch or take over what the cloud says.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use machinist_api::{
    AuthoritativeApi, Condition, ConditionSeverity, Machine, MachineStatus, condition,
    names::{annotation, condition_type, event, label, phase, reason, tag},
    provider_status::LaunchIntent,
};

use super::{
    deleting,
    observed::{
        CloudKnowledge, Identity, Observed, Policy, client_token, has_finalizer, is_deleting,
        is_provisioned, provider_status, validate, validate_record,
    },
    status::StatusDraft,
};
use crate::{
    cloud::{CloudFailure, Instance, InstanceId, InstanceState},
    decision::{Announcement, Decision, Wait},
    pause,
};

pub type MachineDecision = Decision<Action, MachineStatus>;

/// One step for a Machine. Each is carried out with the uid and resourceVersion that were observed,
/// recording an effect apart (Rule 3).
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    AddFinalizer,
    /// Stores this status, which holds the launch intent, before anything is launched.
    StoreIntent(Box<MachineStatus>),
    Launch {
        client_token: String,
    },
    /// Adds our identity to an instance that another controller made.
    TagInstance {
        id: InstanceId,
        tags: BTreeMap<String, String>,
    },
    /// Labels, annotations and providerID of the Machine object.
    ChangeMetadata(MetadataChange),
    Terminate {
        id: InstanceId,
    },
    DeleteNode {
        name: String,
        uid: String,
    },
    RemoveFinalizer,
}

impl Action {
    /// The kind of action, for logs and metrics.
    pub fn name(&self) -> &'static str {
        match self {
            Self::AddFinalizer => "AddFinalizer",
            Self::StoreIntent(_) => "StoreIntent",
            Self::Launch { .. } => "Launch",
            Self::TagInstance { .. } => "TagInstance",
            Self::ChangeMetadata(_) => "ChangeMetadata",
            Self::Terminate { .. } => "Terminate",
            Self::DeleteNode { .. } => "DeleteNode",
            Self::RemoveFinalizer => "RemoveFinalizer",
        }
    }
}

/// What the Machine object must carry of its instance; only what is missing or different.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetadataChange {
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    pub provider_id: Option<String>,
    /// Labels that the Node is to get (`spec.metadata.labels`).
    pub node_labels: BTreeMap<String, String>,
}

impl MetadataChange {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

pub fn decide(observed: &Observed<'_>, policy: &Policy, now: Timestamp) -> MachineDecision {
    let machine = observed.machine;
    if let Some(decision) = paused(machine, now) {
        return decision;
    }
    if let Err(fault) = validate_record(machine) {
        return unreadable_record(machine, &fault.to_string(), now);
    }
    let draft = StatusDraft::from_machine(machine, &observed.node, now);
    if is_deleting(machine) {
        return deleting::decide(observed, draft, policy, now);
    }
    if let Err(fault) = validate(machine) {
        return invalid(machine, draft, &fault.to_string());
    }
    if !has_finalizer(machine) {
        let mut decision = settle(machine, draft);
        // Published together with what follows once the finalizer is durable (Rule 4).
        decision.status = machine.status.clone().unwrap_or_default();
        decision.actions.push(Action::AddFinalizer);
        return decision;
    }
    if is_failed_for_good(machine) {
        return settle(machine, draft);
    }
    match &observed.cloud {
        CloudKnowledge::Loading => {
            let mut decision = settle(machine, draft);
            decision.waiting.push(Wait::on(
                reason::ERROR_CHECKING_PROVIDER,
                "waiting for the first answer of the cloud",
            ));
            decision
        }
        CloudKnowledge::Unknown(failure) => cloud_unknown(machine, draft, failure),
        CloudKnowledge::Known(instances) => {
            decide_with_cloud(observed, instances, draft, policy, now)
        }
    }
}

/// Whether the next pass would launch, so that the provider's checks are worth asking for.
pub fn wants_launch(observed: &Observed<'_>, policy: &Policy, now: Timestamp) -> bool {
    let machine = observed.machine;
    let CloudKnowledge::Known(instances) = &observed.cloud else { return false };
    !is_deleting(machine)
        && paused(machine, now).is_none()
        && validate_record(machine).is_ok()
        && validate(machine).is_ok()
        && has_finalizer(machine)
        && !is_failed_for_good(machine)
        && !observed.owner_is_deleting
        && launch_held_until(machine, now).is_none()
        && bind(machine, instances, policy, now) == Binding::Nothing
}

/// What the cloud holds for a Machine.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Binding<'a> {
    /// Nothing was ever launched, or the launch's answer was lost: the token tells.
    Nothing,
    One(&'a Instance),
    /// It may be too early to see it.
    NotVisibleYet {
        until: Timestamp,
    },
    Gone {
        why: String,
    },
    /// What is stored contradicts the cloud; nothing is touched.
    Conflict(String),
}

/// Finds the one instance of a Machine: by the stored id, then by the uid tag, never by name
/// (Rule 5).
pub(super) fn bind<'a>(
    machine: &Machine,
    instances: &'a [Instance],
    policy: &Policy,
    now: Timestamp,
) -> Binding<'a> {
    let identity = Identity::of(machine);
    let by_uid = || {
        let mut ours: Vec<&Instance> = instances
            .iter()
            .filter(|instance| instance.machine_uid() == Some(identity.machine_uid.as_str()))
            .collect();
        ours.sort_by_key(|instance| (!instance.state.is_live(), &instance.id));
        ours.first().copied()
    };
    let Some(id) = &identity.instance_id else {
        if is_provisioned(machine) && machine.spec.provider_id.is_some() {
            return Binding::Conflict(format!(
                "spec.providerID: Invalid value: {:?}: names no instance",
                machine.spec.provider_id.as_deref().unwrap_or_default()
            ));
        }
        return match by_uid() {
            Some(instance) if instance.state.is_live() => Binding::One(instance),
            Some(instance) => Binding::Gone { why: instance.state_reason.clone() },
            None if is_provisioned(machine) => Binding::Gone { why: String::new() },
            None => Binding::Nothing,
        };
    };
    match instances.iter().find(|instance| instance.id == *id) {
        Some(instance) => match instance.machine_uid() {
            Some(other) if other != identity.machine_uid => {
                Binding::Conflict(format!("instance {id} belongs to another machine, uid {other}"))
            }
            None if !instance
                .is_owned_by_cluster(identity.cluster_id.as_deref().unwrap_or_default()) =>
            {
                Binding::Conflict(format!(
                    "instance {id} lacks the tag {}={}",
                    tag::cluster(identity.cluster_id.as_deref().unwrap_or_default()),
                    tag::OWNED
                ))
            }
            _ if instance.state.is_live() => Binding::One(instance),
            _ => Binding::Gone { why: instance.state_reason.clone() },
        },
        None => {
            let visible_from = provider_status(machine)
                .launch
                .and_then(|intent| intent.since.checked_add(policy.launch_visibility).ok());
            match visible_from {
                Some(until) if until > now => Binding::NotVisibleYet { until },
                _ => Binding::Gone { why: String::new() },
            }
        }
    }
}

fn decide_with_cloud(
    observed: &Observed<'_>,
    instances: &[Instance],
    draft: StatusDraft,
    policy: &Policy,
    now: Timestamp,
) -> MachineDecision {
    let machine = observed.machine;
    match bind(machine, instances, policy, now) {
        Binding::One(instance) => take_over(machine, instance, draft),
        Binding::Nothing => launch(observed, draft, now),
        Binding::NotVisibleYet { until } => {
            let mut decision = settle(machine, draft);
            decision.recheck_by(until);
            decision.waiting.push(Wait::on(
                reason::INSTANCE_NOT_CREATED,
                "the instance was launched and is not visible yet",
            ));
            decision
        }
        Binding::Gone { why } => gone(machine, draft, &why),
        Binding::Conflict(message) => {
            let mut draft = draft;
            draft.instance_unknown(reason::INVALID_CONFIGURATION, &message);
            let mut decision = settle(machine, draft);
            decision.announcements.push(Announcement::warning(event::FAILED_UPDATE, &message));
            decision.waiting.push(Wait::on(reason::INVALID_CONFIGURATION, message));
            decision
        }
    }
}

fn take_over(machine: &Machine, instance: &Instance, mut draft: StatusDraft) -> MachineDecision {
    draft.take_instance(instance);
    draft.instance_exists();
    let mut actions = Vec::new();
    if instance.machine_uid().is_none() {
        let uid = machine.metadata.uid.clone().unwrap_or_default();
        let tags = BTreeMap::from([(tag::MACHINE_UID.to_owned(), uid)]);
        actions.push(Action::TagInstance { id: instance.id.clone(), tags });
    }
    // While the instance is pending nothing but its id is worth a write: its addresses and state
    // change within seconds and would cost every launch two more.
    let is_settled = instance.state != InstanceState::Pending || is_provisioned(machine);
    if is_settled {
        let change = metadata_of(machine, instance);
        if !change.is_empty() {
            actions.push(Action::ChangeMetadata(change));
        }
        draft.status.addresses = instance.addresses.clone();
        let linked = draft.status.node_ref.is_some();
        draft.set_phase(if linked { phase::RUNNING } else { phase::PROVISIONED });
        draft.clear_failure();
    } else {
        draft.set_phase(phase::PROVISIONING);
    }
    let linked = draft.status.node_ref.is_some();
    let mut decision = settle(machine, draft);
    decision.actions = actions;
    if !is_settled {
        decision.waiting.push(Wait::on(
            "InstancePending",
            format!("instance {} is {}", instance.id, instance.state.as_str()),
        ));
    } else if !linked {
        decision
            .waiting
            .push(Wait::on("NodeMissing", format!("instance {} has no node yet", instance.id)));
    }
    decision
}

fn metadata_of(machine: &Machine, instance: &Instance) -> MetadataChange {
    let mut labels = BTreeMap::from([
        (label::REGION.to_owned(), instance.region.clone()),
        (label::ZONE.to_owned(), instance.zone.clone()),
        (label::INSTANCE_TYPE.to_owned(), instance.instance_type.clone()),
    ]);
    let mut node_labels = BTreeMap::new();
    if instance.interruptible {
        labels.insert(label::INTERRUPTIBLE.to_owned(), String::new());
        node_labels.insert(label::INTERRUPTIBLE.to_owned(), String::new());
    }
    let annotations = BTreeMap::from([(
        annotation::INSTANCE_STATE.to_owned(),
        instance.state.as_str().to_owned(),
    )]);
    let spec_labels = machine.spec.metadata.as_ref().map(|metadata| &metadata.labels);
    let has_provider_id = machine.spec.provider_id.as_deref().is_some_and(|id| !id.is_empty());
    MetadataChange {
        labels: different(labels, machine.metadata.labels.as_ref()),
        annotations: different(annotations, machine.metadata.annotations.as_ref()),
        provider_id: (!has_provider_id).then(|| instance.provider_id.clone()),
        node_labels: different(node_labels, spec_labels),
    }
}

fn different(
    wanted: BTreeMap<String, String>,
    present: Option<&BTreeMap<String, String>>,
) -> BTreeMap<String, String> {
    wanted
        .into_iter()
        .filter(|(key, value)| present.and_then(|present| present.get(key)) != Some(value))
        .collect()
}

fn launch(observed: &Observed<'_>, mut draft: StatusDraft, now: Timestamp) -> MachineDecision {
    let machine = observed.machine;
    draft.instance_not_created();
    if observed.owner_is_deleting {
        let mut decision = settle(machine, draft);
        decision.waiting.push(Wait::on(
            reason::INSTANCE_NOT_CREATED,
            "nothing is launched: the owner of the machine is being deleted",
        ));
        return decision;
    }
    if let Some(until) = launch_held_until(machine, now) {
        let why = draft.last_creation_message().unwrap_or_default();
        let mut decision = settle(machine, draft);
        decision.recheck_by(until);
        decision.waiting.push(Wait::on(
            reason::INSTANCE_NOT_CREATED,
            format!("the launch was refused and is tried again at {until}: {why}"),
        ));
        return decision;
    }
    match &observed.launch_check {
        // Not asked: the pause after a refusal ended between two looks at the clock.
        None => {
            let mut decision = settle(machine, draft);
            decision.recheck_by(now);
            decision
        }
        Some(Err(failure)) => {
            draft.launch_failed(failure, machine.metadata.generation);
            let mut decision = settle(machine, draft);
            decision.announcements.push(Announcement::warning(
                event::FAILED_CREATE,
                format!("could not launch: {}", failure.message),
            ));
            decision.waiting.push(Wait::on(failure.class.as_str(), &failure.message));
            decision
        }
        Some(Ok(())) => {
            draft.clear_failure();
            draft.set_phase(phase::PROVISIONING);
            let stored = draft.provider.launch.clone();
            let intent = next_intent(machine, stored.as_ref(), now);
            let is_stored = stored.as_ref() == Some(&intent);
            draft.provider.launch = Some(intent.clone());
            let mut decision = settle(machine, draft);
            if !is_stored {
                decision.actions.push(Action::StoreIntent(Box::new(decision.status.clone())));
            }
            decision.actions.push(Action::Launch { client_token: intent.client_token });
            decision
        }
    }
}

/// The stored intent is repeated as it is, with its token, until its outcome is certain. Only what
/// was certainly refused is followed by another attempt.
fn next_intent(machine: &Machine, stored: Option<&LaunchIntent>, now: Timestamp) -> LaunchIntent {
    let attempt = match stored {
        Some(intent) if !intent.refused => return intent.clone(),
        Some(refused) => refused.attempt + 1,
        None => 1,
    };
    let uid = machine.metadata.uid.as_deref().unwrap_or_default();
    LaunchIntent {
        attempt,
        client_token: client_token(uid, attempt),
        since: condition::to_seconds(now).0,
        refused: false,
    }
}

/// The pause after a refusal doubles from five seconds to five minutes. It is counted from the
/// stored intent, so that neither our own status write nor a restart shortens it.
fn launch_held_until(machine: &Machine, now: Timestamp) -> Option<Timestamp> {
    let intent = provider_status(machine).launch.filter(|intent| intent.refused)?;
    let doublings = (intent.attempt.saturating_sub(1)).min(6);
    let pause = (FIRST_RELAUNCH * 2_i32.pow(doublings)).min(LAST_RELAUNCH);
    intent.since.checked_add(pause).ok().filter(|until| *until > now)
}

const FIRST_RELAUNCH: SignedDuration = SignedDuration::from_secs(5);
const LAST_RELAUNCH: SignedDuration = SignedDuration::from_secs(300);

fn gone(machine: &Machine, mut draft: StatusDraft, why: &str) -> MachineDecision {
    draft.instance_missing(why);
    let mut decision = settle(machine, draft);
    let state = BTreeMap::from([(annotation::INSTANCE_STATE.to_owned(), "Unknown".to_owned())]);
    let annotations = different(state, machine.metadata.annotations.as_ref());
    if !annotations.is_empty() {
        decision
            .actions
            .push(Action::ChangeMetadata(MetadataChange { annotations, ..Default::default() }));
    }
    decision.announcements.push(Announcement::warning(
        event::FAILED_UPDATE,
        "the instance of this machine is gone; the machine is Failed and has to be replaced",
    ));
    decision
}

fn cloud_unknown(
    machine: &Machine,
    mut draft: StatusDraft,
    failure: &CloudFailure,
) -> MachineDecision {
    let message = format!("Failed to check if machine exists: {}", failure.message);
    draft.instance_unknown(reason::ERROR_CHECKING_PROVIDER, &message);
    if draft.status.phase.is_none() {
        draft.set_phase(phase::PROVISIONING);
    }
    let mut decision = settle(machine, draft);
    decision.announcements.push(Announcement::warning(event::FAILED_UPDATE, &message));
    decision.waiting.push(Wait::on(failure.class.as_str(), message));
    decision
}

fn invalid(machine: &Machine, mut draft: StatusDraft, message: &str) -> MachineDecision {
    draft.invalid(message);
    if draft.status.phase.is_none() {
        draft.set_phase(phase::PROVISIONING);
    }
    let mut decision = settle(machine, draft);
    decision.announcements.push(Announcement::warning(event::FAILED_VALIDATE, message));
    decision.waiting.push(Wait::on(reason::INVALID_CONFIGURATION, message));
    decision
}

/// Says that the record cannot be read, and leaves its bytes alone.
fn unreadable_record(machine: &Machine, message: &str, now: Timestamp) -> MachineDecision {
    let mut status = machine.status.clone().unwrap_or_default();
    let condition = Condition::unknown(
        condition_type::INSTANCE_EXISTS,
        ConditionSeverity::Error,
        reason::INVALID_CONFIGURATION,
        message,
        now,
    );
    condition::set(&mut status.conditions, condition);
    let mut decision = Decision::settled(status);
    decision.announcements.push(Announcement::warning(event::FAILED_VALIDATE, message));
    decision.waiting.push(Wait::on(reason::INVALID_CONFIGURATION, message));
    decision
}

/// A Failed Machine is left alone, unless it failed for its spec and the spec has changed since.
fn is_failed_for_good(machine: &Machine) -> bool {
    let is_failed =
        machine.status.as_ref().and_then(|status| status.phase.as_deref()) == Some(phase::FAILED);
    let refused = provider_status(machine).refused_generation;
    is_failed && (refused.is_none() || refused == machine.metadata.generation)
}

/// During a migration another API may own the Machine: then it is left alone and says so.
fn paused(machine: &Machine, now: Timestamp) -> Option<MachineDecision> {
    let wanted = machine.spec.authoritative_api?;
    let mut status = machine.status.clone().unwrap_or_default();
    let Some(current) = status.authoritative_api else {
        status.authoritative_api = Some(wanted);
        return Some(Decision::settled(status));
    };
    let changed = pause::set_condition(&mut status.conditions, current, now);
    match current {
        AuthoritativeApi::MachineAPI if !changed => None,
        AuthoritativeApi::MachineAPI => Some(Decision::settled(status)),
        AuthoritativeApi::ClusterAPI | AuthoritativeApi::Migrating => {
            let mut decision = Decision::settled(status);
            decision.waiting.push(pause::wait(current));
            Some(decision)
        }
    }
}

pub(super) fn settle(machine: &Machine, draft: StatusDraft) -> MachineDecision {
    Decision::settled(draft.finish(machine.status.as_ref()))
}
