/* SPDX-License-Identifier: MIT
 * os_test.c - the OS layer on Windows: the contracts of src/os/prim and src/os/io, with Win32 calls
 * where the Linux tests have POSIX ones.
 */
#include <winsock2.h>
#include <windows.h>
#include "base/base.h"
#include "os/io/addr.h"
#include "os/io/local_sock.h"
#include "os/io/peer_copy.h"
#include "os/io/poller.h"
#include "os/io/shm.h"
#include "os/io/sock.h"
#include "os/prim/clock.h"
#include "os/prim/fault.h"
#include "os/prim/lock.h"
#include "os/prim/pages.h"
#include "os/prim/thread.h"
#include "support/testing.h"

#define SECOND (1000 * OS_NS_PER_MS)

static bool is_wine(void) {
    return GetProcAddress(GetModuleHandleW(L"ntdll.dll"), "wine_get_version") != NULL;
}

/* ---- threads, locks, clock ---- */

struct counter {
    os_lock lock;
    os_cond cond;
    uint32_t n, target;
};

static void count_up(void *arg) {
    struct counter *c = arg;
    for (int i = 0; i < 20000; i++) {
        os_lock_enter(&c->lock);
        if (++c->n == c->target) os_cond_broadcast(&c->cond);
        os_lock_leave(&c->lock);
    }
}

static void lock_four_threads_lose_no_count(void) {
    struct counter c = { .target = 80000 };
    os_thread t[4];
    os_lock_init(&c.lock, OS_RANK_LEAF);
    os_cond_init(&c.cond);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(os_thread_start(&t[i], "counter", count_up, &c), SN_OK);
    os_lock_enter(&c.lock);
    uint64_t deadline = os_now_ns() + 60 * SECOND;
    while (c.n != c.target)
        if (!os_cond_wait(&c.cond, &c.lock, deadline)) break;
    uint32_t n = c.n;
    os_lock_leave(&c.lock);
    for (int i = 0; i < 4; i++)
        os_thread_join(t[i]);
    CHECK_EQ(n, 80000);
    os_cond_fini(&c.cond);
    os_lock_fini(&c.lock);
}

static void lock_try_of_a_held_one_fails(void) {
    os_lock l;
    os_lock_init(&l, OS_RANK_LEAF);
    CHECK(os_lock_try(&l));
    CHECK(!os_lock_try(&l));
    os_lock_leave(&l);
    CHECK(os_lock_try(&l));
    os_lock_leave(&l);
    os_lock_fini(&l);
}

static void wait_on_deadline_passes_false_and_not_early(void) {
    os_atomic_u32 word = { 7 };
    uint64_t deadline = os_now_ns() + 20 * OS_NS_PER_MS;
    while (os_wait_on(&word, 7, deadline))
        CHECK(os_now_ns() < deadline + 10 * SECOND);
    CHECK(os_now_ns() >= deadline);
    CHECK(os_wait_on(&word, 8, OS_FOREVER)); /* another value: at once */
}

struct ping {
    os_atomic_u32 ping, pong;
};

static void answer(void *arg) {
    struct ping *p = arg;
    for (uint32_t i = 1; i <= 2000; i++) {
        while (os_u32_load_acquire(&p->ping) != i)
            os_wait_on(&p->ping, i - 1, OS_FOREVER);
        os_u32_store_release(&p->pong, i);
        os_wake_one(&p->pong);
    }
}

static void wait_word_ping_pong_loses_no_wake(void) {
    struct ping p = { 0 };
    os_thread t;
    CHECK_EQ(os_thread_start(&t, "pong", answer, &p), SN_OK);
    for (uint32_t i = 1; i <= 2000; i++) {
        uint64_t deadline = os_now_ns() + 20 * SECOND;
        os_u32_store_release(&p.ping, i);
        os_wake_all(&p.ping);
        while (os_u32_load_acquire(&p.pong) != i)
            if (!os_wait_on(&p.pong, i - 1, deadline)) FAIL("round %u was lost", i);
    }
    os_thread_join(t);
}

static os_atomic_u32 once_runs;

static void run_once(void) {
    os_u32_fetch_add_acq_rel(&once_runs, 1);
}

static os_once once = OS_ONCE_INIT;

static void race_for_once(void *arg) {
    (void)arg;
    os_once_run(&once, run_once);
}

static void once_raced_by_four_runs_once(void) {
    os_thread t[4];
    for (int i = 0; i < 4; i++)
        CHECK_EQ(os_thread_start(&t[i], "once", race_for_once, NULL), SN_OK);
    for (int i = 0; i < 4; i++)
        os_thread_join(t[i]);
    CHECK_EQ(os_u32_load_acquire(&once_runs), 1);
}

static void clock_goes_forward_and_sleep_is_not_short(void) {
    uint64_t before = os_now_ns();
    os_sleep_ms(20);
    uint64_t after = os_now_ns();
    CHECK(before != 0);
    CHECK(after - before >= 19 * OS_NS_PER_MS);
    uint64_t a[4] = { 0 }, b[4] = { 0 };
    os_random_bytes(a, sizeof a);
    os_random_bytes(b, sizeof b);
    CHECK(memcmp(a, b, sizeof a) != 0);
}

static void module_path_names_this_program(void) {
    char path[1024], small[4];
    CHECK(os_module_path(path, sizeof path));
    CHECK(strstr(path, ".exe") != NULL);
    CHECK(!os_module_path(small, sizeof small));
    CHECK_EQ(os_process_id(), GetCurrentProcessId());
}

/* ---- pages ---- */

static void probe_sees_rights_and_holes(void) {
    size_t page = os_page_size();
    uint8_t *p = os_pages_alloc(4 * page);
    DWORD old;
    CHECK(p != NULL);
    CHECK_EQ(os_pages_probe(p, 4 * page, true), SN_OK);
    CHECK(VirtualProtect(p + page, page, PAGE_READONLY, &old));
    CHECK(VirtualProtect(p + 2 * page, page, PAGE_NOACCESS, &old));
    CHECK_EQ(os_pages_probe(p, page, true), SN_OK);
    CHECK_EQ(os_pages_probe(p, page + 1, true), SN_E_FAULT);
    CHECK_EQ(os_pages_probe(p, 2 * page, false), SN_OK);
    CHECK_EQ(os_pages_probe(p, 2 * page + 1, false), SN_E_FAULT);
    CHECK_EQ(os_pages_probe(p + 3 * page, page, true), SN_OK);
    CHECK_EQ(os_pages_probe(NULL, 1, false), SN_E_FAULT);
    CHECK_EQ(os_pages_probe(p, SIZE_MAX, false), SN_E_FAULT);
    os_pages_free(p, 4 * page);
    CHECK_EQ(os_pages_probe(p, 1, false), SN_E_FAULT);
}

static void guarded_copy_over_a_hole_stops_there(void) {
    size_t page = os_page_size();
    uint8_t *p = os_pages_alloc(2 * page), from[256];
    DWORD old;
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (uint8_t)(i + 1);
    CHECK(os_guarded_copy(p + 10, from, sizeof from));
    CHECK_BYTES(p + 10, from, sizeof from);
    CHECK(VirtualProtect(p + page, page, PAGE_NOACCESS, &old));
    for (int i = 0; i < 3; i++) {
        CHECK(!os_guarded_copy(p + page - 100, from, sizeof from));
        CHECK_BYTES(p + page - 100, from, 96); /* whole words before the hole */
        CHECK(!os_guarded_copy(from, p + page, 8));
    }
    os_pages_free(p, 2 * page);
    CHECK(!os_guarded_copy(from, p, 8));
}

