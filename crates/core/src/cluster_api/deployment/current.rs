//! Which set is the one of the template as it is now?
//!
//! What may change in place makes no other template. The provider's templates are compared by name and never by content,
//! as Cluster API does: they are not to be changed.

use std::cmp::Reverse;

use jiff::Timestamp;
use machinist_api::cluster_api::{MachineDeployment, MachineSet, MachineSpec};

use crate::cluster_api::identity::{self, is_deleting};

/// On a set: for which `spec.rollout.after` it was made. That the time has come is judged by our clock, the set's creation
/// is dated by the API server's: by the date alone a set made while that clock is behind would never be the current one.
/// Sets that Cluster API itself made have no such mark.
pub const MADE_FOR: &str = "machinist.dev/rollout-after";

/// The current set: of several the largest, then the oldest, then by name.
pub fn find<'a>(
    deployment: &MachineDeployment,
    sets: &[&'a MachineSet],
    now: Timestamp,
) -> Option<&'a MachineSet> {
    let wanted = compared(&deployment.spec.template.spec);
    let since = expired_rollout(deployment, sets, now);
    sets.iter()
        .copied()
        .filter(|set| !is_deleting(&set.metadata))
        .filter(|set| compared(&set.spec.template.spec) == wanted)
        .filter(|set| since.is_none_or(|since| is_since(set, since)))
        .min_by_key(|set| {
            (Reverse(set.spec.replicas.unwrap_or(0)), created(set), set.metadata.name.clone())
        })
}

/// From when on a set must be, where a rollout was asked for by time and that time has come: by our clock, or by that of a
/// process before us that made a set for it.
pub fn expired_rollout(
    deployment: &MachineDeployment,
    sets: &[&MachineSet],
    now: Timestamp,
) -> Option<Timestamp> {
    let after = deployment.spec.rollout.after.as_ref().map(|after| after.0)?;
    let is_begun = || sets.iter().any(|set| made_for(set) >= Some(after));
    (after <= now || is_begun()).then_some(after)
}

/// Whether a rollout that was asked for at this time needs no newer set than this one.
pub fn is_since(set: &MachineSet, after: Timestamp) -> bool {
    made_for(set) >= Some(after) || created(set) >= Some(after)
}

fn made_for(set: &MachineSet) -> Option<Timestamp> {
    identity::annotation(&set.metadata, MADE_FOR)?.parse().ok()
}

pub fn created(set: &MachineSet) -> Option<Timestamp> {
    set.metadata.creation_timestamp.as_ref().map(|at| at.0)
}

/// Only what a Machine must be made anew for.
pub fn compared(spec: &MachineSpec) -> MachineSpec {
    MachineSpec {
        version: spec.version.clone(),
        bootstrap: spec.bootstrap.clone(),
        infrastructure_ref: spec.infrastructure_ref.clone(),
        failure_domain: spec.failure_domain.clone(),
        other: spec.other.clone(),
        ..MachineSpec::default()
    }
}
