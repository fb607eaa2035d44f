#!/usr/bin/env bash
# Which file is each Go program of the testbed and the tests, and how does it get there when missing?
#
#   tools/build.sh kube|kwok|helm|capi
#
# Prints one line "<program> <path>" to standard output for every program of the module named; of capi
# also "cluster-api-crds <folder>", the definitions that its programs need. A
# program comes from the folder $KUBEBUILDER_ASSETS where that has it, else from the user's cache
# folder, which is filled here, once, by building tools/<module>/go.mod. Progress goes to standard
# error: a line for each step and one every $MACHINIST_PROGRESS_SECONDS (default 30).
#
# go.mod is the one place where versions are pinned; its hash is part of the cache folder's name, so
# that a changed go.mod is built anew and an old checkout still finds what it built.
set -euo pipefail

tools="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
module="${1:-}"
interval="${MACHINIST_PROGRESS_SECONDS:-30}"

say() { echo "tools/build.sh: $*" >&2; }
fail() {
  say "$*"
  exit 1
}

# pinned MODULE: the version that go.mod requires of it. A replace line carries a version too, hence
# only the first match.
pinned() {
  awk -v name="$1" '$1 == "require" && $2 == name { print $3; exit } $1 == name && $2 ~ /^v/ { print $2; exit }' \
    "$tools/$module/go.mod"
}

tags=""
case "$module" in
  kube)
    programs="etcd kube-apiserver kube-controller-manager kube-scheduler kubectl"
    version="$(pinned k8s.io/kubernetes)"
    numbers="${version#v}"
    package=k8s.io/component-base/version
    # Without these every client reads the version v0.0.0.
    linked="-X $package.gitVersion=$version -X $package.gitMajor=${numbers%%.*}"
    numbers="${numbers#*.}"
    linked="$linked -X $package.gitMinor=${numbers%%.*} -X $package.gitTreeState=clean"
    ;;
  kwok)
    programs="kwok"
    version="$(pinned sigs.k8s.io/kwok)"
    linked="-X sigs.k8s.io/kwok/pkg/consts.Version=${version#v}"
    ;;
  helm)
    programs="helm"
    version="$(pinned helm.sh/helm/v4)"
    # A chart may ask which version renders it.
    linked="-X helm.sh/helm/v4/internal/version.version=$version"
    ;;
  capi)
    programs="cluster-api-core cluster-api-provider cluster-api-crds"
    version="$(pinned sigs.k8s.io/cluster-api)"
    linked="-X sigs.k8s.io/cluster-api/version.gitVersion=$version"
    # As Cluster API builds its releases: what is compared with them is measured against the same.
    tags=fieldsv1string
    ;;
  *) fail "usage: tools/build.sh kube|kwok|helm|capi" ;;
esac
[ -n "$version" ] || fail "tools/$module/go.mod pins no version"

hash="$(sha256sum <"$tools/$module/go.mod" | cut -c1-12)"
cache="${XDG_CACHE_HOME:-${HOME:?neither XDG_CACHE_HOME nor HOME is set}/.cache}/machinist"
folder="$cache/$module-$version-$hash"

# Sets `missing` to the programs that neither the assets nor the cache have.
look() {
  missing=""
  local program
  for program in $programs; do
    if [ -n "${KUBEBUILDER_ASSETS:-}" ] && [ -x "$KUBEBUILDER_ASSETS/$program" ]; then continue; fi
    if [ -x "$folder/$program" ]; then continue; fi
    missing="$missing $program"
  done
}

print_programs() {
  local program
  for program in $programs; do
    if [ -n "${KUBEBUILDER_ASSETS:-}" ] && [ -x "$KUBEBUILDER_ASSETS/$program" ]; then
      echo "$program $KUBEBUILDER_ASSETS/$program"
    else
      echo "$program $folder/$program"
    fi
  done
}

building=""
compiler=""
# Called by the trap below: a build that is stopped leaves neither a compiler nor half a folder.
clean_up() {
  if [ -n "$compiler" ]; then kill "$compiler" 2>/dev/null || true; fi
  if [ -n "$building" ]; then rm -rf "$building"; fi
}

build() {
  local total compiled waited=0 log
  # What an earlier, killed build left. Nobody else can be using it: the lock is ours.
  rm -rf "$cache/.building-$module-"*
  building="$(mktemp -d "$cache/.building-$module-XXXXXX")"
  trap clean_up EXIT
  trap 'exit 143' TERM
  trap 'exit 130' INT
  mkdir "$building/module" "$building/programs"
  cp "$tools/$module/go.mod" "$tools/$module/go.sum" "$building/module/"
  cd "$building/module"
  # A workspace or vendor folder of the user's has no say in this module.
  export GOWORK=off GOFLAGS=

  say "$module $version: fetching sources"
  total="$(go list -deps tool | wc -l)"
  say "$module $version: compiling $total packages"
  log="$building/log"
  go build -v -trimpath -tags "$tags" -ldflags "-s -w $linked" -o "$building/programs/" tool >"$log" 2>&1 &
  compiler=$!
  while kill -0 "$compiler" 2>/dev/null; do
    sleep 1
    waited=$((waited + 1))
    if [ $((waited % interval)) -eq 0 ]; then
      compiled="$(wc -l <"$log")"
      say "$module $version: compiled $compiled of $total packages, $waited s"
    fi
  done
  if ! wait "$compiler"; then
    compiler=""
    tail -n 40 "$log" >&2
    fail "$module $version: go build failed"
  fi
  compiler=""

  # A program's name is its package's: etcd's is called "server", and Cluster API's say still less.
  rename server etcd
  rename core cluster-api-core
  rename docker cluster-api-provider
  if [ "$module" = capi ]; then copy_cluster_api_crds; fi
  rm -rf "$folder"
  mv "$building/programs" "$folder"
  say "$module $version: built in $waited s: $folder"
}

rename() {
  if [ -e "$building/programs/$1" ]; then mv "$building/programs/$1" "$building/programs/$2"; fi
}

# Beside the programs, so that Go and its module cache are needed once only.
copy_cluster_api_crds() {
  local crds="$building/programs/cluster-api-crds" core provider
  core="$(go list -m -f '{{.Dir}}' sigs.k8s.io/cluster-api)"
  provider="$(go list -m -f '{{.Dir}}' sigs.k8s.io/cluster-api/test)"
  mkdir "$crds"
  # The module cache is read-only; a copy that is too could not be removed.
  cp --no-preserve=mode "$core"/core/config/crd/bases/*.yaml \
    "$provider"/infrastructure/docker/config/crd/bases/*.yaml "$crds/"
}

look
if [ -n "$missing" ]; then
  # Where Go's own instructions put it; they leave it to the user to add it to PATH.
  if ! command -v go >/dev/null && [ -x /usr/local/go/bin/go ]; then PATH="$PATH:/usr/local/go/bin"; fi
  if ! command -v go >/dev/null; then
    wanted="$(awk '$1 == "go" { print $2; exit }' "$tools/$module/go.mod")"
    fail "cannot build$missing: there is no \"go\" in PATH. Install Go $wanted or newer" \
      "(https://go.dev/dl/), or set KUBEBUILDER_ASSETS to a folder that holds$missing"
  fi
  mkdir -p "$cache"
  # The compiler inherits the lock, so one whose script was killed is waited for, not doubled.
  exec 9>"$cache/.lock-$module"
  if ! flock -n 9; then
    say "$module $version: waiting for another build"
    while ! flock -w "$interval" 9; do say "$module $version: still waiting for another build"; done
  fi
  look
  if [ -n "$missing" ]; then build; fi
fi
print_programs
