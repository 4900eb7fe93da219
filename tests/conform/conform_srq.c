/* SPDX-License-Identifier: MIT
 * conform_srq.c - IND2SharedReceiveQueue and queue pairs that take their Receives from one.
 */
#include "fixture.h"

struct stage {
    struct fx *f;
    IND2SharedReceiveQueue *srq; /* on host 1 */
    struct fx_memory *from;      /* host 0 */
    struct fx_memory *to;        /* host 1 */
};

static struct stage open_stage(ULONG depth, ULONG threshold) {
    struct stage s = { .f = fx_begin() };
    if (s.f->info.MaxSharedReceiveQueueDepth < depth) SKIP("no shared receive queue so deep");
    s.srq = fx_srq(s.f, 1, depth, 2, threshold);
    s.from = fx_memory(s.f, 0, KIB(64), 0);
    s.to = fx_memory(s.f, 1, KIB(64), ND_MR_FLAG_ALLOW_LOCAL_WRITE);
    return s;
}

static struct fx_pair *connect_pair(struct stage *s) {
    struct fx_pair_options o = { .srq = s->srq, .cq_depth = 64 };
    return PAIR(s->f, &o);
}

static HRESULT post(struct stage *s, int n, size_t offset, size_t len) {
    ND2_SGE sge = fx_sge(s->to, offset, len);
    return CALL(s->srq, Receive, CTX(n), &sge, len ? 1 : 0);
}

#define POST(s, n, offset, len) CHECK_HR(post(s, n, offset, len), ND_SUCCESS)

static OVERLAPPED *arm(struct stage *s) {
    OVERLAPPED *ov = fx_overlapped(s->f);
    CHECK_HR(CALL(s->srq, Notify, ov), ND_PENDING);
    return ov;
}

#define EXPECT_NOTIFIED(s, ov) CHECK_HR(FINISH((s)->f, (s)->srq, ov, ND_PENDING), ND_SUCCESS)
#define EXPECT_ARMED(s, ov) CHECK_HR(CALL((s)->srq, GetOverlappedResult, ov, FALSE), ND_PENDING)

/* ---- Receive ---- */

static void receive_before_any_connection_is_used_later(void) {
    struct stage s = open_stage(16, 0);
    fx_fill(s.from->bytes, 3000, 1, 1, 0);
    for (int i = 0; i < 3; i++)
        POST(&s, i, (size_t)i * 1000, 1000);
    struct fx_pair *p = connect_pair(&s);
    for (int i = 0; i < 3; i++)
        SEND(&p->a, CTX(i), s.from, (size_t)i * 1000, 900, 0);
    for (int i = 0; i < 3; i++) {
        EXPECT_OK(s.f, &p->b, Receive, CTX(i), 900);
        CHECK_DATA(s.to->bytes + i * 1000, 900, 1, 1, (size_t)i * 1000);
        EXPECT_OK(s.f, &p->a, Send, CTX(i), 900);
    }
    fx_end(s.f);
}

static void receive_checks_depth_sge_and_bytes(void) {
    struct stage s = open_stage(4, 0);
    ND2_SGE sge[3] = { fx_sge(s.to, 0, 8), fx_sge(s.to, 8, 8), fx_sge(s.to, 16, 8) };
    CHECK_HR(CALL(s.srq, Receive, NULL, sge, s.f->info.MaxReceiveSge + 1), ND_DATA_OVERRUN);
    ND2_SGE large[2] = { fx_sge(s.to, 0, 8), fx_sge(s.to, 0, 8) };
    large[0].BufferLength = s.f->info.MaxTransferLength;
    large[1].BufferLength = 1;
    CHECK_HR(CALL(s.srq, Receive, NULL, large, 2), ND_BUFFER_OVERFLOW);
    for (int i = 0; i < 4; i++)
        CHECK_HR(CALL(s.srq, Receive, CTX(i), sge, 2), ND_SUCCESS);
    CHECK_HR(CALL(s.srq, Receive, NULL, sge, 1), ND_NO_MORE_ENTRIES);
    CHECK_HR(CALL(s.srq, Receive, NULL, NULL, 0), ND_NO_MORE_ENTRIES);
    fx_end(s.f);
}

static void receive_on_a_queue_pair_with_a_shared_queue_is_an_invalid_request(void) {
    struct stage s = open_stage(4, 0);
    struct fx_pair *p = connect_pair(&s);
    CHECK_HR(fx_receive(&p->b, NULL, s.to, 0, 8), ND_INVALID_DEVICE_REQUEST);
    fx_end(s.f);
}

