#!/bin/sh
# SPDX-License-Identifier: MIT
# mingw_headers.sh SOURCE_DIR WORK_DIR - compiles the public headers for Windows x64 with MinGW, in
# C and C++, and checks every layout and number at compile time. Exit 0 good, 1 bad, 77 skipped.
src=$1
work=$2
cc=x86_64-w64-mingw32-gcc
cxx=x86_64-w64-mingw32-g++
for tool in $cc $cxx; do
    if ! command -v $tool >/dev/null 2>&1; then
        echo "skipped: $tool is not installed"
        exit 77
    fi
done
mkdir -p "$work" || exit 1
flags="-Wall -Wextra -Werror -D_WIN32_WINNT=0x0602 -I$src/include -I$src/tests/abi -fsyntax-only"
failed=0
try() {
    echo "$*"
    "$@" || failed=1
}
for header in nddef.h ndstatus.h ndspi.h ndsupport.h softnd.h; do
    printf '#include "%s"\n#include "%s"\nint nothing;\n' $header $header >"$work/alone.c"
    cp "$work/alone.c" "$work/alone.cpp"
    for guid in "" -DINITGUID; do
        # shellcheck disable=SC2086
        try $cc -std=c17 $flags $guid "$work/alone.c"
        # shellcheck disable=SC2086
        try $cxx -std=c++17 $flags $guid "$work/alone.cpp"
    done
done
# shellcheck disable=SC2086
try $cc -std=c17 $flags "$src/tests/abi/static_layout.c"
# shellcheck disable=SC2086
try $cc -std=c17 $flags "$src/tests/abi/c_objects.c"
# shellcheck disable=SC2086
try $cxx -std=c++17 $flags "$src/tests/abi/cpp_objects.cpp"
exit $failed
