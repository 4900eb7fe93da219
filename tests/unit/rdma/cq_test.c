/* SPDX-License-Identifier: MIT
 * Completion queues: notifications, capacity, overrun, resize, and who makes progress.
 */
#include "os/prim/clock.h"
#include "os/prim/thread.h"
#include "rdma/cq.h"
#include "rig.h"

/* One completion on q: a receive posted to an unconnected queue pair and flushed is a failed one.
 */
static void put_failed(struct rig *r, struct rig_end *e, uint32_t n) {
    (void)r;
    CHECK_ST(rd_qp_receive(e->qp, CTX(n), NULL, 0), SN_OK);
    rd_qp_flush(e->qp);
}

/* A successful receive completion at end b; solicited or not. */
static void put_ok(struct rig *r, uint32_t n, uint32_t flags) {
    struct rd_completion c;
    CHECK_ST(rd_qp_receive(r->b.qp, CTX(n), NULL, 0), SN_OK);
    CHECK_ST(rd_qp_send(r->a.qp, CTX(n), NULL, 0, flags, 0), SN_OK);
    CHECK_EQ(rd_cq_poll(r->a.cq, &c, 1), 1);
}

static uint32_t drain(struct rd_cq *cq) {
    struct rd_completion c[16];
    uint32_t n, total = 0;
    while ((n = rd_cq_poll(cq, c, 16)) != 0)
        total += n;
    return total;
}

/* ---- create ---- */

static void create_depth_outside_limits_is_refused(void) {
    struct rig r;
    struct rd_cq *cq;
    uint32_t most = rd_limits_get()->max_cq_depth;
    rig_objects(&r);
    CHECK_ST(rd_cq_create(r.ad, 0, &cq), SN_E_PARAM);
    CHECK_ST(rd_cq_create(r.ad, most + 1, &cq), SN_E_PARAM);
    CHECK_ST(rd_cq_create(r.ad, most, &cq), SN_OK);
    CHECK_ST(rd_cq_resize(cq, 0), SN_E_PARAM);
    CHECK_ST(rd_cq_resize(cq, most + 1), SN_E_PARAM);
    CHECK_ST(rd_cq_resize(cq, 1), SN_OK);
    rd_cq_destroy(cq);
    rig_down(&r);
}

static void poll_asks_for_nothing_gets_nothing(void) {
    struct rig r;
    rig_objects(&r);
    put_failed(&r, &r.a, 1);
    CHECK_EQ(rd_cq_poll(r.a.cq, NULL, 0), 0);
    CHECK_EQ(drain(r.a.cq), 1);
    rig_down(&r);
}

/* ---- notifications ---- */

static void notify_unknown_type_is_refused(void) {
    struct rig r;
    struct rig_async n;
    rig_objects(&r);
    CHECK_ST(rd_cq_notify(r.a.cq, RD_NOTIFY_KINDS, rig_arm(&n)), SN_E_PARAM);
    CHECK_NOT_DONE(&n);
    rig_down(&r);
}

static void notify_any_on_empty_queue_waits_for_an_entry(void) {
    struct rig r;
    struct rig_async n;
    rig_up(&r);
    CHECK_ST(rd_cq_notify(r.b.cq, RD_NOTIFY_ANY, rig_arm(&n)), SN_PENDING);
    CHECK_NOT_DONE(&n);
    put_ok(&r, 1, 0);
    CHECK_DONE(&n, SN_OK);
    put_ok(&r, 2, 0); /* one shot */
    CHECK_DONE(&n, SN_OK);
    rig_down(&r);
}

static void notify_any_after_unread_entries_fires_at_once(void) {
    struct rig r;
    struct rig_async n;
    rig_objects(&r);
    put_failed(&r, &r.a, 1);
    put_failed(&r, &r.a, 2);
    CHECK_ST(rd_cq_notify(r.a.cq, RD_NOTIFY_ANY, rig_arm(&n)), SN_PENDING);
    CHECK_DONE(&n, SN_OK);
    rig_down(&r);
}

