/* SPDX-License-Identifier: MIT
 * What tests/conform asks of the SPI, asked of the dispatch tables: the bytes, requests that fail,
 * completion and shared receive queues, windows, fast registration, and the end of objects in any
 * order. Both transports, each way to complete requests.
 */
#include "kit.h"

enum { MEM = 4 << 20, SGES = 16, DEPTH = 64 };

#define SEND(e, ctx, sge, n, flags) (e).qp->Dispatch->NdkSend((e).qp, KIT_CTX(ctx), sge, n, flags)
#define RECV(e, ctx, sge, n) (e).qp->Dispatch->NdkReceive((e).qp, KIT_CTX(ctx), sge, n)
#define WRITE(e, ctx, sge, n, to, token, flags)                                                    \
    (e).qp->Dispatch->NdkWrite((e).qp, KIT_CTX(ctx), sge, n, to, token, flags)
#define READ(e, ctx, sge, n, from, token, flags)                                                   \
    (e).qp->Dispatch->NdkRead((e).qp, KIT_CTX(ctx), sge, n, from, token, flags)

static void fill(UCHAR *p, SIZE_T n, UCHAR seed) {
    for (SIZE_T i = 0; i < n; i++)
        p[i] = (UCHAR)(i * 7 + seed + i / 251);
}

static UINT64 address_of(const void *p) {
    return (UINT64)(ULONG_PTR)p;
}

/* A connected pair with a queue pair of this shape on each side, and memory of this size. */
static void up_as(struct kit_pair *p, ULONG bytes, ULONG depth, ULONG sges, ULONG inlined) {
    memset(p, 0, sizeof *p);
    kit_open(&p->k);
    KeInitializeEvent(&p->incoming, SynchronizationEvent, FALSE);
    struct kit_end *ends[] = { &p->a, &p->b };
    for (int i = 0; i < 2; i++) {
        KeInitializeEvent(&ends[i]->disconnected, NotificationEvent, FALSE);
        kit_make_cq(&p->k, &ends[i]->cq, 2 * depth);
        KIT_CREATE(NDK_QP, ends[i]->qp,
                   p->k.pd->Dispatch->NdkCreateQp(p->k.pd, ends[i]->cq.cq, ends[i]->cq.cq,
                                                  &ends[i]->qp, depth, depth, sges, sges, inlined,
                                                  kit_created, &kit_w, &kit_o));
    }
    kit_alloc(&p->mem, bytes);
    kit_register(&p->k, &p->mem,
                 NDK_MR_FLAG_ALLOW_LOCAL_WRITE | NDK_MR_FLAG_ALLOW_REMOTE_READ |
                     NDK_MR_FLAG_ALLOW_REMOTE_WRITE | NDK_MR_FLAG_RDMA_READ_SINK);
}

static void up(struct kit_pair *p, ULONG bytes) {
    up_as(p, bytes, DEPTH, SGES, 512);
    kit_connect(p);
}

/* ---- the bytes ---- */

static void every_size_around_the_borders_arrives(void) {
    static const ULONG sizes[] = { 0,     1,     2,     7,      255,    511,    512,     513,
                                   1441,  4095,  4096,  4097,   63469,  63488,  63489,   64768,
                                   65535, 65536, 65537, 126976, 262144, 500001, 1 << 20, 2000003 };
    struct kit_pair p;
    up(&p, MEM);
    UCHAR *to = p.mem.p + MEM / 2;
    for (size_t i = 0; i < RTL_NUMBER_OF(sizes); i++) {
        ULONG n = sizes[i], odd = (ULONG)(i % 3);
        NDK_SGE from = kit_sge(&p.mem, odd, n), sink = kit_sge(&p.mem, MEM / 2 + 1, n);
        for (int op = 0; op < 3; op++) {
            fill(p.mem.p, n + 4, (UCHAR)(i * 3 + (ULONG)op));
            memset(to, 0xEE, n + 2);
            if (op == 0) {
                CHECK_NT(RECV(p.b, 1, &sink, 1), STATUS_SUCCESS);
                CHECK_NT(SEND(p.a, 2, &from, 1, 0), STATUS_SUCCESS);
                NDK_RESULT_EX r;
                CHECK(kit_result(&p.b.cq, &r));
                CHECK_NT(r.Status, STATUS_SUCCESS);
                CHECK_EQ(r.BytesTransferred, n);
                CHECK_RESULT(&p.a.cq, NdkOperationTypeSend, 2, STATUS_SUCCESS);
            } else if (op == 1) {
                CHECK_NT(WRITE(p.a, 3, &from, 1, address_of(to + 1), kit_remote(&p), 0),
                         STATUS_SUCCESS);
                CHECK_RESULT(&p.a.cq, NdkOperationTypeWrite, 3, STATUS_SUCCESS);
            } else {
                CHECK_NT(READ(p.a, 4, &sink, 1, address_of(p.mem.p + odd), kit_remote(&p), 0),
                         STATUS_SUCCESS);
                CHECK_RESULT(&p.a.cq, NdkOperationTypeRead, 4, STATUS_SUCCESS);
            }
            CHECK_BYTES(to + 1, p.mem.p + odd, n);
            CHECK_EQ(to[0], 0xEE);
            CHECK_EQ(to[n + 1], 0xEE);
        }
    }
    kit_down(&p);
}

static void requests_without_segments_are_requests(void) {
    struct kit_pair p;
    NDK_RESULT_EX r;
    up(&p, 4096);
    CHECK_NT(RECV(p.b, 1, NULL, 0), STATUS_SUCCESS);
    CHECK_NT(SEND(p.a, 2, NULL, 0, 0), STATUS_SUCCESS);
    CHECK_NT(WRITE(p.a, 3, NULL, 0, 0, 0, 0), STATUS_SUCCESS);
    CHECK_NT(READ(p.a, 4, NULL, 0, 0, 0, 0), STATUS_SUCCESS);
    CHECK(kit_result(&p.b.cq, &r));
    CHECK_NT(r.Status, STATUS_SUCCESS);
    CHECK_EQ(r.BytesTransferred, 0);
    CHECK_RESULT(&p.a.cq, NdkOperationTypeSend, 2, STATUS_SUCCESS);
    CHECK_RESULT(&p.a.cq, NdkOperationTypeWrite, 3, STATUS_SUCCESS);
    CHECK_RESULT(&p.a.cq, NdkOperationTypeRead, 4, STATUS_SUCCESS);
    kit_down(&p);
}

static void inline_data_may_be_in_any_number_of_segments(void) {
    struct kit_pair p;
    enum { MANY = 100 };
    UCHAR data[MANY * 5];
    NDK_SGE from[MANY];
    up_as(&p, 4096, 4, 2, sizeof data);
    kit_connect(&p);
    fill(data, sizeof data, 3);
    memset(from, 0, sizeof from);
    for (int i = 0; i < MANY; i++) {
        from[i].VirtualAddress = data + 5 * i;
        from[i].Length = 5;
    }
    NDK_SGE to = kit_sge(&p.mem, 0, 1000);
    static const ULONG counts[] = { 2, 3, 16, 17, 33, MANY };
    for (size_t i = 0; i < RTL_NUMBER_OF(counts); i++) {
        memset(p.mem.p, 0, 4096);
        CHECK_NT(RECV(p.b, 1, &to, 1), STATUS_SUCCESS);
        CHECK_NT(SEND(p.a, 2, from, counts[i], NDK_OP_FLAG_INLINE), STATUS_SUCCESS);
        CHECK_NT(WRITE(p.a, 3, from, counts[i], address_of(p.mem.p + 2000), kit_remote(&p),
                       NDK_OP_FLAG_INLINE),
                 STATUS_SUCCESS);
        CHECK_RESULT(&p.b.cq, NdkOperationTypeReceive, 1, STATUS_SUCCESS);
        CHECK_RESULT(&p.a.cq, NdkOperationTypeSend, 2, STATUS_SUCCESS);
        CHECK_RESULT(&p.a.cq, NdkOperationTypeWrite, 3, STATUS_SUCCESS);
        CHECK_BYTES(p.mem.p, data, counts[i] * 5);
        CHECK_BYTES(p.mem.p + 2000, data, counts[i] * 5);
        CHECK_EQ(p.mem.p[counts[i] * 5], 0);
    }
    kit_down(&p);
}

static void a_read_may_have_more_segments_than_a_send(void) {
    struct kit_pair p;
    NDK_SGE to[SGES];
    up_as(&p, 1 << 16, 4, 1, 0);
    kit_connect(&p);
    CHECK_EQ(p.k.info.MaxReadRequestSge, SGES);
    fill(p.mem.p, 16000, 8);
    for (ULONG i = 0; i < SGES; i++)
        to[i] = kit_sge(&p.mem, 20000 + 1001 * i, 1000);
    CHECK_NT(READ(p.a, 1, to, SGES, address_of(p.mem.p), kit_remote(&p), 0), STATUS_SUCCESS);
    CHECK_RESULT(&p.a.cq, NdkOperationTypeRead, 1, STATUS_SUCCESS);
    for (ULONG i = 0; i < SGES; i++) {
        CHECK_BYTES(p.mem.p + 20000 + 1001 * i, p.mem.p + 1000 * i, 1000);
        CHECK_EQ(p.mem.p[20000 + 1001 * i + 1000], 0);
    }
    kit_down(&p);
}

