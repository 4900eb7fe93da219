# SPDX-License-Identifier: MIT
# Part of siw.sh: the perftest programs with -R, as clients of ours and as servers.
count=200
for test in send_lat send_bw write_lat write_bw read_lat read_bw; do
    case $test in *lat) size=1000 ;; *) size=20001 ;; esac

    echo "ib_$test in the machine is the client"
    "$build/perftest_peer" server "$test" "$size" "$count" >"$work/perftest.log" 2>&1 &
    server=$!
    for ((i = 0; i < 100; i++)); do
        port=$(sed -n 's/^port //p' "$work/perftest.log")
        [[ -n $port ]] && break
        sleep 0.1
    done
    # The server of write_lat speaks first, which takes a peer-to-peer connection.
    guest_start "echo $([[ $test == write_lat ]] && echo 1 || echo 0) \
        >/sys/module/siw/parameters/peer_to_peer; ib_$test -F -R -n $count -s $size -p ${port:-0} 10.0.2.2"
    guest_result && good || bad "ib_$test, client"
    wait "$server" && good || bad "server of ib_$test: $(cat "$work/perftest.log")"
    server=

    echo "ib_$test in the machine is the server"
    guest_start "echo 0 >/sys/module/siw/parameters/peer_to_peer; ib_$test -F -R -n $count -s $size -p 7003"
    for ((i = 0; i < 50; i++)); do
        "$build/perftest_peer" client "$test" "$size" "$count" "$(host_port 7003)" \
            >"$work/perftest.log" 2>&1 && break
        grep -q 'hung up' "$work/perftest.log" || break
        sleep 0.2
    done
    grep -q '^done' "$work/perftest.log" && good || bad "client of ib_$test: $(cat "$work/perftest.log")"
    guest_result && good || bad "ib_$test, server"
done
