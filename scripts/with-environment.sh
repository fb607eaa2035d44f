#!/usr/bin/env bash
# Runs a command with what scripts/setup.sh installed in PATH.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
exec "$@"