/* ---- fast registration ---- */

struct fast {
    struct kit_mem mem;
    NDK_LOGICAL_ADDRESS_MAPPING *lam;
    PHYSICAL_ADDRESS *page; /* in another order than the memory's */
    ULONG pages;
    NDK_MR *mr;
    ULONG_PTR base;
};

static NDK_MR *fast_mr(struct kit *k, ULONG pages, BOOLEAN remote) {
    struct kit_wait w;
    NDK_MR *mr;
    KIT_CREATE(NDK_MR, mr, k->pd->Dispatch->NdkCreateMr(k->pd, TRUE, kit_created, &kit_w, &kit_o));
    kit_wait_init(&w);
    CHECK_NT(kit_finish(&w, mr->Dispatch->NdkInitializeFastRegisterMr(mr, pages, remote,
                                                                      kit_request_done, &w)),
             STATUS_SUCCESS);
    return mr;
}

/* Page i of the region is page order(i) of the memory. */
static ULONG order(const struct fast *f, ULONG i) {
    return (i * 7 + 3) % f->pages; /* pages: no multiple of 7 */
}

static void fast_make(struct kit *k, struct fast *f, ULONG pages, ULONG_PTR base) {
    struct kit_wait w;
    ULONG size = 0x10 + 8 * pages, fbo;
    memset(f, 0, sizeof *f);
    f->pages = pages;
    f->base = base;
    kit_alloc(&f->mem, pages * PAGE_SIZE);
    f->lam = (NDK_LOGICAL_ADDRESS_MAPPING *)ExAllocatePoolWithTag(NonPagedPoolNx, size, KIT_TAG);
    f->page = (PHYSICAL_ADDRESS *)ExAllocatePoolWithTag(NonPagedPoolNx, 8 * pages, KIT_TAG);
    kit_wait_init(&w);
    CHECK_NT(
        kit_finish(&w, k->ad->Dispatch->NdkBuildLAM(k->ad, f->mem.mdl, pages * PAGE_SIZE,
                                                    kit_request_done, &w, f->lam, &size, &fbo)),
        STATUS_SUCCESS);
    CHECK_EQ(f->lam->AdapterPageCount, pages);
    for (ULONG i = 0; i < pages; i++)
        f->page[i] = (&f->lam->AdapterPageArray[0])[order(f, i)];
    f->mr = fast_mr(k, pages, TRUE);
}

static void fast_register(struct fast *f, struct kit_end *e, ULONG flags) {
    CHECK_NT(e->qp->Dispatch->NdkFastRegister(e->qp, NULL, f->mr, f->pages, f->page, 0,
                                              f->pages * PAGE_SIZE, (PVOID)f->base,
                                              flags | NDK_OP_FLAG_SILENT_SUCCESS),
             STATUS_SUCCESS);
}

static void fast_free(struct kit *k, struct fast *f) {
    KIT_CLOSE(f->mr, NdkCloseMr);
    k->ad->Dispatch->NdkReleaseLAM(k->ad, f->lam);
    ExFreePoolWithTag(f->lam, KIT_TAG);
    ExFreePoolWithTag(f->page, KIT_TAG);
    kit_free(&f->mem);
}

/* The byte of the memory that is at this offset of the region. */
static UCHAR *byte_at(struct fast *f, ULONG off) {
    return f->mem.p + order(f, off / PAGE_SIZE) * PAGE_SIZE + off % PAGE_SIZE;
}

static NDK_SGE fast_sge(struct fast *f, ULONG off, ULONG len) {
    NDK_SGE s;
    memset(&s, 0, sizeof s);
    s.VirtualAddress = (PVOID)(f->base + off);
    s.Length = len;
    s.MemoryRegionToken = f->mr->Dispatch->NdkGetLocalTokenFromMr(f->mr);
    return s;
}

/* Segments of one page and two bytes, each of which touches three pages: one frame of the stream
 * needs more pieces of memory than are sent at once. */
enum {
    PIECE = PAGE_SIZE + 2,
    PIECE_AT = PAGE_SIZE - 1,
    PIECE_STEP = 3 * PAGE_SIZE,
    PIECED = SGES * PIECE
};

static void pieces(struct fast *f, NDK_SGE *sge) {
    for (ULONG i = 0; i < SGES; i++)
        sge[i] = fast_sge(f, i * PIECE_STEP + PIECE_AT, PIECE);
}

static void pieces_fill(struct fast *f, UCHAR seed) {
    for (ULONG i = 0; i < SGES; i++)
        for (ULONG j = 0; j < PIECE; j++)
            *byte_at(f, i * PIECE_STEP + PIECE_AT + j) = (UCHAR)((i * PIECE + j) * 11 / 4 + seed);
}

/* p has what the pieces have; the bytes around each are untouched. */
static void pieces_check(struct fast *f, const UCHAR *p, UCHAR around) {
    for (ULONG i = 0; i < SGES; i++) {
        for (ULONG j = 0; j < PIECE; j++)
            CHECK_EQ(*byte_at(f, i * PIECE_STEP + PIECE_AT + j), p[i * PIECE + j]);
        CHECK_EQ(*byte_at(f, i * PIECE_STEP + PIECE_AT - 1), around);
        CHECK_EQ(*byte_at(f, i * PIECE_STEP + PIECE_AT + PIECE), around);
    }
}

static void frames_of_very_many_pieces_are_whole(void) {
    struct kit_pair p;
    struct fast f;
    NDK_SGE many[SGES];
    up(&p, 1 << 18);
    fast_make(&p.k, &f, SGES * 3 + 2, 0x60000000);
    fast_register(&f, &p.a,
                  NDK_OP_FLAG_ALLOW_LOCAL_WRITE | NDK_OP_FLAG_ALLOW_REMOTE_READ |
                      NDK_OP_FLAG_RDMA_READ_SINK);
    pieces(&f, many);
    NDK_SGE flat = kit_sge(&p.mem, 1, PIECED), sink = kit_sge(&p.mem, 1 << 17, PIECED);
    for (int round = 0; round < 3; round++) { /* gathered: Send, Write */
        pieces_fill(&f, (UCHAR)round);
        memset(p.mem.p, 0, 1 << 18);
        CHECK_NT(RECV(p.b, 1, &flat, 1), STATUS_SUCCESS);
        CHECK_NT(SEND(p.a, 2, many, SGES, 0), STATUS_SUCCESS);
        CHECK_NT(WRITE(p.a, 3, many, SGES, address_of(p.mem.p + (1 << 17)), kit_remote(&p), 0),
                 STATUS_SUCCESS);
        CHECK_RESULT(&p.b.cq, NdkOperationTypeReceive, 1, STATUS_SUCCESS);
        CHECK_RESULT(&p.a.cq, NdkOperationTypeSend, 2, STATUS_SUCCESS);
        CHECK_RESULT(&p.a.cq, NdkOperationTypeWrite, 3, STATUS_SUCCESS);
        pieces_check(&f, p.mem.p + 1, 0);
        pieces_check(&f, p.mem.p + (1 << 17), 0);
    }
    /* scattered: a receive, the sink of a Read */
    fill(p.mem.p, PIECED + 1, 77);
    CHECK_NT(RECV(p.a, 4, many, SGES), STATUS_SUCCESS);
    CHECK_NT(SEND(p.b, 5, &flat, 1, 0), STATUS_SUCCESS);
    CHECK_RESULT(&p.a.cq, NdkOperationTypeReceive, 4, STATUS_SUCCESS);
    CHECK_RESULT(&p.b.cq, NdkOperationTypeSend, 5, STATUS_SUCCESS);
    pieces_check(&f, p.mem.p + 1, 0);
    pieces_fill(&f, 200);
    CHECK_NT(READ(p.a, 6, many, SGES, address_of(p.mem.p + 1), kit_remote(&p), 0), STATUS_SUCCESS);
    CHECK_RESULT(&p.a.cq, NdkOperationTypeRead, 6, STATUS_SUCCESS);
    pieces_check(&f, p.mem.p + 1, 0);
    /* the source of the peer's Read */
    ULONG all = f.pages * PAGE_SIZE;
    CHECK(all <= 1 << 18);
    for (ULONG i = 0; i < all; i++)
        *byte_at(&f, i) = (UCHAR)(i * 5 / 3);
    sink = kit_sge(&p.mem, 0, all - 2);
    CHECK_NT(READ(p.b, 7, &sink, 1, f.base + 1, f.mr->Dispatch->NdkGetRemoteTokenFromMr(f.mr), 0),
             STATUS_SUCCESS);
    CHECK_RESULT(&p.b.cq, NdkOperationTypeRead, 7, STATUS_SUCCESS);
    for (ULONG i = 0; i < all - 2; i++)
        CHECK_EQ(p.mem.p[i], (UCHAR)((i + 1) * 5 / 3));
    fast_free(&p.k, &f);
    kit_down(&p);
}

