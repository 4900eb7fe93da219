/* SPDX-License-Identifier: MIT
 *
 * The receive queue. Receives are posted under the lock; the stream takes and completes them in
 * order under its own receive lock and shares only indexes with the posters. A queue pair with a
 * shared queue keeps here what its stream took from there.
 */
#include <string.h>
#include "rdma/qp.h"

size_t rd_recvq_layout(struct rd_recvq *rq, uint8_t *base) {
    uint32_t slots = rq->depth ? rq->mask + 1 : 0;
    size_t ring = (size_t)slots * sizeof *rq->ring;
    ring = (ring + 15) & ~(size_t)15;
    if (base) {
        rq->ring = (struct rd_recvq_slot *)base;
        rq->sges = (struct tp_sge *)(base + ring);
    }
    return ring + (size_t)slots * rq->max_sge * sizeof *rq->sges;
}

static struct rd_recvq_slot *slot_of(struct rd_recvq *rq, uint32_t index) {
    return &rq->ring[index & rq->mask];
}

static void put_cancelled(struct rd_qp *qp, void *context, struct rd_fire *f) {
    struct rd_cq_entry e = { .qp_context = qp->context,
                             .request_context = context,
                             .status = SN_E_CANCELED,
                             .type = RD_RECEIVE };
    rd_cq_put_locked(qp->receive_cq, &e, false, &qp->receive_member, f);
    rd_count_any(&qp->counters.flushed, 1);
}

/* ---- posting ---- */

/* Lock held, and left. */
SN_COLD static sn_status cancel_post(struct rd_qp *qp, void *context) {
    struct rd_fire f;
    rd_fire_init(&f);
    rd_cq_enter(qp->receive_cq);
    put_cancelled(qp, context, &f);
    rd_cq_leave(qp->receive_cq, &f);
    os_lock_leave(&qp->rq.lock);
    rd_fire_run(&f);
    return SN_OK;
}

SN_COLD static sn_status wake_stream(struct rd_qp *qp) {
    struct tp_conn *conn = rd_qp_conn_pin(qp);
    if (!conn) return SN_OK;
    conn->ops->post_receive(conn);
    rd_qp_conn_unpin(qp);
    return SN_OK;
}

SN_HOT sn_status rd_qp_receive(struct rd_qp *qp, void *context, const struct tp_sge *sge,
                               uint32_t count) {
    struct rd_recvq *rq = &qp->rq;
    uint32_t total;
    if (SN_UNLIKELY(qp->srq != NULL)) return SN_E_REQUEST;
    if (SN_UNLIKELY(count > rq->max_sge)) return SN_E_TOO_MANY_SGE;
    sn_status st = rd_sge_total(sge, count, &total);
    if (SN_UNLIKELY(st != SN_OK)) return st;
    os_lock_enter(&rq->lock);
    uint32_t tail = os_u32_load_relaxed(&rq->tail);
    if (SN_UNLIKELY(tail - os_u32_load_acquire(&rq->head) >= rq->depth)) {
        os_lock_leave(&rq->lock);
        return SN_E_FULL;
    }
    rd_count(&qp->counters.receives_posted, 1);
    if (SN_UNLIKELY(rq->flushed)) return cancel_post(qp, context);
    struct rd_recvq_slot *s = slot_of(rq, tail);
    s->context = context;
    s->recv.length = total;
    s->recv.sge_count = (uint16_t)count;
    s->recv.sge = &rq->sges[(size_t)(tail & rq->mask) * rq->max_sge];
    for (uint32_t i = 0; i < count; i++)
        s->recv.sge[i] = sge[i];
    os_u32_store_release(&rq->tail, tail + 1);
    bool wake = os_u32_load_relaxed(&rq->starved);
    os_lock_leave(&rq->lock);
    return SN_UNLIKELY(wake) ? wake_stream(qp) : SN_OK;
}

/* ---- the stream's side ---- */

/* Looks again under the lock, so that a post sees `starved` or is seen here. True if empty. */
SN_COLD static bool check_starved(struct rd_qp *qp, uint32_t taken) {
    struct rd_recvq *rq = &qp->rq;
    os_lock_enter(&rq->lock);
    bool empty = taken == os_u32_load_acquire(&rq->tail) || rq->flushed;
    if (empty && !os_u32_load_relaxed(&rq->starved)) rd_count(&qp->counters.starved, 1);
    os_u32_store_relaxed(&rq->starved, empty);
    os_lock_leave(&rq->lock);
    return empty;
}

static struct tp_receive *take_shared(struct rd_qp *qp) {
    struct rd_fire f;
    rd_fire_init(&f);
    struct rd_srq_slot *s = rd_srq_take(qp->srq, &qp->rq.srq_taken, &qp->rq.srq_wait, &f);
    rd_fire_run(&f);
    return s ? &s->recv : NULL;
}

SN_HOT struct tp_receive *rd_recvq_take(void *ctx) {
    struct rd_qp *qp = ctx;
    struct rd_recvq *rq = &qp->rq;
    if (qp->srq) return take_shared(qp);
    uint32_t taken = os_u32_load_relaxed(&rq->taken);
    bool suspect = taken == os_u32_load_acquire(&rq->tail) || os_u32_load_relaxed(&rq->starved);
    if (SN_UNLIKELY(suspect) && check_starved(qp, taken)) return NULL;
    os_u32_store_relaxed(&rq->taken, taken + 1);
    return &slot_of(rq, taken)->recv;
}

