/* SPDX-License-Identifier: MIT
 * conform_cq.c - IND2CompletionQueue: results and their order, Notify with its race rules, Resize,
 * overrun.
 */
#include "fixture.h"

/* A connected pair with small buffers; side b receives. */
struct stage {
    struct fx *f;
    struct fx_pair *p;
    struct fx_memory *from, *to;
    IND2CompletionQueue *cq; /* where side b's Receives end */
};

static struct stage open_stage(const struct fx_pair_options *o) {
    struct stage s = { .f = fx_begin() };
    fx_poll_results = true; /* the cases arm the queues themselves */
    s.p = PAIR(s.f, o);
    s.from = fx_memory(s.f, 0, KIB(64), ND_MR_FLAG_ALLOW_LOCAL_WRITE);
    s.to = fx_memory(s.f, 1, KIB(64), ND_MR_FLAG_ALLOW_LOCAL_WRITE);
    s.cq = s.p->b.receive_cq;
    return s;
}

/* One message. Its Receive result is in the queue when this returns or will be soon: the Send's
 * result, which this waits for, may come first. */
static void deliver(struct stage *s, int n, ULONG flags) {
    RECEIVE(&s->p->b, CTX(n), NULL, 0, 0);
    SEND(&s->p->a, CTX(n), NULL, 0, 0, flags);
    EXPECT_OK(s->f, &s->p->a, Send, CTX(n), 0);
}

static OVERLAPPED *arm(struct stage *s, ULONG type) {
    OVERLAPPED *ov = fx_overlapped(s->f);
    CHECK_HR(CALL(s->cq, Notify, type, ov), ND_PENDING);
    return ov;
}

#define EXPECT_NOTIFIED(s, ov) CHECK_HR(FINISH((s)->f, (s)->cq, ov, ND_PENDING), ND_SUCCESS)
#define EXPECT_ARMED(s, ov) CHECK_HR(CALL((s)->cq, GetOverlappedResult, ov, FALSE), ND_PENDING)

/* One message whose result is in the queue, unread but reported, when this returns. */
static void deliver_seen(struct stage *s, int n) {
    OVERLAPPED *ov = arm(s, ND_CQ_NOTIFY_ANY);
    deliver(s, n, 0);
    EXPECT_NOTIFIED(s, ov);
}

static void drain(struct stage *s, int first, int count) {
    for (int i = 0; i < count; i++)
        EXPECT_OK(s->f, &s->p->b, Receive, CTX(first + i), 0);
    EXPECT_EMPTY(s->cq);
}

static void cancel_all(struct stage *s) {
    CHECK_HR(CALL(s->cq, CancelOverlappedRequests), ND_SUCCESS);
}

/* ---- GetResults ---- */

static void get_results_of_an_empty_queue_is_zero(void) {
    struct fx *f = fx_begin();
    IND2CompletionQueue *cq = fx_cq(f, 0, 4);
    ND2_RESULT r[4];
    CHECK_EQ(CALL(cq, GetResults, r, 4), 0);
    CHECK_EQ(CALL(cq, GetResults, r, 0), 0);
    CHECK_EQ(CALL(cq, GetResults, NULL, 0), 0);
    fx_end(f);
}

static void get_results_never_writes_more_than_asked(void) {
    struct stage s = open_stage(NULL);
    ND2_RESULT r[8];
    for (int i = 0; i < 5; i++)
        deliver_seen(&s, i);
    memset(r, 0xEE, sizeof r);
    CHECK_EQ(CALL(s.cq, GetResults, r, 2), 2);
    CHECK_PTR(r[0].RequestContext, CTX(0));
    CHECK_PTR(r[1].RequestContext, CTX(1));
    ND2_RESULT untouched;
    memset(&untouched, 0xEE, sizeof untouched);
    CHECK_BYTES(&r[2], &untouched, sizeof r[2]);
    CHECK_EQ(CALL(s.cq, GetResults, r, 8), 3);
    for (int i = 0; i < 3; i++)
        CHECK_PTR(r[i].RequestContext, CTX(2 + i));
    CHECK_BYTES(&r[3], &untouched, sizeof r[3]);
    EXPECT_EMPTY(s.cq);
    fx_end(s.f);
}

static void get_results_echoes_contexts_types_and_bytes(void) {
    struct stage s = open_stage(NULL);
    ND2_RESULT r;
    struct fx_memory *open = fx_memory(s.f, 1, 500, FX_MR_ALL);
    RECEIVE(&s.p->b, CTX(0xABC), s.to, 0, 1000);
    SEND(&s.p->a, NULL, s.from, 0, 333, 0); /* NULL is a context like any other */
    NEXT(s.f, s.p->a.initiator_cq, &r);
    CHECK_HR(r.Status, ND_SUCCESS);
    CHECK_EQ(r.RequestType, Nd2RequestTypeSend);
    CHECK_PTR(r.RequestContext, NULL);
    CHECK_PTR(r.QueuePairContext, s.p->a.context);
    CHECK_EQ(r.BytesTransferred, 333);
    NEXT(s.f, s.cq, &r);
    CHECK_HR(r.Status, ND_SUCCESS);
    CHECK_EQ(r.RequestType, Nd2RequestTypeReceive);
    CHECK_PTR(r.RequestContext, CTX(0xABC));
    CHECK_PTR(r.QueuePairContext, s.p->b.context);
    CHECK_EQ(r.BytesTransferred, 333);
    WRITE(&s.p->a, CTX(~(uintptr_t)0), s.from, 0, 500, open, 0, 0);
    EXPECT_OK(s.f, &s.p->a, Write, CTX(~(uintptr_t)0), 500);
    READ(&s.p->a, CTX(7), s.from, 0, 400, open, 0, 0);
    EXPECT_OK(s.f, &s.p->a, Read, CTX(7), 400);
    fx_end(s.f);
}

