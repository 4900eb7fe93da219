/* SPDX-License-Identifier: MIT
 * ping_rping.c - see ping_rping.h.
 */
#include "ping_rping.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cmd.h"
#include "nd_server.h"
#include "ping.h"
#include "stats.h"
#include "sys.h"

enum { ADVERT_BYTES = 16, CONNECT_MS = 30000, RECEIVES = 4, WAITING_MAX = 64 };

/* Layout of the memory: RECEIVES adverts to receive, one to send, then two buffers. */
struct rping {
    struct ndc_conn conn;
    struct ndc_region memory;
    const struct rping_options *o;
    uint32_t receives;  /* adverts received, not yet taken */
    uint32_t next_slot; /* where the next one is */
};

static size_t buffer_at(const struct rping *r, int which) {
    return (RECEIVES + 1) * ADVERT_BYTES + (size_t)which * r->o->size;
}
static uint8_t *buffer(const struct rping *r, int which) {
    return r->memory.buf + buffer_at(r, which);
}

static HRESULT post_receive(struct rping *r, uint32_t slot) {
    ND2_SGE sge = ndc_sge(&r->memory, (size_t)slot * ADVERT_BYTES, ADVERT_BYTES);
    return IND2QueuePair_Receive(r->conn.qp, NULL, &sge, 1);
}

static HRESULT create(struct rping *r, struct ndc_adapter *ad, IND2Connector *connector) {
    struct ndc_spec spec = { .receives = RECEIVES,
                             .requests = 4,
                             .receive_sges = 1,
                             .request_sges = 1,
                             .spin_ns = PING_SPIN_NS };
    HRESULT hr = ndc_conn_create(&r->conn, ad, &spec, connector);
    if (FAILED(hr)) return hr;
    hr = ndc_region_create(ad, (RECEIVES + 1) * ADVERT_BYTES + 2 * (size_t)r->o->size,
                           ND_MR_FLAG_ALLOW_REMOTE_READ | ND_MR_FLAG_ALLOW_REMOTE_WRITE |
                               ND_MR_FLAG_RDMA_READ_SINK,
                           &r->memory);
    for (uint32_t i = 0; SUCCEEDED(hr) && i < RECEIVES; i++)
        hr = post_receive(r, i);
    return hr;
}

static void destroy(struct rping *r) {
    ndc_conn_close(&r->conn);
    ndc_region_destroy(&r->memory);
}

/* Until a request of this type is complete; adverts that come meanwhile are counted. */
static HRESULT wait_for(struct rping *r, ND2_REQUEST_TYPE type, uint32_t timeout_ms) {
    for (;;) {
        ND2_RESULT result;
        ULONG count = 0;
        if (type == Nd2RequestTypeReceive && r->receives != 0) {
            r->receives--;
            return ND_SUCCESS;
        }
        HRESULT hr = ndc_conn_wait(&r->conn, &result, 1, &count, timeout_ms);
        if (hr != ND_SUCCESS) return hr == ND_TIMEOUT ? ND_IO_TIMEOUT : hr;
        if (FAILED(result.Status)) return result.Status;
        if (result.RequestType == Nd2RequestTypeReceive) {
            if (result.BytesTransferred != ADVERT_BYTES) return ND_DATA_OVERRUN;
            r->receives++;
        } else if (result.RequestType == type) {
            return ND_SUCCESS;
        }
    }
}

static uint64_t get_be(const uint8_t *p, int n) {
    uint64_t v = 0;
    while (n-- > 0)
        v = v << 8 | *p++;
    return v;
}
static void put_be(uint8_t *p, int n, uint64_t v) {
    while (n-- > 0) {
        p[n] = (uint8_t)v;
        v >>= 8;
    }
}

struct advert {
    uint64_t address;
    uint32_t token, size;
};

/* Waits for the peer's next advertisement or answer. */
static HRESULT take_advert(struct rping *r, struct advert *a, uint32_t timeout_ms) {
    HRESULT hr = wait_for(r, Nd2RequestTypeReceive, timeout_ms);
    const uint8_t *p = r->memory.buf + (size_t)r->next_slot * ADVERT_BYTES;
    if (FAILED(hr)) return hr;
    *a = (struct advert){ .address = get_be(p, 8),
                          .token = (uint32_t)get_be(p + 8, 4),
                          .size = (uint32_t)get_be(p + 12, 4) };
    hr = post_receive(r, r->next_slot);
    r->next_slot = (r->next_slot + 1) % RECEIVES;
    return hr;
}

