//! What to do for a Machine, in the contract's order: validate, hold the finalizer, find the
//! instance, launch or take over what the cloud says.

use std::collections::BTreeMap;

use jiff::Timestamp;
use machinist_api::{
    AuthoritativeApi, Condition, ConditionSeverity, Machine, MachineStatus, condition,
    names::{condition_type, event, phase, reason},
};

use super::{
    binding::{Binding, bind},
    deleting,
    down::{self, state_unknown},
    launch::{launch, launch_held_until},
    living,
    observed::{
        CloudKnowledge, Identity, Observed, Policy, has_finalizer, is_deleting, provider_status,
        validate, validate_record,
    },
    status::StatusDraft,
};
use crate::{
    cloud::{CloudFailure, Instance, InstanceId},
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
    /// Starts an instance that somebody stopped.
    Start {
        id: InstanceId,
    },
    /// Deletes the Machine itself, so that its pool makes another.
    Replace,
    /// Registers the instance with its load balancers; the fingerprint is recorded when it is done.
    Attach {
        instance: Box<Instance>,
        fingerprint: String,
    },
    Detach {
        instance: Box<Instance>,
    },
    Terminate {
        id: InstanceId,
    },
    /// Gives back the hosts that were allocated for this Machine alone.
    ReleaseHosts,
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
            Self::Start { .. } => "Start",
            Self::Replace => "Replace",
            Self::Attach { .. } => "Attach",
            Self::Detach { .. } => "Detach",
            Self::Terminate { .. } => "Terminate",
            Self::ReleaseHosts => "ReleaseHosts",
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
        let mut decision = settle(machine, draft);
        decision.actions.extend(state_unknown(machine));
        return decision;
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
        Binding::One(instance) => living::follow(observed, instance, draft, now),
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
        Binding::Gone { seen } => down::gone(observed, seen, draft, policy, now),
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

/// A Failed Machine is left alone, unless it failed for its spec and the spec has changed since, or
/// it failed for want of its instance: that one may be there after all.
fn is_failed_for_good(machine: &Machine) -> bool {
    let is_failed =
        machine.status.as_ref().and_then(|status| status.phase.as_deref()) == Some(phase::FAILED);
    let has_instance = Identity::of(machine).instance_id.is_some();
    let refused = provider_status(machine).refused_generation;
    is_failed && !has_instance && (refused.is_none() || refused == machine.metadata.generation)
}

/// During a migration another API may own the Machine: then it is left alone and says so.
fn paused(machine: &Machine, now: Timestamp) -> Option<MachineDecision> {
    let mut status = machine.status.clone().unwrap_or_default();
    // The status says who acts; what the spec wants is only where it begins.
    let Some(current) = status.authoritative_api else {
        status.authoritative_api = Some(machine.spec.authoritative_api?);
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
