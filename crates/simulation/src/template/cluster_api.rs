//! What do the objects of Cluster API look like in a simulated cluster? As people and an installer make them, for one Cluster
//! whose providers are played.

use base64::{Engine, engine::general_purpose::STANDARD};
use machinist_api::cluster_api::names::{label, secret};
use serde_json::{Value, json};

use super::NAMESPACE;

/// The Cluster that all Machines belong to.
pub const CLUSTER: &str = "fleet";
/// The text of its kubeconfig: it leads to the one API server that there is.
pub const KUBECONFIG: &str = "in memory";
/// The version that Machines ask for, unless they say another.
pub const VERSION: &str = "v1.34.0";
/// The template of the provider that Machines are made from, unless they name another.
pub const TEMPLATE: &str = "small";
/// The scheme of the providerIDs that the played provider gives.
pub const SCHEME: &str = "sim://";
/// The lease of Cluster API's own core manager is here.
pub const LEASE_NAMESPACE: &str = machinist_api::cluster_api::names::lease::CORE_NAMESPACE;

pub const GROUP: &str = machinist_api::cluster_api::GROUP;
pub const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io";
pub const BOOTSTRAP: &str = "bootstrap.cluster.x-k8s.io";
pub const CONTROL_PLANE: &str = "controlplane.cluster.x-k8s.io";

/// What is there before any Machine is: group, plural and object.
#[must_use]
pub fn installed() -> Vec<(&'static str, &'static str, Value)> {
    let definitions = [
        (INFRASTRUCTURE, "simmachines"),
        (INFRASTRUCTURE, "simmachinetemplates"),
        (BOOTSTRAP, "simconfigs"),
        (BOOTSTRAP, "simconfigtemplates"),
        (CONTROL_PLANE, "simcontrolplanes"),
    ];
    let mut all: Vec<_> = definitions
        .into_iter()
        .map(|(group, plural)| {
            let labels = json!({ label::CONTRACT_V1BETA2: "v1beta2" });
            let metadata = json!({ "name": format!("{plural}.{group}"), "labels": labels });
            let kind = "customresourcedefinitions";
            ("apiextensions.k8s.io", kind, json!({ "metadata": metadata }))
        })
        .collect();
    for name in [TEMPLATE, "large"] {
        all.push((INFRASTRUCTURE, "simmachinetemplates", template_object(name)));
    }
    all.push((BOOTSTRAP, "simconfigtemplates", template_object(TEMPLATE)));
    all.push(("", "secrets", kubeconfig()));
    all.push((GROUP, "clusters", cluster()));
    all
}

fn template_object(name: &str) -> Value {
    json!({
        "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": { "template": { "spec": { "size": name } } },
    })
}

fn kubeconfig() -> Value {
    json!({
        "metadata": {
            "name": format!("{CLUSTER}{}", secret::KUBECONFIG_SUFFIX),
            "namespace": NAMESPACE,
            "labels": { label::CLUSTER_NAME: CLUSTER },
        },
        "type": secret::TYPE,
        "data": { secret::VALUE_KEY: STANDARD.encode(KUBECONFIG) },
    })
}

fn cluster() -> Value {
    json!({
        "metadata": { "name": CLUSTER, "namespace": NAMESPACE },
        "spec": { "controlPlaneEndpoint": { "host": "10.0.0.1", "port": 6443 } },
    })
}

/// A Machine that nobody keeps, with the provider's object that it names.
#[must_use]
pub fn single_machine(
    name: &str,
    of_control_plane: bool,
) -> [(&'static str, &'static str, Value); 2] {
    let labels = json!({ label::CLUSTER_NAME: CLUSTER });
    let mut machine = json!({
        "metadata": { "name": name, "namespace": NAMESPACE, "labels": labels },
        "spec": {
            "clusterName": CLUSTER,
            "version": VERSION,
            "bootstrap": { "dataSecretName": "boot" },
            "infrastructureRef": {
                "apiGroup": INFRASTRUCTURE, "kind": "SimMachine", "name": name,
            },
            "deletion": { "nodeDeletionTimeoutSeconds": 10 },
        },
    });
    if of_control_plane {
        machine["metadata"]["labels"][label::CONTROL_PLANE] = json!("");
    }
    let provided = json!({
        "metadata": { "name": name, "namespace": NAMESPACE, "labels": labels }, "spec": {},
    });
    [(INFRASTRUCTURE, "simmachines", provided), (GROUP, "machines", machine)]
}

/// A MachineSet.
#[must_use]
pub fn set(name: &str, replicas: usize) -> Value {
    let own = json!({ "pool": name });
    owner(name, replicas, &own)
}

/// A MachineDeployment with these limits of a rollout.
#[must_use]
pub fn deployment(name: &str, replicas: usize, surge: &Value, unavailable: &Value) -> Value {
    let own = json!({ label::DEPLOYMENT_NAME: name });
    let mut deployment = owner(name, replicas, &own);
    deployment["spec"]["rollout"] = json!({ "strategy": {
        "type": "RollingUpdate",
        "rollingUpdate": { "maxSurge": surge, "maxUnavailable": unavailable },
    } });
    deployment
}

/// What sets and deployments have in common. No webhook fills anything in, so all is written out.
fn owner(name: &str, replicas: usize, own: &Value) -> Value {
    let mut labels = json!({ label::CLUSTER_NAME: CLUSTER });
    json_patch::merge(&mut labels, own);
    json!({
        "metadata": {
            "name": name, "namespace": NAMESPACE, "labels": { label::CLUSTER_NAME: CLUSTER },
        },
        "spec": {
            "clusterName": CLUSTER,
            "replicas": replicas,
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": {
                    "clusterName": CLUSTER,
                    "version": VERSION,
                    "bootstrap": { "configRef": {
                        "apiGroup": BOOTSTRAP, "kind": "SimConfigTemplate", "name": TEMPLATE,
                    } },
                    "infrastructureRef": {
                        "apiGroup": INFRASTRUCTURE, "kind": "SimMachineTemplate", "name": TEMPLATE,
                    },
                    "deletion": { "nodeDeletionTimeoutSeconds": 10 },
                },
            },
        },
    })
}
