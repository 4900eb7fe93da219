/* SPDX-License-Identifier: MIT
 * conform_window.c - IND2MemoryWindow with IND2QueuePair::Bind and Invalidate: rights, bounds to
 * the byte, tokens, and what happens to a peer that uses a window it may not use.
 */
#include "fixture.h"

#define READ_WRITE (ND_OP_FLAG_ALLOW_READ | ND_OP_FLAG_ALLOW_WRITE)

/* Side b opens a window to side a, which has a buffer of its own. */
struct stage {
    struct fx *f;
    struct fx_pair *p;
    struct fx_memory *mine;   /* side a: local write */
    struct fx_memory *theirs; /* side b: what the window shows */
    IND2MemoryWindow *window;
    UINT32 token;
};

static const size_t REGION_BYTES = 8192;

static struct stage open_stage(ULONG mr_flags) {
    struct stage s = { .f = fx_begin() };
    s.p = PAIR(s.f, NULL);
    s.mine = fx_memory(s.f, 0, REGION_BYTES, ND_MR_FLAG_ALLOW_LOCAL_WRITE);
    s.theirs = fx_memory(s.f, 1, REGION_BYTES, mr_flags);
    s.window = fx_window(s.f, 1);
    return s;
}

static void open_window(struct stage *s, size_t offset, size_t len, ULONG flags) {
    BIND(&s->p->b, CTX(0xB1), s->theirs, s->window, offset, len, flags);
    s->token = CALL(s->window, GetRemoteToken); /* valid before the result is there */
    EXPECT_OK(s->f, &s->p->b, Bind, CTX(0xB1), 0);
    CHECK_EQ(CALL(s->window, GetRemoteToken), s->token);
}

static void invalidate(struct stage *s) {
    CHECK_HR(CALL(s->p->b.qp, Invalidate, CTX(0x11), UNKNOWN(s->window), 0), ND_SUCCESS);
    EXPECT_OK(s->f, &s->p->b, Invalidate, CTX(0x11), 0);
}

/* Writes or reads [offset, offset + len) of their memory through the window, from or to the start
 * of ours. */
static void post(struct stage *s, bool write, size_t offset, size_t len, UINT32 token) {
    ND2_SGE sge = fx_sge(s->mine, 0, len);
    UINT64 at = fx_remote(s->theirs, offset);
    if (write)
        CHECK_HR(CALL(s->p->a.qp, Write, CTX(0xA), &sge, len ? 1 : 0, at, token, 0), ND_SUCCESS);
    else
        CHECK_HR(CALL(s->p->a.qp, Read, CTX(0xA), &sge, len ? 1 : 0, at, token, 0), ND_SUCCESS);
}

static void check_allowed(struct stage *s, bool write, size_t offset, size_t len) {
    if (write)
        fx_fill(s->mine->bytes, REGION_BYTES, offset, len, 0);
    else
        fx_fill(s->theirs->bytes, REGION_BYTES, offset, len, 0);
    post(s, write, offset, len, s->token);
    if (write) {
        EXPECT_OK(s->f, &s->p->a, Write, CTX(0xA), len);
        SYNC(s->f, &s->p->a, &s->p->b);
        CHECK_DATA(s->theirs->bytes + offset, len, offset, len, 0);
    } else {
        EXPECT_OK(s->f, &s->p->a, Read, CTX(0xA), len);
        CHECK_DATA(s->mine->bytes, len, offset, len, offset);
    }
}

/* The access fails at the initiator, ends the connection, and touches nothing. */
static void check_refused(struct stage *s, bool write, size_t offset, size_t len, UINT32 token) {
    memset(s->mine->bytes, 0x66, REGION_BYTES);
    memset(s->theirs->bytes, 0x99, REGION_BYTES);
    RECEIVE(&s->p->b, CTX(0xF1), NULL, 0, 0);
    post(s, write, offset, len, token);
    if (write)
        EXPECT_ERROR(s->f, &s->p->a, Write, ND_ACCESS_VIOLATION, CTX(0xA));
    else
        EXPECT_ERROR(s->f, &s->p->a, Read, ND_ACCESS_VIOLATION, CTX(0xA));
    EXPECT_ERROR(s->f, &s->p->b, Receive, ND_CANCELED, CTX(0xF1));
    for (size_t i = 0; i < REGION_BYTES; i++) {
        CHECK_EQ(s->theirs->bytes[i], 0x99);
        CHECK_EQ(s->mine->bytes[i], 0x66);
    }
}

