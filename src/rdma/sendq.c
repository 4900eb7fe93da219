/* SPDX-License-Identifier: MIT
 *
 * The initiator queue. Requests are posted under the lock; the stream starts them in order without
 * it, by two indexes; they may finish in any order and leave in posting order.
 */
#include <string.h>
#include "os/prim/pages.h"
#include "rdma/qp.h"

/* ---- layout ---- */

size_t rd_sendq_layout(struct rd_sendq *sq, uint8_t *base) {
    uint32_t slots = sq->depth ? sq->mask + 1 : 0;
    size_t ring = (size_t)slots * sizeof *sq->ring;
    size_t sges = (size_t)slots * sq->max_sge * sizeof *sq->sges;
    size_t inlined = (size_t)slots * sq->inline_bytes;
    if (base) {
        sq->ring = (struct rd_sendq_slot *)base;
        sq->sges = (struct tp_sge *)(base + ring);
        sq->inline_data = base + ring + sges;
    }
    return ring + sges + ((inlined + 15) & ~(size_t)15);
}

static struct rd_sendq_slot *slot_of(struct rd_sendq *sq, uint32_t index) {
    return &sq->ring[index & sq->mask];
}

/* ---- completion ---- */

SN_HOT static void put_completion(struct rd_qp *qp, const struct rd_sendq_slot *s, sn_status st,
                                  struct rd_fire *f) {
    struct rd_cq_entry e = { .qp_context = qp->context,
                             .request_context = s->context,
                             .bytes = st == SN_OK ? s->req.length : 0,
                             .status = (uint8_t)st,
                             .type = s->type };
    rd_cq_put_locked(qp->initiator_cq, &e, false, qp->initiator_as, f);
}

static void count_completion(struct rd_qp *qp, const struct rd_sendq_slot *s, sn_status st) {
    struct rd_qp_counters *c = &qp->counters;
    if (st == SN_E_CANCELED)
        rd_count_any(&c->flushed, 1);
    else if (st != SN_OK)
        rd_count_any(&c->failed, 1);
    else
        rd_count(s->type == RD_READ ? &c->read_bytes : &c->tx_bytes, s->req.length);
}

static void drop_objects(struct rd_sendq_slot *s) {
    if (SN_LIKELY(s->req.op != TP_OP_LOCAL)) return;
    if (s->window) rd_window_put(s->window);
    if (s->fast) rd_fastreg_abandon(s->region, s->fast);
    if (s->region) rd_region_put(s->region);
    s->window = NULL;
    s->fast = NULL;
    s->region = NULL;
}

/* Completes from the oldest on what is done. An error stops the queue: everything behind it ends
 * as cancelled, whatever the stream said. */
SN_HOT static void retire_locked(struct rd_qp *qp, struct rd_fire *f) {
    struct rd_sendq *sq = &qp->sq;
    bool entered = false;
    while (sq->head != os_u32_load_relaxed(&sq->taken)) {
        struct rd_sendq_slot *s = slot_of(sq, sq->head);
        if (!s->done) break;
        sn_status st = (sn_status)s->status;
        if (os_u32_load_relaxed(&sq->stopped) && st == SN_OK) st = SN_E_CANCELED;
        if (st != SN_OK) os_u32_store_release(&sq->stopped, 1);
        if (SN_UNLIKELY(s->invalidate_sink) && st == SN_OK && s->req.sge_count)
            rd_fastreg_invalidate_local(qp->ad, qp->pd, s->req.sge[0].token);
        if (st != SN_OK || !s->silent) {
            if (!entered) rd_cq_enter(qp->initiator_cq);
            entered = true;
            put_completion(qp, s, st, f);
        }
        count_completion(qp, s, st);
        drop_objects(s);
        sq->head++;
    }
    if (entered) rd_cq_leave(qp->initiator_cq, f);
}

void rd_sendq_done(void *ctx, struct tp_request *req, sn_status st) {
    struct rd_qp *qp = ctx;
    struct rd_sendq_slot *s = SN_CONTAINER(req, struct rd_sendq_slot, req);
    struct rd_fire f;
    rd_fire_init(&f);
    os_lock_enter(&qp->sq.lock);
    s->status = (uint8_t)st;
    s->done = 1;
    retire_locked(qp, &f);
    os_lock_leave(&qp->sq.lock);
    rd_fire_run(&f);
}

