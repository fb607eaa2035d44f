//! What does an OpenShift cluster hold that machine operators read?
//!
//! Minimal definitions of `config.openshift.io/v1` and the objects named `cluster`, the namespace of
//! the Machine API with its secrets, and the bundle that vouches for the simulated EC2 endpoint. With
//! these another operator can be run on the same cluster and compared.

use std::collections::BTreeMap;

use kube::Client;
use serde_json::{Value, json};

use crate::manifests::{apply, apply_crds};

/// Where Machines, their secrets and the operator live.
pub const MACHINE_NAMESPACE: &str = "openshift-machine-api";
/// The secret that a providerSpec names in `credentialsSecret`.
pub const CREDENTIALS_SECRET: &str = "aws-cloud-credentials";
pub const WORKER_USER_DATA_SECRET: &str = "worker-user-data";
pub const MASTER_USER_DATA_SECRET: &str = "master-user-data";

const DEFINITIONS: &str = include_str!("../assets/openshift-config-crds.yaml");

/// A version that no release has; OpenShift's operators assume it when built by hand.
const RELEASE_VERSION: &str = "0.0.1-snapshot";

/// Feature gates that machine operators ask about. An unknown gate makes them panic.
const DISABLED_FEATURE_GATES: [&str; 4] = [
    "AWSDedicatedHosts",
    "MachineAPIMigration",
    "MachineAPIOperatorDisableMachineHealthCheckController",
    "VSphereMultiNetworks",
];

pub struct Singletons<'a> {
    pub infrastructure_name: &'a str,
    pub region: &'a str,
    pub api_server_url: &'a str,
    /// The HTTPS endpoint; OpenShift refuses others.
    pub ec2_endpoint: &'a str,
    /// As PEM.
    pub ec2_authority: &'a str,
    pub access_key_id: &'a str,
    pub secret_access_key: &'a str,
}

impl Singletons<'_> {
    pub async fn install(&self, client: &Client) -> anyhow::Result<()> {
        apply_crds(client, DEFINITIONS).await?;
        for namespace in [
            MACHINE_NAMESPACE,
            "openshift-config",
            "openshift-config-managed",
            "openshift-machine-config-operator",
        ] {
            let object = json!({
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": { "name": namespace },
            });
            apply(client, object).await?;
        }
        for object in self.cluster_objects().into_iter().chain(self.namespaced_objects()) {
            apply(client, object).await?;
        }
        Ok(())
    }

    fn cluster_objects(&self) -> Vec<Value> {
        let infrastructure = json!({
            "spec": { "platformSpec": { "type": "AWS", "aws": self.platform() } },
            "status": {
                "apiServerURL": self.api_server_url,
                "apiServerInternalURI": self.api_server_url,
                "controlPlaneTopology": "HighlyAvailable",
                "infrastructureTopology": "HighlyAvailable",
                "infrastructureName": self.infrastructure_name,
                "platform": "AWS",
                "platformStatus": { "type": "AWS", "aws": self.platform() },
            },
        });
        let dns = json!({ "spec": { "baseDomain": "machinist.test" } });
        let feature_gate = json!({
            "spec": {},
            "status": {
                "featureGates": [{
                    "version": RELEASE_VERSION,
                    "enabled": [],
                    "disabled": DISABLED_FEATURE_GATES.map(|name| json!({ "name": name })),
                }],
            },
        });
        [
            ("Infrastructure", infrastructure),
            ("DNS", dns),
            ("APIServer", json!({ "spec": {} })),
            ("Proxy", json!({ "spec": {} })),
            ("FeatureGate", feature_gate),
        ]
        .into_iter()
        .map(|(kind, mut object)| {
            if let Some(fields) = object.as_object_mut() {
                fields.insert("apiVersion".to_owned(), json!("config.openshift.io/v1"));
                fields.insert("kind".to_owned(), json!(kind));
                fields.insert("metadata".to_owned(), json!({ "name": "cluster" }));
            }
            object
        })
        .collect()
    }

    fn platform(&self) -> Value {
        // One endpoint serves all of them.
        let endpoints = ["ec2", "elasticloadbalancing"]
            .map(|name| json!({ "name": name, "url": self.ec2_endpoint }));
        json!({ "region": self.region, "serviceEndpoints": endpoints })
    }

    fn namespaced_objects(&self) -> Vec<Value> {
        let secret = |name: &str, data: BTreeMap<&str, &str>| {
            json!({
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": { "name": name, "namespace": MACHINE_NAMESPACE },
                "stringData": data,
            })
        };
        let user_data = BTreeMap::from([
            ("userData", r#"{"ignition":{"version":"3.2.0"}}"#),
            ("disableTemplating", "true"),
        ]);
        vec![
            secret(
                CREDENTIALS_SECRET,
                BTreeMap::from([
                    ("aws_access_key_id", self.access_key_id),
                    ("aws_secret_access_key", self.secret_access_key),
                ]),
            ),
            secret(WORKER_USER_DATA_SECRET, user_data.clone()),
            secret(MASTER_USER_DATA_SECRET, user_data),
            json!({
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {
                    "name": "kube-cloud-config",
                    "namespace": "openshift-config-managed",
                },
                "data": { "ca-bundle.pem": self.ec2_authority },
            }),
        ]
    }
}
