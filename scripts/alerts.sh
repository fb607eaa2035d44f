#!/usr/bin/env bash
# Are the alert rules valid, and does each fire when it should, and only then? Asks promtool.
#
# A PrometheusRule wraps what promtool reads: the lines under `spec:`, two spaces further to the left.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT

for rules in deploy/alerts/*.yaml; do
  name="$(basename "$rules")"
  if [ "$name" = tests.yaml ]; then continue; fi
  awk 'inside && /^  / { print substr($0, 3) } /^[a-z]/ { inside = /^spec:/ }' "$rules" >"$folder/$name"
  "$promtool" check rules "$folder/$name"
done
cp deploy/alerts/tests.yaml "$folder"
"$promtool" test rules "$folder/tests.yaml"
