/* SPDX-License-Identifier: MIT
 *
 * The verifier on the data path: tables of functions that check and then call the provider's own.
 * Adapters opened while the verifier is off never see them.
 *
 * A shadow stands for a queue pair, or a shared receive queue, from its creation to the close of
 * the adapter. It has a record of each request that the consumer cannot know to be over, and of the
 * mappings that it uses.
 */
#include <stdlib.h>
#include "ndk/ndk.h"
#include "os/prim/fault.h"

enum { LAMS = 16 };

struct record {
    struct sn_list link;
    void *ctx;
    uint32_t type; /* enum rd_request_type */
    struct ndk_lam *lam[LAMS];
};

struct ndk_shadow {
    struct sn_list link;       /* [adapter lock] */
    PVOID context;             /* the consumer's */
    struct ndk_shadow *shared; /* of the shared queue that its receives come from, or NULL */
    os_lock lock;              /* rank LEAF: everything below */
    struct ndk_qp *qp;         /* NULL: closed, or a shared queue's */
    struct record *posting;    /* to a shared queue; its post has not returned */
    struct sn_list initiator, receive;
    uint32_t initiator_count, receive_count;
    uint32_t deferred; /* at the end of what was posted */
};

/* ---- shadows ---- */

static struct ndk_shadow *new_shadow(struct ndk_adapter *ad) {
    struct ndk_shadow *s = os_zalloc(sizeof *s);
    if (!s) return NULL;
    os_lock_init(&s->lock, OS_RANK_LEAF);
    sn_list_init(&s->initiator);
    sn_list_init(&s->receive);
    os_lock_enter(&ad->lock);
    sn_list_push_back(&ad->shadows, &s->link);
    os_lock_leave(&ad->lock);
    return s;
}

struct ndk_shadow *ndk_shadow_new_shared(struct ndk_adapter *ad) {
    return new_shadow(ad);
}

struct ndk_shadow *ndk_shadow_new(struct ndk_qp *qp) {
    struct ndk_adapter *ad = qp->o.ad;
    struct ndk_shadow *s = new_shadow(ad);
    if (!s) return NULL;
    s->context = qp->context;
    s->qp = qp;
    s->shared = qp->srq ? qp->srq->shadow : NULL;
    os_lock_enter(&ad->lock);
    qp->receive_cq->attached_depth += qp->srq ? qp->srq->depth : qp->receive_depth;
    qp->initiator_cq->attached_depth += qp->initiator_depth;
    struct ndk_cq *small = NULL;
    if (qp->receive_cq->attached_depth > qp->receive_cq->depth) small = qp->receive_cq;
    if (qp->initiator_cq->attached_depth > qp->initiator_cq->depth) small = qp->initiator_cq;
    uint32_t need = small ? small->attached_depth : 0;
    os_lock_leave(&ad->lock);
    if (small)
        ndk_warning(NDK_RULE_cq_too_small, "NdkCreateQp", small,
                    "its queue pairs can have %u requests outstanding, it holds %u results", need,
                    small->depth);
    return s;
}

static void free_record(struct record *r) {
    for (size_t i = 0; i < LAMS; i++)
        if (r->lam[i]) ndk_lam_unuse(r->lam[i]);
    free(r);
}

static void free_records(struct sn_list *list) {
    for (struct sn_list *it; (it = sn_list_pop(list)) != NULL;)
        free_record(SN_CONTAINER(it, struct record, link));
}

/* Ends the oldest records until `left` remain. */
static void end_oldest(struct ndk_shadow *s, uint32_t left) {
    struct sn_list over;
    sn_list_init(&over);
    os_lock_enter(&s->lock);
    for (; s->receive_count > left; s->receive_count--) {
        if (s->posting && s->receive.next == &s->posting->link) break;
        sn_list_push_back(&over, sn_list_pop(&s->receive));
    }
    os_lock_leave(&s->lock);
    free_records(&over);
}

void ndk_shadow_shared_closed(struct ndk_shadow *s) {
    end_oldest(s, 0);
}

void ndk_shadow_qp_closed(struct ndk_qp *qp) {
    struct ndk_shadow *s = qp->shadow;
    struct sn_list gone;
    sn_list_init(&gone);
    os_lock_enter(&s->lock);
    uint32_t deferred = s->deferred;
    s->qp = NULL;
    sn_list_splice(&gone, &s->initiator);
    sn_list_splice(&gone, &s->receive);
    os_lock_leave(&s->lock);
    free_records(&gone);
    /* What it took from a shared queue is over too, seen or not. Queue pairs take the oldest. */
    if (s->shared) end_oldest(s->shared, rd_srq_queued(qp->srq->rd));
    if (deferred && !os_u32_load_relaxed(&qp->flushed))
        ndk_violation(NDK_RULE_deferred_tail, "NdkCloseQp", qp,
                      "the last %u requests are deferred; nothing ever started them", deferred);
    struct ndk_adapter *ad = qp->o.ad;
    os_lock_enter(&ad->lock);
    qp->receive_cq->attached_depth -= qp->srq ? qp->srq->depth : qp->receive_depth;
    qp->initiator_cq->attached_depth -= qp->initiator_depth;
    os_lock_leave(&ad->lock);
}

