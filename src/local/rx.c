/* SPDX-License-Identifier: MIT
 *
 * The receive side: the peer's slots in order, each served whole before the next is looked at. A
 * Send that finds no receive stays in the ring. What a slot says is copied first and checked then,
 * once, however long it takes to serve it; payload may change under our hands, which harms nobody
 * but the receiver of nonsense.
 */
#include <string.h>
#include "base/log.h"
#include "local/conn.h"
#include "os/prim/fault.h"
#include "os/prim/pages.h"

enum {
    BURST_SLOTS = 64,
    BURST_BYTES = 4 * 1024 * 1024, /* fetched; then others get their turn */
    CHUNK = 1024 * 1024,           /* bytes copied between two looks at the token */
    PIECES = 16,
    HELP_MIN = 256 * 1024, /* two copies of half of it cost less than one, with what goes around */
    PAGE = 4096
};

enum step {
    STEP_DONE, /* the slot is served */
    STEP_TOLD, /* it is served, and consumed already */
    STEP_MORE, /* it needs more time */
    STEP_WAIT, /* it waits for a receive, or the peer's help */
    STEP_FAIL  /* the connection has ended */
};

/* ---- failures ---- */

static enum step fail(struct lo_conn *c, sn_status st) {
    lo_tx_enter(c);
    lo_fail(c, st);
    lo_tx_leave(c);
    return STEP_FAIL;
}

SN_COLD static enum step broken(struct lo_conn *c, const char *what) {
    SN_LOG(SN_LOG_WARN, "local: the peer broke the protocol: %s", what);
    return fail(c, SN_E_WIRE);
}

static enum step refuse(struct lo_conn *c, sn_status for_peer) {
    lo_tx_enter(c);
    lo_refuse(c, for_peer);
    lo_tx_leave(c);
    return STEP_FAIL;
}

/* The receive at hand fails for a reason of its own; the connection ends with it. First: the peer
 * may be writing to the receive's memory, and the end waits for that. */
static enum step fail_receive(struct lo_conn *c, sn_status st, sn_status for_peer) {
    struct tp_receive *recv = c->rx.recv;
    c->rx.recv = NULL;
    refuse(c, for_peer);
    c->up->receive_done(c->qp, recv, st, 0, 0, 0);
    return STEP_FAIL;
}

/* ---- messages that are told together ---- */

static void tell(struct lo_conn *c) {
    uint32_t n = c->rx.untold;
    if (n == 0) return;
    c->rx.untold = 0;
    c->up->receives_done(c->qp, c->rx.told_next, n);
}

/* ---- places ---- */

static void skip_full(const struct tp_sge *sge, uint32_t count, struct lo_place *at) {
    while (at->idx < count && at->off == sge[at->idx].len) {
        at->off = 0;
        at->idx++;
    }
}

/* Copies n bytes to where a scatter list has got to. */
static sn_status scatter(struct lo_conn *c, const struct tp_sge *sge, uint32_t count,
                         struct lo_place *at, enum tp_right right, const uint8_t *p, uint32_t n) {
    while (n != 0) {
        struct tp_access acc;
        skip_full(sge, count, at);
        if (at->idx == count) return SN_E_RANGE; /* not after the callers' checks */
        const struct tp_sge *s = &sge[at->idx];
        uint32_t want = SN_MIN(n, s->len - at->off);
        sn_status st = c->up->access(c->qp, s->token, (uint64_t)(uintptr_t)s->addr + at->off, want,
                                     right, &acc);
        if (st != SN_OK) return st;
        uint32_t m = (uint32_t)SN_MIN((size_t)want, acc.len);
        bool good = os_guarded_copy(acc.ptr, p, m);
        c->up->access_end(&acc);
        if (!good) return SN_E_FAULT;
        at->off += m;
        p += m;
        n -= m;
    }
    return SN_OK;
}

/* ---- Sends ---- */

static void begin_receive(struct lo_rx *rx, struct tp_receive *recv) {
    rx->recv = recv;
    rx->recv_len = rx->pull_off = 0;
    rx->recv_at = (struct lo_place){ 0 };
}

static bool take_receive(struct lo_conn *c) {
    struct lo_rx *rx = &c->rx;
    if (rx->recv) return true;
    struct tp_receive *recv = c->up->take_receive(c->qp);
    if (!recv) {
        /* Announce that we wait, then look again: a post in between is not missed. */
        os_u32_store_seqcst(&rx->stalled, 1);
        recv = c->up->take_receive(c->qp);
        if (!recv) return false;
        os_u32_store_relaxed(&rx->stalled, 0);
    }
    begin_receive(rx, recv);
    return true;
}