static void results_of_both_kinds_share_one_queue(void) {
    struct fx_pair_options o = { .one_cq = true };
    struct stage s = open_stage(&o);
    int sends = 0, receives = 0;
    for (int i = 0; i < 8; i++)
        RECEIVE(&s.p->b, CTX(i), s.to, 0, 100);
    for (int i = 0; i < 8; i++)
        RECEIVE(&s.p->a, CTX(i), s.from, 0, 100);
    for (int i = 0; i < 8; i++)
        SEND(&s.p->a, CTX(100 + i), s.from, 200, 10, 0);
    for (int i = 0; i < 8; i++)
        EXPECT_OK(s.f, &s.p->b, Receive, CTX(i), 10);
    for (int i = 0; i < 8; i++)
        SEND(&s.p->b, CTX(100 + i), s.to, 200, 20, 0);
    while (sends + receives < 16) { /* each kind in its order, the kinds in any */
        ND2_RESULT r;
        NEXT(s.f, s.p->a.initiator_cq, &r);
        CHECK_HR(r.Status, ND_SUCCESS);
        if (r.RequestType == Nd2RequestTypeSend)
            CHECK_PTR(r.RequestContext, CTX(100 + sends++));
        else
            CHECK_PTR(r.RequestContext, CTX(receives++));
    }
    CHECK_EQ(sends, 8);
    fx_end(s.f);
}

static void several_queue_pairs_share_one_queue(void) {
    struct fx *f = fx_begin();
    enum { PAIRS = 4, EACH = 10 };
    IND2CompletionQueue *cq = fx_cq(f, 1, PAIRS * EACH);
    struct fx_pair *p[PAIRS];
    int next[PAIRS] = { 0 };
    for (int i = 0; i < PAIRS; i++) {
        p[i] = PAIR_CREATE(f, NULL);
        fx_release(f, p[i]->b.qp);
        p[i]->b.receive_cq = cq;
        p[i]->b.qp = fx_qp(f, 1, cq, p[i]->b.initiator_cq, CTX(i), 16, 1, 0);
        fx_handshake(f, p[i], NULL);
        for (int n = 0; n < EACH; n++)
            RECEIVE(&p[i]->b, CTX(n), NULL, 0, 0);
    }
    for (int n = 0; n < EACH; n++)
        for (int i = 0; i < PAIRS; i++)
            SEND(&p[i]->a, CTX(n), NULL, 0, 0, 0);
    for (int n = 0; n < PAIRS * EACH; n++) {
        ND2_RESULT r;
        NEXT(f, cq, &r);
        CHECK_HR(r.Status, ND_SUCCESS);
        uintptr_t from = (uintptr_t)r.QueuePairContext;
        CHECK(from < PAIRS);
        CHECK_PTR(r.RequestContext, CTX(next[from]++));
    }
    fx_end(f);
}

static void results_outlive_their_queue_pair(void) {
    struct stage s = open_stage(NULL);
    deliver_seen(&s, 1);
    deliver_seen(&s, 2);
    RECEIVE(&s.p->b, CTX(3), NULL, 0, 0);
    CHECK_EQ(fx_release(s.f, s.p->b.qp), 0);
    EXPECT_OK(s.f, &s.p->b, Receive, CTX(1), 0);
    EXPECT_OK(s.f, &s.p->b, Receive, CTX(2), 0);
    EXPECT_ERROR(s.f, &s.p->b, Receive, ND_CANCELED, CTX(3));
    fx_end(s.f);
}

/* ---- GetNotifyAffinity ---- */

static void get_notify_affinity_names_processors(void) {
    struct fx *f = fx_begin();
    IND2CompletionQueue *cq = fx_cq(f, 0, 4);
    USHORT group = 0xFFFF;
    KAFFINITY mask = 0;
    HRESULT hr = CALL(cq, GetNotifyAffinity, &group, &mask);
    if (hr != ND_NOT_SUPPORTED) {
        CHECK_HR(hr, ND_SUCCESS);
        CHECK(group != 0xFFFF);
        CHECK(mask != 0);
    }
    CHECK_HR(CALL(cq, GetNotifyAffinity, NULL, &mask), ND_INVALID_PARAMETER);
    CHECK_HR(CALL(cq, GetNotifyAffinity, &group, NULL), ND_INVALID_PARAMETER);
    fx_end(f);
}

/* ---- Notify: parameters, cancelling ---- */

