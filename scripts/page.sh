#!/usr/bin/env bash
# How is the page built, checked and shown?
#
#   scripts/page.sh build | test | screenshots
#
# `build` writes web/dist, which the operator embeds; `test` lints it and runs its unit tests and, against a
# stand-in for the operator, its browser tests; `screenshots` writes docs/page.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
cd web

case "${1:-}" in
  build)
    npm run --silent build -- --logLevel warn
    ;;
  test)
    npm run --silent lint
    npm run --silent units
    npm run --silent browser
    ;;
  screenshots)
    npm run --silent screenshots
    ;;
  *)
    echo "usage: scripts/page.sh build | test | screenshots" >&2
    exit 2
    ;;
esac
