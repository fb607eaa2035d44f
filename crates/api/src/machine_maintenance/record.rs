//! What was begun in a maintenance: enough for another process to go on with it or to undo it.
//!
//! Each part is stored before the effect that it stands for.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::MaintenanceAction;

/// What was begun.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MaintenanceWork {
    /// What is done now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<MaintenanceAction>,
    /// What is done instead if that fails, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub and_then: Vec<MaintenanceAction>,
    /// The Node's boot id when work began.
    #[serde(default, rename = "bootID", skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    /// Whether the machine is of the control plane.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub control_plane: bool,
    /// The drain of the Node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<DrainRecord>,
    /// What the cloud was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<CloudEffect>,
    /// Why the last step failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// The instance.
    #[serde(default, rename = "instanceID", skip_serializing_if = "Option::is_none")]
    pub instance_id: Option<String>,
    /// When the instance was last started when work began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch_time: Option<Time>,
    /// The uid of the Machine.
    #[serde(default, rename = "machineUID", skip_serializing_if = "Option::is_none")]
    pub machine_uid: Option<String>,
    /// The Node's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// What is to be the outcome once everything is put back: Failed or Cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<super::MaintenancePhase>,
    /// When the present phase began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase_since: Option<Time>,
    /// The pool of the Machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// The copy that takes the place of a Machine without a pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replacement: Option<ReplacementRecord>,
    /// When work began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// Whether we stopped the instance: then it is started again, whatever becomes of the rest.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
    /// The machine that the pool has above its size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surge: Option<SurgeRecord>,
    /// Who made the pods that had to leave the Node, as namespace/kind/name: they are to have as many
    /// as they want afterwards.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200), extend("x-kubernetes-list-type" = "set"))]
    pub workloads: Vec<String>,
    /// The zone of the Machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
}

/// What of the instance decides what can be done to it, as the provider last told. Whoever plans
/// without asking the provider goes by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstanceTraits {
    /// Whether it is a spot instance, which cannot be stopped.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interruptible: bool,
    /// Whether it has disks whose content a stop destroys.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub local_disks: bool,
    /// Whether a reboot can move it to another host.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reboot_moves: bool,
    /// Whether its root is on the host: then it cannot be stopped.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub root_on_host: bool,
}

/// The machine that a pool has above its size while another is replaced.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SurgeRecord {
    /// The Machines that the pool had when it was to grow, by uid: the new one is not among them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub before: Vec<String>,
    /// The uid of the MachineSet.
    #[serde(rename = "poolUID")]
    pub pool_uid: String,
    /// When the pool was asked to grow.
    pub since: Time,
}

/// The copy of a Machine without a pool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplacementRecord {
    /// Its name, chosen before it is made.
    pub name: String,
    /// When it was decided on.
    pub since: Time,
}

/// The drain of a Node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DrainRecord {
    /// Whether the cordon is ours, and ours to lift.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cordoned_by_us: bool,
    /// When the policy's answer to a drain that does not end begins to hold.
    pub deadline: Time,
    /// Whether the deadline has passed and pods are removed whatever protects them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forced: bool,
    /// Whether we tainted the Node as out of service.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub out_of_service: bool,
    /// When it began.
    pub since: Time,
}

/// What the cloud is asked for: EnableMigration, Reboot, Start or Stop.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum CloudEffectKind {
    EnableMigration,
    Reboot,
    Start,
    Stop,
}

impl CloudEffectKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::EnableMigration => "EnableMigration",
            Self::Reboot => "Reboot",
            Self::Start => "Start",
            Self::Stop => "Stop",
        }
    }
}

/// Something that the cloud is asked for: stored before it is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CloudEffect {
    /// Counts the requests, from 1.
    #[schemars(range(min = 1))]
    pub attempt: i32,
    /// Why the last request failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// What.
    pub kind: CloudEffectKind,
    /// When the cloud took the request; absent while that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_at: Option<Time>,
    /// When it was decided on.
    pub since: Time,
}

/// A move of the provider's event to a later time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventMove {
    /// Counts the requests.
    #[schemars(range(min = 1))]
    pub attempt: i32,
    /// The provider's id of the event.
    #[serde(rename = "eventID")]
    pub event_id: String,
    /// Why the last request failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// When the provider was last asked.
    pub requested_at: Time,
    /// When the event is to begin.
    pub to: Time,
}
