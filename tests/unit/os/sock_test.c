/* SPDX-License-Identifier: MIT */
#include "os/io/sock.h"
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include "os/prim/clock.h"
#include "os/prim/fault.h"
#include "os/prim/pages.h"
#include "support/testing.h"

static struct os_addr loopback(uint16_t family) {
    struct os_addr a = { .family = family };
    if (family == 4) {
        a.ip[0] = 127;
        a.ip[3] = 1;
    } else {
        a.ip[15] = 1;
    }
    return a;
}

/* Waits up to 20 s for readiness. */
static void wait_for(os_sock s, short events) {
    struct pollfd p = { .fd = (int)s, .events = events };
    CHECK_EQ(poll(&p, 1, 20000), 1);
}

static os_sock new_sock(uint16_t family) {
    os_sock s;
    CHECK_EQ(os_sock_tcp(family, &s), SN_OK);
    return s;
}

static os_sock new_listener(uint16_t family, enum os_bind_mode mode, struct os_addr *addr) {
    struct os_addr any = loopback(family);
    os_sock s = new_sock(family);
    CHECK_EQ(os_sock_bind(s, &any, mode), SN_OK);
    CHECK_EQ(os_sock_listen(s, 0), SN_OK);
    CHECK_EQ(os_sock_local(s, addr), SN_OK);
    CHECK(addr->port != 0);
    return s;
}

static sn_status finish_connect(os_sock s, const struct os_addr *to) {
    sn_status st = os_sock_connect(s, to);
    if (st != SN_PENDING) return st;
    wait_for(s, POLLOUT);
    return os_sock_connect_result(s);
}

/* A connected pair over loopback. */
static void make_pair(uint16_t family, os_sock pair[2]) {
    struct os_addr at, from, seen;
    os_sock listener = new_listener(family, OS_BIND_UNIQUE, &at);
    pair[0] = new_sock(family);
    CHECK_EQ(finish_connect(pair[0], &at), SN_OK);
    wait_for(listener, POLLIN);
    CHECK_EQ(os_sock_accept(listener, &pair[1], &from), SN_OK);
    CHECK_EQ(os_sock_local(pair[0], &seen), SN_OK);
    CHECK_BYTES(&seen, &from, sizeof seen);
    CHECK_EQ(os_sock_peer(pair[0], &seen), SN_OK);
    CHECK_BYTES(&seen, &at, sizeof seen);
    os_sock_close(listener, false);
}

static void close_pair(os_sock pair[2]) {
    os_sock_close(pair[0], false);
    os_sock_close(pair[1], false);
}

static int get_option(os_sock s, int level, int name) {
    int v = -1;
    socklen_t cb = sizeof v;
    CHECK_EQ(getsockopt((int)s, level, name, &v, &cb), 0);
    return v;
}

static void check_options(os_sock s) {
    CHECK(fcntl((int)s, F_GETFL) & O_NONBLOCK);
    CHECK(fcntl((int)s, F_GETFD) & FD_CLOEXEC);
    CHECK(get_option(s, IPPROTO_TCP, TCP_NODELAY));
}

static void new_socket_is_nonblocking_and_private(void) {
    os_sock s = new_sock(4);
    check_options(s);
    os_sock_close(s, false);
    CHECK_EQ(os_sock_tcp(5, &s), SN_E_PARAM);
    CHECK_EQ(s, OS_SOCK_NONE);
    os_sock_close(OS_SOCK_NONE, true);
    os_sock pair[2];
    make_pair(4, pair);
    check_options(pair[0]);
    check_options(pair[1]);
    close_pair(pair);
}

static void check_congestion_control(os_sock s, const char *name) {
    char text[16] = "";
    socklen_t cb = sizeof text - 1;
    CHECK_EQ(getsockopt((int)s, IPPROTO_TCP, TCP_CONGESTION, text, &cb), 0);
    CHECK_STR(text, name);
}

static void pair_of_one_address_does_not_pace(void) {
    for (uint16_t family = 4; family <= 6; family += 2) {
        os_sock pair[2];
        make_pair(family, pair);
        check_congestion_control(pair[0], "reno");
        check_congestion_control(pair[1], "reno");
        close_pair(pair);
    }
}

