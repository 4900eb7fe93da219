/* SPDX-License-Identifier: MIT
 * conform_qp.c - IND2QueuePair: what each post checks, in which state it is allowed, depths, and
 * Flush. Data and remote errors are in conform_data.c and conform_errors.c.
 */
#include "fixture.h"

static const size_t REGION_BYTES = 4096;

struct stage {
    struct fx *f;
    struct fx_pair *p;
    struct fx_memory *a, *b;
};

static struct stage open_stage(const struct fx_pair_options *o) {
    struct stage s = { .f = fx_begin() };
    s.p = PAIR(s.f, o);
    s.a = fx_memory(s.f, 0, REGION_BYTES, FX_MR_ALL);
    s.b = fx_memory(s.f, 1, REGION_BYTES, FX_MR_ALL);
    return s;
}

/* ---- states ---- */

static void posts_before_connecting_are_invalid_but_receive(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR_CREATE(f, NULL);
    struct fx_memory *m = fx_memory(f, 0, REGION_BYTES, FX_MR_ALL);
    CHECK_HR(fx_send(&p->a, NULL, m, 0, 8, 0), ND_CONNECTION_INVALID);
    CHECK_HR(fx_send(&p->a, NULL, NULL, 0, 0, 0), ND_CONNECTION_INVALID);
    CHECK_HR(fx_write(&p->a, NULL, m, 0, 8, m, 0, 0), ND_CONNECTION_INVALID);
    CHECK_HR(fx_read(&p->a, NULL, m, 0, 8, m, 0, 0), ND_CONNECTION_INVALID);
    CHECK_HR(fx_receive(&p->a, CTX(1), m, 0, 8), ND_SUCCESS);
    CHECK_HR(fx_receive(&p->a, CTX(2), NULL, 0, 0), ND_SUCCESS);
    EXPECT_EMPTY(p->a.receive_cq);
    EXPECT_EMPTY(p->a.initiator_cq);
    fx_end(f);
}

static void posts_while_connecting_are_invalid_but_receive(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR_CREATE(f, NULL);
    struct fx_memory *m = fx_memory(f, 0, REGION_BYTES, FX_MR_ALL);
    OVERLAPPED *accept;
    fx_to_answered(f, p, &accept);
    CHECK_HR(fx_send(&p->a, NULL, m, 0, 8, 0), ND_CONNECTION_INVALID);
    RECEIVE(&p->a, CTX(1), m, 0, 8);
    CHECK_HR(FINISH(f, p->a.connector, fx_complete(f, p), ND_PENDING), ND_SUCCESS);
    CHECK_HR(FINISH(f, p->b.connector, accept, ND_PENDING), ND_SUCCESS);
    SYNC(f, &p->a, &p->b);
    SEND(&p->b, CTX(2), NULL, 0, 0, 0);
    EXPECT_OK(f, &p->a, Receive, CTX(1), 0);
    fx_end(f);
}

static void receives_posted_before_connecting_are_used_in_order(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR_CREATE(f, NULL);
    struct fx_memory *to = fx_memory(f, 1, REGION_BYTES, FX_MR_ALL);
    struct fx_memory *from = fx_memory(f, 0, REGION_BYTES, 0);
    for (int i = 0; i < 10; i++)
        RECEIVE(&p->b, CTX(i), to, (size_t)i * 100, 100);
    fx_handshake(f, p, NULL);
    for (int i = 0; i < 10; i++) {
        fx_fill(from->bytes, 100, 1, (uint64_t)i, 0);
        SEND(&p->a, CTX(i), from, 0, 100, 0);
        EXPECT_OK(f, &p->a, Send, CTX(i), 100);
        EXPECT_OK(f, &p->b, Receive, CTX(i), 100);
        CHECK_DATA(to->bytes + i * 100, 100, 1, (uint64_t)i, 0);
    }
    fx_end(f);
}

