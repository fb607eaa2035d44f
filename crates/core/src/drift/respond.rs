//! What follows when an instance does not run: start it, replace the Machine, wait, or only say so.

use jiff::{SignedDuration, Timestamp};
use machinist_api::{names::event, provider_status::DriftRecord};

use super::{
    Class, DriftPolicy,
    policy::{OnStopped, OnTerminated},
};
use crate::{
    decision::{Announcement, FieldError},
    disruption::Pool,
};

/// Everything that the answer depends on.
pub struct Case<'a> {
    pub class: Class,
    pub record: &'a DriftRecord,
    /// Whether the instance is settled in its state: one that is still stopping cannot be started.
    pub is_settled: bool,
    /// Whether the instance can be started again at all; a spot instance cannot.
    pub is_startable: bool,
    pub policy: &'a Result<DriftPolicy, FieldError>,
    /// The pool that would make another Machine.
    pub pool: Option<&'a Pool>,
    /// Whether the Machine ever had a Node. One that dies before may do so each time.
    pub has_joined: bool,
    /// Why the cloud's word is not to be trusted, where something speaks against it.
    pub doubt: Option<&'a str>,
}

/// What to do, and the half of a sentence that says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    pub kind: Kind,
    /// Continues "instance i-1 was stopped by a user; ".
    pub words: String,
    pub recheck: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing yet; something later.
    Wait,
    Start,
    Replace,
    /// The gate holds what was to be done.
    Held,
    /// Nothing at all: people are told.
    Report,
}

impl Kind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Wait => "Wait",
            Self::Start => "Start",
            Self::Replace => "Replace",
            Self::Held => "Held",
            Self::Report => "Report",
        }
    }
}

/// How the words begin that say what is done.
const DELETED: &str = "the machine is deleted, and ";
const HELD: &str = "its replacement is held: ";
/// What they hold where it is done later.
const LATER: &str = "the machine is replaced at ";

impl Kind {
    /// What these words say that is done. Where only the sentence is recorded, it says that as well.
    pub fn said(words: &str) -> Self {
        match words {
            words if words.starts_with(DELETED) => Self::Replace,
            words if words.starts_with(HELD) => Self::Held,
            words if words.contains(LATER) => Self::Wait,
            _ => Self::Report,
        }
    }
}

impl Response {
    /// What is told of it besides what happened, with the whole sentence.
    pub fn announcement(&self, message: &str) -> Option<Announcement> {
        match self.kind {
            Kind::Start => Some(Announcement::normal(event::STARTING_INSTANCE, message)),
            Kind::Replace => Some(Announcement::normal(event::REPLACING, message)),
            Kind::Held => Some(Announcement::warning(event::DISRUPTION_HELD, message)),
            // The event that names the class says it all.
            Kind::Wait | Kind::Report => None,
        }
    }
}

/// What happened and what follows, in the sentence that everybody is told of both.
pub fn halves(sentence: &str) -> Option<(&str, &str)> {
    sentence.split_once("; ")
}

/// How soon a start that had no effect is asked for again: doubled up to ten minutes.
const FIRST_RESTART: SignedDuration = SignedDuration::from_secs(30);
const LAST_RESTART: SignedDuration = SignedDuration::from_mins(10);
/// How often a held action asks the gate again; the pool's changes do not wake each machine. All ask at
/// the same time, so that the cloud is asked once for all of them.
const HELD_RECHECK: SignedDuration = SignedDuration::from_secs(30);
/// Nothing is chosen in the moment in which it is noticed: what happened to the rest of the pool at
/// the same time must be seen first.
const SETTLE: SignedDuration = SignedDuration::from_secs(5);
/// How long a Machine whose instance died before it joined is kept: its successor will probably
/// die as well, and each costs a launch.
const STILLBORN: SignedDuration = SignedDuration::from_mins(5);
/// A state that ends by itself is watched; this bounds how long a lost event can hide its end.
const UNSETTLED_RECHECK: SignedDuration = SignedDuration::from_secs(30);

pub fn respond(case: &Case<'_>, now: Timestamp) -> Response {
    let policy = match case.policy {
        Ok(policy) => policy,
        Err(fault) => return report(format!("nothing is done: {fault}")),
    };
    if let Some(why) = &policy.hold {
        let why = if why.is_empty() { String::new() } else { format!(": {why}") };
        return report(format!("nothing is done: the machine is on hold{why}"));
    }
    if case.class.is_stop() { stopped(case, policy, now) } else { gone(case, policy, now) }
}

