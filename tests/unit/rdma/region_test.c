/* SPDX-License-Identifier: MIT
 * Regions, windows and the token table.
 */
#include <stdlib.h>
#include "os/prim/pages.h"
#include "os/prim/thread.h"
#include "rdma/connector.h"
#include "rdma/qp.h"
#include "rig.h"
#include "support/portable.h"

static sn_status try_access(struct rd_qp *qp, uint32_t token, const void *addr, size_t len,
                            enum tp_right right) {
    struct tp_access acc;
    sn_status st = rd_upcalls.access(qp, token, (uint64_t)(uintptr_t)addr, len, right, &acc);
    if (st == SN_OK) {
        CHECK_PTR(acc.ptr, addr);
        CHECK_EQ(acc.len, len);
        rd_upcalls.access_end(&acc);
    }
    return st;
}

static struct rd_region *registered(struct rd_adapter *ad, void *buf, size_t len, uint32_t flags) {
    struct rd_region *r;
    CHECK_ST(rd_region_create(ad, &r), SN_OK);
    CHECK_ST(rd_region_register(r, buf, len, flags), SN_OK);
    return r;
}

/* ---- register ---- */

static void register_bad_arguments_are_refused(void) {
    struct rig r;
    struct rd_region *m;
    uint8_t *buf;
    rig_objects(&r);
    buf = r.buf;
    CHECK_ST(rd_region_create(r.ad, &m), SN_OK);
    CHECK_EQ(rd_region_local_token(m), 0);
    CHECK_EQ(rd_region_remote_token(m), 0);
    CHECK_ST(rd_region_register(m, NULL, 0, 0), SN_E_PARAM);
    CHECK_ST(rd_region_register(m, buf, 0, 0), SN_E_BUFFER_SIZE);
    CHECK_ST(rd_region_register(m, NULL, 5, 0), SN_E_PARAM);
    CHECK_ST(rd_region_register(m, buf, 5, 0x10), SN_E_PARAM);
    CHECK_ST(rd_region_register(m, buf, (size_t)1 << 48, 0), SN_E_PARAM);
    CHECK_ST(rd_region_register(m, (void *)(uintptr_t)(UINTPTR_MAX - 4), 100, 0), SN_E_FAULT);
    CHECK_ST(rd_region_register(m, (void *)(uintptr_t)64, 8, 0), SN_E_FAULT);
    CHECK_ST(rd_region_deregister(m), SN_E_REQUEST);
    CHECK_ST(rd_region_register(m, buf, 5, 0), SN_OK);
    CHECK_ST(rd_region_register(m, buf, 5, 0), SN_E_REQUEST);
    CHECK_ST(rd_region_deregister(m), SN_OK);
    CHECK_EQ(rd_region_local_token(m), 0);
    CHECK_ST(rd_region_deregister(m), SN_E_REQUEST);
    rd_region_destroy(m);
    rig_down(&r);
}

static void register_unmapped_or_read_only_memory_is_a_fault(void) {
    struct rig r;
    struct rd_region *m;
    size_t page = os_page_size();
    rig_objects(&r);
    uint8_t *p = test_pages(3 * page);
    CHECK(p != NULL);
    CHECK(test_pages_readonly(p, 2 * page));
    CHECK(test_pages_hole(p + 2 * page, page));
    CHECK_ST(rd_region_create(r.ad, &m), SN_OK);
    CHECK_ST(rd_region_register(m, p, 3 * page, 0), SN_E_FAULT);
    CHECK_ST(rd_region_register(m, p, page, RD_LOCAL_WRITE), SN_E_FAULT);
    CHECK_ST(rd_region_register(m, p, page, RD_REMOTE_WRITE), SN_E_FAULT);
    CHECK_ST(rd_region_register(m, p, page, RD_READ_SINK), SN_E_FAULT);
    CHECK_ST(rd_region_register(m, p, 2 * page, RD_REMOTE_READ), SN_OK);
    rd_region_destroy(m);
    test_pages_free(p, 3 * page);
    rig_down(&r);
}