static void posts_after_local_disconnect_are_invalid_but_receive(void) {
    struct stage s = open_stage(NULL);
    fx_disconnect(s.f, &s.p->a);
    CHECK_HR(fx_send(&s.p->a, NULL, s.a, 0, 8, 0), ND_CONNECTION_INVALID);
    CHECK_HR(fx_write(&s.p->a, NULL, s.a, 0, 8, s.b, 0, 0), ND_CONNECTION_INVALID);
    CHECK_HR(fx_read(&s.p->a, NULL, s.a, 0, 8, s.b, 0, 0), ND_CONNECTION_INVALID);
    RECEIVE(&s.p->a, CTX(7), s.a, 0, 8);
    EXPECT_ERROR(s.f, &s.p->a, Receive, ND_CANCELED, CTX(7));
    EXPECT_EMPTY(s.p->a.initiator_cq);
    fx_end(s.f);
}

static void posts_after_peer_disconnect_are_flushed(void) {
    struct stage s = open_stage(NULL);
    RECEIVE(&s.p->a, CTX(1), s.a, 0, 8);
    fx_disconnect(s.f, &s.p->b);
    EXPECT_ERROR(s.f, &s.p->a, Receive, ND_CANCELED, CTX(1)); /* it has been noticed */
    SEND(&s.p->a, CTX(2), s.a, 0, 8, 0);
    WRITE(&s.p->a, CTX(3), s.a, 0, 8, s.b, 0, 0);
    READ(&s.p->a, CTX(4), s.a, 0, 8, s.b, 0, 0);
    RECEIVE(&s.p->a, CTX(5), s.a, 0, 8);
    EXPECT_ERROR(s.f, &s.p->a, Send, ND_CANCELED, CTX(2));
    EXPECT_ERROR(s.f, &s.p->a, Write, ND_CANCELED, CTX(3));
    EXPECT_ERROR(s.f, &s.p->a, Read, ND_CANCELED, CTX(4));
    EXPECT_ERROR(s.f, &s.p->a, Receive, ND_CANCELED, CTX(5));
    fx_end(s.f);
}

static void posts_after_an_error_are_flushed(void) {
    struct stage s = open_stage(NULL);
    ND2_SGE bad = fx_sge(s.a, 0, 8);
    bad.MemoryRegionToken ^= 0x5A5A5A5A;
    CHECK_HR(CALL(s.p->a.qp, Send, CTX(1), &bad, 1, 0), ND_SUCCESS);
    EXPECT_ERROR(s.f, &s.p->a, Send, ND_ACCESS_VIOLATION, CTX(1));
    SEND(&s.p->a, CTX(2), s.a, 0, 8, 0);
    RECEIVE(&s.p->a, CTX(3), s.a, 0, 8);
    EXPECT_ERROR(s.f, &s.p->a, Send, ND_CANCELED, CTX(2));
    EXPECT_ERROR(s.f, &s.p->a, Receive, ND_CANCELED, CTX(3));
    fx_disconnect(s.f, &s.p->a); /* still in order */
    fx_end(s.f);
}

/* ---- flags ---- */

static void flags_that_a_request_does_not_know_are_refused(void) {
    struct stage s = open_stage(NULL);
    static const ULONG unknown[] = { 0x40, 0x80000000 };
    struct fx_side *a = &s.p->a;
    for (size_t i = 0; i < COUNT_OF(unknown); i++) {
        CHECK_HR(fx_send(a, NULL, s.a, 0, 8, unknown[i]), ND_INVALID_PARAMETER_4);
        CHECK_HR(fx_write(a, NULL, s.a, 0, 8, s.b, 0, unknown[i]), ND_INVALID_PARAMETER_6);
        CHECK_HR(fx_read(a, NULL, s.a, 0, 8, s.b, 0, unknown[i]), ND_INVALID_PARAMETER_6);
    }
    CHECK_HR(fx_send(a, NULL, s.a, 0, 8, ND_OP_FLAG_ALLOW_READ), ND_INVALID_PARAMETER_4);
    CHECK_HR(fx_write(a, NULL, s.a, 0, 8, s.b, 0, ND_OP_FLAG_ALLOW_WRITE), ND_INVALID_PARAMETER_6);
    CHECK_HR(fx_write(a, NULL, s.a, 0, 8, s.b, 0, ND_OP_FLAG_SEND_AND_SOLICIT_EVENT),
             ND_INVALID_PARAMETER_6);
    CHECK_HR(fx_read(a, NULL, s.a, 0, 8, s.b, 0, ND_OP_FLAG_SEND_AND_SOLICIT_EVENT),
             ND_INVALID_PARAMETER_6);
    EXPECT_EMPTY(a->initiator_cq);
    SYNC(s.f, &s.p->a, &s.p->b); /* unharmed */
    fx_end(s.f);
}

