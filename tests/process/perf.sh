#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# perf.sh CASE - `softnd perf` between two processes, with small counts: that it measures, not what.
. "$(dirname "$0")/lib.sh"

_serve() { start_listening server "$SOFTND" perf --server 127.0.0.1:0 "$@"; SERVER=$PID; }
_perf() { # NAME TEST OPTIONS...
    expect 0 "$1" "$SOFTND" perf "$2" "127.0.0.1:$PORT" "${@:3}"
}

# _rows NAME COLUMN SIZES...: one row per size, in order, with a positive number in that column.
_rows() {
    local name=$1 column=$2 sizes
    shift 2
    sizes=$(awk '!/^#/ { print $1 }' "$name.out" | xargs)
    [[ $sizes == "$*" ]] || fail "$name: rows for $sizes, expected $*"
    awk -v c="$column" '!/^#/ && !($c > 0) { exit 1 }' "$name.out" || fail "$name: column $column"
}

# Of each latency row: min <= median <= 99 % <= 99.9 % <= max, and min <= average <= max.
_sane_latency() {
    awk '!/^#/ { n++; if (!($4 <= $3 && $3 <= $8 && $8 <= $9 && $9 <= $5 && $4 <= $6 && $6 <= $5)) bad = 1 }
        END { exit bad || !n }' "$1.out" || fail "$1: times are not in order"
}

latency_of_each_kind() {
    _serve
    for t in send_lat write_lat read_lat; do
        _perf $t $t -s 1,64,4K,100001 -n 50
        _rows $t 3 1 64 4096 100001
        _sane_latency $t
        grep -q 'half the round trip\|the whole Read' $t.out || fail "$t: the method is not said"
        grep -q '# buffers warm' $t.out || fail "$t: the buffers are not stated"
    done
}

bandwidth_of_each_kind() {
    _serve
    for t in send_bw write_bw read_bw; do
        _perf $t $t -s 64,4K,1M -n 100
        _rows $t 4 64 4096 1048576
        awk '!/^#/ && !($2 == 100 && $3 >= $4 && $5 > 0) { exit 1 }' $t.out || fail "$t: figures"
    done
}

all_sizes() {
    _serve
    _perf all write_bw --all -n 2 -w 0 -t 2
    _rows all 2 2 4 8 16 32 64 128 256 512 1024 2048 4096 8192 16384 32768 65536 131072 262144 \
        524288 1048576 2097152 4194304 8388608
}

every_byte_is_verified() {
    _serve
    for t in send_lat write_lat read_lat; do _perf $t $t -s 1,255,70000 -n 30 -v; done
    for t in send_bw write_bw read_bw; do _perf $t $t -s 1,4096,70000 -n 100 -v -q 2 -t 8; done
    _perf few send_bw -s 1,4096,70000 -n 100 -v -q 2 -t 8 -r 5
    _perf both send_bw -s 5000 -n 100 -v -b -t 4
    grep -q 'every byte verified' both.out || fail "it does not say so"
}

# More messages than any queue or window holds, with few results and little credit.
many_messages_through_small_queues() {
    _serve
    for r in 1 2 3 5 8; do _perf send$r send_bw -s 8 -n 500 -t 7 -r $r -Q 7; done
    _perf batch send_bw -s 8 -n 500 -t 7 -r 8 -Q 5 -l 3
    for t in write_bw read_bw; do
        _perf $t $t -s 8 -n 501 -t 10 -Q 4 -l 7 -q 3 -o 1
        awk '!/^#/ && $2 != 1503 { exit 1 }' $t.out || fail "$t: not all messages"
    done
}

both_directions() {
    _serve
    for t in send_bw write_bw read_bw; do
        _perf $t $t -b -n 200 -s 4K
        awk '!/^#/ && $2 != 400 { exit 1 }' $t.out || fail "$t: not both directions"
    done
}

for_a_time() {
    _serve
    for t in send_lat write_lat read_lat; do
        _perf $t $t -D 0.2
        _rows $t 3 2
    done
    for t in send_bw write_bw read_bw; do
        _perf $t $t -D 0.2 -Q 3 -q 2
        _rows $t 4 65536
    done
    _perf both send_bw -D 0.2 -b
    _rows both 4 65536
}

