//! What is done for a Machine whose instance does not run: it is said, recorded, and answered by
//! policy.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use machinist_api::{
    Condition, ConditionSeverity, Machine,
    condition::{self, to_seconds},
    names::{annotation, condition_type, reason},
    provider_status::DriftRecord,
};

use super::{
    decide::{Action, MachineDecision, MetadataChange, settle},
    observed::{Identity, Observed, Policy},
    status::StatusDraft,
};
use crate::{
    cloud::{Instance, InstanceId},
    decision::{Announcement, Wait},
    drift::{
        Class, DriftPolicy,
        classify::{cause, why_down},
        policy::{has_control_plane_role, is_under_maintenance},
        respond::{Case, Kind, halves, respond},
    },
    entries,
    node::{self, Readiness},
};

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
        // The provider forgets what is terminated after a while; what was certain stays so.
        None => known_end(&draft).unwrap_or_else(|| {
            (Class::Vanished, format!("instance {id} {}", Class::Vanished.in_words()))
        }),
    };
    let down = Down { id, class, words, is_settled: true, is_startable: false };
    if class == Class::Vanished {
        // One read that lacks it proves nothing: it is looked for until it would have shown (S1b).
        let record = record_of(&draft, class, now);
        let until = policy
            .at_latest(record.since)
            .checked_add(policy.disappearance())
            .unwrap_or(Timestamp::MAX);
        if until > now {
            return missing_for_now(observed, &down, record, until, draft, now);
        }
    }
    draft.instance_missing(&format!("Instance not found on provider: {}", down.words));
    let actions = state_unknown(machine).into_iter().collect();
    respond_to(observed, &down, draft, actions, now)
}

/// What a Machine that failed says of the state of its instance, if it does not say so yet.
pub(super) fn state_unknown(machine: &Machine) -> Option<Action> {
    let state = BTreeMap::from([(annotation::INSTANCE_STATE.to_owned(), "Unknown".to_owned())]);
    let annotations = entries::missing_from(state, machine.metadata.annotations.as_ref());
    (!annotations.is_empty())
        .then(|| Action::ChangeMetadata(MetadataChange { annotations, ..Default::default() }))
}

/// An instance that does not run.
pub(super) struct Down {
    pub id: InstanceId,
    pub class: Class,
    /// Begins the sentence that everybody is told.
    pub words: String,
    pub is_settled: bool,
    pub is_startable: bool,
}

/// The termination that was seen while the provider still knew of it, and the words for it.
fn known_end(draft: &StatusDraft) -> Option<(Class, String)> {
    let class = Class::from_reason(&draft.provider.drift.as_ref()?.class)?;
    let running = condition::find(&draft.status.conditions, condition_type::INSTANCE_RUNNING)?;
    let (words, _) = halves(running.message.as_deref()?)?;
    class.is_termination().then(|| (class, words.to_owned()))
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
pub(super) fn respond_to(
    observed: &Observed<'_>,
    down: &Down,
    mut draft: StatusDraft,
    actions: Vec<Action>,
    now: Timestamp,
) -> MachineDecision {
    let machine = observed.machine;
    // A stop that we asked for is no news to anybody.
    let is_expected = down.class.is_stop() && is_under_maintenance(machine);
    let is_news = is_new(&draft, down.class) && !is_expected;
    let mut record = record_of(&draft, down.class, now);
    let is_control_plane =
        has_control_plane_role(machine) || observed.node.one().is_some_and(node::is_control_plane);
    let defaults = &observed.drift_defaults;
    let pool = observed.pool.as_ref();
    let policy = DriftPolicy::read_with(machine, pool, is_control_plane, defaults);
    let response = respond(
        &Case {
            class: down.class,
            record: &record,
            is_settled: down.is_settled,
            is_startable: down.is_startable,
            policy: &policy,
            pool: observed.pool.as_ref(),
            has_joined: draft.status.node_ref.is_some(),
            doubt: doubt(observed).filter(|_| down.class == Class::Vanished),
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
        announcements.extend(response.announcement(&message));
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
