#!/bin/bash
# SPDX-License-Identifier: MIT
# run_kenv.sh CASE - a consumer with settings and a log under `softnd ndk-run`. Exit 0 good, 1 bad.
# SOFTND, WINE (what starts it, if anything), CONSUMERS (a directory), MODULE (the end of their names)
# and WORK come from ctest.
set -u
softnd=(${WINE:+"$WINE"} "$SOFTND")
mkdir -p "$WORK/$1" && cd "$WORK/$1" || exit 1
rm -f ./*

_fail() {
    echo "FAILED: $*"
    [ -f out.txt ] && sed 's/^/out.txt: /' out.txt
    [ -f in.reg ] && sed 's/^/in.reg: /' in.reg
    exit 1
}

_registry() {
    cat >in.reg <<'END'
Windows Registry Editor Version 5.00

[HKEY_LOCAL_MACHINE\System\CurrentControlSet\Services\softndk]
"Port"=dword:00001144
END
}

_run() {
    "${softnd[@]}" ndk-run --registry in.reg --files . -- "$CONSUMERS/ndk_settings$MODULE" "$@" >out.txt 2>&1
    local code=$?
    [ -f in.reg ] && sed -i 's/\r$//' in.reg # lines as here
    return $code
}

settings_are_read_and_results_written() {
    _registry
    _run || _fail "exit $?"
    grep -qx '"Twice"=dword:00002288' in.reg || _fail "the number"
    grep -qx '"Said"="a \\"word\\""' in.reg || _fail "the text"
    grep -qx '"Port"=dword:00001144' in.reg || _fail "what was there before"
    [ "$(cat settings.txt)" = done ] || _fail "the log"
    cp in.reg first.reg
    _run || _fail "the second run"
    cmp first.reg in.reg || _fail "what was written is not read as it was"
}

missing_settings_are_an_error_of_the_consumer() {
    _run && _fail "it should have failed"
    grep -q 'DriverEntry returned 0xC0000034' out.txt || _fail "the status is not there"
    [ -e in.reg ] && _fail "a registry was written though nothing was set"
    return 0
}

registry_that_cannot_be_read_is_said() {
    echo nonsense >in.reg
    _run && _fail "it should have failed"
    grep -q 'in.reg:1:' out.txt || _fail "the message does not name the line"
    grep -qx nonsense in.reg || _fail "the file was changed"
}

key_left_open_is_reported() {
    _registry
    _run forget && _fail "it should have failed"
    grep -q 'a handle of a registry key was never closed' out.txt || _fail "no report"
}

exception_that_nobody_catches_ends_the_process() {
    _registry
    _run raise && _fail "it should have failed"
    grep -q 'exception 0xC0000017 is not handled' out.txt || _fail "the exception is not named"
    grep -q 'bug check 0x1e' out.txt || _fail "no bug check"
}

# What waits.c does: a wait that cannot end is said, and here ends the process.
_waits() {
    timeout -s KILL 30 "${softnd[@]}" ndk-run --verifier abort --deadlock-after 100 -- "$CONSUMERS/ndk_waits$MODULE" "$1" \
        >out.txt 2>&1
}

_wait_is_reported() {
    _waits "$1" && _fail "it should have failed"
    grep -q 'rule broken: dead_wait' out.txt || _fail "no report"
    grep -q "$2" out.txt || _fail "the report does not say: $2"
}

wait_that_nobody_ends_is_reported() { _wait_is_reported nobody 'nobody is left who could end it'; }
wait_for_an_inline_answer_is_reported() { _wait_is_reported inline 'NdkCreatePd with a context near'; }
unload_that_waits_for_a_waiting_thread_is_reported() { _wait_is_reported unload '2 threads of the consumer'; }

wait_that_another_thread_ends_is_not_reported() {
    _waits helped || _fail "exit $?"
    grep -q dead_wait out.txt && _fail "a report"
    return 0
}

"$1"
