/* SPDX-License-Identifier: MIT
 * completion_queue.c - IND2CompletionQueue.
 */
#include "ndspi/adapter.h"
#include "ndspi/overlapped.h"
#include "ndspi/status.h"

/* Results taken from the core at a time, on the stack. */
#define BATCH 16u

struct ndspi_cq {
    struct ndspi_overlapped ov;
    struct rd_cq *rd; /* [const] */
};

_Static_assert((int)RD_NOTIFY_ERRORS == ND_CQ_NOTIFY_ERRORS, "notify types are passed through");
_Static_assert((int)RD_NOTIFY_ANY == ND_CQ_NOTIFY_ANY, "notify types are passed through");
_Static_assert((int)RD_NOTIFY_SOLICITED == ND_CQ_NOTIFY_SOLICITED, "notify types are passed");
_Static_assert((int)RD_RECEIVE == Nd2RequestTypeReceive && (int)RD_SEND == Nd2RequestTypeSend &&
                   (int)RD_BIND == Nd2RequestTypeBind &&
                   (int)RD_INVALIDATE == Nd2RequestTypeInvalidate &&
                   (int)RD_READ == Nd2RequestTypeRead && (int)RD_WRITE == Nd2RequestTypeWrite,
               "request types are passed through");

static struct ndspi_cq *cq_of(void *object) {
    return object;
}

static void close_cq(struct ndspi_object *o) {
    rd_cq_destroy(cq_of(o)->rd);
}

static void cancel_cq(struct ndspi_object *o) {
    rd_cq_cancel(cq_of(o)->rd);
}

static const struct ndspi_class cq_class = {
    .name = "completion queue",
    .iid = &IID_IND2CompletionQueue,
    .overlapped = true,
    .close = close_cq,
    .cancel = cancel_cq,
};

NDSPI_IOVERLAPPED(IND2CompletionQueue)

static HRESULT STDMETHODCALLTYPE get_notify_affinity(IND2CompletionQueue *This, USHORT *group,
                                                     KAFFINITY *affinity) {
    (void)This;
    return ndspi_notify_affinity(group, affinity);
}

static HRESULT STDMETHODCALLTYPE resize(IND2CompletionQueue *This, ULONG depth) {
    return ndspi_status(rd_cq_resize(cq_of(This)->rd, depth));
}

static sn_status start_notify(struct ndspi_request *r) {
    return rd_cq_notify(cq_of(r->owner)->rd, (enum rd_notify)r->type, &r->async);
}

static HRESULT STDMETHODCALLTYPE notify(IND2CompletionQueue *This, ULONG type, OVERLAPPED *ov) {
    struct ndspi_overlapped *o = &cq_of(This)->ov;
    if (type > ND_CQ_NOTIFY_SOLICITED) return ndspi_bad_param(1);
    if (!ov) return ndspi_bad_param(2);
    struct ndspi_request *r;
    HRESULT hr = ndspi_request_begin(o, ov, &r);
    if (hr != ND_PENDING) return hr;
    r->start = start_notify;
    r->type = type;
    return ndspi_request_started(o, r, start_notify(r));
}

SN_HOT static ULONG STDMETHODCALLTYPE get_results(IND2CompletionQueue *This, ND2_RESULT results[],
                                                  ULONG count) {
    struct rd_completion batch[BATCH];
    struct rd_cq *rd = cq_of(This)->rd;
    if (!results) return 0;
    ULONG done = 0;
    while (done < count) {
        uint32_t want = SN_MIN(count - done, BATCH);
        uint32_t got = rd_cq_poll(rd, batch, want);
        for (uint32_t i = 0; i < got; i++) {
            const struct rd_completion *c = &batch[i];
            results[done++] = (ND2_RESULT){
                .Status =
                    SN_LIKELY(c->status == SN_OK) ? ND_SUCCESS : ndspi_status_completion(c->status),
                .BytesTransferred = c->bytes,
                .QueuePairContext = c->qp_context,
                .RequestContext = c->request_context,
                .RequestType = (ND2_REQUEST_TYPE)c->type,
            };
        }
        if (got < want) break;
    }
    return done;
}

static const IND2CompletionQueueVtbl vtbl = {
    NDSPI_IOVERLAPPED_SLOTS,   .GetNotifyAffinity = get_notify_affinity,
    .Resize = resize,          .Notify = notify,
    .GetResults = get_results,
};

HRESULT ndspi_cq_create(struct ndspi_adapter *ad, REFIID iid, HANDLE file, ULONG depth,
                        void **out) {
    HRESULT hr = ndspi_class_check(&cq_class, iid, out);
    if (hr != ND_SUCCESS) return hr;
    struct ndspi_cq *cq = ndspi_overlapped_create(sizeof *cq, &cq_class, &vtbl, ad, file, &hr);
    if (!cq) return hr;
    sn_status st = rd_cq_create(ad->rd, depth, &cq->rd);
    if (st != SN_OK) {
        ndspi_object_abandon(&cq->ov.obj);
        return st == SN_E_PARAM ? ndspi_bad_param(3) : ndspi_status(st);
    }
    *out = cq;
    return ND_SUCCESS;
}

struct rd_cq *ndspi_cq_of(const IUnknown *p, const struct ndspi_adapter *ad) {
    struct ndspi_object *o = ndspi_object_of(p, &vtbl, ad);
    return o ? cq_of(o)->rd : NULL;
}
