/* SPDX-License-Identifier: MIT
 * cat_link.c - see cat_link.h. A request's context is a kind and a number, so that a result says
 * what it is about without a table.
 */
#include "cat_link.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cmd.h"
#include "sys.h"
#include "text.h"

enum kind { KIND_RECEIVE = 1, KIND_CONTROL, KIND_CHUNK, KIND_WRITE, KIND_READ };
#define KIND_SHIFT 56
#define VALUE_MASK ((1ull << KIND_SHIFT) - 1)

/* How long a wait polls before it sleeps: a little more than a notification costs. */
#define SPIN_NS 20000
/* How long the reason of an abort may take to leave. */
#define ABORT_MS 1000

static void *context_of(enum kind kind, uint64_t value) {
    return (void *)(uintptr_t)((uint64_t)kind << KIND_SHIFT | (value & VALUE_MASK));
}

bool cat_link_fail(struct cat_link *l, const char *format, ...) {
    va_list ap;

    if (l->error[0]) return false;
    va_start(ap, format);
    vsnprintf(l->error, sizeof l->error, format, ap);
    va_end(ap);
    return false;
}

static bool fail_status(struct cat_link *l, const char *what, HRESULT hr) {
    return cat_link_fail(l, "%s: %s", what, ndc_text(hr));
}

HRESULT cat_link_create(struct cat_link *l, struct ndc_adapter *ad, uint32_t slots,
                        IND2Connector *connector) {
    struct ndc_spec spec;
    HRESULT hr;

    *l = (struct cat_link){ .slots = slots };
    l->sends = 2 * slots + 2 * CAT_SPARE;
    l->receives = slots + CAT_SPARE;
    l->stash_room = 2 * l->sends + l->receives + slots;
    spec = (struct ndc_spec){ .receives = l->receives,
                              .requests = l->sends + slots, /* each chunk: a Write and a Send */
                              .receive_sges = 2,
                              .request_sges = 2,
                              .spin_ns = SPIN_NS };
    hr = ndc_conn_create(&l->conn, ad, &spec, connector);
    if (FAILED(hr)) return hr;
    l->stash = calloc(l->stash_room, sizeof l->stash[0]);
    hr = l->stash ? ndc_region_create(ad, (l->sends + l->receives) * (size_t)CAT_MESSAGE_BYTES,
                                      ND_MR_FLAG_ALLOW_LOCAL_WRITE, &l->control)
                  : ND_NO_MEMORY;
    if (FAILED(hr)) cat_link_close(l);
    return hr;
}

void cat_link_connected(struct cat_link *l) {
    ndc_peer_text(l->conn.connector, l->peer);
    ndc_transport(l->conn.qp, l->transport);
}

bool cat_link_make_ring(struct cat_link *l, uint32_t count, uint32_t chunk_bytes, ULONG flags) {
    HRESULT hr = ndc_region_create(l->conn.ad, (size_t)count * chunk_bytes, flags, &l->data);

    if (FAILED(hr)) return fail_status(l, "transfer buffer", hr);
    l->chunk_bytes = chunk_bytes;
    return true;
}

bool cat_link_post_receive(struct cat_link *l, uint32_t idx) {
    ND2_SGE sge[2] = { ndc_sge(&l->control, (size_t)(l->sends + idx) * CAT_MESSAGE_BYTES,
                               CAT_MESSAGE_BYTES) };
    HRESULT hr;

    if (l->receive_payload)
        sge[1] = ndc_sge(&l->data, (size_t)idx * l->chunk_bytes, l->chunk_bytes);
    hr = IND2QueuePair_Receive(l->conn.qp, context_of(KIND_RECEIVE, idx), sge,
                               l->receive_payload ? 2 : 1);
    return SUCCEEDED(hr) || fail_status(l, "receive", hr);
}

/* ---- results ---- */

static bool wait_results(struct cat_link *l, uint32_t timeout_ms, bool *none) {
    ULONG count = 0;
    HRESULT hr;

    memmove(l->stash, l->stash + l->stash_at, (l->stash_count - l->stash_at) * sizeof l->stash[0]);
    l->stash_count -= l->stash_at;
    l->stash_at = 0;
    *none = false;
    hr = ndc_conn_wait(&l->conn, l->stash + l->stash_count, l->stash_room - l->stash_count, &count,
                       timeout_ms);
    if (hr == ND_TIMEOUT) {
        *none = true;
        return true;
    }
    if (FAILED(hr)) return fail_status(l, l->peer, hr);
    for (uint32_t i = l->stash_count; i < l->stash_count + count; i++) {
        uint64_t kind = (uint64_t)(uintptr_t)l->stash[i].RequestContext >> KIND_SHIFT;
        if (kind == KIND_CONTROL || kind == KIND_CHUNK) l->sends_done++;
    }
    l->stash_count += count;
    return true;
}

static bool fail_result(struct cat_link *l, const ND2_RESULT *r) {
    static const char *const names[] = { "receive", "send", "bind", "invalidate", "read", "write" };
    const char *name = (unsigned)r->RequestType < 6 ? names[r->RequestType] : "request";

    l->broken = true;
    /* What was flushed says nothing itself; the request that failed is in front of it, unless the
     * connection ended by itself. */
    if (r->Status == ND_CANCELED)
        return cat_link_fail(l, "connection to %s lost after %llu bytes", l->peer,
                             (unsigned long long)l->bytes);
    return cat_link_fail(l, "%s: %s failed: %s", l->peer, name, ndc_text(r->Status));
}

