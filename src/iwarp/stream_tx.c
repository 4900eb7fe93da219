/* SPDX-License-Identifier: MIT
 *
 * The send side of an open stream. Requests and Read Responses are cut into FPDUs; as many as fit
 * leave in one system call, small payloads copied beside their head, large ones from where they
 * are. An FPDU that the socket cut is remembered with its head and trailer, its payload is found
 * again in the request. One message is sent whole before the next begins.
 */
#include "iwarp/conn.h"
#include <string.h>
#include "base/log.h"
#include "os/prim/fault.h"
#include "os/prim/pages.h"

enum {
    BATCH_FPDUS = 16,
    BATCH_PIECES = 32,        /* segments of application memory in one call */
    BATCH_BYTES = 512 * 1024, /* payload in one call */
    BATCH_IOV = OS_IOV_MAX,
    COPY_MAX = 512,     /* payload that is copied beside its head */
    SMALL_BYTES = 2048, /* messages of up to COPY_MAX that leave together */
    SMALL_ROOM = COPY_MAX + 2 * (RDMAP_HEAD_MAX + MPA_TRAILER_MAX), /* for one, and a report */
    SCRATCH = 12288,           /* heads, trailers and copied payloads of a batch */
    BOUNCE_BYTES = 384 * 1024, /* six of the largest FPDUs to another SoftND */
    LONG_CALL = 64 * 1024,     /* a call with as many bytes takes its time */
    BURST_CALLS = 8,           /* then receiving gets its turn */
    BIG_MULPDU = 63488 + 18,   /* towards another SoftND: 15.5 pages of 4 KiB to an FPDU */
};

/* ---- queues of requests ---- */

static struct tp_request *next_of(const struct tp_request *req) {
    return (struct tp_request *)(uintptr_t)req->tp_u64;
}

SN_HOT void iw_fifo_push(struct iw_fifo *f, struct tp_request *req) {
    req->tp_u64 = 0;
    if (f->tail)
        f->tail->tp_u64 = (uint64_t)(uintptr_t)req;
    else
        f->head = req;
    f->tail = req;
    f->count++;
}

SN_HOT struct tp_request *iw_fifo_pop(struct iw_fifo *f) {
    struct tp_request *req = f->head;
    if (!req) return NULL;
    f->head = next_of(req);
    if (!f->head) f->tail = NULL;
    f->count--;
    return req;
}

/* ---- when a Send or Write is complete ---- */

SN_HOT static void complete_oldest(struct iw_conn *c, uint32_t n) {
    struct tp_request *done[TP_DONE_BATCH];
    while (n != 0) {
        uint32_t m = SN_MIN(n, (uint32_t)TP_DONE_BATCH);
        for (uint32_t i = 0; i < m; i++)
            done[i] = iw_fifo_pop(&c->tx.unconfirmed);
        c->tx.confirm_base += m;
        c->up->requests_done(c->qp, done, m);
        n -= m;
    }
}

void iw_peer_decided(struct iw_conn *c, enum iw_peer peer) {
    os_u32_store_relaxed(&c->peer, peer);
    if (peer == IW_PEER_FOREIGN) complete_oldest(c, c->tx.unconfirmed.count);
    if (peer == IW_PEER_SOFTND && !c->tx_markers) c->tx.mulpdu = BIG_MULPDU;
    SN_LOG(SN_LOG_DEBUG, "iwarp: the peer is %s",
           peer == IW_PEER_SOFTND ? "SoftND, completions are confirmed" : "another implementation");
}

SN_HOT bool iw_confirmed(struct iw_conn *c, uint32_t count) {
    uint32_t sent = c->tx.confirm_base + c->tx.unconfirmed.count, last = c->tx.confirm_last;
    if (count - last > sent - last) return false; /* goes back, or past what was sent */
    c->tx.confirm_last = count;
    uint32_t n = count - c->tx.confirm_base;
    if ((int32_t)n > 0) complete_oldest(c, n); /* else completed while the peer was unknown */
    c->tx.burst /= 2;
    return true;
}

SN_HOT bool iw_report_due(struct iw_conn *c) {
    return iw_peer(c) == IW_PEER_SOFTND &&
           (os_u32_load_relaxed(&c->hello_due) ||
            os_u32_load_acquire(&c->processed) != os_u32_load_relaxed(&c->reported));
}

SN_HOT static size_t pack_report(struct iw_conn *c, uint8_t *head) {
    uint32_t count = os_u32_load_acquire(&c->processed);
    os_u32_store_relaxed(&c->reported, count);
    os_u32_store_relaxed(&c->hello_due, 0);
    return rdmap_write_pack(head, true, IW_MARK_STAG, IW_MARK_VERSION | count, 0);
}

/* ---- bytes of our own ---- */

bool iw_tx_raw(struct iw_conn *c, const void *data, size_t len) {
    struct iw_tx *tx = &c->tx;
    if (len > tx->raw_cap - tx->raw_len) {
        size_t cap = tx->raw_len + len + 256;
        uint8_t *raw = os_zalloc(cap);
        if (!raw) return false;
        if (tx->raw_len) memcpy(raw, tx->raw, tx->raw_len);
        os_free(tx->raw);
        tx->raw = raw;
        tx->raw_cap = cap;
    }
    if (len) memcpy(tx->raw + tx->raw_len, data, len);
    tx->raw_len += len;
    return true;
}

bool iw_tx_raw_fpdu(struct iw_conn *c, const uint8_t *head, size_t head_len) {
    uint8_t buf[RDMAP_HEAD_MAX + MPA_TRAILER_MAX + 8];
    size_t len;
    if (c->tx_markers) {
        struct mpa_piece piece = { head, head_len };
        if (mpa_fpdu_mark(&c->tx.markers, &piece, 1, c->crc, buf, sizeof buf, &len) != SN_OK)
            return false;
    } else {
        memcpy(buf, head, head_len);
        uint32_t crc = sn_crc32c_extend(SN_CRC32C_INIT, head, head_len);
        len = head_len + mpa_trailer_pack(buf + head_len, head_len - MPA_LEN_LEN, crc, c->crc);
    }
    return iw_tx_raw(c, buf, len);
}

