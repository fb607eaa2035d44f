//! How does a person approve what waits for them?
//!
//! A maintenance is approved on its MachineMaintenance, what the disruption gate holds on the Machine or
//! its pool. Where nothing waits for a person, nothing is written, and that is said.

#[cfg(test)]
mod tests;

use std::io::Write as _;

use jiff::{SignedDuration, Timestamp};
use machinist_core::overview::wish::{
    Change, Write,
    approve::{self, How},
};

use crate::{
    annotate::{self, Effect},
    args::{ApproveArgs, FleetArgs},
    done::Done,
    failure::Hinted,
    fleet::{Picture, name_of, with_plan},
    kubeconfig::{Access, connect},
    plan, screen,
    snapshot::{self, Extent},
    target::{Kind, Target},
    zone::Zone,
};

pub async fn run(args: ApproveArgs) -> anyhow::Result<()> {
    let target = Target::read(&args.what)?;
    let zone = Zone::choose(args.zone.zone.as_deref())?;
    let now = plan::now(&zone, None)?;
    let how = How { any_reason: args.any_reason, until: until(&args.r#for, now)? };
    let fleet = FleetArgs {
        cluster: args.cluster.clone(),
        namespace: args.namespace.clone(),
        filename: Vec::new(),
    };
    let snapshot = snapshot::read(&fleet, Extent::Whole).await?;
    snapshot.require_machines()?;
    let approval = with_plan(&snapshot, &[], now, |picture| decide(&target, how, picture, &zone))?;
    let effect = Effect::of(args.dry_run);
    if let Some(write) = &approval.write {
        send(write, &args, effect).await?;
    }
    let text = Done::of(&approval, effect, Vec::new()).text(args.output, &zone, now)?;
    screen::ignore_closed_pipe(std::io::stdout().write_all(text.as_bytes()))
}

fn until(text: &str, now: Timestamp) -> anyhow::Result<Timestamp> {
    let duration = text.parse::<SignedDuration>().ok().filter(SignedDuration::is_positive);
    duration.and_then(|duration| now.checked_add(duration).ok()).ok_or_else(|| {
        let what = format!("--for: Invalid value: {text:?}: not a duration");
        Hinted::new(what, "durations look like 30m, 2h or 1h30m").into()
    })
}

fn decide(target: &Target, how: How, picture: &Picture<'_>, zone: &Zone) -> anyhow::Result<Change> {
    let change = match target.kind {
        Kind::Machine => approve::machine(&target.name, how, picture),
        Kind::Pool => approve::pool(&target.name, how, picture),
        Kind::Node => {
            let found = picture.sights.values().find(|sight| {
                sight.node.is_some_and(|node| machinist_core::node::name(node) == target.name)
            });
            let Some(sight) = found else {
                return Err(Hinted::new(
                    format!("no machine has the node {}", target.name),
                    "`machinist status` lists machines and their nodes",
                )
                .into());
            };
            approve::machine(name_of(sight.machine), how, picture)
        }
    };
    Ok(change.map_err(|refusal| Hinted::refused(refusal, zone, picture.now))?)
}

async fn send(write: &Write, args: &ApproveArgs, effect: Effect) -> anyhow::Result<()> {
    let connection = connect(&args.cluster, Access::Write).await?;
    let sent = annotate::send(&connection.client, write, effect).await;
    sent.map_err(|error| connection.explain(&format!("cannot approve {}", write.name), error))
}
