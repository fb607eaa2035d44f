//! What a controller is given in a unit test: empty stores, a small API server, and no cloud.

use std::sync::Arc;

use async_trait::async_trait;
use machinist_core::{approval, cloud::ErrorClass, machine::Policy};
use machinist_providers::{Provider, ProviderError};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    cloud::{
        CloudParts, CloudSettings, Clouds,
        connect::{Connect, ConnectRequest},
    },
    context::{Context, Stores},
    drain,
    engine::{
        env::Env,
        events::{EventRecorder, EventWriter},
        leadership::Leadership,
        queue::Queue,
        store::Store,
        supervisor::Supervisor,
        testing::FakeServer,
    },
    index,
    maintenance::MaintenanceStores,
    metrics::Metrics,
    openshift::OpenShift,
    wake::{self, Queues},
};

/// The path of all Machines in the namespace of the tests.
pub(crate) const MACHINES: &str = "/apis/machine.openshift.io/v1beta1/namespaces/ns/machines";

/// The path of all MachineSets in the namespace of the tests.
pub(crate) const MACHINE_SETS: &str =
    "/apis/machine.openshift.io/v1beta1/namespaces/ns/machinesets";

/// The path of all Secrets in the namespace of the tests.
pub(crate) const SECRETS: &str = "/api/v1/namespaces/ns/secrets";

/// Clouds of a world that has none.
struct NoClouds;

#[async_trait]
impl Connect for NoClouds {
    async fn connect(&self, _: ConnectRequest) -> Result<Arc<dyn Provider>, ProviderError> {
        Err(ProviderError::new(ErrorClass::InvalidConfiguration, "this test has no cloud"))
    }
}

/// Connects fresh queues, so that only what happens from now on is in them.
pub(crate) fn connected(stores: &Arc<Stores>) -> Queues {
    let queue = |name: &str| Queue::new(name, &env(), &Metrics::new());
    let queues = Queues {
        machines: queue("machines"),
        machine_sets: queue("sets"),
        capacities: queue("capacities"),
        nodes: queue("nodes"),
        drains: queue("drains"),
        health_checks: queue("checks"),
        requests: queue("requests"),
        maintenances: queue("maintenances"),
        plans: queue("plans"),
    };
    wake::connect(stores, &queues, &Arc::new(drain::Memory::default()));
    queues
}

/// One operator whose controllers are called by hand.
pub(crate) struct World {
    pub(crate) server: FakeServer,
    pub(crate) context: Context,
    events: EventWriter,
    /// Owns the views' tasks.
    pub(crate) supervisor: Supervisor,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with_clouds(Arc::new(NoClouds))
    }

    /// With clouds that a test scripts.
    pub(crate) fn with_clouds(connect: Arc<dyn Connect>) -> Self {
        Self::with_cloud_settings(connect, CloudSettings::default())
    }

    pub(crate) fn with_cloud_settings(connect: Arc<dyn Connect>, settings: CloudSettings) -> Self {
        Self::with_server(FakeServer::new(), env(), connect, settings)
    }

    /// Another process in a world that is there already.
    pub(crate) fn with_server(
        server: FakeServer,
        env: Env,
        connect: Arc<dyn Connect>,
        settings: CloudSettings,
    ) -> Self {
        let metrics = Metrics::new();
        let (client, stores, supervisor) = (server.client(), stores(), Supervisor::new());
        let (recorder, events) = EventRecorder::new(&client, &env, &metrics, "machinist");
        let clouds = Clouds::new(CloudParts {
            client: client.clone(),
            env: env.clone(),
            spawner: supervisor.spawner(),
            metrics: metrics.clone(),
            connect,
            settings,
            openshift: stores.openshift.clone(),
            listener: Arc::new(|_| ()),
        });
        let context = Context {
            client,
            env,
            metrics,
            events: recorder,
            stores,
            clouds,
            launch_visibility: Policy::default().launch_visibility,
            leadership: Leadership::always_held(),
        };
        Self { server, context, events, supervisor }
    }

    /// The requests of one method so far, by path.
    pub(crate) fn requests(&self, method: &str) -> Vec<String> {
        let log = &self.server.lock().log;
        log.iter()
            .filter_map(|line| line.strip_prefix(&format!("{method} ")))
            .map(str::to_owned)
            .collect()
    }

    /// Writes the recorded events, and tells how many there are.
    pub(crate) async fn into_event_count(self) -> usize {
        let Self { server, context, events, .. } = self;
        drop(context);
        events.run(CancellationToken::new()).await.unwrap();
        let state = server.lock();
        state.objects.keys().filter(|(collection, _)| collection.ends_with("/events")).count()
    }
}

