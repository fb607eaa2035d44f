//! How are the objects of a living cluster read? By lists, in pages, and by nothing else.

use k8s_openapi::api::{
    core::v1::{Event, Namespace, Node, Pod},
    policy::v1::PodDisruptionBudget,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ApiResource, DynamicObject, ListParams},
};
use machinist_api::{
    Machine, MachineHealthCheck, MachineMaintenance, MachineSet, MaintenancePolicy, cluster_api,
    managed_upgrade::{
        AdminFreezeWindow, CustomerFreezeWindow, PreferredUpgradeStartTime, UpgradeConfig,
    },
    names::MAINTENANCE_NAMESPACE,
};
use machinist_core::maintenance::Note;
use serde::de::DeserializeOwned;

use super::{Extent, Snapshot, unreadable};
use crate::{
    cluster_api::{ClusterApi, is_served},
    kubeconfig::Connection,
};

/// As many as kubectl asks for at a time.
const PAGE: u32 = 500;

/// Events about cluster-wide objects live here.
pub const EVENTS_OF_CLUSTER: &str = "default";

/// Where objects of a kind are looked for.
#[derive(Clone, Copy)]
pub enum Place<'a> {
    Namespace(&'a str),
    Cluster,
    /// The Events of a namespace that are about Nodes.
    NodesEvents(&'a str),
    /// The Events of all namespaces that are about objects of Cluster API, by the version that these had for whoever wrote them.
    ClusterApiEvents(&'a str),
}

/// The versions of Cluster API's objects that Events may name: a provider may know an older one than we.
pub const EVENTS_OF_CLUSTER_API: [&str; 2] = [cluster_api::API_VERSION, "cluster.x-k8s.io/v1beta1"];

/// For all but calendars, for plans, and for what happened.
const WITH_NODES: &[Extent] = &[Extent::Whole, Extent::Happenings];
const PLANS: &[Extent] = &[Extent::Whole];
const HAPPENINGS: &[Extent] = &[Extent::Happenings];

pub(super) async fn read(
    connection: &Connection,
    namespace: &str,
    extent: Extent,
) -> anyhow::Result<Snapshot> {
    let home = Place::Namespace(namespace);
    let reader = Lister { client: &connection.client, extent };
    let (machines, of_cluster_api) =
        tokio::join!(reader.list::<Machine>(home), reader.list_cluster_api());
    let machines = match machines {
        // A cluster may have machines of Cluster API only.
        Err(kube::Error::Api(status)) if status.code == 404 && of_cluster_api.is_some() => {
            Listed { objects: Vec::new(), notes: Vec::new() }
        }
        machines => machines.map_err(|error| connection.explain("cannot list machines", error))?,
    };
    let (sets, health_checks, nodes, pods, budgets, policies) = tokio::join!(
        reader.list::<MachineSet>(home),
        reader.list_for::<MachineHealthCheck>(PLANS, home),
        reader.list_for::<Node>(WITH_NODES, Place::Cluster),
        reader.list_for::<Pod>(PLANS, Place::Cluster),
        reader.list_for::<PodDisruptionBudget>(PLANS, Place::Cluster),
        reader.list::<MaintenancePolicy>(Place::Cluster),
    );
    let (own, originals, upgrades, admin, customer, preferred) = tokio::join!(
        reader.list_for::<MachineMaintenance>(WITH_NODES, home),
        reader.list_for::<MachineMaintenance>(WITH_NODES, Place::Namespace(MAINTENANCE_NAMESPACE)),
        reader.list_for::<UpgradeConfig>(PLANS, Place::Cluster),
        reader.list::<AdminFreezeWindow>(Place::Cluster),
        reader.list::<CustomerFreezeWindow>(Place::Cluster),
        reader.list::<PreferredUpgradeStartTime>(Place::Cluster),
    );
    let (told, told_of_nodes, told_of_originals) = tokio::join!(
        reader.list_for::<Event>(HAPPENINGS, home),
        reader.list_for::<Event>(HAPPENINGS, Place::NodesEvents(EVENTS_OF_CLUSTER)),
        reader.list_for::<Event>(HAPPENINGS, Place::Namespace(MAINTENANCE_NAMESPACE)),
    );
    let mut told_of_cluster_api = Vec::new();
    for version in EVENTS_OF_CLUSTER_API.into_iter().filter(|_| of_cluster_api.is_some()) {
        let place = Place::ClusterApiEvents(version);
        told_of_cluster_api.push(reader.list_for::<Event>(HAPPENINGS, place).await);
    }
    let mut reading = Reading { connection, notes: Vec::new() };
    let machines = reading.taken(machines);
    let of_cluster_api = match of_cluster_api {
        Some((machines, clusters, sets, deployments)) => ClusterApi {
            machines: reading.some(machines, "machines of Cluster API")?,
            clusters: reading.some(clusters, "clusters of Cluster API that are paused")?,
            sets: reading.some(sets, "pools of Cluster API")?,
            deployments: reading.some(deployments, "pools of Cluster API")?,
        },
        None => ClusterApi::default(),
    };
    let mut maintenances = reading.some(own, "maintenances that are under way or finished")?;
    if namespace != MAINTENANCE_NAMESPACE {
        maintenances.extend(reading.some(originals, "maintenances in the original's namespace")?);
    }
    let mut events = reading.some(told, "what happened to machines")?;
    if namespace != EVENTS_OF_CLUSTER {
        events.extend(reading.some(told_of_nodes, "what happened to nodes")?);
    }
    if namespace != MAINTENANCE_NAMESPACE {
        events.extend(reading.some(told_of_originals, "maintenances of the original")?);
    }
    for told in told_of_cluster_api {
        let mut told = reading.some(told, "what happened to machines of Cluster API")?;
        // Of these namespaces all is read already.
        let read = [namespace, MAINTENANCE_NAMESPACE];
        told.retain(|event| !read.contains(&event.namespace().unwrap_or_default().as_str()));
        events.extend(told);
    }
    let pods_unknown = pods.as_ref().err().map(ToString::to_string);
    let mut snapshot = Snapshot {
        pods_unknown,
        events,
        namespace: namespace.to_owned(),
        machines,
        sets: reading.some(sets, "pools")?,
        health_checks: reading.some(health_checks, "health checks")?,
        nodes: reading.some(nodes, "which machines are ready")?,
        pods: reading.some(pods, "pods that are in the way")?,
        budgets: reading.some(budgets, "disruption budgets that never let a pod go")?,
        maintenances,
        policies: reading.some(policies, "windows, freezes and budgets of policies")?,
        upgrades: reading.some(upgrades, "upgrades under way")?,
        admin_freezes: reading.some(admin, "freezes of the cluster's provider")?,
        customer_freezes: reading.some(customer, "freezes of the customer")?,
        preferred_starts: reading.some(preferred, "preferred start times")?,
        ..Snapshot::default()
    };
    let namespaces = Api::<Namespace>::all(connection.client.clone());
    snapshot.home = match namespaces.get_opt(namespace).await {
        Ok(home) => home,
        Err(error) => {
            reading.missing::<Namespace>(error, "a pause of the whole cluster")?;
            None
        }
    };
    snapshot.notes = reading.notes;
    snapshot.add(&of_cluster_api);
    Ok(snapshot)
}

struct Lister<'a> {
    client: &'a Client,
    extent: Extent,
}

/// A list, and what of it is not what its kind says.
struct Listed<K> {
    objects: Vec<K>,
    notes: Vec<Note>,
}

type Answer<K> = Result<Listed<K>, kube::Error>;

/// Machines, Clusters, sets and deployments of Cluster API.
type OfClusterApi = (
    Answer<cluster_api::Machine>,
    Answer<cluster_api::Cluster>,
    Answer<cluster_api::MachineSet>,
    Answer<cluster_api::MachineDeployment>,
);

impl Lister<'_> {
    /// Those of all namespaces, where the cluster has the kinds.
    async fn list_cluster_api(&self) -> Option<OfClusterApi> {
        if !is_served(self.client).await {
            return None;
        }
        Some(tokio::join!(
            self.list(Place::Cluster),
            self.list(Place::Cluster),
            self.list(Place::Cluster),
            self.list(Place::Cluster),
        ))
    }

    /// Reads what only some questions depend on.
    async fn list_for<K>(
        &self,
        extents: &[Extent],
        place: Place<'_>,
    ) -> Result<Listed<K>, kube::Error>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned,
    {
        if extents.contains(&self.extent) {
            return self.list(place).await;
        }
        Ok(Listed { objects: Vec::new(), notes: Vec::new() })
    }

    /// Reads untyped objects: one that does not parse must not hide the others.
    async fn list<K>(&self, place: Place<'_>) -> Result<Listed<K>, kube::Error>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned,
    {
        let mut listed = Listed { objects: Vec::new(), notes: Vec::new() };
        for object in raw::<K>(self.client, place).await? {
            let name = object.name_any();
            match serde_json::to_value(object).and_then(serde_json::from_value) {
                Ok(object) => listed.objects.push(object),
                Err(error) => {
                    listed.notes.push(unreadable(&K::kind(&()), &name, &error.to_string()));
                }
            }
        }
        Ok(listed)
    }
}

/// Chooses the Events about objects of this version.
pub fn about(version: &str) -> String {
    format!("involvedObject.apiVersion={version}")
}

/// All objects of a kind as they are, page after page.
pub async fn raw<K: Resource<DynamicType = ()>>(
    client: &Client,
    place: Place<'_>,
) -> Result<Vec<DynamicObject>, kube::Error> {
    let resource = ApiResource::erase::<K>(&());
    let api: Api<DynamicObject> = match place {
        Place::Namespace(namespace) | Place::NodesEvents(namespace) => {
            Api::namespaced_with(client.clone(), namespace, &resource)
        }
        Place::Cluster | Place::ClusterApiEvents(_) => Api::all_with(client.clone(), &resource),
    };
    let mut objects = Vec::new();
    let mut page = ListParams::default().limit(PAGE);
    match place {
        Place::NodesEvents(_) => page = page.fields("involvedObject.kind=Node"),
        Place::ClusterApiEvents(version) => page = page.fields(&about(version)),
        Place::Namespace(_) | Place::Cluster => {}
    }
    loop {
        let answer = api.list(&page).await?;
        objects.extend(answer.items);
        match answer.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(objects),
        }
    }
}

