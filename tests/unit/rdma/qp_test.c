/* SPDX-License-Identifier: MIT
 * Posting, completing, ordering and flushing of queue pairs.
 */
#include "rdma/connector.h"
#include "rdma/counters.h"
#include "rig.h"

static sn_status send_n(struct rig *r, struct rd_qp *qp, uint32_t n, uint32_t len, uint32_t flags) {
    struct tp_sge s = rig_sge(r, 0, len);
    return rd_qp_send(qp, CTX(n), &s, 1, flags, 0);
}

static sn_status receive_n(struct rig *r, struct rd_qp *qp, uint32_t n, size_t off, uint32_t len) {
    struct tp_sge s = rig_sge(r, off, len);
    return rd_qp_receive(qp, CTX(n), &s, 1);
}

/* ---- the basic transfers ---- */

static void send_receive_connected_moves_bytes(void) {
    struct rig r;
    rig_up(&r);
    memcpy(r.buf, "hello", 5);
    CHECK_ST(receive_n(&r, r.b.qp, 7, 1000, 100), SN_OK);
    CHECK_ST(send_n(&r, r.a.qp, 8, 5, 0), SN_OK);
    CHECK_CQE(r.b.cq, RD_RECEIVE, 7, SN_OK, 5);
    CHECK_CQE(r.a.cq, RD_SEND, 8, SN_OK, 5);
    CHECK_BYTES(r.buf + 1000, "hello", 5);
    CHECK_STR(rd_qp_transport(r.a.qp), "fake");
    rig_down(&r);
}

static void write_and_read_connected_move_bytes(void) {
    struct rig r;
    rig_up(&r);
    uint32_t rt = rd_region_remote_token(r.mem);
    struct tp_sge s = rig_sge(&r, 0, 10);
    memcpy(r.buf, "0123456789", 10);
    CHECK_ST(rd_qp_write(r.a.qp, CTX(1), &s, 1, (uintptr_t)(r.buf + 2000), rt, 0), SN_OK);
    CHECK_CQE(r.a.cq, RD_WRITE, 1, SN_OK, 10);
    CHECK_BYTES(r.buf + 2000, "0123456789", 10);
    s = rig_sge(&r, 3000, 4);
    CHECK_ST(rd_qp_read(r.a.qp, CTX(2), &s, 1, (uintptr_t)(r.buf + 2003), rt, 0), SN_OK);
    CHECK_CQE(r.a.cq, RD_READ, 2, SN_OK, 4);
    CHECK_BYTES(r.buf + 3000, "3456", 4);
    CHECK_NO_CQE(r.b.cq);
    rig_down(&r);
}

static void zero_length_requests_complete(void) {
    struct rig r;
    rig_up(&r);
    CHECK_ST(rd_qp_receive(r.b.qp, CTX(1), NULL, 0), SN_OK);
    CHECK_ST(rd_qp_send(r.a.qp, CTX(2), NULL, 0, 0, 0), SN_OK);
    CHECK_ST(rd_qp_write(r.a.qp, CTX(3), NULL, 0, 0, 0, 0), SN_OK);
    CHECK_ST(rd_qp_read(r.a.qp, CTX(4), NULL, 0, 0, 0, 0), SN_OK);
    CHECK_CQE(r.b.cq, RD_RECEIVE, 1, SN_OK, 0);
    CHECK_CQE(r.a.cq, RD_SEND, 2, SN_OK, 0);
    CHECK_CQE(r.a.cq, RD_WRITE, 3, SN_OK, 0);
    CHECK_CQE(r.a.cq, RD_READ, 4, SN_OK, 0);
    rig_down(&r);
}

static void send_without_receive_waits_for_one(void) {
    struct rig r;
    rig_up(&r);
    CHECK_ST(send_n(&r, r.a.qp, 1, 8, 0), SN_OK);
    CHECK_NO_CQE(r.a.cq);
    CHECK_ST(receive_n(&r, r.b.qp, 2, 100, 8), SN_OK);
    CHECK_CQE(r.a.cq, RD_SEND, 1, SN_OK, 8);
    CHECK_CQE(r.b.cq, RD_RECEIVE, 2, SN_OK, 8);
    /* Once it is no longer starved, posts leave the stream alone. */
    uint32_t calls = os_u32_load_relaxed(&r.cb->post_receives);
    CHECK_ST(receive_n(&r, r.b.qp, 3, 100, 8), SN_OK);
    CHECK_ST(send_n(&r, r.a.qp, 4, 8, 0), SN_OK);
    CHECK_ST(receive_n(&r, r.b.qp, 5, 100, 8), SN_OK);
    CHECK_EQ(os_u32_load_relaxed(&r.cb->post_receives), calls);
    rig_down(&r);
}

static void qp_context_in_completions(void) {
    struct rig r;
    rig_objects(&r);
    struct rd_qp_attr at = rig_attr(r.a.cq);
    enum rd_qp_attr_fault fault;
    struct rd_qp *qp;
    at.context = CTX(4711);
    CHECK_ST(rd_qp_create(r.ad, &at, &fault, &qp), SN_OK);
    CHECK_ST(rd_qp_receive(qp, CTX(1), NULL, 0), SN_OK);
    rd_qp_destroy(qp);
    struct rd_completion c;
    CHECK_EQ(rd_cq_poll(r.a.cq, &c, 1), 1);
    CHECK_PTR(c.qp_context, CTX(4711));
    CHECK_ST(c.status, SN_E_CANCELED);
    rig_down(&r);
}

/* ---- limits and refusals ---- */

