//! What must be known for one pass, and what earlier passes of this process are remembered by.

use std::{collections::BTreeMap, fmt};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::Deployment;
use serde_json::Value;

use super::restore;

/// The objects that are kept, in the order in which they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kept {
    MutatingWebhooks,
    ValidatingWebhooks,
    TerminationHandler,
    TerminationCheck,
}

impl fmt::Display for Kept {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::MutatingWebhooks => "MutatingWebhookConfiguration machine-api",
            Self::ValidatingWebhooks => "ValidatingWebhookConfiguration machine-api",
            Self::TerminationHandler => "DaemonSet machine-api-termination-handler",
            Self::TerminationCheck => "MachineHealthCheck machine-api-termination-handler",
        })
    }
}

/// One kept object: as it is, and as it should be.
#[derive(Clone, Debug)]
pub struct Object {
    pub kept: Kept,
    pub stored: Option<Value>,
    pub wanted: Value,
}

/// Everything that one pass looks at. What is not kept is not listed.
#[derive(Debug)]
pub struct Observed<'a> {
    pub objects: Vec<Object>,
    /// The Deployment of the controllers before us, in a cluster whose machines are ours.
    pub old_controllers: Option<&'a Deployment>,
    pub history: &'a History,
}

/// What this process did. Losing it costs a restore that was not needed, at most.
#[derive(Clone, Debug, Default)]
pub struct History {
    objects: BTreeMap<Kept, ObjectHistory>,
    /// Since when the DaemonSet is not where it should be.
    pub(super) unfinished_since: Option<Timestamp>,
}

#[derive(Clone, Debug, Default)]
struct ObjectHistory {
    written_at: Vec<Timestamp>,
    /// What was wanted at the last write, and what the API server made of it. Should it have
    /// defaults that we do not know of, they are not fought.
    accepted: Option<(Value, Value)>,
}

/// As many writes of one object within this time are made at once; whoever undoes more than that
/// does so on purpose.
const WRITES_AT_ONCE: usize = 10;
const WINDOW: SignedDuration = SignedDuration::from_mins(10);

impl History {
    /// Notes that an object was written, and how it was answered.
    pub fn note_written(&mut self, kept: Kept, wanted: &Value, answer: &Value, now: Timestamp) {
        let history = self.objects.entry(kept).or_default();
        history.written_at.push(now);
        let surplus = history.written_at.len().saturating_sub(WRITES_AT_ONCE);
        history.written_at.drain(..surplus);
        history.accepted = Some((wanted.clone(), restore::owned(answer, wanted)));
    }

    pub fn note_rollout(&mut self, unfinished_since: Option<Timestamp>) {
        self.unfinished_since = unfinished_since;
    }

    pub(super) fn is_accepted(&self, kept: Kept, wanted: &Value, stored: &Value) -> bool {
        let accepted = self.objects.get(&kept).and_then(|history| history.accepted.as_ref());
        accepted.is_some_and(|(before, answer)| {
            before == wanted && *answer == restore::owned(stored, wanted)
        })
    }

    /// When the object may be written again, if not now.
    pub(super) fn held_until(&self, kept: Kept, now: Timestamp) -> Option<Timestamp> {
        let written = &self.objects.get(&kept)?.written_at;
        let first = written.first().filter(|_| written.len() >= WRITES_AT_ONCE)?;
        let free = first.checked_add(WINDOW).unwrap_or(Timestamp::MAX);
        (free > now).then_some(free)
    }
}
