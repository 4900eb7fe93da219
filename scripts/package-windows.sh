#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds the windows preset and packs what a Windows user needs into build/softnd-VERSION-windows-x64.zip.
#   package-windows.sh [BUILD]   with BUILD: packs what was built there, into it
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-}
out=${build:-build}
if [[ -z $build ]]; then
    build=build/windows
    scripts/deps-windows.sh
    log=$(mktemp)
    { cmake --preset windows &&
        cmake --build --preset windows --target softnd softnd_tool ndutil softndk; } \
        >"$log" 2>&1 || {
        tail -40 "$log"
        exit 1
    }
    rm -f "$log"
fi
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$build/CMakeCache.txt")
top=$stage/softnd-$version-windows-x64
mkdir -p "$top"/{bin,lib,include}
cp "$build/softnd.dll" "$build/libsoftndk.dll" "$build/softnd.exe" "$top/bin/"
x86_64-w64-mingw32-strip --strip-debug "$top"/bin/*
cp "$build/libsoftnd.dll.a" "$build/libsoftndk.dll.a" "$build/libndutil.a" "$top/lib/"
cp include/ndspi.h include/nddef.h include/ndstatus.h include/ndsupport.h include/softnd.h \
    "$top/include/"
cp -r include/km include/ndk "$top/include/"
mkdir "$top/include/win32" # the types of which the NDK's headers are made
cp include/win32/softnd_{wintypes,winsockaddr,guiddef}.h "$top/include/win32/"
cp packaging/windows/README.txt "$top/"
cp LICENSE "$top/LICENSE.txt"
cp docs/windows.md "$top/windows.md"
zip=$(cd "$out" && pwd)/softnd-$version-windows-x64.zip
rm -f "$zip"
(cd "$stage" && zip -qr "$zip" "${top##*/}")
echo "$zip"
