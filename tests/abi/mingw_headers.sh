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
headers='nddef.h ndstatus.h ndspi.h ndsupport.h softnd.h'
compile() { # NAME, further flags: as C and as C++
    cp "$work/$1.c" "$work/$1.cpp"
    # shellcheck disable=SC2086
    try $cc -std=c17 $flags $2 "$work/$1.c"
    # shellcheck disable=SC2086
    try $cxx -std=c++17 $flags $2 "$work/$1.cpp"
}
: >"$work/all.c"
for header in $headers; do
    printf '#include "%s"\n#include "%s"\nint nothing;\n' $header $header >"$work/alone.c"
    compile alone ""
    printf '#include "%s"\n' $header >>"$work/all.c"
done
compile all -DINITGUID # it changes no declaration: all in one
# shellcheck disable=SC2086
try $cc -std=c17 $flags "$src/tests/abi/static_layout.c"
# shellcheck disable=SC2086
try $cc -std=c17 $flags "$src/tests/abi/c_objects.c"
# shellcheck disable=SC2086
try $cxx -std=c++17 $flags "$src/tests/abi/cpp_objects.cpp"
exit $failed
