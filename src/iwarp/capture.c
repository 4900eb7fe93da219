/* SPDX-License-Identifier: MIT
 *
 * Each direction of a connection is cut into units, a start-up frame or an FPDU, by the lengths in
 * the stream itself; a unit is collected until it is whole. Both directions are seen, so what one
 * start-up frame asks for (markers) is known for the other. A stream that is not MPA is written as
 * it comes.
 */
#include "iwarp/capture.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "base/log.h"
#include "iwarp/mpa.h"
#include "os/prim/clock.h"
#include "os/prim/fault.h"
#include "os/prim/lock.h"
#include "os/prim/pages.h"
#include "os/prim/thread.h"

enum {
    ETHERNET = 14,
    TCP = 20,
    TCP_SYN = TCP + 4, /* with a window scale */
    HEADERS_MAX = ETHERNET + 40 + TCP_SYN,
    SEGMENT_MAX = 65535 - 40,   /* payload of one packet: the length field of IPv4 has 16 bits */
    BLOCK_HEAD = 28,            /* of an enhanced packet block */
    BLOCK_TAIL = 3 + 8 + 4 + 4, /* padding, flags option, end of options, length */
    DEFAULT_MAX_MIB = 1024,
};
enum { FLAG_FIN = 1, FLAG_SYN = 2, FLAG_PSH = 8, FLAG_ACK = 16 };

/* What the next octets of a direction are. */
enum unit { UNIT_START, UNIT_FPDU, UNIT_RAW };

struct direction {
    enum unit unit;
    uint8_t *buf; /* the unit, as far as it came */
    size_t len, cap;
    struct mpa_markers markers;
    bool marked; /* this direction carries markers */
    bool ended;  /* FIN */
    uint32_t seq;
};

struct iw_capture {
    struct sn_list link; /* [writer.lock] in writer.started */
    bool active, started;
    bool paired;             /* both ends are in this process: each records what it sends */
    struct iw_capture *twin; /* the other end; NULL if it is gone or elsewhere */
    struct os_addr local, remote;
    struct direction in, out;
};

/* ---- the file ---- */

static struct {
    os_once once;
    os_lock lock;
    struct sn_list started; /* [lock] connections */
    FILE *file;             /* [lock] NULL: none, or full */
    uint64_t room;          /* [lock] bytes that may still be written */
    bool on;                /* [const after once] */
    uint8_t *block;         /* [lock] a packet under construction */
    uint8_t *data;          /* where its payload goes */
    uint16_t ip_ident;      /* [lock] */
} writer = { .once = OS_ONCE_INIT };

static uint8_t *put32(uint8_t *p, uint32_t v) { /* pcapng is in this machine's order */
    memcpy(p, &v, 4);
    return p + 4;
}
static uint8_t *put16(uint8_t *p, uint16_t v) {
    memcpy(p, &v, 2);
    return p + 2;
}
static uint8_t *put16be(uint8_t *p, uint32_t v) {
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
    return p + 2;
}
static uint8_t *put32be(uint8_t *p, uint32_t v) {
    return put16be(put16be(p, v >> 16), v);
}

static bool write_locked(const void *data, size_t len) {
    if (!writer.file) return false;
    bool full = len > writer.room;
    if (!full && fwrite(data, 1, len, writer.file) == len) {
        writer.room -= len;
        return true;
    }
    SN_LOG(SN_LOG_WARN, "capture: %s; nothing more is recorded",
           full ? "the file has reached SOFTND_CAPTURE_MAX" : "the file cannot be written");
    fclose(writer.file);
    writer.file = NULL;
    return false;
}

