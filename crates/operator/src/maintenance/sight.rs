//! What is seen of one Machine for its maintenance: its Node and pods, what the sources tell of its
//! instance, and what can be done to that.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::{
    core::v1::{Node, Pod},
    policy::v1::PodDisruptionBudget,
};
use machinist_api::{Machine, names::annotation};
use machinist_core::{
    cloud::{Instance, InstanceId},
    cluster_api::maintained::is_of_cluster_api,
    machine::observed::{bound_instance, validate},
    maintenance::{
        event::{Sighting, Source},
        gather::{Hardware, MachineSight},
    },
    node::{self, Readiness},
};

use super::{
    home::{self, Occupants},
    memory::Memory,
};
use crate::{
    cloud::{CloudAccess, Snapshot, snapshot::Reports},
    context::Context,
    index,
    machineset::capacity::catalogs::CatalogKey,
};

/// How long a catalog is waited for. What it says is needed before work begins, not before it is
/// planned.
const CATALOG_PATIENCE: Duration = Duration::from_secs(5);

/// The pictures of all clouds, as they are now.
pub struct Pictures(Vec<(Arc<CloudAccess>, Arc<Snapshot>)>);

impl Pictures {
    pub fn take(context: &Context) -> Self {
        let all = context.clouds.all().into_iter().chain(context.clouds.watched());
        let taken = all.map(|(_, access)| {
            let snapshot = access.view.snapshot();
            (access, snapshot)
        });
        Self(taken.collect())
    }

    /// The cloud that shows the instance of a Machine.
    pub fn access_of(&self, machine: &Machine) -> Option<Arc<CloudAccess>> {
        self.of(&bound_instance(machine)?).map(|(access, _)| Arc::clone(access))
    }

    fn of(&self, id: &InstanceId) -> Option<&(Arc<CloudAccess>, Arc<Snapshot>)> {
        self.0.iter().find(|(_, snapshot)| snapshot.get(id).is_some())
    }
}

/// One Machine and what belongs to it.
pub struct Sighted {
    pub machine: Arc<Machine>,
    pub node: Option<Arc<Node>>,
    pub pods: Vec<Arc<Pod>>,
    /// Of its workload cluster, where it is in one.
    pub budgets: Vec<Arc<PodDisruptionBudget>>,
    /// Why it is not known which pods are on its Node.
    pub pods_unknown: Option<String>,
    pub instance: Option<Arc<Instance>>,
    pub access: Option<Arc<CloudAccess>>,
    pub sightings: Vec<Sighting>,
    asked: Vec<Source>,
    impaired: Option<(Timestamp, String)>,
    hardware: Hardware,
    /// Whether it is known which disks the instance has on its host.
    pub are_disks_known: bool,
}

impl Sighted {
    pub fn of(context: &Context, pictures: &Pictures, machine: &Arc<Machine>) -> Self {
        let node = context.stores.linked_node(machine);
        let mut sighted = Self {
            machine: Arc::clone(machine),
            node,
            pods: Vec::new(),
            budgets: Vec::new(),
            pods_unknown: None,
            instance: None,
            access: None,
            sightings: Vec::new(),
            asked: Vec::new(),
            impaired: None,
            hardware: Hardware::default(),
            are_disks_known: false,
        };
        let Some(id) = bound_instance(machine) else { return sighted };
        if let Some(node) = &sighted.node {
            sighted.sightings.extend(Sighting::on_node(node, &id));
            // Whoever writes the annotation runs on the Node itself.
            if node::readiness(node) == Readiness::Ready {
                sighted.asked.push(Source::Metadata);
            }
        }
        let Some((access, snapshot)) = pictures.of(&id) else { return sighted };
        sighted.access = Some(Arc::clone(access));
        sighted.instance = snapshot.get(&id).cloned();
        sighted.sightings.extend(snapshot.heard_of(&id).cloned());
        if matches!(snapshot.reports, Reports::Known(_)) {
            sighted.asked.push(Source::Api);
        }
        if let Some(report) = snapshot.report_of(&id) {
            sighted.sightings.extend(report.events.iter().map(Sighting::listed));
            let checks: Vec<&str> =
                report.impairments.iter().map(|one| one.check.as_str()).collect();
            let since = report.impairments.iter().filter_map(|one| one.since).min();
            sighted.impaired = since.map(|since| (since, checks.join(", ")));
        }
        if let Some(instance) = &sighted.instance {
            sighted.hardware = Hardware {
                root_device: instance.root_device,
                has_instance_store: false,
                is_interruptible: instance.interruptible,
                reboot_migration: instance.reboot_migration,
            };
        }
        sighted
    }

    /// Whether something may speak for its maintenance, besides an object about it.
    pub fn is_of_interest(&self) -> bool {
        let annotations = self.machine.metadata.annotations.as_ref();
        let is_asked_for =
            annotations.is_some_and(|all| all.contains_key(annotation::MAINTENANCE_REQUESTED));
        is_asked_for || !self.sightings.is_empty() || self.impaired.is_some()
    }

    /// Whether the provider's checks fail: then time alone may make a reason of it.
    pub fn is_impaired(&self) -> bool {
        self.impaired.is_some()
    }

    /// Looks at what only those need that something speaks for: pods, and the catalog. What is asked of another cluster
    /// for that is not older than `within`.
    pub async fn look_closer(&mut self, context: &Context, memory: &Memory, within: Duration) {
        match self.node.as_ref().map(|node| node::name(node)) {
            Some(node) if is_of_cluster_api(&self.machine) => {
                let name = self.machine.metadata.name.as_deref().unwrap_or_default();
                match home::occupants(context, memory, name, node, within).await {
                    Ok(Occupants { pods, budgets }) => {
                        (self.pods, self.budgets) = (pods, budgets);
                    }
                    Err(error) => self.pods_unknown = Some(format!("{error:#}")),
                }
            }
            Some(node) => self.pods = context.stores.pods.by_index(index::POD_BY_NODE, node),
            None => {}
        }
        if let Some(has) = self.has_instance_store(context, memory).await {
            self.hardware.has_instance_store = has;
            self.are_disks_known = true;
        }
    }

    async fn has_instance_store(&self, context: &Context, memory: &Memory) -> Option<bool> {
        let (instance, access) = (self.instance.as_ref()?, self.access.as_ref()?);
        let facts = validate(&self.machine).ok()?;
        let namespace = self.machine.metadata.namespace.clone().unwrap_or_default();
        let key = CatalogKey::of(namespace, &facts);
        let connect = async { Ok(access.provider()) };
        let catalog = tokio::select! {
            biased;
            catalog = memory.catalogs.get(&context.env, &key, connect) => catalog.ok()?,
            () = context.env.sleep(CATALOG_PATIENCE) => return None,
        };
        catalog.sizes.get(&instance.instance_type).map(|offer| offer.has_instance_store)
    }

    pub fn sight<'a>(
        &'a self,
        pods: &'a [&'a Pod],
        budgets: &'a [&'a PodDisruptionBudget],
    ) -> MachineSight<'a> {
        MachineSight {
            machine: &self.machine,
            node: self.node.as_deref(),
            pods,
            budgets,
            asked: &self.asked,
            impaired: self.impaired.clone(),
            hardware: self.hardware,
        }
    }
}