struct poke {
    volatile uint8_t *at;
    volatile int reached; /* outlives the jump out of the call */
};

static void poke(void *arg) {
    struct poke *k = arg;
    k->reached = 1;
    *k->at = 1;
    k->reached = 2;
}

static void poke_twice(void *arg) {
    struct poke *k = arg;
    struct poke inner = { .at = NULL };
    if (os_guarded_call(poke, &inner) || inner.reached != 1) return;
    poke(k);
}

static void guarded_call_is_left_at_the_fault(void) {
    uint8_t byte = 0;
    struct poke good = { .at = &byte }, bad = { .at = NULL };
    CHECK(os_guarded_call(poke, &good));
    CHECK_EQ(byte, 1);
    for (int i = 0; i < 3; i++) {
        bad.reached = 0;
        CHECK(!os_guarded_call(poke, &bad));
        CHECK_EQ(bad.reached, 1);
    }
    good.reached = 0;
    CHECK(os_guarded_call(poke_twice, &good));
    CHECK_EQ(good.reached, 2);
    bad.reached = 0;
    CHECK(!os_guarded_call(poke_twice, &bad));
    CHECK_EQ(bad.reached, 1);
}

/* ---- addresses ---- */

static void interfaces_include_loopback(void) {
    struct os_netif *list;
    size_t n;
    bool found = false;
    CHECK_EQ(os_netif_list(&list, &n), SN_OK);
    for (size_t i = 0; i < n; i++) {
        CHECK(list[i].name[0] != 0);
        CHECK(list[i].addr_count > 0);
        CHECK(list[i].mtu_bytes >= 576);
        for (uint32_t k = 0; k < list[i].addr_count; k++) {
            CHECK_EQ(list[i].addrs[k].port, 0);
            if (os_addr_is_loopback(&list[i].addrs[k])) found = list[i].loopback;
        }
    }
    os_netif_free(list);
    CHECK(found);
}

/* ---- sockets ---- */

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

static void wait_for(os_sock s, SHORT events) {
    WSAPOLLFD p = { .fd = (SOCKET)s, .events = events };
    CHECK_EQ(WSAPoll(&p, 1, 20000), 1);
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
    uint64_t deadline = os_now_ns() + 20 * SECOND;
    while (st == SN_PENDING || st == SN_E_AGAIN) {
        CHECK(os_now_ns() < deadline);
        st = os_sock_connect_result(s);
        if (st == SN_E_AGAIN) os_thread_yield();
    }
    return st;
}

static void make_pair(uint16_t family, os_sock pair[2]) {
    struct os_addr at, from, seen;
    os_sock listener = new_listener(family, OS_BIND_UNIQUE, &at);
    pair[0] = new_sock(family);
    CHECK_EQ(finish_connect(pair[0], &at), SN_OK);
    wait_for(listener, POLLRDNORM);
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

static void send_all(os_sock s, const void *data, size_t len) {
    size_t put, done = 0;
    while (done < len) {
        struct os_iov iov = { (char *)(uintptr_t)data + done, len - done };
        sn_status st = os_sock_writev(s, &iov, 1, &put);
        if (st == SN_E_AGAIN)
            wait_for(s, POLLWRNORM);
        else
            CHECK_EQ(st, SN_OK);
        done += put;
    }
}

static void data_in_pieces_arrives_in_order_both_families(void) {
    for (uint16_t family = 4; family <= 6; family += 2) {
        os_sock pair[2], probe;
        if (os_sock_tcp(family, &probe) != SN_OK) continue;
        os_sock_close(probe, false);
        make_pair(family, pair);
        char out[] = "abcdefghij", in[16] = { 0 };
        struct os_iov w[3] = { { out, 3 }, { out + 3, 0 }, { out + 3, 7 } };
        size_t n;
        CHECK_EQ(os_sock_writev(pair[0], w, 3, &n), SN_OK);
        CHECK_EQ(n, 10);
        wait_for(pair[1], POLLRDNORM);
        struct os_iov r[2] = { { in + 8, 4 }, { in, 8 } };
        CHECK_EQ(os_sock_readv(pair[1], r, 2, &n), SN_OK);
        CHECK_EQ(n, 10);
        CHECK_BYTES(in + 8, "abcd", 4);
        CHECK_BYTES(in, "efghij", 6);
        n = 99;
        CHECK_EQ(os_sock_readv(pair[1], r, 1, &n), SN_E_AGAIN);
        CHECK_EQ(n, 0);
        close_pair(pair);
    }
}

static void read_without_room_is_refused_not_eof(void) {
    os_sock pair[2];
    char c;
    size_t n;
    struct os_iov none[2] = { { &c, 0 }, { &c, 0 } };
    make_pair(4, pair);
    send_all(pair[0], "x", 1);
    wait_for(pair[1], POLLRDNORM);
    CHECK_EQ(os_sock_readv(pair[1], none, 2, &n), SN_E_PARAM);
    CHECK_EQ(os_sock_writev(pair[1], none, 2, &n), SN_OK);
    CHECK_EQ(n, 0);
    close_pair(pair);
}

static void write_into_full_socket_gives_part_then_again(void) {
    os_sock pair[2];
    static char big[1 << 20];
    struct os_iov iov[2] = { { big, sizeof big }, { big, sizeof big } };
    size_t n, total = 0;
    sn_status st = SN_OK;
    make_pair(4, pair);
    os_sock_set_buffers(pair[0], 32768, 0);
    os_sock_set_buffers(pair[1], 0, 32768);
    for (int i = 0; i < 1000 && st == SN_OK; i++) {
        st = os_sock_writev(pair[0], iov, 1 + (i & 1), &n);
        total += n;
    }
    CHECK_EQ(st, SN_E_AGAIN);
    CHECK_EQ(n, 0);
    CHECK(total > 0);
    close_pair(pair);
}

static void peer_shutdown_gives_eof_and_reset_gives_peer_gone(void) {
    os_sock pair[2];
    char in[8] = { 0 };
    struct os_iov iov = { in, sizeof in };
    size_t n;
    make_pair(4, pair);
    send_all(pair[0], "end", 3);
    os_sock_shutdown_write(pair[0]);
    wait_for(pair[1], POLLRDNORM);
    CHECK_EQ(os_sock_readv(pair[1], &iov, 1, &n), SN_OK);
    CHECK_EQ(n, 3);
    wait_for(pair[1], POLLRDNORM);
    CHECK_EQ(os_sock_readv(pair[1], &iov, 1, &n), SN_E_EOF);
    CHECK_EQ(os_sock_readv(pair[1], &iov, 1, &n), SN_E_EOF);
    CHECK_EQ(os_sock_writev(pair[0], &iov, 1, &n), SN_E_PEER_GONE); /* own half is shut */
    close_pair(pair);
    make_pair(4, pair);
    os_sock_close(pair[0], true);
    sn_status st = SN_E_AGAIN;
    for (uint64_t deadline = os_now_ns() + 20 * SECOND; st == SN_E_AGAIN; os_thread_yield()) {
        CHECK(os_now_ns() < deadline);
        st = os_sock_readv(pair[1], &iov, 1, &n);
    }
    /* Wine's closesocket shuts the connection down before it resets it. */
    CHECK(st == SN_E_PEER_GONE || (st == SN_E_EOF && is_wine()));
    os_sock_close(pair[1], false);
}

static void connect_to_nobody_is_refused(void) {
    struct os_addr at, none = { .family = 4, .port = 5 };
    os_sock l = new_listener(4, OS_BIND_UNIQUE, &at), s;
    os_sock_close(l, false);
    s = new_sock(4);
    CHECK_EQ(finish_connect(s, &at), SN_E_REFUSED);
    os_sock_close(s, false);
    s = new_sock(4);
    CHECK_EQ(os_sock_connect(s, &none), SN_E_NET_NAME);
    os_sock_close(s, false);
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
    CHECK(os_sock_mss(s) > 0);
    os_sock_close(s, false);
    CHECK_EQ(os_sock_readv((os_sock)0x7ffffff0, &iov, 1, &n), SN_E_HANDLE);
}

static void bind_modes_keep_others_out(void) {
    struct os_addr at, foreign = { .family = 4, .ip = { 192, 0, 2, 1 } };
    os_sock a = new_listener(4, OS_BIND_UNIQUE, &at), b = new_sock(4), c = new_sock(4);
    CHECK_EQ(os_sock_bind(b, &at, OS_BIND_UNIQUE), SN_E_ADDR_IN_USE);
    CHECK_EQ(os_sock_bind(c, &at, OS_BIND_REUSE), SN_E_ADDR_IN_USE);
    CHECK_EQ(os_sock_bind(c, &foreign, OS_BIND_UNIQUE), SN_E_ADDR_INVALID);
    os_sock_close(a, false);
    os_sock_close(b, false);
    os_sock_close(c, false);
}

static void second_shared_listener_is_in_use(void) {
    struct os_addr at;
    os_sock a = new_listener(4, OS_BIND_SHARED, &at), b = new_sock(4);
    sn_status st = os_sock_bind(b, &at, OS_BIND_SHARED);
    if (st == SN_OK) st = os_sock_listen(b, 0);
    CHECK_EQ(st, SN_E_ADDR_IN_USE);
    CHECK_EQ(os_sock_listen(a, 0), SN_OK); /* the same one again */
    os_sock_close(a, false);
    os_sock_close(b, false);
}

static void route_to_loopback_is_loopback(void) {
    struct os_addr to = loopback(4), own;
    CHECK_EQ(os_sock_route(&to, &own), SN_OK);
    CHECK(os_addr_is_loopback(&own));
    CHECK_EQ(own.port, 0);
}

/* ---- poller ---- */

static struct os_poller *new_poller(void) {
    struct os_poller *p;
    CHECK_EQ(os_poller_create(&p), SN_OK);
    return p;
}

static void put_byte(os_sock s) {
    send_all(s, "x", 1);
}

static void take_byte(os_sock s) {
    char c;
    struct os_iov iov = { &c, 1 };
    size_t n;
    CHECK_EQ(os_sock_readv(s, &iov, 1, &n), SN_OK);
}

static void readable_socket_is_reported_until_read(void) {
    struct os_poller *p = new_poller();
    os_sock s[2];
    struct os_poll_event ev[4];
    make_pair(4, s);
    CHECK_EQ(os_poller_add(p, s[0], 0x1122334455667788u, OS_POLL_IN), SN_OK);
    CHECK_EQ(os_poller_wait(p, ev, 4, 0), 0);
    put_byte(s[1]);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(os_poller_wait(p, ev, 4, 20 * SECOND), 1);
        CHECK(ev[0].key == 0x1122334455667788u);
        CHECK_EQ(ev[0].events, OS_POLL_IN);
    }
    take_byte(s[0]);
    CHECK_EQ(os_poller_wait(p, ev, 4, 0), 0);
    CHECK_EQ(os_poller_wait(p, ev, 4, 20 * OS_NS_PER_MS), 0);
    os_poller_remove(p, s[0]);
    close_pair(s);
    os_poller_destroy(p);
    os_poller_destroy(NULL);
}

