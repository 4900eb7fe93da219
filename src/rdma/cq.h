/* SPDX-License-Identifier: MIT
 * cq.h - completion queues, inside the core.
 * Owns:    struct rd_cq: the ring of completions, pending notifications, and the list of connected
 *          queue pairs that a poll makes progress on.
 * Threads: producers and consumers under the queue's lock (rank CQ); `queued` is read without it,
 *          so that an empty queue costs one load.
 * Errors:  an entry that finds no room is an overrun: the queue is dead, its queue pairs are ended.
 */
#ifndef SN_RDMA_CQ_H
#define SN_RDMA_CQ_H

#include "rdma/adapter.h"
#include "rdma/async.h"

enum {
    /* Entries beyond twice the depth: a peer's disconnect flushes both queues into a completion
     * queue that was sized for one of them (docs/decisions.md). */
    RD_CQ_SLACK = 64,
    /* Empty polls between two looks at the adapter's other sockets, and polls that give what is
     * there already between two looks for more. */
    RD_CQ_PROGRESS_EVERY = 16,
    /* Polls of a queue with several members that look at the most recent one only, at most: asking
     * the system for all costs more than looking at one, but the others must not wait long. */
    RD_CQ_SKIP_MAX = 7,
    /* os_ticks between two empty polls of a tight loop: some 0.5 us. */
    RD_CQ_TIGHT = 1500
};

struct rd_cq_entry {
    void *qp_context, *request_context;
    uint32_t bytes;
    uint32_t invalidated_token;
    uint8_t status; /* sn_status */
    uint8_t type;   /* enum rd_request_type */
};

/* A queue pair's place on a completion queue while it is connected. */
struct rd_cq_member {
    struct sn_list link;     /* [cq lock] on cq->members; self-linked while not */
    struct sn_list due_link; /* [cq lock] on cq->due: has given completions since the last flush,
                              * or holds something back */
    struct rd_qp *qp;
};

struct rd_cq {
    struct os_ref refs; /* the front end's, one per queue pair */
    struct rd_adapter *ad;
    os_lock poll_lock;        /* rank POLL: who makes progress for this queue */
    struct tp_hot hot;        /* [poll_lock] */
    uint32_t since_others;    /* [poll_lock] looks at the only member since one at all sockets */
    uint32_t skip, skip_next; /* [poll_lock] polls until all members are looked at; after that */
    uint64_t left_ticks;      /* [poll_lock] when the last poll that found nothing ended */
    os_atomic_u32 full_polls; /* a lost count is harmless */

    os_lock lock;                    /* rank CQ */
    os_atomic_u32 queued;            /* [lock for writes] entries in the ring */
    os_atomic_u32 failed;            /* [lock for writes] overran */
    struct rd_cq_entry *ring;        /* [lock] */
    uint32_t depth;                  /* [lock] as asked for */
    uint32_t capacity;               /* [lock] entries the ring holds */
    uint32_t head, tail;             /* [lock] positions in the ring */
    uint64_t newest;                 /* [lock] number of the newest entry; 1 is the first */
    uint64_t newest_solicited;       /* [lock] of the newest that is solicited or failed */
    uint64_t newest_failed;          /* [lock] */
    uint64_t reported;               /* [lock] `newest` when a notification last fired */
    uint64_t seen;                   /* [lock] `newest` when the last batch of entries ended */
    struct sn_list pending;          /* [lock] notifications in issue order; core is the type */
    uint32_t armed[RD_NOTIFY_KINDS]; /* [lock] pending ones by type */
    bool dead;                       /* [lock] destroyed by the front end */
    struct sn_list members;          /* [lock] */
    struct sn_list due;              /* [lock] */
    os_atomic_u32 member_count;      /* [lock for writes] */
    os_atomic_u32 due_count;         /* [lock for writes] */
    os_atomic_ptr recent; /* [lock for writes] the member that gave the last completion */
    struct rd_busy busy;
    struct rd_async arm; /* of rd_cq_arm; on `pending` while PENDING */
    enum { RD_ARM_IDLE, RD_ARM_PENDING, RD_ARM_FIRING } arm_state; /* [lock] */
    int arm_again;                              /* [lock] armed while firing: the type, or -1 */
    void (*on_notify)(void *ctx, sn_status st); /* [const] */
    void *notify_ctx;                           /* [const] */
    struct rd_job overrun_job;
    struct rd_cq_counters counters;
};

