//! What is kept of maintenance: its objects, the policies, what the managed-upgrade-operator says, and
//! whether a person paused it all. Any of the kinds may be missing in a cluster.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Namespace;
use kube::{Client, Resource};
use machinist_api::{
    MachineMaintenance, MaintenancePolicy,
    managed_upgrade::{
        AdminFreezeWindow, CustomerFreezeWindow, PreferredUpgradeStartTime, UpgradeConfig,
    },
    names::{MAINTENANCE_NAMESPACE, annotation, event},
};
use machinist_core::maintenance::{
    PolicySet,
    managed_upgrade::{Legacy, upgrade_under_way},
    records,
};

use crate::{
    engine::{
        env::Env,
        events::{EventRecorder, EventTarget, EventType},
        store::{Change, InvalidObject, ObjectKey, Store},
        supervisor::Spawner,
        watch::{Watch, Watched},
    },
    metrics::Metrics,
};

/// Under which maintenances that were begun and are not over are found.
const BY_STATE: &str = "state";
const UNDER_WAY: &str = "under-way";
/// Those about one Machine, by its name.
const BY_MACHINE: &str = "machine";

/// One store of each kind.
#[derive(Clone)]
pub struct MaintenanceStores {
    /// The namespace of the Machines, where objects are made.
    pub namespace: String,
    own: Store<MachineMaintenance>,
    /// Where the original kept them; `None` where that is our own namespace.
    original: Option<Store<MachineMaintenance>>,
    pub policies: Store<MaintenancePolicy>,
    pub upgrades: Store<UpgradeConfig>,
    pub admin_freezes: Store<AdminFreezeWindow>,
    pub customer_freezes: Store<CustomerFreezeWindow>,
    pub preferred_starts: Store<PreferredUpgradeStartTime>,
    /// Only that of the Machines.
    pub namespaces: Store<Namespace>,
}

impl MaintenanceStores {
    pub fn new(namespace: &str) -> Self {
        let has_original = namespace != MAINTENANCE_NAMESPACE;
        Self {
            namespace: namespace.to_owned(),
            own: objects(),
            original: has_original.then(objects),
            policies: Store::builder().build(),
            upgrades: Store::builder().build(),
            admin_freezes: Store::builder().build(),
            customer_freezes: Store::builder().build(),
            preferred_starts: Store::builder().build(),
            namespaces: Store::builder().build(),
        }
    }

    pub fn get(&self, key: &ObjectKey) -> Option<Arc<MachineMaintenance>> {
        self.of(&key.namespace)?.get(key)
    }

    /// All of them, ordered by namespace and name.
    pub fn list(&self) -> Vec<Arc<MachineMaintenance>> {
        let mut all: Vec<_> = self.all().flat_map(Store::list).collect();
        all.sort_by_key(|one| ObjectKey::of(&**one));
        all
    }

    /// Those that were begun and are not over.
    pub fn under_way(&self) -> Vec<Arc<MachineMaintenance>> {
        self.all().flat_map(|store| store.by_index(BY_STATE, UNDER_WAY)).collect()
    }

    /// Those about the Machine of this name.
    pub fn about(&self, machine: &str) -> Vec<Arc<MachineMaintenance>> {
        self.all().flat_map(|store| store.by_index(BY_MACHINE, machine)).collect()
    }

    /// The object that counts for the Machine of an object, where that is another one.
    pub fn counting_instead_of(
        &self,
        object: &MachineMaintenance,
    ) -> Option<Arc<MachineMaintenance>> {
        let about = self.about(&object.spec.machinelink);
        let counting = records::counting(about.iter().map(AsRef::as_ref));
        let counting = counting.get(object.spec.machinelink.as_str())?;
        let key = ObjectKey::of(*counting);
        (key != ObjectKey::of(object)).then(|| self.get(&key)).flatten()
    }

    /// Where records are kept.
    pub fn namespaces_of_records(&self) -> impl Iterator<Item = &str> {
        let original = self.original.as_ref().map(|_| MAINTENANCE_NAMESPACE);
        std::iter::once(self.namespace.as_str()).chain(original)
    }

    /// Whether the cluster does not have the kind: then there is nothing to be done.
    pub fn is_absent(&self) -> bool {
        self.own.is_absent()
    }

    /// Makes it a cluster without the kind.
    #[cfg(test)]
    pub(crate) fn mark_absent(&self) {
        self.own.mark_absent();
    }

    pub fn apply_written(&self, object: MachineMaintenance) {
        let key = ObjectKey::of(&object);
        if let Some(store) = self.of(&key.namespace) {
            store.apply_written(object);
        }
    }

    pub fn apply_deleted(&self, key: &ObjectKey, uid: &str, left: Option<MachineMaintenance>) {
        if let Some(store) = self.of(&key.namespace) {
            store.apply_deleted(key, uid, left);
        }
    }

    pub fn on_change(
        &self,
        listener: impl Fn(&Change<MachineMaintenance>) + Clone + Send + Sync + 'static,
    ) {
        for store in self.all() {
            store.on_change(listener.clone());
        }
    }

    /// Waits until everything is known that a decision reads.
    pub(crate) async fn synced(&self) {
        for store in self.all() {
            store.synced().await;
        }
        self.policies.synced().await;
        self.upgrades.synced().await;
        self.admin_freezes.synced().await;
        self.customer_freezes.synced().await;
        self.preferred_starts.synced().await;
        self.namespaces.synced().await;
    }