static void notify_after_reported_but_unread_entries_waits(void) {
    struct rig r;
    struct rig_async n1, n2;
    rig_up(&r);
    put_ok(&r, 1, 0);
    CHECK_ST(rd_cq_notify(r.b.cq, RD_NOTIFY_ANY, rig_arm(&n1)), SN_PENDING);
    CHECK_DONE(&n1, SN_OK);
    CHECK_ST(rd_cq_notify(r.b.cq, RD_NOTIFY_ANY, rig_arm(&n2)), SN_PENDING);
    CHECK_NOT_DONE(&n2); /* entry 1 has triggered already */
    put_ok(&r, 2, 0);
    CHECK_DONE(&n2, SN_OK);
    rig_down(&r);
}

static void notify_after_drained_entries_waits(void) {
    struct rig r;
    struct rig_async n;
    rig_up(&r);
    put_ok(&r, 1, 0);
    CHECK_EQ(drain(r.b.cq), 1);
    CHECK_ST(rd_cq_notify(r.b.cq, RD_NOTIFY_ANY, rig_arm(&n)), SN_PENDING);
    CHECK_NOT_DONE(&n);
    rig_down(&r);
    CHECK_DONE(&n, SN_E_CANCELED);
}

static void notify_after_partial_read_fires_for_the_rest(void) {
    struct rig r;
    struct rig_async n;
    struct rd_completion c;
    rig_up(&r);
    put_ok(&r, 1, 0);
    put_ok(&r, 2, 0);
    CHECK_EQ(rd_cq_poll(r.b.cq, &c, 1), 1);
    CHECK_ST(rd_cq_notify(r.b.cq, RD_NOTIFY_ANY, rig_arm(&n)), SN_PENDING);
    CHECK_DONE(&n, SN_OK);
    rig_down(&r);
}

static void notify_entry_between_drain_and_arm_fires(void) {
    struct rig r;
    struct rig_async n;
    rig_up(&r);
    put_ok(&r, 1, 0);
    CHECK_EQ(drain(r.b.cq), 1);
    put_ok(&r, 2, 0); /* the gap of rule N4 */
    CHECK_ST(rd_cq_notify(r.b.cq, RD_NOTIFY_ANY, rig_arm(&n)), SN_PENDING);
    CHECK_DONE(&n, SN_OK);
    rig_down(&r);
}

static void notify_several_complete_together_in_issue_order(void) {
    struct rig r;
    struct rig_async n[3];
    rig_up(&r);
    for (int i = 0; i < 3; i++)
        CHECK_ST(rd_cq_notify(r.b.cq, RD_NOTIFY_ANY, rig_arm(&n[i])), SN_PENDING);
    put_ok(&r, 1, 0);
    for (int i = 0; i < 3; i++) {
        CHECK_DONE(&n[i], SN_OK);
        if (i) CHECK_EQ(n[i].seq, n[i - 1].seq + 1);
    }
    rig_down(&r);
}

static void notify_solicited_ignores_plain_entries(void) {
    struct rig r;
    struct rig_async n, again;
    rig_up(&r);
    CHECK_ST(rd_cq_notify(r.b.cq, RD_NOTIFY_SOLICITED, rig_arm(&n)), SN_PENDING);
    put_ok(&r, 1, 0);
    CHECK_NOT_DONE(&n);
    put_ok(&r, 2, RD_POST_SOLICIT);
    CHECK_DONE(&n, SN_OK);
    CHECK_EQ(drain(r.b.cq), 2);
    put_ok(&r, 3, RD_POST_SOLICIT);
    put_ok(&r, 4, 0);
    CHECK_ST(rd_cq_notify(r.b.cq, RD_NOTIFY_SOLICITED, rig_arm(&again)), SN_PENDING);
    CHECK_DONE(&again, SN_OK);
    CHECK_ST(rd_cq_notify(r.b.cq, RD_NOTIFY_SOLICITED, rig_arm(&again)), SN_PENDING);
    CHECK_NOT_DONE(&again);
    rig_down(&r);
}

static void notify_any_outranks_solicited(void) {
    struct rig r;
    struct rig_async sol, any;
    rig_up(&r);
    CHECK_ST(rd_cq_notify(r.b.cq, RD_NOTIFY_SOLICITED, rig_arm(&sol)), SN_PENDING);
    CHECK_ST(rd_cq_notify(r.b.cq, RD_NOTIFY_ANY, rig_arm(&any)), SN_PENDING);
    put_ok(&r, 1, 0);
    CHECK_DONE(&any, SN_OK);
    CHECK_DONE(&sol, SN_OK);
    CHECK(sol.seq < any.seq);
    rig_down(&r);
}

