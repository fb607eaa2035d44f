//! How are the machines, and why does anything wait?
//!
//! `fetch` and `watch` read, `judge` decides what to say (pure), `render` lays it out (pure).

mod fetch;
mod judge;
mod render;
#[cfg(test)]
mod tests;
mod watch;

use std::io::Write;

use anyhow::Context;
use jiff::Timestamp;

use crate::args::{Output, StatusArgs};
use crate::kubeconfig::{Access, Connection, Source, connect};
use crate::screen;
use crate::zone::Zone;

#[cfg(all(test, feature = "up"))]
pub use fetch::Observed;
#[cfg(feature = "up")]
pub use fetch::fetch;
pub use fetch::{Scope, api};
pub use judge::report;
#[cfg(feature = "up")]
pub use judge::{MachineView, Report};

pub async fn run(args: StatusArgs) -> anyhow::Result<()> {
    let connection = connect(&args.cluster, Access::Read).await?;
    say_which_cluster(&connection, args.output);
    let zone = Zone::choose(args.zone.zone.as_deref())?;
    let scope = if args.all_namespaces { Scope::All } else { Scope::Namespace(args.namespace) };
    let form = Form { output: args.output, scope: &scope, zone: &zone };
    if args.watch {
        return watch::run(&connection, form).await;
    }
    let observed = fetch::fetch(&connection.client, &scope)
        .await
        .map_err(|error| connection.explain("cannot list machines", error))?;
    let text = text(&report(&observed), form, render::Notation::Indented)?;
    screen::ignore_closed_pipe(anstream::stdout().write_all(text.as_bytes()))
}

/// How it is printed.
#[derive(Clone, Copy)]
struct Form<'a> {
    output: Output,
    scope: &'a Scope,
    zone: &'a Zone,
}

/// A cluster that nobody named is worth a word; standard output stays for the answer.
pub fn say_which_cluster(connection: &Connection, output: Output) {
    let is_for_people = matches!(output, Output::Table | Output::Wide);
    if let Source::Up(path) = &connection.source
        && is_for_people
    {
        eprintln!("cluster of {} ({})", connection.source, path.display());
    }
}

fn text(
    report: &judge::Report,
    form: Form<'_>,
    notation: render::Notation,
) -> anyhow::Result<String> {
    Ok(match form.output {
        Output::Json => match notation {
            render::Notation::Indented => serde_json::to_string_pretty(report)? + "\n",
            render::Notation::OneLine => serde_json::to_string(report)? + "\n",
        },
        Output::Yaml => {
            let yaml = serde_saphyr::to_string(report).context("cannot write YAML")?;
            match notation {
                render::Notation::Indented => yaml,
                render::Notation::OneLine => format!("---\n{yaml}"),
            }
        }
        Output::Name => render::names(report),
        Output::Table | Output::Wide => {
            let layout = render::Layout {
                is_wide: form.output == Output::Wide,
                with_namespaces: *form.scope == Scope::All,
                terminal_width: screen::width(),
                zone: form.zone,
                now: Timestamp::now(),
            };
            render::table(report, &layout)
        }
    })
}
