//! The target of this name, under cargo-fuzz.
#![no_main]

#[allow(dead_code, reason = "one of the targets for each program")]
#[path = "../../crates/core/tests/fuzz/targets.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::provider_spec(bytes));
