#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# tools.sh CASE - the catalog commands, info, help, and what `make install` puts in place.
. "$(dirname "$0")/lib.sh"

GUID='{0344F8A6-2003-438B-954B-7B4BF70419EC}'

install_list_info_remove() {
    expect 0 list "$SOFTND" list
    grep -q 'no NetworkDirect provider is registered' list.out || fail "not empty"
    expect 0 install "$SOFTND" install
    expect 0 list "$SOFTND" list
    grep -q "$GUID.*private.*$LIBSOFTND" list.out || fail "not listed"
    expect 0 info "$SOFTND" info
    for field in VendorId DeviceId MaxRegistrationSize MaxWindowSize MaxInitiatorSge MaxReceiveSge \
        MaxReadSge MaxTransferLength MaxInlineDataSize MaxInboundReadLimit MaxOutboundReadLimit \
        MaxReceiveQueueDepth MaxInitiatorQueueDepth MaxSharedReceiveQueueDepth \
        MaxCompletionQueueDepth InlineRequestThreshold LargeRequestThreshold MaxCallerData \
        MaxCalleeData; do
        grep -q "^    $field: [1-9][0-9]*$" info.out || fail "no $field"
    done
    grep -q '127\.0\.0\.1' info.out || fail "no loopback address"
    grep -q '^    transports: local iwarp$' info.out || fail "no transports"
    SOFTND_TRANSPORT=iwarp expect 0 forced "$SOFTND" info
    grep -q '^    transports: iwarp$' forced.out || fail "what is forced is not said"
    grep -q 'AdapterFlags:.* IN_ORDER_DMA_SUPPORTED' info.out || fail "no flags"
    expect 0 remove "$SOFTND" remove
    expect 0 list "$SOFTND" list
    grep -q "$GUID" list.out && fail "still listed"
    true
}

installing_twice_changes_nothing_and_another_library_is_refused() {
    expect 0 install "$SOFTND" install
    cp -r "$SOFTND_CATALOG" before
    expect 0 second "$SOFTND" install
    grep -q "^already registered: $LIBSOFTND$" second.out || fail "it said: $(<second.out)"
    cp "$LIBSOFTND" moved.so
    expect 1 third "$SOFTND" install --provider moved.so
    expect_error_line third 'already registered'
    diff -r before "$SOFTND_CATALOG" || fail "the catalog changed"
}

check_goes_the_way_of_a_client() {
    expect 1 check "$SOFTND" install --check
    expect_error_line check "$GUID is not registered"
    expect 0 install "$SOFTND" install
    expect 0 check "$SOFTND" install --check
    [[ $(awk '{ print $1 }' check.out | uniq | paste -sd' ') == "entry library adapter unload" ]] ||
        fail "other steps: $(<check.out)"
    grep -q '^adapter *127\.0\.0\.1$' check.out || fail "no loopback adapter"
    expect 0 remove "$SOFTND" remove
    cp "$LIBSOFTND" moved.so
    expect 0 install "$SOFTND" install --provider moved.so
    echo hello >moved.so
    expect 1 check "$SOFTND" install --check
    expect_error_line check 'is not a library that can be loaded'
    grep -q '^library *FAILED$' check.out || fail "the step is not named"
    expect 2 check "$SOFTND" install --check --user
}

static_helper_library_defines_only_names_of_its_own() {
    nm -g --defined-only "$BUILD_DIR/libndutil.a" 2>nm.err |
        awk 'NF == 3 && $3 !~ /^(_|Nd|ndutil_|IID_|CLSID_)/ { print $3 }' >foreign
    [[ ! -s foreign ]] || fail "programs that link it cannot use: $(paste -sd' ' foreign)"
}

removing_what_is_not_there_fails() {
    expect 1 remove "$SOFTND" remove
    expect_error_line remove "$GUID is not registered"
}

several_installing_at_once_leave_one_entry() {
    local -a installers=()
    local done=0
    for i in 1 2 3 4 5 6; do
        start "install$i" "$SOFTND" install
        installers+=("$PID")
    done
    for p in "${installers[@]}"; do
        until_true is_gone "$p" || fail "an install hangs"
        wait "$p" && done=$((done + 1))
    done
    [[ $done -eq 6 ]] || fail "$done succeeded"
    [[ $(cat install?.out | grep -c '^registered') -eq 1 ]] || fail "not one of them registered it"
    expect 0 list "$SOFTND" list
    [[ $(grep -c "$GUID" list.out) -eq 1 ]] || fail "not one entry"
}

