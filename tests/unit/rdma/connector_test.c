/* SPDX-License-Identifier: MIT
 * Connectors and listeners: every status, the order of things, private data, read limits, retries.
 */
#include "rig.h"

struct pair { /* a listener and two connectors, nothing done yet */
    struct rig r;
    struct os_addr at;
    struct rig_async get, con, acc, com;
};

static void pair_up(struct pair *p, uint32_t backlog) {
    rig_objects(&p->r);
    p->at = rig_addr(0);
    CHECK_ST(rd_listener_create(p->r.ad, &p->r.l), SN_OK);
    CHECK_ST(rd_listener_bind(p->r.l, &p->at), SN_OK);
    CHECK_ST(rd_listener_listen(p->r.l, backlog), SN_OK);
    CHECK_ST(rd_listener_local_addr(p->r.l, &p->at), SN_OK);
    CHECK_ST(rd_connector_create(p->r.ad, &p->r.a.c), SN_OK);
    CHECK_ST(rd_connector_create(p->r.ad, &p->r.b.c), SN_OK);
}

static sn_status connect_pd(struct pair *p, const void *pd, uint32_t len) {
    return rd_connector_connect(p->r.a.c, p->r.a.qp, &p->at, 16, 16, pd, len, rig_arm(&p->con));
}

/* The request is with b's connector. */
static void pair_requested(struct pair *p) {
    pair_up(p, 0);
    CHECK_ST(rd_listener_get_request(p->r.l, p->r.b.c, rig_arm(&p->get)), SN_PENDING);
    CHECK_ST(connect_pd(p, "caller", 6), SN_PENDING);
    fake_run();
    CHECK_DONE(&p->get, SN_OK);
    CHECK_NOT_DONE(&p->con);
    p->r.ca = fake_last_active();
    p->r.cb = fake_last_passive();
}

/* a's connector has the answer. */
static void pair_answered(struct pair *p) {
    pair_requested(p);
    CHECK_ST(rd_connector_accept(p->r.b.c, p->r.b.qp, 16, 16, "callee!", 7, rig_arm(&p->acc)),
             SN_PENDING);
    fake_run();
    CHECK_DONE(&p->con, SN_OK);
    CHECK_NOT_DONE(&p->acc);
}

static sn_status reuse(struct rig *r, struct rd_qp *qp, struct rig_async *a) {
    struct rd_connector *c;
    struct os_addr at = rig_addr(9);
    sn_status st = rd_connector_create(r->ad, &c);
    if (st == SN_OK) st = rd_connector_connect(c, qp, &at, 0, 0, NULL, 0, rig_arm(a));
    rd_connector_destroy(c);
    return st;
}

/* ---- bind ---- */

static void bind_twice_is_address_bound(void) {
    struct pair p;
    pair_up(&p, 0);
    struct os_addr at = rig_addr(0), got;
    CHECK_ST(rd_connector_local_addr(p.r.a.c, &got), SN_E_NOT_CONNECTED);
    CHECK_ST(rd_connector_bind(p.r.a.c, &at), SN_OK);
    CHECK_ST(rd_connector_local_addr(p.r.a.c, &got), SN_OK);
    CHECK(got.port != 0 && os_addr_same_ip(&got, &at));
    CHECK_ST(rd_connector_bind(p.r.a.c, &at), SN_E_ADDR_BOUND);
    CHECK_ST(rd_listener_bind(p.r.l, &at), SN_E_ADDR_BOUND);
    rig_down(&p.r);
}

static void bind_foreign_address_is_invalid(void) {
    struct pair p;
    pair_up(&p, 0);
    struct os_addr at = { .family = 4, .ip = { 192, 0, 2, 77 } }, none = { 0 };
    CHECK_ST(rd_connector_bind(p.r.a.c, &at), SN_E_ADDR_INVALID);
    CHECK_ST(rd_connector_bind(p.r.a.c, &none), SN_E_ADDR_INVALID);
    struct rd_listener *l;
    CHECK_ST(rd_listener_create(p.r.ad, &l), SN_OK);
    CHECK_ST(rd_listener_bind(l, &at), SN_E_ADDR_INVALID);
    rd_listener_destroy(l);
    rig_down(&p.r);
}

static void bound_port_is_used_and_used_again_after_failure(void) {
    struct pair p;
    pair_up(&p, 0);
    struct os_addr at = rig_addr(43210), mine, nowhere = rig_addr(1);
    CHECK_ST(rd_connector_bind(p.r.a.c, &at), SN_OK);
    CHECK_ST(rd_connector_local_addr(p.r.a.c, &mine), SN_OK);
    CHECK_EQ(mine.port, 43210);
    CHECK_ST(rd_connector_connect(p.r.a.c, p.r.a.qp, &nowhere, 1, 1, NULL, 0, rig_arm(&p.con)),
             SN_PENDING);
    fake_run();
    CHECK_DONE(&p.con, SN_E_REFUSED);
    CHECK_ST(rd_listener_get_request(p.r.l, p.r.b.c, rig_arm(&p.get)), SN_PENDING);
    CHECK_ST(connect_pd(&p, NULL, 0), SN_PENDING);
    fake_run();
    CHECK_DONE(&p.get, SN_OK);
    struct os_addr seen;
    CHECK_ST(rd_connector_peer_addr(p.r.b.c, &seen), SN_OK);
    CHECK_EQ(seen.port, mine.port);
    rig_down(&p.r);
}

static void chosen_port_is_another_after_failure(void) {
    struct pair p;
    pair_up(&p, 0);
    struct os_addr at = rig_addr(0), first, second, seen, nowhere = rig_addr(1);
    CHECK_ST(rd_connector_bind(p.r.a.c, &at), SN_OK);
    CHECK_ST(rd_connector_local_addr(p.r.a.c, &first), SN_OK);
    CHECK_ST(rd_connector_connect(p.r.a.c, p.r.a.qp, &nowhere, 1, 1, NULL, 0, rig_arm(&p.con)),
             SN_PENDING);
    fake_run();
    CHECK_ST(rd_listener_get_request(p.r.l, p.r.b.c, rig_arm(&p.get)), SN_PENDING);
    CHECK_ST(connect_pd(&p, NULL, 0), SN_PENDING);
    fake_run();
    CHECK_DONE(&p.get, SN_OK);
    CHECK_ST(rd_connector_local_addr(p.r.a.c, &second), SN_OK);
    CHECK_ST(rd_connector_peer_addr(p.r.b.c, &seen), SN_OK);
    CHECK(second.port != first.port && second.port == seen.port);
    CHECK(os_addr_same_ip(&first, &second));
    rig_down(&p.r);
}