static void create_bad_attribute_names_it(void) {
    struct rig r;
    rig_objects(&r);
    const struct rd_limits *lim = rd_limits_get();
    struct rd_adapter *other = rig_adapter();
    struct rd_cq *foreign;
    struct rd_srq *foreign_srq;
    CHECK_ST(rd_cq_create(other, 1, &foreign), SN_OK);
    CHECK_ST(rd_srq_create(other, 1, 1, 0, &foreign_srq), SN_OK);
    enum rd_qp_attr_fault fault;
    struct rd_qp *qp;
#define REFUSED(change, expected)                                                                  \
    do {                                                                                           \
        struct rd_qp_attr at = rig_attr(r.a.cq);                                                   \
        change;                                                                                    \
        CHECK_ST(rd_qp_create(r.ad, &at, &fault, &qp), SN_E_PARAM);                                \
        CHECK_EQ(fault, expected);                                                                 \
    } while (0)
    REFUSED(at.receive_cq = NULL, RD_QP_ATTR_RECEIVE_CQ);
    REFUSED(at.receive_cq = foreign, RD_QP_ATTR_RECEIVE_CQ);
    REFUSED(at.initiator_cq = foreign, RD_QP_ATTR_INITIATOR_CQ);
    REFUSED(at.srq = foreign_srq, RD_QP_ATTR_SRQ);
    REFUSED(at.receive_depth = lim->max_receive_depth + 1, RD_QP_ATTR_RECEIVE_DEPTH);
    REFUSED(at.initiator_depth = lim->max_initiator_depth + 1, RD_QP_ATTR_INITIATOR_DEPTH);
    REFUSED(at.max_receive_sge = lim->max_receive_sge + 1, RD_QP_ATTR_RECEIVE_SGE);
    REFUSED(at.max_initiator_sge = lim->max_initiator_sge + 1, RD_QP_ATTR_INITIATOR_SGE);
    REFUSED(at.inline_bytes = lim->max_inline_bytes + 1, RD_QP_ATTR_INLINE);
#undef REFUSED
    rd_srq_destroy(foreign_srq);
    rd_cq_destroy(foreign);
    rd_adapter_close(other);
    rig_down(&r);
}

static void create_at_every_limit_works_and_fills(void) {
    struct rig r;
    rig_objects(&r);
    const struct rd_limits *lim = rd_limits_get();
    struct rd_cq *cq;
    CHECK_ST(rd_cq_create(r.ad, lim->max_cq_depth, &cq), SN_OK);
    struct rd_qp_attr at = { .receive_cq = cq,
                             .initiator_cq = cq,
                             .receive_depth = lim->max_receive_depth,
                             .initiator_depth = lim->max_initiator_depth,
                             .max_receive_sge = lim->max_receive_sge,
                             .max_initiator_sge = lim->max_initiator_sge,
                             .inline_bytes = lim->max_inline_bytes };
    enum rd_qp_attr_fault fault;
    struct rd_qp *qp;
    CHECK_ST(rd_qp_create(r.ad, &at, &fault, &qp), SN_OK);
    struct tp_sge s[17];
    for (int i = 0; i < 17; i++)
        s[i] = rig_sge(&r, (size_t)i * 8, 8);
    for (uint32_t i = 0; i < lim->max_receive_depth; i++)
        CHECK_ST(rd_qp_receive(qp, CTX(i), s, 16), SN_OK);
    CHECK_ST(rd_qp_receive(qp, NULL, s, 16), SN_E_FULL);
    rd_qp_flush(qp);
    struct rd_completion c;
    for (uint32_t i = 0; i < lim->max_receive_depth; i++) {
        CHECK_EQ(rd_cq_poll(cq, &c, 1), 1);
        CHECK_PTR(c.request_context, CTX(i));
        CHECK_ST(c.status, SN_E_CANCELED);
    }
    CHECK_ST(rd_qp_receive(qp, NULL, s, 17), SN_E_TOO_MANY_SGE);
    CHECK_ST(rd_qp_receive(qp, NULL, s, 16), SN_OK); /* unconnected: usable after the flush */
    rd_qp_destroy(qp);
    rd_cq_destroy(cq);
    rig_down(&r);
}

static void depth_zero_every_post_is_full(void) {
    struct rig r;
    rig_objects(&r);
    struct rd_qp_attr at = rig_attr(r.a.cq);
    enum rd_qp_attr_fault fault;
    at.receive_depth = at.initiator_depth = at.max_receive_sge = at.max_initiator_sge = 0;
    at.inline_bytes = 0;
    rd_qp_destroy(r.a.qp);
    CHECK_ST(rd_qp_create(r.ad, &at, &fault, &r.a.qp), SN_OK);
    CHECK_ST(rd_qp_receive(r.a.qp, NULL, NULL, 0), SN_E_FULL);
    rig_connect_limits(&r, 1, 1);
    CHECK_ST(rd_qp_send(r.a.qp, NULL, NULL, 0, 0, 0), SN_E_FULL);
    CHECK_ST(send_n(&r, r.a.qp, 1, 8, RD_POST_INLINE), SN_E_TOO_LONG);
    rig_down(&r);
}