static void notify_of_unknown_type_names_parameter_1(void) {
    struct fx *f = fx_begin();
    IND2CompletionQueue *cq = fx_cq(f, 0, 4);
    OVERLAPPED *ov = fx_overlapped(f);
    CHECK_HR(CALL(cq, Notify, 3, ov), ND_INVALID_PARAMETER_1);
    CHECK_HR(CALL(cq, Notify, 0xFFFFFFFF, ov), ND_INVALID_PARAMETER_1);
    CHECK_HR(CALL(cq, Notify, ND_CQ_NOTIFY_ANY, NULL), ND_INVALID_PARAMETER_2);
    CHECK_EQ(WaitForSingleObject(ov->hEvent, 0), WAIT_TIMEOUT);
    fx_end(f);
}

static void notify_without_queue_pairs_waits_until_cancelled(void) {
    struct fx *f = fx_begin();
    struct stage s = { .f = f, .cq = fx_cq(f, 0, 4) };
    static const ULONG types[] = { ND_CQ_NOTIFY_ERRORS, ND_CQ_NOTIFY_ANY, ND_CQ_NOTIFY_SOLICITED };
    OVERLAPPED *ov[COUNT_OF(types)];
    for (size_t i = 0; i < COUNT_OF(types); i++)
        ov[i] = arm(&s, types[i]);
    for (size_t i = 0; i < COUNT_OF(types); i++)
        EXPECT_ARMED(&s, ov[i]);
    cancel_all(&s);
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        /* Complete before Cancel returns. */
        CHECK_EQ((HRESULT)ov[i]->Internal, ND_CANCELED);
        CHECK_HR(FINISH(f, s.cq, ov[i], ND_PENDING), ND_CANCELED);
    }
    cancel_all(&s); /* nothing left: harmless */
    fx_end(f);
}

static void release_with_notify_pending_cancels_it(void) {
    struct fx *f = fx_begin();
    struct stage s = { .f = f, .cq = fx_cq(f, 0, 4) };
    OVERLAPPED *ov = arm(&s, ND_CQ_NOTIFY_ANY);
    CHECK_EQ(fx_release(f, s.cq), 0);
    CHECK(fx_is_done(ov));
    CHECK_EQ((HRESULT)ov->Internal, ND_CANCELED);
    CHECK_EQ(WaitForSingleObject(ov->hEvent, 0), WAIT_OBJECT_0);
    fx_end(f);
}

/* ---- Notify: the race rules ---- */

/* N1, N9: unarmed at first, one shot. */
static void notify_fires_once(void) {
    struct stage s = open_stage(NULL);
    OVERLAPPED *ov = arm(&s, ND_CQ_NOTIFY_ANY);
    EXPECT_ARMED(&s, ov);
    deliver(&s, 0, 0);
    EXPECT_NOTIFIED(&s, ov);
    drain(&s, 0, 1);
    deliver(&s, 1, 0); /* fires nothing */
    drain(&s, 1, 1);
    CHECK_EQ(WaitForSingleObject(ov->hEvent, 0), fx_notify_mode() ? WAIT_TIMEOUT : WAIT_OBJECT_0);
    CHECK_EQ(WaitForSingleObject(ov->hEvent, 0), WAIT_TIMEOUT);
    fx_end(s.f);
}

/* N2: a completion that nobody was told of fires the next Notify at once. */
static void notify_on_unreported_results_fires_at_once(void) {
    struct stage s = open_stage(NULL);
    deliver(&s, 0, 0);
    OVERLAPPED *ov = arm(&s, ND_CQ_NOTIFY_ANY);
    EXPECT_NOTIFIED(&s, ov);
    drain(&s, 0, 1);
    fx_end(s.f);
}

/* N3: one that was reported does not, even if it is still unread. */
static void notify_on_reported_results_waits(void) {
    struct stage s = open_stage(NULL);
    OVERLAPPED *first = arm(&s, ND_CQ_NOTIFY_ANY);
    deliver(&s, 0, 0);
    EXPECT_NOTIFIED(&s, first);
    OVERLAPPED *second = arm(&s, ND_CQ_NOTIFY_ANY);
    EXPECT_ARMED(&s, second);
    deliver(&s, 1, 0);
    EXPECT_NOTIFIED(&s, second);
    drain(&s, 0, 2);
    fx_end(s.f);
}

/* N4: what came after a GetResults that returned less than asked counts, before Notify or after. */
static void notify_after_drain_sees_what_came_in_between(void) {
    struct stage s = open_stage(NULL);
    OVERLAPPED *first = arm(&s, ND_CQ_NOTIFY_ANY);
    deliver(&s, 0, 0);
    EXPECT_NOTIFIED(&s, first);
    drain(&s, 0, 1);
    deliver(&s, 1, 0); /* between the last GetResults and Notify */
    OVERLAPPED *second = arm(&s, ND_CQ_NOTIFY_ANY);
    EXPECT_NOTIFIED(&s, second);
    drain(&s, 1, 1);
    OVERLAPPED *third = arm(&s, ND_CQ_NOTIFY_ANY);
    EXPECT_ARMED(&s, third);
    deliver(&s, 2, 0);
    EXPECT_NOTIFIED(&s, third);
    drain(&s, 2, 1);
    fx_end(s.f);
}

/* N2 with N3: a result that was read already fires nothing. */
static void notify_after_everything_was_read_waits(void) {
    struct stage s = open_stage(NULL);
    deliver(&s, 0, 0);
    drain(&s, 0, 1);
    OVERLAPPED *ov = arm(&s, ND_CQ_NOTIFY_ANY);
    EXPECT_ARMED(&s, ov);
    deliver(&s, 1, 0);
    EXPECT_NOTIFIED(&s, ov);
    drain(&s, 1, 1);
    fx_end(s.f);
}

