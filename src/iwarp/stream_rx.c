/* SPDX-License-Identifier: MIT
 *
 * The receive side of an open stream: head, payload, trailer, resumable at any byte. Payload goes
 * from the socket straight to its place where there is enough of it; everything else passes
 * through a buffer on the stack, so only a connection that brought a long stream, or large FPDUs
 * with a CRC, has a receive buffer. A segment that must be refused is read to its end first: a bad
 * CRC makes every other fault moot.
 */
#include "iwarp/conn.h"
#include <string.h>
#include "base/log.h"
#include "os/prim/fault.h"
#include "os/prim/pages.h"

enum {
    STAGE_SMALL = 256,     /* behind a direct read: the trailer and the next head */
    STAGE_MEDIUM = 1536,   /* a few small messages */
    STAGE_LARGE = 16384,   /* many small messages */
    STAGE_BOUNCE = 131072, /* two large FPDUs with a CRC */
    STAGE_AHEAD = 66048,   /* behind a direct read of a long stream: the whole next FPDU */
    SUM_MIN = 1024,        /* copied and added to the CRC in one pass ... */
    SUM_END = 64,          /* ... but for its end */
    DIRECT_MIN = 1024,     /* payload worth a place of its own in the vector */
    MARK_LEN = RDMAP_HEAD_TAGGED + MPA_CRC_LEN, /* a report, which needs no PAD */
    DIRECT_PIECES = 8,                          /* segments of a scatter list in one read */
    AHEAD_FPDUS = 4,                            /* FPDUs foreseen in one read ... */
    AHEAD_MIN = 8192,                           /* ... unasked only with so much payload in each */
    AHEAD_IOV = 32,
    BURST_BYTES = 1024 * 1024, /* then others get their turn */
    LONG_TURN = 32 * 1024      /* a turn with as many bytes is part of a long stream */
};

/* ---- faults ---- */

static void refuse(struct iw_conn *c, enum rdmap_cause cause, sn_status st) {
    if (c->rx.fault_set) return;
    c->rx.fault_set = true;
    c->rx.fault = rdmap_fault_make(cause);
    c->rx.fault_status = st;
    SN_LOG(SN_LOG_INFO, "iwarp: inbound segment refused: %s", rdmap_fault_text(cause));
}

static void refuse_write(struct iw_conn *c, sn_status st) {
    refuse(c,
           st == SN_E_RANGE ? RDMAP_FAULT_WRITE_BOUNDS
           : st == SN_E_PD  ? RDMAP_FAULT_WRITE_STREAM
                            : RDMAP_FAULT_WRITE_STAG,
           SN_E_WIRE);
}

/* The receive at hand fails for a reason of its own; the stream ends with it. */
static void fail_receive(struct iw_conn *c, enum rdmap_cause cause, sn_status st) {
    struct tp_receive *recv = c->rx.recv;
    refuse(c, cause, SN_E_WIRE);
    if (!recv) return;
    c->rx.recv = NULL;
    c->up->receive_done(c->qp, recv, st, 0, 0, 0);
}

/* Our own Read cannot be placed: it fails here and now. */
static void fail_read(struct iw_conn *c, enum rdmap_cause cause, sn_status st) {
    refuse(c, cause, SN_E_WIRE);
    if (!c->rx.read) return;
    os_lock_enter(&c->tx_lock);
    struct tp_request *req = iw_fifo_pop(&c->tx.reads);
    os_lock_leave(&c->tx_lock);
    c->rx.read = NULL;
    c->up->request_done(c->qp, req, st);
}

static void about_this(struct iw_conn *c, struct terminate_about *about) {
    *about = (struct terminate_about){ .ulpdu = c->rx.head + MPA_LEN_LEN,
                                       .have = c->rx.head_have - MPA_LEN_LEN,
                                       .ulpdu_len = c->rx.ulpdu_len };
}

static void fail_with_fault(struct iw_conn *c, sn_status st, const struct rdmap_fault *fault) {
    struct terminate_about about;
    about_this(c, &about);
    os_lock_enter(&c->tx_lock);
    /* Before the first FPDU was validated a responder may send nothing. */
    bool mute = iw_state(c) == IW_WAIT_FPDU || (fault && fault->in_terminate);
    iw_fail(c, st, mute ? NULL : fault, &about);
    os_lock_leave(&c->tx_lock);
}

/* ---- where payload goes ---- */

/* Where in its scatter list the message of the present segment has got to. A Send and a Read
 * Response may be under way at once, so each has a place of its own; a Write needs none. */
static struct iw_place *place_of(struct iw_rx *rx) {
    return rx->seg.opcode == RDMAP_READ_RESPONSE ? &rx->read_at : &rx->recv_at;
}

/* The next piece of memory for payload of this segment, at most `want` bytes. */
static sn_status next_place(struct iw_conn *c, const struct iw_place *at, uint32_t seg_off,
                            size_t want, struct tp_access *acc) {
    struct iw_rx *rx = &c->rx;
    if (rx->seg.opcode == RDMAP_WRITE)
        return c->up->access(c->qp, rx->seg.stag, rx->seg.to + seg_off, want, TP_REMOTE_WRITE, acc);
    bool response = rx->seg.opcode == RDMAP_READ_RESPONSE;
    const struct tp_sge *s = &(response ? rx->read->sge : rx->recv->sge)[at->idx];
    return c->up->access(c->qp, s->token, (uint64_t)(uintptr_t)s->addr + at->off,
                         SN_MIN(want, (size_t)(s->len - at->off)),
                         response ? TP_READ_SINK : TP_LOCAL_WRITE, acc);
}

/* Moves a place on by n bytes, which lie in one segment, and past segments that are full. */
SN_HOT static void move_place(const struct iw_rx *rx, struct iw_place *at, uint32_t n) {
    const struct tp_sge *sge;
    uint32_t count;
    if (rx->seg.opcode == RDMAP_WRITE) return;
    if (rx->seg.opcode == RDMAP_READ_RESPONSE) {
        sge = rx->read->sge;
        count = rx->read->sge_count;
    } else {
        sge = rx->recv->sge;
        count = rx->recv->sge_count;
    }
    at->off += n;
    while (at->idx < count && at->off == sge[at->idx].len) {
        at->off = 0;
        at->idx++;
    }
}

SN_HOT static void placed(struct iw_rx *rx, uint32_t n) {
    rx->seg_off += n;
    move_place(rx, place_of(rx), n);
}

