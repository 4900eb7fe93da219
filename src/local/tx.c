/* SPDX-License-Identifier: MIT
 *
 * The send side. A Send is written into the ring, whole or in parts; a long one is only described
 * and fetched by the peer. Writes and Reads are done here and now, between the two processes'
 * memory, once the peer is through with all slots before them; where that is not possible they go
 * through the ring too.
 */
#include <string.h>
#include "base/log.h"
#include "local/conn.h"
#include "os/prim/fault.h"
#include "os/prim/pages.h"

enum {
    DESCRIBE_MIN = 8192,     /* from here on fetching beats writing twice */
    CHUNK = 1024 * 1024,     /* bytes copied between two looks at the token */
    BURST_BYTES = 4 * CHUNK, /* then others get their turn */
    PIECES = 32,             /* segments of local memory in one copy */
    HEARD_MAX = 1 << 30,     /* slots that the last acknowledgement heard may be behind */
    VIA_RING = 1,            /* tp_u32[1] of a Write or Read */
    STREAMING = 4,           /* slots under way, so that the application waits for none of them */
    AHEAD = 2,               /* slots; measured: further ahead the reader takes them again */
    AHEAD_BYTES = 1024       /* of payload; asking for more lines than that at a time costs more */
};

/* ---- queues of requests ---- */

void lo_fifo_push(struct lo_fifo *f, struct tp_request *req) {
    req->tp_u64 = 0;
    if (f->tail)
        f->tail->tp_u64 = (uint64_t)(uintptr_t)req;
    else
        f->head = req;
    f->tail = req;
}

struct tp_request *lo_fifo_pop(struct lo_fifo *f) {
    struct tp_request *req = f->head;
    if (!req) return NULL;
    f->head = (struct tp_request *)(uintptr_t)req->tp_u64;
    if (!f->head) f->tail = NULL;
    return req;
}

/* ---- slots ---- */

uint32_t lo_ring_take(struct lo_ring *r, uint32_t n) {
    n = (n + LO_DATA_ALIGN - 1) & ~(uint32_t)(LO_DATA_ALIGN - 1);
    uint32_t off = r->head % LO_DATA;
    if (n > LO_DATA - off) { /* never cut in two */
        r->head += LO_DATA - off;
        off = 0;
    }
    r->head += n;
    return off;
}

struct draft {
    struct lo_slot *slot;
    uint8_t *place; /* of the payload */
    struct lo_ring data;
};

/* Room for a slot with n bytes of payload. One slot is kept for LO_FIN. */
static bool begin_slot(struct lo_conn *c, uint32_t n, struct draft *d) {
    struct lo_tx *tx = &c->tx;
    uint32_t pos = os_u32_load_relaxed(&tx->pos);
    if (pos - os_u32_load_relaxed(&tx->acked) >= LO_SLOTS - 1) return false;
    d->slot = &c->mine->slots[pos % LO_SLOTS];
    d->place = d->slot->data;
    d->data = tx->data;
    if (n <= LO_INLINE) return true;
    d->place = c->mine->data + lo_ring_take(&d->data, n);
    return d->data.head - tx->data_tail <= LO_DATA;
}

/* Slots that the peer is not known to be through with. What was heard may be ahead of what was
 * completed, or far behind. */
static uint32_t under_way(const struct lo_conn *c) {
    uint32_t pos = os_u32_load_relaxed(&c->tx.pos);
    uint32_t completed = pos - os_u32_load_relaxed(&c->tx.acked);
    return SN_MIN(completed, pos - os_u32_load_relaxed(&c->rx.heard));
}

/* The peer's processor has had the lines of a slot since it read them, and the next locked
 * instruction waits until a store has got them back. Who has several slots under way asks for the
 * lines of a coming one, and of its payload if that is as long, while nobody looks at them; for a
 * single message there is nothing to gain. */
static void fetch_ahead(struct lo_conn *c, uint32_t pos, uint32_t payload) {
    if (under_way(c) < STREAMING) return;
    const struct lo_slot *slot = &c->mine->slots[(pos + AHEAD) % LO_SLOTS];
    os_prefetch_write(slot);
    if (payload <= LO_SLOT_BYTES / 2 - LO_HEAD_BYTES) return;
    os_prefetch_write((const uint8_t *)slot + LO_SLOT_BYTES / 2);
    if (payload <= LO_INLINE || payload > AHEAD_BYTES) return;
    uint32_t lines = (payload + LO_DATA_ALIGN - 1) / LO_DATA_ALIGN;
    uint32_t from = c->tx.data.head + (AHEAD - 1) * lines * LO_DATA_ALIGN;
    for (uint32_t i = 0; i < lines; i++)
        os_prefetch_write(c->mine->data + (from + i * LO_DATA_ALIGN) % LO_DATA);
}

