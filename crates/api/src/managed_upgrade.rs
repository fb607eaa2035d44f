//! What we read of the managed-upgrade-operator's objects: an upgrade under way holds maintenance
//! back, and its windows and freezes of 2020, where a cluster still has them, hold as well.
//!
//! The CRDs are not ours and mostly absent. A field that is not read here is not checked here.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An upgrade that is wanted, with what was done.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "upgrade.managed.openshift.io",
    version = "v1alpha1",
    kind = "UpgradeConfig",
    plural = "upgradeconfigs",
    namespaced,
    status = "UpgradeConfigStatus",
    derive = "PartialEq",
    derive = "Default"
)]
pub struct UpgradeConfigSpec {
    #[serde(default)]
    pub desired: DesiredUpgrade,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DesiredUpgrade {
    #[serde(default)]
    pub version: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UpgradeConfigStatus {
    #[serde(default)]
    pub history: Vec<UpgradeHistory>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpgradeHistory {
    #[serde(default)]
    pub version: Option<String>,
    /// New, Pending, Upgrading, Upgraded, Failed or Unknown.
    #[serde(default)]
    pub phase: Option<String>,
    #[serde(default)]
    pub start_time: Option<Time>,
    #[serde(default)]
    pub complete_time: Option<Time>,
}

/// A freeze that the provider of the cluster sets.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "upgrade.managed.openshift.io",
    version = "v1alpha1",
    kind = "AdminFreezeWindow",
    plural = "adminfreezewindows",
    derive = "PartialEq",
    derive = "Default"
)]
#[serde(rename_all = "camelCase")]
pub struct AdminFreezeWindowSpec {
    #[serde(default)]
    pub from_utc: UtcTime,
    #[serde(default)]
    pub to_utc: UtcTime,
}

/// A freeze that the customer sets.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "upgrade.managed.openshift.io",
    version = "v1alpha1",
    kind = "CustomerFreezeWindow",
    plural = "customerfreezewindows",
    derive = "PartialEq",
    derive = "Default"
)]
#[serde(rename_all = "camelCase")]
pub struct CustomerFreezeWindowSpec {
    #[serde(default)]
    pub from_utc: UtcTime,
    #[serde(default)]
    pub to_utc: UtcTime,
}

/// When, every week, work is best begun.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "upgrade.managed.openshift.io",
    version = "v1alpha1",
    kind = "PreferredUpgradeStartTime",
    plural = "preferredupgradestarttimes",
    namespaced,
    derive = "PartialEq",
    derive = "Default"
)]
#[serde(rename_all = "camelCase")]
pub struct PreferredUpgradeStartTimeSpec {
    #[serde(default)]
    pub day_of_week: String,
    #[serde(default)]
    pub time_utc: String,
}

/// A moment of every year, or of one: with a timestamp it is that.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UtcTime {
    #[serde(default)]
    pub month: String,
    #[serde(default)]
    pub week_of_month: Option<i32>,
    #[serde(default)]
    pub day_of_week: Option<String>,
    #[serde(default)]
    pub day_of_month: Option<i32>,
    #[serde(default)]
    pub time: String,
    #[serde(default)]
    pub timestamp: Option<Time>,
}
