/* SPDX-License-Identifier: MIT
 * shared_receive_queue.c - IND2SharedReceiveQueue.
 */
#include "ndspi/adapter.h"
#include "ndspi/overlapped.h"
#include "ndspi/post.h"
#include "ndspi/status.h"

struct ndspi_srq {
    struct ndspi_overlapped ov;
    struct rd_srq *rd; /* [const] */
};

static struct ndspi_srq *srq_of(void *object) {
    return object;
}

static void close_srq(struct ndspi_object *o) {
    rd_srq_destroy(srq_of(o)->rd);
}

static void cancel_srq(struct ndspi_object *o) {
    rd_srq_cancel(srq_of(o)->rd);
}

static const struct ndspi_class srq_class = {
    .name = "shared receive queue",
    .iid = &IID_IND2SharedReceiveQueue,
    .overlapped = true,
    .close = close_srq,
    .cancel = cancel_srq,
};

NDSPI_IOVERLAPPED(IND2SharedReceiveQueue)

static HRESULT STDMETHODCALLTYPE get_notify_affinity(IND2SharedReceiveQueue *This, USHORT *group,
                                                     KAFFINITY *affinity) {
    (void)This;
    return ndspi_notify_affinity(group, affinity);
}

static HRESULT STDMETHODCALLTYPE modify(IND2SharedReceiveQueue *This, ULONG depth,
                                        ULONG threshold) {
    return ndspi_status(rd_srq_modify(srq_of(This)->rd, depth, threshold));
}

static sn_status start_notify(struct ndspi_request *r) {
    return rd_srq_notify(srq_of(r->owner)->rd, &r->async);
}

static HRESULT STDMETHODCALLTYPE notify(IND2SharedReceiveQueue *This, OVERLAPPED *ov) {
    struct ndspi_overlapped *o = &srq_of(This)->ov;
    if (!ov) return ndspi_bad_param(1);
    struct ndspi_request *r;
    HRESULT hr = ndspi_request_begin(o, ov, &r);
    if (hr != ND_PENDING) return hr;
    r->start = start_notify;
    return ndspi_request_started(o, r, start_notify(r));
}

static HRESULT STDMETHODCALLTYPE receive(IND2SharedReceiveQueue *This, VOID *context,
                                         const ND2_SGE sge[], ULONG count) {
    if (!sge && count > 0) return ndspi_bad_param(2);
    return ndspi_status_post(rd_srq_post(srq_of(This)->rd, context, ndspi_sge(sge), count));
}

static const IND2SharedReceiveQueueVtbl vtbl = {
    NDSPI_IOVERLAPPED_SLOTS, .GetNotifyAffinity = get_notify_affinity,
    .Modify = modify,        .Notify = notify,
    .Receive = receive,
};

HRESULT ndspi_srq_create(struct ndspi_adapter *ad, REFIID iid, HANDLE file, ULONG depth,
                         ULONG max_sge, ULONG threshold, void **out) {
    HRESULT hr = ndspi_class_check(&srq_class, iid, out);
    if (hr != ND_SUCCESS) return hr;
    const struct rd_limits *l = rd_limits_get();
    if (l->max_srq_depth == 0) return ND_NOT_SUPPORTED;
    if (depth == 0 || depth > l->max_srq_depth) return ndspi_bad_param(3);
    if (max_sge > l->max_receive_sge) return ndspi_bad_param(4);
    struct ndspi_srq *srq = ndspi_overlapped_create(sizeof *srq, &srq_class, &vtbl, ad, file, &hr);
    if (!srq) return hr;
    sn_status st = rd_srq_create(ad->rd, depth, max_sge, threshold, &srq->rd);
    if (st != SN_OK) {
        ndspi_object_abandon(&srq->ov.obj);
        return ndspi_status(st);
    }
    *out = srq;
    return ND_SUCCESS;
}

struct rd_srq *ndspi_srq_of(const IUnknown *p, const struct ndspi_adapter *ad) {
    struct ndspi_object *o = ndspi_object_of(p, &vtbl, ad);
    return o ? srq_of(o)->rd : NULL;
}