static void bind_anew_after_failure_is_allowed(void) {
    struct pair p;
    pair_up(&p, 0);
    struct os_addr at = rig_addr(0), first, second, nowhere = rig_addr(1);
    CHECK_ST(rd_connector_bind(p.r.a.c, &at), SN_OK);
    CHECK_ST(rd_connector_local_addr(p.r.a.c, &first), SN_OK);
    CHECK_ST(rd_connector_connect(p.r.a.c, p.r.a.qp, &nowhere, 1, 1, NULL, 0, rig_arm(&p.con)),
             SN_PENDING);
    fake_run();
    CHECK_ST(rd_connector_bind(p.r.a.c, &at), SN_OK);
    CHECK_ST(rd_connector_local_addr(p.r.a.c, &second), SN_OK);
    CHECK(first.port != second.port);
    CHECK_ST(rd_connector_bind(p.r.a.c, &at), SN_E_ADDR_BOUND);
    rig_down(&p.r);
}

/* ---- connect ---- */

static void connect_bad_arguments_are_refused_at_once(void) {
    struct pair p;
    pair_up(&p, 0);
    uint8_t pd[1024] = { 0 };
    struct os_addr any = { .family = 4, .port = 5 }, none = { .family = 0, .port = 5 };
    struct os_addr six = { .family = 6, .port = 5, .ip = { [15] = 1 } }, me = rig_addr(0);
    struct rd_connector *c = p.r.a.c;
    struct rd_qp *qp = p.r.a.qp;
    uint32_t most = rd_limits_get()->max_caller_data_bytes;
    CHECK_ST(rd_connector_connect(c, qp, &p.at, 1, 1, pd, most + 1, rig_arm(&p.con)),
             SN_E_BUFFER_SIZE);
    CHECK_ST(rd_connector_connect(c, qp, &any, 1, 1, NULL, 0, rig_arm(&p.con)), SN_E_NET_NAME);
    CHECK_ST(rd_connector_connect(c, qp, &none, 1, 1, NULL, 0, rig_arm(&p.con)), SN_E_NET_NAME);
    CHECK_ST(rd_connector_bind(c, &me), SN_OK);
    CHECK_ST(rd_connector_connect(c, qp, &six, 1, 1, NULL, 0, rig_arm(&p.con)), SN_E_NET_NAME);
    struct rd_adapter *other = rig_adapter();
    struct rd_cq *cq;
    CHECK_ST(rd_cq_create(other, 1, &cq), SN_OK);
    struct rd_qp *foreign = rig_qp(other, cq);
    CHECK_ST(rd_connector_connect(c, foreign, &p.at, 1, 1, NULL, 0, rig_arm(&p.con)), SN_E_PARAM);
    rd_qp_destroy(foreign);
    rd_cq_destroy(cq);
    rd_adapter_close(other);
    CHECK_NOT_DONE(&p.con);
    /* None of it did any harm. */
    CHECK_ST(connect_pd(&p, pd, most), SN_PENDING);
    CHECK_ST(rd_connector_connect(c, qp, &p.at, 1, 1, NULL, 0, rig_arm(&p.acc)), SN_E_CONNECTED);
    CHECK_ST(reuse(&p.r, qp, &p.com), SN_E_CONNECTED);
    rig_down(&p.r);
}

static void connect_nobody_listens_is_refused_and_can_be_repeated(void) {
    struct pair p;
    pair_up(&p, 0);
    struct os_addr nowhere = rig_addr(1);
    for (int i = 0; i < 3; i++) {
        CHECK_ST(rd_connector_connect(p.r.a.c, p.r.a.qp, &nowhere, 1, 1, NULL, 0, rig_arm(&p.con)),
                 SN_PENDING);
        fake_run();
        CHECK_DONE(&p.con, SN_E_REFUSED);
        CHECK(fake_conns_alive() <= 1);
    }
    uint32_t len = 0;
    CHECK_ST(rd_connector_private_data(p.r.a.c, NULL, &len), SN_OK);
    CHECK_EQ(len, 0);
    CHECK_ST(rd_listener_get_request(p.r.l, p.r.b.c, rig_arm(&p.get)), SN_PENDING);
    CHECK_ST(connect_pd(&p, NULL, 0), SN_PENDING);
    fake_run();
    CHECK_DONE(&p.get, SN_OK);
    rig_down(&p.r);
}

static void connect_outcomes_are_told(void) {
    static const struct {
        sn_status reply, seen;
    } rows[] = { { SN_E_REFUSED, SN_E_REFUSED },
                 { SN_E_TIMEOUT, SN_E_TIMEOUT },
                 { SN_E_NET_UNREACHABLE, SN_E_NET_UNREACHABLE },
                 { SN_E_HOST_UNREACHABLE, SN_E_HOST_UNREACHABLE },
                 { SN_E_ADDR_EXISTS, SN_E_ADDR_EXISTS },
                 { SN_E_PEER_GONE, SN_E_REFUSED },
                 { SN_E_WIRE, SN_E_REFUSED } };
    struct pair p;
    pair_up(&p, 0);
    fake_set_silent(true);
    for (size_t i = 0; i < SN_ARRAY_LEN(rows); i++) {
        CHECK_ST(connect_pd(&p, NULL, 0), SN_PENDING);
        fake_reply(fake_last_active(), rows[i].reply);
        fake_run();
        CHECK_DONE(&p.con, rows[i].seen);
        /* The same found by the system at once. */
        fake_fail_next(FAKE_CONNECT, rows[i].reply);
        CHECK_ST(connect_pd(&p, NULL, 0), SN_PENDING);
        CHECK_DONE(&p.con, rows[i].seen);
        CHECK_EQ(fake_ports_alive(), 1); /* the listener's */
    }
    rig_down(&p.r);
}

static void reply_before_connect_returns_is_not_lost(void) {
    struct pair p;
    pair_up(&p, 0);
    struct os_addr nowhere = rig_addr(1);
    fake_set_early(true);
    CHECK_ST(rd_connector_connect(p.r.a.c, p.r.a.qp, &nowhere, 1, 1, NULL, 0, rig_arm(&p.con)),
             SN_PENDING);
    CHECK_DONE(&p.con, SN_E_REFUSED);
    CHECK_ST(rd_listener_get_request(p.r.l, p.r.b.c, rig_arm(&p.get)), SN_PENDING);
    CHECK_ST(connect_pd(&p, "x", 1), SN_PENDING);
    CHECK_DONE(&p.get, SN_OK);
    CHECK_ST(rd_connector_accept(p.r.b.c, p.r.b.qp, 1, 1, NULL, 0, rig_arm(&p.acc)), SN_PENDING);
    CHECK_DONE(&p.con, SN_OK);
    CHECK_ST(rd_connector_complete(p.r.a.c, rig_arm(&p.com)), SN_PENDING);
    CHECK_DONE(&p.com, SN_OK);
    CHECK_DONE(&p.acc, SN_OK);
    rig_down(&p.r);
}

