//! What a MachineHealthCheck of Cluster API is, field for field.

#![expect(
    clippy::duplicated_attributes,
    reason = "each printcolumn has a type and a description, as the derive macro wants"
)]

use k8s_openapi::apimachinery::pkg::{
    apis::meta::v1::{Condition, LabelSelector},
    util::intstr::IntOrString,
};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::is_default;

/// Which machines are watched, what makes one unhealthy, and what is done then.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cluster.x-k8s.io",
    version = "v1beta2",
    kind = "MachineHealthCheck",
    plural = "machinehealthchecks",
    singular = "machinehealthcheck",
    shortname = "mhc",
    shortname = "mhcs",
    category = "cluster-api",
    namespaced,
    status = "MachineHealthCheckStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "MachineHealthCheck has unhealthy Machines replaced.",
    printcolumn(
        name = "Cluster",
        type_ = "string",
        json_path = ".spec.clusterName",
        description = "Cluster"
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
    ),
    printcolumn(
        name = "Paused",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Paused\")].status",
        description = "Reconciliation paused",
        priority = 10
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp",
        description = "Time duration since creation of MachineHealthCheck"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct MachineHealthCheckSpec {
    /// The Cluster of this namespace that the machines belong to.
    #[serde(default)]
    #[schemars(length(min = 1, max = 63))]
    pub cluster_name: String,
    /// Which Machines are watched.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub selector: LabelSelector,
    /// What makes a machine unhealthy.
    #[serde(default, skip_serializing_if = "is_default")]
    pub checks: HealthChecks,
    /// Whether and how unhealthy machines are replaced.
    #[serde(default, skip_serializing_if = "is_default")]
    pub remediation: HealthCheckRemediation,
}

/// What makes a machine unhealthy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HealthChecks {
    /// How long a machine may be without a Node after its start; 0 for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub node_startup_timeout_seconds: Option<i32>,
    /// Conditions of a Node, each of which makes its machine unhealthy when it lasts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub unhealthy_node_conditions: Vec<UnhealthyCondition>,
    /// Conditions of a Machine, each of which makes it unhealthy when it lasts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub unhealthy_machine_conditions: Vec<UnhealthyCondition>,
    /// Expressions of a later version of Cluster API. They are kept, and not evaluated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10), extend("x-kubernetes-list-type" = "atomic"))]
    pub unhealthy_expressions: Vec<UnhealthyExpression>,
}

/// A condition that makes a machine unhealthy when it lasts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnhealthyCondition {
    /// The type of the condition.
    #[serde(rename = "type", default)]
    #[schemars(length(min = 1, max = 316))]
    pub type_: String,
    /// The status that is bad: True, False or Unknown.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub status: String,
    /// How long it must last.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub timeout_seconds: i32,
}

/// An expression of a later version of Cluster API.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnhealthyExpression {
    /// The expression; true means unhealthy.
    #[serde(default)]
    #[schemars(length(min = 1, max = 1024))]
    pub expression: String,
    /// What is said then.
    #[serde(default)]
    #[schemars(length(min = 1, max = 256))]
    pub message: String,
}

/// Whether and how unhealthy machines are replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HealthCheckRemediation {
    /// Nothing is remediated beyond this.
    #[serde(default, skip_serializing_if = "is_default")]
    pub trigger_if: RemediationTrigger,
    /// A template for requests to another controller, which remediates instead of the owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_ref: Option<RemediationTemplateRef>,
}

/// Nothing is remediated beyond this.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RemediationTrigger {
    /// At most so many are unhealthy: a number, or a share such as "40%", rounded down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unhealthy_less_than_or_equal_to: Option<IntOrString>,
    /// The number of unhealthy ones is in this range, such as "[3-5]"; wins over the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32), extend("pattern" = r"^\[[0-9]+-[0-9]+\]$"))]
    pub unhealthy_in_range: Option<String>,
}

/// A template for requests to another controller.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RemediationTemplateRef {
    /// Its kind.
    #[serde(default)]
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
    /// Its name.
    #[serde(default)]
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Its group and version.
    #[serde(default)]
    #[schemars(length(min = 1, max = 317))]
    pub api_version: String,
}

/// What was last seen of the machines of this check.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineHealthCheckStatus {
    /// What holds and what does not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 32),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
    )]
    pub conditions: Vec<Condition>,
    /// How many machines are watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub expected_machines: Option<i32>,
    /// How many of the machines are healthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub current_healthy: Option<i32>,
    /// How many more machines may become unhealthy before none is remediated any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub remediations_allowed: Option<i32>,
    /// The `metadata.generation` that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The names of the machines that are watched, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10000), extend("x-kubernetes-list-type" = "atomic"))]
    pub targets: Vec<String>,
    /// What readers of the version before still look for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<HealthCheckDeprecated>,
}

/// What readers of the version before still look for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HealthCheckDeprecated {
    /// As v1beta1 has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v1beta1: Option<HealthCheckDeprecatedV1Beta1>,
}

/// As v1beta1 has it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HealthCheckDeprecatedV1Beta1 {
    /// Conditions with a severity.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<crate::Condition>,
}