static void receive_is_taken_by_whichever_queue_pair_needs_it(void) {
    struct stage s = open_stage(64, 0);
    enum { PAIRS = 3, EACH = 20 };
    struct fx_pair *p[PAIRS];
    bool seen[PAIRS * EACH] = { false };
    int last[PAIRS];
    for (int i = 0; i < PAIRS; i++) {
        p[i] = connect_pair(&s);
        last[i] = -1;
    }
    for (int i = 0; i < PAIRS * EACH; i++)
        POST(&s, i, (size_t)i * 64, 64);
    for (int n = 0; n < EACH; n++)
        for (int i = 0; i < PAIRS; i++) {
            fx_fill(s.from->bytes, 64, (uint64_t)i, (uint64_t)n, 0);
            SEND(&p[i]->a, CTX(n), s.from, 0, 64, 0);
            EXPECT_OK(s.f, &p[i]->a, Send, CTX(n), 64);
            ND2_RESULT r;
            NEXT(s.f, p[i]->b.receive_cq, &r);
            CHECK_HR(r.Status, ND_SUCCESS);
            CHECK_PTR(r.QueuePairContext, p[i]->b.context);
            uintptr_t used = (uintptr_t)r.RequestContext;
            CHECK(used < COUNT_OF(seen) && !seen[used]);
            seen[used] = true;
            CHECK((int)used > last[i]); /* first in, first out */
            last[i] = (int)used;
            CHECK_DATA(s.to->bytes + used * 64, 64, (uint64_t)i, (uint64_t)n, 0);
        }
    for (size_t i = 0; i < COUNT_OF(seen); i++)
        CHECK(seen[i]);
    fx_end(s.f);
}

static void send_to_an_empty_queue_waits_for_a_receive(void) {
    struct stage s = open_stage(4, 0);
    struct fx_pair *p = connect_pair(&s);
    fx_fill(s.from->bytes, 100, 2, 1, 0);
    SEND(&p->a, CTX(1), s.from, 0, 100, 0);
    EXPECT_EMPTY(p->b.receive_cq);
    POST(&s, 1, 0, 100);
    EXPECT_OK(s.f, &p->b, Receive, CTX(1), 100);
    EXPECT_OK(s.f, &p->a, Send, CTX(1), 100);
    CHECK_DATA(s.to->bytes, 100, 2, 1, 0);
    fx_end(s.f);
}

static void message_longer_than_the_receive_fails_only_its_connection(void) {
    struct stage s = open_stage(8, 0);
    struct fx_pair *p = connect_pair(&s), *other = connect_pair(&s);
    POST(&s, 1, 0, 99);
    SEND(&p->a, CTX(1), s.from, 0, 100, 0);
    EXPECT_ERROR(s.f, &p->b, Receive, ND_DATA_OVERRUN, CTX(1));
    POST(&s, 2, 0, 100);
    SEND(&other->a, CTX(2), s.from, 0, 100, 0);
    EXPECT_OK(s.f, &other->b, Receive, CTX(2), 100);
    fx_end(s.f);
}

static void flush_leaves_unconsumed_receives_alone(void) {
    struct stage s = open_stage(8, 0);
    struct fx_pair *p = connect_pair(&s);
    POST(&s, 1, 0, 100);
    POST(&s, 2, 0, 100);
    CHECK_HR(CALL(p->b.qp, Flush), ND_SUCCESS);
    EXPECT_EMPTY(p->b.receive_cq);
    struct fx_pair *next = connect_pair(&s);
    SEND(&next->a, CTX(1), s.from, 0, 10, 0);
    SEND(&next->a, CTX(2), s.from, 0, 10, 0);
    EXPECT_OK(s.f, &next->b, Receive, CTX(1), 10);
    EXPECT_OK(s.f, &next->b, Receive, CTX(2), 10);
    EXPECT_EMPTY(p->b.receive_cq);
    fx_end(s.f);
}

static void slots_come_back_without_end(void) {
    struct stage s = open_stage(4, 0);
    struct fx_pair *p = connect_pair(&s);
    for (int i = 0; i < HOST_ROUNDS(500); i++) {
        POST(&s, i, 0, 64);
        SEND(&p->a, CTX(i), s.from, 0, 64, 0);
        EXPECT_OK(s.f, &p->b, Receive, CTX(i), 64);
        EXPECT_OK(s.f, &p->a, Send, CTX(i), 64);
    }
    fx_end(s.f);
}

/* ---- Modify ---- */