static void refuse_place(struct iw_conn *c, sn_status st) {
    switch (c->rx.seg.opcode) {
    case RDMAP_WRITE:
        refuse_write(c, st == SN_E_FAULT ? SN_E_TOKEN : st);
        break;
    case RDMAP_READ_RESPONSE:
        fail_read(c, RDMAP_FAULT_LOCAL_PLACE, st);
        break;
    default:
        fail_receive(c, RDMAP_FAULT_LOCAL_PLACE, st);
        break;
    }
}

struct sum_job {
    uint8_t *dst;
    const uint8_t *src;
    size_t len;
    uint32_t crc;
};

static void copy_and_sum(void *arg) {
    struct sum_job *job = arg;
    job->crc = sn_crc32c_copy(job->crc, job->dst, job->src, job->len);
}

/* Copies to memory of the application; false if it is gone. Adds what was copied to the CRC. */
static bool copy_staged(struct iw_conn *c, uint8_t *dst, const uint8_t *src, size_t len) {
    uint32_t crc = c->rx.crc;
    if (c->crc && len >= SUM_MIN) {
        /* Not the end, which os_guarded_copy writes last. */
        struct sum_job job = { dst, src, len - SUM_END, crc };
        if (!os_guarded_call(copy_and_sum, &job)) return false;
        crc = job.crc;
        dst += job.len;
        src += job.len;
        len = SUM_END;
    }
    if (!os_guarded_copy(dst, src, len)) return false;
    if (c->crc) c->rx.crc = sn_crc32c_extend(crc, src, len);
    return true;
}

/* A few bytes of a Send that lie in one segment. False: nothing was done, for whatever reason. */
SN_HOT static bool place_few(struct iw_conn *c, const uint8_t *p, uint32_t n) {
    struct iw_rx *rx = &c->rx;
    if (rx->seg.opcode == RDMAP_WRITE || rx->seg.opcode == RDMAP_READ_RESPONSE || n >= SUM_MIN)
        return false;
    const struct tp_sge *s = &rx->recv->sge[rx->recv_at.idx];
    if (n > s->len - rx->recv_at.off ||
        !c->up->copy_to(c->qp, s->token, (uint64_t)(uintptr_t)s->addr + rx->recv_at.off, n, p))
        return false;
    if (c->crc) rx->crc = sn_crc32c_extend(rx->crc, p, n);
    placed(rx, n);
    return true;
}

/* Payload bytes that are in the staging buffer. */
SN_HOT static void place_staged(struct iw_conn *c, const uint8_t *p, uint32_t n) {
    struct iw_rx *rx = &c->rx;
    bool body = !rdmap_op_of(rx->seg.opcode)->payload;
    if (!rx->fault_set && !body && place_few(c, p, n)) return;
    while (n != 0 && !rx->fault_set && !body) {
        struct tp_access acc;
        sn_status st = next_place(c, place_of(rx), rx->seg_off, n, &acc);
        if (st == SN_OK) {
            uint32_t m = (uint32_t)SN_MIN((size_t)n, acc.len);
            if (!copy_staged(c, acc.ptr, p, m)) st = SN_E_FAULT;
            c->up->access_end(&acc);
            if (st == SN_OK) {
                placed(rx, m);
                p += m;
                n -= m;
            }
        }
        if (st != SN_OK) refuse_place(c, st);
    }
    if (n == 0) return;
    if (c->crc) rx->crc = sn_crc32c_extend(rx->crc, p, n);
    if (!rx->fault_set) {
        memcpy(rx->head + rx->head_have, p, n); /* a body; fits, or rdmap_unpack had refused */
        rx->head_have += n;
    }
    rx->seg_off += n; /* also what a refused segment still brings */
}

/* ---- one segment ---- */

SN_HOT static sn_status begin_send(struct iw_conn *c) {
    struct iw_rx *rx = &c->rx;
    if (rx->seg.msn != rx->send_msn) {
        refuse(c, RDMAP_FAULT_MSN, SN_E_WIRE);
        return SN_OK;
    }
    if (rx->seg.mo != (rx->recv ? rx->recv_len : 0)) {
        refuse(c, RDMAP_FAULT_MO, SN_E_WIRE);
        return SN_OK;
    }
    if (!rx->recv) {
        rx->recv = c->up->take_receive(c->qp);
        if (!rx->recv) {
            /* Announce that we wait, then look again: a post in between is not missed. */
            os_u32_store_seqcst(&rx->stalled, 1);
            rx->recv = c->up->take_receive(c->qp);
            if (!rx->recv) return SN_E_AGAIN;
        }
        os_u32_store_relaxed(&rx->stalled, 0);
        rx->recv_len = 0;
        rx->recv_at = (struct iw_place){ 0 };
        move_place(rx, &rx->recv_at, 0);
    }
    if (rx->seg.payload_len > rx->recv->length - rx->recv_len)
        fail_receive(c, RDMAP_FAULT_TOO_LONG, SN_E_MSG_TOO_LONG);
    return SN_OK;
}

static void begin_write(struct iw_conn *c, size_t have) {
    const struct rdmap_segment *seg = &c->rx.seg;
    struct tp_access acc;
    if (seg->payload_len == 0) return; /* RFC 5041 section 5.2: nothing to check */
    if (seg->to + seg->payload_len < seg->to) {
        refuse(c, RDMAP_FAULT_WRITE_WRAP, SN_E_WIRE);
        return;
    }
    if (have >= seg->payload_len) return; /* placing it, which is next, finds out the same */
    sn_status st =
        c->up->access(c->qp, seg->stag, seg->to, seg->payload_len, TP_REMOTE_WRITE, &acc);
    if (st != SN_OK)
        refuse_write(c, st);
    else
        c->up->access_end(&acc);
}

static void sink_of(const struct tp_request *req, uint32_t *stag, uint64_t *to) {
    *stag = req->sge_count && req->sge[0].token ? req->sge[0].token : 1;
    *to = req->sge_count ? (uint64_t)(uintptr_t)req->sge[0].addr : 0;
}

static void begin_response(struct iw_conn *c) {
    struct iw_rx *rx = &c->rx;
    if (!rx->read) {
        os_lock_enter(&c->tx_lock);
        rx->read = c->tx.reads.head;
        os_lock_leave(&c->tx_lock);
        if (!rx->read) {
            refuse(c, RDMAP_FAULT_OPCODE, SN_E_WIRE);
            return;
        }
        rx->read->tp_u32[0] = 0;
        rx->read_at = (struct iw_place){ 0 };
        move_place(rx, &rx->read_at, 0);
    }
    uint32_t done = rx->read->tp_u32[0], left = rx->read->length - done, stag;
    uint64_t to;
    sink_of(rx->read, &stag, &to);
    if (rx->seg.payload_len != 0 && rx->seg.stag != stag)
        refuse(c, RDMAP_FAULT_RESPONSE_STAG, SN_E_WIRE);
    else if (rx->seg.payload_len > left || (rx->seg.last && rx->seg.payload_len != left) ||
             (rx->seg.payload_len != 0 && rx->seg.to != to + done))
        refuse(c, RDMAP_FAULT_RESPONSE_BOUNDS, SN_E_WIRE);
}