void ndk_shadow_free_all(struct ndk_adapter *ad) {
    for (struct sn_list *it; (it = sn_list_pop(&ad->shadows)) != NULL;) {
        struct ndk_shadow *s = SN_CONTAINER(it, struct ndk_shadow, link);
        free_records(&s->initiator);
        free_records(&s->receive);
        os_lock_fini(&s->lock);
        os_free(s);
    }
}

PVOID ndk_shadow_context(const struct ndk_shadow *s) {
    return s->context;
}

/* ---- records ---- */

/* The region with this token; lock of the adapter held. */
static struct ndk_mr *region_by(struct ndk_adapter *ad, uint32_t token, bool remote) {
    SN_LIST_FOR(it, &ad->objects) {
        struct ndk_object *o = SN_CONTAINER(it, struct ndk_object, all);
        if (o->header.ObjectType != NdkObjectTypeMr) continue;
        struct ndk_mr *mr = (struct ndk_mr *)o;
        uint32_t has = remote ? rd_region_remote_token(mr->rd) : rd_region_local_token(mr->rd);
        if (has == token) return mr;
    }
    return NULL;
}

static void end_registration_locked(struct ndk_mr *mr, struct ndk_lam *lam[LAMS]) {
    if (mr->state == NDK_MR_FAST_REGISTERED) mr->state = NDK_MR_FAST_READY;
    memcpy(lam, mr->lam, sizeof mr->lam);
    memset(mr->lam, 0, sizeof mr->lam);
}

void ndk_verify_mr_ended(struct ndk_mr *mr) {
    struct record r = { 0 };
    os_lock_enter(&mr->lock);
    end_registration_locked(mr, r.lam);
    os_lock_leave(&mr->lock);
    for (size_t i = 0; i < LAMS; i++)
        if (r.lam[i]) ndk_lam_unuse(r.lam[i]);
}

static struct sn_list *queue_of(struct ndk_shadow *s, uint32_t type) {
    return type == RD_RECEIVE ? &s->receive : &s->initiator;
}

static struct sn_list *find_locked(struct sn_list *q, const struct rd_completion *c) {
    SN_LIST_FOR(it, q) {
        struct record *r = SN_CONTAINER(it, struct record, link);
        if (r->ctx == c->request_context && r->type == c->type) return it;
    }
    return NULL;
}

/* Several queue pairs take from it, and their results come in any order. */
static void shared_result(struct ndk_shadow *s, const struct rd_completion *c) {
    os_lock_enter(&s->lock);
    struct sn_list *it = find_locked(&s->receive, c);
    if (it) {
        sn_list_remove(it);
        s->receive_count--;
        if (s->posting && it == &s->posting->link) s->posting = NULL;
    }
    os_lock_leave(&s->lock);
    if (it) free_record(SN_CONTAINER(it, struct record, link));
}

void ndk_shadow_result(struct ndk_shadow *s, const struct rd_completion *c) {
    struct sn_list over;
    struct ndk_adapter *ad = NULL;
    sn_list_init(&over);
    if (s->shared && c->type == RD_RECEIVE) shared_result(s->shared, c);
    os_lock_enter(&s->lock);
    struct sn_list *q = queue_of(s, c->type);
    struct sn_list *last = find_locked(q, c);
    while (last) { /* silent ones before it are over too */
        struct sn_list *it = sn_list_pop(q);
        sn_list_push_back(&over, it);
        if (c->type == RD_RECEIVE)
            s->receive_count--;
        else
            s->initiator_count--;
        if (it == last) break;
    }
    if (s->qp && c->invalidated_token) ad = s->qp->o.ad;
    os_lock_leave(&s->lock);
    free_records(&over);
    if (!ad) return;
    os_lock_enter(&ad->lock);
    struct ndk_mr *mr = region_by(ad, c->invalidated_token, true);
    if (mr) ndk_verify_mr_ended(mr);
    os_lock_leave(&ad->lock);
    if (mr) ndk_token_ended(mr, "region", c->invalidated_token, "the peer's Send with Invalidate");
}

static struct record *new_record(void *ctx, uint32_t type) {
    struct record *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    r->ctx = ctx;
    r->type = type;
    sn_list_init(&r->link);
    return r;
}

static void hold_lam(struct ndk_lam *set[LAMS], struct ndk_lam *lam) {
    for (size_t i = 0; i < LAMS; i++) {
        if (set[i] == lam) return;
        if (set[i]) continue;
        ndk_lam_use(lam);
        set[i] = lam;
        return;
    }
}

/* ---- calls that must not overlap ---- */