SN_HOT void rd_sendq_done_many(void *ctx, struct tp_request *const *req, uint32_t n) {
    struct rd_qp *qp = ctx;
    struct rd_fire f;
    rd_fire_init(&f);
    os_lock_enter(&qp->sq.lock);
    for (uint32_t i = 0; i < n; i++) {
        struct rd_sendq_slot *s = SN_CONTAINER(req[i], struct rd_sendq_slot, req);
        s->status = SN_OK;
        s->done = 1;
    }
    retire_locked(qp, &f);
    os_lock_leave(&qp->sq.lock);
    rd_fire_run(&f);
}

void rd_sendq_held_back(void *ctx) {
    struct rd_qp *qp = ctx;
    rd_cq_note_due(qp->initiator_cq, qp->initiator_as);
}

void rd_sendq_flush_locked(struct rd_qp *qp, struct rd_fire *f) {
    struct rd_sendq *sq = &qp->sq;
    for (; sq->head != sq->tail; sq->head++) {
        struct rd_sendq_slot *s = slot_of(sq, sq->head);
        sn_status st = SN_E_CANCELED;
        /* What failed by itself keeps its status. */
        if (s->done && s->status != SN_OK && !os_u32_load_relaxed(&sq->stopped))
            st = (sn_status)s->status;
        put_completion(qp, s, st, f);
        count_completion(qp, s, st);
        if (s->window && s->type == RD_BIND) rd_window_bind_undo(s->window, s->bind_id);
        drop_objects(s);
    }
    os_u32_store_relaxed(&sq->taken, sq->tail);
    os_u32_store_release(&sq->visible, sq->tail);
}

void rd_sendq_open_early(struct rd_qp *qp) {
    struct rd_sendq *sq = &qp->sq;
    os_lock_enter(&sq->lock);
    if (sq->mode == RD_SQ_UNCONNECTED && sq->may_open) sq->mode = RD_SQ_OPEN;
    os_u32_store_relaxed(&sq->opened, 1);
    os_lock_leave(&sq->lock);
}

/* ---- the stream's side ---- */

SN_HOT struct tp_request *rd_sendq_peek(void *ctx) {
    struct rd_sendq *sq = &((struct rd_qp *)ctx)->sq;
    uint32_t taken = os_u32_load_relaxed(&sq->taken);
    if (taken == os_u32_load_acquire(&sq->visible) || os_u32_load_relaxed(&sq->stopped))
        return NULL;
    return &slot_of(sq, taken)->req;
}

void rd_sendq_pass(void *ctx) {
    os_lock_pass(&((struct rd_qp *)ctx)->sq.lock);
}

static sn_status run_local(struct rd_qp *qp, struct rd_sendq_slot *s) {
    if (s->type == RD_BIND) return rd_window_bind_run(s->window, s->bind_id);
    if (s->type == RD_FAST_REGISTER) {
        struct rd_fastreg *fast = s->fast;
        s->fast = NULL;
        return rd_fastreg_run(s->region, fast);
    }
    if (s->region) return rd_fastreg_invalidate(s->region);
    return rd_window_invalidate(s->window, qp->id);
}

SN_HOT void rd_sendq_advance(void *ctx) {
    struct rd_qp *qp = ctx;
    struct rd_sendq *sq = &qp->sq;
    uint32_t taken = os_u32_load_relaxed(&sq->taken);
    struct rd_sendq_slot *s = slot_of(sq, taken);
    bool local = s->req.op == TP_OP_LOCAL;
    os_u32_store_relaxed(&sq->taken, taken + 1);
    if (!local) return;
    sn_status st = run_local(qp, s);
    rd_sendq_done(qp, &s->req, st);
    if (st != SN_OK) rd_qp_break_later(qp);
}

/* ---- posting ---- */

static bool full(const struct rd_sendq *sq) {
    return sq->tail - sq->head >= sq->depth;
}

static struct tp_conn *begin_call_locked(struct rd_qp *qp);

/* Lock held; left meanwhile: the transport may have kept to itself what became of silent requests.
 */
SN_COLD static void reap_locked(struct rd_qp *qp) {
    struct tp_conn *conn = begin_call_locked(qp);
    if (!conn) return;
    os_lock_leave(&qp->sq.lock);
    if (conn->ops->reap) conn->ops->reap(conn);
    os_u32_fetch_add_seqcst(&qp->sq.returned, 1);
    os_lock_enter(&qp->sq.lock);
}