/* A processor takes some 0.1 us to get a line for a store back from another that polls it, and need
 * not wait for it: this is called first, and the slot is written when the line is here. */
void lo_tx_prepare(const struct lo_conn *c) {
    uint32_t pos = os_u32_load_relaxed(&c->tx.pos);
    if (under_way(c) >= STREAMING) return; /* fetch_ahead has asked */
    const struct lo_slot *slot = &c->mine->slots[pos % LO_SLOTS];
    os_prefetch_write((const uint8_t *)slot + LO_SLOT_BYTES / 2);
    os_prefetch_write(slot);
}

/* The slot is complete but for what every slot says. */
static void publish_slot(struct lo_conn *c, const struct draft *d) {
    struct lo_tx *tx = &c->tx;
    uint32_t pos = os_u32_load_relaxed(&tx->pos), ack = os_u32_load_acquire(&c->rx.pos);
    tx->data = d->data;
    tx->data_end[pos % LO_SLOTS] = d->data.head;
    d->slot->ack = ack;
    os_u32_store_relaxed(&tx->published, ack);
    os_u32_store_relaxed(&tx->pos, pos + 1);
    os_u32_store_release(&d->slot->seq, pos + 1);
    tx->bell = true;
    fetch_ahead(c, pos, d->slot->len);
}

static void fill_slot(struct lo_slot *s, enum lo_kind kind, uint32_t flags, uint32_t len) {
    s->kind = (uint8_t)kind;
    s->flags = (uint8_t)flags;
    s->count = 0;
    s->len = len;
}

bool lo_tx_note(struct lo_conn *c, enum lo_kind kind, uint8_t flags) {
    struct draft d = { .slot = NULL };
    uint32_t pos = os_u32_load_relaxed(&c->tx.pos);
    if (pos - os_u32_load_relaxed(&c->tx.acked) >= LO_SLOTS) return false;
    d.slot = &c->mine->slots[pos % LO_SLOTS];
    d.data = c->tx.data;
    fill_slot(d.slot, kind, flags, 0);
    publish_slot(c, &d);
    return true;
}

/* ---- what the peer knows ---- */

/* Nothing that is not sent is acknowledged, so that as long as nobody waits it is never wanted.
 * Slots written later make it no later. sent: the number of the last slot + 1. */
static void note_wanted(struct lo_tx *tx, uint32_t sent) {
    const struct tp_request *head = tx->unacked.head;
    os_u32_store_relaxed(&tx->wanted, head && tx->loud ? head->tp_u32[0] : sent + 1);
}

/* A request that gives a result is done; the result waits for those of silent ones before it. */
static void note_local(struct lo_tx *tx, bool silent) {
    struct tp_request *last = tx->unacked.tail;
    if (silent || !last) return;
    tx->loud += (last->flags & TP_F_SILENT) != 0;
    last->flags &= (uint8_t)~TP_F_SILENT;
    note_wanted(tx, os_u32_load_relaxed(&tx->pos));
    tx->asks = true;
}

/* A peer that writes no slots acknowledges otherwise. What it said on its last one must not be
 * taken for news when the numbers begin anew. */
static void forget_old(struct lo_conn *c, uint32_t acked) {
    uint32_t heard = os_u32_load_relaxed(&c->rx.heard);
    if (SN_UNLIKELY((int32_t)(acked - heard) > HEARD_MAX))
        (void)os_u32_cas_acq_rel(&c->rx.heard, &heard, acked); /* or there is news */
}