/* have: bytes that were read behind the head. SN_E_AGAIN: a Send has to wait for a receive. Faults
 * are noted in rx. */
SN_HOT static sn_status begin_segment(struct iw_conn *c, size_t have) {
    switch (c->rx.seg.opcode) {
    case RDMAP_SEND:
    case RDMAP_SEND_INV:
    case RDMAP_SEND_SE:
    case RDMAP_SEND_SE_INV:
        return begin_send(c);
    case RDMAP_WRITE:
        begin_write(c, have);
        return SN_OK;
    case RDMAP_READ_RESPONSE:
        begin_response(c);
        return SN_OK;
    case RDMAP_READ_REQUEST:
        if (c->rx.seg.msn != c->rx.read_msn) refuse(c, RDMAP_FAULT_MSN, SN_E_WIRE);
        return SN_OK;
    case RDMAP_TERMINATE:
        return SN_OK;
    default: /* Immediate and Atomic: not offered */
        refuse(c, RDMAP_FAULT_OPCODE, SN_E_WIRE);
        return SN_OK;
    }
}

SN_HOT static void end_send(struct iw_conn *c) {
    struct iw_rx *rx = &c->rx;
    const struct rdmap_op *op = rdmap_op_of(rx->seg.opcode);
    rx->recv_len += rx->seg.payload_len;
    if (!rx->seg.last) return;
    uint32_t flags = op->solicited ? TP_RECV_SOLICITED : 0;
    if (op->invalidates) {
        sn_status st = c->up->remote_invalidate(c->qp, rx->seg.stag);
        if (st != SN_OK) {
            refuse(c, st == SN_E_PD ? RDMAP_FAULT_INVALIDATE_STREAM : RDMAP_FAULT_INVALIDATE_STAG,
                   SN_E_WIRE);
            fail_with_fault(c, SN_E_WIRE, &rx->fault);
            return;
        }
        flags |= TP_RECV_INVALIDATED;
    }
    struct tp_receive *recv = rx->recv;
    rx->recv = NULL;
    rx->send_msn++;
    c->last_was_write = false;
    os_u32_store_release(&c->processed, os_u32_load_relaxed(&c->processed) + 1);
    c->up->receive_done(c->qp, recv, SN_OK, rx->recv_len, flags, rx->seg.stag);
}

/* A SoftND peer's way to say what it is and how far it has got. */
static bool is_mark(const struct rdmap_segment *seg) {
    return seg->opcode == RDMAP_WRITE && seg->payload_len == 0 && seg->stag == IW_MARK_STAG &&
           (seg->to & IW_MARK_VERSION_MASK) == IW_MARK_VERSION;
}

/* It has said so; a responder says it too, before anything else of ours leaves. tx_lock held. */
static void take_mark(struct iw_conn *c) {
    if (iw_peer(c) == IW_PEER_SOFTND) return;
    if (!c->active) {
        os_u32_store_relaxed(&c->hello_due, 1);
        c->report_now = true;
    }
    uint8_t head[RDMAP_HEAD_TAGGED];
    rdmap_write_pack(head, true, IW_MARK_STAG, IW_MARK_VERSION, 0);
    memcpy(c->rx.mark, head, sizeof c->rx.mark); /* all but the count */
    iw_peer_decided(c, IW_PEER_SOFTND);
}

static void end_write(struct iw_conn *c) {
    const struct rdmap_segment *seg = &c->rx.seg;
    if (is_mark(seg)) {
        os_lock_enter(&c->tx_lock);
        take_mark(c);
        bool sane = iw_confirmed(c, (uint32_t)seg->to);
        os_lock_leave(&c->tx_lock);
        if (!sane) {
            struct rdmap_fault f = rdmap_fault_make(RDMAP_FAULT_LOCAL_STREAM);
            fail_with_fault(c, SN_E_WIRE, &f);
        }
        return;
    }
    c->last_was_write = true;
    if (seg->last) os_u32_store_release(&c->processed, os_u32_load_relaxed(&c->processed) + 1);
}

static void end_read_request(struct iw_conn *c) {
    struct rdmap_read_request rr;
    sn_status st = rdmap_read_request_unpack(c->rx.head + MPA_LEN_LEN + c->rx.seg.header_len,
                                             c->rx.seg.payload_len, &rr);
    bool full = st != SN_OK;
    os_lock_enter(&c->tx_lock);
    struct iw_tx *tx = &c->tx;
    if (!full && !tx->irq) {
        tx->irq_cap = SN_MAX(c->ird, 1);
        tx->irq = os_zalloc(tx->irq_cap * sizeof *tx->irq);
    }
    full = full || !tx->irq || tx->irq_count >= SN_MAX(c->ird, rr.size == 0 ? 1u : 0u) ||
           tx->irq_count == tx->irq_cap;
    if (!full) {
        tx->irq[(tx->irq_head + tx->irq_count) % tx->irq_cap] =
            (struct iw_read_in){ .rr = rr, .msn = c->rx.seg.msn };
        tx->irq_count++;
    }
    os_lock_leave(&c->tx_lock);
    c->rx.read_msn++;
    if (full) {
        struct rdmap_fault f = rdmap_fault_make(RDMAP_FAULT_READ_BEYOND_IRD);
        fail_with_fault(c, SN_E_WIRE, &f);
    }
}

static void end_response(struct iw_conn *c) {
    struct iw_rx *rx = &c->rx;
    rx->read->tp_u32[0] += rx->seg.payload_len;
    if (!rx->seg.last) return;
    os_lock_enter(&c->tx_lock);
    struct tp_request *req = iw_fifo_pop(&c->tx.reads);
    c->tx.reads_out--;
    os_lock_leave(&c->tx_lock);
    rx->read = NULL;
    if (req != &c->rtr_read_request) c->up->request_done(c->qp, req, SN_OK);
}

/* What a Terminate says of our requests. */
enum subject { ABOUT_ANY, ABOUT_SEND, ABOUT_WRITE, ABOUT_READ, ABOUT_NONE };

/* Remote protection errors are about Reads, but for the last of these. */
#define CODE_READ_BOUNDS 0x01
#define CODE_NOT_INVALIDATED 0x09