/* ---- rights ---- */

static void window_rights_do_not_depend_on_the_regions_remote_flags(void) {
    static const struct {
        ULONG region, window;
    } pairs[] = {
        { ND_MR_FLAG_ALLOW_REMOTE_WRITE, ND_OP_FLAG_ALLOW_WRITE },
        { ND_MR_FLAG_ALLOW_LOCAL_WRITE | ND_MR_FLAG_ALLOW_REMOTE_READ, ND_OP_FLAG_ALLOW_READ },
        { ND_MR_FLAG_ALLOW_LOCAL_WRITE | ND_MR_FLAG_RDMA_READ_SINK, READ_WRITE },
        { FX_MR_ALL, READ_WRITE },
        { ND_MR_FLAG_ALLOW_LOCAL_WRITE, ND_OP_FLAG_ALLOW_READ },
        { ND_MR_FLAG_ALLOW_LOCAL_WRITE, READ_WRITE },
        { 0, ND_OP_FLAG_ALLOW_READ },
    };
    for (size_t i = 0; i < COUNT_OF(pairs); i++) {
        struct stage s = open_stage(pairs[i].region);
        open_window(&s, 0, REGION_BYTES, pairs[i].window);
        if (pairs[i].window & ND_OP_FLAG_ALLOW_WRITE) check_allowed(&s, true, 0, REGION_BYTES);
        if (pairs[i].window & ND_OP_FLAG_ALLOW_READ) check_allowed(&s, false, 0, REGION_BYTES);
        fx_end(s.f);
    }
}

static void write_through_a_read_window_is_refused(void) {
    struct stage s = open_stage(FX_MR_ALL);
    open_window(&s, 0, REGION_BYTES, ND_OP_FLAG_ALLOW_READ);
    check_refused(&s, true, 0, 64, s.token);
    fx_end(s.f);
}

static void read_through_a_write_window_is_refused(void) {
    struct stage s = open_stage(FX_MR_ALL);
    open_window(&s, 0, REGION_BYTES, ND_OP_FLAG_ALLOW_WRITE);
    check_refused(&s, false, 0, 64, s.token);
    fx_end(s.f);
}

static void window_without_rights_refuses_reads_and_writes(void) {
    for (int write = 0; write < 2; write++) {
        struct stage s = open_stage(FX_MR_ALL);
        open_window(&s, 0, REGION_BYTES, 0);
        check_refused(&s, write, 0, 1, s.token);
        fx_end(s.f);
    }
}

static void bind_of_write_without_local_write_is_an_access_violation(void) {
    struct stage s = open_stage(ND_MR_FLAG_ALLOW_REMOTE_READ);
    CHECK_HR(fx_bind(&s.p->b, NULL, s.theirs, s.window, 0, REGION_BYTES, ND_OP_FLAG_ALLOW_WRITE),
             ND_ACCESS_VIOLATION);
    open_window(&s, 0, REGION_BYTES, ND_OP_FLAG_ALLOW_READ); /* unharmed */
    fx_end(s.f);
}

/* ---- bounds ---- */

static const size_t FROM = 1001, LEN = 3003; /* neither at a page nor at a word */

static void access_inside_a_window_is_allowed_to_the_byte(void) {
    struct stage s = open_stage(FX_MR_ALL);
    open_window(&s, FROM, LEN, READ_WRITE);
    for (int write = 0; write < 2; write++) {
        check_allowed(&s, write, FROM, LEN);
        check_allowed(&s, write, FROM, 1);
        check_allowed(&s, write, FROM + LEN - 1, 1);
        check_allowed(&s, write, FROM + 1, LEN - 1);
        check_allowed(&s, write, FROM, 0);
        check_allowed(&s, write, FROM + LEN, 0);
    }
    fx_end(s.f);
}

static void access_outside_a_window_is_refused_to_the_byte(void) {
    static const struct {
        size_t from, len;
    } outside[] = {
        { 1001 - 1, 1 },    /* the byte before */
        { 1001 + 3003, 1 }, /* the byte behind */
        { 1001, 3004 },     /* one too many */
        { 1000, 3004 },     /* one too early */
        { 0, 8192 },        /* around it */
        { 1001 + 3002, 2 }, /* across the end */
        { 5000, 100 },      /* elsewhere in the region */
    };
    for (int write = 0; write < 2; write++)
        for (size_t i = 0; i < COUNT_OF(outside); i++) {
            struct stage s = open_stage(FX_MR_ALL);
            open_window(&s, FROM, LEN, READ_WRITE);
            check_refused(&s, write, outside[i].from, outside[i].len, s.token);
            fx_end(s.f);
        }
}

