//! Which objects make a Cluster API cluster with in-memory machines? Everything is written out that
//! webhooks would default, so that it is the same whoever runs them.

use base64::Engine;
use serde_json::{Value, json};

use crate::pki::Authority;

pub const GROUP: &str = "cluster.x-k8s.io";
pub const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io";
pub const BOOTSTRAP: &str = "bootstrap.cluster.x-k8s.io";
/// The version of all of them.
pub const VERSION: &str = "v1beta2";

/// The Kubernetes version of the in-memory machines.
pub const KUBERNETES: &str = "v1.34.0";
/// Holds what a machine would boot from. In-memory ones read nothing of it.
pub const BOOTSTRAP_SECRET: &str = "bootstrap-data";
/// The stand-alone control-plane Machine.
pub const CONTROL_PLANE: &str = "control-plane-0";
/// The MachineDeployment.
pub const WORKERS: &str = "workers";

/// The labels of a definition both of whose versions speak the contract of the same name.
#[must_use]
pub fn contract_labels() -> Value {
    json!({ "cluster.x-k8s.io/v1beta1": "v1beta1", "cluster.x-k8s.io/v1beta2": "v1beta2" })
}

/// A Cluster of the in-memory provider, with what must be there before its first Machine: the
/// authorities, which sign with RSA keys only, and the bootstrap data.
pub fn cluster(namespace: &str, name: &str) -> anyhow::Result<Vec<Value>> {
    let mut objects = vec![
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": { "name": BOOTSTRAP_SECRET, "namespace": namespace, "labels": labels(name) },
            "type": "cluster.x-k8s.io/secret",
            "stringData": { "value": "#!/bin/true" },
        }),
        json!({
            "apiVersion": format!("{INFRASTRUCTURE}/{VERSION}"),
            "kind": "DevCluster",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": labels(name),
                // The backend writes into this map and does not make one.
                "annotations": { "testbed.machinist.dev/in-memory": "" },
            },
            "spec": { "backend": { "inMemory": {} } },
        }),
        json!({
            "apiVersion": format!("{GROUP}/{VERSION}"),
            "kind": "Cluster",
            "metadata": { "name": name, "namespace": namespace, "labels": labels(name) },
            "spec": {
                "clusterNetwork": { "pods": { "cidrBlocks": ["192.168.0.0/16"] } },
                "infrastructureRef": reference("DevCluster", name),
            },
        }),
    ];
    for purpose in ["ca", "etcd"] {
        let authority = Authority::with_rsa(&format!("{name}-{purpose}"))?.identity();
        objects.push(json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": format!("{name}-{purpose}"), "namespace": namespace, "labels": labels(name),
            },
            "type": "cluster.x-k8s.io/secret",
            "data": { "tls.crt": encode(&authority.certificate), "tls.key": encode(&authority.key) },
        }));
    }
    Ok(objects)
}

/// The stand-alone control-plane Machine and its infrastructure. With the name of its bootstrap data given
/// it needs no bootstrap provider.
#[must_use]
pub fn control_plane(namespace: &str, cluster: &str) -> Vec<Value> {
    let mut labels = labels(cluster);
    labels["cluster.x-k8s.io/control-plane"] = json!("");
    let metadata = json!({ "name": CONTROL_PLANE, "namespace": namespace, "labels": labels });
    let mut spec = machine_spec(cluster, "DevMachine", CONTROL_PLANE);
    spec["deletion"] = json!({ "nodeDeletionTimeoutSeconds": 10 });
    vec![
        json!({
            "apiVersion": format!("{INFRASTRUCTURE}/{VERSION}"),
            "kind": "DevMachine",
            "metadata": metadata,
            "spec": { "backend": { "inMemory": {} } },
        }),
        json!({
            "apiVersion": format!("{GROUP}/{VERSION}"),
            "kind": "Machine",
            "metadata": metadata,
            "spec": spec,
        }),
    ]
}

/// A template of in-memory machines that start at once.
#[must_use]
pub fn template(namespace: &str, cluster: &str, name: &str) -> Value {
    json!({
        "apiVersion": format!("{INFRASTRUCTURE}/{VERSION}"),
        "kind": "DevMachineTemplate",
        "metadata": { "name": name, "namespace": namespace, "labels": labels(cluster) },
        "spec": { "template": { "spec": { "backend": { "inMemory": {} } } } },
    })
}

/// The MachineDeployment, rolled with a surge of one.
#[must_use]
pub fn workers(namespace: &str, cluster: &str, template: &str, replicas: u32) -> Value {
    let mut spec = machine_spec(cluster, "DevMachineTemplate", template);
    spec["deletion"] = json!({ "nodeDeletionTimeoutSeconds": 10 });
    let mut labels = labels(cluster);
    labels["cluster.x-k8s.io/deployment-name"] = json!(WORKERS);
    json!({
        "apiVersion": format!("{GROUP}/{VERSION}"),
        "kind": "MachineDeployment",
        "metadata": { "name": WORKERS, "namespace": namespace, "labels": labels },
        "spec": {
            "clusterName": cluster,
            "replicas": replicas,
            "selector": { "matchLabels": {
                "cluster.x-k8s.io/cluster-name": cluster,
                "cluster.x-k8s.io/deployment-name": WORKERS,
            } },
            "rollout": { "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0 },
            } },
            "template": {
                "metadata": {
                    "labels": merged(&labels, &json!({ "node.cluster.x-k8s.io/pool": WORKERS })),
                },
                "spec": spec,
            },
        },
    })
}

/// What every object of a cluster carries: its name, and by the same name the one core manager that looks
/// after it where several run.
#[must_use]
pub fn labels(cluster: &str) -> Value {
    json!({ "cluster.x-k8s.io/cluster-name": cluster, "cluster.x-k8s.io/watch-filter": cluster })
}

/// Names an object of an infrastructure provider.
#[must_use]
pub fn reference(kind: &str, name: &str) -> Value {
    json!({ "apiGroup": INFRASTRUCTURE, "kind": kind, "name": name })
}

/// A Machine's spec whose bootstrap data is given.
#[must_use]
pub fn machine_spec(cluster: &str, kind: &str, name: &str) -> Value {
    json!({
        "clusterName": cluster,
        "version": KUBERNETES,
        "bootstrap": { "dataSecretName": BOOTSTRAP_SECRET },
        "infrastructureRef": reference(kind, name),
    })
}

fn merged(labels: &Value, more: &Value) -> Value {
    let mut all = labels.as_object().cloned().unwrap_or_default();
    all.extend(more.as_object().cloned().unwrap_or_default());
    Value::Object(all)
}

fn encode(text: &str) -> String {
    base64::engine::general_purpose::STANDARD.encode(text)
}