bool iw_tx_raw_report(struct iw_conn *c) {
    uint8_t head[RDMAP_HEAD_TAGGED];
    return iw_tx_raw_fpdu(c, head, pack_report(c, head));
}

/* SN_OK: all gone. SN_E_AGAIN: the socket is full. */
sn_status iw_tx_flush_raw(struct iw_conn *c) {
    struct iw_tx *tx = &c->tx;
    while (tx->raw_off < tx->raw_len) {
        struct os_iov iov = { tx->raw + tx->raw_off, tx->raw_len - tx->raw_off };
        size_t put = 0;
        sn_status st = iw_conn_writev(c, &iov, 1, &put);
        if (st != SN_OK) return st;
        tx->raw_off += put;
    }
    if (tx->raw_cap > 4096) {
        os_free(tx->raw);
        tx->raw = NULL;
        tx->raw_cap = 0;
    }
    tx->raw_off = tx->raw_len = 0;
    return SN_OK;
}

/* ---- a batch ---- */

struct fpdu {
    enum iw_tx_source source;
    struct tp_request *req; /* the request, with IW_TX_REQUEST */
    uint32_t size;          /* bytes on the wire that are still to go */
    uint32_t payload;
    uint32_t head_at, trail_at; /* in scratch */
    uint8_t head_len, trail_len;
    bool last;
    bool copied; /* payload is in scratch behind the head */
    bool bounced;
    uint32_t bounce_at;
    bool is_report;
    uint32_t report; /* its count */
};

struct batch {
    size_t iov_count, acc_count, fpdu_count, payload;
    uint32_t scratch_used, bounce_used;
    /* what is being cut, ahead of what is sent */
    uint32_t q_idx, q_sent, irq_idx, irq_sent;
    enum iw_tx_source in_progress, last;
    sn_status failed;           /* stop: this went wrong ... */
    struct tp_request *culprit; /* ... with this request, or with the Read at irq_idx */
    bool reports, hello_before; /* the batch has reports; how things stood without them */
    uint32_t reported_before;
    /* from here on only as far as the counts say */
    struct os_iov iov[BATCH_IOV];
    struct tp_access acc[BATCH_PIECES];
    struct fpdu fpdu[BATCH_FPDUS];
    uint8_t scratch[SCRATCH];
};

static void batch_init(struct batch *b) {
    memset(b, 0, offsetof(struct batch, iov));
}

static void add_bytes(struct batch *b, void *p, size_t n) {
    if (n == 0) return;
    struct os_iov *v = b->iov_count ? &b->iov[b->iov_count - 1] : NULL;
    if (v && (uint8_t *)v->base + v->len == (uint8_t *)p)
        v->len += n;
    else
        b->iov[b->iov_count++] = (struct os_iov){ p, n };
}

/* Finds [off, off+len) of a message in memory and pins it. SN_E_FULL: no room for more pieces. */
static sn_status add_segments(struct iw_conn *c, struct batch *b, const struct tp_sge *sge,
                              uint32_t count, uint32_t off, uint32_t len) {
    uint32_t i = 0;
    while (i < count && off >= sge[i].len)
        off -= sge[i++].len;
    for (; len != 0 && i < count; i++, off = 0) {
        uint32_t left = SN_MIN(len, sge[i].len - off);
        len -= left;
        while (left != 0) {
            if (b->acc_count == BATCH_PIECES || b->iov_count >= BATCH_IOV - 2) return SN_E_FULL;
            struct tp_access *acc = &b->acc[b->acc_count];
            sn_status st =
                c->up->access(c->qp, sge[i].token, (uint64_t)(uintptr_t)sge[i].addr + off, left,
                              TP_LOCAL_READ, acc);
            if (st != SN_OK) return st;
            b->acc_count++;
            uint32_t m = (uint32_t)SN_MIN((size_t)left, acc->len);
            add_bytes(b, acc->ptr, m);
            off += m;
            left -= m;
        }
    }
    return SN_OK;
}

static sn_status add_source(struct iw_conn *c, struct batch *b, const struct rdmap_read_request *rr,
                            uint32_t off, uint32_t len) {
    while (len != 0) {
        if (b->acc_count == BATCH_PIECES || b->iov_count >= BATCH_IOV - 2) return SN_E_FULL;
        struct tp_access *acc = &b->acc[b->acc_count];
        sn_status st =
            c->up->access(c->qp, rr->src_stag, rr->src_to + off, len, TP_REMOTE_READ, acc);
        if (st != SN_OK) return st;
        b->acc_count++;
        uint32_t m = (uint32_t)SN_MIN((size_t)len, acc->len);
        add_bytes(b, acc->ptr, m);
        off += m;
        len -= m;
    }
    return SN_OK;
}

/* Payload [off, off+len) of a request or a response, as pieces of the batch. */
static sn_status add_payload(struct iw_conn *c, struct batch *b, const struct tp_request *req,
                             const struct iw_read_in *in, uint32_t off, uint32_t len) {
    if (in) return add_source(c, b, &in->rr, off, len);
    if (req->flags & TP_F_INLINE) {
        add_bytes(b, req->inline_data + off, len);
        return SN_OK;
    }
    return add_segments(c, b, req->sge, req->sge_count, off, len);
}

/* Copies the payload pieces added since `from` to dst. */
static bool copy_pieces(const struct batch *b, size_t from, uint8_t *dst) {
    bool good = true;
    for (size_t i = from; i < b->iov_count; i++) {
        good = good && os_guarded_copy(dst, b->iov[i].base, b->iov[i].len);
        dst += b->iov[i].len;
    }
    return good;
}

struct sum_job {
    const struct batch *b;
    size_t from;
    uint8_t *dst;
    uint32_t crc;
};

static void copy_and_sum(void *arg) {
    struct sum_job *job = arg;
    uint8_t *dst = job->dst;
    for (size_t i = job->from; i < job->b->iov_count; i++) {
        const struct os_iov *v = &job->b->iov[i];
        job->crc = sn_crc32c_copy(job->crc, dst, v->base, v->len);
        dst += v->len;
    }
}