static void post_beyond_limits_is_refused_and_harmless(void) {
    struct rig r;
    rig_up(&r);
    struct tp_sge s[17];
    for (int i = 0; i < 17; i++)
        s[i] = rig_sge(&r, 0, 8);
    /* Made with 1, takes 4: a real client sends 2. */
    CHECK_ST(rd_qp_receive(r.b.qp, CTX(1), s, 4), SN_OK);
    CHECK_ST(rd_qp_receive(r.b.qp, CTX(1), s, 5), SN_E_TOO_MANY_SGE);
    CHECK_ST(rd_qp_send(r.a.qp, CTX(2), s, 5, 0, 0), SN_E_TOO_MANY_SGE);
    CHECK_ST(rd_qp_write(r.a.qp, CTX(2), s, 5, 0, 0, 0), SN_E_TOO_MANY_SGE);
    CHECK_ST(rd_qp_read(r.a.qp, CTX(2), s, 5, 0, 0, 0), SN_E_TOO_MANY_SGE);
    CHECK_ST(rd_qp_read(r.a.qp, CTX(2), s, 17, 0, 0, 0), SN_E_TOO_MANY_SGE);
    CHECK_ST(rd_qp_send(r.a.qp, CTX(2), NULL, 1, 0, 0), SN_E_PARAM);
    s[0].len = s[1].len = 0x20000001;
    CHECK_ST(rd_qp_send(r.a.qp, CTX(2), s, 2, 0, 0), SN_E_TOO_LONG);
    CHECK_ST(rd_qp_receive(r.b.qp, CTX(2), s, 2), SN_E_TOO_LONG);
    s[0].len = s[1].len = 0xFFFFFFFF; /* the sum must not wrap to something small */
    s[2].len = 2;
    CHECK_ST(rd_qp_write(r.a.qp, CTX(2), s, 3, 0, 0, 0), SN_E_TOO_LONG);
    s[0].len = s[1].len = 8;
    CHECK_ST(rd_qp_send(r.a.qp, CTX(3), s, 2, 0, 0), SN_OK);
    CHECK_CQE(r.a.cq, RD_SEND, 3, SN_OK, 16);
    CHECK_CQE(r.b.cq, RD_RECEIVE, 1, SN_OK, 16);
    rig_down(&r);
}

static void queue_full_refuses_and_frees_on_completion(void) {
    struct rig r;
    rig_up(&r);
    fake_manual(r.ca);
    for (uint32_t i = 0; i < RIG_DEPTH; i++)
        CHECK_ST(send_n(&r, r.a.qp, i, 1, 0), SN_OK);
    CHECK_ST(send_n(&r, r.a.qp, 99, 1, 0), SN_E_FULL);
    CHECK_EQ(fake_take_requests(r.ca), RIG_DEPTH);
    fake_finish(r.ca, 1, SN_OK); /* not the oldest: nothing leaves */
    CHECK_NO_CQE(r.a.cq);
    CHECK_ST(send_n(&r, r.a.qp, 99, 1, 0), SN_E_FULL);
    fake_finish(r.ca, 0, SN_OK);
    /* Free although nobody has polled. */
    CHECK_ST(send_n(&r, r.a.qp, 16, 1, 0), SN_OK);
    CHECK_ST(send_n(&r, r.a.qp, 17, 1, 0), SN_OK);
    CHECK_ST(send_n(&r, r.a.qp, 99, 1, 0), SN_E_FULL);
    CHECK_CQE(r.a.cq, RD_SEND, 0, SN_OK, 1);
    CHECK_CQE(r.a.cq, RD_SEND, 1, SN_OK, 1);
    rig_down(&r);
}

static void receives_told_together_fire_once_and_come_in_order(void) {
    struct rig r;
    struct rig_async n;
    struct tp_received told[3] = { { .bytes = 1 }, { .bytes = 2 }, { .bytes = 3 } };
    rig_up(&r);
    for (uint32_t i = 0; i < RIG_DEPTH; i++)
        CHECK_ST(receive_n(&r, r.b.qp, i, 0, 8), SN_OK);
    for (uint32_t i = 0; i < 3; i++) {
        told[i].recv = fake_take_receive(r.cb);
        CHECK(told[i].recv != NULL);
    }
    told[1].flags = TP_RECV_SOLICITED;
    CHECK_ST(rd_cq_notify(r.b.cq, RD_NOTIFY_SOLICITED, rig_arm(&n)), SN_PENDING);
    CHECK_ST(receive_n(&r, r.b.qp, 99, 0, 8), SN_E_FULL);
    rd_upcalls.receives_done(r.b.qp, told, 3);
    CHECK_DONE(&n, SN_OK);
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_ST(receive_n(&r, r.b.qp, RIG_DEPTH + i, 0, 8), SN_OK);
        CHECK_CQE(r.b.cq, RD_RECEIVE, i, SN_OK, i + 1);
    }
    CHECK_NO_CQE(r.b.cq);
    CHECK_ST(receive_n(&r, r.b.qp, 99, 0, 8), SN_E_FULL);
    rig_down(&r);
}

static void receive_slot_is_free_when_its_completion_is_seen(void) {
    struct rig r;
    rig_up(&r);
    for (uint32_t i = 0; i < RIG_DEPTH; i++)
        CHECK_ST(receive_n(&r, r.b.qp, i, 0, 8), SN_OK);
    CHECK_ST(receive_n(&r, r.b.qp, 99, 0, 8), SN_E_FULL);
    for (uint32_t i = 0; i < 5 * RIG_DEPTH; i++) {
        CHECK_ST(send_n(&r, r.a.qp, i, 8, 0), SN_OK);
        CHECK_CQE(r.a.cq, RD_SEND, i, SN_OK, 8);
        CHECK_CQE(r.b.cq, RD_RECEIVE, i, SN_OK, 8);
        CHECK_ST(receive_n(&r, r.b.qp, i + RIG_DEPTH, 0, 8), SN_OK);
        CHECK_ST(receive_n(&r, r.b.qp, 99, 0, 8), SN_E_FULL);
    }
    rig_down(&r);
}

