/* SPDX-License-Identifier: MIT
 * cat_recv.c - the receiving end of `softnd cat`. It takes one transfer: the first connection that
 * greets in the right way. The data goes to a hidden file, and gets its name when it is complete
 * and its digest is right.
 */
#include "cat_link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cmd.h"
#include "nd_server.h"
#include "sys.h"

/* Bounds of what a sender may ask for: the ring has at most this many bytes. */
#define RING_BYTES_MAX (1u << 30)
/* After the result the sender disconnects; no longer than this is waited for it. */
#define GOODBYE_MS 5000

struct receiver {
    struct nds_server server;
    struct cat_link link;
    const struct cat_settings *set;
    struct cat_greeting greeting;
    bool accepted; /* a connection was taken; link is in use */
    struct sys_out out;
    bool offered;
    uint64_t offered_bytes;
    uint64_t announced, taken;           /* chunks: CHUNK received, data stored */
    uint32_t chunk_bytes[CAT_SLOTS_MAX]; /* read mode: of the Reads under way */
    bool done;
};

/* ---- the connection ---- */

static void on_request(void *owner, struct ndc_adapter *ad, IND2Connector *connector) {
    struct receiver *r = owner;
    uint8_t hello[CAT_GREETING_BYTES];
    ULONG len = ndc_peer_data(connector, hello, sizeof hello);
    ULONG outbound = ad->info.MaxOutboundReadLimit;
    HRESULT hr;

    if (r->accepted || !cat_unpack_greeting(hello, len, &r->greeting)) {
        IND2Connector_Reject(connector, NULL, 0);
        IND2Connector_Release(connector);
        return;
    }
    hr = cat_link_create(&r->link, ad, r->greeting.slots, connector);
    /* One receive for the offer; the others follow when it is known how large they must be. */
    if (SUCCEEDED(hr) && !cat_link_post_receive(&r->link, 0)) hr = ND_INSUFFICIENT_RESOURCES;
    if (outbound > r->greeting.slots) outbound = r->greeting.slots;
    if (SUCCEEDED(hr))
        hr = ndc_conn_accept(&r->link.conn, 0, r->greeting.mode == CAT_READ ? outbound : 0,
                             CAT_HANDSHAKE_MS);
    if (FAILED(hr)) {
        cat_link_close(&r->link); /* and wait for another */
        return;
    }
    r->accepted = true;
}

static bool wait_for_sender(struct receiver *r) {
    HRESULT hr = ND_SUCCESS;

    while (!r->accepted) {
        hr = nds_step(&r->server, INFINITE);
        if (FAILED(hr)) return cat_link_fail(&r->link, "%s", ndc_text(hr));
    }
    nds_stop_listening(&r->server);
    cat_link_connected(&r->link);
    return true;
}

/* ---- the transfer ---- */

static bool take_offer(struct receiver *r) {
    struct cat_link *l = &r->link;
    const struct cat_message *m = &l->message;
    struct cat_message go = { .type = CAT_GO };
    bool sends = r->greeting.mode == CAT_SEND;
    uint32_t count = sends ? l->receives : l->slots, chunk = m->bytes;
    ULONG limit = l->conn.ad->info.MaxTransferLength - CAT_MESSAGE_BYTES;
    ULONG flags = ND_MR_FLAG_ALLOW_LOCAL_WRITE;
    const char *why;

    if (!chunk) return cat_link_fail(l, "bad offer from %s", l->peer);
    if (chunk > limit) chunk = limit;
    if (chunk > RING_BYTES_MAX / count) chunk = RING_BYTES_MAX / count;
    r->offered = true;
    r->offered_bytes = m->value;
    if (m->value != CAT_SIZE_UNKNOWN) {
        why = sys_out_reserve(&r->out, m->value);
        if (why) return cat_link_fail(l, "%s: %s", r->set->file, why);
    }
    if (r->greeting.mode == CAT_WRITE) flags = ND_MR_FLAG_ALLOW_REMOTE_WRITE;
    if (r->greeting.mode == CAT_READ) flags |= ND_MR_FLAG_RDMA_READ_SINK;
    if (!cat_link_make_ring(l, count, chunk, flags)) return false;
    l->receive_payload = sends;
    for (uint32_t i = 0; i < l->receives; i++)
        if (!cat_link_post_receive(l, i)) return false;
    go.bytes = chunk;
    if (r->greeting.mode == CAT_WRITE) {
        go.address = (uint64_t)(uintptr_t)l->data.buf;
        go.token = l->data.remote_token;
    }
    l->start_ns = sys_now_ns();
    progress_begin(&l->progress, r->offered_bytes);
    return cat_link_send(l, &go, NULL);
}

static bool give_credit(struct receiver *r, uint64_t index) {
    struct cat_message m = { .type = CAT_CREDIT, .value = index };

    return cat_link_send(&r->link, &m, NULL);
}

/* The data of chunk number `taken` is in this slot of the ring. */
static bool store(struct receiver *r, uint32_t slot, uint32_t bytes) {
    struct cat_link *l = &r->link;
    const uint8_t *at = l->data.buf + (size_t)slot * l->chunk_bytes;
    const char *why = sys_out_write(&r->out, at, bytes);

    if (why) return cat_link_fail(l, "%s: %s", r->set->file, why);
    sha256_update(&l->sha, at, bytes);
    l->bytes += bytes;
    r->taken++;
    progress_update(&l->progress, l->bytes);
    return true;
}

