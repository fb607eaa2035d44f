//! What is wrong with this installation, and what is to be done about it?
//!
//! `look` and its files ask the cluster, core judges (`machinist_core::doctor`), `render` lays it out (pure).
//! Nothing is changed; what is asked besides plain reads are access reviews, which are stored nowhere.

mod look;
mod render;
mod rights;
#[cfg(test)]
mod tests;
mod webhooks;

use std::io::Write;
use std::process::ExitCode;

use anyhow::Context;
use machinist_core::doctor::{self, Level, Report};

use crate::args::{DoctorArgs, Output};
use crate::kubeconfig::{Access, connect};
use crate::screen;
use crate::status::say_which_cluster;

pub async fn run(args: DoctorArgs) -> anyhow::Result<ExitCode> {
    let connection = connect(&args.cluster, Access::Read).await?;
    say_which_cluster(&connection, args.output);
    let observed = look::look(&connection, &args).await?;
    let report = doctor::examine(&observed);
    let text = text(&report, args.output, screen::width())?;
    screen::ignore_closed_pipe(anstream::stdout().write_all(text.as_bytes()))?;
    Ok(exit_code(&report))
}

fn exit_code(report: &Report) -> ExitCode {
    match report.level {
        Level::Ok | Level::Warning => ExitCode::SUCCESS,
        Level::Failed => ExitCode::FAILURE,
    }
}

fn text(report: &Report, output: Output, width: Option<usize>) -> anyhow::Result<String> {
    Ok(match output {
        Output::Json => serde_json::to_string_pretty(report)? + "\n",
        Output::Yaml => serde_saphyr::to_string(report).context("cannot write YAML")?,
        Output::Name => render::names(report),
        Output::Table => render::table(report, width),
        Output::Wide => render::table(report, None),
    })
}