/* N6: one event completes all that wait. */
static void notify_requests_complete_together(void) {
    struct stage s = open_stage(NULL);
    OVERLAPPED *ov[20];
    for (size_t i = 0; i < COUNT_OF(ov); i++)
        ov[i] = arm(&s, ND_CQ_NOTIFY_ANY);
    deliver(&s, 0, 0);
    for (size_t i = 0; i < COUNT_OF(ov); i++)
        EXPECT_NOTIFIED(&s, ov[i]);
    drain(&s, 0, 1);
    fx_end(s.f);
}

static void notify_solicited_waits_for_a_solicited_send(void) {
    struct stage s = open_stage(NULL);
    OVERLAPPED *ov = arm(&s, ND_CQ_NOTIFY_SOLICITED);
    deliver(&s, 0, 0);
    deliver(&s, 1, 0);
    drain(&s, 0, 2);
    EXPECT_ARMED(&s, ov);
    deliver(&s, 2, ND_OP_FLAG_SEND_AND_SOLICIT_EVENT);
    EXPECT_NOTIFIED(&s, ov);
    drain(&s, 2, 1);
    fx_end(s.f);
}

static void notify_solicited_fires_at_once_for_an_unread_solicited_result(void) {
    struct stage s = open_stage(NULL);
    deliver(&s, 0, ND_OP_FLAG_SEND_AND_SOLICIT_EVENT);
    deliver(&s, 1, 0);
    OVERLAPPED *ov = arm(&s, ND_CQ_NOTIFY_SOLICITED);
    EXPECT_NOTIFIED(&s, ov);
    drain(&s, 0, 2);
    deliver(&s, 2, 0);
    ov = arm(&s, ND_CQ_NOTIFY_SOLICITED);
    drain(&s, 2, 1);
    EXPECT_ARMED(&s, ov);
    cancel_all(&s);
    CHECK_HR(FINISH(s.f, s.cq, ov, ND_PENDING), ND_CANCELED);
    fx_end(s.f);
}

static void notify_any_fires_for_solicited_results_too(void) {
    struct stage s = open_stage(NULL);
    OVERLAPPED *ov = arm(&s, ND_CQ_NOTIFY_ANY);
    deliver(&s, 0, ND_OP_FLAG_SEND_AND_SOLICIT_EVENT);
    EXPECT_NOTIFIED(&s, ov);
    drain(&s, 0, 1);
    fx_end(s.f);
}

/* N7: ANY arms everything, whichever came first. */
static void notify_any_takes_waiting_solicited_with_it(void) {
    for (int any_first = 0; any_first < 2; any_first++) {
        struct stage s = open_stage(NULL);
        OVERLAPPED *one = arm(&s, any_first ? ND_CQ_NOTIFY_ANY : ND_CQ_NOTIFY_SOLICITED);
        OVERLAPPED *two = arm(&s, any_first ? ND_CQ_NOTIFY_SOLICITED : ND_CQ_NOTIFY_ANY);
        deliver(&s, 0, 0);
        EXPECT_NOTIFIED(&s, one);
        EXPECT_NOTIFIED(&s, two);
        drain(&s, 0, 1);
        fx_end(s.f);
    }
}

/* N8: a failed result satisfies every type. */
static void notify_of_every_type_fires_for_a_failed_result(void) {
    struct stage s = open_stage(NULL);
    OVERLAPPED *errors = arm(&s, ND_CQ_NOTIFY_ERRORS);
    OVERLAPPED *solicited = arm(&s, ND_CQ_NOTIFY_SOLICITED);
    RECEIVE(&s.p->b, CTX(0), NULL, 0, 0);
    EXPECT_ARMED(&s, solicited);
    EXPECT_ARMED(&s, errors);
    CHECK_HR(CALL(s.p->b.qp, Flush), ND_SUCCESS);
    EXPECT_NOTIFIED(&s, solicited);
    EXPECT_NOTIFIED(&s, errors);
    EXPECT_ERROR(s.f, &s.p->b, Receive, ND_CANCELED, CTX(0));
    fx_end(s.f);
}

static void notify_errors_stays_through_successes(void) {
    struct stage s = open_stage(NULL);
    OVERLAPPED *errors = arm(&s, ND_CQ_NOTIFY_ERRORS);
    for (int i = 0; i < 5; i++) {
        OVERLAPPED *any = arm(&s, ND_CQ_NOTIFY_ANY);
        deliver(&s, i, ND_OP_FLAG_SEND_AND_SOLICIT_EVENT);
        EXPECT_NOTIFIED(&s, any);
        drain(&s, i, 1);
    }
    EXPECT_ARMED(&s, errors);
    CHECK_EQ(WaitForSingleObject(errors->hEvent, 0), WAIT_TIMEOUT);
    cancel_all(&s);
    CHECK_HR(FINISH(s.f, s.cq, errors, ND_PENDING), ND_CANCELED);
    fx_end(s.f);
}

