#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Installs what the windows preset needs and is missing (Debian): the MinGW-w64 compilers and Wine.
set -euo pipefail

# tool:package, one per line; a package is needed when its tool is not found.
wanted='x86_64-w64-mingw32-gcc:gcc-mingw-w64-x86-64
x86_64-w64-mingw32-g++:g++-mingw-w64-x86-64
x86_64-w64-mingw32-windres:binutils-mingw-w64-x86-64
wine:wine
cmake:cmake
ninja:ninja-build
zip:zip'

missing=()
while IFS=: read -r tool package; do
    command -v "$tool" >/dev/null || missing+=("$package")
done <<<"$wanted"
[[ -e /usr/lib/wine/wine64 ]] || command -v wine64 >/dev/null || missing+=(wine64)
[[ ${#missing[@]} -eq 0 ]] && exit 0

if ! command -v apt-get >/dev/null; then
    echo "missing: ${missing[*]} (Debian names). This system has no apt-get: please install them." >&2
    exit 1
fi
as_root=()
if [[ $(id -u) -ne 0 ]]; then
    command -v sudo >/dev/null || {
        echo "run 'apt-get install ${missing[*]}' as root." >&2
        exit 1
    }
    as_root=(sudo)
fi
echo "installing: ${missing[*]}"
install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq
    --no-install-recommends "${missing[@]}")
if ! "${install[@]}" >/dev/null 2>&1; then
    "${as_root[@]}" apt-get update -qq
    "${install[@]}" >/dev/null
fi
