//! What to do for a Machine, in the contract's order: validate, hold the finalizer, find the
//! instance, launch or take over what the cloud says.

use std::collections::BTreeMap;

use jiff::Timestamp;
use machinist_api::{
    AuthoritativeApi, Condition, ConditionSeverity, Machine, MachineStatus, condition,
    names::{annotation, condition_type, event, label, phase, reason, tag},
};

use super::{
    binding::{Binding, bind},
    deleting,
    launch::{launch, launch_held_until},
    observed::{
        CloudKnowledge, Observed, Policy, has_finalizer, is_deleting, is_provisioned,
        provider_status, validate, validate_record,
    },
    status::StatusDraft,
};
use crate::{
    cloud::{CloudFailure, Instance, InstanceId, InstanceState},
    decision::{Announcement, Decision, Wait},
    entries, pause,
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
        labels: entries::missing_from(labels, machine.metadata.labels.as_ref()),
        annotations: entries::missing_from(annotations, machine.metadata.annotations.as_ref()),
        provider_id: (!has_provider_id).then(|| instance.provider_id.clone()),
        node_labels: entries::missing_from(node_labels, spec_labels),
    }
}

fn gone(machine: &Machine, mut draft: StatusDraft, why: &str) -> MachineDecision {
    draft.instance_missing(why);
    let mut decision = settle(machine, draft);
    let state = BTreeMap::from([(annotation::INSTANCE_STATE.to_owned(), "Unknown".to_owned())]);
    let annotations = entries::missing_from(state, machine.metadata.annotations.as_ref());
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