/* ---- the whole way ---- */

static void calls_out_of_order_are_refused(void) {
    struct pair p;
    struct rig_async x;
    uint32_t u = 0, v;
    pair_up(&p, 0);
    struct rd_connector *c = p.r.a.c;
    CHECK_ST(rd_connector_complete(c, rig_arm(&x)), SN_E_NOT_CONNECTED);
    CHECK_ST(rd_connector_accept(c, p.r.a.qp, 1, 1, NULL, 0, rig_arm(&x)), SN_E_NOT_CONNECTED);
    CHECK_ST(rd_connector_reject(c, NULL, 0), SN_E_NOT_CONNECTED);
    CHECK_ST(rd_connector_read_limits(c, &u, &v), SN_E_NOT_CONNECTED);
    CHECK_ST(rd_connector_private_data(c, NULL, &u), SN_E_NOT_CONNECTED);
    struct os_addr at;
    CHECK_ST(rd_connector_peer_addr(c, &at), SN_E_NOT_CONNECTED);
    CHECK_ST(rd_connector_notify_disconnect(c, rig_arm(&x)), SN_E_NOT_CONNECTED);
    CHECK_ST(rd_connector_disconnect(c, rig_arm(&x)), SN_E_NOT_CONNECTED);
    rd_connector_cancel(c);
    CHECK_ST(connect_pd(&p, NULL, 0), SN_PENDING);
    CHECK_ST(rd_connector_peer_addr(c, &at), SN_OK);
    CHECK_EQ(at.port, p.at.port);
    CHECK_ST(rd_connector_local_addr(c, &at), SN_OK); /* not bound, but on its way */
    CHECK_ST(rd_connector_complete(c, rig_arm(&x)), SN_E_NOT_CONNECTED);
    CHECK_ST(rd_connector_private_data(c, NULL, &u), SN_E_NOT_CONNECTED);
    CHECK_NOT_DONE(&x);
    rig_down(&p.r);
}

static void private_data_has_its_exact_length_both_ways(void) {
    struct pair p;
    char buf[64];
    pair_answered(&p);
    uint32_t len = 0;
    CHECK_ST(rd_connector_private_data(p.r.b.c, NULL, &len), SN_E_BUFFER_SMALL);
    CHECK_EQ(len, 6);
    len = sizeof buf;
    CHECK_ST(rd_connector_private_data(p.r.b.c, buf, &len), SN_OK);
    CHECK_EQ(len, 6);
    CHECK_BYTES(buf, "caller", 6);
    memset(buf, '.', sizeof buf);
    len = 3; /* filled as far as it fits */
    CHECK_ST(rd_connector_private_data(p.r.a.c, buf, &len), SN_E_BUFFER_SMALL);
    CHECK_EQ(len, 7);
    CHECK_BYTES(buf, "cal.", 4);
    len = 7;
    CHECK_ST(rd_connector_private_data(p.r.a.c, buf, &len), SN_OK);
    CHECK_BYTES(buf, "callee!.", 8);
    CHECK_ST(rd_connector_complete(p.r.a.c, rig_arm(&p.com)), SN_PENDING);
    len = 7; /* still there when connected */
    CHECK_ST(rd_connector_private_data(p.r.a.c, buf, &len), SN_OK);
    rig_down(&p.r);
}

static void read_limits_follow_the_table(void) {
    struct pair p;
    uint32_t in, out, m = rd_limits_get()->max_ird;
    pair_up(&p, 0);
    CHECK_ST(rd_listener_get_request(p.r.l, p.r.b.c, rig_arm(&p.get)), SN_PENDING);
    CHECK_ST(rd_connector_connect(p.r.a.c, p.r.a.qp, &p.at, 10, 100000, NULL, 0, rig_arm(&p.con)),
             SN_PENDING);
    fake_run();
    CHECK_ST(rd_connector_read_limits(p.r.b.c, &in, &out), SN_OK);
    CHECK_EQ(in, m);   /* what the caller wants to issue, clipped by the maximum */
    CHECK_EQ(out, 10); /* what it serves */
    CHECK_ST(rd_connector_accept(p.r.b.c, p.r.b.qp, 7, 20, NULL, 0, rig_arm(&p.acc)), SN_PENDING);
    fake_run();
    CHECK_ST(rd_connector_read_limits(p.r.a.c, &in, &out), SN_OK);
    CHECK_EQ(in, 10); /* 20 clipped by the 10 that the caller serves */
    CHECK_EQ(out, 7);
    CHECK_ST(rd_connector_complete(p.r.a.c, rig_arm(&p.com)), SN_PENDING);
    CHECK_EQ(fake_last_active()->setup.ird, 10);
    CHECK_EQ(fake_last_active()->setup.ord, 7);
    CHECK_EQ(fake_last_passive()->setup.ird, 7);
    CHECK_EQ(fake_last_passive()->setup.ord, 10);
    rig_down(&p.r);
}

static void accept_waits_for_complete(void) {
    struct pair p;
    pair_answered(&p);
    fake_run();
    CHECK_NOT_DONE(&p.acc);
    CHECK_ST(rd_qp_send(p.r.a.qp, NULL, NULL, 0, 0, 0), SN_E_NOT_CONNECTED);
    CHECK_ST(rd_qp_send(p.r.b.qp, NULL, NULL, 0, 0, 0), SN_E_NOT_CONNECTED);
    CHECK_ST(rd_connector_complete(p.r.a.c, rig_arm(&p.com)), SN_PENDING);
    CHECK_DONE(&p.com, SN_OK);
    CHECK_ST(rd_qp_send(p.r.a.qp, NULL, NULL, 0, 0, 0), SN_OK);
    fake_run();
    CHECK_DONE(&p.acc, SN_OK);
    CHECK_ST(rd_qp_send(p.r.b.qp, NULL, NULL, 0, 0, 0), SN_OK); /* the passive side first, too */
    CHECK_ST(rd_connector_complete(p.r.a.c, rig_arm(&p.com)), SN_E_NOT_CONNECTED);
    CHECK_ST(rd_connector_accept(p.r.b.c, p.r.b.qp, 1, 1, NULL, 0, rig_arm(&p.acc)),
             SN_E_CONNECTED);
    CHECK_ST(connect_pd(&p, NULL, 0), SN_E_CONNECTED);
    CHECK_ST(rd_connector_reject(p.r.b.c, NULL, 0), SN_E_NOT_CONNECTED);
    rig_down(&p.r);
}

