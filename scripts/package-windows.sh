#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds the windows preset and packs what a Windows user needs into build/softnd-VERSION-windows-x64.zip.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/deps-windows.sh
log=$(mktemp)
stage=$(mktemp -d)
trap 'rm -rf "$log" "$stage"' EXIT
{ cmake --preset windows && cmake --build --preset windows --target softnd softnd_tool ndutil; } \
    >"$log" 2>&1 || {
    tail -40 "$log"
    exit 1
}
version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' build/windows/CMakeCache.txt)
top=$stage/softnd-$version-windows-x64
mkdir -p "$top"/{bin,lib,include}
cp build/windows/softnd.dll build/windows/softnd.exe "$top/bin/"
x86_64-w64-mingw32-strip --strip-debug "$top/bin/softnd.dll" "$top/bin/softnd.exe"
cp build/windows/libsoftnd.dll.a build/windows/libndutil.a "$top/lib/"
cp include/ndspi.h include/nddef.h include/ndstatus.h include/ndsupport.h include/softnd.h \
    "$top/include/"
cp packaging/windows/README.txt "$top/"
cp LICENSE "$top/LICENSE.txt"
cp docs/windows.md "$top/windows.md"
zip=$PWD/build/softnd-$version-windows-x64.zip
rm -f "$zip"
(cd "$stage" && zip -qr "$zip" "${top##*/}")
echo "$zip"