static void notify_errors_ignores_successes(void) {
    struct rig r;
    struct rig_async err, any;
    rig_up(&r);
    CHECK_ST(rd_cq_notify(r.b.cq, RD_NOTIFY_ERRORS, rig_arm(&err)), SN_PENDING);
    CHECK_ST(rd_cq_notify(r.b.cq, RD_NOTIFY_ANY, rig_arm(&any)), SN_PENDING);
    put_ok(&r, 1, RD_POST_SOLICIT);
    CHECK_DONE(&any, SN_OK);
    CHECK_NOT_DONE(&err);
    CHECK_ST(rd_qp_receive(r.b.qp, CTX(2), NULL, 0), SN_OK);
    rd_qp_flush(r.b.qp);
    CHECK_DONE(&err, SN_OK);
    rig_down(&r);
}

static void notify_every_type_fires_on_a_failed_entry(void) {
    struct rig r;
    struct rig_async n[3];
    rig_objects(&r);
    for (int t = 0; t < 3; t++)
        CHECK_ST(rd_cq_notify(r.a.cq, (enum rd_notify)t, rig_arm(&n[t])), SN_PENDING);
    put_failed(&r, &r.a, 1);
    for (int t = 0; t < 3; t++)
        CHECK_DONE(&n[t], SN_OK);
    /* Reported: none of the types fires for it again. */
    for (int t = 0; t < 3; t++) {
        CHECK_ST(rd_cq_notify(r.a.cq, (enum rd_notify)t, rig_arm(&n[t])), SN_PENDING);
        CHECK_NOT_DONE(&n[t]);
    }
    rig_down(&r);
}

static void notify_every_type_fires_at_once_for_an_unread_failure(void) {
    for (int t = 0; t < 3; t++) {
        struct rig r;
        struct rig_async n;
        rig_objects(&r);
        put_failed(&r, &r.a, 1);
        CHECK_ST(rd_cq_notify(r.a.cq, (enum rd_notify)t, rig_arm(&n)), SN_PENDING);
        CHECK_DONE(&n, SN_OK);
        rig_down(&r);
    }
}

static void notify_errors_at_once_leaves_nothing_for_any(void) {
    struct rig r;
    struct rig_async any, err;
    rig_up(&r);
    put_ok(&r, 1, 0);
    CHECK_ST(rd_cq_notify(r.b.cq, RD_NOTIFY_ERRORS, rig_arm(&err)), SN_PENDING);
    CHECK_NOT_DONE(&err); /* a success is none of its business */
    CHECK_ST(rd_cq_notify(r.b.cq, RD_NOTIFY_ANY, rig_arm(&any)), SN_PENDING);
    CHECK_DONE(&any, SN_OK); /* and ERRORS did not eat it */
    rig_down(&r);
}

static void cancel_completes_all_in_issue_order(void) {
    struct rig r;
    struct rig_async n[6];
    rig_objects(&r);
    for (int i = 0; i < 6; i++)
        CHECK_ST(rd_cq_notify(r.a.cq, (enum rd_notify)(i % 3), rig_arm(&n[i])), SN_PENDING);
    rd_cq_cancel(r.a.cq);
    for (int i = 0; i < 6; i++) {
        CHECK_DONE(&n[i], SN_E_CANCELED);
        if (i) CHECK_EQ(n[i].seq, n[i - 1].seq + 1);
    }
    rd_cq_cancel(r.a.cq);
    put_failed(&r, &r.a, 1);
    CHECK_ST(rd_cq_notify(r.a.cq, RD_NOTIFY_ANY, rig_arm(&n[0])), SN_PENDING);
    CHECK_DONE(&n[0], SN_OK); /* not disturbed by the cancel */
    rig_down(&r);
}

static void destroy_cancels_and_the_pair_lives_on(void) {
    struct rig r;
    struct rig_async n;
    rig_objects(&r);
    CHECK_ST(rd_cq_notify(r.a.cq, RD_NOTIFY_ANY, rig_arm(&n)), SN_PENDING);
    rd_cq_destroy(r.a.cq);
    r.a.cq = NULL;
    CHECK_DONE(&n, SN_E_CANCELED);
    /* Nobody reads it any more: more entries than it could hold are no error. */
    for (int i = 0; i < 100; i++)
        put_failed(&r, &r.a, 1);
    rig_down(&r);
}

