//! How is a fleet kept for later, or for others to look at? Everything that Machinist judges by, in one file,
//! without what could be secret.
//!
//! The file is a list as kubectl writes it: `-f` of the other commands reads it, and so does the simulator.

mod kept;
#[cfg(test)]
mod tests;

use std::{io::Write, path::Path};

use anyhow::Context;
use jiff::Timestamp;
use k8s_openapi::api::{
    core::v1::{Event, Namespace, Node, Pod},
    policy::v1::PodDisruptionBudget,
};
use kube::{
    Api, Resource,
    api::{ApiResource, DynamicObject},
};
use machinist_api::{
    Machine, MachineHealthCheck, MachineMaintenance, MachineSet, MaintenancePolicy, cluster_api,
    managed_upgrade::{
        AdminFreezeWindow, CustomerFreezeWindow, PreferredUpgradeStartTime, UpgradeConfig,
    },
    names::MAINTENANCE_NAMESPACE,
};
use machinist_core::maintenance::Note;
use serde::Serialize;
use serde_json::Value;

use crate::{
    args::{DumpArgs, DumpOutput},
    cluster_api::is_served,
    document::{self, Notation},
    kubeconfig::{Access, Connection, connect},
    progress, screen,
    snapshot::live::{EVENTS_OF_CLUSTER, EVENTS_OF_CLUSTER_API, Place, Reading, raw},
};

pub async fn run(args: DumpArgs) -> anyhow::Result<()> {
    let connection = connect(&args.cluster, Access::Read).await?;
    let now = machinist_api::condition::to_seconds(Timestamp::now()).0;
    let reading = read(&connection, &args.namespace, now);
    let dump = progress::shown("reading the cluster", reading).await?;
    let text = text(&dump, args.output)?;
    for note in &dump.machinist.notes {
        eprintln!("{}", note.message);
    }
    match &args.to {
        None => screen::ignore_closed_pipe(std::io::stdout().write_all(text.as_bytes())),
        Some(path) => {
            write(path, &text)?;
            let objects = screen::counted(dump.items.len(), "object");
            eprintln!("{objects} of the fleet are in {}", path.display());
            Ok(())
        }
    }
}

/// A list of objects, and where it comes from.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Dump {
    api_version: &'static str,
    kind: &'static str,
    machinist: Origin,
    items: Vec<Value>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Origin {
    /// Of the command that wrote it.
    version: &'static str,
    /// For `machinist plan --at`, and for the clock of the simulator.
    taken_at: Timestamp,
    /// Of the Machines.
    namespace: String,
    /// What could not be read.
    notes: Vec<Note>,
}

async fn read(connection: &Connection, namespace: &str, now: Timestamp) -> anyhow::Result<Dump> {
    let home = Place::Namespace(namespace);
    let machines = raw::<Machine>(&connection.client, home).await;
    let machines = machines.map_err(|error| connection.explain("cannot list machines", error))?;
    let mut collection =
        Collection { reading: Reading { connection, notes: Vec::new() }, objects: machines };
    collection.home(namespace).await?;
    collection.add::<MachineSet>(home, "pools").await?;
    collection.add::<MachineHealthCheck>(home, "health checks").await?;
    collection.add::<MachineMaintenance>(home, "maintenances").await?;
    collection.add::<MaintenancePolicy>(Place::Cluster, "policies").await?;
    collection.add::<Node>(Place::Cluster, "nodes").await?;
    collection.add::<Pod>(Place::Cluster, "pods that are in the way").await?;
    collection.add::<PodDisruptionBudget>(Place::Cluster, "disruption budgets").await?;
    collection.add::<UpgradeConfig>(Place::Cluster, "upgrades under way").await?;
    collection.add::<AdminFreezeWindow>(Place::Cluster, "freezes of the provider").await?;
    collection.add::<CustomerFreezeWindow>(Place::Cluster, "freezes of the customer").await?;
    collection.add::<PreferredUpgradeStartTime>(Place::Cluster, "preferred start times").await?;
    if is_served(&connection.client).await {
        let everywhere = Place::Cluster;
        collection.add::<cluster_api::Cluster>(everywhere, "clusters of Cluster API").await?;
        collection.add::<cluster_api::Machine>(everywhere, "machines of Cluster API").await?;
        collection.add::<cluster_api::MachineSet>(everywhere, "pools of Cluster API").await?;
        collection
            .add::<cluster_api::MachineDeployment>(everywhere, "pools of Cluster API")
            .await?;
        for version in EVENTS_OF_CLUSTER_API {
            let place = Place::ClusterApiEvents(version);
            collection.add::<Event>(place, "what happened to machines of Cluster API").await?;
        }
    }
    collection.add::<Event>(home, "what happened to machines").await?;
    if namespace != EVENTS_OF_CLUSTER {
        let place = Place::NodesEvents(EVENTS_OF_CLUSTER);
        collection.add::<Event>(place, "what happened to nodes").await?;
    }
    if namespace != MAINTENANCE_NAMESPACE {
        let place = Place::Namespace(MAINTENANCE_NAMESPACE);
        collection.add::<MachineMaintenance>(place, "maintenances of the original").await?;
    }
    let objects = collection.objects.into_iter();
    let values = objects.filter_map(|object| serde_json::to_value(object).ok());
    Ok(Dump {
        api_version: "v1",
        kind: "List",
        machinist: Origin {
            version: env!("CARGO_PKG_VERSION"),
            taken_at: now,
            namespace: namespace.to_owned(),
            notes: collection.reading.notes,
        },
        items: values.filter_map(kept::kept).collect(),
    })
}

/// What was read so far.
struct Collection<'a> {
    reading: Reading<'a>,
    objects: Vec<DynamicObject>,
}

impl Collection<'_> {
    /// `what` is what is not known where it may not be read.
    async fn add<K: Resource<DynamicType = ()>>(
        &mut self,
        place: Place<'_>,
        what: &str,
    ) -> anyhow::Result<()> {
        match raw::<K>(&self.reading.connection.client, place).await {
            Ok(objects) => {
                // A list names its own kind and not that of its items.
                let types = kube::api::TypeMeta::resource::<K>();
                self.objects.extend(objects.into_iter().map(|mut object| {
                    object.types = Some(types.clone());
                    object
                }));
                Ok(())
            }
            Err(error) => self.reading.missing::<K>(error, what),
        }
    }

    /// The Machines' namespace, which may carry a pause.
    async fn home(&mut self, namespace: &str) -> anyhow::Result<()> {
        for object in &mut self.objects {
            object.types = Some(kube::api::TypeMeta::resource::<Machine>());
        }
        let resource = ApiResource::erase::<Namespace>(&());
        let client = self.reading.connection.client.clone();
        match Api::<DynamicObject>::all_with(client, &resource).get_opt(namespace).await {
            Ok(home) => {
                self.objects.extend(home);
                Ok(())
            }
            Err(error) => self.reading.missing::<Namespace>(error, "a pause of the whole cluster"),
        }
    }
}

fn text(dump: &Dump, output: DumpOutput) -> anyhow::Result<String> {
    match output {
        DumpOutput::Json => document::json(dump, Notation::Indented),
        DumpOutput::Yaml => document::yaml(dump, Notation::Indented),
    }
}

/// For its owner only: it holds no secrets, but names and addresses.
fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let opened = options.open(path);
    let written = opened.and_then(|mut file| file.write_all(text.as_bytes()));
    written.with_context(|| format!("cannot write {}", path.display()))
}
