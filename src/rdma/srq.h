/* SPDX-License-Identifier: MIT
 * srq.h - shared receive queues, inside the core.
 * Owns:    struct rd_srq and its slots. A slot is queued (posted), taken (a stream fills it) or
 *          free. Memory for the largest depth is reserved at once and committed as it is used, so
 *          that rd_srq_modify never moves a slot that a stream holds.
 * Threads: any; everything under the lock (rank SRQ).   Errors: see rd.h.
 */
#ifndef SN_RDMA_SRQ_H
#define SN_RDMA_SRQ_H

#include "rdma/adapter.h"
#include "rdma/async.h"

struct rd_srq_slot {
    struct tp_receive recv; /* first: streams know slots by it */
    void *context;
    struct sn_list link; /* queued: srq->queued; taken: the taker's list; free: srq->free */
};

struct rd_srq {
    struct os_ref refs; /* the front end's, one per queue pair */
    struct rd_adapter *ad;
    uint32_t max_sge;  /* [const] */
    uint32_t slot_max; /* [const] slots that memory is reserved for */
    void *memory;      /* [const] */
    size_t memory_bytes;

    os_lock lock; /* rank SRQ */
    struct rd_srq_slot *slots;
    struct tp_sge *sges; /* max_sge per slot */
    uint32_t slots_used; /* slots[slots_used ...] have never been touched */
    struct sn_list free, queued;
    uint32_t queued_count; /* posted and not taken: what the threshold is about */
    uint32_t held_count;   /* queued or taken: what the depth is about */
    uint32_t depth, threshold;
    struct sn_list pending; /* notifications in issue order */
    struct sn_list waiters; /* struct rd_recvq.srq_wait: streams that found nothing */
    bool dead;
    struct rd_busy busy;
    struct rd_job wake_job; /* wakes waiters from where that is not allowed directly */
};

void rd_srq_get(struct rd_srq *srq);
void rd_srq_put(struct rd_srq *srq);
/* The oldest receive, moved to `taken`; NULL: `wait` is on the list of waiters. A notification
 * that this fires is in f. */
struct rd_srq_slot *rd_srq_take(struct rd_srq *srq, struct sn_list *taken, struct sn_list *wait,
                                struct rd_fire *f);
/* The slot has been completed. */
void rd_srq_done(struct rd_srq *srq, struct rd_srq_slot *s);
/* A stream that may be waiting is gone. taken, if not NULL: what it took goes back to the queue. */
void rd_srq_stop_waiting(struct rd_srq *srq, struct sn_list *wait, struct sn_list *taken);

#endif
