/* SPDX-License-Identifier: MIT
 * Two queue pairs of this process, connected over iWARP on loopback: what the functions of the
 * dispatch tables do. The build runs this with each way to complete requests, with scattered
 * pages, and with the verifier, which must stay silent.
 */
#include "kit.h"

#define SEND(e, ctx, sge, n, flags) (e).qp->Dispatch->NdkSend((e).qp, KIT_CTX(ctx), sge, n, flags)
#define RECV(e, ctx, sge, n) (e).qp->Dispatch->NdkReceive((e).qp, KIT_CTX(ctx), sge, n)

static UINT64 at(struct kit_pair *p, ULONG off) {
    return (UINT64)(ULONG_PTR)(p->mem.p + off);
}

static void fill(UCHAR *p, ULONG n, UCHAR seed) {
    for (ULONG i = 0; i < n; i++)
        p[i] = (UCHAR)(i * 7 + seed + i / 256);
}

/* ---- transfers ---- */

static void send_arrives_in_a_receive(void) {
    struct kit_pair p;
    kit_up(&p);
    fill(p.mem.p, 100, 1);
    NDK_SGE to = kit_sge(&p.mem, 4096, 200), from = kit_sge(&p.mem, 0, 100);
    CHECK_NT(RECV(p.b, 1, &to, 1), STATUS_SUCCESS);
    CHECK_NT(SEND(p.a, 2, &from, 1, 0), STATUS_SUCCESS);
    NDK_RESULT_EX r;
    CHECK(kit_result(&p.b.cq, &r));
    CHECK_NT(r.Status, STATUS_SUCCESS);
    CHECK_EQ(r.Type, NdkOperationTypeReceive);
    CHECK_EQ(r.BytesTransferred, 100);
    CHECK_PTR(r.QPContext, &p.b.qp);
    CHECK_PTR(r.RequestContext, KIT_CTX(1));
    CHECK_EQ(r.ProviderErrorCode, 0);
    CHECK_RESULT(&p.a.cq, NdkOperationTypeSend, 2, STATUS_SUCCESS);
    CHECK_BYTES(p.mem.p + 4096, p.mem.p, 100);
    kit_down(&p);
}

static void gathered_send_scatters_into_a_receive(void) {
    struct kit_pair p;
    kit_up(&p);
    fill(p.mem.p, 3000, 9);
    NDK_SGE to[] = { kit_sge(&p.mem, 8192, 10), kit_sge(&p.mem, 9000, 3000) };
    NDK_SGE from[] = { kit_sge(&p.mem, 0, 1000), kit_sge(&p.mem, 1000, 0),
                       kit_sge(&p.mem, 1000, 2000) };
    CHECK_NT(RECV(p.b, 1, to, 2), STATUS_SUCCESS);
    CHECK_NT(SEND(p.a, 2, from, 3, 0), STATUS_SUCCESS);
    CHECK_RESULT(&p.b.cq, NdkOperationTypeReceive, 1, STATUS_SUCCESS);
    CHECK_BYTES(p.mem.p + 8192, p.mem.p, 10);
    CHECK_BYTES(p.mem.p + 9000, p.mem.p + 10, 2990);
    kit_down(&p);
}

static void write_and_read_move_memory(void) {
    struct kit_pair p;
    kit_up(&p);
    fill(p.mem.p, 20000, 5);
    NDK_SGE from = kit_sge(&p.mem, 0, 20000), to = kit_sge(&p.mem, 44000, 20000);
    CHECK_NT(
        p.a.qp->Dispatch->NdkWrite(p.a.qp, KIT_CTX(1), &from, 1, at(&p, 22000), kit_remote(&p), 0),
        STATUS_SUCCESS);
    CHECK_RESULT(&p.a.cq, NdkOperationTypeWrite, 1, STATUS_SUCCESS);
    CHECK_NT(
        p.a.qp->Dispatch->NdkRead(p.a.qp, KIT_CTX(2), &to, 1, at(&p, 22000), kit_remote(&p), 0),
        STATUS_SUCCESS);
    CHECK_RESULT(&p.a.cq, NdkOperationTypeRead, 2, STATUS_SUCCESS);
    CHECK_BYTES(p.mem.p + 44000, p.mem.p, 20000);
    kit_down(&p);
}

static void inline_data_may_change_after_the_call(void) {
    struct kit_pair p;
    UCHAR data[KIT_INLINE];
    kit_up(&p);
    NDK_SGE to = kit_sge(&p.mem, 0, 100), from;
    memset(&from, 0, sizeof from); /* no token: it is ignored */
    from.VirtualAddress = data;
    from.Length = sizeof data;
    memset(data, 0x11, sizeof data);
    CHECK_NT(RECV(p.b, 1, &to, 1), STATUS_SUCCESS);
    CHECK_NT(SEND(p.a, 2, &from, 1, NDK_OP_FLAG_INLINE), STATUS_SUCCESS);
    memset(data, 0x22, sizeof data);
    CHECK_RESULT(&p.b.cq, NdkOperationTypeReceive, 1, STATUS_SUCCESS);
    CHECK_EQ(p.mem.p[0], 0x11);
    CHECK_EQ(p.mem.p[KIT_INLINE - 1], 0x11);
    memset(data, 0x33, sizeof data);
    CHECK_NT(p.a.qp->Dispatch->NdkWrite(p.a.qp, KIT_CTX(3), &from, 1, at(&p, 500), kit_remote(&p),
                                        NDK_OP_FLAG_INLINE),
             STATUS_SUCCESS);
    CHECK_RESULT(&p.a.cq, NdkOperationTypeSend, 2, STATUS_SUCCESS);
    CHECK_RESULT(&p.a.cq, NdkOperationTypeWrite, 3, STATUS_SUCCESS);
    CHECK_EQ(p.mem.p[500], 0x33);
    kit_down(&p);
}

static void silent_success_gives_no_result(void) {
    struct kit_pair p;
    kit_up(&p);
    NDK_SGE to = kit_sge(&p.mem, 0, 100), from = kit_sge(&p.mem, 200, 8);
    for (int i = 0; i < 3; i++)
        CHECK_NT(RECV(p.b, i, &to, 1), STATUS_SUCCESS);
    CHECK_NT(SEND(p.a, 1, &from, 1, NDK_OP_FLAG_SILENT_SUCCESS), STATUS_SUCCESS);
    CHECK_NT(SEND(p.a, 2, &from, 1, NDK_OP_FLAG_SILENT_SUCCESS), STATUS_SUCCESS);
    CHECK_NT(SEND(p.a, 3, &from, 1, 0), STATUS_SUCCESS);
    CHECK_RESULT(&p.a.cq, NdkOperationTypeSend, 3, STATUS_SUCCESS);
    kit_down(&p);
}

