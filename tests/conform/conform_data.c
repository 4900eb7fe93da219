/* SPDX-License-Identifier: MIT
 * conform_data.c - the bytes: every size, many SGEs, nothing at all, inline, fences, order of
 * placement as the target's memory shows it, deep queues, traffic both ways.
 */
#include "fixture.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNSYNCHRONISED __attribute__((no_sanitize("thread"), noinline))
#endif
#elif defined(__SANITIZE_THREAD__)
#define UNSYNCHRONISED __attribute__((no_sanitize("thread"), noinline))
#endif
#ifndef UNSYNCHRONISED
#define UNSYNCHRONISED __attribute__((noinline))
#endif

static const size_t sizes[] = {
    0,
    1,
    2,
    3,
    7,
    8,
    9,
    63,
    64,
    65,
    127,
    255,
    256,
    257,
    511,
    1023,
    1024,
    1447,
    1448,
    1449,
    1460,
    4095,
    4096,
    4097,
    16383,
    16384,
    32769,
    65535,
    65536,
    65537,
    131071,
    262145,
    999999,
    1048575,
    1048576,
    1048577,
    4194304 + 40,
    16777216 + 3,
    33553408,
    67108864 - 5,
    67108864,
};
static const size_t LARGEST = 67108864;

struct stage {
    struct fx *f;
    struct fx_pair *p;
    struct fx_memory *a, *b;
};

static struct stage open_stage(const struct fx_pair_options *o, size_t len) {
    struct stage s = { .f = fx_begin() };
    s.p = PAIR(s.f, o);
    s.a = fx_memory(s.f, 0, len, FX_MR_ALL);
    s.b = fx_memory(s.f, 1, len, FX_MR_ALL);
    return s;
}

/* ---- sizes ---- */

static void send_of_every_size_arrives_whole(void) {
    struct stage s = open_stage(NULL, LARGEST + 1);
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        size_t len = sizes[i];
        fx_fill(s.a->bytes, len, 1, i, 0);
        s.b->bytes[len] = 0xD7;
        RECEIVE(&s.p->b, CTX(i), s.b, 0, len);
        SEND(&s.p->a, CTX(i), s.a, 0, len, 0);
        EXPECT_OK(s.f, &s.p->b, Receive, CTX(i), len);
        EXPECT_OK(s.f, &s.p->a, Send, CTX(i), len);
        CHECK_DATA(s.b->bytes, len, 1, i, 0);
        CHECK_EQ(s.b->bytes[len], 0xD7);
    }
    fx_end(s.f);
}

static void write_of_every_size_arrives_whole(void) {
    struct stage s = open_stage(NULL, LARGEST + 1);
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        size_t len = sizes[i];
        fx_fill(s.a->bytes, len, 2, i, 0);
        s.b->bytes[len] = 0xD7;
        WRITE(&s.p->a, CTX(i), s.a, 0, len, s.b, 0, 0);
        EXPECT_OK(s.f, &s.p->a, Write, CTX(i), len);
        SYNC(s.f, &s.p->a, &s.p->b);
        CHECK_DATA(s.b->bytes, len, 2, i, 0);
        CHECK_EQ(s.b->bytes[len], 0xD7);
    }
    fx_end(s.f);
}

static void read_of_every_size_arrives_whole(void) {
    struct stage s = open_stage(NULL, LARGEST + 1);
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        size_t len = sizes[i];
        fx_fill(s.b->bytes, len, 3, i, 0);
        s.a->bytes[len] = 0xD7;
        READ(&s.p->a, CTX(i), s.a, 0, len, s.b, 0, 0);
        EXPECT_OK(s.f, &s.p->a, Read, CTX(i), len);
        CHECK_DATA(s.a->bytes, len, 3, i, 0);
        CHECK_EQ(s.a->bytes[len], 0xD7);
    }
    fx_end(s.f);
}

static void passive_side_reads_and_writes_too(void) {
    struct stage s = open_stage(NULL, KIB(256));
    for (int i = 0; i < 20; i++) {
        size_t len = (size_t)1 + (size_t)i * 13007;
        fx_fill(s.b->bytes, len, 4, (uint64_t)i, 0);
        WRITE(&s.p->b, CTX(i), s.b, 0, len, s.a, 0, 0);
        EXPECT_OK(s.f, &s.p->b, Write, CTX(i), len);
        memset(s.b->bytes, 0, len);
        READ(&s.p->b, CTX(i), s.b, 0, len, s.a, 0, 0);
        EXPECT_OK(s.f, &s.p->b, Read, CTX(i), len);
        CHECK_DATA(s.b->bytes, len, 4, (uint64_t)i, 0);
    }
    fx_end(s.f);
}

static void receive_larger_than_the_message_keeps_the_rest(void) {
    struct stage s = open_stage(NULL, 10000);
    memset(s.b->bytes, 0xD7, 10000);
    fx_fill(s.a->bytes, 1001, 5, 1, 0);
    RECEIVE(&s.p->b, CTX(1), s.b, 0, 10000);
    SEND(&s.p->a, CTX(1), s.a, 0, 1001, 0);
    EXPECT_OK(s.f, &s.p->b, Receive, CTX(1), 1001);
    CHECK_DATA(s.b->bytes, 1001, 5, 1, 0);
    for (size_t i = 1001; i < 10000; i++)
        CHECK_EQ(s.b->bytes[i], 0xD7);
    fx_end(s.f);
}

/* ---- SGEs ---- */

/* Cuts [0, len) of m into count pieces, in random places; pieces may be empty. */
static void cut(const struct fx_memory *m, size_t len, ND2_SGE *sge, ULONG count, uint64_t *seed) {
    size_t at = 0;
    for (ULONG i = 0; i < count; i++) {
        size_t n = i + 1 == count ? len - at : fx_random_below(seed, (len - at) + 1);
        if (i + 1 < count && fx_random_below(seed, 4) == 0) n = 0;
        if (i + 1 < count && n > 2 * len / count) n = 2 * len / count;
        sge[i] = fx_sge(m, at, n);
        at += n;
    }
}

