/* SPDX-License-Identifier: MIT
 * perf_rates.c - how long connecting and registering take, step by step.
 */
#include <initguid.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "perf_roles.h"
#include "sys.h"

#define DISCONNECT_MS 3000
/* A size of the registration test takes no longer than this. */
#define REGISTER_NS 2000000000u

static uint32_t since(uint64_t start_ns) {
    uint64_t ns = sys_now_ns() - start_ns;

    return ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns;
}

static void add_row(struct perf_client *c, const char *what, uint64_t bytes, uint32_t *samples,
                    size_t count, double seconds) {
    struct perf_row *r = &c->rows[c->row_count++];

    *r = (struct perf_row){ .what = what,
                            .bytes = bytes,
                            .iterations = count,
                            .seconds = seconds,
                            .messages_per_s = seconds > 0 ? (double)count / seconds : 0,
                            .cpu_percent = -1,
                            .peer_cpu_percent = -1 };
    perf_summarize(samples, count, 1, &r->times);
    if (c->histogram) r->bucket_count = perf_histogram(samples, count, 1, r->histogram);
    perf_show_row(c, r);
}

/* ---- connections ---- */

enum { CREATE, CONNECT, COMPLETE, DISCONNECT, ALL, STEPS };

static HRESULT one_connection(struct perf_client *c, uint32_t index, uint32_t took[STEPS]) {
    struct perf_end *e = &c->end;
    const struct sockaddr *local = (struct sockaddr *)&c->target.local;
    const struct sockaddr *remote = (struct sockaddr *)&c->target.remote;
    uint8_t hello[PERF_GREETING_BYTES];
    IND2Connector *connector = NULL;
    IND2QueuePair *qp = NULL;
    uint64_t start = sys_now_ns(), at = start;
    OVERLAPPED ov;
    HRESULT hr;

    hr = IND2Adapter_CreateQueuePair(e->ad->adapter, &IID_IND2QueuePair, (IUnknown *)e->cq,
                                     (IUnknown *)e->cq, NULL, 1, 1, 1, 1, 0, (void **)&qp);
    if (SUCCEEDED(hr))
        hr = IND2Adapter_CreateConnector(e->ad->adapter, &IID_IND2Connector, e->ad->file,
                                         (void **)&connector);
    if (FAILED(hr)) goto done;
    took[CREATE] = since(at);
    perf_pack_greeting(PERF_ROLE_DATA, c->session, index, hello);
    at = sys_now_ns();
    hr = IND2Connector_Bind(connector, local, (ULONG)ndc_sockaddr_bytes(local));
    if (FAILED(hr)) goto done;
    ndc_begin_call(&ov, e->call_event);
    hr = IND2Connector_Connect(connector, (IUnknown *)qp, remote, (ULONG)ndc_sockaddr_bytes(remote),
                               0, 0, hello, sizeof hello, &ov);
    hr = ndc_end_call((IND2Overlapped *)connector, &ov, e->call_event, hr, PERF_STALL_MS);
    if (FAILED(hr)) goto done;
    took[CONNECT] = since(at);
    at = sys_now_ns();
    ndc_begin_call(&ov, e->call_event);
    hr = IND2Connector_CompleteConnect(connector, &ov);
    hr = ndc_end_call((IND2Overlapped *)connector, &ov, e->call_event, hr, PERF_STALL_MS);
    if (FAILED(hr)) goto done;
    took[COMPLETE] = since(at);
    at = sys_now_ns();
    ndc_begin_call(&ov, e->call_event);
    hr = IND2Connector_Disconnect(connector, &ov);
    hr = ndc_end_call((IND2Overlapped *)connector, &ov, e->call_event, hr, DISCONNECT_MS);
    took[DISCONNECT] = since(at);
    took[ALL] = since(start);
done:
    if (connector) IND2Connector_Release(connector);
    if (qp) IND2QueuePair_Release(qp);
    return hr;
}

