#!/bin/bash
# SPDX-License-Identifier: MIT
# run.sh CASE - consumers under `softnd ndk-run` in two processes. Exit 0 good, 1 bad.
# SOFTND, EXCHANGE, WINE (what starts them, if anything), CONSUMERS (a directory), MODULE (the end of
# their names) and WORK come from ctest.
set -u
softnd=(${WINE:+"$WINE"} "$SOFTND")
exchange=(${WINE:+"$WINE"} "$EXCHANGE")
mkdir -p "$WORK/$1" && cd "$WORK/$1" || exit 1

_fail() {
    echo "FAILED: $*"
    for f in server.txt client.txt; do
        [ -f $f ] && sed "s/^/$f: /" $f
    done
    [ -n "${server:-}" ] && kill "$server" 2>/dev/null
    exit 1
}

# The port in the server's output, when it has come.
_port() {
    local i line
    for i in $(seq 300); do
        line=$(tr -d '\r' <server.txt | sed -n 's/.*listening on port //p')
        [ -n "$line" ] && echo "$line" && return
        kill -0 "$server" 2>/dev/null || return
        sleep 0.1
    done
}

# The example, both sides with these options.
_exchange() {
    rm -f server.txt client.txt
    "${softnd[@]}" ndk-run "$@" -- "$CONSUMERS/ndk_exchange$MODULE" server 1 127.0.0.1 >server.txt 2>&1 &
    server=$!
    local port
    port=$(_port)
    [ -n "$port" ] || _fail "the server does not listen"
    "${softnd[@]}" ndk-run "$@" -- "$CONSUMERS/ndk_exchange$MODULE" client 1 127.0.0.1 "127.0.0.1:$port" \
        >client.txt 2>&1 || _fail "client"
    wait "$server" || _fail "server"
    grep -q 'client done, status 0x00000000' client.txt || _fail "client's message"
    grep -q 'server done, status 0x00000000' server.txt || _fail "server's message"
    grep -q 'rule broken' server.txt client.txt && _fail "a rule was broken"
    return 0
}

exchange_inline_completions_breaks_no_rule() { _exchange --completions inline; }
exchange_pending_completions_breaks_no_rule() { _exchange --completions pending; }
exchange_early_completions_breaks_no_rule() { _exchange --completions=early; }
exchange_random_completions_breaks_no_rule() { _exchange --completions random; }
exchange_scattered_pages_moves_the_same_bytes() { _exchange --logical-pages scattered; }
exchange_constant_tokens_works() { _exchange --tokens constant; }
exchange_without_verifier_works() { _exchange --verifier off; }

# A user-mode program over the SPI and a kernel-style consumer.
spi_program_serves_a_consumer() {
    "${exchange[@]}" server >server.txt 2>&1 &
    server=$!
    local port
    port=$(_port)
    [ -n "$port" ] || _fail "the server does not listen"
    "${softnd[@]}" ndk-run -- "$CONSUMERS/ndk_exchange$MODULE" client 1 127.0.0.1 "127.0.0.1:$port" \
        >client.txt 2>&1 || _fail "client"
    wait "$server" || _fail "server"
    grep -q 'server done' server.txt || _fail "server's message"
}

consumer_serves_an_spi_program() {
    "${softnd[@]}" ndk-run -- "$CONSUMERS/ndk_exchange$MODULE" server 1 127.0.0.1 >server.txt 2>&1 &
    server=$!
    local port
    port=$(_port)
    [ -n "$port" ] || _fail "the server does not listen"
    "${exchange[@]}" client "$port" >client.txt 2>&1 || _fail "client"
    wait "$server" || _fail "server"
    grep -q 'client done' client.txt || _fail "client's message"
}

client_without_server_fails_and_leaves_nothing() {
    "${softnd[@]}" ndk-run -- "$CONSUMERS/ndk_exchange$MODULE" client 1 127.0.0.1 127.0.0.1:1 \
        >client.txt 2>&1 && _fail "it should have failed"
    grep -q 'FAILED, status 0xC0000236' client.txt || _fail "not STATUS_CONNECTION_REFUSED"
    grep -q 'rule broken' client.txt && _fail "a rule was broken"
    return 0
}

consumer_that_is_missing_is_said() {
    "${softnd[@]}" ndk-run ./missing$MODULE >client.txt 2>&1 && _fail "it should have failed"
    grep -q './missing' client.txt || _fail "the message does not name the file"
}

driver_entry_that_fails_is_said() {
    "${softnd[@]}" ndk-run "$CONSUMERS/ndk_exchange$MODULE" nonsense >client.txt 2>&1 &&
        _fail "it should have failed"
    grep -q 'DriverEntry returned 0xC000000D' client.txt || _fail "the status is not there"
}

"$1"
