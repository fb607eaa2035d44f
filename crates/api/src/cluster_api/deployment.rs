//! What a MachineDeployment of Cluster API is, field for field.

#![expect(
    clippy::duplicated_attributes,
    reason = "each printcolumn has a type and a description, as the derive macro wants"
)]

use k8s_openapi::apimachinery::pkg::{
    apis::meta::v1::{Condition, LabelSelector, Time},
    util::intstr::IntOrString,
};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MachineNaming, SetDeletion, StatusVersion, TemplateSpec, is_default};

/// What this deployment is to be.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cluster.x-k8s.io",
    version = "v1beta2",
    kind = "MachineDeployment",
    plural = "machinedeployments",
    singular = "machinedeployment",
    shortname = "md",
    category = "cluster-api",
    namespaced,
    status = "MachineDeploymentStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "MachineDeployment keeps a number of like Machines and rolls them to a new template.",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn(
        name = "Cluster",
        type_ = "string",
        json_path = ".spec.clusterName",
        description = "Cluster"
    ),
    printcolumn(
        name = "Available",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Available\")].status",
        description = "Cluster pass all availability checks"
    ),
    printcolumn(
        name = "Desired",
        type_ = "integer",
        json_path = ".spec.replicas",
        description = "The desired number of machines"
    ),
    printcolumn(
        name = "Current",
        type_ = "integer",
        json_path = ".status.replicas",
        description = "The number of machines"
    ),
    printcolumn(
        name = "Ready",
        type_ = "integer",
        json_path = ".status.readyReplicas",
        description = "The number of machines with Ready condition true"
    ),
    printcolumn(
        name = "Available Machines",
        type_ = "integer",
        json_path = ".status.availableReplicas",
        description = "The number of machines with Available condition true"
    ),
    printcolumn(
        name = "Up-to-date",
        type_ = "integer",
        json_path = ".status.upToDateReplicas",
        description = "The number of machines with UpToDate condition true"
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
        description = "MachineDeployment status such as ScalingUp/ScalingDown/Running/Failed/Unknown"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp",
        description = "Time duration since creation of MachineDeployment"
    ),
    printcolumn(
        name = "Version",
        type_ = "string",
        json_path = ".spec.template.spec.version",
        description = "Kubernetes version associated with this MachineDeployment"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct MachineDeploymentSpec {
    /// The Cluster of this namespace that the machines belong to.
    #[serde(default)]
    #[schemars(length(min = 1, max = 63))]
    pub cluster_name: String,
    /// How many Machines are wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// When and how Machines are replaced by new ones.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rollout: Rollout,
    /// Which Machines belong to this deployment; must match the template's labels.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub selector: LabelSelector,
    /// What a new Machine looks like.
    #[serde(default)]
    pub template: TemplateSpec,
    /// How new Machines are named.
    #[serde(default, skip_serializing_if = "is_default")]
    pub machine_naming: MachineNaming,
    /// How unhealthy Machines are replaced.
    #[serde(default, skip_serializing_if = "is_default")]
    pub remediation: DeploymentRemediation,
    /// Which Machines go first.
    #[serde(default, skip_serializing_if = "is_default")]
    pub deletion: SetDeletion,
    /// No new set is made while this is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
}

/// When and how Machines are replaced by new ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rollout {
    /// From this time on every Machine that is older is replaced, whatever its template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Time>,
    /// In which way.
    #[serde(default, skip_serializing_if = "is_default")]
    pub strategy: RolloutStrategy,
}

/// In which way Machines are replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutStrategy {
    /// RollingUpdate (the default) or OnDelete.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["RollingUpdate", "OnDelete"]))]
    pub type_: Option<String>,
    /// How many at a time.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rolling_update: RollingUpdate,
}

/// How many Machines are replaced at a time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RollingUpdate {
    /// How many may be missing meanwhile: a number, or a share such as "40%", rounded down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<IntOrString>,
    /// How many may be above the size meanwhile: a number, or a share, rounded up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_surge: Option<IntOrString>,
}

/// How unhealthy Machines are replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeploymentRemediation {
    /// How many at a time: a number, or a share, rounded up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_in_flight: Option<IntOrString>,
}

/// What was last seen of this deployment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineDeploymentStatus {
    /// What holds and what does not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 32),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
    )]
    pub conditions: Vec<Condition>,
    /// The `metadata.generation` that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The selector in its string form, for autoscalers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub selector: Option<String>,
    /// Machines of all sets of this deployment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Machines whose condition Ready is True.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i32>,
    /// Machines whose condition Available is True.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_replicas: Option<i32>,
    /// Machines whose condition UpToDate is True.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_to_date_replicas: Option<i32>,
    /// How many Machines run which Kubernetes version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 100),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["version"])
    )]
    pub versions: Vec<StatusVersion>,
    /// What the deployment is doing, in a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["ScalingUp", "ScalingDown", "Running", "Failed", "Unknown"]))]
    pub phase: Option<String>,
    /// What readers of the version before still look for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<DeploymentDeprecated>,
}

/// What readers of the version before still look for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeploymentDeprecated {
    /// As v1beta1 has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v1beta1: Option<DeploymentDeprecatedV1Beta1>,
}

/// As v1beta1 has it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeploymentDeprecatedV1Beta1 {
    /// Conditions with a severity.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<crate::Condition>,
    /// Machines of the current template.
    #[serde(default)]
    pub updated_replicas: i32,
    /// Machines whose Node is Ready.
    #[serde(default)]
    pub ready_replicas: i32,
    /// Machines whose Node has been Ready for long enough.
    #[serde(default)]
    pub available_replicas: i32,
    /// Machines that are still missing.
    #[serde(default)]
    pub unavailable_replicas: i32,
}
