/* SPDX-License-Identifier: MIT */
#include "os/io/poller.h"
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "os/prim/atomic.h"
#include "os/prim/clock.h"
#include "os/prim/thread.h"
#include "support/testing.h"

#define SECOND (1000 * OS_NS_PER_MS)

static struct os_poller *new_poller(void) {
    struct os_poller *p;
    CHECK_EQ(os_poller_create(&p), SN_OK);
    return p;
}

/* Any two connected descriptors do. */
static void make_pair(os_sock s[2]) {
    int fd[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd), 0);
    s[0] = fd[0];
    s[1] = fd[1];
}

static void close_pair(os_sock s[2]) {
    os_sock_close(s[0], false);
    os_sock_close(s[1], false);
}

static void put_byte(os_sock s) {
    CHECK_EQ(send((int)s, "x", 1, MSG_NOSIGNAL), 1);
}

static void take_byte(os_sock s) {
    char c;
    CHECK_EQ(recv((int)s, &c, 1, 0), 1);
}

static void readable_socket_is_reported_until_read(void) {
    struct os_poller *p = new_poller();
    os_sock s[2];
    make_pair(s);
    struct os_poll_event ev[4];
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
    close_pair(s);
    os_poller_destroy(p);
    os_poller_destroy(NULL);
}

static void modify_changes_what_is_reported(void) {
    struct os_poller *p = new_poller();
    os_sock s[2];
    make_pair(s);
    struct os_poll_event ev[4];
    CHECK_EQ(os_poller_add(p, s[0], 1, OS_POLL_IN | OS_POLL_OUT), SN_OK);
    CHECK_EQ(os_poller_wait(p, ev, 4, OS_FOREVER), 1);
    CHECK_EQ(ev[0].events, OS_POLL_OUT);
    put_byte(s[1]);
    CHECK_EQ(os_poller_wait(p, ev, 4, 0), 1);
    CHECK_EQ(ev[0].events, OS_POLL_IN | OS_POLL_OUT);
    CHECK_EQ(os_poller_modify(p, s[0], 2, OS_POLL_IN), SN_OK);
    CHECK_EQ(os_poller_wait(p, ev, 4, 0), 1);
    CHECK_EQ(ev[0].key, 2);
    CHECK_EQ(ev[0].events, OS_POLL_IN);
    CHECK_EQ(os_poller_modify(p, s[0], 2, 0), SN_OK);
    CHECK_EQ(os_poller_wait(p, ev, 4, 0), 0);
    /* HUP comes whatever was asked for. */
    os_sock_close(s[1], false);
    CHECK_EQ(os_poller_wait(p, ev, 4, 20 * SECOND), 1);
    CHECK_EQ(ev[0].events, OS_POLL_HUP);
    os_poller_remove(p, s[0]);
    CHECK_EQ(os_poller_wait(p, ev, 4, 0), 0);
    os_poller_remove(p, s[0]);
    os_sock_close(s[0], false);
    os_poller_destroy(p);
}

static void misuse_is_a_status(void) {
    struct os_poller *p = new_poller();
    os_sock s[2];
    make_pair(s);
    CHECK_EQ(os_poller_modify(p, s[0], 1, OS_POLL_IN), SN_E_NOT_FOUND);
    CHECK_EQ(os_poller_add(p, s[0], OS_POLL_KEY_RESERVED, OS_POLL_IN), SN_E_PARAM);
    CHECK_EQ(os_poller_add(p, s[0], 1, OS_POLL_IN), SN_OK);
    CHECK_EQ(os_poller_add(p, s[0], 1, OS_POLL_IN), SN_E_BUSY);
    CHECK_EQ(os_poller_modify(p, s[0], OS_POLL_KEY_RESERVED, OS_POLL_IN), SN_E_PARAM);
    CHECK_EQ(os_poller_add(p, OS_SOCK_NONE, 1, OS_POLL_IN), SN_E_HANDLE);
    close_pair(s);
    os_poller_destroy(p);
}

static void create_out_of_descriptors_says_resources(void) {
    struct rlimit before, none;
    struct os_poller *p = NULL;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    sn_status st = os_poller_create(&p);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    CHECK_EQ(st, SN_E_RESOURCES);
    CHECK(p == NULL);
}

