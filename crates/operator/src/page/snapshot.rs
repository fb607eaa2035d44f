//! What of the cluster is looked at? All that the stores have, at one instant.

use std::sync::Arc;

use k8s_openapi::api::{
    core::v1::{Namespace, Node, Pod},
    policy::v1::PodDisruptionBudget,
};
use machinist_api::{
    Machine, MachineHealthCheck, MachineMaintenance, MachineSet, MaintenancePolicy,
    managed_upgrade::{
        AdminFreezeWindow, CustomerFreezeWindow, PreferredUpgradeStartTime, UpgradeConfig,
    },
};
use machinist_core::{
    maintenance::{Note, records},
    overview::objects::Objects,
};

use crate::{
    context::Stores,
    engine::store::{InvalidObject, ObjectKey},
};

/// The objects of the stores at one instant, in the order of their names.
pub(super) struct Snapshot {
    namespace: String,
    machines: Vec<Arc<Machine>>,
    sets: Vec<Arc<MachineSet>>,
    health_checks: Vec<Arc<MachineHealthCheck>>,
    nodes: Vec<Arc<Node>>,
    pods: Vec<Arc<Pod>>,
    budgets: Vec<Arc<PodDisruptionBudget>>,
    maintenances: Vec<Arc<MachineMaintenance>>,
    policies: Vec<Arc<MaintenancePolicy>>,
    upgrades: Vec<Arc<UpgradeConfig>>,
    admin_freezes: Vec<Arc<AdminFreezeWindow>>,
    customer_freezes: Vec<Arc<CustomerFreezeWindow>>,
    preferred_starts: Vec<Arc<PreferredUpgradeStartTime>>,
    home: Option<Arc<Namespace>>,
    notes: Vec<Note>,
}

impl Snapshot {
    pub fn take(stores: &Stores, namespace: &str) -> Self {
        let maintenance = &stores.maintenance;
        let mut notes: Vec<Note> = Vec::new();
        notes.extend(unreadable("machine", &stores.machines.invalid()));
        notes.extend(unreadable("machineset", &stores.machine_sets.invalid()));
        notes.extend(unreadable("maintenancepolicy", &maintenance.policies.invalid()));
        Self {
            namespace: namespace.to_owned(),
            machines: stores.machines.list(),
            sets: stores.machine_sets.list(),
            health_checks: stores.health_checks.list(),
            nodes: stores.nodes.list(),
            pods: stores.pods.list(),
            budgets: stores.budgets.list(),
            maintenances: maintenance.list(),
            policies: maintenance.policies.list(),
            upgrades: maintenance.upgrades.list(),
            admin_freezes: maintenance.admin_freezes.list(),
            customer_freezes: maintenance.customer_freezes.list(),
            preferred_starts: maintenance.preferred_starts.list(),
            home: maintenance.namespaces.get(&ObjectKey::cluster_wide(namespace)),
            notes,
        }
    }

    pub fn objects(&self) -> Objects<'_> {
        Objects {
            namespace: &self.namespace,
            machines: all(&self.machines),
            sets: all(&self.sets),
            health_checks: all(&self.health_checks),
            nodes: all(&self.nodes),
            pods: all(&self.pods),
            pods_unknown: None,
            tell_of_etcd: false,
            budgets: all(&self.budgets),
            maintenances: all(&self.maintenances),
            policies: all(&self.policies),
            upgrades: all(&self.upgrades),
            admin_freezes: all(&self.admin_freezes),
            customer_freezes: all(&self.customer_freezes),
            preferred_starts: all(&self.preferred_starts),
            home: self.home.as_deref(),
            notes: &self.notes,
        }
    }

    /// The Machine of a name.
    pub fn machine(&self, name: &str) -> Option<&Machine> {
        let is_it = |one: &&Arc<Machine>| one.metadata.name.as_deref() == Some(name);
        self.machines.iter().find(is_it).map(AsRef::as_ref)
    }

    /// The Node that a Machine is linked to, if it is still that Node.
    pub fn node_of(&self, machine: &Machine) -> Option<&Node> {
        let link = machine.status.as_ref()?.node_ref.as_ref()?;
        let node = self.nodes.iter().find(|node| node.metadata.name == link.name)?;
        (link.uid.is_none() || link.uid == node.metadata.uid).then_some(node.as_ref())
    }

    /// The MachineMaintenance that counts for a Machine.
    pub fn maintenance_of(&self, machine: &Machine) -> Option<&MachineMaintenance> {
        let name = machine.metadata.name.as_deref()?;
        let about = self.maintenances.iter().filter(|one| one.spec.machinelink == name);
        records::counting(about.map(AsRef::as_ref)).get(name).copied()
    }
}

fn all<K>(objects: &[Arc<K>]) -> Vec<&K> {
    objects.iter().map(AsRef::as_ref).collect()
}

/// An object that is not what its kind says is told, and hides no other (Rule 12).
fn unreadable(kind: &str, objects: &[Arc<InvalidObject>]) -> Vec<Note> {
    let told = |object: &Arc<InvalidObject>| {
        let name = object.metadata.name.as_deref().unwrap_or_default();
        let about = format!("{kind}/{name}");
        // What is wrong may be quoted, and what is quoted may be a secret: where to look is enough.
        let message =
            format!("{about} cannot be read and is left out; its events say what is wrong");
        Note::warning("Unreadable", about, message)
    };
    objects.iter().map(told).collect()
}
