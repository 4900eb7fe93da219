/* SPDX-License-Identifier: MIT
 * Shared receive queues.
 */
#include "rdma/connector.h"
#include "rig.h"

struct shared { /* both ends take their receives from one queue */
    struct rig r;
    struct rd_srq *srq;
};

static struct rd_qp *qp_on(struct rig *r, struct rd_cq *cq, struct rd_srq *srq) {
    struct rd_qp_attr at = rig_attr(cq);
    enum rd_qp_attr_fault fault;
    struct rd_qp *qp = NULL;
    at.srq = srq;
    CHECK_ST(rd_qp_create(r->ad, &at, &fault, &qp), SN_OK);
    return qp;
}

static void shared_up(struct shared *s, uint32_t depth, uint32_t threshold) {
    rig_objects(&s->r);
    CHECK_ST(rd_srq_create(s->r.ad, depth, 1, threshold, &s->srq), SN_OK);
    rd_qp_destroy(s->r.a.qp);
    rd_qp_destroy(s->r.b.qp);
    s->r.a.qp = qp_on(&s->r, s->r.a.cq, s->srq);
    s->r.b.qp = qp_on(&s->r, s->r.b.cq, s->srq);
    rig_connect_limits(&s->r, 1, 1);
}

static void shared_down(struct shared *s) {
    rd_srq_destroy(s->srq);
    rig_down(&s->r);
}

static sn_status post(struct shared *s, uint32_t n, size_t off, uint32_t len) {
    struct tp_sge sge = rig_sge(&s->r, off, len);
    return rd_srq_post(s->srq, CTX(n), &sge, 1);
}

static sn_status send_to(struct shared *s, struct rd_qp *qp, uint32_t n) {
    struct tp_sge sge = rig_sge(&s->r, 0, 4);
    return rd_qp_send(qp, CTX(n), &sge, 1, 0, 0);
}

static void create_and_post_outside_limits_are_refused(void) {
    struct shared s;
    struct rd_srq *q;
    const struct rd_limits *lim = rd_limits_get();
    shared_up(&s, 2, 0);
    CHECK_ST(rd_srq_create(s.r.ad, 0, 1, 0, &q), SN_E_PARAM);
    CHECK_ST(rd_srq_create(s.r.ad, lim->max_srq_depth + 1, 1, 0, &q), SN_E_PARAM);
    CHECK_ST(rd_srq_create(s.r.ad, 1, lim->max_receive_sge + 1, 0, &q), SN_E_PARAM);
    struct tp_sge sge[5] = { { s.r.buf, 0x20000001, 0 }, { s.r.buf, 0x20000001, 0 } };
    CHECK_ST(rd_srq_post(s.srq, NULL, sge, 2), SN_E_TOO_LONG);
    CHECK_ST(rd_srq_post(s.srq, NULL, sge, 5), SN_E_TOO_MANY_SGE);
    CHECK_ST(post(&s, 1, 0, 8), SN_OK);
    CHECK_ST(post(&s, 2, 0, 8), SN_OK);
    CHECK_ST(post(&s, 3, 0, 8), SN_E_FULL);
    CHECK_ST(rd_qp_receive(s.r.a.qp, NULL, NULL, 0), SN_E_REQUEST);
    CHECK_ST(rd_srq_modify(s.srq, lim->max_srq_depth + 1, 0), SN_E_PARAM);
    shared_down(&s);
}

static void receives_go_to_whoever_needs_one_in_order(void) {
    struct shared s;
    shared_up(&s, 8, 0);
    for (uint32_t i = 1; i <= 4; i++)
        CHECK_ST(post(&s, i, 1000 + 16 * i, 8), SN_OK);
    memcpy(s.r.buf, "abcd", 4);
    CHECK_ST(send_to(&s, s.r.a.qp, 11), SN_OK); /* arrives at b */
    CHECK_ST(send_to(&s, s.r.b.qp, 12), SN_OK); /* arrives at a */
    CHECK_ST(send_to(&s, s.r.a.qp, 13), SN_OK);
    CHECK_CQE(s.r.b.cq, RD_RECEIVE, 1, SN_OK, 4);
    CHECK_CQE(s.r.a.cq, RD_SEND, 11, SN_OK, 4);
    CHECK_CQE(s.r.a.cq, RD_RECEIVE, 2, SN_OK, 4);
    CHECK_CQE(s.r.b.cq, RD_SEND, 12, SN_OK, 4);
    CHECK_CQE(s.r.b.cq, RD_RECEIVE, 3, SN_OK, 4);
    CHECK_BYTES(s.r.buf + 1000 + 32, "abcd", 4);
    shared_down(&s);
}

