#!/usr/bin/env bash
# What does this machine lack, and how does it get it?
#
#   scripts/setup.sh [c] [rust] [go] [python] [deny] [promtool] [mdbook] [node] [browser]
#
# As root on Debian, missing packages are installed. Otherwise they are named and nothing happens.
# Rust, Go, cargo-deny, mdBook and promtool are installed for the user alone, and the page's packages into
# web/node_modules. What is there already is left as it is.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

say() { echo "set-up: $*" >&2; }
fail() {
  say "$*"
  exit 1
}
is_wanted() { [[ " $wanted " == *" $1 "* ]]; }
has() { command -v "$1" >/dev/null; }

wanted="$*"
rust_version="$(sed -n 's/^channel = "\(.*\)"$/\1/p' rust-toolchain.toml)"

main() {
  install_packages
  if is_wanted rust; then install_rust; fi
  if is_wanted go; then install_go; fi
  if is_wanted deny; then install_deny; fi
  if is_wanted promtool; then install_promtool; fi
  if is_wanted mdbook; then install_mdbook; fi
  if is_wanted node; then install_page_packages; fi
}

install_packages() {
  local packages=()
  if ! has git; then packages+=(git); fi
  if is_wanted c && ! c_compiler_works; then packages+=(gcc libc6-dev); fi
  if is_wanted rust && ! has rustup && ! has curl; then packages+=(curl ca-certificates); fi
  if is_wanted go && ! has go; then packages+=(golang-go ca-certificates); fi
  # Debian's python3 has the venv module in a package of its own.
  if is_wanted python && ! python3 -c 'import venv, ensurepip' 2>/dev/null; then
    packages+=(python3 python3-venv)
  fi
  if is_wanted browser && [ -z "${CHROMIUM:-}" ] && ! has chromium; then packages+=(chromium); fi
  if [ ${#packages[@]} -eq 0 ]; then return 0; fi

  if ! has apt-get; then fail "please install what Debian calls: ${packages[*]}"; fi
  if [ "$(id -u)" -ne 0 ]; then
    fail "please install as root: apt-get update && apt-get install --yes ${packages[*]}"
  fi
  say "installing ${packages[*]}"
  export DEBIAN_FRONTEND=noninteractive
  update_package_lists
  apt-get -o DPkg::Lock::Timeout=300 install --yes --no-install-recommends "${packages[@]}" </dev/null
}

# The lock timeout does not cover the lock on the package lists.
update_package_lists() {
  local attempt
  for attempt in 1 2 3 4 5; do
    if apt-get -o DPkg::Lock::Timeout=300 update; then return; fi
    if [ "$attempt" -eq 5 ]; then fail "apt-get update failed"; fi
    sleep 10
  done
}

# A compiler without the C library's headers fails only minutes into the build.
c_compiler_works() { has cc && cc -E -x c - <<<'#include <stdlib.h>' >/dev/null 2>&1; }

install_rust() {
  if ! has rustup; then
    # A distribution's own Rust will do where it is the very version.
    if has cargo && has cargo-clippy && has rustfmt && [[ "$(cargo --version)" == "cargo $rust_version "* ]]; then
      return
    fi
    install_rustup
  fi
  local installed component missing=""
  installed="$(rustup component list --installed --toolchain "$rust_version" 2>/dev/null || true)"
  for component in cargo rustc rust-std rustfmt clippy; do
    if ! grep -q "^$component" <<<"$installed"; then missing="$missing $component"; fi
  done
  if [ -z "$missing" ]; then return; fi
  say "installing Rust $rust_version:$missing"
  rustup toolchain install "$rust_version" --no-self-update --profile minimal --component rustfmt --component clippy
}

install_rustup() {
  local triple folder
  triple="$(uname -m)-unknown-linux-gnu"
  if [ "$(uname -s)" = Darwin ]; then triple="$(uname -m | sed s/arm64/aarch64/)-apple-darwin"; fi
  folder="$(mktemp -d)"
  say "installing rustup for $triple"
  curl --proto '=https' --tlsv1.2 --fail --silent --show-error --location --retry 3 \
    --output "$folder/rustup-init" \
    "${RUSTUP_UPDATE_ROOT:-https://static.rust-lang.org/rustup}/dist/$triple/rustup-init" ||
    fail "rustup could not be fetched; install it (https://rustup.rs) and try again"
  chmod +x "$folder/rustup-init"
  RUSTUP_INIT_SKIP_PATH_CHECK=yes "$folder/rustup-init" -y --quiet --no-modify-path --default-toolchain none
  rm -rf "$folder"
}

go_is_new_enough() {
  local present
  present="$(cd / && GOTOOLCHAIN=local go env GOVERSION)"
  [ "$(printf '%s\n' "$go_version" "${present#go}" | sort -V | head -n 1)" = "$go_version" ]
}

# Any Go of the last years can fetch a newer one as a module, checked against Go's checksum database
# and through the user's own proxy. Debian's is too old to do this by itself.
install_go() {
  if ! has go; then fail "please install Go $go_version or newer (https://go.dev/dl/)"; fi
  if go_is_new_enough; then return; fi
  local version folder fetched
  version="v0.0.1-go$go_version.$(go env GOHOSTOS)-$(go env GOHOSTARCH)"
  say "fetching Go $go_version; the one here is $(cd / && GOTOOLCHAIN=local go env GOVERSION)"
  mkdir -p "$cache"
  folder="$(mktemp -d "$cache/.go-XXXXXX")"
  (cd / && GOTOOLCHAIN=local GOWORK=off GOFLAGS=-modcacherw GOMODCACHE="$folder" \
    go mod download "golang.org/toolchain@$version") ||
    fail "Go $go_version could not be fetched; install it (https://go.dev/dl/) and try again"
  fetched="$folder/golang.org/toolchain@$version"
  # A module holds neither programs that may be executed nor the go.mod files of other modules.
  chmod +x "$fetched"/bin/* "$fetched"/pkg/tool/*/*
  find "$fetched" -name _go.mod -execdir mv {} go.mod \;
  if [ ! -d "$own_go" ]; then mv "$fetched" "$own_go"; fi
  rm -rf "$folder"
}

install_deny() {
  if [ -x "$deny" ]; then return; fi
  say "building cargo-deny $deny_version, once"
  # Its release profile optimises across all crates, for minutes; a second's run needs none of that.
  CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_OPT_LEVEL=0 \
    cargo install --locked --quiet --root "$cache/cargo-deny-$deny_version" "cargo-deny@$deny_version"
}

install_mdbook() {
  if [ -x "$mdbook" ]; then return; fi
  say "building mdBook $mdbook_version, once"
  # The site is built and searched; it is neither served nor watched. A second's run needs no optimisation.
  CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_OPT_LEVEL=0 \
    cargo install --locked --quiet --no-default-features --features search \
    --root "$cache/mdbook-$mdbook_version" "mdbook@$mdbook_version"
}

# Only one program of Debian's package is wanted, and neither the server nor its service: it is unpacked
# and not installed. Anybody may fetch a package; only root may renew the lists.
install_promtool() {
  if [ -x "$promtool" ] || has promtool; then return; fi
  if ! has apt-get || ! has dpkg-deb; then
    fail "please install promtool, which is part of Prometheus (https://prometheus.io/download/)"
  fi
  local folder
  mkdir -p "$cache"
  folder="$(mktemp -d "$cache/.promtool-XXXXXX")"
  say "fetching promtool, out of Debian's package prometheus"
  if ! (cd "$folder" && apt-get download prometheus); then
    if [ "$(id -u)" -eq 0 ]; then update_package_lists; fi
    (cd "$folder" && apt-get download prometheus) ||
      fail "the package prometheus could not be fetched; run apt-get update as root, or install promtool (https://prometheus.io/download/)"
  fi
  dpkg-deb --extract "$folder"/prometheus_*.deb "$folder/unpacked"
  mkdir -p "$(dirname "$promtool")"
  mv "$folder/unpacked/usr/bin/promtool" "$promtool"
  rm -rf "$folder"
}

# Debian's Node may be too old for what builds the page, so it is not installed by itself.
node_is_new_enough() {
  local wanted present
  wanted="$(sed -n 's/.*"node": ">=\(.*\)".*/\1/p' web/package.json)"
  present="$(node --version)"
  [ "$(printf '%s\n' "$wanted" "${present#v}" | sort -V | head -n 1)" = "$wanted" ]
}

# `npm ci` refuses a lock file without the packages of other systems (npm writes only those that the registry
# at hand has). `npm install` takes what is locked, checks its hashes and, with --no-save, changes nothing.
install_page_packages() {
  if ! has node || ! has npm || ! node_is_new_enough; then
    fail "please install Node $(sed -n 's/.*"node": ">=\(.*\)".*/\1/p' web/package.json) or newer, with npm (https://nodejs.org/)"
  fi
  if cmp --silent web/package-lock.json web/node_modules/.locked; then return; fi
  say "installing the packages that build and test the page"
  (cd web && npm install --no-save --ignore-scripts --no-audit --no-fund --loglevel=error) ||
    fail "the page's packages could not be installed"
  cp web/package-lock.json web/node_modules/.locked
}

main
