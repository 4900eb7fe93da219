/* SPDX-License-Identifier: MIT
 *
 * Many connections between two adapters: every one is noticed, whoever polls what.
 */
#include "rig.h"

enum { CONNS = 150, ROUNDS = 20 };

struct crowd {
    struct tp_engine *eng_a, *eng_b;
    struct tp_port *port;
    struct tp_listener *listener;
    struct tp_share share_a, share_b;
    struct fake_qp *a, *b; /* CONNS each */
    uint8_t *mem_a, *mem_b;
    os_atomic_ptr request;
};

static void crowd_request(void *ctx, struct tp_conn *conn) {
    struct crowd *w = ctx;
    os_ptr_store_release(&w->request, conn);
}
static const struct tp_listener_upcalls crowd_up = { crowd_request };

static void add_connection(struct crowd *w, uint32_t i) {
    fake_qp_init(&w->a[i], w->mem_a, MEM);
    fake_qp_init(&w->b[i], w->mem_b, MEM);
    os_ptr_store_release(&w->request, NULL);
    struct tp_setup setup = make_setup(&w->a[i], &w->share_a, 2, "hello");
    CHECK_EQ(lo_ops.connect(w->eng_a, NULL, &w->port->addr, &setup, &w->a[i].conn), SN_OK);
    WAIT_FOR(os_ptr_load_acquire(&w->request));
    w->b[i].conn = os_ptr_load_acquire(&w->request);
    setup = make_setup(&w->b[i], &w->share_b, 2, "yes");
    CHECK_EQ(w->b[i].conn->ops->accept(w->b[i].conn, &setup), SN_OK);
    WAIT_FOR(os_u32_load_seqcst(&w->a[i].replied));
    CHECK_EQ(w->a[i].conn->ops->complete(w->a[i].conn, 2, 2), SN_OK);
    WAIT_FOR(os_u32_load_seqcst(&w->b[i].established));
}

static void open_crowd(struct crowd *w) {
    struct os_addr any = { .family = 4, .ip = { 127, 0, 0, 1 } };
    test_setenv("SOFTND_TRANSPORT", "local");
    memset(w, 0, sizeof *w);
    w->mem_a = calloc(1, MEM);
    w->mem_b = calloc(1, MEM);
    w->a = calloc(CONNS, sizeof *w->a);
    w->b = calloc(CONNS, sizeof *w->b);
    share_init(&w->share_a, w->mem_a, MEM);
    share_init(&w->share_b, w->mem_b, MEM);
    CHECK_EQ(tp_engine_create(&w->eng_a), SN_OK);
    CHECK_EQ(tp_engine_create(&w->eng_b), SN_OK);
    CHECK_EQ(tp_port_bind(&any, TP_PORT_LISTEN, &w->port), SN_OK);
    CHECK_EQ(lo_ops.listen(w->eng_b, w->port, 16, &crowd_up, w, &w->listener), SN_OK);
    for (uint32_t i = 0; i < CONNS; i++)
        add_connection(w, i);
}

static void close_crowd(struct crowd *w) {
    for (uint32_t i = 0; i < CONNS; i++) {
        struct fake_qp *first = i % 2 ? &w->a[i] : &w->b[i], *second = i % 2 ? &w->b[i] : &w->a[i];
        first->conn->ops->close(first->conn);
        WAIT_FOR(os_u32_load_seqcst(&second->disconnected));
        second->conn->ops->close(second->conn);
        first->conn->ops->release(first->conn);
        second->conn->ops->release(second->conn);
    }
    lo_ops.listener_close(w->listener);
    tp_port_free(w->port);
    tp_engine_destroy(w->eng_a);
    tp_engine_destroy(w->eng_b);
    tp_share_destroy(&w->share_a);
    tp_share_destroy(&w->share_b);
    free(w->a);
    free(w->b);
    free(w->mem_a);
    free(w->mem_b);
}