/* The header that it quotes tells; without one, what such an error can be about. */
static enum subject subject_of(const struct terminate *t) {
    if (t->has_header) {
        switch (rdmap_opcode_of(t->header.ulp)) {
        case RDMAP_WRITE:
            return ABOUT_WRITE;
        case RDMAP_READ_REQUEST:
            return ABOUT_READ;
        case RDMAP_READ_RESPONSE: /* an answer of ours, no request */
            return ABOUT_NONE;
        case RDMAP_SEND:
        case RDMAP_SEND_INV:
        case RDMAP_SEND_SE:
        case RDMAP_SEND_SE_INV:
            return ABOUT_SEND;
        default:
            return ABOUT_ANY;
        }
    }
    if (t->layer == TERMINATE_LAYER_RDMAP && t->type == 1)
        return t->code == CODE_NOT_INVALIDATED ? ABOUT_SEND : ABOUT_READ;
    if (t->layer == TERMINATE_LAYER_DDP && t->type == 1) return ABOUT_WRITE;
    if (t->layer == TERMINATE_LAYER_DDP && t->type == 2 && (t->code == 2 || t->code == 5))
        return ABOUT_SEND;
    return ABOUT_ANY;
}

/* What our request fails with. */
static sn_status outcome_of(const struct terminate *t, enum subject about) {
    if (about == ABOUT_READ && t->layer == TERMINATE_LAYER_RDMAP && t->type == 1)
        return t->code == CODE_READ_BOUNDS ? SN_E_REMOTE_RANGE : SN_E_RIGHTS;
    if (about == ABOUT_WRITE && t->layer == TERMINATE_LAYER_DDP && t->type == 1) return SN_E_RIGHTS;
    if (about == ABOUT_SEND && t->layer == TERMINATE_LAYER_DDP && t->type == 2) {
        if (t->code == 2) return SN_E_TIMEOUT;
        if (t->code == 5) return SN_E_PEER_MSG_TOO_LONG;
    }
    return SN_E_REMOTE;
}

/* The oldest Send or Write that the peer has seen something of; the one that is still being sent
 * if all others are confirmed. */
static struct tp_request *oldest_transfer(const struct iw_tx *tx) {
    if (tx->unconfirmed.head) return tx->unconfirmed.head;
    struct tp_request *sending = tx->q_count ? tx->q[tx->q_head % IW_TXQ] : NULL;
    bool begun = sending && (tx->q_sent != 0 || tx->part.active);
    return begun && sending->op != TP_OP_READ ? sending : NULL;
}

/* Takes it out. Of one that is being sent nothing more will be: the peer listens no longer. */
static struct tp_request *take_oldest_transfer(struct iw_tx *tx) {
    struct tp_request *req = oldest_transfer(tx);
    if (req && req != tx->unconfirmed.head) {
        tx->part.active = false;
        tx->q_count = 0;
    } else {
        iw_fifo_pop(&tx->unconfirmed);
    }
    return req;
}

/* Which of our requests a Terminate is about, and what became of it. The peer's reports have
 * completed everything before it. */
static void end_terminate(struct iw_conn *c) {
    struct terminate t;
    struct tp_request *victim = NULL;
    if (terminate_unpack(c->rx.head + MPA_LEN_LEN + c->rx.seg.header_len, c->rx.seg.payload_len,
                         &t) != SN_OK) {
        fail_with_fault(c, SN_E_WIRE, NULL);
        return;
    }
    SN_LOG(SN_LOG_INFO, "iwarp: the peer terminated the connection: %s",
           terminate_text(t.layer, t.type, t.code));
    enum subject about = subject_of(&t);
    os_lock_enter(&c->tx_lock);
    struct tp_request *first = oldest_transfer(&c->tx);
    bool write = first && first->op == TP_OP_WRITE;
    if (about == ABOUT_READ) {
        victim = iw_fifo_pop(&c->tx.reads);
        if (victim == &c->rtr_read_request) victim = NULL;
    } else if (first && (about == ABOUT_ANY || about == (write ? ABOUT_WRITE : ABOUT_SEND))) {
        victim = take_oldest_transfer(&c->tx);
    }
    if (victim) c->up->request_done(c->qp, victim, outcome_of(&t, about));
    iw_fail(c, SN_E_REMOTE, NULL, NULL);
    os_lock_leave(&c->tx_lock);
}

/* The first FPDU of the initiator is here and valid: now both sides may talk. */
static void open_stream(struct iw_conn *c) {
    os_lock_enter(&c->tx_lock);
    if (iw_state(c) == IW_WAIT_FPDU) {
        iw_set_state(c, IW_OPEN);
        iw_disarm(c, &c->timer);
        /* Under this lock still: a request of ours may leave as soon as it is free. */
        if (!c->rx.fault_set && is_mark(&c->rx.seg)) take_mark(c);
        if (!c->established) {
            c->established = true;
            tp_events_add(&c->events, TP_EV_ESTABLISHED, SN_OK);
        }
    }
    os_lock_leave(&c->tx_lock);
}

/* What the sender says of the rest of its message. */
static void note_ahead(struct iw_conn *c, const uint8_t *trail) {
    struct iw_rx *rx = &c->rx;
    rx->ahead = (struct mpa_foretold){ 0 };
    if (rx->seg.last)
        rx->misled = false;
    else if (!c->crc && iw_peer(c) == IW_PEER_SOFTND)
        rx->ahead = mpa_foretold_unpack(trail + mpa_pad(rx->ulpdu_len));
}

SN_HOT static void end_segment(struct iw_conn *c, const uint8_t *trail) {
    struct iw_rx *rx = &c->rx;
    rx->phase = IW_RX_HEAD;
    if (c->crc && !mpa_trailer_good(trail, rx->ulpdu_len, rx->crc)) {
        struct rdmap_fault f = rdmap_fault_make(RDMAP_FAULT_CRC);
        SN_LOG(SN_LOG_INFO, "iwarp: inbound segment refused: %s",
               rdmap_fault_text(RDMAP_FAULT_CRC));
        fail_with_fault(c, SN_E_WIRE, &f);
        return;
    }
    if (iw_state(c) == IW_WAIT_FPDU) open_stream(c);
    if (rx->fault_set) {
        fail_with_fault(c, rx->fault_status, &rx->fault);
        return;
    }
    if (iw_peer(c) == IW_PEER_UNKNOWN && !is_mark(&rx->seg)) {
        os_lock_enter(&c->tx_lock);
        iw_peer_decided(c, IW_PEER_FOREIGN);
        os_lock_leave(&c->tx_lock);
    }
    note_ahead(c, trail);
    switch (rx->seg.opcode) {
    case RDMAP_WRITE:
        end_write(c);
        break;
    case RDMAP_READ_REQUEST:
        end_read_request(c);
        break;
    case RDMAP_READ_RESPONSE:
        end_response(c);
        break;
    case RDMAP_TERMINATE:
        end_terminate(c);
        break;
    default:
        end_send(c);
        break;
    }
    rx->head_have = 0;
}

