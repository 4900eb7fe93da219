#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds what run-vm.sh boots, from Debian packages alone: a kernel, siw.ko (which Debian's kernel
# lacks) out of tree, and an initramfs with busybox, the RDMA tools and our verbs peer.
#   build.sh            prints the folder with `vmlinuz` and `initramfs`
#   SIW_STOCK=1         siw without the correction below
#   SOFTND_INTEROP_DIR  where the folder and the kernel package are kept between runs
# Exit 77, with a reason, where the packages are not there: scripts/deps-interop.sh installs them.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${SOFTND_INTEROP_DIR:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/softnd-interop}

skip() {
    echo "skipped: $*" >&2
    exit 77
}

[[ $(uname -s)-$(uname -m) == Linux-x86_64 ]] || skip "the virtual machine is x86-64 Linux"
export PATH=$PATH:/usr/sbin:/sbin
for tool in qemu-system-x86_64 busybox rping ib_send_lat rdma make gcc cpio depmod xz; do
    command -v "$tool" >/dev/null || skip "$tool is not installed (scripts/deps-interop.sh)"
done
source_tar=/usr/src/linux-source-6.1.tar.xz
[[ -f $source_tar ]] || skip "linux-source-6.1 is not installed (scripts/deps-interop.sh)"
[[ -f /usr/include/rdma/rdma_cma.h ]] || skip "librdmacm-dev is not installed (scripts/deps-interop.sh)"
headers=$(dpkg-query -W -f '${Depends}' linux-headers-amd64 2>/dev/null |
    sed -n 's/^linux-headers-\([0-9][^ ,]*\).*/\1/p')
[[ -n $headers && -f /usr/src/linux-headers-$headers/Makefile ]] ||
    skip "linux-headers-amd64 is not installed (scripts/deps-interop.sh)"
version=$(dpkg-query -W -f '${Version}' "linux-headers-$headers")

mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9

stamp=$({
    echo "$version${SIW_STOCK:+ stock}"
    cat "$0" "$here/init" "$here/verbs_peer.c"
    dpkg-query -W perftest rdmacm-utils busybox-static ibverbs-providers 2>/dev/null
} | sha256sum | cut -c1-16)
out=$cache/vm-$stamp
if [[ -f $out/initramfs && -f $out/vmlinuz ]]; then
    echo "$out"
    exit 0
