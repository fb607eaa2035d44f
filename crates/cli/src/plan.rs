//! Which machines are maintained when, why then, and what blocks?
//!
//! The judgement is core's, as the operator's is. Here it is read for (`snapshot`, `fleet`), and shown:
//! `view` for programs, `table` and `timeline` for people. All of these are pure.

mod table;
#[cfg(test)]
mod tests;
mod timeline;
mod view;
mod what_if;

use std::io::Write;

use anyhow::Context;
use jiff::Timestamp;

use crate::{
    args::{Output, PlanArgs},
    fleet::{Picture, with_plan},
    screen,
    snapshot::{self, Extent, Snapshot},
    zone::Zone,
};

pub async fn run(args: PlanArgs) -> anyhow::Result<()> {
    let zone = Zone::choose(args.zone.zone.as_deref())?;
    let now = now(&zone, args.at.as_deref())?;
    let wishes = what_if::read(&args.what_if, &zone)?;
    let mut snapshot = snapshot::read(&args.fleet, Extent::Whole).await?;
    snapshot.require_machines()?;
    let policies = snapshot.try_policies(&args.policy)?;
    let trial = Trial { policies, events: args.what_if.clone() };
    let supposed = what_if::sightings(&wishes, &snapshot)?;
    let layout =
        Layout { zone: &zone, width: screen::width(), is_wide: args.output == Output::Wide };
    let text = with_plan(&snapshot, &supposed, now, |picture| {
        text(picture, &snapshot, &trial, args.output, &layout)
    })?;
    screen::ignore_closed_pipe(anstream::stdout().write_all(text.as_bytes()))
}

/// The instant that is judged: the one that is asked for, else the present, to the second as the
/// operator keeps it.
pub fn now(zone: &Zone, at: Option<&str>) -> anyhow::Result<Timestamp> {
    match at {
        Some(text) => zone.read("--at", text),
        None => Ok(machinist_api::condition::to_seconds(Timestamp::now()).0),
    }
}

/// What is only tried.
#[derive(Clone, Debug, Default)]
struct Trial {
    /// The names of the policies that come from files.
    policies: Vec<String>,
    /// The supposed events, as they were typed.
    events: Vec<String>,
}

/// For whom it is laid out.
#[derive(Clone, Copy, Debug)]
struct Layout<'a> {
    zone: &'a Zone,
    /// None where the output goes to a file or another program.
    width: Option<usize>,
    is_wide: bool,
}

fn text(
    picture: &Picture<'_>,
    snapshot: &Snapshot,
    trial: &Trial,
    output: Output,
    layout: &Layout<'_>,
) -> anyhow::Result<String> {
    let view = || view::view(picture, trial, layout.zone);
    Ok(match output {
        Output::Json => serde_json::to_string_pretty(&view())? + "\n",
        Output::Yaml => serde_saphyr::to_string(&view()).context("cannot write YAML")?,
        Output::Name => {
            let entries = picture.plan.entries.iter();
            entries.map(|one| format!("machine.machine.openshift.io/{}\n", one.machine)).collect()
        }
        Output::Table | Output::Wide => {
            let mut text = table::heading(picture.plan, trial, layout);
            if picture.plan.entries.is_empty() {
                text.push_str(&table::nothing(snapshot, layout));
            } else {
                text.push_str(&table::table(picture, layout));
                text.push('\n');
                text.push_str(&table::summary(picture.plan, layout));
                let timeline = timeline::timeline(picture.plan, picture.policies, layout);
                if !timeline.is_empty() {
                    text.push('\n');
                    text.push_str(&timeline);
                }
            }
            text.push_str(&table::notes(picture.plan, layout));
            text
        }
    })
}
