/* SPDX-License-Identifier: MIT */
#include "support/raw_peer.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "iwarp/crc32c.h"
#include "os/io/poller.h"
#include "os/prim/clock.h"
#include "support/unmark.h"

enum { IN_MAX = 2 * RAW_FPDU_MAX };

/* ---- octets ---- */

static void die(const char *what) {
    fprintf(stderr, "raw_peer: %s\n", what);
    abort();
}

void raw_free(struct raw_bytes *b) {
    free(b->data);
    memset(b, 0, sizeof *b);
}

static uint8_t *room(struct raw_bytes *b, size_t len) {
    if (!b->data || len > b->cap - b->len) {
        size_t cap = 2 * b->cap + len + 256;
        uint8_t *data = realloc(b->data, cap);
        if (!data) die("out of memory");
        b->data = data;
        b->cap = cap;
    }
    b->len += len;
    return b->data + b->len - len;
}

void raw_put(struct raw_bytes *b, const void *data, size_t len) {
    uint8_t *at = room(b, len);
    if (len) memcpy(at, data, len);
}

void raw_fill(struct raw_bytes *b, uint8_t octet, size_t len) {
    uint8_t *at = room(b, len);
    if (len) memset(at, octet, len);
}

void raw_be(struct raw_bytes *b, uint64_t v, unsigned octets) {
    uint8_t *at = room(b, octets);
    for (unsigned i = 0; i < octets; i++)
        at[i] = (uint8_t)(v >> (8 * (octets - 1 - i)));
}

void raw_start(struct raw_bytes *b, bool reply, uint8_t flags, uint8_t rev, uint16_t pd_len) {
    raw_put(b, reply ? "MPA ID Rep Frame" : "MPA ID Req Frame", 16);
    raw_be(b, flags, 1);
    raw_be(b, rev, 1);
    raw_be(b, pd_len, 2);
}

void raw_start2(struct raw_bytes *b, bool reply, uint8_t more_flags, uint16_t word1, uint16_t word2,
                const void *pd, uint16_t pd_len) {
    raw_start(b, reply, RAW_C | RAW_S | more_flags, 2, (uint16_t)(4 + pd_len));
    raw_be(b, word1, 2);
    raw_be(b, word2, 2);
    raw_put(b, pd, pd_len);
}

void raw_fpdu_begin(struct raw_bytes *b, uint16_t ulpdu_len) {
    b->fpdu_at = b->len;
    raw_be(b, ulpdu_len, 2);
}

void raw_fpdu_end(struct raw_bytes *b, uint8_t pad, enum raw_crc crc) {
    while ((b->len - b->fpdu_at) % 4 != 0)
        raw_be(b, pad, 1);
    uint32_t v = sn_crc32c(b->data + b->fpdu_at, b->len - b->fpdu_at);
    if (crc == RAW_CRC_ZERO) v = 0;
    if (crc == RAW_CRC_BAD) v ^= 1;
    for (int i = 0; i < 4; i++)
        raw_be(b, v >> (8 * i), 1);
}

void raw_fpdu(struct raw_bytes *b, const void *ulpdu, size_t len, enum raw_crc crc) {
    raw_fpdu_begin(b, (uint16_t)len);
    raw_put(b, ulpdu, len);
    raw_fpdu_end(b, 0, crc);
}

void raw_tagged(struct raw_bytes *b, uint8_t ddp, uint8_t rdmap, uint32_t stag, uint64_t to) {
    raw_be(b, ddp, 1);
    raw_be(b, rdmap, 1);
    raw_be(b, stag, 4);
    raw_be(b, to, 8);
}

void raw_untagged(struct raw_bytes *b, uint8_t ddp, uint8_t rdmap, uint32_t word, uint32_t qn,
                  uint32_t msn, uint32_t mo) {
    raw_be(b, ddp, 1);
    raw_be(b, rdmap, 1);
    raw_be(b, word, 4);
    raw_be(b, qn, 4);
    raw_be(b, msn, 4);
    raw_be(b, mo, 4);
}

