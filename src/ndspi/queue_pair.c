/* SPDX-License-Identifier: MIT
 * queue_pair.c - IND2QueuePair. Posts are one check of the flags and one call of the core.
 */
#include "ndspi/adapter.h"
#include "ndspi/post.h"
#include "ndspi/status.h"

struct ndspi_qp {
    struct ndspi_object obj;
    struct rd_qp *rd; /* [const] */
};

static struct ndspi_qp *qp_of(void *object) {
    return object;
}

static void close_qp(struct ndspi_object *o) {
    rd_qp_destroy(qp_of(o)->rd);
}

static const struct ndspi_class qp_class = {
    .name = "queue pair",
    .iid = &IID_IND2QueuePair,
    .close = close_qp,
};

NDSPI_IUNKNOWN(IND2QueuePair)

static HRESULT STDMETHODCALLTYPE flush(IND2QueuePair *This) {
    rd_qp_flush(qp_of(This)->rd);
    return ND_SUCCESS;
}

SN_HOT static HRESULT STDMETHODCALLTYPE send_message(IND2QueuePair *This, VOID *context,
                                                     const ND2_SGE sge[], ULONG count,
                                                     ULONG flags) {
    if (flags & ~NDSPI_SEND_FLAGS) return ndspi_bad_param(4);
    if (!sge && count > 0) return ndspi_bad_param(2);
    return ndspi_status_post(
        rd_qp_send(qp_of(This)->rd, context, ndspi_sge(sge), count, ndspi_post_flags(flags), 0));
}

SN_HOT static HRESULT STDMETHODCALLTYPE receive(IND2QueuePair *This, VOID *context,
                                                const ND2_SGE sge[], ULONG count) {
    if (!sge && count > 0) return ndspi_bad_param(2);
    return ndspi_status_post(rd_qp_receive(qp_of(This)->rd, context, ndspi_sge(sge), count));
}

static HRESULT STDMETHODCALLTYPE bind_window(IND2QueuePair *This, VOID *context, IUnknown *region,
                                             IUnknown *window, const VOID *buf, SIZE_T cb,
                                             ULONG flags) {
    struct ndspi_qp *qp = qp_of(This);
    struct rd_region *r = ndspi_region_of(region, qp->obj.adapter);
    if (!r) return ndspi_bad_param(2);
    struct rd_window *w = ndspi_window_of(window, qp->obj.adapter);
    if (!w) return ndspi_bad_param(3);
    if (flags & ~NDSPI_BIND_FLAGS) return ndspi_bad_param(6);
    uint32_t rights = 0;
    if (flags & ND_OP_FLAG_ALLOW_READ) rights |= RD_REMOTE_READ;
    if (flags & ND_OP_FLAG_ALLOW_WRITE) rights |= RD_REMOTE_WRITE;
    return ndspi_status_post(
        rd_qp_bind(qp->rd, context, r, w, buf, cb, rights, ndspi_post_flags(flags)));
}

static HRESULT STDMETHODCALLTYPE invalidate(IND2QueuePair *This, VOID *context, IUnknown *window,
                                            ULONG flags) {
    struct ndspi_qp *qp = qp_of(This);
    struct rd_window *w = ndspi_window_of(window, qp->obj.adapter);
    if (!w) return ndspi_bad_param(2);
    if (flags & ~NDSPI_INVALIDATE_FLAGS) return ndspi_bad_param(3);
    return ndspi_status_post(rd_qp_invalidate(qp->rd, context, w, ndspi_post_flags(flags)));
}

static HRESULT STDMETHODCALLTYPE read_remote(IND2QueuePair *This, VOID *context,
                                             const ND2_SGE sge[], ULONG count, UINT64 remote_addr,
                                             UINT32 remote_token, ULONG flags) {
    if (flags & ~NDSPI_READ_FLAGS) return ndspi_bad_param(6);
    if (!sge && count > 0) return ndspi_bad_param(2);
    return ndspi_status_post(rd_qp_read(qp_of(This)->rd, context, ndspi_sge(sge), count,
                                        remote_addr, remote_token,
                                        ndspi_post_flags(flags & ~ND_OP_FLAG_INLINE)));
}

