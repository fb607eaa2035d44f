//! What a MaintenancePolicy is: `machinist.dev/v1alpha1`. Which machines are maintained when, how,
//! and how many at once.
//!
//! Everything is optional. What is left out is what holds for machines without a policy: any hour is
//! allowed, work starts at once, one machine of a pool at a time, with a surplus machine first; the
//! control plane is only reported on.

#![expect(
    clippy::duplicated_attributes,
    reason = "each printcolumn has a type and a description, as the derive macro wants"
)]

mod calendar;

use k8s_openapi::apimachinery::pkg::{
    apis::meta::v1::{LabelSelector, Time},
    util::intstr::IntOrString,
};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use calendar::{MaintenanceFreeze, MaintenanceWindow, YearlyFreeze, YearlyMoment};

use crate::{Condition, MaintenanceAction, MaintenancePhase};

/// Which machines are maintained when, how, and how many at once.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "machinist.dev",
    version = "v1alpha1",
    kind = "MaintenancePolicy",
    plural = "maintenancepolicies",
    singular = "maintenancepolicy",
    shortname = "mpol",
    status = "MaintenancePolicyStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "MaintenancePolicy says which machines are maintained when, how, and how many at once.",
    printcolumn(
        name = "Priority",
        type_ = "integer",
        json_path = ".spec.priority",
        description = "The highest of the policies that select a machine holds"
    ),
    printcolumn(
        name = "Machines",
        type_ = "integer",
        json_path = ".status.machines",
        description = "Machines that this policy holds for"
    ),
    printcolumn(
        name = "Approval",
        type_ = "string",
        json_path = ".spec.approval",
        description = "Whether a person must approve"
    ),
    printcolumn(
        name = "No window",
        type_ = "string",
        json_path = ".spec.whenNoWindow",
        description = "What follows when no window lies before the deadline"
    ),
    printcolumn(
        name = "Next opening",
        type_ = "string",
        json_path = ".status.nextOpening",
        description = "When work may begin next"
    ),
    printcolumn(
        name = "Paused",
        type_ = "boolean",
        json_path = ".spec.paused",
        description = "Whether nothing is begun"
    ),
    printcolumn(
        name = "Valid",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Valid')].status",
        description = "Whether the policy can be used"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp",
        description = "Age of this object"
    )
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "!has(self.pauseReason) || (has(self.paused) && self.paused)",
        "message": "pauseReason is given, but paused is not true",
        "fieldPath": ".pauseReason"
    },
    {
        "rule": "!has(self.whenNoWindow) || self.whenNoWindow != 'LetProviderAct' || !has(self.approval) || self.approval == 'Automatic'",
        "message": "LetProviderAct needs no approval",
        "fieldPath": ".whenNoWindow"
    }
]))]
pub struct MaintenancePolicySpec {
    /// Whether a person must approve each maintenance before it begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Automatic"))]
    pub approval: Option<Approval>,
    /// How many machines may be out of work at once, for whatever reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budgets: Option<Budgets>,
    /// Whether machines of the control plane are maintained, one at a time, or only reported on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "ReportOnly"))]
    pub control_plane: Option<ControlPlaneMaintenance>,
    /// How a Node is emptied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<DrainSettings>,
    /// What follows when something happens to an instance behind the cluster's back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<DriftSettings>,
    /// What is done for each of the provider's event codes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 50),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["code"])
    )]
    pub events: Vec<EventSettings>,
    /// When nothing may begin, in spite of the windows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 100),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub freezes: Vec<MaintenanceFreeze>,
    /// How much earlier than the deadline work is to be over, such as "30m".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "30m", "pattern" = DURATION))]
    pub margin: Option<String>,
    /// Whom to tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notifications: Option<Notifications>,
    /// What follows when a Machine differs from its pool's template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Report"))]
    pub outdated: Option<OutdatedMachines>,
    /// Why nothing is begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub pause_reason: Option<String>,
    /// Whether nothing is begun. What was begun is finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// Of several policies that select a machine the one with the highest priority holds, and of
    /// equal ones the first by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 0))]
    pub priority: Option<i32>,
    /// How long the record of a finished maintenance is kept, such as "336h".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "336h", "pattern" = DURATION))]
    pub retention: Option<String>,
    /// Which machines this policy is for; all of them where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<PolicySelector>,
    /// How a pool keeps its size while one of its machines is replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surge: Option<SurgeSettings>,
    /// How long a machine may take to be well again afterwards, such as "1h".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "1h", "pattern" = DURATION))]
    pub verification_timeout: Option<String>,
    /// What follows when no window lies before the deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Ask"))]
    pub when_no_window: Option<WhenNoWindow>,
    /// When work may begin. Where there is a window, every other hour is closed; where there is
    /// none, every hour is open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 100),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub windows: Vec<MaintenanceWindow>,
}

/// What a duration looks like: Go's notation, or ISO 8601.
pub(crate) const DURATION: &str =
    r"^(([0-9]+(\.[0-9]+)?(h|m|s))+|P([0-9]+D)?(T([0-9]+H)?([0-9]+M)?([0-9]+S)?)?)$";

/// Which machines a policy is for. All parts that are given must match.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PolicySelector {
    /// Machines with these labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub machines: Option<LabelSelector>,
    /// Machines of these MachineSets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 500), extend("x-kubernetes-list-type" = "set"))]
    pub pools: Vec<String>,
    /// Machines of these roles, such as worker, infra or master.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "set"))]
    pub roles: Vec<String>,
}

