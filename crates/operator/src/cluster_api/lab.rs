//! What the controllers of Cluster API are given in a unit test: a management cluster and a workload cluster, both in memory.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use kube::Client;
use machinist_api::cluster_api::{Cluster, Machine, condition};
use machinist_core::cluster_api::machine::observed::Policy;
use serde_json::{Value, json};

use super::{
    context::{Context, Stores},
    externals::Externals,
    machine::{self, Memory, Parts},
    workloads::{ConnectWorkload, Reach, Workloads},
};
use crate::{
    engine::{queue::Outcome, store::ObjectKey, supervisor::Supervisor, testing::FakeServer},
    testing::{SECRETS, World, read},
};

pub(crate) const MACHINES: &str = "/apis/cluster.x-k8s.io/v1beta2/namespaces/ns/machines";
pub(crate) const CLUSTERS: &str = "/apis/cluster.x-k8s.io/v1beta2/namespaces/ns/clusters";
pub(crate) const FOO: &str = "/apis/infrastructure.cluster.x-k8s.io/v1/namespaces/ns/foomachines";
pub(crate) const NODES: &str = "/api/v1/nodes";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Reaches the one workload cluster of a test, whatever the kubeconfig says.
struct Reaches(FakeServer);

#[async_trait]
impl ConnectWorkload for Reaches {
    async fn connect(&self, _: &str) -> anyhow::Result<Client> {
        Ok(self.0.client())
    }
}

pub(crate) struct Lab {
    pub server: FakeServer,
    pub workload: FakeServer,
    pub context: Arc<Context>,
    pub parts: Arc<Parts>,
    /// Owns the watches.
    _supervisor: Supervisor,
}

impl Lab {
    /// A cluster `c` that is up, and a provider of the kind FooMachine.
    pub fn new() -> Self {
        let World { server, context, supervisor, .. } = World::new();
        let base = Arc::new(context);
        let spawner = supervisor.spawner();
        let (client, env, metrics) = (&base.client, &base.env, &base.metrics);
        let workload = FakeServer::new();
        let externals = Externals::new(client, env, metrics, &spawner, Some("ns"));
        let reaches = Arc::new(Reaches(workload.clone()));
        let workloads = Workloads::new(client, env, metrics, &spawner, reaches);
        let context = Arc::new(Context {
            base: Arc::clone(&base),
            stores: Arc::new(Stores::default()),
            externals,
            nodes: Arc::new(workloads.clone()),
        });
        let parts = Arc::new(Parts {
            workloads,
            memory: Memory::default(),
            policy: Policy::default(),
            spawner,
            wake: Arc::new(|_| ()),
        });
        let lab = Self { server, workload, context, parts, _supervisor: supervisor };
        lab.define("FooMachine", Some("v1"));
        lab.put_cluster();
        lab
    }

