//! Does the API server in memory answer as the real one does?
//!
//! Sends the same random sequences of requests to both and compares codes, Status objects, objects and
//! the events of watches. A program of its own and not a `#[test]`, because it is also the guard of the
//! control plane that it starts.
//!
//! `cargo test -p machinist-simulation --test differential -- --seed 7` runs one sequence.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "clippy takes the parts of an integration test for production code"
)]

mod by_design;
mod compare;
mod generate;
mod real;
mod sequence;
mod side;
mod step;

use std::process::ExitCode;

use machinist_testbed::guard;

/// How many sequences a run without arguments makes.
const SEQUENCES: u64 = 150;

fn main() -> ExitCode {
    guard::run_if_asked();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(seeds) = seeds_of(&arguments) else {
        println!("differential: not asked for");
        return ExitCode::SUCCESS;
    };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let report = runtime.block_on(sequence::run_all(&seeds));
    println!("{}", report.text);
    if report.differences == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The seeds to run; none where the arguments name another test.
fn seeds_of(arguments: &[String]) -> Option<Vec<u64>> {
    let mut seeds = Vec::new();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--seed" => seeds.push(words.next()?.parse().ok()?),
            "--sequences" => seeds.extend(0..words.next()?.parse().ok()?),
            "--list" => return None,
            other if other.starts_with('-') => {}
            filter if "differential".contains(filter) => {}
            _ => return None,
        }
    }
    if seeds.is_empty() {
        seeds.extend(0..SEQUENCES);
    }
    Some(seeds)
}