/* The queue orders them: nothing is waited for between registration, use, end and the next. */
static void registrations_follow_each_other_without_waiting(void) {
    struct kit_pair p;
    struct fast f;
    enum { ROUNDS = 10 };
    UINT32 token[ROUNDS];
    up(&p, 1 << 16);
    fast_make(&p.k, &f, 2, 0x50000000);
    for (ULONG i = 0; i < ROUNDS; i++) {
        *byte_at(&f, PAGE_SIZE - 1) = *byte_at(&f, PAGE_SIZE) = 0x5A;
        CHECK_NT(
            p.a.qp->Dispatch->NdkFastRegister(
                p.a.qp, NULL, f.mr, 2, f.page, 0, 2 * PAGE_SIZE, (PVOID)f.base,
                NDK_OP_FLAG_ALLOW_REMOTE_READ | NDK_OP_FLAG_DEFER | NDK_OP_FLAG_SILENT_SUCCESS),
            STATUS_SUCCESS);
        token[i] = f.mr->Dispatch->NdkGetRemoteTokenFromMr(f.mr);
        for (ULONG j = 0; j < i; j++)
            CHECK(token[i] != token[j]);
        NDK_SGE s = fast_sge(&f, PAGE_SIZE - 1, 2);
        CHECK_NT(WRITE(p.a, 10 + i, &s, 1, address_of(p.mem.p + 2 * i), kit_remote(&p),
                       NDK_OP_FLAG_DEFER),
                 STATUS_SUCCESS);
        CHECK_NT(p.a.qp->Dispatch->NdkInvalidate(p.a.qp, KIT_CTX(100 + i), &f.mr->Header,
                                                 i % 2 ? NDK_OP_FLAG_READ_FENCE : 0),
                 STATUS_SUCCESS);
    }
    for (ULONG i = 0; i < ROUNDS; i++) {
        CHECK_RESULT(&p.a.cq, NdkOperationTypeWrite, 10 + i, STATUS_SUCCESS);
        CHECK_RESULT(&p.a.cq, NdkOperationTypeInvalidate, 100 + i, STATUS_SUCCESS);
        CHECK_EQ(p.mem.p[2 * i], 0x5A);
        CHECK_EQ(p.mem.p[2 * i + 1], 0x5A);
    }
    fast_free(&p.k, &f);
    kit_down(&p);
}

/* What a registration allows, and to whom, is what its flags say. */
static void rights_of_a_registration_are_exact(void) {
    static const struct {
        ULONG flags;
        bool read, write, receive;
    } rows[] = {
        { 0, false, false, false },
        { NDK_OP_FLAG_ALLOW_REMOTE_READ, true, false, false },
        { NDK_OP_FLAG_ALLOW_LOCAL_WRITE, false, false, true },
        { NDK_OP_FLAG_ALLOW_REMOTE_WRITE, false, true, true },
        { NDK_OP_FLAG_ALLOW_REMOTE_READ | NDK_OP_FLAG_ALLOW_REMOTE_WRITE, true, true, true },
    };
    for (size_t i = 0; i < RTL_NUMBER_OF(rows); i++) {
        for (int op = 0; op < 3; op++) {
            struct kit_pair p;
            struct fast f;
            NDK_RESULT_EX r;
            up(&p, 4096);
            fast_make(&p.k, &f, 1, 0x50000000);
            fast_register(&f, &p.b, rows[i].flags);
            UINT32 token = f.mr->Dispatch->NdkGetRemoteTokenFromMr(f.mr);
            NDK_SGE s = kit_sge(&p.mem, 0, 16), local = fast_sge(&f, 0, 16);
            bool allowed = op == 0 ? rows[i].read : op == 1 ? rows[i].write : rows[i].receive;
            NTSTATUS posted;
            /* A request of b's behind the registration: it has happened when that is complete. */
            NDK_SGE mine = kit_sge(&p.mem, 100, 1);
            CHECK_NT(READ(p.b, 9, &mine, 1, address_of(p.mem.p), kit_remote(&p), 0),
                     STATUS_SUCCESS);
            CHECK_RESULT(&p.b.cq, NdkOperationTypeRead, 9, STATUS_SUCCESS);
            if (op == 0) posted = READ(p.a, 1, &s, 1, f.base, token, 0);
            if (op == 1) posted = WRITE(p.a, 1, &s, 1, f.base, token, 0);
            if (op == 2) {
                CHECK_NT(RECV(p.b, 2, &local, 1), STATUS_SUCCESS);
                posted = SEND(p.a, 1, &s, 1, 0);
            }
            CHECK_NT(posted, STATUS_SUCCESS);
            struct kit_cq *told = op == 2 ? &p.b.cq : &p.a.cq;
            CHECK(kit_result(told, &r));
            CHECK_NT(r.Status, allowed ? STATUS_SUCCESS : STATUS_ACCESS_VIOLATION);
            p.a.qp->Dispatch->NdkFlush(p.a.qp);
            fast_free(&p.k, &f);
            kit_down(&p);
        }
    }
}

/* A failure is told even to who wanted no results; the end of the connection cancels the rest. */
static void second_registration_fails_aloud(void) {
    struct kit_pair p;
    struct fast f;
    NDK_RESULT_EX r;
    up(&p, 4096);
    fast_make(&p.k, &f, 1, 0x50000000);
    fast_register(&f, &p.a, 0);
    CHECK_NT(p.a.qp->Dispatch->NdkFastRegister(p.a.qp, KIT_CTX(2), f.mr, 1, f.page, 0, PAGE_SIZE,
                                               (PVOID)f.base, NDK_OP_FLAG_SILENT_SUCCESS),
             STATUS_SUCCESS);
    CHECK(kit_result(&p.a.cq, &r));
    CHECK_NT(r.Status, STATUS_INVALID_DEVICE_STATE);
    CHECK_EQ(r.Type, NdkOperationTypeFastRegister);
    CHECK_PTR(r.RequestContext, KIT_CTX(2));
    CHECK(r.ProviderErrorCode != 0);
    CHECK(kit_wait_event(&p.b.disconnected));
    fast_free(&p.k, &f);
    kit_down(&p);
}

/* ---- requests that fail ---- */

enum bad { BAD_TOKEN, BAD_END, BAD_START, BAD_RIGHTS };

/* The request that fails says why; those before it succeeded, those behind it are cancelled; the
 * peer is told once and its receives are still there. */
static void refused(enum bad bad, bool write) {
    struct kit_pair p;
    struct kit_mem m;
    NDK_RESULT_EX r;
    up(&p, 1 << 16);
    kit_alloc(&m, 4096);
    kit_register(&p.k, &m, NDK_MR_FLAG_ALLOW_LOCAL_WRITE);
    UINT32 token =
        bad == BAD_RIGHTS ? m.mr->Dispatch->NdkGetRemoteTokenFromMr(m.mr) : kit_remote(&p);
    UCHAR *at = bad == BAD_RIGHTS ? m.p : bad == BAD_END ? p.mem.p + (1 << 16) - 99 : p.mem.p;
    if (bad == BAD_TOKEN) token ^= 0x155;
    if (bad == BAD_START) at--;
    NDK_SGE s = kit_sge(&p.mem, 0, 100), to = kit_sge(&p.mem, 1000, 100);
    CHECK_NT(RECV(p.b, 1, &to, 1), STATUS_SUCCESS);
    CHECK_NT(RECV(p.b, 2, &to, 1), STATUS_SUCCESS);
    CHECK_NT(RECV(p.a, 3, &to, 1), STATUS_SUCCESS);
    CHECK_NT(SEND(p.a, 4, &s, 1, 0), STATUS_SUCCESS);
    CHECK_NT(write ? WRITE(p.a, 5, &s, 1, address_of(at), token, NDK_OP_FLAG_SILENT_SUCCESS)
                   : READ(p.a, 5, &s, 1, address_of(at), token, NDK_OP_FLAG_SILENT_SUCCESS),
             STATUS_SUCCESS);
    CHECK_RESULT(&p.b.cq, NdkOperationTypeReceive, 1, STATUS_SUCCESS);
    CHECK_RESULT(&p.a.cq, NdkOperationTypeSend, 4, STATUS_SUCCESS);
    bool receive = false, request = false;
    for (int i = 0; i < 2; i++) { /* two queues: either may be first */
        CHECK(kit_result(&p.a.cq, &r));
        if (r.Type == NdkOperationTypeReceive) {
            CHECK_NT(r.Status, STATUS_CANCELLED);
            receive = true;
        } else {
            CHECK_EQ(r.Type, write ? NdkOperationTypeWrite : NdkOperationTypeRead);
            CHECK_PTR(r.RequestContext, KIT_CTX(5));
            CHECK_NT(r.Status, !write && (bad == BAD_END || bad == BAD_START)
                                   ? STATUS_REMOTE_RESOURCES
                                   : STATUS_ACCESS_VIOLATION);
            request = true;
        }
    }
    CHECK(receive && request);
    CHECK_NT(SEND(p.a, 6, &s, 1, 0), STATUS_SUCCESS); /* accepted, and cancelled like the rest */
    CHECK_RESULT(&p.a.cq, NdkOperationTypeSend, 6, STATUS_CANCELLED);
    CHECK(kit_wait_event(&p.b.disconnected));
    kit_free(&m);
    kit_down(&p);
    CHECK_EQ(COUNT(p.b.disconnects), 1);
}

