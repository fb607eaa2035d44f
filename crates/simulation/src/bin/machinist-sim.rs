//! `machinist-sim`: runs seeds, swarms, scripts and everything that `make sim` asks for, and shows what
//! happened.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::Context;
use clap::{Parser, Subcommand};
use machinist_simulation::{
    campaign::{Campaign, undetermined},
    dump::{Dump, Replay},
    exhaustive::{self, Reference},
    faults::Level,
    invariants::{CHECKED, ELSEWHERE, PENDING},
    recording::{Disturbance, Recipe, Recording},
    report::Summary,
    swarm::Plan,
    world::{self, RunReport},
};
use tokio::time::Instant;

/// The whole system under virtual time: the operator's own code against an API server and a cloud in
/// memory, while everything fails that can.
#[derive(Debug, Parser)]
#[command(name = "machinist-sim", version)]
struct Args {
    /// How many worlds run side by side.
    #[arg(long, global = true, default_value_t = 2)]
    threads: usize,
    /// Where recordings of failed runs are written, for `replay`.
    #[arg(long, global = true, default_value = "target/simulation-failures")]
    recordings: PathBuf,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Plays a script.
    Run {
        script: PathBuf,
        /// Disturbs the effect of this number.
        #[arg(long, requires = "fate")]
        at_effect: Option<u64>,
        #[arg(long, value_enum, requires = "at_effect")]
        fate: Option<Disturbance>,
        /// Shows the whole timeline, also of a run in which no promise is broken.
        #[arg(long)]
        all: bool,
    },
    /// Runs one seed and shows the timeline up to the broken promise.
    Seed {
        seed: u64,
        #[arg(long, value_enum, default_value = "stormy")]
        level: Level,
        /// Tells of every request to the API server as well.
        #[arg(long)]
        requests: bool,
        /// Shows the timeline of all machines, also of a run in which no promise is broken.
        #[arg(long)]
        all: bool,
    },
    /// Runs many seeds and reports.
    Swarm {
        /// First and last, such as `1..1000`; the last is not run.
        #[arg(long, default_value = "1..1001", value_parser = range)]
        seeds: (u64, u64),
        #[arg(long, value_enum, default_value = "stormy")]
        level: Level,
        /// Begins no further seed after so many minutes of real time.
        #[arg(long)]
        minutes: Option<u64>,
        /// Goes on after a broken promise.
        #[arg(long)]
        keep_going: bool,
    },
    /// Does a recorded run again, and says whether the same happens.
    Replay { file: PathBuf },
    /// Loads what `machinist dump` wrote, and shows what the operator does with it.
    ReplayDump {
        file: PathBuf,
        /// How many hours of virtual time go on from when the dump was taken.
        #[arg(long, default_value_t = 24)]
        hours: u64,
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Ends what is wrong with the fleet afterwards, and asks that it comes to rest.
        #[arg(long)]
        to_rest: bool,
        /// Shows the whole timeline, also of a run in which no promise is broken.
        #[arg(long)]
        all: bool,
    },
    /// Disturbs every effect of every script of a folder, in every way.
    Exhaustive {
        #[arg(long, default_value = "crates/simulation/scenarios/reference")]
        scripts: PathBuf,
        #[arg(long)]
        keep_going: bool,
    },
    /// Lists the promises: what is checked here, what elsewhere, and what waits for its subject.
    Promises,
    /// Everything with fixed seeds: regressions, the exhaustive mode, a swarm, determinism.
    Check {
        #[arg(long, default_value = "crates/simulation/scenarios")]
        scenarios: PathBuf,
        /// How many stormy seeds.
        #[arg(long, default_value_t = 1000)]
        stormy: u64,
    },
}

