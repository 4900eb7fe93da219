#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# SoftND against Linux's siw in a virtual machine: siw.sh FOLDER, where the programs were built.
#   SIW_ONLY=nd_peer,rping,perftest    some of the parts
# Exit 77, with the reason, where the virtual machine cannot be had.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${1:?the folder with the programs}" && pwd)
if [[ -z ${SIW_CONTROL:-} ]]; then exec "$here/siw/run-vm.sh" "$0" "$build"; fi

work=$(mktemp -d "${TMPDIR:-/tmp}/softnd-interop.XXXXXX")
server=
cleanup() {
    [[ -z $server ]] || kill "$server" 2>/dev/null
    rm -rf "$work"
}
trap cleanup EXIT
passed=0 failed=0 skipped=0
good() { passed=$((passed + 1)); }
bad() {
    failed=$((failed + 1))
    echo "FAILED: $*"
}
wanted() { [[ ,${SIW_ONLY:-$1}, == *,$1,* ]]; }

export SOFTND_CATALOG=$work/catalog SOFTND_PROVIDER=$build/libsoftnd.so
export CONFORM_WAIT=${CONFORM_WAIT:-notify}
host_port() { sed -n "s/.*\b$1=\([0-9]*\).*/\1/p" <<<"$SIW_PORTS"; }

# ---- a shell in the machine ----
turn=0
guest_start() { # a command; guest_result waits for it
    turn=$((turn + 1))
    echo "{ { $1; } >/tmp/out.$turn 2>&1; echo \"RESULT-$turn \$?\"; } &" >"$SIW_CONSOLE"
}
guest_listens() { # waits until something in the machine listens on an RDMA port
    local i
    echo "i=0; until rdma resource show cm_id | grep -q 'LISTEN.*:$1 *\$\|LISTEN.*:$1 ' ||
        [ \$i = 300 ]; do i=\$((i + 1)); usleep 100000; done; echo LISTENS-$turn" |
        tr '\n' ' ' >"$SIW_CONSOLE"
    echo >"$SIW_CONSOLE"
    for ((i = 0; i < 600; i++)); do
        grep -q "^LISTENS-$turn" "$SIW_CONSOLE_LOG" && return
        sleep 0.1
    done
}
guest_result() { # its exit code; its output on failure
    local i code
    for ((i = 0; i < 600; i++)); do
        code=$(sed -n "s/^RESULT-$turn \([0-9]*\).*/\1/p" "$SIW_CONSOLE_LOG" | tail -1)
        [[ -n $code ]] && break
        sleep 0.1
    done
    [[ ${code:-none} == 0 ]] && return 0
    echo "  in the machine: exit code ${code:-none}"
    echo "cat /tmp/out.$turn" >"$SIW_CONSOLE"
    sleep 1
    tail -30 "$SIW_CONSOLE_LOG"
    return 1
}

