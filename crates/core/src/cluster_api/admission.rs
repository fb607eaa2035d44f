//! What is filled in and what is refused when an object of Cluster API is written?
//!
//! The rules are those of Cluster API's own webhooks (`defaults`, `rules`); what the OpenShift kinds are asked is in
//! `crate::admission`. Both speak of fields in the API server's words.

pub mod defaults;
pub mod review;
pub mod rules;
#[cfg(test)]
mod tests;

use machinist_api::cluster_api::names::kind;

/// A kind that is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Machine,
    MachineSet,
    MachineDeployment,
    MachineHealthCheck,
    MachineDrainRule,
}

impl Kind {
    pub const ALL: [Self; 5] = [
        Self::Machine,
        Self::MachineSet,
        Self::MachineDeployment,
        Self::MachineHealthCheck,
        Self::MachineDrainRule,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Machine => kind::MACHINE,
            Self::MachineSet => kind::MACHINE_SET,
            Self::MachineDeployment => kind::MACHINE_DEPLOYMENT,
            Self::MachineHealthCheck => kind::MACHINE_HEALTH_CHECK,
            Self::MachineDrainRule => kind::MACHINE_DRAIN_RULE,
        }
    }

    /// Where Cluster API's own webhooks are asked for defaults.
    pub fn mutate_path(self) -> String {
        format!("/mutate-cluster-x-k8s-io-v1beta2-{}", self.name().to_lowercase())
    }

    /// Where they are asked whether to refuse.
    pub fn validate_path(self) -> String {
        format!("/validate-cluster-x-k8s-io-v1beta2-{}", self.name().to_lowercase())
    }
}
