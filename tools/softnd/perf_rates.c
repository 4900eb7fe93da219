/* SPDX-License-Identifier: MIT
 * perf_rates.c - how long connecting and registering take, step by step.
 */
#include <initguid.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "perf_roles.h"
#include "sys.h"

#define WAIT_MS 100
/* A size of the registration test takes no longer than this. */
#define REGISTER_NS 2000000000u

static uint32_t since(uint64_t start_ns) {
    uint64_t ns = sys_now_ns() - start_ns;

    return ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns;
}

/* seconds: that all of count took; 0 if it is a step of something that is counted elsewhere. */
static void add_row(struct perf_client *c, const char *what, uint64_t bytes, uint32_t *samples,
                    size_t count, double seconds) {
    struct perf_row *r = &c->rows[c->row_count++];

    *r = (struct perf_row){ .what = what,
                            .bytes = bytes,
                            .iterations = count,
                            .seconds = seconds,
                            .messages_per_s = seconds > 0 ? (double)count / seconds : -1,
                            .bytes_per_s = -1,
                            .peak_bytes_per_s = -1,
                            .cpu_percent = -1,
                            .peer_cpu_percent = -1 };
    perf_summarize(samples, count, 1, &r->times);
    if (c->histogram) r->bucket_count = perf_histogram(samples, count, 1, r->histogram);
    perf_show_row(c, r);
}

/* ---- connections ---- */

enum step { CREATE, CONNECT, COMPLETE, DISCONNECT, ALL, STEPS };

/* One connection on its way; at CREATE there is none. */
struct attempt {
    enum step step;
    IND2QueuePair *qp;
    IND2Connector *connector;
    OVERLAPPED ov;
    bool pending;
    uint32_t index;
    uint64_t start_ns, at_ns;
    uint32_t took[STEPS];
};

struct connecting {
    struct perf_client *c;
    struct attempt *attempts;
    uint64_t begun, done, total; /* those that warm up included */
    uint32_t *samples;
    uint64_t sample_count, start_ns;
};

static void next_step(struct attempt *a) {
    a->took[a->step] = since(a->at_ns);
    a->step++;
    a->at_ns = sys_now_ns();
}

static void drop(struct attempt *a) {
    if (a->pending) {
        IND2Connector_CancelOverlappedRequests(a->connector);
        IND2Connector_GetOverlappedResult(a->connector, &a->ov, TRUE);
    }
    if (a->connector) IND2Connector_Release(a->connector);
    if (a->qp) IND2QueuePair_Release(a->qp);
    *a = (struct attempt){ 0 };
}

/* What the step's method returned. */
static HRESULT called(struct attempt *a, HRESULT hr) {
    a->pending = hr == ND_PENDING;
    return hr;
}

static HRESULT begin(struct connecting *k, struct attempt *a) {
    struct perf_client *c = k->c;
    struct perf_end *e = &c->lanes[0].end;
    const struct sockaddr *local = (struct sockaddr *)&c->target.local;
    const struct sockaddr *remote = (struct sockaddr *)&c->target.remote;
    uint8_t hello[PERF_GREETING_BYTES];
    HRESULT hr;

    a->index = (uint32_t)k->begun++;
    a->start_ns = a->at_ns = sys_now_ns();
    if (a->index == c->warmup) k->start_ns = a->start_ns;
    hr = IND2Adapter_CreateQueuePair(e->ad->adapter, &IID_IND2QueuePair, (IUnknown *)e->cq,
                                     (IUnknown *)e->cq, NULL, 1, 1, 1, 1, 0, (void **)&a->qp);
    if (SUCCEEDED(hr))
        hr = IND2Adapter_CreateConnector(e->ad->adapter, &IID_IND2Connector, e->ad->file,
                                         (void **)&a->connector);
    if (FAILED(hr)) return hr;
    next_step(a);
    perf_pack_greeting(PERF_ROLE_DATA, c->lanes[0].session, a->index, hello);
    hr = IND2Connector_Bind(a->connector, local, (ULONG)ndc_sockaddr_bytes(local));
    if (FAILED(hr)) return hr;
    ndc_begin_call(&a->ov, e->call_event);
    return called(a, IND2Connector_Connect(a->connector, (IUnknown *)a->qp, remote,
                                           (ULONG)ndc_sockaddr_bytes(remote), 0, 0, hello,
                                           sizeof hello, &a->ov));
}

