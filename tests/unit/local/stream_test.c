/* SPDX-License-Identifier: MIT
 *
 * Two same-host connections in one process, each with a fake core. Every case runs twice: with
 * copies straight between the two ends' memory, and with copies through shared memory.
 */
#include "rig.h"

static void send_small_arrives_and_completes(void) {
    struct pair p;
    open_pair(&p, 4);
    struct fake_receive *r = fake_post_receive(&p.b, p.mem_b, 100);
    fill(p.mem_a, 64, 1);
    struct fake_request *s = fake_post(&p.a, TP_OP_SEND, TP_F_SOLICIT, p.mem_a, 64, 0, 0);
    WAIT_FOR(os_u32_load_seqcst(&p.b.recv_count) == 1);
    CHECK_EQ(r->status, SN_OK);
    CHECK_EQ(r->bytes, 64);
    CHECK_EQ(r->flags, TP_RECV_SOLICITED);
    CHECK_BYTES(p.mem_b, p.mem_a, 64);
    WAIT_FOR(os_u32_load_seqcst(&p.a.done_count) == 1);
    CHECK_EQ(s->status, SN_OK);
    close_pair(&p);
}

static void operations_of_all_sizes_place_every_byte(void) {
    static const uint32_t sizes[] = { 0,     1,     2,     3,      511,     512,
                                      513,   1023,  1024,  4096,   16383,   16384,
                                      63487, 63488, 63489, 100001, 1000003, 4u << 20 };
    struct pair p;
    open_pair(&p, 4);
    uint32_t a_done = 0, b_recv = 0, b_done = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint32_t n = sizes[i], off = (uint32_t)(i * 7);
        fill(p.mem_a + off, n, n + 1);
        memset(p.mem_b, 0xEE, MEM);
        struct fake_receive *r = fake_post_receive(&p.b, p.mem_b + 3, n + 5);
        fake_post(&p.a, TP_OP_SEND, 0, p.mem_a + off, n, 0, 0);
        WAIT_FOR(os_u32_load_seqcst(&p.b.recv_count) == b_recv + 1);
        b_recv++;
        CHECK_EQ(r->bytes, n);
        CHECK_BYTES(p.mem_b + 3, p.mem_a + off, n);
        CHECK_EQ(p.mem_b[2], 0xEE);
        CHECK_EQ(p.mem_b[3 + n], 0xEE);
        memset(p.mem_b, 0xDD, MEM);
        struct fake_request *w = fake_post(&p.a, TP_OP_WRITE, 0, p.mem_a + off, n,
                                           (uint64_t)(uintptr_t)(p.mem_b + 11), FAKE_REMOTE);
        a_done += 2;
        WAIT_FOR(os_u32_load_seqcst(&p.a.done_count) == a_done);
        CHECK_EQ(w->status, SN_OK);
        CHECK_BYTES(p.mem_b + 11, p.mem_a + off, n);
        CHECK_EQ(p.mem_b[10], 0xDD);
        CHECK_EQ(p.mem_b[11 + n], 0xDD);
        memset(p.mem_b, 0xCC, MEM);
        struct fake_request *rd = fake_post(&p.b, TP_OP_READ, 0, p.mem_b + 5, n,
                                            (uint64_t)(uintptr_t)(p.mem_a + off), FAKE_REMOTE);
        WAIT_FOR(os_u32_load_seqcst(&p.b.done_count) == b_done + 1);
        b_done++;
        CHECK_EQ(rd->status, SN_OK);
        CHECK_BYTES(p.mem_b + 5, p.mem_a + off, n);
        CHECK_EQ(p.mem_b[4], 0xCC);
        CHECK_EQ(p.mem_b[5 + n], 0xCC);
    }
    close_pair(&p);
}

static void many_requests_both_ways_complete_once(void) {
    struct pair p;
    open_pair(&p, 2);
    for (int round = 0; round < 20; round++) {
        uint32_t a0 = os_u32_load_seqcst(&p.a.done_count), b0 = os_u32_load_seqcst(&p.b.done_count);
        for (int i = 0; i < 100; i++) {
            fake_post_receive(&p.a, p.mem_a + 4096, 2048);
            fake_post_receive(&p.b, p.mem_b + 4096, 2048);
        }
        for (int i = 0; i < 100; i++) {
            fake_post(&p.a, TP_OP_SEND, 0, p.mem_a, (uint32_t)(i * 17) % 2048, 0, 0);
            fake_post(&p.b, TP_OP_SEND, 0, p.mem_b, (uint32_t)(i * 13) % 2048, 0, 0);
            if (i % 3 == 0)
                fake_post(&p.a, TP_OP_READ, i % 2 ? TP_F_FENCE : 0, p.mem_a + 8192, 70000,
                          (uint64_t)(uintptr_t)p.mem_b, FAKE_REMOTE);
            if (i % 5 == 0) fake_post(&p.b, TP_OP_LOCAL, TP_F_FENCE, NULL, 0, 0, 0);
        }
        WAIT_FOR(os_u32_load_seqcst(&p.a.done_count) == a0 + 134);
        WAIT_FOR(os_u32_load_seqcst(&p.b.done_count) == b0 + 120);
    }
    close_pair(&p);
}

static void write_outside_the_region_fails_and_ends_the_connection(void) {
    struct pair p;
    open_pair(&p, 2);
    struct fake_request *w = fake_post(&p.a, TP_OP_WRITE, 0, p.mem_a, 1000,
                                       (uint64_t)(uintptr_t)(p.mem_b + MEM - 999), FAKE_REMOTE);
    WAIT_FOR(os_u32_load_seqcst(&p.a.done_count) == 1);
    CHECK_EQ(w->status, SN_E_RIGHTS);
    WAIT_FOR(os_u32_load_seqcst(&p.a.disconnected));
    WAIT_FOR(os_u32_load_seqcst(&p.b.disconnected));
    close_pair(&p);
}

