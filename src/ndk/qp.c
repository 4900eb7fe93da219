/* SPDX-License-Identifier: MIT
 *
 * Queue pairs. A post that fails starts what was deferred before it: the consumer may take a
 * failure for the end of its chain.
 */
#include "ndk/ndk.h"

enum {
    SGE_MAX = 16,     /* of every request that is not inline; rd_limits_get() */
    INLINE_MAX = 512, /* likewise */
    COMMON_FLAGS = NDK_OP_FLAG_SILENT_SUCCESS | NDK_OP_FLAG_READ_FENCE | NDK_OP_FLAG_DEFER,
    SEND_FLAGS = COMMON_FLAGS | NDK_OP_FLAG_SEND_AND_SOLICIT_EVENT | NDK_OP_FLAG_INLINE,
    WRITE_FLAGS = COMMON_FLAGS | NDK_OP_FLAG_INLINE,
    READ_FLAGS = COMMON_FLAGS | NDK_OP_FLAG_RDMA_READ_LOCAL_INVALIDATE,
    BIND_FLAGS = COMMON_FLAGS | NDK_OP_FLAG_ALLOW_REMOTE_READ | NDK_OP_FLAG_ALLOW_REMOTE_WRITE,
    FAST_FLAGS = COMMON_FLAGS | NDK_OP_FLAG_ALLOW_REMOTE_READ | NDK_OP_FLAG_ALLOW_LOCAL_WRITE |
                 NDK_OP_FLAG_ALLOW_REMOTE_WRITE | NDK_OP_FLAG_RDMA_READ_SINK
};

static uint32_t post_flags(ULONG flags) {
    return ((flags & NDK_OP_FLAG_SILENT_SUCCESS) ? RD_POST_SILENT : 0) |
           ((flags & NDK_OP_FLAG_READ_FENCE) ? RD_POST_FENCE : 0) |
           ((flags & NDK_OP_FLAG_SEND_AND_SOLICIT_EVENT) ? RD_POST_SOLICIT : 0) |
           ((flags & NDK_OP_FLAG_INLINE) ? RD_POST_INLINE : 0) |
           ((flags & NDK_OP_FLAG_RDMA_READ_LOCAL_INVALIDATE) ? RD_POST_READ_INVALIDATE : 0) |
           ((flags & NDK_OP_FLAG_DEFER) ? RD_POST_DEFER : 0);
}

static bool remote_write(ULONG flags) {
    return (flags & NDK_OP_FLAG_ALLOW_REMOTE_WRITE) == NDK_OP_FLAG_ALLOW_REMOTE_WRITE;
}

static void convert(struct tp_sge *to, CONST NDK_SGE *from, ULONG count) {
    for (ULONG i = 0; i < count; i++)
        to[i] =
            (struct tp_sge){ from[i].VirtualAddress, from[i].Length, from[i].MemoryRegionToken };
}

/* The end of every post to the initiator queue. */
static NTSTATUS posted(struct ndk_qp *qp, sn_status st) {
    if (SN_LIKELY(st == SN_OK)) return STATUS_SUCCESS;
    rd_qp_start_deferred(qp->rd);
    return ndk_post_status(st);
}

/* A flag of two bits is whole or not there. */
static bool half_a_right(ULONG flags) {
    return (flags & NDK_OP_FLAG_ALLOW_REMOTE_WRITE) != 0 && !remote_write(flags);
}

static bool refuse(struct ndk_qp *qp, ULONG flags, ULONG allowed, NTSTATUS *status) {
    if (SN_UNLIKELY(flags & ~allowed)) {
        *status = posted(qp, SN_E_PARAM);
        return true;
    }
    if (SN_UNLIKELY(ndk_fail_post())) {
        *status = posted(qp, SN_E_RESOURCES);
        return true;
    }
    return false;
}

/* What the core is given in place of the consumer's segments: the same, or (inline, which may have
 * any number of segments) their bytes in one. */