static void post_never_connected_is_refused(void) {
    struct rig r;
    rig_objects(&r);
    struct rd_window *w;
    CHECK_ST(rd_window_create(r.ad, &w), SN_OK);
    CHECK_ST(send_n(&r, r.a.qp, 1, 1, 0), SN_E_NOT_CONNECTED);
    CHECK_ST(rd_qp_write(r.a.qp, NULL, NULL, 0, 0, 0, 0), SN_E_NOT_CONNECTED);
    CHECK_ST(rd_qp_read(r.a.qp, NULL, NULL, 0, 0, 0, 0), SN_E_NOT_CONNECTED);
    CHECK_ST(rd_qp_bind(r.a.qp, NULL, r.mem, w, r.buf, 8, 0, 0), SN_E_NOT_CONNECTED);
    CHECK_ST(rd_qp_invalidate(r.a.qp, NULL, w, 0), SN_E_NOT_CONNECTED);
    CHECK_EQ(rd_window_token(w), 0);
    CHECK_ST(receive_n(&r, r.a.qp, 1, 0, 8), SN_OK);
    CHECK_STR(rd_qp_transport(r.a.qp), "none");
    rd_window_destroy(w);
    rig_down(&r);
}

static void read_with_outbound_limit_zero_is_refused(void) {
    struct rig r;
    rig_objects(&r);
    rig_connect_limits(&r, 0, 0);
    struct tp_sge s = rig_sge(&r, 0, 4);
    CHECK_ST(rd_qp_read(r.a.qp, NULL, &s, 1, 0, 0, 0), SN_E_REQUEST);
    CHECK_ST(rd_qp_read(r.b.qp, NULL, &s, 1, 0, 0, 0), SN_E_REQUEST);
    CHECK_ST(receive_n(&r, r.b.qp, 1, 0, 8), SN_OK);
    CHECK_ST(send_n(&r, r.a.qp, 2, 4, 0), SN_OK);
    CHECK_CQE(r.a.cq, RD_SEND, 2, SN_OK, 4);
    rig_down(&r);
}

/* ---- inline ---- */

static void inline_send_buffer_is_free_on_return(void) {
    struct rig r;
    rig_up(&r);
    uint8_t stack[3][8];
    struct tp_sge s[6];
    memset(stack, 'x', sizeof stack);
    for (int i = 0; i < 6; i++)
        s[i] = (struct tp_sge){ stack[i % 3], 4, 0xDEAD }; /* not registered, more than 4 of them */
    CHECK_ST(rd_qp_send(r.a.qp, CTX(1), s, 6, RD_POST_INLINE, 0), SN_OK);
    memset(stack, 'y', sizeof stack);
    CHECK_ST(receive_n(&r, r.b.qp, 2, 0, 64), SN_OK);
    CHECK_CQE(r.b.cq, RD_RECEIVE, 2, SN_OK, 24);
    CHECK_CQE(r.a.cq, RD_SEND, 1, SN_OK, 24);
    CHECK_BYTES(r.buf, "xxxxxxxxxxxxxxxxxxxxxxxx", 24);
    rig_down(&r);
}

static void inline_longer_than_asked_for_is_too_long(void) {
    struct rig r;
    rig_up(&r);
    CHECK_ST(receive_n(&r, r.b.qp, 1, 0, 100), SN_OK);
    CHECK_ST(send_n(&r, r.a.qp, 1, 65, RD_POST_INLINE), SN_E_TOO_LONG);
    CHECK_ST(send_n(&r, r.a.qp, 2, 64, RD_POST_INLINE), SN_OK);
    CHECK_CQE(r.a.cq, RD_SEND, 2, SN_OK, 64);
    rig_down(&r);
}

static void inline_flag_on_read_is_ignored(void) {
    struct rig r;
    rig_up(&r);
    struct tp_sge s = rig_sge(&r, 0, 100);
    memset(r.buf + 500, 'r', 100);
    CHECK_ST(rd_qp_read(r.a.qp, CTX(1), &s, 1, (uintptr_t)(r.buf + 500),
                        rd_region_remote_token(r.mem), RD_POST_INLINE),
             SN_OK);
    CHECK_CQE(r.a.cq, RD_READ, 1, SN_OK, 100);
    CHECK_BYTES(r.buf, r.buf + 500, 100);
    rig_down(&r);
}

static void inline_unreadable_buffer_fails_the_post(void) {
    struct rig r;
    rig_up(&r);
    struct tp_sge s = { (void *)(uintptr_t)64, 8, 0 };
    CHECK_ST(rd_qp_send(r.a.qp, CTX(1), &s, 1, RD_POST_INLINE, 0), SN_E_FAULT);
    CHECK_ST(receive_n(&r, r.b.qp, 2, 0, 8), SN_OK);
    CHECK_ST(send_n(&r, r.a.qp, 3, 8, 0), SN_OK);
    CHECK_CQE(r.a.cq, RD_SEND, 3, SN_OK, 8);
    rig_down(&r);
}

/* ---- order, silence, deferral, fences ---- */

static void initiator_completions_keep_posting_order(void) {
    struct rig r;
    rig_up(&r);
    fake_manual(r.ca);
    for (uint32_t i = 0; i < 6; i++)
        CHECK_ST(send_n(&r, r.a.qp, i, 1, i == 2 ? RD_POST_SILENT : 0), SN_OK);
    CHECK_EQ(fake_take_requests(r.ca), 6);
    fake_finish(r.ca, 5, SN_OK);
    fake_finish(r.ca, 3, SN_OK);
    fake_finish(r.ca, 1, SN_OK);
    CHECK_NO_CQE(r.a.cq);
    fake_finish(r.ca, 0, SN_OK); /* 0 and 1 leave; 2 is still out */
    CHECK_CQE(r.a.cq, RD_SEND, 0, SN_OK, 1);
    CHECK_CQE(r.a.cq, RD_SEND, 1, SN_OK, 1);
    CHECK_NO_CQE(r.a.cq);
    fake_finish(r.ca, 0, SN_OK); /* 2, silent */
    CHECK_CQE(r.a.cq, RD_SEND, 3, SN_OK, 1);
    CHECK_NO_CQE(r.a.cq);
    fake_finish(r.ca, 0, SN_OK); /* 4 */
    CHECK_CQE(r.a.cq, RD_SEND, 4, SN_OK, 1);
    CHECK_CQE(r.a.cq, RD_SEND, 5, SN_OK, 1);
    rig_down(&r);
}

