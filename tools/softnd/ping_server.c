/* SPDX-License-Identifier: MIT
 * ping_server.c - the answering end of `softnd ping`: any number of clients on one completion
 * port, none of which can hold up another for longer than PING_SPIN_NS.
 *
 * A client is freed when its connection is over and none of its requests (Accept, Notify) is under
 * way any more: their packets still name it.
 */
#include <initguid.h>

#include "ping.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cmd.h"
#include "nd_server.h"
#include "sys.h"

/* Messages that a client may have under way; its buffers are echoed in place. */
#define SLOTS 4
#define RESULTS 16
/* Cancelled requests complete at once; this is only so that nothing waits for ever. */
#define DRAIN_MS 1000
/* Memory that all clients together may ask for, so that a flood of greetings is refused. */
#define MEMORY_MAX (1ull << 30)

struct server;

struct client {
    struct client *next, **link; /* link: what points here */
    struct server *server;
    IND2Connector *connector;
    IND2CompletionQueue *cq;
    IND2QueuePair *qp;
    struct ndc_region memory;
    uint32_t size;
    struct nds_op accept, notify;
    bool accept_pending, notify_pending, over;
    char peer[80];
    uint64_t answered;
};

struct server {
    struct nds_server nds;
    struct client *clients;
    uint64_t memory_bytes;
};

static void free_client(struct client *c) {
    *c->link = c->next;
    if (c->next) c->next->link = c->link;
    if (c->connector) IND2Connector_Release(c->connector);
    if (c->qp) IND2QueuePair_Release(c->qp);
    if (c->cq) IND2CompletionQueue_Release(c->cq);
    c->server->memory_bytes -= c->memory.bytes;
    ndc_region_destroy(&c->memory);
    free(c);
}

/* Ends the connection; the packets of cancelled requests still come. */
static void end_client(struct client *c) {
    if (!c->over) {
        c->over = true;
        if (c->peer[0])
            fprintf(stderr, "softnd ping: %s: left after %llu answers\n", c->peer,
                    (unsigned long long)c->answered);
        if (c->accept_pending) IND2Connector_CancelOverlappedRequests(c->connector);
        if (c->notify_pending) IND2CompletionQueue_CancelOverlappedRequests(c->cq);
    }
    if (!c->accept_pending && !c->notify_pending) free_client(c);
}

static HRESULT post_receive(struct client *c, uintptr_t slot) {
    ND2_SGE sge = ndc_sge(&c->memory, slot * c->size, c->size);

    return IND2QueuePair_Receive(c->qp, (void *)slot, &sge, c->size ? 1 : 0);
}

static HRESULT handle_result(struct client *c, const ND2_RESULT *r) {
    uintptr_t slot = (uintptr_t)r->RequestContext;
    ND2_SGE sge = ndc_sge(&c->memory, slot * c->size, r->BytesTransferred);

    if (FAILED(r->Status)) return r->Status;
    if (r->RequestType == Nd2RequestTypeSend) return post_receive(c, slot);
    c->answered++;
    return IND2QueuePair_Send(c->qp, (void *)slot, &sge, r->BytesTransferred ? 1 : 0, 0);
}

/* Handles what is there and what comes while it is busy, then asks to be told of the next. */
static void serve_client(struct client *c) {
    uint64_t spin_until = sys_now_ns() + PING_SPIN_NS;
    ND2_RESULT results[RESULTS];
    HRESULT hr = ND_SUCCESS;

    while (SUCCEEDED(hr) && sys_now_ns() < spin_until) {
        ULONG count = IND2CompletionQueue_GetResults(c->cq, results, RESULTS);
        for (ULONG i = 0; i < count && SUCCEEDED(hr); i++)
            hr = handle_result(c, &results[i]);
        if (count) spin_until = sys_now_ns() + PING_SPIN_NS;
        if (sys_stop_requested()) break;
    }
    if (SUCCEEDED(hr)) {
        nds_op_begin(&c->notify);
        hr = IND2CompletionQueue_Notify(c->cq, ND_CQ_NOTIFY_ANY, &c->notify.ov);
        c->notify_pending = SUCCEEDED(hr);
    }
    if (FAILED(hr)) end_client(c);
}

static void on_notified(struct nds_op *op) {
    struct client *c = op->owner;
    HRESULT hr = IND2CompletionQueue_GetOverlappedResult(c->cq, &op->ov, FALSE);

    c->notify_pending = false;
    if (c->over || FAILED(hr))
        end_client(c);
    else
        serve_client(c);
}