/* A flush enters the queue as a whole before anybody is told. */
static void flush_is_one_event(void) {
    struct stage s = open_stage(NULL);
    for (int round = 0; round < 2; round++) {
        struct fx_pair *p = PAIR_CREATE(s.f, NULL);
        OVERLAPPED *ov = fx_overlapped(s.f);
        if (round == 0) CHECK_HR(CALL(p->a.receive_cq, Notify, ND_CQ_NOTIFY_ANY, ov), ND_PENDING);
        for (int i = 0; i < 10; i++)
            RECEIVE(&p->a, CTX(i), NULL, 0, 0);
        CHECK_HR(CALL(p->a.qp, Flush), ND_SUCCESS);
        if (round == 1) CHECK_HR(CALL(p->a.receive_cq, Notify, ND_CQ_NOTIFY_ANY, ov), ND_PENDING);
        CHECK_HR(FINISH(s.f, p->a.receive_cq, ov, ND_PENDING), ND_SUCCESS);
        ND2_RESULT r[16];
        CHECK_EQ(CALL(p->a.receive_cq, GetResults, r, 16), 10);
        for (int i = 0; i < 10; i++) {
            CHECK_HR(r[i].Status, ND_CANCELED);
            CHECK_EQ(r[i].RequestType, Nd2RequestTypeReceive);
            CHECK_PTR(r[i].RequestContext, CTX(i));
        }
    }
    fx_end(s.f);
}

static void silent_success_fires_no_notification(void) {
    struct stage s = open_stage(NULL);
    IND2CompletionQueue *cq = s.p->a.initiator_cq;
    struct fx_memory *open = fx_memory(s.f, 1, 64, FX_MR_ALL);
    OVERLAPPED *ov = fx_overlapped(s.f);
    CHECK_HR(CALL(cq, Notify, ND_CQ_NOTIFY_ANY, ov), ND_PENDING);
    for (int i = 0; i < 5; i++)
        WRITE(&s.p->a, CTX(i), s.from, 0, 64, open, 0, ND_OP_FLAG_SILENT_SUCCESS);
    /* The answer shows that the peer has processed all of them. */
    RECEIVE(&s.p->b, CTX(9), NULL, 0, 0);
    RECEIVE(&s.p->a, CTX(9), NULL, 0, 0);
    SEND(&s.p->a, CTX(9), NULL, 0, 0, ND_OP_FLAG_SILENT_SUCCESS);
    EXPECT_OK(s.f, &s.p->b, Receive, CTX(9), 0);
    SEND(&s.p->b, CTX(9), NULL, 0, 0, 0);
    EXPECT_OK(s.f, &s.p->b, Send, CTX(9), 0);
    EXPECT_OK(s.f, &s.p->a, Receive, CTX(9), 0);
    CHECK_HR(CALL(cq, GetOverlappedResult, ov, FALSE), ND_PENDING);
    EXPECT_EMPTY(cq);
    CHECK_HR(CALL(cq, CancelOverlappedRequests), ND_SUCCESS);
    CHECK_HR(FINISH(s.f, cq, ov, ND_PENDING), ND_CANCELED);
    fx_end(s.f);
}

/* Nobody polls: the provider itself must bring the data in and fire. */
static void notify_fires_although_nobody_polls(void) {
    struct stage s = open_stage(NULL);
    for (int i = 0; i < HOST_ROUNDS(200); i++) {
        OVERLAPPED *ov = arm(&s, ND_CQ_NOTIFY_ANY);
        RECEIVE(&s.p->b, CTX(i), NULL, 0, 0);
        SEND(&s.p->a, CTX(i), NULL, 0, 0, 0);
        CHECK_EQ(WaitForSingleObject(ov->hEvent, 30000), WAIT_OBJECT_0);
        CHECK_HR(CALL(s.cq, GetOverlappedResult, ov, FALSE), ND_SUCCESS);
        drain(&s, i, 1);
        EXPECT_OK(s.f, &s.p->a, Send, CTX(i), 0);
    }
    fx_end(s.f);
}

/* Random order of messages, reads and Notify; every promise of the race rules holds for each.
 * Results are numbered from 1. What is certain: `sent` is the newest there can be, `got` was read
 * last, and the newest that a notification has reported lies between `told_min` and `told_max`. */
/* Each poll of the busy queue finds its one result, where a Write completes at once: no poll ever
 * finds the time to look for something else. */
static void notify_fires_although_another_queue_is_never_found_empty(void) {
    enum { WRITES_BEFORE = HOST_ROUNDS(2000), WRITES_MAX = WRITES_BEFORE + 20000 };
    struct fx *f = fx_begin();
    struct fx_pair *busy = PAIR(f, NULL), *quiet = PAIR(f, NULL);
    struct fx_memory *from = fx_memory(f, 0, 64, FX_MR_ALL), *to = fx_memory(f, 1, 64, FX_MR_ALL);
    OVERLAPPED *ov = fx_overlapped(f);
    ND2_RESULT r;
    RECEIVE(&quiet->a, CTX(1), NULL, 0, 0);
    CHECK_HR(CALL(quiet->a.receive_cq, Notify, ND_CQ_NOTIFY_ANY, ov), ND_PENDING);
    for (int i = 0; i < WRITES_BEFORE || !fx_is_done(ov); i++) {
        uint64_t deadline = fx_deadline();
        if (i == WRITES_BEFORE) SEND(&quiet->b, CTX(2), NULL, 0, 0, 0);
        WRITE(&busy->a, CTX(3), from, 0, 64, to, 0, 0);
        while (CALL(busy->a.initiator_cq, GetResults, &r, 1) == 0)
            if (host_now_ms() > deadline) FAIL("write %d did not complete", i);
        if (i == WRITES_MAX) FAIL("the Notify did not fire");
    }
    CHECK_HR(WAIT(f, quiet->a.receive_cq, ov), ND_SUCCESS);
    EXPECT_OK(f, &quiet->a, Receive, CTX(1), 0);
    EXPECT_OK(f, &quiet->b, Send, CTX(2), 0);
    fx_end(f);
}

