#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Captures of every operation, decoded by Wireshark's own dissectors: wireshark.sh FOLDER, where
# capture_ops was built. The messages seen must be those that the program says it made, with good
# CRCs and nothing malformed.
set -uo pipefail
build=${1:?the folder with the programs}
work=$(mktemp -d "${TMPDIR:-/tmp}/softnd-wireshark.XXXXXX")
server=
trap '[[ -z $server ]] || kill "$server" 2>/dev/null; rm -rf "$work"' EXIT
passed=0 failed=0

command -v tshark >/dev/null || {
    echo "skipped: tshark is not installed (scripts/deps-interop.sh)"
    exit 77
}
export WIRESHARK_CONFIG_DIR=$work/config # nobody's own settings
shark() { tshark -r "$1" --disable-protocol rpcordma "${@:2}" 2>/dev/null; }

good() { passed=$((passed + 1)); }
bad() {
    failed=$((failed + 1))
    echo "FAILED: $*"
}
is() { # what, seen, expected
    if [[ $2 == "$3" ]]; then good; else bad "$1: $2, expected $3"; fi
}

# The messages of a capture as lines of capture_ops: segments added up, reports left out.
messages() { # capture, port
    shark "$1" -Y iwarp_ddp_rdmap -T fields -E separator=' ' -e tcp.dstport \
        -e iwarp_rdma.opcode -e iwarp_mpa.ulpdulength -e iwarp_ddp.tagged_flag \
        -e iwarp_ddp.last_flag -e iwarp_ddp.stag -e iwarp_rdma.inval_stag |
        awk -v port="$2" '
        function number(text) { return text == "True" ? 1 : text == "False" ? 0 : text + 0 }
        {
            to = $1 == port ? "a" : "b"
            # Values that are hexadecimal have 0x in front.
            op = $2 ~ /^0x/ ? hex($2) : $2 + 0
            head = number($4) ? 14 : 18
            stag = NF < 6 ? "-" : $6 ~ /^0x/ ? hex($6) : $6 + 0
            bytes[to] += $3 - head
            if (!number($5)) next
            if (!(op == 0 && stag == 1397704276 && bytes[to] == 0)) print to, op, bytes[to], stag
            bytes[to] = 0
        }
        function hex(text,   i, n) {
            n = 0
            for (i = 3; i <= length(text); i++)
                n = 16 * n + index("0123456789abcdef", substr(text, i, 1)) - 1
            return n
        }'
}

run() { # name, mode, crc
    local capture=$work/$1.pcapng expected=$work/$1.expected port ours=
    echo "$1"
    SOFTND_CAPTURE=$capture SOFTND_CRC=$3 "$build/capture_ops" "$2" >"$expected" || {
        bad "$1: capture_ops"
        return
    }
    port=$(sed -n 's/^port //p' "$expected")
    sed -i 1d "$expected"
    is "$1: MPA requests" "$(shark "$capture" -Y iwarp_mpa.req | wc -l)" 1
    is "$1: MPA replies" "$(shark "$capture" -Y iwarp_mpa.rep | wc -l)" 1
    # Wireshark (4.0) takes both directions for marked when one is: of the other it sees nothing.
    [[ $2 == markers ]] && sed -i '/^b /d' "$expected" && ours="&& tcp.dstport == $port"
    messages "$capture" "$port" >"$work/seen"
    if diff -u "$expected" "$work/seen" >"$work/diff"; then good; else
        bad "$1: messages"
        head -40 "$work/diff"
    fi
    is "$1: malformed frames" "$(shark "$capture" -Y '_ws.malformed' | wc -l)" 0
    is "$1: TCP anomalies" "$(shark "$capture" -Y 'tcp.analysis.flags' | wc -l)" 0
    is "$1: bad TCP or IP checksums" "$(shark "$capture" -o tcp.check_checksum:TRUE \
        -o ip.check_checksum:TRUE -Y 'tcp.checksum.status == 0 || ip.checksum.status == 0' | wc -l)" 0
    # Every FPDU is dissected: none is left as plain TCP data.
    is "$1: segments that are no FPDU" \
        "$(shark "$capture" -Y "tcp.len > 0 && !iwarp_mpa $ours" | wc -l)" 0
    shark "$capture" -V >"$work/text"
    is "$1: bad CRCs" "$(grep -c 'Bad CRC32' "$work/text")" 0
    if [[ $3 == on ]]; then
        fpdus=$(shark "$capture" -Y iwarp_mpa.fpdu | wc -l)
        is "$1: good CRCs" "$(grep -c 'Good CRC32' "$work/text")" "$fpdus"
    fi
}

# softnd --capture, which is the same for every command.
tool() {
    local port i
    : >"$work/ping.log"
    SOFTND_CATALOG=$work/catalog "$build/softnd" ping --server 127.0.0.1:0 2>"$work/ping.log" &
    server=$!
    for ((i = 0; i < 200; i++)); do
        port=$(sed -n 's/.*listening on 127\.0\.0\.1:\([0-9]*\)$/\1/p' "$work/ping.log")
        [[ -n $port ]] && break
        sleep 0.05
    done
    SOFTND_CATALOG=$work/catalog "$build/softnd" ping "127.0.0.1:$port" -c 3 -i 0 -q -b 100 \
        --capture "$work/tool.pcapng" >/dev/null && good || bad "softnd ping --capture"
    kill "$server" && wait "$server"
    server=
    is "softnd --capture: Sends" "$(shark "$work/tool.pcapng" \
        -Y 'iwarp_rdma.opcode == 3 && iwarp_mpa.ulpdulength == 118' | wc -l)" 6
    "$build/softnd" --capture 2>/dev/null && bad "softnd --capture without a file" || good
}

tool
run crc pair on
run no-crc pair off
run markers markers on

# A process that is killed leaves a capture that can be read.
capture=$work/killed.pcapng
SOFTND_CAPTURE=$capture "$build/capture_ops" pair >"$work/out" &
pid=$!
for ((i = 0; i < 1000; i++)); do
    [[ -s $capture && $(stat -c %s "$capture") -gt 20000 ]] && break
    sleep 0.005
done
kill -9 "$pid" 2>/dev/null
wait "$pid" 2>/dev/null
[[ $(shark "$capture" -Y iwarp_ddp_rdmap | wc -l) -gt 5 ]] && good || bad "the capture of a killed process"

# The file stays below its limit.
SOFTND_CAPTURE=$work/small.pcapng SOFTND_CAPTURE_MAX=50000 "$build/capture_ops" pair \
    >"$work/out" 2>"$work/err" || bad "capture_ops with a full capture"
[[ $(stat -c %s "$work/small.pcapng") -le 50000 ]] && good || bad "the size limit"
grep -q SOFTND_CAPTURE_MAX "$work/err" && good || bad "nothing said about the size limit"
[[ $(shark "$work/small.pcapng" -Y iwarp_ddp_rdmap | wc -l) -gt 5 ]] && good || bad "the full capture"

# No file, no harm.
SOFTND_CAPTURE=$work/none/such.pcapng "$build/capture_ops" pair >"$work/out" 2>"$work/err" && good ||
    bad "capture_ops with a capture that cannot be written"
grep -q 'cannot be written' "$work/err" && good || bad "nothing said about the file"

echo "$passed passed, $failed failed"
[[ $failed -eq 0 ]]
