/* SPDX-License-Identifier: MIT
 * cat_send.c - the sending end of `softnd cat`. Chunk i lives in slot i % slots from the read of
 * the file until both the other end gave credit for it and our own Send is complete; up to all
 * slots are under way while the next is read and hashed.
 */
#include "cat_link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cmd.h"
#include "sys.h"
#include "text.h"

#define CONNECT_MS 30000
/* While a stream has nothing to read, how long before the connection is looked at again. */
#define STREAM_SLICE_MS 50

struct sender {
    struct cat_link link;
    const struct cat_settings *set;
    struct sys_in in;
    uint32_t chunk_bytes;  /* largest that our adapter can send */
    uint64_t ring_address; /* write mode: the receiver's ring */
    uint32_t ring_token;
    uint64_t next, credited, sent; /* chunks: posted, credited, Send complete */
    bool at_end;
    bool go, finished;
    uint8_t digest[SHA256_BYTES];
};

static HRESULT connect_to(struct ndc_target *t, void *context) {
    struct sender *s = context;
    struct cat_greeting greeting = { .mode = s->set->mode, .slots = (uint16_t)s->set->slots };
    uint8_t hello[CAT_GREETING_BYTES];
    bool reads = s->set->mode == CAT_READ;
    ULONG limit = t->ad.info.MaxInboundReadLimit;
    HRESULT hr = cat_link_create(&s->link, &t->ad, s->set->slots, NULL);

    if (FAILED(hr)) return hr;
    s->chunk_bytes = s->set->chunk_bytes;
    if (s->chunk_bytes > t->ad.info.MaxTransferLength - CAT_MESSAGE_BYTES)
        s->chunk_bytes = t->ad.info.MaxTransferLength - CAT_MESSAGE_BYTES;
    /* Posted first, so that the answer to OFFER finds them whenever it comes. */
    for (uint32_t i = 0; i < s->link.receives; i++)
        if (!cat_link_post_receive(&s->link, i)) {
            cat_link_close(&s->link);
            return ND_INSUFFICIENT_RESOURCES;
        }
    cat_pack_greeting(&greeting, hello);
    if (limit > s->set->slots) limit = s->set->slots;
    hr =
        ndc_conn_connect(&s->link.conn, (struct sockaddr *)&t->local, (struct sockaddr *)&t->remote,
                         reads ? limit : 0, 0, hello, sizeof hello, CONNECT_MS);
    if (FAILED(hr)) cat_link_close(&s->link);
    return hr;
}

static bool handle_message(struct sender *s) {
    struct cat_link *l = &s->link;
    const struct cat_message *m = &l->message;
    char text[CAT_DATA_BYTES + 1];

    switch (m->type) {
    case CAT_GO:
        if (s->go || !m->bytes || m->bytes > s->chunk_bytes) break;
        s->go = true;
        s->ring_address = m->address;
        s->ring_token = m->token;
        l->chunk_bytes = m->bytes;
        return cat_link_post_receive(l, l->receive_idx);
    case CAT_CREDIT:
        if (m->value != s->credited || s->credited == s->next) break;
        s->credited++;
        return cat_link_post_receive(l, l->receive_idx);
    case CAT_RESULT:
        if (!s->at_end || s->credited != s->next) break;
        s->finished = true;
        if (m->value == 0) return true;
        memcpy(text, m->data, CAT_DATA_BYTES);
        text[CAT_DATA_BYTES] = 0;
        l->broken = true; /* it knows */
        return cat_link_fail(l, "%s: %s", l->peer, text);
    default:
        break;
    }
    return cat_link_fail(l, "unexpected message %d from %s", (int)m->type, l->peer);
}

/* Waits for one event and counts it. *idle: none came in time. */
static bool step(struct sender *s, uint32_t timeout_ms, bool *idle) {
    enum cat_event event;

    if (!cat_link_next(&s->link, &event, timeout_ms)) return false;
    *idle = event == CAT_EVENT_NOTHING;
    if (event == CAT_EVENT_MESSAGE) return handle_message(s);
    if (event == CAT_EVENT_SENT) s->sent++;
    return true;
}

static bool shake_hands(struct sender *s) {
    struct cat_link *l = &s->link;
    struct cat_message offer = { .type = CAT_OFFER,
                                 .bytes = s->chunk_bytes,
                                 .value = s->in.stream ? CAT_SIZE_UNKNOWN : s->in.bytes };
    bool idle;

    if (!cat_link_send(l, &offer, NULL)) return false;
    while (!s->go) {
        if (!step(s, CAT_HANDSHAKE_MS, &idle)) return false;
        if (idle) return cat_link_fail(l, "%s does not answer", l->peer);
    }
    l->start_ns = sys_now_ns();
    progress_begin(&l->progress, offer.value);
    return cat_link_make_ring(l, l->slots, l->chunk_bytes,
                              s->set->mode == CAT_READ ? ND_MR_FLAG_ALLOW_REMOTE_READ : 0);
}