struct segments {
    struct tp_sge sge[SGE_MAX];
    ULONG count;
    uint8_t bytes[INLINE_MAX];
};

static sn_status gather(struct segments *s, CONST NDK_SGE *sgl, ULONG count, ULONG most) {
    size_t n = 0;
    for (ULONG i = 0; i < count; i++) {
        if (sgl[i].Length > most - n) return SN_E_TOO_LONG;
        if (sgl[i].Length) memcpy(s->bytes + n, sgl[i].VirtualAddress, sgl[i].Length);
        n += sgl[i].Length;
    }
    s->sge[0] = (struct tp_sge){ s->bytes, (uint32_t)n, 0 };
    s->count = 1;
    return SN_OK;
}

static sn_status take(struct ndk_qp *qp, struct segments *s, CONST NDK_SGE *sgl, ULONG count,
                      ULONG limit, ULONG flags) {
    if (SN_UNLIKELY(count && !sgl)) return SN_E_PARAM;
    if (SN_UNLIKELY(count > limit)) {
        if (!(flags & NDK_OP_FLAG_INLINE)) return SN_E_TOO_MANY_SGE;
        if (count > SGE_MAX) return gather(s, sgl, count, qp->inline_bytes);
    }
    convert(s->sge, sgl, count);
    s->count = count;
    return SN_OK;
}

static NTSTATUS send_with(NDK_QP *object, PVOID ctx, CONST NDK_SGE *sgl, ULONG count, ULONG flags,
                          uint32_t more, UINT32 token) {
    struct ndk_qp *qp = (struct ndk_qp *)object;
    struct segments s;
    NTSTATUS status;
    if (refuse(qp, flags, SEND_FLAGS, &status)) return status;
    sn_status st = take(qp, &s, sgl, count, qp->initiator_sge, flags);
    if (SN_LIKELY(st == SN_OK))
        st = rd_qp_send(qp->rd, ctx, s.sge, s.count, post_flags(flags) | more, token);
    return posted(qp, st);
}

static NTSTATUS send_plain(NDK_QP *object, PVOID ctx, CONST NDK_SGE *sgl, ULONG count,
                           ULONG flags) {
    return send_with(object, ctx, sgl, count, flags, 0, 0);
}

static NTSTATUS send_and_invalidate(NDK_QP *object, PVOID ctx, CONST NDK_SGE *sgl, ULONG count,
                                    ULONG flags, UINT32 token) {
    return send_with(object, ctx, sgl, count, flags, RD_POST_INVALIDATE, token);
}

static NTSTATUS receive(NDK_QP *object, PVOID ctx, CONST NDK_SGE *sgl, ULONG count) {
    struct ndk_qp *qp = (struct ndk_qp *)object;
    struct segments s;
    if (ndk_fail_post()) return STATUS_INSUFFICIENT_RESOURCES;
    sn_status st = take(qp, &s, sgl, count, qp->receive_sge, 0);
    if (SN_LIKELY(st == SN_OK)) st = rd_qp_receive(qp->rd, ctx, s.sge, s.count);
    return ndk_post_status(st);
}

static NTSTATUS write(NDK_QP *object, PVOID ctx, CONST NDK_SGE *sgl, ULONG count, UINT64 address,
                      UINT32 token, ULONG flags) {
    struct ndk_qp *qp = (struct ndk_qp *)object;
    struct segments s;
    NTSTATUS status;
    if (refuse(qp, flags, WRITE_FLAGS, &status)) return status;
    sn_status st = take(qp, &s, sgl, count, qp->initiator_sge, flags);
    if (SN_LIKELY(st == SN_OK))
        st = rd_qp_write(qp->rd, ctx, s.sge, s.count, address, token, post_flags(flags));
    return posted(qp, st);
}