static void access_that_wraps_around_is_refused(void) {
    for (int write = 0; write < 2; write++) {
        struct stage s = open_stage(FX_MR_ALL);
        open_window(&s, 0, REGION_BYTES, READ_WRITE);
        ND2_SGE sge = fx_sge(s.mine, 0, 64);
        RECEIVE(&s.p->b, CTX(0xF1), NULL, 0, 0);
        UINT64 at = ~(UINT64)0 - 15;
        if (write)
            CHECK_HR(CALL(s.p->a.qp, Write, CTX(1), &sge, 1, at, s.token, 0), ND_SUCCESS);
        else
            CHECK_HR(CALL(s.p->a.qp, Read, CTX(1), &sge, 1, at, s.token, 0), ND_SUCCESS);
        ND2_RESULT r;
        NEXT(s.f, s.p->a.initiator_cq, &r);
        CHECK_HR(r.Status, ND_ACCESS_VIOLATION);
        EXPECT_ERROR(s.f, &s.p->b, Receive, ND_CANCELED, CTX(0xF1));
        fx_end(s.f);
    }
}

static void bind_outside_the_region_is_an_access_violation(void) {
    struct stage s = open_stage(FX_MR_ALL);
    struct fx_side *b = &s.p->b;
    CHECK_HR(fx_bind(b, NULL, s.theirs, s.window, 0, REGION_BYTES + 1, READ_WRITE),
             ND_ACCESS_VIOLATION);
    CHECK_HR(fx_bind(b, NULL, s.theirs, s.window, REGION_BYTES, 1, READ_WRITE),
             ND_ACCESS_VIOLATION);
    CHECK_HR(fx_bind(b, NULL, s.theirs, s.window, 1, REGION_BYTES, READ_WRITE),
             ND_ACCESS_VIOLATION);
    CHECK_HR(fx_bind(b, NULL, s.theirs, s.window, 0, (size_t)-1, READ_WRITE), ND_ACCESS_VIOLATION);
    CHECK_HR(CALL(b->qp, Bind, NULL, UNKNOWN(s.theirs->region), UNKNOWN(s.window),
                  s.theirs->bytes - 1, 2, READ_WRITE),
             ND_ACCESS_VIOLATION);
    open_window(&s, REGION_BYTES - 1, 1, READ_WRITE);
    check_allowed(&s, true, REGION_BYTES - 1, 1);
    fx_end(s.f);
}

static void bind_over_an_unregistered_region_is_an_access_violation(void) {
    struct stage s = open_stage(FX_MR_ALL);
    fx_deregister(s.f, s.theirs);
    CHECK_HR(fx_bind(&s.p->b, NULL, s.theirs, s.window, 0, REGION_BYTES, READ_WRITE),
             ND_ACCESS_VIOLATION);
    fx_end(s.f);
}

/* ---- states and parameters ---- */

static void bind_and_invalidate_need_a_connection(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR_CREATE(f, NULL);
    struct fx_memory *m = fx_memory(f, 0, REGION_BYTES, FX_MR_ALL);
    IND2MemoryWindow *w = fx_window(f, 0);
    CHECK_HR(fx_bind(&p->a, NULL, m, w, 0, REGION_BYTES, READ_WRITE), ND_CONNECTION_INVALID);
    CHECK_HR(CALL(p->a.qp, Invalidate, NULL, UNKNOWN(w), 0), ND_CONNECTION_INVALID);
    EXPECT_EMPTY(p->a.initiator_cq);
    fx_end(f);
}

static void bind_of_a_bound_window_is_an_invalid_request(void) {
    struct stage s = open_stage(FX_MR_ALL);
    open_window(&s, 0, 100, READ_WRITE);
    CHECK_HR(fx_bind(&s.p->b, NULL, s.theirs, s.window, 100, 100, READ_WRITE),
             ND_INVALID_DEVICE_REQUEST);
    check_allowed(&s, true, 0, 100);
    fx_end(s.f);
}

