#!/bin/sh
# SPDX-License-Identifier: MIT
# ndk_mingw_headers.sh SOURCE_DIR WORK_DIR - compiles the NDK headers for Windows x64 after MinGW's
# kernel headers, in C and C++, and checks layouts at compile time. Exit 0 good, 1 bad, 77 skipped.
src=$1
work=$2
cc=x86_64-w64-mingw32-gcc
cxx=x86_64-w64-mingw32-g++
ddk=
for tool in $cc $cxx; do
    if ! command -v $tool >/dev/null 2>&1; then
        echo "skipped: $tool is not installed"
        exit 77
    fi
done
for dir in $($cc -xc -E -v /dev/null 2>&1 | sed -n 's/^ //p'); do
    [ -f "$dir/ddk/ntddk.h" ] && ddk="$dir/ddk"
done
if [ -z "$ddk" ]; then
    echo "skipped: this MinGW has no kernel headers"
    exit 77
fi
mkdir -p "$work" || exit 1
failed=0
flags="-Wall -Wextra -Werror -isystem $ddk -I$src/include/ndk -I$src/tests/abi -fsyntax-only"
cp "$src/tests/abi/ndk_static_layout.c" "$work/ndk_static_layout.cpp"
# shellcheck disable=SC2086
$cc -std=c17 $flags "$src/tests/abi/ndk_static_layout.c" || failed=1
# shellcheck disable=SC2086
$cxx -std=c++17 $flags "$work/ndk_static_layout.cpp" || failed=1
exit $failed
