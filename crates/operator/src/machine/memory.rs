//! What this process knows of Machines that no object tells: whether a token was ever sent, and which
//! broken promises were counted.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::engine::store::ObjectKey;

/// Losing it, at a restart, only means that a refusal proves less and a promise is counted again.
#[derive(Debug, Default)]
pub struct Memory {
    /// The tokens of intents that this process stored and has not sent yet.
    unsent: Mutex<BTreeMap<ObjectKey, String>>,
    broken: Mutex<BTreeMap<ObjectKey, Vec<&'static str>>>,
}

impl Memory {
    /// The intent with this token was stored just now: nobody has sent it.
    pub(super) fn stored(&self, machine: &ObjectKey, client_token: &str) {
        self.lock().insert(machine.clone(), client_token.to_owned());
    }

    /// The token is being sent; tells whether for the first time.
    pub(super) fn sends(&self, machine: &ObjectKey, client_token: &str) -> bool {
        self.lock().remove(machine).is_some_and(|unsent| unsent == client_token)
    }

    /// The promises that were kept when the Machine was last looked at.
    pub(super) fn newly_broken(
        &self,
        machine: &ObjectKey,
        broken: Vec<&'static str>,
    ) -> Vec<&'static str> {
        let mut all = self.broken.lock().unwrap_or_else(PoisonError::into_inner);
        let known = match broken.is_empty() {
            true => all.remove(machine),
            false => all.insert(machine.clone(), broken.clone()),
        };
        let known = known.unwrap_or_default();
        broken.into_iter().filter(|promise| !known.contains(promise)).collect()
    }

    pub(super) fn forget(&self, machine: &ObjectKey) {
        self.lock().remove(machine);
        self.broken.lock().unwrap_or_else(PoisonError::into_inner).remove(machine);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, String>> {
        self.unsent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