static void fenced_write_waits_for_the_read(void) {
    struct kit_pair p;
    kit_up(&p);
    fill(p.mem.p, 4096, 3);
    NDK_SGE sink = kit_sge(&p.mem, 8192, 4096);
    CHECK_NT(p.a.qp->Dispatch->NdkRead(p.a.qp, KIT_CTX(1), &sink, 1, at(&p, 0), kit_remote(&p), 0),
             STATUS_SUCCESS);
    CHECK_NT(p.a.qp->Dispatch->NdkWrite(p.a.qp, KIT_CTX(2), &sink, 1, at(&p, 16384), kit_remote(&p),
                                        NDK_OP_FLAG_READ_FENCE),
             STATUS_SUCCESS);
    CHECK_RESULT(&p.a.cq, NdkOperationTypeRead, 1, STATUS_SUCCESS);
    CHECK_RESULT(&p.a.cq, NdkOperationTypeWrite, 2, STATUS_SUCCESS);
    CHECK_BYTES(p.mem.p + 16384, p.mem.p, 4096);
    kit_down(&p);
}

static void plain_results_hide_the_type(void) {
    struct kit_pair p;
    NDK_RESULT r;
    kit_up(&p);
    NDK_SGE to = kit_sge(&p.mem, 0, 100), from = kit_sge(&p.mem, 200, 8);
    CHECK_NT(RECV(p.b, 1, &to, 1), STATUS_SUCCESS);
    CHECK_EQ(p.b.cq.cq->Dispatch->NdkGetCqResults(p.b.cq.cq, &r, 1), 0);
    p.b.cq.cq->Dispatch->NdkArmCq(p.b.cq.cq, NDK_CQ_NOTIFY_ANY);
    CHECK_NT(SEND(p.a, 2, &from, 1, 0), STATUS_SUCCESS);
    CHECK(kit_wait_event(&p.b.cq.notified));
    CHECK_EQ(p.b.cq.cq->Dispatch->NdkGetCqResults(p.b.cq.cq, &r, 1), 1);
    CHECK_NT(r.Status, STATUS_SUCCESS);
    CHECK_EQ(r.BytesTransferred, 8);
    CHECK_PTR(r.RequestContext, KIT_CTX(1));
    kit_down(&p);
}

/* ---- notification ---- */

static void callback_comes_once_per_arm_at_dispatch_level(void) {
    struct kit_pair p;
    kit_up(&p);
    NDK_SGE to = kit_sge(&p.mem, 0, 100), from = kit_sge(&p.mem, 200, 8);
    for (int i = 0; i < 3; i++)
        CHECK_NT(RECV(p.b, i, &to, 1), STATUS_SUCCESS);
    CHECK_NT(SEND(p.a, 1, &from, 1, 0), STATUS_SUCCESS);
    CHECK_RESULT(&p.a.cq, NdkOperationTypeSend, 1, STATUS_SUCCESS);
    CHECK_EQ(COUNT(p.b.cq.calls), 0);                            /* not armed */
    p.b.cq.cq->Dispatch->NdkArmCq(p.b.cq.cq, NDK_CQ_NOTIFY_ANY); /* the entry is there */
    CHECK(kit_wait_event(&p.b.cq.notified));
    CHECK_EQ(p.b.cq.irql, DISPATCH_LEVEL);
    CHECK_NT(p.b.cq.status, STATUS_SUCCESS);
    CHECK_EQ(KeGetCurrentIrql(), PASSIVE_LEVEL);
    NDK_RESULT_EX r;
    CHECK_EQ(p.b.cq.cq->Dispatch->NdkGetCqResultsEx(p.b.cq.cq, &r, 1), 1);
    CHECK_NT(SEND(p.a, 2, &from, 1, 0), STATUS_SUCCESS);
    CHECK_RESULT(&p.a.cq, NdkOperationTypeSend, 2, STATUS_SUCCESS);
    CHECK_EQ(COUNT(p.b.cq.calls), 1);
    kit_down(&p);
}

static void solicited_arm_ignores_plain_sends(void) {
    struct kit_pair p;
    NDK_RESULT_EX r[4];
    kit_up(&p);
    NDK_SGE to = kit_sge(&p.mem, 0, 100), from = kit_sge(&p.mem, 200, 8);
    for (int i = 0; i < 3; i++)
        CHECK_NT(RECV(p.b, i, &to, 1), STATUS_SUCCESS);
    p.b.cq.cq->Dispatch->NdkArmCq(p.b.cq.cq, NDK_CQ_NOTIFY_SOLICITED);
    CHECK_NT(SEND(p.a, 1, &from, 1, 0), STATUS_SUCCESS);
    CHECK_RESULT(&p.a.cq, NdkOperationTypeSend, 1, STATUS_SUCCESS);
    CHECK_EQ(COUNT(p.b.cq.calls), 0);
    CHECK_NT(SEND(p.a, 2, &from, 1, NDK_OP_FLAG_SEND_AND_SOLICIT_EVENT), STATUS_SUCCESS);
    CHECK(kit_wait_event(&p.b.cq.notified));
    ULONG n = 0;
    while (n < 2)
        n += p.b.cq.cq->Dispatch->NdkGetCqResultsEx(p.b.cq.cq, r + n, 2 - n);
    CHECK_RESULT(&p.a.cq, NdkOperationTypeSend, 2, STATUS_SUCCESS);
    kit_down(&p);
}

static void moderation_follows_its_table(void) {
    struct kit_pair p;
    kit_up(&p);
    NDK_CQ *cq = p.b.cq.cq;
    CHECK_NT(cq->Dispatch->NdkControlCqInterruptModeration(cq, MAXULONG, MAXULONG),
             STATUS_INVALID_PARAMETER_MIX);
    CHECK_NT(cq->Dispatch->NdkControlCqInterruptModeration(cq, MAXULONG, 2 * KIT_DEPTH + 1),
             STATUS_INVALID_PARAMETER_MIX);
    CHECK_NT(cq->Dispatch->NdkControlCqInterruptModeration(cq, 20, MAXULONG), STATUS_SUCCESS);
    CHECK_NT(cq->Dispatch->NdkControlCqInterruptModeration(cq, 1000, 2), STATUS_SUCCESS);
    NDK_SGE to = kit_sge(&p.mem, 0, 100), from = kit_sge(&p.mem, 200, 8);
    CHECK_NT(RECV(p.b, 1, &to, 1), STATUS_SUCCESS);
    cq->Dispatch->NdkArmCq(cq, NDK_CQ_NOTIFY_ANY);
    CHECK_NT(SEND(p.a, 2, &from, 1, 0), STATUS_SUCCESS);
    CHECK_RESULT(&p.b.cq, NdkOperationTypeReceive, 1, STATUS_SUCCESS); /* late, but it comes */
    kit_down(&p);
}