several_threads() {
    _serve
    for t in send_bw write_bw read_bw; do
        _perf $t $t -T 3 -q 2 -n 100 -w 20 -s 64,4K -v
        _rows $t 4 64 4096
        awk '!/^#/ && $2 != 600 { exit 1 }' $t.out || fail "$t: not every thread counts"
        grep -q ', 2 queue pairs in each of 3 threads, ' $t.out || fail "$t: it does not say so"
    done
    _perf both send_bw -T 2 -D 0.2 -b
    _rows both 4 65536
    _perf events write_bw -T 2 -e -n 100
    _perf json read_bw -T 2 -n 50 --json
    grep -q '^  "threads": 2,$' json.out || fail "JSON does not say so"
    # A client that is lost with all its threads leaves the server ready.
    start client "$SOFTND" perf send_bw "127.0.0.1:$PORT" -T 4 -D 100
    until_true eval "[[ \$(grep -c 'send_bw: connected' server.err) -eq 3 ]]" || fail "it does not connect"
    kill -9 "$PID"
    wait "$PID" 2>/dev/null
    until_true timeout 10 "$SOFTND" perf send_bw "127.0.0.1:$PORT" -T 2 -n 5 >after.out 2>after.err ||
        fail "the server is lost"
}

until_interrupted() {
    _serve
    for t in send_lat read_lat send_bw write_bw; do
        start client "$SOFTND" perf $t "127.0.0.1:$PORT" -D 0 -s 64,4K
        until_true has_line server.err "$t: connected" || fail "$t does not connect"
        kill -INT "$PID"
        finish "$PID" 0 client # what was measured until then is told, and no size after it
        cp client.out $t.out
        _rows $t 2 64
        until_true has_line server.err "$t: done" || fail "$t: the server does not call it done"
    done
}

samples_in_order() {
    _serve
    _perf lat send_lat -s 64,4K -n 50 --samples samples.csv
    [[ $(head -1 samples.csv) == bytes,us ]] || fail "no heading"
    [[ $(wc -l <samples.csv) -eq 101 ]] || fail "$(wc -l <samples.csv) lines"
    awk -F, 'NR > 1 && !($2 > 0 && $1 == (NR <= 51 ? 64 : 4096)) { exit 1 }' samples.csv || fail "a sample is wrong"
    # The least of them is the row's, to its two digits.
    awk -F, 'NR > 1 && NR <= 51 && (!m || $2 < m) { m = $2 } END { printf "%.2f\n", m }' samples.csv >least
    [[ $(awk '$1 == 64 { print $4 }' lat.out) == "$(cat least)" ]] || fail "the row's least is no sample"
}

sleeping_instead_of_polling() {
    _serve
    for t in send_lat read_lat send_bw write_bw read_bw; do
        _perf $t $t -e -n 100 -s 64
        grep -q ', events' $t.out || fail "$t: it does not say so"
    done
}

targets_that_do_not_call_in() {
    _serve
    for t in write_bw read_bw; do
        for what in sleep busy; do
            _perf $t-$what $t --target $what -n 200 -s 64K
            _rows $t-$what 4 65536
        done
    done
}

sges_inline_and_cold_buffers() {
    _serve
    for t in send_bw write_bw read_bw; do
        _perf $t-sges $t -s 1,2,1000 -n 50 --sges 3 -v
        _perf $t-cold $t -s 64K -n 50 --cold 4M
        grep -q '# buffers cold, messages cycle through 4 MiB' $t-cold.out || fail "$t: buffers"
    done
    _perf inline send_bw -s 100 -I 128 -n 100 -v
    _perf none send_lat -s 100 -I 0 -n 100 -v
}

idle_queue_pairs() {
    _serve
    _perf idle send_lat --idle 40 -n 50
    _rows idle 3 2
    grep -q 'and 40 idle' idle.out || fail "it does not say so"
    _perf hold write_bw --idle 3 --hold 200ms -n 10
    grep -q '^# 0.2[0-9]* s without traffic took [0-9.]* % of a core' hold.out || fail "no CPU while idle"
}