bool lo_tx_acked(struct lo_conn *c, uint32_t count) {
    struct lo_tx *tx = &c->tx;
    uint32_t acked = os_u32_load_relaxed(&tx->acked);
    if ((int32_t)(count - acked) <= 0) return true; /* known already */
    if (count - acked > os_u32_load_relaxed(&tx->pos) - acked) return false;
    os_u32_store_relaxed(&tx->acked, count);
    forget_old(c, count);
    tx->data_tail = tx->data_end[(count - 1) % LO_SLOTS];
    struct tp_request *done[TP_DONE_BATCH];
    uint32_t n;
    do {
        for (n = 0; n < TP_DONE_BATCH && tx->unacked.head &&
                    (int32_t)(count - tx->unacked.head->tp_u32[0]) >= 0;
             n++) {
            done[n] = lo_fifo_pop(&tx->unacked);
            tx->loud -= !(done[n]->flags & TP_F_SILENT);
        }
        if (n != 0) c->up->requests_done(c->qp, done, n);
    } while (n == TP_DONE_BATCH);
    note_wanted(tx, os_u32_load_relaxed(&tx->pos));
    return true;
}

bool lo_tx_reap(struct lo_conn *c) {
    uint32_t heard = os_u32_load_relaxed(&c->rx.heard);
    return (int32_t)(heard - os_u32_load_relaxed(&c->tx.acked)) > 0 && lo_tx_acked(c, heard);
}

void lo_tx_note_busy(struct lo_conn *c) {
    struct lo_tx *tx = &c->tx;
    bool busy = tx->cur || tx->irq_count != 0 || tx->reads_out != 0 || tx->failed ||
                os_u32_load_relaxed(&tx->more) != 0;
    os_u32_store_relaxed(&tx->busy, busy);
}

static void note_failure(struct lo_conn *c, sn_status st) {
    c->tx.failed = true;
    c->tx.fail_status = st;
    lo_tx_note_busy(c);
}

bool lo_tx_look(struct lo_conn *c) {
    uint32_t count = os_u32_load_acquire(&c->theirs->consumed);
    uint32_t heard = os_u32_load_relaxed(&c->rx.heard);
    /* What rode on a slot may be newer. */
    if ((int32_t)(heard - count) > 0) count = heard;
    if ((int32_t)(count - os_u32_load_relaxed(&c->tx.acked)) <= 0) return false;
    if (lo_tx_acked(c, count)) return true;
    note_failure(c, SN_E_WIRE);
    return false;
}

void lo_tx_publish(struct lo_conn *c) {
    uint32_t pos = os_u32_load_acquire(&c->rx.pos);
    if (pos == os_u32_load_relaxed(&c->tx.published)) return;
    os_u32_store_release(&c->mine->consumed, pos);
    os_u32_store_relaxed(&c->tx.published, pos);
    c->tx.bell = true;
}

void lo_tx_ring(struct lo_conn *c) {
    if (!c->tx.bell || !c->peer) return;
    c->tx.bell = false;
    os_fence_seqcst(); /* pairs with the peer's after it stops polling */
    if (os_u32_load_relaxed(&c->theirs->polled)) return;
    uint32_t sleep = lo_peer_ring(c->peer, c->peer_index);
    if (sleep == 0 || c->watch.sock == OS_SOCK_NONE) return;
    sn_status st = os_local_send(c->watch.sock, "", 1, NULL, 0);
    if (st == SN_OK)
        lo_peer_woken(c->peer, sleep);
    else
        SN_LOG(SN_LOG_DEBUG, "local: cannot wake the peer: %s", sn_status_text(st));
}

static void set_hurry(struct lo_conn *c, bool hurry) {
    if ((os_u32_load_relaxed(&c->mine->hurry) != 0) == hurry) return;
    os_u32_store_seqcst(&c->mine->hurry, hurry);
    if (hurry) c->tx.bell = true;
}

/* ---- local memory ---- */

/* All segments are checked before anything of the request is done. *scattered: some lie in more
 * than one piece. */
static sn_status check_segments(struct lo_conn *c, const struct tp_request *req, bool *scattered) {
    enum tp_right right = req->op == TP_OP_READ ? TP_READ_SINK : TP_LOCAL_READ;
    *scattered = false;
    if (req->flags & TP_F_INLINE) return SN_OK;
    for (uint32_t i = 0; i < req->sge_count; i++) {
        struct tp_access acc;
        if (req->sge[i].len == 0) continue;
        sn_status st =
            c->up->access(c->qp, req->sge[i].token, (uint64_t)(uintptr_t)req->sge[i].addr,
                          req->sge[i].len, right, &acc);
        if (st != SN_OK) return st;
        if (acc.len < req->sge[i].len) *scattered = true;
        c->up->access_end(&acc);
    }
    return SN_OK;
}

