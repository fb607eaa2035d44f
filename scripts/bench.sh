#!/usr/bin/env bash
# Builds what the benchmark measures, optimised, then runs it. The arguments are those of bench/run.sh.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

scripts/setup.sh c rust go
. scripts/environment.sh

. scripts/go-programs.sh
trap stop_go_programs EXIT
start_go_programs kube kwok capi
cargo build --locked --release --package machinist-operator --package machinist-cli
wait_for_go_programs
trap - EXIT
exec bench/run.sh "$@"
