#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The demonstration: builds SoftND, registers it in a private catalog, and moves a file of 1 GiB from
# one process to another through NetworkDirect, by RDMA Write and then by RDMA Read.
#   DEMO_BYTES   size of the file (default 1 GiB)
#   SOFTND       the program to use, instead of building it
set -euo pipefail
cd "$(dirname "$0")/.."

bytes=${DEMO_BYTES:-1073741824}
mib=1048576

say() { printf '\n== %s\n' "$*"; }
fail() {
    printf '\nDEMO FAILED: %s\n' "$*" >&2
    exit 1
}

softnd=${SOFTND:-$PWD/build/softnd}
if [[ -z ${SOFTND:-} ]]; then
    say "building"
    scripts/build.sh release
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/softnd-demo.XXXXXX")
receiver=
cleanup() {
    [[ -z $receiver ]] || kill "$receiver" 2>/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

say "registering the provider in a private catalog"
export SOFTND_CATALOG=$work/catalog
unset SOFTND_PROVIDER
"$softnd" install || fail "softnd install"
"$softnd" list

# Random data, but fast: 4 MiB from the system, repeated with a running number in front of each
# MiB, so that no two MiB are equal and none can stand in for another.
say "making a file of $bytes bytes"
free=$(df --output=avail -B1 "$work" | tail -1)
((free > 2 * bytes + 64 * mib)) || fail "$work needs $((2 * bytes / mib)) MiB of free space"
head -c $((4 * mib)) /dev/urandom >"$work/random"
{
    for ((i = 0; i * mib < bytes; i++)); do
        printf '%016d' "$i"
        tail -c +$((1 + i % 4 * mib)) "$work/random" | head -c $((mib - 16)) || true
    done
} | head -c "$bytes" >"$work/sent" || true
[[ $(stat -c %s "$work/sent") -eq $bytes ]] || fail "the file was not made"
before=$(sha256sum <"$work/sent")

for mode in write read; do
    say "sending it by RDMA ${mode^}"
    rm -f "$work/received"
    # Port 0: the receiver picks a free port and says which.
    "$softnd" cat --recv "$work/received" --listen 127.0.0.1:0 2>"$work/receiver.log" &
    receiver=$!
    port=
    for ((i = 0; i < 100; i++)); do
        port=$(sed -n 's/.*listening on 127\.0\.0\.1:\([0-9]*\)$/\1/p' "$work/receiver.log")
        [[ -n $port ]] && break
        kill -0 "$receiver" 2>/dev/null || break
        sleep 0.1
    done
    [[ -n $port ]] || fail "the receiver did not start: $(cat "$work/receiver.log")"
    "$softnd" cat --send "$work/sent" "127.0.0.1:$port" --mode "$mode" ||
        fail "the sender failed; the receiver said: $(cat "$work/receiver.log")"
    wait "$receiver" || fail "the receiver failed: $(cat "$work/receiver.log")"
    receiver=
    grep -v listening "$work/receiver.log"
    [[ -f $work/received ]] || fail "no file was received"
    after=$(sha256sum <"$work/received")
    echo "SHA-256 of the file sent:     ${before%% *}"
    echo "SHA-256 of the file received: ${after%% *}"
    [[ $before == "$after" ]] || fail "the files differ"
    cmp -s "$work/sent" "$work/received" || fail "the files differ"
done

say "done: both transfers arrived intact"
