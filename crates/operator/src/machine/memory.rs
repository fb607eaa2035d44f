//! What this process knows of launches that no object tells: whether a token was ever sent.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::engine::store::ObjectKey;

/// The tokens of intents that this process stored and has not sent yet. Losing it, at a restart,
/// only means that a refusal proves less.
#[derive(Debug, Default)]
pub struct Memory {
    unsent: Mutex<BTreeMap<ObjectKey, String>>,
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

    pub(super) fn forget(&self, machine: &ObjectKey) {
        self.lock().remove(machine);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, String>> {
        self.unsent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
