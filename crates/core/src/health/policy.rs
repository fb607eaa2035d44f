//! What a MachineHealthCheck says, read and found valid.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::core::{Selector, SelectorExt};
use machinist_api::{MachineHealthCheck, MachineHealthCheckSpec, names::annotation};

use super::{duration, external::TemplateReference};
use crate::decision::FieldError;

/// The API's own default, for objects that never passed the API server's defaulting.
const USUAL_STARTUP_TIMEOUT: SignedDuration = SignedDuration::from_mins(10);

#[derive(Clone, Debug)]
pub struct Policy {
    selector: Selector,
    pub conditions: Vec<BadCondition>,
    pub max_unhealthy: MaxUnhealthy,
    /// `None` where a machine may be without a Node for ever.
    pub startup_timeout: Option<SignedDuration>,
    pub template: Option<TemplateReference>,
    /// Whether the bare-metal operator repairs the machines.
    pub is_external_baremetal: bool,
}

/// A condition of a Node that is bad when it lasts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadCondition {
    pub type_: String,
    pub status: String,
    pub timeout: SignedDuration,
}

/// How many machines may be unhealthy while others are remediated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaxUnhealthy {
    Number(usize),
    Percent(usize),
}

impl MaxUnhealthy {
    /// How many that is of so many machines, rounded down.
    pub fn of(self, machines: usize) -> usize {
        match self {
            Self::Number(number) => number,
            Self::Percent(percent) => machines.saturating_mul(percent) / 100,
        }
    }

    /// Whether somebody chose it. The API server writes `100%` into every object that says nothing,
    /// so that one value is no choice, and the disruption gate's own share holds instead.
    pub fn is_explicit(self) -> bool {
        self != Self::Percent(100)
    }

    fn read(value: Option<&IntOrString>) -> Result<Self, FieldError> {
        let text = match value {
            None => return Ok(Self::Percent(100)),
            Some(IntOrString::Int(number)) => return Ok(Self::Number(at_least_zero(*number))),
            Some(IntOrString::String(text)) => text,
        };
        let (digits, is_percent) =
            text.strip_suffix('%').map_or((text.as_str(), false), |digits| (digits, true));
        match digits.parse::<i32>() {
            Ok(percent) if is_percent => Ok(Self::Percent(at_least_zero(percent).min(100))),
            Ok(number) => Ok(Self::Number(at_least_zero(number))),
            Err(_) => Err(FieldError::new(
                "spec.maxUnhealthy",
                format!("Invalid value: {text:?}: must be a number or a share such as \"40%\""),
            )),
        }
    }
}

impl std::fmt::Display for MaxUnhealthy {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => write!(formatter, "{number}"),
            Self::Percent(percent) => write!(formatter, "{percent}%"),
        }
    }
}

impl Policy {
    /// Reads a check; the error names the field.
    pub fn read(check: &MachineHealthCheck) -> Result<Self, FieldError> {
        let spec = &check.spec;
        let selector = Selector::try_from(spec.selector.clone())
            .map_err(|error| FieldError::new("spec.selector", format!("Invalid value: {error}")))?;
        let annotations = check.metadata.annotations.as_ref();
        let strategy = annotations.and_then(|all| all.get(annotation::REMEDIATION_STRATEGY));
        Ok(Self {
            selector,
            conditions: conditions(spec)?,
            max_unhealthy: MaxUnhealthy::read(spec.max_unhealthy.as_ref())?,
            startup_timeout: startup_timeout(spec)?,
            template: spec
                .remediation_template
                .as_ref()
                .map(TemplateReference::read)
                .transpose()?,
            is_external_baremetal: strategy
                .is_some_and(|one| one == annotation::REMEDIATION_STRATEGY_EXTERNAL_BAREMETAL),
        })
    }

    /// Whether a Machine of the check's namespace is watched. An empty selector watches all.
    pub fn selects(&self, labels: Option<&BTreeMap<String, String>>) -> bool {
        let empty = BTreeMap::new();
        self.selector.matches(labels.unwrap_or(&empty))
    }
}

fn at_least_zero(number: i32) -> usize {
    usize::try_from(number).unwrap_or(0)
}

fn conditions(spec: &MachineHealthCheckSpec) -> Result<Vec<BadCondition>, FieldError> {
    let read = |(index, condition): (usize, &machinist_api::UnhealthyCondition)| {
        let path = |field: &str| format!("spec.unhealthyConditions[{index}].{field}");
        let word = |field: &str, value: &Option<String>| {
            let value = value.clone().filter(|value| !value.is_empty());
            value.ok_or_else(|| FieldError::new(path(field), "Required value"))
        };
        Ok(BadCondition {
            type_: word("type", &condition.type_)?,
            status: word("status", &condition.status)?,
            timeout: match &condition.timeout {
                // As Go reads an absent duration.
                None => SignedDuration::ZERO,
                Some(text) => duration_at(path("timeout"), text)?,
            },
        })
    };
    spec.unhealthy_conditions.iter().enumerate().map(read).collect()
}

fn startup_timeout(spec: &MachineHealthCheckSpec) -> Result<Option<SignedDuration>, FieldError> {
    let timeout = match &spec.node_startup_timeout {
        None => USUAL_STARTUP_TIMEOUT,
        Some(text) => duration_at("spec.nodeStartupTimeout".to_owned(), text)?,
    };
    Ok(Some(timeout).filter(|timeout| !timeout.is_zero()))
}

fn duration_at(path: String, text: &str) -> Result<SignedDuration, FieldError> {
    duration::parse(text).ok_or_else(|| {
        let problem = format!("Invalid value: {text:?}: must be a duration such as 300s or 1h30m");
        FieldError::new(path, problem)
    })
}
