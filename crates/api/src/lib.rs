//! What the objects on the wire look like: the types of every custom resource Machinist reads or
//! writes, and every name (key, phase, condition, reason, event) as a constant.
//!
//! Nothing here decides or talks to a cluster. The CRDs in `deploy/crds` are generated from these
//! types (`crd`), and a golden test holds them.

pub mod cluster_api;
pub mod condition;
pub mod crd;
pub mod managed_upgrade;
pub mod names;
pub mod openshift_config;
pub mod provider_status;
pub mod raw;

mod machine;
mod machine_health_check;
mod machine_maintenance;
mod machineset;
pub mod maintenance_policy;

pub use condition::{Condition, ConditionSeverity, ConditionStatus};
pub use machine::{
    AuthoritativeApi, LastOperation, LifecycleHook, LifecycleHooks, Machine, MachineAddress,
    MachineObjectMeta, MachineSpec, MachineStatus, NodeReference, ProviderSpec,
};
pub use machine_health_check::{
    MachineHealthCheck, MachineHealthCheckSpec, MachineHealthCheckStatus, UnhealthyCondition,
};
pub use machine_maintenance::{
    CloudEffect, CloudEffectKind, DrainRecord, EventMove, InstanceTraits, MachineMaintenance,
    MachineMaintenanceSpec, MachineMaintenanceStatus, MaintenanceAction, MaintenanceHistoryEntry,
    MaintenancePhase, MaintenancePlan, MaintenanceReason, MaintenanceReasonKind,
    MaintenanceReasonState, MaintenanceWait, MaintenanceWork, ReplacementRecord, SurgeRecord,
    TimelineEntry,
};
pub use machineset::{MachineSet, MachineSetSpec, MachineSetStatus, MachineTemplate};
pub use maintenance_policy::{MaintenancePolicy, MaintenancePolicySpec, MaintenancePolicyStatus};
pub use raw::RawObject;
