//! What we read and write of OpenShift's own configuration. The CRDs are OpenShift's; on plain
//! Kubernetes they are absent, and flags take their place. Only the fields that we use are here: what
//! we write is a merge patch of a status, so the others stay as they are.
//!
//! This file has the `Infrastructure` object: the cluster's name, region, tags and endpoints.

mod api_server;
mod cluster_operator;
mod feature_gate;
mod proxy;

pub use api_server::{ApiServer, ApiServerSpec};
pub use cluster_operator::{
    ClusterOperator, ClusterOperatorCondition, ClusterOperatorSpec, ClusterOperatorStatus,
    OperandVersion, RelatedObject,
};
pub use feature_gate::{
    FeatureGate, FeatureGateDetails, FeatureGateSpec, FeatureGateStatus, FeatureName,
};
use kube::CustomResource;
pub use proxy::{Proxy, ProxySpec, ProxyStatus};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "config.openshift.io",
    version = "v1",
    kind = "Infrastructure",
    plural = "infrastructures",
    status = "InfrastructureStatus"
)]
pub struct InfrastructureSpec {}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InfrastructureStatus {
    #[serde(default)]
    pub infrastructure_name: String,
    #[serde(default)]
    pub platform_status: Option<PlatformStatus>,
    /// `SingleReplica` where the control plane is one node.
    #[serde(default)]
    pub control_plane_topology: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlatformStatus {
    #[serde(default)]
    pub aws: Option<AwsPlatformStatus>,
    #[serde(rename = "type", default)]
    pub type_: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AwsPlatformStatus {
    #[serde(default)]
    pub region: String,
    #[serde(default)]
    pub resource_tags: Vec<ResourceTag>,
    #[serde(default)]
    pub service_endpoints: Vec<ServiceEndpoint>,
    /// `IPv4`, `DualStackIPv4Primary` or `DualStackIPv6Primary`.
    #[serde(default)]
    pub ip_family: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceTag {
    pub key: String,
    pub value: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceEndpoint {
    pub name: String,
    pub url: String,
}

/// The name of the one object that each kind of the configuration has.
pub const CLUSTER: &str = "cluster";