static void silent_success_frees_its_slot_without_an_entry(void) {
    struct rig r;
    rig_up(&r);
    for (uint32_t i = 0; i < 10 * RIG_DEPTH; i++) {
        CHECK_ST(rd_qp_write(r.a.qp, CTX(i), NULL, 0, 0, 0, RD_POST_SILENT), SN_OK);
        CHECK_NO_CQE(r.a.cq);
    }
    rig_down(&r);
}

static void full_queue_asks_what_became_of_silent_requests(void) {
    struct rig r;
    rig_up(&r);
    fake_manual(r.ca);
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < RIG_DEPTH; i++)
            CHECK_ST(send_n(&r, r.a.qp, i, 1, RD_POST_SILENT), SN_OK);
        fake_take_requests(r.ca);
        CHECK_ST(send_n(&r, r.a.qp, 0, 1, RD_POST_SILENT), SN_E_FULL);
        r.ca->keeps = true;
        CHECK_ST(send_n(&r, r.a.qp, 0, 1, RD_POST_SILENT), SN_OK);
        r.ca->keeps = false;
        fake_take_requests(r.ca);
        fake_finish(r.ca, 0, SN_OK);
        CHECK_NO_CQE(r.a.cq);
    }
    rig_down(&r);
}

static void silent_failure_has_an_entry(void) {
    struct rig r;
    rig_up(&r);
    struct tp_sge s = rig_sge(&r, RIG_BUF - 4, 8); /* 4 bytes beyond the region */
    CHECK_ST(rd_qp_write(r.a.qp, CTX(1), &s, 1, 0, 0, RD_POST_SILENT), SN_OK);
    CHECK_CQE(r.a.cq, RD_WRITE, 1, SN_E_RANGE, 0);
    rig_down(&r);
}

static void error_cancels_what_is_behind_it(void) {
    struct rig r;
    rig_up(&r);
    fake_manual(r.ca);
    for (uint32_t i = 0; i < 4; i++)
        CHECK_ST(send_n(&r, r.a.qp, i, 3, RD_POST_SILENT), SN_OK);
    fake_take_requests(r.ca);
    fake_finish(r.ca, 3, SN_OK); /* finished, but behind the error */
    fake_finish(r.ca, 1, SN_E_REMOTE);
    CHECK_NO_CQE(r.a.cq);
    fake_finish(r.ca, 0, SN_OK); /* silent */
    CHECK_CQE(r.a.cq, RD_SEND, 1, SN_E_REMOTE, 0);
    CHECK_NO_CQE(r.a.cq);
    CHECK_ST(send_n(&r, r.a.qp, 4, 3, 0), SN_OK); /* accepted, never started */
    CHECK_EQ(fake_take_requests(r.ca), 1);        /* only number 2 is still out */
    fake_break(r.ca, SN_E_REMOTE);
    fake_run();
    CHECK_CQE(r.a.cq, RD_SEND, 2, SN_E_CANCELED, 0);
    CHECK_CQE(r.a.cq, RD_SEND, 3, SN_E_CANCELED, 0);
    CHECK_CQE(r.a.cq, RD_SEND, 4, SN_E_CANCELED, 0);
    CHECK_NO_CQE(r.a.cq);
    rig_down(&r);
}

static void failed_out_of_order_keeps_its_status_in_a_flush(void) {
    struct rig r;
    rig_up(&r);
    fake_manual(r.ca);
    for (uint32_t i = 0; i < 3; i++)
        CHECK_ST(send_n(&r, r.a.qp, i, 3, 0), SN_OK);
    fake_take_requests(r.ca);
    fake_finish(r.ca, 1, SN_E_TOKEN);
    fake_break(r.ca, SN_E_TOKEN);
    fake_run();
    CHECK_CQE(r.a.cq, RD_SEND, 0, SN_E_CANCELED, 0);
    CHECK_CQE(r.a.cq, RD_SEND, 1, SN_E_TOKEN, 0);
    CHECK_CQE(r.a.cq, RD_SEND, 2, SN_E_CANCELED, 0);
    rig_down(&r);
}

static void deferred_posts_start_with_the_next_undeferred(void) {
    struct rig r;
    rig_up(&r);
    fake_manual(r.ca);
    CHECK_ST(send_n(&r, r.a.qp, 1, 1, RD_POST_DEFER), SN_OK);
    CHECK_ST(send_n(&r, r.a.qp, 2, 1, RD_POST_DEFER), SN_OK);
    CHECK_EQ(os_u32_load_relaxed(&r.ca->post_sends), 0);
    CHECK_EQ(fake_take_requests(r.ca), 0);
    CHECK_ST(send_n(&r, r.a.qp, 3, 1, 0), SN_OK);
    CHECK_EQ(os_u32_load_relaxed(&r.ca->post_sends), 1);
    CHECK_EQ(fake_take_requests(r.ca), 3);
    rd_qp_flush(r.a.qp);
    rig_down(&r);
}

