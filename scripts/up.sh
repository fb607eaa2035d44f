#!/usr/bin/env bash
# Builds what `machinist up` needs, then becomes it. The arguments are its arguments.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

scripts/setup.sh c rust go
. scripts/environment.sh

# The operator embeds the page. Without Node there is a cluster all the same, and no page.
if command -v node >/dev/null && command -v npm >/dev/null; then
  scripts/setup.sh node
  scripts/page.sh build
else
  echo "up: there is no Node here, so the operator is built without its page" >&2
fi

# A person who watches wants to see it move.
if [ -t 2 ]; then export MACHINIST_PROGRESS_SECONDS="${MACHINIST_PROGRESS_SECONDS:-10}"; fi
. scripts/aside.sh
trap stop_aside EXIT
start_aside programs build_go_programs kube kwok
cargo build --locked --package machinist-cli --package machinist-operator
wait_aside programs
trap - EXIT
exec "$target/debug/machinist" up "$@"
