/* SPDX-License-Identifier: MIT
 * Who makes progress: the engine thread, or an application that polls hard.
 */
#include "transport/engine.h"
#include "os/io/local_sock.h"
#include "os/io/poller.h"
#include "os/prim/clock.h"
#include "os/prim/thread.h"
#include "support/testing.h"

#define LIMIT_NS (20000 * OS_NS_PER_MS)

/* A socket with a byte in it, and who has seen that. */
struct bell {
    struct tp_watch watch;
    os_sock other;
    os_atomic_u32 seen;
};

static void on_ready(struct tp_watch *w, uint32_t events) {
    struct bell *b = SN_CONTAINER(w, struct bell, watch);
    char c;
    size_t got;
    (void)events;
    if (os_local_recv(w->sock, &c, 1, &got, NULL, NULL) == SN_OK) os_u32_store_release(&b->seen, 1);
}

static void on_free(struct tp_watch *w) {
    (void)w;
}

static void bell_up(struct bell *b, struct tp_engine *eng) {
    os_sock listener, sock;
    char name[64];
    uint64_t random;
    os_random_bytes(&random, sizeof random);
    snprintf(name, sizeof name, "softnd-test-%u-%llx", os_process_id(), (unsigned long long)random);
    memset(b, 0, sizeof *b);
    CHECK_EQ(os_local_listen(name, 0, &listener), SN_OK);
    CHECK_EQ(os_local_connect(name, &b->other), SN_OK);
    CHECK_EQ(os_local_accept(listener, &sock), SN_OK);
    os_sock_close(listener, false);
    b->watch = (struct tp_watch){
        .sock = sock, .events = OS_POLL_IN, .on_ready = on_ready, .on_free = on_free
    };
    os_ref_init(&b->watch.refs);
    CHECK_EQ(tp_watch_add(eng, &b->watch), SN_OK);
}

static void bell_ring(struct bell *b) {
    CHECK_EQ(os_local_send(b->other, "x", 1, NULL, 0), SN_OK);
}

static void bell_down(struct bell *b) {
    tp_watch_remove(&b->watch);
    os_sock_close(b->watch.sock, false);
    os_sock_close(b->other, false);
}

static bool is_hot(struct tp_hot *hot) {
    return os_u32_load_relaxed(&hot->epoch) != 0;
}

static void spin_ns(uint64_t ns) {
    uint64_t end = os_now_ns() + ns;
    while (os_now_ns() < end)
        ;
}

/* A busy machine may interrupt us; then the next polls do it. */
static void poll_until_hot(struct tp_engine *eng, struct tp_hot *hot) {
    uint64_t end = os_now_ns() + LIMIT_NS;
    while (!is_hot(hot)) {
        tp_engine_polled(eng, hot, 1);
        CHECK(os_now_ns() < end);
    }
}

static void polls_in_a_row_make_a_queue_hot(void) {
    struct tp_engine *eng;
    struct tp_hot hot = { 0 };
    CHECK_EQ(tp_engine_create(&eng), SN_OK);
    poll_until_hot(eng, &hot);
    tp_engine_cool(eng, &hot);
    CHECK(!is_hot(&hot));
    tp_engine_destroy(eng);
}

/* The engine's thread makes a busy sender slow, which must not keep that thread busy. */
static void results_in_a_row_make_a_queue_hot(void) {
    struct tp_engine *eng;
    struct tp_hot hot = { 0 };
    CHECK_EQ(tp_engine_create(&eng), SN_OK);
    uint64_t end = os_now_ns() + LIMIT_NS;
    while (!is_hot(&hot)) {
        tp_engine_polled_full(eng, &hot, 1);
        spin_ns(20000);
        CHECK(os_now_ns() < end);
    }
    tp_engine_cool(eng, &hot);
    /* Taken and then waited for, one by one. */
    for (int i = 0; i < 500; i++) {
        tp_engine_polled_full(eng, &hot, 1);
        CHECK(!is_hot(&hot));
        tp_engine_cool(eng, &hot);
    }
    tp_engine_destroy(eng);
}

