#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds the test configurations and runs all tests in each, then prints the line coverage of src/.
#   MIN_COVERAGE   least line coverage in percent (default 85)
#   PRESETS        configurations to build and run (default "dev asan tsan windows")
#   JOBS           builds and tests at a time (default: number of processors)
# The last line is the sum over all runs: N passed, N failed, N skipped.
set -uo pipefail
cd "$(dirname "$0")/.."

min_coverage=${MIN_COVERAGE:-85}
presets=${PRESETS:-dev asan tsan windows}
jobs=${JOBS:-$(nproc)}
test_jobs=$((jobs + jobs / 2)) # many tests wait most of the time
passed=0 failed=0 skipped=0

say() { printf '\n== %s (%ds)\n' "$*" "$SECONDS"; }
stop() {
    printf '\n%s\n' "$*" >&2
    finish 1
}
finish() {
    echo "$passed passed, $failed failed, $skipped skipped"
    exit "$1"
}

scripts/deps.sh test || stop "the packages that the tests need cannot be installed"

if [[ " $presets " == *" windows "* ]]; then
    scripts/deps-windows.sh || stop "MinGW-w64 and Wine cannot be installed (PRESETS without windows does without)"
fi
scripts/deps-interop.sh || echo "the interoperation tests will skip what they have no packages for"

# Everything that runs here leaves the machine's own catalog alone.
work=$(mktemp -d "${TMPDIR:-/tmp}/softnd-test.XXXXXX")
trap 'rm -rf "$work"' EXIT
export SOFTND_CATALOG=$work/catalog
unset SOFTND_PROVIDER
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:abort_on_error=0}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}

# The thread sanitizer of some compilers needs the address space as it was without randomisation.
run=()
if setarch "$(uname -m)" -R true 2>/dev/null; then run=(setarch "$(uname -m)" -R); fi

attribute() { sed -n "s/.*<testsuite[^>]*[[:space:]]$1=\"\([0-9]*\)\".*/\1/p" <<<"$2" | head -1; }

# A test that fails is run once more: a machine that stood still for seconds is not a fault. Both
# attempts are in the output.
run_tests() { # preset, further arguments of ctest
    local preset=$1 report=$work/$1.xml head total bad skip
    shift
    say "running $preset"
    "${run[@]}" ctest --test-dir "build/$preset" -j "$test_jobs" --output-on-failure --no-tests=error \
        --output-junit "$report" --repeat until-pass:2 "$@" 2>&1 | grep -v '^ *Start '
    local code=${PIPESTATUS[0]}
    [[ -s $report ]] || stop "ctest of $preset left no report"
    head=$(tr '\n' ' ' <"$report" | sed 's/<testcase.*//')
    total=$(attribute tests "$head")
    bad=$(attribute failures "$head")
    skip=$(attribute skipped "$head")
    # A test that could not be run at all is in no count but that of ctest's own verdict.
    ((code == 0 || bad > 0)) || bad=1
    ((failed += bad, skipped += skip, passed += total - bad - skip))
}

for preset in $presets; do
    say "building $preset"
    log=$work/build.log
    { cmake --preset "$preset" && cmake --build --preset "$preset" -j "$jobs"; } >"$log" 2>&1 || {
        tail -60 "$log"
        stop "$preset does not build"
    }
    [[ $preset == dev ]] && find build/dev -name '*.gcda' -delete
    case $preset in
    # A machine within the machine is slow enough, and the family of addresses makes no difference.
    asan) run_tests asan -LE 'interop|wine' -E '_ipv6$' ;;
    # Nor is there a second thread in what only compiles, decodes or says how it is used; and two
    # hosts run the threads that two processes do.
    tsan) run_tests tsan -LE 'interop|wine|abi|netns' -E '_ipv6$|^fuzz_[^s]|^process_tools_|_usage_' ;;
    windows) run_tests windows -L wine ;;
    *) run_tests "$preset" ;;
    esac
done

verdict=0
((failed == 0)) || verdict=1
if [[ " $presets " == *" dev "* ]]; then
    say "line coverage of src/"
    # One thread: gcovr 5.2 hangs instead of failing when one of several does.
    gcovr --root . --filter src/ --object-directory build/dev build/dev --sort-percentage \
        --print-summary >"$work/coverage.txt" 2>"$work/coverage.err" || {
        cat "$work/coverage.err"
        stop "gcovr failed"
    }
    sed -n '/^File/,$p' "$work/coverage.txt"
    lines=$(sed -n 's/^lines: \([0-9.]*\)%.*/\1/p' "$work/coverage.txt")
    if ! awk -v have="${lines:-0}" -v want="$min_coverage" 'BEGIN { exit !(have >= want) }'; then
        echo "line coverage is ${lines:-unknown} %, below the $min_coverage % that MIN_COVERAGE asks for"
        verdict=1
    else
        echo "line coverage is $lines % (at least $min_coverage % is asked for)"
    fi
fi
say "done"
finish "$verdict"
