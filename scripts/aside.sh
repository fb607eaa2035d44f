# What is built while something else runs? Sourced, after environment.sh.
# shellcheck shell=bash

# Names, each with its process in aside_NAME: the bash of a Mac has no maps.
asides=""

# start_aside NAME COMMAND...: starts it in the background. It has a process group of its own, so that it can be
# stopped whole, compilers included.
start_aside() {
  local name="$1"
  shift
  set -m
  "$@" >/dev/null &
  printf -v "aside_$name" %s "$!"
  set +m
  asides="$asides $name"
}

# wait_aside NAME: until it has ended, with its exit code.
wait_aside() {
  local process="aside_$1" result=0
  wait "${!process}" || result=$?
  unset "$process"
  return "$result"
}

# Ends what has not ended yet.
stop_aside() {
  local name process
  for name in $asides; do
    process="aside_$name"
    if [ -z "${!process:-}" ]; then continue; fi
    kill -- "-${!process}" 2>/dev/null || true
    wait "${!process}" 2>/dev/null || true
  done
  asides=""
}

# build_go_programs MODULE...: one after another.
build_go_programs() {
  local module
  for module in "$@"; do tools/build.sh "$module" || return; done
}
