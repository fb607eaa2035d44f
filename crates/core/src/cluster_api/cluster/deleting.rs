//! How does a Cluster go?

use machinist_api::cluster_api::{
    condition,
    names::{condition_type, event, reason},
};

use super::{
    decide::{Action, Part, Pass, RECHECK, kind_of, not_ours},
    observed::Descendant,
};
use crate::{
    cluster_api::{contract::ownership, machine::Reference},
    decision::{Announcement, Wait},
};

impl Pass<'_> {
    /// Workers, control plane, infrastructure; each when the one before is gone.
    pub(super) fn delete(&mut self) {
        let workers: Vec<_> =
            self.observed.descendants.iter().filter(|one| !one.is_control_plane).collect();
        let machines: Vec<_> =
            self.observed.descendants.iter().filter(|one| one.is_control_plane).collect();
        let waits = if !workers.is_empty() {
            Some(self.delete_all(&workers))
        } else if let Some(wait) = self.await_machine_pools() {
            Some(wait)
        } else if let Some(wait) = self.delete_part(Part::ControlPlane) {
            Some(wait)
        } else if !machines.is_empty() {
            Some(self.delete_all(&machines))
        } else {
            self.delete_part(Part::Infrastructure)
        };
        match waits {
            Some(message) => {
                self.set(condition_type::DELETING, condition::TRUE, reason::DELETING, &message);
                self.decision.waiting.push(Wait::on(reason::DELETING, message));
            }
            None => {
                let done = reason::DELETION_COMPLETED;
                self.set(condition_type::DELETING, condition::TRUE, done, "Deletion completed");
                self.after.push(Action::RemoveFinalizer);
            }
        }
    }

    fn delete_all(&mut self, all: &[&Descendant]) -> String {
        for one in all.iter().filter(|one| !one.is_deleting) {
            self.after.push(Action::DeleteDescendant {
                kind: one.kind,
                name: one.name.clone(),
                uid: one.uid.clone(),
            });
        }
        let all: Vec<_> = all.iter().map(|one| format!("{} {}", one.kind, one.name)).collect();
        format!("Waiting for {} to be deleted", named(&all))
    }

    /// They hold machines too, so what they stand on stays until they are gone. Nothing wakes anybody then.
    fn await_machine_pools(&mut self) -> Option<String> {
        let wait = match &self.observed.machine_pools {
            Ok(none) if none.is_empty() => return None,
            Ok(some) => format!(
                "Waiting for MachinePool {} to be deleted, which Machinist does not look after: Cluster API's core manager \
                 does while it holds its lease",
                named(some)
            ),
            Err(why) => why.clone(),
        };
        let at = self.now.checked_add(RECHECK).unwrap_or(self.now);
        self.decision.recheck_by(at);
        Some(wait)
    }

    fn delete_part(&mut self, part: Part) -> Option<String> {
        let known = match part {
            Part::Infrastructure => self.observed.infrastructure,
            Part::ControlPlane => self.observed.control_plane,
        };
        match known {
            Reference::NotDefined | Reference::Missing => None,
            // Not known to be gone.
            Reference::Unreadable(why) => Some(why.to_owned()),
            Reference::Found { object, .. } => {
                if let Err(other) = ownership::refuse_others(&object.metadata, &self.owner()) {
                    let words = format!("{}; it stays", not_ours(object, &other));
                    let told = Announcement::warning(event::FAILED_DELETE, words);
                    self.decision.announcements.push(told);
                    return None;
                }
                if !known.is_deleting() {
                    self.after.push(Action::DeleteExternal(part));
                }
                Some(format!("Waiting for {} to be deleted", kind_of(object)))
            }
        }
    }
}

/// The first of many.
fn named(all: &[String]) -> String {
    let mut named: Vec<_> = all.iter().take(3).cloned().collect();
    if all.len() > 3 {
        named.push(format!("... ({} more)", all.len() - 3));
    }
    named.join(", ")
}