static void notify_never_loses_a_result_in_random_order(void) {
    struct stage s = open_stage(NULL);
    uint64_t seed = fx_seed();
    int sent = 0, got = 0, told_min = 0, told_max = 0;
    OVERLAPPED *armed = NULL; /* only while nothing can fire it */
    for (int step = 0; step < 1500; step++) {
        switch (fx_random_below(&seed, 3)) {
        case 0:
            if (sent - got == 15) break;
            deliver(&s, ++sent, 0);
            if (!armed) break;
            EXPECT_NOTIFIED(&s, armed);
            armed = NULL;
            told_min = told_max = sent;
            break;
        case 1: {
            ND2_RESULT r[3];
            int n = (int)CALL(s.cq, GetResults, r, 3);
            CHECK(n <= sent - got);
            CHECK(n >= 3 || got + n >= told_min); /* what was reported was there */
            for (int i = 0; i < n; i++)
                CHECK_PTR(r[i].RequestContext, CTX(++got));
            break;
        }
        case 2:
            if (armed) break;
            armed = arm(&s, ND_CQ_NOTIFY_ANY);
            if (sent <= got || sent <= told_min) {
                EXPECT_ARMED(&s, armed);
                break;
            }
            if (sent > told_max) {
                EXPECT_NOTIFIED(&s, armed);
            } else { /* may have been reported or not */
                cancel_all(&s);
                HRESULT hr = FINISH(s.f, s.cq, armed, ND_PENDING);
                CHECK(hr == ND_SUCCESS || hr == ND_CANCELED);
                if (hr == ND_CANCELED) {
                    armed = NULL;
                    break;
                }
            }
            armed = NULL;
            told_min = (got > told_min ? got : told_min) + 1;
            told_max = sent;
            break;
        }
    }
    if (armed) cancel_all(&s);
    fx_end(s.f);
}

/* ---- several threads on one queue ---- */

struct taker {
    IND2CompletionQueue *cq;
    volatile LONG *left; /* results still to come */
    uint8_t *seen;       /* by message number: how often */
    uintptr_t count;
    uint64_t deadline;
    bool failed;
};

static void take_results(void *arg) {
    struct taker *t = arg;
    while (__atomic_load_n(t->left, __ATOMIC_ACQUIRE) > 0) {
        ND2_RESULT r[4];
        ULONG n = CALL(t->cq, GetResults, r, 4);
        for (ULONG i = 0; i < n; i++) {
            uintptr_t message = (uintptr_t)r[i].RequestContext;
            if (r[i].Status != ND_SUCCESS || message >= t->count)
                t->failed = true;
            else
                __atomic_fetch_add(&t->seen[message], 1, __ATOMIC_RELAXED);
        }
        if (n) __atomic_fetch_sub(t->left, (LONG)n, __ATOMIC_ACQ_REL);
        if (host_now_ms() > t->deadline) t->failed = true;
        if (t->failed) break;
        if (!n) Sleep(0);
    }
}

static void get_results_from_several_threads_gives_each_result_once(void) {
    struct fx_pair_options o = { .depth = 64 };
    struct stage s = open_stage(&o);
    enum { MESSAGES = HOST_ROUNDS(4000), THREADS = 3 };
    volatile LONG left = MESSAGES;
    uint8_t *seen = fx_alloc(s.f, MESSAGES);
    struct taker t[THREADS];
    struct host_thread *threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        t[i] = (struct taker){ s.cq, &left, seen, MESSAGES, fx_deadline(), false };
        CHECK((threads[i] = host_thread_start(take_results, &t[i])) != NULL);
    }
    int posted = 0, sent = 0, done = 0;
    uint64_t deadline = fx_deadline();
    bool late = false;
    while (done < MESSAGES && !late) {
        int taken = MESSAGES - __atomic_load_n(&left, __ATOMIC_ACQUIRE);
        if (posted < MESSAGES && posted - taken < 64 && /* unread results fill the queue too */
            fx_receive(&s.p->b, CTX(posted), NULL, 0, 0) == ND_SUCCESS)
            posted++;
        if (sent < posted && fx_send(&s.p->a, CTX(sent), NULL, 0, 0, 0) == ND_SUCCESS) sent++;
        ND2_RESULT r;
        while (CALL(s.p->a.initiator_cq, GetResults, &r, 1) == 1)
            if (r.Status == ND_SUCCESS) done++;
        late = host_now_ms() > deadline;
    }
    for (int i = 0; i < THREADS; i++)
        host_thread_join(threads[i]);
    CHECK(!late);
    for (int i = 0; i < THREADS; i++)
        CHECK(!t[i].failed);
    for (int i = 0; i < MESSAGES; i++)
        CHECK_EQ(seen[i], 1);
    fx_end(s.f);
}

