//! What is said of a Machine: its status, computed whole from what is known.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition as MetaCondition, Time};
use machinist_api::{
    Condition, ConditionSeverity, LifecycleHook, Machine, MachineStatus, NodeReference, RawObject,
    condition,
    names::{condition_type, phase, reason},
    provider_status::{HostReference, ProviderStatus},
};

use super::observed::provider_status;
use crate::{
    cloud::{CloudFailure, ErrorClass, Instance},
    node,
    nodelink::NodeMatch,
};

/// How the peer says it; a cause may follow.
pub(crate) const NOT_CREATED: &str = "Instance has not been created";

/// A status in the making.
#[derive(Clone, Debug)]
pub struct StatusDraft {
    pub status: MachineStatus,
    pub provider: ProviderStatus,
    now: Timestamp,
}

impl StatusDraft {
    /// Starts from what is stored: hooks and Node link are always kept true.
    pub fn from_machine(machine: &Machine, node: &NodeMatch<'_>, now: Timestamp) -> Self {
        let mut draft = Self {
            status: machine.status.clone().unwrap_or_default(),
            provider: provider_status(machine),
            now,
        };
        let hooks = machine.spec.lifecycle_hooks.clone().unwrap_or_default();
        draft.set_hook_condition(condition_type::DRAINABLE, "Drain", &hooks.pre_drain);
        draft.set_hook_condition(condition_type::TERMINABLE, "Terminate", &hooks.pre_terminate);
        // The link follows the Node's uid, and is never removed when the Node goes: it tells which
        // Node there was.
        if let Some(node) = node.one() {
            let stored = draft.status.node_ref.as_ref();
            let is_current = stored.is_some_and(|stored| {
                stored.uid.as_deref() == Some(node::uid(node))
                    && stored.name.as_deref() == Some(node::name(node))
            });
            if !is_current {
                draft.status.node_ref =
                    Some(NodeReference::to_node(node::name(node), node::uid(node)));
            }
        }
        draft
    }

    /// The status to publish: `lastUpdated` moves only when something else does.
    pub fn finish(mut self, stored: Option<&MachineStatus>) -> MachineStatus {
        let empty = self.provider == ProviderStatus::default();
        if !empty || self.status.provider_status.is_some() {
            self.status.provider_status = RawObject::from_value(&self.provider).ok();
        }
        if stored != Some(&self.status) {
            self.status.last_updated = Some(condition::to_seconds(self.now));
        }
        self.status
    }

    pub fn set(&mut self, condition: Condition) {
        condition::set(&mut self.status.conditions, condition);
    }

    pub fn set_phase(&mut self, phase: &str) {
        self.status.phase = Some(phase.to_owned());
    }

    pub fn instance_exists(&mut self) {
        self.set(Condition::holds(condition_type::INSTANCE_EXISTS, self.now));
    }

    /// Says so, unless it is said already with its cause.
    pub fn instance_not_created(&mut self) {
        let exists = condition::find(&self.status.conditions, condition_type::INSTANCE_EXISTS);
        let words = exists.and_then(|exists| exists.message.as_deref()).unwrap_or_default();
        if !words.starts_with(NOT_CREATED) {
            self.set_not_created(reason::INSTANCE_NOT_CREATED, NOT_CREATED);
        }
    }

    fn set_not_created(&mut self, reason: &str, message: &str) {
        self.set(Condition::fails(
            condition_type::INSTANCE_EXISTS,
            ConditionSeverity::Warning,
            reason,
            message,
            self.now,
        ));
    }

    pub fn instance_unknown(&mut self, reason: &str, message: impl Into<String>) {
        self.set(Condition::unknown(
            condition_type::INSTANCE_EXISTS,
            ConditionSeverity::Warning,
            reason,
            message,
            self.now,
        ));
    }

    /// The object itself is at fault: says so on it, by field.
    pub fn invalid(&mut self, message: &str) {
        self.set(Condition::fails(
            condition_type::INSTANCE_EXISTS,
            ConditionSeverity::Error,
            reason::INVALID_CONFIGURATION,
            message,
            self.now,
        ));
    }

    /// The instance that was there is gone. Failed until the Machine is deleted, or the instance is
    /// seen after all.
    pub fn instance_missing(&mut self, message: &str) {
        self.set(Condition::fails(
            condition_type::INSTANCE_EXISTS,
            ConditionSeverity::Warning,
            reason::INSTANCE_MISSING,
            message,
            self.now,
        ));
        self.fail(None, "can't find created instance");
    }