static void modify_checks_its_parameters(void) {
    struct stage s = open_stage(8, 0);
    CHECK_HR(CALL(s.srq, Modify, s.f->info.MaxSharedReceiveQueueDepth + 1, 0),
             ND_INVALID_PARAMETER);
    for (int i = 0; i < 6; i++)
        POST(&s, i, 0, 8);
    CHECK_HR(CALL(s.srq, Modify, 5, 0), ND_BUFFER_OVERFLOW);
    CHECK_HR(CALL(s.srq, Modify, 6, 0), ND_SUCCESS);
    CHECK_HR(post(&s, 6, 0, 8), ND_NO_MORE_ENTRIES);
    CHECK_HR(CALL(s.srq, Modify, 0, 0), ND_SUCCESS); /* changes nothing */
    CHECK_HR(post(&s, 6, 0, 8), ND_NO_MORE_ENTRIES);
    CHECK_HR(CALL(s.srq, Modify, 7, 0), ND_SUCCESS);
    POST(&s, 6, 0, 8);
    CHECK_HR(post(&s, 7, 0, 8), ND_NO_MORE_ENTRIES);
    /* What was posted before survived it all, in order. */
    struct fx_pair *p = connect_pair(&s);
    for (int i = 0; i < 7; i++) {
        SEND(&p->a, CTX(i), s.from, 0, 8, 0);
        EXPECT_OK(s.f, &p->b, Receive, CTX(i), 8);
    }
    fx_end(s.f);
}

static void modify_grows_to_the_maximum(void) {
    struct stage s = open_stage(2, 0);
    ULONG most = s.f->info.MaxSharedReceiveQueueDepth;
    CHECK_HR(CALL(s.srq, Modify, most, 0), ND_SUCCESS);
    for (ULONG i = 0; i < most; i++)
        CHECK_HR(CALL(s.srq, Receive, NULL, NULL, 0), ND_SUCCESS);
    CHECK_HR(CALL(s.srq, Receive, NULL, NULL, 0), ND_NO_MORE_ENTRIES);
    fx_end(s.f);
}

static void modify_of_the_threshold_can_fire_at_once(void) {
    struct stage s = open_stage(8, 2);
    for (int i = 0; i < 4; i++)
        POST(&s, i, 0, 8);
    OVERLAPPED *ov = arm(&s);
    EXPECT_ARMED(&s, ov);
    CHECK_HR(CALL(s.srq, Modify, 0, 0), ND_SUCCESS);
    EXPECT_ARMED(&s, ov);
    CHECK_HR(CALL(s.srq, Modify, 0, 5), ND_SUCCESS); /* four are fewer than five */
    EXPECT_NOTIFIED(&s, ov);
    fx_end(s.f);
}

/* ---- Notify ---- */

static void notify_fires_below_the_threshold_only(void) {
    struct stage s = open_stage(8, 3);
    for (int i = 0; i < 5; i++)
        POST(&s, i, 0, 8);
    struct fx_pair *p = connect_pair(&s);
    OVERLAPPED *one = arm(&s), *two = arm(&s);
    for (int i = 0; i < 2; i++) { /* five, four, three left: not below three */
        SEND(&p->a, CTX(i), s.from, 0, 8, 0);
        EXPECT_OK(s.f, &p->b, Receive, CTX(i), 8);
        EXPECT_ARMED(&s, one);
        EXPECT_ARMED(&s, two);
    }
    SEND(&p->a, CTX(2), s.from, 0, 8, 0);
    EXPECT_NOTIFIED(&s, one);
    EXPECT_NOTIFIED(&s, two);
    EXPECT_OK(s.f, &p->b, Receive, CTX(2), 8);
    fx_end(s.f);
}

static void notify_when_already_below_fires_at_once(void) {
    struct stage s = open_stage(8, 3);
    EXPECT_NOTIFIED(&s, arm(&s));
    POST(&s, 0, 0, 8);
    EXPECT_NOTIFIED(&s, arm(&s));
    POST(&s, 1, 0, 8);
    POST(&s, 2, 0, 8);
    OVERLAPPED *ov = arm(&s);
    EXPECT_ARMED(&s, ov);
    CHECK_HR(CALL(s.srq, CancelOverlappedRequests), ND_SUCCESS);
    CHECK_HR(FINISH(s.f, s.srq, ov, ND_PENDING), ND_CANCELED);
    fx_end(s.f);
}

