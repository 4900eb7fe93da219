/* SPDX-License-Identifier: MIT
 * perf_server.c - the serving end of `softnd perf`: one client at a time, for any number of
 * clients. Connection requests come through the event loop of nd_server.h, which rests while a test
 * runs.
 */
#include <initguid.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cmd.h"
#include "nd_server.h"
#include "perf_roles.h"
#include "sys.h"

#define ACCEPT_MS 30000
#define STEP_MS 20
/* Connections of a rate test that are kept before the oldest is closed. */
#define RECENT (2 * PERF_CONNECTS_MAX)

struct recent {
    IND2QueuePair *qp;
    IND2Connector *connector;
    OVERLAPPED ov; /* of Accept, which ends when the client completes or goes */
    bool pending;
};

struct server {
    struct nds_server nds;
    struct perf_end end;
    bool active;
    uint32_t session;
    IND2Connector *waiting; /* a client's request for a control connection */
    struct ndc_adapter *waiting_adapter;
    HRESULT data_status; /* of the data connections */
    struct recent recent[RECENT];
    uint64_t recent_count;
};

static void forget(struct recent *r) {
    if (r->pending) {
        IND2Connector_CancelOverlappedRequests(r->connector);
        IND2Connector_GetOverlappedResult(r->connector, &r->ov, TRUE);
    }
    if (r->connector) IND2Connector_Release(r->connector);
    if (r->qp) IND2QueuePair_Release(r->qp);
    *r = (struct recent){ 0 };
}

/* Clients may have several on the way, so Accept is not waited for. A client that has gone in the
 * middle is its own loss. */
static void accept_recent(struct server *s, IND2Connector *connector) {
    struct recent *r = &s->recent[s->recent_count++ % RECENT];
    struct perf_end *e = &s->end;
    HRESULT hr;

    forget(r);
    r->connector = connector;
    hr = IND2Adapter_CreateQueuePair(e->ad->adapter, &IID_IND2QueuePair, (IUnknown *)e->cq,
                                     (IUnknown *)e->cq, NULL, 1, 1, 1, 1, 0, (void **)&r->qp);
    if (SUCCEEDED(hr)) {
        ndc_begin_call(&r->ov, e->call_event);
        hr = IND2Connector_Accept(connector, (IUnknown *)r->qp, 0, 0, NULL, 0, &r->ov);
        r->pending = hr == ND_PENDING;
    }
    if (FAILED(hr)) forget(r);
}

static void accept_data(struct server *s, IND2Connector *connector, uint32_t session,
                        uint32_t index) {
    const struct perf_params *p = &s->end.params;
    struct perf_qp *q;
    HRESULT hr;

    if (!s->active || session != s->session || !s->end.cq) {
        IND2Connector_Reject(connector, NULL, 0);
        IND2Connector_Release(connector);
    } else if (p->kind == PERF_RATE) {
        accept_recent(s, connector);
    } else if (index != s->end.qp_count || index >= p->qps + p->idle_qps) {
        IND2Connector_Reject(connector, NULL, 0);
        IND2Connector_Release(connector);
    } else {
        hr = perf_end_add_qp(&s->end, connector, &q);
        if (SUCCEEDED(hr)) hr = perf_qp_accept(&s->end, q);
        if (FAILED(hr)) s->data_status = hr;
    }
}

static void on_request(void *owner, struct ndc_adapter *ad, IND2Connector *connector) {
    struct server *s = owner;
    uint8_t hello[PERF_GREETING_BYTES];
    uint32_t session, index;
    enum perf_role role;
    ULONG len = ndc_peer_data(connector, hello, sizeof hello);
    bool known = perf_unpack_greeting(hello, len, &role, &session, &index);

    if (known && role == PERF_ROLE_DATA) {
        accept_data(s, connector, session, index);
    } else if (known && !s->waiting && !s->active) {
        s->waiting = connector;
        s->waiting_adapter = ad;
    } else {
        IND2Connector_Reject(connector, NULL, 0);
        IND2Connector_Release(connector);
    }
}

/* ---- a session ---- */

static HRESULT step(struct server *s, uint32_t timeout_ms) {
    HRESULT hr = nds_step(&s->nds, timeout_ms);

    if (FAILED(hr)) return hr;
    if (FAILED(s->data_status)) return s->data_status;
    return perf_control_poll(&s->end);
}

static HRESULT get_ready(struct server *s) {
    struct perf_message m, ready = { .type = PERF_READY };
    struct perf_params p;
    HRESULT hr = perf_control_wait(&s->end, PERF_HELLO, &m), sent;

    if (FAILED(hr)) return hr;
    hr = perf_params_from_message(&m, &p) ? perf_end_prepare(&s->end, &p) : ND_INVALID_PARAMETER;
    ready.v[0] = (uint32_t)hr;
    if (SUCCEEDED(hr)) {
        ready.v[1] = (uintptr_t)s->end.memory.buf;
        ready.v[2] = s->end.memory.remote_token;
        ready.v[3] = s->session;
        s->end.peer_address = m.v[PERF_VALUES - 2];
        s->end.peer_token = (uint32_t)m.v[PERF_VALUES - 1];
    }
    sent = perf_control_send(&s->end, &ready);
    if (FAILED(hr)) { /* let it get there */
        perf_control_wait(&s->end, PERF_BYE, &m);
        return hr;
    }
    return sent;
}

