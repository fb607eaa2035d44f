//! What is done for a Machine that has its instance, or had it: take over what the cloud says, notice
//! what happened behind the cluster's back, and carry out what follows.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use machinist_api::{
    Condition, ConditionSeverity, Machine,
    condition::{self, ConditionStatus, to_seconds},
    names::{annotation, condition_type, event, label, phase, reason, tag},
    provider_status::DriftRecord,
};

use super::{
    decide::{Action, MachineDecision, MetadataChange, settle},
    observed::{
        HealthKnowledge, Identity, Observed, Policy, is_provisioned, provider_status, validate,
    },
    status::StatusDraft,
};
use crate::{
    cloud::{Impairment, Instance, InstanceId, InstanceState},
    decision::{Announcement, Wait},
    drift::{
        Class, DriftPolicy,
        classify::{Since, cause, current_config, since_recorded, why_down},
        policy::has_control_plane_role,
        respond::{Case, Kind, Response, respond},
    },
    entries,
    node::{self, Readiness},
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

/// The instance is not there any more; `seen` is what the cloud still shows of it.
pub(super) fn gone(
    observed: &Observed<'_>,
    seen: Option<&Instance>,
    mut draft: StatusDraft,
    policy: &Policy,
    now: Timestamp,
) -> MachineDecision {
    let machine = observed.machine;
    let id = Identity::of(machine).instance_id.or_else(|| seen.map(|one| one.id.clone()));
    let id = id.unwrap_or_else(|| InstanceId(String::new()));
    let (class, words) = match seen {
        Some(instance) => {
            let class = why_down(instance).unwrap_or(Class::Terminated);
            (class, format!("instance {id} {}{}", class.in_words(), cause(&instance.state_reason)))
        }
        None => (Class::Vanished, format!("instance {id} {}", Class::Vanished.in_words())),
    };
    let down = Down { id, class, words, is_settled: true, is_startable: false };
    if class == Class::Vanished {
        // One read that lacks it proves nothing: it is looked for until it would have shown (S1b).
        let record = record_of(&draft, class, now);
        let until = record.since.checked_add(policy.disappearance()).unwrap_or(Timestamp::MAX);
        if until > now {
            return missing_for_now(observed, &down, record, until, draft, now);
        }
    }
    draft.instance_missing(&format!("Instance not found on provider: {}", down.words));
    let state = BTreeMap::from([(annotation::INSTANCE_STATE.to_owned(), "Unknown".to_owned())]);
    let annotations = entries::missing_from(state, machine.metadata.annotations.as_ref());
    let mut actions = Vec::new();
    if !annotations.is_empty() {
        actions.push(Action::ChangeMetadata(MetadataChange { annotations, ..Default::default() }));
    }
    respond_to(observed, &down, draft, actions, now)
}

/// An instance that does not run.
struct Down {
    id: InstanceId,
    class: Class,
    /// Begins the sentence that everybody is told.
    words: String,
    is_settled: bool,
    is_startable: bool,
}

fn missing_for_now(
    observed: &Observed<'_>,
    down: &Down,
    mut record: DriftRecord,
    until: Timestamp,
    mut draft: StatusDraft,
    now: Timestamp,
) -> MachineDecision {
    let message = format!("{}; it is looked for until {until}", down.words);
    draft.set(Condition::unknown(
        condition_type::INSTANCE_RUNNING,
        ConditionSeverity::Warning,
        down.class.as_str(),
        &message,
        now,
    ));
    set_health_unknown(&mut draft, &down.words, now);
    let is_news = is_new(&draft, down.class);
    record.response = Kind::Wait.as_str().to_owned();
    draft.provider.drift = Some(record);
    let mut decision = settle(observed.machine, draft);
    if is_news {
        decision.announcements.push(Announcement::warning(down.class.as_str(), &message));
    }
    decision.waiting.push(Wait::on(down.class.as_str(), message));
    decision.recheck_by(until);
    decision
}

/// Says what happened, decides what follows, and begins it.
fn respond_to(
    observed: &Observed<'_>,
    down: &Down,
    mut draft: StatusDraft,
    actions: Vec<Action>,
    now: Timestamp,
) -> MachineDecision {
    let machine = observed.machine;
    let is_news = is_new(&draft, down.class);
    let mut record = record_of(&draft, down.class, now);
    let is_control_plane =
        has_control_plane_role(machine) || observed.node.one().is_some_and(node::is_control_plane);
    let policy = DriftPolicy::read(machine, observed.pool.as_ref(), is_control_plane);
    let response = respond(
        &Case {
            class: down.class,
            record: &record,
            is_settled: down.is_settled,
            is_startable: down.is_startable,
            policy: &policy,
            pool: observed.pool.as_ref(),
            has_joined: draft.status.node_ref.is_some(),
            doubt: doubt(observed),
        },
        now,
    );
    let message = format!("{}; {}", down.words, response.words);
    draft.set(Condition::fails(
        condition_type::INSTANCE_RUNNING,
        ConditionSeverity::Warning,
        down.class.as_str(),
        &message,
        now,
    ));
    set_health_unknown(&mut draft, &down.words, now);
    let mut announcements = Vec::new();
    if is_news {
        announcements.push(Announcement::warning(down.class.as_str(), &message));
    }
    if record.response != response.kind.as_str() {
        announcements.extend(announce(&response, &message));
        record.response = response.kind.as_str().to_owned();
    }
    let begins_start = response.kind == Kind::Start && response.recheck.is_none();
    if begins_start {
        record.attempts += 1;
        record.acted_at = Some(to_seconds(now).0);
        record.failure = None;
    }
    draft.provider.drift = Some(record);
    let mut decision = settle(machine, draft);
    decision.actions = actions;
    if response.kind == Kind::Replace {
        // Said before it is done: nobody looks at the instance of a Machine that is going.
        decision.actions.push(Action::StoreIntent(Box::new(decision.status.clone())));
        decision.actions.push(Action::Replace);
    }
    if begins_start {
        decision.actions.push(Action::StoreIntent(Box::new(decision.status.clone())));
        decision.actions.push(Action::Start { id: down.id.clone() });
    }
    decision.announcements = announcements;
    decision.recheck = response.recheck;
    let wait = match response.kind {
        Kind::Held => reason::DISRUPTION_HELD,
        Kind::Wait | Kind::Start | Kind::Replace | Kind::Report => down.class.as_str(),
    };
    decision.waiting.push(Wait::on(wait, message));
    decision
}

fn announce(response: &Response, message: &str) -> Option<Announcement> {
    match response.kind {
        Kind::Start => Some(Announcement::normal(event::STARTING_INSTANCE, message)),
        Kind::Replace => Some(Announcement::normal(event::REPLACING, message)),
        Kind::Held => Some(Announcement::warning(event::DISRUPTION_HELD, message)),
        // The event that names the class says it all.
        Kind::Wait | Kind::Report => None,
    }
}

/// What speaks against the cloud's word that the instance is not there.
fn doubt(observed: &Observed<'_>) -> Option<&'static str> {
    let is_ready = |node: &Node| node::readiness(node) == Readiness::Ready;
    if observed.node.one().is_some_and(is_ready) {
        return Some("its node is still Ready, so the instance must be somewhere");
    }
    observed.cloud_shows_nothing.then_some(
        "the cloud shows no instance of this cluster at all; are account and region the right ones?",
    )
}

/// Nothing can be said of the health of what does not run.
fn set_health_unknown(draft: &mut StatusDraft, words: &str, now: Timestamp) {
    draft.set(Condition::unknown(
        condition_type::INSTANCE_HEALTHY,
        ConditionSeverity::Info,
        reason::HEALTH_UNKNOWN,
        words,
        now,
    ));
}

/// Whether what happened is told for the first time.
fn is_new(draft: &StatusDraft, class: Class) -> bool {
    known_record(draft, class).is_none()
}

/// The record of what happened: kept while it is the same, and a stop stays one stop when the
/// provider only later says by whom.
fn record_of(draft: &StatusDraft, class: Class, now: Timestamp) -> DriftRecord {
    match known_record(draft, class) {
        Some(known) => DriftRecord { class: class.as_str().to_owned(), ..known.clone() },
        None => DriftRecord {
            class: class.as_str().to_owned(),
            since: to_seconds(now).0,
            response: String::new(),
            attempts: 0,
            acted_at: None,
            failure: None,
        },
    }
}

fn known_record(draft: &StatusDraft, class: Class) -> Option<&DriftRecord> {
    draft.provider.drift.as_ref().filter(|known| {
        let known = Class::from_reason(&known.class);
        known == Some(class)
            || known.is_some_and(|known| {
                known.is_stop() && class.is_stop()
                    || known.is_termination() && class.is_termination()
            })
    })
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