struct pieces {
    struct os_iov iov[PIECES];
    struct tp_access acc[PIECES];
    size_t count, bytes;
};

static void release_pieces(struct lo_conn *c, struct pieces *p) {
    while (p->count != 0) {
        p->count--;
        if (p->acc[p->count].hold) c->up->access_end(&p->acc[p->count]);
    }
}

/* The memory of [off, off+len) of a request, as much as the pieces take. */
static sn_status pin_pieces(struct lo_conn *c, const struct tp_request *req, uint32_t off,
                            uint32_t len, struct pieces *p) {
    enum tp_right right = req->op == TP_OP_READ ? TP_READ_SINK : TP_LOCAL_READ;
    uint32_t i = 0;
    p->count = p->bytes = 0;
    if (req->flags & TP_F_INLINE) {
        p->iov[0] = (struct os_iov){ req->inline_data + off, len };
        p->acc[0].hold = NULL;
        p->count = 1;
        p->bytes = len;
        return SN_OK;
    }
    while (i < req->sge_count && off >= req->sge[i].len)
        off -= req->sge[i++].len;
    while (len != 0 && i < req->sge_count && p->count < PIECES) {
        const struct tp_sge *s = &req->sge[i];
        uint32_t want = SN_MIN(len, s->len - off);
        struct tp_access *acc = &p->acc[p->count];
        if (want != 0) {
            sn_status st = c->up->access(c->qp, s->token, (uint64_t)(uintptr_t)s->addr + off, want,
                                         right, acc);
            if (st != SN_OK) {
                release_pieces(c, p);
                return st;
            }
            uint32_t n = (uint32_t)SN_MIN((size_t)want, acc->len);
            p->iov[p->count++] = (struct os_iov){ acc->ptr, n };
            p->bytes += n;
            off += n;
            len -= n;
        }
        if (off >= s->len) {
            off = 0;
            i++;
        }
    }
    return SN_OK;
}

/* Copies payload [off, off+n) to dst. */
static sn_status gather(struct lo_conn *c, const struct tp_request *req, uint32_t off, uint32_t n,
                        uint8_t *dst) {
    if (req->flags & TP_F_INLINE) {
        if (n) memcpy(dst, req->inline_data + off, n);
        return SN_OK;
    }
    if (req->sge_count == 1 && n != 0)
        return c->up->copy_from(c->qp, req->sge->token, (uint64_t)(uintptr_t)req->sge->addr + off,
                                n, dst);
    for (const struct tp_sge *s = req->sge; n != 0; off -= SN_MIN(off, s->len), s++) {
        if (off >= s->len) continue;
        uint32_t m = SN_MIN(n, s->len - off);
        sn_status st =
            c->up->copy_from(c->qp, s->token, (uint64_t)(uintptr_t)s->addr + off, m, dst);
        if (st != SN_OK) return st;
        dst += m;
        off += m;
        n -= m;
    }
    return SN_OK;
}

/* ---- outcomes of a step ---- */

enum step {
    STEP_DONE, /* go on */
    STEP_WAIT, /* for the peer */
    STEP_FAIL
};

static bool all_answered(const struct lo_conn *c) {
    return os_u32_load_relaxed(&c->tx.pos) == os_u32_load_relaxed(&c->tx.acked) &&
           c->tx.reads_out == 0;
}

/* A request of ours cannot be carried out: it fails with st, the connection ends. Not before the
 * requests before it have their outcome. */
static enum step fail_request(struct lo_conn *c, sn_status st, sn_status why) {
    struct tp_request *req = c->tx.cur;
    c->tx.doomed = true;
    c->tx.doom_status = st;
    c->tx.fail_status = why;
    if (!all_answered(c)) return STEP_WAIT;
    c->tx.doomed = false;
    SN_LOG(SN_LOG_INFO, "local: a request failed: %s", sn_status_text(why));
    c->tx.cur = NULL;
    c->up->request_done(c->qp, req, st);
    note_failure(c, why);
    return STEP_FAIL;
}

static enum step finish_request(struct lo_conn *c) {
    struct tp_request *req = c->tx.cur;
    c->tx.cur = NULL;
    c->up->request_done(c->qp, req, SN_OK);
    return STEP_DONE;
}