static void new_socket_out_of_descriptors_says_resources(void) {
    struct rlimit before, none;
    os_sock s;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    sn_status st = os_sock_tcp(4, &s);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    CHECK_EQ(st, SN_E_RESOURCES);
    CHECK_EQ(s, OS_SOCK_NONE);
}

/* ---- data ---- */

static void send_all(os_sock s, const void *data, size_t len) {
    size_t put, done = 0;
    while (done < len) {
        struct os_iov iov = { (char *)(uintptr_t)data + done, len - done };
        sn_status st = os_sock_writev(s, &iov, 1, &put);
        if (st == SN_E_AGAIN)
            wait_for(s, POLLOUT);
        else
            CHECK_EQ(st, SN_OK);
        done += put;
    }
}

static void data_in_pieces_arrives_in_order_both_families(void) {
    for (uint16_t family = 4; family <= 6; family += 2) {
        os_sock pair[2];
        os_sock probe;
        if (os_sock_tcp(family, &probe) != SN_OK) continue;
        os_sock_close(probe, false);
        make_pair(family, pair);
        char out[] = "abcdefghij", in[16] = { 0 };
        struct os_iov w[3] = { { out, 3 }, { out + 3, 0 }, { out + 3, 7 } };
        size_t n;
        CHECK_EQ(os_sock_writev(pair[0], w, 3, &n), SN_OK);
        CHECK_EQ(n, 10);
        wait_for(pair[1], POLLIN);
        struct os_iov r[2] = { { in + 8, 4 }, { in, 8 } };
        CHECK_EQ(os_sock_readv(pair[1], r, 2, &n), SN_OK);
        CHECK_EQ(n, 10);
        CHECK_BYTES(in + 8, "abcd", 4);
        CHECK_BYTES(in, "efghij", 6);
        n = 99;
        CHECK_EQ(os_sock_readv(pair[1], r, 1, &n), SN_E_AGAIN);
        CHECK_EQ(n, 0);
        CHECK_EQ(os_sock_readv(pair[1], r, 2, &n), SN_E_AGAIN);
        /* The other way, one piece. */
        send_all(pair[1], "xyz", 3);
        wait_for(pair[0], POLLIN);
        struct os_iov one = { in, sizeof in };
        CHECK_EQ(os_sock_readv(pair[0], &one, 1, &n), SN_OK);
        CHECK_EQ(n, 3);
        CHECK_BYTES(in, "xyz", 3);
        close_pair(pair);
    }
}

static void read_without_room_is_refused_not_eof(void) {
    os_sock pair[2];
    make_pair(4, pair);
    send_all(pair[0], "x", 1);
    wait_for(pair[1], POLLIN);
    char c;
    struct os_iov none[2] = { { &c, 0 }, { &c, 0 } };
    size_t n;
    CHECK_EQ(os_sock_readv(pair[1], none, 1, &n), SN_E_PARAM);
    CHECK_EQ(os_sock_readv(pair[1], none, 2, &n), SN_E_PARAM);
    CHECK_EQ(os_sock_writev(pair[1], none, 2, &n), SN_OK);
    CHECK_EQ(n, 0);
    close_pair(pair);
}

static void more_pieces_than_the_limit_move_the_first_ones(void) {
    os_sock pair[2];
    make_pair(4, pair);
    static uint8_t data[OS_IOV_MAX + 9], in[OS_IOV_MAX + 9];
    struct os_iov iov[OS_IOV_MAX + 9];
    for (size_t i = 0; i < OS_IOV_MAX + 9; i++) {
        data[i] = (uint8_t)i;
        iov[i] = (struct os_iov){ &data[i], 1 };
    }
    size_t n;
    CHECK_EQ(os_sock_writev(pair[0], iov, OS_IOV_MAX + 9, &n), SN_OK);
    CHECK_EQ(n, OS_IOV_MAX);
    wait_for(pair[1], POLLIN);
    for (size_t i = 0; i < OS_IOV_MAX + 9; i++)
        iov[i].base = &in[i];
    CHECK_EQ(os_sock_readv(pair[1], iov, OS_IOV_MAX + 9, &n), SN_OK);
    CHECK_BYTES(in, data, n);
    close_pair(pair);
}

