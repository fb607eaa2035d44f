//! What one Machine of a pool would have, said on the pool, so that an autoscaler can grow it from
//! zero: vCPUs, memory, GPUs and architecture of its instance type.

use std::collections::BTreeMap;

use machinist_api::{
    AuthoritativeApi, MachineSet, condition,
    names::{annotation, condition_type, event, label, reason},
};
use serde_json::Value;

use crate::{
    cloud::{CloudFailure, ErrorClass},
    decision::{Announcement, Wait},
    entries,
    providerspec::{self, ProviderKind, ProviderSpecFacts},
};

/// What must be asked of the provider's catalog for a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    pub instance_type: String,
    /// Says which catalog it is.
    pub facts: ProviderSpecFacts,
}

/// What an instance of some type has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capacity {
    pub vcpus: u32,
    pub memory_mib: u64,
    pub gpus: u32,
    /// As Kubernetes spells it: `amd64` or `arm64`.
    pub architecture: String,
}

/// What the catalog said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Known(Capacity),
    /// The region offers no such type.
    UnknownType,
    /// It could not be asked.
    Failed(CloudFailure),
}

/// What a person was told about a pool: told again only when it is about another type or for
/// another cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    pub instance_type: String,
    pub cause: Cause,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    UnknownType,
    Unauthorized,
}

/// What to write and what to say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "a decision that nobody carries out is lost"]
pub struct CapacityDecision {
    /// Annotations that are missing or different; empty when all is said already.
    pub annotations: BTreeMap<String, String>,
    pub announcements: Vec<Announcement>,
    pub waiting: Vec<Wait>,
    /// What is held against the pool now, to be remembered.
    pub complaint: Option<Complaint>,
}

/// The peer's words.
const UNKNOWN_TYPE: &str = "Failed to set autoscaling from zero annotations, instance type unknown";
const FAILED: &str = "Failed to set autoscaling from zero annotations";

/// What to ask for a pool; `None` when nothing is to be said on it: it is being deleted, another
/// API owns it, or its template names no instance type that could be read. The last is told by the
/// Machines made from it.
pub fn question(set: &MachineSet) -> Option<Question> {
    if set.metadata.deletion_timestamp.is_some() || !is_ours(set) {
        return None;
    }
    let provider_spec = &set.spec.template.spec.provider_spec;
    let facts = providerspec::read(provider_spec).ok()?;
    let field = match facts.kind {
        ProviderKind::Aws => "instanceType",
    };
    match provider_spec.value.as_ref()?.as_object()?.remove(field) {
        Some(Value::String(instance_type)) if !instance_type.is_empty() => {
            Some(Question { instance_type, facts })
        }
        _ => None,
    }
}

/// `told` is what was held against the pool after the last decision.
pub fn decide(
    set: &MachineSet,
    question: &Question,
    answer: &Answer,
    told: Option<&Complaint>,
) -> CapacityDecision {
    let (cause, message, wait) = match answer {
        Answer::Known(capacity) => {
            return CapacityDecision {
                annotations: missing(set, capacity),
                ..CapacityDecision::default()
            };
        }
        Answer::UnknownType => {
            let wait = Wait::on(reason::INVALID_CONFIGURATION, UNKNOWN_TYPE);
            (Cause::UnknownType, UNKNOWN_TYPE.to_owned(), wait)
        }
        Answer::Failed(failure) => {
            let message = format!("{FAILED}: {}", failure.message);
            let wait = Wait::on(reason_of(failure.class), &message);
            if failure.class != ErrorClass::Unauthorized {
                // Time heals it; what was told before neither is nor is not so.
                return CapacityDecision {
                    waiting: vec![wait],
                    complaint: told.cloned(),
                    ..CapacityDecision::default()
                };
            }
            (Cause::Unauthorized, message, wait)
        }
    };
    let complaint = Complaint { instance_type: question.instance_type.clone(), cause };
    let announcements = if told == Some(&complaint) {
        Vec::new()
    } else {
        vec![Announcement::warning(event::FAILED_UPDATE, message)]
    };
    CapacityDecision {
        announcements,
        waiting: vec![wait],
        complaint: Some(complaint),
        ..CapacityDecision::default()
    }
}

/// Whether no other API owns the pool. One that is in a migration is left alone until its status
/// says that it is ours and that it is not paused.
fn is_ours(set: &MachineSet) -> bool {
    let owner = set.status.as_ref().and_then(|status| status.authoritative_api);
    if set.spec.authoritative_api.is_none() && owner.is_none() {
        return true;
    }
    set.status.as_ref().is_some_and(|status| {
        status.authoritative_api == Some(AuthoritativeApi::MachineAPI)
            && !condition::is_true(&status.conditions, condition_type::PAUSED)
    })
}

fn missing(set: &MachineSet, capacity: &Capacity) -> BTreeMap<String, String> {
    let present = set.metadata.annotations.as_ref();
    let labels = present.and_then(|known| known.get(annotation::CAPACITY_LABELS));
    let labels = labels.map_or("", String::as_str);
    let wanted = [
        (annotation::VCPU, capacity.vcpus.to_string()),
        (annotation::MEMORY_MB, capacity.memory_mib.to_string()),
        (annotation::GPU, capacity.gpus.to_string()),
        (annotation::CAPACITY_LABELS, with_architecture(labels, &capacity.architecture)),
    ];
    let wanted = wanted.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    entries::missing_from(wanted, present)
}

/// The pairs with the architecture among them, sorted by key. A text that names the architecture
/// rightly is left as it is: whoever wrote it in another order would write it so again.
fn with_architecture(present: &str, architecture: &str) -> String {
    // A piece without `=` is kept too, as a key without a value.
    let mut pairs: BTreeMap<&str, Option<&str>> = present
        .split(',')
        .map(str::trim)
        .filter(|piece| !piece.is_empty())
        .map(|piece| match piece.split_once('=') {
            Some((key, value)) => (key.trim(), Some(value.trim())),
            None => (piece, None),
        })
        .collect();
    if pairs.get(label::ARCHITECTURE) == Some(&Some(architecture)) {
        return present.to_owned();
    }
    pairs.insert(label::ARCHITECTURE, Some(architecture));
    let pieces: Vec<String> = pairs
        .into_iter()
        .map(|(key, value)| match value {
            Some(value) => format!("{key}={value}"),
            None => key.to_owned(),
        })
        .collect();
    pieces.join(",")
}

fn reason_of(class: ErrorClass) -> &'static str {
    match class {
        ErrorClass::Unauthorized => reason::UNAUTHORIZED,
        ErrorClass::Throttled => reason::THROTTLED,
        ErrorClass::InvalidConfiguration => reason::INVALID_CONFIGURATION,
        _ => reason::PROVIDER_ERROR,
    }
}

#[cfg(test)]
mod tests;