static void resize_keeps_results(void) {
    struct kit_pair p;
    struct kit_wait w;
    kit_up(&p);
    NDK_CQ *cq = p.b.cq.cq;
    NDK_SGE to = kit_sge(&p.mem, 0, 100), from = kit_sge(&p.mem, 200, 8);
    CHECK_NT(RECV(p.b, 1, &to, 1), STATUS_SUCCESS);
    CHECK_NT(SEND(p.a, 2, &from, 1, 0), STATUS_SUCCESS);
    CHECK_RESULT(&p.a.cq, NdkOperationTypeSend, 2, STATUS_SUCCESS);
    kit_wait_init(&w);
    CHECK_NT(kit_finish(&w, cq->Dispatch->NdkResizeCq(cq, 4 * KIT_DEPTH, kit_request_done, &w)),
             STATUS_SUCCESS);
    CHECK_NT(cq->Dispatch->NdkResizeCq(cq, p.k.info.MaxCqDepth + 1, kit_request_done, &w),
             STATUS_INVALID_PARAMETER);
    CHECK_NT(cq->Dispatch->NdkResizeCq(cq, 0, kit_request_done, &w), STATUS_INVALID_PARAMETER);
    CHECK_RESULT(&p.b.cq, NdkOperationTypeReceive, 1, STATUS_SUCCESS);
    kit_down(&p);
}

/* ---- mappings, the privileged token, fast registration ---- */

struct lam {
    NDK_LOGICAL_ADDRESS_MAPPING *m;
    ULONG size, fbo;
};

static void build_lam(struct kit *k, MDL *mdl, SIZE_T len, struct lam *l) {
    struct kit_wait w;
    l->size = 0;
    kit_wait_init(&w);
    CHECK_NT(k->ad->Dispatch->NdkBuildLAM(k->ad, mdl, len, kit_request_done, &w, NULL, &l->size,
                                          &l->fbo),
             STATUS_BUFFER_TOO_SMALL);
    l->m = (NDK_LOGICAL_ADDRESS_MAPPING *)ExAllocatePoolWithTag(NonPagedPoolNx, l->size, KIT_TAG);
    CHECK(l->m != NULL);
    CHECK_NT(kit_finish(&w, k->ad->Dispatch->NdkBuildLAM(k->ad, mdl, len, kit_request_done, &w,
                                                         l->m, &l->size, &l->fbo)),
             STATUS_SUCCESS);
    CHECK_EQ(l->size, 0x10 + 8 * l->m->AdapterPageCount);
}

static void free_lam(struct kit *k, struct lam *l) {
    k->ad->Dispatch->NdkReleaseLAM(k->ad, l->m);
    ExFreePoolWithTag(l->m, KIT_TAG);
}

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

static PHYSICAL_ADDRESS page_at(struct lam *l, ULONG i) {
    return (&l->m->AdapterPageArray[0])[i];
}

static void mapping_names_pages_by_logical_addresses(void) {
    struct kit k;
    struct kit_mem m;
    struct lam l;
    kit_open(&k);
    kit_alloc(&m, 5 * PAGE_SIZE);
    MDL *part = IoAllocateMdl(m.p + 100, 3 * PAGE_SIZE, FALSE, FALSE, NULL);
    MmBuildMdlForNonPagedPool(part);
    build_lam(&k, part, 3 * PAGE_SIZE, &l);
    CHECK_EQ(l.fbo, 100);
    CHECK_EQ(l.m->AdapterPageCount, 4);
    for (ULONG i = 0; i < 4; i++) {
        CHECK_EQ(page_at(&l, i).QuadPart & (PAGE_SIZE - 1), 0);
        CHECK(page_at(&l, i).QuadPart != (LONGLONG)(ULONG_PTR)(m.p + i * PAGE_SIZE));
        CHECK(page_at(&l, i).QuadPart != MmGetPhysicalAddress(m.p + i * PAGE_SIZE).QuadPart);
    }
    IoFreeMdl(part); /* the mapping does not need it */
    free_lam(&k, &l);
    kit_free(&m);
    kit_shut(&k);
}

static void mapping_of_a_gap_is_refused(void) {
    struct kit k;
    struct kit_mem m;
    ULONG size = 1000, fbo;
    UCHAR room[1000];
    kit_open(&k);
    kit_alloc(&m, 4 * PAGE_SIZE);
    MDL *one = IoAllocateMdl(m.p, PAGE_SIZE, FALSE, FALSE, NULL);
    MDL *two = IoAllocateMdl(m.p + PAGE_SIZE, PAGE_SIZE, FALSE, FALSE, NULL);
    MDL *far = IoAllocateMdl(m.p + 3 * PAGE_SIZE, PAGE_SIZE, FALSE, FALSE, NULL);
    one->Next = two;
    two->Next = far;
    NDK_LOGICAL_ADDRESS_MAPPING *lam = (NDK_LOGICAL_ADDRESS_MAPPING *)(PVOID)room;
#define BUILD(len)                                                                                 \
    (size = sizeof room,                                                                           \
     k.ad->Dispatch->NdkBuildLAM(k.ad, one, len, kit_request_done, NULL, lam, &size, &fbo))
    CHECK_NT(BUILD(2 * PAGE_SIZE + 1), STATUS_INVALID_PARAMETER); /* not contiguous */
    one->Next = NULL;
    CHECK_NT(BUILD(PAGE_SIZE + 1), STATUS_INVALID_PARAMETER); /* longer than the chain */
    CHECK_NT(BUILD(0), STATUS_INVALID_PARAMETER);
    IoFreeMdl(one);
    IoFreeMdl(two);
    IoFreeMdl(far);
    kit_free(&m);
    kit_shut(&k);
}

