/* SPDX-License-Identifier: MIT
 * perf_server.c - the serving end of `softnd perf`: one client at a time, for any number of
 * clients. A client's threads each have a lane here, with a thread of its own while a test runs.
 * Connection requests come through the event loop of nd_server.h, which rests while a test runs.
 */
#include <initguid.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cmd.h"
#include "nd_server.h"
#include "perf_roles.h"
#include "sys.h"

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
    uint32_t timeout_ms;
    struct perf_lane *first; /* PERF_THREADS_MAX */
    struct perf_lane *lane;  /* that connects now; NULL: no client */
    uint32_t session;        /* of the latest lane */
    IND2Connector *waiting;  /* a client's request for a control connection */
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
    struct perf_end *e = &s->lane->end;
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

static void refuse(IND2Connector *connector) {
    IND2Connector_Reject(connector, NULL, 0);
    IND2Connector_Release(connector);
}

static void accept_data(struct server *s, IND2Connector *connector, uint32_t session,
                        uint32_t index) {
    struct perf_end *e = s->lane ? &s->lane->end : NULL;
    struct perf_qp *q;
    HRESULT hr;

    if (!e || session != s->lane->session || !e->cq) {
        refuse(connector);
        return;
    }
    e->moved_ns = sys_now_ns();
    if (e->params.kind == PERF_RATE) {
        accept_recent(s, connector);
    } else if (index != e->qp_count || index >= e->params.qps + e->params.idle_qps) {
        refuse(connector);
    } else {
        hr = perf_end_add_qp(e, connector, &q);
        if (SUCCEEDED(hr)) hr = perf_qp_accept(e, q);
        if (FAILED(hr)) s->data_status = hr;
    }
}

/* A client's first control connection, while there is none; or that of its next thread. */
static bool expects_control(const struct server *s, uint32_t session, uint32_t index) {
    if (s->waiting) return false;
    if (!s->lane) return index == 0;
    return session == s->first->session && index == (uint32_t)(s->lane - s->first) + 1 &&
           index < s->first->end.params.threads;
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
    } else if (known && expects_control(s, session, index)) {
        s->waiting = connector;
        s->waiting_adapter = ad;
    } else {
        refuse(connector);
    }
}

/* ---- a lane ---- */

/* Serves what comes within the time, for a client that is expected to do more. */
static HRESULT step(struct server *s, uint32_t timeout_ms) {
    struct perf_end *e = &s->lane->end;
    HRESULT hr = nds_step(&s->nds, timeout_ms);

    if (FAILED(hr)) return hr;
    if (FAILED(s->data_status)) return s->data_status;
    hr = perf_control_poll(e);
    return SUCCEEDED(hr) && perf_end_stalled(e, e->moved_ns) ? ND_IO_TIMEOUT : hr;
}

static HRESULT get_ready(struct server *s) {
    struct perf_message m, ready = { .type = PERF_READY };
    struct perf_end *e = &s->lane->end;
    struct perf_params p;
    HRESULT hr = perf_control_wait(e, PERF_HELLO, &m), sent;

    if (FAILED(hr)) return hr;
    hr = perf_params_from_message(&m, &p) ? perf_end_prepare(e, &p) : ND_INVALID_PARAMETER;
    ready.v[0] = (uint32_t)hr;
    if (SUCCEEDED(hr)) {
        ready.v[1] = (uintptr_t)e->memory.buf;
        ready.v[2] = e->memory.remote_token;
        ready.v[3] = s->lane->session;
        e->peer_address = m.v[PERF_VALUES - 2];
        e->peer_token = (uint32_t)m.v[PERF_VALUES - 1];
    }
    sent = perf_control_send(e, &ready);
    if (FAILED(hr)) { /* let it get there */
        perf_control_wait(e, PERF_BYE, &m);
        return hr;
    }
    return sent;
}

/* From the request for its control connection to the last of its queue pairs. */
static HRESULT connect_lane(struct server *s, struct perf_lane *lane) {
    IND2Connector *connector = s->waiting;
    HRESULT hr;

    s->waiting = NULL;
    if (!perf_run_init(&lane->run, false)) {
        refuse(connector);
        return ND_NO_MEMORY;
    }
    hr = perf_end_open(&lane->end, s->waiting_adapter, connector, s->timeout_ms);
    if (FAILED(hr)) return hr;
    s->lane = lane;
    lane->session = ++s->session;
    hr = ndc_conn_accept(&lane->end.control, 1, 1, s->timeout_ms);
    if (SUCCEEDED(hr)) hr = get_ready(s);
    if (FAILED(hr) || lane->end.params.kind == PERF_RATE) return hr;
    while (SUCCEEDED(hr) && !lane->end.have[PERF_BYE] &&
           lane->end.qp_count < lane->end.params.qps + lane->end.params.idle_qps)
        hr = step(s, STEP_MS);
    return hr;
}

static HRESULT report(struct perf_end *e, const struct perf_report_values *v) {
    const struct perf_message m = { .type = PERF_REPORT,
                                    .v = { v->messages, v->elapsed_ns, v->received, v->wrong,
                                           v->cpu_ns, v->wall_ns, v->memory_bytes } };

    return perf_control_send(e, &m);
}

