//! What a MachineMaintenance is: `machinemaintenance.managed.openshift.io/v1alpha1`, the original
//! fields under their original names, and ours beside them.
//!
//! There is one for each Machine name, `mm-<machine>`. The original kept its state in the spec; what
//! is ours lives in the status.

#![expect(
    clippy::duplicated_attributes,
    reason = "each printcolumn has a type and a description, as the derive macro wants"
)]

mod record;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use record::{
    CloudEffect, CloudEffectKind, DrainRecord, EventMove, InstanceTraits, MaintenanceWork,
    ReplacementRecord, SurgeRecord,
};

use crate::Condition;

/// Which machine is to be maintained, and why.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "machinemaintenance.managed.openshift.io",
    version = "v1alpha1",
    kind = "MachineMaintenance",
    plural = "machinemaintenances",
    singular = "machinemaintenance",
    shortname = "mm",
    namespaced,
    status = "MachineMaintenanceStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "MachineMaintenance is the pending or finished maintenance of one Machine.",
    printcolumn(
        name = "Machine",
        type_ = "string",
        json_path = ".spec.machinelink",
        description = "Machine to be maintained"
    ),
    printcolumn(
        name = "Event",
        type_ = "string",
        json_path = ".spec.eventcode",
        description = "The provider's event code"
    ),
    printcolumn(
        name = "Phase",
        type_ = "string",
        json_path = ".status.phase",
        description = "How far the maintenance is"
    ),
    printcolumn(
        name = "Action",
        type_ = "string",
        json_path = ".status.plan.action",
        description = "What is done"
    ),
    printcolumn(
        name = "Start",
        type_ = "string",
        json_path = ".status.plan.start",
        description = "When it is planned to begin"
    ),
    printcolumn(
        name = "Deadline",
        type_ = "string",
        json_path = ".status.plan.deadline",
        description = "When the provider acts"
    ),
    printcolumn(
        name = "Waits on",
        type_ = "string",
        json_path = ".status.plan.waitsOn[0].reason",
        description = "What keeps it from going on"
    ),
    printcolumn(
        name = "Window",
        type_ = "string",
        json_path = ".status.plan.window",
        description = "The window it is planned in",
        priority = 1
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp",
        description = "Age of this object"
    )
)]
pub struct MachineMaintenanceSpec {
    /// What a person wants done; without it the policy chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<MaintenanceAction>,
    /// When a person wants it done at the latest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
    /// The provider's code of the event, such as instance-retirement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eventcode: Option<String>,
    /// The provider's id of the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eventid: Option<String>,
    /// The provider's id of the instance; may be empty when a person asks.
    #[serde(default)]
    #[schemars(extend("default" = ""))]
    pub machineid: String,
    /// The name of the Machine.
    #[schemars(length(min = 1, max = 253))]
    pub machinelink: String,
    /// False: to be done. Turns true when the work is committed to.
    #[serde(default)]
    pub maintenancescheduled: bool,
    /// When the provider acts by itself; in a person's request, when work may begin at the earliest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notbefore: Option<Time>,
    /// Up to when the provider lets the event be moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notbeforedeadline: Option<Time>,
    /// Why, in a person's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub reason: Option<String>,
}

/// What is done to a machine: Nothing, Reboot, RebootMigrate (a reboot that moves it to another
/// host), StopStart, Replace. Later ones heal more and cost more.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum MaintenanceAction {
    Nothing,
    Reboot,
    RebootMigrate,
    StopStart,
    Replace,
}

impl MaintenanceAction {
    pub const ALL: [Self; 5] =
        [Self::Nothing, Self::Reboot, Self::RebootMigrate, Self::StopStart, Self::Replace];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Nothing => "Nothing",
            Self::Reboot => "Reboot",
            Self::RebootMigrate => "RebootMigrate",
            Self::StopStart => "StopStart",
            Self::Replace => "Replace",
        }
    }

    /// The action that a word names.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.as_str() == word)
    }
}

/// How far a maintenance is. Pending: no time yet. Scheduled: it has one. Surging, Draining, Acting,
/// Verifying: committed to. Undoing: called off, and being put back. Succeeded, Failed, Cancelled:
/// over.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum MaintenancePhase {
    #[default]
    Pending,
    Scheduled,
    Surging,
    Draining,
    Acting,
    Verifying,
    Undoing,
    Succeeded,
    Failed,
    Cancelled,
}

