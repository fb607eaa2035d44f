#!/usr/bin/env bash
# Runs lint and every test, with all set-up, on a bare machine, without a terminal; says at the end
# how many minutes each stage took.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
. scripts/aside.sh
exec </dev/null

names=()
seconds=()
verdict="ok"

# stage NAME COMMAND...: runs the command and notes how long it took; the first failure ends the run.
stage() {
  local name="$1" begin=$SECONDS result=0
  shift
  echo "== $name" >&2
  "$@" || result=$?
  names+=("$name")
  seconds+=($((SECONDS - begin)))
  if [ "$result" -ne 0 ]; then
    verdict="FAILED in stage \"$name\" (exit code $result)"
    exit 1
  fi
}

finish() {
  local index
  stop_aside
  {
    echo
    printf '%-36s %8s\n' stage minutes
    for index in "${!names[@]}"; do print_row "${names[$index]}" "${seconds[$index]}"; done
    print_row "all" "$SECONDS"
    echo "make test: $verdict"
  } >&2
}
print_row() { printf '%-36s %6d.%d\n' "$1" $(($2 / 60)) $(($2 % 60 / 6)); }

trap finish EXIT
trap 'verdict="interrupted"; exit 130' INT
trap 'verdict="interrupted"; exit 143' TERM

stage "set-up: packages, Rust, Go" scripts/setup.sh c rust go python
. scripts/environment.sh
# Go compiles in the background all the while; cargo's builds follow one another.
start_aside programs build_go_programs kube kwok helm capi
stage "set-up: Python environment" scripts/venv.sh
stage "set-up: cargo-deny" scripts/setup.sh deny
stage "set-up: promtool" scripts/setup.sh promtool
stage "set-up: mdBook" scripts/setup.sh mdbook
stage "set-up: Node packages, browser" scripts/setup.sh node browser
stage "lint" scripts/lint.sh
stage "alert rules" scripts/alerts.sh
stage "docs" scripts/docs.sh
# Before the operator, which embeds it.
stage "page: build" scripts/page.sh build
stage "page: lint, units, browser" scripts/page.sh test
stage "build" cargo build --locked --workspace --all-targets
stage "Go programs (what was left of them)" wait_aside programs

# The tests mostly wait for clusters; the simulator is built in what they leave.
start_aside simulator nice -n 19 scripts/sim.sh build --quiet

export MACHINIST_VENV="$venv"
export MACHINIST_BIN="$target/debug/machinist"
export MACHINIST_OPERATOR="$target/debug/machinist-operator"
stage "unit and integration tests" cargo test --locked --workspace
stage "fuzzing" scripts/fuzz.sh
stage "simulator (what was left of it)" wait_aside simulator
stage "simulation" scripts/sim.sh check
stage "boto3" crates/testbed/tests/boto3/run.sh "$target/debug/examples/cloud" "$venv"
stage "no process left behind" scripts/leftovers.sh $$