static void many_ready_sockets_all_come_in_small_bites(void) {
    enum { COUNT = 100 };
    struct os_poller *p = new_poller();
    os_sock s[COUNT][2];
    bool seen[COUNT] = { false };
    for (int i = 0; i < COUNT; i++) {
        make_pair(s[i]);
        CHECK_EQ(os_poller_add(p, s[i][0], (uint64_t)i, OS_POLL_IN), SN_OK);
        put_byte(s[i][1]);
    }
    os_poller_wake(p); /* must neither take a place nor be taken by polls */
    struct os_poll_event ev[COUNT];
    size_t total = 0;
    for (size_t max = 1; total < COUNT; max = max * 2 < COUNT ? max * 2 : COUNT) {
        size_t n = os_poller_wait(p, ev, max, 0);
        CHECK(n <= max);
        for (size_t i = 0; i < n; i++) {
            CHECK(ev[i].key < COUNT);
            CHECK(!seen[ev[i].key]);
            seen[ev[i].key] = true;
            take_byte(s[ev[i].key][0]);
            total++;
        }
        if (n == 0) CHECK_EQ(total, COUNT);
    }
    CHECK_EQ(os_poller_wait(p, ev, COUNT, 20 * SECOND), 0); /* the wake */
    for (int i = 0; i < COUNT; i++)
        close_pair(s[i]);
    os_poller_destroy(p);
}

/* ---- time ---- */

static void wait_time_out_is_not_early_and_rounds_up(void) {
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

/* ---- wake ---- */

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
    /* One wait used it up, all three of them: the next waits its time. */
    start = os_now_ns();
    CHECK_EQ(os_poller_wait(p, ev, 1, 5 * OS_NS_PER_MS), 0);
    CHECK(os_now_ns() - start >= 5 * OS_NS_PER_MS);
    os_poller_destroy(p);
}

struct sleeper {
    struct os_poller *poller;
    os_atomic_u32 want, seen, stop;
};

/* Notices each new value of `want`, woken by nothing but the poller. */
static void follow(void *arg) {
    struct sleeper *s = arg;
    struct os_poll_event ev[1];
    while (!os_u32_load_acquire(&s->stop)) {
        uint32_t want = os_u32_load_acquire(&s->want);
        if (want != os_u32_load_relaxed(&s->seen)) {
            os_u32_store_release(&s->seen, want);
            os_wake_all(&s->seen);
        }
        (void)os_poller_wait(s->poller, ev, 1, OS_FOREVER);
    }
}

static void wake_many_times_none_is_lost(void) {
    struct sleeper s = { .poller = new_poller() };
    os_thread t;
    CHECK_EQ(os_thread_start(&t, "sleeper", follow, &s), SN_OK);
    for (uint32_t i = 1; i <= 5000; i++) {
        os_u32_store_release(&s.want, i);
        os_poller_wake(s.poller);
        if (i % 3 == 0) os_poller_wake(s.poller);
        uint64_t deadline = os_now_ns() + 20 * SECOND;
        while (os_u32_load_acquire(&s.seen) != i)
            if (!os_wait_on(&s.seen, i - 1, deadline)) FAIL("wake %u was lost", i);
    }
    os_u32_store_release(&s.stop, 1);
    os_poller_wake(s.poller);
    os_thread_join(t);
    os_poller_destroy(s.poller);
}

/* Three sleepers share a poller; every wake must be followed by somebody. */
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
    for (uint32_t i = 1; i <= 3000; i++) {
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

/* After wakes are over, waits sleep: counts the processor time of a second half of waiting. */
static void wake_over_the_waiter_does_not_spin(void) {
    struct os_poller *p = new_poller();
    struct os_poll_event ev[1];
    os_poller_wake(p);
    uint64_t deadline = os_now_ns() + 100 * OS_NS_PER_MS;
    struct timespec before, after;
    int waits = 0;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
    for (uint64_t now = os_now_ns(); now < deadline; now = os_now_ns()) {
        (void)os_poller_wait(p, ev, 1, deadline - now);
        waits++;
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
    CHECK(waits <= 5);
    int64_t ns = (after.tv_sec - before.tv_sec) * 1000000000ll + after.tv_nsec - before.tv_nsec;
    CHECK(ns < (int64_t)(50 * OS_NS_PER_MS));
    os_poller_destroy(p);
}

TEST_MAIN(TEST(readable_socket_is_reported_until_read), TEST(modify_changes_what_is_reported),
          TEST(misuse_is_a_status), TEST(create_out_of_descriptors_says_resources),
          TEST(many_ready_sockets_all_come_in_small_bites),
          TEST(wait_time_out_is_not_early_and_rounds_up),
          TEST(wake_before_the_wait_is_kept_through_polls), TEST(wake_many_times_none_is_lost),
          TEST(wake_with_several_waiters_somebody_always_comes),
          TEST(wake_over_the_waiter_does_not_spin))