static void inline_left_over_on_a_read_is_ignored(void) {
    struct stage s = open_stage(NULL);
    fx_fill(s.b->bytes, REGION_BYTES, 2, 1, 0);
    READ(&s.p->a, CTX(1), s.a, 0, REGION_BYTES, s.b, 0, ND_OP_FLAG_INLINE);
    EXPECT_OK(s.f, &s.p->a, Read, CTX(1), REGION_BYTES);
    CHECK_DATA(s.a->bytes, REGION_BYTES, 2, 1, 0);
    fx_end(s.f);
}

static void silent_success_leaves_no_result(void) {
    struct stage s = open_stage(NULL);
    for (int i = 0; i < 3; i++)
        RECEIVE(&s.p->b, CTX(i), s.b, 0, 100);
    SEND(&s.p->a, CTX(1), s.a, 0, 8, ND_OP_FLAG_SILENT_SUCCESS);
    WRITE(&s.p->a, CTX(2), s.a, 0, 8, s.b, 0, ND_OP_FLAG_SILENT_SUCCESS);
    READ(&s.p->a, CTX(3), s.a, 0, 8, s.b, 0, ND_OP_FLAG_SILENT_SUCCESS);
    SEND(&s.p->a, CTX(4), s.a, 0, 8, 0);
    EXPECT_OK(s.f, &s.p->a, Send, CTX(4), 8);
    EXPECT_EMPTY(s.p->a.initiator_cq);
    EXPECT_OK(s.f, &s.p->b, Receive, CTX(0), 8);
    EXPECT_OK(s.f, &s.p->b, Receive, CTX(1), 8);
    fx_end(s.f);
}

static void silent_failure_leaves_a_result(void) {
    struct stage s = open_stage(NULL);
    ND2_SGE bad = fx_sge(s.a, 0, REGION_BYTES + 1);
    CHECK_HR(CALL(s.p->a.qp, Send, CTX(1), &bad, 1, ND_OP_FLAG_SILENT_SUCCESS), ND_SUCCESS);
    EXPECT_ERROR(s.f, &s.p->a, Send, ND_ACCESS_VIOLATION, CTX(1));
    SEND(&s.p->a, CTX(2), s.a, 0, 8, ND_OP_FLAG_SILENT_SUCCESS);
    EXPECT_ERROR(s.f, &s.p->a, Send, ND_CANCELED, CTX(2));
    fx_end(s.f);
}

static void silent_requests_give_their_slots_back(void) {
    struct fx_pair_options o = { .depth = 4 };
    struct stage s = open_stage(&o);
    int posted = 0;
    uint64_t deadline = fx_deadline();
    while (posted < HOST_ROUNDS(2000)) {
        HRESULT hr = fx_write(&s.p->a, NULL, s.a, 0, 8, s.b, 0, ND_OP_FLAG_SILENT_SUCCESS);
        if (hr == ND_SUCCESS) {
            posted++;
            continue;
        }
        CHECK_HR(hr, ND_NO_MORE_ENTRIES);
        CHECK(host_now_ms() < deadline);
        EXPECT_EMPTY(s.p->a.initiator_cq); /* asking for results makes progress */
        Sleep(0);
    }
    fx_end(s.f);
}

/* ---- limits of one request ---- */

