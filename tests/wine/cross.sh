#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# softnd.exe under Wine and softnd on Linux talk to each other: ping, cat and perf, in every role; and
# the two-process cases of the conformance suite, with the child under Wine.
#   cross.sh WINE_SH SOFTND_EXE [LINUX_SOFTND]
# Without a Linux build with its tests beside this one (any preset but release) it skips.
set -uo pipefail
wine=$1 exe=$2 linux=${3:-}
root=$(cd "$(dirname "$0")/../.." && pwd)
for try in "$root"/build/softnd "$root"/build/dev/softnd "$root"/build/*/softnd; do
    [[ -n $linux ]] || [[ ! -x $try || ! -x $(dirname "$try")/conform_peer ]] || linux=$try
done
[[ -n $linux ]] || {
    echo "skipped: no Linux build of softnd"
    exit 77
}
work=$(mktemp -d "${TMPDIR:-/tmp}/softnd-cross.XXXXXX")
server=
cleanup() {
    [[ -z $server ]] || kill "$server" 2>/dev/null
    rm -rf "$work"
}
trap cleanup EXIT
export SOFTND_CATALOG=$work/catalog
unset SOFTND_PROVIDER
failed=0
fail() {
    echo "FAILED: $*"
    cat "$work/log" 2>/dev/null
    failed=1
}

# The two programs, by side; file names as the side writes them.
program() { # sets cmd
    if [[ $1 == windows ]]; then cmd=("$wine" "$exe"); else cmd=("$linux"); fi
}
run() {
    local cmd
    program "$1"
    "${cmd[@]}" "${@:2}"
}
name_for() {
    if [[ $1 == windows ]]; then printf 'Z:%s' "${2//\//\\}"; else printf '%s' "$2"; fi
}

# Starts a server in the background and sets $server and $port from what it says.
start() {
    local cmd
    program "$1"
    : >"$work/log"
    # No function here: it would be a shell in between, which a signal ends without its command.
    "${cmd[@]}" "${@:2}" >"$work/log" 2>&1 &
    server=$!
    port=
    for ((i = 0; i < 300; i++)); do
        port=$(tr -d '\r' <"$work/log" | sed -n 's/.*listening on 127\.0\.0\.1:\([0-9]*\).*/\1/p')
        [[ -n $port ]] && return 0
        kill -0 "$server" 2>/dev/null || break
        sleep 0.1
    done
    fail "$* did not start"
    return 1
}

head -c 5000001 /dev/urandom >"$work/sent"
for sides in "linux windows" "windows linux"; do
    read -r here there <<<"$sides"
    if start "$here" ping --server 127.0.0.1:0; then
        run "$there" ping -c 5 -i 0.05 "127.0.0.1:$port" >"$work/ping" 2>&1 &&
            grep -q '5 sent, 5 answered' "$work/ping" || fail "ping from $there to $here"
        kill "$server" 2>/dev/null
        wait "$server" 2>/dev/null
        echo "ping $there -> $here"
    fi
    for mode in write read; do
        rm -f "$work/received"
        start "$here" cat --recv "$(name_for "$here" "$work/received")" --listen 127.0.0.1:0 ||
            continue
        run "$there" cat --send "$(name_for "$there" "$work/sent")" "127.0.0.1:$port" \
            --mode "$mode" >"$work/cat" 2>&1 || fail "cat $mode from $there to $here"
        wait "$server" || fail "the receiver on $here"
        server=
        cmp "$work/sent" "$work/received" || fail "cat $mode from $there to $here: other bytes"
        echo "cat $mode $there -> $here"
    done
done

# Every byte of each operation is compared by its receiver.
for sides in "linux windows" "windows linux"; do
    read -r here there <<<"$sides"
    start "$here" perf --server 127.0.0.1:0 || continue
    for test in send_lat write_lat read_lat "send_bw -q 2" "write_bw -q 2" "read_bw -q 2"; do
        # shellcheck disable=SC2086 # a name, and an option
        run "$there" perf $test "127.0.0.1:$port" -s 1,1000,100001 -n 20 -v >"$work/perf" 2>&1 || {
            cat "$work/perf"
            fail "perf $test from $there to $here"
        }
        echo "perf $test $there -> $here"
    done
    kill "$server" 2>/dev/null
    wait "$server" 2>/dev/null
    server=
done

# Messages both ways, the other's memory, errors in either direction, an answer turned down.
linux_peer=$(dirname "$linux")/conform_peer
printf '#!/bin/sh\nexec "%s" "%s" "$@"\n' "$wine" "$(dirname "$exe")/conform_peer.exe" >"$work/child"
chmod +x "$work/child"
for case in two_processes_talk one_process_accesses_the_memory_of_another \
    message_too_long_between_processes message_that_nobody_receives_between_processes \
    child_turns_the_answer_down child_leaves_at_once; do
    SOFTND_TRANSPORT=iwarp CONFORM_CHILD=$work/child "$linux_peer" "$case" >"$work/log" 2>&1 ||
        fail "$case"
    echo "$case, child under Wine"
done
exit "$failed"
