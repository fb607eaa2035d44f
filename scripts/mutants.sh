#!/usr/bin/env bash
# Would the simulator notice? Puts the bugs of crates/simulation/mutants into a scratch copy of the
# source, one at a time, and runs the simulator until a promise is broken: first the scripts, then
# every effect of the reference scenarios disturbed, then stormy seeds. Prints what caught which.
#
#   scripts/mutants.sh [NN...]    the mutants of these numbers, or all
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
exec </dev/null

# One run may take so many seconds: a bug may also keep a world from ending.
script_limit=60
suite_limit=1200
seeds=1..401

work="$target/mutants"
source="$work/source"
out="$work/out"
simulator="$work/simulation/machinist-sim"
unmutated="$work/unmutated-sim"
export script_limit simulator out

mkdir -p "$work"
# Held by cargo as well, should it outlive this script: what it builds then would be taken for ours.
exec 9>"$work/lock"
flock --nonblock 9 || { echo "mutants: another run is under way in $work" >&2; exit 1; }
trap 'rm -rf "$source" "$out"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

fail() {
  echo "mutants: $*" >&2
  exit 1
}

mutants=()
if [ $# -eq 0 ]; then
  mutants=(crates/simulation/mutants/*.patch)
else
  for number in "$@"; do
    found=(crates/simulation/mutants/"$number"-*.patch)
    [ -e "${found[0]}" ] || fail "there is no mutant $number"
    mutants+=("${found[@]}")
  done
fi

# copy_source: what is tracked and what is new, with its times, by which cargo knows what is built.
copy_source() {
  rm -rf "$source" "$out"
  mkdir -p "$source"
  git ls-files -coz --exclude-standard |
    while IFS= read -r -d '' file; do
      if [ -e "$file" ]; then printf '%s\0' "$file"; fi
    done |
    tar --create --null --files-from - | tar --extract --directory "$source"
  # The last build may have been of a mutant: what any of them changes is never taken for built.
  sed -n 's|^+++ b/||p' "$source"/crates/simulation/mutants/*.patch | sort -u |
    while IFS= read -r file; do touch "$source/$file"; done
}

# Outside of any checkout for git, which would otherwise take the paths for those of this one.
apply() { GIT_CEILING_DIRECTORIES="$work" git -C "$source" apply -C1 "$@"; }

# Our own crates unoptimised: building each mutant is what takes the time, not running it.
build() {
  (cd "$source" && CARGO_TARGET_DIR="$work" CARGO_INCREMENTAL=1 CARGO_PROFILE_SIMULATION_OPT_LEVEL=0 \
    cargo build --locked --quiet --profile simulation --package machinist-simulation \
    --bin machinist-sim) >"$work/build.log" 2>&1
}

# play SCRIPT: ends with 255, which makes xargs begin no other, unless all promises were kept.
play() {
  local name code=0
  name="$(basename "$1" .yaml)"
  timeout "$script_limit" "$simulator" run "$1" >"$out/$name" 2>&1 || code=$?
  if [ "$code" -eq 0 ]; then return 0; fi
  verdict "$code" "$out/$name" "script $name" >"$out/$name.verdict"
  return 255
}

# verdict CODE FILE WHERE: what a run that did not go well says, in one line.
verdict() {
  local broken
  broken="$(grep -m 1 '^BROKEN ' "$2" | cut -d ' ' -f 2- || true)"
  case "$1" in
    124) echo "$3: does not end" ;;
    1) echo "$3: ${broken:0:110}" ;;
    *) echo "ERROR in $3: exit code $1: $(tail -n 1 "$2")" ;;
  esac
}
export -f play verdict

# scripts: plays each undisturbed; tells of the first that broke a promise, by name.
scripts() {
  local found
  printf '%s\0' crates/simulation/scenarios/{regressions,reference}/*.yaml |
    xargs -0 -n 1 -P 2 bash -c 'play "$1"' play 2>"$out/xargs" || true
  for found in "$out"/*.verdict; do
    if [ -e "$found" ]; then cat "$found"; fi
    return 0
  done
}

# campaign NAME COMMAND...: many runs, of which the first that breaks a promise is told.
campaign() {
  local name="$1" code=0 again
  shift
  timeout "$suite_limit" "$simulator" --recordings "$out" "$@" >"$out/$name" 2>&1 || code=$?
  if [ "$code" -eq 0 ]; then return 0; fi
  again="$(sed -n 's/^  again: machinist-sim //p' "$out/$name" | head -n 1)"
  verdict "$code" "$out/$name" "$name ($(sed -E 's|run .*/([^/]*)\.yaml|\1|' <<<"$again"))"
}

# check NAME: one of the checks; prints the first broken promise, or nothing.
check() {
  mkdir -p "$out"
  rm -rf "${out:?}"/*
  case "$1" in
    scripts) (cd "$source" && scripts) ;;
    exhaustive) (cd "$source" && campaign exhaustive exhaustive) ;;
    swarm) (cd "$source" && campaign swarm swarm --seeds "$seeds" --level stormy) ;;
  esac
}

# confirm CHECK: fails unless the source as it is passes the check too, which is asked once: a check
# that everything fails catches nothing.
confirmed=" "
confirm() {
  local broken
  case "$confirmed" in *" $1 "*) return 0 ;; esac
  broken="$(simulator="$unmutated" check "$1")"
  if [ -n "$broken" ]; then fail "the source as it is breaks a promise: $broken"; fi
  confirmed+="$1 "
}

row() { printf '%-48s %7s  %s\n' "$1" "$2" "$3"; }

row mutant seconds "caught by"
copy_source
begin=$SECONDS
build || { cat "$work/build.log" >&2; fail "the source as it is does not build"; }
cp "$simulator" "$unmutated"
confirm scripts
row "(none)" $((SECONDS - begin)) "nothing, as it should be"

caught=0
for patch in "${mutants[@]}"; do
  name="$(basename "$patch" .patch)"
  begin=$SECONDS
  by=scripts
  if ! apply "$root/$patch"; then
    found="ERROR: the patch does not apply any more"
  else
    if build; then
      # In the order of their cost.
      for by in scripts exhaustive swarm; do
        found="$(check "$by")"
        if [ -n "$found" ]; then break; fi
      done
    else
      grep -A 8 '^error' "$work/build.log" >&2 || true
      found="ERROR: it does not build"
    fi
    apply --reverse "$root/$patch"
    if [ -n "$found" ]; then confirm "$by"; fi
  fi
  case "$found" in
    "") found="NOT CAUGHT" ;;
    ERROR*) ;;
    *) caught=$((caught + 1)) ;;
  esac
  row "$name" $((SECONDS - begin)) "$found"
done

echo "$caught of ${#mutants[@]} caught"
[ "$caught" -eq ${#mutants[@]} ]