/* The slot at hand is the last of the request, which is done when the peer is through with it.
 * Called before the slot is published: who hears of its acknowledgement then sees that it is
 * wanted, without a fence, since the peer has seen the slot in between. */
static void await_ack(struct lo_conn *c, struct tp_request *req) {
    uint32_t sent = os_u32_load_relaxed(&c->tx.pos) + 1;
    c->tx.cur = NULL;
    req->tp_u32[0] = sent;
    lo_fifo_push(&c->tx.unacked, req);
    bool wanted = c->tx.loud != 0; /* an earlier one is already, and this is no sooner */
    c->tx.loud += !(req->flags & TP_F_SILENT);
    if (!wanted) note_wanted(&c->tx, sent);
}

/* ---- through the ring ---- */

static enum step write_part(struct lo_conn *c, enum lo_kind kind, uint32_t flags) {
    struct lo_tx *tx = &c->tx;
    struct tp_request *req = tx->cur;
    struct draft d;
    uint32_t n = SN_MIN(req->length - tx->cur_off, (uint32_t)LO_FRAGMENT);
    bool last = n == req->length - tx->cur_off, scattered;
    sn_status st = SN_OK;
    if (!last && tx->cur_off == 0) st = check_segments(c, req, &scattered);
    if (st != SN_OK) return fail_request(c, st, st);
    if (!begin_slot(c, n, &d)) return STEP_WAIT;
    st = gather(c, req, tx->cur_off, n, d.place);
    if (st != SN_OK) return fail_request(c, st, st);
    fill_slot(d.slot, kind, flags | (last ? 0 : LO_F_MORE), n);
    d.slot->addr = req->remote_addr + tx->cur_off;
    d.slot->token = kind == LO_WRITE ? req->remote_token : req->invalidate_token;
    d.slot->size = req->length - tx->cur_off;
    tx->cur_off += n;
    if (last) await_ack(c, req);
    publish_slot(c, &d);
    return STEP_DONE;
}

static enum step describe_send(struct lo_conn *c, uint32_t flags) {
    struct tp_request *req = c->tx.cur;
    struct lo_piece pieces[LO_PIECES_MAX];
    struct draft d;
    uint32_t count = 0;
    for (uint32_t i = 0; i < req->sge_count; i++) {
        if (req->sge[i].len == 0) continue;
        pieces[count++] = (struct lo_piece){ (uint64_t)(uintptr_t)req->sge[i].addr, req->sge[i].len,
                                             req->sge[i].token };
    }
    uint32_t n = count * (uint32_t)sizeof pieces[0];
    if (!begin_slot(c, n, &d)) return STEP_WAIT;
    memcpy(d.place, pieces, n);
    fill_slot(d.slot, LO_SEND_AT, flags, n);
    d.slot->count = (uint16_t)count;
    d.slot->size = req->length;
    d.slot->token = req->invalidate_token;
    await_ack(c, req);
    publish_slot(c, &d);
    return STEP_DONE;
}

/* The peer can find all of the payload by what our table says. */
static bool peer_can_fetch(const struct lo_conn *c, const struct tp_request *req) {
    if (!c->peer_can_pull || !c->share || (req->flags & TP_F_INLINE)) return false;
    if (req->sge_count > LO_PIECES_MAX) return false;
    for (uint32_t i = 0; i < req->sge_count; i++)
        if (req->sge[i].len && !tp_share_direct(c->share, req->sge[i].token)) return false;
    return true;
}

static uint32_t send_flags(const struct tp_request *req) {
    return ((req->flags & TP_F_SOLICIT) ? LO_F_SOLICIT : 0) |
           ((req->flags & TP_F_INVALIDATE) ? LO_F_INVALIDATE : 0);
}

/* The payload of a Send is in its slot: the rest of it. */
static void write_short(struct lo_conn *c, struct tp_request *req, const struct draft *d) {
    fill_slot(d->slot, LO_SEND, send_flags(req), req->length);
    d->slot->token = req->invalidate_token;
    d->slot->size = req->length;
    await_ack(c, req);
    publish_slot(c, d);
}