static void rights_follow_the_flags(void) {
    static const struct {
        uint32_t flags;
        bool local_write, sink, remote_read, remote_write;
    } rows[] = {
        { 0, false, false, false, false },
        { RD_LOCAL_WRITE, true, true, false, false },
        { RD_READ_SINK, false, true, false, false },
        { RD_REMOTE_READ, false, false, true, false },
        { RD_REMOTE_WRITE, true, true, false, true },
        { RD_LOCAL_WRITE | RD_REMOTE_READ | RD_REMOTE_WRITE, true, true, true, true },
    };
    struct rig r;
    rig_objects(&r);
    for (size_t i = 0; i < SN_ARRAY_LEN(rows); i++) {
        struct rd_region *m = registered(r.ad, r.buf, 100, rows[i].flags);
        uint32_t lt = rd_region_local_token(m), rt = rd_region_remote_token(m);
        CHECK(lt != rt && lt != 0 && rt != 0);
#define EXPECT(token, right, ok)                                                                   \
    CHECK_ST(try_access(r.a.qp, token, r.buf, 100, right), (ok) ? SN_OK : SN_E_RIGHTS)
        EXPECT(lt, TP_LOCAL_READ, true);
        EXPECT(lt, TP_LOCAL_WRITE, rows[i].local_write);
        EXPECT(lt, TP_READ_SINK, rows[i].sink);
        EXPECT(rt, TP_REMOTE_READ, rows[i].remote_read);
        EXPECT(rt, TP_REMOTE_WRITE, rows[i].remote_write);
#undef EXPECT
        /* Neither token works in the place of the other. */
        CHECK_ST(try_access(r.a.qp, lt, r.buf, 1, TP_REMOTE_READ), SN_E_TOKEN);
        CHECK_ST(try_access(r.a.qp, rt, r.buf, 1, TP_LOCAL_READ), SN_E_TOKEN);
        rd_region_destroy(m);
    }
    rig_down(&r);
}

static void range_is_checked_to_the_byte(void) {
    struct rig r;
    rig_objects(&r);
    struct rd_region *m = registered(r.ad, r.buf + 100, 50, 0);
    uint32_t t = rd_region_local_token(m);
    struct rd_qp *qp = r.a.qp;
    CHECK_ST(try_access(qp, t, r.buf + 100, 50, TP_LOCAL_READ), SN_OK);
    CHECK_ST(try_access(qp, t, r.buf + 149, 1, TP_LOCAL_READ), SN_OK);
    CHECK_ST(try_access(qp, t, r.buf + 150, 0, TP_LOCAL_READ), SN_OK);
    CHECK_ST(try_access(qp, t, r.buf + 151, 0, TP_LOCAL_READ), SN_E_RANGE);
    CHECK_ST(try_access(qp, t, r.buf + 100, 51, TP_LOCAL_READ), SN_E_RANGE);
    CHECK_ST(try_access(qp, t, r.buf + 99, 1, TP_LOCAL_READ), SN_E_RANGE);
    CHECK_ST(try_access(qp, t, r.buf + 150, 1, TP_LOCAL_READ), SN_E_RANGE);
    CHECK_ST(try_access(qp, t, r.buf + 110, SIZE_MAX, TP_LOCAL_READ), SN_E_RANGE);
    CHECK_ST(try_access(qp, t, r.buf + 110, SIZE_MAX - 109, TP_LOCAL_READ), SN_E_RANGE);
    CHECK_ST(try_access(qp, t, (void *)(uintptr_t)UINTPTR_MAX, 2, TP_LOCAL_READ), SN_E_RANGE);
    rd_region_destroy(m);
    rig_down(&r);
}

static void same_buffer_many_regions_have_own_rights(void) {
    struct rig r;
    rig_objects(&r);
    struct rd_region *ro = registered(r.ad, r.buf, 100, RD_REMOTE_READ);
    struct rd_region *wo = registered(r.ad, r.buf, 100, RD_REMOTE_WRITE);
    CHECK_ST(try_access(r.a.qp, rd_region_remote_token(ro), r.buf, 1, TP_REMOTE_WRITE),
             SN_E_RIGHTS);
    CHECK_ST(try_access(r.a.qp, rd_region_remote_token(wo), r.buf, 1, TP_REMOTE_WRITE), SN_OK);
    rd_region_destroy(ro);
    rd_region_destroy(wo);
    rig_down(&r);
}

/* ---- tokens ---- */

static void stale_tokens_fail(void) {
    struct rig r;
    enum { ROUNDS = 5000 };
    uint32_t *old = calloc(2 * ROUNDS, sizeof *old);
    CHECK(old != NULL);
    rig_objects(&r);
    struct rd_region *m;
    CHECK_ST(rd_region_create(r.ad, &m), SN_OK);
    for (int i = 0; i < ROUNDS; i++) {
        CHECK_ST(rd_region_register(m, r.buf, 100, RD_REMOTE_READ), SN_OK);
        old[2 * i] = rd_region_local_token(m);
        old[2 * i + 1] = rd_region_remote_token(m);
        CHECK_ST(rd_region_deregister(m), SN_OK);
        CHECK_ST(try_access(r.a.qp, old[2 * i], r.buf, 1, TP_LOCAL_READ), SN_E_TOKEN);
        CHECK_ST(try_access(r.a.qp, old[2 * i + 1], r.buf, 1, TP_REMOTE_READ), SN_E_TOKEN);
    }
    /* None of them came up twice. */
    CHECK_ST(rd_region_register(m, r.buf, 100, RD_REMOTE_READ), SN_OK);
    for (int i = 0; i < 2 * ROUNDS; i++) {
        CHECK(old[i] != rd_region_local_token(m) && old[i] != rd_region_remote_token(m));
        CHECK(try_access(r.a.qp, old[i], r.buf, 1, TP_LOCAL_READ) == SN_E_TOKEN);
    }
    rd_region_destroy(m);
    free(old);
    rig_down(&r);
}

