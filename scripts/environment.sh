# Where is everything? Sourced by the other scripts, which then stand in the checkout's root.
# shellcheck shell=bash disable=SC2034

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
cd "$root" || exit 1

# CI may run without a login.
export HOME="${HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)}"
cache="${XDG_CACHE_HOME:-$HOME/.cache}/machinist"
target="${CARGO_TARGET_DIR:-$root/target}"
venv="$root/.venv"

# The one place where cargo-deny's version is pinned.
deny_version=0.20.2
deny="$cache/cargo-deny-$deny_version/bin/cargo-deny"
# Here mdBook's is.
mdbook_version=0.5.4
mdbook="$cache/mdbook-$mdbook_version/bin/mdbook"
# Unpacked out of Debian's package, where the machine has none of its own.
promtool="$cache/promtool/promtool"
if [ ! -x "$promtool" ] && command -v promtool >/dev/null; then promtool="$(command -v promtool)"; fi
# Go's is the one that the testbed's programs ask for.
go_version="$(awk '$1 == "go" { print $2; exit }' tools/kube/go.mod)"
own_go="$cache/go-$go_version"

# rustup's programs, even where no shell profile was read since it was installed.
PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
# Our own Go is there only where the machine's is missing or too old.
if [ -x "$own_go/bin/go" ]; then PATH="$own_go/bin:$PATH"; fi
export PATH