static void modify_changes_what_is_reported(void) {
    struct os_poller *p = new_poller();
    os_sock s[2];
    struct os_poll_event ev[4];
    make_pair(4, s);
    CHECK_EQ(os_poller_add(p, s[0], 1, OS_POLL_IN | OS_POLL_OUT), SN_OK);
    CHECK_EQ(os_poller_wait(p, ev, 4, OS_FOREVER), 1);
    CHECK_EQ(ev[0].events, OS_POLL_OUT);
    put_byte(s[1]);
    wait_for(s[0], POLLRDNORM);
    CHECK_EQ(os_poller_wait(p, ev, 4, 20 * SECOND), 1);
    CHECK_EQ(ev[0].events, OS_POLL_IN | OS_POLL_OUT);
    CHECK_EQ(os_poller_modify(p, s[0], 2, OS_POLL_IN), SN_OK);
    CHECK_EQ(os_poller_wait(p, ev, 4, 20 * SECOND), 1);
    CHECK_EQ(ev[0].key, 2);
    CHECK_EQ(ev[0].events, OS_POLL_IN);
    CHECK_EQ(os_poller_modify(p, s[0], 2, 0), SN_OK);
    CHECK_EQ(os_poller_wait(p, ev, 4, 20 * OS_NS_PER_MS), 0);
    /* More than the request under way asks for. */
    CHECK_EQ(os_poller_modify(p, s[0], 3, OS_POLL_OUT), SN_OK);
    CHECK_EQ(os_poller_wait(p, ev, 4, 20 * SECOND), 1);
    CHECK_EQ(ev[0].key, 3);
    CHECK_EQ(ev[0].events, OS_POLL_OUT);
    CHECK_EQ(os_poller_modify(p, s[0], 2, 0), SN_OK);
    /* HUP comes whatever was asked for. */
    os_sock_close(s[1], true);
    CHECK_EQ(os_poller_wait(p, ev, 4, 20 * SECOND), 1);
    CHECK_EQ(ev[0].events, OS_POLL_HUP);
    os_poller_remove(p, s[0]);
    CHECK_EQ(os_poller_wait(p, ev, 4, 0), 0);
    os_poller_remove(p, s[0]);
    os_sock_close(s[0], false);
    os_poller_destroy(p);
}

static void poller_misuse_is_a_status(void) {
    struct os_poller *p = new_poller();
    os_sock s[2];
    make_pair(4, s);
    CHECK_EQ(os_poller_modify(p, s[0], 1, OS_POLL_IN), SN_E_NOT_FOUND);
    CHECK_EQ(os_poller_add(p, s[0], OS_POLL_KEY_RESERVED, OS_POLL_IN), SN_E_PARAM);
    CHECK_EQ(os_poller_add(p, s[0], 1, OS_POLL_IN), SN_OK);
    CHECK_EQ(os_poller_add(p, s[0], 1, OS_POLL_IN), SN_E_BUSY);
    CHECK_EQ(os_poller_modify(p, s[0], OS_POLL_KEY_RESERVED, OS_POLL_IN), SN_E_PARAM);
    CHECK_EQ(os_poller_add(p, OS_SOCK_NONE, 1, OS_POLL_IN), SN_E_HANDLE);
    CHECK_EQ(os_poller_add(p, (os_sock)0x7ffffff0, 1, OS_POLL_IN), SN_E_HANDLE);
    close_pair(s);
    os_poller_destroy(p);
}