static void on_accepted(struct nds_op *op) {
    struct client *c = op->owner;
    HRESULT hr = IND2Connector_GetOverlappedResult(c->connector, &op->ov, FALSE);

    c->accept_pending = false;
    if (c->over || FAILED(hr)) {
        end_client(c);
        return;
    }
    ndc_peer_text(c->connector, c->peer);
    fprintf(stderr, "softnd ping: %s: connected, %u bytes\n", c->peer, (unsigned)c->size);
    serve_client(c);
}

static HRESULT make_client(struct client *c, struct ndc_adapter *ad) {
    size_t bytes = (size_t)c->size * SLOTS;
    HRESULT hr;

    if (bytes > MEMORY_MAX - c->server->memory_bytes) return ND_INSUFFICIENT_RESOURCES;
    hr = IND2Adapter_CreateCompletionQueue(ad->adapter, &IID_IND2CompletionQueue, ad->file,
                                           2 * SLOTS, 0, 0, (void **)&c->cq);
    if (SUCCEEDED(hr))
        hr = IND2Adapter_CreateQueuePair(ad->adapter, &IID_IND2QueuePair, (IUnknown *)c->cq,
                                         (IUnknown *)c->cq, c, SLOTS, SLOTS, 1, 1, 0,
                                         (void **)&c->qp);
    if (SUCCEEDED(hr)) hr = ndc_region_create(ad, bytes, ND_MR_FLAG_ALLOW_LOCAL_WRITE, &c->memory);
    if (SUCCEEDED(hr)) c->server->memory_bytes += c->memory.bytes;
    for (uintptr_t i = 0; SUCCEEDED(hr) && i < SLOTS; i++)
        hr = post_receive(c, i);
    return hr;
}

static void on_request(void *owner, struct ndc_adapter *ad, IND2Connector *connector) {
    struct server *s = owner;
    struct client *c = calloc(1, sizeof *c);
    uint8_t hello[PING_GREETING_BYTES];
    ULONG len = ndc_peer_data(connector, hello, sizeof hello);
    HRESULT hr = ND_NO_MEMORY;

    if (c) {
        *c = (struct client){ .server = s,
                              .connector = connector,
                              .accept = { .on_done = on_accepted, .owner = c },
                              .notify = { .on_done = on_notified, .owner = c } };
        c->next = s->clients;
        c->link = &s->clients;
        if (c->next) c->next->link = &c->next;
        s->clients = c;
        hr = ping_unpack_greeting(hello, len, &c->size) ? make_client(c, ad) : ND_UNSUCCESSFUL;
    }
    if (FAILED(hr)) {
        IND2Connector_Reject(connector, NULL, 0);
        if (c)
            free_client(c);
        else
            IND2Connector_Release(connector);
        return;
    }
    nds_op_begin(&c->accept);
    hr = IND2Connector_Accept(connector, (IUnknown *)c->qp, 0, 0, NULL, 0, &c->accept.ov);
    c->accept_pending = SUCCEEDED(hr);
    if (FAILED(hr)) end_client(c);
}

/* Every client's requests are cancelled, and their packets taken. */
static void end_all(struct server *s) {
    struct client *next;

    nds_stop_listening(&s->nds);
    s->nds.failed = ND_SUCCESS;
    s->nds.ignore_stop = true;
    for (struct client *c = s->clients; c; c = next) {
        next = c->next;
        end_client(c);
    }
    while (s->clients && nds_step(&s->nds, DRAIN_MS) == ND_SUCCESS)
        ;
    nds_close(&s->nds);
}

int ping_serve(const char *host, uint16_t port) {
    struct server *s = calloc(1, sizeof *s);
    const char *why;
    char where[80];
    HRESULT hr;
    int code;

    if (!s) return cmd_fail("ping", "out of memory");
    s->nds.on_request = on_request;
    s->nds.owner = s;
    hr = nds_open(&s->nds, host, port, &why, where);
    if (FAILED(hr)) {
        cmd_fail("ping", "%s%s%s", where[0] ? where : host, where[0] || host[0] ? ": " : "",
                 why ? why : ndc_text(hr));
        free(s);
        return EXIT_FAILED;
    }
    nds_print(&s->nds, "softnd ping");
    do
        hr = nds_step(&s->nds, INFINITE);
    while (SUCCEEDED(hr));
    code = hr == E_ABORT ? EXIT_DONE : cmd_fail("ping", "%s", ndc_text(hr));
    end_all(s);
    free(s);
    return code;
}