/* ---- bytes ---- */

/* Octets of head that must be there before it can be judged. */
static uint32_t head_need(const struct iw_rx *rx) {
    if (rx->head_have < MPA_LEN_LEN) return MPA_LEN_LEN;
    uint32_t ulpdu = ((uint32_t)rx->head[0] << 8) | rx->head[1];
    if (ulpdu == 0) return MPA_LEN_LEN; /* what follows is PAD */
    if (rx->head_have == MPA_LEN_LEN) return MPA_LEN_LEN + 1;
    return MPA_LEN_LEN + SN_MIN(ulpdu, (uint32_t)ddp_header_len(rx->head[2]));
}

/* An initiator may think for long before its first FPDU, but not within it. */
static void hurry_first(struct iw_conn *c) {
    if (iw_state(c) == IW_WAIT_FPDU && !c->established) iw_arm(c, &c->timer, c->cfg.request_ns);
}

/* Takes a report that is there as a whole, known by its first bytes. One that is wrong is left to
 * the long way, as all else. */
SN_HOT static bool take_report(struct iw_conn *c, const uint8_t *p, size_t n) {
    struct iw_rx *rx = &c->rx;
    if (n < MARK_LEN || memcmp(p, rx->mark, sizeof rx->mark) != 0 || iw_state(c) != IW_OPEN ||
        iw_peer(c) != IW_PEER_SOFTND)
        return false;
    if (c->crc && !mpa_trailer_good(p + RDMAP_HEAD_TAGGED, RDMAP_HEAD_TAGGED - MPA_LEN_LEN,
                                    sn_crc32c_extend(SN_CRC32C_INIT, p, RDMAP_HEAD_TAGGED)))
        return false;
    const uint8_t *count = p + sizeof rx->mark;
    os_lock_enter(&c->tx_lock);
    bool sane = iw_confirmed(c, (uint32_t)count[0] << 24 | (uint32_t)count[1] << 16 |
                                    (uint32_t)count[2] << 8 | count[3]);
    os_lock_leave(&c->tx_lock);
    return sane;
}

/* Collects the head; true when it is whole and decoded. */
SN_HOT static bool take_head(struct iw_conn *c, const uint8_t **p, size_t *n) {
    struct iw_rx *rx = &c->rx;
    if (rx->head_have == 0) {
        hurry_first(c);
        if (SN_LIKELY(*n >= RDMAP_HEAD_UNTAGGED)) { /* no header is longer */
            memcpy(rx->head, *p, RDMAP_HEAD_UNTAGGED);
            rx->head_have = MPA_LEN_LEN + 1;
            uint32_t need = head_need(rx);
            rx->head_have = SN_MIN(need, (uint32_t)RDMAP_HEAD_UNTAGGED);
            *p += rx->head_have;
            *n -= rx->head_have;
        }
    }
    for (uint32_t need; rx->head_have < (need = head_need(rx));) {
        uint32_t m = (uint32_t)SN_MIN(*n, (size_t)(need - rx->head_have));
        if (m == 0) return false;
        memcpy(rx->head + rx->head_have, *p, m);
        rx->head_have += m;
        *p += m;
        *n -= m;
    }
    rx->ulpdu_len = (uint16_t)((rx->head[0] << 8) | rx->head[1]);
    rx->seg_off = rx->trail_have = 0;
    rx->fault_set = false;
    if (c->crc) rx->crc = sn_crc32c_extend(SN_CRC32C_INIT, rx->head, rx->head_have);
    struct rdmap_fault fault;
    if (rdmap_unpack(rx->head + MPA_LEN_LEN, rx->head_have - MPA_LEN_LEN, rx->ulpdu_len, &rx->seg,
                     &fault) != SN_OK) {
        rx->fault_set = true;
        rx->fault = fault;
        rx->fault_status = SN_E_WIRE;
        rx->seg = (struct rdmap_segment){ .opcode = RDMAP_TERMINATE };
        rx->seg.payload_len = rx->ulpdu_len - (rx->head_have - MPA_LEN_LEN);
    }
    return true;
}

static bool running(const struct iw_conn *c) {
    enum iw_state s = iw_state(c);
    return s == IW_OPEN || s == IW_WAIT_FPDU;
}

/* Room for n more held bytes; NULL if there is no memory. */
static uint8_t *held_room(struct iw_rx *rx, size_t n) {
    uint8_t *bigger = os_zalloc(rx->held_len + n);
    if (!bigger) return NULL;
    if (rx->held_len) memcpy(bigger, rx->held, rx->held_len);
    os_free(rx->held);
    rx->held = bigger;
    return bigger + rx->held_len;
}

sn_status iw_rx_hold_more(struct iw_conn *c) {
    uint8_t stage[STAGE_LARGE];
    struct iw_rx *rx = &c->rx;
    struct os_iov iov = { stage, SN_MIN(sizeof stage,
                                        IW_HELD_MAX - SN_MIN(rx->held_len, (size_t)IW_HELD_MAX)) };
    size_t got = 0;
    if (iov.len == 0) return SN_E_AGAIN;
    sn_status st = iw_conn_readv(c, &iov, 1, &got);
    if (st != SN_OK) return st;
    uint8_t *room = held_room(rx, got);
    if (!room) return SN_E_NOMEM;
    memcpy(room, stage, got);
    rx->held_len += got;
    return SN_OK;
}

/* The stream cannot go on, by no fault of the peer. */
static void fail_here(struct iw_conn *c, sn_status st) {
    struct rdmap_fault f = rdmap_fault_make(RDMAP_FAULT_LOCAL_STREAM);
    fail_with_fault(c, st, &f);
}

/* A Send has to wait; the rest of what was read waits behind it. */
static void stall(struct iw_conn *c, const uint8_t *p, size_t n) {
    struct iw_rx *rx = &c->rx;
    if (n != 0) {
        uint8_t *room = held_room(rx, n);
        if (!room) {
            fail_here(c, SN_E_NOMEM);
            return;
        }
        memcpy(room, p, n);
        rx->held_len += n;
    }
    if (!c->patient)
        iw_arm(c, &c->timer, c->cfg.rnr_ns);
    else
        iw_disarm(c, &c->timer); /* if this is the first FPDU, it is not its sender who is slow */
    os_lock_enter(&c->tx_lock);
    iw_set_interest(c);
    os_lock_leave(&c->tx_lock);
}