/* ---- Resize ---- */

static bool can_resize(struct fx *f) {
    return f->info.AdapterFlags & ND_ADAPTER_FLAG_CQ_RESIZE_SUPPORTED;
}

static void resize_checks_its_parameter(void) {
    struct fx *f = fx_begin();
    IND2CompletionQueue *cq = fx_cq(f, 0, 4);
    if (!can_resize(f)) {
        CHECK_HR(CALL(cq, Resize, 8), ND_NOT_SUPPORTED);
        SKIP("the adapter cannot resize");
    }
    CHECK_HR(CALL(cq, Resize, 8), ND_SUCCESS);
    CHECK_HR(CALL(cq, Resize, 1), ND_SUCCESS);
    CHECK_HR(CALL(cq, Resize, f->info.MaxCompletionQueueDepth), ND_SUCCESS);
    CHECK_HR(CALL(cq, Resize, f->info.MaxCompletionQueueDepth + 1), ND_INVALID_PARAMETER);
    CHECK_HR(CALL(cq, Resize, 0), ND_INVALID_PARAMETER);
    fx_end(f);
}

static void resize_below_the_queued_results_is_refused(void) {
    struct stage s = open_stage(NULL);
    if (!can_resize(s.f)) SKIP("the adapter cannot resize");
    for (int i = 0; i < 6; i++)
        deliver_seen(&s, i);
    CHECK_HR(CALL(s.cq, Resize, 5), ND_BUFFER_OVERFLOW);
    CHECK_HR(CALL(s.cq, Resize, 6), ND_SUCCESS);
    CHECK_HR(CALL(s.cq, Resize, 100), ND_SUCCESS);
    drain(&s, 0, 6);
    fx_end(s.f);
}

static void resize_keeps_a_pending_notify(void) {
    struct stage s = open_stage(NULL);
    if (!can_resize(s.f)) SKIP("the adapter cannot resize");
    OVERLAPPED *ov = arm(&s, ND_CQ_NOTIFY_ANY);
    CHECK_HR(CALL(s.cq, Resize, 64), ND_SUCCESS);
    EXPECT_ARMED(&s, ov);
    deliver(&s, 0, 0);
    EXPECT_NOTIFIED(&s, ov);
    drain(&s, 0, 1);
    fx_end(s.f);
}

struct resizer {
    IND2CompletionQueue *cq;
    volatile LONG stop;
    ULONG least;
    int changes;
    HRESULT worst;
};

static void resize_all_the_time(void *arg) {
    struct resizer *r = arg;
    while (!__atomic_load_n(&r->stop, __ATOMIC_ACQUIRE)) {
        ULONG depth = r->least + (ULONG)(r->changes % 7) * 50;
        HRESULT hr = CALL(r->cq, Resize, depth);
        if (hr != ND_SUCCESS && hr != ND_BUFFER_OVERFLOW) r->worst = hr;
        __atomic_fetch_add(&r->changes, 1, __ATOMIC_RELAXED);
        Sleep(0);
    }
}

static void resize_under_traffic_loses_nothing(void) {
    struct fx_pair_options o = { .depth = 64 };
    struct stage s = open_stage(&o);
    if (!can_resize(s.f)) SKIP("the adapter cannot resize");
    enum { MESSAGES = HOST_ROUNDS(4000) };
    struct resizer r = { .cq = s.cq, .least = 64 };
    struct host_thread *thread = host_thread_start(resize_all_the_time, &r);
    CHECK(thread != NULL);
    int posted = 0, sent = 0, received = 0, wrong = 0;
    uint64_t deadline = fx_deadline();
    bool more = true; /* until the other thread has started, at least */
    while ((more || received < posted) && host_now_ms() < deadline) {
        ND2_RESULT got[8];
        more = posted < MESSAGES || __atomic_load_n(&r.changes, __ATOMIC_RELAXED) == 0;
        if (more && posted - received < 64 &&
            fx_receive(&s.p->b, CTX(posted), NULL, 0, 0) == ND_SUCCESS)
            posted++;
        if (sent < posted && fx_send(&s.p->a, CTX(sent), NULL, 0, 0, 0) == ND_SUCCESS) sent++;
        CALL(s.p->a.initiator_cq, GetResults, got, 8);
        ULONG n = CALL(s.cq, GetResults, got, 8);
        for (ULONG i = 0; i < n; i++, received++)
            if (got[i].RequestContext != CTX(received) || got[i].Status != ND_SUCCESS) wrong++;
    }
    __atomic_store_n(&r.stop, 1, __ATOMIC_RELEASE);
    host_thread_join(thread);
    CHECK(received >= MESSAGES);
    CHECK_EQ(received, posted);
    CHECK_EQ(wrong, 0);
    CHECK_HR(r.worst, ND_SUCCESS);
    CHECK(r.changes > 0);
    fx_end(s.f);
}

/* ---- overrun ---- */