/* The adapter's limit for Reads stands above the queue pair's for requests. */
static NTSTATUS read(NDK_QP *object, PVOID ctx, CONST NDK_SGE *sgl, ULONG count, UINT64 address,
                     UINT32 token, ULONG flags) {
    struct ndk_qp *qp = (struct ndk_qp *)object;
    struct segments s;
    NTSTATUS status;
    if (refuse(qp, flags, READ_FLAGS, &status)) return status;
    sn_status st = take(qp, &s, sgl, count, qp->read_sge, flags);
    if (SN_LIKELY(st == SN_OK))
        st = rd_qp_read(qp->rd, ctx, s.sge, s.count, address, token, post_flags(flags));
    return posted(qp, st);
}

static NTSTATUS bind_window(NDK_QP *object, PVOID ctx, NDK_MR *mr_object, NDK_MW *mw_object,
                            PVOID va, SIZE_T length, ULONG flags) {
    struct ndk_qp *qp = (struct ndk_qp *)object;
    struct ndk_mr *mr = (struct ndk_mr *)mr_object, *old = NULL;
    struct ndk_mw *mw = (struct ndk_mw *)mw_object;
    NTSTATUS status;
    if (!mr || !mw || half_a_right(flags)) return posted(qp, SN_E_PARAM);
    if (refuse(qp, flags, BIND_FLAGS, &status)) return status;
    uint32_t rights = ((flags & NDK_OP_FLAG_ALLOW_REMOTE_READ) ? RD_REMOTE_READ : 0) |
                      (remote_write(flags) ? RD_REMOTE_WRITE : 0);
    sn_status st = rd_qp_bind(qp->rd, ctx, mr->rd, mw->rd, va, length, rights, post_flags(flags));
    if (st == SN_OK) {
        ndk_object_get(&mr->o);
        os_lock_enter(&mw->lock);
        old = mw->mr;
        mw->mr = mr;
        os_lock_leave(&mw->lock);
    }
    if (old) ndk_object_put(&old->o);
    return posted(qp, st == SN_E_TOKEN ? SN_E_REQUEST : st);
}

static NTSTATUS fast_register(NDK_QP *object, PVOID ctx, NDK_MR *mr_object, ULONG count,
                              CONST NDK_LOGICAL_ADDRESS *pages, ULONG fbo, SIZE_T length,
                              PVOID base, ULONG flags) {
    _Static_assert(sizeof(NDK_LOGICAL_ADDRESS) == sizeof(uint64_t), "handed on as it is");
    struct ndk_qp *qp = (struct ndk_qp *)object;
    struct ndk_mr *mr = (struct ndk_mr *)mr_object;
    NTSTATUS status;
    if (!mr || !mr->fast) return posted(qp, SN_E_PARAM);
    if (half_a_right(flags) && !(flags & NDK_OP_FLAG_ALLOW_LOCAL_WRITE))
        return posted(qp, SN_E_PARAM);
    if (refuse(qp, flags, FAST_FLAGS, &status)) return status;
    uint32_t rights = ((flags & NDK_OP_FLAG_ALLOW_LOCAL_WRITE) ? RD_LOCAL_WRITE : 0) |
                      ((flags & NDK_OP_FLAG_ALLOW_REMOTE_READ) ? RD_REMOTE_READ : 0) |
                      (remote_write(flags) ? RD_REMOTE_WRITE : 0) |
                      ((flags & NDK_OP_FLAG_RDMA_READ_SINK) ? RD_READ_SINK : 0);
    sn_status st =
        rd_qp_fast_register(qp->rd, ctx, mr->rd, (const uint64_t *)pages, count, fbo, length,
                            (uint64_t)(uintptr_t)base, rights, post_flags(flags));
    return posted(qp, st);
}