static void accept_bad_arguments_leave_the_request(void) {
    struct pair p;
    uint8_t pd[1024] = { 0 };
    uint32_t most = rd_limits_get()->max_callee_data_bytes;
    pair_requested(&p);
    CHECK_ST(rd_connector_accept(p.r.b.c, p.r.b.qp, 1, 1, pd, most + 1, rig_arm(&p.acc)),
             SN_E_BUFFER_SIZE);
    CHECK_ST(rd_connector_reject(p.r.b.c, pd, most + 1), SN_E_BUFFER_SIZE);
    CHECK_ST(rd_connector_accept(p.r.b.c, p.r.a.qp, 1, 1, NULL, 0, rig_arm(&p.acc)),
             SN_E_CONNECTED); /* the caller's queue pair */
    CHECK_ST(rd_connector_accept(p.r.b.c, p.r.b.qp, 1, 1, pd, most, rig_arm(&p.acc)), SN_PENDING);
    fake_run();
    CHECK_DONE(&p.con, SN_OK);
    uint32_t len = 0;
    CHECK_ST(rd_connector_private_data(p.r.a.c, NULL, &len), SN_E_BUFFER_SMALL);
    CHECK_EQ(len, most);
    rig_down(&p.r);
}

static void message_before_establishment_is_told_allows_posting(void) {
    struct pair p;
    pair_answered(&p);
    CHECK_ST(rd_qp_receive(p.r.b.qp, CTX(1), NULL, 0), SN_OK);
    CHECK_ST(rd_connector_complete(p.r.a.c, rig_arm(&p.com)), SN_PENDING);
    /* The stream runs ahead of the event. */
    fake_manual(p.r.cb);
    os_u32_store_release(&p.r.cb->open, 1);
    CHECK_ST(rd_qp_send(p.r.b.qp, CTX(2), NULL, 0, 0, 0), SN_E_NOT_CONNECTED);
    CHECK(fake_arrive(p.r.cb, NULL, 0, 0, 0));
    CHECK_ST(rd_qp_send(p.r.b.qp, CTX(2), NULL, 0, 0, 0), SN_OK);
    CHECK_NOT_DONE(&p.acc);
    fake_run();
    CHECK_DONE(&p.acc, SN_OK);
    CHECK_CQE(p.r.b.cq, RD_RECEIVE, 1, SN_OK, 0);
    CHECK_EQ(fake_take_requests(p.r.cb), 1);
    rig_down(&p.r);
}

static void early_posts_of_a_failed_accept_are_cancelled(void) {
    struct pair p;
    pair_answered(&p);
    CHECK_ST(rd_qp_receive(p.r.b.qp, CTX(1), NULL, 0), SN_OK);
    CHECK_ST(rd_qp_receive(p.r.b.qp, CTX(3), NULL, 0), SN_OK);
    fake_manual(p.r.cb);
    os_u32_store_release(&p.r.cb->open, 1);
    CHECK(fake_arrive(p.r.cb, NULL, 0, 0, 0));
    CHECK_ST(rd_qp_send(p.r.b.qp, CTX(2), NULL, 0, 0, 0), SN_OK);
    CHECK(fake_take_receive(p.r.cb) != NULL);
    rd_connector_cancel(p.r.b.c);
    CHECK_DONE(&p.acc, SN_E_CANCELED);
    CHECK_CQE(p.r.b.cq, RD_RECEIVE, 1, SN_OK, 0);
    CHECK_CQE(p.r.b.cq, RD_SEND, 2, SN_E_CANCELED, 0);
    CHECK_NO_CQE(p.r.b.cq);
    CHECK_ST(rd_qp_send(p.r.b.qp, CTX(4), NULL, 0, 0, 0), SN_E_NOT_CONNECTED);
    rd_qp_flush(p.r.b.qp); /* the receive that the stream had taken is still posted */
    CHECK_CQE(p.r.b.cq, RD_RECEIVE, 3, SN_E_CANCELED, 0);
    rig_down(&p.r);
}

static void flush_while_accepting_cancels_the_accept(void) {
    struct pair p;
    pair_answered(&p);
    CHECK_ST(rd_qp_receive(p.r.b.qp, CTX(1), NULL, 0), SN_OK);
    rd_qp_flush(p.r.b.qp);
    CHECK_DONE(&p.acc, SN_E_CANCELED);
    CHECK_CQE(p.r.b.cq, RD_RECEIVE, 1, SN_E_CANCELED, 0);
    CHECK_ST(reuse(&p.r, p.r.b.qp, &p.get), SN_E_CONNECTED);
    fake_run();
    CHECK_ST(rd_connector_complete(p.r.a.c, rig_arm(&p.com)), SN_PENDING);
    CHECK_DONE(&p.com, SN_E_ABORTED);
    rig_down(&p.r);
}

static void flush_while_connecting_leaves_the_attempt(void) {
    struct pair p;
    pair_requested(&p);
    CHECK_ST(rd_qp_receive(p.r.a.qp, CTX(1), NULL, 0), SN_OK);
    rd_qp_flush(p.r.a.qp);
    CHECK_CQE(p.r.a.cq, RD_RECEIVE, 1, SN_E_CANCELED, 0);
    CHECK_ST(rd_connector_accept(p.r.b.c, p.r.b.qp, 1, 1, NULL, 0, rig_arm(&p.acc)), SN_PENDING);
    fake_run();
    CHECK_DONE(&p.con, SN_OK);
    rd_qp_flush(p.r.a.qp);
    CHECK_ST(rd_connector_complete(p.r.a.c, rig_arm(&p.com)), SN_PENDING);
    CHECK_DONE(&p.com, SN_OK);
    rig_down(&p.r);
}

/* ---- saying no ---- */

static void reject_by_callee_refuses_with_data(void) {
    struct pair p;
    char buf[8];
    pair_requested(&p);
    CHECK_ST(rd_connector_reject(p.r.b.c, "no", 2), SN_OK);
    rd_connector_destroy(p.r.b.c); /* at once, and the answer still gets there */
    p.r.b.c = NULL;
    fake_run();
    CHECK_DONE(&p.con, SN_E_REFUSED);
    uint32_t len = sizeof buf;
    CHECK_ST(rd_connector_private_data(p.r.a.c, buf, &len), SN_OK);
    CHECK_EQ(len, 2);
    CHECK_BYTES(buf, "no", 2);
    CHECK_ST(connect_pd(&p, NULL, 0), SN_PENDING); /* and it may try again */
    rig_down(&p.r);
}

static void destroy_before_accept_rejects(void) {
    struct pair p;
    pair_requested(&p);
    rd_connector_destroy(p.r.b.c);
    p.r.b.c = NULL;
    fake_run();
    CHECK_DONE(&p.con, SN_E_REFUSED);
    rig_down(&p.r);
}