static void write_into_full_socket_gives_part_then_again(void) {
    os_sock pair[2];
    make_pair(4, pair);
    os_sock_set_buffers(pair[0], 32768, 0);
    os_sock_set_buffers(pair[1], 0, 32768);
    CHECK(os_sock_writable(pair[0]));
    static char big[1 << 20];
    struct os_iov iov[2] = { { big, sizeof big }, { big, sizeof big } };
    size_t n, total = 0;
    sn_status st = SN_OK;
    bool partial = false;
    for (int i = 0; i < 1000 && st == SN_OK; i++) {
        st = os_sock_writev(pair[0], iov, 1 + (i & 1), &n);
        total += n;
        if (st == SN_OK && n < sizeof big) partial = true;
    }
    CHECK_EQ(st, SN_E_AGAIN);
    CHECK(!os_sock_writable(pair[0]));
    CHECK_EQ(n, 0);
    CHECK(partial);
    CHECK(total > 0);
    close_pair(pair);
}

/* ---- ends ---- */

static void peer_shutdown_gives_eof_after_the_data(void) {
    os_sock pair[2];
    make_pair(4, pair);
    send_all(pair[0], "end", 3);
    os_sock_shutdown_write(pair[0]);
    wait_for(pair[1], POLLIN);
    char in[8];
    struct os_iov iov = { in, sizeof in };
    size_t n;
    CHECK_EQ(os_sock_readv(pair[1], &iov, 1, &n), SN_OK);
    CHECK_EQ(n, 3);
    wait_for(pair[1], POLLIN);
    CHECK_EQ(os_sock_readv(pair[1], &iov, 1, &n), SN_E_EOF);
    CHECK_EQ(os_sock_readv(pair[1], &iov, 1, &n), SN_E_EOF);
    /* The other half still works. */
    send_all(pair[1], "more", 4);
    wait_for(pair[0], POLLIN);
    CHECK_EQ(os_sock_readv(pair[0], &iov, 1, &n), SN_OK);
    CHECK_EQ(n, 4);
    struct os_iov out = { in, 1 };
    CHECK_EQ(os_sock_writev(pair[0], &out, 1, &n), SN_E_PEER_GONE); /* own half is shut */
    close_pair(pair);
}

static void peer_reset_gives_peer_gone_to_reader_and_writer(void) {
    os_sock pair[2];
    char in[8];
    struct os_iov iov = { in, sizeof in };
    size_t n;
    signal(SIGPIPE, SIG_DFL); /* a signal would end the test */
    make_pair(4, pair);
    os_sock_close(pair[0], true);
    wait_for(pair[1], POLLIN);
    CHECK_EQ(os_sock_readv(pair[1], &iov, 1, &n), SN_E_PEER_GONE);
    CHECK_EQ(n, 0);
    CHECK_EQ(os_sock_writev(pair[1], &iov, 1, &n), SN_E_PEER_GONE);
    os_sock_close(pair[1], false);
    make_pair(4, pair);
    os_sock_close(pair[0], true);
    wait_for(pair[1], POLLIN);
    CHECK_EQ(os_sock_writev(pair[1], &iov, 1, &n), SN_E_PEER_GONE);
    struct os_iov two[2] = { { in, 1 }, { in, 1 } };
    CHECK_EQ(os_sock_writev(pair[1], two, 2, &n), SN_E_PEER_GONE);
    os_sock_close(pair[1], false);
}

static void unconnected_socket_says_not_connected(void) {
    os_sock s = new_sock(4);
    char c;
    struct os_iov iov = { &c, 1 };
    struct os_addr a;
    size_t n;
    CHECK_EQ(os_sock_readv(s, &iov, 1, &n), SN_E_NOT_CONNECTED);
    CHECK_EQ(os_sock_peer(s, &a), SN_E_NOT_CONNECTED);
    CHECK_EQ(os_sock_connect_result(s), SN_E_NOT_CONNECTED);
    CHECK_EQ(os_sock_mss(s) > 0, 1);
    os_sock_close(s, false);
    CHECK_EQ(os_sock_mss((os_sock)100000), 536);
    CHECK_EQ(os_sock_readv((os_sock)100000, &iov, 1, &n), SN_E_HANDLE);
}

/* ---- bad memory ---- */

