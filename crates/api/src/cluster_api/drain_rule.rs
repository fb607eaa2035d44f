//! What a MachineDrainRule of Cluster API is, field for field.

#![expect(
    clippy::duplicated_attributes,
    reason = "each printcolumn has a type and a description, as the derive macro wants"
)]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which pods of which machines leave in which way.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cluster.x-k8s.io",
    version = "v1beta2",
    kind = "MachineDrainRule",
    plural = "machinedrainrules",
    singular = "machinedrainrule",
    category = "cluster-api",
    namespaced,
    derive = "PartialEq",
    derive = "Default",
    doc = "MachineDrainRule says how pods leave a machine that is deleted.",
    printcolumn(
        name = "Behavior",
        type_ = "string",
        json_path = ".spec.drain.behavior",
        description = "Drain behavior"
    ),
    printcolumn(
        name = "Order",
        type_ = "string",
        json_path = ".spec.drain.order",
        description = "Drain order"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp",
        description = "Time duration since creation of the MachineDrainRule"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct MachineDrainRuleSpec {
    /// In which way, and when.
    #[serde(default)]
    pub drain: DrainRuleConfig,
    /// On which machines of this namespace; absent for all. One match is enough.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "atomic"))]
    pub machines: Vec<DrainRuleMachines>,
    /// Which pods; absent for all. One match is enough.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "atomic"))]
    pub pods: Vec<DrainRulePods>,
}

/// In which way pods leave, and when.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DrainRuleConfig {
    /// Drain evicts them, Skip leaves them, WaitCompleted waits until they end by themselves.
    #[serde(default)]
    pub behavior: DrainBehavior,
    /// Lower ones leave first; only with Drain, 0 where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<i32>,
}

/// In which way pods leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DrainBehavior {
    #[default]
    Drain,
    Skip,
    WaitCompleted,
}

/// Some machines: what is given must all match.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DrainRuleMachines {
    /// By the labels of the Machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub selector: Option<LabelSelector>,
    /// By the labels of its Cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub cluster_selector: Option<LabelSelector>,
}

/// Some pods: what is given must all match.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DrainRulePods {
    /// By the labels of the Pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub selector: Option<LabelSelector>,
    /// By the labels of its Namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub namespace_selector: Option<LabelSelector>,
}