static bool post_chunk(struct sender *s, uint32_t bytes) {
    struct cat_link *l = &s->link;
    uint32_t slot = (uint32_t)(s->next % l->slots);
    size_t offset = (size_t)slot * l->chunk_bytes;
    struct cat_message m = { .type = CAT_CHUNK, .bytes = bytes, .value = s->next };
    ND2_SGE payload = ndc_sge(&l->data, offset, bytes);

    if (s->set->mode == CAT_WRITE &&
        !cat_link_write(l, slot, bytes, s->ring_address + offset, s->ring_token))
        return false;
    if (s->set->mode == CAT_READ) {
        m.address = (uint64_t)(uintptr_t)(l->data.buf + offset);
        m.token = l->data.remote_token;
    }
    if (!cat_link_send(l, &m, s->set->mode == CAT_SEND ? &payload : NULL)) return false;
    s->next++;
    return true;
}

/* One chunk of the file, or of a stream what there is by now. */
static bool read_chunk(struct sender *s) {
    struct cat_link *l = &s->link;
    uint8_t *at = l->data.buf + (size_t)(s->next % l->slots) * l->chunk_bytes;
    const char *why;
    size_t got;

    if (s->in.stream)
        why = sys_in_read_some(&s->in, at, l->chunk_bytes, &got);
    else
        why = sys_in_read(&s->in, at, l->chunk_bytes, &got);
    if (why) return cat_link_fail(l, "%s: %s", s->set->file, why);
    if (!got) {
        s->at_end = true;
        if (!s->in.stream && l->bytes != s->in.bytes)
            return cat_link_fail(l, "%s: changed its size while it was sent", s->set->file);
        return true;
    }
    sha256_update(&l->sha, at, got);
    l->bytes += got;
    progress_update(&l->progress, l->bytes);
    return post_chunk(s, (uint32_t)got);
}

static bool slot_free(const struct sender *s) {
    uint64_t done = s->credited < s->sent ? s->credited : s->sent;

    return s->next - done < s->link.slots;
}

static bool send_file(struct sender *s) {
    struct cat_link *l = &s->link;
    struct cat_message done = { .type = CAT_DONE };
    bool idle;

    while (!s->at_end || s->credited != s->next) {
        bool can_read = !s->at_end && slot_free(s);
        if (can_read && s->in.stream && !sys_in_ready(&s->in, STREAM_SLICE_MS)) {
            if (!step(s, 0, &idle)) return false;
        } else if (can_read) {
            if (!read_chunk(s)) return false;
        } else if (!step(s, INFINITE, &idle)) {
            return false;
        }
        if (sys_stop_requested()) return cat_link_fail(l, "interrupted");
    }
    sha256_final(&l->sha, s->digest);
    done.value = l->bytes;
    memcpy(done.data, s->digest, sizeof s->digest);
    if (!cat_link_send(l, &done, NULL)) return false;
    while (!s->finished)
        if (!step(s, INFINITE, &idle)) return false;
    return true;
}

static int fail_connect(const struct sender *s, const struct ndc_target *t, HRESULT hr,
                        const char *why) {
    char host[TEXT_HOST_MAX + 8];

    if (why) return cmd_fail("cat", "%s: %s", s->set->host, why);
    if (hr == ND_INVALID_ADDRESS)
        return cmd_fail("cat", "%s: no NetworkDirect adapter leads there", t->text);
    snprintf(host, sizeof host, "%s", t->text);
    return cmd_fail("cat", "%s: %s", host, ndc_text(hr));
}

int cat_send(const struct cat_settings *set) {
    struct sender *s = calloc(1, sizeof *s);
    struct ndc_target target;
    char digest[SHA256_TEXT_MAX];
    const char *why;
    int code = EXIT_FAILED;
    HRESULT hr;
    bool ok;

    if (!s) return cmd_fail("cat", "out of memory");
    s->set = set;
    why = sys_in_open(&s->in, set->file);
    if (why) {
        free(s);
        return cmd_fail("cat", "%s: %s", set->file, why);
    }
    hr = ndc_target_open(&target, set->host, set->port, connect_to, s, &why);
    if (FAILED(hr)) {
        fail_connect(s, &target, hr, why);
        goto not_connected;
    }
    cat_link_connected(&s->link);
    sha256_init(&s->link.sha);
    ok = shake_hands(s) && send_file(s);
    progress_end(&s->link.progress, s->link.bytes);
    if (ok) {
        sha256_text(s->digest, digest);
        cat_link_summary(&s->link, "sent", digest);
        code = EXIT_DONE;
    } else {
        cmd_fail("cat", "%s", s->link.error);
        cat_link_abort(&s->link);
    }
    cat_link_close(&s->link);
    ndc_adapter_close(&target.ad);
not_connected:
    sys_in_close(&s->in);
    free(s);
    return code;
}
