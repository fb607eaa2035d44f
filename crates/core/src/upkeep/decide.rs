//! What to do in one pass: make what is missing, put right what was changed, replace who was here
//! before us; and what keeps that from being so.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{
    observed::{Kept, Object, Observed},
    restore,
    rollout::{self, Rollout},
    takeover::{self, TakeOver},
};

/// One step. One that fails keeps no other from being taken.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    Create {
        kept: Kept,
        object: Value,
    },
    /// Merges the patch into the object of this version.
    Restore {
        kept: Kept,
        patch: Value,
        wanted: Value,
        resource_version: String,
    },
    /// Scales the controllers before us to 0.
    ScaleDown {
        uid: String,
        resource_version: String,
    },
}

/// What one pass comes to.
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use = "a decision that nobody carries out is lost"]
pub struct UpkeepDecision {
    pub actions: Vec<Action>,
    /// What is wrong and not put right by the actions.
    pub problems: Vec<String>,
    /// What is on its way.
    pub waiting: Vec<String>,
    /// What else there is to know.
    pub note: Option<String>,
    /// Since when the DaemonSet is not where it should be, to be remembered.
    pub unfinished_since: Option<Timestamp>,
    pub recheck: Option<Timestamp>,
}

/// How long a rollout may take before that is bad news. A spot node that joins has its pod within a
/// minute or two; one that never gets it would not be drained in time.
const ROLLOUT_PATIENCE: SignedDuration = SignedDuration::from_mins(5);

pub fn decide(observed: &Observed<'_>, now: Timestamp) -> UpkeepDecision {
    let mut decision = UpkeepDecision::default();
    for object in &observed.objects {
        keep(observed, object, now, &mut decision);
    }
    match takeover::take_over(observed.old_controllers) {
        TakeOver::Nothing => {}
        TakeOver::Scale { uid, resource_version } => {
            decision.actions.push(Action::ScaleDown { uid, resource_version });
        }
        TakeOver::Done(note) => decision.note = Some(note),
        TakeOver::Undone(problem) => decision.problems.push(problem),
    }
    let handler = observed.objects.iter().find(|object| object.kept == Kept::TerminationHandler);
    if let Some(handler) = handler {
        await_rollout(observed, handler, now, &mut decision);
    }
    decision
}

fn keep(observed: &Observed<'_>, object: &Object, now: Timestamp, decision: &mut UpkeepDecision) {
    let (kept, wanted) = (object.kept, &object.wanted);
    let action = match &object.stored {
        None => Action::Create { kept, object: wanted.clone() },
        // It is made anew when it is gone.
        Some(stored) if stored.pointer("/metadata/deletionTimestamp").is_some() => return,
        Some(stored) if observed.history.is_accepted(kept, wanted, stored) => return,
        Some(stored) => match restore::difference(kept, stored, wanted) {
            Some(patch) => Action::Restore {
                kept,
                patch,
                wanted: wanted.clone(),
                resource_version: resource_version(stored),
            },
            None => return,
        },
    };
    match observed.history.held_until(kept, now) {
        None => decision.actions.push(action),
        Some(until) => {
            decision.problems.push(format!(
                "{kept} is changed or deleted by somebody else again and again; it is put right \
                 again later"
            ));
            decision.recheck_by(until);
        }
    }
}

fn resource_version(stored: &Value) -> String {
    let version = stored.pointer("/metadata/resourceVersion").and_then(Value::as_str);
    version.unwrap_or_default().to_owned()
}

fn await_rollout(
    observed: &Observed<'_>,
    handler: &Object,
    now: Timestamp,
    decision: &mut UpkeepDecision,
) {
    let why = match rollout::of_daemon_set(handler.stored.as_ref()) {
        Rollout::Finished => return,
        Rollout::Unfinished(why) | Rollout::Missing(why) => why,
    };
    let since = observed.history.unfinished_since.unwrap_or(now);
    decision.unfinished_since = Some(since);
    let words = format!("{} is not rolled out: {why}", handler.kept);
    let due = since.checked_add(ROLLOUT_PATIENCE).unwrap_or(Timestamp::MAX);
    if now < due {
        decision.waiting.push(words);
        decision.recheck_by(due);
    } else {
        decision.problems.push(words);
    }
}

impl UpkeepDecision {
    pub fn recheck_by(&mut self, at: Timestamp) {
        self.recheck = Some(self.recheck.map_or(at, |earlier| earlier.min(at)));
    }
}