library_that_does_not_exist() {
    expect 1 install "$SOFTND" install --provider /no/such.so
    expect_error_line install '/no/such.so: no such file'
}

library_that_is_none() {
    echo hello >lib.so
    expect 1 install "$SOFTND" install --provider lib.so
    expect_error_line install 'not a library that can be loaded'
}

library_that_is_no_provider() {
    local other
    other=$(ldd "$SOFTND" | sed -n 's/.*libm\.so[^ ]* => \([^ ]*\).*/\1/p')
    [[ -f $other ]] || skip "no other library is known here"
    expect 1 install "$SOFTND" install --provider "$other"
    expect_error_line install 'is not a NetworkDirect provider'
}

library_under_another_guid() {
    expect 1 install "$SOFTND" install --guid 11111111-2222-3333-4444-555555555555
    expect_error_line install 'is not the provider with this GUID'
}

path_too_long_for_an_entry() {
    local d
    d=$(printf 'x%.0s' {1..200})
    mkdir -p "$d/$d" && cp "$LIBSOFTND" "$d/$d/lib.so"
    expect 1 install "$SOFTND" install --provider "$d/$d/lib.so"
    expect_error_line install 'path longer than'
}

entry_whose_library_is_gone() {
    cp "$LIBSOFTND" moved.so
    expect 0 install "$SOFTND" install --provider moved.so
    rm moved.so
    expect 0 list "$SOFTND" list
    grep -q 'this library does not exist' list.out || fail "list does not say so"
    expect 1 info "$SOFTND" info
    expect_error_line info 'is not a library that can be loaded'
    expect 0 remove "$SOFTND" remove
}

user_scope() {
    unset SOFTND_CATALOG
    export XDG_CONFIG_HOME=$work/config
    "$SOFTND" list | grep "$GUID" >/dev/null && skip "this machine has SoftND registered for all users"
    expect 0 install "$SOFTND" install --user
    [[ -n $(ls "$work/config/softnd") ]] || fail "nothing was written to the user's folder"
    expect 0 list "$SOFTND" list
    grep -q "$GUID.* user " list.out || fail "not listed as the user's"
    expect 1 remove "$SOFTND" remove --system
    expect_error_line remove 'registered in the user catalog, not in the system one\|permission denied'
    expect 0 remove "$SOFTND" remove --user
}

system_scope_without_permission() {
    unset SOFTND_CATALOG
    export XDG_CONFIG_HOME=$work/config
    local -a as=()
    if [[ $(id -u) -eq 0 ]]; then
        as_nobody
        as=("${NOBODY[@]}")
    fi
    "$SOFTND" list | grep "$GUID" >/dev/null && skip "this machine has SoftND registered for all users"
    expect 1 install "${as[@]}" "$SOFTND" install --system
    expect_error_line install 'permission denied (try --user'
}

scopes_exclude_each_other() {
    expect 2 install "$SOFTND" install --user --system
    expect 2 remove "$SOFTND" remove --system --user
}

json_is_json() {
    command -v python3 >/dev/null || skip "python3, which reads JSON, is missing"
    expect 0 info "$SOFTND" info --json
    python3 - info.out <<'PY' || fail "info --json"
import json, sys
for provider in json.load(open(sys.argv[1]))["providers"]:
    assert provider["adapters"], "no adapters"
    for a in provider["adapters"]:
        assert a["addresses"] and a["MaxCompletionQueueDepth"] > 0 and a["AdapterFlags"]
        assert a["transports"] == ["local", "iwarp"]
PY
    expect 0 list "$SOFTND" list --json
    python3 -c 'import json, sys; assert json.load(open("list.out"))["providers"] == []' ||
        fail "list --json, empty"
    expect 0 install "$SOFTND" install --name 'a "quoted" name'
    expect 0 list "$SOFTND" list --json
    python3 -c 'import json; p = json.load(open("list.out"))["providers"]
assert len(p) == 1 and p[0]["name"] == "a \"quoted\" name" and p[0]["networkdirect"] is True' ||
        fail "list --json"
}