void iw_rx_read_ahead(struct iw_conn *c) {
    sn_status st = iw_rx_hold_more(c);
    if (st == SN_E_AGAIN) return;
    os_lock_enter(&c->tx_lock);
    if (st == SN_E_EOF) {
        /* What it sent before may still be wanted; nobody waits for that for ever. */
        c->rx.eof = true;
        if (c->patient) iw_arm(c, &c->timer, c->cfg.rnr_ns);
    } else if (st != SN_OK) {
        iw_fail(c, SN_E_PEER_GONE, NULL, NULL);
    }
    if (iw_state(c) != IW_DEAD) iw_set_interest(c);
    os_lock_leave(&c->tx_lock);
}

/* After the head: payload, trailer or nothing to wait for. */
static void enter_payload(struct iw_rx *rx) {
    rx->phase = rx->seg.payload_len ? IW_RX_PAYLOAD : IW_RX_TRAILER;
}

SN_HOT static void consume(struct iw_conn *c, const uint8_t *p, size_t n) {
    struct iw_rx *rx = &c->rx;
    while (n != 0 && running(c)) {
        switch (rx->phase) {
        case IW_RX_HEAD:
            if (rx->head_have == 0 && take_report(c, p, n)) {
                p += MARK_LEN;
                n -= MARK_LEN;
                break;
            }
            if (!take_head(c, &p, &n)) return;
            if (!rx->fault_set && begin_segment(c, n) == SN_E_AGAIN) {
                stall(c, p, n);
                return;
            }
            enter_payload(rx);
            break;
        case IW_RX_PAYLOAD: {
            uint32_t m = (uint32_t)SN_MIN(n, (size_t)(rx->seg.payload_len - rx->seg_off));
            place_staged(c, p, m);
            p += m;
            n -= m;
            if (rx->seg_off == rx->seg.payload_len) rx->phase = IW_RX_TRAILER;
            break;
        }
        case IW_RX_TRAILER: {
            uint32_t need = (uint32_t)mpa_pad(rx->ulpdu_len) + MPA_CRC_LEN;
            uint32_t m = (uint32_t)SN_MIN(n, (size_t)(need - rx->trail_have));
            const uint8_t *trail = p;
            if (m != need) {
                memcpy(rx->trail + rx->trail_have, p, m);
                trail = rx->trail;
            }
            rx->trail_have += m;
            p += m;
            n -= m;
            if (rx->trail_have == need) end_segment(c, trail);
            break;
        }
        }
    }
}

struct crc_job {
    uint32_t crc;
    const struct os_iov *iov;
    size_t bytes;
};

static void crc_placed(void *arg) {
    struct crc_job *job = arg;
    size_t left = job->bytes;
    for (const struct os_iov *v = job->iov; left != 0; v++) {
        size_t m = SN_MIN(left, v->len);
        job->crc = sn_crc32c_extend(job->crc, v->base, m);
        left -= m;
    }
}

/* Fills iov with places for the rest of this segment's payload. */
static size_t direct_places(struct iw_conn *c, struct os_iov *iov, struct tp_access *acc,
                            size_t *total) {
    struct iw_rx *rx = &c->rx;
    struct iw_place at = *place_of(rx);
    uint32_t seg_off = rx->seg_off;
    size_t count = 0;
    *total = 0;
    while (count < DIRECT_PIECES && seg_off < rx->seg.payload_len) {
        size_t want = rx->seg.payload_len - seg_off;
        sn_status st = next_place(c, &at, seg_off, want, &acc[count]);
        if (st != SN_OK) {
            if (count == 0) refuse_place(c, st);
            break;
        }
        size_t m = SN_MIN(want, acc[count].len);
        iov[count] = (struct os_iov){ acc[count].ptr, m };
        count++;
        *total += m;
        seg_off += (uint32_t)m;
        move_place(rx, &at, (uint32_t)m);
    }
    return count;
}

static bool wants_direct(const struct iw_rx *rx) {
    return rx->phase == IW_RX_PAYLOAD && !rx->fault_set &&
           rx->seg.payload_len - rx->seg_off >= DIRECT_MIN && rdmap_op_of(rx->seg.opcode)->payload;
}

/* What readv put in place: counted, and added to the CRC. */
static void account_direct(struct iw_conn *c, const struct os_iov *iov, size_t bytes) {
    struct iw_rx *rx = &c->rx;
    if (bytes == 0) return;
    if (c->crc) {
        struct crc_job job = { rx->crc, iov, bytes };
        if (!os_guarded_call(crc_placed, &job)) {
            refuse_place(c, SN_E_FAULT);
            rx->seg_off += (uint32_t)bytes;
            goto counted;
        }
        rx->crc = job.crc;
    }
    for (size_t left = bytes; left != 0; iov++) {
        size_t m = SN_MIN(left, iov->len);
        placed(rx, (uint32_t)m);
        left -= m;
    }
counted:
    if (rx->seg_off == rx->seg.payload_len) rx->phase = IW_RX_TRAILER;
}

static void stream_ended(struct iw_conn *c, sn_status st) {
    bool clean = st == SN_E_EOF && c->rx.phase == IW_RX_HEAD && c->rx.head_have == 0 &&
                 !c->rx.recv && !c->rx.read; /* not inside an FPDU, not inside a message */
    c->rx.eof = true;
    os_lock_enter(&c->tx_lock);
    iw_fail(c, clean ? SN_OK : SN_E_PEER_GONE, NULL, NULL);
    os_lock_leave(&c->tx_lock);
}

/* One read and what it brought. False when there is no more for now. */
static inline bool read_some(struct iw_conn *c, size_t *budget, uint8_t *stage, size_t stage_len) {
    struct iw_rx *rx = &c->rx;
    struct os_iov iov[DIRECT_PIECES + 1];
    struct tp_access acc[DIRECT_PIECES];
    uint8_t *to = stage;
    size_t count = 0, direct = 0, got = 0;
    bool large = wants_direct(rx);
    if (large && (c->crc || rx->streams) && !rx->bounce)
        rx->bounce = os_zalloc(c->crc ? STAGE_BOUNCE : STAGE_AHEAD);
    if (large && c->crc && rx->bounce) {
        /* In its place it may be changed by the application or by another peer before its CRC is
         * known; that must not end the connection. */
        to = rx->bounce;
        stage_len = STAGE_BOUNCE;
    } else if (large) {
        count = direct_places(c, iov, acc, &direct);
        if (direct && rx->streams && rx->bounce) {
            /* A read for each FPDU, and what answers it, costs more than to copy each second. */
            to = rx->bounce;
            stage_len = STAGE_AHEAD;
        } else if (direct) {
            stage_len = STAGE_SMALL;
        }
    }
    iov[count] = (struct os_iov){ to, stage_len };
    sn_status st = iw_conn_readv(c, iov, count + 1, &got);
    if (st != SN_OK && st != SN_E_FAULT) got = 0;
    account_direct(c, iov, SN_MIN(got, direct));
    for (size_t i = 0; i < count; i++)
        c->up->access_end(&acc[i]);
    if (st == SN_E_FAULT) refuse_place(c, SN_E_FAULT);
    if (got > direct) consume(c, to, got - direct);
    if (st == SN_E_AGAIN) return false;
    if (st != SN_OK && st != SN_E_FAULT) {
        stream_ended(c, st);
        return false;
    }
    *budget -= SN_MIN(*budget, got);
    return st == SN_E_FAULT || got == direct + stage_len ||
           (stage_len == STAGE_AHEAD && got >= LONG_TURN);
}

