//! What we read of OpenShift's `FeatureGate`: which features are on in which release.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "config.openshift.io",
    version = "v1",
    kind = "FeatureGate",
    plural = "featuregates",
    status = "FeatureGateStatus",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct FeatureGateSpec {
    #[serde(default)]
    pub feature_set: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeatureGateStatus {
    /// One for each release that runs at the moment.
    #[serde(default)]
    pub feature_gates: Vec<FeatureGateDetails>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FeatureGateDetails {
    #[serde(default)]
    pub version: String,
    #[serde(default)]
    pub enabled: Vec<FeatureName>,
    #[serde(default)]
    pub disabled: Vec<FeatureName>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FeatureName {
    pub name: String,
}