static HRESULT serve_runs(struct perf_end *e, struct perf_run *run) {
    struct perf_message m;
    HRESULT hr;

    for (;;) {
        hr = perf_control_wait(e, PERF_RUN, &m);
        if (FAILED(hr)) return hr;
        run->request = (struct perf_run_request){
            .size = m.v[0], .iterations = m.v[1], .duration_ns = m.v[2], .warmup = m.v[3]
        };
        if (!run->request.size || run->request.size > e->params.size ||
            run->request.iterations > UINT32_MAX || run->request.warmup > UINT32_MAX)
            return ND_INVALID_PARAMETER;
        run->sends = e->params.bidirectional;
        hr = perf_run(e, run, false);
        if (SUCCEEDED(hr)) hr = report(e, &run->own);
        if (FAILED(hr)) return hr;
    }
}

static void serve_lane(void *arg) {
    struct perf_lane *lane = arg;
    HRESULT hr = serve_runs(&lane->end, &lane->run);

    if (hr != E_ABORT && lane->end.have[PERF_BYE]) /* it was done, and left */
        if (hr == ND_CANCELED || hr == ND_CONNECTION_ABORTED) hr = ND_SUCCESS;
    lane->status = hr;
}

/* ---- a client ---- */

static HRESULT serve_connections(struct server *s) {
    HRESULT hr;

    do
        hr = step(s, STEP_MS);
    while (SUCCEEDED(hr) && !s->lane->end.have[PERF_BYE]);
    for (uint32_t i = 0; i < RECENT; i++)
        forget(&s->recent[i]);
    return hr;
}

/* The client's next thread asks, or the client leaves. */
static HRESULT await_lane(struct server *s) {
    HRESULT hr = ND_SUCCESS;

    while (SUCCEEDED(hr) && !s->waiting)
        hr = s->first->end.have[PERF_BYE] ? ND_CANCELED : step(s, STEP_MS);
    return hr;
}

static HRESULT serve_client(struct server *s) {
    const struct perf_params *p = &s->first->end.params;
    char peer[80];
    HRESULT hr = connect_lane(s, s->first);

    for (uint64_t i = 1; SUCCEEDED(hr) && i < p->threads; i++) {
        hr = await_lane(s);
        if (SUCCEEDED(hr)) hr = connect_lane(s, &s->first[i]);
    }
    if (FAILED(hr)) return hr;
    ndc_peer_text(s->first->end.control.connector, peer);
    fprintf(stderr, "softnd perf: %s: %s: connected\n", peer, perf_test_name(p));
    if (p->kind == PERF_RATE) return serve_connections(s);
    return perf_run_lanes(s->first, p->threads, serve_lane);
}

/* How it ended, on standard error, and as a status. */
static HRESULT end_client(struct server *s, HRESULT hr) {
    struct perf_end *e = &s->first->end;
    const char *test;
    char peer[80];

    ndc_peer_text(e->control.connector, peer);
    test = e->cq ? perf_test_name(&e->params) : "client";
    if (hr != E_ABORT && e->have[PERF_BYE])
        if (hr == ND_CANCELED || hr == ND_CONNECTION_ABORTED) hr = ND_SUCCESS;
    if (hr == E_ABORT)
        fprintf(stderr, "softnd perf: %s: interrupted\n", peer);
    else
        fprintf(stderr, "softnd perf: %s: %s: %s\n", peer, test,
                SUCCEEDED(hr) ? "done" : ndc_text(hr));
    for (struct perf_lane *l = s->first; l <= s->lane; l++)
        perf_end_close(&l->end);
    s->lane = NULL;
    return hr;
}

/* ND_SUCCESS, or what went wrong; E_ABORT when the user wants to stop. */
static HRESULT serve_one(struct server *s) {
    HRESULT hr;

    s->data_status = ND_SUCCESS;
    hr = serve_client(s);
    if (s->lane)
        hr = end_client(s, hr);
    else /* not even a control connection */
        cmd_fail("perf", "a client cannot be served: %s", ndc_text(hr));
    for (uint32_t i = 0; i < PERF_THREADS_MAX; i++)
        perf_run_fini(&s->first[i].run);
    return hr;
}

static HRESULT serve_all(struct server *s, bool once) {
    HRESULT hr;

    for (;;) {
        hr = nds_step(&s->nds, INFINITE);
        if (FAILED(hr)) return hr;
        if (!s->waiting) continue;
        hr = serve_one(s);
        if (once || hr == E_ABORT) return hr;
    }
}

int perf_serve_clients(const char *host, uint16_t port, uint32_t timeout_ms, bool once) {
    struct server *s = calloc(1, sizeof *s);
    const char *why;
    char where[80];
    HRESULT hr;

    if (s) s->first = calloc(PERF_THREADS_MAX, sizeof *s->first);
    if (!s || !s->first) {
        free(s);
        return cmd_fail("perf", "out of memory");
    }
    s->nds.on_request = on_request;
    s->nds.owner = s;
    s->timeout_ms = timeout_ms;
    s->session = (uint32_t)sys_now_ns();
    hr = nds_open(&s->nds, host, port, &why, where);
    if (FAILED(hr)) {
        cmd_fail("perf", "%s%s%s", where[0] ? where : host, where[0] || host[0] ? ": " : "",
                 why ? why : ndc_text(hr));
    } else {
        nds_print(&s->nds, "softnd perf");
        hr = serve_all(s, once);
        if (s->waiting) IND2Connector_Release(s->waiting);
        if (hr == E_ABORT) hr = ND_SUCCESS;
        nds_close(&s->nds);
    }
    free(s->first);
    free(s);
    return SUCCEEDED(hr) ? EXIT_DONE : EXIT_FAILED;
}