static void privileged_token_reaches_mapped_memory(void) {
    struct kit_pair p;
    struct lam l;
    kit_up(&p);
    build_lam(&p.k, p.mem.mdl, 4 * PAGE_SIZE, &l);
    fill(p.mem.p, 4 * PAGE_SIZE, 77);
    NDK_SGE from, to = kit_sge(&p.mem, 32768, 8192);
    memset(&from, 0, sizeof from);
    from.LogicalAddress = page_at(&l, 1);
    from.LogicalAddress.QuadPart += 10;
    from.Length = 300;
    from.MemoryRegionToken = p.k.privileged;
    CHECK_NT(RECV(p.b, 1, &to, 1), STATUS_SUCCESS);
    CHECK_NT(SEND(p.a, 2, &from, 1, 0), STATUS_SUCCESS);
    CHECK_RESULT(&p.b.cq, NdkOperationTypeReceive, 1, STATUS_SUCCESS);
    CHECK_BYTES(p.mem.p + 32768, p.mem.p + PAGE_SIZE + 10, 300);
    CHECK_RESULT(&p.a.cq, NdkOperationTypeSend, 2, STATUS_SUCCESS);
    /* and as the target of a Read */
    from.LogicalAddress = page_at(&l, 3);
    CHECK_NT(
        p.a.qp->Dispatch->NdkRead(p.a.qp, KIT_CTX(3), &from, 1, at(&p, 32768), kit_remote(&p), 0),
        STATUS_SUCCESS);
    CHECK_RESULT(&p.a.cq, NdkOperationTypeRead, 3, STATUS_SUCCESS);
    CHECK_BYTES(p.mem.p + 3 * PAGE_SIZE, p.mem.p + 32768, 300);
    free_lam(&p.k, &l);
    kit_down(&p);
}

#define BASE(fbo) ((PVOID)(ULONG_PTR)(0x70000000 + (fbo)))

static void fast_registered_pages_are_written_and_read_across_borders(void) {
    struct kit_pair p;
    struct lam l;
    enum { PAGES = 6, FBO = 1000, LEN = PAGES * PAGE_SIZE - FBO - 500 };
    kit_up(&p);
    struct kit_mem target;
    kit_alloc(&target, PAGES * PAGE_SIZE);
    build_lam(&p.k, target.mdl, target.bytes, &l);
    NDK_MR *mr = fast_mr(&p.k, PAGES, TRUE);
    fill(p.mem.p, LEN, 13);
    /* Register and use in one go: no wait between. The peer's side registers; a writes. */
    CHECK_NT(p.b.qp->Dispatch->NdkFastRegister(
                 p.b.qp, KIT_CTX(1), mr, PAGES, l.m->AdapterPageArray, FBO, LEN, BASE(FBO),
                 NDK_OP_FLAG_ALLOW_REMOTE_READ | NDK_OP_FLAG_ALLOW_REMOTE_WRITE |
                     NDK_OP_FLAG_RDMA_READ_SINK),
             STATUS_SUCCESS);
    UINT32 token = mr->Dispatch->NdkGetRemoteTokenFromMr(mr);
    CHECK(token != 0 && token != p.k.privileged);
    CHECK(token != mr->Dispatch->NdkGetLocalTokenFromMr(mr));
    CHECK_RESULT(&p.b.cq, NdkOperationTypeFastRegister, 1, STATUS_SUCCESS);
    NDK_SGE from = kit_sge(&p.mem, 0, LEN), back = kit_sge(&p.mem, 32768, LEN);
    UINT64 base = (UINT64)(ULONG_PTR)BASE(FBO);
    CHECK_NT(p.a.qp->Dispatch->NdkWrite(p.a.qp, KIT_CTX(2), &from, 1, base, token, 0),
             STATUS_SUCCESS);
    CHECK_RESULT(&p.a.cq, NdkOperationTypeWrite, 2, STATUS_SUCCESS);
    CHECK_NT(p.a.qp->Dispatch->NdkRead(p.a.qp, KIT_CTX(3), &back, 1, base, token, 0),
             STATUS_SUCCESS);
    CHECK_RESULT(&p.a.cq, NdkOperationTypeRead, 3, STATUS_SUCCESS);
    CHECK_BYTES(target.p + FBO, p.mem.p, LEN);
    CHECK_BYTES(p.mem.p + 32768, p.mem.p, LEN);
    CHECK_EQ(target.p[FBO - 1], 0);
    CHECK_EQ(target.p[FBO + LEN], 0);
    /* b itself sends from it by its local token, across a border. */
    NDK_SGE local, to = kit_sge(&p.mem, 60000, 2000);
    memset(&local, 0, sizeof local);
    local.VirtualAddress = (PCHAR)BASE(FBO) + 2 * PAGE_SIZE - FBO - 700;
    local.Length = 1400;
    local.MemoryRegionToken = mr->Dispatch->NdkGetLocalTokenFromMr(mr);
    CHECK_NT(RECV(p.a, 4, &to, 1), STATUS_SUCCESS);
    CHECK_NT(SEND(p.b, 5, &local, 1, 0), STATUS_SUCCESS);
    CHECK_RESULT(&p.a.cq, NdkOperationTypeReceive, 4, STATUS_SUCCESS);
    CHECK_BYTES(p.mem.p + 60000, target.p + 2 * PAGE_SIZE - 700, 1400);
    CHECK_RESULT(&p.b.cq, NdkOperationTypeSend, 5, STATUS_SUCCESS);
    CHECK_NT(p.b.qp->Dispatch->NdkInvalidate(p.b.qp, KIT_CTX(6), &mr->Header, 0), STATUS_SUCCESS);
    CHECK_RESULT(&p.b.cq, NdkOperationTypeInvalidate, 6, STATUS_SUCCESS);
    free_lam(&p.k, &l);
    KIT_CLOSE(mr, NdkCloseMr);
    kit_free(&target);
    kit_down(&p);
}

static NTSTATUS fast(struct kit_pair *p, NDK_MR *mr, struct lam *l, ULONG count, ULONG fbo,
                     SIZE_T len, PVOID base, ULONG flags) {
    return p->b.qp->Dispatch->NdkFastRegister(p->b.qp, KIT_CTX(1), mr, count,
                                              l->m->AdapterPageArray, fbo, len, base, flags);
}

