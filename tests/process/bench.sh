#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# bench.sh CASE - how `make bench` makes its table of what it measured.
. "$(dirname "$0")/lib.sh"

# _table: values and rows, written before, to out.json and table.
_table() {
    awk -v json=out.json -f "$SOURCE_DIR/bench/report.awk" values rows >table || fail "no table"
    if command -v python3 >/dev/null; then
        python3 -m json.tool out.json >pretty || fail "out.json is no JSON: $(cat out.json)"
    fi
}
_holds() { grep -qF "$1" out.json || fail "no $1 in: $(cat out.json)"; }

# The first values of both are of another state of the machine than the others: by medians alone the
# ratio would be 4 to 3.
ratio_is_of_values_measured_together() {
    printf '%s\n' 'ours 1 r1' 'theirs 2 r1' 'ours 4 r2' 'theirs 8 r2' 'ours 9 r3' 'theirs 3 r3' >values
    echo 'x|us|ours|them|theirs|lower|0.5' >rows
    _table
    _holds '"softnd": 4, "peer": "them", "peer_value": 3, "ratio": 0.5, "goal": 0.5, "met": true'
}

even_counts_and_no_round_in_common() {
    printf '%s\n' 'ours 1 r1' 'ours 3 r2' 'theirs 8 r3' >values
    echo 'x|GB/s|ours|them|theirs|higher|1' >rows
    _table
    _holds '"softnd": 2, "peer": "them", "peer_value": 8, "ratio": 0.25, "goal": 1, "met": false'
}

what_was_not_measured_is_not_met() {
    printf '%s\n' 'ours 1 r1' 'none 0 r1' >values
    printf '%s\n' 'a|us|missing|them|ours|lower|1' 'b|us|ours|them|none|lower|1' 'c|us|ours|them|missing|lower|' \
        >rows
    _table
    _holds '"name": "a", "unit": "us", "softnd": null, "peer": "them", "peer_value": 1, "ratio": null, "goal": 1, "met": false'
    _holds '"name": "b", "unit": "us", "softnd": 1, "peer": "them", "peer_value": 0, "ratio": null, "goal": 1, "met": false'
    _holds '"name": "c", "unit": "us", "softnd": 1, "peer": "them", "peer_value": null, "ratio": null, "goal": null, "met": null'
}

goal_of_a_value_without_peer() {
    printf '%s\n' 'cpu 0.05 r1' 'cpu 0.15 r2' 'cpu 0.07 r3' >values
    printf '%s\n' 'a|%|cpu|||lower|0.1' 'b|%|cpu|||lower|0.06' >rows
    _table
    _holds '"name": "a", "unit": "%", "softnd": 0.07, "peer": null, "peer_value": null, "ratio": null, "goal": 0.1, "met": true'
    _holds '"name": "b", "unit": "%", "softnd": 0.07, "peer": null, "peer_value": null, "ratio": null, "goal": 0.06, "met": false'
}

wrong_settings_are_told_at_once() {
    local o
    for o in BENCH_ROUNDS=x BENCH_GROWTH=-1 BENCH_SECONDS=0 BENCH_SECONDS=1e9 BENCH_SECONDS=x BENCH_CORES=1 'BENCH_CORES=a b'; do
        expect 1 wrong env "$o" "$SOURCE_DIR/scripts/bench.sh"
        grep -q "^bench: .*${o%%=*}" wrong.err || fail "$o: no message"
    done
}

run_case "$@"