bool lo_tx_short(struct lo_conn *c) {
    struct lo_tx *tx = &c->tx;
    struct tp_request *req = c->up->sq_peek(c->qp);
    struct draft d;
    if (!req) return true; /* another thread has sent it */
    if (req->op != TP_OP_SEND || req->length > LO_INLINE || (req->flags & TP_F_FENCE)) return false;
    if (!begin_slot(c, req->length, &d)) return false;
    if (gather(c, req, 0, req->length, d.place) != SN_OK) return false;
    c->up->sq_advance(c->qp);
    write_short(c, req, &d);
    /* The look may come before the slot can be seen: who is polled looks again later (hub.h). */
    os_fence_compiler();
    tx->bell = !os_u32_load_relaxed(&c->theirs->polled);
    uint32_t heard = os_u32_load_relaxed(&c->rx.heard);
    return !tx->bell && (int32_t)(heard - os_u32_load_relaxed(&tx->wanted)) < 0 &&
           (int32_t)(heard - os_u32_load_relaxed(&tx->acked)) < LO_REAP_EVERY;
}

static enum step step_send(struct lo_conn *c) {
    struct tp_request *req = c->tx.cur;
    uint32_t flags = send_flags(req);
    if (req->length >= DESCRIBE_MIN && c->tx.cur_off == 0 && peer_can_fetch(c, req)) {
        bool scattered;
        sn_status st = check_segments(c, req, &scattered);
        if (st != SN_OK) return fail_request(c, st, st);
        if (!scattered) return describe_send(c, flags);
    }
    return write_part(c, LO_SEND, flags);
}

static enum step ask_read(struct lo_conn *c) {
    struct lo_tx *tx = &c->tx;
    struct tp_request *req = tx->cur;
    struct draft d;
    bool scattered;
    if (tx->reads_out >= c->ord) return STEP_WAIT;
    sn_status st = check_segments(c, req, &scattered);
    if (st != SN_OK) return fail_request(c, st, st);
    if (!begin_slot(c, 0, &d)) return STEP_WAIT;
    fill_slot(d.slot, LO_READ, 0, 0);
    d.slot->addr = req->remote_addr;
    d.slot->token = req->remote_token;
    d.slot->size = req->length;
    publish_slot(c, &d);
    tx->cur = NULL;
    tx->reads_out++;
    lo_fifo_push(&tx->reads, req);
    return STEP_DONE;
}

/* ---- straight ---- */

/* Writes to the peer's memory. The word that holds the last byte comes last, and alone: programs
 * poll it. Within this process a copy is in order anyway. */
static sn_status copy_out(struct lo_conn *c, const struct pieces *p, uint64_t to, bool last) {
    size_t tail = last && !c->peer->self ? (size_t)((to + p->bytes - 1) & 7) + 1 : 0;
    if (tail >= p->bytes) tail = 0;
    return lo_peer_write(c->peer, p->iov, p->count, to, p->bytes, tail);
}

/* Checks [off, length) of the request against the peer's table and copies up to *n bytes; *n
 * becomes what was copied. SN_E_AGAIN: the peer has closed. */
static sn_status copy_chunk(struct lo_conn *c, const struct tp_request *req, uint32_t off,
                            uint32_t *n, bool *local) {
    struct pieces p;
    os_atomic_u32 *busy = &c->mine->busy[0];
    bool read = req->op == TP_OP_READ;
    uint64_t at = req->remote_addr + off;
    sn_status st = pin_pieces(c, req, off, *n, &p);
    *local = st != SN_OK;
    if (st != SN_OK) return st;
    os_u32_store_seqcst(busy, req->remote_token);
    if (os_u32_load_seqcst(&c->theirs->status) != LO_ST_OPEN)
        st = SN_E_AGAIN;
    else
        st = lo_peer_check(c->peer, c->peer_qp_id, req->remote_token, at, req->length - off,
                           read ? TP_REMOTE_READ : TP_REMOTE_WRITE);
    if (st == SN_OK) {
        st = read ? lo_peer_read(c->peer, p.iov, p.count, at, p.bytes)
                  : copy_out(c, &p, at, off + p.bytes == req->length);
        *local = st == SN_E_FAULT;
    }
    os_u32_store_release(busy, 0);
    *n = (uint32_t)p.bytes;
    release_pieces(c, &p);
    return st;
}