static void read_into_bad_memory_says_fault_and_keeps_the_stream(void) {
    size_t page = os_page_size();
    uint8_t *p = os_pages_alloc(3 * page);
    CHECK(p != NULL);
    CHECK_EQ(mprotect(p + page, page, PROT_NONE), 0);
    os_sock pair[2];
    make_pair(4, pair);
    send_all(pair[0], "0123456789", 10);
    wait_for(pair[1], POLLIN);
    struct os_iov bad = { p + page, 10 };
    size_t n = 7;
    CHECK_EQ(os_sock_readv(pair[1], &bad, 1, &n), SN_E_FAULT);
    CHECK_EQ(n, 0);
    struct os_iov mixed[2] = { { p, 4 }, { p + page, 10 } };
    sn_status st = os_sock_readv(pair[1], mixed, 2, &n);
    /* The kernel may deliver the good piece first, or nothing; never more, and nothing is lost. */
    size_t got = n;
    CHECK(st == SN_OK || st == SN_E_FAULT);
    CHECK(got <= 4);
    if (st == SN_OK) CHECK_EQ(os_sock_readv(pair[1], &bad, 1, &n), SN_E_FAULT);
    uint8_t rest[16];
    struct os_iov good = { rest, sizeof rest };
    CHECK_EQ(os_sock_readv(pair[1], &good, 1, &n), SN_OK);
    CHECK_EQ(n, 10 - got);
    CHECK_BYTES(rest, &"0123456789"[got], n);

    struct os_iov out[2] = { { p, 4 }, { p + page, 10 } };
    CHECK_EQ(os_sock_writev(pair[0], out + 1, 1, &n), SN_E_FAULT);
    CHECK_EQ(n, 0);
    st = os_sock_writev(pair[0], out, 2, &n);
    CHECK(st == SN_E_FAULT || (st == SN_OK && n <= 4));
    close_pair(pair);
    os_pages_free(p, 3 * page);
}

/* ---- bind and listen ---- */

static void bind_unique_twice_is_in_use(void) {
    struct os_addr at;
    os_sock a = new_listener(4, OS_BIND_UNIQUE, &at), b = new_sock(4), c = new_sock(4);
    CHECK_EQ(os_sock_bind(b, &at, OS_BIND_UNIQUE), SN_E_ADDR_IN_USE);
    CHECK_EQ(os_sock_bind(c, &at, OS_BIND_REUSE), SN_E_ADDR_IN_USE);
    os_sock_close(a, false);
    os_sock_close(b, false);
    os_sock_close(c, false);
}

static void bind_reuse_takes_a_port_in_time_wait(void) {
    struct os_addr at;
    os_sock listener = new_listener(4, OS_BIND_REUSE, &at), client = new_sock(4), server;
    CHECK_EQ(finish_connect(client, &at), SN_OK);
    wait_for(listener, POLLIN);
    CHECK_EQ(os_sock_accept(listener, &server, NULL), SN_OK);
    /* The side that closes first keeps the port in TIME_WAIT. */
    os_sock_close(server, false);
    char c;
    struct os_iov iov = { &c, 1 };
    size_t n;
    wait_for(client, POLLIN);
    CHECK_EQ(os_sock_readv(client, &iov, 1, &n), SN_E_EOF);
    os_sock_close(client, false);
    os_sock_close(listener, false);
    os_sock unique = new_sock(4), again = new_sock(4);
    CHECK_EQ(os_sock_bind(unique, &at, OS_BIND_UNIQUE), SN_E_ADDR_IN_USE);
    CHECK_EQ(os_sock_bind(again, &at, OS_BIND_REUSE), SN_OK);
    CHECK_EQ(os_sock_listen(again, 0), SN_OK);
    os_sock_close(unique, false);
    os_sock_close(again, false);
}