static void flags_reach_the_transport(void) {
    struct rig r;
    rig_up(&r);
    fake_manual(r.ca);
    struct tp_sge s = rig_sge(&r, 4, 3);
    CHECK_ST(rd_qp_send(r.a.qp, CTX(1), &s, 1, RD_POST_FENCE | RD_POST_SOLICIT | RD_POST_INVALIDATE,
                        0x1234),
             SN_OK);
    CHECK_ST(rd_qp_write(r.a.qp, CTX(2), &s, 1, 0x1122334455667788ull, 0x99, RD_POST_SOLICIT),
             SN_OK);
    CHECK_EQ(fake_take_requests(r.ca), 2);
    struct tp_request *q = r.ca->inflight[0];
    CHECK_EQ(q->op, TP_OP_SEND);
    CHECK_EQ(q->flags, TP_F_FENCE | TP_F_SOLICIT | TP_F_INVALIDATE);
    CHECK_EQ(q->invalidate_token, 0x1234);
    CHECK_EQ(q->length, 3);
    CHECK_EQ(q->sge_count, 1);
    CHECK_PTR(q->sge[0].addr, r.buf + 4);
    q = r.ca->inflight[1];
    CHECK_EQ(q->op, TP_OP_WRITE);
    CHECK_EQ(q->flags, 0);
    CHECK_EQ(q->remote_addr, 0x1122334455667788ull);
    CHECK_EQ(q->remote_token, 0x99);
    rig_down(&r);
}

static void fenced_request_waits_for_reads(void) {
    struct rig r;
    rig_up(&r);
    fake_manual(r.ca);
    struct tp_sge s = rig_sge(&r, 0, 4);
    CHECK_ST(rd_qp_read(r.a.qp, CTX(1), &s, 1, 0, 0, 0), SN_OK);
    CHECK_ST(send_n(&r, r.a.qp, 2, 4, RD_POST_FENCE), SN_OK);
    CHECK_EQ(fake_take_requests(r.ca), 1);
    fake_finish(r.ca, 0, SN_OK);
    CHECK_EQ(fake_take_requests(r.ca), 1);
    CHECK_EQ(r.ca->inflight[0]->op, TP_OP_SEND);
    rig_down(&r);
}

/* ---- receive outcomes ---- */

static void receive_too_short_fails_with_zero_bytes(void) {
    struct rig r;
    rig_up(&r);
    CHECK_ST(receive_n(&r, r.b.qp, 1, 0, 4), SN_OK);
    CHECK_ST(receive_n(&r, r.b.qp, 2, 0, 4), SN_OK);
    CHECK_ST(send_n(&r, r.a.qp, 3, 5, 0), SN_OK);
    CHECK_CQE(r.b.cq, RD_RECEIVE, 1, SN_E_MSG_TOO_LONG, 0);
    CHECK_CQE(r.b.cq, RD_RECEIVE, 2, SN_E_CANCELED, 0);
    rig_down(&r);
}

static void invalidated_token_is_reported(void) {
    struct rig r;
    rig_up(&r);
    struct rd_window *w;
    CHECK_ST(rd_window_create(r.ad, &w), SN_OK);
    CHECK_ST(rd_qp_bind(r.b.qp, CTX(1), r.mem, w, r.buf, 64, RD_REMOTE_WRITE, 0), SN_OK);
    CHECK_CQE(r.b.cq, RD_BIND, 1, SN_OK, 0);
    uint32_t token = rd_window_token(w);
    CHECK_ST(receive_n(&r, r.b.qp, 2, 0, 8), SN_OK);
    CHECK_ST(rd_qp_send(r.a.qp, CTX(3), NULL, 0, RD_POST_INVALIDATE, token), SN_OK);
    struct rd_completion c;
    CHECK_EQ(rd_cq_poll(r.b.cq, &c, 1), 1);
    CHECK_ST(c.status, SN_OK);
    CHECK_EQ(c.invalidated_token, token);
    CHECK_EQ(rd_window_token(w), 0);
    CHECK_CQE(r.a.cq, RD_SEND, 3, SN_OK, 0);
    rd_window_destroy(w);
    rig_down(&r);
}

/* ---- flush and the end of connections ---- */

static void flush_unconnected_leaves_it_usable(void) {
    struct rig r;
    rig_objects(&r);
    CHECK_ST(receive_n(&r, r.a.qp, 1, 0, 8), SN_OK);
    CHECK_ST(receive_n(&r, r.a.qp, 2, 0, 8), SN_OK);
    rd_qp_flush(r.a.qp);
    CHECK_CQE(r.a.cq, RD_RECEIVE, 1, SN_E_CANCELED, 0);
    CHECK_CQE(r.a.cq, RD_RECEIVE, 2, SN_E_CANCELED, 0);
    CHECK_ST(receive_n(&r, r.a.qp, 3, 100, 8), SN_OK);
    rig_connect_limits(&r, 1, 1);
    CHECK_ST(send_n(&r, r.b.qp, 4, 8, 0), SN_OK);
    CHECK_CQE(r.a.cq, RD_RECEIVE, 3, SN_OK, 8);
    rig_down(&r);
}

