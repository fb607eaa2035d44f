//! How does a script name a kind? By its plural, as kubectl does; with its group where two kinds have that plural:
//! `machines` are those of the Machine API, `machines.cluster.x-k8s.io` those of Cluster API.

use super::values::MachineName;
use crate::{
    api_server::{Kind, KindRef},
    template::{
        self,
        cluster_api::{BOOTSTRAP, CONTROL_PLANE, GROUP, INFRASTRUCTURE},
    },
};

/// Group and plural.
pub(super) fn group_and_plural(named: &str) -> (&str, &str) {
    if let Some((plural, group)) = named.split_once('.') {
        return (group, plural);
    }
    let group = match named {
        "machines" | "machinesets" | "machinehealthchecks" => "machine.openshift.io",
        "clusters" | "machinedeployments" | "machinedrainrules" => GROUP,
        "simmachines" | "simmachinetemplates" => INFRASTRUCTURE,
        "simconfigs" | "simconfigtemplates" => BOOTSTRAP,
        "simcontrolplanes" => CONTROL_PLANE,
        "certificatesigningrequests" => "certificates.k8s.io",
        "machinemaintenances" => "machinemaintenance.managed.openshift.io",
        "maintenancepolicies" => "machinist.dev",
        "poddisruptionbudgets" => "policy",
        "leases" => "coordination.k8s.io",
        "customresourcedefinitions" => "apiextensions.k8s.io",
        _ => "",
    };
    (group, named)
}

/// Where an object is whose namespace is not said.
pub(super) fn namespace_of(named: &str, given: &str) -> String {
    let usual = match named {
        "nodes"
        | "namespaces"
        | "certificatesigningrequests"
        | "maintenancepolicies"
        | "customresourcedefinitions" => "",
        "pods" | "poddisruptionbudgets" => "default",
        _ => template::NAMESPACE,
    };
    if given.is_empty() { usual.to_owned() } else { given.to_owned() }
}

/// The kind of that name; none where all are meant.
pub(super) fn known(named: &str) -> Result<Option<KindRef>, String> {
    let (group, plural) = group_and_plural(named);
    match KindRef::find(group, plural) {
        None if named != "all" => Err(format!("kind {named} is not known")),
        found => Ok(found),
    }
}

/// Whether the name is of that kind, or of all.
pub(super) fn is_meant(named: &str, kind: &Kind) -> bool {
    named == "all" || group_and_plural(named) == (kind.group, kind.plural)
}

/// Whether a name stands for Machines, of either API.
pub(super) fn is_machines(named: &str, machine: Option<&MachineName>) -> bool {
    machine.is_some() && group_and_plural(named).1 == "machines"
}
