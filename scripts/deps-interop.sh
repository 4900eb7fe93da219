#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Installs the Debian packages that the interoperation tests need beyond those of `deps.sh test`: the
# virtual machine with siw and Wireshark's dissectors. Only what is missing is installed. About 250
# MB are fetched; the kernel itself comes later (tests/interop/siw/build.sh) and is not installed.
set -euo pipefail

packages='qemu-system-x86 linux-source-6.1 linux-headers-amd64 busybox-static rdma-core
ibverbs-providers libibverbs-dev librdmacm-dev rdmacm-utils perftest iproute2 kmod cpio xz-utils make
gcc tshark'

if [[ $(uname -s)-$(uname -m) != Linux-x86_64 ]] || ! command -v dpkg-query >/dev/null; then
    echo "the interoperation tests need Debian on x86-64" >&2
    exit 1
fi
missing=()
for package in $packages; do
    [[ $(dpkg-query -W -f '${Status}' "$package" 2>/dev/null) == *' installed' ]] ||
        missing+=("$package")
done
[[ ${#missing[@]} -eq 0 ]] && exit 0

as_root=()
if [[ $(id -u) -ne 0 ]]; then
    if ! command -v sudo >/dev/null; then
        echo "installing needs root: run 'apt-get install ${missing[*]}' as root" >&2
        exit 1
    fi
    as_root=(sudo)
fi
echo "installing: ${missing[*]}"
install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq
    --no-install-recommends "${missing[@]}")
if ! "${install[@]}" >/dev/null 2>&1; then
    "${as_root[@]}" apt-get update -qq
    "${install[@]}" >/dev/null
fi