/* Sends one of our buffers' whereabouts, which is also what an answer looks like. */
static HRESULT send_advert(struct rping *r, int which) {
    uint8_t *p = r->memory.buf + RECEIVES * ADVERT_BYTES;
    ND2_SGE sge = ndc_sge(&r->memory, RECEIVES * ADVERT_BYTES, ADVERT_BYTES);
    put_be(p, 8, (uint64_t)(uintptr_t)buffer(r, which));
    put_be(p + 8, 4, r->memory.remote_token);
    put_be(p + 12, 4, r->o->size);
    HRESULT hr = IND2QueuePair_Send(r->conn.qp, NULL, &sge, 1, 0);
    return FAILED(hr) ? hr : wait_for(r, Nd2RequestTypeSend, r->o->timeout_ms);
}

/* ---- client ---- */

struct client {
    struct rping r;
    uint64_t sent, answered, wrong;
    struct stats times_us;
    char peer[80];
};

/* "rping-ping-N: " and the printable characters, from another one each time. */
static void fill_text(uint8_t *out, uint32_t size, uint64_t seq) {
    int n = snprintf((char *)out, size, "rdma-ping-%llu: ", (unsigned long long)(seq - 1));
    for (uint32_t i = (uint32_t)n; i + 1 < size; i++)
        out[i] = (uint8_t)('A' + (seq + i) % 58);
    out[size - 1] = 0;
}

static HRESULT round_trip(struct client *c) {
    struct rping *r = &c->r;
    struct advert a;
    uint32_t size = r->o->size;
    c->sent++;
    fill_text(buffer(r, 0), size, c->sent);
    memset(buffer(r, 1), 0, size);
    uint64_t start = sys_now_ns();
    for (int which = 0; which < 2; which++) {
        HRESULT hr = send_advert(r, which);
        if (SUCCEEDED(hr)) hr = take_advert(r, &a, r->o->timeout_ms);
        if (FAILED(hr)) return hr;
    }
    double us = (double)(sys_now_ns() - start) / 1e3;
    bool right = !r->o->verify || memcmp(buffer(r, 0), buffer(r, 1), size) == 0;
    c->answered++;
    c->wrong += !right;
    stats_add(&c->times_us, us);
    if (!r->o->quiet)
        printf("%u bytes from %s: seq=%llu time=%.1f us%s\n", (unsigned)size, c->peer,
               (unsigned long long)c->sent, us, right ? "" : " WRONG DATA");
    return ND_SUCCESS;
}

static HRESULT run_client(struct client *c) {
    const struct rping_options *o = c->r.o;
    uint64_t interval_ns = (uint64_t)(o->interval_s * 1e9), next = sys_now_ns();
    while ((!o->count || c->sent < o->count) && !sys_stop_requested()) {
        HRESULT hr = round_trip(c);
        if (FAILED(hr)) return hr == E_ABORT ? ND_SUCCESS : hr;
        fflush(stdout);
        if (o->count && c->sent == o->count) break;
        next += interval_ns;
        while (interval_ns && sys_now_ns() < next && !sys_stop_requested())
            sys_sleep_until(next);
        if (sys_now_ns() > next) next = sys_now_ns();
    }
    return ND_SUCCESS;
}

static HRESULT connect_to(struct ndc_target *t, void *context) {
    struct client *c = context;
    HRESULT hr = create(&c->r, &t->ad, NULL);
    if (SUCCEEDED(hr))
        hr = ndc_conn_connect(&c->r.conn, (struct sockaddr *)&t->local,
                              (struct sockaddr *)&t->remote, 1, 1, NULL, 0, CONNECT_MS);
    if (FAILED(hr)) destroy(&c->r);
    return hr;
}

int rping_client(const struct rping_options *o, const char *host, uint16_t port) {
    struct client c = { .r.o = o };
    struct ndc_target target;
    const char *why;
    HRESULT hr = ndc_target_open(&target, host, port, connect_to, &c, &why);
    if (FAILED(hr))
        return cmd_fail("ping", "%s: %s", why ? host : target.text, why ? why : ndc_text(hr));
    strcpy(c.peer, target.text);
    stats_init(&c.times_us);
    hr = run_client(&c);
    printf("--- %s softnd ping --rping statistics ---\n%llu sent, %llu answered", c.peer,
           (unsigned long long)c.sent, (unsigned long long)c.answered);
    if (o->verify) printf(", %llu wrong", (unsigned long long)c.wrong);
    printf("\nround trip min/avg/max/mdev = %.1f/%.1f/%.1f/%.1f us\n", c.times_us.min,
           c.times_us.mean, c.times_us.max, stats_deviation(&c.times_us));
    fflush(stdout);
    destroy(&c.r);
    ndc_adapter_close(&target.ad);
    if (FAILED(hr)) return cmd_fail("ping", "%s: %s", c.peer, ndc_text(hr));
    return c.sent == c.answered && !c.wrong ? EXIT_DONE : EXIT_FAILED;
}