static os_atomic_u32 nested;
static struct rd_cq *nested_cq;
static struct rig_async nested_again;
static void notify_again(struct rd_async *a, sn_status st) {
    rig_on_done(a, st);
    struct rd_completion c[4];
    os_u32_fetch_add_relaxed(&nested, rd_cq_poll(nested_cq, c, 4));
    if (rd_cq_notify(nested_cq, RD_NOTIFY_ANY, rig_arm(&nested_again)) != SN_PENDING) abort();
}

static void done_may_poll_and_arm_again(void) {
    struct rig r;
    struct rig_async n;
    rig_objects(&r);
    nested_cq = r.a.cq;
    os_u32_store_relaxed(&nested, 0);
    rig_arm(&n)->done = notify_again;
    CHECK_ST(rd_cq_notify(r.a.cq, RD_NOTIFY_ANY, &n.a), SN_PENDING);
    put_failed(&r, &r.a, 1);
    CHECK_DONE(&n, SN_OK);
    CHECK_EQ(os_u32_load_relaxed(&nested), 1);
    CHECK_NOT_DONE(&nested_again);
    put_failed(&r, &r.a, 2);
    CHECK_DONE(&nested_again, SN_OK);
    rig_down(&r);
}

/* ---- capacity ---- */

static void slack_takes_twice_the_depth_and_more(void) {
    struct rig r;
    struct rd_cq *cq;
    struct rig_async n;
    rig_objects(&r);
    CHECK_ST(rd_cq_create(r.ad, 2, &cq), SN_OK);
    struct rd_qp *qp = rig_qp(r.ad, cq);
    uint32_t put = 0;
    for (; put < 68; put++) { /* 2 * 2 + 64 */
        CHECK_ST(rd_qp_receive(qp, CTX(put), NULL, 0), SN_OK);
        rd_qp_flush(qp);
    }
    CHECK_ST(rd_cq_notify(cq, RD_NOTIFY_ANY, rig_arm(&n)), SN_PENDING);
    CHECK_DONE(&n, SN_OK);
    struct rd_completion c;
    for (uint32_t i = 0; i < put; i++) {
        CHECK_EQ(rd_cq_poll(cq, &c, 1), 1);
        CHECK_PTR(c.request_context, CTX(i));
    }
    CHECK_EQ(rd_cq_poll(cq, &c, 1), 0);
    rd_qp_destroy(qp);
    rd_cq_destroy(cq);
    rig_down(&r);
}

static void overrun_ends_the_queue_and_its_pairs(void) {
    struct rig r;
    struct rig_async n[3], late, gone;
    struct rd_cq *small;
    rig_objects(&r);
    rd_qp_destroy(r.b.qp);
    CHECK_ST(rd_cq_create(r.ad, 1, &small), SN_OK);
    struct rd_cq *old = r.b.cq;
    r.b.cq = small;
    r.b.qp = rig_qp(r.ad, small);
    rig_connect_limits(&r, 1, 1);
    CHECK_ST(rd_connector_notify_disconnect(r.b.c, rig_arm(&gone)), SN_PENDING);
    for (uint32_t i = 0; i < 66; i++) /* 2 * 1 + 64 */
        put_ok(&r, i, 0);
    for (int t = 0; t < 3; t++)
        CHECK_ST(rd_cq_notify(small, (enum rd_notify)t, rig_arm(&n[t])), SN_PENDING);
    CHECK_DONE(&n[RD_NOTIFY_ANY], SN_OK);
    CHECK_ST(rd_cq_notify(small, RD_NOTIFY_ANY, rig_arm(&n[RD_NOTIFY_ANY])), SN_PENDING);
    CHECK_NOT_DONE(&n[RD_NOTIFY_ANY]);
    put_ok(&r, 66, 0);
    for (int t = 0; t < 3; t++)
        CHECK_DONE(&n[t], SN_E_OVERRUN);
    fake_run(); /* the engine ends the pair */
    CHECK_DONE(&gone, SN_OK);
    CHECK_ST(rd_cq_notify(small, RD_NOTIFY_SOLICITED, rig_arm(&late)), SN_PENDING);
    CHECK_DONE(&late, SN_E_OVERRUN);
    CHECK_EQ(drain(small), 66); /* what was there can still be read; nothing comes after it */
    CHECK_ST(rd_qp_send(r.b.qp, CTX(1), NULL, 0, 0, 0), SN_OK);
    CHECK_EQ(drain(small), 0);
    CHECK_ST(rd_qp_send(r.a.qp, CTX(2), NULL, 0, 0, 0), SN_OK);
    fake_run();
    CHECK_CQE(r.a.cq, RD_SEND, 2, SN_E_CANCELED, 0);
    rd_cq_destroy(old);
    rig_down(&r);
}

