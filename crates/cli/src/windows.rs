//! When may work begin next, and when may it not?
//!
//! `list` asks core's calendars, `table` and `ical` show the answer. All of these are pure.

mod ical;
mod list;
mod table;
#[cfg(test)]
mod tests;

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use anyhow::Context;

use crate::{
    args::{CalendarOutput, WindowsArgs},
    failure::Hinted,
    plan, screen,
    snapshot::{self, Extent, Snapshot},
    zone::Zone,
};

pub async fn run(args: WindowsArgs) -> anyhow::Result<()> {
    let zone = Zone::choose(args.zone.zone.as_deref())?;
    let now = plan::now(&zone, None)?;
    let from = args.from.as_deref().map_or(Ok(now), |text| zone.read("--from", text))?;
    let mut snapshot = snapshot::read(&args.fleet, Extent::Calendars).await?;
    let wanted = wanted(&args.policy, &mut snapshot)?;
    let report =
        list::report(&snapshot, &list::Question { from, count: args.count.into(), wanted });
    let text = match args.output {
        CalendarOutput::Table => table::table(&report, &zone, screen::width()),
        CalendarOutput::Wide => table::table(&report, &zone, None),
        CalendarOutput::Name => names(&report),
        CalendarOutput::Json => serde_json::to_string_pretty(&report)? + "\n",
        CalendarOutput::Yaml => serde_saphyr::to_string(&report).context("cannot write YAML")?,
        CalendarOutput::Ical => ical::calendar(&report, now),
    };
    screen::ignore_closed_pipe(anstream::stdout().write_all(text.as_bytes()))
}

/// The policies, as kubectl names them.
fn names(report: &list::Report) -> String {
    let names = report.policies.iter().filter_map(|policy| policy.name.as_deref());
    names.map(|name| format!("maintenancepolicy.machinist.dev/{name}\n")).collect()
}

/// The policies that are asked for, by name; those of files are taken in. None means all.
fn wanted(policies: &[String], snapshot: &mut Snapshot) -> anyhow::Result<Option<Vec<String>>> {
    if policies.is_empty() {
        return Ok(None);
    }
    let mut names = Vec::new();
    for policy in policies {
        if is_file(policy) {
            names.extend(snapshot.try_policies(&[PathBuf::from(policy)])?);
            continue;
        }
        let has_name = |name: &str| name == policy.as_str();
        if !snapshot.policies.iter().any(|one| one.metadata.name.as_deref().is_some_and(has_name)) {
            let known: Vec<&str> =
                snapshot.policies.iter().filter_map(|one| one.metadata.name.as_deref()).collect();
            let hint = match known.as_slice() {
                [] => "there is none; a file is given with its ending, as nights.yaml".to_owned(),
                known => format!("there are: {}", known.join(", ")),
            };
            let what = format!("--policy: there is no MaintenancePolicy {policy}");
            return Err(Hinted::new(what, hint).into());
        }
        names.push(policy.clone());
    }
    Ok(Some(names))
}

/// A policy's name has neither a folder nor the ending of a file.
fn is_file(text: &str) -> bool {
    let path = Path::new(text);
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    text == "-" || text.contains('/') || ["yaml", "yml", "json"].contains(&ending)
}
