//! May a set make Machines now, or would they not fit to the control plane?

use std::collections::BTreeSet;

use machinist_api::cluster_api::{
    MachineSet,
    names::{annotation, kind, label, preflight},
};

use super::observed::{ControlPlane, Found, Observed, Part};
use crate::cluster_api::{
    identity::{self, is_deleting},
    version::Version,
};

/// The oldest minor version that may still join.
const MINORS_BEHIND_MAX: u64 = 3;

/// Why no Machine may be made, one sentence each; empty when one may.
pub fn faults(observed: &Observed<'_>) -> Vec<String> {
    if let Some(cluster) = observed.cluster.filter(|cluster| is_deleting(&cluster.metadata)) {
        let name = cluster.metadata.name.as_deref().unwrap_or_default();
        return vec![format!("Cluster {name} is being deleted")];
    }
    let plane = &observed.control_plane;
    if let Some(unknown) = &plane.unknown {
        return vec![unknown.clone()];
    }
    let Some(what) = &plane.what else { return Vec::new() };
    let Some(wanted) = plane.version.as_deref().and_then(Version::parse) else { return Vec::new() };
    let skipped = skipped(observed);
    let is_asked = |check: &str| !skipped.contains(preflight::ALL) && !skipped.contains(check);
    let mut faults = Vec::new();
    if is_asked(preflight::CONTROL_PLANE_IS_STABLE)
        && let Some(unstable) = instability(what, plane, &wanted)
    {
        faults.push(failed(&unstable, preflight::CONTROL_PLANE_IS_STABLE));
    }
    let Some(own) = observed.set.spec.template.spec.version.as_deref().and_then(Version::parse)
    else {
        return faults;
    };
    let pair = format!("MachineSet version ({own}) and ControlPlane version ({wanted})");
    if is_asked(preflight::KUBERNETES_VERSION_SKEW) {
        let skew = if (own.major, own.minor) > (wanted.major, wanted.minor) {
            Some("MachineSet version is higher than ControlPlane version".to_owned())
        } else if own.minor + MINORS_BEHIND_MAX < wanted.minor {
            Some(format!(
                "MachineSet version is more than {MINORS_BEHIND_MAX} minor versions older than the \
                 ControlPlane version"
            ))
        } else {
            None
        };
        let policy = "do not conform to the kubernetes version skew policy as";
        faults.extend(skew.map(|skew| {
            failed(&format!("{pair} {policy} {skew}"), preflight::KUBERNETES_VERSION_SKEW)
        }));
    }
    if is_asked(preflight::KUBEADM_VERSION_SKEW)
        && is_kubeadm(observed.set)
        && (own.major, own.minor) != (wanted.major, wanted.minor)
    {
        let words = "do not conform to kubeadm version skew policy as kubeadm only supports joining \
                     with the same major+minor version as the control plane";
        faults.push(failed(&format!("{pair} {words}"), preflight::KUBEADM_VERSION_SKEW));
    }
    if is_asked(preflight::CONTROL_PLANE_VERSION_SKEW)
        && identity::label(&observed.set.metadata, label::TOPOLOGY_OWNED).is_some()
        && own != wanted
    {
        let words = "are different; they must be the same before machines are made";
        faults.push(failed(&format!("{pair} {words}"), preflight::CONTROL_PLANE_VERSION_SKEW));
    }
    faults
}

fn failed(words: &str, check: &str) -> String {
    format!("{words} (\"{check}\" preflight check failed)")
}

fn instability(what: &str, plane: &ControlPlane, wanted: &Version) -> Option<String> {
    let Some(running) = plane.running_version.as_deref().and_then(Version::parse) else {
        return Some(format!("{what} is provisioning"));
    };
    if *wanted > running {
        return Some(format!("{what} is upgrading from {running} to {wanted}"));
    }
    let topology = plane.topology_version.as_deref().and_then(Version::parse)?;
    (topology != *wanted).then(|| format!("{what} has a pending upgrade to {topology}"))
}

fn is_kubeadm(set: &MachineSet) -> bool {
    let reference = set.spec.template.spec.bootstrap.config_ref.as_ref();
    reference.is_some_and(|reference| reference.kind == kind::KUBEADM_CONFIG_TEMPLATE)
}

/// What the set says, or where it says nothing, its bootstrap template.
fn skipped<'a>(observed: &'a Observed<'_>) -> BTreeSet<&'a str> {
    let own = identity::annotation(&observed.set.metadata, annotation::SKIP_PREFLIGHT_CHECKS);
    let of_template = || {
        observed.templates.iter().find_map(|template| match &template.found {
            Found::Whole { metadata, .. } if template.part == Part::Bootstrap => {
                identity::annotation(metadata, annotation::SKIP_PREFLIGHT_CHECKS)
            }
            _ => None,
        })
    };
    own.or_else(of_template).unwrap_or_default().split(',').map(str::trim).collect()
}