static void notify_with_threshold_0_never_fires(void) {
    struct stage s = open_stage(8, 0);
    OVERLAPPED *ov = arm(&s);
    POST(&s, 0, 0, 8);
    struct fx_pair *p = connect_pair(&s);
    SEND(&p->a, CTX(0), s.from, 0, 8, 0);
    EXPECT_OK(s.f, &p->b, Receive, CTX(0), 8);
    EXPECT_ARMED(&s, ov);
    CHECK_HR(CALL(s.srq, CancelOverlappedRequests), ND_SUCCESS);
    CHECK_EQ((HRESULT)ov->Internal, ND_CANCELED);
    CHECK_HR(CALL(s.srq, CancelOverlappedRequests), ND_SUCCESS);
    CHECK_HR(CALL(s.srq, Notify, NULL), ND_INVALID_PARAMETER_1);
    fx_end(s.f);
}

static void release_with_notify_pending_cancels_it(void) {
    struct stage s = open_stage(8, 0);
    OVERLAPPED *ov = arm(&s);
    CHECK_EQ(fx_release(s.f, s.srq), 0);
    CHECK(fx_is_done(ov));
    CHECK_EQ((HRESULT)ov->Internal, ND_CANCELED);
    fx_end(s.f);
}

static void get_notify_affinity_names_processors(void) {
    struct stage s = open_stage(8, 0);
    USHORT group = 0xFFFF;
    KAFFINITY mask = 0;
    HRESULT hr = CALL(s.srq, GetNotifyAffinity, &group, &mask);
    if (hr != ND_NOT_SUPPORTED) {
        CHECK_HR(hr, ND_SUCCESS);
        CHECK(mask != 0);
    }
    CHECK_HR(CALL(s.srq, GetNotifyAffinity, NULL, &mask), ND_INVALID_PARAMETER);
    CHECK_HR(CALL(s.srq, GetNotifyAffinity, &group, NULL), ND_INVALID_PARAMETER);
    fx_end(s.f);
}

/* ---- lifetime ---- */

static void queue_pair_keeps_its_shared_queue(void) {
    struct stage s = open_stage(8, 0);
    struct fx_pair *p = connect_pair(&s);
    POST(&s, 1, 0, 100);
    CHECK_EQ(fx_release(s.f, s.srq), 0);
    fx_fill(s.from->bytes, 100, 3, 1, 0);
    SEND(&p->a, CTX(1), s.from, 0, 100, 0);
    EXPECT_OK(s.f, &p->b, Receive, CTX(1), 100);
    CHECK_DATA(s.to->bytes, 100, 3, 1, 0);
    fx_end(s.f);
}

static void queue_pair_that_goes_gives_no_receive_away_twice(void) {
    struct stage s = open_stage(16, 0);
    struct fx_pair *one = connect_pair(&s), *two = connect_pair(&s);
    for (int i = 0; i < 10; i++)
        POST(&s, i, (size_t)i * 64, 64);
    for (int i = 0; i < 5; i++)
        SEND(&one->a, CTX(i), s.from, 0, 64, 0);
    for (int i = 0; i < 5; i++)
        EXPECT_OK(s.f, &one->b, Receive, CTX(i), 64);
    fx_disconnect(s.f, &one->b);
    for (int i = 5; i < 10; i++)
        SEND(&two->a, CTX(i), s.from, 0, 64, 0);
    for (int i = 5; i < 10; i++)
        EXPECT_OK(s.f, &two->b, Receive, CTX(i), 64);
    EXPECT_EMPTY(one->b.receive_cq);
    fx_end(s.f);
}

CONFORM_MAIN(
    TEST(receive_before_any_connection_is_used_later), TEST(receive_checks_depth_sge_and_bytes),
    TEST(receive_on_a_queue_pair_with_a_shared_queue_is_an_invalid_request),
    TEST(receive_is_taken_by_whichever_queue_pair_needs_it),
    TEST(send_to_an_empty_queue_waits_for_a_receive),
    TEST(message_longer_than_the_receive_fails_only_its_connection),
    TEST(flush_leaves_unconsumed_receives_alone), TEST(slots_come_back_without_end),
    TEST(modify_checks_its_parameters), TEST(modify_grows_to_the_maximum),
    TEST(modify_of_the_threshold_can_fire_at_once), TEST(notify_fires_below_the_threshold_only),
    TEST(notify_when_already_below_fires_at_once), TEST(notify_with_threshold_0_never_fires),
    TEST(release_with_notify_pending_cancels_it), TEST(get_notify_affinity_names_processors),
    TEST(queue_pair_keeps_its_shared_queue), TEST(queue_pair_that_goes_gives_no_receive_away_twice))
