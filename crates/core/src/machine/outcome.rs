//! How the result of an effect becomes part of the status.

use jiff::Timestamp;
use machinist_api::{
    Condition, ConditionSeverity, Machine, MachineStatus,
    names::{condition_type, event, phase, reason},
};

use super::{observed::Policy, status::StatusDraft};
use crate::{
    cloud::{CloudFailure, ErrorClass, Instance},
    decision::Announcement,
    nodelink::NodeMatch,
};

/// A status to publish and what to tell people.
#[derive(Debug)]
pub struct Aftermath {
    pub status: MachineStatus,
    pub announcements: Vec<Announcement>,
}

/// The instance is there: its id is recorded at once, before anything else is known of it.
pub fn launched(machine: &Machine, instance: &Instance, now: Timestamp) -> Aftermath {
    let mut draft = StatusDraft::from_machine(machine, &NodeMatch::None, now);
    draft.take_instance(instance);
    // From here on counts how long reads may not show it.
    if let Some(intent) = &mut draft.provider.launch {
        intent.since = machinist_api::condition::to_seconds(now).0;
    }
    draft.instance_exists();
    draft.set_phase(phase::PROVISIONING);
    let name = machine.metadata.name.as_deref().unwrap_or_default();
    Aftermath {
        status: draft.finish(machine.status.as_ref()),
        announcements: vec![Announcement::normal(event::CREATE, format!("Created Machine {name}"))],
    }
}

/// The launch failed. Only a fault of the configuration is terminal (D3, D4).
///
/// A refusal proves that this call launched nothing. It proves the same of the token only where this
/// was its `only_call`: an earlier one may have worked and its answer been lost.
pub fn launch_failed(
    machine: &Machine,
    failure: &CloudFailure,
    only_call: bool,
    now: Timestamp,
) -> Aftermath {
    let mut draft = StatusDraft::from_machine(machine, &NodeMatch::None, now);
    draft.launch_failed(failure, machine.metadata.generation);
    if let Some(intent) = &mut draft.provider.launch
        && only_call
        && proves_no_effect(failure.class)
    {
        intent.refused = true;
        intent.since = machinist_api::condition::to_seconds(now).0;
    }
    Aftermath {
        status: draft.finish(machine.status.as_ref()),
        announcements: vec![Announcement::warning(
            event::FAILED_CREATE,
            format!("could not launch: {}", failure.message),
        )],
    }
}

/// The instance was asked to start and was refused: said where the wait is said, and tried again.
pub fn start_failed(machine: &Machine, failure: &CloudFailure, now: Timestamp) -> Aftermath {
    let mut draft = StatusDraft::from_machine(machine, &NodeMatch::None, now);
    if let Some(record) = &mut draft.provider.drift {
        record.failure = Some(failure.message.clone());
    }
    Aftermath {
        status: draft.finish(machine.status.as_ref()),
        announcements: vec![Announcement::warning(
            event::FAILED_START,
            format!("could not start: {}", failure.message),
        )],
    }
}

/// The instance is registered with its load balancers.
pub fn attached(machine: &Machine, fingerprint: &str, now: Timestamp) -> Aftermath {
    let mut draft = StatusDraft::from_machine(machine, &NodeMatch::None, now);
    draft.provider.attached = Some(fingerprint.to_owned());
    draft.set(Condition::holds(condition_type::LOAD_BALANCERS_ATTACHED, now));
    Aftermath { status: draft.finish(machine.status.as_ref()), announcements: Vec::new() }
}

/// The instance left its load balancers.
pub fn detached(machine: &Machine, now: Timestamp) -> Aftermath {
    let mut draft = StatusDraft::from_machine(machine, &NodeMatch::None, now);
    draft.provider.attached = None;
    draft.set(Condition::fails(
        condition_type::LOAD_BALANCERS_ATTACHED,
        ConditionSeverity::Info,
        reason::DETACHED,
        "the instance left its load balancers, to be terminated",
        now,
    ));
    Aftermath { status: draft.finish(machine.status.as_ref()), announcements: Vec::new() }
}

/// The provider refused to terminate the instance.
pub fn terminate_failed(machine: &Machine, failure: &CloudFailure, now: Timestamp) -> Aftermath {
    let words = format!("could not terminate: {}", failure.message);
    let condition = Condition::holds(condition_type::INSTANCE_EXISTS, now)
        .with_reason(reason::TERMINATION_FAILED)
        .with_message(&words);
    deletion_failed(machine, condition, words, now)
}

/// The host that was allocated for the Machine could not be given back.
pub fn release_failed(machine: &Machine, failure: &CloudFailure, now: Timestamp) -> Aftermath {
    let words = format!("could not release the dedicated host: {}", failure.message);
    let condition = Condition::fails(
        condition_type::INSTANCE_EXISTS,
        ConditionSeverity::Warning,
        reason::HOST_NOT_RELEASED,
        &words,
        now,
    );
    deletion_failed(machine, condition, words, now)
}

fn deletion_failed(
    machine: &Machine,
    condition: Condition,
    words: String,
    now: Timestamp,
) -> Aftermath {
    let mut draft = StatusDraft::from_machine(machine, &NodeMatch::None, now);
    draft.set(condition);
    draft.set_phase(phase::DELETING);
    Aftermath {
        status: draft.finish(machine.status.as_ref()),
        announcements: vec![Announcement::warning(event::FAILED_DELETE, words)],
    }
}

/// A load balancer did not take the instance.
pub fn attach_failed(machine: &Machine, failure: &CloudFailure, now: Timestamp) -> Aftermath {
    let mut draft = StatusDraft::from_machine(machine, &NodeMatch::None, now);
    draft.set(Condition::fails(
        condition_type::LOAD_BALANCERS_ATTACHED,
        ConditionSeverity::Warning,
        reason::ATTACHING_FAILED,
        &failure.message,
        now,
    ));
    Aftermath {
        status: draft.finish(machine.status.as_ref()),
        announcements: vec![Announcement::warning(event::FAILED_ATTACH, &failure.message)],
    }
}

/// The token was used before with other parameters, so something was launched or allocated with it
/// whose answer was lost. `existing` is that instance, where it can be seen. While it cannot, nothing
/// is launched; past the time by which even a late answer would show it, the token is spent and the
/// next attempt gets another.
pub fn token_mismatch(
    machine: &Machine,
    existing: Option<&Instance>,
    policy: &Policy,
    now: Timestamp,
) -> Option<Aftermath> {
    if let Some(instance) = existing {
        return Some(launched(machine, instance, now));
    }
    let mut draft = StatusDraft::from_machine(machine, &NodeMatch::None, now);
    let since = draft.provider.launch.as_ref()?.since;
    if policy.at_latest(since).checked_add(policy.disappearance()).ok()? > now {
        return None;
    }
    if let Some(intent) = &mut draft.provider.launch {
        intent.refused = true;
        intent.since = machinist_api::condition::to_seconds(now).0;
    }
    Some(Aftermath { status: draft.finish(machine.status.as_ref()), announcements: Vec::new() })
}

/// Whether an error of the launch call proves that it launched nothing.
fn proves_no_effect(class: ErrorClass) -> bool {
    match class {
        ErrorClass::Throttled
        | ErrorClass::InvalidConfiguration
        | ErrorClass::NotFound
        | ErrorClass::QuotaExceeded
        | ErrorClass::InsufficientCapacity
        | ErrorClass::Unauthorized => true,
        ErrorClass::Transient | ErrorClass::TokenMismatch | ErrorClass::Unknown => false,
    }
}
