//! What a controller of Cluster API's objects is given in a unit test: a small API server with one provider.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Node;
use kube::Client;
use serde_json::{Value, json};

use super::{
    context::{Context, NodeLook, Nodes, Stores},
    externals::Externals,
};
use crate::{
    engine::{
        store::{ObjectKey, Store},
        supervisor::{Spawner, Supervisor},
        testing::FakeServer,
    },
    testing::{World, read},
};

pub(crate) const MACHINES: &str = "/apis/cluster.x-k8s.io/v1beta2/namespaces/ns/machines";
pub(crate) const SETS: &str = "/apis/cluster.x-k8s.io/v1beta2/namespaces/ns/machinesets";
pub(crate) const DEPLOYMENTS: &str =
    "/apis/cluster.x-k8s.io/v1beta2/namespaces/ns/machinedeployments";
pub(crate) const CHECKS: &str = "/apis/cluster.x-k8s.io/v1beta2/namespaces/ns/machinehealthchecks";
pub(crate) const FOO_MACHINES: &str =
    "/apis/infrastructure.cluster.x-k8s.io/v1beta2/namespaces/ns/foomachines";
pub(crate) const FOO_TEMPLATES: &str =
    "/apis/infrastructure.cluster.x-k8s.io/v1beta2/namespaces/ns/foomachinetemplates";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// One operator whose controllers are called by hand.
pub(crate) struct Fleet {
    pub(crate) server: FakeServer,
    pub(crate) context: Context,
    /// Owns the watches of the provider's kinds.
    supervisor: Supervisor,
}

/// Nodes whose names begin with `gone` are gone.
pub(crate) struct NoNodes;

impl Nodes for NoNodes {
    fn look(&self, _: &ObjectKey, name: &str) -> NodeLook {
        match name.starts_with("gone") {
            true => NodeLook::Gone,
            false => NodeLook::Present(Arc::new(Node::default())),
        }
    }

    fn doubt(&self, _: &ObjectKey) -> Option<String> {
        None
    }

    fn reached(&self, _: &ObjectKey) -> Option<(Client, Store<Node>)> {
        None
    }
}

impl Fleet {
    pub(crate) fn new() -> Self {
        Self::of(World::new())
    }

    /// In a world that is there already.
    pub(crate) fn of(world: World) -> Self {
        let World { server, context: base, supervisor, .. } = world;
        for plural in ["foomachines", "foomachinetemplates"] {
            let group = "infrastructure.cluster.x-k8s.io";
            server.put(
                DEFINITIONS,
                json!({
                    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                    "metadata": {
                        "name": format!("{plural}.{group}"),
                        "labels": { "cluster.x-k8s.io/v1beta2": "v1beta2" },
                    },
                }),
            );
        }
        server.put(FOO_TEMPLATES, json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "FooMachineTemplate",
            "metadata": {
                "name": "foo", "namespace": "ns",
                "labels": { "cluster.x-k8s.io/cluster-name": "c1" }, "ownerReferences": cluster_owner(),
            },
            "spec": { "template": { "spec": { "size": 3 } } },
        }));
        let spawner = supervisor.spawner();
        let externals =
            Externals::new(&base.client, &base.env, &base.metrics, &spawner, Some("ns"));
        let stores = Arc::new(Stores::default());
        stores.machines.mark_synced();
        let conditions = ["InfrastructureReady", "ControlPlaneInitialized"].map(|type_| {
            json!({
                "type": type_, "status": "True", "reason": "R", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            })
        });
        stores.clusters.apply_written(read(json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": { "name": "c1", "namespace": "ns", "uid": "uid-c1", "resourceVersion": "1" },
            "spec": {}, "status": { "conditions": conditions },
        })));
        let context = Context { base: Arc::new(base), stores, externals, nodes: Arc::new(NoNodes) };
        Self { server, context, supervisor }
    }

    pub(crate) fn spawner(&self) -> Spawner {
        self.supervisor.spawner()
    }

    /// The requests of one method so far, by path.
    pub(crate) fn requests(&self, method: &str) -> Vec<String> {
        let log = &self.server.lock().log;
        log.iter()
            .filter_map(|line| line.strip_prefix(&format!("{method} ")))
            .map(str::to_owned)
            .collect()
    }

    /// The names in a collection of the API server.
    pub(crate) fn names(&self, collection: &str) -> Vec<String> {
        let state = self.server.lock();
        let keys = state.objects.keys().filter(|(known, _)| known == collection);
        keys.map(|(_, name)| name.clone()).collect()
    }
}

fn cluster_owner() -> Value {
    json!([{
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "c1", "uid": "uid-c1",
    }])
}

fn template() -> Value {
    json!({
        "metadata": { "labels": { "pool": "a", "cluster.x-k8s.io/cluster-name": "c1" } },
        "spec": {
            "clusterName": "c1", "version": "v1.34.0", "bootstrap": { "dataSecretName": "data" },
            "infrastructureRef": {
                "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "FooMachineTemplate",
                "name": "foo",
            },
        },
    })
}

/// A set named `ms` that has everything but Machines.
pub(crate) fn set(replicas: i32) -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineSet",
        "metadata": {
            "name": "ms", "namespace": "ns", "uid": "uid-ms", "resourceVersion": "9", "generation": 1,
            "finalizers": ["cluster.x-k8s.io/machineset"], "ownerReferences": cluster_owner(),
            "labels": { "cluster.x-k8s.io/cluster-name": "c1" },
            "annotations": {
                "machinist.dev/propagated": "labels=cluster.x-k8s.io/cluster-name,pool;annotations=",
            },
        },
        "spec": {
            "clusterName": "c1", "replicas": replicas, "template": template(),
            "selector": { "matchLabels": { "pool": "a", "cluster.x-k8s.io/cluster-name": "c1" } },
        },
    })
}

/// A deployment named `md` that has everything but sets.
pub(crate) fn deployment(replicas: i32) -> Value {
    let mut deployment = set(replicas);
    deployment["kind"] = json!("MachineDeployment");
    deployment["metadata"]["name"] = json!("md");
    deployment["metadata"]["uid"] = json!("uid-md");
    deployment["metadata"]["finalizers"] = json!(["cluster.x-k8s.io/machinedeployment"]);
    deployment["metadata"].as_object_mut().unwrap().remove("annotations");
    deployment
}

/// A Machine of the set `ms`.
pub(crate) fn machine(name: &str) -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
        "metadata": {
            "name": name, "namespace": "ns", "uid": format!("uid-{name}"), "resourceVersion": "5",
            "generation": 1, "finalizers": ["machine.cluster.x-k8s.io"],
            "labels": {
                "pool": "a", "cluster.x-k8s.io/cluster-name": "c1", "cluster.x-k8s.io/set-name": "ms",
            },
            "ownerReferences": [{
                "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineSet", "name": "ms",
                "uid": "uid-ms", "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": {
            "clusterName": "c1", "version": "v1.34.0", "bootstrap": { "dataSecretName": "data" },
            "infrastructureRef": {
                "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "FooMachine", "name": name,
            },
        },
    })
}
