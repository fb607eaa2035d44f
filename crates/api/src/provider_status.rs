//! What we keep in `status.providerStatus`: the peer's AWS record, field for field, and our launch
//! intent beside it. Fields that others added are carried along.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition as MetaCondition;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// `AWSMachineProviderStatus` with the launch intent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProviderStatus {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<MetaCondition>,
    /// The id of the one instance of this Machine. Once set it is never replaced by another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_id: Option<String>,
    /// The cloud's own word for the state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_state: Option<String>,
    /// Stored before the cloud is asked to launch; proves that a launch may have happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch: Option<LaunchIntent>,
    /// The `metadata.generation` that the provider refused for good. While it is the current one
    /// nothing is tried; a corrected spec has a newer one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused_generation: Option<i64>,
    /// What we do not know, carried along.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The promise to launch, durable before the call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LaunchIntent {
    /// Counts the tokens used for this Machine, from 1.
    pub attempt: u32,
    /// The client token that makes a repeated call harmless.
    pub client_token: String,
    /// When the intent was stored, or refused, or the instance was launched: whichever was last.
    pub since: Timestamp,
    /// Whether the only call with this token was refused: nothing was launched with it, and the
    /// next attempt gets a token of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refused: bool,
}
