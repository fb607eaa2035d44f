#!/usr/bin/env bash
# Runs the simulator with fixed seeds: named regressions, every effect of the reference scenarios
# disturbed, a swarm of stormy seeds, and determinism. `machinist-sim --help` says what else it can do.
#
#   scripts/sim.sh [words for `machinist-sim check`]
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

# On its own and not with the workspace: so it is built without the AWS SDK.
cargo build --locked --profile simulation --package machinist-simulation --bin machinist-sim
exec "$target/simulation/machinist-sim" --recordings "$target/simulation-failures" check "$@"