connection_rate() {
    _serve
    _perf conn conn_rate -n 80 # more than the server keeps
    for step in create connect complete disconnect connection; do
        awk -v s=$step '$1 == s && $3 == 80 && $4 > 0 { found = 1 } END { exit !found }' conn.out ||
            fail "no row for $step"
    done
    # Only whole connections have a rate, and it is the table's last column.
    grep -q 'rate\[1/s\]$' conn.out || fail "no column for the rate"
    awk '!/^#/ && ($1 == "connection" ? !($NF > 0) : $NF != "-") { exit 1 }' conn.out || fail "rates"
    _perf many conn_rate -n 300 -q 16
    awk '$1 == "connection" && $3 == 300 && $4 > 0 { found = 1 } END { exit !found }' many.out ||
        fail "several at a time: no row"
    grep -q '^# connections, 16 at a time' many.out || fail "it does not say how many at a time"
}

progress() {
    local t
    _serve
    for t in send_lat write_bw; do
        _perf $t $t -D 1.3 --progress
        grep -qE '^softnd perf: 1 s: [1-9][0-9]* messages, [0-9.]+ Mpps, [0-9.]+ MiB/s$' $t.err ||
            fail "$t: no line after a second"
    done
}

registration_rate() {
    expect 0 reg "$SOFTND" perf reg_rate -s 4K,1M -n 20
    for what in register deregister; do
        for size in 4096 1048576; do
            awk -v w=$what -v b=$size '$1 == w && $2 == b && $4 > 0 { found = 1 } END { exit !found }' reg.out ||
                fail "no row for $what $size"
        done
    done
    # The rate is that of the registrations alone: one over their average.
    awk '!/^#/ && !($NF * $7 / 1e6 > 0.95 && $NF * $7 / 1e6 < 1.05) { exit 1 }' reg.out || fail "rate"
    SOFTND_PROVIDER=/no/such expect 1 none "$SOFTND" perf reg_rate
    expect_error_line none 'no NetworkDirect adapter'
}

what_was_counted() {
    _serve
    _perf table send_bw -s 64 -n 50 -w 10 --counters
    grep -qE '^# counters, queue_pair$' table.out || fail "no queue pair"
    grep -qE '^#   posted +60  initiator requests posted \[requests\]$' table.out || fail "posted"
    grep -qE '^#   tx_bytes +3840  ' table.out || fail "tx_bytes"
    grep -qE '^#   connects +2  ' table.out || fail "connects"
    grep -qE '^#   taken +[1-9][0-9]*  ' table.out || fail "taken"
    _perf conn conn_rate -n 5 -w 0 --counters
    grep -qE '^#   connects +6  ' conn.out || fail "connections of conn_rate"
    expect 0 reg "$SOFTND" perf reg_rate -n 5 -w 0 -s 4K --counters
    grep -qE '^#   regions_ended +5  ' reg.out || fail "registrations"
}

json_is_json() {
    command -v python3 >/dev/null || skip "python3, which reads JSON, is missing"
    _serve
    _perf lat send_lat -s 2,4K -n 50 --json -H
    _perf bw read_bw -s 4K -n 50 --json -b --counters
    _perf conn conn_rate -n 5 --json
    python3 - <<'PY' || fail "JSON"
import json
def load(name): return json.load(open(name + ".out"))
lat = load("lat")
assert lat["test"] == "send_lat" and lat["transport"] in ("iwarp", "local"), lat
assert [r["bytes"] for r in lat["rows"]] == [2, 4096]
for r in lat["rows"]:
    assert 0 < r["t_min_us"] <= r["t_typical_us"] <= r["t_p99_us"] <= r["t_p99_9_us"] <= r["t_max_us"]
    assert r["samples"] == 50 == sum(b["count"] for b in r["histogram"])
bw = load("bw")
assert bw["counters"]["queue_pair"]["read_bytes"] == 4096 * 55 and bw["counters"]["adapter"]["connects"] == 2
assert bw["bidirectional"] is True and bw["rows"][0]["bw_avg_bytes_per_s"] > 0
conn = load("conn")
assert [r["what"] for r in conn["rows"]][-1] == "connection"
PY
}