/* Without the verifier, which would report each. */
static void fast_register_answers_misuse_with_its_status(void) {
    struct kit_pair p;
    struct lam l;
    enum { PAGES = 4 };
    softndk_set("verifier", "off");
    kit_up(&p);
    build_lam(&p.k, p.mem.mdl, PAGES * PAGE_SIZE, &l);
    NDK_MR *mr = fast_mr(&p.k, PAGES, FALSE), *raw;
    KIT_CREATE(NDK_MR, raw,
               p.k.pd->Dispatch->NdkCreateMr(p.k.pd, TRUE, kit_created, &kit_w, &kit_o));
    CHECK_NT(fast(&p, mr, &l, 1, 0, 1, BASE(0), NDK_OP_FLAG_ALLOW_REMOTE_READ),
             STATUS_ACCESS_VIOLATION);
    CHECK_NT(fast(&p, mr, &l, 1, 0, 1, BASE(0), NDK_OP_FLAG_ALLOW_REMOTE_WRITE),
             STATUS_ACCESS_VIOLATION);
    CHECK_NT(fast(&p, raw, &l, 1, 0, 1, BASE(0), 0), STATUS_INVALID_DEVICE_STATE);
    CHECK_NT(fast(&p, p.mem.mr, &l, 1, 0, 1, BASE(0), 0), STATUS_INVALID_PARAMETER);
    CHECK_NT(fast(&p, mr, &l, 0, 0, 1, BASE(0), 0), STATUS_INVALID_PARAMETER);
    CHECK_NT(fast(&p, mr, &l, PAGES + 1, 0, 1, BASE(0), 0), STATUS_INVALID_PARAMETER);
    CHECK_NT(fast(&p, mr, &l, 1, PAGE_SIZE, 1, BASE(0), 0), STATUS_INVALID_PARAMETER);
    CHECK_NT(fast(&p, mr, &l, 1, 8, PAGE_SIZE - 7, BASE(8), 0), STATUS_INVALID_PARAMETER);
    CHECK_NT(fast(&p, mr, &l, 1, 8, 1, BASE(9), 0), STATUS_INVALID_PARAMETER);
    CHECK_NT(fast(&p, mr, &l, 1, 8, 1, NULL, 0), STATUS_INVALID_PARAMETER);
    CHECK_NT(fast(&p, mr, &l, 1, 0, 0, BASE(0), 0), STATUS_INVALID_PARAMETER);
    CHECK_NT(fast(&p, mr, &l, 1, 0, 1, BASE(0), 0x4), STATUS_INVALID_PARAMETER);
    CHECK_NT(fast(&p, mr, &l, 1, 0, 1, BASE(0), 0x20), STATUS_INVALID_PARAMETER); /* half */
    NDK_LOGICAL_ADDRESS odd = page_at(&l, 0), wild;
    odd.QuadPart += 8;
    wild.QuadPart = (LONGLONG)(ULONG_PTR)p.mem.p; /* a virtual address */
    CHECK_NT(p.b.qp->Dispatch->NdkFastRegister(p.b.qp, NULL, mr, 1, &odd, 0, 1, BASE(0), 0),
             STATUS_INVALID_PARAMETER);
    CHECK_NT(p.b.qp->Dispatch->NdkFastRegister(p.b.qp, NULL, mr, 1, &wild, 0, 1, BASE(0), 0),
             STATUS_INVALID_PARAMETER);
    struct kit_wait w;
    kit_wait_init(&w);
    CHECK_NT(
        raw->Dispatch->NdkInitializeFastRegisterMr(raw, 0x7FFFFFFF, TRUE, kit_request_done, &w),
        STATUS_IMPLEMENTATION_LIMIT);
    CHECK_NT(raw->Dispatch->NdkRegisterMr(raw, p.mem.mdl, 1, 0, kit_request_done, &w),
             STATUS_INVALID_DEVICE_REQUEST);
    CHECK_NT(mr->Dispatch->NdkDeregisterMr(mr, kit_request_done, &w),
             STATUS_INVALID_DEVICE_REQUEST);
    /* A base of 0 with offset 0, and every flag that is allowed, are fine. */
    CHECK_NT(
        fast(&p, mr, &l, PAGES, 0, PAGES * PAGE_SIZE, NULL,
             NDK_OP_FLAG_READ_FENCE | NDK_OP_FLAG_ALLOW_LOCAL_WRITE | NDK_OP_FLAG_RDMA_READ_SINK),
        STATUS_SUCCESS);
    CHECK_RESULT(&p.b.cq, NdkOperationTypeFastRegister, 1, STATUS_SUCCESS);
    free_lam(&p.k, &l);
    KIT_CLOSE(raw, NdkCloseMr);
    KIT_CLOSE(mr, NdkCloseMr);
    kit_down(&p);
}

static void fast_register_needs_a_connection_and_runs_at_dispatch_level(void) {
    struct kit_pair p;
    struct lam l;
    kit_objects(&p);
    build_lam(&p.k, p.mem.mdl, PAGE_SIZE, &l);
    NDK_MR *mr = fast_mr(&p.k, 1, TRUE);
    CHECK_NT(fast(&p, mr, &l, 1, 0, 1, BASE(0), 0), STATUS_CONNECTION_INVALID);
    CHECK_NT(p.b.qp->Dispatch->NdkSend(p.b.qp, NULL, NULL, 0, 0), STATUS_CONNECTION_INVALID);
    CHECK_NT(p.b.qp->Dispatch->NdkRead(p.b.qp, NULL, NULL, 0, 0, 1, 0), STATUS_CONNECTION_INVALID);
    CHECK_NT(p.b.qp->Dispatch->NdkWrite(p.b.qp, NULL, NULL, 0, 0, 1, 0), STATUS_CONNECTION_INVALID);
    kit_connect(&p);
    KIRQL old;
    KeRaiseIrql(DISPATCH_LEVEL, &old);
    NTSTATUS status = fast(&p, mr, &l, 1, 0, 1, BASE(0), NDK_OP_FLAG_SILENT_SUCCESS);
    KeLowerIrql(old);
    CHECK_NT(status, STATUS_SUCCESS);
    CHECK_NT(p.b.qp->Dispatch->NdkInvalidate(p.b.qp, KIT_CTX(2), &mr->Header, 0), STATUS_SUCCESS);
    CHECK_RESULT(&p.b.cq, NdkOperationTypeInvalidate, 2, STATUS_SUCCESS); /* and no other before */
    free_lam(&p.k, &l);
    KIT_CLOSE(mr, NdkCloseMr);
    kit_down(&p);
}

static void stale_remote_token_fails_at_the_peer(void) {
    struct kit_pair p;
    struct lam l;
    kit_up(&p);
    build_lam(&p.k, p.mem.mdl, PAGE_SIZE, &l);
    NDK_MR *mr = fast_mr(&p.k, 1, TRUE);
    UINT32 old = 0;
    for (int i = 0; i < 3; i++) {
        CHECK_NT(fast(&p, mr, &l, 1, 0, PAGE_SIZE, BASE(0),
                      NDK_OP_FLAG_ALLOW_REMOTE_READ | NDK_OP_FLAG_SILENT_SUCCESS),
                 STATUS_SUCCESS);
        UINT32 now = mr->Dispatch->NdkGetRemoteTokenFromMr(mr);
        CHECK(now != old);
        old = now;
        CHECK_NT(p.b.qp->Dispatch->NdkInvalidate(p.b.qp, KIT_CTX(2), &mr->Header, 0),
                 STATUS_SUCCESS);
        CHECK_RESULT(&p.b.cq, NdkOperationTypeInvalidate, 2, STATUS_SUCCESS);
    }
    CHECK_NT(fast(&p, mr, &l, 1, 0, PAGE_SIZE, BASE(0),
                  NDK_OP_FLAG_ALLOW_REMOTE_READ | NDK_OP_FLAG_SILENT_SUCCESS),
             STATUS_SUCCESS);
    NDK_SGE to = kit_sge(&p.mem, 8192, 16);
    CHECK_NT(
        p.a.qp->Dispatch->NdkRead(p.a.qp, KIT_CTX(3), &to, 1, (UINT64)(ULONG_PTR)BASE(0), old, 0),
        STATUS_SUCCESS);
    CHECK_RESULT(&p.a.cq, NdkOperationTypeRead, 3, STATUS_ACCESS_VIOLATION);
    KIT_CLOSE(mr, NdkCloseMr);
    free_lam(&p.k, &l);
    kit_down(&p);
}

