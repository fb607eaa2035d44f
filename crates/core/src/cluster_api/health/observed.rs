//! What must be known to decide about one MachineHealthCheck, and what does it say?

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    api::core::v1::Node,
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
};
use machinist_api::cluster_api::{
    Cluster, Machine, MachineHealthCheck, RemediationTemplateRef, UnhealthyCondition,
};

use super::gate::Gate;
use crate::{
    cluster_api::{machineset::observed::Found, share::Share},
    decision::FieldError,
    health::policy::MaxUnhealthy,
    selector::MachineSelector,
};

/// How long a machine may be without a Node, where a check says nothing.
const USUAL_STARTUP_SECONDS: i32 = 600;
/// Conditions that are made of health, or of what follows from it: they cannot be a cause.
pub const NOT_A_CAUSE: [&str; 5] =
    ["Ready", "Available", "HealthCheckSucceeded", "OwnerRemediated", "ExternallyRemediated"];

/// A check and everything that it is about.
pub struct Observed<'a> {
    pub check: &'a MachineHealthCheck,
    /// `None` where there is no Cluster of that name.
    pub cluster: Option<&'a Cluster>,
    /// Machines of the Cluster that the selector matches.
    pub targets: Vec<Target<'a>>,
    /// The template of requests to another controller, where the check names one.
    pub template: Option<Found<'a>>,
    /// The requests of that kind in the namespace.
    pub requests: Vec<&'a ObjectMeta>,
    /// Why the last request could not be made, if it could not.
    pub last_failure: Option<&'a str>,
    /// The pools of these machines.
    pub gate: Gate,
    pub doubt: Option<Doubt>,
    /// When there was last a doubt, as far as is remembered.
    pub doubted_at: Option<Timestamp>,
}

/// Why what is seen may be the past.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The watch of Machines is interrupted.
    Machines,
    /// The workload cluster does not answer, or the watch of its Nodes is interrupted: which, in words. Before it has a control
    /// plane that says nothing.
    Nodes(String),
}

/// A Machine with its Node in the workload cluster.
pub struct Target<'a> {
    pub machine: &'a Machine,
    pub node: NodeSight<'a>,
}

/// What is known of a Node.
pub enum NodeSight<'a> {
    /// The Machine names none yet.
    NotYet,
    Present(&'a Node),
    /// The workload cluster answers, and there is none of that name.
    Gone,
    /// The workload cluster does not answer.
    Unknown,
}

/// A check, read and found valid.
#[derive(Clone, Debug)]
pub struct Policy {
    pub selector: MachineSelector,
    pub node_conditions: Vec<UnhealthyCondition>,
    pub machine_conditions: Vec<UnhealthyCondition>,
    /// `None` where a machine may be without a Node for ever.
    pub startup_timeout: Option<SignedDuration>,
    pub trigger: Trigger,
    pub template: Option<RemediationTemplateRef>,
}

/// With how many unhealthy machines any is remediated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    AtMost(MaxUnhealthy),
    InRange { least: usize, most: usize },
}

impl Trigger {
    /// Whether somebody chose it: `100%` is what stands where nobody did.
    pub fn is_explicit(self) -> bool {
        match self {
            Self::AtMost(most) => most.is_explicit(),
            Self::InRange { .. } => true,
        }
    }
}

impl Policy {
    /// Reads a check; the error names the field.
    pub fn read(check: &MachineHealthCheck) -> Result<Self, FieldError> {
        let spec = &check.spec;
        let startup = spec.checks.node_startup_timeout_seconds.unwrap_or(USUAL_STARTUP_SECONDS);
        let bad = spec.checks.unhealthy_machine_conditions.iter().enumerate();
        for (place, condition) in bad {
            if NOT_A_CAUSE.contains(&condition.type_.as_str()) {
                return Err(FieldError::new(
                    format!("spec.checks.unhealthyMachineConditions[{place}].type"),
                    format!(
                        "Invalid value: {:?}: type must not be one of: {}",
                        condition.type_,
                        NOT_A_CAUSE.join(", ")
                    ),
                ));
            }
        }
        Ok(Self {
            selector: MachineSelector::read("spec.selector", &spec.selector)?,
            node_conditions: spec.checks.unhealthy_node_conditions.clone(),
            machine_conditions: spec.checks.unhealthy_machine_conditions.clone(),
            startup_timeout: (startup > 0).then(|| SignedDuration::from_secs(i64::from(startup))),
            trigger: trigger(check)?,
            template: spec.remediation.template_ref.clone(),
        })
    }
}

fn trigger(check: &MachineHealthCheck) -> Result<Trigger, FieldError> {
    let path = "spec.remediation.triggerIf";
    let trigger = &check.spec.remediation.trigger_if;
    if let Some(range) = trigger.unhealthy_in_range.as_deref() {
        return read_range(range).ok_or_else(|| {
            let problem = format!(
                "Invalid value: {range:?}: must be a range such as \"[3-5]\", the smaller number first"
            );
            FieldError::new(format!("{path}.unhealthyInRange"), problem)
        });
    }
    let most = match &trigger.unhealthy_less_than_or_equal_to {
        None => MaxUnhealthy::Percent(100),
        Some(value) => {
            let path = format!("{path}.unhealthyLessThanOrEqualTo");
            let number = |value| usize::try_from(value).unwrap_or(0);
            match Share::read(&path, value)? {
                Share::Number(value) => MaxUnhealthy::Number(number(value)),
                Share::Percent(value) => MaxUnhealthy::Percent(number(value)),
            }
        }
    };
    Ok(Trigger::AtMost(most))
}

fn read_range(text: &str) -> Option<Trigger> {
    let inner = text.strip_prefix('[')?.strip_suffix(']')?;
    let (least, most) = inner.split_once('-')?;
    let (least, most) = (least.parse().ok()?, most.parse().ok()?);
    (least <= most).then_some(Trigger::InRange { least, most })
}

/// The time of a condition, if it is a status that somebody reported.
pub fn since(time: Option<&Time>) -> Option<Timestamp> {
    time.map(|time| time.0)
}
