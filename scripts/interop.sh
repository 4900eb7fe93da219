#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The interoperation tests alone: packages, a build, and what is labelled interop. See docs/interop.md.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/deps-interop.sh || echo "what has no packages will skip"
scripts/build.sh dev
ctest --test-dir build/dev -L interop --output-on-failure --no-tests=error