static sn_status admit_locked(struct rd_qp *qp, enum rd_request_type type) {
    struct rd_sendq *sq = &qp->sq;
    if (SN_UNLIKELY(full(sq)) && sq->mode == RD_SQ_OPEN) reap_locked(qp);
    if (sq->mode == RD_SQ_UNCONNECTED || sq->mode == RD_SQ_CLOSED) return SN_E_NOT_CONNECTED;
    if (type == RD_READ && sq->mode == RD_SQ_OPEN && sq->ord == 0) return SN_E_REQUEST;
    return full(sq) ? SN_E_FULL : SN_OK;
}

SN_COLD static void flush_post_locked(struct rd_qp *qp, struct rd_fire *f) {
    rd_cq_enter(qp->initiator_cq);
    rd_sendq_flush_locked(qp, f);
    rd_cq_leave(qp->initiator_cq, f);
}

/* Lock held: the connection to be told of new requests, NULL if there is none. */
static struct tp_conn *begin_call_locked(struct rd_qp *qp) {
    struct tp_conn *conn = os_ptr_load_acquire(&qp->conn);
    if (conn) qp->sq.calls++;
    return conn;
}
static void call(struct rd_qp *qp, struct tp_conn *conn) {
    conn->ops->post_send(conn);
    os_u32_fetch_add_seqcst(&qp->sq.returned, 1);
}

/* Lock held, which the end of a connection passes through as well. */
static bool sent_at_once_locked(struct rd_qp *qp) {
    struct tp_conn *conn = os_ptr_load_acquire(&qp->conn);
    return conn && conn->ops->try_send && conn->ops->try_send(conn) &&
           os_u32_load_relaxed(&qp->sq.taken) == qp->sq.tail;
}

/* Lock held, and left: the slot at the tail is filled, and becomes a request. */
SN_HOT static sn_status enqueue(struct rd_qp *qp, uint32_t flags) {
    struct rd_sendq *sq = &qp->sq;
    struct rd_fire f;
    struct tp_conn *conn = NULL;
    rd_fire_init(&f);
    sq->tail++;
    rd_count(&qp->counters.posted, 1);
    if (SN_UNLIKELY(sq->mode == RD_SQ_FLUSHED)) {
        flush_post_locked(qp, &f);
    } else if (!(flags & RD_POST_DEFER)) {
        os_u32_store_release(&sq->visible, sq->tail);
        if (SN_LIKELY(sq->mode == RD_SQ_OPEN) && !sent_at_once_locked(qp))
            conn = begin_call_locked(qp);
    }
    os_lock_leave(&sq->lock);
    rd_fire_run(&f);
    if (conn) call(qp, conn);
    return SN_OK;
}

static uint8_t request_flags(uint32_t flags) {
    _Static_assert(
        (int)TP_F_FENCE == RD_POST_FENCE >> 1 && (int)TP_F_SOLICIT == RD_POST_SOLICIT >> 1 &&
            (int)TP_F_INVALIDATE == RD_POST_INVALIDATE >> 2 && (int)TP_F_INLINE == RD_POST_INLINE,
        "flags are translated by masks and shifts");
    return (uint8_t)(((flags & (RD_POST_FENCE | RD_POST_SOLICIT)) >> 1) |
                     ((flags & RD_POST_INVALIDATE) >> 2) | (flags & RD_POST_INLINE));
}

static struct rd_sendq_slot *begin_slot(struct rd_sendq *sq, void *context,
                                        enum rd_request_type type, enum tp_op op, uint32_t flags,
                                        uint32_t allowed) {
    struct rd_sendq_slot *s = slot_of(sq, sq->tail);
    s->req.op = (uint8_t)op;
    s->req.flags = request_flags(flags & allowed);
    s->req.sge_count = 0;
    s->req.length = 0;
    s->context = context;
    s->type = (uint8_t)type;
    s->silent = (flags & RD_POST_SILENT) != 0;
    if (s->silent) s->req.flags |= TP_F_SILENT;
    s->done = 0;
    s->invalidate_sink = (flags & RD_POST_READ_INVALIDATE) != 0 && type == RD_READ;
    return s;
}