/* A system call leaves no translation of an address behind on some machines, so each page of the
 * stack that the way of a single small message touches is felt. */
SN_HOT static SN_NOINLINE bool read_little(struct iw_conn *c, size_t *budget) {
    uint8_t stage[STAGE_MEDIUM];
    return read_some(c, budget, stage, sizeof stage);
}

static SN_NOINLINE bool read_much(struct iw_conn *c, size_t *budget) {
    uint8_t stage[STAGE_LARGE];
    return read_some(c, budget, stage, sizeof stage);
}

/* ---- reading ahead ---- */

/* An FPDU that is foreseen: what lies in front of its payload, and where that goes. */
struct foreseen {
    uint8_t gap[MPA_TRAILER_MAX + RDMAP_HEAD_UNTAGGED]; /* the trailer before it, and its head */
    uint8_t head[RDMAP_HEAD_UNTAGGED];                  /* how that is to read */
    uint32_t trail_len, gap_len, payload;
    size_t iov; /* the gap's, which its places follow */
};

struct ahead {
    struct os_iov iov[AHEAD_IOV];
    struct tp_access acc[AHEAD_IOV];
    size_t iov_count, acc_count;
    uint32_t present; /* payload of the present FPDU */
    size_t count;     /* of those foreseen */
    struct foreseen fpdu[AHEAD_FPDUS];
    uint8_t stage[STAGE_SMALL];
};

/* How the message goes on behind the present FPDU: `bytes` of payload, `size` in each FPDU but
 * perhaps the last. A SoftND peer has said so. Of the answer to a Read the length is known, and
 * that others cut it evenly is worth a try. Nothing but where to read to depends on it. */
static bool foresee(const struct iw_conn *c, uint32_t *size, uint32_t *bytes) {
    const struct iw_rx *rx = &c->rx;
    if (c->crc || rx->misled || !wants_direct(rx) || rx->seg.last) return false;
    *size = rx->seg.payload_len;
    if (iw_peer(c) == IW_PEER_SOFTND) {
        if (rx->ahead.count < 2 || rx->ahead.size != *size) return false;
        *bytes = *size * (rx->ahead.count - 1u);
        return true;
    }
    if (rx->seg.opcode != RDMAP_READ_RESPONSE || *size < AHEAD_MIN) return false;
    *bytes = rx->read->length - rx->read->tp_u32[0] - *size;
    return true;
}

/* Payload that what is being received can still take behind the present segment, at most. */
static uint32_t room_ahead(const struct iw_rx *rx) {
    switch (rx->seg.opcode) {
    case RDMAP_WRITE:
        return UINT32_MAX; /* the region's bounds tell */
    case RDMAP_READ_RESPONSE:
        return rx->read->length - rx->read->tp_u32[0] - rx->seg.payload_len;
    default:
        return rx->recv->length - rx->recv_len - rx->seg.payload_len;
    }
}

/* Places for len bytes, off behind where the present segment begins. False, and none, if not all of
 * them have one. */
static bool places_ahead(struct iw_conn *c, struct ahead *a, struct iw_place *at, uint32_t off,
                         uint32_t len) {
    const size_t old_iov = a->iov_count, old_acc = a->acc_count;
    while (len != 0) {
        struct tp_access *acc = &a->acc[a->acc_count];
        if (a->iov_count == AHEAD_IOV - 1 || next_place(c, at, off, len, acc) != SN_OK) {
            a->iov_count = old_iov;
            while (a->acc_count > old_acc)
                c->up->access_end(&a->acc[--a->acc_count]);
            return false;
        }
        uint32_t m = (uint32_t)SN_MIN((size_t)len, acc->len);
        a->acc_count++;
        a->iov[a->iov_count++] = (struct os_iov){ acc->ptr, m };
        move_place(&c->rx, at, m);
        off += m;
        len -= m;
    }
    return true;
}

/* Foresees one more FPDU, `off` behind where the present segment begins, behind one with a ULPDU of
 * this length. */
static bool add_foreseen(struct iw_conn *c, struct ahead *a, struct iw_place *at, uint32_t off,
                         uint32_t payload, bool last, uint32_t ulpdu_len) {
    const struct rdmap_segment *seg = &c->rx.seg;
    struct foreseen *f = &a->fpdu[a->count];
    if (a->count == AHEAD_FPDUS || a->iov_count >= AHEAD_IOV - 2) return false;
    size_t head_len = seg->tagged ? rdmap_tagged_pack(f->head, seg->opcode, last, seg->stag,
                                                      seg->to + off, payload)
                                  : rdmap_send_pack(f->head, seg->opcode, last, seg->stag, seg->msn,
                                                    seg->mo + off, payload);
    f->trail_len = (uint32_t)mpa_pad(ulpdu_len) + MPA_CRC_LEN;
    f->gap_len = f->trail_len + (uint32_t)head_len;
    f->payload = payload;
    f->iov = a->iov_count;
    a->iov[a->iov_count++] = (struct os_iov){ f->gap, f->gap_len };
    if (!places_ahead(c, a, at, off, payload)) {
        a->iov_count--;
        return false;
    }
    a->count++;
    return true;
}

/* Places for what is left of the present FPDU, and for as many that follow as have one. False if
 * the present one has none for all of it. */
static bool plan_ahead(struct iw_conn *c, struct ahead *a, uint32_t size, uint32_t bytes) {
    const struct iw_rx *rx = &c->rx;
    struct iw_place at = *place_of(&c->rx);
    uint32_t off = rx->seg.payload_len, ulpdu_len = rx->ulpdu_len;
    a->iov_count = a->acc_count = a->count = 0;
    a->present = off - rx->seg_off;
    if (!places_ahead(c, a, &at, rx->seg_off, a->present)) return false;
    bytes = SN_MIN(bytes, room_ahead(rx));
    while (bytes != 0) {
        uint32_t payload = SN_MIN(size, bytes);
        if (!add_foreseen(c, a, &at, off, payload, payload == bytes, ulpdu_len)) break;
        ulpdu_len = rx->seg.header_len + payload;
        off += payload;
        bytes -= payload;
    }
    a->iov[a->iov_count++] = (struct os_iov){ a->stage, sizeof a->stage };
    return true;
}