static enum step copy_failed(struct lo_conn *c, sn_status st, bool local) {
    if (local) return fail_request(c, st, st);
    switch (st) {
    case SN_E_AGAIN:
    case SN_E_PEER_GONE: /* the socket tells it too */
        return STEP_WAIT;
    case SN_E_UNSUPPORTED:
    case SN_E_PERM:
        if (c->tx.cur_off != 0) break;
        c->tx.cur->tp_u32[1] = VIA_RING;
        return STEP_DONE;
    case SN_E_TOKEN:
    case SN_E_PD:
    case SN_E_RIGHTS:
    case SN_E_RANGE:
        if (st == SN_E_RANGE && c->tx.cur->op == TP_OP_READ)
            return fail_request(c, SN_E_REMOTE_RANGE, SN_E_REMOTE);
        return fail_request(c, SN_E_RIGHTS, SN_E_REMOTE);
    default:
        break;
    }
    return fail_request(c, st, st);
}

static enum step step_straight(struct lo_conn *c, size_t *budget) {
    struct lo_tx *tx = &c->tx;
    struct tp_request *req = tx->cur;
    bool scattered;
    if (os_u32_load_relaxed(&tx->pos) != os_u32_load_relaxed(&tx->acked)) {
        lo_tx_look(c);
        if (os_u32_load_relaxed(&tx->pos) != os_u32_load_relaxed(&tx->acked)) return STEP_WAIT;
    }
    if (req->length == 0) return finish_request(c); /* nothing is accessed, nothing is checked */
    if (tx->cur_off == 0 && req->sge_count > 1) {
        sn_status st = check_segments(c, req, &scattered);
        if (st != SN_OK) return fail_request(c, st, st);
    }
    uint32_t n = SN_MIN(req->length - tx->cur_off, (uint32_t)CHUNK);
    bool local;
    sn_status st = copy_chunk(c, req, tx->cur_off, &n, &local);
    if (st != SN_OK) return copy_failed(c, st, local);
    tx->cur_off += n;
    *budget -= SN_MIN(*budget, n);
    return tx->cur_off == req->length ? finish_request(c) : STEP_DONE;
}

/* ---- helping the peer to fetch a Send ---- */

struct offer {
    uint32_t slot, off, len, token;
    uint64_t addr;
};

/* Our Send of that slot, if it is not acknowledged. */
static const struct tp_request *find_send(const struct lo_conn *c, uint32_t slot) {
    const struct tp_request *req = c->tx.unacked.head;
    while (req && req->tp_u32[0] - 1 != slot)
        req = (const struct tp_request *)(uintptr_t)req->tp_u64;
    return req && req->op == TP_OP_SEND && !(req->flags & TP_F_INLINE) ? req : NULL;
}

static sn_status help(struct lo_conn *c, const struct offer *o) {
    const struct tp_request *req = find_send(c, o->slot);
    os_atomic_u32 *busy = &c->mine->busy[0];
    struct pieces p;
    if (!req || !c->can_copy || o->len > CHUNK) return SN_E_WIRE;
    if (o->off > req->length || o->len > req->length - o->off) return SN_E_WIRE;
    sn_status st = pin_pieces(c, req, o->off, o->len, &p);
    if (st != SN_OK) return st;
    os_u32_store_seqcst(busy, o->token);
    if (p.bytes != o->len || os_u32_load_seqcst(&c->theirs->status) != LO_ST_OPEN)
        st = SN_E_AGAIN;
    else
        st = lo_peer_check(c->peer, 0, o->token, o->addr, o->len, TP_LOCAL_WRITE);
    if (st == SN_OK) st = lo_peer_write(c->peer, p.iov, p.count, o->addr, o->len, 0);
    os_u32_store_release(busy, 0);
    release_pieces(c, &p);
    return st;
}

bool lo_tx_help(struct lo_conn *c) {
    struct lo_side *s = c->theirs;
    uint32_t word = os_u32_load_acquire(&s->help), taken = lo_help_with(word, LO_HELP_TAKEN);
    if (SN_LIKELY(word != lo_help_with(word, LO_HELP_OFFERED))) return false;
    struct offer o = { .slot = os_u32_load_relaxed(&s->help_slot),
                       .off = os_u32_load_relaxed(&s->help_off),
                       .len = os_u32_load_relaxed(&s->help_len),
                       .token = os_u32_load_relaxed(&s->help_token),
                       .addr = os_u64_load_relaxed(&s->help_addr) };
    if (!os_u32_cas_acq_rel(&s->help, &word, taken)) return false; /* withdrawn */
    sn_status st = help(c, &o);
    os_u32_store_release(&s->help,
                         lo_help_with(taken, st == SN_OK ? LO_HELP_DONE : LO_HELP_FAILED));
    c->tx.helps += st == SN_OK;
    c->tx.bell = true;
    return true;
}

