#!/usr/bin/env bash
# Builds what the benchmark measures, optimised, then runs it. The arguments are those of bench/run.sh.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

scripts/setup.sh c rust go
. scripts/environment.sh

. scripts/aside.sh
trap stop_aside EXIT
start_aside programs build_go_programs kube kwok capi
cargo build --locked --release --package machinist-operator --package machinist-cli
wait_aside programs
trap - EXIT
exec bench/run.sh "$@"
