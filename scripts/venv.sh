#!/usr/bin/env bash
# Makes .venv, the Python environment of the tests, anew when a list of requirements has changed.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

lists=()
for list in crates/*/tests/*/requirements.txt; do
  if [ -e "$list" ]; then lists+=("$list"); fi
done
stamp="$venv/requirements.sha256"
wanted="$({ python3 --version && cat "${lists[@]}" /dev/null; } | sha256sum)"

if [ -e "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ] && "$venv/bin/python" -c '' 2>/dev/null; then
  exit 0
fi
echo "set-up: making the Python environment .venv" >&2
python3 -m venv --clear "$venv"
arguments=()
for list in "${lists[@]}"; do arguments+=(--requirement "$list"); done
if [ ${#arguments[@]} -gt 0 ]; then
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input "${arguments[@]}"
fi
echo "$wanted" >"$stamp"