/* Payload that lies in the places from v on: counted. What a refused segment brings is, too. */
static void account_ahead(struct iw_conn *c, const struct os_iov *v, size_t bytes) {
    struct iw_rx *rx = &c->rx;
    for (; bytes != 0; v++) {
        size_t m = SN_MIN(bytes, v->len);
        if (rx->fault_set)
            rx->seg_off += (uint32_t)m;
        else
            placed(rx, (uint32_t)m);
        bytes -= m;
    }
    if (rx->seg_off == rx->seg.payload_len) rx->phase = IW_RX_TRAILER;
}

/* Bytes of the stream that were read into the pieces from v on, where they do not belong. */
static uint8_t *take_back(const struct os_iov *v, size_t bytes, sn_status *st) {
    uint8_t *copy = os_zalloc(bytes), *p = copy;
    *st = copy ? SN_OK : SN_E_NOMEM;
    for (; *st == SN_OK && bytes != 0; v++) {
        size_t m = SN_MIN(bytes, v->len);
        if (!os_guarded_copy(p, v->base, m)) *st = SN_E_FAULT;
        p += m;
        bytes -= m;
    }
    return copy;
}

/* What a read brought is looked at in the order of the stream, as ever; only payload whose head is
 * as foreseen is in its place already. Nothing of the application is held meanwhile. */
static void took_ahead(struct iw_conn *c, struct ahead *a, size_t got) {
    struct iw_rx *rx = &c->rx;
    size_t good = 0, now = SN_MIN(got, (size_t)a->present), left = got - now;
    const struct foreseen *f = a->fpdu;
    for (; good < a->count && left >= f->gap_len; good++, f++) {
        if (memcmp(f->gap + f->trail_len, f->head, f->gap_len - f->trail_len) != 0) break;
        left -= f->gap_len;
        left -= SN_MIN(left, (size_t)f->payload);
    }
    uint8_t *copy = NULL;
    sn_status st = SN_OK;
    bool misled = good < a->count && left >= f->gap_len;
    if (misled) copy = take_back(&a->iov[f->iov], left, &st);
    while (a->acc_count != 0)
        c->up->access_end(&a->acc[--a->acc_count]);

    account_ahead(c, a->iov, now);
    got -= now;
    for (f = a->fpdu; f < a->fpdu + good; f++) {
        consume(c, f->gap, f->gap_len);
        if (!running(c)) break;
        SN_ASSERT(rx->phase == IW_RX_PAYLOAD && rx->seg_off == 0); /* its head was compared */
        now = SN_MIN(got - f->gap_len, (size_t)f->payload);
        account_ahead(c, &a->iov[f->iov + 1], now);
        got -= f->gap_len + now;
    }
    if (misled) rx->misled = true;
    if (misled && st == SN_OK)
        consume(c, copy, left);
    else if (misled && running(c))
        fail_here(c, st);
    else
        consume(c, good < a->count ? f->gap : a->stage, left);
    os_free(copy);
}

/* One read of several FPDUs, each into its place. False when there is no more for now. */
static SN_NOINLINE bool read_ahead(struct iw_conn *c, size_t *budget, uint32_t size,
                                   uint32_t bytes) {
    struct ahead a;
    size_t got = 0;
    if (!plan_ahead(c, &a, size, bytes)) return read_much(c, budget);
    sn_status st = iw_conn_readv(c, a.iov, a.iov_count, &got);
    if (st == SN_OK) {
        took_ahead(c, &a, got);
        *budget -= SN_MIN(*budget, got);
        return got >= LONG_TURN;
    }
    while (a.acc_count != 0)
        c->up->access_end(&a.acc[--a.acc_count]);
    if (st == SN_E_FAULT) {
        c->rx.misled = true; /* the ordinary way finds out whose place it was */
        return true;
    }
    if (st != SN_E_AGAIN) stream_ended(c, st);
    return false;
}

SN_HOT bool iw_rx_progress(struct iw_conn *c) {
    size_t budget = BURST_BYTES;
    struct iw_rx *rx = &c->rx;
    if (os_u32_load_relaxed(&rx->stalled)) return false;
    while (budget != 0 && running(c) && !os_u32_load_relaxed(&rx->stalled)) {
        if (rx->held_len) {
            uint8_t *held = rx->held;
            size_t len = rx->held_len;
            rx->held = NULL;
            rx->held_len = 0;
            consume(c, held, len);
            os_free(held);
            continue;
        }
        uint32_t size, bytes;
        bool more = !rx->much                   ? read_little(c, &budget)
                    : foresee(c, &size, &bytes) ? read_ahead(c, &budget, size, bytes)
                                                : read_much(c, &budget);
        if (!more) break;
        rx->much = true;
    }
    rx->much = BURST_BYTES - budget >= STAGE_MEDIUM;
    /* The sooner its sender may let go of the bytes, the faster a stream is. */
    rx->streams = BURST_BYTES - budget >= LONG_TURN && running(c);
    if (rx->streams) os_sock_ack_now(c->watch.sock);
    return budget != BURST_BYTES;
}

/* A receive was posted: the Send that waited goes on. */
void iw_rx_resume(struct iw_conn *c) {
    struct iw_rx *rx = &c->rx;
    if (!os_u32_load_relaxed(&rx->stalled) || !running(c)) return;
    if (begin_segment(c, 0) == SN_E_AGAIN) return;
    os_u32_store_relaxed(&rx->stalled, 0);
    enter_payload(rx);
    iw_disarm(c, &c->timer);
    hurry_first(c);
    os_lock_enter(&c->tx_lock);
    iw_set_interest(c);
    os_lock_leave(&c->tx_lock);
    iw_rx_progress(c);
}

bool iw_rx_stall_over(struct iw_conn *c) {
    struct iw_rx *rx = &c->rx;
    if (!os_u32_load_relaxed(&rx->stalled)) return false;
    refuse(c, RDMAP_FAULT_NO_BUFFER, SN_E_WIRE);
    if (iw_state(c) == IW_OPEN) {
        fail_with_fault(c, SN_E_WIRE, &rx->fault);
        return true;
    }
    /* The first FPDU: nothing may be said of it before all of it was seen and its CRC is good. */
    os_u32_store_relaxed(&rx->stalled, 0);
    enter_payload(rx);
    iw_arm(c, &c->timer, c->cfg.request_ns);
    os_lock_enter(&c->tx_lock);
    iw_set_interest(c);
    os_lock_leave(&c->tx_lock);
    iw_rx_progress(c);
    return true;
}
