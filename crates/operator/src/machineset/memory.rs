//! What one process remembers of its pools between passes. Losing it costs nothing but a status
//! write or a name: everything that matters is in the cluster.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use jiff::Timestamp;
use machinist_core::{
    cluster_api::naming::{ALPHABET, RANDOM_LENGTH as SUFFIX_LENGTH},
    machineset::{Ceilings, observed::ScalingFailure},
};

use super::creations::Creations;
use crate::engine::{env::Env, store::ObjectKey};

/// Remembered of all pools.
#[derive(Debug, Default)]
pub struct Memory {
    sets: Mutex<BTreeMap<ObjectKey, SetMemory>>,
    pub creations: Creations,
}

#[derive(Clone, Debug, Default)]
pub struct SetMemory {
    /// Names of Machines whose creation had no clear answer: tried again before any other, so that
    /// a lost answer cannot make two.
    pub unresolved: Vec<String>,
    pub status_written_at: Option<Timestamp>,
    pub last_failure: Option<ScalingFailure>,
}

/// How long a name's own part may be, so that name and suffix make a valid label value.
const PREFIX_LENGTH: usize = 57;

impl Memory {
    /// With other ceilings than the usual ones.
    pub fn new(ceilings: Ceilings) -> Self {
        Self { creations: Creations::new(ceilings), ..Self::default() }
    }

    pub fn of(&self, key: &ObjectKey) -> SetMemory {
        self.lock().get(key).cloned().unwrap_or_default()
    }

    pub fn change(&self, key: &ObjectKey, change: impl FnOnce(&mut SetMemory)) {
        change(self.lock().entry(key.clone()).or_default());
    }

    pub fn forget(&self, key: &ObjectKey) {
        self.lock().remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, SetMemory>> {
        self.sets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `<set>-<five letters>`, as the API server would make it from `generateName`.
pub fn fresh_name(env: &Env, set: &str) -> String {
    let prefix: String = set.chars().take(PREFIX_LENGTH).collect();
    format!("{prefix}-{}", random_letters(env))
}

/// Five letters that make a name its own.
pub fn random_letters(env: &Env) -> String {
    (0..SUFFIX_LENGTH)
        .map(|_| {
            let index = usize::try_from(env.random_u64() % ALPHABET.len() as u64).unwrap_or(0);
            char::from(ALPHABET.get(index).copied().unwrap_or(b'x'))
        })
        .collect()
}