/* ---- answers to the peer's Reads ---- */

static enum step answer_read(struct lo_conn *c) {
    struct lo_tx *tx = &c->tx;
    struct lo_read_in *in = &tx->irq[tx->irq_head];
    struct draft d;
    uint32_t n = SN_MIN(in->size - in->sent, (uint32_t)LO_FRAGMENT), put = 0;
    bool last = n == in->size - in->sent;
    sn_status st = SN_OK;
    struct tp_access acc;
    if (!begin_slot(c, n, &d)) return STEP_WAIT;
    if (in->sent == 0 && in->size != 0) { /* nothing is sent of what is not all there */
        st = c->up->access(c->qp, in->token, in->addr, in->size, TP_REMOTE_READ, &acc);
        if (st == SN_OK) c->up->access_end(&acc);
    }
    while (put != n && st == SN_OK) {
        st = c->up->access(c->qp, in->token, in->addr + in->sent + put, n - put, TP_REMOTE_READ,
                           &acc);
        if (st != SN_OK) break;
        uint32_t m = (uint32_t)SN_MIN((size_t)(n - put), acc.len);
        if (!os_guarded_copy(d.place + put, acc.ptr, m)) st = SN_E_FAULT;
        c->up->access_end(&acc);
        put += m;
    }
    if (st != SN_OK) {
        c->refuse_read = st == SN_E_RANGE ? SN_E_REMOTE_RANGE : SN_E_RIGHTS;
        note_failure(c, SN_E_WIRE);
        return STEP_FAIL;
    }
    fill_slot(d.slot, LO_READ_DATA, last ? 0 : LO_F_MORE, n);
    publish_slot(c, &d);
    in->sent += n;
    if (last) {
        tx->irq_head = (tx->irq_head + 1) % tx->irq_cap;
        tx->irq_count--;
    }
    return STEP_DONE;
}

/* ---- the engine of it all ---- */

/* Takes the core's next request if its turn has come. */
static bool pull_request(struct lo_conn *c) {
    struct lo_tx *tx = &c->tx;
    for (;;) {
        struct tp_request *req = c->up->sq_peek(c->qp);
        if (!req) return false;
        if ((req->flags & TP_F_FENCE) && tx->reads_out != 0) return false;
        bool local = req->op == TP_OP_LOCAL, silent = req->flags & TP_F_SILENT;
        c->up->sq_advance(c->qp);
        if (local) {
            note_local(tx, silent);
            continue;
        }
        req->tp_u32[1] = c->can_copy ? 0 : VIA_RING;
        tx->cur = req;
        tx->cur_off = 0;
        return true;
    }
}

static enum step step_request(struct lo_conn *c, size_t *budget) {
    struct tp_request *req = c->tx.cur;
    if (c->tx.doomed) return fail_request(c, c->tx.doom_status, c->tx.fail_status);
    if (req->op == TP_OP_SEND) return step_send(c);
    if (req->tp_u32[1] != VIA_RING) return step_straight(c, budget);
    return req->op == TP_OP_WRITE ? write_part(c, LO_WRITE, 0) : ask_read(c);
}

bool lo_tx_progress(struct lo_conn *c) {
    struct lo_tx *tx = &c->tx;
    size_t budget = BURST_BYTES;
    bool did = false, waits = false, again = true;
    while (again && budget != 0 && !tx->failed) {
        again = false;
        if (tx->irq_count != 0) {
            enum step s = answer_read(c);
            again |= s == STEP_DONE;
            waits |= s == STEP_WAIT;
        }
        if (!tx->failed && (tx->cur || pull_request(c))) {
            enum step s = step_request(c, &budget);
            again |= s == STEP_DONE;
            waits |= s == STEP_WAIT;
        }
        did |= again;
        if (!again && waits && lo_tx_look(c)) { /* there may be room now */
            again = true;
            waits = false;
        }
    }
    if (!tx->failed) set_hurry(c, waits && !again);
    os_u32_store_relaxed(&tx->more, budget == 0 && !tx->failed);
    lo_tx_note_busy(c);
    return did;
}
