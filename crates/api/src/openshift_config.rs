//! What we read of OpenShift's `Infrastructure` object: the cluster's name, region, tags and
//! endpoints. The CRD is OpenShift's; on plain Kubernetes it is absent and flags take its place.

use kube::CustomResource;
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