static void read_with_a_bad_token_fails_and_ends_the_connection(void) {
    struct pair p;
    open_pair(&p, 2);
    struct fake_request *w =
        fake_post(&p.a, TP_OP_READ, 0, p.mem_a, 1000, (uint64_t)(uintptr_t)p.mem_b, 12345);
    WAIT_FOR(os_u32_load_seqcst(&p.a.done_count) == 1);
    CHECK_EQ(w->status, SN_E_RIGHTS);
    WAIT_FOR(os_u32_load_seqcst(&p.b.disconnected));
    close_pair(&p);
}

static void send_longer_than_the_receive_fails_on_both_sides(void) {
    struct pair p;
    open_pair(&p, 2);
    struct fake_receive *r = fake_post_receive(&p.b, p.mem_b, 1023);
    struct fake_request *s = fake_post(&p.a, TP_OP_SEND, 0, p.mem_a, 1024, 0, 0);
    WAIT_FOR(os_u32_load_seqcst(&p.a.done_count) == 1);
    CHECK_EQ(s->status, SN_E_PEER_MSG_TOO_LONG);
    CHECK(r->done);
    CHECK_EQ(r->status, SN_E_MSG_TOO_LONG);
    close_pair(&p);
}

static void send_without_receive_waits_for_one(void) {
    struct pair p;
    open_pair(&p, 2);
    struct fake_request *s = fake_post(&p.a, TP_OP_SEND, 0, p.mem_a, 100000, 0, 0);
    struct fake_request *t = fake_post(&p.a, TP_OP_SEND, 0, p.mem_a, 10, 0, 0);
    uint64_t until = os_now_ns() + 50 * OS_NS_PER_MS;
    while (os_now_ns() < until)
        CHECK(!s->done);
    fake_post_receive(&p.b, p.mem_b, 100000);
    WAIT_FOR(os_u32_load_seqcst(&p.b.recv_count) == 1);
    fake_post_receive(&p.b, p.mem_b, 10);
    WAIT_FOR(os_u32_load_seqcst(&p.a.done_count) == 2);
    CHECK_EQ(s->status, SN_OK);
    CHECK_EQ(t->status, SN_OK);
    close_pair(&p);
}

static void send_without_any_receive_times_out(void) {
    struct pair p;
    open_pair(&p, 2);
    struct fake_request *s = fake_post(&p.a, TP_OP_SEND, 0, p.mem_a, 100000, 0, 0);
    WAIT_FOR(os_u32_load_seqcst(&p.a.done_count) == 1);
    CHECK_EQ(s->status, SN_E_TIMEOUT);
    CHECK_EQ(os_u32_load_seqcst(&p.b.recv_count), 0);
    close_pair(&p);
}

static void send_that_waits_is_delivered_after_the_peer_closed(void) {
    struct pair p;
    open_pair(&p, 2);
    fill(p.mem_a, 3000, 5);
    fake_post(&p.a, TP_OP_SEND, 0, p.mem_a, 3000, 0, 0);
    p.a.conn->ops->close(p.a.conn);
    struct fake_receive *r = fake_post_receive(&p.b, p.mem_b, 3000);
    WAIT_FOR(os_u32_load_seqcst(&p.b.recv_count) == 1);
    CHECK_EQ(r->status, SN_OK);
    CHECK_BYTES(p.mem_b, p.mem_a, 3000);
    close_pair(&p);
}

static void peer_that_closes_while_its_send_waits_is_noticed(void) {
    struct pair p;
    rig_shared_receives = true;
    open_pair(&p, 2);
    rig_shared_receives = false;
    fake_post(&p.a, TP_OP_SEND, 0, p.mem_a, 3000, 0, 0);
    p.a.conn->ops->close(p.a.conn);
    WAIT_FOR(os_u32_load_seqcst(&p.b.disconnected));
    CHECK_EQ(os_u32_load_seqcst(&p.b.recv_count), 0);
    close_pair(&p);
}

static void polled_ping_pong_completes(void) {
    struct pair p;
    open_pair(&p, 2);
    for (uint32_t i = 0; i < 2000; i++) {
        fake_post_receive(&p.b, p.mem_b, 64);
        fake_post(&p.a, TP_OP_SEND, 0, p.mem_a, 64, 0, 0);
        WAIT_FOR((p.b.conn->ops->poll(p.b.conn), os_u32_load_seqcst(&p.b.recv_count) == i + 1));
        fake_post_receive(&p.a, p.mem_a + 64, 64);
        fake_post(&p.b, TP_OP_SEND, 0, p.mem_b, 64, 0, 0);
        WAIT_FOR((p.a.conn->ops->poll(p.a.conn), os_u32_load_seqcst(&p.a.recv_count) == i + 1));
        CHECK_EQ(os_u32_load_seqcst(&p.a.done_count), i + 1); /* confirmed before the answer */
    }
    close_pair(&p);
}

TEST_MAIN(TEST(send_small_arrives_and_completes), TEST(operations_of_all_sizes_place_every_byte),
          TEST(many_requests_both_ways_complete_once),
          TEST(write_outside_the_region_fails_and_ends_the_connection),
          TEST(read_with_a_bad_token_fails_and_ends_the_connection),
          TEST(send_longer_than_the_receive_fails_on_both_sides),
          TEST(send_without_receive_waits_for_one), TEST(send_without_any_receive_times_out),
          TEST(send_that_waits_is_delivered_after_the_peer_closed),
          TEST(peer_that_closes_while_its_send_waits_is_noticed), TEST(polled_ping_pong_completes))