static bool begin(struct ndk_qp *qp, os_atomic_u32 *in_call, const char *call,
                  struct ndk_call **in) {
    if (!ndk_enter_object(qp, NdkObjectTypeQp, call, DISPATCH_LEVEL, in)) return false;
    if (os_u32_exchange_acq_rel(in_call, 1) != 0)
        ndk_violation(NDK_RULE_concurrent, call, qp,
                      "another thread is posting to the same queue now");
    return true;
}

static void end(os_atomic_u32 *in_call, struct ndk_call *in) {
    os_u32_store_release(in_call, 0);
    ndk_leave(&in);
}

/* ---- segments ---- */

static bool writable(const struct ndk_mr *mr, bool sink) {
    if (mr->fast)
        return (mr->flags &
                (NDK_OP_FLAG_ALLOW_LOCAL_WRITE | (sink ? NDK_OP_FLAG_RDMA_READ_SINK : 0))) != 0;
    return (mr->flags &
            (NDK_MR_FLAG_ALLOW_LOCAL_WRITE | (sink ? NDK_MR_FLAG_RDMA_READ_SINK : 0))) != 0;
}

enum use { USE_SOURCE, USE_RECEIVE, USE_SINK };

struct finding {
    int rule; /* -1: nothing */
    const char *text;
};

/* Adapter lock held. */
static struct finding check_segment(struct ndk_adapter *ad, const struct ndk_pd *pd,
                                    const NDK_SGE *sge, enum use use, struct record *r) {
    struct finding good = { -1, NULL };
    if (sge->Length == 0) return good;
    if (sge->MemoryRegionToken == rd_pd_token(pd->rd)) {
        uint64_t at = (uint64_t)sge->LogicalAddress.QuadPart;
        struct ndk_lam *lam = ndk_lam_find_locked(ad, at);
        struct ndk_lam *tail = ndk_lam_find_locked(ad, at + sge->Length - 1);
        if (!lam)
            return (struct finding){ NDK_RULE_virtual_for_logical,
                                     "not a logical address of a live mapping" };
        if (tail != lam)
            return (struct finding){ NDK_RULE_sge_range, "beyond the end of the mapping" };
        if (r) hold_lam(r->lam, lam);
        return good;
    }
    struct ndk_mr *mr = region_by(ad, sge->MemoryRegionToken, false);
    if (!mr) {
        if (region_by(ad, sge->MemoryRegionToken, true))
            return (struct finding){ NDK_RULE_remote_token_local, "this is a remote token" };
        return (struct finding){ NDK_RULE_sge_token,
                                 "no region of this adapter has this local token" };
    }
    struct finding f = good;
    os_lock_enter(&mr->lock);
    uint64_t at = (uint64_t)(uintptr_t)sge->VirtualAddress;
    if (mr->pd != pd)
        f = (struct finding){ NDK_RULE_sge_token, "the region is of another protection domain" };
    else if (mr->state == NDK_MR_FAST_READY)
        f = (struct finding){ NDK_RULE_stale_token, "the region is not registered (any more)" };
    else if (at < mr->base || at - mr->base > mr->len || sge->Length > mr->len - (at - mr->base))
        f = (struct finding){ NDK_RULE_sge_range, "outside the region" };
    else if (use == USE_RECEIVE && !writable(mr, false))
        f = (struct finding){ NDK_RULE_sge_token, "the region may not be written" };
    else if (use == USE_SINK && !writable(mr, true))
        f = (struct finding){ NDK_RULE_read_sink, "the region may not be written" };
    os_lock_leave(&mr->lock);
    return f;
}

static void check_segments(struct ndk_adapter *ad, const struct ndk_pd *pd, const void *object,
                           const char *call, const NDK_SGE *sgl, ULONG count, enum use use,
                           struct record *r) {
    uint64_t total = 0;
    for (ULONG i = 0; i < count; i++) {
        total += sgl[i].Length;
        os_lock_enter(&ad->lock);
        struct finding f = check_segment(ad, pd, &sgl[i], use, r);
        os_lock_leave(&ad->lock);
        if (f.rule >= 0)
            ndk_violation((enum ndk_rule)f.rule, call, object,
                          "segment %u: address %p, %u bytes, token 0x%x: %s", i,
                          sgl[i].VirtualAddress, sgl[i].Length, sgl[i].MemoryRegionToken, f.text);
    }
    if (total > rd_limits_get()->max_transfer_bytes)
        ndk_violation(NDK_RULE_limits, call, object, "%llu bytes in one request, the limit is %u",
                      (unsigned long long)total, rd_limits_get()->max_transfer_bytes);
}

/* ---- posting ---- */

struct post {
    struct ndk_qp *qp;
    const char *call;
    struct ndk_call *in;
    struct record *r;
    bool receive;
    ULONG flags;
};

/* Of a flag of two bits only one; NdkFastRegister has another flag for the lower one. */
static bool half_a_right(uint32_t type, ULONG flags) {
    ULONG part = flags & NDK_OP_FLAG_ALLOW_REMOTE_WRITE;
    if (type != RD_BIND && type != RD_FAST_REGISTER) return false;
    if (part == 0 || part == NDK_OP_FLAG_ALLOW_REMOTE_WRITE) return false;
    return type == RD_BIND || part != NDK_OP_FLAG_ALLOW_LOCAL_WRITE;
}