/* As copy_pieces, and adds what was copied to the CRC. */
static bool copy_pieces_summed(const struct batch *b, size_t from, uint8_t *dst, uint32_t *crc) {
    struct sum_job job = { b, from, dst, *crc };
    if (!os_guarded_call(copy_and_sum, &job)) return false;
    *crc = job.crc;
    return true;
}

/* Memory that an application may change while it is sent, with Reads and Writes of its own or of
 * the peer, must not change between the CRC and the socket: that would break the connection, where
 * an adapter would just send one or the other. So what has a CRC is sent from a copy. NULL: no room
 * left in this batch, or no memory. */
static uint8_t *take_bounce(struct iw_conn *c, struct batch *b, uint32_t payload) {
    if (!c->tx.bounce) c->tx.bounce = os_zalloc(BOUNCE_BYTES);
    if (!c->tx.bounce || payload > BOUNCE_BYTES - b->bounce_used) return NULL;
    uint8_t *at = c->tx.bounce + b->bounce_used;
    b->bounce_used += payload;
    return at;
}

/* Unpins the pieces from the old count on. */
static void release_pieces(struct iw_conn *c, struct batch *b, size_t old_count) {
    while (b->acc_count > old_count)
        c->up->access_end(&b->acc[--b->acc_count]);
}

/* Adds one FPDU whose head is at scratch + scratch_used. SN_E_FULL: does not fit any more. */
static sn_status add_fpdu(struct iw_conn *c, struct batch *b, enum iw_tx_source source,
                          struct tp_request *req, const struct iw_read_in *in, size_t head_len,
                          uint32_t off, uint32_t payload, bool last) {
    const size_t old_iov = b->iov_count, old_acc = b->acc_count;
    const size_t old_len = old_iov ? b->iov[old_iov - 1].len : 0;
    uint8_t *head = b->scratch + b->scratch_used;
    size_t ulpdu = head_len - MPA_LEN_LEN + payload;
    bool copy = payload != 0 && payload <= COPY_MAX, bounce = c->crc && payload > COPY_MAX;
    uint8_t *bounced = bounce ? take_bounce(c, b, payload) : NULL;
    if (bounce && !bounced) return b->fpdu_count ? SN_E_FULL : SN_E_NOMEM;
    uint32_t crc = c->crc ? sn_crc32c_extend(SN_CRC32C_INIT, head, head_len) : 0;
    uint8_t *trail = head + head_len + (copy ? payload : 0);
    sn_status st = SN_OK;

    add_bytes(b, head, head_len);
    const size_t from = b->iov_count;
    if (payload != 0) st = add_payload(c, b, req, in, off, payload);
    if (st == SN_OK && copy) {
        if (!copy_pieces(b, from, head + head_len)) st = SN_E_FAULT;
        b->iov_count = from;
        add_bytes(b, head + head_len, payload);
        if (st == SN_OK && c->crc) crc = sn_crc32c_extend(crc, head + head_len, payload);
        release_pieces(c, b, old_acc);
    } else if (st == SN_OK && bounced) {
        if (!copy_pieces_summed(b, from, bounced, &crc)) st = SN_E_FAULT;
        b->iov_count = from;
        add_bytes(b, bounced, payload);
        release_pieces(c, b, old_acc);
    }
    if (st != SN_OK) {
        if (bounced) b->bounce_used -= payload;
        release_pieces(c, b, old_acc);
        b->iov_count = old_iov;
        if (old_iov) b->iov[old_iov - 1].len = old_len;
        return st;
    }
    size_t trail_len = mpa_trailer_pack(trail, ulpdu, crc, c->crc);
    add_bytes(b, trail, trail_len);
    b->fpdu[b->fpdu_count++] = (struct fpdu){
        .source = source,
        .req = req,
        .size = (uint32_t)(head_len + payload + trail_len),
        .payload = payload,
        .head_at = b->scratch_used,
        .head_len = (uint8_t)head_len,
        .trail_at = (uint32_t)(trail - b->scratch),
        .trail_len = (uint8_t)trail_len,
        .last = last,
        .copied = copy,
        .bounced = bounced != NULL,
        .bounce_at = bounced ? (uint32_t)(bounced - c->tx.bounce) : 0,
    };
    b->scratch_used = (uint32_t)(trail + trail_len - b->scratch);
    b->payload += payload;
    return SN_OK;
}

/* The rest of the FPDU that the socket cut. */
static sn_status add_part(struct iw_conn *c, struct batch *b) {
    struct iw_tx *tx = &c->tx;
    uint32_t sent = tx->part.sent, head = tx->part.head_len, payload = tx->part.payload;
    uint8_t *scratch = b->scratch;
    memcpy(scratch, tx->part.head, head);
    memcpy(scratch + head, tx->part.trail, tx->part.trail_len);
    b->scratch_used = head + tx->part.trail_len;
    if (sent < head) add_bytes(b, scratch + sent, head - sent);
    uint32_t p_off = sent > head ? SN_MIN(sent - head, payload) : 0;
    if (tx->part.bounced) {
        add_bytes(b, tx->bounce + tx->part.bounce_at + p_off, payload - p_off);
        b->bounce_used = tx->part.bounce_at + payload;
    } else if (p_off < payload) {
        struct tp_request *req =
            tx->part.source == IW_TX_REQUEST ? tx->q[tx->q_head % IW_TXQ] : NULL;
        const struct iw_read_in *in =
            tx->part.source == IW_TX_RESPONSE ? &tx->irq[tx->irq_head] : NULL;
        uint32_t base = in ? in->sent : tx->q_sent;
        sn_status st = add_payload(c, b, req, in, base + p_off, payload - p_off);
        if (st != SN_OK) return st == SN_E_FULL ? SN_E_INTERNAL : st;
    }
    uint32_t t_off = sent > head + payload ? sent - head - payload : 0;
    add_bytes(b, scratch + head + t_off, tx->part.trail_len - t_off);
    b->fpdu[b->fpdu_count++] = (struct fpdu){
        .source = tx->part.source,
        .size = head + payload + tx->part.trail_len - sent,
        .payload = payload,
        .last = tx->part.last,
    };
    b->payload += payload - p_off;
    return SN_OK;
}

