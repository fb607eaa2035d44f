//! What is there to judge? The objects of a cluster at one instant, read from the cluster itself or from
//! files into which somebody wrote them.
//!
//! Definitions that a cluster does not have are no failure: without MaintenancePolicies the defaults
//! hold, and most clusters have none of the managed-upgrade-operator's objects. What this user may not
//! read is told, because the answer depends on it.

mod files;
pub mod live;
mod policies;
#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, path::PathBuf};

use k8s_openapi::{
    api::{
        core::v1::{Event, Namespace, Node, Pod},
        policy::v1::PodDisruptionBudget,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::Resource;
use machinist_api::{
    Machine, MachineHealthCheck, MachineMaintenance, MachineSet, MaintenancePolicy,
    managed_upgrade::{
        AdminFreezeWindow, CustomerFreezeWindow, PreferredUpgradeStartTime, UpgradeConfig,
    },
    names::MAINTENANCE_NAMESPACE,
};
use machinist_core::{maintenance::Note, overview::objects::Objects};

use crate::{
    args::FleetArgs,
    cluster_api::ClusterApi,
    failure::Hinted,
    kubeconfig::{Access, connect},
    progress,
};

/// The objects of a cluster at one instant.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// Of the Machines.
    pub namespace: String,
    /// Those of Cluster API among them, as they are planned.
    pub machines: Vec<Machine>,
    pub sets: Vec<MachineSet>,
    pub health_checks: Vec<MachineHealthCheck>,
    pub nodes: Vec<Node>,
    pub pods: Vec<Pod>,
    /// Why the pods are not known, where they are not.
    pub pods_unknown: Option<String>,
    pub budgets: Vec<PodDisruptionBudget>,
    /// Of the Machines' namespace and of that in which the original kept them.
    pub maintenances: Vec<MachineMaintenance>,
    pub policies: Vec<MaintenancePolicy>,
    pub upgrades: Vec<UpgradeConfig>,
    pub admin_freezes: Vec<AdminFreezeWindow>,
    pub customer_freezes: Vec<CustomerFreezeWindow>,
    pub preferred_starts: Vec<PreferredUpgradeStartTime>,
    /// The Machines' namespace itself, which may carry a pause.
    pub home: Option<Namespace>,
    /// What was told of the fleet, as far as the API server still knows it.
    pub events: Vec<Event>,
    /// What could not be read.
    pub notes: Vec<Note>,
    /// Namespaces of Machines that are not looked at, where that is known.
    pub other_namespaces: BTreeSet<String>,
}

/// How much is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Everything that a plan depends on.
    Whole,
    /// What windows and freezes depend on, and which machines they hold for.
    Calendars,
    /// The machines with what happened to them.
    Happenings,
}

/// Reads what the arguments name, and nothing else is done to it.
pub async fn read(args: &FleetArgs, extent: Extent) -> anyhow::Result<Snapshot> {
    let mut snapshot = if args.filename.is_empty() {
        let connection = connect(&args.cluster, Access::Read).await?;
        progress::shown("reading the cluster", live::read(&connection, &args.namespace, extent))
            .await?
    } else {
        files::read(&args.filename, &args.namespace)?
    };
    snapshot.sort();
    Ok(snapshot)
}

impl Snapshot {
    /// Takes in the machines of Cluster API.
    fn add(&mut self, cluster_api: &ClusterApi) {
        let seen = cluster_api.seen();
        self.machines.extend(seen.machines);
        self.sets.extend(seen.pools);
        self.nodes.extend(seen.nodes);
    }

    /// Adds the MaintenancePolicies of files, in the place of those of the same name.
    pub fn try_policies(&mut self, files: &[PathBuf]) -> anyhow::Result<Vec<String>> {
        let mut names = Vec::new();
        for policy in policies::read(files)? {
            let name = policy.metadata.name.clone();
            self.policies.retain(|known| known.metadata.name != name);
            names.extend(name);
            self.policies.push(policy);
        }
        self.sort();
        Ok(names)
    }

    /// The same where Events may still tell of Machines that are gone.
    pub fn require_machines_or_events(&self) -> anyhow::Result<()> {
        if self.events.is_empty() { self.require_machines() } else { Ok(()) }
    }

    /// Says where Machines are looked for in vain.
    pub fn require_machines(&self) -> anyhow::Result<()> {
        if !self.machines.is_empty() {
            return Ok(());
        }
        let what = format!("there is no Machine in namespace {}", self.namespace);
        let others: Vec<&str> = self.other_namespaces.iter().map(String::as_str).collect();
        let hint = if others.is_empty() {
            "choose another namespace with -n, or another cluster with --context".to_owned()
        } else {
            format!("there are some in {}: choose it with -n", others.join(", "))
        };
        Err(Hinted::new(what, hint).into())
    }

    /// The objects as core looks at them.
    pub fn objects(&self) -> Objects<'_> {
        Objects {
            namespace: &self.namespace,
            machines: self.machines.iter().collect(),
            sets: self.sets.iter().collect(),
            health_checks: self.health_checks.iter().collect(),
            nodes: self.nodes.iter().collect(),
            pods: self.pods.iter().collect(),
            pods_unknown: self.pods_unknown.as_deref(),
            tell_of_etcd: true,
            budgets: self.budgets.iter().collect(),
            maintenances: self.maintenances.iter().collect(),
            policies: self.policies.iter().collect(),
            upgrades: self.upgrades.iter().collect(),
            admin_freezes: self.admin_freezes.iter().collect(),
            customer_freezes: self.customer_freezes.iter().collect(),
            preferred_starts: self.preferred_starts.iter().collect(),
            home: self.home.as_ref(),
            notes: &self.notes,
        }
    }

    /// Order by name: neither the API server's nor that of files means anything.
    fn sort(&mut self) {
        by_name(&mut self.machines);
        by_name(&mut self.sets);
        by_name(&mut self.health_checks);
        by_name(&mut self.nodes);
        by_name(&mut self.pods);
        by_name(&mut self.budgets);
        by_name(&mut self.maintenances);
        by_name(&mut self.policies);
        by_name(&mut self.events);
        self.notes.sort();
        self.notes.dedup();
    }
}

fn by_name<K: Resource>(objects: &mut [K]) {
    let key = |meta: &ObjectMeta| (meta.namespace.clone(), meta.name.clone());
    objects.sort_by_cached_key(|object| key(object.meta()));
}

/// Whether an object of this namespace is looked at, given that of the Machines. One without a
/// namespace was written by hand.
fn is_of(namespace: Option<&str>, home: &str) -> bool {
    namespace.is_none_or(|namespace| namespace == home)
}

/// The same for a MachineMaintenance.
fn is_maintenance_of(namespace: Option<&str>, home: &str) -> bool {
    is_of(namespace, home) || namespace == Some(MAINTENANCE_NAMESPACE)
}

/// An object that is not what its kind says is told, and hides no other (Rule 12).
fn unreadable(kind: &str, name: &str, problem: &str) -> Note {
    let about = format!("{}/{name}", kind.to_lowercase());
    let message = format!("{about} cannot be read and is left out: {problem}");
    Note::warning("Unreadable", about, message)
}
