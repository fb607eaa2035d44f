//! What is there to say of a machine's maintenance: why, what and why that, when and why then, what it
//! waits for, and what happened so far?

use jiff::Timestamp;
use machinist_api::{MaintenanceReasonKind, MaintenanceReasonState, TimelineEntry};
use serde::Serialize;

use super::policy_of;
use crate::{
    maintenance::{PlanEntry, plan::duration_in_words, reason, records},
    overview::picture::{Picture, Sight, name_of},
};

/// The maintenance of one machine.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MaintenanceStory {
    /// How far it is; none while there is no record of it.
    pub phase: Option<String>,
    /// The last sentence of its record.
    pub message: Option<String>,
    pub policy: Option<String>,
    pub reasons: Vec<ReasonStory>,
    /// None where it is over.
    pub plan: Option<PlanEntry>,
    /// What keeps it from beginning, or from going on.
    pub waits: Vec<WaitStory>,
    /// Pods and budgets that the drain of its node would meet, besides those that it waits for.
    pub drain: Vec<String>,
    pub timeline: Vec<TimelineEntry>,
    /// Earlier ones, newest first, a sentence each.
    pub history: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReasonStory {
    pub title: String,
    pub description: Option<String>,
    pub state: MaintenanceReasonState,
    pub since: Timestamp,
    pub sources: Vec<String>,
    /// When the provider acts.
    pub not_before: Option<Timestamp>,
    /// Up to when the provider lets it be moved.
    pub not_before_deadline: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WaitStory {
    pub reason: String,
    pub message: String,
}

pub fn story(sight: &Sight<'_>, picture: &Picture<'_>) -> Option<MaintenanceStory> {
    let name = name_of(sight.machine);
    let record = picture.records.get(name).copied();
    let record = record.filter(|record| records::is_about(record, sight.machine));
    let entry = picture.plan.entry(name);
    let status = record.and_then(|record| record.status.as_ref());
    if entry.is_none() && status.is_none() {
        return None;
    }
    let one = picture.gathered.fleet.machines.iter().find(|one| one.name == name);
    let mut drain = one.map_or_else(Vec::new, |one| one.impossible_budgets.clone());
    drain.extend(
        one.iter()
            .flat_map(|one| &one.do_not_disrupt)
            .map(|pod| format!("pod {pod} is not to be disrupted")),
    );
    let waits = waits(name, picture);
    Some(MaintenanceStory {
        phase: status.and_then(|status| status.phase).map(|phase| phase.as_str().to_owned()),
        message: status.and_then(|status| status.message.clone()),
        policy: policy_of(sight.machine, picture),
        reasons: reasons(name, picture),
        drain: drain
            .into_iter()
            .filter(|one| !waits.iter().any(|wait| wait.message.contains(one)))
            .collect(),
        waits,
        plan: entry.cloned(),
        timeline: status.map_or_else(Vec::new, |status| status.timeline.clone()),
        history: status
            .map_or_else(Vec::new, |status| status.history.iter().map(outcome_in_words).collect()),
    })
}

fn reasons(name: &str, picture: &Picture<'_>) -> Vec<ReasonStory> {
    let merged = picture.gathered.reasons.get(name);
    let reasons = merged.map(|merged| merged.reasons.as_slice()).unwrap_or_default();
    reasons
        .iter()
        .map(|reason| ReasonStory {
            title: reason::title(reason),
            // A person's own words are part of the title.
            description: reason
                .description
                .clone()
                .filter(|_| reason.kind != MaintenanceReasonKind::Request),
            state: reason.state,
            since: reason.since.0,
            sources: reason.sources.clone(),
            not_before: reason.not_before.as_ref().map(|time| time.0),
            not_before_deadline: reason.not_before_deadline.as_ref().map(|time| time.0),
        })
        .collect()
}

/// Of one that is under way the operator knows what it waits for; of the others the plan does.
fn waits(name: &str, picture: &Picture<'_>) -> Vec<WaitStory> {
    let recorded = picture.held_up.get(name).copied().unwrap_or_default().iter();
    let mut waits: Vec<WaitStory> = recorded
        .map(|wait| WaitStory { reason: wait.reason.clone(), message: wait.message.clone() })
        .collect();
    let entry = picture.plan.entry(name);
    waits.extend(
        entry.iter().flat_map(|entry| &entry.waits_on).map(|wait| WaitStory {
            reason: wait.reason.to_owned(),
            message: wait.message.clone(),
        }),
    );
    waits
}

fn outcome_in_words(entry: &machinist_api::MaintenanceHistoryEntry) -> String {
    let action = entry.action.map_or("nothing", |action| action.as_str());
    let took = entry.started_at.as_ref().map(|started| {
        let took = entry.finished_at.0.duration_since(started.0);
        format!(" after {}", duration_in_words(took))
    });
    let codes = if entry.codes.is_empty() {
        String::new()
    } else {
        format!(" for {}", entry.codes.join(", "))
    };
    format!(
        "{}: {action}{codes}, {}{}",
        entry.finished_at.0,
        entry.outcome.as_str(),
        took.unwrap_or_default()
    )
}