static void send_and_invalidate_ends_the_peers_registration(void) {
    struct kit_pair p;
    struct lam l;
    NDK_RESULT_EX r;
    kit_up(&p);
    build_lam(&p.k, p.mem.mdl, PAGE_SIZE, &l);
    NDK_MR *mr = fast_mr(&p.k, 1, TRUE);
    CHECK_NT(fast(&p, mr, &l, 1, 0, PAGE_SIZE, BASE(0),
                  NDK_OP_FLAG_ALLOW_REMOTE_READ | NDK_OP_FLAG_SILENT_SUCCESS),
             STATUS_SUCCESS);
    UINT32 token = mr->Dispatch->NdkGetRemoteTokenFromMr(mr);
    NDK_SGE to = kit_sge(&p.mem, 8192, 64), from = kit_sge(&p.mem, 16384, 64);
    CHECK_NT(RECV(p.b, 1, &to, 1), STATUS_SUCCESS);
    CHECK_NT(p.a.qp->Dispatch->NdkSendAndInvalidate(p.a.qp, KIT_CTX(2), &from, 1, 0, token),
             STATUS_SUCCESS);
    CHECK(kit_result(&p.b.cq, &r));
    CHECK_NT(r.Status, STATUS_SUCCESS);
    CHECK_EQ(r.Type, NdkOperationTypeReceiveAndInvalidate);
    CHECK_EQ((UINT32)r.TypeSpecificCompletionOutput, token);
    CHECK_RESULT(&p.a.cq, NdkOperationTypeSend, 2, STATUS_SUCCESS);
    /* The region can be registered again at once, and has another token. */
    CHECK_NT(fast(&p, mr, &l, 1, 0, PAGE_SIZE, BASE(0), NDK_OP_FLAG_ALLOW_REMOTE_READ),
             STATUS_SUCCESS);
    CHECK_RESULT(&p.b.cq, NdkOperationTypeFastRegister, 1, STATUS_SUCCESS);
    CHECK(mr->Dispatch->NdkGetRemoteTokenFromMr(mr) != token);
    /* A token that is none ends the connection, by the transport's rules. */
    CHECK_NT(RECV(p.b, 3, &to, 1), STATUS_SUCCESS);
    CHECK_NT(p.a.qp->Dispatch->NdkSendAndInvalidate(p.a.qp, KIT_CTX(4), &from, 1, 0, token),
             STATUS_SUCCESS);
    CHECK(kit_result(&p.b.cq, &r));
    CHECK(!NT_SUCCESS(r.Status));
    KIT_CLOSE(mr, NdkCloseMr);
    free_lam(&p.k, &l);
    kit_down(&p);
}

static void read_local_invalidate_ends_the_sinks_registration(void) {
    struct kit_pair p;
    struct lam l;
    kit_up(&p);
    CHECK(p.k.info.AdapterFlags & NDK_ADAPTER_FLAG_RDMA_READ_LOCAL_INVALIDATE_SUPPORTED);
    build_lam(&p.k, p.mem.mdl, PAGE_SIZE, &l);
    NDK_MR *mr = fast_mr(&p.k, 1, FALSE);
    fill(p.mem.p + 8192, 64, 99);
    for (int i = 0; i < 2; i++) { /* the second time shows that the first was ended */
        CHECK_NT(fast(&p, mr, &l, 1, 0, PAGE_SIZE, BASE(0),
                      NDK_OP_FLAG_ALLOW_LOCAL_WRITE | NDK_OP_FLAG_RDMA_READ_SINK |
                          NDK_OP_FLAG_SILENT_SUCCESS),
                 STATUS_SUCCESS);
        NDK_SGE to;
        memset(&to, 0, sizeof to);
        to.VirtualAddress = BASE(0);
        to.Length = 64;
        to.MemoryRegionToken = mr->Dispatch->NdkGetLocalTokenFromMr(mr);
        CHECK_NT(p.b.qp->Dispatch->NdkRead(p.b.qp, KIT_CTX(3), &to, 1, at(&p, 8192), kit_remote(&p),
                                           NDK_OP_FLAG_RDMA_READ_LOCAL_INVALIDATE),
                 STATUS_SUCCESS);
        CHECK_RESULT(&p.b.cq, NdkOperationTypeRead, 3, STATUS_SUCCESS);
        CHECK_BYTES(p.mem.p, p.mem.p + 8192, 64);
    }
    free_lam(&p.k, &l);
    KIT_CLOSE(mr, NdkCloseMr);
    kit_down(&p);
}

/* ---- deferring ---- */

static void deferred_requests_start_with_the_next_that_is_not(void) {
    struct kit_pair p;
    NDK_RESULT_EX r;
    kit_up(&p);
    NDK_SGE to = kit_sge(&p.mem, 0, 100), from = kit_sge(&p.mem, 200, 8);
    for (int i = 0; i < 3; i++)
        CHECK_NT(RECV(p.b, 10 + i, &to, 1), STATUS_SUCCESS);
    CHECK_NT(SEND(p.a, 1, &from, 1, NDK_OP_FLAG_DEFER), STATUS_SUCCESS);
    CHECK_NT(SEND(p.a, 2, &from, 1, NDK_OP_FLAG_DEFER), STATUS_SUCCESS);
    /* A round trip the other way would have brought them along. */
    CHECK_NT(RECV(p.a, 4, &to, 1), STATUS_SUCCESS);
    CHECK_NT(SEND(p.b, 5, &from, 1, 0), STATUS_SUCCESS);
    CHECK_RESULT(&p.a.cq, NdkOperationTypeReceive, 4, STATUS_SUCCESS);
    CHECK_RESULT(&p.b.cq, NdkOperationTypeSend, 5, STATUS_SUCCESS);
    CHECK_EQ(p.b.cq.cq->Dispatch->NdkGetCqResultsEx(p.b.cq.cq, &r, 1), 0);
    CHECK_NT(SEND(p.a, 3, &from, 1, 0), STATUS_SUCCESS);
    for (int i = 0; i < 3; i++)
        CHECK_RESULT(&p.b.cq, NdkOperationTypeReceive, 10 + i, STATUS_SUCCESS);
    for (int i = 1; i <= 3; i++)
        CHECK_RESULT(&p.a.cq, NdkOperationTypeSend, i, STATUS_SUCCESS);
    kit_down(&p);
}