/* Section header and the one interface: Ethernet, nanoseconds. */
static bool write_file_header(void) {
    uint8_t head[96], *p = head;
    p = put32(p, 0x0A0D0D0A);
    p = put32(p, 40);
    p = put32(p, 0x1A2B3C4D);
    p = put16(put16(p, 1), 0);
    p = put32(put32(p, 0xFFFFFFFF), 0xFFFFFFFF); /* length not known */
    p = put16(put16(p, 4), 6);                   /* shb_userappl */
    memcpy(p, "SoftND\0\0", 8);
    p += 8;
    p = put32(p, 40);
    p = put32(p, 1);
    p = put32(p, 44);
    p = put16(put16(p, 1), 0);
    p = put32(p, 0);
    p = put16(put16(p, 2), 6); /* if_name */
    memcpy(p, "softnd\0\0", 8);
    p += 8;
    p = put16(put16(p, 9), 1); /* if_tsresol */
    p = put32(p, 9);
    p = put32(p, 0);
    p = put32(p, 44);
    return write_locked(head, (size_t)(p - head));
}

static void expand_name(char *out, size_t room, const char *name) {
    size_t n = 0;
    out[0] = 0;
    for (; *name && n + 12 < room; name++) {
        if (name[0] == '%' && name[1] == 'p') {
            n += (size_t)snprintf(out + n, room - n, "%u", (unsigned)os_process_id());
            name++;
        } else {
            out[n++] = *name;
            out[n] = 0;
        }
    }
}

static void open_once(void) {
    const char *name = getenv("SOFTND_CAPTURE"), *most = getenv("SOFTND_CAPTURE_MAX");
    char path[4096];
    os_lock_init(&writer.lock, OS_RANK_LEAF);
    sn_list_init(&writer.started);
    if (!name || !*name) return;
    expand_name(path, sizeof path, name);
    writer.room = most ? strtoull(most, NULL, 0) : (uint64_t)DEFAULT_MAX_MIB << 20;
    writer.block = os_zalloc(BLOCK_HEAD + HEADERS_MAX + SEGMENT_MAX + BLOCK_TAIL);
    writer.file = fopen(path, "wb");
    if (!writer.block || !writer.file) {
        SN_LOG(SN_LOG_ERROR, "capture: %s cannot be written; nothing is recorded", path);
        if (writer.file) fclose(writer.file);
        writer.file = NULL;
        return;
    }
    setvbuf(writer.file, NULL, _IONBF, 0); /* a packet is in the file when fwrite returns */
    writer.on = write_file_header();
}

/* ---- packets ---- */

static uint32_t sum_be(uint32_t sum, const uint8_t *p, size_t len) {
    uint64_t wide = sum;
    for (; len > 1; p += 2, len -= 2)
        wide += ((uint32_t)p[0] << 8) | p[1];
    if (len) wide += (uint32_t)p[0] << 8;
    while (wide >> 16)
        wide = (wide & 0xFFFF) + (wide >> 16);
    return (uint32_t)wide;
}

static size_t ip_len(const struct iw_capture *cap) {
    return cap->local.family == 6 ? 40 : 20;
}

static void put_ip(uint8_t *p, const struct os_addr *from, const struct os_addr *to,
                   size_t tcp_len) {
    if (from->family == 6) {
        put32be(p, 6u << 28);
        put16be(p + 4, (uint32_t)tcp_len);
        p[6] = 6; /* TCP */
        p[7] = 64;
        memcpy(p + 8, from->ip, 16);
        memcpy(p + 24, to->ip, 16);
        return;
    }
    memset(p, 0, 20);
    p[0] = 0x45;
    put16be(p + 2, (uint32_t)(20 + tcp_len));
    put16be(p + 4, writer.ip_ident++);
    p[6] = 0x40; /* not to be fragmented */
    p[8] = 64;
    p[9] = 6;
    memcpy(p + 12, from->ip, 4);
    memcpy(p + 16, to->ip, 4);
    put16be(p + 10, ~sum_be(0, p, 20));
}

static uint32_t pseudo_sum(const struct os_addr *from, const struct os_addr *to, size_t tcp_len) {
    size_t n = from->family == 6 ? 16 : 4;
    uint32_t sum = sum_be(6, from->ip, n);
    sum = sum_be(sum, to->ip, n);
    return sum_be(sum + (uint32_t)(tcp_len >> 16) + (uint32_t)(tcp_len & 0xFFFF), NULL, 0);
}