    /// What all policies say, with the windows and freezes of the managed-upgrade-operator.
    pub fn policy_set(&self) -> PolicySet {
        let admin = self.admin_freezes.list();
        let customer = self.customer_freezes.list();
        let preferred = self.preferred_starts.list();
        let legacy = Legacy::read(
            &admin.iter().map(AsRef::as_ref).collect::<Vec<_>>(),
            &customer.iter().map(AsRef::as_ref).collect::<Vec<_>>(),
            &preferred.iter().map(AsRef::as_ref).collect::<Vec<_>>(),
        );
        let policies = self.policies.list();
        PolicySet::read(policies.iter().map(AsRef::as_ref), &legacy)
    }

    /// Why an upgrade of the cluster holds maintenance back, where one does.
    pub fn upgrade(&self) -> Option<String> {
        let upgrades = self.upgrades.list();
        upgrade_under_way(&upgrades.iter().map(AsRef::as_ref).collect::<Vec<_>>())
    }

    /// Why a person paused all maintenance, where one did.
    pub fn pause(&self) -> Option<String> {
        let own = self.namespaces.get(&ObjectKey::cluster_wide(self.namespace.as_str()))?;
        own.metadata.annotations.as_ref()?.get(annotation::MAINTENANCE_PAUSED).cloned()
    }

    /// Starts to listen; of the policies, to those with these labels.
    pub(super) fn watch(
        &self,
        policies: Option<&str>,
        client: &Client,
        env: &Env,
        metrics: &Metrics,
        spawner: &Spawner,
        events: &EventRecorder,
    ) {
        let of = [
            (self.namespace.as_str(), Some(&self.own)),
            (MAINTENANCE_NAMESPACE, self.original.as_ref()),
        ];
        for (namespace, store) in of {
            let Some(store) = store else { continue };
            let reporter = events.clone();
            let watch = Watch::namespaced(client, metrics, store, namespace)
                .optional()
                .on_invalid(move |object| report::<MachineMaintenance>(&reporter, object));
            let name = format!("watch of machinemaintenances in {namespace}");
            spawner.spawn(name, watch.run(env.clone()));
        }
        let reporter = events.clone();
        let mut watch = Watch::cluster_wide(client, metrics, &self.policies)
            .optional()
            .on_invalid(move |object| report::<MaintenancePolicy>(&reporter, object));
        if let Some(selector) = policies {
            watch = watch.labels(selector);
        }
        spawner.spawn("watch of maintenancepolicies", watch.run(env.clone()));
        let namespaces = Watch::cluster_wide(client, metrics, &self.namespaces)
            .fields(&format!("metadata.name={}", self.namespace))
            .optional();
        spawner.spawn("watch of the namespace", namespaces.run(env.clone()));
        let listen = Listener { client, env, metrics, spawner };
        listen.to("upgradeconfigs", &self.upgrades);
        listen.to("adminfreezewindows", &self.admin_freezes);
        listen.to("customerfreezewindows", &self.customer_freezes);
        listen.to("preferredupgradestarttimes", &self.preferred_starts);
    }

    fn of(&self, namespace: &str) -> Option<&Store<MachineMaintenance>> {
        if namespace == self.namespace {
            return Some(&self.own);
        }
        self.original.as_ref().filter(|_| namespace == MAINTENANCE_NAMESPACE)
    }

    fn all(&self) -> impl Iterator<Item = &Store<MachineMaintenance>> {
        std::iter::once(&self.own).chain(&self.original)
    }
}

/// Kinds that are not ours, of all namespaces.
struct Listener<'a> {
    client: &'a Client,
    env: &'a Env,
    metrics: &'a Metrics,
    spawner: &'a Spawner,
}

impl Listener<'_> {
    fn to<K: Watched + Resource<DynamicType = ()>>(&self, plural: &str, store: &Store<K>) {
        let watch = Watch::cluster_wide(self.client, self.metrics, store).optional();
        self.spawner.spawn(format!("watch of {plural}"), watch.run(self.env.clone()));
    }
}

fn objects() -> Store<MachineMaintenance> {
    Store::builder()
        .index(BY_STATE, |object: &MachineMaintenance| {
            let phase = object.status.as_ref().and_then(|status| status.phase);
            let is_under_way = phase.is_some_and(|phase| phase.is_under_way());
            is_under_way.then(|| UNDER_WAY.to_owned()).into_iter().collect()
        })
        .index(BY_MACHINE, |object: &MachineMaintenance| vec![object.spec.machinelink.clone()])
        .build()
}

/// An object that cannot be read is told so, on itself, and stops nobody else (Rule 12).
fn report<K: Resource<DynamicType = ()>>(events: &EventRecorder, object: &InvalidObject) {
    let target = EventTarget {
        api_version: K::api_version(&()).into_owned(),
        kind: K::kind(&()).into_owned(),
        namespace: object.metadata.namespace.clone().unwrap_or_default(),
        name: object.metadata.name.clone().unwrap_or_default(),
        uid: object.metadata.uid.clone().unwrap_or_default(),
    };
    events.record(&target, EventType::Warning, event::FAILED_VALIDATE, "Validate", &object.error);
}