/* Few results, but what was between them was sending. */
static void results_of_long_sends_make_a_queue_hot(void) {
    struct tp_engine *eng;
    struct tp_hot hot = { 0 };
    CHECK_EQ(tp_engine_create(&eng), SN_OK);
    uint64_t end = os_now_ns() + LIMIT_NS;
    while (!is_hot(&hot)) {
        tp_engine_worked(eng, 300000);
        tp_engine_polled_full(eng, &hot, 1);
        CHECK(os_now_ns() < end);
    }
    tp_engine_cool(eng, &hot);
    /* Some sending, and other things for most of the time. */
    for (int i = 0; i < 200; i++) {
        tp_engine_worked(eng, 10000);
        spin_ns(100000);
        tp_engine_polled_full(eng, &hot, 1);
        CHECK(!is_hot(&hot));
    }
    tp_engine_destroy(eng);
}

/* An application that sleeps, is woken, looks once and sleeps again. */
static void polls_with_time_between_leave_it_cold(void) {
    struct tp_engine *eng;
    struct tp_hot hot = { 0 };
    CHECK_EQ(tp_engine_create(&eng), SN_OK);
    for (int i = 0; i < 500; i++) {
        tp_engine_polled(eng, &hot, 1);
        spin_ns(10000);
        CHECK(!is_hot(&hot));
    }
    tp_engine_destroy(eng);
}

/* It receives a long stream: each poll takes a while, and gives no result for long. */
static void polls_that_read_a_stream_make_a_queue_hot(void) {
    struct tp_engine *eng;
    struct tp_hot hot = { 0 };
    CHECK_EQ(tp_engine_create(&eng), SN_OK);
    uint64_t end = os_now_ns() + LIMIT_NS;
    while (!is_hot(&hot)) {
        tp_engine_polled(eng, &hot, 0);
        spin_ns(20000);
        CHECK(os_now_ns() < end);
    }
    tp_engine_cool(eng, &hot);
    /* Reads, and then waits, again and again. */
    for (int i = 0; i < 500; i++) {
        tp_engine_polled(eng, &hot, 0);
        CHECK(!is_hot(&hot));
        tp_engine_cool(eng, &hot);
    }
    tp_engine_destroy(eng);
}

/* A ping-pong that the engine's thread makes so slow that few polls fit between two arrivals. */
static void slow_ping_pong_makes_a_queue_hot(void) {
    struct tp_engine *eng;
    struct tp_hot hot = { 0 };
    CHECK_EQ(tp_engine_create(&eng), SN_OK);
    uint64_t end = os_now_ns() + LIMIT_NS;
    while (!is_hot(&hot)) {
        for (int i = 0; i < 3; i++)
            tp_engine_polled(eng, &hot, 1);
        spin_ns(84000);
        tp_engine_polled(eng, &hot, 0);
        CHECK(os_now_ns() < end);
    }
    tp_engine_cool(eng, &hot);
    tp_engine_destroy(eng);
}

/* It was hot, and now computes and looks five times in a millisecond. */
static void rare_polls_give_the_engine_back(void) {
    struct tp_engine *eng;
    struct tp_hot hot = { 0 };
    struct bell bell;
    CHECK_EQ(tp_engine_create(&eng), SN_OK);
    bell_up(&bell, eng);
    poll_until_hot(eng, &hot);
    bell_ring(&bell);
    uint64_t end = os_now_ns() + LIMIT_NS;
    while (!os_u32_load_acquire(&bell.seen)) {
        tp_engine_polled(eng, &hot, 1);
        spin_ns(200000);
        CHECK(os_now_ns() < end);
    }
    bell_down(&bell);
    tp_engine_cool(eng, &hot);
    tp_engine_destroy(eng);
}