static void send_to_empty_queue_waits_for_a_post(void) {
    struct shared s;
    shared_up(&s, 8, 0);
    CHECK_ST(send_to(&s, s.r.a.qp, 1), SN_OK);
    CHECK_ST(send_to(&s, s.r.b.qp, 2), SN_OK);
    CHECK_NO_CQE(s.r.a.cq);
    CHECK_NO_CQE(s.r.b.cq);
    CHECK_ST(post(&s, 5, 0, 8), SN_OK);
    CHECK_CQE(s.r.b.cq, RD_RECEIVE, 5, SN_OK, 4); /* the first to wait */
    CHECK_ST(post(&s, 6, 0, 8), SN_OK);
    struct rd_completion c[4];
    CHECK_EQ(rd_cq_poll(s.r.a.cq, c, 4), 2);
    CHECK_EQ(rd_cq_poll(s.r.b.cq, c, 4), 1);
    shared_down(&s);
}

static void waiter_that_dies_does_not_swallow_the_wake_up(void) {
    struct shared s;
    shared_up(&s, 8, 0);
    CHECK_ST(send_to(&s, s.r.a.qp, 1), SN_OK); /* b waits first */
    CHECK_ST(send_to(&s, s.r.b.qp, 2), SN_OK); /* then a */
    /* A second pair on the same queue, which waits last. */
    struct shared t = s;
    t.r.a.qp = qp_on(&t.r, t.r.a.cq, s.srq);
    t.r.b.qp = qp_on(&t.r, t.r.b.cq, s.srq);
    rig_connect_limits(&t.r, 1, 1);
    CHECK_ST(send_to(&s, t.r.a.qp, 3), SN_OK);
    rd_qp_destroy(s.r.a.qp);
    s.r.a.qp = NULL;
    fake_run();
    CHECK_ST(post(&s, 7, 0, 8), SN_OK);
    fake_run();
    bool got = false;
    struct rd_completion c;
    while (rd_cq_poll(s.r.b.cq, &c, 1) == 1)
        if (c.type == RD_RECEIVE && c.status == SN_OK) got = c.request_context == CTX(7);
    CHECK(got);
    rd_connector_destroy(t.r.a.c);
    rd_connector_destroy(t.r.b.c);
    rd_listener_destroy(t.r.l);
    rd_qp_destroy(t.r.a.qp);
    rd_qp_destroy(t.r.b.qp);
    shared_down(&s);
}

static void flush_leaves_unconsumed_entries(void) {
    struct shared s;
    shared_up(&s, 4, 0);
    for (uint32_t i = 0; i < 4; i++)
        CHECK_ST(post(&s, i, 0, 8), SN_OK);
    CHECK(fake_take_receive(s.r.cb) != NULL);
    CHECK_ST(post(&s, 9, 0, 8), SN_E_FULL);
    rd_qp_flush(s.r.b.qp);
    CHECK_CQE(s.r.b.cq, RD_RECEIVE, 0, SN_E_CANCELED, 0); /* the one it had taken */
    CHECK_NO_CQE(s.r.b.cq);
    CHECK_ST(post(&s, 9, 0, 8), SN_OK); /* its slot is free */
    CHECK_ST(post(&s, 9, 0, 8), SN_E_FULL);
    CHECK_ST(rd_srq_modify(s.srq, 3, 0), SN_E_BUFFER_SMALL);
    CHECK_ST(rd_srq_modify(s.srq, 5, 0), SN_OK);
    CHECK_ST(post(&s, 10, 0, 8), SN_OK);
    shared_down(&s);
}

static void taken_out_of_order_slots_come_back(void) {
    struct shared s;
    shared_up(&s, 2, 0);
    for (uint32_t i = 0; i < 50; i++) {
        CHECK_ST(post(&s, 2 * i, 0, 8), SN_OK);
        CHECK_ST(post(&s, 2 * i + 1, 0, 8), SN_OK);
        struct tp_receive *a = fake_take_receive(s.r.ca), *b = fake_take_receive(s.r.cb);
        CHECK(a && b && a != b);
        fake_receive_done(s.r.cb, b, SN_OK, 3);
        CHECK_CQE(s.r.b.cq, RD_RECEIVE, 2 * i + 1, SN_OK, 3);
        fake_receive_done(s.r.ca, a, SN_OK, 5);
        CHECK_CQE(s.r.a.cq, RD_RECEIVE, 2 * i, SN_OK, 5);
    }
    shared_down(&s);
}

