//! What can be done for a maintenance. Each step says on what it was decided (Rule 3); carrying it
//! out is the operator's.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use machinist_api::{Machine, MachineMaintenanceSpec};

use crate::{cloud::InstanceId, node};

/// A Machine as it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineRef {
    pub name: String,
    pub uid: String,
    pub resource_version: String,
}

/// A Node as it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRef {
    pub name: String,
    pub uid: String,
    pub resource_version: String,
}

/// One step of a maintenance. Writes of Kubernetes objects ask for the uid and resourceVersion named;
/// those of the MachineMaintenance itself for its own.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    AddFinalizer,
    RemoveFinalizer,
    /// Sets `spec.maintenancescheduled`.
    MarkScheduled,
    /// Replaces the spec: the provider's event is another one, or has another time.
    SetSpec(Box<MachineMaintenanceSpec>),
    /// Removes a person's approval, which was for what is over.
    ClearApproval,
    /// Sets the size of a pool and the mark that goes with it, in one write.
    ResizePool {
        name: String,
        uid: String,
        resource_version: String,
        replicas: i32,
        /// The value of `machinist.dev/surge`; `None` removes it.
        mark: Option<String>,
    },
    /// Makes a copy of a Machine without a pool. That it exists already is success.
    CreateMachine(Box<Machine>),
    /// Keeps the autoscaler from a Node, with `machinist.dev/protected-for` in the same write.
    ProtectNode(NodeRef),
    UnprotectNode(NodeRef),
    /// Cordons a Node, with `machinist.dev/cordoned-for` in the same write.
    Cordon(NodeRef),
    /// Lifts our cordon, and removes that annotation in the same write.
    Uncordon(NodeRef),
    /// Removes `machinist.dev/cordoned-for` from a Node that somebody else made schedulable.
    DisownCordon(NodeRef),
    /// Evicts a pod.
    Evict(crate::drain::Action),
    /// Removes a pod whatever protects it: the drain's deadline has passed, and policy says so.
    DeletePod {
        namespace: String,
        pod: String,
        uid: String,
        grace_period_seconds: Option<i64>,
    },
    /// Taints the Node of a machine that is certainly off.
    AddOutOfServiceTaint(NodeRef),
    RemoveOutOfServiceTaint(NodeRef),
    /// Puts `machinist.dev/hold` on the Machine: drift and health leave it alone while we work on it.
    Hold {
        machine: MachineRef,
        value: String,
    },
    ReleaseHold(MachineRef),
    /// Marks the Machine as the first to go when its pool shrinks; the value is ours.
    MarkForDeletion {
        machine: MachineRef,
        value: String,
    },
    UnmarkForDeletion(MachineRef),
    DeleteMachine(MachineRef),
    /// Removes the annotation with which a person asked.
    ClearRequest(MachineRef),
    /// Lets reboots of the instance move it to another host. Repeating it changes nothing.
    EnableMigration(InstanceId),
    /// Reboots the instance. The only step that is not harmless to repeat: the record that was stored
    /// before says whether it may be.
    Reboot(InstanceId),
    Stop(InstanceId),
    Start(InstanceId),
    /// Moves the provider's event. Repeating it changes nothing.
    MoveEvent {
        instance: InstanceId,
        event_id: String,
        to: Timestamp,
    },
}

impl Step {
    /// The kind of step, for logs and metrics.
    pub fn name(&self) -> &'static str {
        match self {
            Self::AddFinalizer => "AddFinalizer",
            Self::RemoveFinalizer => "RemoveFinalizer",
            Self::MarkScheduled => "MarkScheduled",
            Self::SetSpec(_) => "SetSpec",
            Self::ClearApproval => "ClearApproval",
            Self::ResizePool { .. } => "ResizePool",
            Self::CreateMachine(_) => "CreateMachine",
            Self::ProtectNode(_) => "ProtectNode",
            Self::UnprotectNode(_) => "UnprotectNode",
            Self::Cordon(_) => "Cordon",
            Self::Uncordon(_) => "Uncordon",
            Self::DisownCordon(_) => "DisownCordon",
            Self::Evict(_) => "Evict",
            Self::DeletePod { .. } => "DeletePod",
            Self::AddOutOfServiceTaint(_) => "AddOutOfServiceTaint",
            Self::RemoveOutOfServiceTaint(_) => "RemoveOutOfServiceTaint",
            Self::Hold { .. } => "Hold",
            Self::ReleaseHold(_) => "ReleaseHold",
            Self::MarkForDeletion { .. } => "MarkForDeletion",
            Self::UnmarkForDeletion(_) => "UnmarkForDeletion",
            Self::DeleteMachine(_) => "DeleteMachine",
            Self::ClearRequest(_) => "ClearRequest",
            Self::EnableMigration(_) => "EnableMigration",
            Self::Reboot(_) => "Reboot",
            Self::Stop(_) => "Stop",
            Self::Start(_) => "Start",
            Self::MoveEvent { .. } => "MoveEvent",
        }
    }

    /// Whether the cloud is asked for something: then its result goes through `outcome`.
    pub fn is_cloud_effect(&self) -> bool {
        matches!(
            self,
            Self::EnableMigration(_)
                | Self::Reboot(_)
                | Self::Stop(_)
                | Self::Start(_)
                | Self::MoveEvent { .. }
        )
    }
}

impl MachineRef {
    pub fn of(machine: &Machine) -> Self {
        Self {
            name: machine.metadata.name.clone().unwrap_or_default(),
            uid: machine.metadata.uid.clone().unwrap_or_default(),
            resource_version: machine.metadata.resource_version.clone().unwrap_or_default(),
        }
    }
}

impl NodeRef {
    pub fn of(node: &Node) -> Self {
        Self {
            name: node::name(node).to_owned(),
            uid: node::uid(node).to_owned(),
            resource_version: node.metadata.resource_version.clone().unwrap_or_default(),
        }
    }
}
