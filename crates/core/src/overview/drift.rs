//! What happened behind the cluster's back: to which machine, what, when, by which cause, what was done
//! about it and what will be?
//!
//! The present is on the Machines: the record in `status.providerStatus.drift` and the conditions. The past
//! is in the Events, as far as the API server still has them. Both are put together here.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use machinist_api::{
    Condition, Machine, MachineMaintenance, MaintenanceReasonKind, MaintenanceReasonState,
    condition::{self, ConditionStatus},
    names::{condition_type, event, label},
};
use serde::Serialize;

use super::told::Told;
use crate::{
    drift::{
        Class,
        respond::{self, Kind},
    },
    machine::observed::{Identity, is_deleting, provider_status},
    maintenance::records,
};

/// What there is to judge from.
#[derive(Clone, Copy, Debug, Default)]
pub struct Evidence<'a> {
    pub machines: &'a [&'a Machine],
    pub maintenances: &'a [&'a MachineMaintenance],
    pub events: &'a [&'a Event],
}

/// One thing that happened to one machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Incident {
    pub namespace: String,
    pub machine: String,
    pub machine_uid: String,
    /// The pool that would make another machine.
    pub pool: Option<String>,
    pub zone: Option<String>,
    pub instance: Option<String>,
    /// The word of conditions, events and metrics.
    #[serde(serialize_with = "as_word")]
    pub class: Class,
    /// What happened, for a sentence that begins with the instance.
    pub words: &'static str,
    /// When it was noticed.
    pub since: Timestamp,
    /// How often within ten minutes.
    pub times: u32,
    /// The provider's own words for it.
    pub cause: Option<String>,
    pub is_over: bool,
    /// When it was over, where that is known.
    pub over_at: Option<Timestamp>,
    /// What was done, and what came of it, oldest first.
    pub done: Vec<Deed>,
    /// What follows, or why nothing does; none where it is over.
    pub next: Option<String>,
    /// How often the instance was asked to start, and when last.
    pub attempts: u32,
    pub acted_at: Option<Timestamp>,
    /// Why the last attempt failed.
    pub failure: Option<String>,
    /// Whether it goes on only when a person does something.
    pub needs_a_person: bool,
    /// All of it in one sentence.
    pub sentence: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Deed {
    pub at: Timestamp,
    pub reason: String,
    pub words: String,
}

/// Everything that happened: what needs a person first, then what is not over, then the rest; the newest
/// first in each part.
pub fn incidents(evidence: &Evidence<'_>) -> Vec<Incident> {
    let mut past: BTreeMap<Key, Vec<Incident>> = BTreeMap::new();
    for (key, told) in by_machine(evidence.events) {
        past.insert(key, told_of(&told));
    }
    let records = records::counting(evidence.maintenances.iter().copied());
    let mut incidents = Vec::new();
    for machine in evidence.machines {
        let key = Key::of(machine);
        let mut known = past.remove(&key).unwrap_or_default();
        let present = present(machine, &records);
        settle(&mut known, present, machine);
        incidents.extend(known);
    }
    // Whatever was wrong with a machine that is gone is over.
    for mut gone in past.into_values() {
        gone.iter_mut().for_each(|incident| incident.close(None));
        incidents.extend(gone);
    }
    for incident in &mut incidents {
        incident.sentence = incident.in_one_sentence();
    }
    incidents.sort_by(|left, right| {
        let order =
            |one: &Incident| (one.is_over, !one.needs_a_person, std::cmp::Reverse(one.since));
        let name = |one: &Incident| (one.namespace.clone(), one.machine.clone(), one.class);
        order(left).cmp(&order(right)).then_with(|| name(left).cmp(&name(right)))
    });
    incidents
}

/// Which Machine is meant: names are used again, uids are not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    namespace: String,
    name: String,
    uid: String,
}

impl Key {
    fn of(machine: &Machine) -> Self {
        let metadata = &machine.metadata;
        Self {
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
        }
    }
}

