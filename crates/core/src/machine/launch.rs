//! Whether a Machine is launched now, with which token, and when it is tried again.

use jiff::{SignedDuration, Timestamp};
use machinist_api::{
    Machine, condition,
    names::{event, phase, reason},
    provider_status::LaunchIntent,
};

use super::{
    decide::{Action, MachineDecision, settle},
    observed::{LaunchParameters, Observed, client_token, provider_status},
    status::StatusDraft,
};
use crate::decision::{Announcement, Wait};

pub(super) fn launch(
    observed: &Observed<'_>,
    mut draft: StatusDraft,
    now: Timestamp,
) -> MachineDecision {
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
        Some(Ok(parameters)) => {
            draft.clear_failure();
            draft.set_phase(phase::PROVISIONING);
            let stored = draft.provider.launch.clone();
            let intent = next_intent(machine, stored.as_ref(), parameters, now);
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
fn next_intent(
    machine: &Machine,
    stored: Option<&LaunchIntent>,
    parameters: &LaunchParameters,
    now: Timestamp,
) -> LaunchIntent {
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
        parameters: Some(parameters.clone()).filter(|parameters| !parameters.is_null()),
    }
}

/// The pause after a refusal doubles from five seconds to five minutes. It is counted from the
/// stored intent, so that neither our own status write nor a restart shortens it.
pub(super) fn launch_held_until(machine: &Machine, now: Timestamp) -> Option<Timestamp> {
    let intent = provider_status(machine).launch.filter(|intent| intent.refused)?;
    let doublings = (intent.attempt.saturating_sub(1)).min(6);
    let pause = (FIRST_RELAUNCH * 2_i32.pow(doublings)).min(LAST_RELAUNCH);
    intent.since.checked_add(pause).ok().filter(|until| *until > now)
}

const FIRST_RELAUNCH: SignedDuration = SignedDuration::from_secs(5);
const LAST_RELAUNCH: SignedDuration = SignedDuration::from_secs(300);