/* ---- copying out without counting ---- */

static sn_status copy_from(struct rd_qp *qp, uint32_t token, const void *addr, size_t len) {
    static uint8_t out[128];
    memset(out, 0xEE, sizeof out);
    sn_status st = rd_upcalls.copy_from(qp, token, (uint64_t)(uintptr_t)addr, len, out);
    if (st == SN_OK) CHECK(memcmp(out, addr, len) == 0 && out[len] == 0xEE);
    return st;
}

static void copy_from_checks_what_access_checks(void) {
    struct rig r;
    rig_objects(&r);
    struct rd_region *m = registered(r.ad, r.buf + 100, 50, RD_REMOTE_READ);
    uint32_t t = rd_region_local_token(m);
    struct rd_qp *qp = r.a.qp;
    for (int i = 0; i < 50; i++)
        r.buf[100 + i] = (uint8_t)i;
    CHECK_ST(copy_from(qp, t, r.buf + 100, 50), SN_OK);
    CHECK_ST(copy_from(qp, t, r.buf + 149, 1), SN_OK);
    CHECK_ST(copy_from(qp, t, r.buf + 150, 0), SN_OK);
    CHECK_ST(copy_from(qp, t, r.buf + 100, 51), SN_E_RANGE);
    CHECK_ST(copy_from(qp, t, r.buf + 99, 1), SN_E_RANGE);
    CHECK_ST(copy_from(qp, rd_region_remote_token(m), r.buf + 100, 1), SN_E_TOKEN);
    CHECK_ST(copy_from(qp, 0, r.buf + 100, 1), SN_E_TOKEN);
    CHECK_ST(copy_from(qp, t + 1, r.buf + 100, 1), SN_E_TOKEN);
    CHECK_ST(rd_region_deregister(m), SN_OK);
    CHECK_ST(copy_from(qp, t, r.buf + 100, 1), SN_E_TOKEN);
    rd_region_destroy(m);
    void *gone = os_pages_alloc(4096);
    CHECK(gone != NULL);
    m = registered(r.ad, gone, 4096, 0);
    os_pages_free(gone, 4096);
    CHECK_ST(copy_from(qp, rd_region_local_token(m), gone, 8), SN_E_FAULT);
    rd_region_destroy(m);
    rig_down(&r);
}

/* ---- copying in ---- */

static bool copy_to(struct rd_qp *qp, uint32_t token, void *addr, size_t len) {
    static const uint8_t in[64] = "what arrives";
    if (!rd_upcalls.copy_to(qp, token, (uint64_t)(uintptr_t)addr, len, in)) return false;
    CHECK(memcmp(addr, in, len) == 0);
    memset(addr, 0, len);
    return true;
}

static void copy_to_checks_what_access_checks(void) {
    struct rig r;
    rig_objects(&r);
    struct rd_region *m = registered(r.ad, r.buf + 100, 50, RD_LOCAL_WRITE);
    struct rd_region *readable = registered(r.ad, r.buf + 200, 50, RD_REMOTE_READ);
    uint32_t t = rd_region_local_token(m), before;
    struct rd_qp *qp = r.a.qp;
    memset(r.buf, 0, 300);
    CHECK(copy_to(qp, t, r.buf + 100, 50));
    CHECK(copy_to(qp, t, r.buf + 149, 1));
    CHECK(copy_to(qp, t, r.buf + 150, 0));
    CHECK(!copy_to(qp, t, r.buf + 100, 51));
    CHECK(!copy_to(qp, t, r.buf + 99, 1));
    CHECK(!copy_to(qp, rd_region_local_token(readable), r.buf + 200, 1));
    CHECK(!copy_to(qp, rd_region_remote_token(m), r.buf + 100, 1));
    CHECK(!copy_to(qp, 0, r.buf + 100, 1));
    CHECK(!copy_to(qp, t + 1, r.buf + 100, 1));
    CHECK(copy_to(qp, t, r.buf + 100, 1));    /* another token was looked for in between */
    CHECK_ST(rd_region_deregister(m), SN_OK); /* nothing was left counted */
    CHECK(!copy_to(qp, t, r.buf + 100, 1));
    before = t;
    CHECK_ST(rd_region_register(m, r.buf + 100, 50, RD_LOCAL_WRITE), SN_OK);
    CHECK(!copy_to(qp, before, r.buf + 100, 1));
    CHECK(copy_to(qp, rd_region_local_token(m), r.buf + 100, 1));
    for (int i = 0; i < 300; i++)
        CHECK_EQ(r.buf[i], 0);
    rd_region_destroy(m);
    rd_region_destroy(readable);
    void *gone = os_pages_alloc(4096);
    CHECK(gone != NULL);
    m = registered(r.ad, gone, 4096, RD_LOCAL_WRITE);
    os_pages_free(gone, 4096);
    CHECK(!copy_to(qp, rd_region_local_token(m), gone, 8));
    rd_region_destroy(m);
    rig_down(&r);
}

