/* SPDX-License-Identifier: MIT
 * perf_end.c - see perf_end.h.
 */
#include "perf_end.h"

#include <stdlib.h>
#include <string.h>
#include "sys.h"

#define CONTROL_SLOTS 8
/* Empty polls between two looks at the control connection. */
#define CONTROL_EVERY 64
/* Polls with a result between two looks; the peer has nothing to say then. */
#define CONTROL_EVERY_BUSY 4096
#define SLEEP_MS 100
#define DISCONNECT_MS 3000
#define FENCE_BYTES 8

/* ---- control ---- */

static HRESULT post_control_receive(struct perf_end *e, uintptr_t i) {
    ND2_SGE sge = ndc_sge(&e->control_memory, i * PERF_MESSAGE_BYTES, PERF_MESSAGE_BYTES);

    return IND2QueuePair_Receive(e->control.qp, (void *)i, &sge, 1);
}

bool perf_end_stalled(const struct perf_end *e, uint64_t since_ns) {
    return sys_now_ns() - since_ns > e->timeout_ms * 1000000ull;
}

HRESULT perf_end_open(struct perf_end *e, struct ndc_adapter *ad, IND2Connector *connector,
                      uint32_t timeout_ms) {
    const struct ndc_spec spec = {
        .receives = CONTROL_SLOTS, .requests = CONTROL_SLOTS, .receive_sges = 1, .request_sges = 1
    };
    HRESULT hr;

    *e = (struct perf_end){ .ad = ad, .timeout_ms = timeout_ms, .moved_ns = sys_now_ns() };
    hr = ndc_conn_create(&e->control, ad, &spec, connector); /* takes the connector */
    if (FAILED(hr)) return hr;
    e->wake = CreateEvent(NULL, FALSE, FALSE, NULL);
    e->call_event = CreateEvent(NULL, FALSE, FALSE, NULL);
    hr = e->wake && e->call_event ? ND_SUCCESS : ND_NO_MEMORY;
    if (SUCCEEDED(hr))
        hr = ndc_region_create(ad, (size_t)2 * CONTROL_SLOTS * PERF_MESSAGE_BYTES,
                               ND_MR_FLAG_ALLOW_LOCAL_WRITE, &e->control_memory);
    for (uintptr_t i = 0; SUCCEEDED(hr) && i < CONTROL_SLOTS; i++)
        hr = post_control_receive(e, i);
    if (FAILED(hr)) perf_end_close(e);
    return hr;
}

HRESULT perf_control_send(struct perf_end *e, const struct perf_message *m) {
    size_t at = (CONTROL_SLOTS + e->control_sent % CONTROL_SLOTS) * (size_t)PERF_MESSAGE_BYTES;
    ND2_SGE sge = ndc_sge(&e->control_memory, at, PERF_MESSAGE_BYTES);
    HRESULT hr = perf_control_poll(e);

    if (FAILED(hr)) return hr;
    e->control_sent++;
    perf_pack_message(m, e->control_memory.buf + at);
    return IND2QueuePair_Send(e->control.qp, NULL, &sge, 1, 0);
}

static HRESULT take_control(struct perf_end *e, const ND2_RESULT *r) {
    uintptr_t i = (uintptr_t)r->RequestContext;
    struct perf_message m;

    if (FAILED(r->Status)) return ND_CONNECTION_ABORTED;
    if (r->RequestType != Nd2RequestTypeReceive) return ND_SUCCESS;
    if (!perf_unpack_message(e->control_memory.buf + i * PERF_MESSAGE_BYTES, r->BytesTransferred,
                             &m))
        return ND_REMOTE_ERROR;
    e->inbox[m.type] = m;
    e->have[m.type] = true;
    return post_control_receive(e, i);
}

static HRESULT stop_status(const struct perf_end *e) {
    return sys_stop_requested() && !e->stop_is_end ? E_ABORT : ND_SUCCESS;
}

HRESULT perf_control_poll(struct perf_end *e) {
    ND2_RESULT results[CONTROL_SLOTS];
    ULONG n = IND2CompletionQueue_GetResults(e->control.cq, results, CONTROL_SLOTS);
    HRESULT hr = ND_SUCCESS;

    for (ULONG i = 0; i < n && SUCCEEDED(hr); i++)
        hr = take_control(e, &results[i]);
    if (n) e->moved_ns = sys_now_ns();
    return FAILED(hr) ? hr : stop_status(e);
}

/* ---- sleeping ---- */