static void resize_keeps_every_entry(void) {
    struct rig r;
    struct rd_completion c;
    rig_objects(&r);
    uint32_t put = 0, got = 0;
    /* Let the ring wrap before, between and after changes of size. */
    static const uint32_t depths[] = { 100, 17, 64, 3, 50 };
    for (size_t d = 0; d < SN_ARRAY_LEN(depths); d++) {
        for (uint32_t i = 0; i < 150; i++) {
            put_failed(&r, &r.a, put++);
            put_failed(&r, &r.a, put++);
            CHECK_EQ(rd_cq_poll(r.a.cq, &c, 1), 1);
            CHECK_PTR(c.request_context, CTX(got));
            got++;
            while (put - got > 2) {
                CHECK_EQ(rd_cq_poll(r.a.cq, &c, 1), 1);
                CHECK_PTR(c.request_context, CTX(got));
                got++;
            }
        }
        CHECK_ST(rd_cq_resize(r.a.cq, depths[d]), SN_OK);
    }
    while (got < put) {
        CHECK_EQ(rd_cq_poll(r.a.cq, &c, 1), 1);
        CHECK_PTR(c.request_context, CTX(got));
        got++;
    }
    rig_down(&r);
}

static void resize_below_the_number_queued_changes_nothing(void) {
    struct rig r;
    struct rd_completion c;
    rig_objects(&r);
    for (uint32_t i = 0; i < 10; i++)
        put_failed(&r, &r.a, i);
    CHECK_ST(rd_cq_resize(r.a.cq, 9), SN_E_BUFFER_SMALL);
    CHECK_ST(rd_cq_resize(r.a.cq, 10), SN_OK);
    for (uint32_t i = 0; i < 10; i++) {
        CHECK_EQ(rd_cq_poll(r.a.cq, &c, 1), 1);
        CHECK_PTR(c.request_context, CTX(i));
    }
    rig_down(&r);
}

static void resize_keeps_notification_state(void) {
    struct rig r;
    struct rig_async n;
    rig_objects(&r);
    CHECK_ST(rd_cq_notify(r.a.cq, RD_NOTIFY_ANY, rig_arm(&n)), SN_PENDING);
    CHECK_ST(rd_cq_resize(r.a.cq, 7), SN_OK);
    CHECK_NOT_DONE(&n);
    put_failed(&r, &r.a, 1);
    CHECK_DONE(&n, SN_OK);
    CHECK_ST(rd_cq_resize(r.a.cq, 9), SN_OK);
    CHECK_ST(rd_cq_notify(r.a.cq, RD_NOTIFY_ANY, rig_arm(&n)), SN_PENDING);
    CHECK_NOT_DONE(&n);
    rig_down(&r);
}

static void one_pair_on_two_queues_separates_completions(void) {
    struct rig r;
    rig_objects(&r);
    struct rd_qp_attr at = rig_attr(r.a.cq);
    enum rd_qp_attr_fault fault;
    rd_qp_destroy(r.a.qp);
    at.initiator_cq = r.b.cq;
    CHECK_ST(rd_qp_create(r.ad, &at, &fault, &r.a.qp), SN_OK);
    rig_connect_limits(&r, 1, 1);
    CHECK_ST(rd_qp_receive(r.b.qp, CTX(1), NULL, 0), SN_OK);
    CHECK_ST(rd_qp_receive(r.a.qp, CTX(2), NULL, 0), SN_OK);
    CHECK_ST(rd_qp_send(r.a.qp, CTX(3), NULL, 0, 0, 0), SN_OK);
    CHECK_ST(rd_qp_send(r.b.qp, CTX(4), NULL, 0, 0, 0), SN_OK);
    CHECK_CQE(r.a.cq, RD_RECEIVE, 2, SN_OK, 0);
    CHECK_NO_CQE(r.a.cq);
    CHECK_CQE(r.b.cq, RD_RECEIVE, 1, SN_OK, 0);
    CHECK_CQE(r.b.cq, RD_SEND, 3, SN_OK, 0);
    CHECK_CQE(r.b.cq, RD_SEND, 4, SN_OK, 0);
    rig_down(&r);
}

