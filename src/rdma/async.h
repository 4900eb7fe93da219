/* SPDX-License-Identifier: MIT
 * async.h - completion of asynchronous requests outside all locks.
 * Owns:    the rule that rd_async.done is called with no lock of the core held, and that an object
 *          is only destroyed when no such call is under way.
 * Threads: an rd_fire lives on one thread's stack; rd_busy is shared.   Errors: none.
 */
#ifndef SN_RDMA_ASYNC_H
#define SN_RDMA_ASYNC_H

#include "os/prim/atomic.h"
#include "rdma/rd.h"

/* How many threads are completing requests of an object right now. */
struct rd_busy {
    os_atomic_u32 n;
};

/* Requests taken off their object under its lock, to be completed after it is released. */
struct rd_fire {
    struct sn_list list;
    struct rd_busy *busy; /* of the object they came from; NULL while the list is empty */
};

static inline void rd_fire_init(struct rd_fire *f) {
    sn_list_init(&f->list);
    f->busy = NULL;
}

/* The object's lock held. All requests added to one rd_fire belong to the same object. */
static inline void rd_fire_add(struct rd_fire *f, struct rd_busy *busy, struct rd_async *a,
                               sn_status st) {
    if (!f->busy) {
        f->busy = busy;
        os_u32_fetch_add_seqcst(&busy->n, 1);
    }
    sn_list_remove(&a->link);
    a->core = (uint64_t)st;
    sn_list_push_back(&f->list, &a->link);
}

/* Completes in the order added. No lock of the core held. */
static inline void rd_fire_run(struct rd_fire *f) {
    if (!f->busy) return;
    for (struct sn_list *it; (it = sn_list_pop(&f->list)) != NULL;) {
        struct rd_async *a = SN_CONTAINER(it, struct rd_async, link);
        a->done(a, (sn_status)a->core);
    }
    os_u32_fetch_sub_seqcst(&f->busy->n, 1);
    f->busy = NULL;
}

/* Waits until *word is value: spins, then yields, then sleeps in short steps. For counts that are
 * held for a bounded time only; the caller has made sure that they are not taken for long again. */
void rd_drain(os_atomic_u32 *word, uint32_t value);

/* Waits until no completion of the object is under way. Not from such a completion. */
static inline void rd_busy_wait(struct rd_busy *b) {
    if (os_u32_load_seqcst(&b->n) != 0) rd_drain(&b->n, 0);
}

#endif
