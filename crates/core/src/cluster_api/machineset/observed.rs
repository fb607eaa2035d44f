//! What must be known to decide about one MachineSet.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use machinist_api::cluster_api::{
    Cluster, ContractRef, Machine, MachineDeployment, MachineSet, names::deletion_order,
};
use serde_json::Value;

use crate::{
    cluster_api::{contract::GroupKind, naming, template},
    decision::FieldError,
    machineset::Bounds,
    selector::MachineSelector,
};

/// A set and everything of its namespace that it is about.
pub struct Observed<'a> {
    pub set: &'a MachineSet,
    /// `None` where there is no Cluster of that name.
    pub cluster: Option<&'a Cluster>,
    /// The deployment that controls the set.
    pub deployment: Option<&'a MachineDeployment>,
    /// Every Machine that the set controls, and every one that matches and has no controller.
    pub machines: Vec<&'a Machine>,
    /// Machines of this set that exist but cannot be read: they fill a place all the same.
    pub unreadable: usize,
    /// The templates, where they were looked at: before Machines are made, and once for each generation.
    pub templates: Vec<Template<'a>>,
    /// What the cluster's control plane says of its versions; looked at before Machines are made.
    pub control_plane: ControlPlane,
    /// Objects of providers that belong to the set or its Machines, as far as their kinds are watched.
    pub provided: Vec<Provided<'a>>,
    /// Names for new Machines, used in order; the first are retries whose answer was lost.
    pub fresh_names: &'a [String],
    /// How many Machines may be made.
    pub bounds: Bounds,
    /// When this process last wrote the status; spaces out mere counts.
    pub status_written_at: Option<Timestamp>,
    /// Why the last attempt to make or remove Machines failed, if it did.
    pub last_failure: Option<&'a str>,
}

/// Which of the two objects that a Machine has beside itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    Bootstrap,
    Infrastructure,
}

/// A template, as far as it could be read.
pub struct Template<'a> {
    pub part: Part,
    pub reference: &'a ContractRef,
    pub found: Found<'a>,
}

pub enum Found<'a> {
    /// As the API server has it, whole.
    Whole {
        metadata: &'a ObjectMeta,
        object: &'a Value,
    },
    Missing,
    /// The kind cannot be spoken to, or the API server did not answer.
    Unknown(String),
}

/// An object of a provider.
pub struct Provided<'a> {
    pub kind: GroupKind,
    pub metadata: &'a ObjectMeta,
}

/// What preflight checks look at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControlPlane {
    /// `Kind ns/name`, for messages. `None` where the Cluster names no control plane or it has no version.
    pub what: Option<String>,
    pub version: Option<String>,
    /// The oldest version that still runs; `None` while none does.
    pub running_version: Option<String>,
    /// The version of a managed topology.
    pub topology_version: Option<String>,
    /// Why it could not be read.
    pub unknown: Option<String>,
}

/// What a MachineSet must be before anything is done for it. What admission refuses is refused here too: not every
/// object has passed it.
pub fn validate(set: &MachineSet) -> Result<MachineSelector, FieldError> {
    let selector = MachineSelector::read("spec.selector", &set.spec.selector)?;
    if !selector.matches(&set.spec.template.metadata.labels) {
        return Err(FieldError::new(
            "spec.template.metadata.labels",
            "Invalid value: `selector` does not match template `labels`",
        ));
    }
    template::check_metadata("spec.template.metadata", &set.spec.template.metadata)?;
    if let Some(template) = set.spec.machine_naming.template.as_deref() {
        naming::check_template(template).map_err(|fault| {
            FieldError::new("spec.machineNaming.template", format!("Invalid value: {fault}"))
        })?;
    }
    if let Some(count) = set.spec.replicas.filter(|count| *count < 0) {
        let problem = format!("Invalid value: {count}: must be zero or more");
        return Err(FieldError::new("spec.replicas", problem));
    }
    match set.spec.deletion.order.as_deref() {
        None
        | Some("" | deletion_order::RANDOM | deletion_order::NEWEST | deletion_order::OLDEST) => {
            Ok(selector)
        }
        Some(other) => Err(FieldError::new(
            "spec.deletion.order",
            format!(
                "Unsupported value: {other:?}: supported values: \"Newest\", \"Oldest\", \"Random\""
            ),
        )),
    }
}

/// The templates that new Machines are made of.
pub fn template_references(set: &MachineSet) -> Vec<(Part, &ContractRef)> {
    let spec = &set.spec.template.spec;
    let bootstrap = spec.bootstrap.config_ref.iter().map(|one| (Part::Bootstrap, one));
    bootstrap.chain([(Part::Infrastructure, &spec.infrastructure_ref)]).collect()
}