enum { FLICKER_ROUNDS = 2000, GOOD = 0x5A, SPOILT = 0xA5 };

struct flicker {
    struct rig r;
    os_atomic_u32 token, stop, wrong, copied;
};

/* Whatever was copied with success is what was there while the memory was registered. */
static void copy_all_the_time(void *arg) {
    struct flicker *f = arg;
    uint8_t out[96];
    while (!os_u32_load_acquire(&f->stop)) {
        uint32_t token = os_u32_load_acquire(&f->token);
        if (rd_upcalls.copy_from(f->r.a.qp, token, (uint64_t)(uintptr_t)f->r.buf, sizeof out,
                                 out) != SN_OK)
            continue;
        for (size_t i = 0; i < sizeof out; i++)
            if (out[i] != GOOD) os_u32_store_relaxed(&f->wrong, 1);
        os_u32_fetch_add_relaxed(&f->copied, 1);
    }
}

/* As one who owns the memory does; atomic for the sanitizer. */
static void fill(uint8_t *p, uint8_t value) {
    for (size_t i = 0; i < 96; i++)
        __atomic_store_n(&p[i], value, __ATOMIC_RELAXED);
}

static void copy_from_gives_nothing_of_what_was_deregistered(void) {
    static struct flicker f;
    os_thread t;
    rig_objects(&f.r);
    struct rd_region *m;
    CHECK_ST(rd_region_create(f.r.ad, &m), SN_OK);
    CHECK_ST(os_thread_start(&t, "copies", copy_all_the_time, &f), SN_OK);
    for (int i = 0; i < FLICKER_ROUNDS; i++) {
        fill(f.r.buf, GOOD);
        CHECK_ST(rd_region_register(m, f.r.buf, 96, 0), SN_OK);
        os_u32_store_release(&f.token, rd_region_local_token(m));
        if (i % 16 == 0) os_thread_yield();
        CHECK_ST(rd_region_deregister(m), SN_OK);
        fill(f.r.buf, SPOILT);
    }
    fill(f.r.buf, GOOD);
    CHECK_ST(rd_region_register(m, f.r.buf, 96, 0), SN_OK);
    os_u32_store_release(&f.token, rd_region_local_token(m));
    uint32_t before = os_u32_load_relaxed(&f.copied);
    while (os_u32_load_relaxed(&f.copied) == before)
        os_thread_yield();
    os_u32_store_release(&f.stop, 1);
    os_thread_join(t);
    CHECK_EQ(os_u32_load_relaxed(&f.wrong), 0);
    rd_region_destroy(m);
    rig_down(&f.r);
}

