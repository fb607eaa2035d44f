//! What a MachineHealthCheck is: `machine.openshift.io/v1beta1`, field for field.

#![expect(
    clippy::duplicated_attributes,
    reason = "each printcolumn has a type and a description, as the derive macro wants"
)]

use k8s_openapi::{
    api::core::v1::ObjectReference,
    apimachinery::pkg::{apis::meta::v1::LabelSelector, util::intstr::IntOrString},
};
use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::Condition;

/// Which machines are watched, what makes one unhealthy, and what is done then.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "machine.openshift.io",
    version = "v1beta1",
    kind = "MachineHealthCheck",
    plural = "machinehealthchecks",
    singular = "machinehealthcheck",
    shortname = "mhc",
    shortname = "mhcs",
    namespaced,
    status = "MachineHealthCheckStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "MachineHealthCheck has unhealthy Machines replaced.",
    printcolumn(
        name = "MaxUnhealthy",
        type_ = "string",
        json_path = ".spec.maxUnhealthy",
        description = "Maximum number of unhealthy machines allowed"
    ),
    printcolumn(
        name = "ExpectedMachines",
        type_ = "integer",
        json_path = ".status.expectedMachines",
        description = "Number of machines currently monitored"
    ),
    printcolumn(
        name = "CurrentHealthy",
        type_ = "integer",
        json_path = ".status.currentHealthy",
        description = "Current observed healthy machines"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct MachineHealthCheckSpec {
    /// Nothing is remediated while more machines are unhealthy: a number, or a share such as "40%".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "100%", "pattern" = "^((100|[0-9]{1,2})%|[0-9]+)$"))]
    pub max_unhealthy: Option<IntOrString>,
    /// How long a machine may be without a Node after its start, such as "10m"; "0" for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend(
        "default" = "10m",
        "pattern" = r"^0|([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$"
    ))]
    pub node_startup_timeout: Option<String>,
    /// A template for requests to another controller, made instead of deleting unhealthy machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub remediation_template: Option<ObjectReference>,
    /// Which Machines of this namespace are watched. An empty selector means all of them.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub selector: LabelSelector,
    /// Conditions of a Node, each of which makes its machine unhealthy when it lasts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1), extend("x-kubernetes-list-type" = "atomic"))]
    pub unhealthy_conditions: Vec<UnhealthyCondition>,
}

/// A condition of a Node that makes its machine unhealthy when it lasts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnhealthyCondition {
    /// The status that is bad: True, False or Unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub status: Option<String>,
    /// How long it must last, such as "300s" or "1h30m".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = r"^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$"))]
    pub timeout: Option<String>,
    /// The type of the condition, such as Ready.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub type_: Option<String>,
}

/// What was last seen of the machines of this check.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineHealthCheckStatus {
    /// What holds and what does not, one entry for each type, sorted by type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// How many of the machines are healthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "count")]
    pub current_healthy: Option<i64>,
    /// How many machines are watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "count")]
    pub expected_machines: Option<i64>,
    /// How many more machines may become unhealthy before none is remediated any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub remediations_allowed: Option<i32>,
}

/// The original's `int`, which has no format.
fn count(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "minimum": 0 })
}