/* ---- what to send next ---- */

static void sink_of(const struct tp_request *req, uint32_t *stag, uint64_t *to) {
    *stag = req->sge_count && req->sge[0].token ? req->sge[0].token : 1;
    *to = req->sge_count ? (uint64_t)(uintptr_t)req->sge[0].addr : 0;
}

/* A peer that is not ours gets FPDUs that fit its segments, which may change with the path. */
static void refresh_mulpdu(struct iw_conn *c, uint32_t length) {
    if (length > c->tx.mulpdu - DDP_UNTAGGED_LEN && iw_peer(c) != IW_PEER_SOFTND)
        c->tx.mulpdu = mpa_mulpdu(os_sock_mss(c->watch.sock), c->tx_markers);
}

/* Takes the core's next request if its turn has come. */
static bool pull_request(struct iw_conn *c) {
    struct iw_tx *tx = &c->tx;
    for (;;) {
        struct tp_request *req = c->up->sq_peek(c->qp);
        if (!req || tx->q_count == IW_TXQ) return false;
        if ((req->flags & TP_F_FENCE) && tx->reads_out != 0) return false;
        if (req->op == TP_OP_LOCAL) {
            if (tx->q_count != 0) return false; /* all before it must have left */
            c->up->sq_advance(c->qp);
            continue;
        }
        if (req->op == TP_OP_READ) {
            if (tx->reads_out >= c->ord) return false;
            tx->reads_out++;
            req->tp_u32[1] = tx->read_msn++;
        } else if (req->op == TP_OP_SEND) {
            req->tp_u32[1] = tx->send_msn++;
        }
        refresh_mulpdu(c, req->length);
        c->up->sq_advance(c->qp);
        tx->q[(tx->q_head + tx->q_count) % IW_TXQ] = req;
        tx->q_count++;
        return true;
    }
}

/* All segments are checked before anything of the request leaves: the sources of a Send or Write,
 * the targets of a Read. */
static sn_status check_segments(struct iw_conn *c, const struct tp_request *req) {
    enum tp_right right = req->op == TP_OP_READ ? TP_READ_SINK : TP_LOCAL_READ;
    if (req->flags & TP_F_INLINE) return SN_OK;
    for (uint32_t i = 0; i < req->sge_count; i++) {
        struct tp_access acc;
        if (req->sge[i].len == 0) continue;
        sn_status st =
            c->up->access(c->qp, req->sge[i].token, (uint64_t)(uintptr_t)req->sge[i].addr,
                          req->sge[i].len, right, &acc);
        if (st != SN_OK) return st;
        c->up->access_end(&acc);
    }
    return SN_OK;
}

static enum rdmap_opcode send_opcode(const struct tp_request *req) {
    bool se = req->flags & TP_F_SOLICIT;
    if (req->flags & TP_F_INVALIDATE) return se ? RDMAP_SEND_SE_INV : RDMAP_SEND_INV;
    return se ? RDMAP_SEND_SE : RDMAP_SEND;
}

/* The head of an FPDU with payload [off, off+payload) of a Send or Write. */
SN_HOT static size_t pack_head(const struct tp_request *req, uint32_t msn, uint32_t off,
                               uint32_t payload, bool last, uint8_t *head) {
    if (req->op == TP_OP_WRITE) {
        uint32_t stag = req->remote_token;
        /* Nobody may look at it, but some adapters refuse 0, and one value is our mark. */
        if (req->length == 0 && (stag == IW_MARK_STAG || stag == 0)) stag = 1;
        return rdmap_write_pack(head, last, stag, req->remote_addr + off, payload);
    }
    return rdmap_send_pack(head, send_opcode(req), last,
                           req->flags & TP_F_INVALIDATE ? req->invalidate_token : 0, msn, off,
                           payload);
}

/* How much payload the next FPDU of a message takes. Where it is told what follows, the odd one of
 * three or more is the first, so that it is told early and all that follow are the same. */
static uint32_t cut(const struct iw_conn *c, uint32_t left, uint32_t room) {
    if (left <= room) return left;
    return iw_foretells(c) && left - room > room ? (left - 1) % room + 1 : room;
}

/* The FPDU that was added last is not its message's last: tells what follows it. */
static void foretell(const struct iw_conn *c, struct batch *b, uint32_t left, uint32_t room) {
    const struct fpdu *f = &b->fpdu[b->fpdu_count - 1];
    if (!iw_foretells(c) || left % room != 0) return;
    struct mpa_foretold what = { .size = (uint16_t)room,
                                 .count = (uint16_t)SN_MIN(left / room, 65535u) };
    mpa_foretold_pack(b->scratch + f->trail_at + f->trail_len - MPA_CRC_LEN, what);
}

/* Cuts the next FPDU of the request at the batch's cursor. */
static sn_status cut_request(struct iw_conn *c, struct batch *b, uint32_t most) {
    struct tp_request *req = c->tx.q[(c->tx.q_head + b->q_idx) % IW_TXQ];
    uint8_t *head = b->scratch + b->scratch_used;
    uint32_t off = b->q_sent, left = req->length - off, payload = 0;
    size_t head_len;
    bool last = true;
    sn_status st = SN_OK;
    /* Of a Send or Write that is one FPDU add_fpdu itself looks at all. */
    uint32_t overhead = req->op == TP_OP_WRITE ? DDP_TAGGED_LEN : DDP_UNTAGGED_LEN;
    if (off == 0 && (req->op == TP_OP_READ || left > most - overhead)) st = check_segments(c, req);
    if (st != SN_OK) goto failed;
    if (req->op == TP_OP_READ) {
        struct rdmap_read_request rr = { .size = req->length,
                                         .src_stag = req->remote_token,
                                         .src_to = req->remote_addr };
        sink_of(req, &rr.sink_stag, &rr.sink_to);
        if (req->length == 0 && rr.src_stag == 0) rr.src_stag = 1;
        head_len = rdmap_read_request_pack(head, req->tp_u32[1], &rr);
    } else {
        payload = cut(c, left, most - overhead);
        last = payload == left;
        head_len = pack_head(req, req->tp_u32[1], off, payload, last, head);
    }
    st = add_fpdu(c, b, IW_TX_REQUEST, req, NULL, head_len, off, payload, last);
    if (st == SN_E_FULL) return st;
    if (st != SN_OK) goto failed;
    if (!last && most == c->tx.mulpdu) foretell(c, b, left - payload, most - overhead);
    b->last = IW_TX_REQUEST;
    b->in_progress = last ? IW_TX_NONE : IW_TX_REQUEST;
    b->q_sent = last ? 0 : off + payload;
    b->q_idx += last;
    return SN_OK;
failed:
    b->culprit = req;
    b->failed = st;
    return st;
}