static void bind_foreign_address_is_invalid(void) {
    struct os_addr a = { .family = 4, .ip = { 192, 0, 2, 1 } }, none = { 0 };
    os_sock s = new_sock(4);
    CHECK_EQ(os_sock_bind(s, &a, OS_BIND_UNIQUE), SN_E_ADDR_INVALID);
    CHECK_EQ(os_sock_bind(s, &none, OS_BIND_UNIQUE), SN_E_ADDR_INVALID);
    os_sock_close(s, false);
    if (os_sock_tcp(6, &s) != SN_OK) return;
    CHECK_EQ(os_sock_bind(s, &a, OS_BIND_UNIQUE), SN_E_ADDR_INVALID); /* other family */
    struct os_addr local = { .family = 6, .ip = { 0xfe, 0x80, [15] = 0x77 } };
    CHECK_EQ(os_sock_bind(s, &local, OS_BIND_UNIQUE), SN_E_ADDR_INVALID); /* no scope */
    os_sock_close(s, false);
}

static void shared_listener_with_connectors_before_and_after(void) {
    struct os_addr want = loopback(4), at;
    os_sock early = new_sock(4), listener = new_sock(4), late = new_sock(4), second = new_sock(4);
    CHECK_EQ(os_sock_bind(early, &want, OS_BIND_SHARED), SN_OK);
    CHECK_EQ(os_sock_local(early, &at), SN_OK);
    CHECK_EQ(os_sock_bind(listener, &at, OS_BIND_SHARED), SN_OK);
    CHECK_EQ(os_sock_listen(listener, 8), SN_OK);
    CHECK_EQ(os_sock_bind(late, &at, OS_BIND_SHARED), SN_OK);
    /* Two listeners on one port: the second is refused, as bind or as listen. */
    CHECK_EQ(os_sock_bind(second, &at, OS_BIND_SHARED), SN_OK);
    CHECK_EQ(os_sock_listen(second, 8), SN_E_ADDR_IN_USE);
    /* Both connectors work from the shared port, and the listener gets its own. */
    struct os_addr other, from;
    os_sock far = new_listener(4, OS_BIND_UNIQUE, &other), other2_sock;
    struct os_addr other2;
    other2_sock = new_listener(4, OS_BIND_UNIQUE, &other2);
    CHECK_EQ(finish_connect(early, &other), SN_OK);
    CHECK_EQ(finish_connect(late, &other2), SN_OK);
    CHECK_EQ(os_sock_local(late, &from), SN_OK);
    CHECK_EQ(from.port, at.port);
    for (int i = 0; i < 20; i++) {
        os_sock client = new_sock(4), server;
        CHECK_EQ(finish_connect(client, &at), SN_OK);
        wait_for(listener, POLLIN);
        CHECK_EQ(os_sock_accept(listener, &server, NULL), SN_OK);
        os_sock_close(client, true);
        os_sock_close(server, true);
    }
    os_sock_close(listener, false);
    /* The port is free for the next listener. */
    CHECK_EQ(os_sock_listen(second, 8), SN_OK);
    os_sock_close(second, false);
    os_sock_close(early, true);
    os_sock_close(late, true);
    os_sock_close(far, false);
    os_sock_close(other2_sock, false);
}

static void shared_same_pair_twice_already_exists(void) {
    struct os_addr want = loopback(4), at, far_at;
    os_sock far = new_listener(4, OS_BIND_UNIQUE, &far_at);
    os_sock a = new_sock(4), b = new_sock(4);
    CHECK_EQ(os_sock_bind(a, &want, OS_BIND_SHARED), SN_OK);
    CHECK_EQ(os_sock_local(a, &at), SN_OK);
    CHECK_EQ(os_sock_bind(b, &at, OS_BIND_SHARED), SN_OK);
    CHECK_EQ(finish_connect(a, &far_at), SN_OK);
    CHECK_EQ(finish_connect(b, &far_at), SN_E_ADDR_EXISTS);
    os_sock_close(a, true);
    os_sock_close(b, true);
    os_sock_close(far, false);
}

static void listen_on_connected_socket_is_a_state_error(void) {
    os_sock pair[2];
    make_pair(4, pair);
    CHECK_EQ(os_sock_listen(pair[0], 1), SN_E_STATE);
    os_sock out;
    CHECK_EQ(os_sock_accept(pair[0], &out, NULL), SN_E_STATE);
    CHECK_EQ(out, OS_SOCK_NONE);
    close_pair(pair);
}

static void accept_with_nobody_waiting_is_again(void) {
    struct os_addr at;
    os_sock s = new_listener(4, OS_BIND_UNIQUE, &at), out;
    CHECK_EQ(os_sock_accept(s, &out, NULL), SN_E_AGAIN);
    CHECK_EQ(out, OS_SOCK_NONE);
    os_sock_close(s, false);
}

