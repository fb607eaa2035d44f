//! What happened behind the cluster's back, and what is done about it?
//!
//! The judgement is core's (`overview::drift`), as the page's is. Here it is read for and shown.

mod table;
#[cfg(test)]
mod tests;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use machinist_api::{Machine, MachineMaintenance};
use machinist_core::{
    maintenance::Note,
    overview::drift::{Evidence, Incident, incidents},
};
use serde::Serialize;

use crate::{
    args::{DriftArgs, Output},
    document::{self, Notation},
    plan,
    screen::{self, Layout},
    snapshot::{Extent, Snapshot},
    target::Target,
    watching,
    zone::Zone,
};

pub async fn run(args: DriftArgs) -> anyhow::Result<()> {
    let zone = Zone::choose(args.zone.zone.as_deref())?;
    let target = (!args.what.is_empty()).then(|| Target::read(&args.what)).transpose()?;
    let show = |snapshot: &mut Snapshot, notation: Notation| {
        let now = plan::now(&zone, None)?;
        snapshot.require_machines_or_events()?;
        let layout = Layout::detect(&zone, args.output == Output::Wide);
        let report = report(snapshot, target.as_ref(), args.open, now)?;
        text(&report, args.output, notation, &layout)
    };
    watching::show(&args.fleet, Extent::Happenings, args.output, args.watch, show).await
}

/// What `-o json` and `-o yaml` print. Names are never changed, only added; times are in UTC.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    as_of: Timestamp,
    /// What needs a person first, then what is not over, then the rest.
    incidents: Vec<Incident>,
    notes: Vec<Note>,
    #[serde(skip)]
    machines: usize,
}

fn report(
    snapshot: &Snapshot,
    target: Option<&Target>,
    only_open: bool,
    now: Timestamp,
) -> anyhow::Result<Report> {
    let machines: Vec<&Machine> = snapshot.machines.iter().collect();
    let maintenances: Vec<&MachineMaintenance> = snapshot.maintenances.iter().collect();
    let events: Vec<&Event> = snapshot.events.iter().collect();
    let mut incidents =
        incidents(&Evidence { machines: &machines, maintenances: &maintenances, events: &events });
    // An Event outlives the pool and the place of its machine: what is gone is told by name only.
    let chosen = target.map(|target| target.machines(snapshot)).transpose()?;
    incidents.retain(|one| {
        let is_chosen = chosen.as_ref().is_none_or(|chosen| chosen.contains(&one.machine));
        is_chosen && !(only_open && one.is_over)
    });
    let machines = chosen.map_or(machines.len(), |chosen| chosen.len());
    Ok(Report { as_of: now, incidents, notes: snapshot.notes.clone(), machines })
}

fn text(
    report: &Report,
    output: Output,
    notation: Notation,
    layout: &Layout<'_>,
) -> anyhow::Result<String> {
    Ok(match output {
        Output::Json => document::json(report, notation)?,
        Output::Yaml => document::yaml(report, notation)?,
        Output::Name => {
            let mut names: Vec<&str> =
                report.incidents.iter().map(|one| one.machine.as_str()).collect();
            names.sort_unstable();
            names.dedup();
            names.into_iter().map(document::machine_name).collect()
        }
        Output::Table | Output::Wide => {
            let mut text = table::table(report, layout);
            text.push_str(&screen::notes(&report.notes, report.as_of, layout));
            text
        }
    })
}