static sn_status cut_response(struct iw_conn *c, struct batch *b, uint32_t most) {
    const struct iw_read_in *in = &c->tx.irq[(c->tx.irq_head + b->irq_idx) % c->tx.irq_cap];
    uint8_t *head = b->scratch + b->scratch_used;
    uint32_t off = b->irq_sent, left = in->rr.size - off;
    uint32_t payload = cut(c, left, most - DDP_TAGGED_LEN);
    bool last = payload == left;
    sn_status st = SN_OK;
    if (off == 0 && in->rr.size != 0) {
        struct tp_access acc;
        if (in->rr.src_to + in->rr.size < in->rr.src_to) st = SN_E_RANGE;
        if (st == SN_OK)
            st = c->up->access(c->qp, in->rr.src_stag, in->rr.src_to, in->rr.size, TP_REMOTE_READ,
                               &acc);
        if (st == SN_OK) c->up->access_end(&acc);
    }
    size_t head_len =
        rdmap_read_response_pack(head, last, in->rr.sink_stag, in->rr.sink_to + off, payload);
    if (st == SN_OK) st = add_fpdu(c, b, IW_TX_RESPONSE, NULL, in, head_len, off, payload, last);
    if (st == SN_E_FULL) return st;
    if (st != SN_OK) {
        b->failed = st;
        return st;
    }
    if (!last && most == c->tx.mulpdu) foretell(c, b, left - payload, most - DDP_TAGGED_LEN);
    b->last = IW_TX_RESPONSE;
    b->in_progress = last ? IW_TX_NONE : IW_TX_RESPONSE;
    b->irq_sent = last ? 0 : off + payload;
    b->irq_idx += last;
    return SN_OK;
}

static bool batch_has_room(const struct iw_conn *c, const struct batch *b) {
    return b->fpdu_count < (c->tx_markers ? 1 : BATCH_FPDUS) && b->iov_count < BATCH_IOV - 4 &&
           b->acc_count < BATCH_PIECES && b->payload < BATCH_BYTES &&
           SCRATCH - b->scratch_used > RDMAP_HEAD_MAX + COPY_MAX + MPA_TRAILER_MAX;
}

static void add_report(struct iw_conn *c, struct batch *b) {
    if (!b->reports) {
        b->reports = true;
        b->hello_before = os_u32_load_relaxed(&c->hello_due) != 0;
        b->reported_before = os_u32_load_relaxed(&c->reported);
    }
    size_t len = pack_report(c, b->scratch + b->scratch_used);
    sn_status st = add_fpdu(c, b, IW_TX_NONE, NULL, NULL, len, 0, 0, true);
    SN_ASSERT(st == SN_OK); /* no payload, and the batch has room */
    b->fpdu[b->fpdu_count - 1].is_report = true;
    b->fpdu[b->fpdu_count - 1].report = os_u32_load_relaxed(&c->reported);
}

/* Adds FPDUs while there is something to send and room. */
static void fill_batch(struct iw_conn *c, struct batch *b) {
    uint32_t most = c->tx.mulpdu;
    while (batch_has_room(c, b)) {
        bool response = b->irq_idx < c->tx.irq_count;
        bool request = b->q_idx < c->tx.q_count;
        enum iw_tx_source next = b->in_progress;
        if (next == IW_TX_NONE) {
            if (!request && (!response || b->last == IW_TX_RESPONSE)) request = pull_request(c);
            if (response && (!request || b->last != IW_TX_RESPONSE))
                next = IW_TX_RESPONSE;
            else if (request)
                next = IW_TX_REQUEST;
        }
        if (next == IW_TX_NONE) return;
        /* A report rides in front of each message that may be the application's answer to what is
         * reported; looked at only now, after the message was seen. */
        if (b->in_progress == IW_TX_NONE && iw_report_due(c)) {
            add_report(c, b);
            continue;
        }
        sn_status st = next == IW_TX_RESPONSE ? cut_response(c, b, most) : cut_request(c, b, most);
        /* Memory in so many pieces that even an empty batch cannot take them: a shorter FPDU. */
        if (st == SN_E_FULL && b->fpdu_count == 0 && most > MPA_MULPDU_MIN)
            most = SN_MAX(most / 2, (uint32_t)MPA_MULPDU_MIN);
        else if (st != SN_OK)
            return;
    }
}

/* ---- after the call ---- */

static void request_sent(struct iw_conn *c) {
    struct iw_tx *tx = &c->tx;
    struct tp_request *req = tx->q[tx->q_head % IW_TXQ];
    tx->q_head++;
    tx->q_count--;
    tx->q_sent = 0;
    if (req->op == TP_OP_READ) {
        iw_fifo_push(&tx->reads, req);
        return;
    }
    iw_fifo_push(&tx->unconfirmed, req);
    if (iw_peer(c) == IW_PEER_FOREIGN) complete_oldest(c, 1);
}

static void fpdu_sent(struct iw_conn *c, const struct fpdu *f) {
    struct iw_tx *tx = &c->tx;
    if (f->source == IW_TX_REQUEST) {
        tx->q_sent += f->payload;
        if (f->last) request_sent(c);
    } else if (f->source == IW_TX_RESPONSE) {
        tx->irq[tx->irq_head].sent += f->payload;
        if (f->last) {
            tx->irq_head = (tx->irq_head + 1) % tx->irq_cap;
            tx->irq_count--;
        }
    }
    if (f->source != IW_TX_NONE) {
        tx->last = f->source;
        tx->in_progress = f->last ? IW_TX_NONE : f->source;
    }
}