static void both_families_may_have_one_port(void) {
    struct os_addr any6 = { .family = 6 }, any4 = { .family = 4 }, at;
    os_sock six, four = new_sock(4);
    if (os_sock_tcp(6, &six) != SN_OK) SKIP("no IPv6 on this machine");
    CHECK_EQ(os_sock_bind(six, &any6, OS_BIND_UNIQUE), SN_OK);
    CHECK_EQ(os_sock_local(six, &at), SN_OK);
    any4.port = at.port;
    CHECK_EQ(os_sock_bind(four, &any4, OS_BIND_UNIQUE), SN_OK);
    os_sock_close(six, false);
    os_sock_close(four, false);
}

/* ---- connect ---- */

static void connect_to_closed_port_is_refused(void) {
    struct os_addr want = loopback(4), at;
    os_sock holder = new_sock(4), s = new_sock(4);
    CHECK_EQ(os_sock_bind(holder, &want, OS_BIND_UNIQUE), SN_OK); /* bound, not listening */
    CHECK_EQ(os_sock_local(holder, &at), SN_OK);
    CHECK_EQ(finish_connect(s, &at), SN_E_REFUSED);
    os_sock_close(holder, false);
    os_sock_close(s, false);
}

static void connect_to_impossible_destinations_is_net_name(void) {
    os_sock s = new_sock(4);
    struct os_addr a = loopback(4);
    CHECK_EQ(os_sock_connect(s, &a), SN_E_NET_NAME); /* port 0 */
    a = (struct os_addr){ .family = 4, .port = 9 };
    CHECK_EQ(os_sock_connect(s, &a), SN_E_NET_NAME); /* unspecified */
    a.ip[0] = 224;
    CHECK_EQ(os_sock_connect(s, &a), SN_E_NET_NAME); /* multicast */
    memset(a.ip, 255, 4);
    CHECK_EQ(os_sock_connect(s, &a), SN_E_NET_NAME); /* broadcast */
    a = (struct os_addr){ .family = 0, .port = 9 };
    CHECK_EQ(os_sock_connect(s, &a), SN_E_NET_NAME);
    a = loopback(6);
    a.port = 9;
    CHECK_EQ(os_sock_connect(s, &a), SN_E_NET_NAME); /* other family */
    os_sock_close(s, false);
    if (os_sock_tcp(6, &s) != SN_OK) return;
    a = (struct os_addr){ .family = 6, .port = 9, .ip = { 0xfe, 0x80, [15] = 0x77 } };
    CHECK_EQ(os_sock_connect(s, &a), SN_E_NET_NAME); /* link-local without scope */
    a = (struct os_addr){ .family = 6, .port = 9, .ip = { 0xff, 2, [15] = 1 } };
    CHECK_EQ(os_sock_connect(s, &a), SN_E_NET_NAME);
    os_sock_close(s, false);
}

static void connect_twice_says_connected(void) {
    struct os_addr at;
    os_sock listener = new_listener(4, OS_BIND_UNIQUE, &at), s = new_sock(4);
    CHECK_EQ(finish_connect(s, &at), SN_OK);
    CHECK_EQ(os_sock_connect_result(s), SN_OK);
    /* The first call after a pending one may still report that one's success. */
    sn_status st = os_sock_connect(s, &at);
    CHECK(st == SN_OK || st == SN_E_CONNECTED);
    CHECK_EQ(os_sock_connect(s, &at), SN_E_CONNECTED);
    CHECK(os_sock_mss(s) >= 536);
    os_sock_close(s, false);
    os_sock_close(listener, false);
}

/* A listener whose queue is full leaves the next connector waiting. */
static void connect_result_while_under_way_is_again(void) {
    struct os_addr want = loopback(4), at;
    os_sock listener = new_sock(4), s[16];
    CHECK_EQ(os_sock_bind(listener, &want, OS_BIND_UNIQUE), SN_OK);
    CHECK_EQ(os_sock_listen(listener, 1), SN_OK);
    CHECK_EQ(os_sock_local(listener, &at), SN_OK);
    int waiting = 0;
    for (int i = 0; i < 16; i++) {
        s[i] = new_sock(4);
        sn_status st = os_sock_connect(s[i], &at);
        CHECK(st == SN_PENDING || st == SN_OK);
        if (st == SN_PENDING && os_sock_connect_result(s[i]) == SN_E_AGAIN) waiting++;
    }
    for (int i = 0; i < 16; i++)
        os_sock_close(s[i], true);
    os_sock_close(listener, false);
    CHECK(waiting > 0);
}