static void bind_with_wrong_objects_names_the_parameter(void) {
    struct stage s = open_stage(FX_MR_ALL);
    struct fx_memory *foreign = fx_memory(s.f, 0, REGION_BYTES, FX_MR_ALL);
    IND2MemoryWindow *foreign_window = fx_window(s.f, 0);
    IND2QueuePair *qp = s.p->b.qp;
    IUnknown *region = UNKNOWN(s.theirs->region), *window = UNKNOWN(s.window);
    const uint8_t *at = s.theirs->bytes;
    CHECK_HR(CALL(qp, Bind, NULL, NULL, window, at, 8, READ_WRITE), ND_INVALID_PARAMETER_2);
    CHECK_HR(CALL(qp, Bind, NULL, window, window, at, 8, READ_WRITE), ND_INVALID_PARAMETER_2);
    CHECK_HR(CALL(qp, Bind, NULL, UNKNOWN(foreign->region), window, foreign->bytes, 8, READ_WRITE),
             ND_INVALID_PARAMETER_2);
    CHECK_HR(CALL(qp, Bind, NULL, region, NULL, at, 8, READ_WRITE), ND_INVALID_PARAMETER_3);
    CHECK_HR(CALL(qp, Bind, NULL, region, region, at, 8, READ_WRITE), ND_INVALID_PARAMETER_3);
    CHECK_HR(CALL(qp, Bind, NULL, region, UNKNOWN(foreign_window), at, 8, READ_WRITE),
             ND_INVALID_PARAMETER_3);
    CHECK_HR(CALL(qp, Bind, NULL, region, window, at, 8, 0x80), ND_INVALID_PARAMETER_6);
    CHECK_HR(CALL(qp, Bind, NULL, region, window, at, 8, ND_OP_FLAG_SEND_AND_SOLICIT_EVENT),
             ND_INVALID_PARAMETER_6);
    CHECK_HR(CALL(qp, Invalidate, NULL, NULL, 0), ND_INVALID_PARAMETER_2);
    CHECK_HR(CALL(qp, Invalidate, NULL, region, 0), ND_INVALID_PARAMETER_2);
    CHECK_HR(CALL(qp, Invalidate, NULL, UNKNOWN(foreign_window), 0), ND_INVALID_PARAMETER_2);
    CHECK_HR(CALL(qp, Invalidate, NULL, window, ND_OP_FLAG_ALLOW_READ), ND_INVALID_PARAMETER_3);
    EXPECT_EMPTY(s.p->b.initiator_cq);
    fx_end(s.f);
}

static void invalidate_of_an_unbound_window_completes_with_an_invalid_request(void) {
    struct stage s = open_stage(FX_MR_ALL);
    CHECK_HR(CALL(s.p->b.qp, Invalidate, CTX(5), UNKNOWN(s.window), 0), ND_SUCCESS);
    EXPECT_ERROR(s.f, &s.p->b, Invalidate, ND_INVALID_DEVICE_REQUEST, CTX(5));
    fx_end(s.f);
}

static void bind_and_invalidate_fill_the_initiator_queue(void) {
    struct fx *f = fx_begin();
    struct fx_pair_options o = { .depth = 2 };
    struct fx_pair *p = PAIR(f, &o);
    struct fx_memory *from = fx_memory(f, 1, REGION_BYTES, FX_MR_ALL);
    struct fx_memory *to = fx_memory(f, 0, REGION_BYTES, FX_MR_ALL);
    IND2MemoryWindow *w = fx_window(f, 0);
    /* Two Sends that find no Receive keep both slots. */
    SEND(&p->a, CTX(1), to, 0, 8, 0);
    SEND(&p->a, CTX(2), to, 0, 8, 0);
    CHECK_HR(fx_bind(&p->a, CTX(3), to, w, 0, 8, 0), ND_NO_MORE_ENTRIES);
    CHECK_HR(CALL(p->a.qp, Invalidate, CTX(3), UNKNOWN(w), 0), ND_NO_MORE_ENTRIES);
    RECEIVE(&p->b, CTX(1), from, 0, 8);
    RECEIVE(&p->b, CTX(2), from, 0, 8);
    EXPECT_OK(f, &p->a, Send, CTX(1), 8);
    EXPECT_OK(f, &p->a, Send, CTX(2), 8);
    BIND(&p->a, CTX(3), to, w, 0, 8, 0);
    EXPECT_OK(f, &p->a, Bind, CTX(3), 0);
    fx_end(f);
}

/* ---- order, silence ---- */