void rd_cq_get(struct rd_cq *cq);
void rd_cq_put(struct rd_cq *cq);

/* Producers: enter, put any number, leave; notifications that this fires are in f afterwards, to
 * be run when all locks are released. */
static inline void rd_cq_enter(struct rd_cq *cq) {
    os_lock_enter(&cq->lock);
}
/* Lock held: there is no room for an entry. */
SN_COLD void rd_cq_overrun_locked(struct rd_cq *cq, struct rd_fire *f);
/* Lock held: fires what the batch at hand concerns. */
void rd_cq_fire_locked(struct rd_cq *cq, struct rd_fire *f);

static inline void rd_cq_note_due_locked(struct rd_cq *cq, struct rd_cq_member *m) {
    if (sn_list_empty(&m->link) || !sn_list_empty(&m->due_link)) return;
    sn_list_push_back(&cq->due, &m->due_link);
    os_u32_store_release(&cq->due_count, os_u32_load_relaxed(&cq->due_count) + 1);
}

static inline void rd_cq_note_activity_locked(struct rd_cq *cq, struct rd_cq_member *m,
                                              uint8_t type) {
    if (sn_list_empty(&m->link)) return; /* parted */
    if (os_ptr_load_relaxed(&cq->recent) != m->qp) os_ptr_store_release(&cq->recent, m->qp);
    if (type == RD_RECEIVE) rd_cq_note_due_locked(cq, m);
}

/* from: the member that gives it, NULL if it does not count as activity. */
static inline void rd_cq_put_locked(struct rd_cq *cq, const struct rd_cq_entry *e, bool solicited,
                                    struct rd_cq_member *from, struct rd_fire *f) {
    uint32_t n = os_u32_load_relaxed(&cq->queued);
    if (SN_UNLIKELY(cq->dead || os_u32_load_relaxed(&cq->failed))) return;
    if (SN_UNLIKELY(n == cq->capacity)) {
        rd_cq_overrun_locked(cq, f);
        return;
    }
    cq->ring[cq->tail] = *e;
    cq->tail = cq->tail + 1 == cq->capacity ? 0 : cq->tail + 1;
    cq->newest++;
    if (SN_UNLIKELY(solicited || e->status != SN_OK)) cq->newest_solicited = cq->newest;
    if (SN_UNLIKELY(e->status != SN_OK)) cq->newest_failed = cq->newest;
    os_u32_store_release(&cq->queued, n + 1);
    if (from) rd_cq_note_activity_locked(cq, from, e->type);
}

static inline void rd_cq_leave(struct rd_cq *cq, struct rd_fire *f) {
    uint32_t queued = os_u32_load_relaxed(&cq->queued);
    if (!sn_list_empty(&cq->pending)) rd_cq_fire_locked(cq, f);
    rd_count(&cq->counters.entries, cq->newest - cq->seen);
    if (queued > os_u64_load_relaxed(&cq->counters.most_queued))
        os_u64_store_relaxed(&cq->counters.most_queued, queued);
    cq->seen = cq->newest;
    os_lock_leave(&cq->lock);
}

/* The member's transport holds something back: it is asked to send it when the queue was found
 * empty, or before somebody sleeps. The lock is taken inside. */
void rd_cq_note_due(struct rd_cq *cq, struct rd_cq_member *m);

/* A queue pair was connected, or is no longer. The lock is taken inside. */
void rd_cq_join(struct rd_cq *cq, struct rd_cq_member *m);
void rd_cq_part(struct rd_cq *cq, struct rd_cq_member *m);
/* Waits until no poll is under way that may still know a member that has parted. No lock held. */
void rd_cq_quiesce(struct rd_cq *cq);

#endif
