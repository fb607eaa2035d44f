#!/usr/bin/env bash
# Runs the benchmark with what was built. `make bench` builds first.
#
#   bench/run.sh [--scenario usual,throttled] [--machines 100,300 --steady-seconds 60]
#                [--operator-flag=--name=value] [--json FILE]
#
# Prints a table, writes bench/results/latest.json, and ends with 1 where a limit is not kept.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

program="${CARGO_TARGET_DIR:-target}/release/machinist"
if [ ! -x "$program" ]; then
  echo "bench: $program is not built; run: make bench" >&2
  exit 2
fi
# The last --json counts, so that the caller can choose another file.
exec "$program" bench --json bench/results/latest.json "$@"