static HRESULT report(struct server *s, const struct perf_report_values *v) {
    const struct perf_message m = { .type = PERF_REPORT,
                                    .v = { v->messages, v->elapsed_ns, v->received, v->wrong,
                                           v->cpu_ns, v->wall_ns, v->memory_bytes } };

    return perf_control_send(&s->end, &m);
}

static HRESULT serve_runs(struct server *s, struct perf_run *run) {
    struct perf_message m;
    HRESULT hr;

    for (;;) {
        hr = perf_control_wait(&s->end, PERF_RUN, &m);
        if (FAILED(hr)) return hr;
        run->request = (struct perf_run_request){
            .size = m.v[0], .iterations = m.v[1], .duration_ns = m.v[2], .warmup = m.v[3]
        };
        if (!run->request.size || run->request.size > s->end.params.size ||
            run->request.iterations > UINT32_MAX || run->request.warmup > UINT32_MAX)
            return ND_INVALID_PARAMETER;
        run->sends = s->end.params.bidirectional;
        hr = perf_run(&s->end, run, false);
        if (SUCCEEDED(hr)) hr = report(s, &run->own);
        if (FAILED(hr)) return hr;
    }
}

static HRESULT serve_connections(struct server *s) {
    HRESULT hr;

    do
        hr = step(s, STEP_MS);
    while (SUCCEEDED(hr) && !s->end.have[PERF_BYE]);
    for (uint32_t i = 0; i < RECENT; i++)
        forget(&s->recent[i]);
    return FAILED(hr) ? hr : ND_CANCELED;
}

static HRESULT serve_session(struct server *s, struct perf_run *run) {
    char peer[80];
    uint64_t count;
    HRESULT hr = ndc_conn_accept(&s->end.control, 1, 1, ACCEPT_MS);

    if (SUCCEEDED(hr)) hr = get_ready(s);
    if (FAILED(hr)) return hr;
    if (s->end.params.kind == PERF_RATE) return serve_connections(s);
    count = s->end.params.qps + s->end.params.idle_qps;
    while (SUCCEEDED(hr) && s->end.qp_count < count && !s->end.have[PERF_BYE])
        hr = step(s, STEP_MS);
    if (SUCCEEDED(hr)) {
        ndc_peer_text(s->end.control.connector, peer);
        fprintf(stderr, "softnd perf: %s: %s: connected\n", peer, perf_test_name(&s->end.params));
        hr = serve_runs(s, run);
    }
    return hr;
}

/* ND_SUCCESS, or what went wrong; E_ABORT when the user wants to stop. */
static HRESULT serve_one(struct server *s, struct perf_run *run) {
    char peer[80];
    const char *test;
    HRESULT hr;

    hr = perf_end_open(&s->end, s->waiting_adapter, s->waiting);
    s->waiting = NULL;
    if (FAILED(hr)) return hr;
    s->active = true;
    s->session++;
    s->data_status = ND_SUCCESS;
    hr = serve_session(s, run);
    ndc_peer_text(s->end.control.connector, peer);
    test = s->end.cq ? perf_test_name(&s->end.params) : "client";
    if (hr != E_ABORT && s->end.have[PERF_BYE]) /* it was done, and left */
        if (hr == ND_CANCELED || hr == ND_CONNECTION_ABORTED) hr = ND_SUCCESS;
    if (hr == E_ABORT)
        fprintf(stderr, "softnd perf: %s: interrupted\n", peer);
    else
        fprintf(stderr, "softnd perf: %s: %s: %s\n", peer, test,
                SUCCEEDED(hr) ? "done" : ndc_text(hr));
    s->active = false;
    perf_end_close(&s->end);
    return hr;
}

static HRESULT serve_all(struct server *s, struct perf_run *run, bool once) {
    HRESULT hr;

    for (;;) {
        hr = nds_step(&s->nds, INFINITE);
        if (FAILED(hr)) return hr;
        if (!s->waiting) continue;
        hr = serve_one(s, run);
        if (once || hr == E_ABORT) return hr;
    }
}

int perf_serve_clients(const char *host, uint16_t port, bool once) {
    struct server *s = calloc(1, sizeof *s);
    struct perf_run run;
    const char *why;
    char where[80];
    HRESULT hr;

    if (!s || !perf_run_init(&run)) {
        free(s);
        return cmd_fail("perf", "out of memory");
    }
    s->nds.on_request = on_request;
    s->nds.owner = s;
    s->session = (uint32_t)sys_now_ns();
    hr = nds_open(&s->nds, host, port, &why, where);
    if (FAILED(hr)) {
        cmd_fail("perf", "%s%s%s", where[0] ? where : host, where[0] || host[0] ? ": " : "",
                 why ? why : ndc_text(hr));
    } else {
        nds_print(&s->nds, "softnd perf");
        hr = serve_all(s, &run, once);
        if (s->waiting) IND2Connector_Release(s->waiting);
        if (hr == E_ABORT) hr = ND_SUCCESS;
        nds_close(&s->nds);
    }
    perf_run_fini(&run);
    free(s);
    return SUCCEEDED(hr) ? EXIT_DONE : EXIT_FAILED;
}