static void finish(struct connecting *k, struct attempt *a) {
    uint64_t counted = k->total - k->c->warmup;

    a->took[ALL] = since(a->start_ns);
    k->done++;
    if (a->index >= k->c->warmup) {
        for (int s = 0; s < STEPS; s++)
            k->samples[s * counted + k->sample_count] = a->took[s];
        k->sample_count++;
    }
    drop(a);
}

/* As far as it goes without waiting. *moved: it got on. */
static HRESULT advance(struct connecting *k, struct attempt *a, bool *moved) {
    HRESULT hr = ND_SUCCESS;

    if (a->step == CREATE) {
        if (k->begun == k->total) return ND_SUCCESS;
        *moved = true;
        hr = begin(k, a);
    }
    while (SUCCEEDED(hr)) {
        if (a->pending) {
            hr = IND2Connector_GetOverlappedResult(a->connector, &a->ov, FALSE);
            if (hr == ND_PENDING) return ND_SUCCESS;
            a->pending = false;
            *moved = true;
            if (FAILED(hr)) return hr;
        }
        next_step(a);
        ndc_begin_call(&a->ov, k->c->lanes[0].end.call_event);
        if (a->step == COMPLETE) {
            hr = called(a, IND2Connector_CompleteConnect(a->connector, &a->ov));
        } else if (a->step == DISCONNECT) {
            hr = called(a, IND2Connector_Disconnect(a->connector, &a->ov));
        } else {
            finish(k, a);
            return ND_SUCCESS;
        }
    }
    return hr;
}

static HRESULT connect_all(struct connecting *k) {
    struct perf_end *e = &k->c->lanes[0].end;
    uint64_t at_a_time = k->c->params.qps, moved_ns = sys_now_ns();
    HRESULT hr = ND_SUCCESS;

    while (k->done < k->total && SUCCEEDED(hr)) {
        bool moved = false;
        for (uint64_t i = 0; i < at_a_time && SUCCEEDED(hr); i++)
            hr = advance(k, &k->attempts[i], &moved);
        if (SUCCEEDED(hr)) hr = perf_control_poll(e);
        if (moved) {
            moved_ns = sys_now_ns();
            continue;
        }
        if (perf_end_stalled(e, moved_ns)) hr = ND_IO_TIMEOUT;
        if (SUCCEEDED(hr)) WaitForSingleObject(e->call_event, WAIT_MS);
    }
    for (uint64_t i = 0; i < at_a_time; i++)
        drop(&k->attempts[i]);
    return hr;
}

HRESULT perf_connection_rate(struct perf_client *c) {
    static const char *const names[STEPS] = { "create", "connect", "complete", "disconnect",
                                              "connection" };
    struct connecting k = { .c = c, .total = c->warmup + c->iterations };
    double seconds;
    HRESULT hr;

    k.samples = calloc((size_t)c->iterations * STEPS, sizeof *k.samples);
    k.attempts = calloc((size_t)c->params.qps, sizeof *k.attempts);
    hr = k.samples && k.attempts ? connect_all(&k) : ND_NO_MEMORY;
    seconds = (double)(sys_now_ns() - k.start_ns) / 1e9;
    ndc_transport(c->lanes[0].end.control.qp, c->heading.transport);
    snprintf(c->heading.buffers, sizeof c->heading.buffers, "connections, %u at a time",
             (unsigned)c->params.qps);
    for (int s = 0; s < STEPS && SUCCEEDED(hr); s++)
        add_row(c, names[s], 0, k.samples + s * c->iterations, (size_t)k.sample_count,
                s == ALL ? seconds : 0);
    free(k.samples);
    free(k.attempts);
    return hr;
}

/* ---- registrations ---- */