static void many_sges_of_random_lengths_are_one_message(void) {
    struct fx *f = fx_begin();
    uint64_t seed = fx_seed();
    ULONG most = f->info.MaxInitiatorSge < f->info.MaxReceiveSge ? f->info.MaxInitiatorSge
                                                                 : f->info.MaxReceiveSge;
    ULONG most_read = f->info.MaxReadSge < most ? f->info.MaxReadSge : most;
    ND2_SGE *from = fx_alloc(f, most * sizeof *from), *to = fx_alloc(f, most * sizeof *to);
    struct fx_pair_options o = { .sge = most };
    struct stage s = { .f = f, .p = PAIR(f, &o) };
    s.a = fx_memory(f, 0, MIB(1), FX_MR_ALL);
    s.b = fx_memory(f, 1, MIB(1), FX_MR_ALL);
    for (int i = 0; i < HOST_ROUNDS(120); i++) {
        size_t len = fx_random_below(&seed, i % 4 ? 5000 : MIB(1)) + 1;
        ULONG nf = (ULONG)fx_random_below(&seed, most) + 1;
        ULONG nt = (ULONG)fx_random_below(&seed, most) + 1;
        UINT64 at = fx_remote(s.b, 0);
        memset(s.b->bytes, 0, len);
        fx_fill(s.a->bytes, len, 6, (uint64_t)i, 0);
        cut(s.a, len, from, nf, &seed);
        cut(s.b, len, to, nt, &seed);
        switch (i % 3) {
        case 0:
            CHECK_HR(CALL(s.p->b.qp, Receive, CTX(i), to, nt), ND_SUCCESS);
            CHECK_HR(CALL(s.p->a.qp, Send, CTX(i), from, nf, 0), ND_SUCCESS);
            EXPECT_OK(f, &s.p->b, Receive, CTX(i), len);
            EXPECT_OK(f, &s.p->a, Send, CTX(i), len);
            break;
        case 1:
            CHECK_HR(CALL(s.p->a.qp, Write, CTX(i), from, nf, at, s.b->remote, 0), ND_SUCCESS);
            EXPECT_OK(f, &s.p->a, Write, CTX(i), len);
            SYNC(f, &s.p->a, &s.p->b);
            break;
        default: /* b reads from a */
            if (nt > most_read) cut(s.b, len, to, nt = most_read, &seed);
            CHECK_HR(CALL(s.p->b.qp, Read, CTX(i), to, nt, fx_remote(s.a, 0), s.a->remote, 0),
                     ND_SUCCESS);
            EXPECT_OK(f, &s.p->b, Read, CTX(i), len);
            break;
        }
        CHECK_DATA(s.b->bytes, len, 6, (uint64_t)i, 0);
    }
    fx_end(f);
}

static void sges_of_different_regions_are_one_message(void) {
    struct fx *f = fx_begin();
    struct fx_pair *p = PAIR(f, NULL);
    struct fx_memory *a[4], *b[4];
    ND2_SGE from[4], to[4];
    for (int i = 0; i < 4; i++) {
        a[i] = fx_memory(f, 0, 1000, 0);
        b[i] = fx_memory(f, 1, 1000, ND_MR_FLAG_ALLOW_LOCAL_WRITE);
        fx_fill(a[i]->bytes, 1000, 7, 1, (size_t)i * 1000);
        from[i] = fx_sge(a[i], 0, 1000);
        to[i] = fx_sge(b[i], 0, 1000);
    }
    CHECK_HR(CALL(p->b.qp, Receive, CTX(1), to, 4), ND_SUCCESS);
    CHECK_HR(CALL(p->a.qp, Send, CTX(1), from, 4, 0), ND_SUCCESS);
    EXPECT_OK(f, &p->b, Receive, CTX(1), 4000);
    EXPECT_OK(f, &p->a, Send, CTX(1), 4000);
    for (int i = 0; i < 4; i++)
        CHECK_DATA(b[i]->bytes, 1000, 7, 1, (size_t)i * 1000);
    fx_end(f);
}

static void sge_array_may_be_reused_after_the_call(void) {
    struct stage s = open_stage(NULL, 4000);
    ND2_SGE sge;
    fx_fill(s.a->bytes, 4000, 8, 1, 0);
    for (int i = 0; i < 4; i++) {
        sge = fx_sge(s.b, (size_t)i * 1000, 1000);
        CHECK_HR(CALL(s.p->b.qp, Receive, CTX(i), &sge, 1), ND_SUCCESS);
        memset(&sge, 0xFF, sizeof sge);
    }
    for (int i = 0; i < 4; i++) {
        sge = fx_sge(s.a, (size_t)i * 1000, 1000);
        CHECK_HR(CALL(s.p->a.qp, Send, CTX(i), &sge, 1, 0), ND_SUCCESS);
        memset(&sge, 0xFF, sizeof sge);
    }
    for (int i = 0; i < 4; i++)
        EXPECT_OK(s.f, &s.p->b, Receive, CTX(i), 1000);
    CHECK_DATA(s.b->bytes, 4000, 8, 1, 0);
    fx_end(s.f);
}

/* ---- nothing at all ---- */

static void requests_of_zero_bytes_complete(void) {
    struct stage s = open_stage(NULL, 64);
    ND2_SGE none[2] = { fx_sge(s.a, 0, 0), fx_sge(s.a, 64, 0) };
    ND2_SGE into[2] = { fx_sge(s.b, 0, 0), fx_sge(s.b, 64, 0) };
    UINT64 at = fx_remote(s.b, 0);
    IND2QueuePair *a = s.p->a.qp, *b = s.p->b.qp;
    for (ULONG n = 0; n <= 2; n++) {
        CHECK_HR(CALL(b, Receive, CTX(1), n ? into : NULL, n), ND_SUCCESS);
        CHECK_HR(CALL(b, Receive, CTX(2), n ? into : NULL, n), ND_SUCCESS);
        CHECK_HR(CALL(a, Send, CTX(1), n ? none : NULL, n, 0), ND_SUCCESS);
        CHECK_HR(CALL(a, Write, CTX(2), n ? none : NULL, n, at, s.b->remote, 0), ND_SUCCESS);
        CHECK_HR(CALL(a, Read, CTX(3), n ? none : NULL, n, at, s.b->remote, 0), ND_SUCCESS);
        CHECK_HR(CALL(a, Send, CTX(4), n ? none : NULL, n, ND_OP_FLAG_INLINE), ND_SUCCESS);
        CHECK_HR(CALL(a, Write, CTX(5), n ? none : NULL, n, at, s.b->remote, ND_OP_FLAG_INLINE),
                 ND_SUCCESS);
        EXPECT_OK(s.f, &s.p->a, Send, CTX(1), 0);
        EXPECT_OK(s.f, &s.p->a, Write, CTX(2), 0);
        EXPECT_OK(s.f, &s.p->a, Read, CTX(3), 0);
        EXPECT_OK(s.f, &s.p->a, Send, CTX(4), 0);
        EXPECT_OK(s.f, &s.p->a, Write, CTX(5), 0);
        EXPECT_OK(s.f, &s.p->b, Receive, CTX(1), 0);
        EXPECT_OK(s.f, &s.p->b, Receive, CTX(2), 0);
    }
    fx_end(s.f);
}

static void empty_message_into_a_large_receive_has_zero_bytes(void) {
    struct stage s = open_stage(NULL, 4096);
    memset(s.b->bytes, 0xD7, 4096);
    RECEIVE(&s.p->b, CTX(1), s.b, 0, 4096);
    SEND(&s.p->a, CTX(1), NULL, 0, 0, 0);
    EXPECT_OK(s.f, &s.p->b, Receive, CTX(1), 0);
    for (size_t i = 0; i < 4096; i++)
        CHECK_EQ(s.b->bytes[i], 0xD7);
    fx_end(s.f);
}

