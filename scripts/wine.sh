#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs a Windows program under Wine, in a Wine directory of its own (WINEPREFIX, made at the first
# use), quietly. CTest starts every test of the windows preset through it.
set -euo pipefail
export WINEPREFIX=${WINEPREFIX:-${TMPDIR:-/tmp}/softnd-wine-$(id -u)}
export WINEDEBUG=${WINEDEBUG:--all}
export WINEDLLOVERRIDES=${WINEDLLOVERRIDES:-mscoree,mshtml=}
wine=$(command -v wine64 || command -v wine) || {
    echo "wine.sh: no Wine; scripts/deps-windows.sh installs it" >&2
    exit 77
}
if [[ ! -f $WINEPREFIX/softnd-ready ]]; then
    mkdir -p "$WINEPREFIX"
    (
        flock 9
        [[ -f $WINEPREFIX/softnd-ready ]] || {
            DISPLAY='' "$wine" wineboot -i >/dev/null 2>&1
            touch "$WINEPREFIX/softnd-ready"
        }
    ) 9>"$WINEPREFIX.lock"
fi
exec "$wine" "$@"