static NTSTATUS invalidate(NDK_QP *object, PVOID ctx, NDK_OBJECT_HEADER *what, ULONG flags) {
    struct ndk_qp *qp = (struct ndk_qp *)object;
    struct ndk_mr *mr = (struct ndk_mr *)what, *bound = NULL;
    NTSTATUS status;
    bool region = what && what->ObjectType == NdkObjectTypeMr;
    if (!what || (!region && what->ObjectType != NdkObjectTypeMw) || (region && !mr->fast))
        return posted(qp, SN_E_PARAM);
    if (refuse(qp, flags, COMMON_FLAGS, &status)) return status;
    if (region) return posted(qp, rd_qp_invalidate_region(qp->rd, ctx, mr->rd, post_flags(flags)));
    struct ndk_mw *mw = (struct ndk_mw *)what;
    sn_status st = rd_qp_invalidate(qp->rd, ctx, mw->rd, post_flags(flags));
    if (st == SN_OK) {
        os_lock_enter(&mw->lock);
        bound = mw->mr;
        mw->mr = NULL;
        os_lock_leave(&mw->lock);
    }
    if (bound) ndk_object_put(&bound->o);
    return posted(qp, st);
}

static VOID flush(NDK_QP *object) {
    struct ndk_qp *qp = (struct ndk_qp *)object;
    os_lock_enter(&qp->lock);
    struct ndk_connector *c = os_ptr_load_relaxed(&qp->connector);
    if (c) ndk_connector_local_end(c);
    os_lock_leave(&qp->lock);
    rd_qp_flush(qp->rd);
}

const NDK_QP_DISPATCH ndk_qp_dispatch = {
    .NdkCloseQp = ndk_close_object,
    .NdkQueryExtension = ndk_query_extension,
    .NdkFlush = flush,
    .NdkSend = send_plain,
    .NdkReceive = receive,
    .NdkBind = bind_window,
    .NdkFastRegister = fast_register,
    .NdkInvalidate = invalidate,
    .NdkRead = read,
    .NdkWrite = write,
    .NdkSendAndInvalidate = send_and_invalidate,
};

/* ---- create and close ---- */

static void teardown(struct ndk_object *o) {
    struct ndk_qp *qp = (struct ndk_qp *)o;
    if (qp->shadow) ndk_report_refused(qp);
    rd_qp_destroy(qp->rd);
    if (qp->shadow) ndk_shadow_qp_closed(qp);
    os_lock_fini(&qp->lock);
}

static NTSTATUS create(struct ndk_pd *pd, struct ndk_cq *rcq, struct ndk_cq *icq,
                       struct ndk_srq *srq, PVOID context, const struct rd_qp_attr *limits,
                       const char *name, NDK_FN_CREATE_COMPLETION *on_created, PVOID ctx,
                       NDK_QP **out) {
    struct ndk_adapter *ad = pd->o.ad;
    struct rd_qp_attr at = *limits;
    enum rd_qp_attr_fault fault;
    if (!rcq || !icq || !out) return STATUS_INVALID_PARAMETER;
    struct ndk_object *uses[] = { &pd->o, &rcq->o, &icq->o, srq ? &srq->o : &pd->o };
    struct ndk_qp *qp = ndk_object_new(
        ad, sizeof *qp, NdkObjectTypeQp,
        ad->verify ? (const void *)&ndk_verify_qp_dispatch : &ndk_qp_dispatch, uses, 4);
    if (!qp) return STATUS_INSUFFICIENT_RESOURCES;
    qp->pd = pd;
    qp->receive_cq = rcq;
    qp->initiator_cq = icq;
    qp->srq = srq;
    qp->context = context;
    qp->receive_depth = at.receive_depth;
    qp->initiator_depth = at.initiator_depth;
    qp->receive_sge = srq ? srq->max_sge : at.max_receive_sge;
    qp->initiator_sge = at.max_initiator_sge;
    qp->read_sge = rd_limits_get()->max_read_sge;
    qp->inline_bytes = at.inline_bytes;
    os_lock_init(&qp->lock, OS_RANK_REQUEST);
    if (at.max_initiator_sge < qp->read_sge) at.max_initiator_sge = qp->read_sge;
    at.context = context;
    at.receive_cq = rcq->rd;
    at.initiator_cq = icq->rd;
    at.srq = srq ? srq->rd : NULL;
    at.pd = pd->rd;
    at.hold_on_disconnect = true;
    sn_status st = SN_OK;
    if (ad->verify) {
        at.context = qp->shadow = ndk_shadow_new(qp);
        if (!qp->shadow) st = SN_E_NOMEM;
    }
    if (st == SN_OK) st = rd_qp_create(ad->rd, &at, &fault, &qp->rd);
    if (st != SN_OK) {
        ndk_object_discard(&qp->o);
        return ndk_status(st);
    }
    qp->o.teardown = teardown;
    return ndk_answer_create(&qp->o, name, on_created, ctx, out);
}

