//! What is done for a Machine whose instance is there: take over what the cloud says, notice a start or
//! a reboot since the last look, judge its health, keep its tags and load balancers true.

use std::collections::BTreeMap;

use jiff::Timestamp;
use machinist_api::{
    Condition, ConditionSeverity, Machine,
    condition::{self, ConditionStatus},
    names::{annotation, condition_type, event, label, phase, reason, tag},
};

use super::{
    decide::{Action, MachineDecision, MetadataChange, settle},
    down::{Down, respond_to},
    observed::{HealthKnowledge, Observed, is_provisioned, provider_status, validate},
    status::StatusDraft,
};
use crate::{
    cloud::{Impairment, Instance, InstanceState},
    decision::{Announcement, Wait},
    drift::{
        Class,
        classify::{Since, cause, current_config, since_recorded, why_down},
        policy::is_under_maintenance,
    },
    entries, node,
};

/// Follows a live instance.
pub(super) fn follow(
    observed: &Observed<'_>,
    instance: &Instance,
    mut draft: StatusDraft,
    now: Timestamp,
) -> MachineDecision {
    let machine = observed.machine;
    let mut actions = Vec::new();
    draft.instance_exists();
    // While a new instance is pending nothing but its id is worth a write: its addresses and state
    // change within seconds and would cost every launch two more.
    if instance.state == InstanceState::Pending && !is_provisioned(machine) {
        draft.take_instance(instance);
        draft.set_phase(phase::PROVISIONING);
        let mut decision = settle(machine, draft);
        decision.actions.extend(tag(observed, instance));
        let message = format!("instance {} is {}", instance.id, instance.state.as_str());
        decision.waiting.push(Wait::on("InstancePending", message));
        return decision;
    }
    let change = metadata_of(machine, instance);
    if !change.is_empty() {
        actions.push(Action::ChangeMetadata(change));
    }
    let was_missing = draft.status.error_message.is_some();
    draft.take_instance(instance);
    draft.status.addresses = instance.addresses.clone();
    let is_linked = draft.status.node_ref.is_some();
    draft.set_phase(if is_linked { phase::RUNNING } else { phase::PROVISIONED });
    draft.clear_failure();

    if let Some(class) = why_down(instance) {
        let is_settled = instance.state == InstanceState::Stopped;
        let words = format!(
            "instance {} {}{}",
            instance.id,
            class.in_words(),
            cause(&instance.state_reason)
        );
        let id = instance.id.clone();
        let down = Down { id, class, words, is_settled, is_startable: !instance.interruptible };
        let mut decision = respond_to(observed, &down, draft, actions, now);
        if !decision.actions.contains(&Action::Replace) {
            decision.actions.extend(tag(observed, instance));
        }
        return decision;
    }
    let mut announcements = Vec::new();
    if instance.state == InstanceState::Running {
        announcements.extend(running(observed, instance, &mut draft, was_missing, now));
        announcements.extend(judge_health(&observed.health, instance, &mut draft, now));
    } else {
        let message = format!("instance {} is starting", instance.id);
        draft.set(Condition::fails(
            condition_type::INSTANCE_RUNNING,
            ConditionSeverity::Info,
            reason::INSTANCE_STARTING,
            message,
            now,
        ));
    }
    let mut decision = settle(machine, draft);
    decision.actions = actions;
    decision.announcements = announcements;
    if instance.state == InstanceState::Pending {
        let message = format!("instance {} is starting", instance.id);
        decision.waiting.push(Wait::on(reason::INSTANCE_STARTING, message));
    } else if !is_linked {
        let message = format!("instance {} has no node yet", instance.id);
        decision.waiting.push(Wait::on("NodeMissing", message));
    }
    attach(observed, instance, &mut decision);
    // Last: who may not tag can do all the rest.
    decision.actions.extend(tag(observed, instance));
    decision
}

/// Takes note of a running instance, and of a start or reboot since the last look.
fn running(
    observed: &Observed<'_>,
    instance: &Instance,
    draft: &mut StatusDraft,
    was_missing: bool,
    now: Timestamp,
) -> Option<Announcement> {
    let node = observed.node.one();
    let boot_id = node.and_then(node::boot_id).map(str::to_owned);
    let since = since_recorded(&draft.provider, instance, node);
    let lost = draft.provider.drift.take();
    draft.provider.launch_time = instance.launched_at.or(draft.provider.launch_time);
    draft.set(Condition::holds(condition_type::INSTANCE_RUNNING, now));
    let id = &instance.id;
    let announcement = match since {
        Since::Started { by_us } => {
            let by_us = by_us || is_under_maintenance(observed.machine);
            // The Node may still show the boot before.
            draft.provider.boot_pending = true;
            Some(if by_us {
                let message = format!("instance {id} runs again, as was decided");
                Announcement::normal(event::UPDATE, message)
            } else {
                let message = format!("instance {id} {} without us", Class::Started.in_words());
                Announcement::normal(Class::Started.as_str(), message)
            })
        }
        Since::Rebooted { expected: false } if is_under_maintenance(observed.machine) => None,
        Since::Rebooted { expected: false } => Some(Announcement::normal(
            Class::Rebooted.as_str(),
            format!("instance {id} {} without us; nothing is done", Class::Rebooted.in_words()),
        )),
        Since::Rebooted { expected: true } => None,
        Since::Nothing if was_missing || lost.is_some() => {
            Some(Announcement::normal(event::UPDATE, format!("instance {id} is there after all")))
        }
        Since::Nothing => None,
    };
    if let (Some(seen), Some(node)) = (boot_id, node) {
        let is_other = draft.provider.boot_id.as_ref() != Some(&seen);
        // A Node that became Ready after the start shows the boot of that start.
        let is_of_start = node::ready_since(node) > instance.launched_at;
        if is_other || is_of_start {
            draft.provider.boot_pending = false;
        }
        if is_other {
            draft.provider.boot_id = Some(seen);
            draft.provider.booted_config = current_config(node).map(str::to_owned);
        }
    }
    announcement
}