static void receives_are_told_together(void) {
    struct shared s;
    shared_up(&s, 2, 0);
    CHECK_ST(post(&s, 7, 0, 8), SN_OK);
    CHECK_ST(post(&s, 8, 0, 8), SN_OK);
    struct tp_received r[2] = { { .recv = fake_take_receive(s.r.cb), .bytes = 3 },
                                { .recv = fake_take_receive(s.r.cb), .bytes = 5 } };
    CHECK(r[0].recv && r[1].recv);
    rd_upcalls.receives_done(s.r.b.qp, r, 2);
    CHECK_CQE(s.r.b.cq, RD_RECEIVE, 7, SN_OK, 3);
    CHECK_CQE(s.r.b.cq, RD_RECEIVE, 8, SN_OK, 5);
    CHECK_ST(post(&s, 9, 0, 8), SN_OK); /* both places are free */
    CHECK_ST(post(&s, 10, 0, 8), SN_OK);
    shared_down(&s);
}

static void threshold_fires_when_fewer_are_left(void) {
    struct shared s;
    struct rig_async n, m, z;
    shared_up(&s, 8, 2);
    CHECK_ST(rd_srq_notify(s.srq, rig_arm(&n)), SN_PENDING);
    CHECK_DONE(&n, SN_OK); /* below already: at once */
    for (uint32_t i = 0; i < 3; i++)
        CHECK_ST(post(&s, i, 0, 8), SN_OK);
    CHECK_ST(rd_srq_notify(s.srq, rig_arm(&n)), SN_PENDING);
    CHECK_ST(rd_srq_notify(s.srq, rig_arm(&m)), SN_PENDING);
    CHECK_ST(send_to(&s, s.r.a.qp, 1), SN_OK); /* two left */
    CHECK_NOT_DONE(&n);
    CHECK_ST(send_to(&s, s.r.a.qp, 2), SN_OK); /* one left */
    CHECK_DONE(&n, SN_OK);
    CHECK_DONE(&m, SN_OK);
    CHECK_EQ(m.seq, n.seq + 1);
    for (uint32_t i = 0; i < 4; i++)
        CHECK_ST(post(&s, i, 0, 8), SN_OK);
    CHECK_ST(rd_srq_notify(s.srq, rig_arm(&n)), SN_PENDING);
    CHECK_NOT_DONE(&n);
    CHECK_ST(rd_srq_modify(s.srq, 0, 6), SN_OK); /* raised above what is there */
    CHECK_DONE(&n, SN_OK);
    CHECK_ST(rd_srq_modify(s.srq, 0, 1), SN_OK);
    CHECK_ST(rd_srq_notify(s.srq, rig_arm(&n)), SN_PENDING);
    CHECK_ST(rd_srq_notify(s.srq, rig_arm(&m)), SN_PENDING);
    rd_srq_cancel(s.srq);
    CHECK_DONE(&n, SN_E_CANCELED);
    CHECK_DONE(&m, SN_E_CANCELED);
    CHECK_EQ(m.seq, n.seq + 1);
    CHECK_ST(rd_srq_notify(s.srq, rig_arm(&z)), SN_PENDING);
    shared_down(&s);
    CHECK_DONE(&z, SN_E_CANCELED);
}

static void threshold_zero_never_fires(void) {
    struct shared s;
    struct rig_async n;
    shared_up(&s, 8, 0);
    CHECK_ST(rd_srq_notify(s.srq, rig_arm(&n)), SN_PENDING);
    CHECK_ST(post(&s, 1, 0, 8), SN_OK);
    CHECK_ST(send_to(&s, s.r.a.qp, 1), SN_OK);
    CHECK_NOT_DONE(&n);
    CHECK_ST(rd_srq_modify(s.srq, 0, 0), SN_OK); /* 0 leaves it as it is */
    CHECK_NOT_DONE(&n);
    shared_down(&s);
}

static void largest_queue_fills(void) {
    struct shared s;
    struct rd_srq *q;
    const struct rd_limits *lim = rd_limits_get();
    shared_up(&s, 1, 0);
    CHECK_ST(rd_srq_create(s.r.ad, lim->max_srq_depth, lim->max_receive_sge, 0, &q), SN_OK);
    struct tp_sge sge[16];
    for (int i = 0; i < 16; i++)
        sge[i] = rig_sge(&s.r, (size_t)i, 1);
    for (uint32_t i = 0; i < lim->max_srq_depth; i++)
        CHECK_ST(rd_srq_post(q, CTX(i), sge, 16), SN_OK);
    CHECK_ST(rd_srq_post(q, NULL, sge, 16), SN_E_FULL);
    rd_srq_destroy(q);
    shared_down(&s);
}

TEST_MAIN(TEST(create_and_post_outside_limits_are_refused),
          TEST(receives_go_to_whoever_needs_one_in_order),
          TEST(send_to_empty_queue_waits_for_a_post),
          TEST(waiter_that_dies_does_not_swallow_the_wake_up),
          TEST(flush_leaves_unconsumed_entries), TEST(taken_out_of_order_slots_come_back),
          TEST(receives_are_told_together), TEST(threshold_fires_when_fewer_are_left),
          TEST(threshold_zero_never_fires), TEST(largest_queue_fills))