/* More results than any slack a provider may keep: many queue pairs on one queue of depth 1. */
static void overrun_fails_the_queue_and_its_notify(void) {
    struct fx *f = fx_begin();
    enum { RESULTS = 4096 };
    ULONG depth = f->info.MaxReceiveQueueDepth < 512 ? f->info.MaxReceiveQueueDepth : 512;
    IND2CompletionQueue *cq = fx_cq(f, 0, 1);
    OVERLAPPED *ov = fx_overlapped(f), *late = fx_overlapped(f);
    CHECK_HR(CALL(cq, Notify, ND_CQ_NOTIFY_ERRORS, ov), ND_PENDING);
    for (ULONG n = 0; n < RESULTS; n += depth) {
        IND2QueuePair *qp = fx_qp(f, 0, cq, cq, NULL, depth, 1, 0);
        for (ULONG i = 0; i < depth; i++)
            CHECK_HR(CALL(qp, Receive, NULL, NULL, 0), ND_SUCCESS);
        CHECK_HR(CALL(qp, Flush), ND_SUCCESS);
    }
    /* The flushed results complete ERRORS too, so that request may have fired before the overrun;
     * a later one tells of it for certain. */
    HRESULT hr = FINISH(f, cq, ov, ND_PENDING);
    CHECK(hr == ND_SUCCESS || hr == ND_BUFFER_OVERFLOW);
    hr = CALL(cq, Notify, ND_CQ_NOTIFY_ERRORS, late);
    CHECK_HR(FINISH(f, cq, late, hr), ND_BUFFER_OVERFLOW);
    hr = CALL(cq, Notify, ND_CQ_NOTIFY_ANY, late);
    CHECK_HR(FINISH(f, cq, late, hr), ND_BUFFER_OVERFLOW);
    fx_end(f);
}

/* Tools post as many Receives and Sends as the depth of the one queue that both end in. */
static void queue_smaller_than_what_it_serves_takes_depth_plus_a_few(void) {
    struct fx *f = fx_begin();
    struct fx_pair_options o = { .depth = 64, .cq_depth = 64, .one_cq = true };
    struct fx_pair *p = PAIR(f, &o);
    OVERLAPPED *errors = fx_overlapped(f);
    CHECK_HR(CALL(p->b.receive_cq, Notify, ND_CQ_NOTIFY_ERRORS, errors), ND_PENDING);
    for (int i = 0; i < 64; i++)
        RECEIVE(&p->b, CTX(i), NULL, 0, 0);
    for (int i = 0; i < 3; i++)
        RECEIVE(&p->a, CTX(i), NULL, 0, 0);
    for (int i = 0; i < 3; i++)
        SEND(&p->b, CTX(i), NULL, 0, 0, 0);
    for (int i = 0; i < 3; i++)
        EXPECT_OK(f, &p->a, Receive, CTX(i), 0);
    fx_disconnect(f, &p->b);
    int sends = 0, receives = 0;
    while (sends + receives < 67) {
        ND2_RESULT r;
        NEXT(f, p->b.receive_cq, &r);
        if (r.RequestType == Nd2RequestTypeSend)
            CHECK_PTR(r.RequestContext, CTX(sends++));
        else
            CHECK_PTR(r.RequestContext, CTX(receives++));
    }
    CHECK_EQ(receives, 64);
    CHECK_HR(FINISH(f, p->b.receive_cq, errors, ND_PENDING), ND_SUCCESS);
    fx_end(f);
}

CONFORM_MAIN(TEST(get_results_of_an_empty_queue_is_zero),
             TEST(get_results_never_writes_more_than_asked),
             TEST(get_results_echoes_contexts_types_and_bytes),
             TEST(results_of_both_kinds_share_one_queue), TEST(several_queue_pairs_share_one_queue),
             TEST(results_outlive_their_queue_pair), TEST(get_notify_affinity_names_processors),
             TEST(notify_of_unknown_type_names_parameter_1),
             TEST(notify_without_queue_pairs_waits_until_cancelled),
             TEST(release_with_notify_pending_cancels_it), TEST(notify_fires_once),
             TEST(notify_on_unreported_results_fires_at_once),
             TEST(notify_on_reported_results_waits),
             TEST(notify_after_drain_sees_what_came_in_between),
             TEST(notify_after_everything_was_read_waits), TEST(notify_requests_complete_together),
             TEST(notify_solicited_waits_for_a_solicited_send),
             TEST(notify_solicited_fires_at_once_for_an_unread_solicited_result),
             TEST(notify_any_fires_for_solicited_results_too),
             TEST(notify_any_takes_waiting_solicited_with_it),
             TEST(notify_of_every_type_fires_for_a_failed_result),
             TEST(notify_errors_stays_through_successes), TEST(flush_is_one_event),
             TEST(silent_success_fires_no_notification), TEST(notify_fires_although_nobody_polls),
             TEST(notify_fires_although_another_queue_is_never_found_empty),
             TEST(notify_never_loses_a_result_in_random_order),
             TEST(get_results_from_several_threads_gives_each_result_once),
             TEST(resize_checks_its_parameter), TEST(resize_below_the_queued_results_is_refused),
             TEST(resize_keeps_a_pending_notify), TEST(resize_under_traffic_loses_nothing),
             TEST(overrun_fails_the_queue_and_its_notify),
             TEST(queue_smaller_than_what_it_serves_takes_depth_plus_a_few))
