//! Why a machine needs maintenance: everything that speaks for it, merged into one need.
//!
//! The record of the reasons is kept in the MachineMaintenance, so that an event that vanished, moved
//! or ended is known to have done so by another process as well.

mod events;
mod need;

use jiff::Timestamp;
use machinist_api::{
    Machine, MachineMaintenance, MaintenanceAction, MaintenancePhase, MaintenanceReason,
    MaintenanceReasonKind, MaintenanceReasonState,
    condition::to_seconds,
    maintenance_policy::{OnImpaired, OutdatedMachines},
    names::annotation,
};

use super::{
    event::{EventState, Sighting, Source},
    policy::Policy,
};
use crate::drift::Class;

pub use need::{Need, risk_of};

/// The codes of reasons that are no events.
pub const REQUESTED: &str = "Requested";
pub const OUTDATED: &str = "Outdated";

/// Where a person asked.
pub const MACHINE: &str = "Machine";
pub const OBJECT: &str = "Object";

/// Everything that speaks for the maintenance of one machine now.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    /// What was recorded before; empty when nothing was, or when it was of another Machine.
    pub known: &'a [MaintenanceReason],
    /// What the sources tell of the machine's instance now.
    pub sightings: &'a [Sighting],
    /// The sources that were asked about this instance and answered whole: what they do not show is
    /// not there. A failed or partial answer is not among them (Rule 9).
    pub asked: &'a [Source],
    /// What a person asks for.
    pub requests: Vec<Request>,
    /// Since when the provider's checks fail, and which.
    pub impaired: Option<(Timestamp, String)>,
    /// In what the Machine differs from its pool's template.
    pub differences: &'a [String],
    /// Whether the maintenance that was recorded came to a good end: what nobody asks for any more was
    /// done then, and not called off.
    pub is_done: bool,
}

/// What a person asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub id: String,
    /// `MACHINE` or `OBJECT`.
    pub source: &'static str,
    /// The event that they ask it for, where they name one.
    pub code: Option<String>,
    pub action: Option<MaintenanceAction>,
    pub why: Option<String>,
    pub not_before: Option<Timestamp>,
    pub deadline: Option<Timestamp>,
}

/// The reasons as they are to be recorded, and what is new about them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Merged {
    /// Sorted by id.
    pub reasons: Vec<MaintenanceReason>,
    /// Sentences for the timeline.
    pub news: Vec<String>,
}

/// How many reasons are recorded: far more than a provider ever has for one instance.
const REASONS_MAX: usize = 20;

/// Merges everything into the record.
pub fn merge(facts: &Facts<'_>, policy: &Policy, now: Timestamp) -> Merged {
    let mut merged = events::merge(facts, now);
    for request in &facts.requests {
        let told = facts.sightings.iter().find(|sighting| sighting.id == request.id);
        match merged.reasons.iter_mut().find(|reason| reason.id == request.id) {
            // A person who names an event that the provider knows asks for nothing more than what
            // is to be done about it.
            Some(reason) => reason.action = request.action.or(reason.action),
            None if told.is_some_and(|told| told.state != EventState::Active) => {}
            None => {
                let reason = request.as_reason(facts.known, now);
                merged.reasons.push(reason);
            }
        }
    }
    if let Some(reason) = impaired(facts, policy, now) {
        merged.reasons.push(reason);
    }
    if let Some(reason) = outdated(facts, policy, now) {
        merged.reasons.push(reason);
    }
    // A reason that is no event is over when nobody gives it any more.
    for known in facts.known {
        let is_event = known.kind == MaintenanceReasonKind::Event;
        if !is_event && !merged.reasons.iter().any(|reason| reason.id == known.id) {
            let state = match known.state {
                MaintenanceReasonState::Active if facts.is_done => {
                    MaintenanceReasonState::Completed
                }
                MaintenanceReasonState::Active => MaintenanceReasonState::Cancelled,
                state => state,
            };
            if state != known.state && !facts.is_done {
                merged.news.push(format!("{} is not asked for any more", title(known)));
            }
            merged.reasons.push(MaintenanceReason { state, ..known.clone() });
        }
    }
    merged.reasons.sort_by(|left, right| {
        // What still holds is kept first when there are too many.
        let key = |reason: &MaintenanceReason| reason.state != MaintenanceReasonState::Active;
        key(left).cmp(&key(right)).then_with(|| left.id.cmp(&right.id))
    });
    merged.reasons.truncate(REASONS_MAX);
    merged.reasons.sort_by(|left, right| left.id.cmp(&right.id));
    for reason in &merged.reasons {
        let is_known = facts.known.iter().any(|known| known.id == reason.id);
        if !is_known && reason.state == MaintenanceReasonState::Active {
            merged.news.push(format!("{} was noticed", title(reason)));
        }
    }
    merged.news.sort();
    merged
}

