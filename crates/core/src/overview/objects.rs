//! What is there to be judged? The objects of a cluster at one instant.
//!
//! The operator has them in its stores, the command line reads them from a cluster or from files. They are
//! sorted by namespace and name (Rule 2).

use k8s_openapi::api::{
    core::v1::{Namespace, Node, Pod},
    policy::v1::PodDisruptionBudget,
};
use machinist_api::{
    Machine, MachineHealthCheck, MachineMaintenance, MachineSet, MaintenancePolicy,
    managed_upgrade::{
        AdminFreezeWindow, CustomerFreezeWindow, PreferredUpgradeStartTime, UpgradeConfig,
    },
    names::annotation,
};

use crate::maintenance::{Note, PolicySet, managed_upgrade::Legacy};

/// The objects of a cluster at one instant.
#[derive(Clone, Default)]
pub struct Objects<'a> {
    /// Of the Machines.
    pub namespace: &'a str,
    pub machines: Vec<&'a Machine>,
    pub sets: Vec<&'a MachineSet>,
    pub health_checks: Vec<&'a MachineHealthCheck>,
    pub nodes: Vec<&'a Node>,
    pub pods: Vec<&'a Pod>,
    /// Why the pods are not known, where they are not.
    pub pods_unknown: Option<&'a str>,
    /// Whether the pods are whole enough to say how etcd is. The operator's stores keep less of a pod;
    /// what its leader knows of etcd is on the records.
    pub tell_of_etcd: bool,
    pub budgets: Vec<&'a PodDisruptionBudget>,
    /// Of the Machines' namespace and of that in which the original kept them.
    pub maintenances: Vec<&'a MachineMaintenance>,
    pub policies: Vec<&'a MaintenancePolicy>,
    pub upgrades: Vec<&'a UpgradeConfig>,
    pub admin_freezes: Vec<&'a AdminFreezeWindow>,
    pub customer_freezes: Vec<&'a CustomerFreezeWindow>,
    pub preferred_starts: Vec<&'a PreferredUpgradeStartTime>,
    /// The Machines' namespace itself, which may carry a pause.
    pub home: Option<&'a Namespace>,
    /// What could not be read.
    pub notes: &'a [Note],
}

impl<'a> Objects<'a> {
    /// Why maintenance is paused in the whole cluster.
    pub fn pause(&self) -> Option<&'a str> {
        let annotations = self.home?.metadata.annotations.as_ref()?;
        annotations.get(annotation::MAINTENANCE_PAUSED).map(String::as_str)
    }

    /// The windows and freezes of the managed-upgrade-operator.
    pub fn legacy(&self) -> Legacy {
        Legacy::read(&self.admin_freezes, &self.customer_freezes, &self.preferred_starts)
    }

    /// What all policies say.
    pub fn policy_set(&self, legacy: &Legacy) -> PolicySet {
        PolicySet::read(self.policies.iter().copied(), legacy)
    }

    /// The MachineSet that owns a Machine.
    pub fn set_of(&self, machine: &Machine) -> Option<&'a MachineSet> {
        let owners = machine.metadata.owner_references.iter().flatten();
        let owner = owners.into_iter().find(|owner| owner.controller == Some(true))?;
        self.sets.iter().copied().find(|set| set.metadata.uid.as_ref() == Some(&owner.uid))
    }
}
