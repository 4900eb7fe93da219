#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# hosts.sh CASE - two hosts, each a network namespace, joined by a wire that can delay and lose
# packets (wire.c). Needs the right to make namespaces, as root or in a user namespace; nothing
# outside of them is touched.
#   WIRE   the wire program
# shellcheck source=../process/lib.sh
. "$(dirname "$0")/../process/lib.sh"

: "${WIRE:?}"

if [[ -z ${IN_NAMESPACE:-} ]]; then
    for tool in ip unshare nsenter; do
        PATH=$PATH:/usr/sbin:/sbin command -v $tool >/dev/null || skip "the program $tool is missing"
    done
    if [[ $(id -u) -eq 0 ]]; then how=(-n); else how=(-Urn); fi
    unshare "${how[@]}" true 2>/dev/null || skip "network namespaces are not allowed here"
    IN_NAMESPACE=1 exec unshare "${how[@]}" bash "$0" "$@"
fi
PATH=$PATH:/usr/sbin:/sbin

_on() { # HOST COMMAND...
    local host=$1
    shift
    nsenter -t "$host" -n -- "$@"
}

_new_namespace() { [[ $(readlink "/proc/$1/ns/net") != "$(readlink /proc/self/ns/net)" ]]; }

_make_host() { # sets PID
    unshare -n sleep infinity &
    PID=$!
    pids+=("$PID")
    until_true _new_namespace "$PID" || fail "no namespace"
}

_no_tentative_address() { ! _on "$1" ip -6 addr show tentative | grep inet6 >/dev/null; }

# _hosts DELAY_US LOSS_PERMILLE: host A is 10.77.0.1 and fd77::1, host B 10.77.0.2 and fd77::2.
_hosts() {
    _make_host
    A=$PID
    _make_host
    B=$PID
    ip link add a1 type veth peer name a0 netns "$A" 2>veth.err ||
        skip "virtual Ethernet interfaces are not available here"
    ip link add b1 type veth peer name b0 netns "$B" || fail "no interface"
    for end in "$A a0 1" "$B b0 2"; do
        read -r host name n <<<"$end"
        _on "$host" ip link set lo up
        _on "$host" ip addr add "10.77.0.$n/24" dev "$name"
        _on "$host" ip addr add "fd77::$n/64" dev "$name" nodad 2>/dev/null || NO_IPV6=1
        _on "$host" ip link set "$name" up
    done
    ip link set a1 up
    ip link set b1 up
    start wire "$WIRE" a1 b1 "$1" "$2" 12345
    WIRE_PID=$PID
    until_true has_line wire.out ready || fail "no wire"
    echo "wire: $1 us, $2 permille, seed 12345"
}

_serve_on_a() { start_listening server nsenter -t "$A" -n -- "$SOFTND" ping --server "$1"; }
_receive_on_a() {
    start_listening recv nsenter -t "$A" -n -- "$SOFTND" cat --recv got --listen "${1:-10.77.0.1:0}"
}
_b() { nsenter -t "$B" -n -- "$SOFTND" "$@"; }
# `expect` runs programs, not functions.
_expect_b() { # CODE NAME ARGUMENTS OF SOFTND...
    local code=$1 name=$2
    shift 2
    expect "$code" "$name" nsenter -t "$B" -n -- "$SOFTND" "$@"
}

_transfer() { # MODE BYTES
    [[ -f sent ]] || make_file sent "$2"
    _receive_on_a
    local recv=$PID
    _expect_b 0 send cat --send sent "10.77.0.1:$PORT" --mode "$1"
    finish "$recv" 0 recv
    cmp sent got || fail "the file differs"
    grep -q 'transport iwarp' send.err || fail "not over iWARP"
    rm got
}

ping_between_two_hosts() {
    _hosts 0 0
    _serve_on_a 10.77.0.1:0
    _expect_b 0 ping ping "10.77.0.1:$PORT" -c 20 -i 0 -v -b 10000
    grep -q 'transport iwarp' ping.out || fail "not over iWARP"
}

ping_over_ipv6() {
    _hosts 0 0
    [[ -z ${NO_IPV6:-} ]] || skip "no IPv6 here"
    _serve_on_a '[fd77::1]:0'
    _expect_b 0 ping ping "[fd77::1]:$PORT" -c 20 -i 0 -v
}

