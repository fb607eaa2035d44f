//! What did the cloud, the cluster and we do, in one order?
//!
//! The timeline is core's (`overview::timeline`), as the page's is. `follow` goes on where the first answer
//! ends; `lines` lays out. Both are pure, but for the watch itself.

mod follow;
mod lines;
#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, io::Write};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Event, Node};
use machinist_api::{Machine, MachineMaintenance};
use machinist_core::{
    decision::Severity,
    maintenance::Note,
    overview::timeline::{Happening, Source, Sources, timeline},
};
use serde::Serialize;

use crate::{
    args::{EventsArgs, Output, SourceName},
    document::{self, Notation},
    failure::Hinted,
    plan,
    screen::{self, Layout},
    snapshot::{self, Extent, Snapshot},
    target::Target,
    zone::Zone,
};

pub async fn run(args: EventsArgs) -> anyhow::Result<()> {
    let zone = Zone::choose(args.zone.zone.as_deref())?;
    let now = plan::now(&zone, None)?;
    let target = (!args.what.is_empty()).then(|| Target::read(&args.what)).transpose()?;
    let snapshot = snapshot::read(&args.fleet, Extent::Happenings).await?;
    snapshot.require_machines_or_events()?;
    let choice = Choice {
        machines: target.map(|target| target.machines(&snapshot)).transpose()?,
        since: since(&args.since, &zone, now)?,
        sources: args.source.iter().copied().map(source).collect(),
        only_warnings: args.warnings,
    };
    let layout = Layout::detect(&zone, args.output == Output::Wide);
    let report = report(&snapshot, &choice, args.limit, now);
    if args.follow {
        return follow::run(&args, &snapshot, &report, &choice, &layout).await;
    }
    let text = text(&report, args.output, &layout)?;
    screen::ignore_closed_pipe(anstream::stdout().write_all(text.as_bytes()))
}

/// What a person wants to see.
struct Choice {
    /// None for all, and for what belongs to no machine.
    machines: Option<BTreeSet<String>>,
    since: Timestamp,
    sources: Vec<Source>,
    only_warnings: bool,
}

impl Choice {
    fn takes(&self, one: &Happening) -> bool {
        let is_of = |machines: &BTreeSet<String>| {
            one.machine.as_ref().is_some_and(|machine| machines.contains(machine))
        };
        self.machines.as_ref().is_none_or(is_of)
            && one.time >= self.since
            && (self.sources.is_empty() || self.sources.contains(&one.source))
            && (!self.only_warnings || one.severity == Severity::Warning)
    }
}

/// What `-o json` and `-o yaml` print. Names are never changed, only added; times are in UTC.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    as_of: Timestamp,
    /// The oldest first.
    happenings: Vec<Happening>,
    /// Older ones that were left out because of --limit.
    left_out: usize,
    notes: Vec<Note>,
}

fn report(snapshot: &Snapshot, choice: &Choice, limit: u32, now: Timestamp) -> Report {
    let machines: Vec<&Machine> = snapshot.machines.iter().collect();
    let maintenances: Vec<&MachineMaintenance> = snapshot.maintenances.iter().collect();
    let nodes: Vec<&Node> = snapshot.nodes.iter().collect();
    let events: Vec<&Event> = snapshot.events.iter().collect();
    let mut happenings = timeline(&Sources {
        machines: &machines,
        maintenances: &maintenances,
        nodes: &nodes,
        events: &events,
    });
    happenings.retain(|one| choice.takes(one));
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let left_out = happenings.len().saturating_sub(limit);
    happenings.drain(..left_out);
    Report { as_of: now, happenings, left_out, notes: snapshot.notes.clone() }
}

fn text(report: &Report, output: Output, layout: &Layout<'_>) -> anyhow::Result<String> {
    Ok(match output {
        Output::Json => document::json(report, Notation::Indented)?,
        Output::Yaml => document::yaml(report, Notation::Indented)?,
        Output::Name => {
            let machines = report.happenings.iter().filter_map(|one| one.machine.as_deref());
            let machines: BTreeSet<&str> = machines.collect();
            machines.into_iter().map(document::machine_name).collect()
        }
        Output::Table | Output::Wide => {
            let mut text = lines::left_out(report.left_out, layout);
            if report.happenings.is_empty() {
                text.push_str("Nothing happened in that time.\n");
            }
            for one in &report.happenings {
                text.push_str(&lines::happening(one, report.as_of, layout));
            }
            text.push_str(&screen::notes(&report.notes, report.as_of, layout));
            text
        }
    })
}

/// A duration before now, or a time.
fn since(text: &str, zone: &Zone, now: Timestamp) -> anyhow::Result<Timestamp> {
    if let Ok(duration) = text.parse::<SignedDuration>() {
        let is_past = !duration.is_negative();
        return now.checked_sub(duration).ok().filter(|_| is_past).ok_or_else(|| {
            let what = format!("--since: Invalid value: {text:?}: not in the past");
            Hinted::new(what, "give a duration such as 2h, or a time").into()
        });
    }
    zone.read("--since", text)
}

fn source(name: SourceName) -> Source {
    match name {
        SourceName::Cloud => Source::Cloud,
        SourceName::Cluster => Source::Cluster,
        SourceName::Machinist => Source::Machinist,
    }
}