static void poller_sees_connect_accept_and_refusal(void) {
    struct os_poller *p = new_poller();
    struct os_addr at;
    struct os_poll_event ev[4];
    os_sock l = new_listener(4, OS_BIND_UNIQUE, &at), s = new_sock(4), a;
    CHECK_EQ(os_poller_add(p, l, 1, OS_POLL_IN), SN_OK);
    sn_status st = os_sock_connect(s, &at);
    CHECK(st == SN_OK || st == SN_PENDING);
    CHECK_EQ(os_poller_add(p, s, 2, OS_POLL_OUT), SN_OK);
    bool in = false, out = false;
    for (int i = 0; i < 1000 && !(in && out); i++) {
        size_t n = os_poller_wait(p, ev, 4, 20 * SECOND);
        CHECK(n != 0);
        for (size_t k = 0; k < n; k++) {
            if (ev[k].key == 1) in = ev[k].events == OS_POLL_IN;
            if (ev[k].key == 2) out = ev[k].events == OS_POLL_OUT;
        }
    }
    CHECK(in && out);
    CHECK_EQ(os_sock_connect_result(s), SN_OK);
    CHECK_EQ(os_sock_accept(l, &a, NULL), SN_OK);
    os_poller_remove(p, s);
    os_poller_remove(p, l);
    os_sock_close(s, false);
    os_sock_close(a, false);
    os_sock_close(l, false);
    s = new_sock(4);
    st = os_sock_connect(s, &at);
    if (st == SN_PENDING) {
        CHECK_EQ(os_poller_add(p, s, 3, OS_POLL_OUT), SN_OK);
        CHECK_EQ(os_poller_wait(p, ev, 4, 20 * SECOND), 1);
        CHECK(ev[0].events & OS_POLL_HUP);
        st = os_sock_connect_result(s);
        os_poller_remove(p, s);
    }
    CHECK_EQ(st, SN_E_REFUSED);
    os_sock_close(s, false);
    os_poller_destroy(p);
}

static void many_ready_sockets_all_come_in_small_bites(void) {
    enum { COUNT = 100 };
    struct os_poller *p = new_poller();
    os_sock s[COUNT][2];
    bool seen[COUNT] = { false };
    for (int i = 0; i < COUNT; i++) {
        make_pair(4, s[i]);
        CHECK_EQ(os_poller_add(p, s[i][0], (uint64_t)i, OS_POLL_IN), SN_OK);
        put_byte(s[i][1]);
    }
    os_poller_wake(p); /* must neither take a place nor be taken by polls */
    struct os_poll_event ev[COUNT];
    size_t total = 0;
    uint64_t deadline = os_now_ns() + 20 * SECOND;
    for (size_t max = 1; total < COUNT; max = max * 2 < COUNT ? max * 2 : COUNT) {
        size_t n = os_poller_wait(p, ev, max, 0);
        CHECK(n <= max);
        CHECK(os_now_ns() < deadline);
        for (size_t i = 0; i < n; i++) {
            CHECK(ev[i].key < COUNT);
            CHECK(!seen[ev[i].key]);
            seen[ev[i].key] = true;
            take_byte(s[ev[i].key][0]);
            total++;
        }
    }
    CHECK_EQ(os_poller_wait(p, ev, COUNT, 20 * SECOND), 0); /* the wake */
    for (int i = 0; i < COUNT; i++) {
        os_poller_remove(p, s[i][0]);
        close_pair(s[i]);
    }
    os_poller_destroy(p);
}

static void wait_time_out_is_not_early(void) {
    struct os_poller *p = new_poller();
    struct os_poll_event ev[1];
    static const uint64_t times[] = { 1, 300 * OS_NS_PER_US, 7 * OS_NS_PER_MS + 1 };
    for (size_t i = 0; i < 3; i++) {
        uint64_t start = os_now_ns();
        CHECK_EQ(os_poller_wait(p, ev, 1, times[i]), 0);
        CHECK(os_now_ns() - start >= times[i]);
    }
    os_poller_destroy(p);
}

static void wake_before_the_wait_is_kept_through_polls(void) {
    struct os_poller *p = new_poller();
    struct os_poll_event ev[1];
    for (int i = 0; i < 3; i++)
        os_poller_wake(p);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(os_poller_wait(p, ev, 1, 0), 0);
    uint64_t start = os_now_ns();
    CHECK_EQ(os_poller_wait(p, ev, 1, 60 * SECOND), 0);
    CHECK(os_now_ns() - start < 30 * SECOND);
    start = os_now_ns();
    CHECK_EQ(os_poller_wait(p, ev, 1, 5 * OS_NS_PER_MS), 0);
    CHECK(os_now_ns() - start >= 5 * OS_NS_PER_MS);
    os_poller_destroy(p);
}

struct team {
    struct os_poller *poller;
    os_atomic_u32 tickets, taken, stop;
};

static bool take_ticket(struct team *team) {
    uint32_t n = os_u32_load_acquire(&team->tickets);
    while (n != 0)
        if (os_u32_cas_acq_rel(&team->tickets, &n, n - 1)) return true;
    return false;
}

static void serve_team(void *arg) {
    struct team *team = arg;
    struct os_poll_event ev[1];
    while (!os_u32_load_acquire(&team->stop)) {
        while (take_ticket(team)) {
            os_u32_fetch_add_acq_rel(&team->taken, 1);
            os_wake_all(&team->taken);
        }
        (void)os_poller_wait(team->poller, ev, 1, OS_FOREVER);
    }
    os_poller_wake(team->poller); /* the next one */
}

static void wake_with_several_waiters_somebody_always_comes(void) {
    struct team team = { .poller = new_poller() };
    os_thread t[3];
    for (int i = 0; i < 3; i++)
        CHECK_EQ(os_thread_start(&t[i], "team", serve_team, &team), SN_OK);
    for (uint32_t i = 1; i <= 1000; i++) {
        os_u32_fetch_add_acq_rel(&team.tickets, 1);
        os_poller_wake(team.poller);
        uint64_t deadline = os_now_ns() + 20 * SECOND;
        uint32_t taken;
        while ((taken = os_u32_load_acquire(&team.taken)) < i)
            if (!os_wait_on(&team.taken, taken, deadline)) FAIL("wake %u was lost", i);
    }
    os_u32_store_release(&team.stop, 1);
    os_poller_wake(team.poller);
    for (int i = 0; i < 3; i++)
        os_thread_join(t[i]);
    os_poller_destroy(team.poller);
}

/* A thread that polls takes an event, leaves part of it, and does not come back; one that sleeps
 * must be told. */
struct relay {
    struct os_poller *poller;
    os_atomic_u32 asleep, told;
};

static void sleep_for_event(void *arg) {
    struct relay *r = arg;
    struct os_poll_event ev[1];
    os_u32_store_release(&r->asleep, 1);
    os_wake_all(&r->asleep);
    if (os_poller_wait(r->poller, ev, 1, 20 * SECOND) == 1) os_u32_store_release(&r->told, 1);
}

static void event_taken_by_a_poll_still_reaches_the_sleeper(void) {
    for (int round = 0; round < 50; round++) {
        struct relay r = { .poller = new_poller() };
        struct os_poll_event ev[1];
        os_sock s[2];
        os_thread t;
        make_pair(4, s);
        CHECK_EQ(os_poller_add(r.poller, s[0], 1, OS_POLL_IN), SN_OK);
        CHECK_EQ(os_thread_start(&t, "sleeper", sleep_for_event, &r), SN_OK);
        while (!os_u32_load_acquire(&r.asleep))
            os_wait_on(&r.asleep, 0, OS_FOREVER);
        put_byte(s[1]);
        (void)os_poller_wait(r.poller, ev, 1, 0); /* may or may not be first */
        os_thread_join(t);
        CHECK_EQ(os_u32_load_acquire(&r.told), 1);
        os_poller_remove(r.poller, s[0]);
        close_pair(s);
        os_poller_destroy(r.poller);
    }
}