static HRESULT arm(IND2CompletionQueue *cq, OVERLAPPED *ov, HANDLE event, bool *pending) {
    HRESULT hr;

    if (!cq || *pending) return ND_SUCCESS;
    ndc_begin_call(ov, event);
    hr = IND2CompletionQueue_Notify(cq, ND_CQ_NOTIFY_ANY, ov);
    *pending = hr == ND_PENDING;
    return FAILED(hr) ? hr : ND_SUCCESS;
}

static HRESULT disarm_if_done(IND2CompletionQueue *cq, OVERLAPPED *ov, bool *pending) {
    HRESULT hr;

    if (!*pending) return ND_SUCCESS;
    hr = IND2CompletionQueue_GetOverlappedResult(cq, ov, FALSE);
    if (hr == ND_PENDING) return ND_SUCCESS;
    *pending = false;
    return hr;
}

/* Both notifications signal one event, so one wait serves both. */
static HRESULT sleep_on_both(struct perf_end *e) {
    HRESULT hr = arm(e->cq, &e->notify, e->wake, &e->notify_pending);

    if (SUCCEEDED(hr))
        hr = arm(e->control.cq, &e->control_notify, e->wake, &e->control_notify_pending);
    if (FAILED(hr)) return hr;
    if (e->control_notify_pending && (!e->cq || e->notify_pending))
        WaitForSingleObject(e->wake, SLEEP_MS);
    hr = disarm_if_done(e->cq, &e->notify, &e->notify_pending);
    if (FAILED(hr)) return hr;
    return disarm_if_done(e->control.cq, &e->control_notify, &e->control_notify_pending);
}

static void cancel(IND2CompletionQueue *cq, OVERLAPPED *ov, bool *pending) {
    if (!*pending) return;
    IND2CompletionQueue_CancelOverlappedRequests(cq);
    IND2CompletionQueue_GetOverlappedResult(cq, ov, TRUE);
    *pending = false;
}

HRESULT perf_control_wait(struct perf_end *e, enum perf_type type, struct perf_message *m) {
    HRESULT hr;

    e->moved_ns = sys_now_ns();
    for (;;) {
        hr = perf_control_poll(e);
        if (e->have[type]) {
            *m = e->inbox[type];
            e->have[type] = false;
            return ND_SUCCESS;
        }
        if (e->have[PERF_BYE] && hr != E_ABORT) return ND_CANCELED;
        if (FAILED(hr)) return hr;
        if (perf_end_stalled(e, e->moved_ns)) return ND_IO_TIMEOUT;
        hr = sleep_on_both(e);
        if (FAILED(hr)) return hr;
    }
}

/* While a notification for it is pending, the control connection has nothing to say. */
static bool control_is_quiet(struct perf_end *e) {
    return e->control_notify_pending && IND2CompletionQueue_GetOverlappedResult(
                                            e->control.cq, &e->control_notify, FALSE) == ND_PENDING;
}

HRESULT perf_end_results(struct perf_end *e, ND2_RESULT *results, ULONG *count, bool sleep) {
    ULONG n = IND2CompletionQueue_GetResults(e->cq, results, PERF_RESULTS);
    HRESULT hr;

    *count = n;
    for (ULONG i = 0; i < n; i++)
        if (FAILED(results[i].Status)) return results[i].Status;
    if (n) {
        e->empty = 0;
        return ++e->busy % CONTROL_EVERY_BUSY ? stop_status(e) : perf_control_poll(e);
    }
    e->empty++;
    sleep = sleep || e->params.events;
    if (!sleep && e->empty % CONTROL_EVERY) return ND_SUCCESS;
    if (sleep && control_is_quiet(e))
        hr = stop_status(e);
    else
        hr = perf_control_poll(e);
    if (FAILED(hr) || !sleep) return hr;
    /* What the control connection brought may be what the caller waits for. */
    for (int i = 0; i < PERF_TYPES; i++)
        if (e->have[i]) return ND_SUCCESS;
    return sleep_on_both(e);
}

/* ---- data ---- */