csv_is_csv() {
    _serve
    _perf csv send_bw -s 64,128 -n 50 --csv
    [[ $(wc -l <csv.out) -eq 3 ]] || fail "not three lines"
    [[ $(awk -F, '{ print NF }' csv.out | sort -u | wc -l) -eq 1 ]] || fail "fields differ"
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
        !($c["bytes"] > 0 && $c["bw_avg_bytes_per_s"] > 0 && $c["test"] == "send_bw") { exit 1 }' csv.out ||
        fail "values"
}

picture_is_drawn() {
    _serve
    _perf plot send_bw -s 64,4K,64K -n 20 --plot out.svg
    [[ $(grep -c '<circle' out.svg) -ge 3 ]] || fail "no points"
    grep -q '</svg>' out.svg || fail "not complete"
    if command -v python3 >/dev/null; then
        python3 -c 'import xml.dom.minidom as m; m.parse("out.svg")' || fail "not XML"
    fi
}

# Before anybody is asked, so that no test is in vain; what fails later is said as well.
files_that_cannot_be_written() {
    local o
    for o in --plot --samples; do
        expect 1 nowhere "$SOFTND" perf send_lat 127.0.0.1:1 $o /no/such/folder/x
        expect_error_line nowhere '^softnd perf: /no/such/folder/x: cannot be written'
    done
    [[ -c /dev/full ]] || return 0
    _serve
    for o in --plot --samples; do
        expect 1 full "$SOFTND" perf send_lat "127.0.0.1:$PORT" -n 5 $o /dev/full
        expect_error_line full '^softnd perf: /dev/full: cannot be written'
    done
    "$SOFTND" perf send_lat "127.0.0.1:$PORT" -n 5 >/dev/full 2>full.err
    [[ $? -eq 1 ]] && grep -q 'standard output' full.err || fail "a full disk is not noticed"
}

server_serves_one_after_the_other_and_ends_when_asked() {
    _serve
    for i in 1 2 3; do _perf client$i send_lat -n 10; done
    until_true eval '[[ $(grep -c "send_lat: done" server.err) -eq 3 ]]' || fail "the server does not say so"
    kill -TERM "$SERVER"
    finish "$SERVER" 0 server
}

server_for_one_client_ends_after_it() {
    _serve --once
    _perf client send_bw -n 10
    finish "$SERVER" 0 server
}

client_killed_leaves_the_server_ready() {
    _serve
    for t in send_lat write_lat read_lat send_bw write_bw read_bw; do
        start client "$SOFTND" perf $t "127.0.0.1:$PORT" -D 100
        until_true has_line server.err "$t: connected" || fail "$t does not connect"
        kill -9 "$PID"
        wait "$PID" 2>/dev/null
        # The server notices by itself, before it can take the next.
        until_true timeout 10 "$SOFTND" perf send_lat "127.0.0.1:$PORT" -n 5 >after.out 2>after.err ||
            fail "the server is lost after $t"
    done
}

server_killed_ends_the_client() {
    for t in send_lat write_lat read_lat send_bw write_bw read_bw; do
        _serve
        start client "$SOFTND" perf $t "127.0.0.1:$PORT" -D 100 -s 64
        until_true has_line server.err "$t: connected" || fail "$t does not connect"
        kill -9 "$SERVER"
        wait "$SERVER" 2>/dev/null
        finish "$PID" 1 client
        [[ $(wc -l <client.err) -eq 1 ]] || fail "$t: not one line"
    done
}

interrupted_client_ends() {
    _serve
    for t in send_lat write_bw; do
        start client "$SOFTND" perf $t "127.0.0.1:$PORT" -D 100
        until_true has_line server.err "$t: connected" || fail "$t does not connect"
        kill -INT "$PID"
        finish "$PID" 1 client
    done
}