static void failed_post_starts_what_was_deferred(void) {
    struct kit_pair p;
    softndk_set("verifier", "off"); /* it would report the failing request */
    kit_up(&p);
    NDK_SGE to = kit_sge(&p.mem, 0, 100), from = kit_sge(&p.mem, 200, 8);
    CHECK_NT(RECV(p.b, 1, &to, 1), STATUS_SUCCESS);
    CHECK_NT(SEND(p.a, 2, &from, 1, NDK_OP_FLAG_DEFER), STATUS_SUCCESS);
    CHECK_NT(SEND(p.a, 3, &from, 1, 0x80000000 | NDK_OP_FLAG_DEFER), STATUS_INVALID_PARAMETER);
    CHECK_RESULT(&p.b.cq, NdkOperationTypeReceive, 1, STATUS_SUCCESS);
    CHECK_RESULT(&p.a.cq, NdkOperationTypeSend, 2, STATUS_SUCCESS);
    kit_down(&p);
}

/* ---- windows and shared receive queues ---- */

static void window_opens_and_closes_a_part_of_a_region(void) {
    struct kit_pair p;
    NDK_MW *mw;
    kit_up(&p);
    KIT_CREATE(NDK_MW, mw, p.k.pd->Dispatch->NdkCreateMw(p.k.pd, kit_created, &kit_w, &kit_o));
    CHECK_NT(p.b.qp->Dispatch->NdkBind(p.b.qp, KIT_CTX(1), p.mem.mr, mw, p.mem.p + 4096, 100,
                                       NDK_OP_FLAG_ALLOW_REMOTE_WRITE),
             STATUS_SUCCESS);
    UINT32 token = mw->Dispatch->NdkGetRemoteTokenFromMw(mw);
    CHECK(token != 0);
    CHECK_RESULT(&p.b.cq, NdkOperationTypeBind, 1, STATUS_SUCCESS);
    memset(p.mem.p, 0x42, 100);
    NDK_SGE from = kit_sge(&p.mem, 0, 100);
    CHECK_NT(p.a.qp->Dispatch->NdkWrite(p.a.qp, KIT_CTX(2), &from, 1, at(&p, 4096), token, 0),
             STATUS_SUCCESS);
    CHECK_RESULT(&p.a.cq, NdkOperationTypeWrite, 2, STATUS_SUCCESS);
    CHECK_EQ(p.mem.p[4096 + 99], 0x42);
    CHECK_NT(p.b.qp->Dispatch->NdkInvalidate(p.b.qp, KIT_CTX(3), &mw->Header, 0), STATUS_SUCCESS);
    CHECK_RESULT(&p.b.cq, NdkOperationTypeInvalidate, 3, STATUS_SUCCESS);
    CHECK_NT(p.a.qp->Dispatch->NdkWrite(p.a.qp, KIT_CTX(4), &from, 1, at(&p, 4096), token, 0),
             STATUS_SUCCESS);
    CHECK_RESULT(&p.a.cq, NdkOperationTypeWrite, 4, STATUS_ACCESS_VIOLATION);
    KIT_CLOSE(mw, NdkCloseMw);
    kit_down(&p);
}

struct srq_told {
    KEVENT event;
    LONG calls;
    KIRQL irql;
};
static void srq_notified(PVOID ctx, NTSTATUS status) {
    struct srq_told *t = (struct srq_told *)ctx;
    t->irql = KeGetCurrentIrql();
    if (status == STATUS_SUCCESS) InterlockedIncrement(&t->calls);
    KeSetEvent(&t->event, 0, FALSE);
}

static void shared_queue_feeds_its_pairs_and_tells_its_threshold(void) {
    struct kit_pair p;
    struct srq_told told = { 0 };
    struct kit_wait w;
    NDK_SRQ *srq;
    KeInitializeEvent(&told.event, SynchronizationEvent, FALSE);
    kit_objects(&p);
    KIT_CLOSE(p.b.qp, NdkCloseQp);
    KIT_CREATE(NDK_SRQ, srq,
               p.k.pd->Dispatch->NdkCreateSrq(p.k.pd, 8, 2, 2, srq_notified, &told, NULL,
                                              kit_created, &kit_w, &kit_o));
    KIT_CREATE(NDK_QP, p.b.qp,
               p.k.pd->Dispatch->NdkCreateQpWithSrq(p.k.pd, p.b.cq.cq, p.b.cq.cq, srq, &p.b.qp,
                                                    KIT_DEPTH, KIT_SGE, 0, kit_created, &kit_w,
                                                    &kit_o));
    NDK_SGE to = kit_sge(&p.mem, 0, 100), from = kit_sge(&p.mem, 200, 8);
    for (int i = 0; i < 3; i++)
        CHECK_NT(srq->Dispatch->NdkSrqReceive(srq, KIT_CTX(10 + i), &to, 1), STATUS_SUCCESS);
    CHECK_EQ(COUNT(told.calls), 0); /* it has not fallen yet */
    kit_connect(&p);
    CHECK_NT(SEND(p.a, 1, &from, 1, 0), STATUS_SUCCESS);
    CHECK_RESULT(&p.b.cq, NdkOperationTypeReceive, 10, STATUS_SUCCESS);
    CHECK_EQ(COUNT(told.calls), 0); /* two are left: not below */
    CHECK_NT(SEND(p.a, 2, &from, 1, 0), STATUS_SUCCESS);
    CHECK(kit_wait_event(&told.event));
    CHECK_EQ(told.irql, DISPATCH_LEVEL);
    CHECK_NT(SEND(p.a, 3, &from, 1, 0), STATUS_SUCCESS);
    CHECK_RESULT(&p.b.cq, NdkOperationTypeReceive, 11, STATUS_SUCCESS);
    CHECK_RESULT(&p.b.cq, NdkOperationTypeReceive, 12, STATUS_SUCCESS);
    CHECK_EQ(COUNT(told.calls), 1); /* once per arm */
    kit_wait_init(&w);
    CHECK_NT(kit_finish(&w, srq->Dispatch->NdkModifySrq(srq, 0, 0, kit_request_done, &w)),
             STATUS_SUCCESS);
    CHECK_EQ(COUNT(told.calls), 1);
    kit_wait_init(&w);
    CHECK_NT(kit_finish(&w, srq->Dispatch->NdkModifySrq(srq, 16, 1, kit_request_done, &w)),
             STATUS_SUCCESS); /* below already: at once */
    CHECK(kit_wait_event(&told.event));
    CHECK_NT(srq->Dispatch->NdkModifySrq(srq, p.k.info.MaxSrqDepth + 1, 1, kit_request_done, &w),
             STATUS_INVALID_PARAMETER);
    for (int i = 1; i <= 3; i++)
        CHECK_RESULT(&p.a.cq, NdkOperationTypeSend, i, STATUS_SUCCESS);
    KIT_CLOSE(p.b.connector, NdkCloseConnector);
    KIT_CLOSE(p.b.qp, NdkCloseQp);
    KIT_CLOSE(srq, NdkCloseSrq);
    kit_down(&p);
}

