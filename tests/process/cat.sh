#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# cat.sh CASE - `softnd cat` between two processes.
. "$(dirname "$0")/lib.sh"

_receive() { start_listening recv "$SOFTND" cat --recv "$1" --listen "${2:-127.0.0.1:0}" "${@:3}"; }

# _transfer FILE [options of the sender]: both ends must succeed, and the files be equal.
_transfer() {
    local file=$1
    shift
    _receive got
    local recv=$PID
    expect 0 send "$SOFTND" cat --send "$file" "127.0.0.1:$PORT" "$@"
    finish "$recv" 0 recv
    cmp "$file" got || fail "the file differs"
    [[ -z $(ls -A | grep softnd-) ]] || fail "a temporary file is left"
}

_size_case() { # MODE BYTES
    make_file sent "$2"
    _transfer sent --mode "$1"
    for end in send recv; do
        grep -q "$2 bytes in .* GB/s, transport \(iwarp\|local\), sha256 $(sha256sum <sent | cut -d' ' -f1)" \
            $end.err || fail "$end: no summary"
    done
}
write_0_bytes() { _size_case write 0; }
read_0_bytes() { _size_case read 0; }
send_0_bytes() { _size_case send 0; }
write_1_byte() { _size_case write 1; }
read_1_byte() { _size_case read 1; }
send_1_byte() { _size_case send 1; }
write_one_chunk() { _size_case write 1048576; }
read_one_chunk() { _size_case read 1048576; }
send_one_chunk() { _size_case send 1048576; }
write_one_over_many_chunks() { _size_case write 20971521; }
read_one_over_many_chunks() { _size_case read 20971521; }
send_one_over_many_chunks() { _size_case send 20971521; }
write_100_mib() { _size_case write 104857600; }
read_100_mib() { _size_case read 104857600; }
send_100_mib() { _size_case send 104857600; }

# stdin to stdout, size not known, delivered in odd pieces
_stream_case() { # MODE
    make_file sent 5000011
    mkfifo pipe
    start_listening recv "$SOFTND" cat --recv - --listen 127.0.0.1:0
    local recv=$PID
    { for ((i = 0; i < 5; i++)); do dd bs=1000003 count=1 skip=$i if=sent 2>/dev/null; done; } >pipe &
    INPUT=pipe start send "$SOFTND" cat --send - "127.0.0.1:$PORT" --mode "$1"
    finish "$PID" 0 send
    finish "$recv" 0 recv
    cmp sent recv.out || fail "the stream differs"
}
write_stream() { _stream_case write; }
read_stream() { _stream_case read; }
send_stream() { _stream_case send; }

empty_stream_makes_an_empty_file() {
    _receive got
    expect 0 send "$SOFTND" cat --send - "127.0.0.1:$PORT"
    finish "$PID" 0 recv
    [[ -f got && ! -s got ]] || fail "no empty file"
}

stream_is_passed_on_before_it_ends() {
    start_listening recv "$SOFTND" cat --recv - --listen 127.0.0.1:0
    local recv=$PID
    mkfifo pipe
    INPUT=pipe start send "$SOFTND" cat --send - "127.0.0.1:$PORT"
    exec 3>pipe
    echo "first line" >&3
    until_true has_line recv.out "first line" || fail "the line waits for the end of the stream"
    echo "second line" >&3
    exec 3>&-
    finish "$PID" 0 send
    finish "$recv" 0 recv
    [[ $(<recv.out) == $'first line\nsecond line' ]] || fail "the stream differs"
}

ipv6() {
    have_ipv6 || skip "this machine has no IPv6 loopback address"
    make_file sent 3000000
    _receive got '[::1]:0'
    expect 0 send "$SOFTND" cat --send sent "[::1]:$PORT"
    finish "$PID" 0 recv
    cmp sent got || fail "the file differs"
}

host_by_name_and_listening_everywhere() {
    make_file sent 100000
    start_listening recv "$SOFTND" cat --recv got --port 0
    expect 0 send "$SOFTND" cat --send sent "localhost:$PORT"
    finish "$PID" 0 recv
    cmp sent got || fail "the file differs"
}

smallest_chunk_and_depth() {
    make_file sent 300
    for mode in write read send; do
        _transfer sent --mode $mode --chunk 1 --depth 1
        rm got
    done
}

largest_depth() {
    make_file sent 1000000
    for mode in write read send; do
        _transfer sent --mode $mode --chunk 1000 --depth 256
        rm got
    done
}

chunk_larger_than_the_file() {
    make_file sent 1000000
    for mode in write read send; do
        _transfer sent --mode $mode --chunk 32M --depth 2
        rm got
    done
}