void raw_send(struct raw_bytes *b, uint8_t opcode, bool last, uint32_t inv_stag, uint32_t msn,
              uint32_t mo, const void *payload, size_t len) {
    raw_fpdu_begin(b, (uint16_t)(18 + len));
    raw_untagged(b, last ? 0x41 : 0x01, 0x40 | opcode, inv_stag, 0, msn, mo);
    raw_put(b, payload, len);
    raw_fpdu_end(b, 0, RAW_CRC_GOOD);
}

static void put_tagged(struct raw_bytes *b, uint8_t rdmap, bool last, uint32_t stag, uint64_t to,
                       const void *payload, size_t len) {
    raw_fpdu_begin(b, (uint16_t)(14 + len));
    raw_tagged(b, last ? 0xC1 : 0x81, rdmap, stag, to);
    raw_put(b, payload, len);
    raw_fpdu_end(b, 0, RAW_CRC_GOOD);
}

void raw_write(struct raw_bytes *b, bool last, uint32_t stag, uint64_t to, const void *payload,
               size_t len) {
    put_tagged(b, 0x40, last, stag, to, payload, len);
}

void raw_response(struct raw_bytes *b, bool last, uint32_t stag, uint64_t to, const void *payload,
                  size_t len) {
    put_tagged(b, 0x42, last, stag, to, payload, len);
}

void raw_read_request(struct raw_bytes *b, uint32_t msn, uint32_t sink_stag, uint64_t sink_to,
                      uint32_t size, uint32_t src_stag, uint64_t src_to) {
    raw_fpdu_begin(b, 46);
    raw_untagged(b, 0x41, 0x41, 0, 1, msn, 0);
    raw_be(b, sink_stag, 4);
    raw_be(b, sink_to, 8);
    raw_be(b, size, 4);
    raw_be(b, src_stag, 4);
    raw_be(b, src_to, 8);
    raw_fpdu_end(b, 0, RAW_CRC_GOOD);
}

void raw_terminate(struct raw_bytes *b, uint8_t layer, uint8_t type, uint8_t code) {
    raw_terminate_about(b, layer, type, code, 0, NULL);
}

void raw_terminate_about(struct raw_bytes *b, uint8_t layer, uint8_t type, uint8_t code,
                         unsigned quote, const uint8_t *about) {
    unsigned ulpdu = about ? (unsigned)about[0] << 8 | about[1] : 0;
    unsigned header = about && (about[2] & 0x80) ? 14 : 18;
    if (!about || ulpdu < header) quote = 0;
    raw_fpdu_begin(b, (uint16_t)(22 + (quote ? 2 + header : 0) + (quote == 2 ? 28 : 0)));
    raw_untagged(b, 0x41, 0x47, 0, 2, 1, 0);
    raw_be(b, (unsigned)layer << 4 | type, 1);
    raw_be(b, code, 1);
    raw_be(b, quote == 2 ? 0xE0 : quote ? 0xC0 : 0, 1);
    raw_be(b, 0, 1);
    if (quote) {
        raw_put(b, about, 2);
        raw_put(b, about + 2, header);
    }
    if (quote == 2) raw_put(b, about + 2 + header, 28);
    raw_fpdu_end(b, 0, RAW_CRC_GOOD);
}

/* ---- waiting ---- */

const char *raw_result_text(enum raw_result r) {
    static const char *const text[] = { "ok", "end of stream", "reset", "time-out", "bad octets" };
    return text[r];
}

/* Sleeps until the socket is ready or the deadline; false on the latter. */
static bool wait_ready(os_sock s, uint32_t events, uint64_t deadline) {
    struct os_poller *poller;
    struct os_poll_event event;
    uint64_t now = os_now_ns();
    if (now >= deadline) return false;
    if (os_poller_create(&poller) != SN_OK) die("no poller");
    if (os_poller_add(poller, s, 1, events) != SN_OK) die("cannot watch a socket");
    size_t n = os_poller_wait(poller, &event, 1, deadline - now);
    os_poller_destroy(poller);
    return n != 0;
}

