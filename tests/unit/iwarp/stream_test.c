/* SPDX-License-Identifier: MIT
 *
 * The I/O half end to end over loopback: two connections in one process, each with a fake core.
 */
#include "fake_wait.h"
#include "iwarp/conn.h"
#include "os/prim/thread.h"
#include "support/portable.h"
#include "support/testing.h"

struct pair {
    struct tp_engine *eng, *eng_b; /* of the active and the passive side */
    struct tp_port *port;
    struct tp_listener *listener;
    os_atomic_ptr request;
    struct fake_qp a, b; /* active, passive */
    uint8_t *mem_a, *mem_b;
    os_atomic_u32 held; /* 1: the passive side cannot look at its stream, 2: it shall again */
    bool slow; /* the passive side looks at its stream only after the active gave up on it */
};

enum { MEM = FAKE_MEM_BYTES };

static void on_request(void *ctx, struct tp_conn *conn) {
    struct pair *p = ctx;
    tp_conn_set_owner(conn, &fake_up, &p->b);
    os_ptr_store_release(&p->request, conn);
}
static const struct tp_listener_upcalls listener_up = { on_request };

/* Keeps the passive side from its stream, as a machine does that has other things to do. */
static void hold_passive(void *arg) {
    struct pair *p = arg;
    os_lock_enter(&iw_conn_of(p->b.conn)->rx_lock);
    os_u32_store_release(&p->held, 1);
    while (os_u32_load_acquire(&p->held) == 1)
        os_thread_yield();
    os_lock_leave(&iw_conn_of(p->b.conn)->rx_lock);
}

static void open_pair_as(struct pair *p, uint32_t depth, bool shared_receives, bool slow) {
    struct os_addr any = { .family = 4, .ip = { 127, 0, 0, 1 } };
    memset(p, 0, sizeof *p);
    p->slow = slow;
    p->mem_a = calloc(1, MEM);
    p->mem_b = calloc(1, MEM);
    fake_qp_init(&p->a, p->mem_a, MEM);
    fake_qp_init(&p->b, p->mem_b, MEM);
    CHECK_EQ(tp_engine_create(&p->eng), SN_OK);
    CHECK_EQ(tp_engine_create(&p->eng_b), SN_OK);
    CHECK_EQ(tp_port_bind(&any, TP_PORT_LISTEN, &p->port), SN_OK);
    CHECK_EQ(iw_ops.listen(p->eng_b, p->port, 16, &listener_up, p, &p->listener), SN_OK);
    struct tp_setup setup = { .ird = depth,
                              .ord = depth,
                              .pd = "hello",
                              .pd_len = 5,
                              .up = &fake_up,
                              .owner = &p->a,
                              .qp = &p->a };
    CHECK_EQ(iw_ops.connect(p->eng, NULL, &p->port->addr, &setup, &p->a.conn), SN_OK);
    WAIT_FOR(os_ptr_load_acquire(&p->request));
    p->b.conn = os_ptr_load_acquire(&p->request);
    struct tp_conn_info info;
    p->b.conn->ops->info(p->b.conn, &info);
    CHECK_EQ(info.pd_len, 5);
    CHECK_BYTES(info.pd, "hello", 5);
    CHECK_EQ(info.peer_ord, depth);
    setup.owner = setup.qp = &p->b;
    setup.shared_receives = shared_receives;
    setup.pd = "yes";
    setup.pd_len = 3;
    CHECK_EQ(p->b.conn->ops->accept(p->b.conn, &setup), SN_OK);
    WAIT_FOR(os_u32_load_seqcst(&p->a.replied));
    CHECK_EQ(os_u32_load_seqcst(&p->a.replied), 1 + SN_OK);
    os_thread holder;
    if (p->slow) {
        CHECK_EQ(os_thread_start(&holder, "holder", hold_passive, p), SN_OK);
        WAIT_FOR(os_u32_load_acquire(&p->held) == 1);
    }
    CHECK_EQ(p->a.conn->ops->complete(p->a.conn, depth, depth), SN_OK);
    if (p->slow) {
        WAIT_FOR(iw_peer(iw_conn_of(p->a.conn)) == IW_PEER_FOREIGN); /* after 100 ms of silence */
        os_u32_store_release(&p->held, 2);
        os_thread_join(holder);
    }
    WAIT_FOR(os_u32_load_seqcst(&p->b.established));
    CHECK_EQ(os_u32_load_seqcst(&p->b.established), 1 + SN_OK);
}