static void refused_writes_say_why(void) {
    for (int bad = BAD_TOKEN; bad <= BAD_RIGHTS; bad++)
        refused((enum bad)bad, true);
}

static void refused_reads_say_why(void) {
    for (int bad = BAD_TOKEN; bad <= BAD_RIGHTS; bad++)
        refused((enum bad)bad, false);
}

static void send_without_a_receive_times_out(void) {
    struct kit_pair p;
    up(&p, 4096);
    NDK_SGE s = kit_sge(&p.mem, 0, 8);
    CHECK_NT(SEND(p.a, 1, &s, 1, 0), STATUS_SUCCESS);
    CHECK_NT(SEND(p.a, 2, &s, 1, 0), STATUS_SUCCESS);
    CHECK_RESULT(&p.a.cq, NdkOperationTypeSend, 1, STATUS_IO_TIMEOUT);
    CHECK_RESULT(&p.a.cq, NdkOperationTypeSend, 2, STATUS_CANCELLED);
    kit_down(&p);
}

static void send_waits_for_a_receive_that_comes(void) {
    struct kit_pair p;
    up(&p, 4096);
    NDK_SGE s = kit_sge(&p.mem, 0, 8), to = kit_sge(&p.mem, 100, 8);
    fill(p.mem.p, 8, 1);
    CHECK_NT(RECV(p.a, 3, &to, 1), STATUS_SUCCESS);
    CHECK_NT(SEND(p.a, 1, &s, 1, 0), STATUS_SUCCESS);
    CHECK_NT(RECV(p.b, 2, &to, 1), STATUS_SUCCESS);
    CHECK_RESULT(&p.b.cq, NdkOperationTypeReceive, 2, STATUS_SUCCESS);
    CHECK_RESULT(&p.a.cq, NdkOperationTypeSend, 1, STATUS_SUCCESS);
    CHECK_BYTES(p.mem.p + 100, p.mem.p, 8);
    kit_down(&p);
}

static void disconnect_cancels_what_this_side_has_posted(void) {
    struct kit_pair p;
    struct kit_wait w;
    up(&p, 4096);
    NDK_SGE to = kit_sge(&p.mem, 0, 8);
    for (int i = 0; i < 5; i++)
        CHECK_NT(RECV(p.a, i, &to, 1), STATUS_SUCCESS);
    kit_wait_init(&w);
    CHECK_NT(
        kit_finish(&w, p.a.connector->Dispatch->NdkDisconnect(p.a.connector, kit_request_done, &w)),
        STATUS_SUCCESS);
    for (int i = 0; i < 5; i++)
        CHECK_RESULT(&p.a.cq, NdkOperationTypeReceive, i, STATUS_CANCELLED);
    CHECK(kit_wait_event(&p.b.disconnected));
    kit_down(&p);
    CHECK_EQ(COUNT(p.a.disconnects), 0);
    CHECK_EQ(COUNT(p.b.disconnects), 1);
}

/* ---- completion queues ---- */

enum {
    ANY = NDK_CQ_NOTIFY_ANY,
    ERRORS = NDK_CQ_NOTIFY_ERRORS,
    SOLICITED = NDK_CQ_NOTIFY_SOLICITED
};

/* What fires an arm of each type, also after two arms that merge. */
static void arms_merge_as_the_table_says(void) {
    static const struct {
        int first, second, merged;
    } rows[] = {
        { ANY, -1, ANY },
        { ERRORS, -1, ERRORS },
        { SOLICITED, -1, SOLICITED },
        { ANY, ANY, ANY },
        { ANY, ERRORS, ANY },
        { ANY, SOLICITED, ANY },
        { ERRORS, ANY, ANY },
        { ERRORS, ERRORS, ERRORS },
        { ERRORS, SOLICITED, SOLICITED },
        { SOLICITED, ANY, ANY },
        { SOLICITED, ERRORS, SOLICITED },
        { SOLICITED, SOLICITED, SOLICITED },
    };
    for (size_t i = 0; i < RTL_NUMBER_OF(rows); i++) {
        struct kit_pair p;
        NDK_RESULT_EX r;
        up(&p, 4096);
        NDK_CQ *cq = p.b.cq.cq;
        NDK_SGE to = kit_sge(&p.mem, 0, 100), from = kit_sge(&p.mem, 200, 8);
        for (int j = 0; j < 4; j++)
            CHECK_NT(RECV(p.b, j, &to, 1), STATUS_SUCCESS);
        cq->Dispatch->NdkArmCq(cq, (ULONG)rows[i].first);
        if (rows[i].second >= 0) cq->Dispatch->NdkArmCq(cq, (ULONG)rows[i].second);
        CHECK_NT(SEND(p.a, 1, &from, 1, 0), STATUS_SUCCESS);
        CHECK_RESULT(&p.a.cq, NdkOperationTypeSend, 1, STATUS_SUCCESS);
        if (rows[i].merged == ANY)
            CHECK(kit_wait_event(&p.b.cq.notified));
        else
            CHECK_EQ(COUNT(p.b.cq.calls), 0);
        CHECK_NT(SEND(p.a, 2, &from, 1, NDK_OP_FLAG_SEND_AND_SOLICIT_EVENT), STATUS_SUCCESS);
        CHECK_RESULT(&p.a.cq, NdkOperationTypeSend, 2, STATUS_SUCCESS);
        if (rows[i].merged == SOLICITED)
            CHECK(kit_wait_event(&p.b.cq.notified));
        else
            CHECK_EQ(COUNT(p.b.cq.calls), rows[i].merged == ANY);
        ULONG n = 0;
        while (cq->Dispatch->NdkGetCqResultsEx(cq, &r, 1)) {
            CHECK_PTR(r.RequestContext, KIT_CTX(n));
            n++;
        }
        CHECK_EQ(n, 2);
        p.b.qp->Dispatch->NdkFlush(p.b.qp); /* failures of requests: ERRORS is not about them */
        kit_drain(&p.b.cq);
        kit_down(&p);
        CHECK_EQ(COUNT(p.b.cq.calls), rows[i].merged != ERRORS); /* and never again */
    }
}

static void a_failed_request_fires_a_solicited_arm(void) {
    struct kit_pair p;
    up(&p, 4096);
    NDK_SGE to = kit_sge(&p.mem, 0, 100);
    CHECK_NT(RECV(p.b, 7, &to, 1), STATUS_SUCCESS);
    p.b.cq.cq->Dispatch->NdkArmCq(p.b.cq.cq, NDK_CQ_NOTIFY_SOLICITED);
    p.b.qp->Dispatch->NdkFlush(p.b.qp);
    CHECK(kit_wait_event(&p.b.cq.notified));
    CHECK_NT(p.b.cq.status, STATUS_SUCCESS); /* the queue is well */
    CHECK_RESULT(&p.b.cq, NdkOperationTypeReceive, 7, STATUS_CANCELLED);
    kit_down(&p);
}

/* A consumer that only drains when it is called, and arms again: nothing is left behind. */
struct drainer {
    struct kit_cq *cq;
    LONG seen, calls;
    ULONG next;
    bool wrong;
    KEVENT all, some;
    LONG want;
};

static void drain_and_arm(PVOID ctx, NTSTATUS status) {
    struct drainer *d = (struct drainer *)ctx;
    NDK_RESULT r[3];
    NDK_CQ *cq = d->cq->cq;
    if (status != STATUS_SUCCESS) d->wrong = true;
    InterlockedIncrement(&d->calls);
    for (ULONG n; (n = cq->Dispatch->NdkGetCqResults(cq, r, 3)) != 0;) {
        for (ULONG i = 0; i < n; i++) {
            if (r[i].Status != STATUS_SUCCESS || r[i].RequestContext != KIT_CTX(d->next))
                d->wrong = true;
            d->next++;
        }
        InterlockedAdd(&d->seen, (LONG)n);
    }
    KeSetEvent(&d->some, 0, FALSE);
    cq->Dispatch->NdkArmCq(cq, NDK_CQ_NOTIFY_ANY);
    /* Last: the queue is closed then. */
    if (COUNT(d->seen) == d->want) KeSetEvent(&d->all, 0, FALSE);
}

