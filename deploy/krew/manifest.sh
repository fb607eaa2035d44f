#!/usr/bin/env bash
# Prints the krew manifest of a release, with the sums of its archives.
#
#   deploy/krew/manifest.sh VERSION FOLDER ARCHIVES_URL HOMEPAGE_URL
#
# FOLDER holds machinist-VERSION-OS-ARCH.tar.gz for each platform, with kubectl-machinist and LICENSE in it;
# ARCHIVES_URL is where the same files can be had from.
set -euo pipefail

if [ $# -ne 4 ]; then
  sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
version=${1#v} folder=$2 archives=${3%/} homepage=$4

sum() {
  local file="$folder/machinist-$version-$1.tar.gz"
  if [ ! -f "$file" ]; then
    echo "there is no $file" >&2
    exit 1
  fi
  if command -v sha256sum > /dev/null; then sha256sum "$file"; else shasum -a 256 "$file"; fi | cut -d ' ' -f 1
}

linux_amd64=$(sum linux-amd64)
linux_arm64=$(sum linux-arm64)
darwin_amd64=$(sum darwin-amd64)
darwin_arm64=$(sum darwin-arm64)
sed -e '/^#/d' \
  -e "s|@VERSION@|$version|g" -e "s|@ARCHIVES@|$archives|g" -e "s|@HOMEPAGE@|$homepage|g" \
  -e "s|@SHA256_LINUX_AMD64@|$linux_amd64|g" -e "s|@SHA256_LINUX_ARM64@|$linux_arm64|g" \
  -e "s|@SHA256_DARWIN_AMD64@|$darwin_amd64|g" -e "s|@SHA256_DARWIN_ARM64@|$darwin_arm64|g" \
  "$(dirname "${BASH_SOURCE[0]}")/machinist.yaml.in"