static void empty_messages_keep_their_place_among_others(void) {
    struct fx_pair_options o = { .depth = 64 };
    struct stage s = open_stage(&o, 64 * 100);
    for (int i = 0; i < 60; i++)
        RECEIVE(&s.p->b, CTX(i), s.b, (size_t)i * 100, 100);
    for (int i = 0; i < 60; i++)
        SEND(&s.p->a, CTX(i), s.a, 0, i % 3 ? (size_t)i : 0, 0);
    for (int i = 0; i < 60; i++) {
        EXPECT_OK(s.f, &s.p->b, Receive, CTX(i), i % 3 ? i : 0);
        EXPECT_OK(s.f, &s.p->a, Send, CTX(i), i % 3 ? i : 0);
    }
    fx_end(s.f);
}

/* ---- inline ---- */

static void inline_data_is_taken_during_the_call(void) {
    struct fx *f = fx_begin();
    ULONG most = f->info.MaxInlineDataSize;
    if (most == 0) SKIP("the adapter sends nothing inline");
    struct fx_pair_options o = { .inline_bytes = most };
    struct fx_pair *p = PAIR(f, &o);
    struct fx_memory *b = fx_memory(f, 1, 4096, FX_MR_ALL);
    uint8_t *loose = fx_alloc(f, most); /* no region at all */
    for (ULONG len = 0; len <= most; len += len < 20 ? 1 : 37) {
        ND2_SGE sge = { loose, len, 0xDEADBEEF };
        for (int write = 0; write < 2; write++) {
            fx_fill(loose, len, 9, len + (ULONG)write, 0);
            memset(b->bytes, 0, 4096);
            if (write) {
                CHECK_HR(CALL(p->a.qp, Write, CTX(len), &sge, 1, fx_remote(b, 0), b->remote,
                              ND_OP_FLAG_INLINE),
                         ND_SUCCESS);
                memset(loose, 0xAA, len);
                EXPECT_OK(f, &p->a, Write, CTX(len), len);
                SYNC(f, &p->a, &p->b);
            } else {
                RECEIVE(&p->b, CTX(len), b, 0, 4096);
                CHECK_HR(CALL(p->a.qp, Send, CTX(len), &sge, 1, ND_OP_FLAG_INLINE), ND_SUCCESS);
                memset(loose, 0xAA, len);
                EXPECT_OK(f, &p->b, Receive, CTX(len), len);
                EXPECT_OK(f, &p->a, Send, CTX(len), len);
            }
            CHECK_DATA(b->bytes, len, 9, len + (ULONG)write, 0);
        }
    }
    fx_end(f);
}

/* The number of SGEs is limited by the bytes only. */
static void inline_takes_any_number_of_sges(void) {
    struct fx *f = fx_begin();
    if (f->info.MaxInlineDataSize < 128) SKIP("the adapter sends less than 128 bytes inline");
    struct fx_pair_options o = { .inline_bytes = 128, .sge = 1 };
    struct fx_pair *p = PAIR(f, &o);
    struct fx_memory *b = fx_memory(f, 1, 4096, FX_MR_ALL);
    uint8_t bytes[128];
    ND2_SGE sge[64];
    fx_fill(bytes, sizeof bytes, 10, 1, 0);
    for (int i = 0; i < 64; i++)
        sge[i] = (ND2_SGE){ bytes + 2 * i, 2, 0 };
    RECEIVE(&p->b, CTX(1), b, 0, 4096);
    CHECK_HR(CALL(p->a.qp, Send, CTX(1), sge, 64, ND_OP_FLAG_INLINE), ND_SUCCESS);
    memset(bytes, 0, sizeof bytes);
    EXPECT_OK(f, &p->b, Receive, CTX(1), 128);
    CHECK_DATA(b->bytes, 128, 10, 1, 0);
    fx_end(f);
}

static void inline_requests_that_wait_keep_their_bytes(void) {
    struct fx *f = fx_begin();
    if (f->info.MaxInlineDataSize < 64) SKIP("the adapter sends less than 64 bytes inline");
    struct fx_pair_options o = { .inline_bytes = 64, .depth = 64 };
    struct fx_pair *p = PAIR(f, &o);
    struct fx_memory *b = fx_memory(f, 1, 64 * 64, FX_MR_ALL);
    uint8_t bytes[64];
    ND2_SGE sge = { bytes, 64, 0 };
    for (int i = 0; i < 64; i++) { /* no Receives yet */
        fx_fill(bytes, 64, 11, (uint64_t)i, 0);
        CHECK_HR(CALL(p->a.qp, Send, CTX(i), &sge, 1, ND_OP_FLAG_INLINE), ND_SUCCESS);
    }
    memset(bytes, 0, sizeof bytes);
    for (int i = 0; i < 64; i++)
        RECEIVE(&p->b, CTX(i), b, (size_t)i * 64, 64);
    for (int i = 0; i < 64; i++) {
        EXPECT_OK(f, &p->b, Receive, CTX(i), 64);
        CHECK_DATA(b->bytes + i * 64, 64, 11, (uint64_t)i, 0);
        EXPECT_OK(f, &p->a, Send, CTX(i), 64);
    }
    fx_end(f);
}

/* ---- order ---- */

/* The rendezvous of message-passing libraries: "I have read it" goes out fenced, and the peer then
 * reuses the buffer. */
static void fenced_send_leaves_after_the_read_is_done(void) {
    struct stage s = open_stage(NULL, MIB(4));
    for (int i = 0; i < 20; i++) {
        size_t len = i % 2 ? MIB(4) : 5000;
        fx_fill(s.b->bytes, len, 12, (uint64_t)i, 0);
        RECEIVE(&s.p->b, CTX(i), NULL, 0, 0);
        READ(&s.p->a, CTX(i), s.a, 0, len, s.b, 0, 0);
        SEND(&s.p->a, CTX(i), NULL, 0, 0, ND_OP_FLAG_READ_FENCE);
        EXPECT_OK(s.f, &s.p->b, Receive, CTX(i), 0);
        memset(s.b->bytes, 0xBD, len); /* nobody may still read it */
        EXPECT_OK(s.f, &s.p->a, Read, CTX(i), len);
        EXPECT_OK(s.f, &s.p->a, Send, CTX(i), 0);
        CHECK_DATA(s.a->bytes, len, 12, (uint64_t)i, 0);
    }
    fx_end(s.f);
}

