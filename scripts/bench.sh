#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Measures SoftND beside what a machine without an RDMA NIC can have already, in turn and pinned the
# same way, and prints medians and ratios. docs/bench.md explains the rows.
#   BENCH_ROUNDS   rounds, each measuring everything once (default 5)
#   BENCH_GROWTH   rounds of the growth measurements (default 3; 0 for none)
#   BENCH_SECONDS  length of one measurement by duration (default 1)
#   BENCH_CORES    the two cores, one for each end (default "0 1", of one core "0 0")
#   BENCH_ONLY     regular expression: only the rows whose name matches
#   BENCH_STRICT   1: refuse to run on a busy machine
#   BENCH_VALUES   file that keeps the measured values, so that several runs, each with a part of the
#                  rows, make one table; a last one with 0 rounds prints it
#   BENCH_BUILD    build folder with softnd and bench_floor, instead of building
set -uo pipefail
cd "$(dirname "$0")/.."

rounds=${BENCH_ROUNDS:-5}
growth_rounds=${BENCH_GROWTH:-3}
seconds=${BENCH_SECONDS:-1}
whole_seconds=$(awk -v s="$seconds" 'BEGIN { print (s > 1 ? int(s) : 1) }') # for those that take no fraction
only=${BENCH_ONLY:-.}
export BENCH_CORES=${BENCH_CORES:-$((($(nproc) >= 2)) && echo 0 1 || echo 0 0)}
read -r core_a core_b <<<"$BENCH_CORES"
build=${BENCH_BUILD:-build}
out=build/bench

say() { printf '\n== %s\n' "$*"; }
stop() {
    printf 'bench: %s\n' "$*" >&2
    exit 1
}

# What is wrong is said now, not as measurements that all fail.
[[ $rounds =~ ^[0-9]+$ && $growth_rounds =~ ^[0-9]+$ ]] || stop "BENCH_ROUNDS and BENCH_GROWTH are numbers"
[[ $seconds =~ ^[0-9]*\.?[0-9]+$ ]] && awk -v s="$seconds" 'BEGIN { exit !(s >= 0.001 && s <= 60) }' ||
    stop "BENCH_SECONDS is 0.001 to 60"
[[ $BENCH_CORES =~ ^[0-9]+\ [0-9]+$ ]] || stop "BENCH_CORES are two numbers: \"0 1\""
scripts/deps.sh bench || stop "the programs to compare with cannot be installed"
if [[ -z ${BENCH_BUILD:-} ]]; then
    scripts/build.sh release || stop "it does not build"
    cmake --build build --target bench_floor >/dev/null || stop "bench_floor does not build"
fi
softnd=$build/softnd floor=$build/bench_floor
[[ -x $softnd && -x $floor ]] || stop "$build has no softnd or bench_floor"
for core in "$core_a" "$core_b"; do
    taskset -c "$core" true 2>/dev/null || stop "there is no core $core for us (BENCH_CORES)"
done
mkdir -p "$out"
(($(nproc) >= 2)) || echo "note: one processor: both ends share it, and no figure means much"
# A process with thousands of connections has thousands of sockets.
ulimit -n "$(ulimit -Hn)" 2>/dev/null

