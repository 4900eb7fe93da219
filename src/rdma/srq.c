/* SPDX-License-Identifier: MIT
 *
 * Streams that find the queue empty wait on a list; a post wakes as many of the oldest as there are
 * receives queued, so that one that has died meanwhile cannot swallow a wake-up for the others.
 */
#include "rdma/srq.h"
#include <string.h>
#include "os/prim/fault.h"
#include "os/prim/pages.h"
#include "rdma/qp.h"

/* ---- waking ---- */

/* The next waiter, in order, that a queued receive is there for; referenced. */
static struct rd_qp *waiter_at(struct rd_srq *srq, uint32_t index) {
    struct rd_qp *qp = NULL;
    uint32_t i = 0;
    os_lock_enter(&srq->lock);
    SN_LIST_FOR(it, &srq->waiters) {
        if (i >= srq->queued_count) break;
        if (i++ != index) continue;
        qp = SN_CONTAINER(it, struct rd_qp, rq.srq_wait);
        rd_qp_get(qp);
        break;
    }
    os_lock_leave(&srq->lock);
    return qp;
}

/* No lock of rank EVENT or above held. */
static void wake_waiters(struct rd_srq *srq) {
    struct rd_qp *qp;
    for (uint32_t i = 0; (qp = waiter_at(srq, i)) != NULL; i++) {
        struct tp_conn *conn = rd_qp_conn_pin(qp);
        if (conn) {
            conn->ops->post_receive(conn);
            rd_qp_conn_unpin(qp);
        }
        rd_qp_put(qp);
    }
}

static void run_wake(struct rd_job *job) {
    struct rd_srq *srq = SN_CONTAINER(job, struct rd_srq, wake_job);
    wake_waiters(srq);
    rd_srq_put(srq);
}

/* ---- create and destroy ---- */

sn_status rd_srq_create(struct rd_adapter *ad, uint32_t depth, uint32_t max_sge,
                        uint32_t notify_threshold, struct rd_srq **out) {
    const struct rd_limits *lim = rd_limits_get();
    if (depth < 1 || depth > lim->max_srq_depth || max_sge > lim->max_receive_sge)
        return SN_E_PARAM;
    struct rd_srq *srq = os_zalloc(sizeof *srq);
    if (!srq) return SN_E_NOMEM;
    srq->max_sge = rd_sge_room(max_sge, lim->max_receive_sge);
    srq->slot_max = lim->max_srq_depth;
    size_t slot_bytes = (size_t)srq->slot_max * sizeof(struct rd_srq_slot);
    srq->memory_bytes = slot_bytes + (size_t)srq->slot_max * srq->max_sge * sizeof(struct tp_sge);
    srq->memory = os_pages_alloc(srq->memory_bytes);
    if (!srq->memory) {
        os_free(srq);
        return SN_E_NOMEM;
    }
    srq->slots = srq->memory;
    srq->sges = (struct tp_sge *)((uint8_t *)srq->memory + slot_bytes);
    os_ref_init(&srq->refs);
    os_lock_init(&srq->lock, OS_RANK_SRQ);
    sn_list_init(&srq->free);
    sn_list_init(&srq->queued);
    sn_list_init(&srq->pending);
    sn_list_init(&srq->waiters);
    rd_job_init(&srq->wake_job, run_wake);
    srq->depth = depth;
    srq->threshold = notify_threshold;
    rd_adapter_get(ad);
    srq->ad = ad;
    *out = srq;
    return SN_OK;
}

void rd_srq_get(struct rd_srq *srq) {
    os_ref_get(&srq->refs);
}

void rd_srq_put(struct rd_srq *srq) {
    if (!os_ref_put(&srq->refs)) return;
    struct rd_adapter *ad = srq->ad;
    os_pages_free(srq->memory, srq->memory_bytes);
    os_lock_fini(&srq->lock);
    os_free(srq);
    rd_adapter_put(ad);
}

void rd_srq_destroy(struct rd_srq *srq) {
    os_lock_enter(&srq->lock);
    srq->dead = true;
    os_lock_leave(&srq->lock);
    rd_srq_cancel(srq);
    rd_busy_wait(&srq->busy);
    rd_srq_put(srq);
}

/* ---- notifications ---- */

static void fire_all_locked(struct rd_srq *srq, sn_status st, struct rd_fire *f) {
    SN_LIST_FOR_SAFE(it, tmp, &srq->pending)
    rd_fire_add(f, &srq->busy, SN_CONTAINER(it, struct rd_async, link), st);
}

/* A threshold of 0 is never reached: no notifications. */
static void check_threshold_locked(struct rd_srq *srq, struct rd_fire *f) {
    if (srq->queued_count < srq->threshold) fire_all_locked(srq, SN_OK, f);
}