static void create_and_destroy_leave_no_handle(void) {
    DWORD before, after;
    os_sock s[2];
    struct os_poll_event ev[1];
    for (int round = 0; round < 2; round++) {
        CHECK(GetProcessHandleCount(GetCurrentProcess(), &before));
        for (int i = 0; i < 20; i++) {
            struct os_poller *p = new_poller();
            make_pair(4, s);
            CHECK_EQ(os_poller_add(p, s[0], 1, OS_POLL_IN), SN_OK);
            CHECK_EQ(os_poller_wait(p, ev, 1, 0), 0);
            close_pair(s);
            os_poller_destroy(p);
        }
        CHECK(GetProcessHandleCount(GetCurrentProcess(), &after));
    }
    CHECK_EQ(after, before); /* the first round may leave what is made once */
}

/* ---- shared memory, other processes ---- */

static void shm_is_seen_through_a_second_mapping(void) {
    struct os_shm a, b;
    HANDLE dup;
    CHECK_EQ(os_shm_create(0, &a), SN_E_PARAM);
    CHECK_EQ(os_shm_create(10000, &a), SN_OK);
    CHECK(DuplicateHandle(GetCurrentProcess(), (HANDLE)a.handle, GetCurrentProcess(), &dup, 0,
                          FALSE, DUPLICATE_SAME_ACCESS));
    CHECK_EQ(os_shm_open((os_handle)dup, 10000, &b), SN_OK);
    CHECK(a.base != b.base);
    memcpy((char *)a.base + 9990, "hello", 5);
    CHECK_BYTES((char *)b.base + 9990, "hello", 5);
    CHECK(DuplicateHandle(GetCurrentProcess(), (HANDLE)a.handle, GetCurrentProcess(), &dup, 0,
                          FALSE, DUPLICATE_SAME_ACCESS));
    os_shm_close(&a);
    CHECK_BYTES((char *)b.base + 9990, "hello", 5);
    CHECK_EQ(os_shm_open((os_handle)dup, 100000, &a), SN_E_WIRE);
    os_shm_close(&b);
    os_shm_close(&b);
}

static void shm_that_is_reserved_only_is_refused(void) {
    struct os_shm shm;
    HANDLE h = CreateFileMappingW(INVALID_HANDLE_VALUE, NULL, PAGE_READWRITE | SEC_RESERVE, 0,
                                  65536, NULL);
    CHECK(h != NULL);
    CHECK_EQ(os_shm_open((os_handle)h, 65536, &shm), SN_E_WIRE);
}

static void peer_copy_from_and_to_this_process(void) {
    struct os_peer peer;
    char from[32] = "the quick brown fox", to[32] = { 0 };
    size_t done;
    CHECK_EQ(os_peer_open(0, &peer), SN_E_NOT_FOUND);
    CHECK_EQ(os_peer_open(os_process_id(), &peer), SN_OK);
    CHECK(os_peer_alive(&peer));
    struct os_iov local[2] = { { to, 4 }, { to + 4, 28 } };
    struct os_peer_iov remote[2] = { { (uintptr_t)from, 10 }, { (uintptr_t)from + 10, 22 } };
    CHECK_EQ(os_peer_readv(&peer, local, 2, remote, 2, &done), SN_OK);
    CHECK_EQ(done, 32);
    CHECK_STR(to, from);
    to[0] = 'T';
    CHECK_EQ(os_peer_writev(&peer, local, 2, remote, 2, &done), SN_OK);
    CHECK_EQ(from[0], 'T');
    remote[0].addr = 16;
    CHECK_EQ(os_peer_readv(&peer, local, 2, remote, 2, &done), SN_E_FAULT);
    os_peer_close(&peer);
    os_peer_close(&peer);
}

/* Not as a debugger would: neither what the process may not write, nor with its rights changed.
 * Wine writes whatever is there. */
static void peer_copy_keeps_to_the_rights_of_pages(void) {
    static const DWORD rights[] = { PAGE_READONLY, PAGE_EXECUTE_READ, PAGE_READWRITE };
    struct os_peer peer;
    char *page = os_pages_alloc(4096), word[8] = "changed";
    HANDLE section = CreateFileMappingW(INVALID_HANDLE_VALUE, NULL, PAGE_READWRITE, 0, 4096, NULL);
    char *view = MapViewOfFile(section, FILE_MAP_WRITE, 0, 0, 0);
    size_t done;
    CHECK(page && view);
    CHECK_EQ(os_peer_open(os_process_id(), &peer), SN_OK);
    struct os_iov local = { word, sizeof word };
    struct os_peer_iov remote = { (uintptr_t)page, sizeof word };
    for (size_t i = 0; i < SN_ARRAY_LEN(rights); i++) {
        DWORD old;
        MEMORY_BASIC_INFORMATION m;
        bool may = rights[i] == PAGE_READWRITE || is_wine();
        sn_status expected = may ? SN_OK : SN_E_FAULT;
        CHECK(VirtualProtect(page, 4096, rights[i], &old));
        CHECK_EQ(os_peer_writev(&peer, &local, 1, &remote, 1, &done), expected);
        CHECK_STR(page, may ? "changed" : "");
        CHECK(VirtualQuery(page, &m, sizeof m) != 0);
        CHECK_EQ(m.Protect, rights[i]);
    }
    remote.addr = (uintptr_t)view;
    CHECK_EQ(os_peer_writev(&peer, &local, 1, &remote, 1, &done), SN_OK);
    CHECK_STR(view, "changed");
    os_peer_close(&peer);
    UnmapViewOfFile(view);
    CloseHandle(section);
    os_pages_free(page, 4096);
}

/* ---- local sockets ---- */

/* A name that nobody else has. */
static const char *fresh_name(void) {
    static char name[64];
    uint64_t random;
    os_random_bytes(&random, sizeof random);
    snprintf(name, sizeof name, "softnd-test-%u-%016llx", os_process_id(),
             (unsigned long long)random);
    return name;
}

static void make_local_pair(os_sock s[2]) {
    os_sock listener;
    const char *name = fresh_name();
    CHECK_EQ(os_local_listen(name, 0, &listener), SN_OK);
    CHECK_EQ(os_local_connect(name, &s[0]), SN_OK);
    CHECK_EQ(os_local_accept(listener, &s[1]), SN_OK);
    os_sock_close(listener, false);
}

static void local_name_is_taken_until_closed(void) {
    os_sock a, b, c, d;
    char name[OS_LOCAL_NAME_MAX + 2];
    snprintf(name, sizeof name, "%s", fresh_name());
    CHECK_EQ(os_local_connect(name, &c), SN_E_REFUSED);
    CHECK_EQ(os_local_listen(name, 0, &a), SN_OK);
    CHECK_EQ(os_local_listen(name, 0, &b), SN_E_ADDR_IN_USE);
    CHECK_EQ(b, OS_SOCK_NONE);
    CHECK_EQ(os_local_connect(name, &c), SN_OK);
    CHECK_EQ(os_local_accept(a, &d), SN_OK);
    CHECK_EQ(os_local_accept(a, &b), SN_E_AGAIN);
    CHECK_EQ(os_local_accept(c, &b), SN_E_STATE);
    os_sock_close(a, false);
    /* Its connections live, and are no listener. */
    CHECK_EQ(os_local_connect(name, &b), SN_E_REFUSED);
    CHECK_EQ(os_local_listen(name, 0, &a), SN_OK);
    CHECK_EQ(os_local_connect(name, &b), SN_OK);
    os_sock_close(a, false);
    os_sock_close(b, false);
    os_sock_close(c, false);
    os_sock_close(d, false);
    memset(name, 'n', sizeof name);
    name[OS_LOCAL_NAME_MAX + 1] = 0;
    CHECK_EQ(os_local_listen(name, 0, &a), SN_E_PARAM);
    CHECK_EQ(os_local_connect("", &a), SN_E_PARAM);
}