static void more_bytes_than_the_adapter_takes_are_a_buffer_overflow(void) {
    struct stage s = open_stage(NULL);
    ND2_SGE sge[2] = { fx_sge(s.a, 0, 8), fx_sge(s.a, 0, 8) };
    sge[0].BufferLength = s.f->info.MaxTransferLength;
    sge[1].BufferLength = 1;
    UINT64 at = fx_remote(s.b, 0);
    IND2QueuePair *qp = s.p->a.qp;
    CHECK_HR(CALL(qp, Send, NULL, sge, 2, 0), ND_BUFFER_OVERFLOW);
    CHECK_HR(CALL(qp, Receive, NULL, sge, 2), ND_BUFFER_OVERFLOW);
    CHECK_HR(CALL(qp, Write, NULL, sge, 2, at, s.b->remote, 0), ND_BUFFER_OVERFLOW);
    CHECK_HR(CALL(qp, Read, NULL, sge, 2, at, s.b->remote, 0), ND_BUFFER_OVERFLOW);
    sge[1].BufferLength = 0xFFFFFFFF; /* the sum wraps around in 32 bits */
    CHECK_HR(CALL(qp, Send, NULL, sge, 2, 0), ND_BUFFER_OVERFLOW);
    CHECK_HR(CALL(qp, Receive, NULL, sge, 2), ND_BUFFER_OVERFLOW);
    SYNC(s.f, &s.p->a, &s.p->b);
    fx_end(s.f);
}

static void more_sges_than_the_adapter_takes_are_a_data_overrun(void) {
    struct stage s = open_stage(NULL);
    const ND2_ADAPTER_INFO *i = &s.f->info;
    ULONG most = i->MaxInitiatorSge > i->MaxReceiveSge ? i->MaxInitiatorSge : i->MaxReceiveSge;
    ND2_SGE *sge = fx_alloc(s.f, (most + 1) * sizeof *sge);
    for (ULONG n = 0; n <= most; n++)
        sge[n] = fx_sge(s.a, n, 1);
    UINT64 at = fx_remote(s.b, 0);
    IND2QueuePair *qp = s.p->a.qp;
    CHECK_HR(CALL(qp, Send, NULL, sge, i->MaxInitiatorSge + 1, 0), ND_DATA_OVERRUN);
    CHECK_HR(CALL(qp, Receive, NULL, sge, i->MaxReceiveSge + 1), ND_DATA_OVERRUN);
    CHECK_HR(CALL(qp, Write, NULL, sge, i->MaxInitiatorSge + 1, at, s.b->remote, 0),
             ND_DATA_OVERRUN);
    CHECK_HR(CALL(qp, Read, NULL, sge, i->MaxReadSge + 1, at, s.b->remote, 0), ND_DATA_OVERRUN);
    CHECK_HR(CALL(qp, Send, NULL, sge, 0xFFFFFFFF, 0), ND_DATA_OVERRUN);
    SYNC(s.f, &s.p->a, &s.p->b);
    fx_end(s.f);
}

/* A tool made for hardware that rounds up sends two SGEs on a queue pair made for one. */
static void two_sges_on_a_queue_pair_made_for_one_work(void) {
    struct fx_pair_options o = { .sge = 1 };
    struct stage s = open_stage(&o);
    ND2_SGE sge[2] = { fx_sge(s.a, 0, 30), fx_sge(s.a, 100, 20) };
    fx_fill(s.a->bytes, 30, 3, 1, 0);
    fx_fill(s.a->bytes + 100, 20, 3, 1, 30);
    RECEIVE(&s.p->b, CTX(1), s.b, 0, 50);
    CHECK_HR(CALL(s.p->a.qp, Send, CTX(1), sge, 2, 0), ND_SUCCESS);
    EXPECT_OK(s.f, &s.p->a, Send, CTX(1), 50);
    EXPECT_OK(s.f, &s.p->b, Receive, CTX(1), 50);
    CHECK_DATA(s.b->bytes, 50, 3, 1, 0);
    fx_end(s.f);
}