static void open_pair(struct pair *p, uint32_t depth) {
    open_pair_as(p, depth, false, false);
}

static void close_pair(struct pair *p) {
    p->a.conn->ops->close(p->a.conn);
    WAIT_FOR(os_u32_load_seqcst(&p->b.disconnected));
    p->b.conn->ops->close(p->b.conn);
    p->a.conn->ops->release(p->a.conn);
    p->b.conn->ops->release(p->b.conn);
    iw_ops.listener_close(p->listener);
    tp_port_free(p->port);
    tp_engine_destroy(p->eng);
    tp_engine_destroy(p->eng_b);
    free(p->mem_a);
    free(p->mem_b);
}

static void send_small_arrives_and_completes(void) {
    struct pair p;
    open_pair(&p, 4);
    fake_send_small(&p.a, p.mem_a, &p.b, p.mem_b);
    close_pair(&p);
}

static void operations_of_all_sizes_place_every_byte(void) {
    struct pair p;
    open_pair(&p, 4);
    fake_move_all_sizes(&p.a, p.mem_a, &p.b, p.mem_b);
    struct iw_conn *b = iw_conn_of(p.b.conn);
    os_lock_enter(&b->rx_lock);
    CHECK(b->rx.bounce != NULL); /* the long ones were read ahead */
    os_lock_leave(&b->rx_lock);
    close_pair(&p);
}

static void many_requests_both_ways_complete_once(void) {
    struct pair p;
    open_pair(&p, 2);
    fake_exchange_many(&p.a, p.mem_a, &p.b, p.mem_b, TEST_ROUNDS(20));
    close_pair(&p);
}

/* Shortly before message numbers and the counts of reports begin anew. */
static void age(struct iw_conn *c) {
    const uint32_t msn = 0u - 50, count = 0u - 70;
    os_lock_enter(&c->rx_lock);
    os_lock_enter(&c->tx_lock);
    c->tx.send_msn = c->tx.read_msn = c->rx.send_msn = c->rx.read_msn = msn;
    c->tx.confirm_base = c->tx.confirm_last = count;
    os_u32_store_relaxed(&c->processed, count);
    os_u32_store_relaxed(&c->reported, count);
    os_lock_leave(&c->tx_lock);
    os_lock_leave(&c->rx_lock);
}

/* b posts no Reads. */
static void check_new(struct iw_conn *c, bool reads) {
    os_lock_enter(&c->rx_lock);
    os_lock_enter(&c->tx_lock);
    uint32_t sent = c->tx.send_msn, received = c->rx.send_msn, read = c->tx.read_msn;
    uint32_t processed = os_u32_load_relaxed(&c->processed), confirmed = c->tx.confirm_base;
    os_lock_leave(&c->tx_lock);
    os_lock_leave(&c->rx_lock);
    CHECK(sent < 1000 && received < 1000 && (!reads || read < 1000));
    CHECK(processed < 1000 && confirmed < 1000);
}