    pub fn fail(&mut self, error_reason: Option<&str>, message: &str) {
        self.set_phase(phase::FAILED);
        self.status.error_reason = error_reason.map(str::to_owned);
        self.status.error_message = Some(message.to_owned());
        if self.provider.instance_state.is_some() {
            self.provider.instance_state = Some("Unknown".to_owned());
        }
    }

    /// Takes over what the cloud says of the instance.
    pub fn take_instance(&mut self, instance: &Instance) {
        self.provider.instance_id = Some(instance.id.0.clone());
        self.provider.instance_state = Some(instance.state.as_str().to_owned());
        if let Some(host) = &instance.host_id {
            self.provider.dedicated_host = Some(HostReference { id: Some(host.clone()) });
        }
        self.provider.refused_generation = None;
        self.set_creation(true, reason::MACHINE_CREATION_SUCCEEDED, "Machine successfully created");
    }

    /// Says why the launch did not happen; `refused_for_good` names the generation that must change.
    pub fn launch_failed(&mut self, failure: &CloudFailure, generation: Option<i64>) {
        let word = match failure.class {
            ErrorClass::QuotaExceeded => reason::QUOTA_EXCEEDED,
            ErrorClass::InsufficientCapacity => reason::INSUFFICIENT_CAPACITY,
            ErrorClass::Unauthorized => reason::UNAUTHORIZED,
            ErrorClass::Throttled => reason::THROTTLED,
            _ => reason::INSTANCE_NOT_CREATED,
        };
        self.set_not_created(word, &format!("{NOT_CREATED}: {}", failure.message));
        self.set_creation(false, reason::MACHINE_CREATION_FAILED, &failure.message);
        if failure.class == ErrorClass::InvalidConfiguration {
            self.fail(
                Some(machinist_api::names::error_reason::INVALID_CONFIGURATION),
                &failure.message,
            );
            self.provider.refused_generation = generation;
        } else {
            self.set_phase(phase::PROVISIONING);
        }
    }

    /// What was last said about the launch.
    pub fn last_creation_message(&self) -> Option<String> {
        let creation = self
            .provider
            .conditions
            .iter()
            .find(|known| known.type_ == condition_type::MACHINE_CREATION)?;
        Some(creation.message.clone())
    }

    /// Leaves a failure behind that a corrected spec made obsolete.
    pub fn clear_failure(&mut self) {
        self.status.error_reason = None;
        self.status.error_message = None;
        self.provider.refused_generation = None;
    }

    fn set_creation(&mut self, succeeded: bool, reason: &str, message: &str) {
        let status = if succeeded { "True" } else { "False" };
        let conditions = &mut self.provider.conditions;
        let says_the_same = |known: &MetaCondition| {
            known.type_ == condition_type::MACHINE_CREATION
                && known.status == status
                && known.reason == reason
                && known.message == message
        };
        if conditions.iter().any(says_the_same) {
            return;
        }
        conditions.retain(|known| known.type_ != condition_type::MACHINE_CREATION);
        conditions.push(MetaCondition {
            last_transition_time: Time(condition::to_seconds(self.now).0),
            message: message.to_owned(),
            observed_generation: None,
            reason: reason.to_owned(),
            status: status.to_owned(),
            type_: condition_type::MACHINE_CREATION.to_owned(),
        });
    }

    fn set_hook_condition(&mut self, type_: &str, operation: &str, hooks: &[LifecycleHook]) {
        let condition = if hooks.is_empty() {
            Condition::holds(type_, self.now)
        } else {
            Condition::fails(
                type_,
                ConditionSeverity::Warning,
                reason::HOOK_PRESENT,
                format!("{operation} operation currently blocked by: {}", go_list(hooks)),
                self.now,
            )
        };
        self.set(condition);
    }
}

/// Hooks as the peer prints them: `[{Name:x Owner:y}]`.
pub fn go_list(hooks: &[LifecycleHook]) -> String {
    let items: Vec<_> =
        hooks.iter().map(|hook| format!("{{Name:{} Owner:{}}}", hook.name, hook.owner)).collect();
    format!("[{}]", items.join(" "))
}
