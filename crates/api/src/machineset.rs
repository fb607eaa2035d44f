//! What a MachineSet is: `machine.openshift.io/v1beta1`, field for field.

#![expect(
    clippy::duplicated_attributes,
    reason = "each printcolumn has a type and a description, as the derive macro wants"
)]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{AuthoritativeApi, Condition, MachineObjectMeta, MachineSpec};

/// What this pool is to be.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "machine.openshift.io",
    version = "v1beta1",
    kind = "MachineSet",
    plural = "machinesets",
    singular = "machineset",
    namespaced,
    status = "MachineSetStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "MachineSet keeps a number of like Machines.",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.labelSelector"
    ),
    printcolumn(
        name = "Desired",
        type_ = "integer",
        json_path = ".spec.replicas",
        description = "Desired Replicas"
    ),
    printcolumn(
        name = "Current",
        type_ = "integer",
        json_path = ".status.replicas",
        description = "Current Replicas"
    ),
    printcolumn(
        name = "Ready",
        type_ = "integer",
        json_path = ".status.readyReplicas",
        description = "Ready Replicas"
    ),
    printcolumn(
        name = "Available",
        type_ = "string",
        json_path = ".status.availableReplicas",
        description = "Observed number of available replicas"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp",
        description = "Machineset age"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct MachineSetSpec {
    #[serde(rename = "authoritativeAPI", default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub authoritative_api: Option<AuthoritativeApi>,
    /// Which Machines go first at scale-down: Random (the default), Newest or Oldest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Random", "Newest", "Oldest"]))]
    pub delete_policy: Option<String>,
    /// How long a Node must be Ready before its Machine counts as available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_ready_seconds: Option<i32>,
    /// How many Machines are wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 1))]
    pub replicas: Option<i32>,
    /// Which Machines belong to this set; must match the template's labels.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub selector: LabelSelector,
    /// What a new Machine looks like.
    #[serde(default)]
    pub template: MachineTemplate,
}

/// What a new Machine looks like.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineTemplate {
    /// Labels and annotations of a new Machine.
    #[serde(default)]
    pub metadata: MachineObjectMeta,
    /// The spec of a new Machine.
    #[serde(default)]
    pub spec: MachineSpec,
}

/// What was last seen of this pool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineSetStatus {
    #[serde(rename = "authoritativeAPI", default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub authoritative_api: Option<AuthoritativeApi>,
    /// Machines whose Node has been Ready for minReadySeconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_replicas: Option<i32>,
    /// What holds and what does not, one entry for each type, sorted by type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// Set when the pool cannot be kept at all: a sentence for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// Set when the pool cannot be kept at all: a word for a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_reason: Option<String>,
    /// Machines that carry all labels of the template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fully_labeled_replicas: Option<i32>,
    /// The selector in its string form, for autoscalers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub label_selector: Option<String>,
    /// The `metadata.generation` that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Machines whose Node is Ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i32>,
    /// Machines that belong to this set and are not being deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
}
