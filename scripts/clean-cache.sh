#!/usr/bin/env bash
# Removes the user's cache folder of Machinist, which all checkouts share.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
echo "removing $cache"
rm -rf "$cache"