fn stopped(case: &Case<'_>, policy: &DriftPolicy, now: Timestamp) -> Response {
    let wanted = match policy.on_stopped {
        OnStopped::Start if !case.is_startable => OnStopped::Replace,
        wanted => wanted,
    };
    if wanted == OnStopped::Report {
        return report("by policy nothing is done");
    }
    let is_by_user = case.class == Class::StoppedByUser;
    if let (OnStopped::Start, true, Some(pool)) = (wanted, is_by_user, case.pool)
        && let Some(response) = looks_intended(pool, policy, now)
    {
        return response;
    }
    let grace = policy.grace.max(SETTLE);
    let grace_ends = case.record.since.checked_add(grace).unwrap_or(Timestamp::MAX);
    if grace_ends > now {
        let what = match wanted {
            OnStopped::Start => "it is started again at ",
            OnStopped::Replace | OnStopped::Report => LATER,
        };
        return wait(format!("{what}{grace_ends}, unless somebody starts it before"), grace_ends);
    }
    match wanted {
        OnStopped::Start => start(case, now),
        OnStopped::Replace | OnStopped::Report => replace_by_choice(case, policy, now),
    }
}

/// A person who stops much of a pool means it; starting it again would fight them.
fn looks_intended(pool: &Pool, policy: &DriftPolicy, now: Timestamp) -> Option<Response> {
    let breaker = match pool.breaker() {
        Ok(breaker) => breaker,
        Err(fault) => {
            return Some(report(format!("nothing is done: machineset {}: {fault}", pool.name)));
        }
    };
    let stopped = pool.stopped_by_user + 1;
    let is_approved = policy.approved_until.is_some_and(|until| until > now);
    if stopped <= breaker || is_approved {
        return None;
    }
    let mut response = report(format!(
        "nothing is done: users stopped {stopped} machines of pool {}, more than {breaker}, which \
         looks intended",
        pool.name
    ));
    response.recheck = next_look(now);
    Some(response)
}

fn start(case: &Case<'_>, now: Timestamp) -> Response {
    let record = case.record;
    if !case.is_settled {
        let at = now.checked_add(UNSETTLED_RECHECK).unwrap_or(Timestamp::MAX);
        return wait("it is started again once it has stopped".to_owned(), at);
    }
    let doublings = record.attempts.saturating_sub(1).min(8);
    let pause = (FIRST_RESTART * 2_i32.pow(doublings)).min(LAST_RESTART);
    let next = record.acted_at.and_then(|at| at.checked_add(pause).ok());
    match next {
        Some(next) if next > now => {
            let words = match &record.failure {
                Some(failure) => {
                    format!("it could not be started, tried again at {next}: {failure}")
                }
                None => "it is being started again".to_owned(),
            };
            Response { kind: Kind::Start, words, recheck: Some(next) }
        }
        _ => Response {
            kind: Kind::Start,
            words: "it is being started again".to_owned(),
            recheck: None,
        },
    }
}

fn gone(case: &Case<'_>, policy: &DriftPolicy, now: Timestamp) -> Response {
    let kept_until = case.record.since.checked_add(STILLBORN).unwrap_or(Timestamp::MAX);
    let is_replaced = policy.on_terminated == OnTerminated::Replace && case.pool.is_some();
    if is_replaced && !case.has_joined && case.class != Class::TerminatedByUser && kept_until > now
    {
        let words = format!(
            "it never joined, and another would probably fare the same; {LATER}{kept_until}"
        );
        return wait(words, kept_until);
    }
    match policy.on_terminated {
        OnTerminated::Report => report("by policy nothing is done"),
        // Nobody saw it terminate, so replacing it is a choice, and the gate is asked.
        OnTerminated::Replace if case.class == Class::Vanished => {
            replace_by_choice(case, policy, now)
        }
        OnTerminated::Replace => replace(case),
    }
}

fn replace_by_choice(case: &Case<'_>, policy: &DriftPolicy, now: Timestamp) -> Response {
    let Some(pool) = case.pool else { return replace(case) };
    let is_approved = policy.approved_until.is_some_and(|until| until > now);
    if let Some(doubt) = case.doubt.filter(|_| !is_approved) {
        return Response {
            kind: Kind::Held,
            words: format!("{HELD}{doubt}"),
            recheck: next_look(now),
        };
    }
    match pool.permit(policy.approved_until, now) {
        Ok(()) => replace(case),
        Err(held) => Response {
            kind: Kind::Held,
            words: format!("{HELD}{}", held.0),
            recheck: next_look(now),
        },
    }
}

fn replace(case: &Case<'_>) -> Response {
    match case.pool {
        Some(pool) if pool.is_deleting => report("nothing is done: its pool is being deleted"),
        Some(pool) => Response {
            kind: Kind::Replace,
            words: format!("{DELETED}pool {} makes another", pool.name),
            recheck: None,
        },
        None => report("nothing is done: the machine has no pool that would make another"),
    }
}

pub(crate) fn report(words: impl Into<String>) -> Response {
    Response { kind: Kind::Report, words: words.into(), recheck: None }
}

fn wait(words: String, until: Timestamp) -> Response {
    Response { kind: Kind::Wait, words, recheck: Some(until) }
}

/// The next full period.
fn next_look(now: Timestamp) -> Option<Timestamp> {
    let period = HELD_RECHECK.as_secs();
    let begun = now.as_second().div_euclid(period) * period;
    Timestamp::from_second(begun + period).ok()
}