static bool take_message(struct cat_link *l, const ND2_RESULT *r, uint32_t idx) {
    const uint8_t *at = l->control.buf + (size_t)(l->sends + idx) * CAT_MESSAGE_BYTES;
    char text[CAT_DATA_BYTES + 1];

    if (!cat_unpack(at, r->BytesTransferred, &l->message))
        return cat_link_fail(l, "%s does not speak this version of softnd cat", l->peer);
    if (l->message.type == CAT_ABORT) {
        memcpy(text, l->message.data, CAT_DATA_BYTES);
        text[CAT_DATA_BYTES] = 0;
        for (char *c = text; *c; c++)
            if ((unsigned char)*c < 0x20) *c = '?';
        return cat_link_fail(l, "%s: %s", l->peer, text);
    }
    l->receive_idx = idx;
    l->value = r->BytesTransferred - CAT_MESSAGE_BYTES; /* payload behind the message */
    return true;
}

bool cat_link_next(struct cat_link *l, enum cat_event *event, uint32_t timeout_ms) {
    for (;;) {
        const ND2_RESULT *r;
        uint64_t context;
        bool none;
        if (l->stash_at == l->stash_count) {
            if (!wait_results(l, timeout_ms, &none)) return false;
            *event = CAT_EVENT_NOTHING;
            if (none) return true;
        }
        r = &l->stash[l->stash_at++];
        if (FAILED(r->Status)) return fail_result(l, r);
        context = (uint64_t)(uintptr_t)r->RequestContext;
        l->value = context & VALUE_MASK;
        switch ((enum kind)(context >> KIND_SHIFT)) {
        case KIND_RECEIVE:
            *event = CAT_EVENT_MESSAGE;
            return take_message(l, r, (uint32_t)l->value);
        case KIND_CHUNK:
            *event = CAT_EVENT_SENT;
            return true;
        case KIND_READ:
            *event = CAT_EVENT_READ;
            return true;
        case KIND_CONTROL:
        case KIND_WRITE:
            break;
        }
    }
}

/* ---- requests ---- */

/* The buffers of control messages are a ring: when all are on their way, results are taken until
 * the oldest is done, and kept for cat_link_next. */
static bool wait_for_room(struct cat_link *l) {
    while (l->sends_posted - l->sends_done == l->sends) {
        bool none;
        if (!wait_results(l, INFINITE, &none)) return false;
        for (uint32_t i = l->stash_at; i < l->stash_count; i++)
            if (FAILED(l->stash[i].Status)) return fail_result(l, &l->stash[i]);
    }
    return true;
}

bool cat_link_send(struct cat_link *l, const struct cat_message *m, const ND2_SGE *payload) {
    ND2_SGE sge[2];
    size_t at;
    HRESULT hr;

    if (!wait_for_room(l)) return false;
    at = (size_t)(l->sends_posted % l->sends) * CAT_MESSAGE_BYTES;
    cat_pack(m, l->control.buf + at);
    sge[0] = ndc_sge(&l->control, at, CAT_MESSAGE_BYTES);
    if (payload) sge[1] = *payload;
    hr = IND2QueuePair_Send(l->conn.qp,
                            m->type == CAT_CHUNK ? context_of(KIND_CHUNK, m->value)
                                                 : context_of(KIND_CONTROL, 0),
                            sge, payload ? 2 : 1, 0);
    if (FAILED(hr)) return fail_status(l, "send", hr);
    l->sends_posted++;
    return true;
}

bool cat_link_write(struct cat_link *l, uint32_t slot, uint32_t bytes, uint64_t address,
                    uint32_t token) {
    ND2_SGE sge = ndc_sge(&l->data, (size_t)slot * l->chunk_bytes, bytes);
    HRESULT hr = IND2QueuePair_Write(l->conn.qp, context_of(KIND_WRITE, slot), &sge, 1, address,
                                     token, ND_OP_FLAG_SILENT_SUCCESS);

    return SUCCEEDED(hr) || fail_status(l, "write", hr);
}

bool cat_link_read(struct cat_link *l, uint32_t slot, uint32_t bytes, uint64_t address,
                   uint32_t token, uint64_t index) {
    ND2_SGE sge = ndc_sge(&l->data, (size_t)slot * l->chunk_bytes, bytes);
    HRESULT hr =
        IND2QueuePair_Read(l->conn.qp, context_of(KIND_READ, index), &sge, 1, address, token, 0);

    return SUCCEEDED(hr) || fail_status(l, "read", hr);
}

/* ---- end ---- */

void cat_link_abort(struct cat_link *l) {
    struct cat_message m = { .type = CAT_ABORT };
    uint32_t before = l->sends_posted;
    uint64_t until = sys_now_ns() + ABORT_MS * 1000000ull;
    bool none;

    if (!l->conn.connected || l->broken) return;
    if (l->sends_posted - l->sends_done == l->sends) return;
    snprintf((char *)m.data, sizeof m.data, "%.95s", l->error);
    if (!cat_link_send(l, &m, NULL)) return;
    while ((int32_t)(l->sends_done - before) <= 0 && sys_now_ns() < until) {
        l->stash_at = l->stash_count = 0;
        if (!wait_results(l, ABORT_MS / 10, &none)) return;
    }
}

void cat_link_close(struct cat_link *l) {
    ndc_conn_close(&l->conn);
    ndc_region_destroy(&l->control);
    ndc_region_destroy(&l->data);
    free(l->stash);
    l->stash = NULL;
}

void cat_link_summary(const struct cat_link *l, const char *verb, const char *digest) {
    double seconds = (double)(sys_now_ns() - l->start_ns) / 1e9;

    fprintf(stderr, "%s %llu bytes in %.3f s, %.3f GB/s, transport %s, sha256 %s\n", verb,
            (unsigned long long)l->bytes, seconds,
            seconds > 0 ? (double)l->bytes / seconds / 1e9 : 0, l->transport, digest);
}
