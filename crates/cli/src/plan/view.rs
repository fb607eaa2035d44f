//! What do programs get to read? Names are never changed, only added; times are in UTC.

use jiff::Timestamp;
use machinist_api::MaintenanceWait;
use machinist_core::maintenance::{Note, PlanEntry};
use serde::Serialize;

use super::Trial;
use crate::{fleet::Picture, zone::Zone};

/// What `-o json` and `-o yaml` print.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PlanView<'a> {
    /// The instant for which it holds.
    as_of: Timestamp,
    /// The zone of the person who asked. Times are in UTC all the same.
    zone: &'a str,
    /// What was only tried.
    trial: TrialView<'a>,
    /// What is under way, then what is planned by time, then what is blocked by deadline.
    entries: Vec<EntryView<'a>>,
    /// What there is to say besides: warnings first.
    notes: &'a [Note],
}

#[derive(Debug, Serialize)]
struct TrialView<'a> {
    policies: &'a [String],
    events: &'a [String],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct EntryView<'a> {
    #[serde(flatten)]
    entry: &'a PlanEntry,
    /// What it waits for that only the operator sees, as it recorded it.
    held_up_by: &'a [MaintenanceWait],
    /// All of it in one sentence, as in the conditions of its MachineMaintenance.
    sentence: String,
}

pub(super) fn view<'a>(picture: &Picture<'a>, trial: &'a Trial, zone: &'a Zone) -> PlanView<'a> {
    let (plan, held_up) = (picture.plan, picture.held_up);
    PlanView {
        as_of: plan.as_of,
        zone: zone.name(),
        trial: TrialView { policies: &trial.policies, events: &trial.events },
        entries: plan
            .entries
            .iter()
            .map(|entry| EntryView {
                held_up_by: held_up.get(entry.machine.as_str()).copied().unwrap_or_default(),
                sentence: entry.sentence(),
                entry,
            })
            .collect(),
        notes: &plan.notes,
    }
}
