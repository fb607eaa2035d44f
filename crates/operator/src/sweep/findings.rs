//! What the last sweeps found, for whoever tells people of it.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use machinist_core::sweep::{Orphan, Why};

use crate::cloud::CloudKey;

/// The orphans of every view, by id: two sets of credentials may show the same account.
#[derive(Debug, Default)]
pub struct Findings {
    by_view: Mutex<BTreeMap<CloudKey, BTreeMap<String, String>>>,
}

impl Findings {
    pub(super) fn set(&self, key: CloudKey, orphans: &[Orphan]) {
        let described = orphans.iter().map(|orphan| (orphan.id.0.clone(), words(&orphan.why)));
        self.lock().insert(key, described.collect());
    }

    /// Every orphan with the reason; none before the first sweep.
    pub fn orphans(&self) -> Option<BTreeMap<String, String>> {
        let by_view = self.lock();
        let all = by_view.values().flatten().map(|(id, why)| (id.clone(), why.clone()));
        (!by_view.is_empty()).then(|| all.collect())
    }

    pub(super) fn count(&self) -> usize {
        self.orphans().map_or(0, |orphans| orphans.len())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<CloudKey, BTreeMap<String, String>>> {
        self.by_view.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn words(why: &Why) -> String {
    match why {
        Why::MachineIsGone { machine_uid } => {
            format!("the Machine with uid {machine_uid} does not exist")
        }
        Why::NeverHadMachine => "was never a Machine's".to_owned(),
    }
}
