//! What does the cloud say of the instance of a Machine, where somebody looks, how is that said on the Machine, and what follows?
//!
//! The instance is its provider's, and nobody else starts it. By the same words of policy as for the other API, a Machine
//! whose instance is gone, or is stopped, is deleted, so that its pool makes another. Of a stopped one that is our choice and
//! asks the gate, which counts such a machine as out of work.

#[cfg(test)]
mod tests;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use machinist_api::{
    Machine as Seen,
    cluster_api::{
        Machine, MachineStatus,
        condition::{self, FALSE, TRUE, UNKNOWN},
    },
    names::{condition_type::INSTANCE_RUNNING, reason::INSTANCE_MISSING},
    provider_status::DriftRecord,
};

use super::{identity::is_deleting, maintained::standstill_of, scaling::conditions_of};
use crate::{
    cloud::{Instance, InstanceId},
    decision::{Announcement, FieldError},
    disruption::Pool,
    drift::{
        Class, DriftPolicy,
        classify::{cause, why_down},
        policy::{DriftDefaults, OnStopped, OnTerminated, has_control_plane_role},
        respond::{Case, Kind, Response, halves, report, respond},
    },
};

/// What is known of the instance.
#[derive(Clone, Copy, Debug)]
pub enum Sight<'a> {
    /// Nobody looks, or the list is not whole. Says nothing (Rule 9).
    Unknown,
    Seen(&'a Instance),
    /// Whole lists do not show it.
    Missing(&'a InstanceId),
}

/// What decides about a machine whose instance does not run.
pub struct Keeping<'a> {
    /// The Machine as the gate sees it.
    pub seen: &'a Seen,
    /// The pool that would make another.
    pub pool: Option<&'a Pool>,
    /// What its MaintenancePolicy says.
    pub defaults: DriftDefaults,
}

/// What is to be said, and what is to be done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// `None` where nothing is said anew.
    pub told: Option<Told>,
    /// Whether the Machine is to be deleted, once its instance is confirmed to be down.
    pub replaces: bool,
}

/// What is to be said.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    pub status: MachineStatus,
    pub announcement: Option<Announcement>,
}

/// What follows where policy wants nothing done.
const FOLLOWS: &str = "its provider keeps it, and a health check acts on its Node";
/// What follows where policy wants what cannot be done.
const NOT_OURS: &str = "nothing is done: nobody but its provider may start its instance";

/// An instance that does not run.
struct Down {
    class: Class,
    /// Begins the sentence that everybody is told.
    words: String,
}

/// Whether the instance does not run, as far as is known: only then its pool matters.
pub fn is_down(machine: &Machine, sight: Sight<'_>) -> bool {
    !is_deleting(&machine.metadata) && down(known(machine), sight).is_some()
}

/// Judges what is seen.
pub fn judge(
    machine: &Machine,
    sight: Sight<'_>,
    keeping: &Keeping<'_>,
    now: Timestamp,
) -> Verdict {
    // What goes is expected to go.
    if is_deleting(&machine.metadata) {
        return Verdict::default();
    }
    let known = known(machine);
    if let Some(down) = down(known, sight) {
        return answer(machine, &down, keeping, now);
    }
    let told = match sight {
        Sight::Unknown => None,
        Sight::Seen(_) => say(machine, TRUE, "Running", "", now),
        // It may be of an account that nobody looks at, unless it was seen before.
        Sight::Missing(_) if known.is_none() => None,
        Sight::Missing(id) => {
            let words = format!("the cloud does not show instance {id}");
            say(machine, UNKNOWN, INSTANCE_MISSING, &words, now)
        }
    };
    let told = told.map(|status| Told { status, announcement: None });
    Verdict { told, replaces: false }
}

fn known(machine: &Machine) -> Option<&Condition> {
    condition::find(conditions_of(machine), INSTANCE_RUNNING)
}