static void flush_connected_puts_it_in_error(void) {
    struct rig r;
    struct rig_async gone_a, gone_b, dis;
    rig_up(&r);
    fake_manual(r.ca);
    CHECK_ST(rd_connector_notify_disconnect(r.a.c, rig_arm(&gone_a)), SN_PENDING);
    CHECK_ST(rd_connector_notify_disconnect(r.b.c, rig_arm(&gone_b)), SN_PENDING);
    CHECK_ST(receive_n(&r, r.a.qp, 1, 0, 8), SN_OK);
    CHECK_ST(send_n(&r, r.a.qp, 2, 8, 0), SN_OK);
    CHECK_ST(receive_n(&r, r.b.qp, 3, 0, 8), SN_OK);
    fake_take_requests(r.ca);
    rd_qp_flush(r.a.qp);
    CHECK_DONE(&gone_a, SN_OK);
    CHECK_CQE(r.a.cq, RD_SEND, 2, SN_E_CANCELED, 0);
    CHECK_CQE(r.a.cq, RD_RECEIVE, 1, SN_E_CANCELED, 0);
    /* Posts are accepted and flushed, in order. */
    CHECK_ST(send_n(&r, r.a.qp, 4, 8, RD_POST_SILENT), SN_OK);
    CHECK_ST(receive_n(&r, r.a.qp, 5, 0, 8), SN_OK);
    CHECK_CQE(r.a.cq, RD_SEND, 4, SN_E_CANCELED, 0);
    CHECK_CQE(r.a.cq, RD_RECEIVE, 5, SN_E_CANCELED, 0);
    fake_run();
    CHECK_DONE(&gone_b, SN_OK);
    CHECK_CQE(r.b.cq, RD_RECEIVE, 3, SN_E_CANCELED, 0);
    CHECK_ST(rd_connector_disconnect(r.a.c, rig_arm(&dis)), SN_PENDING);
    CHECK_DONE(&dis, SN_OK);
    CHECK_ST(send_n(&r, r.a.qp, 6, 8, 0), SN_E_NOT_CONNECTED);
    CHECK_ST(receive_n(&r, r.a.qp, 7, 0, 8), SN_OK);
    CHECK_CQE(r.a.cq, RD_RECEIVE, 7, SN_E_CANCELED, 0);
    rig_down(&r);
}

static void flush_is_one_event_with_all_entries(void) {
    struct rig r;
    struct rig_async n;
    rig_up(&r);
    fake_manual(r.ca);
    for (uint32_t i = 0; i < 8; i++) {
        CHECK_ST(receive_n(&r, r.a.qp, i, 0, 8), SN_OK);
        CHECK_ST(send_n(&r, r.a.qp, i, 8, 0), SN_OK);
    }
    CHECK_ST(rd_cq_notify(r.a.cq, RD_NOTIFY_ANY, rig_arm(&n)), SN_PENDING);
    rd_qp_flush(r.a.qp);
    CHECK_DONE(&n, SN_OK);
    struct rd_completion c[32];
    CHECK_EQ(rd_cq_poll(r.a.cq, c, 32), 16);
    /* All of it was reported: the next request waits. */
    CHECK_ST(rd_cq_notify(r.a.cq, RD_NOTIFY_ANY, rig_arm(&n)), SN_PENDING);
    CHECK_NOT_DONE(&n);
    rig_down(&r);
    CHECK_DONE(&n, SN_E_CANCELED);
}

static void flush_with_two_queues_fires_both(void) {
    struct rig r;
    struct rig_async n1, n2;
    rig_objects(&r);
    struct rd_qp_attr at = rig_attr(r.a.cq);
    enum rd_qp_attr_fault fault;
    rd_qp_destroy(r.a.qp);
    at.initiator_cq = r.b.cq;
    CHECK_ST(rd_qp_create(r.ad, &at, &fault, &r.a.qp), SN_OK);
    rig_connect_limits(&r, 1, 1);
    fake_manual(r.ca);
    CHECK_ST(receive_n(&r, r.a.qp, 1, 0, 8), SN_OK);
    CHECK_ST(send_n(&r, r.a.qp, 2, 8, 0), SN_OK);
    CHECK_ST(rd_cq_notify(r.a.cq, RD_NOTIFY_ANY, rig_arm(&n1)), SN_PENDING);
    CHECK_ST(rd_cq_notify(r.b.cq, RD_NOTIFY_ERRORS, rig_arm(&n2)), SN_PENDING);
    rd_qp_flush(r.a.qp);
    CHECK_DONE(&n1, SN_OK);
    CHECK_DONE(&n2, SN_OK);
    CHECK_CQE(r.a.cq, RD_RECEIVE, 1, SN_E_CANCELED, 0);
    CHECK_CQE(r.b.cq, RD_SEND, 2, SN_E_CANCELED, 0);
    rig_down(&r);
}

static void peer_disconnect_flushes_after_its_notification(void) {
    struct rig r;
    struct rig_async gone, any, dis;
    rig_up(&r);
    CHECK_ST(receive_n(&r, r.b.qp, 1, 0, 8), SN_OK);
    CHECK_ST(rd_connector_notify_disconnect(r.b.c, rig_arm(&gone)), SN_PENDING);
    CHECK_ST(rd_cq_notify(r.b.cq, RD_NOTIFY_ANY, rig_arm(&any)), SN_PENDING);
    CHECK_ST(rd_connector_disconnect(r.a.c, rig_arm(&dis)), SN_PENDING);
    CHECK_DONE(&dis, SN_OK);
    CHECK_NOT_DONE(&gone);
    fake_run();
    CHECK_DONE(&gone, SN_OK);
    CHECK_DONE(&any, SN_OK);
    CHECK(gone.seq < any.seq);
    CHECK_CQE(r.b.cq, RD_RECEIVE, 1, SN_E_CANCELED, 0);
    CHECK_ST(send_n(&r, r.b.qp, 2, 8, 0), SN_OK); /* a credit after the client left */
    CHECK_CQE(r.b.cq, RD_SEND, 2, SN_E_CANCELED, 0);
    CHECK_STR(rd_qp_transport(r.b.qp), "fake");
    rig_down(&r);
}