static void fenced_write_does_not_overtake_reads(void) {
    struct stage s = open_stage(NULL, MIB(4));
    struct fx_memory *news = fx_memory(s.f, 0, MIB(2), 0);
    for (int i = 0; i < 20; i++) {
        size_t len = i % 2 ? MIB(2) : 5000;
        fx_fill(s.b->bytes, len, 13, (uint64_t)i, 0);
        fx_fill(news->bytes, len, 14, (uint64_t)i, 0);
        READ(&s.p->a, CTX(1), s.a, 0, len, s.b, 0, 0);
        READ(&s.p->a, CTX(2), s.a, MIB(2), len, s.b, 0, 0);
        WRITE(&s.p->a, CTX(3), news, 0, len, s.b, 0, ND_OP_FLAG_READ_FENCE);
        EXPECT_OK(s.f, &s.p->a, Read, CTX(1), len);
        EXPECT_OK(s.f, &s.p->a, Read, CTX(2), len);
        EXPECT_OK(s.f, &s.p->a, Write, CTX(3), len);
        SYNC(s.f, &s.p->a, &s.p->b);
        CHECK_DATA(s.a->bytes, len, 13, (uint64_t)i, 0);
        CHECK_DATA(s.a->bytes + MIB(2), len, 13, (uint64_t)i, 0);
        CHECK_DATA(s.b->bytes, len, 14, (uint64_t)i, 0);
    }
    fx_end(s.f);
}

static void fence_on_invalidate_waits_for_reads(void) {
    struct stage s = open_stage(NULL, MIB(1));
    IND2MemoryWindow *w = fx_window(s.f, 0);
    fx_fill(s.b->bytes, MIB(1), 15, 1, 0);
    BIND(&s.p->a, CTX(1), s.a, w, 0, 100, ND_OP_FLAG_ALLOW_READ);
    EXPECT_OK(s.f, &s.p->a, Bind, CTX(1), 0);
    READ(&s.p->a, CTX(2), s.a, 0, MIB(1), s.b, 0, 0);
    CHECK_HR(CALL(s.p->a.qp, Invalidate, CTX(3), UNKNOWN(w), ND_OP_FLAG_READ_FENCE), ND_SUCCESS);
    EXPECT_OK(s.f, &s.p->a, Read, CTX(2), MIB(1));
    EXPECT_OK(s.f, &s.p->a, Invalidate, CTX(3), 0);
    CHECK_DATA(s.a->bytes, MIB(1), 15, 1, 0);
    fx_end(s.f);
}

static void receive_shows_that_earlier_writes_are_placed(void) {
    struct fx_pair_options o = { .depth = 64 };
    struct stage s = open_stage(&o, MIB(1));
    for (int i = 0; i < 30; i++) {
        fx_fill(s.a->bytes, MIB(1), 16, (uint64_t)i, 0);
        RECEIVE(&s.p->b, CTX(i), NULL, 0, 0);
        for (size_t n = 0; n < 32; n++)
            WRITE(&s.p->a, CTX(n), s.a, n * KIB(32), KIB(32), s.b, n * KIB(32),
                  ND_OP_FLAG_SILENT_SUCCESS);
        SEND(&s.p->a, CTX(i), NULL, 0, 0, 0);
        EXPECT_OK(s.f, &s.p->b, Receive, CTX(i), 0);
        CHECK_DATA(s.b->bytes, MIB(1), 16, (uint64_t)i, 0);
        EXPECT_OK(s.f, &s.p->a, Send, CTX(i), 0);
    }
    fx_end(s.f);
}

static void results_come_in_posting_order_whatever_the_kind(void) {
    struct fx_pair_options o = { .depth = 64 };
    struct stage s = open_stage(&o, MIB(1));
    uint64_t seed = fx_seed();
    int kinds[60];
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < 60; i++)
            RECEIVE(&s.p->b, CTX(i), s.b, 0, KIB(64));
        int sends = 0;
        for (int i = 0; i < 60; i++) {
            size_t len = fx_random_below(&seed, KIB(64));
            kinds[i] = (int)fx_random_below(&seed, 3);
            if (kinds[i] == 0) SEND(&s.p->a, CTX(i), s.a, 0, len, 0);
            if (kinds[i] == 1) WRITE(&s.p->a, CTX(i), s.a, 0, len, s.b, KIB(64), 0);
            if (kinds[i] == 2) READ(&s.p->a, CTX(i), s.a, KIB(64), len, s.b, KIB(64), 0);
        }
        for (int i = 0; i < 60; i++) {
            static const ND2_REQUEST_TYPE types[] = { Nd2RequestTypeSend, Nd2RequestTypeWrite,
                                                      Nd2RequestTypeRead };
            AT_HERE();
            fx_expect(s.f, &s.p->a, types[kinds[i]], ND_SUCCESS, CTX(i), FX_ANY_BYTES);
            sends += kinds[i] == 0;
        }
        for (int i = 0; i < sends; i++)
            EXPECT_OK(s.f, &s.p->b, Receive, CTX(i), FX_ANY_BYTES);
        for (int i = sends; i < 60; i++) { /* use the rest up */
            SEND(&s.p->a, CTX(i), NULL, 0, 0, 0);
            EXPECT_OK(s.f, &s.p->b, Receive, CTX(i), 0);
            EXPECT_OK(s.f, &s.p->a, Send, CTX(i), 0);
        }
    }
    fx_end(s.f);
}

/* ---- the target's memory, watched without a single call into the provider ---- */

static UNSYNCHRONISED uint8_t peek(const uint8_t *at) {
    return *(const volatile uint8_t *)at;
}

static UNSYNCHRONISED bool all_equal(const uint8_t *bytes, size_t len, uint8_t value) {
    for (size_t i = 0; i < len; i++)
        if (((const volatile uint8_t *)bytes)[i] != value) return false;
    return true;
}

static UNSYNCHRONISED bool spin_until(const uint8_t *at, uint8_t value, uint64_t deadline) {
    for (unsigned i = 1; *(const volatile uint8_t *)at != value; i++)
        if (i % 1024 == 0) {
            if (host_now_ms() > deadline) return false;
            Sleep(0);
        }
    return true;
}

static void last_byte_of_a_write_appears_last(void) {
    struct stage s = open_stage(NULL, MIB(4));
    static const size_t lens[] = { 1, 8, 100, 4096, 65536, 1000003, 4194304 };
    for (int round = 0; round < 6; round++)
        for (size_t i = 0; i < COUNT_OF(lens); i++) {
            uint8_t value = (uint8_t)(1 + round * 10 + (int)i);
            memset(s.a->bytes, value, lens[i]);
            WRITE(&s.p->a, CTX(1), s.a, 0, lens[i], s.b, 0, 0);
            CHECK(spin_until(s.b->bytes + lens[i] - 1, value, fx_deadline()));
            CHECK(all_equal(s.b->bytes, lens[i], value));
            EXPECT_OK(s.f, &s.p->a, Write, CTX(1), lens[i]);
            SYNC(s.f, &s.p->a, &s.p->b);
        }
    fx_end(s.f);
}

