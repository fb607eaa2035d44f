//! What does the cloud say of the instance of a Machine, where somebody looks, and how is that said on the Machine?
//!
//! The instance is its provider's: what happened behind the cluster's back is told, and nothing is done about it. The gate
//! counts such a machine as out of work, and a health check acts on its Node.

#[cfg(test)]
mod tests;

use jiff::Timestamp;
use machinist_api::{
    cluster_api::{
        Machine, MachineStatus,
        condition::{self, FALSE, TRUE, UNKNOWN},
    },
    names::{condition_type::INSTANCE_RUNNING, reason::INSTANCE_MISSING},
};

use super::{identity::is_deleting, scaling::conditions_of};
use crate::{
    cloud::{Instance, InstanceId},
    decision::Announcement,
    drift::{
        Class,
        classify::{cause, why_down},
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

/// What is to be said.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    pub status: MachineStatus,
    pub announcement: Option<Announcement>,
}

/// What follows from it, in the sentence that everybody is told.
const FOLLOWS: &str = "its provider keeps it, and a health check acts on its Node";

/// What is to be said anew; `None` where nothing is.
pub fn tell(machine: &Machine, sight: Sight<'_>, now: Timestamp) -> Option<Told> {
    // What goes is expected to go.
    if is_deleting(&machine.metadata) {
        return None;
    }
    let known = condition::find(conditions_of(machine), INSTANCE_RUNNING);
    let (status, reason, message, class) = match sight {
        Sight::Unknown => return None,
        Sight::Seen(instance) => match why_down(instance) {
            None => (TRUE, "Running", String::new(), None),
            Some(class) => {
                let (id, because) = (&instance.id, cause(&instance.state_reason));
                let words = format!("instance {id} {}{because}; {FOLLOWS}", class.in_words());
                (FALSE, class.as_str(), words, Some(class))
            }
        },
        // It may be of an account that nobody looks at, unless it was seen before.
        Sight::Missing(_) if known.is_none() => return None,
        // One that was seen to end is gone from lists after a while.
        Sight::Missing(_) if known.is_some_and(|known| is_termination(&known.reason)) => {
            return None;
        }
        Sight::Missing(id) => {
            let words = format!("the cloud does not show instance {id}");
            (UNKNOWN, INSTANCE_MISSING, words, None)
        }
    };
    let is_same = known.is_some_and(|known| {
        known.status == status && known.reason == reason && known.message == message
    });
    if is_same {
        return None;
    }
    let mut changed = machine.status.clone().unwrap_or_default();
    let new = condition::new(INSTANCE_RUNNING, status, reason, message.as_str(), now);
    condition::set(&mut changed.conditions, new, machine.metadata.generation);
    let announcement = class.map(|class| Announcement::warning(class.as_str(), message));
    Some(Told { status: changed, announcement })
}

fn is_termination(reason: &str) -> bool {
    Class::from_reason(reason).is_some_and(Class::is_termination)
}