static void reject_by_caller_refuses_the_accept(void) {
    struct pair p;
    pair_answered(&p);
    CHECK_ST(rd_connector_reject(p.r.a.c, NULL, 0), SN_OK);
    fake_run();
    CHECK_DONE(&p.acc, SN_E_REFUSED);
    CHECK_ST(rd_connector_complete(p.r.a.c, rig_arm(&p.com)), SN_E_NOT_CONNECTED);
    /* Both queue pairs are as before. */
    CHECK_ST(reuse(&p.r, p.r.a.qp, &p.con), SN_PENDING);
    CHECK_ST(reuse(&p.r, p.r.b.qp, &p.con), SN_PENDING);
    rig_down(&p.r);
}

static void caller_destroyed_after_answer_refuses_the_accept(void) {
    struct pair p;
    pair_answered(&p);
    rd_connector_destroy(p.r.a.c);
    p.r.a.c = NULL;
    fake_run();
    CHECK_DONE(&p.acc, SN_E_REFUSED);
    rig_down(&p.r);
}

static void caller_pair_destroyed_after_answer_refuses_the_accept(void) {
    struct pair p;
    pair_answered(&p);
    rd_qp_destroy(p.r.a.qp);
    p.r.a.qp = NULL;
    fake_run();
    CHECK_DONE(&p.acc, SN_E_REFUSED);
    CHECK_ST(rd_connector_complete(p.r.a.c, rig_arm(&p.com)), SN_E_NOT_CONNECTED);
    rig_down(&p.r);
}

static void caller_gone_before_accept_aborts_it(void) {
    struct pair p;
    pair_requested(&p);
    rd_connector_destroy(p.r.a.c);
    p.r.a.c = NULL;
    fake_run();
    CHECK_DONE(&p.con, SN_E_CANCELED);
    CHECK_ST(rd_connector_accept(p.r.b.c, p.r.b.qp, 1, 1, NULL, 0, rig_arm(&p.acc)), SN_PENDING);
    CHECK_DONE(&p.acc, SN_E_ABORTED);
    CHECK_ST(reuse(&p.r, p.r.b.qp, &p.com), SN_PENDING);
    CHECK_ST(rd_connector_reject(p.r.b.c, NULL, 0), SN_E_NOT_CONNECTED);
    rig_down(&p.r);
}

static void caller_gone_before_reject_aborts_it(void) {
    struct pair p;
    pair_requested(&p);
    fake_abandon(p.r.cb);
    fake_run();
    CHECK_ST(rd_connector_reject(p.r.b.c, NULL, 0), SN_E_ABORTED);
    rig_down(&p.r);
}

static void accept_refused_by_transport_is_told(void) {
    struct pair p;
    pair_requested(&p);
    fake_fail_next(FAKE_ACCEPT, SN_E_ABORTED);
    CHECK_ST(rd_connector_accept(p.r.b.c, p.r.b.qp, 1, 1, NULL, 0, rig_arm(&p.acc)), SN_PENDING);
    CHECK_DONE(&p.acc, SN_E_ABORTED);
    CHECK_ST(reuse(&p.r, p.r.b.qp, &p.com), SN_PENDING);
    rig_down(&p.r);
}

static void complete_after_callee_left_is_aborted(void) {
    struct pair p;
    pair_answered(&p);
    rd_connector_destroy(p.r.b.c);
    p.r.b.c = NULL;
    CHECK_DONE(&p.acc, SN_E_CANCELED);
    fake_run();
    CHECK_ST(rd_connector_complete(p.r.a.c, rig_arm(&p.com)), SN_PENDING);
    CHECK_DONE(&p.com, SN_E_ABORTED);
    CHECK_ST(rd_connector_disconnect(p.r.a.c, rig_arm(&p.com)), SN_E_NOT_CONNECTED);
    rig_down(&p.r);
}

/* ---- cancel ---- */

static void cancel_connect_lets_it_try_again(void) {
    struct pair p;
    pair_up(&p, 0);
    fake_set_silent(true);
    CHECK_ST(connect_pd(&p, NULL, 0), SN_PENDING);
    rd_connector_cancel(p.r.a.c);
    CHECK_DONE(&p.con, SN_E_CANCELED);
    fake_set_silent(false);
    CHECK_ST(rd_listener_get_request(p.r.l, p.r.b.c, rig_arm(&p.get)), SN_PENDING);
    CHECK_ST(connect_pd(&p, NULL, 0), SN_PENDING);
    fake_run();
    CHECK_DONE(&p.get, SN_OK);
    rd_connector_cancel(p.r.a.c);
    CHECK_DONE(&p.con, SN_E_CANCELED);
    fake_run();
    CHECK_ST(rd_connector_accept(p.r.b.c, p.r.b.qp, 1, 1, NULL, 0, rig_arm(&p.acc)), SN_PENDING);
    CHECK_DONE(&p.acc, SN_E_ABORTED);
    rig_down(&p.r);
}

static void cancel_accept_ends_it(void) {
    struct pair p;
    pair_answered(&p);
    rd_connector_cancel(p.r.b.c);
    CHECK_DONE(&p.acc, SN_E_CANCELED);
    fake_run();
    CHECK_ST(rd_connector_complete(p.r.a.c, rig_arm(&p.com)), SN_PENDING);
    CHECK_DONE(&p.com, SN_E_ABORTED);
    rig_down(&p.r);
}

static void cancel_completes_in_issue_order(void) {
    struct rig r;
    struct rig_async n[4];
    rig_up(&r);
    for (int i = 0; i < 4; i++)
        CHECK_ST(rd_connector_notify_disconnect(r.a.c, rig_arm(&n[i])), SN_PENDING);
    rd_connector_cancel(r.a.c);
    for (int i = 0; i < 4; i++) {
        CHECK_DONE(&n[i], SN_E_CANCELED);
        if (i) CHECK_EQ(n[i].seq, n[i - 1].seq + 1);
    }
    rd_connector_cancel(r.a.c); /* nothing pending: harmless */
    CHECK_ST(rd_qp_receive(r.b.qp, CTX(1), NULL, 0), SN_OK);
    CHECK_ST(rd_qp_send(r.a.qp, CTX(2), NULL, 0, 0, 0), SN_OK); /* still connected */
    CHECK_CQE(r.b.cq, RD_RECEIVE, 1, SN_OK, 0);
    rig_down(&r);
}

/* ---- disconnect ---- */