sn_status rd_srq_modify(struct rd_srq *srq, uint32_t depth, uint32_t notify_threshold) {
    if (depth > srq->slot_max) return SN_E_PARAM;
    struct rd_fire f;
    rd_fire_init(&f);
    sn_status st = SN_OK;
    os_lock_enter(&srq->lock);
    if (depth != 0 && depth < srq->held_count) {
        st = SN_E_BUFFER_SMALL;
    } else {
        if (depth != 0) srq->depth = depth;
        if (notify_threshold != 0) srq->threshold = notify_threshold;
        check_threshold_locked(srq, &f);
    }
    os_lock_leave(&srq->lock);
    rd_fire_run(&f);
    return st;
}

static sn_status notify(struct rd_srq *srq, struct rd_async *a, bool at_once) {
    struct rd_fire f;
    rd_fire_init(&f);
    sn_list_init(&a->link);
    os_lock_enter(&srq->lock);
    sn_list_push_back(&srq->pending, &a->link);
    if (srq->dead)
        fire_all_locked(srq, SN_E_CANCELED, &f);
    else if (at_once)
        check_threshold_locked(srq, &f);
    os_lock_leave(&srq->lock);
    rd_fire_run(&f);
    return SN_PENDING;
}

sn_status rd_srq_notify(struct rd_srq *srq, struct rd_async *a) {
    return notify(srq, a, true);
}

sn_status rd_srq_notify_falling(struct rd_srq *srq, struct rd_async *a) {
    return notify(srq, a, false);
}

void rd_srq_cancel(struct rd_srq *srq) {
    struct rd_fire f;
    rd_fire_init(&f);
    os_lock_enter(&srq->lock);
    fire_all_locked(srq, SN_E_CANCELED, &f);
    os_lock_leave(&srq->lock);
    rd_fire_run(&f);
}

/* ---- receives ---- */

static struct rd_srq_slot *free_slot_locked(struct rd_srq *srq) {
    struct sn_list *it = sn_list_pop(&srq->free);
    if (it) return SN_CONTAINER(it, struct rd_srq_slot, link);
    struct rd_srq_slot *s = &srq->slots[srq->slots_used];
    s->recv.sge = &srq->sges[(size_t)srq->slots_used * srq->max_sge];
    sn_list_init(&s->link);
    srq->slots_used++; /* held_count < depth <= slot_max, so there is one */
    return s;
}

uint32_t rd_srq_queued(struct rd_srq *srq) {
    os_lock_enter(&srq->lock);
    uint32_t n = srq->queued_count;
    os_lock_leave(&srq->lock);
    return n;
}

sn_status rd_srq_post(struct rd_srq *srq, void *context, const struct tp_sge *sge, uint32_t count) {
    uint32_t total;
    if (count > srq->max_sge) return SN_E_TOO_MANY_SGE;
    sn_status st = rd_sge_total(sge, count, &total);
    if (st != SN_OK) return st;
    os_lock_enter(&srq->lock);
    if (srq->held_count >= srq->depth) {
        os_lock_leave(&srq->lock);
        return SN_E_FULL;
    }
    struct rd_srq_slot *s = free_slot_locked(srq);
    s->context = context;
    s->recv.length = total;
    s->recv.sge_count = (uint16_t)count;
    if (count) memcpy(s->recv.sge, sge, count * sizeof *sge);
    sn_list_push_back(&srq->queued, &s->link);
    srq->queued_count++;
    srq->held_count++;
    bool wake = !sn_list_empty(&srq->waiters);
    os_lock_leave(&srq->lock);
    if (wake) wake_waiters(srq);
    return SN_OK;
}

struct rd_srq_slot *rd_srq_take(struct rd_srq *srq, struct sn_list *taken, struct sn_list *wait,
                                struct rd_fire *f) {
    struct rd_srq_slot *s = NULL;
    os_lock_enter(&srq->lock);
    struct sn_list *it = sn_list_pop(&srq->queued);
    if (it) {
        s = SN_CONTAINER(it, struct rd_srq_slot, link);
        sn_list_push_back(taken, it);
        sn_list_remove(wait);
        srq->queued_count--;
        check_threshold_locked(srq, f);
    } else if (sn_list_empty(wait)) {
        sn_list_push_back(&srq->waiters, wait);
    }
    os_lock_leave(&srq->lock);
    return s;
}

void rd_srq_done(struct rd_srq *srq, struct rd_srq_slot *s) {
    os_lock_enter(&srq->lock);
    sn_list_remove(&s->link);
    sn_list_push_back(&srq->free, &s->link);
    srq->held_count--;
    os_lock_leave(&srq->lock);
}

void rd_srq_stop_waiting(struct rd_srq *srq, struct sn_list *wait, struct sn_list *taken) {
    os_lock_enter(&srq->lock);
    sn_list_remove(wait);
    /* What the stream had taken and never filled goes back to the front, in its old order. */
    for (; taken && !sn_list_empty(taken); srq->queued_count++) {
        struct sn_list *it = taken->prev;
        sn_list_remove(it);
        sn_list_push_back(srq->queued.next, it);
    }
    bool wake = srq->queued_count != 0 && !sn_list_empty(&srq->waiters);
    os_lock_leave(&srq->lock);
    if (!wake) return;
    rd_srq_get(srq);
    if (!rd_job_post(srq->ad, &srq->wake_job)) rd_srq_put(srq); /* one is on its way already */
}