static sn_status copy_inline(struct rd_sendq *sq, struct rd_sendq_slot *s, const struct tp_sge *sge,
                             uint32_t count) {
    uint8_t *to = sq->inline_data + (size_t)(sq->tail & sq->mask) * sq->inline_bytes;
    s->req.inline_data = to;
    for (uint32_t i = 0; i < count; i++) {
        if (sge[i].len && !os_guarded_copy(to, sge[i].addr, sge[i].len)) return SN_E_FAULT;
        to += sge[i].len;
    }
    return SN_OK;
}

static void prepare_locked(struct rd_qp *qp) {
    struct tp_conn *conn = os_ptr_load_acquire(&qp->conn);
    if (SN_LIKELY(conn != NULL) && conn->ops->prepare_send) conn->ops->prepare_send(conn);
}

/* What Send, Write and Read have in common. */
struct transfer {
    enum tp_op op;
    enum rd_request_type type;
    uint32_t allowed; /* RD_POST_* that the transport is told */
    uint64_t remote_addr;
    uint32_t remote_token, invalidate_token;
};

static inline sn_status post_transfer(struct rd_qp *qp, void *context, const struct tp_sge *sge,
                                      uint32_t count, uint32_t flags, const struct transfer *t) {
    struct rd_sendq *sq = &qp->sq;
    bool inlined = flags & t->allowed & RD_POST_INLINE;
    uint32_t total;
    /* The count first: the array need not be as long as a wrong count says. */
    if (SN_UNLIKELY(!inlined && count > sq->max_sge)) return SN_E_TOO_MANY_SGE;
    sn_status st = rd_sge_total(sge, count, &total);
    if (SN_UNLIKELY(st != SN_OK)) return st;
    if (SN_UNLIKELY(inlined && total > sq->inline_bytes)) return SN_E_TOO_LONG;
    os_lock_enter(&sq->lock);
    prepare_locked(qp);
    st = admit_locked(qp, t->type);
    if (SN_LIKELY(st == SN_OK)) {
        struct rd_sendq_slot *s = begin_slot(sq, context, t->type, t->op, flags, t->allowed);
        s->req.length = total;
        s->req.remote_addr = t->remote_addr;
        s->req.remote_token = t->remote_token;
        s->req.invalidate_token = t->invalidate_token;
        s->req.sge = &sq->sges[(size_t)(sq->tail & sq->mask) * sq->max_sge];
        if (inlined) {
            st = copy_inline(sq, s, sge, count);
        } else {
            s->req.sge_count = (uint16_t)count;
            for (uint32_t i = 0; i < count; i++)
                s->req.sge[i] = sge[i];
        }
    }
    if (SN_LIKELY(st == SN_OK)) return enqueue(qp, flags);
    os_lock_leave(&sq->lock);
    return st;
}

SN_HOT sn_status rd_qp_send(struct rd_qp *qp, void *context, const struct tp_sge *sge,
                            uint32_t count, uint32_t flags, uint32_t invalidate_token) {
    const struct transfer t = { .op = TP_OP_SEND,
                                .type = RD_SEND,
                                .allowed = RD_POST_FENCE | RD_POST_SOLICIT | RD_POST_INLINE |
                                           RD_POST_INVALIDATE,
                                .invalidate_token = invalidate_token };
    return post_transfer(qp, context, sge, count, flags, &t);
}

SN_HOT sn_status rd_qp_write(struct rd_qp *qp, void *context, const struct tp_sge *sge,
                             uint32_t count, uint64_t remote_addr, uint32_t remote_token,
                             uint32_t flags) {
    const struct transfer t = { .op = TP_OP_WRITE,
                                .type = RD_WRITE,
                                .allowed = RD_POST_FENCE | RD_POST_INLINE,
                                .remote_addr = remote_addr,
                                .remote_token = remote_token };
    return post_transfer(qp, context, sge, count, flags, &t);
}

sn_status rd_qp_read(struct rd_qp *qp, void *context, const struct tp_sge *sge, uint32_t count,
                     uint64_t remote_addr, uint32_t remote_token, uint32_t flags) {
    const struct transfer t = { .op = TP_OP_READ,
                                .type = RD_READ,
                                .allowed = RD_POST_FENCE,
                                .remote_addr = remote_addr,
                                .remote_token = remote_token };
    if (count > rd_limits_get()->max_read_sge) return SN_E_TOO_MANY_SGE;
    return post_transfer(qp, context, sge, count, flags, &t);
}

/* ---- posting what the core does by itself when its turn comes ---- */

