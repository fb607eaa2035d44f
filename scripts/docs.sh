#!/usr/bin/env bash
# Builds the site of docs/ into target/docs, or into the folder that is named. Whatever mdBook warns of is an
# error. What the pages say is checked by tests: crates/core/tests/docs.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

site="${1:-$target/docs}"
mkdir -p "$(dirname "$site")"
site="$(cd "$(dirname "$site")" && pwd)/$(basename "$site")"
said="$(mktemp)"
trap 'rm -f "$said"' EXIT
"$mdbook" build docs --dest-dir "$site" 2>&1 | tee "$said" >&2
if grep -qE '\b(WARN|ERROR)\b' "$said"; then
  echo "docs: mdBook warns" >&2
  exit 1
fi
echo "docs: open $site/index.html" >&2
