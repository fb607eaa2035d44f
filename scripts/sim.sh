#!/usr/bin/env bash
# Builds the simulator, or runs it with fixed seeds: named regressions, every effect of the reference
# scenarios disturbed, a swarm of stormy seeds, and determinism. `machinist-sim --help` says what else it can do.
#
#   scripts/sim.sh build [words for `cargo build`]
#   scripts/sim.sh check [words for `machinist-sim check`]
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

# On its own and not with the workspace: so it is built without the AWS SDK.
build() { cargo build --locked --profile simulation --package machinist-simulation --bin machinist-sim "$@"; }

case "${1:-}" in
  build) build "${@:2}" ;;
  check)
    build
    exec "$target/simulation/machinist-sim" --recordings "$target/simulation-failures" check "${@:2}"
    ;;
  *)
    echo "usage: scripts/sim.sh build|check [words]" >&2
    exit 2
    ;;
esac