static void route_to_own_addresses_is_the_address_itself(void) {
    struct os_netif *list;
    size_t count;
    CHECK_EQ(os_netif_list(&list, &count), SN_OK);
    for (size_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < list[i].addr_count; k++) {
            struct os_addr a = list[i].addrs[k], local;
            a.port = 1234;
            CHECK_EQ(os_sock_route(&a, &local), SN_OK);
            CHECK(os_addr_same_ip(&a, &local));
            CHECK_EQ(local.port, 0);
        }
    os_netif_free(list);
    struct os_addr any = { .family = 4, .port = 1 }, local;
    CHECK_EQ(os_sock_route(&any, &local), SN_E_NET_NAME);
}

static void injected_failures_come_back_as_statuses(void) {
    if (!os_fault_available()) SKIP("built without fault injection");
    struct os_addr at = loopback(4), local;
    os_sock s = new_sock(4), out;
    char c;
    struct os_iov iov = { &c, 1 };
    size_t n;
#define FAILS(call, want)                                                                          \
    do {                                                                                           \
        os_fault_arm(OS_FAULT_SYSCALL, 0);                                                         \
        sn_status failing = (call);                                                                \
        CHECK(os_fault_fired(OS_FAULT_SYSCALL));                                                   \
        CHECK_EQ(failing, want);                                                                   \
    } while (0)
    FAILS(os_sock_tcp(4, &out), SN_E_RESOURCES);
    FAILS(os_sock_bind(s, &at, OS_BIND_UNIQUE), SN_E_RESOURCES);
    FAILS(os_sock_listen(s, 1), SN_E_RESOURCES);
    FAILS(os_sock_accept(s, &out, NULL), SN_E_RESOURCES);
    at.port = 9;
    FAILS(os_sock_connect(s, &at), SN_E_RESOURCES);
    FAILS(os_sock_connect_result(s), SN_E_RESOURCES);
    FAILS(os_sock_readv(s, &iov, 1, &n), SN_E_PEER_GONE);
    FAILS(os_sock_writev(s, &iov, 1, &n), SN_E_PEER_GONE);
    FAILS(os_sock_route(&at, &local), SN_E_RESOURCES);
#undef FAILS
    os_fault_arm(OS_FAULT_SYSCALL, -1);
    os_sock_close(s, false);
}

TEST_MAIN(
    TEST(new_socket_is_nonblocking_and_private), TEST(pair_of_one_address_does_not_pace),
    TEST(new_socket_out_of_descriptors_says_resources),
    TEST(data_in_pieces_arrives_in_order_both_families), TEST(read_without_room_is_refused_not_eof),
    TEST(more_pieces_than_the_limit_move_the_first_ones),
    TEST(write_into_full_socket_gives_part_then_again),
    TEST(peer_shutdown_gives_eof_after_the_data),
    TEST(peer_reset_gives_peer_gone_to_reader_and_writer),
    TEST(unconnected_socket_says_not_connected),
    TEST(read_into_bad_memory_says_fault_and_keeps_the_stream), TEST(bind_unique_twice_is_in_use),
    TEST(bind_reuse_takes_a_port_in_time_wait), TEST(bind_foreign_address_is_invalid),
    TEST(shared_listener_with_connectors_before_and_after),
    TEST(shared_same_pair_twice_already_exists), TEST(listen_on_connected_socket_is_a_state_error),
    TEST(accept_with_nobody_waiting_is_again), TEST(both_families_may_have_one_port),
    TEST(connect_to_closed_port_is_refused), TEST(connect_to_impossible_destinations_is_net_name),
    TEST(connect_twice_says_connected), TEST(connect_result_while_under_way_is_again),
    TEST(route_to_own_addresses_is_the_address_itself),
    TEST(injected_failures_come_back_as_statuses))