static void local_queue_that_is_full_says_again(void) {
    os_sock listener, s[64], t;
    const char *name = fresh_name();
    sn_status st = SN_OK;
    int n = 0;
    CHECK_EQ(os_local_listen(name, 3, &listener), SN_OK);
    while (n < 64 && (st = os_local_connect(name, &s[n])) == SN_OK)
        n++;
    CHECK_EQ(st, SN_E_AGAIN);
    CHECK_EQ(n, 3);
    CHECK_EQ(os_local_accept(listener, &t), SN_OK);
    os_sock_close(t, false);
    CHECK_EQ(os_local_connect(name, &t), SN_OK);
    os_sock_close(t, false);
    while (n-- > 0)
        os_sock_close(s[n], false);
    os_sock_close(listener, false);
}

static void local_peer_is_this_process_and_user(void) {
    os_sock s[2];
    make_local_pair(s);
    for (int i = 0; i < 2; i++) {
        struct os_local_peer p;
        CHECK_EQ(os_local_peer_info(s[i], &p), SN_OK);
        CHECK_EQ(p.pid, os_process_id());
        CHECK(p.same_user);
    }
    close_pair(s);
}

static void local_messages_keep_their_bounds(void) {
    static char big[OS_LOCAL_MSG_MAX + 1], in[OS_LOCAL_MSG_MAX];
    os_sock s[2];
    size_t got;
    make_local_pair(s);
    CHECK_EQ(os_local_recv(s[1], in, sizeof in, &got, NULL, NULL), SN_E_AGAIN);
    CHECK_EQ(os_local_send(s[0], "one", 3, NULL, 0), SN_OK);
    CHECK_EQ(os_local_send(s[0], "three", 5, NULL, 0), SN_OK);
    CHECK_EQ(os_local_send(s[0], "too long", 8, NULL, 0), SN_OK);
    CHECK_EQ(os_local_send(s[0], "next", 4, NULL, 0), SN_OK);
    CHECK_EQ(os_local_recv(s[1], in, sizeof in, &got, NULL, NULL), SN_OK);
    CHECK_EQ(got, 3);
    CHECK_BYTES(in, "one", 3);
    CHECK_EQ(os_local_recv(s[1], in, 5, &got, NULL, NULL), SN_OK);
    CHECK_EQ(got, 5);
    CHECK_EQ(os_local_recv(s[1], in, 5, &got, NULL, NULL), SN_E_WIRE);
    CHECK_EQ(os_local_recv(s[1], in, 5, &got, NULL, NULL), SN_OK);
    CHECK_BYTES(in, "next", 4);
    memset(big, 'b', sizeof big);
    CHECK_EQ(os_local_send(s[1], big, OS_LOCAL_MSG_MAX, NULL, 0), SN_OK);
    CHECK_EQ(os_local_recv(s[0], in, sizeof in, &got, NULL, NULL), SN_OK);
    CHECK_EQ(got, OS_LOCAL_MSG_MAX);
    CHECK_BYTES(in, big, got);
    CHECK_EQ(os_local_send(s[1], big, OS_LOCAL_MSG_MAX + 1, NULL, 0), SN_E_TOO_LONG);
    CHECK_EQ(os_local_send(s[1], big, 0, NULL, 0), SN_E_PARAM);
    CHECK_EQ(os_local_recv(s[1], big, 0, &got, NULL, NULL), SN_E_PARAM);
    CHECK_EQ(os_local_send(s[1], (void *)16, 4, NULL, 0), SN_E_FAULT);
    close_pair(s);
}

static void local_queue_without_room_loses_nothing(void) {
    static char msg[OS_LOCAL_MSG_MAX];
    os_sock s[2];
    uint32_t sent = 0, seen = 0;
    sn_status st;
    size_t got;
    make_local_pair(s);
    for (;; sent++) {
        memcpy(msg, &sent, 4);
        if (sent == 10000 || (st = os_local_send(s[0], msg, sizeof msg, NULL, 0)) != SN_OK) break;
    }
    CHECK_EQ(st, SN_E_AGAIN);
    CHECK(sent > 4);
    while (os_local_recv(s[1], msg, sizeof msg, &got, NULL, NULL) == SN_OK) {
        CHECK_EQ(got, sizeof msg);
        CHECK(memcmp(msg, &seen, 4) == 0);
        seen++;
    }
    CHECK_EQ(seen, sent);
    CHECK_EQ(os_local_send(s[0], msg, 1, NULL, 0), SN_OK);
    /* One that waits for room while its socket is closed. */
    while (os_local_send(s[0], msg, sizeof msg, NULL, 0) == SN_OK)
        ;
    close_pair(s);
}

/* A connection whose other end is a bare pipe; it is watched. */
struct bare {
    struct os_poller *poller;
    os_sock listener, sock;
    HANDLE other;
};

static struct bare bare_up(void) {
    char path[128];
    const char *name = fresh_name();
    struct bare b = { .poller = new_poller() };
    CHECK_EQ(os_local_listen(name, 0, &b.listener), SN_OK);
    snprintf(path, sizeof path, "\\\\.\\pipe\\%s", name);
    b.other = CreateFileA(path, GENERIC_READ | GENERIC_WRITE, 0, NULL, OPEN_EXISTING, 0, NULL);
    CHECK(b.other != INVALID_HANDLE_VALUE);
    CHECK_EQ(os_local_accept(b.listener, &b.sock), SN_OK);
    CHECK_EQ(os_poller_add(b.poller, b.sock, 1, OS_POLL_IN), SN_OK);
    return b;
}

static void bare_down(struct bare *b) {
    CloseHandle(b->other);
    os_poller_destroy(b->poller);
    os_sock_close(b->sock, false);
    os_sock_close(b->listener, false);
}

/* What the same user writes into the pipe beside us. */
static void local_peer_that_writes_nonsense_is_gone(void) {
    static const struct {
        const char *bytes;
        size_t len;
    } bad[] = {
        { "NSnonsense that is long enough for a head", 41 },
        { "\x4E\x53\x09\x00\x01\x00\x00\x00x", 9 }, /* nine handles */
        { "\x4E\x53\x00\x00\xFF\xFF\xFF\xFFx", 9 },
        { "\x4E\x53\x00\x00\x00\x00\x00\x00x", 9 }, /* no bytes */
    };
    char in[64];
    size_t got;
    DWORD n;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct bare b = bare_up();
        struct os_poll_event ev[1];
        /* A part is no message, and does not keep the poller busy. */
        CHECK(WriteFile(b.other, "\x4E\x53", 2, &n, NULL));
        CHECK_EQ(os_poller_wait(b.poller, ev, 1, 20 * SECOND), 1);
        CHECK_EQ(os_local_recv(b.sock, in, sizeof in, &got, NULL, NULL), SN_E_AGAIN);
        CHECK_EQ(os_poller_wait(b.poller, ev, 1, 5 * OS_NS_PER_MS), 0);
        CHECK(WriteFile(b.other, bad[i].bytes + 2, (DWORD)bad[i].len - 2, &n, NULL));
        CHECK_EQ(os_local_recv(b.sock, in, sizeof in, &got, NULL, NULL), SN_E_PEER_GONE);
        bare_down(&b);
    }
}