impl MaintenancePhase {
    pub const ALL: [Self; 10] = [
        Self::Pending,
        Self::Scheduled,
        Self::Surging,
        Self::Draining,
        Self::Acting,
        Self::Verifying,
        Self::Undoing,
        Self::Succeeded,
        Self::Failed,
        Self::Cancelled,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Scheduled => "Scheduled",
            Self::Surging => "Surging",
            Self::Draining => "Draining",
            Self::Acting => "Acting",
            Self::Verifying => "Verifying",
            Self::Undoing => "Undoing",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Cancelled => "Cancelled",
        }
    }

    /// Whether something was begun and is not over: it takes a place in the budgets.
    pub fn is_under_way(self) -> bool {
        match self {
            Self::Surging | Self::Draining | Self::Acting | Self::Verifying | Self::Undoing => true,
            Self::Pending | Self::Scheduled | Self::Succeeded | Self::Failed | Self::Cancelled => {
                false
            }
        }
    }

    pub fn is_over(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled)
    }
}

/// What is known, planned and done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineMaintenanceStatus {
    /// How often it was begun for the present reasons and failed.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0))]
    pub attempts: i32,
    /// What holds and what does not, one entry for each type, sorted by type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// The last move of the provider's event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_move: Option<EventMove>,
    /// When it was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
    /// Earlier maintenances of a Machine of this name, newest first, at most 10.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10), extend("x-kubernetes-list-type" = "atomic"))]
    pub history: Vec<MaintenanceHistoryEntry>,
    /// What the provider last told of the instance; absent while it was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<InstanceTraits>,
    /// The uid of the Machine that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_uid: Option<String>,
    /// The word of the original's design: in-progress while work is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maintenance: Option<String>,
    /// One sentence: what is so, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When it is tried again after a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt: Option<Time>,
    /// The `metadata.generation` that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// How far it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<MaintenancePhase>,
    /// What will be done, and when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<MaintenancePlan>,
    /// Why the machine needs it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 20),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["id"])
    )]
    pub reasons: Vec<MaintenanceReason>,
    /// What happened, oldest first; the first entries and the newest are kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50), extend("x-kubernetes-list-type" = "atomic"))]
    pub timeline: Vec<TimelineEntry>,
    /// What was begun: enough for another process to go on with it or to undo it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<MaintenanceWork>,
}

/// What will be done to the machine, and when.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MaintenancePlan {
    /// What is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<MaintenanceAction>,
    /// When the provider acts by itself, or when a person wants it done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
    /// How long it is expected to take, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_seconds: Option<i64>,
    /// When work must begin to be done before the deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest_safe_start: Option<Time>,
    /// The MaintenancePolicy that holds; none where no policy selects the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// When work begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Time>,
    /// What keeps it from beginning, or from going on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10), extend("x-kubernetes-list-type" = "atomic"))]
    pub waits_on: Vec<MaintenanceWait>,
    /// Why then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The window that work begins in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<String>,
}

/// Something that is waited for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MaintenanceWait {
    /// A sentence for a person.
    pub message: String,
    /// A word for a program.
    pub reason: String,
}

/// Why a machine needs maintenance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MaintenanceReason {
    /// What a person wants done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<MaintenanceAction>,
    /// The provider's code, the class of the drift, or Requested or Outdated.
    pub code: String,
    /// The provider's words, or a person's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The provider's id of the event, or our own for other reasons.
    pub id: String,
    /// Event, Request, Drift or Outdated.
    pub kind: MaintenanceReasonKind,
    /// Since when a provider that is asked does not show it any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_since: Option<Time>,
    /// When the provider's action ends; when a person wants it done at the latest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_after: Option<Time>,
    /// When the provider acts; when work may begin at the earliest, where a person asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Time>,
    /// Up to when the provider lets it be moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before_deadline: Option<Time>,
    /// When it was first seen.
    pub since: Time,
    /// Who told of it, sorted: API, Queue, Metadata, Machine, Object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub sources: Vec<String>,
    /// Active, Completed, Cancelled or Vanished.
    pub state: MaintenanceReasonState,
}

/// What kind of reason it is.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum MaintenanceReasonKind {
    #[default]
    Event,
    Request,
    Drift,
    Outdated,
}

/// Whether a reason still holds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum MaintenanceReasonState {
    #[default]
    Active,
    Completed,
    Cancelled,
    Vanished,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimelineEntry {
    /// What happened, in a sentence.
    pub message: String,
    /// The phase from then on.
    pub phase: MaintenancePhase,
    /// When.
    pub time: Time,
}

/// A maintenance that is over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MaintenanceHistoryEntry {
    /// What was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<MaintenanceAction>,
    /// The codes of its reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub codes: Vec<String>,
    /// The ids of the provider's events, and our own ids of other reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub event_ids: Vec<String>,
    /// When it was over.
    pub finished_at: Time,
    /// The uid of the Machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_uid: Option<String>,
    /// The last sentence about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Succeeded, Failed or Cancelled.
    pub outcome: MaintenancePhase,
    /// The pool of the Machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// When work began; absent when it never did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
}

fn is_zero(number: &i32) -> bool {
    *number == 0
}