static enum step stall(struct lo_conn *c) {
    if (!c->patient || c->rx.eof) lo_arm(c, &c->timer, LO_RNR_NS);
    return STEP_WAIT;
}

static void consume(struct lo_conn *c) {
    c->rx.data = c->rx.data_next;
    os_u32_store_release(&c->rx.pos, os_u32_load_relaxed(&c->rx.pos) + 1);
}

/* Consumed first: who is told, perhaps another thread, may answer, and the answer acknowledges. */
static enum step end_send(struct lo_conn *c, const struct lo_slot *h) {
    struct tp_receive *recv = c->rx.recv;
    uint32_t flags = (h->flags & LO_F_SOLICIT) ? TP_RECV_SOLICITED : 0;
    if (h->flags & LO_F_INVALIDATE) {
        if (c->up->remote_invalidate(c->qp, h->token) != SN_OK) return refuse(c, SN_E_REMOTE);
        flags |= TP_RECV_INVALIDATED;
    }
    c->rx.recv = NULL;
    consume(c);
    c->up->receive_done(c->qp, recv, SN_OK, c->rx.recv_len, flags, h->token);
    return STEP_TOLD;
}

/* A Send that lies in its slot whole, for a receive of one segment: what most are. It is told with
 * others that arrived. False: nothing is done but perhaps a receive taken. */
static bool serve_short(struct lo_conn *c, const struct lo_slot *h, const uint8_t *p) {
    struct lo_rx *rx = &c->rx;
    if (h->kind != LO_SEND || (h->flags & ~LO_F_SOLICIT) || h->len > LO_INLINE || rx->recv ||
        lo_state(c) != LO_OPEN)
        return false;
    struct tp_receive *recv = c->up->take_receive(c->qp);
    if (SN_UNLIKELY(!recv)) return false;
    const struct tp_sge *sge = recv->sge;
    if (recv->sge_count != 1 || h->len > recv->length || h->len == 0 ||
        !c->up->copy_to(c->qp, sge->token, (uint64_t)(uintptr_t)sge->addr, h->len, p)) {
        begin_receive(rx, recv);
        return false;
    }
    rx->told_next[rx->untold++] = (struct tp_received){
        .recv = recv, .bytes = h->len, .flags = h->flags & LO_F_SOLICIT ? TP_RECV_SOLICITED : 0
    };
    consume(c);
    if (rx->untold == LO_TELL_BATCH) tell(c);
    return true;
}

static enum step serve_send(struct lo_conn *c, const struct lo_slot *h, const uint8_t *p) {
    struct lo_rx *rx = &c->rx;
    if (!take_receive(c)) return stall(c);
    if (h->len > rx->recv->length - rx->recv_len)
        return fail_receive(c, SN_E_MSG_TOO_LONG, SN_E_PEER_MSG_TOO_LONG);
    sn_status st =
        scatter(c, rx->recv->sge, rx->recv->sge_count, &rx->recv_at, TP_LOCAL_WRITE, p, h->len);
    if (st != SN_OK) return fail_receive(c, st, SN_E_REMOTE);
    rx->recv_len += h->len;
    return h->flags & LO_F_MORE ? STEP_DONE : end_send(c, h);
}

/* Fetches up to n bytes of one piece into the receive; *n becomes what was fetched. */
static sn_status fetch(struct lo_conn *c, const struct lo_piece *from, uint32_t off, uint32_t *n,
                       bool *local) {
    struct lo_rx *rx = &c->rx;
    struct os_iov iov[PIECES];
    struct tp_access acc[PIECES];
    struct lo_place at = rx->recv_at;
    os_atomic_u32 *busy = &c->mine->busy[1];
    uint32_t count = 0, have = 0;
    sn_status st = SN_OK;
    while (have < *n && count < PIECES && st == SN_OK) {
        skip_full(rx->recv->sge, rx->recv->sge_count, &at);
        if (at.idx == rx->recv->sge_count) break;
        const struct tp_sge *s = &rx->recv->sge[at.idx];
        uint32_t want = SN_MIN(*n - have, s->len - at.off);
        st = c->up->access(c->qp, s->token, (uint64_t)(uintptr_t)s->addr + at.off, want,
                           TP_LOCAL_WRITE, &acc[count]);
        if (st != SN_OK) break;
        uint32_t m = (uint32_t)SN_MIN((size_t)want, acc[count].len);
        iov[count] = (struct os_iov){ acc[count].ptr, m };
        count++;
        at.off += m;
        have += m;
    }
    *local = st != SN_OK;
    if (st == SN_OK) {
        os_u32_store_seqcst(busy, from->token);
        if (os_u32_load_seqcst(&c->theirs->status) != LO_ST_OPEN)
            st = SN_E_PEER_GONE;
        else
            st = lo_peer_check(c->peer, 0, from->token, from->addr + off, have, TP_LOCAL_READ);
        if (st == SN_OK) {
            st = lo_peer_read(c->peer, iov, count, from->addr + off, have);
            *local = st == SN_E_FAULT;
            if (st == SN_E_RIGHTS) st = SN_E_FAULT; /* the peer's memory is not there any more */
        }
        os_u32_store_release(busy, 0);
    }
    for (uint32_t i = 0; i < count; i++)
        c->up->access_end(&acc[i]);
    *n = have;
    if (st == SN_OK) rx->recv_at = at;
    return st;
}