static void drain_arm_return_loses_nothing(void) {
    struct kit_pair p;
    struct drainer d;
    enum { ALL = 3000 };
    memset(&d, 0, sizeof d);
    up(&p, 4096);
    struct kit_cq cq;
    memset(&cq, 0, sizeof cq);
    KeInitializeEvent(&d.all, NotificationEvent, FALSE);
    KeInitializeEvent(&d.some, SynchronizationEvent, FALSE);
    d.cq = &cq;
    d.want = ALL;
    /* b's receives go to a queue of their own, which is drained by its callback alone. */
    KIT_CREATE(NDK_CQ, cq.cq,
               p.k.ad->Dispatch->NdkCreateCq(p.k.ad, DEPTH, drain_and_arm, &d, NULL, kit_created,
                                             &kit_w, &kit_o));
    KIT_CLOSE(p.b.connector, NdkCloseConnector);
    KIT_CLOSE(p.a.connector, NdkCloseConnector);
    NDK_QP **qps[] = { &p.a.qp, &p.b.qp };
    for (int i = 0; i < 2; i++) {
        KIT_CLOSE(*qps[i], NdkCloseQp);
        KIT_CREATE(NDK_QP, *qps[i],
                   p.k.pd->Dispatch->NdkCreateQp(p.k.pd, i ? cq.cq : p.a.cq.cq,
                                                 i ? p.b.cq.cq : p.a.cq.cq, NULL, DEPTH, DEPTH, 1,
                                                 1, 0, kit_created, &kit_w, &kit_o));
    }
    KeClearEvent(&p.a.disconnected);
    KeClearEvent(&p.b.disconnected);
    kit_connect(&p);
    NDK_SGE s = kit_sge(&p.mem, 0, 8), to = kit_sge(&p.mem, 100, 8);
    cq.cq->Dispatch->NdkArmCq(cq.cq, NDK_CQ_NOTIFY_ANY);
    ULONG posted = 0, sent = 0, done = 0;
    while (done < ALL) {
        /* never more receives than the queue holds: those that were drained are over */
        while (posted < ALL && posted - (ULONG)COUNT(d.seen) < DEPTH) {
            CHECK_NT(RECV(p.b, posted, &to, 1), STATUS_SUCCESS);
            posted++;
        }
        while (sent < posted && sent - done < DEPTH) {
            CHECK_NT(SEND(p.a, sent, &s, 1, 0), STATUS_SUCCESS);
            sent++;
        }
        if (sent == done) { /* the callback has not taken off what is there */
            CHECK(kit_wait_event(&d.some));
            continue;
        }
        CHECK_RESULT(&p.a.cq, NdkOperationTypeSend, done, STATUS_SUCCESS);
        done++;
    }
    CHECK(kit_wait_event(&d.all));
    CHECK_EQ(COUNT(d.seen), ALL);
    CHECK(!d.wrong);
    CHECK(COUNT(d.calls) >= 1);
    KIT_CLOSE(p.b.connector, NdkCloseConnector);
    KIT_CLOSE(p.b.qp, NdkCloseQp);
    KIT_CLOSE(cq.cq, NdkCloseCq);
    kit_down(&p);
}

static void one_queue_serves_several_pairs(void) {
    struct kit_pair p;
    struct kit_cq cq;
    enum { PAIRS = 4 };
    NDK_QP *qp[PAIRS];
    bool seen[PAIRS] = { false };
    up(&p, 4096);
    kit_make_cq(&p.k, &cq, 2 * PAIRS * KIT_DEPTH);
    NDK_SGE to = kit_sge(&p.mem, 0, 8);
    for (int i = 0; i < PAIRS; i++) {
        kit_make_qp(&p.k, &cq, &qp[i]); /* its context: &qp[i] */
        CHECK_NT(qp[i]->Dispatch->NdkReceive(qp[i], KIT_CTX(i), &to, 1), STATUS_SUCCESS);
        qp[i]->Dispatch->NdkFlush(qp[i]);
    }
    for (int i = 0; i < PAIRS; i++) {
        NDK_RESULT_EX r;
        CHECK(kit_result(&cq, &r));
        CHECK_NT(r.Status, STATUS_CANCELLED);
        ULONG_PTR which = (ULONG_PTR)r.RequestContext;
        CHECK(which < PAIRS && !seen[which]);
        CHECK_PTR(r.QPContext, &qp[which]);
        seen[which] = true;
    }
    for (int i = 0; i < PAIRS; i++)
        KIT_CLOSE(qp[i], NdkCloseQp);
    KIT_CLOSE(cq.cq, NdkCloseCq);
    kit_down(&p);
}

static void moderation_holds_a_callback_back_but_not_for_ever(void) {
    struct kit_pair p;
    enum { FEW = 5 };
    up(&p, 4096);
    NDK_CQ *cq = p.b.cq.cq;
    NDK_SGE to = kit_sge(&p.mem, 0, 8), from = kit_sge(&p.mem, 100, 8);
    /* 10 s, or FEW results: with the last of these the callback comes at once. */
    CHECK_NT(cq->Dispatch->NdkControlCqInterruptModeration(cq, 10 * 1000 * 1000, FEW),
             STATUS_SUCCESS);
    for (int i = 0; i < FEW; i++)
        CHECK_NT(RECV(p.b, i, &to, 1), STATUS_SUCCESS);
    cq->Dispatch->NdkArmCq(cq, NDK_CQ_NOTIFY_ANY);
    for (int i = 0; i < FEW - 1; i++) {
        CHECK_NT(SEND(p.a, i, &from, 1, 0), STATUS_SUCCESS);
        CHECK_RESULT(&p.a.cq, NdkOperationTypeSend, i, STATUS_SUCCESS);
    }
    CHECK_EQ(COUNT(p.b.cq.calls), 0);
    ULONGLONG begin = KeQueryInterruptTime();
    CHECK_NT(SEND(p.a, FEW, &from, 1, 0), STATUS_SUCCESS);
    CHECK(kit_wait_event(&p.b.cq.notified));
    CHECK(KeQueryInterruptTime() - begin < 90000000); /* not the interval */
    CHECK_RESULT(&p.a.cq, NdkOperationTypeSend, FEW, STATUS_SUCCESS);
    /* the latest setting wins, also for what an earlier one holds back */
    for (int i = 0; i < FEW; i++)
        CHECK_RESULT(&p.b.cq, NdkOperationTypeReceive, i, STATUS_SUCCESS);
    CHECK_NT(RECV(p.b, 9, &to, 1), STATUS_SUCCESS);
    cq->Dispatch->NdkArmCq(cq, NDK_CQ_NOTIFY_ANY);
    CHECK_NT(SEND(p.a, 10, &from, 1, 0), STATUS_SUCCESS);
    CHECK_RESULT(&p.a.cq, NdkOperationTypeSend, 10, STATUS_SUCCESS);
    CHECK_EQ(COUNT(p.b.cq.calls), 1);
    CHECK_NT(cq->Dispatch->NdkControlCqInterruptModeration(cq, 0, 0), STATUS_SUCCESS);
    begin = KeQueryInterruptTime();
    CHECK(kit_wait_event(&p.b.cq.notified));
    CHECK(KeQueryInterruptTime() - begin < 90000000);
    kit_down(&p);
}

/* ---- shared receive queues ---- */

static void notified_of_nothing(PVOID ctx, NTSTATUS status) {
    (void)ctx;
    (void)status;
}

static NDK_SRQ *make_srq(struct kit *k, ULONG depth, ULONG threshold) {
    NDK_SRQ *srq;
    KIT_CREATE(NDK_SRQ, srq,
               k->pd->Dispatch->NdkCreateSrq(k->pd, depth, 2, threshold, notified_of_nothing, NULL,
                                             NULL, kit_created, &kit_w, &kit_o));
    return srq;
}

static void make_srq_qp(struct kit *k, NDK_CQ *rcq, NDK_CQ *icq, NDK_SRQ *srq, NDK_QP **qp) {
    KIT_CREATE(NDK_QP, *qp,
               k->pd->Dispatch->NdkCreateQpWithSrq(k->pd, rcq, icq, srq, qp, 8, 1, 0, kit_created,
                                                   &kit_w, &kit_o));
}