/* One packet; its payload lies at payload_of(cap, flags) already. */
static uint8_t *payload_of(const struct iw_capture *cap, unsigned flags) {
    return writer.block + BLOCK_HEAD + ETHERNET + ip_len(cap) +
           (flags & FLAG_SYN ? (size_t)TCP_SYN : (size_t)TCP);
}

static void packet_locked(struct iw_capture *cap, bool outgoing, unsigned flags, size_t len) {
    struct direction *d = outgoing ? &cap->out : &cap->in, *back = outgoing ? &cap->in : &cap->out;
    const struct os_addr *from = outgoing ? &cap->local : &cap->remote;
    const struct os_addr *to = outgoing ? &cap->remote : &cap->local;
    size_t tcp_head = flags & FLAG_SYN ? TCP_SYN : TCP, tcp_len = tcp_head + len;
    size_t frame_len = ETHERNET + ip_len(cap) + tcp_len;
    uint8_t *frame = writer.block + BLOCK_HEAD, *tcp = frame + ETHERNET + ip_len(cap);

    memset(frame, 0, ETHERNET);
    frame[0] = frame[6] = 2; /* locally administered */
    frame[5] = outgoing ? 2 : 1;
    frame[11] = outgoing ? 1 : 2;
    put16be(frame + 12, from->family == 6 ? 0x86DD : 0x0800);
    put_ip(frame + ETHERNET, from, to, tcp_len);
    put16be(put16be(tcp, from->port), to->port);
    put32be(tcp + 4, d->seq);
    put32be(tcp + 8, flags & FLAG_ACK ? back->seq : 0);
    tcp[12] = (uint8_t)(tcp_head / 4 << 4);
    tcp[13] = (uint8_t)flags;
    put32be(put16be(tcp + 14, 0xFFFF), 0);                 /* window; checksum and urgent pointer */
    if (flags & FLAG_SYN) put32be(tcp + TCP, 0x0103030Eu); /* no-op, window scale 14 */
    put16be(tcp + 16, ~sum_be(pseudo_sum(from, to, tcp_len), tcp, tcp_len));

    uint64_t ns = os_wall_ns();
    uint32_t pad = (uint32_t)(0u - frame_len) & 3;
    uint32_t block_len = BLOCK_HEAD + (uint32_t)frame_len + pad + 8 + 4 + 4;
    uint8_t *p = writer.block;
    p = put32(put32(put32(p, 6), block_len), 0);
    p = put32(put32(p, (uint32_t)(ns >> 32)), (uint32_t)ns);
    p = put32(put32(p, (uint32_t)frame_len), (uint32_t)frame_len);
    p += frame_len;
    memset(p, 0, pad);
    p = put16(put16(p + pad, 2), 4); /* epb_flags: which way */
    p = put32(p, outgoing ? 2 : 1);
    p = put32(p, 0);
    p = put32(p, block_len);
    write_locked(writer.block, (size_t)(p - writer.block));
    d->seq += (uint32_t)len + ((flags & (FLAG_SYN | FLAG_FIN)) != 0);
    if (cap->twin) *(outgoing ? &cap->twin->in.seq : &cap->twin->out.seq) = d->seq;
}

/* The collected octets, in as many packets as they need. */
static void flush_locked(struct iw_capture *cap, bool outgoing) {
    struct direction *d = outgoing ? &cap->out : &cap->in;
    for (size_t off = 0; off < d->len;) {
        size_t n = SN_MIN(d->len - off, (size_t)SEGMENT_MAX);
        memcpy(payload_of(cap, 0), d->buf + off, n);
        packet_locked(cap, outgoing, FLAG_PSH | FLAG_ACK, n);
        off += n;
    }
    d->len = 0;
}

