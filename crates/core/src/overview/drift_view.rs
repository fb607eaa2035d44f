//! What happened behind the cluster's back, as it is shown?

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use machinist_api::{Machine, MachineMaintenance};
use schemars::JsonSchema;
use serde::Serialize;

use super::{
    drift::{Deed, Evidence, Incident, incidents},
    instant::Instant,
    objects::Objects,
};

/// How many are shown.
const SHOWN_MAX: usize = 500;

/// What is not over, and what is and was told of, the newest first.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DriftList {
    pub version: String,
    #[schemars(with = "Instant")]
    pub as_of: Timestamp,
    /// What is not over.
    pub entries: Vec<DriftEntry>,
    pub total: usize,
    /// What is over, as far as the API server still has the Events that tell of it.
    pub past: Vec<DriftEntry>,
    /// What of the past is missing, and why.
    pub hidden: Option<String>,
}

/// One thing that happened to one machine.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DriftEntry {
    pub machine: String,
    pub pool: Option<String>,
    pub zone: Option<String>,
    pub instance: Option<String>,
    pub class: String,
    /// For a sentence that begins with the instance.
    pub words: String,
    #[schemars(with = "Instant")]
    pub since: Timestamp,
    /// The provider's own words for it.
    pub cause: Option<String>,
    /// What follows, or why nothing does.
    pub response: String,
    pub attempts: u32,
    #[schemars(with = "Option<Instant>")]
    pub acted_at: Option<Timestamp>,
    /// Why the last attempt failed.
    pub failure: Option<String>,
    /// Whether it goes on only when a person does something.
    pub needs_a_person: bool,
    /// What was done, and what came of it, oldest first.
    pub done: Vec<DeedView>,
    pub is_over: bool,
    /// When it was over, where that is known.
    #[schemars(with = "Option<Instant>")]
    pub over_at: Option<Timestamp>,
    /// All of it in one sentence.
    pub sentence: String,
}

/// One thing that was done.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DeedView {
    #[schemars(with = "Instant")]
    pub at: Timestamp,
    pub words: String,
}

/// Puts together what the objects say of the present and the Events of the past.
pub fn drift(objects: &Objects<'_>, events: &[&Event], as_of: Timestamp) -> DriftList {
    let found = incidents(&Evidence {
        machines: &objects.machines,
        maintenances: &objects.maintenances,
        events,
    });
    let (past, open): (Vec<Incident>, Vec<Incident>) =
        found.into_iter().partition(|incident| incident.is_over);
    DriftList {
        version: String::new(),
        as_of,
        total: open.len(),
        entries: open.into_iter().take(SHOWN_MAX).map(entry).collect(),
        past: past.into_iter().take(SHOWN_MAX).map(entry).collect(),
        hidden: None,
    }
}

/// What happened to one machine and is not over.
pub fn of_machine(machine: &Machine, record: Option<&MachineMaintenance>) -> Option<DriftEntry> {
    let maintenances: Vec<&MachineMaintenance> = record.into_iter().collect();
    let evidence = Evidence { machines: &[machine], maintenances: &maintenances, events: &[] };
    incidents(&evidence).into_iter().find(|incident| !incident.is_over).map(entry)
}

fn entry(incident: Incident) -> DriftEntry {
    DriftEntry {
        machine: incident.machine,
        pool: incident.pool,
        zone: incident.zone,
        instance: incident.instance,
        class: incident.class.as_str().to_owned(),
        words: incident.words.to_owned(),
        since: incident.since,
        cause: incident.cause,
        response: incident.next.unwrap_or_default(),
        attempts: incident.attempts,
        acted_at: incident.acted_at,
        failure: incident.failure,
        needs_a_person: incident.needs_a_person,
        done: done(incident.done),
        is_over: incident.is_over,
        over_at: incident.over_at,
        sentence: incident.sentence,
    }
}

fn done(deeds: Vec<Deed>) -> Vec<DeedView> {
    deeds.into_iter().map(|deed| DeedView { at: deed.at, words: deed.words }).collect()
}