HRESULT perf_end_prepare(struct perf_end *e, const struct perf_params *p) {
    uint64_t count = p->qps + p->idle_qps, depth = perf_queue_depth(p);
    HRESULT hr;

    e->params = *p;
    perf_layout_of(p, &e->layout);
    if (depth > e->ad->info.MaxCompletionQueueDepth) return ND_INSUFFICIENT_RESOURCES;
    hr = IND2Adapter_CreateCompletionQueue(e->ad->adapter, &IID_IND2CompletionQueue, e->ad->file,
                                           (ULONG)depth, 0, 0, (void **)&e->cq);
    if (FAILED(hr)) return hr;
    if (e->layout.bytes > SIZE_MAX / 2) return ND_NO_MEMORY;
    hr = ndc_region_create(e->ad, (size_t)e->layout.bytes,
                           ND_MR_FLAG_ALLOW_LOCAL_WRITE | ND_MR_FLAG_ALLOW_REMOTE_READ |
                               ND_MR_FLAG_ALLOW_REMOTE_WRITE | ND_MR_FLAG_RDMA_READ_SINK,
                           &e->memory);
    if (FAILED(hr)) return hr;
    /* Pages that were never written to may all be one page of zeroes, which is never cold. */
    memset(e->memory.buf + e->layout.tx, 1, (size_t)(e->layout.bytes - e->layout.tx));
    e->qps = calloc((size_t)count, sizeof *e->qps);
    return e->qps ? ND_SUCCESS : ND_NO_MEMORY;
}

HRESULT perf_end_add_qp(struct perf_end *e, IND2Connector *connector, struct perf_qp **out) {
    const struct perf_params *p = &e->params;
    uint32_t index = e->qp_count;
    struct perf_qp *q = &e->qps[index];
    bool busy = index < p->qps;
    ULONG receives = busy && p->verb == PERF_SEND ? (ULONG)perf_receives(p) : 1;
    ULONG requests = busy ? (ULONG)p->tx_depth + PERF_CREDIT_SLOTS + 1 : 1;
    HRESULT hr;

    *q = (struct perf_qp){ .index = index, .connector = connector };
    e->qp_count++;
    *out = q;
    if (!connector) {
        hr = IND2Adapter_CreateConnector(e->ad->adapter, &IID_IND2Connector, e->ad->file,
                                         (void **)&q->connector);
        if (FAILED(hr)) return hr;
    }
    hr = IND2Adapter_CreateQueuePair(e->ad->adapter, &IID_IND2QueuePair, (IUnknown *)e->cq,
                                     (IUnknown *)e->cq, q, receives, requests, (ULONG)p->sges,
                                     (ULONG)p->sges, (ULONG)p->inline_bytes, (void **)&q->qp);
    for (uint32_t i = 0; SUCCEEDED(hr) && busy && p->verb == PERF_SEND && i < receives; i++)
        hr = perf_post_receive(e, q, i);
    return hr;
}

HRESULT perf_qp_connect(struct perf_end *e, struct perf_qp *q, const struct sockaddr *local,
                        const struct sockaddr *remote, uint32_t session) {
    uint8_t hello[PERF_GREETING_BYTES];
    ULONG reads = (ULONG)e->params.reads;
    IND2Overlapped *o = (IND2Overlapped *)q->connector;
    OVERLAPPED ov;
    HRESULT hr = IND2Connector_Bind(q->connector, local, (ULONG)ndc_sockaddr_bytes(local));

    if (FAILED(hr)) return hr;
    perf_pack_greeting(PERF_ROLE_DATA, session, q->index, hello);
    ndc_begin_call(&ov, e->call_event);
    hr = IND2Connector_Connect(q->connector, (IUnknown *)q->qp, remote,
                               (ULONG)ndc_sockaddr_bytes(remote), reads, reads, hello, sizeof hello,
                               &ov);
    hr = ndc_end_call(o, &ov, e->call_event, hr, e->timeout_ms);
    if (FAILED(hr)) return hr;
    ndc_begin_call(&ov, e->call_event);
    hr = IND2Connector_CompleteConnect(q->connector, &ov);
    hr = ndc_end_call(o, &ov, e->call_event, hr, e->timeout_ms);
    q->connected = SUCCEEDED(hr);
    return hr;
}

HRESULT perf_qp_accept(struct perf_end *e, struct perf_qp *q) {
    ULONG reads = (ULONG)e->params.reads;
    OVERLAPPED ov;
    HRESULT hr;

    ndc_begin_call(&ov, e->call_event);
    hr = IND2Connector_Accept(q->connector, (IUnknown *)q->qp, reads, reads, NULL, 0, &ov);
    hr = ndc_end_call((IND2Overlapped *)q->connector, &ov, e->call_event, hr, e->timeout_ms);
    q->connected = SUCCEEDED(hr);
    return hr;
}

static void close_qp(struct perf_end *e, struct perf_qp *q) {
    OVERLAPPED ov;

    if (q->connected) {
        ndc_begin_call(&ov, e->call_event);
        ndc_end_call((IND2Overlapped *)q->connector, &ov, e->call_event,
                     IND2Connector_Disconnect(q->connector, &ov), DISCONNECT_MS);
    }
    if (q->connector) IND2Connector_Release(q->connector);
    if (q->qp) IND2QueuePair_Release(q->qp);
}