static void end_locked(struct iw_capture *cap, bool outgoing) {
    struct direction *d = outgoing ? &cap->out : &cap->in;
    if (d->ended || !cap->started || (cap->paired && !outgoing)) return;
    flush_locked(cap, outgoing);
    packet_locked(cap, outgoing, FLAG_FIN | FLAG_ACK, 0);
    d->ended = true;
}

/* ---- units ---- */

/* Octets of the present unit as far as that can be told; *whole: exactly. */
static size_t unit_size(const struct direction *d, bool *whole) {
    *whole = false;
    if (d->unit == UNIT_START) {
        if (d->len < MPA_START_HEADER_LEN) return MPA_START_HEADER_LEN;
        *whole = true;
        return MPA_START_HEADER_LEN + (((size_t)d->buf[18] << 8) | d->buf[19]);
    }
    size_t lead = d->marked && mpa_markers_room(&d->markers) == 0 ? MPA_MARKER_LEN : 0;
    size_t known = lead + MPA_LEN_LEN;
    if (d->len < known) return known;
    *whole = true;
    size_t body = mpa_fpdu_size(((size_t)d->buf[lead] << 8) | d->buf[lead + 1]);
    return d->marked ? mpa_markers_span(&d->markers, body) : body;
}

static bool is_start(const struct direction *d) {
    return memcmp(d->buf, "MPA ID Re", 9) == 0 &&
           (((size_t)d->buf[18] << 8) | d->buf[19]) <= MPA_PD_MAX;
}

/* A unit is whole: what comes next? */
static void unit_done(struct iw_capture *cap, bool outgoing) {
    struct direction *d = outgoing ? &cap->out : &cap->in, *back = outgoing ? &cap->in : &cap->out;
    if (d->unit == UNIT_START) {
        back->marked = (d->buf[16] & 0x80) != 0; /* M: the sender wants markers */
        if (cap->twin) cap->twin->out.marked = back->marked;
        d->unit = UNIT_FPDU;
    } else if (d->marked) {
        d->markers.pos += d->len;
    }
}

static bool make_room(struct direction *d, size_t size) {
    if (size <= d->cap) return true;
    size_t cap = SN_MAX(size, (size_t)2048);
    uint8_t *buf = os_zalloc(cap);
    if (!buf) return false;
    if (d->len) memcpy(buf, d->buf, d->len);
    os_free(d->buf);
    d->buf = buf;
    d->cap = cap;
    return true;
}

/* One run of octets. */
static void feed_locked(struct iw_capture *cap, bool outgoing, const uint8_t *p, size_t n) {
    struct direction *d = outgoing ? &cap->out : &cap->in;
    while (n != 0) {
        bool whole = false;
        size_t size = d->unit == UNIT_RAW ? n : unit_size(d, &whole);
        if (!make_room(d, size)) return; /* a gap in the capture */
        size_t m = SN_MIN(n, size - d->len);
        if (!os_guarded_copy(d->buf + d->len, p, m)) memset(d->buf + d->len, 0, m);
        d->len += m;
        p += m;
        n -= m;
        if (d->unit == UNIT_START && d->len == MPA_START_HEADER_LEN && !is_start(d))
            d->unit = UNIT_RAW;
        if (d->unit == UNIT_RAW) {
            flush_locked(cap, outgoing);
        } else if (d->len == unit_size(d, &whole) && whole) {
            unit_done(cap, outgoing);
            flush_locked(cap, outgoing);
        }
    }
}

static void bytes_locked(struct iw_capture *cap, bool outgoing, const struct os_iov *iov,
                         size_t bytes) {
    if (cap->paired && !outgoing) return;
    for (; cap->started && bytes != 0; iov++) {
        size_t n = SN_MIN(bytes, iov->len);
        feed_locked(cap, outgoing, iov->base, n);
        bytes -= n;
    }
}

/* ---- connections ---- */

struct iw_capture *iw_capture_create(bool active) {
    os_once_run(&writer.once, open_once);
    if (SN_LIKELY(!writer.on)) return NULL;
    struct iw_capture *cap = os_zalloc(sizeof *cap);
    if (!cap) return NULL;
    cap->active = active;
    sn_list_init(&cap->link);
    return cap;
}

