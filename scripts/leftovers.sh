#!/usr/bin/env bash
# Which of our programs still run although the tests that started them are over?
#
#   scripts/leftovers.sh PID
#
# Looks for processes whose program lies in the user's cache folder or in this checkout's target
# folder, that began after the process PID did, and whose line of parents leads to PID, or to one of
# its own forebears (init, or whoever adopts orphans here), through nothing but such processes.
# Somebody else's cluster on this machine hangs on a shell or a cargo of theirs, and is not ours.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

run="$1"
# How long a process may take to die of its parent's death.
patience_seconds=20

if [ ! -r /proc/self/stat ]; then
  echo "leftovers: there is no /proc here; not checked" >&2
  exit 0
fi

# read_process PID: sets `parent` and `began` (in clock ticks); fails when it is gone. The name, which
# may hold anything, ends at the last parenthesis.
read_process() {
  local line fields
  { read -r line <"/proc/$1/stat"; } 2>/dev/null || return 1
  read -ra fields <<<"${line##*) }"
  parent="${fields[1]}"
  began="${fields[19]}"
}

program_of() { readlink "/proc/$1/exe" 2>/dev/null || true; }

is_candidate() {
  case "$(program_of "$1")" in
    "$cache"/* | "$target"/*) ;;
    *) return 1 ;;
  esac
  read_process "$1" && [ "$began" -ge "$run_began" ]
}

is_ours() {
  local process="$1"
  while is_candidate "$process"; do
    if [[ "$forebears" == *" $parent "* ]]; then return 0; fi
    process="$parent"
  done
  return 1
}

leftovers() {
  local folder process
  for folder in /proc/[0-9]*; do
    process="${folder#/proc/}"
    if is_ours "$process"; then
      echo "  $process $(tr '\0' ' ' <"$folder/cmdline" 2>/dev/null | cut -c1-200)"
    fi
  done
}

read_process "$run" || exit 1
run_began="$began"
forebears=" $run "
process="$run"
while read_process "$process" && [ "$parent" -gt 0 ]; do
  forebears="$forebears$parent "
  process="$parent"
done

deadline=$((SECONDS + patience_seconds))
while found="$(leftovers)" && [ -n "$found" ] && [ "$SECONDS" -lt "$deadline" ]; do sleep 1; done
if [ -n "$found" ]; then
  echo "leftovers: these processes outlived the tests that started them:" >&2
  echo "$found" >&2
  exit 1
fi