static void disconnect_flushes_then_completes(void) {
    struct rig r;
    struct rig_async n, dis, any;
    rig_up(&r);
    CHECK_ST(rd_qp_receive(r.a.qp, CTX(1), NULL, 0), SN_OK);
    CHECK_ST(rd_connector_notify_disconnect(r.a.c, rig_arm(&n)), SN_PENDING);
    CHECK_ST(rd_cq_notify(r.a.cq, RD_NOTIFY_ANY, rig_arm(&any)), SN_PENDING);
    CHECK_ST(rd_connector_disconnect(r.a.c, rig_arm(&dis)), SN_PENDING);
    CHECK_DONE(&n, SN_OK);
    CHECK_DONE(&any, SN_OK);
    CHECK_DONE(&dis, SN_OK);
    CHECK(n.seq < any.seq && any.seq < dis.seq);
    CHECK_CQE(r.a.cq, RD_RECEIVE, 1, SN_E_CANCELED, 0);
    CHECK_ST(rd_connector_disconnect(r.a.c, rig_arm(&dis)), SN_E_NOT_CONNECTED);
    CHECK_ST(rd_connector_notify_disconnect(r.a.c, rig_arm(&n)), SN_PENDING);
    CHECK_DONE(&n, SN_OK);
    CHECK_ST(reuse(&r, r.a.qp, &n), SN_E_CONNECTED); /* a queue pair is used once */
    CHECK_STR(rd_qp_transport(r.a.qp), "none");
    rig_down(&r);
}

static void disconnect_after_the_peer_left_succeeds(void) {
    struct rig r;
    struct rig_async da, db, n;
    rig_up(&r);
    CHECK_ST(rd_connector_disconnect(r.a.c, rig_arm(&da)), SN_PENDING);
    fake_run();
    CHECK_ST(rd_connector_notify_disconnect(r.b.c, rig_arm(&n)), SN_PENDING);
    CHECK_DONE(&n, SN_OK);
    CHECK_ST(rd_connector_disconnect(r.b.c, rig_arm(&db)), SN_PENDING);
    CHECK_DONE(&db, SN_OK);
    rig_down(&r);
}

static void disconnect_from_both_sides_at_once_succeeds(void) {
    struct rig r;
    struct rig_async da, db, na, nb;
    rig_up(&r);
    CHECK_ST(rd_connector_notify_disconnect(r.a.c, rig_arm(&na)), SN_PENDING);
    CHECK_ST(rd_connector_notify_disconnect(r.b.c, rig_arm(&nb)), SN_PENDING);
    CHECK_ST(rd_connector_disconnect(r.a.c, rig_arm(&da)), SN_PENDING);
    CHECK_ST(rd_connector_disconnect(r.b.c, rig_arm(&db)), SN_PENDING); /* event not seen yet */
    fake_run();
    CHECK_DONE(&da, SN_OK);
    CHECK_DONE(&db, SN_OK);
    CHECK_DONE(&na, SN_OK);
    CHECK_DONE(&nb, SN_OK);
    rig_down(&r);
}

static void disconnect_at_once_after_complete_lets_accept_succeed(void) {
    struct pair p;
    struct rig_async dis;
    pair_answered(&p);
    CHECK_ST(rd_qp_receive(p.r.b.qp, CTX(1), NULL, 0), SN_OK);
    CHECK_ST(rd_connector_complete(p.r.a.c, rig_arm(&p.com)), SN_PENDING);
    CHECK_ST(rd_connector_disconnect(p.r.a.c, rig_arm(&dis)), SN_PENDING);
    fake_run();
    CHECK_DONE(&p.acc, SN_OK);
    CHECK_CQE(p.r.b.cq, RD_RECEIVE, 1, SN_E_CANCELED, 0);
    rig_down(&p.r);
}

static void destroy_connected_closes_the_pair(void) {
    struct rig r;
    struct rig_async n;
    rig_up(&r);
    CHECK_ST(rd_qp_receive(r.a.qp, CTX(1), NULL, 0), SN_OK);
    CHECK_ST(rd_connector_notify_disconnect(r.a.c, rig_arm(&n)), SN_PENDING);
    rd_connector_destroy(r.a.c);
    r.a.c = NULL;
    CHECK_DONE(&n, SN_E_CANCELED);
    CHECK_CQE(r.a.cq, RD_RECEIVE, 1, SN_E_CANCELED, 0);
    CHECK_ST(rd_qp_send(r.a.qp, NULL, NULL, 0, 0, 0), SN_E_NOT_CONNECTED);
    rig_down(&r);
}

static void failed_connector_destroyed_leaves_the_pair_to_the_next(void) {
    struct pair p;
    struct os_addr nowhere = rig_addr(1);
    struct rd_connector *second;
    pair_up(&p, 0);
    CHECK_ST(rd_connector_connect(p.r.a.c, p.r.a.qp, &nowhere, 1, 1, NULL, 0, rig_arm(&p.con)),
             SN_PENDING);
    fake_run();
    CHECK_DONE(&p.con, SN_E_REFUSED);
    CHECK_ST(rd_connector_create(p.r.ad, &second), SN_OK);
    CHECK_ST(rd_listener_get_request(p.r.l, p.r.b.c, rig_arm(&p.get)), SN_PENDING);
    CHECK_ST(rd_connector_connect(second, p.r.a.qp, &p.at, 1, 1, NULL, 0, rig_arm(&p.com)),
             SN_PENDING);
    rd_connector_destroy(p.r.a.c); /* must not pull the pair away from the second */
    p.r.a.c = second;
    fake_run();
    CHECK_ST(rd_connector_accept(p.r.b.c, p.r.b.qp, 1, 1, NULL, 0, rig_arm(&p.acc)), SN_PENDING);
    fake_run();
    CHECK_DONE(&p.com, SN_OK);
    CHECK_ST(rd_connector_complete(second, rig_arm(&p.com)), SN_PENDING);
    CHECK_DONE(&p.com, SN_OK);
    rig_down(&p.r);
}

static void pair_destroyed_while_connecting_cancels(void) {
    struct pair p;
    pair_up(&p, 0);
    fake_set_silent(true);
    CHECK_ST(connect_pd(&p, NULL, 0), SN_PENDING);
    rd_qp_destroy(p.r.a.qp);
    CHECK_DONE(&p.con, SN_E_CANCELED);
    p.r.a.qp = rig_qp(p.r.ad, p.r.a.cq);
    CHECK_ST(connect_pd(&p, NULL, 0), SN_PENDING);
    rig_down(&p.r);
}

static void pair_destroyed_while_accepting_cancels(void) {
    struct pair p;
    pair_answered(&p);
    rd_qp_destroy(p.r.b.qp);
    p.r.b.qp = NULL;
    CHECK_DONE(&p.acc, SN_E_CANCELED);
    fake_run();
    CHECK_ST(rd_connector_complete(p.r.a.c, rig_arm(&p.com)), SN_PENDING);
    CHECK_DONE(&p.com, SN_E_ABORTED);
    rig_down(&p.r);
}