/* A provider may round up, but nobody is promised more than was asked for plus a little. */
static void many_more_sges_than_asked_for_are_a_data_overrun(void) {
    struct fx_pair_options o = { .sge = 1 };
    struct stage s = open_stage(&o);
    ULONG most = s.f->info.MaxInitiatorSge;
    ND2_SGE *sge = fx_alloc(s.f, most * sizeof *sge);
    for (ULONG n = 0; n < most; n++)
        sge[n] = fx_sge(s.a, n, 1);
    CHECK_HR(CALL(s.p->a.qp, Send, NULL, sge, most, 0), ND_DATA_OVERRUN);
    CHECK_HR(CALL(s.p->a.qp, Receive, NULL, sge, s.f->info.MaxReceiveSge), ND_DATA_OVERRUN);
    fx_end(s.f);
}

static void inline_above_the_queue_pairs_size_is_a_buffer_overflow(void) {
    struct fx_pair_options o = { .inline_bytes = 64 };
    struct stage s = open_stage(&o);
    RECEIVE(&s.p->b, CTX(1), s.b, 0, 64);
    CHECK_HR(fx_send(&s.p->a, NULL, s.a, 0, 65, ND_OP_FLAG_INLINE), ND_BUFFER_OVERFLOW);
    CHECK_HR(fx_write(&s.p->a, NULL, s.a, 0, 65, s.b, 0, ND_OP_FLAG_INLINE), ND_BUFFER_OVERFLOW);
    SEND(&s.p->a, CTX(1), s.a, 0, 64, ND_OP_FLAG_INLINE);
    EXPECT_OK(s.f, &s.p->a, Send, CTX(1), 64);
    EXPECT_OK(s.f, &s.p->b, Receive, CTX(1), 64);
    fx_end(s.f);
}

static void null_sge_array_with_a_count_is_refused(void) {
    struct stage s = open_stage(NULL);
    CHECK_FAILED(CALL(s.p->a.qp, Send, NULL, NULL, 1, 0));
    CHECK_FAILED(CALL(s.p->a.qp, Receive, NULL, NULL, 1));
    CHECK_FAILED(CALL(s.p->a.qp, Write, NULL, NULL, 1, fx_remote(s.b, 0), s.b->remote, 0));
    CHECK_FAILED(CALL(s.p->a.qp, Read, NULL, NULL, 1, fx_remote(s.b, 0), s.b->remote, 0));
    EXPECT_EMPTY(s.p->a.initiator_cq);
    SYNC(s.f, &s.p->a, &s.p->b);
    fx_end(s.f);
}

static void read_with_outbound_limit_0_is_an_invalid_request(void) {
    struct fx_pair_options o = { .no_reads = true };
    struct stage s = open_stage(&o);
    CHECK_HR(fx_read(&s.p->a, NULL, s.a, 0, 8, s.b, 0, 0), ND_INVALID_DEVICE_REQUEST);
    SYNC(s.f, &s.p->a, &s.p->b);
    fx_end(s.f);
}

/* ---- depths ---- */

static void receive_queue_takes_its_depth_and_no_more(void) {
    struct fx_pair_options o = { .depth = 5 };
    struct stage s = open_stage(&o);
    for (int i = 0; i < 5; i++)
        RECEIVE(&s.p->b, CTX(i), NULL, 0, 0);
    CHECK_HR(fx_receive(&s.p->b, NULL, NULL, 0, 0), ND_NO_MORE_ENTRIES);
    SEND(&s.p->a, CTX(0), NULL, 0, 0, 0);
    EXPECT_OK(s.f, &s.p->b, Receive, CTX(0), 0);
    RECEIVE(&s.p->b, CTX(5), NULL, 0, 0);
    CHECK_HR(fx_receive(&s.p->b, NULL, NULL, 0, 0), ND_NO_MORE_ENTRIES);
    fx_end(s.f);
}