/* Two connections, whose passive sides share a queue and have completion queues of their own. */
static void shared_receives_go_to_who_needs_them(void) {
    struct kit_pair p[2];
    enum { ALL = 40 };
    up_as(&p[0], 4096, DEPTH, 2, 0);
    up_as(&p[1], 4096, DEPTH, 2, 0);
    /* both pairs' passive queue pairs in the first adapter */
    KIT_CLOSE(p[0].b.qp, NdkCloseQp);
    KIT_CLOSE(p[1].b.qp, NdkCloseQp);
    NDK_SRQ *srq = make_srq(&p[0].k, ALL, 0);
    struct kit_cq cq[2];
    NDK_QP *qp[2];
    NDK_SGE to = kit_sge(&p[0].mem, 1000, 100);
    for (int i = 0; i < 2; i++) {
        kit_make_cq(&p[0].k, &cq[i], 3 * ALL);
        make_srq_qp(&p[0].k, cq[i].cq, cq[i].cq, srq, &qp[i]);
        p[i].b.qp = qp[i];
        kit_connect(&p[i]);
    }
    for (int i = 0; i < ALL; i++)
        CHECK_NT(srq->Dispatch->NdkSrqReceive(srq, KIT_CTX(i), &to, 1), STATUS_SUCCESS);
    bool used[ALL] = { false };
    for (int i = 0; i < ALL; i++) {
        int who = (i / 3) % 2; /* uneven turns */
        NDK_RESULT_EX r;
        NDK_SGE s = kit_sge(&p[who].mem, 0, 8);
        CHECK_NT(SEND(p[who].a, i, &s, 1, 0), STATUS_SUCCESS);
        CHECK_RESULT(&p[who].a.cq, NdkOperationTypeSend, i, STATUS_SUCCESS);
        CHECK(kit_result(&cq[who], &r));
        CHECK_NT(r.Status, STATUS_SUCCESS);
        CHECK_PTR(r.QPContext, &qp[who]);
        ULONG_PTR which = (ULONG_PTR)r.RequestContext;
        CHECK(which < ALL && !used[which]);
        used[which] = true;
    }
    /* empty: a Send waits until one is posted */
    NDK_SGE s = kit_sge(&p[1].mem, 0, 8);
    CHECK_NT(SEND(p[1].a, 99, &s, 1, 0), STATUS_SUCCESS);
    CHECK_NT(srq->Dispatch->NdkSrqReceive(srq, KIT_CTX(1000), &to, 1), STATUS_SUCCESS);
    CHECK_RESULT(&cq[1], NdkOperationTypeReceive, 1000, STATUS_SUCCESS);
    CHECK_RESULT(&p[1].a.cq, NdkOperationTypeSend, 99, STATUS_SUCCESS);
    /* a queue is closed when its pairs are */
    struct kit_wait w;
    kit_wait_init(&w);
    CHECK_NT(srq->Dispatch->NdkCloseSrq(&srq->Header, kit_closed, &w), STATUS_PENDING);
    for (int i = 0; i < 2; i++) {
        KIT_CLOSE(p[i].a.connector, NdkCloseConnector);
        KIT_CLOSE(p[i].b.connector, NdkCloseConnector);
        CHECK_EQ(COUNT(w.calls), 0);
        KIT_CLOSE(qp[i], NdkCloseQp);
        p[i].b.qp = NULL;
    }
    CHECK(kit_wait_event(&w.event));
    for (int i = 0; i < 2; i++) {
        kit_drain(&cq[i]);
        KIT_CLOSE(cq[i].cq, NdkCloseCq);
    }
    kit_down(&p[1]);
    kit_down(&p[0]);
}

/* ---- windows ---- */

static NDK_MW *make_mw(struct kit *k) {
    NDK_MW *mw;
    KIT_CREATE(NDK_MW, mw, k->pd->Dispatch->NdkCreateMw(k->pd, kit_created, &kit_w, &kit_o));
    return mw;
}

/* Within the window to the byte, with its rights; one byte more ends the connection. */
static void windows_are_exact_to_the_byte(void) {
    static const struct {
        int off, len;
        bool write, good;
    } rows[] = {
        { 0, 100, false, true }, { 0, 100, true, true },  { 99, 1, true, true },
        { -1, 1, true, false },  { 100, 1, true, false }, { 50, 51, false, false },
    };
    for (size_t i = 0; i < RTL_NUMBER_OF(rows); i++) {
        struct kit_pair p;
        NDK_RESULT_EX r;
        up(&p, 4096);
        NDK_MW *mw = make_mw(&p.k);
        CHECK_NT(p.b.qp->Dispatch->NdkBind(p.b.qp, KIT_CTX(1), p.mem.mr, mw, p.mem.p + 1000, 100,
                                           NDK_OP_FLAG_ALLOW_REMOTE_WRITE |
                                               NDK_OP_FLAG_ALLOW_REMOTE_READ),
                 STATUS_SUCCESS);
        UINT32 token = mw->Dispatch->NdkGetRemoteTokenFromMw(mw);
        CHECK_RESULT(&p.b.cq, NdkOperationTypeBind, 1, STATUS_SUCCESS);
        NDK_SGE s = kit_sge(&p.mem, 0, (ULONG)rows[i].len);
        UINT64 at = address_of(p.mem.p + 1000 + rows[i].off);
        CHECK_NT(rows[i].write ? WRITE(p.a, 2, &s, 1, at, token, 0)
                               : READ(p.a, 2, &s, 1, at, token, 0),
                 STATUS_SUCCESS);
        CHECK(kit_result(&p.a.cq, &r));
        CHECK_EQ(NT_SUCCESS(r.Status), rows[i].good);
        KIT_CLOSE(mw, NdkCloseMw);
        kit_down(&p);
    }
}

static void a_window_needs_the_regions_rights(void) {
    struct kit_pair p;
    struct kit_mem m;
    up(&p, 4096);
    kit_alloc(&m, 4096);
    kit_register(&p.k, &m, NDK_MR_FLAG_ALLOW_REMOTE_READ);
    NDK_MW *mw = make_mw(&p.k);
#define BIND(va, len, flags) p.b.qp->Dispatch->NdkBind(p.b.qp, KIT_CTX(1), m.mr, mw, va, len, flags)
    CHECK_NT(BIND(m.p, 8, NDK_OP_FLAG_ALLOW_REMOTE_WRITE), STATUS_ACCESS_VIOLATION);
    CHECK_NT(BIND(m.p + 4090, 7, NDK_OP_FLAG_ALLOW_REMOTE_READ), STATUS_ACCESS_VIOLATION);
    CHECK_NT(BIND(m.p - 1, 7, NDK_OP_FLAG_ALLOW_REMOTE_READ), STATUS_ACCESS_VIOLATION);
    CHECK_NT(BIND(m.p, 8, NDK_OP_FLAG_ALLOW_REMOTE_READ), STATUS_SUCCESS);
    CHECK_RESULT(&p.b.cq, NdkOperationTypeBind, 1, STATUS_SUCCESS);
    KIT_CLOSE(mw, NdkCloseMw);
    kit_free(&m);
    kit_down(&p);
}

/* A region is closed when no window is bound to it, however that came about. */
static void a_region_waits_for_its_windows(void) {
    for (int how = 0; how < 3; how++) {
        struct kit_pair p;
        struct kit_wait w;
        struct kit_mem m;
        up(&p, 4096);
        kit_alloc(&m, 4096);
        kit_register(&p.k, &m, NDK_MR_FLAG_ALLOW_REMOTE_READ);
        NDK_MW *mw = make_mw(&p.k);
        NDK_MR *mr = m.mr;
        NDK_SGE s = kit_sge(&p.mem, 0, 8);
        CHECK_NT(BIND(m.p, 8, NDK_OP_FLAG_ALLOW_REMOTE_READ), STATUS_SUCCESS);
        CHECK_RESULT(&p.b.cq, NdkOperationTypeBind, 1, STATUS_SUCCESS);
        UINT32 token = mw->Dispatch->NdkGetRemoteTokenFromMw(mw);
        if (how == 2) { /* the peer ends it */
            NDK_RESULT_EX r;
            CHECK_NT(RECV(p.b, 2, &s, 1), STATUS_SUCCESS);
            CHECK_NT(p.a.qp->Dispatch->NdkSendAndInvalidate(p.a.qp, KIT_CTX(3), &s, 1, 0, token),
                     STATUS_SUCCESS);
            CHECK(kit_result(&p.b.cq, &r));
            CHECK_NT(r.Status, STATUS_SUCCESS);
            CHECK_EQ(r.Type, NdkOperationTypeReceiveAndInvalidate);
            CHECK_EQ((UINT32)r.TypeSpecificCompletionOutput, token);
            CHECK_RESULT(&p.a.cq, NdkOperationTypeSend, 3, STATUS_SUCCESS);
            CHECK_EQ(mw->Dispatch->NdkGetRemoteTokenFromMw(mw), 0);
        }
        kit_wait_init(&w);
        NTSTATUS st = mr->Dispatch->NdkCloseMr(&mr->Header, kit_closed, &w);
        m.mr = NULL;
        if (how != 2) CHECK_NT(st, STATUS_PENDING);
        if (how == 0) KIT_CLOSE(mw, NdkCloseMw);
        if (how == 1) {
            CHECK_EQ(COUNT(w.calls), 0);
            CHECK_NT(p.b.qp->Dispatch->NdkInvalidate(p.b.qp, KIT_CTX(2), &mw->Header, 0),
                     STATUS_SUCCESS);
            CHECK_RESULT(&p.b.cq, NdkOperationTypeInvalidate, 2, STATUS_SUCCESS);
        }
        CHECK_NT(kit_finish(&w, st), STATUS_SUCCESS);
        KIT_CLOSE(mw, NdkCloseMw);
        kit_free(&m);
        kit_down(&p);
    }
}