HRESULT perf_connection_rate(struct perf_client *c) {
    static const char *const names[STEPS] = { "create", "connect", "complete", "disconnect",
                                              "connection" };
    uint64_t total = c->iterations, n = 0, start = 0;
    uint32_t *samples = calloc((size_t)total * STEPS, sizeof *samples), took[STEPS] = { 0 };
    double seconds;
    HRESULT hr = samples ? ND_SUCCESS : ND_NO_MEMORY;

    for (uint64_t i = 0; i < c->warmup + total && SUCCEEDED(hr); i++) {
        if (i == c->warmup) start = sys_now_ns();
        hr = one_connection(c, (uint32_t)i, took);
        if (SUCCEEDED(hr)) hr = perf_control_poll(&c->end);
        if (FAILED(hr) || i < c->warmup) continue;
        for (int s = 0; s < STEPS; s++)
            samples[s * total + n] = took[s];
        n++;
        if (c->duration_ns && sys_now_ns() - start >= c->duration_ns) break;
    }
    seconds = (double)(sys_now_ns() - start) / 1e9;
    ndc_transport(c->end.control.qp, c->heading.transport);
    snprintf(c->heading.buffers, sizeof c->heading.buffers, "connections one after the other");
    for (int s = 0; s < STEPS && SUCCEEDED(hr); s++)
        add_row(c, names[s], 0, samples + s * total, (size_t)n, seconds);
    free(samples);
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

static HRESULT measure_size(struct perf_client *c, struct ndc_adapter *ad, HANDLE event, void *buf,
                            size_t bytes, uint32_t *samples) {
    uint64_t start = sys_now_ns(), n = 0;
    uint32_t took[2] = { 0 };
    double seconds;
    HRESULT hr = ND_SUCCESS;

    for (uint64_t i = 0; i < c->iterations + c->warmup && SUCCEEDED(hr); i++) {
        hr = register_once(ad, event, buf, bytes, took);
        if (sys_stop_requested()) hr = E_ABORT;
        if (FAILED(hr) || i < c->warmup) continue;
        samples[n] = took[0];
        samples[c->iterations + n++] = took[1];
        if (sys_now_ns() - start >= REGISTER_NS) break;
    }
    seconds = (double)(sys_now_ns() - start) / 1e9;
    if (FAILED(hr)) return hr;
    add_row(c, "register", bytes, samples, (size_t)n, seconds);
    add_row(c, "deregister", bytes, samples + c->iterations, (size_t)n, seconds);
    return ND_SUCCESS;
}

HRESULT perf_registration_rate(struct perf_client *c) {
    struct ndc_adapter ad = { 0 };
    SOCKET_ADDRESS_LIST *ours = NULL;
    uint32_t *samples = calloc((size_t)c->iterations * 2, sizeof *samples);
    HANDLE event = CreateEvent(NULL, FALSE, FALSE, NULL);
    uint64_t largest = c->params.size;
    void *buf = largest <= SIZE_MAX ? sys_pages_alloc((size_t)largest) : NULL;
    HRESULT hr = samples && event && buf ? ndc_addresses(&ours) : ND_NO_MEMORY;

    if (SUCCEEDED(hr))
        hr = ours ? ndc_adapter_open(&ad, ours->Address[0].lpSockaddr) : ND_INVALID_ADDRESS;
    c->heading.params = c->params;
    c->heading.warmup = c->warmup;
    strcpy(c->heading.transport, "none");
    snprintf(c->heading.buffers, sizeof c->heading.buffers,
             "memory reserved and never touched by the program");
    snprintf(c->heading.length, sizeof c->heading.length, "%llu iterations, at most 2 s",
             (unsigned long long)c->iterations);
    for (size_t i = 0; i < c->size_count && SUCCEEDED(hr); i++)
        hr = measure_size(c, &ad, event, buf, (size_t)c->sizes[i], samples);
    ndc_adapter_close(&ad);
    sys_pages_free(buf, (size_t)largest);
    if (event) CloseHandle(event);
    free(ours);
    free(samples);
    return hr;
}