/// What a reason is called in a sentence.
pub fn title(reason: &MaintenanceReason) -> String {
    match reason.kind {
        MaintenanceReasonKind::Event => format!("event {} ({})", reason.code, reason.id),
        MaintenanceReasonKind::Request => match &reason.description {
            Some(why) => format!("the request of a person ({why})"),
            None => "the request of a person".to_owned(),
        },
        MaintenanceReasonKind::Drift => format!("drift ({})", reason.code),
        MaintenanceReasonKind::Outdated => "the difference from the pool's template".to_owned(),
    }
}

impl Request {
    /// What the annotation of a Machine asks for: `Replace`, or `Replace: because`.
    ///
    /// # Errors
    /// With a sentence, where the word is no action.
    pub fn of_machine(machine: &Machine) -> Result<Option<Self>, String> {
        let annotations = machine.metadata.annotations.as_ref();
        let Some(text) = annotations.and_then(|all| all.get(annotation::MAINTENANCE_REQUESTED))
        else {
            return Ok(None);
        };
        let (word, why) = match text.split_once(':') {
            Some((word, why)) => (word.trim(), Some(why.trim())),
            None => (text.trim(), None),
        };
        let action = match word {
            "" | "true" => None,
            word => Some(MaintenanceAction::from_word(word).ok_or_else(|| {
                format!(
                    "metadata.annotations[{}]: Unsupported value: {word:?}: supported values: \
                     Reboot, RebootMigrate, StopStart, Replace",
                    annotation::MAINTENANCE_REQUESTED
                )
            })?),
        };
        Ok(Some(Self {
            id: "request/machine".to_owned(),
            source: MACHINE,
            code: None,
            action,
            why: why.filter(|why| !why.is_empty()).map(str::to_owned),
            not_before: None,
            deadline: None,
        }))
    }

    /// What a MachineMaintenance that a person made asks for. Ours asks for nothing by itself, and
    /// one that is done or called off, whoever did it, asks no more until a person sets
    /// `maintenancescheduled` back to false.
    pub fn of_object(maintenance: &MachineMaintenance) -> Option<Self> {
        let annotations = maintenance.metadata.annotations.as_ref();
        let is_ours = annotations.is_some_and(|all| all.contains_key(annotation::MAINTENANCE_OURS));
        // Where we committed to it, there is a record of that.
        let is_ours_to_do = maintenance
            .status
            .as_ref()
            .is_some_and(|status| status.work.is_some() || !status.history.is_empty());
        let was_done_by_the_original = maintenance.spec.maintenancescheduled && !is_ours_to_do;
        let is_answered = maintenance.status.as_ref().is_some_and(|status| {
            let was_begun = status.work.is_some();
            let is_asked_again = was_begun && !maintenance.spec.maintenancescheduled;
            let has_failed = status.phase == Some(MaintenancePhase::Failed);
            status.phase.is_some_and(MaintenancePhase::is_over) && !has_failed && !is_asked_again
        });
        let is_leaving = maintenance.metadata.deletion_timestamp.is_some();
        if is_ours || was_done_by_the_original || is_answered || is_leaving {
            return None;
        }
        let spec = &maintenance.spec;
        let event = spec.eventid.clone().filter(|id| !id.is_empty());
        let is_for_event = event.is_some();
        Some(Self {
            id: event.unwrap_or_else(|| "request/object".to_owned()),
            source: OBJECT,
            code: spec.eventcode.clone().filter(|code| !code.is_empty()),
            action: spec.action,
            why: spec.reason.clone(),
            // Of an event it is when the provider acts, which is the end of the time that is left.
            not_before: spec.notbefore.as_ref().map(|time| time.0).filter(|_| !is_for_event),
            deadline: spec
                .deadline
                .as_ref()
                .or_else(|| spec.notbefore.as_ref().filter(|_| is_for_event))
                .map(|time| time.0),
        })
    }