/* ---- progress ---- */

static void poll_with_one_pair_polls_its_connection(void) {
    struct rig r;
    rig_up(&r);
    uint32_t polls = os_u32_load_relaxed(&r.cb->polls), engine = fake_progress_calls();
    for (int i = 0; i < 100; i++)
        CHECK_NO_CQE(r.b.cq);
    CHECK_EQ(os_u32_load_relaxed(&r.cb->polls), polls + 100);
    CHECK_EQ(fake_progress_calls(), engine); /* the adapter watches nothing else */
    CHECK_EQ(fake_empty_calls(), 100);
    fake_set_watches(3);
    for (int i = 0; i < 160; i++)
        CHECK_NO_CQE(r.b.cq);
    CHECK_EQ(fake_progress_calls(), engine + 10); /* every 16th */
    rig_down(&r);
}

static uint32_t looks_of_one_poll(struct rig *r) {
    uint32_t polls = os_u32_load_relaxed(&r->cb->polls);
    CHECK_EQ(rd_cq_poll(r->b.cq, NULL, 0), 0);
    return os_u32_load_relaxed(&r->cb->polls) - polls;
}

static void poll_of_a_tight_loop_looks_as_often_as_the_transport_says(void) {
    struct rig r;
    rig_up(&r);
    struct tp_ops ops = *r.cb->base.ops;
    ops.looks = 4;
    r.cb->base.ops = &ops;
    for (int i = 0; i < 10; i++) {
        uint64_t since = os_ticks();
        while (os_ticks() - since <= RD_CQ_TIGHT) /* the application does something else */
            ;
        CHECK_EQ(looks_of_one_poll(&r), 1);
    }
    uint32_t looks = 1;
    for (int i = 0; i < 100000 && looks == 1; i++) /* this thread may lose its processor */
        looks = looks_of_one_poll(&r);
    CHECK_EQ(looks, 4);
    rig_down(&r);
}

static void poll_that_finds_an_entry_makes_no_progress(void) {
    struct rig r;
    rig_up(&r);
    put_ok(&r, 1, 0);
    uint32_t polls = os_u32_load_relaxed(&r.cb->polls);
    CHECK_CQE(r.b.cq, RD_RECEIVE, 1, SN_OK, 0);
    CHECK_EQ(os_u32_load_relaxed(&r.cb->polls), polls);
    rig_down(&r);
}

static void poll_without_or_with_several_pairs_serves_the_engine(void) {
    struct rig r;
    rig_objects(&r);
    uint32_t engine = fake_progress_calls();
    CHECK_NO_CQE(r.a.cq);
    CHECK_EQ(fake_progress_calls(), engine + 1);
    /* Both ends on one queue. */
    rd_qp_destroy(r.b.qp);
    r.b.qp = rig_qp(r.ad, r.a.cq);
    rig_connect_limits(&r, 1, 1);
    CHECK_ST(rd_qp_receive(r.b.qp, CTX(1), NULL, 0), SN_OK);
    CHECK_ST(rd_qp_send(r.a.qp, CTX(2), NULL, 0, 0, 0), SN_OK);
    CHECK_EQ(drain(r.a.cq), 2);
    engine = fake_progress_calls();
    uint32_t a = os_u32_load_relaxed(&r.ca->polls), b = os_u32_load_relaxed(&r.cb->polls);
    for (uint32_t i = 0; i <= RD_CQ_SKIP_MAX; i++)
        CHECK_NO_CQE(r.a.cq);
    CHECK(fake_progress_calls() > engine);
    /* The one that gave the last completion goes first. */
    CHECK_EQ(os_u32_load_relaxed(&r.ca->polls), a + RD_CQ_SKIP_MAX + 1);
    CHECK_EQ(os_u32_load_relaxed(&r.cb->polls), b);
    /* Nobody says anything: by now all are looked at every so often only. */
    engine = fake_progress_calls();
    for (uint32_t i = 0; i < 10 * (RD_CQ_SKIP_MAX + 1); i++)
        CHECK_NO_CQE(r.a.cq);
    CHECK(fake_progress_calls() >= engine + 10 && fake_progress_calls() <= engine + 13);
    rig_down(&r);
}