static bool check_pieces(const struct lo_slot *h, const struct lo_piece *pieces) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < h->count; i++)
        sum += pieces[i].len;
    return sum == h->size;
}

/* Offers the second half of what comes next to a peer that polls: it copies that part while we copy
 * the first. n: bytes left of the piece at hand. */
static void offer_help(struct lo_conn *c, uint32_t n) {
    struct lo_rx *rx = &c->rx;
    n = SN_MIN(n, 2 * (uint32_t)CHUNK);
    skip_full(rx->recv->sge, rx->recv->sge_count, &rx->recv_at);
    if (n < HELP_MIN || rx->recv_at.idx == rx->recv->sge_count) return;
    const struct tp_sge *s = &rx->recv->sge[rx->recv_at.idx];
    uint32_t half = (n / 2 + PAGE - 1) & ~(uint32_t)(PAGE - 1);
    if (s->len - rx->recv_at.off < n || !c->share || !tp_share_direct(c->share, s->token)) return;
    struct lo_side *mine = c->mine;
    rx->help_off = rx->pull_off + half;
    rx->help_len = n - half;
    os_u32_store_relaxed(&mine->help_slot, os_u32_load_relaxed(&rx->pos));
    os_u32_store_relaxed(&mine->help_off, rx->help_off);
    os_u32_store_relaxed(&mine->help_len, rx->help_len);
    os_u32_store_relaxed(&mine->help_token, s->token);
    os_u64_store_relaxed(&mine->help_addr, (uint64_t)(uintptr_t)s->addr + rx->recv_at.off + half);
    uint32_t word = ++rx->helps * LO_HELP_STATES + LO_HELP_OFFERED;
    os_u32_store_relaxed(&rx->help, word);
    os_u32_store_release(&mine->help, word);
}

/* The first part is here: takes the offer back, or finds out how the peer got on. *done: bytes that
 * it has written. */
static enum step settle_help(struct lo_conn *c, uint32_t *done) {
    struct lo_rx *rx = &c->rx;
    os_atomic_u32 *help = &c->mine->help;
    uint32_t offered = os_u32_load_relaxed(&rx->help), word = offered;
    *done = 0;
    bool back = os_u32_cas_acq_rel(help, &word, LO_HELP_NONE);
    if (!back && word == lo_help_with(offered, LO_HELP_TAKEN)) return STEP_WAIT;
    if (!back && word == lo_help_with(offered, LO_HELP_DONE))
        *done = rx->help_len;
    else if (!back && word != lo_help_with(offered, LO_HELP_FAILED))
        return broken(c, "no answer to an offer");
    os_u32_store_relaxed(&rx->help, 0);
    return STEP_DONE;
}