/* ---- server ---- */

struct waiting {
    struct ndc_adapter *ad;
    IND2Connector *connector;
};
struct server {
    struct nds_server nds;
    const struct rping_options *o;
    struct waiting waiting[WAITING_MAX];
    size_t first, count;
};

static void on_request(void *owner, struct ndc_adapter *ad, IND2Connector *connector) {
    struct server *s = owner;
    if (s->count == WAITING_MAX) {
        IND2Connector_Reject(connector, NULL, 0);
        IND2Connector_Release(connector);
        return;
    }
    s->waiting[(s->first + s->count++) % WAITING_MAX] = (struct waiting){ ad, connector };
}

static HRESULT serve_round(struct rping *r) {
    struct advert a;
    HRESULT hr = take_advert(r, &a, INFINITE);
    if (FAILED(hr)) return hr;
    if (a.size > r->o->size) return ND_INVALID_BUFFER_SIZE;
    ND2_SGE sge = ndc_sge(&r->memory, buffer_at(r, 0), a.size);
    hr = IND2QueuePair_Read(r->conn.qp, NULL, &sge, a.size ? 1 : 0, a.address, a.token, 0);
    if (SUCCEEDED(hr)) hr = wait_for(r, Nd2RequestTypeRead, r->o->timeout_ms);
    if (SUCCEEDED(hr)) hr = send_advert(r, 0);
    if (SUCCEEDED(hr)) hr = take_advert(r, &a, r->o->timeout_ms);
    if (FAILED(hr)) return hr;
    const uint8_t *end = memchr(buffer(r, 0), 0, r->o->size);
    uint32_t text = end ? (uint32_t)(end - buffer(r, 0)) + 1 : r->o->size;
    sge.BufferLength = text < a.size ? text : a.size;
    hr = IND2QueuePair_Write(r->conn.qp, NULL, &sge, 1, a.address, a.token, 0);
    if (SUCCEEDED(hr)) hr = wait_for(r, Nd2RequestTypeWrite, r->o->timeout_ms);
    return FAILED(hr) ? hr : send_advert(r, 0);
}

/* One client from its request to its end. */
static void serve_client(struct server *s, const struct waiting *w) {
    struct rping r = { .o = s->o };
    uint64_t rounds = 0;
    char peer[80];
    HRESULT hr = create(&r, w->ad, w->connector);
    if (SUCCEEDED(hr)) hr = ndc_conn_accept(&r.conn, 1, 1, CONNECT_MS);
    if (hr == ND_SUCCESS) {
        ndc_peer_text(r.conn.connector, peer);
        fprintf(stderr, "softnd ping: %s: connected\n", peer);
        while (SUCCEEDED(hr = serve_round(&r)))
            rounds++;
        fprintf(stderr, "softnd ping: %s: left after %llu rounds%s%s\n", peer,
                (unsigned long long)rounds, hr == ND_CANCELED || hr == E_ABORT ? "" : ": ",
                hr == ND_CANCELED || hr == E_ABORT ? "" : ndc_text(hr));
    }
    destroy(&r);
}

int rping_serve(const struct rping_options *o, const char *host, uint16_t port) {
    struct server *s = calloc(1, sizeof *s);
    const char *why;
    char where[80];
    uint32_t served = 0;
    int code;
    if (!s) return cmd_fail("ping", "out of memory");
    s->o = o;
    s->nds.on_request = on_request;
    s->nds.owner = s;
    HRESULT hr = nds_open(&s->nds, host, port, &why, where);
    if (FAILED(hr)) {
        cmd_fail("ping", "%s: %s",
                 where[0]  ? where
                 : host[0] ? host
                           : "rping",
                 why ? why : ndc_text(hr));
        free(s);
        return EXIT_FAILED;
    }
    nds_print(&s->nds, "softnd ping");
    while (SUCCEEDED(hr) && (!o->count || served < o->count)) {
        if (s->count) {
            struct waiting w = s->waiting[s->first];
            s->first = (s->first + 1) % WAITING_MAX;
            s->count--;
            serve_client(s, &w);
            served++;
            if (sys_stop_requested()) hr = E_ABORT;
        } else {
            hr = nds_step(&s->nds, INFINITE);
        }
    }
    code = SUCCEEDED(hr) || hr == E_ABORT ? EXIT_DONE : cmd_fail("ping", "%s", ndc_text(hr));
    nds_stop_listening(&s->nds);
    for (; s->count; s->count--, s->first = (s->first + 1) % WAITING_MAX) {
        IND2Connector_Reject(s->waiting[s->first].connector, NULL, 0);
        IND2Connector_Release(s->waiting[s->first].connector);
    }
    nds_close(&s->nds);
    free(s);
    return code;
}