/// What is done for one of the provider's event codes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventSettings {
    /// What is done first.
    pub action: MaintenanceAction,
    /// Whether a person must approve; without it the policy's own word holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// The provider's code, such as instance-retirement.
    #[schemars(length(min = 1, max = 100))]
    pub code: String,
    /// What is done instead when that fails, in this order; without it, whatever heals more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4), extend("x-kubernetes-list-type" = "atomic"))]
    pub escalation: Option<Vec<MaintenanceAction>>,
    /// Work begins no earlier than this long before the provider acts, such as "72h"; without it, as
    /// soon as a window is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = DURATION))]
    pub lead_time: Option<String>,
}

/// How many machines may be out of work at once. What is broken, missing or worked on by anybody
/// counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Budgets {
    /// Of the whole cluster: a number, or a share such as "5%". No limit where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = SHARE))]
    pub cluster: Option<IntOrString>,
    /// How long a finished machine keeps its place in the budgets, such as "10m".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "0s", "pattern" = DURATION))]
    pub cool_down: Option<String>,
    /// Of a pool: a number, or a share such as "10%", at least one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 1, "pattern" = SHARE))]
    pub pool: Option<IntOrString>,
    /// Of a zone: a number, or a share such as "10%". No limit where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = SHARE))]
    pub zone: Option<IntOrString>,
}

const SHARE: &str = "^((100|[0-9]{1,2})%|[0-9]+)$";

/// How a pool keeps its size while one of its machines is replaced.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SurgeSettings {
    /// What follows when the new machine is not ready in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Abandon"))]
    pub after_timeout: Option<AfterSurgeTimeout>,
    /// How many machines the pool has above its size: 1, or 0 to go without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1), extend("default" = 1))]
    pub machines: Option<i32>,
    /// How long the new machine may take until its Node is ready, such as "30m".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "30m", "pattern" = DURATION))]
    pub timeout: Option<String>,
}

/// How a Node is emptied.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DrainSettings {
    /// What follows when it is not empty by then. Wait: goes on trying. Force: pods are removed
    /// whatever protects them. Abandon: the Node is given back, and it is tried again later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Abandon"))]
    pub after_deadline: Option<AfterDrainDeadline>,
    /// How long it may take, such as "1h".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "1h", "pattern" = DURATION))]
    pub deadline: Option<String>,
}

/// What follows when something happens to an instance behind the cluster's back. Annotations on the
/// Machine or its pool come first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DriftSettings {
    /// How long the provider's checks may fail before that is a reason, such as "15m".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "15m", "pattern" = DURATION))]
    pub impaired_grace_period: Option<String>,
    /// When the provider's checks of the instance fail: Report, Reboot, StopStart or Replace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Report"))]
    pub on_impaired: Option<OnImpaired>,
    /// When the instance was stopped: Start, Replace or Report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_stopped: Option<OnStopped>,
    /// When the instance was terminated: Replace or Report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_terminated: Option<OnTerminated>,
    /// How long a stopped instance is left alone, such as "5m".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = DURATION))]
    pub stopped_grace_period: Option<String>,
}

/// Whom to tell of changes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Notifications {
    /// Where to post each change of phase, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<NotificationWebhook>,
}

/// Where to post changes of phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotificationWebhook {
    /// Only changes to these phases; all of them where it is left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10), extend("x-kubernetes-list-type" = "set"))]
    pub phases: Vec<MaintenancePhase>,
    /// The Secret in the operator's namespace whose key `token` is sent as a bearer token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<String>,
    /// The address.
    #[schemars(length(min = 1, max = 2048), extend("pattern" = "^https?://"))]
    pub url: String,
}

/// Whether a person must approve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Approval {
    #[default]
    Automatic,
    Manual,
}

/// What happens to machines of the control plane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ControlPlaneMaintenance {
    #[default]
    ReportOnly,
    OneAtATime,
}

/// What follows when no window lies before the deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum WhenNoWindow {
    ActAnyway,
    #[default]
    Ask,
    MoveEvent,
    LetProviderAct,
}

impl WhenNoWindow {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ActAnyway => "ActAnyway",
            Self::Ask => "Ask",
            Self::MoveEvent => "MoveEvent",
            Self::LetProviderAct => "LetProviderAct",
        }
    }
}

/// What follows when a surplus machine is not ready in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AfterSurgeTimeout {
    #[default]
    Abandon,
    Proceed,
    Wait,
}

/// What follows when a drain does not end in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AfterDrainDeadline {
    #[default]
    Abandon,
    Force,
    Wait,
}

/// What follows when a Machine differs from its pool's template.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OutdatedMachines {
    #[default]
    Report,
    Replace,
}

/// What follows when the provider's checks fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OnImpaired {
    #[default]
    Report,
    Reboot,
    StopStart,
    Replace,
}

/// What follows when an instance was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OnStopped {
    Start,
    Replace,
    Report,
}

/// What follows when an instance was terminated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OnTerminated {
    Replace,
    Report,
}

/// What was found of the policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MaintenancePolicyStatus {
    /// What holds and what does not, one entry for each type, sorted by type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// How many machines it holds for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machines: Option<i32>,
    /// When work may begin next; now or in the past while it may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_opening: Option<Time>,
    /// The `metadata.generation` that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}