static void writes_appear_in_posting_order(void) {
    struct fx_pair_options o = { .depth = 64 };
    struct stage s = open_stage(&o, KIB(64));
    for (int round = 1; round <= 100; round++) {
        uint8_t value = (uint8_t)(round % 250 + 1);
        size_t data = (size_t)(1 + round * 331 % 60000);
        memset(s.a->bytes, value, KIB(64));
        WRITE(&s.p->a, CTX(1), s.a, 0, data, s.b, 0, ND_OP_FLAG_SILENT_SUCCESS);
        WRITE(&s.p->a, CTX(2), s.a, 0, 8, s.b, KIB(64) - 8, 0); /* the flag behind the data */
        CHECK(spin_until(s.b->bytes + KIB(64) - 8, value, fx_deadline()));
        CHECK(all_equal(s.b->bytes, data, value));
        EXPECT_OK(s.f, &s.p->a, Write, CTX(2), 8);
        SYNC(s.f, &s.p->a, &s.p->b);
    }
    fx_end(s.f);
}

struct torn {
    volatile const uint64_t *word;
    uint32_t stop; /* atomic */
    uint64_t torn; /* values that nobody wrote */
    uint64_t seen;
};

static UNSYNCHRONISED void watch_word(void *arg) {
    struct torn *t = arg;
    uint64_t last = 0;
    while (!__atomic_load_n(&t->stop, __ATOMIC_RELAXED)) {
        uint64_t now = *t->word;
        if ((uint32_t)now != (uint32_t)(now >> 32)) t->torn++;
        if (now != last) t->seen++;
        last = now;
    }
}

static void aligned_word_is_written_as_one(void) {
    struct stage s = open_stage(NULL, 64);
    struct torn t = { .word = (const uint64_t *)(s.b->bytes + 16) };
    CHECK_EQ((uintptr_t)t.word % 8, 0);
    struct host_thread *thread = host_thread_start(watch_word, &t);
    CHECK(thread != NULL);
    bool ok = true;
    for (uint64_t i = 1; i <= HOST_ROUNDS(3000) && ok; i++) {
        uint64_t value = i << 32 | i;
        memcpy(s.a->bytes, &value, 8);
        ND2_RESULT r;
        ok = fx_write(&s.p->a, CTX(i), s.a, 0, 8, s.b, 16, 0) == ND_SUCCESS &&
             fx_next_by(s.p->a.initiator_cq, &r, fx_deadline()) && r.Status == ND_SUCCESS;
    }
    __atomic_store_n(&t.stop, 1, __ATOMIC_RELAXED);
    host_thread_join(thread);
    CHECK(ok);
    CHECK_EQ(t.torn, 0);
    fx_end(s.f);
}

/* Both sides wait by watching memory only. */
static void write_ping_pong_by_memory_works(void) {
    struct stage s = open_stage(NULL, KIB(64));
    static const size_t lens[] = { 1, 64, 4096, 65536 };
    for (size_t i = 0; i < COUNT_OF(lens); i++)
        for (int round = 0; round < HOST_ROUNDS(100); round++) {
            uint8_t ping = (uint8_t)(1 + round % 100 + (int)i), pong = (uint8_t)(ping + 120);
            size_t len = lens[i];
            memset(s.a->bytes, ping, len);
            WRITE(&s.p->a, CTX(1), s.a, 0, len, s.b, 0, 0);
            CHECK(spin_until(s.b->bytes + len - 1, ping, fx_deadline()));
            CHECK_EQ(peek(s.b->bytes), ping);
            EXPECT_OK(s.f, &s.p->a, Write, CTX(1), len);
            SYNC(s.f, &s.p->a, &s.p->b);
            memset(s.b->bytes, pong, len);
            WRITE(&s.p->b, CTX(2), s.b, 0, len, s.a, 0, 0);
            CHECK(spin_until(s.a->bytes + len - 1, pong, fx_deadline()));
            CHECK_EQ(peek(s.a->bytes), pong);
            EXPECT_OK(s.f, &s.p->b, Write, CTX(2), len);
            SYNC(s.f, &s.p->b, &s.p->a);
        }
    fx_end(s.f);
}

/* ---- the target does nothing ---- */

/* Random reads and writes against a model of the target's memory. */
static void target_that_makes_no_call_serves_random_access(void) {
    enum { DEPTH = 64, OPS = HOST_ROUNDS(1500) };
    struct fx_pair_options o = { .depth = DEPTH, .read_limit = 16 };
    size_t len = KIB(512);
    struct stage s = open_stage(&o, len);
    uint64_t seed = fx_seed();
    struct {
        bool read;
        size_t at, len, slot;
        uint8_t *expected;
    } ops[DEPTH];
    size_t slot_len = KIB(16);
    struct fx_memory *slots = fx_memory(s.f, 0, DEPTH * slot_len, ND_MR_FLAG_ALLOW_LOCAL_WRITE);
    uint8_t *model = fx_alloc(s.f, len), *expected = fx_alloc(s.f, DEPTH * slot_len);
    int posted = 0, done = 0;
    bool after_read = false;
    while (done < OPS) {
        while (posted < OPS && posted - done < DEPTH) {
            size_t i = (size_t)posted % DEPTH;
            ops[i].slot = i * slot_len;
            ops[i].len = fx_random_below(&seed, slot_len) + 1;
            ops[i].at = fx_random_below(&seed, len - ops[i].len + 1);
            ops[i].read = fx_random_below(&seed, 2);
            if (ops[i].read) {
                memcpy(expected + ops[i].slot, model + ops[i].at, ops[i].len);
                READ(&s.p->a, CTX(posted), slots, ops[i].slot, ops[i].len, s.b, ops[i].at, 0);
                after_read = true;
            } else {
                fx_fill(slots->bytes + ops[i].slot, ops[i].len, 17, (uint64_t)posted, 0);
                memcpy(model + ops[i].at, slots->bytes + ops[i].slot, ops[i].len);
                /* A Write may overtake the data of an earlier Read unless fenced. */
                WRITE(&s.p->a, CTX(posted), slots, ops[i].slot, ops[i].len, s.b, ops[i].at,
                      after_read ? ND_OP_FLAG_READ_FENCE : 0);
                after_read = false;
            }
            posted++;
        }
        size_t i = (size_t)done % DEPTH;
        if (ops[i].read) {
            EXPECT_OK(s.f, &s.p->a, Read, CTX(done), ops[i].len);
            CHECK_BYTES(slots->bytes + ops[i].slot, expected + ops[i].slot, ops[i].len);
        } else {
            EXPECT_OK(s.f, &s.p->a, Write, CTX(done), ops[i].len);
        }
        done++;
    }
    SYNC(s.f, &s.p->a, &s.p->b);
    CHECK_BYTES(s.b->bytes, model, len);
    fx_end(s.f);
}