static enum step serve_send_at(struct lo_conn *c, const struct lo_slot *h, const uint8_t *p,
                               size_t *budget) {
    struct lo_rx *rx = &c->rx;
    const struct lo_piece *pieces = rx->pieces;
    if (h->count > LO_PIECES_MAX || h->len != h->count * sizeof pieces[0] || !c->can_copy)
        return broken(c, "a Send that cannot be fetched");
    if (!rx->begun) memcpy(rx->pieces, p, h->len);
    if (!check_pieces(h, pieces)) return broken(c, "a Send whose pieces are not its length");
    if (!take_receive(c)) return stall(c);
    if (rx->recv_len != rx->pull_off) return broken(c, "a Send begun in two ways");
    if (h->size > rx->recv->length)
        return fail_receive(c, SN_E_MSG_TOO_LONG, SN_E_PEER_MSG_TOO_LONG);
    uint32_t i = 0, off = rx->pull_off;
    while (i < h->count && off >= pieces[i].len)
        off -= pieces[i++].len;
    while (i < h->count) {
        if (*budget == 0) return STEP_MORE;
        uint32_t n = SN_MIN(pieces[i].len - off, (uint32_t)CHUNK);
        bool local = false;
        sn_status st = SN_OK;
        if (os_u32_load_relaxed(&rx->help) == 0 && os_u32_load_relaxed(&c->theirs->polled))
            offer_help(c, pieces[i].len - off);
        if (os_u32_load_relaxed(&rx->help) == 0) {
            st = n ? fetch(c, &pieces[i], off, &n, &local) : SN_OK;
        } else if (rx->pull_off != rx->help_off) {
            n = SN_MIN(n, rx->help_off - rx->pull_off);
            st = fetch(c, &pieces[i], off, &n, &local);
        } else {
            enum step s = settle_help(c, &n);
            if (s != STEP_DONE) return s;
            rx->recv_at.off += n;
        }
        if (st == SN_E_PEER_GONE) return fail(c, SN_E_PEER_GONE);
        if (st != SN_OK) return local ? fail_receive(c, st, SN_E_REMOTE) : refuse(c, st);
        off += n;
        rx->pull_off += n;
        rx->recv_len += n;
        *budget -= SN_MIN(*budget, n);
        if (off == pieces[i].len) {
            off = 0;
            i++;
        }
    }
    return end_send(c, h);
}

/* ---- Writes and Reads that come through the ring ---- */

static enum step serve_write(struct lo_conn *c, const struct lo_slot *h, const uint8_t *p) {
    /* The whole range is asked for, before anything of it is written. */
    uint32_t range = SN_MAX(h->size, h->len);
    for (uint32_t off = 0; off != h->len;) {
        struct tp_access acc;
        sn_status st =
            c->up->access(c->qp, h->token, h->addr + off, range - off, TP_REMOTE_WRITE, &acc);
        if (st != SN_OK) return refuse(c, SN_E_RIGHTS);
        uint32_t m = (uint32_t)SN_MIN((size_t)(h->len - off), acc.len);
        bool good = os_guarded_copy(acc.ptr, p + off, m);
        c->up->access_end(&acc);
        if (!good) return refuse(c, SN_E_RIGHTS);
        off += m;
    }
    return STEP_DONE;
}

static enum step serve_read(struct lo_conn *c, const struct lo_slot *h) {
    struct lo_tx *tx = &c->tx;
    struct lo_read_in in = { .addr = h->addr, .token = h->token, .size = h->size };
    lo_tx_enter(c);
    if (!tx->irq) {
        tx->irq_cap = SN_MAX(c->ird, 1);
        tx->irq = os_zalloc(tx->irq_cap * sizeof *tx->irq);
    }
    bool room = tx->irq && tx->irq_count < tx->irq_cap;
    if (room) tx->irq[(tx->irq_head + tx->irq_count++) % tx->irq_cap] = in;
    lo_tx_note_busy(c);
    lo_tx_leave(c);
    return room ? STEP_DONE : broken(c, "more Reads than agreed");
}

static enum step serve_read_data(struct lo_conn *c, const struct lo_slot *h, const uint8_t *p) {
    struct lo_rx *rx = &c->rx;
    bool last = !(h->flags & LO_F_MORE);
    if (!rx->read) {
        lo_tx_enter(c);
        rx->read = c->tx.reads.head;
        lo_tx_leave(c);
        if (!rx->read) return broken(c, "an answer to no Read");
        rx->read_len = 0;
        rx->read_at = (struct lo_place){ 0 };
    }
    struct tp_request *req = rx->read;
    uint32_t left = req->length - rx->read_len;
    if (h->len > left || (last && h->len != left)) return broken(c, "a Read answered at length");
    sn_status st = scatter(c, req->sge, req->sge_count, &rx->read_at, TP_READ_SINK, p, h->len);
    rx->read_len += h->len;
    if (st == SN_OK && !last) return STEP_DONE;
    lo_tx_enter(c);
    lo_fifo_pop(&c->tx.reads);
    c->tx.reads_out--;
    lo_tx_leave(c);
    rx->read = NULL;
    c->up->request_done(c->qp, req, st);
    return st == SN_OK ? STEP_DONE : fail(c, st);
}

/* ---- one slot ---- */

static enum step serve_ready(struct lo_conn *c, const struct lo_slot *h) {
    if (lo_state(c) != LO_WAIT_READY) return broken(c, "ready twice");
    lo_tx_enter(c);
    c->can_copy = c->peer->can_copy && (h->flags & LO_F_MAY_COPY);
    c->peer_can_pull = (h->flags & LO_F_CAN_PULL) && lo_peer_watched(c->peer);
    lo_set_state(c, LO_OPEN);
    lo_disarm(c, &c->timer);
    tp_events_add(&c->events, TP_EV_ESTABLISHED, SN_OK);
    lo_tx_leave(c);
    return STEP_DONE;
}