static void numbers_begin_anew_after_the_last(void) {
    struct pair p;
    open_pair(&p, 2);
    struct iw_conn *a = iw_conn_of(p.a.conn), *b = iw_conn_of(p.b.conn);
    /* Each has said hello, and so far there is nothing else to say. */
    WAIT_FOR(iw_peer(a) == IW_PEER_SOFTND && iw_peer(b) == IW_PEER_SOFTND &&
             !os_u32_load_acquire(&a->hello_due) && !os_u32_load_acquire(&b->hello_due));
    age(a);
    age(b);
    fake_exchange_many(&p.a, p.mem_a, &p.b, p.mem_b, 4);
    check_new(a, true);
    check_new(b, false);
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
    WAIT_FOR(os_u32_load_seqcst(&p.b.recv_count) == 1);
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

/* For connections from here on: nobody posts the receive in these cases, so why wait longer? */
static void wait_briefly(bool on) {
    test_setenv("SOFTND_IWARP_RNR_MS", on ? "300" : "3000");
}

static void send_without_any_receive_times_out(void) {
    struct pair p;
    wait_briefly(true);
    open_pair(&p, 2);
    wait_briefly(false);
    struct fake_request *s = fake_post(&p.a, TP_OP_SEND, 0, p.mem_a, 100000, 0, 0);
    WAIT_FOR(os_u32_load_seqcst(&p.a.done_count) == 1);
    CHECK_EQ(s->status, SN_E_TIMEOUT);
    CHECK_EQ(os_u32_load_seqcst(&p.b.recv_count), 0);
    close_pair(&p);
}

/* More than the sockets hold: the Terminate finds the request half sent. */
static void refused_while_still_being_sent_fails_with_its_own_status(void) {
    struct pair p;
    open_pair(&p, 2);
    struct fake_request *w = fake_post(&p.a, TP_OP_WRITE, 0, p.mem_a, MEM,
                                       (uint64_t)(uintptr_t)(p.mem_b + 1), FAKE_REMOTE);
    WAIT_FOR(os_u32_load_seqcst(&p.a.disconnected));
    CHECK(w->done);
    CHECK_EQ(w->status, SN_E_RIGHTS);
    close_pair(&p);
    wait_briefly(true);
    open_pair(&p, 2);
    wait_briefly(false);
    struct fake_request *s = fake_post(&p.a, TP_OP_SEND, 0, p.mem_a, MEM, 0, 0);
    WAIT_FOR(os_u32_load_seqcst(&p.a.disconnected));
    CHECK(s->done);
    CHECK_EQ(s->status, SN_E_TIMEOUT);
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

enum { MANY = 40, SMALL = 24, AT_ONCE = IW_BURST_MIN - 1 };

/* The active side knows that its peer is SoftND's, so that what it posts may wait. */
static void open_known_pair(struct pair *p) {
    open_pair_as(p, 2, true, false);
    WAIT_FOR(iw_peer(iw_conn_of(p->a.conn)) == IW_PEER_SOFTND);
}

/* Sends of SMALL bytes; the peer, which has no receive for them, confirms none. */
static void post_small_sends(struct pair *p, uint32_t count) {
    fill(p->mem_a, count * SMALL, 6);
    for (uint32_t i = 0; i < count; i++)
        fake_post(&p->a, TP_OP_SEND, 0, p->mem_a + i * SMALL, SMALL, 0, 0);
}

static uint32_t waiting(struct pair *p) {
    struct iw_conn *c = iw_conn_of(p->a.conn);
    os_lock_enter(&c->tx_lock);
    uint32_t n = c->tx.deferred;
    os_lock_leave(&c->tx_lock);
    return n;
}

static void take_small_sends(struct pair *p, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        fake_post_receive(&p->b, p->mem_b + i * SMALL, SMALL);
    WAIT_FOR(os_u32_load_seqcst(&p->b.recv_count) == count);
    CHECK_BYTES(p->mem_b, p->mem_a, count * SMALL);
}

/* Nobody polls: the report of the messages that left brings on the rest. */
static void small_sends_arrive(uint32_t count, uint32_t wait) {
    struct pair p;
    open_known_pair(&p);
    post_small_sends(&p, count);
    CHECK_EQ(waiting(&p), wait);
    take_small_sends(&p, count);
    WAIT_FOR(os_u32_load_seqcst(&p.a.done_count) == count);
    close_pair(&p);
}

static void small_sends_that_wait_follow_the_confirmed_ones(void) {
    small_sends_arrive(AT_ONCE, 0);
    small_sends_arrive(IW_REPORT_EVERY, IW_REPORT_EVERY - AT_ONCE);
    small_sends_arrive(MANY, (MANY - AT_ONCE) % IW_DEFER_MAX);
}

static void small_sends_that_wait_leave_before_a_close(void) {
    struct pair p;
    open_known_pair(&p);
    post_small_sends(&p, AT_ONCE + IW_DEFER_MAX + 5);
    CHECK_EQ(waiting(&p), 5);
    p.a.conn->ops->close(p.a.conn);
    take_small_sends(&p, AT_ONCE + IW_DEFER_MAX + 5);
    close_pair(&p);
}

/* Of few messages a report may be late, so the core is told, and asks for them. */
static void end_of_a_burst_leaves_when_nothing_follows(void) {
    struct pair p;
    open_known_pair(&p);
    post_small_sends(&p, AT_ONCE);
    CHECK_EQ(os_u32_load_seqcst(&p.a.held_back), 0);
    post_small_sends(&p, 5);
    CHECK_EQ(waiting(&p), 5);
    CHECK_EQ(os_u32_load_seqcst(&p.a.held_back), 1);
    p.a.conn->ops->flush_reports(p.a.conn);
    CHECK_EQ(waiting(&p), 0);
    close_pair(&p);
}

static void peer_that_closes_while_its_send_waits_is_noticed(void) {
    struct pair p;
    wait_briefly(true);
    open_pair_as(&p, 2, true, false);
    wait_briefly(false);
    fake_post(&p.a, TP_OP_SEND, 0, p.mem_a, 3000, 0, 0);
    p.a.conn->ops->close(p.a.conn);
    WAIT_FOR(os_u32_load_seqcst(&p.b.disconnected));
    CHECK_EQ(os_u32_load_seqcst(&p.b.recv_count), 0);
    close_pair(&p);
}

static void peer_that_was_only_slow_is_known_after_all(void) {
    struct pair p;
    open_pair_as(&p, 2, false, true);
    for (uint32_t i = 1; i <= 40; i++) { /* more than go without a report */
        fake_post_receive(&p.b, p.mem_b, 100);
        struct fake_request *s = fake_post(&p.a, TP_OP_SEND, 0, p.mem_a, 64, 0, 0);
        WAIT_FOR(os_u32_load_seqcst(&p.b.recv_count) == i);
        WAIT_FOR(os_u32_load_seqcst(&p.a.done_count) == i);
        CHECK_EQ(s->status, SN_OK);
    }
    WAIT_FOR(iw_peer(iw_conn_of(p.a.conn)) == IW_PEER_SOFTND);
    CHECK_EQ(os_u32_load_seqcst(&p.a.disconnected), 0);
    CHECK_EQ(os_u32_load_seqcst(&p.b.disconnected), 0);
    close_pair(&p);
}

static void polled_ping_pong_completes(void) {
    struct pair p;
    open_pair(&p, 2);
    for (uint32_t i = 0; i < TEST_ROUNDS(2000); i++) {
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
          TEST(many_requests_both_ways_complete_once), TEST(numbers_begin_anew_after_the_last),
          TEST(write_outside_the_region_fails_and_ends_the_connection),
          TEST(read_with_a_bad_token_fails_and_ends_the_connection),
          TEST(send_longer_than_the_receive_fails_on_both_sides),
          TEST(send_without_receive_waits_for_one), TEST(send_without_any_receive_times_out),
          TEST(refused_while_still_being_sent_fails_with_its_own_status),
          TEST(send_that_waits_is_delivered_after_the_peer_closed),
          TEST(small_sends_that_wait_follow_the_confirmed_ones),
          TEST(small_sends_that_wait_leave_before_a_close),
          TEST(end_of_a_burst_leaves_when_nothing_follows),
          TEST(peer_that_closes_while_its_send_waits_is_noticed),
          TEST(peer_that_was_only_slow_is_known_after_all), TEST(polled_ping_pong_completes))