static void more_reads_than_the_limit_wait_their_turn(void) {
    for (ULONG limit = 1; limit <= 3; limit += 2) {
        struct fx_pair_options o = { .depth = 64, .read_limit = limit };
        struct stage s = open_stage(&o, 64 * 5000);
        fx_fill(s.b->bytes, 64 * 5000, 18, limit, 0);
        for (size_t i = 0; i < 64; i++)
            READ(&s.p->a, CTX(i), s.a, i * 5000, 5000, s.b, i * 5000, 0);
        for (size_t i = 0; i < 64; i++)
            EXPECT_OK(s.f, &s.p->a, Read, CTX(i), 5000);
        CHECK_DATA(s.a->bytes, 64 * 5000, 18, limit, 0);
        fx_end(s.f);
    }
}

/* ---- volume ---- */

static void deep_queue_of_small_writes_arrives(void) {
    struct fx *f = fx_begin();
    ULONG depth = f->info.MaxInitiatorQueueDepth;
    struct fx_pair_options o = { .depth = depth, .sge = 1 };
    struct fx_pair *p = PAIR(f, &o);
    struct fx_memory *a = fx_memory(f, 0, 8 * (size_t)depth, 0);
    struct fx_memory *b = fx_memory(f, 1, 8 * (size_t)depth, FX_MR_ALL);
    fx_fill(a->bytes, a->len, 19, 1, 0);
    for (ULONG i = 0; i < depth; i++)
        WRITE(&p->a, CTX(i), a, 8 * (size_t)i, 8, b, 8 * (size_t)i, 0);
    for (ULONG i = 0; i < depth; i++)
        EXPECT_OK(f, &p->a, Write, CTX(i), 8);
    SYNC(f, &p->a, &p->b);
    CHECK_DATA(b->bytes, b->len, 19, 1, 0);
    fx_end(f);
}

/* More messages than any 16-bit counter can hold. */
static void seventy_thousand_messages_arrive_in_order(void) {
    enum { COUNT = HOST_ROUNDS(70000), DEPTH = 256 };
    struct fx_pair_options o = { .depth = DEPTH, .sge = 1 };
    struct stage s = open_stage(&o, DEPTH * 16);
    int posted = 0, sent = 0, done = 0, received = 0;
    uint64_t deadline = fx_deadline();
    fx_poll_results = true;
    while (received < COUNT || done < COUNT) {
        ND2_RESULT r[32];
        for (; posted < COUNT && posted - received < DEPTH; posted++)
            RECEIVE(&s.p->b, CTX(posted), s.b, (size_t)(posted % DEPTH) * 16, 16);
        for (; sent < posted && sent - done < DEPTH; sent++) {
            uint64_t number = (uint64_t)sent;
            memcpy(s.a->bytes + sent % DEPTH * 16, &number, 8);
            SEND(&s.p->a, CTX(sent), s.a, (size_t)(sent % DEPTH) * 16, 8, 0);
        }
        ULONG n = CALL(s.p->a.initiator_cq, GetResults, r, 32);
        for (ULONG i = 0; i < n; i++) {
            CHECK_HR(r[i].Status, ND_SUCCESS);
            CHECK_PTR(r[i].RequestContext, CTX(done++));
        }
        n = CALL(s.p->b.receive_cq, GetResults, r, 32);
        for (ULONG i = 0; i < n; i++) {
            uint64_t number;
            CHECK_HR(r[i].Status, ND_SUCCESS);
            CHECK_PTR(r[i].RequestContext, CTX(received));
            CHECK_EQ(r[i].BytesTransferred, 8);
            memcpy(&number, s.b->bytes + received % DEPTH * 16, 8);
            CHECK_EQ(number, received);
            received++;
        }
        CHECK(host_now_ms() < deadline * 2); /* many, so twice the usual time */
    }
    fx_end(s.f);
}

/* Whatever a provider does to be fast while somebody polls must be over when he sleeps. */
static void small_message_after_a_long_stream_wakes_who_sleeps(void) {
    enum { COUNT = HOST_ROUNDS(200), DEPTH = 8 };
    struct fx_pair_options o = { .depth = DEPTH };
    struct stage s = open_stage(&o, KIB(1024));
    uint64_t deadline = fx_deadline();
    for (int round = 0; round < 3; round++) {
        int posted = 0, done = 0;
        while (done < COUNT) {
            ND2_RESULT r[DEPTH];
            for (; posted < COUNT && posted - done < DEPTH; posted++)
                WRITE(&s.p->a, CTX(posted), s.a, 0, s.a->len, s.b, 0, 0);
            ULONG n = CALL(s.p->a.initiator_cq, GetResults, r, DEPTH);
            for (ULONG i = 0; i < n; i++) {
                CHECK_HR(r[i].Status, ND_SUCCESS);
                CHECK_PTR(r[i].RequestContext, CTX(done++));
            }
            CHECK_EQ(CALL(s.p->b.receive_cq, GetResults, r, 1), 0);
            CHECK(host_now_ms() < deadline * 2);
        }
        RECEIVE(&s.p->b, CTX(1), s.b, 0, 64);
        OVERLAPPED *ov = fx_overlapped(s.f);
        HRESULT hr = CALL(s.p->b.receive_cq, Notify, ND_CQ_NOTIFY_ANY, ov);
        SEND(&s.p->a, CTX(2), s.a, 0, 64, 0);
        CHECK_HR(FINISH(s.f, s.p->b.receive_cq, ov, hr), ND_SUCCESS);
        EXPECT_OK(s.f, &s.p->b, Receive, CTX(1), 64);
        EXPECT_OK(s.f, &s.p->a, Send, CTX(2), 64);
    }
    fx_end(s.f);
}

/* ---- both ways at once ---- */

struct direction {
    struct fx_side *from, *to;
    struct fx_memory *out, *in;
    uint64_t tag;
    size_t lens[64];
    int posted, sent, done, received;
};

enum { WINDOW = 32, SLOT = 40000 };

static size_t len_of(const struct direction *d, int n) {
    uint64_t state = d->tag * 1000003 + (uint64_t)n;
    uint64_t kind = fx_random(&state);
    if (kind % 8 == 0) return 0;
    return fx_random_below(&state, kind % 3 ? 600 : SLOT) + 1;
}