static void reports_are_flushed_once_after_deliveries(void) {
    struct rig r;
    struct rig_async n;
    rig_up(&r);
    CHECK_NO_CQE(r.b.cq);
    CHECK_EQ(os_u32_load_relaxed(&r.cb->flushes), 0); /* nothing was delivered */
    put_ok(&r, 1, 0);
    CHECK_CQE(r.b.cq, RD_RECEIVE, 1, SN_OK, 0);
    CHECK_EQ(os_u32_load_relaxed(&r.cb->flushes), 0);
    CHECK_NO_CQE(r.b.cq);
    CHECK_EQ(os_u32_load_relaxed(&r.cb->flushes), 1);
    CHECK_NO_CQE(r.b.cq);
    CHECK_EQ(os_u32_load_relaxed(&r.cb->flushes), 1);
    put_ok(&r, 2, 0);
    uint32_t cool = fake_cool_calls();
    CHECK_ST(rd_cq_notify(r.b.cq, RD_NOTIFY_ANY, rig_arm(&n)), SN_PENDING);
    CHECK_EQ(os_u32_load_relaxed(&r.cb->flushes), 2);
    CHECK_EQ(fake_cool_calls(), cool + 1);
    rig_down(&r);
}

static void poll_after_the_end_leaves_the_connection_alone(void) {
    struct rig r;
    struct rig_async dis;
    rig_up(&r);
    CHECK_ST(rd_connector_disconnect(r.a.c, rig_arm(&dis)), SN_PENDING);
    fake_run();
    uint32_t polls = os_u32_load_relaxed(&r.cb->polls);
    CHECK_NO_CQE(r.b.cq);
    CHECK_EQ(os_u32_load_relaxed(&r.cb->polls), polls);
    rig_down(&r);
}

TEST_MAIN(TEST(create_depth_outside_limits_is_refused), TEST(poll_asks_for_nothing_gets_nothing),
          TEST(notify_unknown_type_is_refused), TEST(notify_any_on_empty_queue_waits_for_an_entry),
          TEST(notify_any_after_unread_entries_fires_at_once),
          TEST(notify_after_reported_but_unread_entries_waits),
          TEST(notify_after_drained_entries_waits),
          TEST(notify_after_partial_read_fires_for_the_rest),
          TEST(notify_entry_between_drain_and_arm_fires),
          TEST(notify_several_complete_together_in_issue_order),
          TEST(notify_solicited_ignores_plain_entries), TEST(notify_any_outranks_solicited),
          TEST(notify_errors_ignores_successes), TEST(notify_every_type_fires_on_a_failed_entry),
          TEST(notify_every_type_fires_at_once_for_an_unread_failure),
          TEST(notify_errors_at_once_leaves_nothing_for_any),
          TEST(cancel_completes_all_in_issue_order), TEST(destroy_cancels_and_the_pair_lives_on),
          TEST(done_may_poll_and_arm_again), TEST(slack_takes_twice_the_depth_and_more),
          TEST(overrun_ends_the_queue_and_its_pairs), TEST(resize_keeps_every_entry),
          TEST(resize_below_the_number_queued_changes_nothing),
          TEST(resize_keeps_notification_state), TEST(one_pair_on_two_queues_separates_completions),
          TEST(poll_with_one_pair_polls_its_connection),
          TEST(poll_of_a_tight_loop_looks_as_often_as_the_transport_says),
          TEST(poll_that_finds_an_entry_makes_no_progress),
          TEST(poll_without_or_with_several_pairs_serves_the_engine),
          TEST(reports_are_flushed_once_after_deliveries),
          TEST(poll_after_the_end_leaves_the_connection_alone))
