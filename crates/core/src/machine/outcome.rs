//! How the result of an effect becomes part of the status.

use jiff::Timestamp;
use machinist_api::{
    Machine, MachineStatus,
    names::{event, phase},
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

/// The token was used before with other parameters, so an instance was launched with it whose
/// answer was lost. `existing` is that instance, where it can be seen. While it cannot, nothing is
/// launched; past the time by which it would be visible it is gone, and so is the Machine's chance.
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
    if since.checked_add(policy.launch_visibility).ok()? > now {
        return None;
    }
    draft.instance_missing("it was launched and is not there any more");
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
