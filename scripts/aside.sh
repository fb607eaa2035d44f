# How are the Go programs built while cargo compiles? Sourced, after environment.sh.
# shellcheck shell=bash

programs=""

# start_go_programs MODULE...: builds them one after another. The build has a process group of its own, so
# that it can be stopped whole, compilers included.
start_go_programs() {
  set -m
  (for module in "$@"; do tools/build.sh "$module" >/dev/null || exit; done) &
  programs=$!
  set +m
}

wait_for_go_programs() {
  local result=0
  wait "$programs" || result=$?
  programs=""
  return "$result"
}

stop_go_programs() {
  # A bare return would give the exit code that the script is ending with.
  if [ -z "$programs" ]; then return 0; fi
  kill -- "-$programs" 2>/dev/null || true
  wait "$programs" 2>/dev/null || true
  programs=""
}