NTSTATUS ndk_create_qp(NDK_PD *object, NDK_CQ *receive_cq, NDK_CQ *initiator_cq, PVOID context,
                       ULONG receive_depth, ULONG initiator_depth, ULONG receive_sge,
                       ULONG initiator_sge, ULONG inline_bytes,
                       NDK_FN_CREATE_COMPLETION *on_created, PVOID ctx, NDK_QP **out) {
    NDK_ENTER(object, NdkObjectTypePd, "NdkCreateQp", STATUS_INVALID_PARAMETER);
    NDK_ARGUMENT(receive_cq, NdkObjectTypeCq, "NdkCreateQp", STATUS_INVALID_PARAMETER);
    NDK_ARGUMENT(initiator_cq, NdkObjectTypeCq, "NdkCreateQp", STATUS_INVALID_PARAMETER);
    ndk_check_callback((const void *)(uintptr_t)on_created, "NdkCreateQp", "CreateCompletion");
    struct rd_qp_attr at = { .receive_depth = receive_depth,
                             .initiator_depth = initiator_depth,
                             .max_receive_sge = receive_sge,
                             .max_initiator_sge = initiator_sge,
                             .inline_bytes = inline_bytes };
    return create((struct ndk_pd *)object, (struct ndk_cq *)receive_cq,
                  (struct ndk_cq *)initiator_cq, NULL, context, &at, "NdkCreateQp", on_created, ctx,
                  out);
}

NTSTATUS ndk_create_qp_with_srq(NDK_PD *object, NDK_CQ *receive_cq, NDK_CQ *initiator_cq,
                                NDK_SRQ *srq, PVOID context, ULONG initiator_depth,
                                ULONG initiator_sge, ULONG inline_bytes,
                                NDK_FN_CREATE_COMPLETION *on_created, PVOID ctx, NDK_QP **out) {
    NDK_ENTER(object, NdkObjectTypePd, "NdkCreateQpWithSrq", STATUS_INVALID_PARAMETER);
    NDK_ARGUMENT(receive_cq, NdkObjectTypeCq, "NdkCreateQpWithSrq", STATUS_INVALID_PARAMETER);
    NDK_ARGUMENT(initiator_cq, NdkObjectTypeCq, "NdkCreateQpWithSrq", STATUS_INVALID_PARAMETER);
    NDK_ARGUMENT(srq, NdkObjectTypeSrq, "NdkCreateQpWithSrq", STATUS_INVALID_PARAMETER);
    ndk_check_callback((const void *)(uintptr_t)on_created, "NdkCreateQpWithSrq",
                       "CreateCompletion");
    if (!srq) return STATUS_INVALID_PARAMETER;
    struct rd_qp_attr at = { .initiator_depth = initiator_depth,
                             .max_initiator_sge = initiator_sge,
                             .inline_bytes = inline_bytes };
    return create((struct ndk_pd *)object, (struct ndk_cq *)receive_cq,
                  (struct ndk_cq *)initiator_cq, (struct ndk_srq *)srq, context, &at,
                  "NdkCreateQpWithSrq", on_created, ctx, out);
}