static HRESULT register_once(struct ndc_adapter *ad, HANDLE event, void *buf, size_t bytes,
                             uint32_t took[2]) {
    IND2MemoryRegion *mr;
    uint64_t at;
    OVERLAPPED ov;
    HRESULT hr =
        IND2Adapter_CreateMemoryRegion(ad->adapter, &IID_IND2MemoryRegion, ad->file, (void **)&mr);

    if (FAILED(hr)) return hr;
    at = sys_now_ns();
    ndc_begin_call(&ov, event);
    hr = IND2MemoryRegion_Register(mr, buf, bytes,
                                   ND_MR_FLAG_ALLOW_LOCAL_WRITE | ND_MR_FLAG_ALLOW_REMOTE_READ |
                                       ND_MR_FLAG_ALLOW_REMOTE_WRITE,
                                   &ov);
    hr = ndc_end_call((IND2Overlapped *)mr, &ov, event, hr, INFINITE);
    took[0] = since(at);
    if (SUCCEEDED(hr)) {
        at = sys_now_ns();
        ndc_begin_call(&ov, event);
        hr = IND2MemoryRegion_Deregister(mr, &ov);
        hr = ndc_end_call((IND2Overlapped *)mr, &ov, event, hr, INFINITE);
        took[1] = since(at);
    }
    IND2MemoryRegion_Release(mr);
    return hr;
}

static double sum_seconds(const uint32_t *samples_ns, size_t count) {
    double sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += samples_ns[i];
    return sum / 1e9;
}

static HRESULT measure_size(struct perf_client *c, struct ndc_adapter *ad, HANDLE event, void *buf,
                            size_t bytes, uint32_t *samples) {
    uint64_t start = sys_now_ns(), n = 0;
    uint32_t took[2] = { 0 }, *ends = samples + c->iterations;
    HRESULT hr = ND_SUCCESS;

    for (uint64_t i = 0; i < c->iterations + c->warmup && SUCCEEDED(hr); i++) {
        hr = register_once(ad, event, buf, bytes, took);
        if (sys_stop_requested()) hr = E_ABORT;
        if (FAILED(hr) || i < c->warmup) continue;
        samples[n] = took[0];
        ends[n++] = took[1];
        if (sys_now_ns() - start >= REGISTER_NS) break;
    }
    if (FAILED(hr)) return hr;
    add_row(c, "register", bytes, samples, (size_t)n, sum_seconds(samples, (size_t)n));
    add_row(c, "deregister", bytes, ends, (size_t)n, sum_seconds(ends, (size_t)n));
    return ND_SUCCESS;
}

HRESULT perf_registration_rate(struct perf_client *c, const char **why) {
    struct ndc_adapter ad = { 0 };
    SOCKET_ADDRESS_LIST *ours = NULL;
    uint32_t *samples = calloc((size_t)c->iterations * 2, sizeof *samples);
    HANDLE event = CreateEvent(NULL, FALSE, FALSE, NULL);
    uint64_t largest = c->params.size;
    void *buf = largest <= SIZE_MAX ? sys_pages_alloc((size_t)largest) : NULL;
    HRESULT hr = samples && event && buf ? ndc_addresses(&ours) : ND_NO_MEMORY;

    *why = NULL;
    if (SUCCEEDED(hr) && !ours) {
        *why = NDC_NO_ADAPTER;
        hr = ND_INVALID_ADDRESS;
    }
    if (SUCCEEDED(hr)) hr = ndc_adapter_open(&ad, ours->Address[0].lpSockaddr);
    c->heading.params = c->params;
    c->heading.warmup = c->warmup;
    strcpy(c->heading.transport, "none");
    snprintf(c->heading.buffers, sizeof c->heading.buffers,
             "memory reserved and never touched by the program");
    snprintf(c->heading.length, sizeof c->heading.length, "%llu iterations, at most 2 s",
             (unsigned long long)c->iterations);
    for (size_t i = 0; i < c->size_count && SUCCEEDED(hr); i++)
        hr = measure_size(c, &ad, event, buf, (size_t)c->sizes[i], samples);
    if (SUCCEEDED(hr)) perf_take_counters(c, ad.adapter, NULL, NULL);
    ndc_adapter_close(&ad);
    sys_pages_free(buf, (size_t)largest);
    if (event) CloseHandle(event);
    free(ours);
    free(samples);
    return hr;
}