SN_HOT static HRESULT STDMETHODCALLTYPE write_remote(IND2QueuePair *This, VOID *context,
                                                     const ND2_SGE sge[], ULONG count,
                                                     UINT64 remote_addr, UINT32 remote_token,
                                                     ULONG flags) {
    if (flags & ~NDSPI_WRITE_FLAGS) return ndspi_bad_param(6);
    if (!sge && count > 0) return ndspi_bad_param(2);
    return ndspi_status_post(rd_qp_write(qp_of(This)->rd, context, ndspi_sge(sge), count,
                                         remote_addr, remote_token, ndspi_post_flags(flags)));
}

static const IND2QueuePairVtbl vtbl = {
    NDSPI_IUNKNOWN_SLOTS, .Flush = flush,           .Send = send_message, .Receive = receive,
    .Bind = bind_window,  .Invalidate = invalidate, .Read = read_remote,  .Write = write_remote,
};

/* The position of the parameter that the core refused, in CreateQueuePair or ..WithSrq. */
static HRESULT map_fault(enum rd_qp_attr_fault fault, bool with_srq) {
    switch (fault) {
    case RD_QP_ATTR_RECEIVE_CQ:
        return ndspi_bad_param(2);
    case RD_QP_ATTR_INITIATOR_CQ:
        return ndspi_bad_param(3);
    case RD_QP_ATTR_SRQ:
        return ndspi_bad_param(4);
    case RD_QP_ATTR_RECEIVE_DEPTH:
        return ndspi_bad_param(5);
    case RD_QP_ATTR_INITIATOR_DEPTH:
        return ndspi_bad_param(6);
    case RD_QP_ATTR_RECEIVE_SGE:
        return ndspi_bad_param(7);
    case RD_QP_ATTR_INITIATOR_SGE:
        return ndspi_bad_param(with_srq ? 7 : 8);
    case RD_QP_ATTR_INLINE:
        return ndspi_bad_param(with_srq ? 8 : 9);
    case RD_QP_ATTR_OK:
        break;
    }
    return ND_INVALID_PARAMETER;
}

HRESULT ndspi_qp_create(struct ndspi_adapter *ad, REFIID iid, IUnknown *receive_cq,
                        IUnknown *initiator_cq, bool with_srq, IUnknown *srq,
                        struct rd_qp_attr *attr, void **out) {
    HRESULT hr = ndspi_class_check(&qp_class, iid, out);
    if (hr != ND_SUCCESS) return hr;
    if (with_srq && rd_limits_get()->max_srq_depth == 0) return ND_NOT_SUPPORTED;
    attr->receive_cq = ndspi_cq_of(receive_cq, ad);
    if (!attr->receive_cq) return ndspi_bad_param(2);
    attr->initiator_cq = ndspi_cq_of(initiator_cq, ad);
    if (!attr->initiator_cq) return ndspi_bad_param(3);
    attr->srq = with_srq ? ndspi_srq_of(srq, ad) : NULL;
    if (with_srq && !attr->srq) return ndspi_bad_param(4);
    struct ndspi_qp *qp = ndspi_object_create(sizeof *qp, &qp_class, &vtbl, ad);
    if (!qp) return ND_INSUFFICIENT_RESOURCES;
    enum rd_qp_attr_fault fault = RD_QP_ATTR_OK;
    sn_status st = rd_qp_create(ad->rd, attr, &fault, &qp->rd);
    if (st != SN_OK) {
        ndspi_object_abandon(&qp->obj);
        if (st == SN_E_PARAM) return map_fault(fault, with_srq);
        return st == SN_E_NOMEM ? ND_INSUFFICIENT_RESOURCES : ndspi_status(st);
    }
    *out = qp;
    return ND_SUCCESS;
}

struct rd_qp *ndspi_qp_of(const IUnknown *p, const struct ndspi_adapter *ad) {
    struct ndspi_object *o = ndspi_object_of(p, &vtbl, ad);
    return o ? qp_of(o)->rd : NULL;
}