ping_over_ipv6_link_local_addresses() {
    _hosts 0 0
    [[ -z ${NO_IPV6:-} ]] || skip "no IPv6 here"
    until_true _no_tentative_address "$A" && until_true _no_tentative_address "$B" ||
        fail "no link-local address"
    local address
    address=$(_on "$A" ip -6 addr show dev a0 scope link | sed -n 's/.*inet6 \([^/]*\).*/\1/p')
    _serve_on_a "[$address%a0]:0"
    _expect_b 0 ping ping "[$address%b0]:$PORT" -c 5 -i 0 -v
}

ping_shows_the_delay_of_the_wire() {
    _hosts 20000 0
    _serve_on_a 10.77.0.1:0
    _expect_b 0 ping ping "10.77.0.1:$PORT" -c 5 -i 0
    local least
    least=$(sed -n 's/^round trip min[^=]*= \([0-9]*\)\..*/\1/p' ping.out)
    ((least >= 40000)) || fail "the shortest round trip was $least us"
}

cat_write_between_two_hosts() { _hosts 0 0; _transfer write 20971521; }
cat_read_between_two_hosts() { _hosts 0 0; _transfer read 20971521; }
cat_send_between_two_hosts() { _hosts 0 0; _transfer send 20971521; }
# The wire must really have lost something, or the case shows nothing.
_expect_losses() {
    kill -TERM "$WIRE_PID"
    finish "$WIRE_PID" 0 wire
    grep -q ', [1-9][0-9]* lost' wire.out || fail "the wire lost nothing"
}

_lossy_transfer() { # MODE
    _hosts 2000 20
    _transfer "$1" 8000001
    _expect_losses
}
cat_write_with_delay_and_loss() { _lossy_transfer write; }
cat_read_with_delay_and_loss() { _lossy_transfer read; }
cat_send_with_delay_and_loss() { _lossy_transfer send; }

cat_with_a_small_mtu() {
    _hosts 0 0
    for end in "$A a0" "$B b0"; do
        read -r host name <<<"$end"
        _on "$host" ip link set "$name" mtu 600
    done
    for mode in write read send; do _transfer $mode 2000001; done
}

ping_with_heavy_loss_is_right() {
    _hosts 500 50
    _serve_on_a 10.77.0.1:0
    _expect_b 0 ping ping "10.77.0.1:$PORT" -c 50 -i 0 -v -b 20000 -t 50
    _expect_losses
}

# The cable is pulled for a second in the middle of a transfer; TCP carries on afterwards.
transfer_survives_an_interruption() {
    _hosts 500 0
    make_file sent 30000000
    _receive_on_a
    local recv=$PID
    start send nsenter -t "$B" -n -- "$SOFTND" cat --send sent "10.77.0.1:$PORT"
    local send=$PID
    until_true eval '[[ $(du -k .got.softnd-* 2>/dev/null | cut -f1) -gt 0 ]]' || fail "nothing arrives"
    kill -STOP "$WIRE_PID"
    sleep 1
    kill -CONT "$WIRE_PID"
    finish "$send" 0 send
    finish "$recv" 0 recv
    cmp sent got || fail "the file differs"
}

host_that_does_not_exist_is_unreachable() {
    _hosts 0 0
    _expect_b 1 ping ping 10.77.0.99:7571 -c 1
    expect_error_line ping 'unreachable\|timed out'
}

network_without_a_route_is_unreachable() {
    _hosts 0 0
    _expect_b 1 ping ping 10.99.0.1:7571 -c 1
    expect_error_line ping 'network unreachable'
}

_has_link_local_address() { _on "$1" ip -6 addr show scope link -tentative | grep inet6 >/dev/null; }

addresses_come_and_go() {
    _hosts 0 0
    # The system makes one by itself, and it is of use a second later.
    [[ -n ${NO_IPV6:-} ]] || until_true _has_link_local_address "$B" || fail "no link-local address"
    _b info >before
    _on "$B" ip addr add 10.78.0.2/24 dev b0
    _b info >with
    _on "$B" ip addr del 10.78.0.2/24 dev b0
    _b info >after
    grep -q '10\.78\.0\.2' before && fail "an address before it was there"
    grep -q '10\.78\.0\.2' with || fail "a new address is not seen"
    cmp before after || fail "the adapters changed"
}

run_case "$@"