static bool post_begin(struct post *p, NDK_QP *object, const char *call, uint32_t type, PVOID ctx,
                       ULONG flags, ULONG allowed) {
    struct ndk_qp *qp = (struct ndk_qp *)object;
    *p = (struct post){ .qp = qp, .call = call, .receive = type == RD_RECEIVE, .flags = flags };
    if (!begin(qp, p->receive ? &qp->receive_call : &qp->initiator_call, call, &p->in))
        return false;
    struct ndk_shadow *s = qp->shadow;
    ULONG depth = p->receive ? qp->receive_depth : qp->initiator_depth;
    if (flags & ~allowed)
        ndk_violation(NDK_RULE_flags, call, qp, "flags 0x%x: 0x%x have no meaning here", flags,
                      flags & ~allowed);
    if (half_a_right(type, flags))
        ndk_violation(NDK_RULE_flags, call, qp,
                      "flags 0x%x: a part of NDK_OP_FLAG_ALLOW_REMOTE_WRITE, which is 0x30", flags);
    if (os_u32_load_relaxed(&qp->flushed))
        ndk_warning(NDK_RULE_post_after_flush, call, qp,
                    "the queue pair was flushed; this request will be cancelled too");
    os_lock_enter(&s->lock);
    uint32_t outstanding = p->receive ? s->receive_count : s->initiator_count;
    os_lock_leave(&s->lock);
    if (outstanding >= depth)
        ndk_violation(NDK_RULE_queue_overrun, call, qp,
                      "%u requests are outstanding, the queue holds %u", outstanding, depth);
    p->r = new_record(ctx, type);
    return true;
}

static void post_segments(struct post *p, CONST NDK_SGE *sgl, ULONG count, ULONG limit,
                          enum use use) {
    if (p->flags & NDK_OP_FLAG_INLINE) {
        uint64_t total = 0;
        for (ULONG i = 0; i < count; i++)
            total += sgl[i].Length;
        if (total > p->qp->inline_bytes)
            ndk_violation(NDK_RULE_limits, p->call, p->qp,
                          "%llu bytes inline, the queue pair was created for %u",
                          (unsigned long long)total, p->qp->inline_bytes);
        return;
    }
    if (count > limit)
        ndk_violation(NDK_RULE_limits, p->call, p->qp, "%u segments, the limit is %u", count,
                      limit);
    check_segments(p->qp->o.ad, p->qp->pd, p->qp, p->call, sgl, count, use, p->r);
}

/* Right before the post: its result may be taken by another thread before the post returns. */
static void post_go(struct post *p) {
    struct ndk_shadow *s = p->qp->shadow;
    if (!p->r) return;
    os_lock_enter(&s->lock);
    sn_list_push_back(queue_of(s, p->r->type), &p->r->link);
    if (p->receive)
        s->receive_count++;
    else
        s->initiator_count++;
    os_lock_leave(&s->lock);
}

static NTSTATUS post_end(struct post *p, NTSTATUS status) {
    struct ndk_shadow *s = p->qp->shadow;
    struct record *drop = NULL;
    os_lock_enter(&s->lock);
    if (!p->receive)
        s->deferred =
            status == STATUS_SUCCESS && (p->flags & NDK_OP_FLAG_DEFER) ? s->deferred + 1 : 0;
    if (status != STATUS_SUCCESS && p->r) { /* nothing was posted, so nobody has taken it off */
        drop = p->r;
        sn_list_remove(&drop->link);
        if (p->receive)
            s->receive_count--;
        else
            s->initiator_count--;
    }
    os_lock_leave(&s->lock);
    if (drop) free_record(drop);
    end(p->receive ? &p->qp->receive_call : &p->qp->initiator_call, p->in);
    return status;
}

#define COMMON (NDK_OP_FLAG_SILENT_SUCCESS | NDK_OP_FLAG_READ_FENCE | NDK_OP_FLAG_DEFER)
#define SEND_FLAGS (COMMON | NDK_OP_FLAG_SEND_AND_SOLICIT_EVENT | NDK_OP_FLAG_INLINE)

static NTSTATUS v_send(NDK_QP *qp, PVOID ctx, CONST NDK_SGE *sgl, ULONG count, ULONG flags) {
    struct post p;
    if (!post_begin(&p, qp, "NdkSend", RD_SEND, ctx, flags, SEND_FLAGS))
        return STATUS_INVALID_PARAMETER;
    post_segments(&p, sgl, count, p.qp->initiator_sge, USE_SOURCE);
    post_go(&p);
    return post_end(&p, ndk_qp_dispatch.NdkSend(qp, ctx, sgl, count, flags));
}

