#!/usr/bin/env bash
# Sends damaged input to everything that reads what others write: admission, providerSpecs, MachineSets,
# certificate requests. With new seeds each time; a finding is printed with the seed that repeats it.
#
#   MACHINIST_FUZZ_SECONDS=600 scripts/fuzz.sh
#
# Where a nightly Rust and cargo-fuzz are there already, cargo-fuzz goes on from there with the same targets,
# guided by coverage. Neither is ever fetched.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

export MACHINIST_FUZZ_SECONDS="${MACHINIST_FUZZ_SECONDS:-60}"
# One after the other: each has its share of the time, and the other core is somebody's.
cargo test --locked --workspace --test fuzz -- --nocapture --test-threads=1

if rustup run nightly rustc --version >/dev/null 2>&1 && cargo fuzz --version >/dev/null 2>&1; then
  share=$((MACHINIST_FUZZ_SECONDS / 5 + 1))
  for fuzzed in certificate_request certificate admission provider_spec machine_set; do
    cargo +nightly fuzz run --fuzz-dir fuzz "$fuzzed" -- -max_total_time="$share" -rss_limit_mb=2048
  done
else
  echo "fuzz: no nightly Rust with cargo-fuzz here; the damage above was not guided by coverage" >&2
fi