static void initiator_queue_takes_its_depth_and_no_more(void) {
    struct fx_pair_options o = { .depth = 5 };
    struct stage s = open_stage(&o);
    /* Nobody receives them, so they stay. */
    for (int i = 0; i < 5; i++)
        SEND(&s.p->a, CTX(i), s.a, 0, 8, 0);
    CHECK_HR(fx_send(&s.p->a, NULL, s.a, 0, 8, 0), ND_NO_MORE_ENTRIES);
    CHECK_HR(fx_write(&s.p->a, NULL, s.a, 0, 8, s.b, 0, 0), ND_NO_MORE_ENTRIES);
    CHECK_HR(fx_read(&s.p->a, NULL, s.a, 0, 8, s.b, 0, 0), ND_NO_MORE_ENTRIES);
    for (int i = 0; i < 5; i++)
        RECEIVE(&s.p->b, CTX(i), s.b, 0, 8);
    for (int i = 0; i < 5; i++)
        EXPECT_OK(s.f, &s.p->a, Send, CTX(i), 8);
    RECEIVE(&s.p->b, CTX(6), s.b, 0, 8);
    for (int i = 0; i < 5; i++)
        EXPECT_OK(s.f, &s.p->b, Receive, CTX(i), 8);
    SEND(&s.p->a, CTX(6), s.a, 0, 8, 0);
    EXPECT_OK(s.f, &s.p->a, Send, CTX(6), 8);
    fx_end(s.f);
}

static void queues_of_depth_zero_take_nothing(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR_CREATE(f, NULL);
    void *qp = NULL;
    fx_release(f, p->a.qp);
    CHECK_HR(CALL(f->host[0].adapter, CreateQueuePair, &IID_IND2QueuePair, UNKNOWN(p->a.receive_cq),
                  UNKNOWN(p->a.initiator_cq), p->a.context, 0, 0, 0, 0, 0, &qp),
             ND_SUCCESS);
    p->a.qp = qp;
    fx_track(f, qp);
    CHECK_HR(fx_receive(&p->a, NULL, NULL, 0, 0), ND_NO_MORE_ENTRIES);
    fx_handshake(f, p, NULL);
    CHECK_HR(fx_send(&p->a, NULL, NULL, 0, 0, 0), ND_NO_MORE_ENTRIES);
    CHECK_HR(CALL(p->a.qp, Flush), ND_SUCCESS);
    fx_end(f);
}

static void depth_of_the_maximum_works(void) {
    struct fx *f = fx_begin();
    ULONG depth = f->info.MaxReceiveQueueDepth;
    struct fx_pair_options o = { .depth = depth, .sge = 1 };
    struct fx_pair *p = PAIR(f, &o);
    struct fx_memory *from = fx_memory(f, 0, 8, 0);
    struct fx_memory *to = fx_memory(f, 1, 8 * depth, ND_MR_FLAG_ALLOW_LOCAL_WRITE);
    for (ULONG i = 0; i < depth; i++)
        RECEIVE(&p->b, CTX(i), to, 8 * i, 8);
    CHECK_HR(fx_receive(&p->b, NULL, NULL, 0, 0), ND_NO_MORE_ENTRIES);
    for (ULONG i = 0; i < depth; i++)
        SEND(&p->a, CTX(i), from, 0, 8, 0);
    for (ULONG i = 0; i < depth; i++)
        EXPECT_OK(f, &p->a, Send, CTX(i), 8);
    for (ULONG i = 0; i < depth; i++)
        EXPECT_OK(f, &p->b, Receive, CTX(i), 8);
    fx_end(f);
}

/* ---- Flush ---- */

static void flush_of_an_unconnected_queue_pair_cancels_receives(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR_CREATE(f, NULL);
    RECEIVE(&p->a, CTX(1), NULL, 0, 0);
    RECEIVE(&p->a, CTX(2), NULL, 0, 0);
    CHECK_HR(CALL(p->a.qp, Flush), ND_SUCCESS);
    EXPECT_ERROR(f, &p->a, Receive, ND_CANCELED, CTX(1));
    EXPECT_ERROR(f, &p->a, Receive, ND_CANCELED, CTX(2));
    CHECK_HR(CALL(p->a.qp, Flush), ND_SUCCESS); /* nothing to do */
    EXPECT_EMPTY(p->a.receive_cq);
    /* It can still connect. */
    RECEIVE(&p->b, CTX(3), NULL, 0, 0);
    fx_handshake(f, p, NULL);
    SEND(&p->a, CTX(3), NULL, 0, 0, 0);
    EXPECT_OK(f, &p->b, Receive, CTX(3), 0);
    fx_end(f);
}