static uint64_t deadline_from_now(void) {
    return os_now_ns() + RAW_WAIT_MS * OS_NS_PER_MS;
}

static bool begin(struct raw_peer *p, os_sock s) {
    *p = (struct raw_peer){ .s = s, .crc = true, .in = malloc(IN_MAX), .in_end = RAW_OK };
    if (!p->in) die("out of memory");
    return true;
}

bool raw_listen(os_sock *s, struct os_addr *addr) {
    *addr = (struct os_addr){ .family = 4, .ip = { 127, 0, 0, 1 } };
    return os_sock_tcp(4, s) == SN_OK && os_sock_bind(*s, addr, OS_BIND_UNIQUE) == SN_OK &&
           os_sock_listen(*s, 0) == SN_OK && os_sock_local(*s, addr) == SN_OK;
}

enum raw_result raw_accept(os_sock listener, struct raw_peer *p) {
    uint64_t deadline = deadline_from_now();
    os_sock s;
    sn_status st;
    memset(p, 0, sizeof *p);
    p->s = OS_SOCK_NONE;
    while ((st = os_sock_accept(listener, &s, NULL)) == SN_E_AGAIN)
        if (!wait_ready(listener, OS_POLL_IN, deadline)) return RAW_TIMEOUT;
    if (st != SN_OK) return RAW_BAD;
    begin(p, s);
    return RAW_OK;
}

enum raw_result raw_connect(struct raw_peer *p, const struct os_addr *to) {
    os_sock s;
    memset(p, 0, sizeof *p);
    p->s = OS_SOCK_NONE;
    if (os_sock_tcp(to->family, &s) != SN_OK) return RAW_BAD;
    return raw_connect_with(p, s, to);
}

enum raw_result raw_connect_with(struct raw_peer *p, os_sock s, const struct os_addr *to) {
    uint64_t deadline = deadline_from_now();
    memset(p, 0, sizeof *p);
    p->s = OS_SOCK_NONE;
    sn_status st = os_sock_connect(s, to);
    while (st == SN_PENDING || st == SN_E_AGAIN) {
        if (!wait_ready(s, OS_POLL_OUT, deadline)) break;
        st = os_sock_connect_result(s);
    }
    if (st != SN_OK) {
        os_sock_close(s, false);
        return st == SN_PENDING || st == SN_E_AGAIN ? RAW_TIMEOUT : RAW_RESET;
    }
    begin(p, s);
    return RAW_OK;
}

static void end(struct raw_peer *p, bool reset) {
    if (!p->in) return;
    os_sock_close(p->s, reset);
    free(p->in);
    memset(p, 0, sizeof *p);
    p->s = OS_SOCK_NONE;
}

void raw_close(struct raw_peer *p) {
    end(p, false);
}

void raw_reset(struct raw_peer *p) {
    end(p, true);
}

void raw_fin(struct raw_peer *p) {
    os_sock_shutdown_write(p->s);
}

/* ---- sending ---- */

enum raw_result raw_transmit(struct raw_peer *p, const void *data, size_t len, size_t *sent) {
    const uint8_t *at = data;
    uint64_t deadline = deadline_from_now();
    size_t done = 0;
    enum raw_result r = RAW_OK;
    while (done < len && r == RAW_OK) {
        size_t n = p->chunk && p->chunk < len - done ? p->chunk : len - done, put = 0;
        struct os_iov iov = { (void *)(uintptr_t)(at + done), n };
        sn_status st = os_sock_writev(p->s, &iov, 1, &put);
        if (st == SN_OK)
            done += put;
        else if (st != SN_E_AGAIN)
            r = RAW_RESET;
        else if (!wait_ready(p->s, OS_POLL_OUT, deadline))
            r = RAW_TIMEOUT;
    }
    if (sent) *sent = done;
    return r;
}