/* ---- listeners ---- */

static void listener_states_are_enforced(void) {
    struct rig r;
    struct rig_async x, y;
    struct os_addr at = rig_addr(0);
    rig_objects(&r);
    CHECK_ST(rd_connector_create(r.ad, &r.a.c), SN_OK);
    CHECK_ST(rd_listener_create(r.ad, &r.l), SN_OK);
    CHECK_ST(rd_listener_local_addr(r.l, &at), SN_E_STATE);
    CHECK_ST(rd_listener_listen(r.l, 0), SN_E_STATE);
    CHECK_ST(rd_listener_get_request(r.l, r.a.c, rig_arm(&x)), SN_E_STATE);
    CHECK_ST(rd_listener_bind(r.l, &at), SN_OK);
    CHECK_ST(rd_listener_get_request(r.l, r.a.c, rig_arm(&x)), SN_E_STATE);
    CHECK_ST(rd_listener_listen(r.l, 0), SN_OK);
    CHECK_ST(rd_listener_listen(r.l, 0), SN_E_STATE);
    CHECK_ST(rd_listener_get_request(r.l, r.a.c, rig_arm(&x)), SN_PENDING);
    CHECK_ST(rd_listener_get_request(r.l, r.a.c, rig_arm(&y)), SN_E_PARAM); /* in use */
    rig_down(&r);
}

static void listener_same_address_is_in_use(void) {
    struct pair p;
    struct rd_listener *second;
    pair_up(&p, 0);
    CHECK_ST(rd_listener_create(p.r.ad, &second), SN_OK);
    CHECK_ST(rd_listener_bind(second, &p.at), SN_E_ADDR_IN_USE);
    rd_listener_destroy(second);
    rig_down(&p.r);
}

static void listen_failure_leaves_it_bound(void) {
    struct rig r;
    struct os_addr at = rig_addr(0);
    rig_objects(&r);
    CHECK_ST(rd_listener_create(r.ad, &r.l), SN_OK);
    CHECK_ST(rd_listener_bind(r.l, &at), SN_OK);
    fake_fail_next(FAKE_LISTEN, SN_E_ADDR_IN_USE);
    CHECK_ST(rd_listener_listen(r.l, 0), SN_E_ADDR_IN_USE);
    CHECK_ST(rd_listener_listen(r.l, 0), SN_OK);
    rig_down(&r);
}

static void wildcard_listens_on_every_address_with_one_port(void) {
    struct rig r;
    struct os_addr any = { .family = 4 }, at;
    struct rig_async get, con;
    rig_objects(&r);
    CHECK_ST(rd_listener_create(r.ad, &r.l), SN_OK);
    CHECK_ST(rd_listener_bind(r.l, &any), SN_OK);
    CHECK_ST(rd_listener_listen(r.l, 0), SN_OK);
    CHECK_ST(rd_listener_local_addr(r.l, &at), SN_OK);
    CHECK(os_addr_is_any(&at) && at.port != 0);
    CHECK_ST(rd_connector_create(r.ad, &r.a.c), SN_OK);
    CHECK_ST(rd_connector_create(r.ad, &r.b.c), SN_OK);
    CHECK_ST(rd_listener_get_request(r.l, r.b.c, rig_arm(&get)), SN_PENDING);
    struct os_addr to = rig_addr(at.port);
    CHECK_ST(rd_connector_connect(r.a.c, r.a.qp, &to, 1, 1, NULL, 0, rig_arm(&con)), SN_PENDING);
    fake_run();
    CHECK_DONE(&get, SN_OK);
    CHECK_ST(rd_connector_local_addr(r.b.c, &at), SN_OK);
    CHECK(!os_addr_is_any(&at));
    rig_down(&r);
}

/* N callers of one listener. */
enum { CALLERS = 6 };
struct crowd {
    struct pair p;
    struct rd_qp *qp[CALLERS];
    struct rd_connector *c[CALLERS];
    struct rig_async con[CALLERS];
};

static void crowd_connect(struct crowd *w, uint32_t backlog) {
    memset(w, 0, sizeof *w);
    pair_up(&w->p, backlog);
    for (int i = 0; i < CALLERS; i++) {
        char pd = (char)('0' + i);
        w->qp[i] = rig_qp(w->p.r.ad, w->p.r.a.cq);
        CHECK_ST(rd_connector_create(w->p.r.ad, &w->c[i]), SN_OK);
        CHECK_ST(
            rd_connector_connect(w->c[i], w->qp[i], &w->p.at, 1, 1, &pd, 1, rig_arm(&w->con[i])),
            SN_PENDING);
        fake_run();
    }
}

static void crowd_down(struct crowd *w) {
    for (int i = 0; i < CALLERS; i++) {
        if (w->c[i]) rd_connector_destroy(w->c[i]);
        rd_qp_destroy(w->qp[i]);
    }
    rig_down(&w->p.r);
}

static char first_byte(struct rd_connector *c) {
    char b = 0;
    uint32_t len = 1;
    CHECK_ST(rd_connector_private_data(c, &b, &len), SN_OK);
    return b;
}

static void requests_queue_in_order_up_to_the_backlog(void) {
    struct crowd w;
    crowd_connect(&w, 4);
    for (int i = 0; i < CALLERS; i++)
        if (i < 4)
            CHECK_NOT_DONE(&w.con[i]);
        else
            CHECK_DONE(&w.con[i], SN_E_REFUSED);
    for (int i = 0; i < 4; i++) {
        struct rd_connector *c;
        struct rig_async get;
        CHECK_ST(rd_connector_create(w.p.r.ad, &c), SN_OK);
        CHECK_ST(rd_listener_get_request(w.p.r.l, c, rig_arm(&get)), SN_PENDING);
        CHECK_DONE(&get, SN_OK);
        CHECK_EQ(first_byte(c), '0' + i);
        rd_connector_destroy(c);
        fake_run();
        CHECK_DONE(&w.con[i], SN_E_REFUSED);
    }
    crowd_down(&w);
}

static void abandoned_request_is_dropped_from_the_queue(void) {
    struct crowd w;
    crowd_connect(&w, 0);
    rd_connector_cancel(w.c[0]);
    rd_connector_destroy(w.c[2]);
    w.c[2] = NULL;
    fake_run();
    static const char expected[] = "1345";
    for (int i = 0; i < 4; i++) {
        struct rd_connector *c;
        struct rig_async get;
        CHECK_ST(rd_connector_create(w.p.r.ad, &c), SN_OK);
        CHECK_ST(rd_listener_get_request(w.p.r.l, c, rig_arm(&get)), SN_PENDING);
        CHECK_DONE(&get, SN_OK);
        CHECK_EQ(first_byte(c), expected[i]);
        rd_connector_destroy(c);
    }
    crowd_down(&w);
}