/* Whether it still looks or sleeps again when the next piece comes. */
static void streams_are_served_while_it_looks_and_after_it(void) {
    struct tp_engine *eng;
    struct bell bell;
    CHECK_EQ(tp_engine_create(&eng), SN_OK);
    bell_up(&bell, eng);
    for (int i = 0; i < 200; i++) {
        uint64_t end = os_now_ns() + LIMIT_NS;
        tp_engine_streams(eng);
        os_u32_store_relaxed(&bell.seen, 0);
        spin_ns((uint64_t)i * 1000); /* up to twice the time that it looks */
        bell_ring(&bell);
        while (!os_u32_load_acquire(&bell.seen))
            CHECK(os_now_ns() < end);
    }
    bell_down(&bell);
    tp_engine_destroy(eng);
}

/* ---- leaders ---- */

/* Waits in a row until the engine lets us lead. */
static void lead(struct tp_engine *eng) {
    uint64_t end = os_now_ns() + LIMIT_NS;
    while (!tp_engine_lead_begin(eng))
        CHECK(os_now_ns() < end);
}

static void leader_serves_the_sockets_and_its_deadline_holds(void) {
    struct tp_engine *eng;
    struct bell bell;
    CHECK_EQ(tp_engine_create(&eng), SN_OK);
    bell_up(&bell, eng);
    for (int i = 0; i < 100; i++) {
        lead(eng);
        os_u32_store_relaxed(&bell.seen, 0);
        bell_ring(&bell);
        while (!os_u32_load_acquire(&bell.seen)) {
            tp_engine_lead_sleep(eng, OS_FOREVER);
            CHECK(tp_engine_lead_work(eng));
        }
        uint64_t begin = os_now_ns();
        tp_engine_lead_sleep(eng, begin + OS_NS_PER_MS);
        CHECK(tp_engine_lead_work(eng));
        tp_engine_lead_wake(eng);
        tp_engine_lead_sleep(eng, OS_FOREVER); /* ended by the wake */
        tp_engine_lead_end(eng, false);
    }
    bell_down(&bell);
    tp_engine_destroy(eng);
}

/* Whether it comes back or not, stayed long or not. */
static void leader_that_leaves_gives_the_engine_back(void) {
    struct tp_engine *eng;
    struct bell bell;
    CHECK_EQ(tp_engine_create(&eng), SN_OK);
    bell_up(&bell, eng);
    for (int i = 0; i < 12; i++) {
        lead(eng);
        if (i % 3 == 0) tp_engine_lead_sleep(eng, os_now_ns() + 5 * OS_NS_PER_MS);
        tp_engine_lead_end(eng, i % 3 == 1);
        os_u32_store_relaxed(&bell.seen, 0);
        bell_ring(&bell);
        uint64_t end = os_now_ns() + LIMIT_NS;
        while (!os_u32_load_acquire(&bell.seen))
            CHECK(os_now_ns() < end);
    }
    bell_down(&bell);
    tp_engine_destroy(eng);
}

static void leader_ends_when_somebody_polls_hard(void) {
    struct tp_engine *eng;
    struct tp_hot hot = { 0 };
    struct bell bell;
    CHECK_EQ(tp_engine_create(&eng), SN_OK);
    bell_up(&bell, eng);
    lead(eng);
    poll_until_hot(eng, &hot);
    CHECK(!tp_engine_lead_work(eng));
    tp_engine_lead_end(eng, false);
    tp_engine_cool(eng, &hot);
    bell_down(&bell);
    tp_engine_destroy(eng);
}

TEST_MAIN(TEST(polls_in_a_row_make_a_queue_hot), TEST(results_in_a_row_make_a_queue_hot),
          TEST(results_of_long_sends_make_a_queue_hot), TEST(polls_with_time_between_leave_it_cold),
          TEST(rare_polls_give_the_engine_back), TEST(polls_that_read_a_stream_make_a_queue_hot),
          TEST(slow_ping_pong_makes_a_queue_hot),
          TEST(streams_are_served_while_it_looks_and_after_it),
          TEST(leader_serves_the_sockets_and_its_deadline_holds),
          TEST(leader_that_leaves_gives_the_engine_back),
          TEST(leader_ends_when_somebody_polls_hard))
