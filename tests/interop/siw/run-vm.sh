#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Boots the virtual machine with siw, runs a command beside it, and ends it:
#   run-vm.sh COMMAND [ARGUMENT...]
# The machine has user-mode networking: it reaches this host's loopback as 10.0.2.2. Its ports are
# forwarded from free ports of the loopback, which COMMAND finds in its environment:
#   SIW_CONTROL        host port of the verbs peer (7000 in the machine)
#   SIW_PORTS          "GUEST=HOST GUEST=HOST ..." for the ports that RDMA listeners may use
#   SIW_CONSOLE        a pipe: what is written there runs in a shell of the machine
#   SIW_CONSOLE_LOG    the machine's console
# SIW_DUMP=FILE keeps what passes the machine's network interface (pcap), SIW_KEEP_LOG=FILE its console.
# Exit 77 where the machine cannot be built, else the command's exit code.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[[ $# -gt 0 ]] || {
    sed -n '3,12s/^# \{0,1\}//p' "$0"
    exit 2
}
vm=$("$here/build.sh") || exit $?

work=$(mktemp -d "${TMPDIR:-/tmp}/softnd-siw.XXXXXX")
qemu=
cleanup() {
    if [[ -n $qemu ]] && kill -0 "$qemu" 2>/dev/null; then
        echo poweroff >&7
        for ((i = 0; i < 50; i++)); do
            kill -0 "$qemu" 2>/dev/null || break
            sleep 0.1
        done
        kill -9 "$qemu" 2>/dev/null
    fi
    if [[ -n ${SIW_KEEP_LOG:-} ]]; then cp "$work/console" "$SIW_KEEP_LOG"; fi
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

forward=
for port in 7000 7001 7002 7003 7004 7005 7006 7007 7008; do
    forward+=",hostfwd=tcp:127.0.0.1:0-10.0.2.15:$port"
done
mkfifo "$work/console.in" "$work/monitor.in" "$work/monitor.out"
: >"$work/console"
# Both ends open here, so that opening does not wait.
exec 7<>"$work/console.in" 8<>"$work/monitor.in" 9<>"$work/monitor.out"
qemu-system-x86_64 -M q35 -cpu max -accel tcg,thread=multi -smp 2 -m 768 -nographic -no-reboot \
    -nodefaults -kernel "$vm/vmlinuz" -initrd "$vm/initramfs" \
    -append "console=ttyS0 quiet loglevel=4 panic=-1 mitigations=off" \
    -netdev "user,id=n0$forward" -device "virtio-net-pci,netdev=n0,romfile=" \
    ${SIW_DUMP:+-object "filter-dump,id=dump,netdev=n0,file=$SIW_DUMP"} \
    -chardev "stdio,id=con,signal=off" -serial chardev:con \
    -chardev "pipe,id=mon,path=$work/monitor" -mon chardev=mon \
    <&7 >"$work/console" 2>&1 7>&- 8>&- 9>&- &
qemu=$!

for ((i = 0; i < 600; i++)); do
    grep -q 'INIT READY' "$work/console" && break
    kill -0 "$qemu" 2>/dev/null || {
        cat "$work/console" >&2
        echo "the virtual machine did not start" >&2
        exit 1
    }
    sleep 0.1
done
grep -q 'INIT READY' "$work/console" && grep -q 'link siw0' "$work/console" || {
    cat "$work/console" >&2
    echo "siw did not come up in the virtual machine" >&2
    exit 1
}

# Which host ports were taken.
echo "info usernet" >&8
SIW_PORTS= SIW_CONTROL=
while read -r -t 5 -u 9 -a word; do
    # TCP[HOST_FORWARD] FD HOST PORT GUEST PORT ...
    [[ ${word[0]:-} == "TCP[HOST_FORWARD]" ]] || continue
    if [[ ${word[5]} == 7000 ]]; then
        SIW_CONTROL=${word[3]}
    else
        SIW_PORTS+="${word[5]}=${word[3]} "
    fi
    [[ $(wc -w <<<"$SIW_PORTS") -eq 8 && -n $SIW_CONTROL ]] && break
done
[[ -n $SIW_CONTROL ]] || {
    echo "the virtual machine's ports are not known" >&2
    exit 1
}
# The machine is there when its verbs peer says so: before, connections are dropped or lost.
answer= started=$SECONDS # building may have taken long
# A slow machine gets longer each time.
for ((i = 1; SECONDS < started + 150; i++)); do
    if exec 6<>"/dev/tcp/127.0.0.1/$SIW_CONTROL"; then
        read -r -t $((2 * i)) -u 6 answer
        exec 6>&-
    fi 2>/dev/null
    [[ $answer == "ok ready"* ]] && break
    sleep 0.2
done
[[ $answer == "ok ready"* ]] || {
    cat "$work/console" >&2
    echo "the verbs peer in the virtual machine does not answer: ${answer:-nothing}" >&2
    exit 1
}
export SIW_CONTROL SIW_PORTS SIW_CONSOLE=$work/console.in SIW_CONSOLE_LOG=$work/console
"$@"