/* A report may be older than the last look, and a writer may write no bytes. */
static void local_report_with_nothing_behind_it_is_again(void) {
    char in[8];
    size_t got;
    DWORD n;
    struct bare b = bare_up();
    struct os_poll_event ev[1];
    for (int round = 0; round < 3; round++) {
        CHECK(WriteFile(b.other, "\x4E\x53\x00\x00\x01\x00\x00\x00x", 9, &n, NULL));
        if (round != 0) CHECK_EQ(os_poller_wait(b.poller, ev, 1, 20 * SECOND), 1);
        CHECK_EQ(os_local_recv(b.sock, in, sizeof in, &got, NULL, NULL), SN_OK);
        CHECK_EQ(in[0], 'x');
        if (round == 0) CHECK_EQ(os_poller_wait(b.poller, ev, 1, 20 * SECOND), 1);
        CHECK_EQ(os_local_recv(b.sock, in, sizeof in, &got, NULL, NULL), SN_E_AGAIN);
        CHECK(WriteFile(b.other, "", 0, &n, NULL));
        CHECK(os_poller_wait(b.poller, ev, 1, 0) <= 1);
        CHECK_EQ(os_local_recv(b.sock, in, sizeof in, &got, NULL, NULL), SN_E_AGAIN);
    }
    bare_down(&b);
}

static void local_close_gives_the_rest_then_eof(void) {
    os_sock s[2];
    char in[8];
    size_t got;
    struct os_poller *p = new_poller();
    struct os_poll_event ev[2];
    make_local_pair(s);
    CHECK_EQ(os_poller_add(p, s[1], 7, OS_POLL_IN), SN_OK);
    CHECK_EQ(os_poller_add(p, s[1], 7, OS_POLL_IN), SN_E_BUSY);
    CHECK_EQ(os_poller_wait(p, ev, 2, 0), 0);
    CHECK_EQ(os_local_send(s[0], "last", 4, NULL, 0), SN_OK);
    os_sock_close(s[0], false);
    for (int i = 0; i < 3; i++) { /* level triggered */
        CHECK_EQ(os_poller_wait(p, ev, 2, 20 * SECOND), 1);
        CHECK_EQ(ev[0].key, 7);
        CHECK(ev[0].events & OS_POLL_IN);
    }
    CHECK_EQ(os_local_recv(s[1], in, sizeof in, &got, NULL, NULL), SN_OK);
    CHECK_EQ(got, 4);
    do /* a report from before that may still be under way */
        CHECK_EQ(os_poller_wait(p, ev, 2, 20 * SECOND), 1);
    while (!(ev[0].events & OS_POLL_HUP));
    CHECK_EQ(os_local_recv(s[1], in, sizeof in, &got, NULL, NULL), SN_E_EOF);
    CHECK_EQ(os_local_send(s[1], "x", 1, NULL, 0), SN_E_PEER_GONE);
    os_poller_remove(p, s[1]);
    CHECK_EQ(os_poller_wait(p, ev, 2, 0), 0);
    os_sock_close(s[1], false);
    os_poller_destroy(p);
}

static void local_handle_arrives_usable(void) {
    os_sock s[2];
    struct os_shm a, b;
    char in[8];
    size_t got, count;
    os_handle h[OS_LOCAL_HANDLES_MAX], out[OS_LOCAL_HANDLES_MAX + 1];
    make_local_pair(s);
    CHECK_EQ(os_shm_create(5000, &a), SN_OK);
    for (int i = 0; i <= OS_LOCAL_HANDLES_MAX; i++)
        out[i] = a.handle;
    CHECK_EQ(os_local_send(s[0], "map", 3, out, OS_LOCAL_HANDLES_MAX + 1), SN_E_PARAM);
    CHECK_EQ(os_local_send(s[0], "map", 3, out, OS_LOCAL_HANDLES_MAX), SN_OK);
    memcpy(a.base, "hello", 5);
    os_shm_close(&a); /* they are the receiver's to take all the same */
    count = OS_LOCAL_HANDLES_MAX;
    CHECK_EQ(os_local_recv(s[1], in, sizeof in, &got, h, &count), SN_OK);
    CHECK_EQ(count, OS_LOCAL_HANDLES_MAX);
    CHECK_EQ(os_shm_open(h[0], 5000, &b), SN_OK);
    CHECK_BYTES(b.base, "hello", 5);
    for (int i = 1; i < OS_LOCAL_HANDLES_MAX; i++)
        os_handle_close(h[i]);
    os_handle bad = 0x7ffffff0;
    CHECK_EQ(os_local_send(s[0], "x", 1, &bad, 1), SN_E_HANDLE);
    CHECK_EQ(os_local_send(s[0], "two", 3, &b.handle, 1), SN_OK);
    count = 0;
    CHECK_EQ(os_local_recv(s[1], in, sizeof in, &got, h, &count), SN_E_WIRE);
    CHECK_EQ(count, 0);
    /* Whose sender is gone may be somebody else's by now. */
    CHECK_EQ(os_local_send(s[0], "map", 3, &b.handle, 1), SN_OK);
    os_sock_close(s[0], false);
    count = 1;
    CHECK_EQ(os_local_recv(s[1], in, sizeof in, &got, h, &count), SN_E_PEER_GONE);
    CHECK_EQ(count, 0);
    os_shm_close(&b);
    os_sock_close(s[1], false);
}

/* Many connect at once, and a thread that polls for them accepts all. */
static void dial_five(void *arg) {
    for (int i = 0; i < 5; i++) {
        os_sock s;
        sn_status st;
        while ((st = os_local_connect(arg, &s)) == SN_E_AGAIN)
            os_thread_yield();
        CHECK_EQ(st, SN_OK);
        CHECK_EQ(os_local_send(s, "hello", 5, NULL, 0), SN_OK);
        os_sock_close(s, false);
    }
}

static void local_listener_is_reported_for_each_that_connects(void) {
    enum { DIALLERS = 4, ALL = 5 * DIALLERS };
    struct os_poller *p = new_poller();
    struct os_poll_event ev[8];
    os_sock listener, s[ALL];
    os_thread t[DIALLERS];
    const char *name = fresh_name();
    uint32_t accepted = 0, heard = 0;
    CHECK_EQ(os_local_listen(name, 0, &listener), SN_OK);
    CHECK_EQ(os_poller_add(p, listener, 1000, OS_POLL_IN), SN_OK);
    for (int i = 0; i < DIALLERS; i++)
        CHECK_EQ(os_thread_start(&t[i], "dialler", dial_five, (void *)(uintptr_t)name), SN_OK);
    uint64_t deadline = os_now_ns() + 20 * SECOND;
    while (heard < ALL) {
        CHECK(os_now_ns() < deadline);
        size_t n = os_poller_wait(p, ev, 8, 20 * SECOND);
        for (size_t i = 0; i < n; i++) {
            char in[8];
            size_t got;
            if (ev[i].key == 1000) {
                /* One at a time: level triggered, so the others are told again. */
                if (accepted == ALL || os_local_accept(listener, &s[accepted]) != SN_OK) continue;
                CHECK_EQ(os_poller_add(p, s[accepted], accepted, OS_POLL_IN), SN_OK);
                accepted++;
            } else if (os_local_recv(s[ev[i].key], in, sizeof in, &got, NULL, NULL) == SN_OK) {
                CHECK_EQ(got, 5);
                heard++;
            }
        }
    }
    for (int i = 0; i < DIALLERS; i++)
        os_thread_join(t[i]);
    CHECK_EQ(accepted, ALL);
    os_poller_remove(p, listener);
    os_sock_close(listener, false);
    while (accepted-- != 0) {
        os_poller_remove(p, s[accepted]);
        os_sock_close(s[accepted], false);
    }
    os_poller_destroy(p);
}