    /// Installs the definition of a provider's kind, with a contract where one is named.
    pub fn define(&self, kind: &str, version: Option<&str>) {
        let name = format!("{}s.infrastructure.cluster.x-k8s.io", kind.to_lowercase());
        let mut labels = json!({});
        if let Some(version) = version {
            labels["cluster.x-k8s.io/v1beta2"] = json!(version);
        }
        self.server.put(
            DEFINITIONS,
            json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": { "name": name, "labels": labels },
                "spec": { "group": "g", "names": { "kind": kind, "plural": "p" }, "scope": "Namespaced",
                          "versions": [] },
            }),
        );
    }

    fn put_cluster(&self) {
        let cluster = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": { "name": "c", "namespace": "ns", "uid": "uid-c", "resourceVersion": "10" },
            "spec": {},
            "status": {
                "initialization": { "infrastructureProvisioned": true },
                "conditions": [{
                    "type": "ControlPlaneInitialized", "status": "True", "reason": "Initialized",
                    "message": "", "lastTransitionTime": "2026-01-01T10:00:00Z",
                }],
            },
        });
        self.server.put(CLUSTERS, cluster.clone());
        self.context.stores.clusters.apply_written(read::<Cluster>(cluster));
    }

    /// A Machine that names an object of this kind with its own name.
    pub fn put_machine(&self, name: &str, kind: &str, metadata: Value) {
        let mut machine = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
            "metadata": {
                "name": name, "namespace": "ns", "uid": format!("uid-{name}"), "resourceVersion": "10",
                "generation": 1, "finalizers": ["machine.cluster.x-k8s.io"],
                "labels": { "cluster.x-k8s.io/cluster-name": "c", "cluster.x-k8s.io/set-name": "s" },
            },
            "spec": {
                "clusterName": "c", "bootstrap": { "dataSecretName": "data" },
                "infrastructureRef": {
                    "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": kind, "name": name,
                },
            },
        });
        for (key, value) in metadata.as_object().unwrap() {
            machine["metadata"][key] = value.clone();
        }
        self.server.put(MACHINES, machine.clone());
        self.context.stores.machines.apply_written(read::<Machine>(machine));
    }

    /// What the provider writes of its object; its owners stay as they are.
    pub fn put_infrastructure(&self, name: &str, spec: Value, status: Value) {
        let known = self.stored(FOO, name);
        let owners =
            known.map_or_else(|| json!([]), |one| one["metadata"]["ownerReferences"].clone());
        self.server.put(
            FOO,
            json!({
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1", "kind": "FooMachine",
                "metadata": {
                    "name": name, "namespace": "ns", "ownerReferences": owners,
                    "labels": { "cluster.x-k8s.io/cluster-name": "c" },
                },
                "spec": spec, "status": status,
            }),
        );
    }

    pub fn put_provisioned(&self, name: &str) {
        let spec = json!({ "providerID": format!("foo://{name}") });
        self.put_infrastructure(name, spec, json!({ "initialization": { "provisioned": true } }));
    }

    pub fn put_node(&self, name: &str, provider_id: &str) {
        self.workload.put(
            NODES,
            json!({
                "apiVersion": "v1", "kind": "Node", "metadata": { "name": name },
                "spec": { "providerID": provider_id },
                "status": { "conditions": [
                    { "type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T11:00:00Z" },
                    { "type": "MemoryPressure", "status": "False" },
                    { "type": "DiskPressure", "status": "False" },
                    { "type": "PIDPressure", "status": "False" },
                ] },
            }),
        );
    }

    /// Lets the workload cluster be reached.
    pub async fn connect(&self) {
        self.server.put(
            SECRETS,
            json!({
                "apiVersion": "v1", "kind": "Secret",
                "metadata": { "name": "c-kubeconfig", "namespace": "ns" }, "data": { "value": "e30=" },
            }),
        );
        self.parts.workloads.begin(&cluster());
        self.wait("the workload cluster is reached", || self.is_up()).await;
    }

    pub fn is_up(&self) -> bool {
        matches!(self.parts.workloads.reach(&cluster()), Reach::Up { .. })
    }

    pub async fn pass(&self, name: &str) -> Outcome {
        machine::reconcile(&self.context, &self.parts, ObjectKey::new("ns", name)).await
    }

    /// Passes until nothing is left to do at once.
    pub async fn settle(&self, name: &str) {
        for _ in 0..20 {
            match self.pass(name).await {
                Outcome::RecheckAfter(wait) if wait <= Duration::from_secs(1) => {}
                Outcome::Failed(error) => panic!("{error:#}"),
                _ => return,
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    pub fn machine(&self, name: &str) -> Option<Arc<Machine>> {
        self.context.stores.machines.get(&ObjectKey::new("ns", name))
    }

    pub fn condition(&self, name: &str, type_: &str) -> String {
        let machine = self.machine(name).unwrap();
        let status = machine.status.clone().unwrap_or_default();
        let found = condition::find(&status.conditions, type_).unwrap();
        format!("{} {}", found.status, found.reason)
    }

    pub fn stored(&self, collection: &str, name: &str) -> Option<Value> {
        self.server.lock().objects.get(&(collection.to_owned(), name.to_owned())).cloned()
    }

    /// Waits for a condition in virtual time.
    pub async fn wait(&self, what: &str, is_so: impl Fn() -> bool) {
        for _ in 0..1000 {
            if is_so() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        panic!("not seen: {what}");
    }

    pub fn writes(&self) -> usize {
        let log = &self.server.lock().log;
        log.iter().filter(|line| !line.starts_with("GET ")).count()
    }
}

pub(crate) fn cluster() -> ObjectKey {
    ObjectKey::new("ns", "c")
}