static NTSTATUS v_send_invalidate(NDK_QP *qp, PVOID ctx, CONST NDK_SGE *sgl, ULONG count,
                                  ULONG flags, UINT32 token) {
    struct post p;
    if (!post_begin(&p, qp, "NdkSendAndInvalidate", RD_SEND, ctx, flags, SEND_FLAGS))
        return STATUS_INVALID_PARAMETER;
    post_segments(&p, sgl, count, p.qp->initiator_sge, USE_SOURCE);
    post_go(&p);
    return post_end(&p, ndk_qp_dispatch.NdkSendAndInvalidate(qp, ctx, sgl, count, flags, token));
}

static NTSTATUS v_receive(NDK_QP *qp, PVOID ctx, CONST NDK_SGE *sgl, ULONG count) {
    struct post p;
    if (!post_begin(&p, qp, "NdkReceive", RD_RECEIVE, ctx, 0, 0)) return STATUS_INVALID_PARAMETER;
    if (os_u32_exchange_acq_rel(&p.qp->receives, 1) == 0 && os_u32_load_acquire(&p.qp->up))
        ndk_warning(NDK_RULE_receive_late, "NdkReceive", qp,
                    "this is the first receive, and the peer may have sent already");
    post_segments(&p, sgl, count, p.qp->receive_sge, USE_RECEIVE);
    post_go(&p);
    return post_end(&p, ndk_qp_dispatch.NdkReceive(qp, ctx, sgl, count));
}

static NTSTATUS v_write(NDK_QP *qp, PVOID ctx, CONST NDK_SGE *sgl, ULONG count, UINT64 address,
                        UINT32 token, ULONG flags) {
    struct post p;
    if (!post_begin(&p, qp, "NdkWrite", RD_WRITE, ctx, flags, COMMON | NDK_OP_FLAG_INLINE))
        return STATUS_INVALID_PARAMETER;
    post_segments(&p, sgl, count, p.qp->initiator_sge, USE_SOURCE);
    post_go(&p);
    return post_end(&p, ndk_qp_dispatch.NdkWrite(qp, ctx, sgl, count, address, token, flags));
}

/* The registration ends with this request; until then its mappings are in use. */
static void take_registration(struct ndk_mr *mr, struct record *r, const char *how) {
    struct ndk_lam *lam[LAMS];
    os_lock_enter(&mr->lock);
    bool registered = mr->state == NDK_MR_FAST_REGISTERED;
    end_registration_locked(mr, lam);
    os_lock_leave(&mr->lock);
    if (registered) ndk_token_ended(mr, "region", rd_region_remote_token(mr->rd), how);
    for (size_t i = 0; i < LAMS; i++) {
        if (!lam[i]) continue;
        hold_lam(r->lam, lam[i]);
        ndk_lam_unuse(lam[i]);
    }
}

static NTSTATUS v_read(NDK_QP *qp, PVOID ctx, CONST NDK_SGE *sgl, ULONG count, UINT64 address,
                       UINT32 token, ULONG flags) {
    struct post p;
    if (!post_begin(&p, qp, "NdkRead", RD_READ, ctx, flags,
                    COMMON | NDK_OP_FLAG_RDMA_READ_LOCAL_INVALIDATE))
        return STATUS_INVALID_PARAMETER;
    post_segments(&p, sgl, count, rd_limits_get()->max_read_sge, USE_SINK);
    if ((flags & NDK_OP_FLAG_RDMA_READ_LOCAL_INVALIDATE) && count && p.r) {
        struct ndk_adapter *ad = p.qp->o.ad;
        os_lock_enter(&ad->lock);
        struct ndk_mr *mr = region_by(ad, sgl[0].MemoryRegionToken, false);
        if (mr && mr->fast) take_registration(mr, p.r, "NdkRead with local invalidation");
        os_lock_leave(&ad->lock);
    }
    post_go(&p);
    return post_end(&p, ndk_qp_dispatch.NdkRead(qp, ctx, sgl, count, address, token, flags));
}

static NTSTATUS v_bind(NDK_QP *qp, PVOID ctx, NDK_MR *mr, NDK_MW *mw, PVOID va, SIZE_T length,
                       ULONG flags) {
    struct post p;
    if (!ndk_check_object(mr, NdkObjectTypeMr, "NdkBind", DISPATCH_LEVEL) ||
        !ndk_check_object(mw, NdkObjectTypeMw, "NdkBind", DISPATCH_LEVEL))
        return STATUS_INVALID_PARAMETER;
    if (!post_begin(&p, qp, "NdkBind", RD_BIND, ctx, flags,
                    COMMON | NDK_OP_FLAG_ALLOW_REMOTE_READ | NDK_OP_FLAG_ALLOW_REMOTE_WRITE))
        return STATUS_INVALID_PARAMETER;
    if (((struct ndk_mr *)mr)->fast)
        ndk_violation(NDK_RULE_mr_kind, "NdkBind", mr, "windows are for registered regions");
    post_go(&p);
    return post_end(&p, ndk_qp_dispatch.NdkBind(qp, ctx, mr, mw, va, length, flags));
}