static void destroyed_pair_leaves_its_completions(void) {
    struct rig r;
    struct rig_async gone;
    rig_up(&r);
    CHECK_ST(receive_n(&r, r.b.qp, 1, 0, 8), SN_OK);
    CHECK_ST(receive_n(&r, r.b.qp, 2, 0, 8), SN_OK);
    CHECK_ST(send_n(&r, r.a.qp, 3, 8, 0), SN_OK);
    CHECK_ST(rd_connector_notify_disconnect(r.b.c, rig_arm(&gone)), SN_PENDING);
    rd_qp_destroy(r.b.qp);
    r.b.qp = NULL;
    CHECK_DONE(&gone, SN_OK);
    CHECK_CQE(r.b.cq, RD_RECEIVE, 1, SN_OK, 8);
    CHECK_CQE(r.b.cq, RD_RECEIVE, 2, SN_E_CANCELED, 0);
    CHECK_CQE(r.a.cq, RD_SEND, 3, SN_OK, 8);
    CHECK_ST(send_n(&r, r.a.qp, 4, 8, 0), SN_OK);
    fake_run();
    CHECK_CQE(r.a.cq, RD_SEND, 4, SN_E_CANCELED, 0);
    rig_down(&r);
}

static void taken_receive_is_flushed_once(void) {
    struct rig r;
    rig_up(&r);
    CHECK_ST(receive_n(&r, r.b.qp, 1, 0, 8), SN_OK);
    CHECK_ST(receive_n(&r, r.b.qp, 2, 0, 8), SN_OK);
    CHECK(fake_take_receive(r.cb) != NULL);
    rd_qp_flush(r.b.qp);
    CHECK_CQE(r.b.cq, RD_RECEIVE, 1, SN_E_CANCELED, 0);
    CHECK_CQE(r.b.cq, RD_RECEIVE, 2, SN_E_CANCELED, 0);
    CHECK_NO_CQE(r.b.cq);
    rig_down(&r);
}

/* ---- local requests ---- */

static void unbound_invalidate_fails_and_ends_the_connection(void) {
    struct rig r;
    struct rd_window *w;
    rig_up(&r);
    CHECK_ST(rd_window_create(r.ad, &w), SN_OK);
    CHECK_ST(receive_n(&r, r.a.qp, 1, 0, 8), SN_OK);
    CHECK_ST(rd_qp_invalidate(r.a.qp, CTX(2), w, RD_POST_SILENT), SN_OK);
    CHECK_CQE(r.a.cq, RD_INVALIDATE, 2, SN_E_REQUEST, 0);
    CHECK_ST(send_n(&r, r.a.qp, 3, 8, 0), SN_OK);
    fake_run();
    struct rd_completion c[4];
    CHECK_EQ(rd_cq_poll(r.a.cq, c, 4), 2);
    CHECK_PTR(c[0].request_context, CTX(3));
    CHECK_ST(c[0].status, SN_E_CANCELED);
    CHECK_PTR(c[1].request_context, CTX(1));
    CHECK_ST(c[1].status, SN_E_CANCELED);
    rd_window_destroy(w);
    rig_down(&r);
}

static void counters_follow_the_traffic(void) {
    struct rig r;
    struct rd_counter c[RD_COUNTERS_MAX];
    rig_up(&r);
    CHECK_ST(receive_n(&r, r.b.qp, 1, 0, 8), SN_OK);
    CHECK_ST(send_n(&r, r.a.qp, 2, 8, 0), SN_OK);
    uint32_t n = rd_qp_counters_get(r.a.qp, c);
    bool seen = false;
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(c[i].name, "tx_bytes") == 0) {
            seen = true;
            CHECK_EQ(c[i].value, 8);
        }
    CHECK(seen);
    CHECK(rd_cq_counters_get(r.a.cq, c) > 0);
    n = rd_adapter_counters_get(r.ad, c);
    CHECK(n > 0 && n <= RD_COUNTERS_MAX);
    CHECK_STR(c[0].name, "regions");
    CHECK_EQ(c[0].value, 1);
    rig_down(&r);
}

TEST_MAIN(
    TEST(send_receive_connected_moves_bytes), TEST(write_and_read_connected_move_bytes),
    TEST(zero_length_requests_complete), TEST(receives_told_together_fire_once_and_come_in_order),
    TEST(send_without_receive_waits_for_one), TEST(qp_context_in_completions),
    TEST(create_bad_attribute_names_it), TEST(create_at_every_limit_works_and_fills),
    TEST(depth_zero_every_post_is_full), TEST(post_beyond_limits_is_refused_and_harmless),
    TEST(queue_full_refuses_and_frees_on_completion),
    TEST(receive_slot_is_free_when_its_completion_is_seen), TEST(post_never_connected_is_refused),
    TEST(read_with_outbound_limit_zero_is_refused), TEST(inline_send_buffer_is_free_on_return),
    TEST(inline_longer_than_asked_for_is_too_long), TEST(inline_flag_on_read_is_ignored),
    TEST(inline_unreadable_buffer_fails_the_post), TEST(initiator_completions_keep_posting_order),
    TEST(silent_success_frees_its_slot_without_an_entry),
    TEST(full_queue_asks_what_became_of_silent_requests), TEST(silent_failure_has_an_entry),
    TEST(error_cancels_what_is_behind_it), TEST(failed_out_of_order_keeps_its_status_in_a_flush),
    TEST(deferred_posts_start_with_the_next_undeferred), TEST(flags_reach_the_transport),
    TEST(fenced_request_waits_for_reads), TEST(receive_too_short_fails_with_zero_bytes),
    TEST(invalidated_token_is_reported), TEST(flush_unconnected_leaves_it_usable),
    TEST(flush_connected_puts_it_in_error), TEST(flush_is_one_event_with_all_entries),
    TEST(flush_with_two_queues_fires_both), TEST(peer_disconnect_flushes_after_its_notification),
    TEST(destroyed_pair_leaves_its_completions), TEST(taken_receive_is_flushed_once),
    TEST(unbound_invalidate_fails_and_ends_the_connection), TEST(counters_follow_the_traffic))