static int compare_u32(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void ten_thousand_regions_have_distinct_scattered_tokens(void) {
    enum { N = 10000 };
    struct rig r;
    rig_objects(&r);
    struct rd_region **m = calloc(N, sizeof(void *));
    uint32_t *tokens = calloc(2 * N, sizeof *tokens);
    CHECK(m && tokens);
    for (int i = 0; i < N; i++) {
        m[i] = registered(r.ad, r.buf, RIG_BUF, 0);
        tokens[2 * i] = rd_region_local_token(m[i]);
        tokens[2 * i + 1] = rd_region_remote_token(m[i]);
    }
    qsort(tokens, 2 * N, sizeof *tokens, compare_u32);
    uint32_t close_by = 0;
    for (int i = 1; i < 2 * N; i++) {
        CHECK(tokens[i] != tokens[i - 1]);
        if (tokens[i] - tokens[i - 1] == 1) close_by++;
    }
    CHECK(tokens[0] != 0 && tokens[2 * N - 1] != UINT32_MAX);
    CHECK(close_by < 100); /* neighbours in a space of 2^32: expected 0.1 */
    for (int i = 0; i < N; i++)
        CHECK_ST(try_access(r.a.qp, rd_region_local_token(m[i]), r.buf, 1, TP_LOCAL_READ), SN_OK);
    for (int i = 0; i < N; i++)
        rd_region_destroy(m[i]);
    free(m);
    free(tokens);
    rig_down(&r);
}

static void guessed_tokens_fail(void) {
    struct rig r;
    rig_objects(&r);
    uint32_t valid[2] = { rd_region_local_token(r.mem), rd_region_remote_token(r.mem) };
    uint32_t hits = 0, x = 12345;
    static const uint32_t special[] = { 0, UINT32_MAX, RD_TOKEN_MARK, 1, 0x80000000 };
    for (size_t i = 0; i < SN_ARRAY_LEN(special); i++)
        if (special[i] != valid[0])
            CHECK_ST(try_access(r.a.qp, special[i], r.buf, 1, TP_LOCAL_READ), SN_E_TOKEN);
    for (int i = 0; i < 200000; i++) {
        x = x * 1664525u + 1013904223u;
        if (x == valid[0] || x == valid[1]) continue;
        if (try_access(r.a.qp, x, r.buf, 1, TP_LOCAL_READ) != SN_E_TOKEN) hits++;
    }
    for (uint32_t d = 1; d < 2000; d++) { /* around a valid one */
        if (try_access(r.a.qp, valid[0] + d, r.buf, 1, TP_LOCAL_READ) != SN_E_TOKEN &&
            valid[0] + d != valid[1])
            hits++;
    }
    CHECK_EQ(hits, 0);
    rig_down(&r);
}

static void tokens_of_another_adapter_fail(void) {
    struct rig r;
    rig_objects(&r);
    struct rd_adapter *other = rig_adapter();
    struct rd_region *m = registered(other, r.buf, 100, RD_REMOTE_READ);
    if (rd_region_local_token(m) != rd_region_local_token(r.mem))
        CHECK_ST(try_access(r.a.qp, rd_region_local_token(m), r.buf, 1, TP_LOCAL_READ), SN_E_TOKEN);
    rd_region_destroy(m);
    rd_adapter_close(other);
    rig_down(&r);
}

/* ---- windows ---- */

struct windowed {
    struct rig r;
    struct rd_window *w;
    struct rd_region *m; /* local write only */
};

static void windowed_up(struct windowed *x) {
    rig_up(&x->r);
    CHECK_ST(rd_window_create(x->r.ad, &x->w), SN_OK);
    x->m = registered(x->r.ad, x->r.buf, 1000, RD_LOCAL_WRITE);
}

static void windowed_down(struct windowed *x) {
    if (x->w) rd_window_destroy(x->w);
    if (x->m) rd_region_destroy(x->m);
    rig_down(&x->r);
}

static sn_status bind_to(struct windowed *x, uint32_t rights, uint32_t flags) {
    return rd_qp_bind(x->r.a.qp, CTX(1), x->m, x->w, x->r.buf + 10, 100, rights, flags);
}

static void bind_impossible_is_refused_at_once(void) {
    struct windowed x;
    windowed_up(&x);
    struct rd_qp *qp = x.r.a.qp;
    uint8_t *b = x.r.buf;
    struct rd_region *empty, *ro = registered(x.r.ad, b, 100, RD_REMOTE_READ);
    CHECK_ST(rd_region_create(x.r.ad, &empty), SN_OK);
    CHECK_ST(rd_qp_bind(qp, NULL, empty, x.w, b, 1, 0, 0), SN_E_TOKEN);
    CHECK_ST(rd_qp_bind(qp, NULL, x.m, x.w, b, 1001, 0, 0), SN_E_RANGE);
    CHECK_ST(rd_qp_bind(qp, NULL, x.m, x.w, b - 1, 10, 0, 0), SN_E_RANGE);
    CHECK_ST(rd_qp_bind(qp, NULL, x.m, x.w, b + 1000, 1, 0, 0), SN_E_RANGE);
    CHECK_ST(rd_qp_bind(qp, NULL, x.m, x.w, b, SIZE_MAX, 0, 0), SN_E_RANGE);
    CHECK_ST(rd_qp_bind(qp, NULL, ro, x.w, b, 10, RD_REMOTE_WRITE, 0), SN_E_RIGHTS);
    CHECK_ST(rd_qp_bind(qp, NULL, x.m, x.w, b, 10, RD_LOCAL_WRITE, 0), SN_E_PARAM);
    struct rd_adapter *other = rig_adapter();
    struct rd_window *foreign_w;
    struct rd_region *foreign_m = registered(other, b, 10, 0);
    CHECK_ST(rd_window_create(other, &foreign_w), SN_OK);
    CHECK_ST(rd_qp_bind(qp, NULL, foreign_m, x.w, b, 1, 0, 0), SN_E_PARAM);
    CHECK_ST(rd_qp_bind(qp, NULL, x.m, foreign_w, b, 1, 0, 0), SN_E_PARAM);
    CHECK_ST(rd_qp_invalidate(qp, NULL, foreign_w, 0), SN_E_PARAM);
    rd_window_destroy(foreign_w);
    rd_region_destroy(foreign_m);
    rd_adapter_close(other);
    CHECK_EQ(rd_window_token(x.w), 0);
    CHECK_ST(bind_to(&x, 0, 0), SN_OK); /* no rights: legal */
    CHECK_ST(bind_to(&x, 0, 0), SN_E_BUSY);
    CHECK_CQE(x.r.a.cq, RD_BIND, 1, SN_OK, 0);
    CHECK_NO_CQE(x.r.a.cq);
    rd_region_destroy(empty);
    rd_region_destroy(ro);
    windowed_down(&x);
}

static void window_rights_and_bounds_are_its_own(void) {
    struct windowed x;
    windowed_up(&x);
    CHECK_ST(bind_to(&x, RD_REMOTE_READ | RD_REMOTE_WRITE, 0), SN_OK);
    uint32_t t = rd_window_token(x.w);
    uint8_t *b = x.r.buf;
    CHECK(t != 0 && t != rd_region_remote_token(x.m) && t != rd_region_local_token(x.m));
    CHECK_ST(try_access(x.r.a.qp, t, b + 10, 100, TP_REMOTE_WRITE), SN_OK);
    CHECK_ST(try_access(x.r.a.qp, t, b + 10, 100, TP_REMOTE_READ), SN_OK);
    CHECK_ST(try_access(x.r.a.qp, t, b + 10, 101, TP_REMOTE_READ), SN_E_RANGE);
    CHECK_ST(try_access(x.r.a.qp, t, b + 9, 1, TP_REMOTE_READ), SN_E_RANGE);
    CHECK_ST(try_access(x.r.a.qp, t, b + 10, 1, TP_LOCAL_READ), SN_E_TOKEN);
    CHECK_ST(try_access(x.r.b.qp, t, b + 10, 1, TP_REMOTE_READ), SN_E_PD); /* not its pair */
    CHECK_ST(rd_qp_invalidate(x.r.a.qp, CTX(2), x.w, 0), SN_OK);
    CHECK_EQ(rd_window_token(x.w), 0);
    CHECK_ST(try_access(x.r.a.qp, t, b + 10, 1, TP_REMOTE_READ), SN_E_TOKEN);
    CHECK_ST(bind_to(&x, RD_REMOTE_READ, 0), SN_OK);
    CHECK(rd_window_token(x.w) != t);
    CHECK_ST(try_access(x.r.a.qp, rd_window_token(x.w), b + 10, 1, TP_REMOTE_WRITE), SN_E_RIGHTS);
    windowed_down(&x);
}

static void bind_opens_when_its_turn_comes(void) {
    struct windowed x;
    windowed_up(&x);
    fake_manual(x.r.ca);
    CHECK_ST(rd_qp_read(x.r.a.qp, CTX(5), NULL, 0, 0, 0, 0), SN_OK);
    CHECK_ST(bind_to(&x, RD_REMOTE_READ, RD_POST_FENCE), SN_OK);
    uint32_t t = rd_window_token(x.w);
    CHECK(t != 0);
    CHECK_EQ(fake_take_requests(x.r.ca), 1);
    CHECK_ST(try_access(x.r.a.qp, t, x.r.buf + 10, 1, TP_REMOTE_READ), SN_E_TOKEN);
    CHECK_ST(rd_region_deregister(x.m), SN_E_BUSY); /* bound all the same */
    fake_finish(x.r.ca, 0, SN_OK);
    fake_take_requests(x.r.ca);
    CHECK_ST(try_access(x.r.a.qp, t, x.r.buf + 10, 1, TP_REMOTE_READ), SN_OK);
    CHECK_CQE(x.r.a.cq, RD_READ, 5, SN_OK, 0);
    CHECK_CQE(x.r.a.cq, RD_BIND, 1, SN_OK, 0);
    windowed_down(&x);
}

static void flushed_bind_leaves_the_window_unbound(void) {
    struct windowed x;
    windowed_up(&x);
    fake_manual(x.r.ca);
    CHECK_ST(rd_qp_read(x.r.a.qp, CTX(5), NULL, 0, 0, 0, 0), SN_OK);
    CHECK_ST(bind_to(&x, RD_REMOTE_READ, RD_POST_FENCE), SN_OK);
    fake_take_requests(x.r.ca);
    rd_qp_flush(x.r.a.qp);
    CHECK_EQ(rd_window_token(x.w), 0);
    CHECK_ST(rd_region_deregister(x.m), SN_OK);
    CHECK_CQE(x.r.a.cq, RD_READ, 5, SN_E_CANCELED, 0);
    CHECK_CQE(x.r.a.cq, RD_BIND, 1, SN_E_CANCELED, 0);
    /* In error: accepted and cancelled at once. */
    CHECK_ST(rd_region_register(x.m, x.r.buf, 1000, RD_LOCAL_WRITE), SN_OK);
    CHECK_ST(bind_to(&x, 0, 0), SN_OK);
    CHECK_EQ(rd_window_token(x.w), 0);
    CHECK_CQE(x.r.a.cq, RD_BIND, 1, SN_E_CANCELED, 0);
    windowed_down(&x);
}

static void region_is_busy_while_windows_are_bound(void) {
    struct windowed x;
    struct rd_window *w2;
    windowed_up(&x);
    CHECK_ST(rd_window_create(x.r.ad, &w2), SN_OK);
    CHECK_ST(bind_to(&x, RD_REMOTE_READ, 0), SN_OK);
    CHECK_ST(rd_qp_bind(x.r.b.qp, CTX(2), x.m, w2, x.r.buf, 1000, RD_REMOTE_WRITE, 0), SN_OK);
    CHECK_ST(rd_region_deregister(x.m), SN_E_BUSY);
    rd_window_destroy(w2); /* unbinds silently */
    CHECK_ST(rd_region_deregister(x.m), SN_E_BUSY);
    CHECK_ST(rd_qp_invalidate(x.r.a.qp, CTX(3), x.w, 0), SN_OK);
    CHECK_ST(rd_region_deregister(x.m), SN_OK);
    windowed_down(&x);
}

static void destroyed_region_invalidates_its_windows(void) {
    struct windowed x;
    windowed_up(&x);
    CHECK_ST(bind_to(&x, RD_REMOTE_READ, 0), SN_OK);
    uint32_t t = rd_window_token(x.w);
    rd_region_destroy(x.m);
    x.m = NULL;
    CHECK_EQ(rd_window_token(x.w), 0);
    CHECK_ST(try_access(x.r.a.qp, t, x.r.buf + 10, 1, TP_REMOTE_READ), SN_E_TOKEN);
    CHECK_CQE(x.r.a.cq, RD_BIND, 1, SN_OK, 0);
    CHECK_ST(rd_qp_invalidate(x.r.a.qp, CTX(2), x.w, 0), SN_OK);
    CHECK_CQE(x.r.a.cq, RD_INVALIDATE, 2, SN_E_REQUEST, 0);
    windowed_down(&x);
}

static void destroyed_pair_unbinds_its_windows(void) {
    struct windowed x;
    windowed_up(&x);
    CHECK_ST(bind_to(&x, RD_REMOTE_READ, 0), SN_OK);
    rd_qp_destroy(x.r.a.qp);
    x.r.a.qp = NULL;
    CHECK_EQ(rd_window_token(x.w), 0);
    CHECK_ST(rd_region_deregister(x.m), SN_OK);
    windowed_down(&x);
}

static void destroyed_window_with_posted_requests_is_safe(void) {
    struct windowed x;
    windowed_up(&x);
    fake_manual(x.r.ca);
    CHECK_ST(bind_to(&x, RD_REMOTE_READ, 0), SN_OK);
    CHECK_ST(rd_qp_invalidate(x.r.a.qp, CTX(2), x.w, 0), SN_OK);
    rd_window_destroy(x.w);
    x.w = NULL;
    CHECK_ST(rd_region_deregister(x.m), SN_OK);
    fake_take_requests(x.r.ca);
    CHECK_CQE(x.r.a.cq, RD_BIND, 1, SN_E_REQUEST, 0);
    fake_run();
    CHECK_CQE(x.r.a.cq, RD_INVALIDATE, 2, SN_E_CANCELED, 0);
    windowed_down(&x);
}

static void window_moves_to_another_pair_after_invalidate(void) {
    struct windowed x;
    windowed_up(&x);
    CHECK_ST(bind_to(&x, RD_REMOTE_READ, 0), SN_OK);
    /* The other pair cannot invalidate it. */
    CHECK_ST(rd_qp_invalidate(x.r.a.qp, CTX(2), x.w, 0), SN_OK);
    CHECK_ST(rd_qp_bind(x.r.b.qp, CTX(3), x.m, x.w, x.r.buf, 8, RD_REMOTE_READ, 0), SN_OK);
    CHECK_ST(try_access(x.r.b.qp, rd_window_token(x.w), x.r.buf, 8, TP_REMOTE_READ), SN_OK);
    CHECK_ST(try_access(x.r.a.qp, rd_window_token(x.w), x.r.buf, 8, TP_REMOTE_READ), SN_E_PD);
    windowed_down(&x);
}

static void invalidate_by_another_pair_fails(void) {
    struct windowed x;
    windowed_up(&x);
    CHECK_ST(bind_to(&x, RD_REMOTE_READ, 0), SN_OK);
    CHECK_ST(rd_qp_invalidate(x.r.b.qp, CTX(3), x.w, 0), SN_OK);
    CHECK_CQE(x.r.b.cq, RD_INVALIDATE, 3, SN_E_REQUEST, 0);
    CHECK(rd_window_token(x.w) != 0);
    windowed_down(&x);
}

static void remote_invalidate_checks_token_and_pair(void) {
    struct windowed x;
    windowed_up(&x);
    struct rd_qp *a = x.r.a.qp, *b = x.r.b.qp;
    CHECK_ST(bind_to(&x, RD_REMOTE_READ, 0), SN_OK);
    uint32_t t = rd_window_token(x.w);
    CHECK_ST(rd_upcalls.remote_invalidate(b, t), SN_E_PD);
    CHECK_ST(rd_upcalls.remote_invalidate(a, t ^ 1), SN_E_TOKEN);
    CHECK_ST(rd_upcalls.remote_invalidate(a, 0), SN_E_TOKEN);
    CHECK_ST(rd_upcalls.remote_invalidate(a, rd_region_remote_token(x.m)), SN_E_TOKEN);
    CHECK_ST(rd_upcalls.remote_invalidate(a, t), SN_OK);
    CHECK_ST(rd_upcalls.remote_invalidate(a, t), SN_E_TOKEN);
    CHECK_EQ(rd_window_token(x.w), 0);
    CHECK_ST(rd_region_deregister(x.m), SN_OK);
    windowed_down(&x);
}

static void remote_faults_end_the_connection(void) {
    struct windowed x;
    windowed_up(&x);
    CHECK_ST(rd_qp_bind(x.r.b.qp, CTX(1), x.m, x.w, x.r.buf, 100, RD_REMOTE_READ, 0), SN_OK);
    uint32_t t = rd_window_token(x.w);
    struct tp_sge s = rig_sge(&x.r, 500, 8);
    CHECK_ST(rd_qp_receive(x.r.b.qp, CTX(9), NULL, 0), SN_OK);
    CHECK_CQE(x.r.b.cq, RD_BIND, 1, SN_OK, 0);
    CHECK_ST(rd_qp_read(x.r.a.qp, CTX(2), &s, 1, (uintptr_t)x.r.buf, t, 0), SN_OK);
    CHECK_CQE(x.r.a.cq, RD_READ, 2, SN_OK, 8);
    CHECK_ST(rd_qp_write(x.r.a.qp, CTX(3), &s, 1, (uintptr_t)x.r.buf, t, 0), SN_OK);
    CHECK_CQE(x.r.a.cq, RD_WRITE, 3, SN_E_RIGHTS, 0);
    fake_run();
    CHECK_CQE(x.r.b.cq, RD_RECEIVE, 9, SN_E_CANCELED, 0);
    windowed_down(&x);
}

static void local_range_error_is_a_completion(void) {
    struct rig r;
    rig_up(&r);
    struct tp_sge s = rig_sge(&r, RIG_BUF - 8, 9);
    CHECK_ST(rd_qp_read(r.a.qp, CTX(1), &s, 1, (uintptr_t)r.buf, rd_region_remote_token(r.mem), 0),
             SN_OK);
    CHECK_CQE(r.a.cq, RD_READ, 1, SN_E_RANGE, 0);
    rig_down(&r);
}

static void deregister_with_posted_requests_fails_them(void) {
    struct rig r;
    rig_up(&r);
    struct tp_sge s = rig_sge(&r, 0, 8);
    CHECK_ST(rd_qp_receive(r.b.qp, CTX(1), &s, 1), SN_OK);
    CHECK_ST(rd_region_deregister(r.mem), SN_OK);
    uint8_t x[8] = "inline!";
    struct tp_sge in = { x, 8, 0 };
    CHECK_ST(rd_qp_send(r.a.qp, CTX(2), &in, 1, RD_POST_INLINE, 0), SN_OK);
    CHECK_CQE(r.b.cq, RD_RECEIVE, 1, SN_E_TOKEN, 0);
    rig_down(&r);
}

TEST_MAIN(TEST(register_bad_arguments_are_refused),
          TEST(register_unmapped_or_read_only_memory_is_a_fault), TEST(rights_follow_the_flags),
          TEST(range_is_checked_to_the_byte), TEST(same_buffer_many_regions_have_own_rights),
          TEST(stale_tokens_fail), TEST(ten_thousand_regions_have_distinct_scattered_tokens),
          TEST(guessed_tokens_fail), TEST(copy_from_checks_what_access_checks),
          TEST(copy_from_gives_nothing_of_what_was_deregistered),
          TEST(copy_to_checks_what_access_checks), TEST(tokens_of_another_adapter_fail),
          TEST(bind_impossible_is_refused_at_once), TEST(window_rights_and_bounds_are_its_own),
          TEST(bind_opens_when_its_turn_comes), TEST(flushed_bind_leaves_the_window_unbound),
          TEST(region_is_busy_while_windows_are_bound),
          TEST(destroyed_region_invalidates_its_windows), TEST(destroyed_pair_unbinds_its_windows),
          TEST(destroyed_window_with_posted_requests_is_safe),
          TEST(window_moves_to_another_pair_after_invalidate),
          TEST(invalidate_by_another_pair_fails), TEST(remote_invalidate_checks_token_and_pair),
          TEST(remote_faults_end_the_connection), TEST(local_range_error_is_a_completion),
          TEST(deregister_with_posted_requests_fails_them))