existing_file_is_replaced_only_at_the_end() {
    echo old >got
    mkfifo pipe
    _receive got
    local recv=$PID
    INPUT=pipe start send "$SOFTND" cat --send - "127.0.0.1:$PORT"
    exec 3>pipe
    head -c 3000000 /dev/zero >&3
    until_true eval '[[ $(stat -c %s .got.softnd-* 2>/dev/null || echo 0) -gt 0 ]]' || fail "nothing arrives"
    [[ $(<got) == old ]] || fail "the old file was touched"
    exec 3>&-
    finish "$PID" 0 send
    finish "$recv" 0 recv
    [[ $(stat -c %s got) -eq 3000000 ]] || fail "the file was not replaced"
}

new_file_follows_the_umask() {
    echo x >sent
    umask 027
    _transfer sent
    [[ $(stat -c %a got) == 640 ]] || fail "mode is $(stat -c %a got)"
}

# ---- errors ----

source_that_does_not_exist() {
    expect 1 send "$SOFTND" cat --send nothing 127.0.0.1:1
    expect_error_line send 'nothing: No such file or directory'
}

source_that_is_a_folder() {
    expect 1 send "$SOFTND" cat --send . 127.0.0.1:1
    expect_error_line send 'Is a directory'
}

unknown_host() {
    expect 1 send "$SOFTND" cat --send /dev/null no.such.host.invalid
    expect_error_line send 'no.such.host.invalid: '
}

nobody_listens() {
    # The port of a receiver that has just ended.
    _receive got
    kill "$PID"
    finish "$PID" 1 recv
    expect 1 send "$SOFTND" cat --send /dev/null "127.0.0.1:$PORT"
    expect_error_line send "127.0.0.1:$PORT: connection refused"
}

port_in_use() {
    _receive got
    expect 1 second "$SOFTND" cat --recv other --listen "127.0.0.1:$PORT"
    expect_error_line second "127.0.0.1:$PORT: address in use"
    [[ -z $(ls -A | grep other) ]] || fail "a file is left"
}

address_of_another_machine() {
    expect 1 recv "$SOFTND" cat --recv got --listen 192.0.2.77:0
    expect_error_line recv '192.0.2.77'
}

target_in_a_folder_that_does_not_exist() {
    expect 1 recv "$SOFTND" cat --recv no/such/file --listen 127.0.0.1:0
    expect_error_line recv 'no/such/file: No such file or directory'
}

target_without_permission() {
    local -a as=()
    mkdir closed
    chmod 555 closed
    if [[ $(id -u) -eq 0 ]]; then # who may write everywhere
        as_nobody
        as=("${NOBODY[@]}")
    fi
    expect 1 recv "${as[@]}" "$SOFTND" cat --recv closed/file --listen 127.0.0.1:0
    expect_error_line recv 'closed/file: Permission denied'
}

full_device_ends_both() {
    make_file sent 3000000
    for mode in write read send; do
        _receive /dev/full
        expect 1 send "$SOFTND" cat --send sent "127.0.0.1:$PORT" --mode $mode
        expect_error_line send 'No space left on device'
        finish "$PID" 1 recv
        expect_error_line recv 'No space left on device'
    done
}

full_disk_leaves_no_file() {
    mkdir small
    unshare -Urm true 2>/dev/null || skip "user and mount namespaces are not allowed here"
    make_file sent 3000000
    start_listening recv unshare -Urm bash -c '
        mount -t tmpfs -o size=1m none small && cd small || exit 99
        '"$SOFTND"' cat --recv got --listen 127.0.0.1:0
        code=$?
        ls -A >../left
        exit $code'
    expect 1 send "$SOFTND" cat --send sent "127.0.0.1:$PORT"
    expect_error_line send 'No space left on device'
    finish "$PID" 1 recv
    [[ ! -s left ]] || fail "left behind: $(<left)"
}

closed_output_ends_both() {
    make_file sent 3000000
    start_listening recv bash -c "$SOFTND cat --recv - --listen 127.0.0.1:0 | true"
    expect 1 send "$SOFTND" cat --send sent "127.0.0.1:$PORT"
    expect_error_line send 'Broken pipe'
}

another_service_is_refused_and_the_receiver_goes_on() {
    make_file sent 1000
    _receive got
    expect 1 ping "$SOFTND" ping "127.0.0.1:$PORT" -c 1
    expect_error_line ping 'connection refused'
    expect 0 send "$SOFTND" cat --send sent "127.0.0.1:$PORT"
    finish "$PID" 0 recv
    cmp sent got || fail "the file differs"
}

strangers_bytes_do_not_disturb_the_receiver() {
    make_file sent 1000
    _receive got
    exec 3<>"/dev/tcp/127.0.0.1/$PORT"
    printf 'GET / HTTP/1.0\r\n\r\n' >&3
    exec 4<>"/dev/tcp/127.0.0.1/$PORT" # and one that says nothing
    expect 0 send "$SOFTND" cat --send sent "127.0.0.1:$PORT"
    finish "$PID" 0 recv
    cmp sent got || fail "the file differs"
}

