//! How a pool has a machine above its size, and how it gets back to it.
//!
//! The mark on the MachineSet says for whom it was made larger and which size we last gave it. It is
//! written together with the size, so that another process, or a repeated one, can tell what was done.
//! Others change the size too: a person, an autoscaler. What they take away is not taken away twice.

use std::{collections::BTreeSet, fmt};

use machinist_api::names::annotation;

use crate::disruption::Pool;

/// A pool as the gate counts it, without the machines that we added.
pub fn without_surplus(mut pool: Pool) -> Pool {
    let mark = Mark::read(pool.annotations.get(annotation::SURGE).map(String::as_str));
    pool.desired = pool.desired.saturating_sub(mark.count());
    pool
}

/// What the mark on a pool says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// The size that we last gave it.
    size: i32,
    /// The uids of the maintenances that it is larger for.
    uids: BTreeSet<String>,
}

/// A size for a pool, and the mark that goes with it; none where nothing is left to be marked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resize {
    pub replicas: i32,
    pub mark: Option<Mark>,
}

impl Mark {
    /// Reads the mark. One that cannot be read is as none: then nothing is taken back by us, and the
    /// pool stays larger than it was rather than smaller.
    pub fn read(text: Option<&str>) -> Self {
        let parts = text.and_then(|text| text.split_once(';'));
        let read = parts.and_then(|(size, uids)| {
            let size = size.trim().strip_prefix("size=")?.parse().ok()?;
            let uids = uids.trim().strip_prefix("for=")?.split(',').map(str::trim);
            let uids = uids.filter(|uid| !uid.is_empty()).map(str::to_owned).collect();
            Some(Self { size, uids })
        });
        read.unwrap_or_default()
    }

    pub fn is_for(&self, uid: &str) -> bool {
        self.uids.contains(uid)
    }

    /// How many machines the pool has above its size.
    pub fn count(&self) -> usize {
        self.uids.len()
    }

    /// One machine more, for this maintenance.
    pub fn grown(&self, replicas: i32, uid: &str) -> Resize {
        let mut uids = self.uids.clone();
        if !uids.insert(uid.to_owned()) {
            return Resize { replicas, mark: Some(self.clone()) };
        }
        // What others took away since is remembered as the difference between the two sizes.
        let expected = if self.uids.is_empty() { replicas } else { self.size.max(replicas) };
        Resize {
            replicas: replicas.saturating_add(1),
            mark: Some(Self { size: expected.saturating_add(1), uids }),
        }
    }

    /// Without the machine for this maintenance. Where others made the pool smaller since, they took
    /// that machine away already.
    pub fn shrunk(&self, replicas: i32, uid: &str) -> Resize {
        let mut uids = self.uids.clone();
        if !uids.remove(uid) {
            let mark = (!uids.is_empty()).then(|| self.clone());
            return Resize { replicas, mark };
        }
        let was_taken_by_others = replicas < self.size;
        let (replicas, size) = if was_taken_by_others {
            (replicas, self.size.saturating_sub(1))
        } else {
            let replicas = replicas.saturating_sub(1).max(0);
            (replicas, replicas)
        };
        let mark = (!uids.is_empty()).then_some(Self { size, uids });
        Resize { replicas, mark }
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let uids: Vec<&str> = self.uids.iter().map(String::as_str).collect();
        write!(formatter, "size={};for={}", self.size, uids.join(","))
    }
}