/* ---- volume ---- */

struct stream {
    ULONG sent, done, received, posted;
};

/* Both directions at once, of many sizes; each message says which it is. */
static void traffic_both_ways_arrives_in_order(void) {
    struct kit_pair p;
    enum { ALL = 600, SLOT = 16384, SLOTS = 32 };
    up(&p, 4 * SLOTS * SLOT);
    struct kit_end *ends[] = { &p.a, &p.b };
    struct stream st[2];
    memset(st, 0, sizeof st);
    while (st[0].done < ALL || st[1].done < ALL || st[0].received < ALL || st[1].received < ALL) {
        for (ULONG side = 0; side < 2; side++) {
            struct stream *s = &st[side];
            ULONG out = side * 2 * SLOTS * SLOT, in = out + SLOTS * SLOT;
            while (s->posted < ALL && s->posted - s->received < SLOTS) {
                NDK_SGE to = kit_sge(&p.mem, in + s->posted % SLOTS * SLOT, SLOT);
                CHECK_NT(RECV(*ends[side], s->posted, &to, 1), STATUS_SUCCESS);
                s->posted++;
            }
            /* only what the other side has a receive for */
            while (s->sent < ALL && s->sent - s->done < SLOTS && s->sent < st[1 - side].posted) {
                ULONG n = 4 + (s->sent * 7919u) % (SLOT - 4);
                UCHAR *m = p.mem.p + out + s->sent % SLOTS * SLOT;
                fill(m, n, (UCHAR)(s->sent + side));
                memcpy(m, &s->sent, 4);
                NDK_SGE from = kit_sge(&p.mem, out + s->sent % SLOTS * SLOT, n);
                CHECK_NT(
                    SEND(*ends[side], s->sent, &from, 1, s->sent % 4 == 1 ? NDK_OP_FLAG_DEFER : 0),
                    STATUS_SUCCESS);
                s->sent++;
            }
            if (s->sent % 4 == 2) { /* the last one was deferred: an empty Write starts it */
                CHECK_NT(WRITE(*ends[side], 0, NULL, 0, 0, 0, NDK_OP_FLAG_SILENT_SUCCESS),
                         STATUS_SUCCESS);
            }
            NDK_RESULT_EX r;
            while (ends[side]->cq.cq->Dispatch->NdkGetCqResultsEx(ends[side]->cq.cq, &r, 1)) {
                CHECK_NT(r.Status, STATUS_SUCCESS);
                if (r.Type == NdkOperationTypeSend) {
                    CHECK_PTR(r.RequestContext, KIT_CTX(s->done));
                    s->done++;
                    continue;
                }
                ULONG n = 4 + (s->received * 7919u) % (SLOT - 4), number;
                UCHAR *m = p.mem.p + in + s->received % SLOTS * SLOT, want[SLOT];
                CHECK_PTR(r.RequestContext, KIT_CTX(s->received));
                CHECK_EQ(r.BytesTransferred, n);
                memcpy(&number, m, 4);
                CHECK_EQ(number, s->received);
                fill(want, n, (UCHAR)(s->received + 1 - side));
                CHECK_BYTES(m + 4, want + 4, n - 4);
                s->received++;
            }
        }
    }
    kit_down(&p);
}

/* ---- the end, in any order ---- */

struct closing {
    NDK_OBJECT_HEADER *o;
    NDK_FN_CLOSE_OBJECT *close;
};

