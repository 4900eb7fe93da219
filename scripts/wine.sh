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
server=$(command -v wineserver || echo /usr/lib/wine/wineserver)
mkdir -p "$WINEPREFIX"
(
    flock 9
    # The server and the service processes outlive the program that needed them first. So they are
    # started here, away from its output, and stay for a while: a server that ends while the next
    # program starts would take that with it.
    if "$server" -p900 >/dev/null 2>&1 9>&- || [[ ! -f $WINEPREFIX/softnd-ready ]]; then
        DISPLAY='' "$wine" wineboot -i >/dev/null 2>&1 </dev/null 9>&- || true
        touch "$WINEPREFIX/softnd-ready"
    fi
) 9>"$WINEPREFIX.lock"
exec "$wine" "$@"
