#!/usr/bin/env bash
# Is there a published advisory against a crate that we use?
#
# Exit code 0: none, or the database could not be reached, which is said. 1: at least one.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

if ! output="$("$deny" fetch db 2>&1)"; then
  echo "audit: NOTHING WAS CHECKED: the advisory database could not be reached:" >&2
  echo "${output//$'\n'/$'\n'  }" >&2
  exit 0
fi
if ! "$deny" --locked check advisories; then
  echo "audit: the advisories above concern crates of Cargo.lock; see [advisories] in deny.toml" >&2
  exit 1
fi