# Over TCP: who is stopped in the middle of a copy within this host is waited for.
peer_that_says_nothing_is_given_up() {
    local t
    local -A client
    export SOFTND_TRANSPORT=iwarp
    for t in send_lat write_bw; do
        _serve --timeout 0.2
        start $t "$SOFTND" perf $t "127.0.0.1:$PORT" --timeout 0.2 -D 100 $([[ $t == *_bw ]] && echo -e)
        client[$t]=$PID
        until_true has_line server.err "$t: connected" || fail "$t does not connect"
        kill -STOP "$SERVER"
    done
    _serve --timeout 0.2
    start conn_rate "$SOFTND" perf conn_rate "127.0.0.1:$PORT" -n 1000000
    until_true has_line server.err "conn_rate: connected" || fail "conn_rate does not connect"
    kill -STOP "$PID"
    until_true has_line server.err "conn_rate: timed out" || fail "the server waits"
    for t in send_lat write_bw; do
        finish "${client[$t]}" 1 $t
        expect_error_line $t 'timed out'
    done
}

more_than_the_adapter_can() {
    _serve
    local o
    for o in '-q 1024:completion queue' '--sges 17:SGEs' '-I 600:inline' '-t 8192:deeper queue'; do
        # shellcheck disable=SC2086
        expect 1 more "$SOFTND" perf send_bw "127.0.0.1:$PORT" ${o%:*}
        expect_error_line more "${o#*:}"
    done
}

nobody_there() {
    expect 1 none "$SOFTND" perf send_lat 127.0.0.1:1
    expect_error_line none '127.0.0.1:1: '
}

another_kind_of_server_is_refused() {
    start_listening server "$SOFTND" ping --server 127.0.0.1:0
    expect 1 client "$SOFTND" perf send_lat "127.0.0.1:$PORT"
    expect_error_line client 'refused'
}

wrong_usage_is_exit_code_2() {
    local -a lines=('nothing' 'send_lat' 'send_lat :5' 'send_lat a b' 'send_lat a -x' 'send_lat a -s 0'
        'send_lat a -s 1,' 'send_lat a -s x' 'send_lat a -n 0' 'send_lat a -n x' 'send_lat a -D 0.0001'
        'send_lat a -D 1 -n 5' 'send_lat a -q 2' 'send_lat a -b' 'send_lat a -Q 2' 'send_lat a --cold 1M'
        'write_lat a -e' 'send_bw a -t 0' 'send_bw a -t 4 -Q 5' 'send_bw a -t 4 -l 5' 'send_bw a -t 7 -Q 7 -l 3' 'send_bw a -r 1 -l 2' 'send_bw a --target sleep'
        'write_bw a --target x' 'write_bw a -v --cold 1M' 'send_bw a -H' 'send_bw a --json --csv'
        'conn_rate a -v' 'conn_rate a -s 5' 'reg_rate -q 2' 'reg_rate --timeout 5' 'send_lat a --gbits' 'send_lat a -H --csv' 'conn_rate a --counters --csv'
        'write_bw a -r 5' 'send_bw a -o 4' 'read_bw a -I 5' '--once send_lat a' '--server -n 5' 'send_lat a -p 0' 'send_lat a:0'
        'send_lat a --samples x --plot x' 'send_bw a -T 64 -s 64M' 'send_bw a --timeout 0'
        'send_bw a -a -s 5' 'conn_rate a --plot x' 'conn_rate a -D 1' 'conn_rate a --progress' 'conn_rate a -q 65' 'send_bw a --hold 21' 'reg_rate a' 'send_bw a -s 1G -v' '-n 5'
        '--server a b' '--server send_lat a' 'send_lat a --once' 'send_lat a --threads 2' 'send_bw a -T 0' 'send_bw a -T 65' 'write_bw a -T 2 --progress' 'send_bw a --samples x' 'conn_rate a -T 2' 'send_bw a -p 65536')
    for line in "${lines[@]}"; do
        read -ra words <<<"$line"
        expect 2 usage "$SOFTND" perf "${words[@]}"
        [[ -s usage.err ]] || fail "no message for: $line"
    done
}

run_case "$@"