static void bind_and_invalidate_complete_in_order_without_the_peer(void) {
    struct stage s = open_stage(FX_MR_ALL);
    IND2MemoryWindow *second = fx_window(s.f, 1);
    BIND(&s.p->b, CTX(1), s.theirs, s.window, 0, 10, READ_WRITE);
    BIND(&s.p->b, CTX(2), s.theirs, second, 5, 10, ND_OP_FLAG_ALLOW_READ);
    CHECK_HR(CALL(s.p->b.qp, Invalidate, CTX(3), UNKNOWN(s.window), ND_OP_FLAG_READ_FENCE),
             ND_SUCCESS);
    CHECK_HR(CALL(s.p->b.qp, Invalidate, CTX(4), UNKNOWN(second), 0), ND_SUCCESS);
    EXPECT_OK(s.f, &s.p->b, Bind, CTX(1), 0);
    EXPECT_OK(s.f, &s.p->b, Bind, CTX(2), 0);
    EXPECT_OK(s.f, &s.p->b, Invalidate, CTX(3), 0);
    EXPECT_OK(s.f, &s.p->b, Invalidate, CTX(4), 0);
    fx_end(s.f);
}

static void silent_bind_and_invalidate_leave_no_result(void) {
    struct stage s = open_stage(FX_MR_ALL);
    BIND(&s.p->b, CTX(1), s.theirs, s.window, 0, 10, READ_WRITE | ND_OP_FLAG_SILENT_SUCCESS);
    CHECK_HR(CALL(s.p->b.qp, Invalidate, CTX(2), UNKNOWN(s.window), ND_OP_FLAG_SILENT_SUCCESS),
             ND_SUCCESS);
    BIND(&s.p->b, CTX(3), s.theirs, s.window, 0, 10, READ_WRITE);
    EXPECT_OK(s.f, &s.p->b, Bind, CTX(3), 0);
    EXPECT_EMPTY(s.p->b.initiator_cq);
    fx_end(s.f);
}

/* ---- tokens, invalidation ---- */

static void tokens_change_with_every_bind(void) {
    struct stage s = open_stage(FX_MR_ALL);
    UINT32 seen[50];
    for (size_t i = 0; i < COUNT_OF(seen); i++) {
        open_window(&s, 0, REGION_BYTES, READ_WRITE);
        seen[i] = s.token;
        CHECK(s.token != s.theirs->remote && s.token != s.theirs->local);
        for (size_t n = 0; n < i; n++)
            CHECK(seen[n] != seen[i]);
        invalidate(&s);
    }
    fx_end(s.f);
}

static void token_of_an_earlier_bind_is_refused(void) {
    struct stage s = open_stage(FX_MR_ALL);
    open_window(&s, 0, REGION_BYTES, READ_WRITE);
    UINT32 stale = s.token;
    check_allowed(&s, true, 0, REGION_BYTES);
    invalidate(&s);
    open_window(&s, 0, REGION_BYTES, READ_WRITE);
    check_allowed(&s, true, 0, REGION_BYTES);
    check_refused(&s, true, 0, 64, stale);
    fx_end(s.f);
}

static void access_after_invalidate_is_refused(void) {
    for (int write = 0; write < 2; write++) {
        struct stage s = open_stage(FX_MR_ALL);
        open_window(&s, 0, REGION_BYTES, READ_WRITE);
        check_allowed(&s, write, 0, REGION_BYTES);
        invalidate(&s);
        check_refused(&s, write, 0, 64, s.token);
        fx_end(s.f);
    }
}

static void invalidate_under_traffic_ends_all_access(void) {
    struct fx *f = fx_begin();
    struct fx_pair_options o = { .depth = 64 };
    size_t len = KIB(256);
    struct stage s = { .f = f, .p = PAIR(f, &o) };
    s.mine = fx_memory(f, 0, len, 0);
    s.theirs = fx_memory(f, 1, len, ND_MR_FLAG_ALLOW_LOCAL_WRITE);
    s.window = fx_window(f, 1);
    open_window(&s, 0, len, READ_WRITE);
    memset(s.mine->bytes, 0x77, len);
    for (int i = 0; i < 64; i++)
        post(&s, true, 0, len, s.token);
    invalidate(&s);
    memset(s.theirs->bytes, 0x11, len);
    bool failed = false;
    for (int i = 0; i < 64; i++) {
        ND2_RESULT r;
        NEXT(f, s.p->a.initiator_cq, &r);
        if (r.Status == ND_ACCESS_VIOLATION && !failed)
            failed = true;
        else
            CHECK_HR(r.Status, failed ? ND_CANCELED : ND_SUCCESS);
    }
    for (size_t i = 0; i < len; i++)
        CHECK_EQ(s.theirs->bytes[i], 0x11);
    fx_end(f);
}

