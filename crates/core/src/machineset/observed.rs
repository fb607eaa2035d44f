//! What must be known to decide about one MachineSet.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use machinist_api::{
    Machine, MachineSet,
    names::{error_reason, reason},
};

use super::{ceiling::Bounds, decide::Action};
use crate::{decision::FieldError, selector::MachineSelector};

/// A pool and everything in its namespace that may belong to it.
pub struct Observed<'a> {
    pub set: &'a MachineSet,
    /// Every Machine of the namespace that the set owns, or that matches and has no owner.
    pub machines: Vec<Member<'a>>,
    /// Machines of this set that exist but cannot be read: they fill a place all the same, or each
    /// would be made again.
    pub unreadable: usize,
    /// Names for new Machines, used in order; the first are retries whose answer was lost.
    pub fresh_names: &'a [String],
    /// When this process last wrote the status; spaces out mere counts.
    pub status_written_at: Option<Timestamp>,
    /// How many Machines may be made.
    pub bounds: Bounds,
    /// Why the last attempt to make or remove Machines failed, if it did.
    pub last_failure: Option<&'a ScalingFailure>,
}

/// A Machine with the Node that it is linked to.
pub struct Member<'a> {
    pub machine: &'a Machine,
    pub node: Option<&'a Node>,
}

/// Why Machines could not be made or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalingFailure {
    /// Of the condition.
    pub reason: &'static str,
    /// As `status.errorReason` has it.
    pub error_reason: &'static str,
    pub message: String,
}

/// A Machine could be neither adopted nor released.
const UPDATING_FAILED: &str = "UpdatingMachinesFailed";

impl ScalingFailure {
    /// Says what kind of action failed: a pool that cannot shrink is no pool that cannot grow.
    pub fn of(action: &Action, message: String) -> Self {
        let (reason, error_reason) = match action {
            Action::Create(_) => (reason::CREATING_FAILED, error_reason::CREATE_ERROR),
            Action::Delete { .. } => (reason::DELETING_FAILED, error_reason::DELETE_ERROR),
            Action::Adopt { .. } | Action::Release { .. } => {
                (UPDATING_FAILED, error_reason::UPDATE_ERROR)
            }
        };
        Self { reason, error_reason, message }
    }
}

/// What `status.labelSelector` may hold. A longer one would fail every write of the status.
const LABEL_SELECTOR_MAX: usize = 4096;

/// What a MachineSet must be before anything is done for it.
pub fn validate(set: &MachineSet) -> Result<MachineSelector, FieldError> {
    let selector = MachineSelector::read("spec.selector", &set.spec.selector)?;
    if !selector.matches(&set.spec.template.metadata.labels) {
        return Err(FieldError::new(
            "spec.template.metadata.labels",
            format!(
                "Invalid value: `selector` does not match template `labels`: {} is wanted",
                selector.canonical()
            ),
        ));
    }
    let length = selector.canonical().chars().count();
    if length > LABEL_SELECTOR_MAX {
        return Err(FieldError::new(
            "spec.selector",
            format!(
                "Too long: as status.labelSelector it has {length} characters, more than {LABEL_SELECTOR_MAX}"
            ),
        ));
    }
    match set.spec.delete_policy.as_deref() {
        None | Some("" | "Random" | "Newest" | "Oldest") => {}
        Some(other) => {
            return Err(FieldError::new(
                "spec.deletePolicy",
                format!(
                    "Unsupported value: {other:?}: supported values: \"Random\", \"Newest\", \"Oldest\""
                ),
            ));
        }
    }
    match set.spec.replicas {
        Some(count) if count < 0 => Err(FieldError::new(
            "spec.replicas",
            format!("Invalid value: {count}: must be zero or more"),
        )),
        _ => Ok(selector),
    }
}