/* ---- the end of a connection ---- */

static void flush_cancels_everything_outstanding(void) {
    struct kit_pair p;
    kit_up(&p);
    NDK_SGE to = kit_sge(&p.mem, 0, 100);
    CHECK_NT(RECV(p.b, 1, &to, 1), STATUS_SUCCESS);
    CHECK_NT(RECV(p.b, 2, &to, 1), STATUS_SUCCESS);
    p.b.qp->Dispatch->NdkFlush(p.b.qp);
    CHECK_RESULT(&p.b.cq, NdkOperationTypeReceive, 1, STATUS_CANCELLED);
    CHECK_RESULT(&p.b.cq, NdkOperationTypeReceive, 2, STATUS_CANCELLED);
    CHECK(kit_wait_event(&p.a.disconnected)); /* the peer is told */
    CHECK_EQ(COUNT(p.b.disconnects), 0);      /* we did it ourselves */
    kit_down(&p);
}

static void peers_disconnect_is_told_once_and_flushes_nothing(void) {
    struct kit_pair p;
    struct kit_wait w;
    NDK_RESULT_EX r;
    kit_up(&p);
    NDK_SGE to = kit_sge(&p.mem, 0, 100);
    CHECK_NT(RECV(p.b, 1, &to, 1), STATUS_SUCCESS);
    kit_wait_init(&w);
    CHECK_NT(
        kit_finish(&w, p.a.connector->Dispatch->NdkDisconnect(p.a.connector, kit_request_done, &w)),
        STATUS_SUCCESS);
    CHECK(kit_wait_event(&p.b.disconnected));
    CHECK_EQ(p.b.cq.cq->Dispatch->NdkGetCqResultsEx(p.b.cq.cq, &r, 1), 0);
    CHECK_NT(p.b.qp->Dispatch->NdkSend(p.b.qp, NULL, NULL, 0, 0), STATUS_CONNECTION_INVALID);
    p.b.qp->Dispatch->NdkFlush(p.b.qp);
    CHECK_RESULT(&p.b.cq, NdkOperationTypeReceive, 1, STATUS_CANCELLED);
    kit_wait_init(&w);
    CHECK_NT(p.a.connector->Dispatch->NdkDisconnect(p.a.connector, kit_request_done, &w),
             STATUS_CONNECTION_INVALID);
    kit_down(&p);
    CHECK_EQ(COUNT(p.b.disconnects), 1);
    CHECK_EQ(COUNT(p.a.disconnects), 0);
}

static void closing_a_connected_connector_tells_the_peer(void) {
    struct kit_pair p;
    kit_up(&p);
    KIT_CLOSE(p.a.connector, NdkCloseConnector);
    CHECK(kit_wait_event(&p.b.disconnected));
    kit_down(&p);
}

static void denied_write_fails_with_access_violation(void) {
    struct kit_pair p;
    kit_up(&p);
    NDK_SGE from = kit_sge(&p.mem, 0, 16);
    CHECK_NT(p.a.qp->Dispatch->NdkWrite(p.a.qp, KIT_CTX(1), &from, 1, at(&p, KIT_MEM - 8),
                                        kit_remote(&p), 0),
             STATUS_SUCCESS);
    CHECK_RESULT(&p.a.cq, NdkOperationTypeWrite, 1, STATUS_ACCESS_VIOLATION);
    kit_down(&p);
}

static void too_long_a_send_fails_the_receive(void) {
    struct kit_pair p;
    NDK_RESULT_EX r;
    kit_up(&p);
    NDK_SGE to = kit_sge(&p.mem, 0, 8), from = kit_sge(&p.mem, 100, 9);
    CHECK_NT(RECV(p.b, 1, &to, 1), STATUS_SUCCESS);
    CHECK_NT(SEND(p.a, 2, &from, 1, 0), STATUS_SUCCESS);
    CHECK(kit_result(&p.b.cq, &r));
    CHECK_NT(r.Status, STATUS_INVALID_BUFFER_SIZE);
    CHECK(r.ProviderErrorCode != 0);
    CHECK(kit_result(&p.a.cq, &r));
    CHECK(!NT_SUCCESS(r.Status));
    kit_down(&p);
}

/* The verifier, if it was on, found nothing. Last. */
static void verifier_stayed_silent(void) {
    CHECK_EQ(softndk_report_leaks(), 0);
    CHECK_EQ(softndk_violations(NULL), 0);
}

TEST_MAIN(TEST(send_arrives_in_a_receive), TEST(gathered_send_scatters_into_a_receive),
          TEST(write_and_read_move_memory), TEST(inline_data_may_change_after_the_call),
          TEST(silent_success_gives_no_result), TEST(fenced_write_waits_for_the_read),
          TEST(plain_results_hide_the_type), TEST(callback_comes_once_per_arm_at_dispatch_level),
          TEST(solicited_arm_ignores_plain_sends), TEST(moderation_follows_its_table),
          TEST(resize_keeps_results), TEST(mapping_names_pages_by_logical_addresses),
          TEST(mapping_of_a_gap_is_refused), TEST(privileged_token_reaches_mapped_memory),
          TEST(fast_registered_pages_are_written_and_read_across_borders),
          TEST(fast_register_needs_a_connection_and_runs_at_dispatch_level),
          TEST(stale_remote_token_fails_at_the_peer),
          TEST(send_and_invalidate_ends_the_peers_registration),
          TEST(read_local_invalidate_ends_the_sinks_registration),
          TEST(deferred_requests_start_with_the_next_that_is_not),
          TEST(window_opens_and_closes_a_part_of_a_region),
          TEST(shared_queue_feeds_its_pairs_and_tells_its_threshold),
          TEST(flush_cancels_everything_outstanding),
          TEST(peers_disconnect_is_told_once_and_flushes_nothing),
          TEST(closing_a_connected_connector_tells_the_peer),
          TEST(denied_write_fails_with_access_violation), TEST(too_long_a_send_fails_the_receive),
          TEST(verifier_stayed_silent), TEST(fast_register_answers_misuse_with_its_status),
          TEST(failed_post_starts_what_was_deferred))