static void windows_over_one_region_are_independent(void) {
    struct stage s = open_stage(FX_MR_ALL);
    IND2MemoryWindow *other = fx_window(s.f, 1);
    BIND(&s.p->b, CTX(1), s.theirs, other, 50, 100, ND_OP_FLAG_ALLOW_READ);
    EXPECT_OK(s.f, &s.p->b, Bind, CTX(1), 0);
    open_window(&s, 0, 100, ND_OP_FLAG_ALLOW_WRITE); /* overlaps it */
    check_allowed(&s, true, 0, 100);
    invalidate(&s);
    s.token = CALL(other, GetRemoteToken);
    check_allowed(&s, false, 50, 100);
    fx_end(s.f);
}

static void window_moves_to_another_region_after_invalidate(void) {
    struct stage s = open_stage(FX_MR_ALL);
    open_window(&s, 0, REGION_BYTES, READ_WRITE);
    invalidate(&s);
    fx_deregister(s.f, s.theirs); /* no longer busy */
    s.theirs = fx_memory(s.f, 1, REGION_BYTES, FX_MR_ALL);
    open_window(&s, 0, REGION_BYTES, READ_WRITE);
    check_allowed(&s, true, 100, 200);
    fx_end(s.f);
}

static void window_serves_only_the_queue_pair_it_is_bound_to(void) {
    struct stage s = open_stage(FX_MR_ALL);
    struct fx_pair *other = PAIR(s.f, NULL);
    open_window(&s, 0, REGION_BYTES, READ_WRITE);
    ND2_SGE sge = fx_sge(s.mine, 0, 64);
    CHECK_HR(CALL(other->a.qp, Write, CTX(1), &sge, 1, fx_remote(s.theirs, 0), s.token, 0),
             ND_SUCCESS);
    EXPECT_ERROR(s.f, &other->a, Write, ND_ACCESS_VIOLATION, CTX(1));
    check_allowed(&s, true, 0, 64); /* the right one goes on */
    fx_end(s.f);
}

static void release_of_a_bound_window_ends_its_access(void) {
    struct stage s = open_stage(FX_MR_ALL);
    open_window(&s, 0, REGION_BYTES, READ_WRITE);
    CHECK_EQ(fx_release(s.f, s.window), 0);
    check_refused(&s, true, 0, 64, s.token);
    fx_deregister(s.f, s.theirs); /* not busy either */
    fx_end(s.f);
}

static void token_that_was_never_given_is_refused(void) {
    static const UINT32 guesses[] = { 0, 1, 0xFFFFFFFF, 0x12345678 };
    for (size_t i = 0; i < COUNT_OF(guesses); i++) {
        struct stage s = open_stage(FX_MR_ALL);
        open_window(&s, 0, REGION_BYTES, READ_WRITE);
        if (guesses[i] != s.token && guesses[i] != s.theirs->remote)
            check_refused(&s, true, 0, 64, guesses[i]);
        fx_end(s.f);
    }
}

CONFORM_MAIN(
    TEST(window_rights_do_not_depend_on_the_regions_remote_flags),
    TEST(write_through_a_read_window_is_refused), TEST(read_through_a_write_window_is_refused),
    TEST(window_without_rights_refuses_reads_and_writes),
    TEST(bind_of_write_without_local_write_is_an_access_violation),
    TEST(access_inside_a_window_is_allowed_to_the_byte),
    TEST(access_outside_a_window_is_refused_to_the_byte), TEST(access_that_wraps_around_is_refused),
    TEST(bind_outside_the_region_is_an_access_violation),
    TEST(bind_over_an_unregistered_region_is_an_access_violation),
    TEST(bind_and_invalidate_need_a_connection), TEST(bind_of_a_bound_window_is_an_invalid_request),
    TEST(bind_with_wrong_objects_names_the_parameter),
    TEST(invalidate_of_an_unbound_window_completes_with_an_invalid_request),
    TEST(bind_and_invalidate_fill_the_initiator_queue),
    TEST(bind_and_invalidate_complete_in_order_without_the_peer),
    TEST(silent_bind_and_invalidate_leave_no_result), TEST(tokens_change_with_every_bind),
    TEST(token_of_an_earlier_bind_is_refused), TEST(access_after_invalidate_is_refused),
    TEST(invalidate_under_traffic_ends_all_access), TEST(windows_over_one_region_are_independent),
    TEST(window_moves_to_another_region_after_invalidate),
    TEST(window_serves_only_the_queue_pair_it_is_bound_to),
    TEST(release_of_a_bound_window_ends_its_access), TEST(token_that_was_never_given_is_refused))