fn by_machine<'a>(events: &[&'a Event]) -> BTreeMap<Key, Vec<Told<'a>>> {
    let mut groups: BTreeMap<Key, Vec<Told<'_>>> = BTreeMap::new();
    for told in events.iter().filter_map(|event| Told::of(event)) {
        if told.kind != "Machine" || !told.is_ours {
            continue;
        }
        let key = Key {
            namespace: told.namespace.to_owned(),
            name: told.name.clone().into_owned(),
            uid: told.uid.to_owned(),
        };
        groups.entry(key).or_default().push(told);
    }
    for group in groups.values_mut() {
        // What happened comes before what was done about it in the same second.
        group.sort_by_key(|told| {
            (told.first, Class::from_reason(told.reason).is_none(), told.reason, told.message)
        });
    }
    groups
}

/// The story that one machine's Events tell.
fn told_of(told: &[Told<'_>]) -> Vec<Incident> {
    let mut incidents: Vec<Incident> = Vec::new();
    for one in told {
        let class = match one.reason {
            event::SPOT_NOTICE => Some(Class::SpotInterruption),
            reason => Class::from_reason(reason),
        };
        let open = incidents.iter_mut().rev().find(|incident| !incident.is_over);
        match (class, open) {
            (Some(class), Some(open)) if is_same(open.class, class) => open.becomes(class, one),
            (Some(class), open) => {
                // What happens next to a stopped instance ends the stop, whatever it is.
                if let Some(open) = open.filter(|open| ends(class, open.class)) {
                    open.done(one);
                    open.close(Some(one.first));
                }
                incidents.push(Incident::told(class, one));
            }
            (None, Some(open)) => open.take(one),
            // The Event that named it is forgotten already.
            (None, None) => {}
        }
    }
    incidents
}

/// Whether two classes are one happening of which more became known.
fn is_same(known: Class, class: Class) -> bool {
    known == class
        || known.is_stop() && class.is_stop()
        || (known.is_termination() || known == Class::Vanished) && class.is_termination()
}

/// Whether something of this class is the end of what was open.
fn ends(class: Class, open: Class) -> bool {
    open.is_stop() && (class == Class::Started || class.is_termination())
        || open == Class::Impaired && class.is_termination()
}

/// What the Machine itself says of the present.
struct Present {
    class: Class,
    since: Timestamp,
    cause: Option<String>,
    next: Option<String>,
    attempts: u32,
    acted_at: Option<Timestamp>,
    failure: Option<String>,
    needs_a_person: bool,
}

fn present(machine: &Machine, records: &BTreeMap<&str, &MachineMaintenance>) -> Vec<Present> {
    let conditions = machine.status.as_ref().map(|status| status.conditions.as_slice());
    let conditions = conditions.unwrap_or_default();
    let mut present = Vec::new();
    let planned = |class| maintenance_of(machine, class, records);
    if let Some(record) = provider_status(machine).drift
        && let Some(class) = Class::from_reason(&record.class)
    {
        let running = condition::find(conditions, condition_type::INSTANCE_RUNNING);
        let message = running.and_then(|one| one.message.as_deref()).unwrap_or_default();
        let (words, follows) = respond::halves(message).unwrap_or((message, ""));
        let next = Some(follows.to_owned()).filter(|follows| !follows.is_empty());
        let left_to_people = [Kind::Held, Kind::Report].map(Kind::as_str);
        present.push(Present {
            class,
            since: record.since,
            cause: cause(class, words),
            next: next.or_else(|| planned(class)),
            needs_a_person: left_to_people.contains(&record.response.as_str())
                && !is_deleting(machine),
            attempts: record.attempts,
            acted_at: record.acted_at,
            failure: record.failure,
        });
    }
    if let Some((class, healthy)) = unhealthy(conditions) {
        let message = healthy.message.as_deref().unwrap_or_default();
        present.push(Present {
            class,
            since: healthy.last_transition_time.0,
            cause: cause(class, message),
            next: planned(class).or_else(|| in_general(class).map(str::to_owned)),
            needs_a_person: false,
            attempts: 0,
            acted_at: None,
            failure: None,
        });
    }
    present
}

/// What happened to a machine and is not over.
pub fn open(machine: &Machine) -> Option<Class> {
    let recorded = provider_status(machine).drift;
    let conditions = machine.status.as_ref().map(|status| status.conditions.as_slice());
    let unhealthy = || unhealthy(conditions.unwrap_or_default()).map(|(class, _)| class);
    recorded.and_then(|drift| Class::from_reason(&drift.class)).or_else(unhealthy)
}

/// What the provider says against an instance that runs.
fn unhealthy(conditions: &[Condition]) -> Option<(Class, &Condition)> {
    let healthy = condition::find(conditions, condition_type::INSTANCE_HEALTHY)?;
    let class = Class::from_reason(healthy.reason.as_deref()?)?;
    (healthy.status == ConditionStatus::False).then_some((class, healthy))
}

/// What follows where nothing is planned.
fn in_general(class: Class) -> Option<&'static str> {
    match class {
        Class::Impaired => Some("nothing is done: the provider may recover it by itself"),
        Class::SpotInterruption => Some("the machine is replaced once the provider has taken it"),
        _ => None,
    }
}

