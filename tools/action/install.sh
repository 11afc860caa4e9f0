#!/usr/bin/env bash
# Installs the released binary of this runner's platform into $1. Verifies its checksum, and its provenance if gh is there. Exit code 3
# means that there is no binary to download; everything else that fails is an error.
#   PORTCULLIS_VERSION: such as 0.1.0   PORTCULLIS_REPOSITORY: OWNER/NAME   RUNNER_OS, RUNNER_ARCH: from GitHub
set -euo pipefail
folder=$1
here=$(cd "$(dirname "$0")" && pwd)
platforms=$here/../packages/platforms.json
target=$(sed -n "s/.*\"target\": \"\([^\"]*\)\".*\"runner\": \"$RUNNER_OS-$RUNNER_ARCH\".*/\1/p" "$platforms")
if [ -z "$target" ]; then
  echo "no released binary for $RUNNER_OS-$RUNNER_ARCH" >&2
  exit 3
fi
if [ -x "$folder/portcullis" ]; then
  echo "portcullis $PORTCULLIS_VERSION is in the cache"
  exit 0
fi
base=${PORTCULLIS_DOWNLOADS:-https://github.com/$PORTCULLIS_REPOSITORY/releases/download}/v$PORTCULLIS_VERSION
archive=portcullis-$PORTCULLIS_VERSION-$target.tar.gz
download=$(mktemp -d)
trap 'rm -rf "$download"' EXIT
if ! curl --fail --silent --show-error --location --retry 3 --output "$download/$archive" "$base/$archive"; then
  echo "there is no $base/$archive" >&2
  exit 3
fi
curl --fail --silent --show-error --location --retry 3 --output "$download/SHA256SUMS" "$base/SHA256SUMS"
line=$(grep -F "  $archive" "$download/SHA256SUMS") || { echo "SHA256SUMS does not have $archive" >&2; exit 1; }
if command -v sha256sum > /dev/null; then
  (cd "$download" && echo "$line" | sha256sum --check --quiet -)
else
  (cd "$download" && echo "$line" | shasum --algorithm 256 --check --quiet -)
fi
if command -v gh > /dev/null; then
  gh attestation verify "$download/$archive" --repo "$PORTCULLIS_REPOSITORY"
else
  echo "gh is not installed: the checksum was verified, the provenance was not" >&2
fi
mkdir -p "$folder"
tar -xzf "$download/$archive" -C "$folder" portcullis
echo "portcullis $PORTCULLIS_VERSION for $target is installed"