# ---- killed ends ----

# _begin_half MODE: a transfer of which a part is stored, and which waits for more input. Sets SENDER
# and RECEIVER; descriptor 3 is the input.
_begin_half() {
    mkfifo pipe
    _receive got
    RECEIVER=$PID
    INPUT=pipe start send "$SOFTND" cat --send - "127.0.0.1:$PORT" --mode "$1"
    SENDER=$PID
    exec 3>pipe
    head -c 3000000 /dev/zero >&3
    until_true eval '[[ $(stat -c %s .got.softnd-* 2>/dev/null || echo 0) -gt 0 ]]' || fail "nothing arrives"
}

_kill_receiver_case() {
    _begin_half "$1"
    kill -9 "$RECEIVER"
    finish "$SENDER" 1 send # although its input is still open
    expect_error_line send 'lost\|aborted\|refused\|remote'
    [[ ! -e got ]] || fail "half a file has the final name"
}
write_receiver_killed() { _kill_receiver_case write; }
read_receiver_killed() { _kill_receiver_case read; }
send_receiver_killed() { _kill_receiver_case send; }

_kill_sender_case() {
    _begin_half "$1"
    kill -9 "$SENDER"
    finish "$RECEIVER" 1 recv
    expect_error_line recv 'lost\|aborted\|remote'
    [[ -z $(ls -A | grep got) ]] || fail "left behind: $(ls -A | grep got)"
}
write_sender_killed() { _kill_sender_case write; }
read_sender_killed() { _kill_sender_case read; }
send_sender_killed() { _kill_sender_case send; }

_kill_busy_case() { # which end
    mkfifo pipe
    _receive got
    local recv=$PID
    cat /dev/zero >pipe 2>/dev/null &
    pids+=("$!")
    INPUT=pipe start send "$SOFTND" cat --send - "127.0.0.1:$PORT"
    local send=$PID
    until_true eval '[[ $(stat -c %s .got.softnd-* 2>/dev/null || echo 0) -gt 20000000 ]]' ||
        fail "nothing arrives"
    if [[ $1 == sender ]]; then
        kill -9 "$send"
        finish "$recv" 1 recv
    else
        kill -9 "$recv"
        finish "$send" 1 send
    fi
    [[ ! -e got ]] || fail "half a file has the final name"
}
sender_killed_at_full_speed() { _kill_busy_case sender; }
receiver_killed_at_full_speed() { _kill_busy_case receiver; }

interrupted_receiver_removes_its_file() {
    _begin_half write
    kill -INT "$RECEIVER"
    finish "$RECEIVER" 1 recv
    finish "$SENDER" 1 send
    [[ -z $(ls -A | grep got) ]] || fail "left behind: $(ls -A | grep got)"
}

terminated_sender_tells_the_receiver() {
    _begin_half write
    kill -TERM "$SENDER"
    finish "$SENDER" 1 send
    finish "$RECEIVER" 1 recv
    expect_error_line recv 'interrupted\|lost'
    [[ -z $(ls -A | grep got) ]] || fail "left behind: $(ls -A | grep got)"
}

interrupted_while_listening() {
    _receive got
    kill -INT "$PID"
    finish "$PID" 1 recv
    [[ -z $(ls -A | grep got) ]] || fail "left behind: $(ls -A | grep got)"
}

# ---- usage ----

wrong_usage_is_exit_code_2() {
    local -a lines=(
        ''
        '--send'
        '--send x'
        '--recv x host'
        '--send x --recv y'
        '--send x --listen 127.0.0.1 host'
        '--recv x --mode read'
        '--send x host --mode fast'
        '--send x host --chunk 0'
        '--send x host --chunk 1T'
        '--send x host --depth 0'
        '--send x host --depth 257'
        '--send x host --port 65536'
        '--send x host:99999'
        '--send x :5'
        '--send x host other'
        '--unknown'
        '--help=yes'
    )
    for line in "${lines[@]}"; do
        read -ra words <<<"$line"
        expect 2 usage "$SOFTND" cat "${words[@]}"
        expect_error_line usage 'softnd cat'
    done
}

progress_bar_is_drawn_on_a_terminal_only() {
    command -v script >/dev/null || skip "the program script, which makes terminals, is missing"
    make_file sent 30000000
    _receive got
    local recv=$PID
    timeout "$DEADLINE" script -qec "$SOFTND cat --send sent 127.0.0.1:$PORT" /dev/null >tty.out 2>&1 </dev/null ||
        fail "the sender failed: $(<tty.out)"
    finish "$recv" 0 recv
    grep -q '100%' tty.out || fail "no progress bar on a terminal"
    grep -q '100%' recv.err && fail "a progress bar in a file"
    cmp sent got || fail "the file differs"
}

run_case "$@"