/* What is wrong with the arguments, or NULL. */
static const char *fast_fault(struct ndk_mr *mr, ULONG count, CONST NDK_LOGICAL_ADDRESS *pages,
                              ULONG fbo, SIZE_T length, PVOID base) {
    if (count == 0 || count > mr->max_pages) return "the page count is 0 or above the initialised";
    if (!pages) return "there is no page array";
    if (fbo >= PAGE_SIZE) return "the offset is not below the page size";
    if (length == 0 || length > (SIZE_T)count * PAGE_SIZE - fbo)
        return "the length is 0 or more than the pages hold";
    if (BYTE_OFFSET(base) != fbo) return "the base address's offset in its page is not FBO";
    for (ULONG i = 0; i < count; i++)
        if (pages[i].QuadPart & (PAGE_SIZE - 1)) return "a page address is not aligned";
    return NULL;
}

/* Every page belongs to a live mapping, whose users the registration becomes. */
static void take_pages(struct ndk_adapter *ad, struct ndk_mr *mr, ULONG count,
                       CONST NDK_LOGICAL_ADDRESS *pages, ULONG fbo) {
    struct ndk_lam *set[LAMS] = { NULL };
    ULONG missing = count;
    bool other_fbo = false;
    os_lock_enter(&ad->lock);
    for (ULONG i = 0; i < count; i++) {
        struct ndk_lam *lam = ndk_lam_find_locked(ad, (uint64_t)pages[i].QuadPart);
        if (!lam) {
            missing = SN_MIN(missing, i);
            continue;
        }
        hold_lam(set, lam);
        if (i == 0 && (uint64_t)pages[0].QuadPart == rd_io_page(lam->io, 0))
            other_fbo = lam->fbo != fbo;
    }
    os_lock_leave(&ad->lock);
    if (missing < count)
        ndk_violation(NDK_RULE_fast_register, "NdkFastRegister", mr,
                      "page %u (0x%llx) belongs to no live mapping", missing,
                      (unsigned long long)pages[missing].QuadPart);
    if (other_fbo)
        ndk_warning(NDK_RULE_fast_register, "NdkFastRegister", mr,
                    "FBO %u is not the offset that NdkBuildLAM gave", fbo);
    os_lock_enter(&mr->lock);
    memcpy(mr->lam, set, sizeof mr->lam);
    os_lock_leave(&mr->lock);
}

static NTSTATUS v_fast_register(NDK_QP *qp, PVOID ctx, NDK_MR *object, ULONG count,
                                CONST NDK_LOGICAL_ADDRESS *pages, ULONG fbo, SIZE_T length,
                                PVOID base, ULONG flags) {
    struct ndk_mr *mr = (struct ndk_mr *)object;
    const char *call = "NdkFastRegister";
    struct post p;
    if (!ndk_check_object(object, NdkObjectTypeMr, call, DISPATCH_LEVEL))
        return STATUS_INVALID_PARAMETER;
    if (!post_begin(&p, qp, call, RD_FAST_REGISTER, ctx, flags,
                    COMMON | NDK_OP_FLAG_ALLOW_REMOTE_READ | NDK_OP_FLAG_ALLOW_REMOTE_WRITE |
                        NDK_OP_FLAG_RDMA_READ_SINK))
        return STATUS_INVALID_PARAMETER;
    os_lock_enter(&mr->lock);
    enum ndk_mr_state state = mr->state;
    os_lock_leave(&mr->lock);
    const char *fault = NULL;
    if (!mr->fast) {
        ndk_violation(NDK_RULE_mr_kind, call, mr, "not created for fast registration");
    } else if (state == NDK_MR_NEW) {
        ndk_violation(NDK_RULE_mr_state, call, mr, "not initialised for fast registration");
    } else {
        if (state == NDK_MR_FAST_REGISTERED)
            ndk_violation(NDK_RULE_mr_state, call, mr, "registered already, not invalidated");
        fault = fast_fault(mr, count, pages, fbo, length, base);
        if (!fault && !mr->remote && (flags & 0x28))
            fault = "remote rights for a region that was initialised without";
        if (fault) ndk_violation(NDK_RULE_fast_register, call, mr, "%s", fault);
    }
    bool begins = mr->fast && state == NDK_MR_FAST_READY && !fault;
    if (begins) { /* before the post: the peer may end it before the post returns */
        take_pages(p.qp->o.ad, mr, count, pages, fbo);
        os_lock_enter(&mr->lock);
        mr->state = NDK_MR_FAST_REGISTERED;
        mr->base = (uint64_t)(uintptr_t)base;
        mr->len = length;
        mr->flags = flags;
        os_lock_leave(&mr->lock);
    }
    post_go(&p);
    NTSTATUS status =
        ndk_qp_dispatch.NdkFastRegister(qp, ctx, object, count, pages, fbo, length, base, flags);
    if (status != STATUS_SUCCESS && begins) ndk_verify_mr_ended(mr);
    return post_end(&p, status);
}

