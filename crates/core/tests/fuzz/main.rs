//! Does anything that the world may send us make us panic, or believe what it should not?
//!
//! Each target takes valid inputs, damages them with their structure in mind (`json`, `der`, `bytes`) and
//! holds what comes of it against what must always be so (`targets`). It goes on for its share of
//! `MACHINIST_FUZZ_SECONDS`, with new seeds in every run. A finding is told with its seed:
//!
//!     MACHINIST_FUZZ_SEED=<seed> cargo test -p machinist-core --test fuzz <target>
//!
//! runs that very input first. The targets take bytes, so cargo-fuzz runs the same ones (`fuzz/`).

#![expect(
    clippy::disallowed_methods,
    reason = "the budget is one of real time, and the seeds are to differ from run to run"
)]
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a panic is how a finding is told"
)]

mod bytes;
mod der;
mod json;
mod samples;
mod targets;

use std::time::{Duration, Instant, SystemTime};

use proptest::{
    prelude::Rng,
    test_runner::{RngAlgorithm, TestRng},
};

/// Shared evenly among the targets.
const SECONDS: &str = "MACHINIST_FUZZ_SECONDS";
/// Enough to see that the targets work.
const SECONDS_BY_DEFAULT: f64 = 2.0;
const SEED: &str = "MACHINIST_FUZZ_SEED";
const TARGETS: f64 = 5.0;

#[test]
fn certificate_requests() {
    explore("certificate_requests", |chance| {
        let request = samples::request(chance);
        targets::certificate_request(&der::damaged_pem(&request, chance));
    });
}

#[test]
fn certificates() {
    explore("certificates", |chance| {
        targets::certificate(&der::damaged(&samples::certificate(), chance));
    });
}

#[test]
fn admission() {
    explore("admission", |chance| {
        let review = samples::review(chance);
        targets::admission(&json::damaged(&review, chance));
    });
}

#[test]
fn provider_specs() {
    explore("provider_specs", |chance| {
        let spec = samples::provider_spec(chance);
        targets::provider_spec(&json::damaged(&spec, chance));
    });
}

#[test]
fn machine_sets() {
    explore("machine_sets", |chance| {
        let set = samples::machine_set(chance);
        targets::machine_set(&json::damaged(&set, chance));
    });
}

fn explore(target: &'static str, case: impl Fn(&mut Chance)) {
    let seconds = read(SECONDS).map_or(SECONDS_BY_DEFAULT, |text| {
        text.parse().unwrap_or_else(|_| panic!("{SECONDS} must be a number, not {text:?}"))
    });
    let first = match read(SEED) {
        Some(text) => {
            text.parse().unwrap_or_else(|_| panic!("{SEED} must be a whole number, not {text:?}"))
        }
        None => fresh_seed(),
    };
    let end = Instant::now() + Duration::from_secs_f64(seconds / TARGETS);
    let mut seed = first;
    loop {
        let told = Told { target, seed };
        case(&mut Chance::new(seed));
        drop(told);
        seed = seed.wrapping_add(1);
        if Instant::now() >= end {
            break;
        }
    }
    println!("{target}: {} cases, seeds {first} and on", seed.wrapping_sub(first));
}

fn read(variable: &str) -> Option<String> {
    std::env::var(variable).ok().filter(|text| !text.is_empty())
}

fn fresh_seed() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    // Runs that begin one after the other share no cases: a second has a billion seeds.
    since.as_secs().wrapping_mul(1_000_000_000).wrapping_add(u64::from(since.subsec_nanos()))
}

/// Says which case it was when one fails.
struct Told {
    target: &'static str,
    seed: u64,
}

impl Drop for Told {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self { target, seed } = self;
            eprintln!("finding of {target}: repeat it with {SEED}={seed}");
        }
    }
}

/// What decides about one case; the same seed decides the same.
pub struct Chance(TestRng);

impl Chance {
    fn new(seed: u64) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        Self(TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
    }

    /// A number below the bound, zero for a bound of zero.
    pub fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap().max(1);
        usize::try_from(self.0.next_u64() % bound).unwrap()
    }

    pub fn byte(&mut self) -> u8 {
        u8::try_from(self.below(256)).unwrap()
    }

    pub fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    pub fn pick<'a, T>(&mut self, among: &'a [T]) -> &'a T {
        &among[self.below(among.len())]
    }
}