/* The next batch has another scratch. What was bounced in this one lies in front of this FPDU in
 * the stream, hence is gone. */
static bool keep_copied(struct iw_conn *c, const struct batch *b, const struct fpdu *f) {
    if (!c->tx.bounce) c->tx.bounce = os_zalloc(BOUNCE_BYTES);
    if (c->tx.bounce) memcpy(c->tx.bounce, b->scratch + f->head_at + f->head_len, f->payload);
    return c->tx.bounce != NULL;
}

static void remember_part(struct iw_conn *c, const struct batch *b, const struct fpdu *f,
                          uint32_t sent) {
    struct iw_tx *tx = &c->tx;
    if (tx->part.active) { /* the same one, a little further */
        tx->part.sent += sent;
        return;
    }
    tx->part.active = true;
    tx->part.source = f->source;
    tx->part.sent = sent;
    tx->part.payload = f->payload;
    tx->part.last = f->last;
    tx->part.head_len = f->head_len;
    tx->part.trail_len = f->trail_len;
    tx->part.bounced = f->bounced;
    tx->part.bounce_at = f->bounce_at;
    if (c->crc && f->copied && keep_copied(c, b, f)) {
        tx->part.bounced = true;
        tx->part.bounce_at = 0;
    }
    memcpy(tx->part.head, b->scratch + f->head_at, f->head_len);
    memcpy(tx->part.trail, b->scratch + f->trail_at, f->trail_len);
}

/* A report of which not even the beginning left is owed again: it may have been the last one. */
static void account_reports(struct iw_conn *c, const struct batch *b, size_t put) {
    if (!b->reports) return;
    bool hello = b->hello_before;
    uint32_t reported = b->reported_before;
    for (size_t i = 0; i < b->fpdu_count && put != 0; i++) {
        const struct fpdu *f = &b->fpdu[i];
        if (f->is_report) {
            hello = false;
            reported = f->report;
        }
        put -= SN_MIN(put, (size_t)f->size);
    }
    if (!hello && reported == os_u32_load_relaxed(&c->reported)) return;
    os_u32_store_relaxed(&c->hello_due, hello);
    os_u32_store_relaxed(&c->reported, reported);
    c->report_now = true;
}

static void account(struct iw_conn *c, const struct batch *b, size_t put) {
    for (size_t i = 0; i < b->fpdu_count && put != 0; i++) {
        const struct fpdu *f = &b->fpdu[i];
        if (put < f->size) {
            remember_part(c, b, f, (uint32_t)put);
            return;
        }
        put -= f->size;
        c->tx.part.active = false;
        fpdu_sent(c, f);
    }
}

bool iw_tx_raw_part(struct iw_conn *c) {
    if (!c->tx.part.active) return true;
    struct batch b;
    bool good = true;
    batch_init(&b);
    if (add_part(c, &b) != SN_OK) good = false;
    size_t total = 0;
    for (size_t i = 0; i < b.iov_count; i++)
        total += b.iov[i].len;
    uint8_t *copy = good ? os_zalloc(total) : NULL;
    good = copy && copy_pieces(&b, 0, copy) && iw_tx_raw(c, copy, total);
    os_free(copy);
    release_pieces(c, &b, 0);
    c->tx.part.active = false;
    return good;
}

/* ---- failures: noted under the send lock alone, carried out by iw_settle ---- */

static void note_failure(struct iw_conn *c, sn_status st) {
    c->tx.failed = true;
    c->tx.fail_status = st;
    c->tx.fail_fault_set = false;
    c->tx.fail_about_len = 0;
}

static void read_source_failed(struct iw_conn *c, sn_status st, const struct iw_read_in *in) {
    enum rdmap_cause cause = RDMAP_FAULT_READ_STAG;
    if (st == SN_E_RANGE)
        cause = in->rr.src_to + in->rr.size < in->rr.src_to ? RDMAP_FAULT_READ_WRAP
                                                            : RDMAP_FAULT_READ_BOUNDS;
    if (st == SN_E_RIGHTS) cause = RDMAP_FAULT_READ_RIGHTS;
    if (st == SN_E_PD) cause = RDMAP_FAULT_READ_STREAM;
    struct rdmap_read_request left = in->rr;
    left.sink_to += in->sent;
    left.src_to += in->sent;
    left.size -= in->sent;
    SN_LOG(SN_LOG_INFO, "iwarp: inbound Read refused: %s", rdmap_fault_text(cause));
    note_failure(c, SN_E_WIRE);
    c->tx.fail_fault = rdmap_fault_make(cause);
    c->tx.fail_fault_set = true;
    c->tx.fail_about_len = rdmap_read_request_pack(c->tx.fail_about, in->msn, &left);
}

/* A request of ours cannot be carried out: it fails with its own status, the connection ends. */
static void request_failed(struct iw_conn *c, sn_status st, struct tp_request *req) {
    SN_LOG(SN_LOG_INFO, "iwarp: a request failed on our side: %s", sn_status_text(st));
    c->up->request_done(c->qp, req, st);
    note_failure(c, st);
    c->tx.fail_fault = rdmap_fault_make(RDMAP_FAULT_LOCAL_BUILD);
    c->tx.fail_fault_set = true;
}

SN_HOT void iw_settle_locked(struct iw_conn *c) {
    struct iw_tx *tx = &c->tx;
    if (!tx->failed) return;
    tx->failed = false;
    struct terminate_about about = { .ulpdu = tx->fail_about + MPA_LEN_LEN,
                                     .have = tx->fail_about_len - MPA_LEN_LEN,
                                     .ulpdu_len = (uint16_t)(tx->fail_about_len - MPA_LEN_LEN) };
    iw_fail(c, tx->fail_status, tx->fail_fault_set ? &tx->fail_fault : NULL,
            tx->fail_about_len ? &about : NULL);
}

/* ---- the engine of it all ---- */

