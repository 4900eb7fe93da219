#!/bin/bash
# SPDX-License-Identifier: MIT
# rdma_sample.sh SOURCE_DIR BUILD_DIR - builds Microsoft's RDMA sample (github.com/microsoft/SDN,
# NDKCI/RdmaSample), unchanged, against these headers and runs it under `softnd ndk-run`. Needs root
# and network namespaces: the sample has interface numbers 12 and 15 and addresses 10.0.0.1 and
# 10.0.0.2:54321 written into it. Its sources stay where they are.
set -eu
tree=$(cd "$(dirname "$0")/../.." && pwd)
source=$(cd "$1" && pwd)
build=$(cd "$2" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The sources spell header names in mixed case.
mkdir "$work/headers"
for file in "$source"/*.h; do
    name=$(basename "$file")
    ln -s "$file" "$work/headers/$name"
    ln -sf "$file" "$work/headers/$(echo "$name" | tr '[:upper:]' '[:lower:]')"
done
ln -sf "$source/RdmaSample.h" "$work/headers/rdmaSample.h"
for file in "$source"/*.c; do
    ${CC:-cc} -std=gnu17 -fPIC -g -w -fshort-wchar -I"$work/headers" -I"$tree/include/km" \
        -I"$tree/include/ndk" -c "$file" -o "$work/$(basename "$file").o"
done
${CC:-cc} -shared -o "$work/rdmasample.so" "$work"/*.o -L"$build" -lsoftndk

export work build
unshare -n bash -c '
    ip link set lo up
    ip link add d12 index 12 type veth peer name d15 index 15
    ip addr add 10.0.0.1/24 dev d12 && ip link set d12 up
    ip addr add 10.0.0.2/24 dev d15 && ip link set d15 up
    exec "$build/softnd" ndk-run --tokens constant --freed-pool keep --wait 1 -- \
        "$work/rdmasample.so"'
