//! What Cluster API's objects look like on the wire: `cluster.x-k8s.io/v1beta2`.
//!
//! The OpenShift kinds of the same names are at the root of this crate. These are kept apart, since they
//! share a name and little else: one Machine of Cluster API is three objects, and its conditions are
//! `meta/v1` ones.
//!
//! We write merge patches only. So a field that this version does not know survives on every object; what
//! is copied from a template into a new Machine is kept in `MachineSpec::other`.

pub mod condition;
pub mod names;

mod cluster;
mod deployment;
mod drain_rule;
mod health_check;
mod machine;
mod machineset;

pub use cluster::{
    ApiEndpoint, Cluster, ClusterInitialization, ClusterSpec, ClusterStatus, MachineCounts,
};
pub use deployment::{
    DeploymentDeprecated, DeploymentDeprecatedV1Beta1, DeploymentRemediation, MachineDeployment,
    MachineDeploymentSpec, MachineDeploymentStatus, RollingUpdate, Rollout, RolloutStrategy,
};
pub use drain_rule::{
    DrainBehavior, DrainRuleConfig, DrainRuleMachines, DrainRulePods, MachineDrainRule,
    MachineDrainRuleSpec,
};
pub use health_check::{
    HealthCheckDeprecated, HealthCheckDeprecatedV1Beta1, HealthCheckRemediation, HealthChecks,
    MachineHealthCheck, MachineHealthCheckSpec, MachineHealthCheckStatus, RemediationTemplateRef,
    RemediationTrigger, UnhealthyCondition, UnhealthyExpression,
};
pub use machine::{
    Bootstrap, ContractRef, Machine, MachineAddress, MachineDeletion, MachineDeletionStatus,
    MachineDeprecated, MachineDeprecatedV1Beta1, MachineInitialization, MachineNodeRef,
    MachineSpec, MachineStatus, MachineTaint, ReadinessGate,
};
pub use machineset::{
    MachineNaming, MachineSet, MachineSetDeprecated, MachineSetDeprecatedV1Beta1, MachineSetSpec,
    MachineSetStatus, SetDeletion, StatusVersion, TemplateMeta, TemplateSpec,
};

/// `group/version` of every object here, as owner references name it.
pub const API_VERSION: &str = "cluster.x-k8s.io/v1beta2";
/// The group of every kind here.
pub const GROUP: &str = "cluster.x-k8s.io";

/// Whether a value says nothing, so that it is left out: Cluster API's schemas refuse empty objects.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