static void build(struct iw_conn *c, struct batch *b, bool only_part) {
    batch_init(b);
    b->q_sent = c->tx.q_sent;
    b->irq_sent = c->tx.irq_count ? c->tx.irq[c->tx.irq_head].sent : 0;
    b->in_progress = c->tx.in_progress;
    b->last = c->tx.last;
    if (c->tx.part.active) {
        b->failed = add_part(c, b);
        if (b->failed != SN_OK) {
            b->culprit = c->tx.part.source == IW_TX_REQUEST ? c->tx.q[c->tx.q_head % IW_TXQ] : NULL;
            return;
        }
        const struct fpdu *f = &b->fpdu[0];
        if (f->source != IW_TX_NONE) b->in_progress = f->last ? IW_TX_NONE : f->source;
        if (f->source == IW_TX_REQUEST) {
            b->q_sent = f->last ? 0 : b->q_sent + f->payload;
            b->q_idx += f->last;
        } else if (f->source == IW_TX_RESPONSE) {
            b->irq_sent = f->last ? 0 : b->irq_sent + f->payload;
            b->irq_idx += f->last;
        }
    }
    if (only_part) return;
    if (c->report_now && iw_report_due(c)) add_report(c, b);
    c->report_now = false;
    fill_batch(c, b);
}

/* With markers each FPDU is built whole, one at a time, in a buffer of our own. */
struct mark_job {
    struct iw_conn *c;
    struct mpa_piece pieces[BATCH_IOV];
    size_t count, cap, len;
    uint8_t *dst;
    sn_status st;
};

static void mark_guarded(void *arg) {
    struct mark_job *job = arg;
    job->st = mpa_fpdu_mark(&job->c->tx.markers, job->pieces, job->count, job->c->crc, job->dst,
                            job->cap, &job->len);
}

/* Turns the batch, which holds exactly one FPDU, into raw bytes with markers. */
static void marked_to_raw(struct iw_conn *c, struct batch *b) {
    struct mark_job job = { .c = c, .cap = MPA_FPDU_MARKED_MAX };
    const struct fpdu *f = &b->fpdu[0];
    size_t body = f->size - f->trail_len;
    struct mpa_markers before = c->tx.markers;
    for (size_t i = 0; i < b->iov_count && body != 0; i++) {
        size_t n = SN_MIN(body, b->iov[i].len);
        job.pieces[job.count++] = (struct mpa_piece){ b->iov[i].base, n };
        body -= n;
    }
    job.dst = os_zalloc(job.cap);
    bool good = job.dst && os_guarded_call(mark_guarded, &job) && job.st == SN_OK &&
                iw_tx_raw(c, job.dst, job.len);
    os_free(job.dst);
    if (good) {
        fpdu_sent(c, f);
        return;
    }
    c->tx.markers = before;
    if (f->source == IW_TX_NONE) { /* a report, for which there is no memory */
        note_failure(c, SN_E_NOMEM);
        return;
    }
    b->failed = SN_E_FAULT;
    b->culprit = f->req;
}

SN_HOT static void set_blocked(struct iw_conn *c, bool blocked) {
    if ((os_u32_load_relaxed(&c->tx.blocked) != 0) == blocked) return;
    os_u32_store_relaxed(&c->tx.blocked, blocked);
    iw_set_interest(c);
}

/* A request fails in its turn, when those before it have their outcome: their answers bring us back
 * here. Not inside an FPDU, which can only be cut. */
static bool must_wait(const struct iw_conn *c) {
    return !c->tx.part.active && (c->tx.unconfirmed.count != 0 || c->tx.reads.count != 0);
}

static sn_status write_timed(struct iw_conn *c, const struct batch *b, size_t total, size_t *put) {
    uint64_t start = total >= LONG_CALL ? os_now_ns() : 0;
    sn_status st = iw_conn_writev(c, b->iov, b->iov_count, put);
    if (start) c->tx.busy_ns += os_now_ns() - start;
    return st;
}

/* One system call's worth, or the rest of a cut FPDU. False when there is no more for now. */
static bool send_some(struct iw_conn *c, bool only_part, bool *did) {
    struct batch b;
    if (c->tx.raw_len) {
        sn_status st = iw_tx_flush_raw(c);
        if (st == SN_E_AGAIN) set_blocked(c, true);
        if (st != SN_OK) {
            if (st != SN_E_AGAIN) note_failure(c, SN_E_PEER_GONE);
            return false;
        }
        *did = true;
    }
    build(c, &b, only_part);
    size_t put = 0, total = 0;
    sn_status st = SN_OK;
    for (size_t i = 0; i < b.iov_count; i++)
        total += b.iov[i].len;
    if (b.iov_count != 0 && c->tx_markers)
        marked_to_raw(c, &b);
    else if (b.iov_count != 0)
        st = write_timed(c, &b, total, &put);
    release_pieces(c, &b, 0);
    if (st == SN_OK && !c->tx_markers) account(c, &b, put);
    if (!c->tx_markers) account_reports(c, &b, put);
    *did = *did || put != 0;
    if (st == SN_E_AGAIN || (st == SN_OK && !c->tx_markers && put < total)) {
        set_blocked(c, true);
        return false;
    }
    if (st == SN_E_FAULT) { /* memory that went away after it was checked; the first in line */
        size_t i = 0;
        while (i + 1 < b.fpdu_count && b.fpdu[i].payload == 0)
            i++;
        b.failed = SN_E_FAULT;
        b.culprit = b.fpdu[i].source == IW_TX_REQUEST ? c->tx.q[c->tx.q_head % IW_TXQ] : NULL;
    } else if (st != SN_OK) {
        note_failure(c, SN_E_PEER_GONE);
        return false;
    }
    if (only_part && b.failed == SN_OK) return false; /* still blocked */
    set_blocked(c, false);
    if (c->tx.failed) return false;
    if (b.failed != SN_OK && (b.fpdu_count == 0 || st == SN_E_FAULT || c->tx_markers)) {
        if (b.culprit && must_wait(c)) return false;
        if (b.culprit)
            request_failed(c, b.failed, b.culprit);
        else
            read_source_failed(c, b.failed, &c->tx.irq[c->tx.irq_head]);
        return false;
    }
    return b.iov_count != 0;
}

/* ---- small messages: built in one piece, without a batch ---- */

