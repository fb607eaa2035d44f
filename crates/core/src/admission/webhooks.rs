//! Which questions the API server asks, under which names and at which paths. They are a contract:
//! the names are in what users read when they are refused, and the configurations are compared field
//! for field.

use super::object::Kind;

/// The group and version of the objects that are asked about.
pub const GROUP: &str = "machine.openshift.io";
pub const VERSION: &str = "v1beta1";

/// One question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Webhook {
    DefaultMachine,
    DefaultMachineSet,
    ValidateMachine,
    ValidateMachineSet,
}

/// What is wanted to know: what to fill in, or whether to refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Default,
    Validate,
}

impl Webhook {
    /// In the order of the configurations: the Machine's before the MachineSet's.
    pub const ALL: [Self; 4] = [
        Self::DefaultMachine,
        Self::DefaultMachineSet,
        Self::ValidateMachine,
        Self::ValidateMachineSet,
    ];

    /// The question that is asked at a path.
    pub fn of_path(path: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|webhook| webhook.path() == path)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::DefaultMachine => "default.machine.machine.openshift.io",
            Self::DefaultMachineSet => "default.machineset.machine.openshift.io",
            Self::ValidateMachine => "validation.machine.machine.openshift.io",
            Self::ValidateMachineSet => "validation.machineset.machine.openshift.io",
        }
    }

    pub fn path(self) -> &'static str {
        match self {
            Self::DefaultMachine => "/mutate-machine-openshift-io-v1beta1-machine",
            Self::DefaultMachineSet => "/mutate-machine-openshift-io-v1beta1-machineset",
            Self::ValidateMachine => "/validate-machine-openshift-io-v1beta1-machine",
            Self::ValidateMachineSet => "/validate-machine-openshift-io-v1beta1-machineset",
        }
    }

    pub fn purpose(self) -> Purpose {
        match self {
            Self::DefaultMachine | Self::DefaultMachineSet => Purpose::Default,
            Self::ValidateMachine | Self::ValidateMachineSet => Purpose::Validate,
        }
    }

    pub fn kind(self) -> Kind {
        match self {
            Self::DefaultMachine | Self::ValidateMachine => Kind::Machine,
            Self::DefaultMachineSet | Self::ValidateMachineSet => Kind::MachineSet,
        }
    }

    pub fn resource(self) -> &'static str {
        match self.kind() {
            Kind::Machine => "machines",
            Kind::MachineSet => "machinesets",
        }
    }

    pub fn operations(self) -> &'static [&'static str] {
        match self.purpose() {
            Purpose::Default => &["CREATE"],
            Purpose::Validate => &["CREATE", "UPDATE"],
        }
    }
}