static NTSTATUS v_invalidate(NDK_QP *qp, PVOID ctx, NDK_OBJECT_HEADER *what, ULONG flags) {
    const char *call = "NdkInvalidate";
    struct post p;
    if (!ndk_check_object(what, NdkObjectTypeUndefined, call, DISPATCH_LEVEL))
        return STATUS_INVALID_PARAMETER;
    if (!post_begin(&p, qp, call, RD_INVALIDATE, ctx, flags, COMMON))
        return STATUS_INVALID_PARAMETER;
    struct ndk_mr *mr = what->ObjectType == NdkObjectTypeMr ? (struct ndk_mr *)what : NULL;
    if (mr && !mr->fast)
        ndk_violation(NDK_RULE_mr_kind, call, mr,
                      "a region of NdkRegisterMr is deregistered, not invalidated");
    if (mr && mr->fast) {
        os_lock_enter(&mr->lock);
        bool registered = mr->state == NDK_MR_FAST_REGISTERED;
        os_lock_leave(&mr->lock);
        if (!registered)
            ndk_violation(NDK_RULE_mr_state, call, mr,
                          "not registered; perhaps the peer has invalidated it");
    }
    if (!mr && what->ObjectType == NdkObjectTypeMw)
        ndk_token_ended(what, "window", rd_window_token(((struct ndk_mw *)what)->rd), call);
    if (mr && mr->fast) {
        if (p.r)
            take_registration(mr, p.r, call);
        else
            ndk_verify_mr_ended(mr);
    }
    post_go(&p);
    return post_end(&p, ndk_qp_dispatch.NdkInvalidate(qp, ctx, what, flags));
}

static VOID v_flush(NDK_QP *object) {
    struct ndk_qp *qp = (struct ndk_qp *)object;
    NDK_ENTER(object, NdkObjectTypeQp, "NdkFlush", );
    struct ndk_shadow *s = qp->shadow;
    os_lock_enter(&s->lock);
    uint32_t deferred = s->deferred;
    s->deferred = 0;
    os_lock_leave(&s->lock);
    if (deferred)
        ndk_violation(NDK_RULE_deferred_tail, "NdkFlush", qp,
                      "the last %u requests are deferred; nothing ever started them", deferred);
    ndk_qp_dispatch.NdkFlush(object);
    os_u32_store_relaxed(&qp->flushed, 1);
}

const NDK_QP_DISPATCH ndk_verify_qp_dispatch = {
    .NdkCloseQp = ndk_close_object,
    .NdkQueryExtension = ndk_query_extension,
    .NdkFlush = v_flush,
    .NdkSend = v_send,
    .NdkReceive = v_receive,
    .NdkBind = v_bind,
    .NdkFastRegister = v_fast_register,
    .NdkInvalidate = v_invalidate,
    .NdkRead = v_read,
    .NdkWrite = v_write,
    .NdkSendAndInvalidate = v_send_invalidate,
};

/* ---- completion queues ---- */

static bool cq_begin(NDK_CQ *object, const char *call, struct ndk_call **in) {
    struct ndk_cq *cq = (struct ndk_cq *)object;
    if (!ndk_enter_object(object, NdkObjectTypeCq, call, DISPATCH_LEVEL, in)) return false;
    if (os_u32_exchange_acq_rel(&cq->in_call, 1) != 0)
        ndk_violation(NDK_RULE_concurrent, call, object,
                      "another thread takes results from, or arms, this queue now");
    return true;
}

static ULONG cq_end(NDK_CQ *object, ULONG n, ULONG asked, struct ndk_call *in) {
    struct ndk_cq *cq = (struct ndk_cq *)object;
    os_u32_store_relaxed(&cq->polled, 1);
    if (n < asked) os_u32_store_relaxed(&cq->unanswered, 0);
    end(&cq->in_call, in);
    return n;
}

static VOID v_arm(NDK_CQ *object, ULONG type) {
    struct ndk_cq *cq = (struct ndk_cq *)object;
    struct ndk_call *in = NULL;
    if (!cq_begin(object, "NdkArmCq", &in)) return;
    if (type > NDK_CQ_NOTIFY_SOLICITED)
        ndk_violation(NDK_RULE_flags, "NdkArmCq", cq, "type %u", type);
    os_u32_store_relaxed(&cq->unanswered, 0);
    if (type <= NDK_CQ_NOTIFY_SOLICITED) {
        os_u32_store_relaxed(&cq->ever_armed, 1);
        os_u32_store_release(&cq->armed, 1);
    }
    end(&cq->in_call, in); /* the callback may come, and close the queue, before the arm returns */
    ndk_cq_dispatch.NdkArmCq(object, type);
}

static ULONG v_results(NDK_CQ *cq, NDK_RESULT out[], ULONG count) {
    struct ndk_call *in = NULL;
    if (!cq_begin(cq, "NdkGetCqResults", &in)) return 0;
    return cq_end(cq, ndk_verify_take(cq, out, count), count, in);
}

