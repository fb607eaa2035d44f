//! What of the cluster is looked at? All that the stores have at one instant and that those who look may see.

use std::{collections::BTreeSet, sync::Arc};

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
    cluster_api::maintained,
    maintenance::{Note, records},
    overview::objects::Objects,
};

use super::audience::Audience;
use crate::{
    cluster_api::context::Stores as ClusterApiStores,
    context::Stores,
    engine::{
        store::{InvalidObject, ObjectKey, Store},
        watch::Watched,
    },
};

/// Half of them would be a wrong picture; those of the other API are shown meanwhile.
const UNREAD: &str = "the machines of Cluster API have not been read yet and are left out";

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
    pub fn take(stores: &Stores, namespace: &str, audience: &Audience) -> Self {
        let maintenance = &stores.maintenance;
        let known = stores.cluster_api.get();
        let of_cluster_api = known.filter(|known| known.is_listed()).map(|one| &*one.stores);
        let seen = of_cluster_api.map(|stores| see(stores, audience)).unwrap_or_default();
        let mut notes: Vec<Note> = Vec::new();
        notes.extend(unreadable("machine", &stores.machines.invalid()));
        notes.extend(unreadable("machineset", &stores.machine_sets.invalid()));
        notes.extend(unreadable("maintenancepolicy", &maintenance.policies.invalid()));
        match of_cluster_api {
            Some(stores) => notes.extend(unreadable_of(stores, audience)),
            None if known.is_some() => notes.push(Note::warning("Unread", "cluster-api", UNREAD)),
            None => {}
        }
        let mut maintenances = maintenance.list();
        // What is planned for a machine tells of the machine.
        maintenances.retain(|one| audience.knows(&one.spec.machinelink));
        Self {
            namespace: namespace.to_owned(),
            machines: with(stores.machines.list(), seen.machines),
            sets: with(stores.machine_sets.list(), seen.pools),
            health_checks: stores.health_checks.list(),
            nodes: with(stores.nodes.list(), seen.nodes),
            pods: stores.pods.list(),
            budgets: stores.budgets.list(),
            maintenances,
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

    /// The namespaces of the machines of Cluster API that are there.
    pub fn namespaces_of_cluster_api(&self) -> BTreeSet<&str> {
        let names = self.machines.iter().filter_map(|one| one.metadata.name.as_deref());
        names.filter_map(maintained::parts).map(|(namespace, _)| namespace).collect()
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

/// The machines of Cluster API as they are seen, with their Nodes as far as the Machines themselves tell of them: every
/// replica has the Machines, and a right to them is no right in the cluster of the Node.
fn see(stores: &ClusterApiStores, audience: &Audience) -> maintained::Maintained {
    fn kept<K: Watched>(store: &Store<K>, audience: &Audience) -> Vec<Arc<K>> {
        let mut objects = store.list();
        objects.retain(|one| audience.sees(one.meta().namespace.as_deref().unwrap_or_default()));
        objects
    }
    let (clusters, machines) = (kept(&stores.clusters, audience), kept(&stores.machines, audience));
    let (sets, deployments) =
        (kept(&stores.machine_sets, audience), kept(&stores.deployments, audience));
    maintained::all(&maintained::Objects {
        clusters: all(&clusters),
        machines: all(&machines),
        sets: all(&sets),
        deployments: all(&deployments),
    })
}

fn with<K>(mut objects: Vec<Arc<K>>, seen: Vec<K>) -> Vec<Arc<K>> {
    objects.extend(seen.into_iter().map(Arc::new));
    objects
}

fn unreadable_of(stores: &ClusterApiStores, audience: &Audience) -> Vec<Note> {
    let told = |kind, mut invalid: Vec<Arc<InvalidObject>>| {
        invalid.retain(|one| audience.sees(one.metadata.namespace.as_deref().unwrap_or_default()));
        unreadable(kind, &invalid)
    };
    let mut notes = told("machine", stores.machines.invalid());
    notes.extend(told("machineset", stores.machine_sets.invalid()));
    notes.extend(told("machinedeployment", stores.deployments.invalid()));
    notes
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
