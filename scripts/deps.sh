#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Installs the Debian packages that are missing: deps.sh build | test | bench. Only what is missing
# is installed, so that it needs neither network nor rights on a machine that has everything.
set -euo pipefail

# tool:package, one per line; a package is needed when its tool is not found.
build='gcc:gcc
g++:g++
cmake:cmake
ninja:ninja-build'
test="$build
clang:clang
gcovr:gcovr
ip:iproute2
tc:iproute2
setpriv:util-linux
pkg-config:pkg-config"
bench="$build
fi_pingpong:libfabric-bin
ucx_perftest:ucx-utils
sockperf:sockperf
iperf3:iperf3
taskset:util-linux"

case "${1:-build}" in
build) wanted=$build ;;
test) wanted=$test ;;
bench) wanted=$bench ;;
*)
    echo "usage: $0 [build|test|bench]" >&2
    exit 2
    ;;
esac

missing=()
while IFS=: read -r tool package; do
    PATH=$PATH:/usr/sbin:/sbin command -v "$tool" >/dev/null || missing+=("$package")
done <<<"$wanted"
# No command: what programs built by clang with sanitizers are linked with.
clang_rt='/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.asan-*.a'
if [[ ${1:-build} == test ]] && ! compgen -G "$clang_rt" >/dev/null; then missing+=(libclang-rt-dev); fi
[[ ${#missing[@]} -eq 0 ]] && exit 0

mapfile -t missing < <(printf '%s\n' "${missing[@]}" | sort -u)
if ! command -v apt-get >/dev/null; then
    echo "missing: ${missing[*]} (Debian names). This system has no apt-get: please install them." >&2
    exit 1
fi
as_root=()
if [[ $(id -u) -ne 0 ]]; then
    if ! command -v sudo >/dev/null; then
        echo "missing packages: ${missing[*]}" >&2
        echo "Installing them needs root: run 'apt-get install ${missing[*]}' as root." >&2
        exit 1
    fi
    as_root=(sudo)
fi
echo "installing: ${missing[*]}"
# A package list that is there may do; a fresh one is fetched only if it does not.
install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq
    --no-install-recommends "${missing[@]}")
if ! "${install[@]}" >/dev/null 2>&1; then
    "${as_root[@]}" apt-get update -qq
    "${install[@]}" >/dev/null
fi
