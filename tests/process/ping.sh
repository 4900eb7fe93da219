#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ping.sh CASE - `softnd ping` between two processes.
. "$(dirname "$0")/lib.sh"

_serve() { start_listening server "$SOFTND" ping --server "${1:-127.0.0.1:0}"; }

sizes_come_back_as_they_were_sent() {
    _serve
    for size in 0 1 64 513 65537 1M; do
        expect 0 ping "$SOFTND" ping "127.0.0.1:$PORT" --count 3 --interval 0 --verify --size $size
        grep -q '3 sent, 3 answered, 0% lost, 0 wrong' ping.out || fail "size $size: no summary"
    done
}

largest_size() {
    _serve
    expect 0 ping "$SOFTND" ping "127.0.0.1:$PORT" --count 1 --verify --size 64M
    grep -q '67108864 bytes from' ping.out || fail "no line for the ping"
}

one_line_per_ping_and_a_summary() {
    _serve
    expect 0 ping "$SOFTND" ping "127.0.0.1:$PORT" -c 2 -i 10ms
    [[ $(grep -c "^64 bytes from 127.0.0.1:$PORT: seq=[12] time=[0-9.]* us$" ping.out) -eq 2 ]] ||
        fail "not two lines"
    grep -q -- "^--- 127.0.0.1:$PORT softnd ping statistics, transport \(iwarp\|local\) ---$" ping.out ||
        fail "no heading"
    grep -q '^2 sent, 2 answered, 0% lost$' ping.out || fail "no counts"
    grep -q '^round trip min/avg/max/mdev = [0-9.]*/[0-9.]*/[0-9.]*/[0-9.]* us$' ping.out ||
        fail "no times"
}

many_without_interval() {
    _serve
    expect 0 ping "$SOFTND" ping "127.0.0.1:$PORT" -c 5000 -i 0 -q
    grep -q '5000 sent, 5000 answered' ping.out || fail "no summary"
    grep -q 'bytes from' ping.out && fail "quiet is not quiet"
    true
}

ipv6() {
    have_ipv6 || skip "this machine has no IPv6 loopback address"
    _serve '[::1]:0'
    expect 0 ping "$SOFTND" ping "[::1]:$PORT" -c 2 -i 0 -v
}

every_address_of_the_machine_is_served() {
    start_listening server "$SOFTND" ping --server --port 0
    local n=0
    while read -r address; do
        expect 0 ping "$SOFTND" ping "$address" -c 1 -v
        n=$((n + 1))
    done < <(sed -n 's/.*listening on //p' server.err)
    [[ $n -ge 1 ]] || fail "no address"
    [[ $(sed -n 's/.*listening on .*:\([0-9]*\)$/\1/p' server.err | sort -u | wc -l) -eq 1 ]] ||
        fail "different ports"
    expect 0 ping "$SOFTND" ping "localhost:$PORT" -c 1
}

several_clients_at_once() {
    _serve
    local -a clients=()
    for i in 1 2 3 4; do
        start "client$i" "$SOFTND" ping "127.0.0.1:$PORT" -c 200 -i 1ms -v -q -b "$((i * 1000))"
        clients+=("$PID")
    done
    for i in 1 2 3 4; do
        finish "${clients[i - 1]}" 0 "client$i"
        grep -q '200 sent, 200 answered, 0% lost, 0 wrong' "client$i.out" || fail "client$i"
    done
}

interrupted_client_prints_its_summary() {
    _serve
    start client "$SOFTND" ping "127.0.0.1:$PORT" -i 10ms
    until_true has_line client.out 'seq=3' || fail "no pings"
    kill -INT "$PID"
    finish "$PID" 0 client
    grep -q '0% lost' client.out || fail "no summary"
}

interrupted_server_ends_well() {
    _serve
    local server=$PID
    start client "$SOFTND" ping "127.0.0.1:$PORT" -i 1ms -q
    until_true has_line server.err 'connected' || fail "no client"
    kill -INT "$server"
    finish "$server" 0 server
    finish "$PID" 1 client
}

server_killed_ends_the_client() {
    _serve
    local server=$PID
    start client "$SOFTND" ping "127.0.0.1:$PORT" -i 10ms
    until_true has_line client.out 'seq=3' || fail "no pings"
    kill -9 "$server"
    finish "$PID" 1 client
    [[ $(grep -c . client.err) -eq 1 ]] || fail "not one line on stderr"
}

client_killed_leaves_the_server_serving() {
    _serve
    for i in 1 2 3; do
        start client "$SOFTND" ping "127.0.0.1:$PORT" -i 1ms
        until_true has_line client.out 'seq=3' || fail "no pings"
        kill -9 "$PID"
        wait "$PID" 2>/dev/null
        until_true eval "[[ \$(grep -c 'left after' server.err) -eq $i ]]" ||
            fail "the server did not notice"
    done
    expect 0 ping "$SOFTND" ping "127.0.0.1:$PORT" -c 5 -i 0 -v
}

stranger_is_refused_and_the_server_goes_on() {
    _serve
    expect 1 send "$SOFTND" cat --send /dev/null "127.0.0.1:$PORT"
    expect_error_line send 'connection refused'
    expect 0 ping "$SOFTND" ping "127.0.0.1:$PORT" -c 1
}

nobody_answers() {
    _serve
    kill -9 "$PID"
    wait "$PID" 2>/dev/null
    expect 1 ping "$SOFTND" ping "127.0.0.1:$PORT" -c 1
    expect_error_line ping 'connection refused'
}

stopped_server_runs_into_the_timeout() {
    _serve
    local server=$PID
    start client "$SOFTND" ping "127.0.0.1:$PORT" -i 1ms -t 0.5
    until_true has_line client.out 'seq=3' || fail "no pings"
    kill -STOP "$server"
    finish "$PID" 1 client
    kill -CONT "$server"
    expect_error_line client 'timed out'
    grep -q ' answered, ' client.out || fail "no summary"
}

port_in_use() {
    _serve
    expect 1 second "$SOFTND" ping --server "127.0.0.1:$PORT"
    expect_error_line second "127.0.0.1:$PORT: address in use"
}

unknown_host() {
    expect 1 ping "$SOFTND" ping no.such.host.invalid
    expect_error_line ping 'no.such.host.invalid: '
}

wrong_usage_is_exit_code_2() {
    local -a lines=('' 'a b' '--size 65M host' '--count 0 host' '--interval x host' '--timeout 0 host'
        '--port -1 host' 'host:x' '--nothing' '--size')
    for line in "${lines[@]}"; do
        read -ra words <<<"$line"
        expect 2 usage "$SOFTND" ping "${words[@]}"
        expect_error_line usage 'softnd ping'
    done
}

readme_example_says_hello() {
    _serve
    export SOFTND_PROVIDER=$LIBSOFTND
    expect 0 hello "$HELLO" 127.0.0.1 "$PORT"
    [[ $(<hello.out) == "hello, RDMA" ]] || fail "it said: $(<hello.out)"
}

run_case "$@"