pub(crate) fn env() -> Env {
    Env::simulated("2026-01-01T12:00:00Z".parse().unwrap(), 7)
}

/// Stores with the indexes that the controllers under test search by.
pub(crate) fn stores() -> Arc<Stores> {
    let infrastructures = Store::builder().build();
    Arc::new(Stores {
        machines: Store::builder()
            .index(index::MACHINE_BY_NODE, index::node_of_machine)
            .index(index::MACHINE_BY_INTERNAL_DNS, index::internal_dns_of_machine)
            .index(index::MACHINE_BY_OWNER, index::owner_of_machine)
            .build(),
        machine_sets: Store::builder().build(),
        nodes: Store::builder().index(index::NODE_BY_INSTANCE, index::instance_of_node).build(),
        pods: Store::builder().index(index::POD_BY_NODE, index::node_of_pod).build(),
        budgets: Store::builder().build(),
        openshift: OpenShift::new("ns", "1", &infrastructures),
        maintenance: MaintenanceStores::new("ns"),
        cluster_api: crate::cluster_api::maintained::Handle::default(),
        infrastructures,
        hold: crate::hold::Hold::new("ns"),
        health_checks: Store::builder().build(),
        requests: Store::builder()
            .prune(|request| index::prune_request(request, &approval::Policy::default()))
            .index(index::REQUEST_BY_NODE, |request| {
                index::node_of_request(request, &approval::Policy::default())
            })
            .index(index::REQUEST_BY_STATE, |request| {
                index::state_of_request(request, &approval::Policy::default())
            })
            .build(),
    })
}

pub(crate) fn read<K: DeserializeOwned>(object: Value) -> K {
    serde_json::from_value(object).unwrap()
}

/// A Machine of the set `pool`, changed by what is given of its metadata.
pub(crate) fn machine(name: &str, metadata: Value) -> Value {
    let mut known = json!({
        "name": name, "namespace": "ns", "uid": format!("uid-{name}"), "resourceVersion": "10",
        "labels": { "pool": "a" },
        "ownerReferences": [{
            "apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet", "name": "pool",
            "uid": "uid-pool", "controller": true,
        }],
    });
    for (key, value) in metadata.as_object().unwrap() {
        known[key] = value.clone();
    }
    json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
        "metadata": known, "spec": { "providerSpec": {} },
    })
}

/// A Machine of a cluster, with credentials from the secret `cloud` in the region `r`.
pub(crate) fn machine_in_cloud(name: &str, cluster: &str) -> Value {
    let mut machine = machine(name, json!({}));
    machine["metadata"]["labels"]["machine.openshift.io/cluster-api-cluster"] = json!(cluster);
    machine["spec"]["providerSpec"]["value"] = json!({
        "kind": "AWSMachineProviderConfig", "placement": { "region": "r" },
        "credentialsSecret": { "name": "cloud" },
    });
    machine
}

/// Writes the secret `cloud`; the scripted clouds read its key.
pub(crate) fn put_credentials(server: &FakeServer, base64: &str) {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": "cloud", "namespace": "ns" }, "data": { "key": base64 },
    });
    server.put(SECRETS, secret);
}

/// A set named `pool`.
pub(crate) fn pool(replicas: i32) -> Value {
    json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet",
        "metadata": {
            "name": "pool", "namespace": "ns", "uid": "uid-pool", "resourceVersion": "9",
            "generation": 1,
        },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "pool": "a" } },
            "template": {
                "metadata": { "labels": { "pool": "a" } }, "spec": { "providerSpec": {} },
            },
        },
    })
}
