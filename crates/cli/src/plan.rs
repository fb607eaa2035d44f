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

use jiff::Timestamp;

use crate::{
    args::{Output, PlanArgs},
    document::{self, Notation},
    fleet::{Picture, with_plan},
    screen::{self, Layout},
    snapshot::{Extent, Snapshot},
    watching,
    zone::Zone,
};

pub async fn run(args: PlanArgs) -> anyhow::Result<()> {
    let zone = Zone::choose(args.zone.zone.as_deref())?;
    let wishes = what_if::read(&args.what_if, &zone)?;
    let show = |snapshot: &mut Snapshot, notation: Notation| {
        let now = now(&zone, args.at.as_deref())?;
        snapshot.require_machines()?;
        let policies = snapshot.try_policies(&args.policy)?;
        let trial = Trial { policies, events: args.what_if.clone() };
        let supposed = what_if::sightings(&wishes, snapshot)?;
        let layout = Layout::detect(&zone, args.output == Output::Wide);
        with_plan(snapshot, &supposed, now, |picture| {
            text(picture, snapshot, &trial, Form { output: args.output, notation }, &layout)
        })
    };
    watching::show(&args.fleet, Extent::Whole, args.output, args.watch, show).await
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

/// What is printed, and in how much room.
#[derive(Clone, Copy, Debug)]
struct Form {
    output: Output,
    notation: Notation,
}

fn text(
    picture: &Picture<'_>,
    snapshot: &Snapshot,
    trial: &Trial,
    form: Form,
    layout: &Layout<'_>,
) -> anyhow::Result<String> {
    let view = || view::view(picture, trial, layout.zone);
    Ok(match form.output {
        Output::Json => document::json(&view(), form.notation)?,
        Output::Yaml => document::yaml(&view(), form.notation)?,
        Output::Name => {
            let entries = picture.plan.entries.iter();
            entries.map(|one| document::machine_name(&one.machine)).collect()
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
            text.push_str(&screen::notes(&picture.plan.notes, picture.plan.as_of, layout));
            text
        }
    })
}