static ULONG v_results_ex(NDK_CQ *cq, NDK_RESULT_EX out[], ULONG count) {
    struct ndk_call *in = NULL;
    if (!cq_begin(cq, "NdkGetCqResultsEx", &in)) return 0;
    return cq_end(cq, ndk_verify_take_ex(cq, out, count), count, in);
}

static NTSTATUS v_resize(NDK_CQ *cq, ULONG depth, NDK_FN_REQUEST_COMPLETION *on_done, PVOID ctx) {
    return ndk_cq_dispatch.NdkResizeCq(cq, depth, on_done, ctx);
}

static NTSTATUS v_moderate(NDK_CQ *cq, ULONG interval, ULONG count) {
    return ndk_cq_dispatch.NdkControlCqInterruptModeration(cq, interval, count);
}

void ndk_verify_cq_closed(struct ndk_cq *cq) {
    uint32_t queued = rd_cq_queued(cq->rd);
    if (!queued) return;
    if (os_u32_load_relaxed(&cq->unanswered))
        ndk_violation(NDK_RULE_cq_not_rearmed, "NdkCloseCq", cq,
                      "%u results are left; after its last callback the queue was neither drained "
                      "nor armed",
                      queued);
    else if (!os_u32_load_relaxed(&cq->ever_armed) && !os_u32_load_relaxed(&cq->polled))
        ndk_violation(NDK_RULE_cq_not_rearmed, "NdkCloseCq", cq,
                      "%u results are left; the queue was never armed and never asked", queued);
}

const NDK_CQ_DISPATCH ndk_verify_cq_dispatch = {
    .NdkCloseCq = ndk_close_object,
    .NdkQueryExtension = ndk_query_extension,
    .NdkResizeCq = v_resize,
    .NdkArmCq = v_arm,
    .NdkGetCqResults = v_results,
    .NdkControlCqInterruptModeration = v_moderate,
    .NdkGetCqResultsEx = v_results_ex,
};

/* ---- shared receive queues ---- */

static NTSTATUS v_modify(NDK_SRQ *srq, ULONG depth, ULONG threshold,
                         NDK_FN_REQUEST_COMPLETION *on_done, PVOID ctx) {
    return ndk_srq_dispatch.NdkModifySrq(srq, depth, threshold, on_done, ctx);
}

/* As post_go and post_end. */
static void shared_go(struct ndk_shadow *s, struct record *r) {
    if (!r) return;
    os_lock_enter(&s->lock);
    sn_list_push_back(&s->receive, &r->link);
    s->receive_count++;
    s->posting = r;
    os_lock_leave(&s->lock);
}

static void shared_end(struct ndk_shadow *s, struct record *r, bool posted) {
    if (!r) return;
    os_lock_enter(&s->lock);
    bool drop = !posted && s->posting == r; /* else r may be gone */
    if (s->posting == r) s->posting = NULL;
    if (drop) {
        sn_list_remove(&r->link);
        s->receive_count--;
    }
    os_lock_leave(&s->lock);
    if (drop) free_record(r);
}

static NTSTATUS v_srq_receive(NDK_SRQ *object, PVOID ctx, CONST NDK_SGE *sgl, ULONG count) {
    struct ndk_srq *srq = (struct ndk_srq *)object;
    const char *call = "NdkSrqReceive";
    struct ndk_call *in = NULL;
    if (!ndk_enter_object(object, NdkObjectTypeSrq, call, DISPATCH_LEVEL, &in))
        return STATUS_INVALID_PARAMETER;
    if (os_u32_exchange_acq_rel(&srq->in_call, 1) != 0)
        ndk_violation(NDK_RULE_concurrent, call, object,
                      "another thread is posting to the same queue now");
    if (count > srq->max_sge)
        ndk_violation(NDK_RULE_limits, call, object, "%u segments, the limit is %u", count,
                      srq->max_sge);
    struct record *r = new_record(ctx, RD_RECEIVE);
    check_segments(srq->o.ad, (struct ndk_pd *)srq->o.uses[0], srq, call, sgl, count, USE_RECEIVE,
                   r);
    shared_go(srq->shadow, r);
    NTSTATUS status = ndk_srq_dispatch.NdkSrqReceive(object, ctx, sgl, count);
    shared_end(srq->shadow, r, status == STATUS_SUCCESS);
    if (status == STATUS_INSUFFICIENT_RESOURCES && !os_u32_load_relaxed(&ndk_options.fail_posts))
        ndk_violation(NDK_RULE_queue_overrun, call, object,
                      "the queue holds %u receives, and is full", srq->depth);
    end(&srq->in_call, in);
    return status;
}

const NDK_SRQ_DISPATCH ndk_verify_srq_dispatch = {
    .NdkCloseSrq = ndk_close_object,
    .NdkQueryExtension = ndk_query_extension,
    .NdkModifySrq = v_modify,
    .NdkSrqReceive = v_srq_receive,
};