fn down(known: Option<&Condition>, sight: Sight<'_>) -> Option<Down> {
    match sight {
        Sight::Unknown => None,
        Sight::Seen(instance) => why_down(instance).map(|class| {
            let (id, because) = (&instance.id, cause(&instance.state_reason));
            Down { class, words: format!("instance {id} {}{because}", class.in_words()) }
        }),
        // One that was seen to end is gone from lists after a while.
        Sight::Missing(_) => {
            let class = Class::from_reason(&known?.reason).filter(|one| one.is_termination())?;
            let (words, _) = halves(&known?.message)?;
            Some(Down { class, words: words.to_owned() })
        }
    }
}

/// Says what happened and what follows.
fn answer(machine: &Machine, down: &Down, keeping: &Keeping<'_>, now: Timestamp) -> Verdict {
    let known = known(machine).filter(|known| known.status == FALSE);
    let since = known.map_or(now, |known| known.last_transition_time.0);
    let response = response(machine, down, since, keeping, now);
    let message = format!("{}; {}", down.words, response.words);
    let status = say(machine, FALSE, down.class.as_str(), &message, now);
    let before = known.and_then(|known| Class::from_reason(&known.reason));
    let is_news = before.is_none_or(|before| before.is_stop() != down.class.is_stop());
    let said = known.and_then(|known| halves(&known.message)).map(|(_, words)| Kind::said(words));
    let announcement = if is_news {
        Some(Announcement::warning(down.class.as_str(), message))
    } else {
        response.announcement(&message).filter(|_| said != Some(response.kind))
    };
    Verdict {
        told: status.map(|status| Told { status, announcement }),
        replaces: response.kind == Kind::Replace,
    }
}

fn response(
    machine: &Machine,
    down: &Down,
    since: Timestamp,
    keeping: &Keeping<'_>,
    now: Timestamp,
) -> Response {
    if let Some(why) = standstill_of(keeping.seen) {
        return report(format!("nothing is done: {why}"));
    }
    let policy = policy(keeping);
    if let Ok(policy) = &policy
        && policy.hold.is_none()
    {
        match (down.class.is_stop(), policy.on_stopped, policy.on_terminated) {
            (true, OnStopped::Start, _) => return report(NOT_OURS),
            (true, OnStopped::Report, _) | (false, _, OnTerminated::Report) => {
                return report(FOLLOWS);
            }
            (true, OnStopped::Replace, _) | (false, _, OnTerminated::Replace) => {}
        }
    }
    let record = DriftRecord {
        class: down.class.as_str().to_owned(),
        since,
        response: String::new(),
        attempts: 0,
        acted_at: None,
        failure: None,
    };
    let case = Case {
        class: down.class,
        record: &record,
        is_settled: true,
        is_startable: false,
        policy: &policy,
        pool: keeping.pool,
        has_joined: machine.status.as_ref().is_some_and(|status| status.node_ref.is_some()),
        doubt: None,
    };
    respond(&case, now)
}

/// What people want done, and what is usual here: nobody but the provider starts an instance, and the control plane is left to
/// its own controller.
fn policy(keeping: &Keeping<'_>) -> Result<DriftPolicy, FieldError> {
    let is_control_plane = has_control_plane_role(keeping.seen);
    let wanted = keeping.defaults.on_stopped.filter(|word| *word != OnStopped::Start);
    let usual = is_control_plane.then_some(OnTerminated::Report);
    let defaults = DriftDefaults {
        on_stopped: wanted.or(Some(OnStopped::Report)),
        on_terminated: keeping.defaults.on_terminated.or(usual),
        ..keeping.defaults
    };
    DriftPolicy::read_with(keeping.seen, keeping.pool, is_control_plane, &defaults)
}

/// The status that says it; `None` where that is said already.
fn say(
    machine: &Machine,
    status: &str,
    reason: &str,
    message: &str,
    now: Timestamp,
) -> Option<MachineStatus> {
    let is_same = known(machine).is_some_and(|known| {
        known.status == status && known.reason == reason && known.message == message
    });
    if is_same {
        return None;
    }
    let mut changed = machine.status.clone().unwrap_or_default();
    let new = condition::new(INSTANCE_RUNNING, status, reason, message, now);
    condition::set(&mut changed.conditions, new, machine.metadata.generation);
    Some(changed)
}
