#!/bin/sh
# SPDX-License-Identifier: MIT
# extract.sh README NAME OUTPUT: writes the code block that follows the line
# "<!-- example: NAME -->" of the page; leaves OUTPUT alone if it says the same already.
set -e
awk -v mark="<!-- example: $2 -->" '
    $0 == mark { found = 1; next }
    found && /^```$/ { exit }
    found && /^```/ { inside = 1; next }
    inside { print }' "$1" >"$3.new"
if [ ! -s "$3.new" ]; then
    rm -f "$3.new"
    echo "$1 has no example $2" >&2
    exit 1
fi
if cmp -s "$3.new" "$3"; then rm -f "$3.new"; else mv "$3.new" "$3"; fi