void iw_capture_destroy(struct iw_capture *cap) {
    if (!cap) return;
    os_lock_enter(&writer.lock);
    if (cap->started) {
        flush_locked(cap, true);
        flush_locked(cap, false);
    }
    sn_list_remove(&cap->link);
    if (cap->twin) cap->twin->twin = NULL;
    os_lock_leave(&writer.lock);
    os_free(cap->in.buf);
    os_free(cap->out.buf);
    os_free(cap);
}

static bool same_end(const struct os_addr *a, const struct os_addr *b) {
    return os_addr_same_ip(a, b) && a->port == b->port;
}

/* The other end of the same TCP connection, if it is here too. */
static struct iw_capture *find_twin_locked(const struct iw_capture *cap) {
    SN_LIST_FOR(it, &writer.started) {
        struct iw_capture *other = SN_CONTAINER(it, struct iw_capture, link);
        if (!other->paired && other->active != cap->active &&
            same_end(&other->local, &cap->remote) && same_end(&other->remote, &cap->local))
            return other;
    }
    return NULL;
}

static void handshake_locked(struct iw_capture *cap) {
    packet_locked(cap, cap->active, FLAG_SYN, 0);
    packet_locked(cap, !cap->active, FLAG_SYN | FLAG_ACK, 0);
    packet_locked(cap, cap->active, FLAG_ACK, 0);
}

void iw_capture_start(struct iw_capture *cap, const struct os_addr *local,
                      const struct os_addr *remote) {
    struct direction *dirs[2] = { &cap->in, &cap->out };
    os_lock_enter(&writer.lock);
    sn_list_remove(&cap->link);
    if (cap->twin) cap->twin->twin = NULL;
    for (int i = 0; i < 2; i++) {
        struct direction *d = dirs[i];
        *d = (struct direction){ .buf = d->buf, .cap = d->cap };
        os_random_bytes(&d->seq, sizeof d->seq);
    }
    cap->local = *local;
    cap->remote = *remote;
    cap->started = true;
    cap->twin = find_twin_locked(cap);
    cap->paired = cap->twin != NULL;
    if (cap->twin) {
        cap->twin->twin = cap;
        cap->twin->paired = true;
        cap->out.seq = cap->twin->in.seq;
        cap->in.seq = cap->twin->out.seq;
        cap->out.marked = cap->twin->in.marked;
    } else {
        handshake_locked(cap);
    }
    sn_list_push_back(&writer.started, &cap->link);
    os_lock_leave(&writer.lock);
}

void iw_capture_bytes(struct iw_capture *cap, bool outgoing, const struct os_iov *iov,
                      size_t bytes) {
    os_lock_enter(&writer.lock);
    bytes_locked(cap, outgoing, iov, bytes);
    os_lock_leave(&writer.lock);
}

sn_status iw_capture_writev(struct iw_capture *cap, os_sock s, const struct os_iov *iov,
                            size_t count, size_t *put) {
    os_lock_enter(&writer.lock);
    *put = 0;
    sn_status st = os_sock_writev(s, iov, count, put);
    bytes_locked(cap, true, iov, *put);
    os_lock_leave(&writer.lock);
    return st;
}

sn_status iw_capture_readv(struct iw_capture *cap, os_sock s, const struct os_iov *iov,
                           size_t count, size_t *got) {
    *got = 0;
    sn_status st = os_sock_readv(s, iov, count, got);
    os_lock_enter(&writer.lock);
    bytes_locked(cap, false, iov, *got);
    if (st == SN_E_EOF) end_locked(cap, false);
    os_lock_leave(&writer.lock);
    return st;
}

void iw_capture_shut(struct iw_capture *cap) {
    os_lock_enter(&writer.lock);
    end_locked(cap, true);
    os_lock_leave(&writer.lock);
}
