//! Which set is the one of the template as it is now?
//!
//! What may change in place makes no other template. The provider's templates are compared by name and never by content,
//! as Cluster API does: they are not to be changed.

use std::cmp::Reverse;

use jiff::Timestamp;
use machinist_api::cluster_api::{MachineDeployment, MachineSet, MachineSpec};

use crate::cluster_api::identity::is_deleting;

/// The current set: of several the largest, then the oldest, then by name.
pub fn find<'a>(
    deployment: &MachineDeployment,
    sets: &[&'a MachineSet],
    now: Timestamp,
) -> Option<&'a MachineSet> {
    let wanted = compared(&deployment.spec.template.spec);
    let since = expired_rollout(deployment, now);
    sets.iter()
        .copied()
        .filter(|set| !is_deleting(&set.metadata))
        .filter(|set| compared(&set.spec.template.spec) == wanted)
        .filter(|set| since.is_none_or(|since| created(set) >= Some(since)))
        .min_by_key(|set| {
            (Reverse(set.spec.replicas.unwrap_or(0)), created(set), set.metadata.name.clone())
        })
}

/// From when on a set must be, where a rollout was asked for by time and that time has come.
pub fn expired_rollout(deployment: &MachineDeployment, now: Timestamp) -> Option<Timestamp> {
    deployment.spec.rollout.after.as_ref().map(|after| after.0).filter(|after| *after <= now)
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