fn judge_health(
    health: &HealthKnowledge,
    instance: &Instance,
    draft: &mut StatusDraft,
    now: Timestamp,
) -> Option<Announcement> {
    let type_ = condition_type::INSTANCE_HEALTHY;
    let known = condition::find(&draft.status.conditions, type_)
        .filter(|known| known.status == ConditionStatus::False)
        .and_then(|known| known.reason.clone());
    let was_unhealthy = known.is_some();
    let warn = |class: Class, told: &'static str, message: &str| {
        let condition =
            Condition::fails(type_, ConditionSeverity::Warning, class.as_str(), message, now);
        let is_news = known.as_deref() != Some(class.as_str());
        (condition, Some(Announcement::warning(told, message)).filter(|_| is_news))
    };
    let (condition, announcement) = match health {
        HealthKnowledge::Loading => return None,
        HealthKnowledge::Unknown(why) => {
            let severity = ConditionSeverity::Info;
            (Condition::unknown(type_, severity, reason::HEALTH_UNKNOWN, why, now), None)
        }
        HealthKnowledge::Known { interruption: Some(at), .. } => {
            let message =
                format!("the provider takes instance {} back at {at} (spot)", instance.id);
            warn(Class::SpotInterruption, event::SPOT_NOTICE, &message)
        }
        HealthKnowledge::Known { impairments, .. } if !impairments.is_empty() => {
            let message = format!(
                "instance {} {}: {}",
                instance.id,
                Class::Impaired.in_words(),
                in_words(impairments)
            );
            warn(Class::Impaired, Class::Impaired.as_str(), &message)
        }
        HealthKnowledge::Known { .. } => {
            let message = format!("instance {} passes the provider's checks again", instance.id);
            let told = Announcement::normal(event::INSTANCE_HEALTHY, message);
            (Condition::holds(type_, now), Some(told).filter(|_| was_unhealthy))
        }
    };
    draft.set(condition);
    announcement
}

fn in_words(impairments: &[Impairment]) -> String {
    let one = |impairment: &Impairment| match impairment.since {
        Some(since) => format!("{} since {since}", impairment.check),
        None => impairment.check.clone(),
    };
    impairments.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Registers a running instance with its load balancers, once for each start: when all else is said
/// and written, so that a load balancer that does not answer delays nothing.
fn attach(observed: &Observed<'_>, instance: &Instance, decision: &mut MachineDecision) {
    let machine = observed.machine;
    let names = validate(machine).map(|facts| facts.load_balancers).unwrap_or_default();
    let is_settled =
        decision.actions.is_empty() && machine.status.as_ref() == Some(&decision.status);
    if names.is_empty() || instance.state != InstanceState::Running || !is_settled {
        return;
    }
    let started = instance.launched_at.map(|at| at.to_string()).unwrap_or_default();
    let fingerprint = format!("{} {started} {}", instance.id, names.join(","));
    let recorded = provider_status(machine).attached;
    if recorded.as_ref() != Some(&fingerprint) {
        decision.actions.push(Action::Attach { instance: Box::new(instance.clone()), fingerprint });
    }
}

/// Keeps the instance's tags true: our identity on what another controller made, and what the
/// Machine or the cluster wants by now. None is ever removed.
fn tag(observed: &Observed<'_>, instance: &Instance) -> Option<Action> {
    let mut wanted = observed.wanted_tags.clone();
    if instance.machine_uid().is_none() {
        let uid = observed.machine.metadata.uid.clone().unwrap_or_default();
        wanted.insert(tag::MACHINE_UID.to_owned(), uid);
    }
    let tags = entries::missing_from(wanted, Some(&instance.tags));
    (!tags.is_empty()).then(|| Action::TagInstance { id: instance.id.clone(), tags })
}

fn metadata_of(machine: &Machine, instance: &Instance) -> MetadataChange {
    let mut labels = BTreeMap::from([
        (label::REGION.to_owned(), instance.region.clone()),
        (label::ZONE.to_owned(), instance.zone.clone()),
        (label::INSTANCE_TYPE.to_owned(), instance.instance_type.clone()),
    ]);
    let mut node_labels = BTreeMap::new();
    if instance.interruptible {
        labels.insert(label::INTERRUPTIBLE.to_owned(), String::new());
        node_labels.insert(label::INTERRUPTIBLE.to_owned(), String::new());
    }
    let annotations = BTreeMap::from([(
        annotation::INSTANCE_STATE.to_owned(),
        instance.state.as_str().to_owned(),
    )]);
    let spec_labels = machine.spec.metadata.as_ref().map(|metadata| &metadata.labels);
    let has_provider_id = machine.spec.provider_id.as_deref().is_some_and(|id| !id.is_empty());
    MetadataChange {
        labels: entries::missing_from(labels, machine.metadata.labels.as_ref()),
        annotations: entries::missing_from(annotations, machine.metadata.annotations.as_ref()),
        provider_id: (!has_provider_id).then(|| instance.provider_id.clone()),
        node_labels: entries::missing_from(node_labels, spec_labels),
    }
}