help_is_everywhere() {
    expect 0 help "$SOFTND" --help
    for c in info list install remove ping cat perf; do
        grep -q "^  $c " help.out || fail "help does not name $c"
        expect 0 one "$SOFTND" $c --help
        grep -q "^Usage: softnd $c" one.out || fail "$c --help"
        grep -q 'Exit code' one.out || fail "$c --help does not explain exit codes"
        expect 0 two "$SOFTND" help $c
        cmp one.out two.out || fail "help $c"
    done
    expect 0 version "$SOFTND" --version
    grep -q '^softnd [0-9]*\.[0-9]*\.[0-9]*$' version.out || fail "--version"
}

wrong_usage_is_exit_code_2() {
    local -a lines=('' 'nothing' 'help nothing' 'info x' 'info --x' 'list x' 'list --x' 'install x'
        'install --guid x' 'install --provider' 'remove x' 'remove --x')
    for line in "${lines[@]}"; do
        read -ra words <<<"$line"
        expect 2 usage "$SOFTND" "${words[@]}"
        [[ -s usage.err ]] || fail "no message for: $line"
    done
}

output_to_a_full_device_fails() {
    timeout "$DEADLINE" "$SOFTND" info >/dev/full 2>info.err
    [[ $? -eq 1 ]] || fail "it did not fail"
    expect_error_line info 'No space left on device'
}

make_builds_all_that_is_installed() {
    local built target
    built=$(sed -n 's/.*cmake --build .* --target //p' "$SOURCE_DIR/scripts/build.sh")
    for target in $(grep -rhoE '^ *install\(TARGETS [a-z_ ]+' --include=CMakeLists.txt --include='*.cmake' \
        "$SOURCE_DIR/src" "$SOURCE_DIR/tools" "$SOURCE_DIR/cmake" | sed 's/.*TARGETS //'); do
        [[ " $built " == *" $target "* ]] || fail "$target is installed, but make does not build it"
    done
    [[ -n ${target:-} ]] || fail "nothing is installed"
}

installed_files_build_and_run_a_program() {
    command -v pkg-config >/dev/null || skip "pkg-config is missing"
    nm "$LIBSOFTND" 2>/dev/null | grep '__[at]san_init' >/dev/null && skip "a sanitizer build needs its flags"
    DESTDIR= cmake --install "$BUILD_DIR" --prefix "$work/prefix" >install.out 2>install.err ||
        fail "make install"
    local flags
    flags=$(PKG_CONFIG_PATH=$work/prefix/lib/pkgconfig pkg-config --cflags --libs softnd) ||
        fail "pkg-config"
    nm "$LIBSOFTND" | grep __gcov_init >/dev/null && flags+=' --coverage'
    # shellcheck disable=SC2086
    "$CXX" -std=c++17 -Wall -Wextra -Werror "$HELLO_SOURCE" $flags -o hello 2>compile.err || fail "it does not compile"
    start_listening server "$work/prefix/bin/softnd" ping --server 127.0.0.1:0
    expect 0 install "$work/prefix/bin/softnd" install
    grep -q "$work/prefix/lib/libsoftnd.so" install.out || fail "another library was registered"
    expect 0 hello ./hello 127.0.0.1 "$PORT"
    [[ $(<hello.out) == "hello, RDMA" ]] || fail "it said: $(<hello.out)"
}

demo_moves_a_file_in_both_modes() {
    DEMO_BYTES=20000003 TMPDIR=$work expect 0 demo bash "$SOURCE_DIR/scripts/demo.sh"
    [[ $(grep -c '^received 20000003 bytes in .* GB/s, transport' demo.out) -eq 2 ]] ||
        fail "not two transfers"
    grep -q 'done: both transfers arrived intact' demo.out || fail "it does not say so"
    [[ -z $(ls -d "$work"/softnd-demo.* 2>/dev/null) ]] || fail "files are left behind"
}

# A program that spoils what it received must not get away with it.
demo_fails_when_the_file_differs() {
    cat >spoiler <<SPOILER
#!/bin/bash
"$SOFTND" "\$@" || exit
[[ \$1 == cat && \$2 == --recv ]] && printf x | dd of="\$3" bs=1 seek=5000 conv=notrunc 2>/dev/null
exit 0
SPOILER
    chmod +x spoiler
    DEMO_BYTES=1000000 TMPDIR=$work SOFTND_PROVIDER=$LIBSOFTND SOFTND=$work/spoiler \
        expect 1 demo bash "$SOURCE_DIR/scripts/demo.sh"
    grep -q 'DEMO FAILED: the files differ' demo.err || fail "it does not say so"
}

run_case "$@"
