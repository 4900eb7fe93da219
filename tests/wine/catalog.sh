#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Registration on Windows, against the test's own catalog: catalog.sh WINE_SH SOFTND_CATALOG_EXE
set -uo pipefail
wine=$1 exe=$2
work=$(mktemp -d "${TMPDIR:-/tmp}/softnd-catalog.XXXXXX")
trap 'rm -rf "$work"' EXIT
export WSC_CATALOG_FILE="Z:${work//\//\\}\\catalog"
unset SOFTND_PROVIDER
failed=0
id='{0344F8A6-2003-438B-954B-7B4BF70419EC}'

# expect CODE TEXT arguments...: the program ends with CODE and says TEXT.
expect() {
    local code=$1 text=$2 out got
    shift 2
    "$wine" "$exe" "$@" >"$work/out" 2>&1
    got=$?
    out=$(<"$work/out")
    echo "softnd $*: $got"
    if [[ $got -ne $code || $out != *"$text"* ]]; then
        printf 'FAILED: expected exit code %s and "%s", got %s:\n%s\n' "$code" "$text" "$got" "$out"
        failed=1
    fi
}

WSC_CATALOG_NOT_ELEVATED=1 expect 1 "run this as administrator" install
expect 0 registered install
[[ -s $work/catalog ]] || failed=1
expect 0 "already registered" install
expect 0 "$id" list
expect 0 "AdapterFlags" info
expect 0 "the library can be unloaded" install --check
WSC_CATALOG_NOT_ELEVATED=1 expect 1 "run this as administrator" remove
expect 0 "" remove
expect 1 "not registered" remove
expect 1 "is not registered" install --check
exit "$failed"