SN_HOT static bool is_small(const struct iw_conn *c, const struct tp_request *req) {
    return (req->op == TP_OP_SEND || req->op == TP_OP_WRITE) && req->length <= COPY_MAX &&
           req->length <= c->tx.mulpdu - DDP_UNTAGGED_LEN &&
           !((req->flags & TP_F_FENCE) && c->tx.reads_out != 0);
}

SN_HOT static bool gather(struct iw_conn *c, const struct tp_request *req, uint8_t *dst) {
    if (req->flags & TP_F_INLINE) return os_guarded_copy(dst, req->inline_data, req->length);
    for (uint32_t i = 0; i < req->sge_count; i++) {
        const struct tp_sge *s = &req->sge[i];
        if (s->len != 0 &&
            c->up->copy_from(c->qp, s->token, (uint64_t)(uintptr_t)s->addr, s->len, dst) != SN_OK)
            return false;
        dst += s->len;
    }
    return true;
}

/* Adds the trailer to a head and its payload; gives the end. */
SN_HOT static uint8_t *close_fpdu(const struct iw_conn *c, uint8_t *fpdu, size_t len) {
    uint32_t crc = c->crc ? sn_crc32c_extend(SN_CRC32C_INIT, fpdu, len) : 0;
    return fpdu + len + mpa_trailer_pack(fpdu + len, len - MPA_LEN_LEN, crc, c->crc);
}

/* Sends small messages if those are next, in one system call. What the socket does not take
 * becomes bytes of our own. False if it is not for us: a failure, too, is left to the batch. */
SN_HOT static bool send_small(struct iw_conn *c, bool *did) {
    struct iw_tx *tx = &c->tx;
    uint8_t buf[SMALL_BYTES], *p = buf;
    uint32_t count = 0;
    if (tx->raw_len || tx->part.active || tx->q_count || tx->irq_count || c->tx_markers)
        return false;
    for (struct tp_request *req; (req = c->up->sq_peek(c->qp)) != NULL && is_small(c, req);) {
        if ((size_t)(buf + sizeof buf - p) < SMALL_ROOM) break;
        if (iw_report_due(c)) p = close_fpdu(c, p, pack_report(c, p)); /* as in fill_batch */
        size_t head_len = pack_head(req, tx->send_msn, 0, req->length, true, p);
        if (!gather(c, req, p + head_len)) break;
        p = close_fpdu(c, p, head_len + req->length);
        if (req->op == TP_OP_SEND) tx->send_msn++;
        c->up->sq_advance(c->qp);
        iw_fifo_push(&tx->unconfirmed, req);
        count++;
    }
    if (p == buf) return false;
    c->report_now = false;
    tx->last = IW_TX_REQUEST;
    struct os_iov iov = { buf, (size_t)(p - buf) };
    size_t put = 0;
    sn_status st = iw_conn_writev(c, &iov, 1, &put);
    *did = *did || put != 0;
    if (st != SN_OK && st != SN_E_AGAIN)
        note_failure(c, SN_E_PEER_GONE);
    else if (put < iov.len && !iw_tx_raw(c, buf + put, iov.len - put))
        note_failure(c, SN_E_NOMEM);
    set_blocked(c, put < iov.len && !tx->failed);
    if (iw_peer(c) == IW_PEER_FOREIGN && !tx->failed) complete_oldest(c, count);
    return true;
}

/* Building an empty batch would find it out too, but this comes between each arrival and who waits
 * for it. */
SN_HOT static bool nothing_to_send(const struct iw_conn *c) {
    const struct iw_tx *tx = &c->tx;
    return tx->raw_len == 0 && !tx->part.active && tx->q_count == 0 && tx->irq_count == 0 &&
           !c->report_now && !os_u32_load_relaxed(&tx->blocked) && !c->up->sq_peek(c->qp);
}

/* What waits leaves with the next arrival. For IW_REPORT_EVERY unconfirmed messages the peer owes a
 * report whatever its timer does; for fewer when its application looks for more, or when the timer
 * says so. Then only the end of a burst waits, and leaves, too, when our application looks for
 * results and finds none: a queue pair that is ahead of its peer is never IW_REPORT_EVERY messages
 * behind, and would pay for a segment with each message. While a Send of the peer waits here for a
 * receive, reports are not read. */
SN_HOT bool iw_tx_defer(struct iw_conn *c) {
    struct iw_tx *tx = &c->tx;
    const struct tp_request *req;
    const bool few = tx->unconfirmed.count < IW_REPORT_EVERY;
    tx->burst++;
    if (SN_LIKELY(few && (tx->burst < IW_BURST_MIN || tx->unconfirmed.count == 0))) return false;
    if (iw_peer(c) != IW_PEER_SOFTND || os_u32_load_relaxed(&c->rx.stalled)) return false;
    if (tx->deferred + 1 >= IW_DEFER_MAX || tx->q_count || c->tx_markers) return false;
    if (!is_small(c, tx->unconfirmed.tail)) return false; /* large ones may be right behind, too */
    if ((req = c->up->sq_peek(c->qp)) == NULL || !is_small(c, req)) return false;
    if (tx->deferred++ == 0 && few) c->up->held_back(c->qp);
    return true;
}

SN_HOT bool iw_tx_progress(struct iw_conn *c) {
    bool did = false, more = true;
    c->tx.deferred = 0;
    /* A batch that the socket refuses, or cuts short, was copied and summed for nothing. */
    if (os_u32_load_relaxed(&c->tx.blocked) && !os_sock_writable(c->watch.sock)) {
        if (iw_state(c) == IW_OPEN && !c->tx.failed && (c->tx.raw_len || c->tx.part.active))
            (void)send_some(c, true, &did);
        return did;
    }
    for (int i = 0; more && i < BURST_CALLS && iw_state(c) == IW_OPEN && !c->tx.failed; i++)
        more = !nothing_to_send(c) &&
               (send_small(c, &did) ? !os_u32_load_relaxed(&c->tx.blocked) && !c->tx.failed
                                    : send_some(c, false, &did));
    if (more && iw_state(c) == IW_OPEN) set_blocked(c, true); /* the poller comes back to us */
    return did;
}