void perf_end_close(struct perf_end *e) {
    for (uint32_t i = 0; i < e->qp_count; i++)
        close_qp(e, &e->qps[i]);
    free(e->qps);
    if (e->control.cq) cancel(e->control.cq, &e->control_notify, &e->control_notify_pending);
    ndc_conn_close(&e->control);
    ndc_region_destroy(&e->control_memory);
    if (e->cq) {
        cancel(e->cq, &e->notify, &e->notify_pending);
        IND2CompletionQueue_Release(e->cq);
    }
    ndc_region_destroy(&e->memory);
    if (e->wake) CloseHandle(e->wake);
    if (e->call_event) CloseHandle(e->call_event);
    *e = (struct perf_end){ 0 };
}

/* ---- requests ---- */

/* Equal pieces, the last one with the rest; no piece is empty. */
static ULONG cut(struct perf_end *e, uint64_t offset, uint64_t size, ND2_SGE *sge) {
    uint64_t n = e->params.sges < size ? e->params.sges : size, piece;

    if (!n) return 0;
    if (n == 1) {
        sge[0] = ndc_sge(&e->memory, (size_t)offset, (size_t)size);
        return 1;
    }
    piece = size / n;
    for (uint64_t i = 0; i < n; i++)
        sge[i] = ndc_sge(&e->memory, (size_t)(offset + i * piece),
                         (size_t)(i + 1 < n ? piece : size - i * piece));
    return (ULONG)n;
}

/* n modulo the number of slots, which is mostly 1: a division takes as long as much of a post. */
static uint64_t fold(uint64_t n, uint64_t slots) {
    return slots == 1 ? 0 : n % slots;
}

static uint64_t receive_slot(struct perf_end *e, struct perf_qp *q, uint32_t i) {
    return fold(q->index * perf_receives(&e->params) + i, e->layout.rx_slots);
}

uint8_t *perf_receive_place(struct perf_end *e, struct perf_qp *q, uint32_t i) {
    return e->memory.buf + e->layout.rx + receive_slot(e, q, i) * e->layout.stride;
}

uint8_t *perf_tx_place(struct perf_end *e, uint64_t slot) {
    return e->memory.buf + e->layout.tx + slot % e->layout.tx_slots * e->layout.stride;
}

uint8_t *perf_target_place(struct perf_end *e, uint64_t slot) {
    return e->memory.buf + e->layout.target + slot % e->layout.target_slots * e->layout.stride;
}

HRESULT perf_post_receive(struct perf_end *e, struct perf_qp *q, uint32_t i) {
    uint64_t at = e->layout.rx + receive_slot(e, q, i) * e->layout.stride;
    ND2_SGE sge[PERF_SGES_MAX];
    ULONG n = cut(e, at, e->params.size, sge);

    return IND2QueuePair_Receive(q->qp, (void *)(uintptr_t)i, sge, n);
}

HRESULT perf_post(struct perf_end *e, struct perf_qp *q, uint64_t slot, uint64_t size,
                  uintptr_t context, ULONG flags) {
    uint64_t at = e->layout.tx + fold(slot, e->layout.tx_slots) * e->layout.stride, remote;
    ND2_SGE sge[PERF_SGES_MAX];
    ULONG n = cut(e, at, size, sge);

    if (e->params.verb != PERF_READ && size <= e->params.inline_bytes) flags |= ND_OP_FLAG_INLINE;
    if (e->params.verb == PERF_SEND)
        return IND2QueuePair_Send(q->qp, (void *)context, sge, n, flags);
    remote =
        e->peer_address + e->layout.target + fold(slot, e->layout.target_slots) * e->layout.stride;
    if (e->params.verb == PERF_WRITE)
        return IND2QueuePair_Write(q->qp, (void *)context, sge, n, remote, e->peer_token, flags);
    return IND2QueuePair_Read(q->qp, (void *)context, sge, n, remote, e->peer_token, flags);
}

HRESULT perf_post_credit(struct perf_qp *q, uintptr_t context) {
    return IND2QueuePair_Send(q->qp, (void *)context, NULL, 0, 0);
}

HRESULT perf_post_fence(struct perf_end *e, struct perf_qp *q, uintptr_t context) {
    ND2_SGE sge = ndc_sge(&e->memory, 0, FENCE_BYTES);

    return IND2QueuePair_Read(q->qp, (void *)context, &sge, 1, e->peer_address, e->peer_token, 0);
}