static void local_sockets_leave_no_handle(void) {
    DWORD before, after;
    for (int round = 0; round < 2; round++) {
        CHECK(GetProcessHandleCount(GetCurrentProcess(), &before));
        local_close_gives_the_rest_then_eof();
        local_handle_arrives_usable();
        local_listener_is_reported_for_each_that_connects();
        CHECK(GetProcessHandleCount(GetCurrentProcess(), &after));
    }
    CHECK_EQ(after, before); /* the first round may leave what is made once */
}

/* ---- another process ---- */

#define CHILD_NAME "SOFTND_TEST_LOCAL_NAME"

static const volatile char child_memory[] = "what the child has";

/* Started with the name of a listener: gives it a handle and says where its memory is, then waits
 * to be killed. Exit codes other than that are failures. */
__attribute__((constructor)) static void be_the_child(void) {
    char name[128];
    os_sock s;
    struct os_shm shm;
    DWORD n = GetEnvironmentVariableA(CHILD_NAME, name, sizeof name);
    if (n == 0 || n >= sizeof name) return;
    uint64_t where = (uint64_t)(uintptr_t)child_memory;
    struct os_local_peer who;
    if (os_local_connect(name, &s) != SN_OK) ExitProcess(41);
    if (os_local_peer_info(s, &who) != SN_OK || !who.same_user) ExitProcess(42);
    if (os_shm_create(8192, &shm) != SN_OK) ExitProcess(43);
    memcpy(shm.base, "shared", 7);
    if (os_local_send(s, &where, sizeof where, &shm.handle, 1) != SN_OK) ExitProcess(44);
    Sleep(60000); /* not a wait for anything: it is killed */
    ExitProcess(45);
}

static void local_peer_process_that_is_killed_is_seen(void) {
    char path[MAX_PATH], command[MAX_PATH + 2];
    STARTUPINFOA start = { .cb = sizeof start };
    PROCESS_INFORMATION child;
    struct os_poller *p = new_poller();
    struct os_poll_event ev[1];
    os_sock listener, s;
    const char *name = fresh_name();
    CHECK_EQ(os_local_listen(name, 0, &listener), SN_OK);
    CHECK_EQ(os_poller_add(p, listener, 1, OS_POLL_IN), SN_OK);
    CHECK(GetModuleFileNameA(NULL, path, sizeof path) < sizeof path);
    snprintf(command, sizeof command, "\"%s\"", path);
    CHECK(SetEnvironmentVariableA(CHILD_NAME, name));
    BOOL started = CreateProcessA(path, command, NULL, NULL, FALSE, 0, NULL, NULL, &start, &child);
    CHECK(SetEnvironmentVariableA(CHILD_NAME, NULL));
    CHECK(started);
    CHECK_EQ(os_poller_wait(p, ev, 1, 60 * SECOND), 1);
    CHECK_EQ(os_local_accept(listener, &s), SN_OK);
    os_poller_remove(p, listener);
    struct os_local_peer who;
    CHECK_EQ(os_local_peer_info(s, &who), SN_OK);
    CHECK_EQ(who.pid, child.dwProcessId);
    CHECK(who.same_user);
    CHECK_EQ(os_poller_add(p, s, 2, OS_POLL_IN), SN_OK);
    CHECK_EQ(os_poller_wait(p, ev, 1, 60 * SECOND), 1);
    uint64_t where;
    size_t got, count = 1, done;
    os_handle h;
    struct os_shm shm;
    CHECK_EQ(os_local_recv(s, &where, sizeof where, &got, &h, &count), SN_OK);
    CHECK_EQ(count, 1);
    CHECK_EQ(os_shm_open(h, 8192, &shm), SN_OK);
    CHECK_STR((char *)shm.base, "shared");
    struct os_peer peer;
    char copy[sizeof child_memory];
    struct os_iov here = { copy, sizeof copy };
    struct os_peer_iov there = { where, sizeof copy };
    CHECK_EQ(os_peer_open(who.pid, &peer), SN_OK);
    CHECK_EQ(os_peer_readv(&peer, &here, 1, &there, 1, &done), SN_OK);
    CHECK_STR(copy, (const char *)child_memory);
    CHECK(TerminateProcess(child.hProcess, 9));
    do
        CHECK_EQ(os_poller_wait(p, ev, 1, 20 * SECOND), 1);
    while (!(ev[0].events & OS_POLL_HUP));
    CHECK_EQ(os_local_recv(s, &where, sizeof where, &got, NULL, NULL), SN_E_EOF);
    CHECK_EQ(WaitForSingleObject(child.hProcess, 20000), WAIT_OBJECT_0);
    CHECK(!os_peer_alive(&peer));
    CHECK_EQ(os_peer_readv(&peer, &here, 1, &there, 1, &done), SN_E_PEER_GONE);
    CHECK_STR((char *)shm.base, "shared");
    os_peer_close(&peer);
    os_shm_close(&shm);
    CloseHandle(child.hProcess);
    CloseHandle(child.hThread);
    os_poller_destroy(p);
    os_sock_close(s, false);
    os_sock_close(listener, false);
}

TEST_MAIN(
    TEST(lock_four_threads_lose_no_count), TEST(lock_try_of_a_held_one_fails),
    TEST(wait_on_deadline_passes_false_and_not_early), TEST(wait_word_ping_pong_loses_no_wake),
    TEST(once_raced_by_four_runs_once), TEST(clock_goes_forward_and_sleep_is_not_short),
    TEST(module_path_names_this_program), TEST(probe_sees_rights_and_holes),
    TEST(guarded_copy_over_a_hole_stops_there), TEST(guarded_call_is_left_at_the_fault),
    TEST(interfaces_include_loopback), TEST(data_in_pieces_arrives_in_order_both_families),
    TEST(read_without_room_is_refused_not_eof), TEST(write_into_full_socket_gives_part_then_again),
    TEST(peer_shutdown_gives_eof_and_reset_gives_peer_gone), TEST(connect_to_nobody_is_refused),
    TEST(unconnected_socket_says_not_connected), TEST(bind_modes_keep_others_out),
    TEST(second_shared_listener_is_in_use), TEST(route_to_loopback_is_loopback),
    TEST(readable_socket_is_reported_until_read), TEST(modify_changes_what_is_reported),
    TEST(poller_misuse_is_a_status), TEST(poller_sees_connect_accept_and_refusal),
    TEST(many_ready_sockets_all_come_in_small_bites), TEST(wait_time_out_is_not_early),
    TEST(wake_before_the_wait_is_kept_through_polls),
    TEST(wake_with_several_waiters_somebody_always_comes),
    TEST(event_taken_by_a_poll_still_reaches_the_sleeper), TEST(create_and_destroy_leave_no_handle),
    TEST(shm_is_seen_through_a_second_mapping), TEST(shm_that_is_reserved_only_is_refused),
    TEST(peer_copy_from_and_to_this_process), TEST(peer_copy_keeps_to_the_rights_of_pages),
    TEST(local_name_is_taken_until_closed), TEST(local_queue_that_is_full_says_again),
    TEST(local_peer_is_this_process_and_user), TEST(local_messages_keep_their_bounds),
    TEST(local_queue_without_room_loses_nothing), TEST(local_peer_that_writes_nonsense_is_gone),
    TEST(local_report_with_nothing_behind_it_is_again), TEST(local_close_gives_the_rest_then_eof),
    TEST(local_handle_arrives_usable), TEST(local_listener_is_reported_for_each_that_connects),
    TEST(local_sockets_leave_no_handle), TEST(local_peer_process_that_is_killed_is_seen))