struct local_post {
    enum rd_request_type type;
    struct rd_window *window;
    struct rd_region *region; /* bind, fast register and its invalidate */
    const uint64_t *pages;    /* fast register */
    uint32_t page_count, fbo;
    uint64_t base;
    const void *buf;
    size_t len;
    uint32_t rights;
};

static sn_status fill_local_locked(struct rd_qp *qp, struct rd_sendq_slot *s,
                                   const struct local_post *p) {
    if (p->type == RD_FAST_REGISTER) {
        sn_status st = rd_fastreg_prepare(p->region, p->pages, p->page_count, p->fbo, p->len,
                                          p->base, p->rights, &s->fast);
        if (st != SN_OK) return st;
    }
    if (p->region && p->type != RD_BIND) {
        os_ref_get(&p->region->refs);
        s->region = p->region;
    }
    if (!p->window) return SN_OK;
    if (p->type == RD_BIND) {
        sn_status st = rd_window_bind(p->window, p->region, qp->id, &qp->windows, p->buf, p->len,
                                      p->rights, &s->bind_id);
        if (st != SN_OK) return st;
    }
    os_ref_get(&p->window->refs);
    s->window = p->window;
    return SN_OK;
}

static sn_status post_local(struct rd_qp *qp, void *context, uint32_t flags,
                            const struct local_post *p) {
    struct rd_sendq *sq = &qp->sq;
    os_lock_enter(&sq->lock);
    sn_status st = admit_locked(qp, p->type);
    if (st == SN_OK) {
        struct rd_sendq_slot *s =
            begin_slot(sq, context, p->type, TP_OP_LOCAL, flags, RD_POST_FENCE);
        st = fill_local_locked(qp, s, p);
    }
    if (st == SN_OK) return enqueue(qp, flags);
    os_lock_leave(&sq->lock);
    return st;
}

sn_status rd_qp_bind(struct rd_qp *qp, void *context, struct rd_region *r, struct rd_window *w,
                     const void *buf, size_t len, uint32_t rights, uint32_t flags) {
    if (r->ad != qp->ad || w->ad != qp->ad || r->pd != qp->pd) return SN_E_PARAM;
    if (rights & ~(uint32_t)(RD_REMOTE_READ | RD_REMOTE_WRITE)) return SN_E_PARAM;
    const struct local_post p = {
        .type = RD_BIND, .window = w, .region = r, .buf = buf, .len = len, .rights = rights
    };
    return post_local(qp, context, flags, &p);
}

sn_status rd_qp_fast_register(struct rd_qp *qp, void *context, struct rd_region *r,
                              const uint64_t *pages, uint32_t count, uint32_t fbo, size_t len,
                              uint64_t base, uint32_t rights, uint32_t flags) {
    if (r->ad != qp->ad || r->pd != qp->pd) return SN_E_PD;
    if (rights & ~(uint32_t)(RD_LOCAL_WRITE | RD_REMOTE_READ | RD_REMOTE_WRITE | RD_READ_SINK))
        return SN_E_PARAM;
    const struct local_post p = { .type = RD_FAST_REGISTER,
                                  .region = r,
                                  .pages = pages,
                                  .page_count = count,
                                  .fbo = fbo,
                                  .len = len,
                                  .base = base,
                                  .rights = rights };
    return post_local(qp, context, flags, &p);
}

sn_status rd_qp_invalidate_region(struct rd_qp *qp, void *context, struct rd_region *r,
                                  uint32_t flags) {
    if (r->ad != qp->ad || r->pd != qp->pd) return SN_E_PD;
    const struct local_post p = { .type = RD_INVALIDATE, .region = r };
    return post_local(qp, context, flags, &p);
}

void rd_qp_start_deferred(struct rd_qp *qp) {
    struct rd_sendq *sq = &qp->sq;
    os_lock_enter(&sq->lock);
    bool start = sq->mode == RD_SQ_OPEN && os_u32_load_relaxed(&sq->visible) != sq->tail;
    if (start) os_u32_store_release(&sq->visible, sq->tail);
    struct tp_conn *conn = start ? begin_call_locked(qp) : NULL;
    os_lock_leave(&sq->lock);
    if (conn) call(qp, conn);
}

sn_status rd_qp_invalidate(struct rd_qp *qp, void *context, struct rd_window *w, uint32_t flags) {
    if (w->ad != qp->ad) return SN_E_PARAM;
    const struct local_post p = { .type = RD_INVALIDATE, .window = w };
    return post_local(qp, context, flags, &p);
}
