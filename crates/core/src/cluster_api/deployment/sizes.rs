//! How large is each set, by what it is told, by what it says, and by what is seen of it?

use std::collections::BTreeMap;

use machinist_api::cluster_api::{Machine, MachineSet};

use crate::cluster_api::identity;

/// The sizes of one set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// What it is told to be.
    pub spec: i32,
    /// What it has, those that are going included.
    pub status: i32,
    /// What works.
    pub available: i32,
    /// Whether its controller has spoken of it as it is told to be now. One that was moved or restored from a backup has no
    /// status at first: that is no word of having no Machines.
    pub is_told: bool,
}

/// The Machines that are seen of each set.
pub struct Census<'a> {
    by_set: BTreeMap<&'a str, i32>,
}

impl<'a> Census<'a> {
    pub fn of(machines: &[&'a Machine]) -> Self {
        let mut by_set = BTreeMap::new();
        for owner in machines.iter().filter_map(|one| identity::controller(&one.metadata)) {
            *by_set.entry(owner.uid.as_str()).or_insert(0) += 1;
        }
        Self { by_set }
    }

    pub fn sizes(&self, set: Option<&MachineSet>) -> Sizes {
        let Some(set) = set else { return Sizes::default() };
        let said = set.status.as_ref();
        let replicas = said.and_then(|status| status.replicas);
        let uid = set.metadata.uid.as_deref();
        let seen = uid.and_then(|uid| self.by_set.get(uid)).copied().unwrap_or(0);
        // A Machine that cannot be read is not seen, and one that is new is not said yet: whichever is more is there.
        let status = seen.max(replicas.unwrap_or(0));
        let generation = said.and_then(|status| status.observed_generation);
        Sizes {
            spec: set.spec.replicas.unwrap_or(status),
            status,
            available: said.and_then(|status| status.available_replicas).unwrap_or(0),
            is_told: replicas.is_some() && generation == set.metadata.generation,
        }
    }

    pub fn all(&self, sets: &[&MachineSet]) -> Vec<Sizes> {
        sets.iter().map(|set| self.sizes(Some(set))).collect()
    }
}
