//! What a Cluster of Cluster API is, as far as its Machines need it.
//!
//! The rest (network, topology, availability gates) travels as it is.

#![expect(
    clippy::duplicated_attributes,
    reason = "each printcolumn has a type and a description, as the derive macro wants"
)]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ContractRef, is_default};
use crate::RawObject;

/// What this cluster is to be.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cluster.x-k8s.io",
    version = "v1beta2",
    kind = "Cluster",
    plural = "clusters",
    singular = "cluster",
    shortname = "cl",
    category = "cluster-api",
    namespaced,
    status = "ClusterStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "Cluster is a workload cluster that Machines belong to.",
    printcolumn(
        name = "Available",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Available\")].status",
        description = "Cluster pass all availability checks"
    ),
    printcolumn(
        name = "Paused",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Paused\")].status",
        description = "Reconciliation paused",
        priority = 10
    ),
    printcolumn(
        name = "Phase",
        type_ = "string",
        json_path = ".status.phase",
        description = "Cluster status such as Pending/Provisioning/Provisioned/Deleting/Failed"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp",
        description = "Time duration since creation of Cluster"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSpec {
    /// Nothing is done for this cluster while it is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// The network of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_network: Option<RawObject>,
    /// Where the API server is reached.
    #[serde(default, skip_serializing_if = "is_default")]
    pub control_plane_endpoint: ApiEndpoint,
    /// The object of the control-plane provider, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_ref: Option<ContractRef>,
    /// The object of the infrastructure provider, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub infrastructure_ref: Option<ContractRef>,
    /// A managed topology; Machinist does not act on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<RawObject>,
    /// Further conditions that Available asks for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "atomic"))]
    pub availability_gates: Vec<RawObject>,
}

/// Where an API server is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApiEndpoint {
    /// Its host name or address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub host: Option<String>,
    /// Its port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<i32>,
}

/// What was last seen of this cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterStatus {
    /// What holds and what does not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 32),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
    )]
    pub conditions: Vec<Condition>,
    /// What has been reached once; never taken back.
    #[serde(default, skip_serializing_if = "is_default")]
    pub initialization: ClusterInitialization,
    /// Counts of the control plane's machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<MachineCounts>,
    /// Counts of the workers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<MachineCounts>,
    /// The failure domains that the infrastructure provider offers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub failure_domains: Vec<RawObject>,
    /// Where the cluster is in its life, in a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = [
        "Pending", "Provisioning", "Provisioned", "Deleting", "Failed", "Unknown"
    ]))]
    pub phase: Option<String>,
    /// The `metadata.generation` that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What readers of the version before still look for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<RawObject>,
}

/// What a cluster has reached once; never taken back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterInitialization {
    /// The infrastructure provider has said that the cluster's infrastructure is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub infrastructure_provisioned: Option<bool>,
    /// The control plane answers requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_initialized: Option<bool>,
}

/// Counts of some machines of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineCounts {
    /// How many are wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired_replicas: Option<i32>,
    /// How many there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// How many are up to date.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_to_date_replicas: Option<i32>,
    /// How many are Ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i32>,
    /// How many are Available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_replicas: Option<i32>,
}