work=$(mktemp -d "${TMPDIR:-/tmp}/softnd-bench.XXXXXX")
background=()
cleanup() {
    local p
    # To timeout, which ends its command too; -9 would leave that running.
    for p in "${background[@]}"; do kill "$p" 2>/dev/null; done
    wait 2>/dev/null
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM
export SOFTND_CATALOG=$work/catalog UCX_WARN_UNUSED_ENV_VARS=n FI_LOG_LEVEL=error
unset SOFTND_PROVIDER SOFTND_TRANSPORT SOFTND_CRC

# ---- the machine ----

# How busy a core is without us, in percent, over a second.
busy() {
    local core=$1
    { grep "^cpu$core " /proc/stat; sleep 1; grep "^cpu$core " /proc/stat; } |
        awk '{ idle[NR] = $5 + $6; for (i = 2; i <= 9; i++) all[NR] += $i }
            END { d = all[2] - all[1]; printf "%.0f", (d > 0 ? 100 * (1 - (idle[2] - idle[1]) / d) : 100) }'
}

loads=()
check_load() {
    local a b
    a=$(busy "$core_a")
    b=$(busy "$core_b")
    loads+=("$a% and $b%")
    if ((a > 5 || b > 5)); then
        echo "note: cores $core_a and $core_b are $a % and $b % busy without us: compare ratios, not numbers"
        return 1
    fi
    return 0
}

say "load"
if check_load; then
    echo "cores $core_a and $core_b are idle"
elif [[ ${BENCH_STRICT:-0} == 1 ]]; then
    stop "the machine is busy"
fi

# ---- running two ends ----

on_a() { taskset -c "$core_a" "$@"; }

# A port that nobody listens on, outside the range that connections take.
next_port=$((20000 + $$ % 10000))
free_port() {
    local hex
    while :; do
        next_port=$((next_port + 1))
        hex=$(printf ':%04X ' "$next_port")
        grep -q "$hex" /proc/net/tcp /proc/net/tcp6 2>/dev/null || break
    done
    PORT=$next_port
}

# Until somebody listens on the port, or the process is gone.
wait_port() {
    local hex end=$((SECONDS + 10))
    hex=$(printf ':%04X [0-9A-F:]* 0A' "$PORT")
    until cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | grep -q "$hex"; do
        kill -0 "$1" 2>/dev/null || return 1
        ((SECONDS < end)) || return 1
        sleep 0.02
    done
}

# start COMMAND...: the serving end, in the background; sets SERVER.
start() {
    rm -f "$work"/client.*
    : >"$work/server.out" >"$work/server.err" # nobody reads what another server said
    # No function here: it would be a shell in between, which a signal ends without its command.
    taskset -c "$core_b" timeout -k 1 120 "$@" >"$work/server.out" 2>"$work/server.err" &
    SERVER=$!
    background+=("$SERVER")
}
# A server that ends by itself may take a moment to; then it is ended.
end_server() {
    local i
    for ((i = 0; i < 50; i++)); do
        kill -0 "$SERVER" 2>/dev/null || break
        [[ ${1:-} == now ]] && kill "$SERVER" 2>/dev/null
        sleep 0.02
    done
    kill "$SERVER" 2>/dev/null
    wait "$SERVER" 2>/dev/null
    background=()
}

# sn TRANSPORT CRC TEST OPTIONS...: leaves $work/sn.json; fails if another transport was used.
sn() {
    local transport=$1 crc=$2 test=$3 ok=1
    shift 3
    local -a with=(env "SOFTND_TRANSPORT=$transport" "SOFTND_CRC=$crc")
    start "${with[@]}" "$softnd" perf --server 127.0.0.1:0 --once
    local end=$((SECONDS + 10))
    until PORT=$(sed -n 's/.*listening on .*:\([0-9]*\)$/\1/p' "$work/server.err" | head -1) && [[ -n $PORT ]]; do
        kill -0 "$SERVER" 2>/dev/null && ((SECONDS < end)) || { end_server; return 1; }
        sleep 0.02
    done
    on_a timeout -k 1 120 "${with[@]}" "$softnd" perf "$test" "127.0.0.1:$PORT" --json "$@" \
        >"$work/sn.json" 2>"$work/client.err" && ok=0
    end_server
    ((ok == 0)) && grep -q "\"transport\": \"$transport\"" "$work/sn.json"
}
# field NAME [WHAT]: of the last row, or of the row of that name, or of the whole result.
field() {
    { [[ -n ${2:-} ]] && grep "\"what\": \"$2\"" "$work/sn.json" || cat "$work/sn.json"; } |
        grep -o "\"$1\": [-0-9.e+]*" | tail -1 | sed 's/.*: //'
}
sn_us() { sn "$@" && field t_typical_us; }
sn_gbs() { sn "$@" && field bw_avg_bytes_per_s | awk '{ print $1 / 1e9 }'; }
sn_rate() { sn "$@" && field msg_rate_per_s | awk '{ print $1 / 1e6 }'; }

# ucx COLUMN TLS OPTIONS...: of its CSV output. TLS "uct" for the lower interface.
ucx() {
    local column=$1 tls=$2 ok=1
    shift 2
    free_port
    local -a with=(env)
    [[ $tls == uct ]] || with=(env "UCX_TLS=$tls")
    start "${with[@]}" ucx_perftest -p "$PORT"
    wait_port "$SERVER" && on_a timeout -k 1 60 "${with[@]}" ucx_perftest 127.0.0.1 -p "$PORT" -f -v "$@" \
        >"$work/client.out" 2>"$work/client.err" && ok=0
    end_server
    ((ok == 0)) && tail -1 "$work/client.out" | awk -F, -v c="$column" '{ gsub(/ /, ""); print $c }'
}
ucx_us() { ucx 2 "$@"; }
ucx_gbs() { ucx 6 "$@" | awk '{ print $1 * 1048576 / 1e9 }'; } # it prints MiB/s
ucx_rate() { ucx 8 "$@" | awk '{ print $1 / 1e6 }'; }

# fi PROVIDER ENDPOINT SIZE ITERATIONS: its average, one way; it has no median.
fi_us() {
    local ok=1
    free_port
    start fi_pingpong -p "$1" -e "$2" -B "$PORT" -S "$3" -I "$4"
    wait_port "$SERVER" && on_a timeout -k 1 60 fi_pingpong -p "$1" -e "$2" -P "$PORT" -S "$3" -I "$4" 127.0.0.1 \
        >"$work/client.out" 2>"$work/client.err" && ok=0
    end_server
    ((ok == 0)) && tail -1 "$work/client.out" | awk '{ print $7 }'
}

sockperf_us() {
    local ok=1
    free_port
    start sockperf sr --tcp -i 127.0.0.1 -p "$PORT" --nonblocked
    wait_port "$SERVER" && on_a timeout -k 1 60 sockperf pp --tcp -i 127.0.0.1 -p "$PORT" -m 64 -t "$whole_seconds" \
        --mps=max --nonblocked >"$work/client.out" 2>&1 && ok=0
    end_server now
    ((ok == 0)) && sed -n 's/.*percentile 50\.000 = *\([0-9.]*\).*/\1/p' "$work/client.out"
}

iperf_gbs() {
    local ok=1
    free_port
    start iperf3 -s -1 -p "$PORT"
    wait_port "$SERVER" && on_a timeout -k 1 60 iperf3 -c 127.0.0.1 -p "$PORT" -t "$whole_seconds" -l 1M -f k \
        >"$work/client.out" 2>&1 && ok=0
    end_server
    ((ok == 0)) && awk '/receiver/ { print $7 * 1000 / 8 / 1e9 }' "$work/client.out"
}

floor_of() { on_a timeout -k 1 60 "$floor" "$1"; }
# bench_floor pins its two processes itself, so it must be allowed both cores.
floor_both() { timeout -k 1 60 "$floor" "$1"; }
# The same as our own sockets have: Reno, not the system's default.
floor_reno() { BENCH_CONGESTION=reno floor_both "$1"; }

# ---- what is measured ----

# values: one line per measurement, "key value label"; what was measured in one round has one label.
values=${BENCH_VALUES:-$work/values}
touch "$values" || stop "$values cannot be written"
wanted=() # keys that some row needs
want() { [[ " ${wanted[*]} " == *" $1 "* ]]; }
# put KEY VALUE: of this round; nothing if it is no number.
put() { [[ $2 =~ ^[0-9.eE+-]+$ ]] && echo "$1 $2 $label" >>"$values"; }
# measure KEY FUNCTION...: once per round.
measure() {
    local key=$1 value
    shift
    want "$key" || return 0
    value=$("$@" 2>>"$work/errors")
    if ! put "$key" "$value"; then
        echo "$key" >>"$work/missing"
        why "$key"
    fi
}
# What the programs of a failed measurement said last.
why() {
    local f
    for f in server.out server.err client.out client.err; do
        [[ -s $work/$f ]] && tail -2 "$work/$f" | sed "s/^/$1: ${f%.*}: /" >>"$work/errors"
    done
}

rows=()
# row NAME UNIT KEY PEER PEER_KEY BETTER [GOAL]: BETTER is lower or higher; GOAL is a ratio.
row() {
    [[ $1 =~ $only ]] || return 0
    rows+=("$(IFS='|'; echo "$1|$2|$3|$4|$5|$6|${7:-}")")
    wanted+=("$3" "$5")
}

define_rows() {
    local verb t n
    for verb in send write; do
        row "tcp 64 B $verb one-way" us "tcp_${verb}_lat" "raw TCP, polled" raw_lat lower 1.05
        row "tcp 64 B $verb one-way" us "tcp_${verb}_lat" "libfabric tcp" fi_tcp_lat lower 0.65
        row "tcp 64 B $verb one-way" us "tcp_${verb}_lat" "UCX tcp" ucx_tcp_lat lower
    done
    row "tcp 64 B send one-way" us tcp_send_lat "raw TCP, polled, Reno" raw_reno_lat lower
    row "tcp 64 B send one-way" us tcp_send_lat "sockperf, polled" sockperf_lat lower
    row "tcp 64 B read" us tcp_read_lat "raw TCP, polled, round trip" raw_rtt lower
    for verb in write read; do
        row "tcp 1 MiB $verb" GB/s "tcp_${verb}_bw" "raw TCP" raw_bw higher 0.97
        row "tcp 1 MiB $verb" GB/s "tcp_${verb}_bw" "raw TCP, Reno" raw_reno_bw higher
        row "tcp 1 MiB $verb" GB/s "tcp_${verb}_bw" "UCX tcp" ucx_tcp_bw higher 1.0
        row "tcp 1 MiB $verb, CRC" GB/s "tcp_${verb}_bw_crc" "raw TCP" raw_bw higher 0.8
    done
    row "tcp 1 MiB send" GB/s tcp_send_bw "raw TCP" raw_bw higher
    row "tcp 1 MiB write" GB/s tcp_write_bw "iperf3" iperf_bw higher
    row "tcp 64 B send one-way, events" us tcp_event_lat "blocking sockets" raw_blocking_lat lower 1.3
    for t in tcp local; do
        for verb in write read; do
            row "$t 1 MiB $verb, target computes" GB/s "${t}_${verb}_busy" "target polls" "${t}_${verb}_bw" higher 0.8
        done
    done
    for verb in send write; do
        row "local 64 B $verb one-way" us "local_${verb}_lat" "cache line" line_lat lower \
            "$([[ $verb == send ]] && echo 1.5)"
    done
    row "local 64 B send one-way" us local_send_lat "UCX posix send" ucx_posix_lat lower 0.9
    row "local 64 B send one-way" us local_send_lat "UCT posix active message" uct_posix_lat lower
    row "local 64 B send one-way" us local_send_lat "libfabric shm" fi_shm_lat lower 0.5
    row "local 1 MiB write" GB/s local_write_bw "UCX cma put" ucx_cma_put_bw higher 1.0
    row "local 1 MiB write" GB/s local_write_bw "memcpy, warm" copy_warm higher
    row "local 1 MiB write, cold" GB/s local_write_bw_cold "memcpy, cold" copy_cold higher
    row "local 1 MiB read" GB/s local_read_bw "memcpy, warm" copy_warm higher
    row "local 1 MiB send" GB/s local_send_bw "UCX posix+cma send" ucx_cma_send_bw higher 1.5
    row "local 8 B send rate" M/s local_send_rate "UCX posix send" ucx_posix_rate higher 1.5
    row "local 8 B send rate" M/s local_send_rate "UCT posix active message" uct_posix_rate higher
    ((growth_rounds > 0)) || [[ -n ${BENCH_VALUES:-} ]] || return 0
    for t in tcp local; do
        for n in 100 1000 5000; do
            row "$t one-way, $n idle QPs" us "${t}_idle_$n" "no idle QP" "${t}_idle_0" lower \
                "$([[ $n == 1000 ]] && echo 1.1)"
            row "$t memory per QP, $n idle" KiB "${t}_memory_$n" "" "" lower
        done
        row "$t CPU of an idle process, 1000 QPs" % "${t}_idle_cpu" "" "" lower 0.1
        for n in 2 4 8 16 32 64; do
            row "$t 8 B send rate, $n QPs" M/s "${t}_rate_$n" "1 QP" "${t}_rate_1" higher
        done
        row "$t connections" 1/s "${t}_connections" "" "" higher
        row "$t connecting" us "${t}_connect" "" "" lower
    done
    for n in 4K 64K 1M 16M 256M 1G 8G; do
        row "register $n" us "register_$n" "" "" lower
    done
}

# What a row compares is measured one right after the other, for the machine changes within a minute.
measure_latency() {
    local D=(-D "$seconds")
    measure raw_lat floor_both tcp_latency
    want raw_rtt && put raw_rtt "$(awk -v r="$label" '$1 == "raw_lat" && $3 == r { print 2 * $2 }' "$values")"
    measure tcp_send_lat sn_us iwarp off send_lat -s 64 "${D[@]}"
    measure fi_tcp_lat fi_us tcp msg 64 10000
    measure tcp_write_lat sn_us iwarp off write_lat -s 64 "${D[@]}"
    measure ucx_tcp_lat ucx_us tcp -t tag_lat -s 64 -n 20000 -w 1000
    measure tcp_read_lat sn_us iwarp off read_lat -s 64 "${D[@]}"
    measure raw_reno_lat floor_reno tcp_latency
    measure sockperf_lat sockperf_us
    measure tcp_event_lat sn_us iwarp off send_lat -s 64 "${D[@]}" -e
    measure raw_blocking_lat floor_both tcp_blocking_latency
    measure line_lat floor_both line_latency
    measure local_send_lat sn_us local off send_lat -s 64 "${D[@]}"
    measure ucx_posix_lat ucx_us posix -t tag_lat -s 64 -n 200000 -w 1000
    measure uct_posix_lat ucx_us uct -x posix -d memory -t am_lat -D short -s 64 -n 200000 -w 1000
    measure local_write_lat sn_us local off write_lat -s 64 "${D[@]}"
    measure fi_shm_lat fi_us shm rdm 64 10000
}

measure_streams() {
    local D=(-D "$seconds" -t 16)
    measure raw_reno_bw floor_reno tcp_stream
    measure tcp_write_bw sn_gbs iwarp off write_bw -s 1M "${D[@]}"
    measure raw_bw floor_both tcp_stream
    measure tcp_read_bw sn_gbs iwarp off read_bw -s 1M "${D[@]}"
    measure ucx_tcp_bw ucx_gbs tcp -t tag_bw -s 1048576 -n 2000 -w 100
    measure tcp_write_bw_crc sn_gbs iwarp on write_bw -s 1M "${D[@]}"
    measure tcp_read_bw_crc sn_gbs iwarp on read_bw -s 1M "${D[@]}"
    measure tcp_write_busy sn_gbs iwarp off write_bw -s 1M "${D[@]}" --target busy
    measure tcp_read_busy sn_gbs iwarp off read_bw -s 1M "${D[@]}" --target busy
    measure tcp_send_bw sn_gbs iwarp off send_bw -s 1M "${D[@]}"
    measure iperf_bw iperf_gbs
    measure copy_warm floor_of copy_warm
    measure local_read_bw sn_gbs local off read_bw -s 1M "${D[@]}"
    measure local_read_busy sn_gbs local off read_bw -s 1M "${D[@]}" --target busy
    measure local_write_busy sn_gbs local off write_bw -s 1M "${D[@]}" --target busy
    measure local_write_bw sn_gbs local off write_bw -s 1M "${D[@]}"
    measure ucx_cma_put_bw ucx_gbs uct -x cma -d memory -t put_bw -D zcopy -s 1048576 -n 5000 -w 100
    measure local_send_bw sn_gbs local off send_bw -s 1M "${D[@]}"
    measure ucx_cma_send_bw ucx_gbs posix,cma -t tag_bw -s 1048576 -n 3000 -w 100
    measure local_write_bw_cold sn_gbs local off write_bw -s 1M "${D[@]}" --cold 512M
    measure copy_cold floor_of copy_cold
}

measure_rates() {
    measure ucx_posix_rate ucx_rate posix -t tag_bw -s 8 -n 2000000 -w 1000
    measure local_send_rate sn_rate local off send_bw -s 8 -D "$seconds"
    measure uct_posix_rate ucx_rate uct -x posix -d memory -t am_bw -D short -s 8 -n 2000000 -w 1000
}

# One run gives several keys; rows of other transports and keys that no row wants cost nothing.
measure_idle() { # name transport count
    want "$1_idle_$3" || want "$1_memory_$3" || return 0
    local hold=()
    [[ $3 == 1000 ]] && hold=(--hold 5)
    if ! sn "$2" off send_lat -s 64 -D "$seconds" --idle "$3" "${hold[@]}" 2>>"$work/errors"; then
        echo "$1_idle_$3" >>"$work/missing"
        why "$1_idle_$3"
        return
    fi
    put "$1_idle_$3" "$(field t_typical_us)"
    eval "held_$3=$(field memory_bytes)"
    if [[ $3 != 0 && -n ${held_0:-} ]]; then
        put "$1_memory_$3" "$(awk -v all="$(field memory_bytes)" -v none="$held_0" -v n="$3" \
            'BEGIN { print (all - none) / n / 1024 }')"
    fi
    [[ $3 == 1000 ]] && put "$1_idle_cpu" "$(field idle_cpu_percent)"
    return 0
}

measure_growth() {
    local t n size transport
    for t in tcp local; do
        transport=$([[ $t == tcp ]] && echo iwarp || echo local)
        held_0=
        for n in 0 100 1000 5000; do measure_idle $t "$transport" $n; done
        for n in 1 2 4 8 16 32 64; do
            measure "${t}_rate_$n" sn_rate "$transport" off send_bw -s 8 -D "$seconds" -q $n
        done
        if want "${t}_connections" && sn "$transport" off conn_rate -n 500 2>>"$work/errors"; then
            put "${t}_connections" "$(field msg_rate_per_s connection)"
            put "${t}_connect" "$(field t_typical_us connection)"
        fi
    done
    for size in 4K 64K 1M 16M 256M 1G 8G; do
        want "register_$size" || continue
        on_a timeout -k 1 60 "$softnd" perf reg_rate -s $size --json >"$work/sn.json" 2>>"$work/errors" &&
            put "register_$size" "$(field t_typical_us register)"
    done
}

define_rows
((${#rows[@]} > 0)) || stop "no row matches $only"
: >"$work/missing"
for ((round = 1; round <= rounds; round++)); do
    say "round $round of $rounds"
    ((round == 1)) || check_load
    label=$$-$round
    measure_latency
    measure_streams
    measure_rates
done
for ((round = 1; round <= growth_rounds; round++)); do
    say "growth, round $round of $growth_rounds"
    label=$$-growth-$round
    measure_growth
done

# ---- the table ----

say "medians of $rounds rounds (growth $growth_rounds), of values and of ratios; cores busy without us: $(IFS=';'; echo "${loads[*]}")"
printf '%s\n' "${rows[@]}" >"$work/rows"
awk -v json="$out/results.json" -f bench/report.awk "$values" "$work/rows" || stop "no table"
if [[ -s $work/missing ]]; then
    say "not measured"
    sort "$work/missing" | uniq -c | awk '{ printf "%s (%d times)\n", $2, $1 }'
    [[ -s $work/errors ]] && tail -20 "$work/errors"
fi
echo
echo "written: $out/results.json"