static void several_gets_are_served_in_order(void) {
    struct pair p;
    struct rd_connector *c[3];
    struct rig_async get[3];
    pair_up(&p, 0);
    for (int i = 0; i < 3; i++) {
        CHECK_ST(rd_connector_create(p.r.ad, &c[i]), SN_OK);
        CHECK_ST(rd_listener_get_request(p.r.l, c[i], rig_arm(&get[i])), SN_PENDING);
    }
    CHECK_ST(connect_pd(&p, NULL, 0), SN_PENDING);
    fake_run();
    CHECK_DONE(&get[0], SN_OK);
    CHECK_NOT_DONE(&get[1]);
    rd_listener_cancel(p.r.l);
    CHECK_DONE(&get[1], SN_E_CANCELED);
    CHECK_DONE(&get[2], SN_E_CANCELED);
    CHECK_EQ(get[2].seq, get[1].seq + 1);
    /* A connector whose wait was cancelled is fresh again. */
    CHECK_ST(rd_listener_get_request(p.r.l, c[1], rig_arm(&get[1])), SN_PENDING);
    for (int i = 0; i < 3; i++)
        rd_connector_destroy(c[i]);
    rig_down(&p.r);
    CHECK_DONE(&get[1], SN_E_CANCELED);
}

static void destroyed_waiting_connector_passes_the_request_on(void) {
    struct pair p;
    struct rig_async get2;
    struct rd_connector *first;
    pair_up(&p, 0);
    CHECK_ST(rd_connector_create(p.r.ad, &first), SN_OK);
    CHECK_ST(rd_listener_get_request(p.r.l, first, rig_arm(&p.get)), SN_PENDING);
    CHECK_ST(rd_listener_get_request(p.r.l, p.r.b.c, rig_arm(&get2)), SN_PENDING);
    rd_connector_destroy(first);
    CHECK_ST(connect_pd(&p, NULL, 0), SN_PENDING);
    fake_run();
    CHECK_DONE(&p.get, SN_E_CANCELED);
    CHECK_DONE(&get2, SN_OK);
    rig_down(&p.r);
}

static void destroyed_listener_refuses_what_is_queued(void) {
    struct crowd w;
    struct rig_async get;
    crowd_connect(&w, 0);
    CHECK_ST(rd_listener_get_request(w.p.r.l, w.p.r.b.c, rig_arm(&get)), SN_PENDING);
    CHECK_DONE(&get, SN_OK);
    rd_listener_destroy(w.p.r.l);
    w.p.r.l = NULL;
    fake_run();
    CHECK_NOT_DONE(&w.con[0]); /* handed out: lives on */
    for (int i = 1; i < CALLERS; i++)
        CHECK_DONE(&w.con[i], SN_E_REFUSED);
    CHECK_ST(rd_connector_accept(w.p.r.b.c, w.p.r.b.qp, 1, 1, NULL, 0, rig_arm(&w.p.acc)),
             SN_PENDING);
    fake_run();
    CHECK_DONE(&w.con[0], SN_OK);
    crowd_down(&w);
}

static void shared_receives_are_told_to_the_transport(void) {
    struct pair p;
    struct rd_srq *srq;
    pair_up(&p, 0);
    struct rd_qp_attr at = rig_attr(p.r.a.cq);
    enum rd_qp_attr_fault fault;
    CHECK_ST(rd_srq_create(p.r.ad, 4, 1, 0, &srq), SN_OK);
    rd_qp_destroy(p.r.a.qp);
    at.srq = srq;
    CHECK_ST(rd_qp_create(p.r.ad, &at, &fault, &p.r.a.qp), SN_OK);
    CHECK_ST(connect_pd(&p, NULL, 0), SN_PENDING);
    CHECK(fake_last_active()->setup.shared_receives);
    rd_srq_destroy(srq);
    rig_down(&p.r);
}

TEST_MAIN(TEST(bind_twice_is_address_bound), TEST(bind_foreign_address_is_invalid),
          TEST(bound_port_is_used_and_used_again_after_failure),
          TEST(chosen_port_is_another_after_failure), TEST(bind_anew_after_failure_is_allowed),
          TEST(connect_bad_arguments_are_refused_at_once),
          TEST(connect_nobody_listens_is_refused_and_can_be_repeated),
          TEST(connect_outcomes_are_told), TEST(reply_before_connect_returns_is_not_lost),
          TEST(calls_out_of_order_are_refused), TEST(private_data_has_its_exact_length_both_ways),
          TEST(read_limits_follow_the_table), TEST(accept_waits_for_complete),
          TEST(accept_bad_arguments_leave_the_request),
          TEST(message_before_establishment_is_told_allows_posting),
          TEST(early_posts_of_a_failed_accept_are_cancelled),
          TEST(flush_while_accepting_cancels_the_accept),
          TEST(flush_while_connecting_leaves_the_attempt), TEST(reject_by_callee_refuses_with_data),
          TEST(destroy_before_accept_rejects), TEST(reject_by_caller_refuses_the_accept),
          TEST(caller_destroyed_after_answer_refuses_the_accept),
          TEST(caller_pair_destroyed_after_answer_refuses_the_accept),
          TEST(caller_gone_before_accept_aborts_it), TEST(caller_gone_before_reject_aborts_it),
          TEST(accept_refused_by_transport_is_told), TEST(complete_after_callee_left_is_aborted),
          TEST(cancel_connect_lets_it_try_again), TEST(cancel_accept_ends_it),
          TEST(cancel_completes_in_issue_order), TEST(disconnect_flushes_then_completes),
          TEST(disconnect_after_the_peer_left_succeeds),
          TEST(disconnect_from_both_sides_at_once_succeeds),
          TEST(disconnect_at_once_after_complete_lets_accept_succeed),
          TEST(destroy_connected_closes_the_pair),
          TEST(failed_connector_destroyed_leaves_the_pair_to_the_next),
          TEST(pair_destroyed_while_connecting_cancels),
          TEST(pair_destroyed_while_accepting_cancels), TEST(listener_states_are_enforced),
          TEST(listener_same_address_is_in_use), TEST(listen_failure_leaves_it_bound),
          TEST(wildcard_listens_on_every_address_with_one_port),
          TEST(requests_queue_in_order_up_to_the_backlog),
          TEST(abandoned_request_is_dropped_from_the_queue), TEST(several_gets_are_served_in_order),
          TEST(destroyed_waiting_connector_passes_the_request_on),
          TEST(destroyed_listener_refuses_what_is_queued),
          TEST(shared_receives_are_told_to_the_transport))
