//! What must be known to decide about one MachineDeployment.

use jiff::Timestamp;
use machinist_api::cluster_api::{
    Cluster, Machine, MachineDeployment, MachineSet, RollingUpdate, names::strategy,
};

use crate::{
    cluster_api::{machineset::observed::Template, naming, share::Share, template},
    decision::FieldError,
    selector::MachineSelector,
};

/// A deployment and everything of its namespace that it is about.
pub struct Observed<'a> {
    pub deployment: &'a MachineDeployment,
    /// `None` where there is no Cluster of that name.
    pub cluster: Option<&'a Cluster>,
    /// Every set that the deployment controls, and every one that matches and has no controller.
    pub sets: Vec<&'a MachineSet>,
    /// Sets of this deployment that exist but cannot be read.
    pub unreadable: usize,
    /// The Machines of all these sets.
    pub machines: Vec<&'a Machine>,
    /// The templates, where they were looked at: before a set is made, and once for each generation.
    pub templates: Vec<Template<'a>>,
    /// When this process last wrote the status; spaces out mere counts.
    pub status_written_at: Option<Timestamp>,
    /// Why the last attempt to make or change a set failed, if it did.
    pub last_failure: Option<&'a str>,
}

/// How a deployment is rolled out, read and found valid.
#[derive(Clone, Debug)]
pub struct Policy {
    pub selector: MachineSelector,
    pub is_on_delete: bool,
    surge: Share,
    unavailable: Share,
}

impl Policy {
    /// How many Machines there may be above the size.
    pub fn surge(&self, replicas: i32) -> i32 {
        if self.is_on_delete { 0 } else { self.surge.rounded_up(replicas) }
    }

    /// How many Machines may be missing. Where neither may anything be above nor anything be missing, one may be missing:
    /// else nothing would ever move.
    pub fn unavailable(&self, replicas: i32) -> i32 {
        if self.is_on_delete || replicas == 0 {
            return 0;
        }
        let unavailable = self.unavailable.rounded_down(replicas).min(replicas);
        if unavailable == 0 && self.surge.rounded_up(replicas) == 0 { 1 } else { unavailable }
    }
}

/// What a MachineDeployment must be before anything is done for it. What admission refuses is refused here too: not every
/// object has passed it.
pub fn validate(deployment: &MachineDeployment) -> Result<Policy, FieldError> {
    let spec = &deployment.spec;
    let selector = MachineSelector::read("spec.selector", &spec.selector)?;
    if !selector.matches(&spec.template.metadata.labels) {
        return Err(FieldError::new(
            "spec.template.metadata.labels",
            "Invalid value: `selector` does not match template `labels`",
        ));
    }
    if let Some(count) = spec.replicas.filter(|count| *count < 0) {
        let problem = format!("Invalid value: {count}: must be zero or more");
        return Err(FieldError::new("spec.replicas", problem));
    }
    template::check_metadata("spec.template.metadata", &spec.template.metadata)?;
    if let Some(template) = spec.machine_naming.template.as_deref() {
        naming::check_template(template).map_err(|fault| {
            FieldError::new("spec.machineNaming.template", format!("Invalid value: {fault}"))
        })?;
    }
    let is_on_delete = match spec.rollout.strategy.type_.as_deref() {
        None | Some("" | strategy::ROLLING_UPDATE) => false,
        Some(strategy::ON_DELETE) => true,
        Some(other) => {
            let problem = format!(
                "Unsupported value: {other:?}: supported values: \"OnDelete\", \"RollingUpdate\""
            );
            return Err(FieldError::new("spec.rollout.strategy.type", problem));
        }
    };
    let (surge, unavailable) = limits(&spec.rollout.strategy.rolling_update)?;
    Ok(Policy { selector, is_on_delete, surge, unavailable })
}

/// Surge and unavailability, as they are by default where nothing is said.
pub fn limits(update: &RollingUpdate) -> Result<(Share, Share), FieldError> {
    let path = "spec.rollout.strategy.rollingUpdate";
    let read = |field: &str, value, usual| match value {
        Some(value) => Share::read(&format!("{path}.{field}"), value),
        None => Ok(Share::Number(usual)),
    };
    Ok((
        read("maxSurge", update.max_surge.as_ref(), 1)?,
        read("maxUnavailable", update.max_unavailable.as_ref(), 0)?,
    ))
}