# ---- every operation, in both directions ----
if wanted nd_peer; then
    "$build/nd_peer" ${ND_PEER_CASES:-} >"$work/nd_peer.log" 2>&1
    code=$?
    grep -v '^  ' "$work/nd_peer.log" | tail -80
    read -r p f s < <(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p' \
        "$work/nd_peer.log")
    if [[ -n ${p:-} ]]; then
        ((passed += p, failed += f, skipped += s))
        [[ $code -eq 0 || $f -gt 0 ]] || bad "nd_peer ended with $code"
    else
        bad "nd_peer ended with $code"
    fi

    # What only the kernel interface has.
    SOFTNDK_VERIFIER=report "$build/ndk_peer" >"$work/ndk_peer.log" 2>&1 && good ||
        bad "ndk_peer: $(tail -20 "$work/ndk_peer.log")"
    tail -1 "$work/ndk_peer.log"

    # What these cases put on the wire, seen by Wireshark: SoftND's as well as siw's frames.
    if command -v tshark >/dev/null; then
        export WIRESHARK_CONFIG_DIR=$work/config
        SOFTND_CAPTURE=$work/siw.pcapng "$build/nd_peer" send_sizes_out one_sided_sizes_in \
            many_sges_out invalidate_in invalidate_out solicited_in >"$work/captured.log" 2>&1 ||
            bad "cases under capture: $(tail -3 "$work/captured.log")"
        shark() { tshark -r "$work/siw.pcapng" --disable-protocol rpcordma "$@" 2>/dev/null; }
        [[ $(shark -Y '_ws.malformed || tcp.analysis.flags' | wc -l) -eq 0 ]] && good ||
            bad "malformed frames or TCP anomalies in the capture"
        shark -V >"$work/text"
        [[ $(grep -c 'Bad CRC32' "$work/text") -eq 0 ]] && good || bad "bad CRCs in the capture"
        [[ $(grep -c 'Good CRC32' "$work/text") -gt 500 ]] && good || bad "few CRCs in the capture"
        for opcode in 0 1 2 3 4 5 6 7; do
            [[ $(shark -Y "iwarp_rdma.opcode == $opcode" | wc -l) -gt 0 ]] && good ||
                bad "no message of opcode $opcode in the capture"
        done
    else
        echo "not done: the capture is not looked at, there is no tshark"
    fi
fi

# ---- rping ----
if wanted rping; then
    for size in 64 1000 60000; do
        echo "rping, $size bytes: we are the client"
        guest_start "rping -s -a 10.0.2.15 -p 7002 -C 20 -S $size -V"
        guest_listens 7002
        "$build/softnd" ping --rping "127.0.0.1:$(host_port 7002)" -c 20 -i 0 -v -q -b "$size" \
            >"$work/ping.log" 2>&1
        grep -q '20 sent, 20 answered, 0 wrong' "$work/ping.log" && good ||
            bad "softnd ping --rping: $(cat "$work/ping.log")"
        guest_result && good || bad "rping -s"

        echo "rping, $size bytes: we are the server"
        port=
        : >"$work/server.log"
        "$build/softnd" ping --rping --server 127.0.0.1:0 -c 1 -b "$size" 2>"$work/server.log" &
        server=$!
        for ((i = 0; i < 100; i++)); do
            port=$(sed -n 's/.*listening on 127\.0\.0\.1:\([0-9]*\)$/\1/p' "$work/server.log")
            [[ -n $port ]] && break
            sleep 0.1
        done
        guest_start "rping -c -a 10.0.2.2 -p ${port:-0} -C 20 -S $size -V"
        if guest_result; then good; else
            bad "rping -c"
            kill "$server" 2>/dev/null # it would wait for another client
        fi
        wait "$server" && good || bad "softnd ping --rping --server: $(cat "$work/server.log")"
        server=
        grep -q 'left after 20 rounds' "$work/server.log" && good ||
            bad "rounds served: $(cat "$work/server.log")"
    done
fi

# ---- perftest ----
# One run with perftest as server or as client: TEST SIZE ITERATIONS QPS WAIT, the last is how we
# wait. perftest must end well and report these numbers where it does; perftest_peer checks the rest.
perftest_run() {
    local as=$1 test=$2 size=$3 iterations=$4 qps=$5 wait=$6 code port i
    local command="ib_$test -R -F -s $size -n $iterations"
    [[ $qps -gt 1 ]] && command+=" -q $qps"
    echo "perftest: ib_$test as $as, $size bytes $iterations times, $qps queue pairs, we $wait"
    if [[ $as == server ]]; then
        guest_start "$command -p 7003"
        guest_listens 7003
        CONFORM_WAIT=$wait "$build/perftest_peer" "$test" client 127.0.0.1 "$(host_port 7003)" \
            "$size" "$iterations" "$qps" >"$work/peer.log" 2>&1
        code=$?
        guest_result && good || bad "ib_$test as server"
    else
        port=
        : >"$work/peer.log"
        CONFORM_WAIT=$wait "$build/perftest_peer" "$test" server "$size" "$iterations" "$qps" \
            >"$work/peer.log" 2>&1 &
        server=$!
        for ((i = 0; i < 200; i++)); do
            port=$(sed -n 's/^listening on \([0-9]*\)$/\1/p' "$work/peer.log")
            [[ -n $port ]] && break
            sleep 0.05
        done
        guest_start "$command -p ${port:-0} 10.0.2.2"
        if guest_result; then good; else
            bad "ib_$test as client"
            kill "$server" 2>/dev/null
        fi
        wait "$server"
        code=$?
        server=
    fi
    [[ $code -eq 0 ]] && good || bad "perftest_peer $test: $(tail -12 "$work/peer.log")"
}

if wanted perftest; then
    export CONFORM_DEADLINE_MS=40000 SOFTND_LOG=info # said if a run fails
    for as in server client; do
        # perftest's server begins in write_lat: as the client of one, siw must ask for peer-to-peer.
        [[ $as == client ]] && echo "echo Y >/sys/module/siw/parameters/peer_to_peer" >"$SIW_CONSOLE"
        perftest_run $as send_lat 64 200 1 poll
        perftest_run $as send_lat 5000 100 1 notify
        perftest_run $as send_bw 4096 600 1 notify
        perftest_run $as send_bw 65536 100 2 poll
        perftest_run $as write_lat 8 200 1 poll
        perftest_run $as write_bw 65536 200 1 notify
        perftest_run $as write_bw 1000 600 2 poll
        perftest_run $as read_lat 4096 100 1 notify
        perftest_run $as read_bw 65536 200 1 poll
        perftest_run $as read_bw 3000 300 2 notify
    done
    echo "echo N >/sys/module/siw/parameters/peer_to_peer" >"$SIW_CONSOLE"
fi

echo "$passed passed, $failed failed, $skipped skipped"
[[ $failed -eq 0 ]]