/* One message each way on every connection, all at once; `step` is called while waiting. */
static void exchange(struct crowd *w, uint32_t round, void (*step)(struct crowd *w)) {
    for (uint32_t i = 0; i < CONNS; i++) {
        fake_post_receive(&w->a[i], w->mem_a + 65536, 64);
        fake_post_receive(&w->b[i], w->mem_b + 65536, 64);
    }
    for (uint32_t i = 0; i < CONNS; i++) {
        fake_post(&w->a[i], TP_OP_SEND, 0, w->mem_a, i % 64, 0, 0);
        fake_post(&w->b[i], TP_OP_SEND, 0, w->mem_b, i % 64, 0, 0);
    }
    for (uint32_t i = 0; i < CONNS; i++) {
        WAIT_FOR((step(w), os_u32_load_seqcst(&w->a[i].recv_count) == round + 1));
        WAIT_FOR((step(w), os_u32_load_seqcst(&w->b[i].recv_count) == round + 1));
        WAIT_FOR((step(w), os_u32_load_seqcst(&w->a[i].done_count) == round + 1));
        WAIT_FOR((step(w), os_u32_load_seqcst(&w->b[i].done_count) == round + 1));
    }
}

static void step_nothing(struct crowd *w) {
    (void)w;
}

static struct tp_hot hot_a, hot_b;
static uint32_t seed;

/* As applications poll: a queue pair now and then another, then whatever else is ready. */
static void step_poll(struct crowd *w) {
    seed = seed * 1664525u + 1013904223u;
    uint32_t i = (seed >> 16) % CONNS;
    w->a[i].conn->ops->poll(w->a[i].conn);
    w->b[i].conn->ops->poll(w->b[i].conn);
    tp_engine_progress(w->eng_a);
    tp_engine_progress(w->eng_b);
    tp_engine_polled(w->eng_a, &hot_a, 1);
    tp_engine_polled(w->eng_b, &hot_b, 1);
}

static void exchanges_without_polling_are_all_noticed(void) {
    struct crowd w;
    open_crowd(&w);
    for (uint32_t round = 0; round < ROUNDS; round++)
        exchange(&w, round, step_nothing);
    close_crowd(&w);
}

static void exchanges_while_some_are_polled_are_all_noticed(void) {
    struct crowd w;
    memset(&hot_a, 0, sizeof hot_a);
    memset(&hot_b, 0, sizeof hot_b);
    open_crowd(&w);
    for (uint32_t round = 0; round < ROUNDS; round++) /* hot and cold in turn */
        exchange(&w, round, round % 4 == 3 ? step_nothing : step_poll);
    tp_engine_cool(w.eng_a, &hot_a);
    tp_engine_cool(w.eng_b, &hot_b);
    close_crowd(&w);
}

static struct lo_conn *conn_b(struct crowd *w, uint32_t i) {
    return (struct lo_conn *)w->b[i].conn;
}

static uint32_t polled_count(struct crowd *w) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < CONNS; i++)
        n += lo_conn_is_polled(conn_b(w, i));
    return n;
}

/* It gives its place to another while its peer is about to write without telling anybody. */
static void slot_of_who_is_polled_no_longer_is_found(void) {
    struct crowd w;
    memset(&hot_b, 0, sizeof hot_b);
    open_crowd(&w);
    struct lo_conn *another = conn_b(&w, LO_DIRECT);
    set_linger(conn_b(&w, 0)->hub, 20 * OS_NS_PER_MS);
    for (uint32_t i = 0; i < LO_DIRECT; i++)
        WAIT_FOR((poll_hard_awhile(conn_b(&w, i), &hot_b), lo_conn_is_polled(conn_b(&w, i))));
    /* Unless the engine's thread goes to sleep in between, which ends it for all. */
    WAIT_FOR((poll_hard_awhile(another, &hot_b), polled_count(&w) < LO_DIRECT));
    uint32_t gone = 0;
    while (lo_conn_is_polled(conn_b(&w, gone)))
        gone++;
    fake_post_receive(&w.b[gone], w.mem_b, 64);
    send_unseen(&w.a[gone], w.mem_a, conn_b(&w, gone));
    WAIT_FOR((poll_hard_awhile(another, &hot_b), lo_conn_is_polled(another)));
    WAIT_FOR((tp_engine_progress(w.eng_b), os_u32_load_seqcst(&w.b[gone].recv_count) == 1));
    CHECK(polled_count(&w) <= LO_DIRECT);
    tp_engine_cool(w.eng_b, &hot_b);
    close_crowd(&w);
}

TEST_MAIN(TEST(slot_of_who_is_polled_no_longer_is_found),
          TEST(exchanges_without_polling_are_all_noticed),
          TEST(exchanges_while_some_are_polled_are_all_noticed))