/// What its maintenance says, where this is a reason for one.
fn maintenance_of(
    machine: &Machine,
    class: Class,
    records: &BTreeMap<&str, &MachineMaintenance>,
) -> Option<String> {
    let record = records.get(machine.metadata.name.as_deref()?)?;
    let status = record.status.as_ref().filter(|_| records::is_about(record, machine))?;
    let is_reason = status.reasons.iter().any(|reason| {
        reason.kind == MaintenanceReasonKind::Drift
            && reason.state == MaintenanceReasonState::Active
            && reason.code == class.as_str()
    });
    status.message.clone().filter(|_| is_reason)
}

/// Brings together what was told and what is so.
fn settle(known: &mut Vec<Incident>, present: Vec<Present>, machine: &Machine) {
    let is_still = |incident: &Incident| {
        present.iter().any(|now| is_same(incident.class, now.class) && !incident.is_over)
    };
    let still: Vec<bool> = known.iter().map(is_still).collect();
    for (incident, is_still) in known.iter_mut().zip(still) {
        if !is_still {
            incident.close(None);
        }
    }
    for now in present {
        let is_this = |one: &&mut Incident| !one.is_over && is_same(one.class, now.class);
        match known.iter_mut().rev().find(is_this) {
            Some(open) => open.is_now(now),
            None => {
                let mut incident = Incident::new(&Key::of(machine), now.class, now.since);
                incident.is_now(now);
                known.push(incident);
            }
        }
    }
    let pool = pool_of(machine);
    let instance = Identity::of(machine).instance_id.map(|id| id.0);
    let labels = machine.metadata.labels.as_ref();
    let zone = labels.and_then(|labels| labels.get(label::ZONE));
    for incident in known {
        incident.pool.clone_from(&pool);
        incident.zone = zone.cloned();
        incident.instance = instance.clone().or_else(|| incident.instance.take());
    }
}

fn pool_of(machine: &Machine) -> Option<String> {
    let owners = machine.metadata.owner_references.iter().flatten();
    let mut controllers = owners.filter(|owner| owner.controller == Some(true));
    controllers.next().map(|owner| owner.name.clone())
}

impl Incident {
    fn new(key: &Key, class: Class, since: Timestamp) -> Self {
        Self {
            namespace: key.namespace.clone(),
            machine: key.name.clone(),
            machine_uid: key.uid.clone(),
            pool: None,
            zone: None,
            instance: None,
            class,
            words: class.in_words(),
            since,
            times: 1,
            cause: None,
            is_over: false,
            over_at: None,
            done: Vec::new(),
            next: None,
            attempts: 0,
            acted_at: None,
            failure: None,
            needs_a_person: false,
            sentence: String::new(),
        }
    }

    /// What happened, why, and what follows or what came of it.
    fn in_one_sentence(&self) -> String {
        let instance = self.instance.as_deref().unwrap_or_default();
        let cause = self.cause.as_ref().map(|cause| format!(" ({cause})")).unwrap_or_default();
        let last = self.done.last().map(|deed| deed.words.as_str());
        let what = format!("instance {instance} {}{cause}", self.words).replace("  ", " ");
        match self.next.as_deref().or(last) {
            Some(follows) => format!("{what}; {follows}"),
            None if matches!(self.class, Class::Started | Class::Rebooted) => {
                format!("{what}; nothing was done")
            }
            None if self.is_over => format!("{what}; it is over"),
            None => what,
        }
    }

