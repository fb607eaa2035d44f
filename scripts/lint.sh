#!/usr/bin/env bash
# Is the source as we want it? Cheapest questions first.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

# layer CRATE PATTERN: fails where the crate, built alone, brings a crate that its layer forbids.
layer() {
  local found
  found="$(cargo tree --locked --quiet --package "machinist-$1" --edges normal --prefix none |
    awk '{ print $1 }' | sort -u | grep -xE "$2" | tr '\n' ' ' || true)"
  if [ -n "$found" ]; then
    echo "lint: crates/$1 must not depend on: $found(see ARCHITECTURE.md)" >&2
    return 1
  fi
}

cargo fmt --all --check

# The simulator brings its own cloud, which keeps its optimised build short.
layer simulation 'aws-(config|sdk|smithy).*|machinist-cli'
clients='kube-client|kube-runtime|hyper|reqwest'
ambient='tokio|async-trait|tracing|rand|rand_.*|getrandom'
layer api "$clients|$ambient|machinist-(core|providers|operator|cli|testbed)"
layer core "$clients|$ambient|machinist-(providers|operator|cli|testbed)"
layer providers 'kube-client|kube-runtime|machinist-(operator|cli|testbed)'
layer operator 'machinist-(cli|testbed|simulation)'
layer cli 'machinist-(operator|providers|simulation)'
layer testbed 'machinist-(core|providers|operator|cli|simulation)'

cargo clippy --locked --workspace --all-targets -- -D warnings
"$deny" --locked check bans licenses sources