static void flush_of_a_connected_queue_pair_cancels_both_queues_in_order(void) {
    struct stage s = open_stage(NULL);
    for (int i = 0; i < 5; i++)
        RECEIVE(&s.p->a, CTX(i), s.a, 0, 8);
    for (int i = 0; i < 5; i++) /* one Receive for them all */
        SEND(&s.p->a, CTX(100 + i), NULL, 0, 0, ND_OP_FLAG_SILENT_SUCCESS);
    RECEIVE(&s.p->b, CTX(50), NULL, 0, 0);
    CHECK_HR(CALL(s.p->a.qp, Flush), ND_SUCCESS);
    for (int i = 0; i < 5; i++)
        EXPECT_ERROR(s.f, &s.p->a, Receive, ND_CANCELED, CTX(i));
    ND2_RESULT r;
    int next = 0;
    while (next < 5) {
        NEXT(s.f, s.p->a.initiator_cq, &r);
        /* The first may have reached the peer's one Receive before the flush; then it is silent. */
        if (next == 0 && r.RequestContext == CTX(101)) next = 1;
        CHECK_PTR(r.RequestContext, CTX(100 + next));
        CHECK_HR(r.Status, ND_CANCELED);
        CHECK_EQ(r.RequestType, Nd2RequestTypeSend);
        next++;
    }
    /* In error from now on; the peer sees the end. */
    SEND(&s.p->a, CTX(9), s.a, 0, 8, 0);
    EXPECT_ERROR(s.f, &s.p->a, Send, ND_CANCELED, CTX(9));
    NEXT(s.f, s.p->b.receive_cq, &r);
    CHECK_PTR(r.RequestContext, CTX(50));
    CHECK_HR(RUN(s.f, s.p->b.connector, NotifyDisconnect, fx_run_ov), ND_SUCCESS);
    fx_disconnect(s.f, &s.p->a);
    fx_end(s.f);
}

static void flush_touches_no_other_queue_pair_of_the_queues(void) {
    struct fx *f = fx_begin();
    IND2CompletionQueue *cq = fx_cq(f, 0, 16);
    IND2QueuePair *one = fx_qp(f, 0, cq, cq, CTX(1), 4, 1, 0);
    IND2QueuePair *two = fx_qp(f, 0, cq, cq, CTX(2), 4, 1, 0);
    for (int i = 0; i < 4; i++) {
        CHECK_HR(CALL(one, Receive, CTX(i), NULL, 0), ND_SUCCESS);
        CHECK_HR(CALL(two, Receive, CTX(i), NULL, 0), ND_SUCCESS);
    }
    CHECK_HR(CALL(two, Flush), ND_SUCCESS);
    for (int i = 0; i < 4; i++) {
        ND2_RESULT r;
        NEXT(f, cq, &r);
        CHECK_PTR(r.QueuePairContext, CTX(2));
        CHECK_PTR(r.RequestContext, CTX(i));
        CHECK_HR(r.Status, ND_CANCELED);
    }
    EXPECT_EMPTY(cq);
    fx_end(f);
}

static void flush_after_the_peer_left_is_harmless(void) {
    struct stage s = open_stage(NULL);
    RECEIVE(&s.p->a, CTX(1), NULL, 0, 0);
    fx_disconnect(s.f, &s.p->b);
    EXPECT_ERROR(s.f, &s.p->a, Receive, ND_CANCELED, CTX(1));
    CHECK_HR(CALL(s.p->a.qp, Flush), ND_SUCCESS);
    CHECK_HR(CALL(s.p->b.qp, Flush), ND_SUCCESS);
    EXPECT_EMPTY(s.p->a.receive_cq);
    fx_end(s.f);
}