/* Frees the slot before the completion can be seen, so that its reader can post again at once. */
SN_HOT static void *free_slot(struct rd_qp *qp, struct tp_receive *recv) {
    struct rd_recvq *rq = &qp->rq;
    if (qp->srq) {
        struct rd_srq_slot *s = SN_CONTAINER(recv, struct rd_srq_slot, recv);
        void *context = s->context;
        rd_srq_done(qp->srq, s);
        return context;
    }
    void *context = SN_CONTAINER(recv, struct rd_recvq_slot, recv)->context;
    os_u32_store_release(&rq->head, os_u32_load_relaxed(&rq->head) + 1);
    return context;
}

SN_HOT void rd_recvq_done(void *ctx, struct tp_receive *recv, sn_status st, uint32_t bytes,
                          uint32_t flags, uint32_t invalidated_token) {
    struct rd_qp *qp = ctx;
    struct rd_fire f;
    rd_fire_init(&f);
    bool ok = st == SN_OK;
    if (SN_UNLIKELY(os_u32_load_relaxed(&qp->sq.opened) == 0)) rd_sendq_open_early(qp);
    struct rd_cq_entry e = {
        .qp_context = qp->context,
        .request_context = free_slot(qp, recv),
        .bytes = ok ? bytes : 0,
        .invalidated_token = ok && (flags & TP_RECV_INVALIDATED) ? invalidated_token : 0,
        .status = (uint8_t)st,
        .type = RD_RECEIVE,
    };
    if (ok) {
        rd_count(&qp->counters.received, 1);
        rd_count(&qp->counters.rx_bytes, bytes);
    } else {
        rd_count_any(st == SN_E_CANCELED ? &qp->counters.flushed : &qp->counters.failed, 1);
    }
    rd_cq_enter(qp->receive_cq);
    rd_cq_put_locked(qp->receive_cq, &e, (flags & TP_RECV_SOLICITED) != 0, &qp->receive_member, &f);
    rd_cq_leave(qp->receive_cq, &f);
    rd_fire_run(&f);
}

void rd_recvq_done_many(void *ctx, const struct tp_received *r, uint32_t n) {
    struct rd_qp *qp = ctx;
    struct rd_recvq *rq = &qp->rq;
    struct rd_fire f;
    uint64_t bytes = 0;
    if (SN_UNLIKELY(qp->srq != NULL)) {
        for (uint32_t i = 0; i < n; i++)
            rd_recvq_done(qp, r[i].recv, SN_OK, r[i].bytes, r[i].flags, 0);
        return;
    }
    rd_fire_init(&f);
    if (SN_UNLIKELY(os_u32_load_relaxed(&qp->sq.opened) == 0)) rd_sendq_open_early(qp);
    rd_cq_enter(qp->receive_cq);
    for (uint32_t i = 0; i < n; i++) {
        const struct rd_cq_entry e = {
            .qp_context = qp->context,
            .request_context = SN_CONTAINER(r[i].recv, struct rd_recvq_slot, recv)->context,
            .bytes = r[i].bytes,
            .status = SN_OK,
            .type = RD_RECEIVE,
        };
        rd_cq_put_locked(qp->receive_cq, &e, (r[i].flags & TP_RECV_SOLICITED) != 0,
                         &qp->receive_member, &f);
        bytes += r[i].bytes;
    }
    /* As in free_slot: nobody sees the completions before the lock is left. */
    os_u32_store_release(&rq->head, os_u32_load_relaxed(&rq->head) + n);
    rd_count(&qp->counters.received, n);
    rd_count(&qp->counters.rx_bytes, bytes);
    rd_cq_leave(qp->receive_cq, &f);
    rd_fire_run(&f);
}

/* ---- when the stream is silent ---- */

void rd_recvq_flush_locked(struct rd_qp *qp, struct rd_fire *f) {
    struct rd_recvq *rq = &qp->rq;
    /* Only this queue pair's stream, silent by now, adds to or takes from this list. */
    SN_LIST_FOR(it, &rq->srq_taken)
    put_cancelled(qp, SN_CONTAINER(it, struct rd_srq_slot, link)->context, f);
    uint32_t tail = os_u32_load_relaxed(&rq->tail);
    for (uint32_t i = os_u32_load_relaxed(&rq->head); i != tail; i++)
        put_cancelled(qp, slot_of(rq, i)->context, f);
    os_u32_store_relaxed(&rq->taken, tail);
    os_u32_store_release(&rq->head, tail);
    os_u32_store_relaxed(&rq->starved, 0);
}

void rd_recvq_flush_end(struct rd_qp *qp) {
    struct rd_recvq *rq = &qp->rq;
    if (!qp->srq) return;
    rd_srq_stop_waiting(qp->srq, &rq->srq_wait, NULL);
    while (!sn_list_empty(&rq->srq_taken))
        rd_srq_done(qp->srq, SN_CONTAINER(rq->srq_taken.next, struct rd_srq_slot, link));
}

void rd_recvq_rewind(struct rd_qp *qp) {
    struct rd_recvq *rq = &qp->rq;
    if (qp->srq) {
        rd_srq_stop_waiting(qp->srq, &rq->srq_wait, &rq->srq_taken);
        return;
    }
    os_lock_enter(&rq->lock);
    os_u32_store_relaxed(&rq->taken, os_u32_load_relaxed(&rq->head));
    os_u32_store_relaxed(&rq->starved, 0);
    os_lock_leave(&rq->lock);
}