fi
work=$(mktemp -d "$cache/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
log=$work/log
fail() {
    cat "$log" >&2 || true
    echo "building the virtual machine failed: $*" >&2
    exit 1
}

# ---- the kernel and its modules; the package is unpacked, not installed ----
kernel=$cache/kernel-$version-3${SIW_STOCK:+-stock} # counts changes of what is built below
if [[ ! -f $kernel/done ]]; then
    rm -rf "$cache"/kernel-* && mkdir -p "$kernel"
    (cd "$work" && apt-get download -qq "linux-image-$headers=$version") >"$log" 2>&1 ||
        skip "the package linux-image-$headers $version cannot be downloaded"
    # Only what is looked at: the kernel and the modules that may be needed.
    mkdir "$work/image"
    dpkg-deb --fsys-tarfile "$work"/linux-image-*.deb |
        tar -x -C "$work/image" --wildcards "./boot/vmlinuz-*" "./lib/modules/*/modules.*" \
            "./lib/modules/*/kernel/drivers/virtio" "./lib/modules/*/kernel/drivers/infiniband" \
            "./lib/modules/*/kernel/drivers/net/*.ko" "./lib/modules/*/kernel/net/core" \
            "./lib/modules/*/kernel/crypto" "./lib/modules/*/kernel/lib" \
            "./lib/modules/*/kernel/arch/x86/crypto" "./lib/modules/*/kernel/fs/configfs" \
            >>"$log" 2>&1 || fail "unpacking the kernel"
    cp "$work/image/boot/vmlinuz-$headers" "$kernel/vmlinuz"
    mkdir -p "$kernel/lib/modules"
    mv "$work/image/lib/modules/$headers" "$kernel/lib/modules/"
    depmod -b "$kernel" "$headers" >>"$log" 2>&1 || fail "depmod"
    mkdir "$work/siw"
    tar -xJf "$source_tar" --strip-components=5 -C "$work/siw" \
        linux-source-6.1/drivers/infiniband/sw/siw >>"$log" 2>&1 || fail "unpacking siw"
    # What siw fixes at compile time becomes a parameter, with siw's own values as defaults, so that
    # the tests can have both of each: the code itself stays as it is.
    sed -i -E 's/^(extern )?const bool (mpa_crc_required|peer_to_peer)/\1bool \2/' \
        "$work/siw/siw_main.c" "$work/siw/siw.h"
    sed -i 's/^static __be16 rtr_type/__be16 rtr_type/' "$work/siw/siw_cm.c"
    cat >>"$work/siw/siw_main.c" <<'END'
extern __be16 rtr_type;
module_param(mpa_crc_required, bool, 0644);
module_param(peer_to_peer, bool, 0644);
module_param_named(mpa_version, mpa_version, byte, 0644);
module_param_named(rtr_type, rtr_type, ushort, 0644); /* as it lies in memory */
END
    # A fault of siw: a CRC that comes in two TCP segments is put together wrongly and refused. The
    # emulated network cuts the stream anywhere, so it is put right here; SIW_STOCK=1 leaves it.
    if [[ -z ${SIW_STOCK:-} ]]; then
        sed -i 's/^\tskb_copy_bits(skb, srx->skb_offset, tbuf, avail);$/\tskb_copy_bits(skb, srx->skb_offset, tbuf + srx->pad + sizeof(srx->trailer.crc) - srx->fpdu_part_rem, avail);/' \
            "$work/siw/siw_qp_rx.c"
        grep -q 'trailer.crc) - srx->fpdu_part_rem' "$work/siw/siw_qp_rx.c" ||
            fail "the place of siw's fault has changed"
    fi
    make -C "/usr/src/linux-headers-$headers" M="$work/siw" CONFIG_RDMA_SIW=m modules \
        >>"$log" 2>&1 || fail "siw.ko"
    strip --strip-debug "$work/siw/siw.ko" -o "$kernel/siw.ko"
    touch "$kernel/done"
fi

# ---- the initramfs ----
root=$work/root
mkdir -p "$root"/{bin,dev,proc,sys,tmp,etc,modules,lib64} "$work/vm"
cp "$(command -v busybox)" "$root/bin/busybox"
cp "$here/init" "$root/init"
chmod 755 "$root/init"
for module in virtio_pci virtio_net crc32c_generic libcrc32c iw_cm rdma_cm ib_uverbs rdma_ucm; do
    modprobe -d "$kernel" -S "$headers" --show-depends "$module"
done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' | {
    while read -r file; do
        name=$(basename "$file")
        cp "$file" "$root/modules/$name"
        echo "$name"
    done
} >"$root/modules/order"
cp "$kernel/siw.ko" "$root/modules/"
echo siw.ko >>"$root/modules/order"

gcc -std=gnu17 -O2 -Wall -Wextra -Werror "$here/verbs_peer.c" -o "$root/bin/verbs_peer" \
    -lrdmacm -libverbs >"$log" 2>&1 || fail "verbs_peer"
for tool in rping rdma ib_send_lat ib_send_bw ib_write_lat ib_write_bw ib_read_lat ib_read_bw; do
    path=$(command -v "$tool") || skip "$tool is not installed (scripts/deps-interop.sh)"
    cp "$path" "$root/bin/"
done
provider=$(find /usr/lib -name 'libsiw-rdmav*.so' | head -1)
[[ -n $provider ]] || skip "ibverbs-providers is not installed (scripts/deps-interop.sh)"
mkdir -p "$root/etc/libibverbs.d" "$root$(dirname "$provider")"
cp "$provider" "$root$provider"
cp /etc/libibverbs.d/siw.driver "$root/etc/libibverbs.d/"
gcc_s=$(gcc -print-file-name=libgcc_s.so.1)
for file in "$root"/bin/* "$provider"; do
    { ldd "$file" 2>/dev/null || true; } | sed -n 's/.*=> \(\/[^ ]*\).*/\1/p; s/^[[:space:]]*\(\/[^ ]*\) .*/\1/p'
done | sort -u | {
    cat
    echo "$gcc_s" # the C library loads it at pthread_exit
} | while read -r lib; do
    lib=$(realpath -s "$lib")
    mkdir -p "$root$(dirname "$lib")"
    cp -L "$lib" "$root$lib"
done
(cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) >"$work/vm/initramfs"
cp "$kernel/vmlinuz" "$work/vm/vmlinuz"
# Only the newest is kept.
find "$cache" -mindepth 1 -maxdepth 1 -type d -name "vm-????????????????" -exec rm -rf {} +
mv "$work/vm" "$out"
echo "$out"