    fn told(class: Class, told: &Told<'_>) -> Self {
        let key = Key {
            namespace: told.namespace.to_owned(),
            name: told.name.clone().into_owned(),
            uid: told.uid.to_owned(),
        };
        let mut incident = Self::new(&key, class, told.first);
        incident.becomes(class, told);
        incident.times = told.times;
        // A start or a reboot is over when it is noticed.
        if matches!(class, Class::Started | Class::Rebooted) {
            incident.close(Some(told.last));
        }
        incident
    }

    /// Takes what is told of the same thing again, better known.
    fn becomes(&mut self, class: Class, told: &Told<'_>) {
        let (words, follows) = respond::halves(told.message).unwrap_or((told.message, ""));
        (self.class, self.words) = (class, class.in_words());
        self.instance = instance_in(words).map(str::to_owned).or_else(|| self.instance.take());
        self.cause = cause(class, words).or_else(|| self.cause.take());
        self.next = Some(follows.to_owned()).filter(|follows| !follows.is_empty());
    }

    /// Takes an Event that tells of nothing new: something was done, or it is over.
    fn take(&mut self, told: &Told<'_>) {
        let is_end = match told.reason {
            event::UPDATE => self.class != Class::Impaired,
            event::INSTANCE_HEALTHY => self.class == Class::Impaired,
            event::DELETE => true,
            event::STARTING_INSTANCE
            | event::FAILED_START
            | event::REPLACING
            | event::DISRUPTION_HELD => false,
            _ => return,
        };
        self.done(told);
        if is_end {
            self.close(Some(told.last));
        }
    }

    fn done(&mut self, told: &Told<'_>) {
        let says_both = [event::STARTING_INSTANCE, event::REPLACING, event::DISRUPTION_HELD];
        let halves = respond::halves(told.message).filter(|_| says_both.contains(&told.reason));
        let words = halves.map_or(told.message, |(_, follows)| follows);
        self.done.push(Deed {
            at: told.last,
            reason: told.reason.to_owned(),
            words: words.to_owned(),
        });
    }

    fn is_now(&mut self, now: Present) {
        (self.class, self.words) = (now.class, now.class.in_words());
        self.since = now.since;
        self.cause = now.cause.or_else(|| self.cause.take());
        // What was announced holds until it is done; then nothing is left but to see what comes of it.
        let announced = self.next.take().filter(|_| now.acted_at.is_none());
        self.next = now.next.or(announced);
        // What was announced last is what is still so.
        self.done.pop_if(|deed| Some(&deed.words) == self.next.as_ref());
        self.attempts = now.attempts;
        self.acted_at = now.acted_at;
        self.failure = now.failure;
        self.needs_a_person = now.needs_a_person;
    }

    fn close(&mut self, at: Option<Timestamp>) {
        if !self.is_over {
            self.is_over = true;
            self.over_at = at;
        }
        // What was announced to follow has followed, or nothing has.
        self.next = None;
        self.failure = None;
        self.needs_a_person = false;
    }
}

/// The provider's words at the end of ours: in parentheses, or after a colon.
fn cause(class: Class, words: &str) -> Option<String> {
    let (_, rest) = words.split_once(class.in_words())?;
    let in_parentheses = || rest.strip_prefix(" (")?.strip_suffix(')');
    let words = in_parentheses().or_else(|| rest.strip_prefix(": "))?;
    Some(words.trim().to_owned()).filter(|words| !words.is_empty())
}

/// The id in "instance i-1 was stopped".
fn instance_in(words: &str) -> Option<&str> {
    let (_, rest) = words.split_once("instance ")?;
    rest.split(' ').next().filter(|id| !id.is_empty())
}

fn as_word<S: serde::Serializer>(class: &Class, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(class.as_str())
}