static enum step serve(struct lo_conn *c, const struct lo_slot *h, const uint8_t *p,
                       size_t *budget) {
    if (h->kind == LO_READY) return serve_ready(c, h);
    if (lo_state(c) != LO_OPEN)
        return h->kind == LO_FIN ? fail(c, SN_E_PEER_GONE) : broken(c, "not ready");
    switch (h->kind) {
    case LO_SEND:
        return serve_send(c, h, p);
    case LO_SEND_AT:
        return serve_send_at(c, h, p, budget);
    case LO_WRITE:
        return serve_write(c, h, p);
    case LO_READ:
        return serve_read(c, h);
    case LO_READ_DATA:
        return serve_read_data(c, h, p);
    case LO_FIN:
        return fail(c, SN_OK);
    default:
        return broken(c, "a slot of no kind");
    }
}

static bool running(const struct lo_conn *c) {
    enum lo_state s = lo_state(c);
    return s == LO_OPEN || s == LO_WAIT_READY;
}

/* The head of a slot: as it was when it was first looked at. */
static void read_head(struct lo_rx *rx, const struct lo_slot *slot, struct lo_slot *h) {
    memcpy(h, SN_UNLIKELY(rx->begun) ? &rx->at_hand : slot, LO_HEAD_BYTES);
    os_fence_copied();
}

/* What the peer is through with completes before what it did in answer is seen. If nobody waits for
 * that it is done at the next post, after what is posted. False: that was not sent. */
static bool hear_ack(struct lo_conn *c, uint32_t ack) {
    if ((int32_t)(ack - os_u32_load_relaxed(&c->rx.heard)) < 0) return true;
    os_u32_store_seqcst(&c->rx.heard, ack);
    /* Who begins to wait says so, and then looks at what was heard. */
    if (SN_LIKELY((int32_t)(ack - os_u32_load_seqcst(&c->tx.wanted)) < 0 &&
                  !os_u32_load_seqcst(&c->tx.busy)))
        return true;
    tell(c); /* what came before the slot with this */
    lo_tx_enter(c);
    bool sane = lo_tx_acked(c, ack);
    lo_tx_leave(c);
    return sane;
}

/* The next slot, if it is written. False if there is none, or the connection ended. */
static bool next_slot(struct lo_conn *c, size_t *budget) {
    struct lo_rx *rx = &c->rx;
    uint32_t pos = os_u32_load_relaxed(&rx->pos);
    const struct lo_slot *slot = &c->theirs->slots[pos % LO_SLOTS];
    struct lo_slot h;
    if (os_u32_load_acquire(&slot->seq) != pos + 1) return false;
    read_head(rx, slot, &h);
    if (h.ack != os_u32_load_relaxed(&rx->heard) && !hear_ack(c, h.ack)) {
        tell(c);
        broken(c, "acknowledges what was not sent");
        return false;
    }
    rx->data_next = rx->data;
    const uint8_t *p = slot->data;
    if (SN_LIKELY(!rx->begun) && serve_short(c, &h, p)) return true;
    tell(c);
    if (h.len > LO_FRAGMENT) {
        broken(c, "a slot that is too long");
        return false;
    }
    if (h.len > LO_INLINE) p = c->theirs->data + lo_ring_take(&rx->data_next, h.len);
    enum step step = serve(c, &h, p, budget);
    if (step == STEP_DONE) consume(c);
    if (step == STEP_DONE || step == STEP_TOLD) {
        rx->begun = false;
        return true;
    }
    memcpy(&rx->at_hand, &h, LO_HEAD_BYTES);
    rx->begun = true;
    return false;
}

bool lo_rx_progress(struct lo_conn *c) {
    struct lo_rx *rx = &c->rx;
    size_t budget = BURST_BYTES;
    uint32_t slots = 0;
    if (os_u32_load_relaxed(&rx->stalled)) {
        struct tp_receive *recv = c->up->take_receive(c->qp);
        if (!recv) return false;
        os_u32_store_relaxed(&rx->stalled, 0);
        begin_receive(rx, recv);
        lo_disarm(c, &c->timer);
    }
    while (slots < BURST_SLOTS && budget != 0 && running(c) && next_slot(c, &budget))
        slots++;
    tell(c);
    return slots != 0 || budget != BURST_BYTES;
}

void lo_rx_stall_over(struct lo_conn *c) {
    if (!os_u32_load_relaxed(&c->rx.stalled)) return;
    refuse(c, SN_E_TIMEOUT);
}
