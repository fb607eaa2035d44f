//! What is the story of one machine: how it is, what it waits for and why, and what would help?
//!
//! What is worth saying of a machine core chooses, for the page too; `pool` says it of a pool, `render` lays
//! it out. All of these are pure.

mod pool;
mod render;
#[cfg(test)]
mod tests;

use std::io::Write;

use machinist_core::{
    node,
    overview::story::{self, Story},
};
use serde::Serialize;

use crate::{
    args::{Document, ExplainArgs},
    document::{self, Notation, machine_name},
    failure::Hinted,
    fleet::{Picture, name_of, with_plan},
    plan, screen,
    snapshot::{self, Extent, Snapshot},
    target::{Kind, Target},
    zone::Zone,
};

pub async fn run(args: ExplainArgs) -> anyhow::Result<()> {
    let target = Target::read(&args.what)?;
    let zone = Zone::choose(args.zone.zone.as_deref())?;
    let now = plan::now(&zone, args.at.as_deref())?;
    let snapshot = snapshot::read(&args.fleet, Extent::Whole).await?;
    snapshot.require_machines()?;
    let text = with_plan(&snapshot, &[], now, |picture| {
        text(&target, &snapshot, picture, args.output, &zone)
    })?;
    screen::ignore_closed_pipe(anstream::stdout().write_all(text.as_bytes()))
}

fn text(
    target: &Target,
    snapshot: &Snapshot,
    picture: &Picture<'_>,
    output: Document,
    zone: &Zone,
) -> anyhow::Result<String> {
    let width = match output {
        Document::Wide => usize::MAX,
        _ => screen::width().unwrap_or(80),
    };
    let layout = render::Layout { zone, width, now: picture.now };
    match target.kind {
        Kind::Machine => {
            let story = machine(&target.name, snapshot, picture)?;
            document(&story, output, &machine_name(&target.name), || {
                render::machine(&story, &layout)
            })
        }
        Kind::Node => {
            let name = machine_of_node(&target.name, snapshot, picture)?;
            let story = machine(&name, snapshot, picture)?;
            document(&story, output, &machine_name(&name), || render::machine(&story, &layout))
        }
        Kind::Pool => {
            let found =
                snapshot.sets.iter().find(|set| set.metadata.name.as_deref() == Some(&target.name));
            let set = found.ok_or_else(|| not_found("machineset", &target.name, snapshot))?;
            let story = pool::story(set, picture);
            let name = format!("machineset.machine.openshift.io/{}\n", target.name);
            document(&story, output, &name, || render::pool(&story, &layout))
        }
    }
}

fn document<T: Serialize>(
    story: &T,
    output: Document,
    name: &str,
    text: impl FnOnce() -> String,
) -> anyhow::Result<String> {
    Ok(match output {
        Document::Text | Document::Wide => text(),
        Document::Json => document::json(story, Notation::Indented)?,
        Document::Yaml => document::yaml(story, Notation::Indented)?,
        Document::Name => name.to_owned(),
    })
}

fn machine<'a>(name: &str, snapshot: &'a Snapshot, picture: &Picture<'a>) -> anyhow::Result<Story> {
    let sight = picture.sights.get(name).ok_or_else(|| not_found("machine", name, snapshot))?;
    Ok(story::story(sight, picture))
}

fn machine_of_node(
    name: &str,
    snapshot: &Snapshot,
    picture: &Picture<'_>,
) -> anyhow::Result<String> {
    let linked = |node: Option<&k8s_openapi::api::core::v1::Node>| {
        node.is_some_and(|node| node::name(node) == name)
    };
    if let Some(sight) = picture.sights.values().find(|sight| linked(sight.node)) {
        return Ok(name_of(sight.machine).to_owned());
    }
    let is_there = snapshot.nodes.iter().any(|node| node::name(node) == name);
    let (what, hint) = if is_there {
        (
            format!("no Machine of namespace {} is linked to node {name}", snapshot.namespace),
            "a node is linked when its providerID, or one of its addresses, is that of a Machine",
        )
    } else {
        (format!("there is no node {name}"), "`kubectl get nodes` lists them")
    };
    Err(Hinted::new(what, hint).into())
}

fn not_found(kind: &str, name: &str, snapshot: &Snapshot) -> anyhow::Error {
    let what = format!("there is no {kind} {name} in namespace {}", snapshot.namespace);
    Hinted::new(what, "`machinist status` lists them; choose a namespace with -n").into()
}