static void pump(struct direction *d, int count) {
    ND2_RESULT r[8];
    for (; d->posted < count && d->posted - d->received < WINDOW; d->posted++)
        RECEIVE(d->to, CTX(d->posted), d->in, (size_t)(d->posted % WINDOW) * SLOT, SLOT);
    for (; d->sent < d->posted && d->sent - d->done < WINDOW; d->sent++) {
        size_t at = (size_t)(d->sent % WINDOW) * SLOT, len = len_of(d, d->sent);
        fx_fill(d->out->bytes + at, len, d->tag, (uint64_t)d->sent, 0);
        SEND(d->from, CTX(d->sent), d->out, at, len, 0);
    }
    ULONG n = CALL(d->from->initiator_cq, GetResults, r, 8);
    for (ULONG i = 0; i < n; i++) {
        CHECK_HR(r[i].Status, ND_SUCCESS);
        CHECK_PTR(r[i].RequestContext, CTX(d->done++));
    }
    n = CALL(d->to->receive_cq, GetResults, r, 8);
    for (ULONG i = 0; i < n; i++) {
        size_t len = len_of(d, d->received);
        CHECK_HR(r[i].Status, ND_SUCCESS);
        CHECK_PTR(r[i].RequestContext, CTX(d->received));
        CHECK_EQ(r[i].BytesTransferred, len);
        CHECK_DATA(d->in->bytes + (size_t)(d->received % WINDOW) * SLOT, len, d->tag,
                   (uint64_t)d->received, 0);
        d->received++;
    }
}

static void traffic_both_ways_on_several_connections_stays_intact(void) {
    enum { PAIRS = 4, COUNT = HOST_ROUNDS(500) };
    struct fx *f = fx_begin();
    struct fx_pair_options o = { .depth = WINDOW };
    struct direction d[2 * PAIRS];
    memset(d, 0, sizeof d);
    for (int i = 0; i < PAIRS; i++) {
        struct fx_pair *p = PAIR(f, &o);
        d[2 * i] = (struct direction){ .from = &p->a, .to = &p->b };
        d[2 * i + 1] = (struct direction){ .from = &p->b, .to = &p->a };
    }
    for (int i = 0; i < 2 * PAIRS; i++) {
        d[i].tag = fx_seed() + (uint64_t)i;
        d[i].out = fx_memory(f, d[i].from->host, WINDOW * SLOT, 0);
        d[i].in = fx_memory(f, d[i].to->host, WINDOW * SLOT, ND_MR_FLAG_ALLOW_LOCAL_WRITE);
    }
    uint64_t deadline = fx_deadline();
    for (bool busy = true; busy;) {
        busy = false;
        for (int i = 0; i < 2 * PAIRS; i++) {
            pump(&d[i], COUNT);
            busy |= d[i].received < COUNT || d[i].done < COUNT;
        }
        CHECK(host_now_ms() < deadline);
    }
    fx_end(f);
}

/* Large messages at the same time in both directions: neither side may wait for the other. */
static void large_messages_both_ways_at_once_do_not_block(void) {
    struct fx_pair_options o = { .depth = 8 };
    struct stage s = open_stage(&o, MIB(32));
    for (int i = 0; i < 4; i++) {
        RECEIVE(&s.p->a, CTX(i), s.a, MIB(16) + MIB(4) * (size_t)i, MIB(4));
        RECEIVE(&s.p->b, CTX(i), s.b, MIB(16) + MIB(4) * (size_t)i, MIB(4));
    }
    fx_fill(s.a->bytes, MIB(16), 20, 1, 0);
    fx_fill(s.b->bytes, MIB(16), 20, 2, 0);
    for (int i = 0; i < 4; i++) {
        SEND(&s.p->a, CTX(i), s.a, MIB(4) * (size_t)i, MIB(4), 0);
        SEND(&s.p->b, CTX(i), s.b, MIB(4) * (size_t)i, MIB(4), 0);
    }
    for (int i = 0; i < 4; i++) {
        EXPECT_OK(s.f, &s.p->a, Send, CTX(i), MIB(4));
        EXPECT_OK(s.f, &s.p->b, Send, CTX(i), MIB(4));
        EXPECT_OK(s.f, &s.p->a, Receive, CTX(i), MIB(4));
        EXPECT_OK(s.f, &s.p->b, Receive, CTX(i), MIB(4));
    }
    CHECK_DATA(s.a->bytes + MIB(16), MIB(16), 20, 2, 0);
    CHECK_DATA(s.b->bytes + MIB(16), MIB(16), 20, 1, 0);
    fx_end(s.f);
}

static void reads_both_ways_at_once_do_not_block(void) {
    struct fx_pair_options o = { .depth = 16, .read_limit = 2 };
    struct stage s = open_stage(&o, MIB(16));
    fx_fill(s.a->bytes, MIB(8), 21, 1, 0);
    fx_fill(s.b->bytes, MIB(8), 21, 2, 0);
    for (size_t i = 0; i < 8; i++) {
        READ(&s.p->a, CTX(i), s.a, MIB(8) + MIB(i), MIB(1), s.b, MIB(i), 0);
        READ(&s.p->b, CTX(i), s.b, MIB(8) + MIB(i), MIB(1), s.a, MIB(i), 0);
    }
    for (size_t i = 0; i < 8; i++) {
        EXPECT_OK(s.f, &s.p->a, Read, CTX(i), MIB(1));
        EXPECT_OK(s.f, &s.p->b, Read, CTX(i), MIB(1));
    }
    CHECK_DATA(s.a->bytes + MIB(8), MIB(8), 21, 2, 0);
    CHECK_DATA(s.b->bytes + MIB(8), MIB(8), 21, 1, 0);
    fx_end(s.f);
}

/* Posting is no copying: many large requests over one buffer are accepted at once. */
static void many_large_requests_are_accepted_at_once(void) {
    struct fx_pair_options o = { .depth = 128 };
    struct stage s = open_stage(&o, MIB(4));
    for (int i = 0; i < 128; i++)
        RECEIVE(&s.p->b, CTX(i), s.b, 0, MIB(4));
    fx_fill(s.a->bytes, MIB(4), 22, 1, 0);
    for (int i = 0; i < 128; i++)
        WRITE(&s.p->a, CTX(i), s.a, 0, MIB(4), s.b, 0, 0);
    for (int i = 0; i < 128; i++)
        EXPECT_OK(s.f, &s.p->a, Write, CTX(i), MIB(4));
    SEND(&s.p->a, CTX(0), s.a, 0, MIB(4), 0);
    EXPECT_OK(s.f, &s.p->b, Receive, CTX(0), MIB(4));
    CHECK_DATA(s.b->bytes, MIB(4), 22, 1, 0);
    fx_end(s.f);
}

/* ---- memory that changes while it is on its way ---- */

struct scribbler {
    uint64_t *words;
    size_t count;
    uint32_t stop; /* atomic */
};

static UNSYNCHRONISED void scribble(void *arg) {
    struct scribbler *s = arg;
    for (uint64_t n = 0; !__atomic_load_n(&s->stop, __ATOMIC_RELAXED); n++)
        ((volatile uint64_t *)s->words)[n * 257 % s->count] = n;
}

/* Which of the values arrive is anybody's guess, but the requests succeed: an application may look
 * at counters that another one keeps changing. what: 0 Read of, 1 Write from, 2 Write into, 3 Send
 * from, 4 Receive into memory that changes. */