static ULONG next_random(ULONG *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Everything is closed in one go, in any order, with requests outstanding; each close says once
 * that it is complete. */
static void objects_may_be_closed_in_any_order(void) {
    for (ULONG seed = 1; seed <= 25; seed++) {
        struct kit_pair p;
        struct fast f;
        ULONG state = seed;
        up(&p, 4096);
        fast_make(&p.k, &f, 1, 0x50000000);
        NDK_MW *mw = make_mw(&p.k);
        NDK_SRQ *srq = make_srq(&p.k, 4, 0);
        NDK_SGE s = kit_sge(&p.mem, 0, 8);
        for (int i = 0; i < 3; i++) {
            CHECK_NT(RECV(p.a, i, &s, 1), STATUS_SUCCESS);
            CHECK_NT(RECV(p.b, i, &s, 1), STATUS_SUCCESS);
        }
        fast_register(&f, &p.a, NDK_OP_FLAG_ALLOW_REMOTE_READ);
        CHECK_NT(p.b.qp->Dispatch->NdkBind(p.b.qp, NULL, p.mem.mr, mw, p.mem.p, 8,
                                           NDK_OP_FLAG_ALLOW_REMOTE_READ),
                 STATUS_SUCCESS);
        CHECK_NT(SEND(p.a, 9, &s, 1, 0), STATUS_SUCCESS);
#define ROW(obj, method)                                                                           \
    { &(obj)->Header, (obj)->Dispatch->method }
        struct closing all[] = {
            ROW(p.a.connector, NdkCloseConnector),
            ROW(p.b.connector, NdkCloseConnector),
            ROW(p.a.qp, NdkCloseQp),
            ROW(p.b.qp, NdkCloseQp),
            ROW(p.a.cq.cq, NdkCloseCq),
            ROW(p.b.cq.cq, NdkCloseCq),
            ROW(p.mem.mr, NdkCloseMr),
            ROW(f.mr, NdkCloseMr),
            ROW(mw, NdkCloseMw),
            ROW(srq, NdkCloseSrq),
            ROW(p.listener, NdkCloseListener),
            ROW(p.k.pd, NdkClosePd),
        };
        kit_drain(&p.a.cq); /* or the verifier asks why nobody ever did */
        kit_drain(&p.b.cq);
        enum { N = sizeof all / sizeof all[0] };
        struct kit_wait w[N];
        for (ULONG i = 0; i < N; i++)
            kit_wait_init(&w[i]);
        ULONG sequence[N];
        NTSTATUS status[N];
        for (ULONG i = 0; i < N; i++)
            sequence[i] = i;
        for (ULONG i = N - 1; i > 0; i--) {
            ULONG j = next_random(&state) % (i + 1), t = sequence[i];
            sequence[i] = sequence[j];
            sequence[j] = t;
        }
        for (ULONG i = 0; i < N; i++) {
            struct closing *c = &all[sequence[i]];
            status[sequence[i]] = c->close(c->o, kit_closed, &w[sequence[i]]);
            CHECK(status[sequence[i]] == STATUS_SUCCESS || status[sequence[i]] == STATUS_PENDING);
        }
        for (ULONG i = 0; i < N; i++)
            CHECK_NT(kit_finish(&w[i], status[i]), STATUS_SUCCESS);
        p.k.pd = NULL;
        p.mem.mr = NULL;
        p.k.ad->Dispatch->NdkReleaseLAM(p.k.ad, f.lam);
        ExFreePoolWithTag(f.lam, KIT_TAG);
        ExFreePoolWithTag(f.page, KIT_TAG);
        kit_free(&f.mem);
        kit_free(&p.mem);
        kit_shut(&p.k);
        for (ULONG i = 0; i < N; i++)
            CHECK_EQ(COUNT(w[i].calls), status[i] == STATUS_PENDING);
    }
}

static void closing_a_connecting_connector_cancels_it(void) {
    struct kit_pair p;
    struct kit_wait con, closed;
    SOCKADDR_IN from = kit_address(0);
    up_as(&p, 4096, 8, 1, 0);
    kit_listen(&p);
    p.a.connector = kit_connector(&p.k);
    kit_wait_init(&con);
    kit_wait_init(&closed);
    CHECK_NT(p.a.connector->Dispatch->NdkConnect(
                 p.a.connector, p.a.qp, (SOCKADDR *)&from, sizeof from, (SOCKADDR *)&p.address,
                 sizeof p.address, 1, 1, NULL, 0, kit_request_done, &con),
             STATUS_PENDING);
    CHECK(kit_wait_event(&p.incoming)); /* nobody answers it */
    NDK_CONNECTOR *c = p.a.connector;
    p.a.connector = NULL;
    NTSTATUS st = c->Dispatch->NdkCloseConnector(&c->Header, kit_closed, &closed);
    CHECK_NT(kit_finish(&closed, st), STATUS_SUCCESS);
    CHECK_EQ(COUNT(con.calls), 1); /* before the close was complete */
    CHECK_NT(con.status, STATUS_CANCELLED);
    /* The other side finds out when it answers. */
    kit_wait_init(&con);
    CHECK_NT(
        kit_finish(&con, p.b.connector->Dispatch->NdkAccept(p.b.connector, p.b.qp, 1, 1, NULL, 0,
                                                            NULL, NULL, kit_request_done, &con)),
        STATUS_CONNECTION_ABORTED);
    kit_down(&p);
}

/* ---- threads ---- */

struct poster {
    struct kit_pair *p;
    KEVENT done;
    LONG failed;
    LONG posted;
};

static void post_until_it_is_over(PVOID ctx) {
    struct poster *t = (struct poster *)ctx;
    NDK_SGE s = kit_sge(&t->p->mem, 0, 8);
    NDK_CQ *cq = t->p->a.cq.cq;
    NDK_RESULT_EX r[8];
    NTSTATUS st = STATUS_SUCCESS;
    LONG out = 0;
    while (st == STATUS_SUCCESS) { /* until a post fails, or one is cancelled */
        ULONG n = cq->Dispatch->NdkGetCqResultsEx(cq, r, 8);
        out -= (LONG)n;
        for (ULONG i = 0; i < n && st == STATUS_SUCCESS; i++)
            st = r[i].Status;
        if (st != STATUS_SUCCESS || out == DEPTH) continue;
        st = WRITE(t->p->a, 1, &s, 1, address_of(t->p->mem.p + 100), kit_remote(t->p), 0);
        if (st == STATUS_SUCCESS) out++;
        if (st == STATUS_SUCCESS) InterlockedIncrement(&t->posted);
    }
    if (st != STATUS_CONNECTION_INVALID && st != STATUS_CANCELLED)
        InterlockedExchange(&t->failed, 1);
    KeSetEvent(&t->done, 0, FALSE);
}

/* NdkFlush, and the close of the connector, may run beside a post. */
static void flush_and_close_may_run_beside_a_post(void) {
    for (int how = 0; how < 6; how++) {
        struct kit_pair p;
        struct poster t;
        HANDLE thread;
        memset(&t, 0, sizeof t);
        up(&p, 4096);
        t.p = &p;
        KeInitializeEvent(&t.done, NotificationEvent, FALSE);
        CHECK_NT(PsCreateSystemThread(&thread, THREAD_ALL_ACCESS, NULL, NULL, NULL,
                                      post_until_it_is_over, &t),
                 STATUS_SUCCESS);
        LARGE_INTEGER step = { .QuadPart = -1000 };
        while (COUNT(t.posted) < 200 && COUNT(t.failed) == 0)
            KeDelayExecutionThread(KernelMode, FALSE, &step);
        if (how % 2)
            p.a.qp->Dispatch->NdkFlush(p.a.qp);
        else
            KIT_CLOSE(p.a.connector, NdkCloseConnector);
        CHECK(kit_wait_event(&t.done));
        CHECK_EQ(COUNT(t.failed), 0);
        ZwClose(thread);
        kit_down(&p);
    }
}

/* The verifier, if it was on, found nothing. The cases after it break rules, without it. */
static void verifier_stayed_silent(void) {
    CHECK_EQ(softndk_report_leaks(), 0);
    CHECK_EQ(softndk_violations(NULL), 0);
    softndk_set("verifier", "off");
}

static void a_full_completion_queue_is_an_error_of_the_queue(void) {
    struct kit_pair p;
    struct kit_cq cq;
    NDK_QP *qp;
    enum { MANY = 4096 }; /* a queue may hold more than it was made for */
    up(&p, 4096);
    kit_make_cq(&p.k, &cq, 2);
    KIT_CREATE(NDK_QP, qp,
               p.k.pd->Dispatch->NdkCreateQp(p.k.pd, cq.cq, cq.cq, NULL, MANY, 1, 1, 1, 0,
                                             kit_created, &kit_w, &kit_o));
    NDK_SGE s = kit_sge(&p.mem, 0, 8);
    cq.cq->Dispatch->NdkArmCq(cq.cq, NDK_CQ_NOTIFY_ERRORS);
    for (int i = 0; i < MANY; i++)
        CHECK_NT(qp->Dispatch->NdkReceive(qp, KIT_CTX(i), &s, 1), STATUS_SUCCESS);
    qp->Dispatch->NdkFlush(qp);
    CHECK(kit_wait_event(&cq.notified));
    CHECK_NT(cq.status, STATUS_BUFFER_OVERFLOW);
    cq.cq->Dispatch->NdkArmCq(cq.cq, NDK_CQ_NOTIFY_ANY); /* it stays broken */
    CHECK(kit_wait_event(&cq.notified));
    CHECK_NT(cq.status, STATUS_BUFFER_OVERFLOW);
    KIT_CLOSE(qp, NdkCloseQp);
    KIT_CLOSE(cq.cq, NdkCloseCq);
    CHECK_EQ(COUNT(cq.calls), 2);
    kit_down(&p);
}

static void a_queue_cannot_shrink_below_its_results(void) {
    struct kit_pair p;
    struct kit_wait w;
    up(&p, 4096);
    NDK_SGE s = kit_sge(&p.mem, 0, 8);
    for (int i = 0; i < 4; i++)
        CHECK_NT(RECV(p.b, i, &s, 1), STATUS_SUCCESS);
    p.b.qp->Dispatch->NdkFlush(p.b.qp);
    kit_wait_init(&w);
    NDK_CQ *cq = p.b.cq.cq;
    CHECK_NT(cq->Dispatch->NdkResizeCq(cq, 3, kit_request_done, &w), STATUS_INVALID_PARAMETER);
    CHECK_NT(kit_finish(&w, cq->Dispatch->NdkResizeCq(cq, 4, kit_request_done, &w)),
             STATUS_SUCCESS);
    for (int i = 0; i < 4; i++)
        CHECK_RESULT(&p.b.cq, NdkOperationTypeReceive, i, STATUS_CANCELLED);
    kit_down(&p);
}

static void local_segments_are_checked(void) {
    static const char *const what[] = { "end", "token", "other domain" };
    for (size_t i = 0; i < RTL_NUMBER_OF(what); i++) {
        struct kit_pair p, other;
        NDK_RESULT_EX r;
        up(&p, 4096);
        up_as(&other, 4096, 4, 1, 0);
        NDK_SGE s = i == 2 ? kit_sge(&other.mem, 0, 8) : kit_sge(&p.mem, i ? 0 : 4092, 8);
        if (i == 1) s.MemoryRegionToken ^= 0x3333;
        NTSTATUS st = SEND(p.a, 5, &s, 1, 0);
        if (st == STATUS_SUCCESS) {
            CHECK(kit_result(&p.a.cq, &r));
            CHECK_PTR(r.RequestContext, KIT_CTX(5));
            st = r.Status;
        }
        CHECK_NT(st, STATUS_ACCESS_VIOLATION);
        kit_down(&other);
        kit_down(&p);
    }
}

TEST_MAIN(TEST(every_size_around_the_borders_arrives), TEST(requests_without_segments_are_requests),
          TEST(inline_data_may_be_in_any_number_of_segments),
          TEST(a_read_may_have_more_segments_than_a_send),
          TEST(frames_of_very_many_pieces_are_whole),
          TEST(registrations_follow_each_other_without_waiting), TEST(refused_writes_say_why),
          TEST(refused_reads_say_why), TEST(send_without_a_receive_times_out),
          TEST(send_waits_for_a_receive_that_comes),
          TEST(disconnect_cancels_what_this_side_has_posted), TEST(arms_merge_as_the_table_says),
          TEST(a_failed_request_fires_a_solicited_arm), TEST(drain_arm_return_loses_nothing),
          TEST(one_queue_serves_several_pairs),
          TEST(moderation_holds_a_callback_back_but_not_for_ever),
          TEST(shared_receives_go_to_who_needs_them), TEST(windows_are_exact_to_the_byte),
          TEST(a_region_waits_for_its_windows), TEST(traffic_both_ways_arrives_in_order),
          TEST(objects_may_be_closed_in_any_order), TEST(closing_a_connecting_connector_cancels_it),
          TEST(flush_and_close_may_run_beside_a_post), TEST(verifier_stayed_silent),
          TEST(rights_of_a_registration_are_exact), TEST(second_registration_fails_aloud),
          TEST(a_window_needs_the_regions_rights),
          TEST(a_full_completion_queue_is_an_error_of_the_queue),
          TEST(a_queue_cannot_shrink_below_its_results), TEST(local_segments_are_checked))