static void every_request_gets_exactly_one_result_when_the_end_comes(void) {
    for (int how = 0; how < 5; how++) {
        struct fx_pair_options o = { .depth = 64 };
        struct stage s = open_stage(&o);
        enum { EACH = 30 };
        struct fx_side *a = &s.p->a;
        int next_r = 0, next_i = 0;
        for (int i = 0; i < EACH; i++)
            RECEIVE(a, CTX(i), s.a, 0, 8);
        for (int i = 0; i < EACH; i++) {
            if (i % 3 == 0) SEND(a, CTX(i), s.a, 0, 8, 0);
            if (i % 3 == 1) WRITE(a, CTX(i), s.a, 0, 2048, s.b, 0, 0);
            if (i % 3 == 2) READ(a, CTX(i), s.a, 0, 2048, s.b, 0, 0);
        }
        if (how == 0) CHECK_HR(CALL(a->qp, Flush), ND_SUCCESS);
        if (how == 1) fx_disconnect(s.f, a);
        if (how == 2) fx_disconnect(s.f, &s.p->b);
        if (how == 3) fx_release(s.f, a->connector);
        if (how == 4) fx_release(s.f, a->qp);
        while (next_r < EACH || next_i < EACH) {
            static const ND2_REQUEST_TYPE types[] = { Nd2RequestTypeSend, Nd2RequestTypeWrite,
                                                      Nd2RequestTypeRead };
            ND2_RESULT r;
            NEXT(s.f, next_r < EACH ? a->receive_cq : a->initiator_cq, &r);
            if (next_r < EACH) {
                CHECK_EQ(r.RequestType, Nd2RequestTypeReceive);
                CHECK_PTR(r.RequestContext, CTX(next_r++));
                CHECK_HR(r.Status, ND_CANCELED);
            } else {
                CHECK_EQ(r.RequestType, types[next_i % 3]);
                CHECK_PTR(r.RequestContext, CTX(next_i++));
                CHECK(r.Status == ND_SUCCESS || r.Status == ND_CANCELED);
            }
        }
        EXPECT_EMPTY(a->receive_cq);
        EXPECT_EMPTY(a->initiator_cq);
        fx_end(s.f);
    }
}

CONFORM_MAIN(TEST(posts_before_connecting_are_invalid_but_receive),
             TEST(posts_while_connecting_are_invalid_but_receive),
             TEST(receives_posted_before_connecting_are_used_in_order),
             TEST(posts_after_local_disconnect_are_invalid_but_receive),
             TEST(posts_after_peer_disconnect_are_flushed), TEST(posts_after_an_error_are_flushed),
             TEST(flags_that_a_request_does_not_know_are_refused),
             TEST(inline_left_over_on_a_read_is_ignored), TEST(silent_success_leaves_no_result),
             TEST(silent_failure_leaves_a_result), TEST(silent_requests_give_their_slots_back),
             TEST(more_bytes_than_the_adapter_takes_are_a_buffer_overflow),
             TEST(more_sges_than_the_adapter_takes_are_a_data_overrun),
             TEST(two_sges_on_a_queue_pair_made_for_one_work),
             TEST(many_more_sges_than_asked_for_are_a_data_overrun),
             TEST(inline_above_the_queue_pairs_size_is_a_buffer_overflow),
             TEST(null_sge_array_with_a_count_is_refused),
             TEST(read_with_outbound_limit_0_is_an_invalid_request),
             TEST(receive_queue_takes_its_depth_and_no_more),
             TEST(initiator_queue_takes_its_depth_and_no_more),
             TEST(queues_of_depth_zero_take_nothing), TEST(depth_of_the_maximum_works),
             TEST(flush_of_an_unconnected_queue_pair_cancels_receives),
             TEST(flush_of_a_connected_queue_pair_cancels_both_queues_in_order),
             TEST(flush_touches_no_other_queue_pair_of_the_queues),
             TEST(flush_after_the_peer_left_is_harmless),
             TEST(every_request_gets_exactly_one_result_when_the_end_comes))
