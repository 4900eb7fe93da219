# SPDX-License-Identifier: MIT
# lib.sh - what the process tests share. A script defines one function per case and ends with
# `run_case "$@"`, which runs the case named on the command line in a fresh folder.
#   SOFTND     the program (set by CMake)
# Exit code 0 passed, 1 failed, 77 skipped with the reason in words.
set -uo pipefail

: "${SOFTND:?}"
DEADLINE=${DEADLINE:-60} # seconds that any one step may take, sanitizers included

fail() {
    echo "FAILED: $*"
    for f in "$work"/*.err "$work"/*.out; do
        [[ -s $f ]] && { echo "--- $(basename "$f")"; tail -c 3000 "$f"; }
    done
    exit 1
}
skip() {
    echo "skipped: $*"
    exit 77
}

pids=()
cleanup() {
    for p in "${pids[@]}"; do kill -9 "$p" 2>/dev/null; done
    wait 2>/dev/null
    rm -rf "$work"
}

run_case() {
    [[ $# -eq 1 ]] && declare -F "$1" >/dev/null || { echo "usage: $0 CASE" >&2; exit 2; }
    work=$(mktemp -d "${TMPDIR:-/tmp}/softnd-case.XXXXXX")
    trap cleanup EXIT
    # The library beside the program, unless a case registers one.
    export SOFTND_CATALOG=$work/catalog
    unset SOFTND_PROVIDER
    cd "$work" || exit 1
    "$1"
    exit 0
}

# until SECONDS COMMAND...: repeats the command until it succeeds; fails the case if it never does.
until_true() {
    local end=$((SECONDS + DEADLINE))
    until "$@"; do
        ((SECONDS < end)) || return 1
        sleep 0.02
    done
}

has_line() { grep -q -- "$2" "$1" 2>/dev/null; }
is_gone() { ! kill -0 "$1" 2>/dev/null; }

# expect CODE NAME COMMAND...: runs it to its end; output goes to NAME.out and NAME.err.
expect() {
    local want=$1 name=$2 got
    shift 2
    timeout -k 5 "$DEADLINE" "$@" >"$name.out" 2>"$name.err" </dev/null
    got=$?
    [[ $got -eq 124 || $got -eq 137 ]] && fail "$name did not end: $*"
    [[ $got -eq $want ]] || fail "$name: exit code $got, expected $want: $*"
}

# Errors are one line for the user.
expect_error_line() { # NAME PATTERN
    [[ $(grep -vc 'listening on' "$1.err") -eq 1 ]] || fail "$1: not one line on stderr"
    grep -v 'listening on' "$1.err" | grep -- "$2" >/dev/null || fail "$1: stderr does not say: $2"
}

# start NAME COMMAND...: in the background; sets PID. Input from $INPUT, if set.
start() {
    local name=$1
    shift
    # Emptied here, so that nobody reads what an earlier process of that name said.
    : >"$name.out" >"$name.err"
    "$@" >>"$name.out" 2>>"$name.err" <"${INPUT:-/dev/null}" &
    PID=$!
    pids+=("$PID")
}

# finish PID CODE NAME: waits for it.
finish() {
    until_true is_gone "$1" || fail "$3 did not end"
    wait "$1"
    local got=$?
    [[ $got -eq $2 ]] || fail "$3: exit code $got, expected $2"
}

# start_listening NAME COMMAND...: and waits for its port; sets PID and PORT.
start_listening() {
    local name=$1
    start "$@"
    until_true eval "has_line $name.err 'listening on' || is_gone $PID" || fail "$name does not listen"
    PORT=$(sed -n 's/.*listening on .*:\([0-9]*\)$/\1/p' "$name.err" | head -1)
    [[ -n $PORT ]] || fail "$name does not listen"
}

# make_file NAME BYTES: random, and fast for large ones.
make_file() {
    if (($2 <= 4194304)); then
        head -c "$2" /dev/urandom >"$1"
    else
        head -c 4194304 /dev/urandom >"$1.seed"
        for ((i = 0; i * 4194304 < $2; i++)); do
            printf '%08d' "$i"
            tail -c +9 "$1.seed"
        done | head -c "$2" >"$1"
        rm -f "$1.seed"
    fi
    [[ $(stat -c %s "$1") -eq $2 ]] || fail "cannot make $1"
}

# as_nobody: sets NOBODY, the words that run a program as another user; skips where that cannot be.
as_nobody() {
    chmod 755 "$work"
    mkdir -m 777 "$work/coverage" # where an instrumented program may write
    NOBODY=(setpriv --reuid 65534 --clear-groups env "GCOV_PREFIX=$work/coverage")
    "${NOBODY[@]}" "$SOFTND" --version >/dev/null 2>&1 ||
        skip "another user cannot run the program here"
}

have_ipv6() { "$SOFTND" info | grep '::1' >/dev/null; }
