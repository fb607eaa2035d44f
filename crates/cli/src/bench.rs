//! What does it cost to bring machines up, to keep them, and to take them down?
//!
//! A fresh testbed for each scenario, the operator as a process, everything counted from
//! outside: the cloud's ledger, the API server's audit log, /proc.

mod audit;
mod checks;
mod cluster_api;
mod fleet;
mod process;
mod refusals;
mod report;
mod run;
mod scenario;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;

use self::scenario::Scenario;
use crate::args::BenchArgs;
use crate::shutdown::Shutdown;

pub async fn run(args: BenchArgs) -> anyhow::Result<ExitCode> {
    let mut shutdown = Shutdown::listen()?;
    tokio::select! {
        biased;
        // The clusters end with their processes.
        () = shutdown.requested() => anyhow::bail!("interrupted"),
        done = measure(args) => done,
    }
}

async fn measure(args: BenchArgs) -> anyhow::Result<ExitCode> {
    let mut runs = Vec::new();
    for scenario in scenarios(&args)? {
        let label = scenario.label();
        runs.push(run::run(scenario, &args).await.with_context(|| label)?);
    }
    let mut checks = checks::check(&runs);
    let mut compared = None;
    if wants_cluster_api(&args) {
        let comparison = cluster_api::run(&args).await.context(cluster_api::NAME)?;
        checks.extend(cluster_api::checks(&comparison));
        compared = Some(comparison);
    }
    let results = report::Results::new(runs, compared, checks);
    print!("{}", report::text(&results));
    if let Some(path) = &args.json {
        write(path, &results)?;
        println!("\nwritten to {}", path.display());
    }
    Ok(if results.has_passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn scenarios(args: &BenchArgs) -> anyhow::Result<Vec<Scenario>> {
    if !args.machines.is_empty() {
        let sized = |machines: &u16| Scenario::sized(*machines, args.steady_seconds);
        return Ok(args.machines.iter().map(sized).collect());
    }
    let all = scenario::all();
    let mut names: Vec<_> = all.iter().map(|scenario| scenario.name).collect();
    names.push(cluster_api::NAME);
    for wanted in &args.scenario {
        let is_known = names.contains(&wanted.as_str());
        anyhow::ensure!(is_known, "scenario {wanted} is not one of {}", names.join(", "));
    }
    let is_wanted = |scenario: &Scenario| {
        args.scenario.is_empty() || args.scenario.iter().any(|wanted| wanted == scenario.name)
    };
    Ok(all.into_iter().filter(is_wanted).collect())
}

/// It has two controllers to compare and no cloud of its own, so it is none of the others.
fn wants_cluster_api(args: &BenchArgs) -> bool {
    let is_named = args.scenario.iter().any(|wanted| wanted == cluster_api::NAME);
    args.machines.is_empty() && (args.scenario.is_empty() || is_named)
}

fn write(path: &Path, results: &report::Results) -> anyhow::Result<()> {
    let describe = || format!("cannot write {}", path.display());
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(describe)?;
    }
    let text = serde_json::to_string_pretty(results).with_context(describe)?;
    std::fs::write(path, text + "\n").with_context(describe)
}
