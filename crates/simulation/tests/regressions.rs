//! Do the bugs that others had stay away? Plays every script of `scenarios/`: one test for each file,
//! which words on the command line choose by name.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{Mutex, PoisonError},
};

use machinist_simulation::script;

/// So many of the catalogue's bugs must be kept away at least.
const REGRESSIONS_MIN: usize = 40;

fn main() -> ExitCode {
    let scenarios = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let args: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&String> = args.iter().filter(|arg| !arg.starts_with("--")).collect();
    let mut failures = Vec::new();
    let regressions = files(&scenarios.join("regressions"));
    if regressions.len() < REGRESSIONS_MIN {
        failures.push(format!("only {} of {REGRESSIONS_MIN} regressions", regressions.len()));
    }
    let chosen: Vec<PathBuf> = regressions
        .into_iter()
        .chain(files(&scenarios.join("reference")))
        .filter(|path| words.is_empty() || words.iter().any(|word| shown(path).contains(*word)))
        .collect();
    if args.iter().any(|arg| arg == "--list") {
        chosen.iter().for_each(|path| println!("{}: test", shown(path)));
        return ExitCode::SUCCESS;
    }
    let next = Mutex::new(chosen.into_iter());
    let found = Mutex::new(failures);
    let take = || next.lock().unwrap_or_else(PoisonError::into_inner).next();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(path) = take() {
                    let begun = tokio::time::Instant::now();
                    let result = play(&path);
                    let took = begun.elapsed().as_secs_f64();
                    let word = if result.is_ok() { "ok" } else { "FAILED" };
                    println!("test {} ... {word} ({took:.1} s)", shown(&path));
                    let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                    found.extend(result.err());
                }
            });
        }
    });
    let failures = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    for failure in &failures {
        println!("\n{failure}");
    }
    println!("\n{} failed", failures.len());
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn play(path: &Path) -> Result<(), String> {
    let script = script::load(path).map_err(|error| error.to_string())?;
    let is_regression = path.parent().is_some_and(|folder| folder.ends_with("regressions"));
    for (field, text) in [("reference", &script.reference), ("why", &script.why)] {
        if is_regression && text.trim().is_empty() {
            return Err(format!("{}: {field} is empty", shown(path)));
        }
    }
    let report = script::run(&script, false);
    match report.violation {
        None => Ok(()),
        Some(broken) => Err(format!(
            "{}\n{}: {}\n  {} {} {}\n  again: machinist-sim run {}",
            report.timeline,
            script.reference,
            script.title,
            broken.id,
            broken.subject,
            broken.words,
            path.display(),
        )),
    }
}

/// The scripts of a folder, in the order of their names.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    found.sort();
    found
}

/// `regressions/b01-crash-after-launch`.
fn shown(path: &Path) -> String {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let folder = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    format!("{folder}/{name}")
}
