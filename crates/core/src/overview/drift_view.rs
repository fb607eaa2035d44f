//! What happened behind the cluster's back and is not over, as it is shown?

use jiff::Timestamp;
use machinist_api::{Machine, MachineMaintenance};
use schemars::JsonSchema;
use serde::Serialize;

use super::{
    drift::{Evidence, Incident, incidents},
    instant::Instant,
    objects::Objects,
};

/// How many are shown.
const SHOWN_MAX: usize = 500;

/// What is not over, the newest first.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DriftList {
    pub version: String,
    #[schemars(with = "Instant")]
    pub as_of: Timestamp,
    pub entries: Vec<DriftEntry>,
    pub total: usize,
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
    /// All of it in one sentence.
    pub sentence: String,
}

pub fn drift(objects: &Objects<'_>, version: String, as_of: Timestamp) -> DriftList {
    let found = incidents(&Evidence {
        machines: &objects.machines,
        maintenances: &objects.maintenances,
        events: &[],
    });
    let total = found.len();
    let entries = found.into_iter().take(SHOWN_MAX).map(entry).collect();
    DriftList { version, as_of, entries, total }
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
        sentence: incident.sentence,
    }
}