/* ---- receiving ---- */

/* At least `need` octets in p->in, or why not. */
static enum raw_result need_octets(struct raw_peer *p, size_t need) {
    uint64_t deadline = deadline_from_now();
    while (p->in_len < need) {
        if (p->in_end != RAW_OK) return p->in_end;
        struct os_iov iov = { p->in + p->in_len, IN_MAX - p->in_len };
        size_t got = 0;
        sn_status st = os_sock_readv(p->s, &iov, 1, &got);
        if (st == SN_OK)
            p->in_len += got;
        else if (st == SN_E_EOF)
            p->in_end = RAW_EOF;
        else if (st != SN_E_AGAIN)
            p->in_end = RAW_RESET;
        else if (!wait_ready(p->s, OS_POLL_IN, deadline))
            return RAW_TIMEOUT;
    }
    return RAW_OK;
}

static void take(struct raw_peer *p, void *buf, size_t len) {
    memcpy(buf, p->in, len);
    memmove(p->in, p->in + len, p->in_len - len);
    p->in_len -= len;
}

enum raw_result raw_read(struct raw_peer *p, void *buf, size_t len) {
    enum raw_result r = need_octets(p, len);
    if (r == RAW_OK) take(p, buf, len);
    return r;
}

enum raw_result raw_read_start(struct raw_peer *p, uint8_t *buf, size_t *len) {
    enum raw_result r = raw_read(p, buf, 20);
    if (r != RAW_OK) return r;
    size_t pd = (size_t)buf[18] << 8 | buf[19];
    if (pd > 512) return RAW_BAD;
    *len = 20 + pd;
    return raw_read(p, buf + 20, pd);
}

static enum raw_result read_marked(struct raw_peer *p, uint8_t *buf, size_t *len) {
    struct mpa_unmarked um = { .need = 4 };
    for (;;) {
        uint64_t before = p->markers.pos;
        sn_status st = mpa_fpdu_unmark(&p->markers, p->in, p->in_len, p->crc, &um);
        if (st == SN_OK) {
            *len = mpa_fpdu_size(um.ulpdu_len);
            memcpy(buf, um.fpdu, *len);
            p->marker_count += (uint32_t)((um.need - *len) / 4);
            memmove(p->in, p->in + um.need, p->in_len - um.need);
            p->in_len -= um.need;
            return p->markers.pos - before == um.need ? RAW_OK : RAW_BAD;
        }
        if (st != SN_E_MORE) return RAW_BAD;
        enum raw_result r = need_octets(p, SN_MAX(um.need, p->in_len + 1));
        if (r != RAW_OK) return r;
    }
}

enum raw_result raw_read_fpdu(struct raw_peer *p, uint8_t *buf, size_t *len) {
    if (p->marked) return read_marked(p, buf, len);
    enum raw_result r = need_octets(p, 2);
    if (r != RAW_OK) return r;
    size_t ulpdu = (size_t)p->in[0] << 8 | p->in[1];
    size_t body = (2 + ulpdu + 3) & ~(size_t)3;
    r = need_octets(p, body + 4);
    if (r != RAW_OK) return r;
    take(p, buf, body + 4);
    *len = body + 4;
    for (size_t i = 2 + ulpdu; i < body; i++)
        if (buf[i] != 0) return RAW_BAD;
    uint32_t want = p->crc ? sn_crc32c(buf, body) : 0;
    for (int i = 0; i < 4; i++)
        if (buf[body + (size_t)i] != (uint8_t)(want >> (8 * i))) return RAW_BAD;
    return RAW_OK;
}

enum raw_result raw_read_end(struct raw_peer *p) {
    enum raw_result r = need_octets(p, 1);
    return r == RAW_OK ? RAW_BAD : r;
}