fn main() -> ExitCode {
    let args = Args::parse();
    match dispatch(&args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("machinist-sim: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Whether every promise was kept.
fn dispatch(args: &Args) -> anyhow::Result<bool> {
    match &args.command {
        Command::Run { script, at_effect, fate, all } => {
            let path = script.clone();
            let recipe = match at_effect.zip(*fate) {
                Some((effect, fate)) => Recipe::Disturbed { path, effect, fate },
                None => Recipe::Script { path },
            };
            Ok(show(&recipe, &recipe.run(*all)))
        }
        Command::Seed { seed, level, requests, all } => {
            let plan = Plan { tells_requests: *requests, ..Plan::draw(*seed, *level) };
            let recipe = Recipe::Seed { seed: *seed, level: *level };
            Ok(show(&recipe, &world::run(&plan, *all || *requests)))
        }
        Command::Swarm { seeds: (first, last), level, minutes, keep_going } => {
            let limit = minutes.map(|minutes| Duration::from_secs(minutes * 60));
            let campaign = Campaign { threads: args.threads, limit, keep_going: *keep_going };
            let begun = Instant::now();
            let summary = campaign.run_seeds(*first..*last, *level, |recipe, report| {
                tell(args, recipe, report, !keep_going);
            });
            println!("{}", summary.render(*level, begun.elapsed()));
            Ok(summary.is_clean())
        }
        Command::Replay { file } => replay(file),
        Command::ReplayDump { file, hours, seed, to_rest, all } => {
            let lasting = Duration::from_secs(hours * 3600);
            let how = Replay { seed: *seed, lasting, to_rest: *to_rest };
            let report = Dump::load(file)?.replay(&how, *all);
            Ok(tell_of_dump(&report))
        }
        Command::Exhaustive { scripts, keep_going } => exhaustive(args, scripts, *keep_going),
        Command::Promises => {
            let tables = [("checked", CHECKED), ("elsewhere", ELSEWHERE), ("pending", PENDING)];
            for (state, promises) in tables {
                for (id, words) in promises {
                    println!("{id:<6} {state:<10} {words}");
                }
            }
            Ok(true)
        }
        Command::Check { scenarios, stormy } => check(args, scenarios, *stormy),
    }
}

fn tell_of_dump(report: &RunReport) -> bool {
    print!("{}", report.timeline);
    match &report.violation {
        None => println!("no promise was broken; {} effects", report.effects),
        Some(broken) => println!("\nBROKEN {} {} {}", broken.id, broken.subject, broken.words),
    }
    report.violation.is_none()
}

fn show(recipe: &Recipe, report: &RunReport) -> bool {
    print!("{}", report.timeline);
    match &report.violation {
        None => {
            println!("no promise was broken; {} effects", report.effects);
            println!("fingerprint {:016x}", report.fingerprint);
        }
        Some(violation) => {
            println!("\nBROKEN {} {} {}", violation.id, violation.subject, violation.words);
            println!("again: {}", recipe.command());
        }
    }
    report.violation.is_none()
}

/// Tells of a run in a campaign that broke a promise, and keeps it for `replay`.
fn tell(args: &Args, recipe: &Recipe, report: &RunReport, with_timeline: bool) {
    if with_timeline {
        print!("{}", report.timeline);
    }
    if let Some(violation) = &report.violation {
        println!("BROKEN {} {} {}", violation.id, violation.subject, violation.words);
    }
    println!("  again: {}", recipe.command());
    match Recording::of(recipe, report).save(&args.recordings) {
        Ok(path) => println!("  or: machinist-sim replay {}", path.display()),
        Err(error) => println!("  (not recorded: {error:#})"),
    }
}

fn replay(file: &Path) -> anyhow::Result<bool> {
    let recording = Recording::load(file)?;
    let report = recording.recipe.run(false);
    let is_clean = show(&recording.recipe, &report);
    let again = Recording::of(&recording.recipe, &report);
    if again.fingerprint == recording.fingerprint {
        println!("the same as recorded, to the last line");
    } else {
        println!(
            "not as recorded ({}): the program is another one",
            recording.violation.as_deref().unwrap_or("no promise was broken")
        );
    }
    Ok(is_clean)
}

fn exhaustive(args: &Args, folder: &Path, keep_going: bool) -> anyhow::Result<bool> {
    let begun = Instant::now();
    let scripts = exhaustive::scripts_in(folder).with_context(|| folder.display().to_string())?;
    anyhow::ensure!(!scripts.is_empty(), "no script in {}", folder.display());
    let references: Vec<Reference> = scripts.iter().map(|path| exhaustive::measure(path)).collect();
    let mut is_clean = true;
    for reference in &references {
        if let Some(broken) = &reference.broken {
            println!("BROKEN undisturbed {}: {broken}", reference.path.display());
            is_clean = false;
        }
    }
    let campaign = Campaign { threads: args.threads, limit: None, keep_going };
    let recipes = references.iter().flat_map(exhaustive::recipes);
    let summary = campaign.run(recipes, |recipe, report| tell(args, recipe, report, !keep_going));
    for reference in &references {
        let name = reference.path.file_stem().unwrap_or_default().to_string_lossy();
        println!("{name:<28} {:>4} effects", reference.effects);
    }
    println!(
        "exhaustive: {} runs in {:.1} s, {} broke a promise",
        summary.runs,
        begun.elapsed().as_secs_f64(),
        summary.failed()
    );
    Ok(is_clean && summary.is_clean())
}

fn check(args: &Args, scenarios: &Path, stormy: u64) -> anyhow::Result<bool> {
    let begun = Instant::now();
    let regressions = scenarios.join("regressions");
    let scripts =
        exhaustive::scripts_in(&regressions).with_context(|| regressions.display().to_string())?;
    let count = scripts.len();
    let campaign = Campaign { threads: args.threads, limit: None, keep_going: true };
    let recipes = scripts.into_iter().map(|path| Recipe::Script { path });
    let named = campaign.run(recipes, |recipe, report| tell(args, recipe, report, true));
    println!(
        "regressions: {count} scripts in {:.1} s, {} broke a promise",
        begun.elapsed().as_secs_f64(),
        named.failed()
    );
    let mut is_clean = named.is_clean() && exhaustive(args, &scenarios.join("reference"), true)?;
    for (level, seeds) in [(Level::Calm, 50), (Level::Windy, 100), (Level::Stormy, stormy)] {
        let begun = Instant::now();
        let summary = campaign.run_seeds(1..seeds + 1, level, |recipe, report| {
            tell(args, recipe, report, false);
        });
        is_clean &= summary.is_clean();
        if level == Level::Stormy {
            println!("{}", summary.render(level, begun.elapsed()));
            is_clean &= is_covered(&summary);
        } else {
            println!("{}", summary.headline(level, begun.elapsed()));
        }
    }
    let sample = [1, 2, 3, 5, 8, 13, 21, 34];
    let undetermined = undetermined(&sample, Level::Stormy);
    println!("determinism: {} seeds twice, {} differ", sample.len(), undetermined.len());
    println!("all in {:.0} s", begun.elapsed().as_secs_f64());
    Ok(is_clean && undetermined.is_empty())
}

/// Whether the seeds reached what they are there for.
fn is_covered(summary: &Summary) -> bool {
    let empty = summary.empty_cells();
    for (kind, phase) in &empty {
        println!("EMPTY {} never hit a machine in phase {phase} ({})", kind.id(), kind.words());
    }
    let never = summary.never_reached();
    for what in &never {
        println!("NEVER REACHED {what}");
    }
    empty.is_empty() && never.is_empty()
}

fn range(text: &str) -> Result<(u64, u64), String> {
    let (first, last) = text.split_once("..").ok_or("write it as 1..1000")?;
    let number = |text: &str| text.parse::<u64>().map_err(|error| format!("{text:?}: {error}"));
    Ok((number(first)?, number(last)?))
}