static bool take_chunk(struct receiver *r) {
    struct cat_link *l = &r->link;
    const struct cat_message m = l->message;
    uint32_t idx = l->receive_idx, slot = (uint32_t)(m.value % l->slots);
    bool sends = r->greeting.mode == CAT_SEND;

    if (!r->offered || m.value != r->announced || r->announced - r->taken >= l->slots || !m.bytes ||
        m.bytes > l->chunk_bytes || (sends ? m.bytes != l->value : l->value != 0))
        return cat_link_fail(l, "bad chunk from %s", l->peer);
    r->announced++;
    if (r->greeting.mode == CAT_READ) {
        r->chunk_bytes[slot] = m.bytes;
        return cat_link_post_receive(l, idx) &&
               cat_link_read(l, slot, m.bytes, m.address, m.token, m.value);
    }
    if (!store(r, sends ? idx : slot, m.bytes)) return false;
    return cat_link_post_receive(l, idx) && give_credit(r, m.value);
}

/* Reads complete in order. The sender may reuse its memory at once; ours is in use until stored. */
static bool take_read(struct receiver *r, uint64_t index) {
    uint32_t slot = (uint32_t)(index % r->link.slots);

    return give_credit(r, index) && store(r, slot, r->chunk_bytes[slot]);
}

/* What was announced and not yet read comes before the end. */
static bool take_done(struct receiver *r, uint8_t digest[SHA256_BYTES]) {
    struct cat_link *l = &r->link;
    struct cat_message result = { .type = CAT_RESULT };
    const struct cat_message *m = &l->message;
    const char *why = NULL;

    if (r->announced != r->taken) return cat_link_fail(l, "bad end from %s", l->peer);
    sha256_final(&l->sha, digest);
    if (m->value != l->bytes || memcmp(m->data, digest, SHA256_BYTES) != 0)
        return cat_link_fail(l, "data differs from what %s sent: wrong SHA-256", l->peer);
    if (r->offered_bytes != CAT_SIZE_UNKNOWN && r->offered_bytes != l->bytes)
        return cat_link_fail(l, "%s sent another number of bytes than it offered", l->peer);
    why = sys_out_keep(&r->out);
    if (why) return cat_link_fail(l, "%s: %s", r->set->file, why);
    r->done = true;
    return cat_link_send(l, &result, NULL);
}

static bool handle_message(struct receiver *r, uint8_t digest[SHA256_BYTES]) {
    struct cat_link *l = &r->link;

    switch (l->message.type) {
    case CAT_OFFER:
        if (!r->offered) return take_offer(r);
        break;
    case CAT_CHUNK:
        return take_chunk(r);
    case CAT_DONE:
        if (r->offered) return take_done(r, digest);
        break;
    default:
        break;
    }
    return cat_link_fail(l, "unexpected message %d from %s", (int)l->message.type, l->peer);
}

static bool receive_file(struct receiver *r, uint8_t digest[SHA256_BYTES]) {
    struct cat_link *l = &r->link;
    enum cat_event event;

    sha256_init(&l->sha);
    while (!r->done) {
        if (!cat_link_next(l, &event, r->offered ? INFINITE : CAT_HANDSHAKE_MS)) return false;
        if (event == CAT_EVENT_NOTHING) return cat_link_fail(l, "%s is silent", l->peer);
        if (event == CAT_EVENT_MESSAGE && !handle_message(r, digest)) return false;
        if (event == CAT_EVENT_READ && !take_read(r, l->value)) return false;
        if (sys_stop_requested()) return cat_link_fail(l, "interrupted");
    }
    return true;
}

/* The result is on its way; the sender leaves when it has it, which flushes our receives. */
static void wait_for_goodbye(struct cat_link *l) {
    enum cat_event event = CAT_EVENT_SENT;

    while (event != CAT_EVENT_NOTHING && cat_link_next(l, &event, GOODBYE_MS))
        ;
}

int cat_recv(const struct cat_settings *set) {
    struct receiver *r = calloc(1, sizeof *r);
    uint8_t digest[SHA256_BYTES];
    char text[SHA256_TEXT_MAX], where[80];
    const char *why;
    HRESULT hr;
    int code = EXIT_FAILED;

    if (!r) return cmd_fail("cat", "out of memory");
    r->set = set;
    r->server.on_request = on_request;
    r->server.owner = r;
    why = sys_out_create(&r->out, set->file);
    if (why) {
        cmd_fail("cat", "%s: %s", set->file, why);
        goto no_file;
    }
    hr = nds_open(&r->server, set->host, set->port, &why, where);
    if (FAILED(hr)) {
        cmd_fail("cat", "%s%s%s", where[0] ? where : set->host,
                 where[0] || set->host[0] ? ": " : "", why ? why : ndc_text(hr));
        goto no_server;
    }
    nds_print(&r->server, "softnd cat");
    if (wait_for_sender(r) && receive_file(r, digest)) {
        progress_end(&r->link.progress, r->link.bytes);
        sha256_text(digest, text);
        cat_link_summary(&r->link, "received", text);
        wait_for_goodbye(&r->link);
        code = EXIT_DONE;
    } else {
        progress_end(&r->link.progress, r->link.bytes);
        cmd_fail("cat", "%s", r->link.error);
        cat_link_abort(&r->link);
    }
    cat_link_close(&r->link);
    nds_close(&r->server);
no_server:
    sys_out_drop(&r->out);
no_file:
    free(r);
    return code;
}
