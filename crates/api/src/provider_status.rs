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
    /// The dedicated host that the instance is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dedicated_host: Option<HostReference>,
    /// When the instance was last started, as last seen: another time means another start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch_time: Option<Timestamp>,
    /// The Node's boot id, as last seen: another one means another boot.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "bootID")]
    pub boot_id: Option<String>,
    /// The machine configuration that the Node ran at that boot: a boot into another one was
    /// announced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub booted_config: Option<String>,
    /// Whether a start was seen whose boot id was not: the next one is no reboot.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub boot_pending: bool,
    /// What happened behind the cluster's back and is not over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<DriftRecord>,
    /// Which start of the instance was registered with which load balancers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attached: Option<String>,
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

/// A dedicated host, by id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostReference {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// What happened to the instance, since when, and what was done about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DriftRecord {
    /// The class, in the words of the condition's reason.
    pub class: String,
    /// When it was noticed; the grace period counts from here.
    pub since: Timestamp,
    /// What is being done: told as an event whenever it changes.
    pub response: String,
    /// How often the instance was asked to start, and when last.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempts: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acted_at: Option<Timestamp>,
    /// Why the last attempt failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The promise to launch, durable before the call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// What the names and filters of the providerSpec stood for when the intent was stored: a
    /// repeated call must send the same, or its token is refused. The provider's own form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Value>,
}