    fn as_reason(&self, known: &[MaintenanceReason], now: Timestamp) -> MaintenanceReason {
        MaintenanceReason {
            action: self.action,
            code: self.code.clone().unwrap_or_else(|| REQUESTED.to_owned()),
            description: self.why.clone(),
            id: self.id.clone(),
            kind: MaintenanceReasonKind::Request,
            missing_since: None,
            not_after: self.deadline.map(to_seconds),
            not_before: self.not_before.map(to_seconds),
            not_before_deadline: None,
            since: since(known, &self.id, now),
            sources: vec![self.source.to_owned()],
            state: MaintenanceReasonState::Active,
        }
    }
}

fn impaired(facts: &Facts<'_>, policy: &Policy, now: Timestamp) -> Option<MaintenanceReason> {
    let action = match policy.on_impaired {
        OnImpaired::Report => return None,
        OnImpaired::Reboot => MaintenanceAction::Reboot,
        OnImpaired::StopStart => MaintenanceAction::StopStart,
        OnImpaired::Replace => MaintenanceAction::Replace,
    };
    let (failing_since, checks) = facts.impaired.as_ref()?;
    let is_lasting = failing_since.checked_add(policy.impaired_grace).is_ok_and(|end| end <= now);
    // The launch of an instance and a start of it are told apart by when the checks began to fail.
    let id = format!("drift/{}/{failing_since}", Class::Impaired.as_str());
    is_lasting.then(|| MaintenanceReason {
        action: Some(action),
        code: Class::Impaired.as_str().to_owned(),
        description: Some(format!("the provider's checks fail: {checks}")),
        kind: MaintenanceReasonKind::Drift,
        missing_since: None,
        not_after: None,
        not_before: None,
        not_before_deadline: None,
        since: since(facts.known, &id, now),
        sources: vec![Source::Api.as_str().to_owned()],
        state: MaintenanceReasonState::Active,
        id,
    })
}

fn outdated(facts: &Facts<'_>, policy: &Policy, now: Timestamp) -> Option<MaintenanceReason> {
    if policy.outdated == OutdatedMachines::Report || facts.differences.is_empty() {
        return None;
    }
    let id = "outdated".to_owned();
    Some(MaintenanceReason {
        action: Some(MaintenanceAction::Replace),
        code: OUTDATED.to_owned(),
        description: Some(format!(
            "differs from its pool's template in {}",
            facts.differences.join(", ")
        )),
        kind: MaintenanceReasonKind::Outdated,
        missing_since: None,
        not_after: None,
        not_before: None,
        not_before_deadline: None,
        since: since(facts.known, &id, now),
        sources: vec![MACHINE.to_owned()],
        state: MaintenanceReasonState::Active,
        id,
    })
}

fn since(
    known: &[MaintenanceReason],
    id: &str,
    now: Timestamp,
) -> k8s_openapi::apimachinery::pkg::apis::meta::v1::Time {
    known
        .iter()
        .find(|reason| reason.id == id)
        .map_or_else(|| to_seconds(now), |reason| reason.since.clone())
}