/// What was told on the way.
pub struct Reading<'a> {
    pub connection: &'a Connection,
    pub notes: Vec<Note>,
}

impl Reading<'_> {
    fn taken<K>(&mut self, listed: Listed<K>) -> Vec<K> {
        self.notes.extend(listed.notes);
        listed.objects
    }

    /// A list without which there is still an answer. `what` is what the answer then does not know.
    fn some<K>(
        &mut self,
        listed: Result<Listed<K>, kube::Error>,
        what: &str,
    ) -> anyhow::Result<Vec<K>>
    where
        K: Resource<DynamicType = ()>,
    {
        match listed {
            Ok(listed) => Ok(self.taken(listed)),
            Err(error) => {
                self.missing::<K>(error, what)?;
                Ok(Vec::new())
            }
        }
    }

    /// Says what is not known, where the list is refused; what is not installed is not missed.
    pub fn missing<K: Resource<DynamicType = ()>>(
        &mut self,
        error: kube::Error,
        what: &str,
    ) -> anyhow::Result<()> {
        let plural = K::plural(&());
        match error {
            // A definition that is not installed.
            kube::Error::Api(status) if status.code == 404 => Ok(()),
            kube::Error::Api(status) if status.code == 403 => {
                let message =
                    format!("this user may not read {plural}, so nothing is known of {what}");
                self.notes.push(Note::warning("NotAllowed", plural.to_string(), message));
                Ok(())
            }
            error => Err(self.connection.explain(&format!("cannot list {plural}"), error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use http::{Request, Response, StatusCode};
    use kube::client::{Body, ClientBuilder};
    use serde_json::{Value, json};
    use tower::BoxError;

    use super::*;
    use crate::reader::OnlyReads;

    type Log = Arc<Mutex<Vec<String>>>;

    /// A cluster that answers as `answer` says, by path and query.
    fn cluster(answer: fn(&str, &str) -> (u16, Value)) -> (Connection, Log) {
        let log = Log::default();
        let seen = log.clone();
        let answering = tower::service_fn(move |request: Request<Body>| {
            let path = request.uri().path().to_owned();
            let query = request.uri().query().unwrap_or_default().to_owned();
            seen.lock().unwrap().push(format!("{} {path}", request.method()));
            let (code, body) = answer(&path, &query);
            let mut response = Response::new(Body::from(body.to_string().into_bytes()));
            *response.status_mut() = StatusCode::from_u16(code).unwrap();
            std::future::ready(Ok::<_, BoxError>(response))
        });
        let client = ClientBuilder::new(answering, "default").with_layer(&OnlyReads).build();
        (Connection::to(client), log)
    }

    fn status(code: u16) -> (u16, Value) {
        let status = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure",
            "message": "no", "reason": "no", "code": code });
        (code, status)
    }

    fn list(items: Value, next: &str) -> (u16, Value) {
        (
            200,
            json!({ "kind": "List", "apiVersion": "v1", "metadata": { "continue": next },
            "items": items }),
        )
    }

    fn machine(name: &str) -> Value {
        json!({ "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
            "metadata": { "name": name, "namespace": "home" }, "spec": {} })
    }

    const MACHINES: &str = "/apis/machine.openshift.io/v1beta1/namespaces/home/machines";

    #[tokio::test]
    async fn pages_are_read_to_the_end_and_absent_definitions_are_no_failure() {
        let (connection, log) = cluster(|path, query| match path {
            MACHINES if query.contains("continue=more") => list(json!([machine("b")]), ""),
            MACHINES => {
                list(json!([machine("a"), { "metadata": { "name": "bad" }, "spec": 7 }]), "more")
            }
            "/api/v1/namespaces/home" => status(404),
            path if path.starts_with("/api/v1") => list(json!([]), ""),
            _ => status(404),
        });
        let snapshot = read(&connection, "home", Extent::Whole).await.unwrap();
        assert_eq!(snapshot.machines.len(), 2);
        assert_eq!(snapshot.notes.len(), 1, "{:?}", snapshot.notes);
        assert!(snapshot.notes[0].message.starts_with("machine/bad cannot be read"));
        let log = log.lock().unwrap();
        assert!(log.iter().all(|request| request.starts_with("GET ")), "{log:?}");
        for path in [
            "/api/v1/nodes",
            "/api/v1/pods",
            "/api/v1/namespaces/home",
            "/apis/policy/v1/poddisruptionbudgets",
            "/apis/machinist.dev/v1alpha1/maintenancepolicies",
            "/apis/machinemaintenance.managed.openshift.io/v1alpha1/namespaces/\
             machine-maintenance-operator/machinemaintenances",
            "/apis/upgrade.managed.openshift.io/v1alpha1/upgradeconfigs",
        ] {
            assert!(log.contains(&format!("GET {path}")), "{path}: {log:?}");
        }
    }

    #[tokio::test]
    async fn what_this_user_may_not_read_is_told() {
        let (connection, _) = cluster(|path, _| match path {
            MACHINES => list(json!([machine("a")]), ""),
            _ => status(403),
        });
        let snapshot = read(&connection, "home", Extent::Whole).await.unwrap();
        let told: Vec<&str> = snapshot.notes.iter().map(|note| note.message.as_str()).collect();
        let pods = "this user may not read pods, so nothing is known of pods that are in the way";
        assert!(told.contains(&pods), "{told:?}");
        assert!(snapshot.pods_unknown.is_some(), "unknown is not empty");
    }

    #[tokio::test]
    async fn a_cluster_without_machines_definitions_is_named() {
        let (connection, _) = cluster(|_, _| status(404));
        let error = read(&connection, "home", Extent::Whole).await.unwrap_err();
        assert!(error.to_string().contains("knows no machine.openshift.io/v1beta1"), "{error}");
    }

    #[tokio::test]
    async fn calendars_need_neither_pods_nor_nodes() {
        let (connection, log) = cluster(|_, _| list(json!([]), ""));
        // An empty list is no Namespace, which is told as what it is.
        read(&connection, "home", Extent::Calendars).await.ok();
        let log = log.lock().unwrap();
        assert!(
            !log.iter().any(|one| one.ends_with("/pods") || one.ends_with("/nodes")),
            "{log:?}"
        );
    }
}
