#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds one preset of CMakePresets.json: build.sh [release|dev|asan|tsan].
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
scripts/deps.sh build
log=$(mktemp)
trap 'rm -f "$log"' EXIT
cmake --preset "$preset" >"$log" 2>&1 || {
    cat "$log"
    exit 1
}
if [[ $preset == release ]]; then
    # What is installed; the tests are built by the other presets.
    cmake --build --preset "$preset" --target softnd softnd_tool ndutil ndutil_shared softndk
else
    cmake --build --preset "$preset"
fi