static void access_memory_that_changes(int what) {
    static const size_t lens[] = { 8, 200, 600, 5000, 70000, 1000000 };
    struct stage s = open_stage(NULL, MIB(1));
    bool source_changes = what == 1 || what == 3; /* else side b's */
    struct fx_memory *m = source_changes ? s.a : s.b;
    struct scribbler scribbler = { .words = (uint64_t *)m->bytes, .count = MIB(1) / 8 };
    struct host_thread *thread = host_thread_start(scribble, &scribbler);
    CHECK(thread != NULL);
    HRESULT worst = ND_SUCCESS;
    for (int round = 0; round < HOST_ROUNDS(40) && worst == ND_SUCCESS; round++)
        for (size_t i = 0; i < COUNT_OF(lens) && worst == ND_SUCCESS; i++) {
            ND2_RESULT r;
            size_t len = lens[i];
            if (what == 0) worst = fx_read(&s.p->a, NULL, s.a, 0, len, s.b, 0, 0);
            if (what == 1 || what == 2) worst = fx_write(&s.p->a, NULL, s.a, 0, len, s.b, 0, 0);
            if (what >= 3) {
                worst = fx_receive(&s.p->b, NULL, s.b, 0, len);
                if (worst == ND_SUCCESS) worst = fx_send(&s.p->a, NULL, s.a, 0, len, 0);
                if (worst == ND_SUCCESS)
                    worst = fx_next_by(s.p->b.receive_cq, &r, fx_deadline()) ? r.Status
                                                                             : ND_UNSUCCESSFUL;
            }
            if (worst == ND_SUCCESS)
                worst =
                    fx_next_by(s.p->a.initiator_cq, &r, fx_deadline()) ? r.Status : ND_UNSUCCESSFUL;
        }
    __atomic_store_n(&scribbler.stop, 1, __ATOMIC_RELAXED);
    host_thread_join(thread);
    CHECK_HR(worst, ND_SUCCESS);
    fx_end(s.f);
}

static void read_of_memory_that_changes_succeeds(void) {
    access_memory_that_changes(0);
}

static void write_from_memory_that_changes_succeeds(void) {
    access_memory_that_changes(1);
}

static void write_into_memory_that_changes_succeeds(void) {
    access_memory_that_changes(2);
}

static void send_from_memory_that_changes_succeeds(void) {
    access_memory_that_changes(3);
}

static void receive_into_memory_that_changes_succeeds(void) {
    access_memory_that_changes(4);
}

/* ---- several threads ---- */

struct poster {
    struct fx_side *side;
    struct fx_memory *from, *to;
    size_t base; /* of this thread's share of the target */
    uint64_t tag;
    HRESULT worst;
};

static void post_writes(void *arg) {
    struct poster *t = arg;
    for (int i = 0; i < 300 && t->worst == ND_SUCCESS;) {
        HRESULT hr = fx_write(t->side, CTX(t->tag), t->from, t->base + (size_t)i * 64, 64, t->to,
                              t->base + (size_t)i * 64, 0);
        if (hr == ND_SUCCESS)
            i++;
        else if (hr != ND_NO_MORE_ENTRIES)
            t->worst = hr;
        else
            Sleep(0);
    }
}

static void several_threads_post_on_one_queue_pair(void) {
    enum { THREADS = 3, EACH = 300 };
    /* Slots come back before results are read, so the results need room of their own. */
    struct fx_pair_options o = { .depth = 64, .cq_depth = THREADS * EACH };
    struct stage s = open_stage(&o, THREADS * EACH * 64);
    struct poster t[THREADS];
    struct host_thread *threads[THREADS];
    fx_fill(s.a->bytes, s.a->len, 23, 1, 0);
    for (int i = 0; i < THREADS; i++) {
        t[i] = (struct poster){ .side = &s.p->a,
                                .from = s.a,
                                .to = s.b,
                                .base = (size_t)i * EACH * 64,
                                .tag = (uint64_t)i };
        CHECK((threads[i] = host_thread_start(post_writes, &t[i])) != NULL);
    }
    int count[THREADS] = { 0 };
    bool ok = true;
    for (int n = 0; n < THREADS * EACH && ok; n++) {
        ND2_RESULT r;
        ok = fx_next_by(s.p->a.initiator_cq, &r, fx_deadline()) && r.Status == ND_SUCCESS;
        if (ok) count[(uintptr_t)r.RequestContext % THREADS]++;
    }
    for (int i = 0; i < THREADS; i++)
        host_thread_join(threads[i]);
    CHECK(ok);
    for (int i = 0; i < THREADS; i++) {
        CHECK_HR(t[i].worst, ND_SUCCESS);
        CHECK_EQ(count[i], EACH);
    }
    SYNC(s.f, &s.p->a, &s.p->b);
    CHECK_DATA(s.b->bytes, s.b->len, 23, 1, 0);
    fx_end(s.f);
}

CONFORM_MAIN(
    TEST(send_of_every_size_arrives_whole), TEST(write_of_every_size_arrives_whole),
    TEST(read_of_every_size_arrives_whole), TEST(passive_side_reads_and_writes_too),
    TEST(receive_larger_than_the_message_keeps_the_rest),
    TEST(many_sges_of_random_lengths_are_one_message),
    TEST(sges_of_different_regions_are_one_message), TEST(sge_array_may_be_reused_after_the_call),
    TEST(requests_of_zero_bytes_complete), TEST(empty_message_into_a_large_receive_has_zero_bytes),
    TEST(empty_messages_keep_their_place_among_others), TEST(inline_data_is_taken_during_the_call),
    TEST(inline_takes_any_number_of_sges), TEST(inline_requests_that_wait_keep_their_bytes),
    TEST(fenced_send_leaves_after_the_read_is_done), TEST(fenced_write_does_not_overtake_reads),
    TEST(fence_on_invalidate_waits_for_reads), TEST(receive_shows_that_earlier_writes_are_placed),
    TEST(results_come_in_posting_order_whatever_the_kind), TEST(last_byte_of_a_write_appears_last),
    TEST(writes_appear_in_posting_order), TEST(aligned_word_is_written_as_one),
    TEST(write_ping_pong_by_memory_works), TEST(target_that_makes_no_call_serves_random_access),
    TEST(more_reads_than_the_limit_wait_their_turn), TEST(deep_queue_of_small_writes_arrives),
    TEST(seventy_thousand_messages_arrive_in_order),
    TEST(small_message_after_a_long_stream_wakes_who_sleeps),
    TEST(traffic_both_ways_on_several_connections_stays_intact),
    TEST(large_messages_both_ways_at_once_do_not_block), TEST(reads_both_ways_at_once_do_not_block),
    TEST(many_large_requests_are_accepted_at_once), TEST(read_of_memory_that_changes_succeeds),
    TEST(write_from_memory_that_changes_succeeds), TEST(write_into_memory_that_changes_succeeds),
    TEST(send_from_memory_that_changes_succeeds), TEST(receive_into_memory_that_changes_succeeds),
    TEST(several_threads_post_on_one_queue_pair))
